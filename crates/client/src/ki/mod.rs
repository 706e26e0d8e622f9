//! A client for KI's login servers: logs in, lists, creates and selects characters, and follows the
//! server's redirects.
//!
//! ```no_run
//! use worldwire_client::ki::{Client, Settings};
//! use worldwire_ki::crypt::login::password_hash;
//!
//! # async fn play() -> Result<(), worldwire_client::ki::ClientError> {
//! let settings = Settings::default();
//! let mut login = Client::connect("127.0.0.1:12000", &settings).await?;
//! let token = login.log_in("merle", &password_hash("secret")).await?;
//!
//! // The game's own client also opens a second connection with the token of the first.
//! let mut game = Client::connect("127.0.0.1:12000", &settings).await?;
//! game.validate(&token).await?;
//! game.wait_until_admitted().await?;
//! for character in game.characters().await?.list {
//!     println!("{}", character.global_id());
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod link;
mod server_message;

use core::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, Secret, apply_rec1, pk3};
use worldwire_ki::message::{FileListAnswer, Put, Selected};

pub use error::{ClientError, Code, Result};
pub use server_message::ServerMessage;

use link::Link;

const LOGIN: u8 = 7;

/// A closure that extracts the outcome from the expected message and ignores other messages.
macro_rules! answer {
    ($message:pat => $outcome:expr) => {
        |message| match message {
            $message => Some($outcome),
            _ => None,
        }
    };
}

/// What a client sends about itself, and its time-outs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `MachineID`.
    pub machine: u64,
    /// `Locale`.
    pub locale: String,
    /// `Version`, `Revision` and `DataRevision`.
    pub revision: String,
    /// How long the server may take to reply. Default 30 s.
    pub patience: Duration,
    /// How often to send a keep-alive. Default 10 s.
    pub keep_alive: Duration,
    /// Whether to use UDP, even to zones. Default false. Lost datagrams are not resent, except the
    /// first one.
    pub udp: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            machine: 0,
            locale: "English".to_owned(),
            revision: "worldwire".to_owned(),
            patience: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            udp: false,
        }
    }
}

/// The result of a login, which the game's own client receives as `-U`.
#[derive(Clone, Debug)]
pub struct LoginToken {
    /// `UserID`.
    pub user: u64,
    /// CK2.
    pub ck2: Secret,
}

/// The characters of an account.
#[derive(Clone, Debug)]
pub struct Characters {
    /// `LoginServer`.
    pub server: String,
    /// `PurchasedCharacterSlots`.
    pub purchased: u32,
    /// The characters.
    pub list: Vec<Character>,
}

/// The zone that a client has entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InZone {
    /// `ZoneName`.
    pub zone: String,
    /// `ZoneID`.
    pub id: u64,
}

/// A connection to a login or zone server. Sends keep-alives and accepts a new session whenever the
/// server replaces a stale one.
#[derive(Debug)]
pub struct Client {
    link: Link,
    settings: Settings,
    /// The queue position that the server reported last; 0 means admitted.
    position: Option<u32>,
}

impl Client {
    /// Connects to a server, given as `HOST:PORT`, and waits for a session.
    pub async fn connect(address: &str, settings: &Settings) -> Result<Self> {
        let link = Link::connect(address, settings).await?;
        Ok(Self { link, settings: settings.clone(), position: None })
    }

