//! A client of KI's login servers: logs in, lists, makes and selects characters, and goes where
//! the server sends it.
//!
//! ```no_run
//! use worldwire_client::ki::{Client, Settings};
//! use worldwire_ki::crypt::login::password_hash;
//!
//! # async fn play() -> Result<(), worldwire_client::ki::ClientError> {
//! let settings = Settings::default();
//! let mut login = Client::connect("127.0.0.1:12000", &settings).await?;
//! let pass = login.log_in("merle", &password_hash("secret")).await?;
//!
//! // As the game's own program does: another connection, with what the first one was given.
//! let mut game = Client::connect("127.0.0.1:12000", &settings).await?;
//! game.validate(&pass).await?;
//! game.admitted().await?;
//! for character in game.characters().await?.list {
//!     println!("{}", character.global_id());
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod link;
mod told;

use core::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::{Rec1, Salt, Secret, apply_rec1, pk3};
use worldwire_ki::message::{FileListAnswer, Put, Selected};

pub use error::{ClientError, Code, Result};
pub use told::Told;

use link::Link;

const LOGIN: u8 = 7;

/// What a client says of itself, and how patient it is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `MachineID`.
    pub machine: u64,
    /// `Locale`.
    pub locale: String,
    /// `Version`, `Revision` and `DataRevision`.
    pub revision: String,
    /// How long the server may take to answer.
    pub patience: Duration,
    /// How often to ask whether the server lives.
    pub keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            machine: 0,
            locale: "English".to_owned(),
            revision: "worldwire".to_owned(),
            patience: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
        }
    }
}

/// What a login yields: `-U` of the game's own program.
#[derive(Clone, Debug)]
pub struct Pass {
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

/// Where a client is that has entered a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InZone {
    /// `ZoneName`.
    pub zone: String,
    /// `ZoneID`.
    pub id: u64,
}

/// A connection to a login or zone server. Keep-alives go out by themselves, and sessions that the
/// server makes stale are taken up again.
#[derive(Debug)]
pub struct Client {
    link: Link,
    settings: Settings,
    /// The last position in the queue that the server told; 0 is in.
    position: Option<u32>,
}

impl Client {
    /// Connects, and waits for a session.
    ///
    /// # Errors
    /// When nobody answers, or the server hangs up.
    pub async fn connect(address: &str, settings: &Settings) -> Result<Self> {
        let link = Link::connect(address, settings).await?;
        Ok(Self { link, settings: settings.clone(), position: None })
    }

