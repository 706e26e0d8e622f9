//! A connection to any service, with its transactions.

use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::lookup_host;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use worldwire_core::Error;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_net::{Application, Clock, Driver, End, Flow, tcp};
use worldwire_uru::connection::{ClientConfig, Connection, News, OTHER_KEYS, Sender};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::Caps;
use worldwire_uru::types::{NetError, TransId};

use super::notification::{Notification, Notifications};
use super::reply::{Key, OWN_PING, key, result};
use super::{ClientError, Result, Shard};

/// A connection to one service. Clones share it; dropping the last one closes it. Keep-alive pings
/// are automatic.
#[derive(Clone, Debug)]
pub struct Link {
    service: Service,
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    patience: Duration,
}

/// A request and its replies. Dropping it discards further replies.
pub struct Transaction {
    link: Link,
    key: Key,
    request: &'static str,
    replies: mpsc::Receiver<Reply>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("request", &self.request)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

type Reply = core::result::Result<Message<'static>, Box<Error>>;

/// A command to the task that drives the connection.
#[derive(Debug)]
enum Command {
    Send(Box<Message<'static>>, Option<Key>),
    Close,
}

/// The capacity of the queue of outgoing requests, and of the queue of one request's replies.
const QUEUE: usize = 64;
/// The random bytes are invalid for one connection in 2^500, so a few attempts are enough.
const TRIES: usize = 4;

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU32,
    state: Mutex<LinkState>,
}

#[derive(Debug, Default)]
struct LinkState {
    pending: HashMap<Key, mpsc::Sender<Reply>>,
    /// Why the server kicked the client off.
    kicked: Option<NetError>,
    /// The capabilities that the server has announced.
    caps: Option<Caps>,
    overflowed: bool,
    end: Option<End>,
    /// Whether the connection is encrypted and the server has sent no message yet.
    is_unanswered: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self, request: &'static str) -> ClientError {
        let state = self.state();
        match (state.kicked, state.overflowed) {
            (Some(reason), _) => ClientError::KickedOff(reason),
            (None, true) => ClientError::Overflow,
            (None, false) => {
                let end = state.end.clone().unwrap_or(End::Application);
                // If the connection ended with a fault, the fault itself says more about the keys
                // than this hint.
                let is_other = state.is_unanswered && matches!(end, End::Closed(_) | End::Lost);
                ClientError::Closed { request, end, hint: is_other.then_some(OTHER_KEYS) }
            }
        }
    }
}

impl Link {
    /// Connects to a service of a shard and waits until the connection is set up.
    ///
    /// # Errors
    /// Fails if no host is known, the server cannot be reached, or it closes the connection during
    /// setup.
    pub async fn connect(shard: &Shard, service: Service) -> Result<(Self, Notifications)> {
        let name = service.name();
        let (host, port) = shard.host(service).ok_or(ClientError::NoHost(name))?;
        Self::connect_to(shard, service, host, port).await
    }

    /// Connects to a service at an address that a gatekeeper named.
    pub async fn connect_to(
        shard: &Shard,
        service: Service,
        host: &str,
        port: u16,
    ) -> Result<(Self, Notifications)> {
        Self::connect_as(shard, shard.client_config(service), host, port).await
    }

    pub(super) async fn connect_as(
        shard: &Shard,
        config: ClientConfig,
        host: &str,
        port: u16,
    ) -> Result<(Self, Notifications)> {
        let service = config.connect.service().ok_or(ClientError::NoHost("dead"))?;
        let address = format!("{host}:{port}");
        let addresses: Vec<_> = match lookup_host((host, port)).await {
            Ok(addresses) => addresses.collect(),
            Err(_) => {
                let (service, host) = (service.name(), host.to_owned());
                return Err(ClientError::HostNotFound { service, host });
            }
        };
        let unreachable = |error| ClientError::Connect {
            service: service.name(),
            address: address.clone(),
            error: Arc::new(error),
        };
        let stream = tcp::dial(&*addresses, shard.patience).await.map_err(unreachable)?;
        let driver = Driver::client(Clock::start());
        let connection = connection(config, driver.clock.now())?;
        let (commands, receiver) = mpsc::channel(QUEUE);
        let (notify, notifications) = mpsc::channel(Notifications::MAX_WAITING);
        let (set_up, is_set_up) = oneshot::channel();
        let shared = Arc::<Shared>::default();
        let messenger = Messenger {
            commands: receiver,
            deferred: VecDeque::new(),
            notify,
            set_up: Some(set_up),
            shared: Arc::clone(&shared),
        };
        tokio::spawn(async move { driver.drive(stream, connection, messenger).await });
        if is_set_up.await.is_err() {
            let end = shared.state().end.clone().unwrap_or(End::Application);
            return Err(ClientError::Setup { service: service.name(), address, end });
        }
        let link = Self { service, commands, shared, patience: shard.patience };
        Ok((link, Notifications(notifications)))
    }

