//! A connection, driven by its own task.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use worldwire_core::connection::{CloseReason, Event, EventOf, Sender as _};
use worldwire_ki::connection::{ClientConfig, Connection, News, Sender, Unit};
use worldwire_ki::crypt::Salt;
use worldwire_ki::message::{Put, RawMessage};
use worldwire_ki::schema::Protocols;
use worldwire_net::{Application, Clock, Driver, End, Flow, tcp, udp};

use super::{ClientError, Result, ServerMessage, Settings};

/// The capacity of the queues of outgoing and of received messages.
const QUEUE: usize = 1024;
/// The maximum number of attempts to connect over UDP.
const HELLOS: u32 = 3;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Link {
    commands: mpsc::Sender<Command>,
    messages: mpsc::Receiver<ServerMessage>,
    shared: Arc<Mutex<LinkState>>,
    protocols: Arc<Protocols>,
}

/// A connection that no task drives yet.
struct Run {
    driver: Driver,
    connection: Connection,
    messenger: Messenger,
    is_set_up: oneshot::Receiver<()>,
}

/// The error for a server that cannot be reached.
fn unreachable(address: &str) -> impl FnOnce(io::Error) -> ClientError {
    |error| ClientError::Connect { address: address.to_owned(), error: Arc::new(error) }
}

#[derive(Debug)]
enum Command {
    Send(RawMessage<'static>),
    Close,
}

#[derive(Debug, Default)]
struct LinkState {
    /// The current session and the one before it.
    salt: Option<Salt>,
    before: Option<Salt>,
    end: Option<End>,
}

/// The built-in definitions, which all clients of a process share.
fn built_in() -> Arc<Protocols> {
    static BUILT_IN: OnceLock<Arc<Protocols>> = OnceLock::new();
    Arc::clone(BUILT_IN.get_or_init(|| Arc::new(Protocols::built_in())))
}

fn state(shared: &Mutex<LinkState>) -> MutexGuard<'_, LinkState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(super) async fn connect(address: &str, settings: &Settings) -> Result<Self> {
        if settings.udp {
            return Self::over_udp(address, settings).await;
        }
        let stream = tcp::dial(address, settings.patience).await;
        Self::over(stream.map_err(unreachable(address))?, address, settings).await
    }

    pub(super) async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        address: &str,
        settings: &Settings,
    ) -> Result<Self> {
        let (link, run) = Self::new(settings);
        let Run { driver, connection, messenger, is_set_up } = run;
        tokio::spawn(async move { driver.drive(stream, connection, messenger).await });
        link.set_up(is_set_up, address, settings.patience).await
    }

    /// Connects over UDP. If the first datagram or the reply to it is lost, tries again with
    /// another socket, which the server sees as a new client.
    async fn over_udp(address: &str, settings: &Settings) -> Result<Self> {
        let patience = settings.patience / HELLOS;
        let mut last = None;
        for _ in 0..HELLOS {
            let socket = udp::dial(address).await.map_err(unreachable(address))?;
            let (link, run) = Self::new(settings);
            let Run { driver, connection, messenger, is_set_up } = run;
            tokio::spawn(async move { udp::drive(&driver, socket, connection, messenger).await });
            match link.set_up(is_set_up, address, patience).await {
                Ok(link) => return Ok(link),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ClientError::NoOffer { address: address.to_owned() }))
    }

    /// A link and the connection behind it.
    fn new(settings: &Settings) -> (Self, Run) {
        let driver = Driver::client(Clock::start());
        let now = driver.clock.now();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut config = ClientConfig::new(epoch.saturating_sub(now));
        config.common.keep_alive_every = settings.keep_alive;
        config.says_hello = settings.udp;
        let connection = Connection::client(Arc::new(config), now);
        let (commands, receiver) = mpsc::channel(QUEUE);
        let (received, messages) = mpsc::channel(QUEUE);
        let (set_up, is_set_up) = oneshot::channel();
        let shared = Arc::<Mutex<LinkState>>::default();
        let protocols = built_in();
        let messenger = Messenger {
            commands: receiver,
            received,
            set_up: Some(set_up),
            shared: Arc::clone(&shared),
            protocols: Arc::clone(&protocols),
        };
        let run = Run { driver, connection, messenger, is_set_up };
        (Self { commands, messages, shared, protocols }, run)
    }

    /// Waits for the first session.
    async fn set_up(
        self,
        is_set_up: oneshot::Receiver<()>,
        address: &str,
        patience: Duration,
    ) -> Result<Self> {
        if matches!(timeout(patience, is_set_up).await, Ok(Ok(()))) {
            return Ok(self);
        }
        let (address, end) = (address.to_owned(), state(&self.shared).end.clone());
        Err(match end {
            None | Some(End::Closed(CloseReason::Timeout(_))) => ClientError::NoOffer { address },
            Some(end) => ClientError::NoSession { address, end },
        })
    }

    /// The session from which secrets are derived, and the one before it.
    pub(super) fn salts(&self) -> (Salt, Option<Salt>) {
        let state = state(&self.shared);
        // Callers get a `Link` only once there is a session.
        let none = Salt { session_id: 0, seconds: 0, millis: 0 };
        (state.salt.unwrap_or(none), state.before)
    }

    pub(super) async fn send(
        &self,
        request: &'static str,
        service: u8,
        fields: &[(&str, Put)],
    ) -> Result<()> {
        let message = self.protocols.compose(service, request, fields);
        let wrong = |error| ClientError::NotSent { request, error: Box::new(error) };
        let message = message.map_err(wrong)?;
        let sent = self.commands.send(Command::Send(message)).await;
        sent.map_err(|_| self.closed(request))
    }

    pub(super) async fn receive(&mut self, request: &'static str) -> Result<ServerMessage> {
        match self.messages.recv().await {
            Some(message) => Ok(message),
            None => Err(self.closed(request)),
        }
    }

    /// Sends what is queued, then closes.
    pub(super) async fn close(mut self) {
        let _ = self.commands.send(Command::Close).await;
        while self.messages.recv().await.is_some() {}
    }

    fn closed(&self, request: &'static str) -> ClientError {
        let end = state(&self.shared).end.clone().unwrap_or(End::Application);
        ClientError::Closed { request, end }
    }
}