    /// Speaks to a server over any stream, and waits for a session.
    ///
    /// # Errors
    /// When the server hangs up.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        settings: &Settings,
    ) -> Result<Self> {
        let link = Link::over(stream, "the server", settings).await?;
        Ok(Self { link, settings: settings.clone(), position: None })
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> u16 {
        self.link.salts().0.session_id
    }

    /// `MSG_PING`, and its answer.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn ping(&mut self) -> Result<()> {
        self.ask("MSG_PING", 1, &[]).await?;
        self.expect("MSG_PING", |told| matches!(told, Told::Pong).then_some(Ok(()))).await
    }

    /// Logs in with a password, of which only the hash is needed.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn log_in(&mut self, user: &str, password_hash: &Secret) -> Result<Pass> {
        self.log_in_as("MSG_USER_AUTHEN_V3", user, password_hash).await
    }

    /// The same with another form of login, by its tag.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn log_in_as(
        &mut self,
        tag: &'static str,
        user: &str,
        password_hash: &Secret,
    ) -> Result<Pass> {
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
        self.ask(tag, LOGIN, &fields).await?;
        let answer = |told| match told {
            Told::Authenticated(outcome) => Some(outcome),
            _ => None,
        };
        let (user, sealed) = self.expect(tag, answer).await?;
        // The server may have offered another session meanwhile.
        let (now, before) = self.link.salts();
        let salts = [Some(now), before].into_iter().flatten();
        let ck2 = salts.into_iter().find_map(|salt| open_ck2(&sealed, salt));
        let ck2 = ck2.ok_or(ClientError::Unreadable { request: tag })?;
        Ok(Pass { user, ck2 })
    }

    /// Logs in with what another connection was given.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn validate(&mut self, pass: &Pass) -> Result<()> {
        let tag = "MSG_USER_VALIDATE";
        let (salt, _) = self.link.salts();
        let fields = [
            ("UserID", Put::from(pass.user)),
            ("PassKey3", Put::text(pk3(&pass.ck2, salt).as_str())),
            ("MachineID", Put::from(self.settings.machine)),
            ("Locale", Put::text(&self.settings.locale)),
        ];
        self.ask(tag, LOGIN, &fields).await?;
        let answer = |told| match told {
            Told::Validated(outcome) => Some(outcome.map(drop)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// Waits until the server lets the client in. Patience begins anew with every step forward.
    ///
    /// # Errors
    /// As [`ClientError`] says; [`ClientError::Waiting`], when the queue does not move.
    pub async fn admitted(&mut self) -> Result<()> {
        while self.position != Some(0) {
            self.moved().await?;
        }
        Ok(())
    }

    /// Waits until the position in the queue is another one, and returns it; 0 is in.
    ///
    /// # Errors
    /// As [`ClientError`] says; [`ClientError::Waiting`], when the queue does not move.
    pub async fn moved(&mut self) -> Result<u32> {
        let moved = |told| match told {
            Told::Admit(position) => Some(Ok(position)),
            _ => None,
        };
        match (self.expect("MSG_USER_ADMIT_IND", moved).await, self.position) {
            (Err(ClientError::Timeout { .. }), Some(position)) => {
                Err(ClientError::Waiting { position })
            }
            (outcome, _) => outcome,
        }
    }

    /// The position in the queue that the server told last; 0 is in.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        self.position
    }

    /// The characters of the account.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn characters(&mut self) -> Result<Characters> {
        let tag = "MSG_REQUESTCHARACTERLIST";
        self.ask(tag, LOGIN, &[]).await?;
        let mut all = Characters { server: String::new(), purchased: 0, list: Vec::new() };
        loop {
            let told = self.next(tag).await?;
            match told {
                Told::StartList { server, purchased } => {
                    (all.server, all.purchased) = (server, purchased);
                    all.list.clear();
                }
                Told::Character(blob) => {
                    let character = Character::read(&blob);
                    let wrong = |_| ClientError::Unreadable { request: tag };
                    all.list.push(character.map_err(wrong)?);
                }
                Told::EndList(None) => return Ok(all),
                Told::EndList(Some(code)) => {
                    return Err(ClientError::Refused { request: tag, code });
                }
                _ => {}
            }
        }
    }

    /// Makes a character.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn create(&mut self, blob: &[u8]) -> Result<()> {
        let tag = "MSG_CREATECHARACTER";
        self.ask(tag, LOGIN, &[("CreationInfo", Put::Bytes(blob.to_vec()))]).await?;
        let answer = |told| match told {
            Told::Created(code) => Some(refused(code)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// Deletes a character.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn delete(&mut self, character: u64) -> Result<()> {
        let tag = "MSG_DELETECHARACTER";
        self.ask(tag, LOGIN, &[("CharID", Put::from(character))]).await?;
        let answer = |told| match told {
            Told::Deleted(code) => Some(refused(code)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// Selects a character. The server ends this connection then; the client goes on with
    /// [`enter`](Self::enter).
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn select(&mut self, character: u64) -> Result<Selected> {
        let tag = "MSG_SELECTCHARACTER";
        self.ask(tag, LOGIN, &[("CharID", Put::from(character))]).await?;
        let answer = |told| match told {
            // The zone is being prepared.
            Told::Selected(Ok(to)) if to.ip.is_empty() && to.tcp_port == 0 => None,
            Told::Selected(outcome) => Some(outcome),
            _ => None,
        };
        self.expect(tag, answer).await.map(|to| *to)
    }

    /// Goes to the zone server that a selection named.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn enter(to: &Selected, settings: &Settings) -> Result<(Self, InZone)> {
        let host = if to.ip.contains(':') { format!("[{}]", to.ip) } else { to.ip.clone() };
        let mut client = Self::connect(&format!("{host}:{}", to.tcp_port), settings).await?;
        let zone = client.attach(to).await?;
        Ok((client, zone))
    }

    /// Enters the zone of this connection's server.
    ///
    /// # Errors
    /// As [`ClientError`] says.
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
        self.ask(tag, 5, &fields).await?;
        let answer = |told| match told {
            Told::InZone { zone, id } => Some(Ok(InZone { zone, id })),
            Told::AttachFailed(code) => Some(Err(code)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// The list of files that the patch service offers.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn file_list(&mut self) -> Result<FileListAnswer> {
        let tag = "MSG_LATEST_FILE_LIST_V2";
        self.ask(tag, 8, &[("Locale", Put::text(&self.settings.locale))]).await?;
        let answer = |told| match told {
            Told::FileList(list) => Some(Ok(*list)),
            _ => None,
        };
        self.expect(tag, answer).await
    }

    /// The servers that the login server knows: an empty list, as far as is known.
    ///
    /// # Errors
    /// As [`ClientError`] says.
    pub async fn servers(&mut self) -> Result<()> {
        let tag = "MSG_REQUESTSERVERLIST";
        self.ask(tag, LOGIN, &[]).await?;
        self.expect(tag, |told| matches!(told, Told::Servers).then_some(Ok(()))).await
    }

    /// Sends a message without waiting for an answer.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn say(&self, service: u8, tag: &'static str, fields: &[(&str, Put)]) -> Result<()> {
        self.ask(tag, service, fields).await
    }

    /// What the server says next, or `None` when it says nothing for so long.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn listen(&mut self, time: Duration) -> Result<Option<Told>> {
        match tokio::time::timeout(time, self.link.receive("listening")).await {
            Ok(told) => self.seen(told?).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Says goodbye, and closes.
    pub async fn close(self) {
        // Whoever is gone already need not be told.
        let _ = self.ask("MSG_CLIENT_DISCONNECT", 5, &[]).await;
        self.link.close().await;
    }

    async fn ask(&self, tag: &'static str, service: u8, fields: &[(&str, Put)]) -> Result<()> {
        self.link.send(tag, service, fields).await
    }

    /// Waits for an answer; whatever else comes is taken note of.
    async fn expect<T>(
        &mut self,
        request: &'static str,
        mut answer: impl FnMut(Told) -> Option<core::result::Result<T, Code>>,
    ) -> Result<T> {
        loop {
            let told = self.next(request).await?;
            if let Some(outcome) = answer(told) {
                return outcome.map_err(|code| ClientError::Refused { request, code });
            }
        }
    }

    async fn next(&mut self, request: &'static str) -> Result<Told> {
        let received = tokio::time::timeout(self.settings.patience, self.link.receive(request));
        let told = received.await.map_err(|_| ClientError::Timeout { request })?;
        self.seen(told?)
    }

    fn seen(&mut self, told: Told) -> Result<Told> {
        match &told {
            Told::Admit(position) => self.position = Some(*position),
            Told::Afk => return Err(ClientError::ThrownOut("away from the keyboard".to_owned())),
            Told::Shutdown => return Err(ClientError::ThrownOut("the server stops".to_owned())),
            Told::ForceDisconnect(message) => return Err(ClientError::ThrownOut(message.clone())),
            _ => {}
        }
        Ok(told)
    }
}

fn refused(code: Option<Code>) -> core::result::Result<(), Code> {
    code.map_or(Ok(()), Err)
}

/// The CK2 in `Rec1` of an answer: base64, of any length.
fn open_ck2(sealed: &[u8], salt: Salt) -> Option<Secret> {
    let mut plain = sealed.to_vec();
    apply_rec1(salt, &mut plain);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let fits = !plain.is_empty() && plain.iter().all(is_base64);
    String::from_utf8(plain).ok().filter(|_| fits).map(Secret::new)
}