    /// The connection's service.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service
    }

    /// Sends a message that has no reply. Fails if a string is too long or the connection is
    /// closed.
    pub async fn send(&self, message: impl Into<Message<'static>>) -> Result<()> {
        let message = message.into();
        // Encode the message here: later, nothing would report an error.
        let request = message.name();
        message
            .to_bytes()
            .map_err(|error| ClientError::NotSent { request, error: error.into() })?;
        self.submit(message, None).await
    }

    /// Sends a request in a new transaction.
    pub async fn begin<M: Into<Message<'static>>>(
        &self,
        request: impl FnOnce(TransId) -> M,
    ) -> Result<Transaction> {
        let id = self.fresh();
        self.begin_as(Key::Transaction(id), request(TransId(id)).into()).await
    }

    /// Sends a request and waits for its only reply, whatever the result.
    pub async fn ask<M: Into<Message<'static>>>(
        &self,
        request: impl FnOnce(TransId) -> M,
    ) -> Result<Message<'static>> {
        self.begin(request).await?.next().await
    }

    /// Sends a request and waits for its only reply. A refusal is an error. Returns the request's
    /// name and the reply.
    pub(super) async fn granted<M: Into<Message<'static>>>(
        &self,
        request: impl FnOnce(TransId) -> M,
    ) -> Result<(&'static str, Message<'static>)> {
        let mut transaction = self.begin(request).await?;
        let message = transaction.granted().await?;
        Ok((transaction.request, message))
    }

    pub(super) async fn begin_as(
        &self,
        key: Key,
        message: Message<'static>,
    ) -> Result<Transaction> {
        let request = message.name();
        let (sender, replies) = mpsc::channel(QUEUE);
        {
            let mut state = self.shared.state();
            if state.end.is_none() {
                state.pending.insert(key, sender);
            }
        }
        let transaction = Transaction { link: self.clone(), key, request, replies };
        self.submit(message, Some(key)).await?;
        Ok(transaction)
    }

    /// Pings the server and waits for the echo.
    pub async fn ping(&self) -> Result<()> {
        use worldwire_uru::message::{auth, file, game, gatekeeper};
        let id = self.fresh() | OWN_PING;
        let (trans_id, payload) = (TransId(id), Default::default());
        let message: Message<'static> = match self.service {
            Service::Gatekeeper => {
                let ping = gatekeeper::client::PingRequest { trans_id, ping_time_ms: 0, payload };
                gatekeeper::client::ClientMessage::from(ping).into()
            }
            Service::Auth => {
                let ping = auth::client::PingRequest { trans_id, ping_time_ms: 0, payload };
                auth::client::ClientMessage::from(ping).into()
            }
            Service::File => {
                let ping = file::client::PingRequest { ping_time_ms: id };
                file::client::ClientMessage::from(ping).into()
            }
            Service::Game => {
                let ping = game::client::PingRequest { ping_time_ms: id };
                game::client::ClientMessage::from(ping).into()
            }
        };
        self.begin_as(Key::Ping(id), message).await?.next().await.map(drop)
    }

    /// Closes the connection for all clones, after sending what is queued.
    pub async fn close(self) {
        // This fails only if the connection is already closed.
        let _ = self.commands.send(Command::Close).await;
        self.commands.closed().await;
    }

    /// Why the server kicked the client off, if it did.
    #[must_use]
    pub fn kicked(&self) -> Option<NetError> {
        self.shared.state().kicked
    }

    /// The capabilities that the server has announced; `None` if it has announced none.
    #[must_use]
    pub fn caps(&self) -> Option<Caps> {
        self.shared.state().caps.clone()
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Why the connection ended.
    pub(super) fn failure(&self, request: &'static str) -> ClientError {
        self.shared.failure(request)
    }

    async fn submit(&self, message: Message<'static>, key: Option<Key>) -> Result<()> {
        let request = message.name();
        let sent = self.commands.send(Command::Send(Box::new(message), key)).await;
        sent.map_err(|_| self.shared.failure(request))
    }

    /// A new transaction number: not 0, which means "no transaction", and without the bit for
    /// pings.
    fn fresh(&self) -> u32 {
        loop {
            let id = self.shared.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & !OWN_PING;
            if id != 0 {
                return id;
            }
        }
    }
}