    /// Runs the protocol over any stream and waits for a session.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        settings: &Settings,
    ) -> Result<Self> {
        let link = Link::over(stream, "the server", settings).await?;
        Ok(Self { link, settings: settings.clone(), position: None })
    }

    /// The session's ID.
    #[must_use]
    pub fn session_id(&self) -> u16 {
        self.link.salts().0.session_id
    }

    /// Sends `MSG_PING` and waits for the reply.
    pub async fn ping(&mut self) -> Result<()> {
        self.send(1, "MSG_PING", &[]).await?;
        self.expect("MSG_PING", answer!(ServerMessage::Pong => Ok(()))).await
    }

    /// Logs in with a password hash.
    pub async fn log_in(&mut self, user: &str, password_hash: &Secret) -> Result<LoginToken> {
        self.log_in_as("MSG_USER_AUTHEN_V3", user, password_hash).await
    }

    /// Like [`log_in`](Self::log_in), with a different login message, named by its tag.
    pub async fn log_in_as(
        &mut self,
        tag: &'static str,
        user: &str,
        password_hash: &Secret,
    ) -> Result<LoginToken> {
        let (salt, _) = self.link.salts();
        let rec1 = Rec1::new(user, password_hash, salt).seal(salt);
        let Settings { machine, locale, revision, .. } = &self.settings;
        let fields = [
            ("Rec1", Put::Bytes(rec1)),
            ("Version", Put::text(revision)),
            ("Revision", Put::text(revision)),
            ("DataRevision", Put::text(revision)),
            ("MachineID", Put::from(*machine)),
            ("Locale", Put::text(locale)),
        ];
        self.send(LOGIN, tag, &fields).await?;
        let (user, sealed) =
            self.expect(tag, answer!(ServerMessage::Authenticated(outcome) => outcome)).await?;
        // The server may have replaced the session in the meantime.
        let (now, before) = self.link.salts();
        let salts = [Some(now), before].into_iter().flatten();
        let ck2 = salts.into_iter().find_map(|salt| open_ck2(&sealed, salt));
        let ck2 = ck2.ok_or(ClientError::Unreadable { request: tag })?;
        Ok(LoginToken { user, ck2 })
    }

    /// Logs in with another connection's token.
    pub async fn validate(&mut self, token: &LoginToken) -> Result<()> {
        let tag = "MSG_USER_VALIDATE";
        let (salt, _) = self.link.salts();
        let fields = [
            ("UserID", Put::from(token.user)),
            ("PassKey3", Put::text(pk3(&token.ck2, salt).as_str())),
            ("MachineID", Put::from(self.settings.machine)),
            ("Locale", Put::text(&self.settings.locale)),
        ];
        self.send(LOGIN, tag, &fields).await?;
        self.expect(tag, answer!(ServerMessage::Validated(outcome) => outcome.map(drop))).await
    }

    /// Waits until the server admits the client. The time-out restarts whenever the queue moves.
    /// Fails with [`ClientError::Waiting`] if the queue does not move in time.
    pub async fn wait_until_admitted(&mut self) -> Result<()> {
        while self.position != Some(0) {
            self.next_queue_position().await?;
        }
        Ok(())
    }

    /// Waits until the queue position changes and returns the new one; 0 means admitted. Fails with
    /// [`ClientError::Waiting`] if the queue does not move in time.
    pub async fn next_queue_position(&mut self) -> Result<u32> {
        let moved = answer!(ServerMessage::Admit(position) => Ok(position));
        match (self.expect("MSG_USER_ADMIT_IND", moved).await, self.position) {
            (Err(ClientError::Timeout { .. }), Some(position)) => {
                Err(ClientError::Waiting { position })
            }
            (outcome, _) => outcome,
        }
    }

    /// The queue position that the server reported last; 0 means admitted.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        self.position
    }

    /// Lists the account's characters.
    pub async fn characters(&mut self) -> Result<Characters> {
        let tag = "MSG_REQUESTCHARACTERLIST";
        self.send(LOGIN, tag, &[]).await?;
        let mut all = Characters { server: String::new(), purchased: 0, list: Vec::new() };
        loop {
            let message = self.next(tag).await?;
            match message {
                ServerMessage::StartList { server, purchased } => {
                    (all.server, all.purchased) = (server, purchased);
                    all.list.clear();
                }
                ServerMessage::Character(blob) => {
                    let character = Character::read(&blob);
                    let wrong = |_| ClientError::Unreadable { request: tag };
                    all.list.push(character.map_err(wrong)?);
                }
                ServerMessage::EndList(None) => return Ok(all),
                ServerMessage::EndList(Some(code)) => {
                    return Err(ClientError::Refused { request: tag, code });
                }
                _ => {}
            }
        }
    }

    /// Creates a character.
    pub async fn create(&mut self, blob: &[u8]) -> Result<()> {
        let tag = "MSG_CREATECHARACTER";
        self.send(LOGIN, tag, &[("CreationInfo", Put::Bytes(blob.to_vec()))]).await?;
        self.expect(tag, answer!(ServerMessage::Created(code) => refused(code))).await
    }

    /// Deletes a character.
    pub async fn delete(&mut self, character: u64) -> Result<()> {
        let tag = "MSG_DELETECHARACTER";
        self.send(LOGIN, tag, &[("CharID", Put::from(character))]).await?;
        self.expect(tag, answer!(ServerMessage::Deleted(code) => refused(code))).await
    }

    /// Selects a character. The server then closes this connection; continue with
    /// [`enter`](Self::enter).
    pub async fn select(&mut self, character: u64) -> Result<Selected> {
        let tag = "MSG_SELECTCHARACTER";
        self.send(LOGIN, tag, &[("CharID", Put::from(character))]).await?;
        let answer = |message| match message {
            // The zone is still being prepared.
            ServerMessage::Selected(Ok(to)) if to.ip.is_empty() && to.tcp_port == 0 => None,
            ServerMessage::Selected(outcome) => Some(outcome),
            _ => None,
        };
        self.expect(tag, answer).await.map(|to| *to)
    }

    /// Connects to the zone server that a selection names.
    pub async fn enter(to: &Selected, settings: &Settings) -> Result<(Self, InZone)> {
        let host = if to.ip.contains(':') { format!("[{}]", to.ip) } else { to.ip.clone() };
        let port = if settings.udp { to.udp_port } else { to.tcp_port };
        let mut client = Self::connect(&format!("{host}:{port}"), settings).await?;
        let zone = client.attach(to).await?;
        Ok((client, zone))
    }

    /// Enters the zone of this connection's server.
    pub async fn attach(&mut self, to: &Selected) -> Result<InZone> {
        let tag = "MSG_ATTACH";
        let fields = [
            ("GameObjectID", Put::from(to.character)),
            ("LoginKey", Put::text(&to.key)),
            ("UserID", Put::from(to.user)),
            ("CharID", Put::from(to.character)),
            ("ZoneName", Put::text(&to.zone)),
            ("Location", Put::text(&to.location)),
            ("ZoneID", Put::from(to.zone_id)),
            ("Locale", Put::text(&self.settings.locale)),
            ("MachineID", Put::from(self.settings.machine)),
        ];
        self.send(5, tag, &fields).await?;
        let answer = |message| match message {
            ServerMessage::InZone { zone, id } => Some(Ok(InZone { zone, id })),
            ServerMessage::AttachFailed(code) => Some(Err(code)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// Asks the patch service for its file list.
    pub async fn file_list(&mut self) -> Result<FileListAnswer> {
        let tag = "MSG_LATEST_FILE_LIST_V2";
        self.send(8, tag, &[("Locale", Put::text(&self.settings.locale))]).await?;
        self.expect(tag, answer!(ServerMessage::FileList(list) => Ok(*list))).await
    }

    /// Asks for the server list, which is always empty as far as is known.
    pub async fn servers(&mut self) -> Result<()> {
        let tag = "MSG_REQUESTSERVERLIST";
        self.send(LOGIN, tag, &[]).await?;
        self.expect(tag, answer!(ServerMessage::Servers => Ok(()))).await
    }

    /// Sends a message without waiting for a reply.
    pub async fn send(&self, service: u8, tag: &'static str, fields: &[(&str, Put)]) -> Result<()> {
        self.link.send(tag, service, fields).await
    }

    /// Waits this long for the next message; `None` if none arrives.
    pub async fn listen(&mut self, time: Duration) -> Result<Option<ServerMessage>> {
        match tokio::time::timeout(time, self.link.receive("listening")).await {
            Ok(message) => self.note(message?).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Sends a disconnect message, then closes.
    pub async fn close(self) {
        // An error means that the connection is already closed.
        let _ = self.send(5, "MSG_CLIENT_DISCONNECT", &[]).await;
        self.link.close().await;
    }

    /// Waits for a reply. Updates the queue position from other messages.
    async fn expect<T>(
        &mut self,
        request: &'static str,
        mut answer: impl FnMut(ServerMessage) -> Option<core::result::Result<T, Code>>,
    ) -> Result<T> {
        loop {
            let message = self.next(request).await?;
            if let Some(outcome) = answer(message) {
                return outcome.map_err(|code| ClientError::Refused { request, code });
            }
        }
    }

    async fn next(&mut self, request: &'static str) -> Result<ServerMessage> {
        let received = tokio::time::timeout(self.settings.patience, self.link.receive(request));
        let message = received.await.map_err(|_| ClientError::Timeout { request })?;
        self.note(message?)
    }

    fn note(&mut self, message: ServerMessage) -> Result<ServerMessage> {
        match &message {
            ServerMessage::Admit(position) => self.position = Some(*position),
            ServerMessage::Afk => {
                return Err(ClientError::ThrownOut("away from the keyboard".to_owned()));
            }
            ServerMessage::Shutdown => {
                return Err(ClientError::ThrownOut("the server is shutting down".to_owned()));
            }
            ServerMessage::ForceDisconnect(message) => {
                return Err(ClientError::ThrownOut(message.clone()));
            }
            _ => {}
        }
        Ok(message)
    }
}

fn refused(code: Option<Code>) -> core::result::Result<(), Code> {
    code.map_or(Ok(()), Err)
}

/// Decrypts the CK2 in a reply's `Rec1`: base64, of any length.
fn open_ck2(sealed: &[u8], salt: Salt) -> Option<Secret> {
    let mut plain = sealed.to_vec();
    apply_rec1(salt, &mut plain);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let fits = !plain.is_empty() && plain.iter().all(is_base64);
    String::from_utf8(plain).ok().filter(|_| fits).map(Secret::new)
}
