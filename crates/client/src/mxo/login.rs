//! Logins: to the auth server for a ticket, and to the margin server for a session.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_mxo::crypt::{Random, SessionKey};
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    AuthClient, AuthClientConfig, CreateCharacterRequest, LoadCharacterReply, LoginConfig,
    LoginConnection, LoginMessage, LoginRefusal, LoginSender, LoginStatus, LoginTicket,
    MarginClient, MarginClientAction,
};
use worldwire_mxo::types::{Array, Str};
use worldwire_net::{Application, Clock, Driver, End, Flow, tcp};

/// The maximum number of reports from the margin server that can wait.
const QUEUE: usize = 256;

/// Why a client could not log in or use its session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The client could not connect to a server.
    #[error("cannot connect to {server}: {}", worldwire_net::reason(.error))]
    Connect {
        /// The server's address.
        server: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// The operating system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// The server did not reply in time.
    #[error("the server does not respond")]
    NoAnswer,
    /// The server closed the connection.
    #[error("the connection ended: {0}")]
    Ended(End),
    /// The server refused the login, or it cannot be trusted.
    #[error("{0}")]
    Refused(LoginRefusal),
    /// The server refused a request about a character.
    #[error("the server refused the request: {0}")]
    Denied(LoginStatus),
    /// A name or text that the protocol cannot carry.
    #[error("{0}")]
    Value(#[from] worldwire_core::Error),
}

/// Logs in to an auth server.
///
/// # Errors
/// See [`LoginError`].
pub async fn log_in(
    server: SocketAddr,
    config: AuthClientConfig,
    patience: Duration,
) -> Result<LoginTicket, LoginError> {
    log_in_over(dial(server, patience).await?, config, patience).await
}

/// Logs in to an auth server, over any stream.
///
/// # Errors
/// See [`LoginError`].
pub async fn log_in_over(
    stream: impl Stream,
    config: AuthClientConfig,
    patience: Duration,
) -> Result<LoginTicket, LoginError> {
    let (connection, driver, random) = open(Channel::Auth, patience)?;
    let (outcome, mut outcomes) = mpsc::channel(1);
    let application = AuthApplication { client: AuthClient::new(config, random), outcome };
    let driving = tokio::spawn(async move { driver.drive(stream, connection, application).await });
    let driving = AbortOnDrop(driving);
    let found = timeout(patience, outcomes.recv()).await.map_err(|_| LoginError::NoAnswer)?;
    match found {
        Some(outcome) => outcome.map_err(LoginError::Refused),
        None => Err(LoginError::Ended(driving.ended().await)),
    }
}

/// A session on a margin server. Dropping this ends the session, and its character then leaves the
/// world.
#[derive(Debug)]
pub struct Margin {
    commands: mpsc::Sender<Command>,
    reports: mpsc::Receiver<MarginClientAction>,
    driving: AbortOnDrop,
    session: (u32, SessionKey),
    patience: Duration,
}

impl Margin {
    /// Opens a session with a ticket from the auth server.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn connect(
        server: SocketAddr,
        ticket: LoginTicket,
        patience: Duration,
    ) -> Result<Self, LoginError> {
        Self::over(dial(server, patience).await?, ticket, patience).await
    }

    /// Opens a session on a margin server, over any stream.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn over(
        stream: impl Stream,
        ticket: LoginTicket,
        patience: Duration,
    ) -> Result<Self, LoginError> {
        let (connection, driver, random) = open(Channel::Margin, patience)?;
        let (commands, receiver) = mpsc::channel(1);
        let (reporter, reports) = mpsc::channel(QUEUE);
        let client = MarginClient::new(ticket, random);
        let application = MarginApplication { client, commands: receiver, reports: reporter };
        let driving =
            tokio::spawn(async move { driver.drive(stream, connection, application).await });
        let session = (0, SessionKey::new(&[0; 16]));
        let driving = AbortOnDrop(driving);
        let mut margin = Self { commands, reports, driving, session, patience };
        match margin.next().await? {
            MarginClientAction::Opened { session_id, key } => {
                margin.session = (session_id, key);
                Ok(margin)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The session's ID and key, for the game channel.
    #[must_use]
    pub const fn session(&self) -> &(u32, SessionKey) {
        &self.session
    }

    /// Creates a character and loads it. Returns its ID.
    ///
    /// # Errors
    /// [`LoginError::Denied`] if the name is taken or not allowed, or the account has no room for
    /// another character.
    pub async fn create(
        &mut self,
        handle: &str,
        character: CreateCharacterRequest<'static>,
    ) -> Result<u64, LoginError> {
        let id = self.claim(handle).await?;
        self.command(Command::Create(Box::new(character))).await?;
        self.loaded().await?;
        Ok(id)
    }

    /// Reserves a name for a new character. [`create`](Self::create) does this, too. Returns the
    /// character's ID.
    ///
    /// # Errors
    /// The same as those of [`create`](Self::create).
    pub async fn claim(&mut self, handle: &str) -> Result<u64, LoginError> {
        self.command(Command::Claim(Str::new(handle)?)).await?;
        match self.next().await? {
            MarginClientAction::Claimed { status, character_id } => {
                checked(status).map(|()| character_id)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Loads a character. Returns its parts.
    ///
    /// # Errors
    /// [`LoginError::Denied`] if it is in use or belongs to another account.
    pub async fn load(&mut self, id: u64) -> Result<Vec<LoadCharacterReply<'static>>, LoginError> {
        self.command(Command::Load(id)).await?;
        self.loaded().await
    }

    /// Deletes a character.
    ///
    /// # Errors
    /// [`LoginError::Denied`] if it is in use or belongs to another account.
    pub async fn delete(&mut self, id: u64) -> Result<(), LoginError> {
        self.command(Command::Delete(id)).await?;
        match self.next().await? {
            MarginClientAction::Deleted { status, .. } => checked(status),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until the server has received the hello on the game channel.
    ///
    /// # Errors
    /// [`LoginError::NoAnswer`], [`LoginError::Ended`].
    pub async fn established(&mut self) -> Result<(), LoginError> {
        match self.next().await? {
            MarginClientAction::Established => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether the connection has ended, for example because an operator closed it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driving.0.is_finished()
    }

    /// Waits until the server closes the connection.
    pub async fn ended(mut self) -> End {
        while self.reports.recv().await.is_some() {}
        self.driving.ended().await
    }

    async fn loaded(&mut self) -> Result<Vec<LoadCharacterReply<'static>>, LoginError> {
        let mut parts = Vec::new();
        loop {
            match self.next().await? {
                MarginClientAction::Part(part) => {
                    checked(part.status)?;
                    parts.push(*part);
                }
                MarginClientAction::Loaded => return Ok(parts),
                other => return Err(unexpected(&other)),
            }
        }
    }

    async fn command(&mut self, command: Command) -> Result<(), LoginError> {
        if self.commands.send(command).await.is_err() {
            return Err(LoginError::Ended(self.driving.end().await));
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<MarginClientAction, LoginError> {
        let next = timeout(self.patience, self.reports.recv()).await;
        match next.map_err(|_| LoginError::NoAnswer)? {
            Some(MarginClientAction::Refused(refusal)) => Err(LoginError::Refused(refusal)),
            Some(report) => Ok(report),
            None => Err(LoginError::Ended(self.driving.end().await)),
        }
    }
}

/// A character for tests and load generation. Only its names are set; all other choices that a
/// player would make are 0.
///
/// # Errors
/// A value error for names that the protocol cannot carry.
pub fn plain_character(
    first_name: &str,
    last_name: &str,
    description: &str,
) -> worldwire_core::Result<CreateCharacterRequest<'static>> {
    Ok(CreateCharacterRequest {
        first_name: Str::new(first_name)?,
        last_name: Str::new(last_name)?,
        description: Str::new(description)?,
        skin_tone: 0,
        body: 0,
        unknown1: 0,
        hair: 0,
        hair_color: 0,
        tattoo: 0,
        head: 0,
        facial_detail: 0,
        hat: 0,
        eyewear: 0,
        shirt: 0,
        gloves: 0,
        outerwear: 0,
        pants: 0,
        unknown2: 0,
        footwear: 0,
        profession: 0,
        offsets: Array([0; 4]),
    })
}

fn checked(status: LoginStatus) -> Result<(), LoginError> {
    if status.is_success() { Ok(()) } else { Err(LoginError::Denied(status)) }
}

/// The error for a reply that does not belong to any request of the client.
fn unexpected(report: &MarginClientAction) -> LoginError {
    tracing::debug!(?report, "unexpected reply");
    LoginError::Refused(LoginRefusal::OutOfOrder { opcode: 0 })
}

/// A byte stream to a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Stream for S {}

async fn dial(server: SocketAddr, patience: Duration) -> Result<impl Stream, LoginError> {
    tcp::dial(server, patience).await.map_err(|error| LoginError::Connect { server, error })
}

/// Opens a connection for a channel.
fn open(
    channel: Channel,
    patience: Duration,
) -> Result<(LoginConnection, Driver, Random), LoginError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let mut random = Random::new(seed);
    let driver = Driver::client(Clock::start());
    let now = driver.clock.now();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut config = LoginConfig::client(channel, since_1970.saturating_sub(now));
    (config.first_time, config.idle_time) = (patience, MAX_IDLE_TIME);
    let connection = LoginConnection::client(Arc::new(config), &random.bytes(), now);
    Ok((connection, driver, random))
}

/// Servers send nothing while the client is in the game.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A task that is aborted when this handle is dropped.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<End>);

impl AbortOnDrop {
    async fn ended(mut self) -> End {
        self.end().await
    }

    /// Do not call it again after it has returned.
    async fn end(&mut self) -> End {
        (&mut self.0).await.unwrap_or(End::Cut)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Drives a login to an auth server.
struct AuthApplication {
    client: AuthClient,
    outcome: mpsc::Sender<Result<LoginTicket, LoginRefusal>>,
}

impl Application<LoginConnection> for AuthApplication {
    type Notice = core::convert::Infallible;

    async fn event(
        &mut self,
        event: EventOf<'_, LoginConnection>,
        sender: &mut LoginSender,
    ) -> Flow {
        if let Event::Received(received) = event {
            self.client.receive(&received);
        }
        self.work(sender)
    }

    fn wants_room(&self) -> bool {
        // The client speaks first.
        self.client.has_message()
    }

    async fn room(&mut self, sender: &mut LoginSender) -> Flow {
        self.work(sender)
    }
}

impl AuthApplication {
    fn work(&mut self, sender: &mut LoginSender) -> Flow {
        while let Some(message) = self.client.poll() {
            if sender.send(&LoginMessage::AuthClient(message)).is_err() {
                return Flow::Break(());
            }
        }
        match self.client.outcome() {
            Some(outcome) => {
                let _ = self.outcome.try_send(outcome);
                Flow::Break(())
            }
            None => Flow::Continue(()),
        }
    }
}

/// A request from the owner of a session.
#[derive(Debug)]
enum Command {
    Claim(Str<'static>),
    Create(Box<CreateCharacterRequest<'static>>),
    Delete(u64),
    Load(u64),
}

/// Drives a session on a margin server.
struct MarginApplication {
    client: MarginClient,
    commands: mpsc::Receiver<Command>,
    reports: mpsc::Sender<MarginClientAction>,
}

impl MarginApplication {
    async fn work(&mut self, sender: &mut LoginSender) -> Flow {
        while let Some(action) = self.client.poll() {
            match action {
                MarginClientAction::Send(message) => {
                    if sender.send(&LoginMessage::MarginClient(Box::new(message))).is_err() {
                        return Flow::Break(());
                    }
                }
                MarginClientAction::SetKey(key) => sender.set_key(key),
                report => {
                    let is_over = matches!(report, MarginClientAction::Refused(_));
                    if self.reports.send(report).await.is_err() || is_over {
                        return Flow::Break(());
                    }
                }
            }
        }
        Flow::Continue(())
    }
}

impl Application<LoginConnection> for MarginApplication {
    type Notice = Option<Command>;

    async fn event(
        &mut self,
        event: EventOf<'_, LoginConnection>,
        sender: &mut LoginSender,
    ) -> Flow {
        if let Event::Received(received) = event {
            self.client.receive(&received);
        }
        self.work(sender).await
    }

    async fn notified(&mut self) -> Option<Command> {
        self.commands.recv().await
    }

    async fn notice(&mut self, command: Option<Command>, sender: &mut LoginSender) -> Flow {
        match command {
            Some(Command::Claim(handle)) => self.client.claim(handle),
            Some(Command::Create(character)) => self.client.create(*character),
            Some(Command::Delete(id)) => self.client.delete(id),
            Some(Command::Load(id)) => self.client.load(id),
            None => return Flow::Break(()),
        }
        self.work(sender).await
    }

    fn wants_room(&self) -> bool {
        // The client speaks first.
        self.client.has_action()
    }

    async fn room(&mut self, sender: &mut LoginSender) -> Flow {
        self.work(sender).await
    }
}