/// A connection with new random bytes.
fn connection(config: ClientConfig, now: Duration) -> Result<Connection> {
    let config = Arc::new(config);
    let mut tries = 0;
    loop {
        tries += 1;
        let mut random = [0; 64];
        let filled = getrandom::fill(&mut random).map_err(|error| {
            Error::invalid(format!("cannot get random bytes from the system: {error}"))
        });
        let made = filled.and_then(|()| Connection::client(Arc::clone(&config), random, now));
        match made {
            Ok(connection) => return Ok(connection),
            Err(_) if tries < TRIES => {}
            Err(error) => {
                return Err(ClientError::NotSent { request: "Connect", error: error.into() });
            }
        }
    }
}

impl Transaction {
    /// Waits for the next reply, whatever the result.
    pub async fn next(&mut self) -> Result<Message<'static>> {
        let request = self.request;
        match timeout(self.link.patience, self.replies.recv()).await {
            Ok(Some(Ok(message))) => Ok(message),
            Ok(Some(Err(error))) => Err(ClientError::NotSent { request, error }),
            Ok(None) => Err(self.link.shared.failure(request)),
            Err(_) => Err(ClientError::Timeout { request }),
        }
    }

    /// Waits for the next reply. A refusal is an error.
    pub async fn granted(&mut self) -> Result<Message<'static>> {
        let message = self.next().await?;
        match result(&message) {
            Some(error) if error.is_error() => {
                Err(ClientError::Refused { request: self.request, error })
            }
            _ => Ok(message),
        }
    }

    /// The name of the request.
    #[must_use]
    pub fn request(&self) -> &'static str {
        self.request
    }

    /// The request's transaction number.
    #[must_use]
    pub fn trans_id(&self) -> TransId {
        match self.key {
            Key::Transaction(id) | Key::Ping(id) => TransId(id),
            Key::Register => TransId(0),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.link.shared.state().pending.remove(&self.key);
    }
}

/// The application that drives the connection.
struct Messenger {
    commands: mpsc::Receiver<Command>,
    /// Commands received while a reply was waiting for room.
    deferred: VecDeque<Command>,
    notify: mpsc::Sender<Notification>,
    set_up: Option<oneshot::Sender<()>>,
    shared: Arc<Shared>,
}

impl Messenger {
    /// Delivers a reply to its transaction. A caller that reads slowly holds up the server. Its
    /// commands are still accepted, because it may need to send an acknowledgement before it reads
    /// on.
    async fn reply(&mut self, key: Key, message: Message<'static>) {
        let waiting = self.shared.state().pending.get(&key).cloned();
        let Some(waiting) = waiting else { return };
        loop {
            tokio::select! {
                room = waiting.reserve() => {
                    if let Ok(room) = room {
                        room.send(Ok(message));
                    }
                    // Otherwise, the transaction was dropped, and the reply is dropped, too.
                    return;
                }
                Some(command) = self.commands.recv() => self.deferred.push_back(command),
            }
        }
    }

    fn notify(&self, message: &Message<'_>) -> Flow {
        let Some(notification) = Notification::of(message) else { return Flow::Continue(()) };
        match &notification {
            Notification::KickedOff(reason) => self.shared.state().kicked = Some(*reason),
            Notification::ServerCaps(caps) => self.shared.state().caps = Some(caps.clone()),
            _ => {}
        }
        match self.notify.try_send(notification) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Flow::Continue(()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.shared.state().overflowed = true;
                Flow::Break(())
            }
        }
    }
}

impl Application<Connection> for Messenger {
    type Notice = Option<Command>;

    async fn event(&mut self, event: EventOf<'_, Connection>, _: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { encrypted, .. }) => {
                self.shared.state().is_unanswered = encrypted;
                if let Some(set_up) = self.set_up.take() {
                    // The receiver is gone if the caller stopped waiting.
                    let _ = set_up.send(());
                }
            }
            Event::Received(received) => {
                if let Some(message) = received.message() {
                    self.shared.state().is_unanswered = false;
                    match key(&message) {
                        Some(key) => self.reply(key, message.into_owned()).await,
                        None => return self.notify(&message),
                    }
                }
            }
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Self::Notice {
        if let Some(command) = self.deferred.pop_front() {
            return Some(command);
        }
        self.commands.recv().await
    }

    async fn notice(&mut self, notice: Self::Notice, sender: &mut Sender) -> Flow {
        let Some(Command::Send(message, key)) = notice else { return Flow::Break(()) };
        if let Err(error) = sender.send(&message)
            && let Some(waiting) =
                key.and_then(|key| self.shared.state().pending.get(&key).cloned())
        {
            let _ = waiting.send(Err(error.into_error().into())).await;
        }
        Flow::Continue(())
    }

    async fn ended(&mut self, end: &End) {
        let mut state = self.shared.state();
        state.end = Some(end.clone());
        state.pending.clear();
        self.set_up = None;
    }
}