/// The application that drives the connection.
struct Messenger {
    commands: mpsc::Receiver<Command>,
    received: mpsc::Sender<ServerMessage>,
    set_up: Option<oneshot::Sender<()>>,
    shared: Arc<Mutex<LinkState>>,
    protocols: Arc<Protocols>,
}

impl Application<Connection> for Messenger {
    type Notice = Command;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { .. }) => {
                let mut state = state(&self.shared);
                state.before = core::mem::replace(&mut state.salt, sender.salt());
                if let Some(set_up) = self.set_up.take() {
                    let _ = set_up.send(());
                }
            }
            Event::Received(received) => {
                let Unit::Message { service, order } = received.unit else {
                    return Flow::Continue(());
                };
                let message =
                    ServerMessage::read(&self.protocols, service, order, received.payload());
                // The queue is full or closed: nobody is reading the messages.
                if self.received.try_send(message).is_err() {
                    return Flow::Break(());
                }
            }
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Command {
        // The `Link` was dropped, so the connection has no user.
        self.commands.recv().await.unwrap_or(Command::Close)
    }

    async fn notice(&mut self, command: Command, sender: &mut Sender) -> Flow {
        match command {
            Command::Send(message) => match sender.send(&message) {
                Ok(()) => Flow::Continue(()),
                Err(_) => Flow::Break(()),
            },
            Command::Close => Flow::Break(()),
        }
    }

    async fn ended(&mut self, end: &End) {
        state(&self.shared).end = Some(end.clone());
    }
}
