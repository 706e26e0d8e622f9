//! A connection to a world, over UDP.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::ToSocketAddrs;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use worldwire_core::connection::{CloseReason, Event, EventOf, Sender as _, Timer};
use worldwire_mxo::connection::{ClientConfig, Connection, Sender, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{LEAVE, RpcMessage};
use worldwire_mxo::message::{MPM_ID, SectionWriter};
use worldwire_mxo::rpc::{
    Chat, ChatScope, ClientRpc, Emote, EmoteId, HardlineTeleport, JackOutFinished, LeaveWorld,
    ReadyForNewWorld, ReadyForSpawn, ServerRpc, Whisper, WorldExit,
};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::{BigU16, Str};
use worldwire_net::lossy::{Conditions, LinkCounts, LossyLink};
use worldwire_net::udp::{self, Datagrams};
use worldwire_net::{Application, Clock, Driver, End, Flow, Stop};

use super::ClientView;

/// How an attempt to [travel](Client::travel) ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Travel {
    /// The character is in the district.
    Arrived,
    /// The server refused, with this text.
    Refused(String),
    /// The character did not arrive in time.
    Late,
}

/// A client's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The character's number.
    pub uid: u64,
    /// The session's ID.
    pub session: u32,
    /// The session's key.
    pub key: SessionKey,
    /// The classes and goobjs that the server uses. Default: the built-in ones.
    pub objects: Arc<Objects>,
    /// Whether the character starts walking about as soon as it has arrived. Default true.
    pub walks: bool,
    /// The time between two steps. Default 100 ms.
    pub step: Duration,
    /// How long the server may take to reply and to admit the client. Default 30 s.
    pub setup_time: Duration,
    /// A simulated bad network between client and server. Default: none.
    pub conditions: Option<Conditions>,
}

impl Settings {
    /// The default settings: session 1 with the well-known key, which a server on the same machine
    /// uses, too.
    #[must_use]
    pub fn new(uid: u64) -> Self {
        let key = core::array::from_fn(|at| u8::try_from(at).unwrap_or(0));
        Self {
            uid,
            session: 1,
            key: SessionKey::new(&key),
            objects: Arc::new(Objects::built_in()),
            walks: true,
            step: Duration::from_millis(100),
            setup_time: Duration::from_secs(30),
            conditions: None,
        }
    }
}

/// Why a client could not enter a world.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A network error.
    #[error("cannot connect: {}", worldwire_net::reason(.0))]
    Io(#[from] io::Error),
    /// The operating system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(getrandom::Error),
    /// The server did not reply to the hello or did not admit the client.
    #[error(
        "the server does not respond ({0}); check that it is running with this session ID and \
         key, and that it has room for one more client from this address"
    )]
    NoAnswer(End),
}

/// A client in a world. It stays until it [leaves](Self::leave) or is dropped.
#[derive(Debug)]
pub struct Client {
    uid: u64,
    state: Arc<Shared>,
    driving: JoinHandle<End>,
    carrying: Option<Stop>,
    counts: Option<Arc<LinkCounts>>,
}

#[derive(Debug)]
struct Shared {
    view: Mutex<ClientView>,
    /// Whether the server has started to send the world.
    is_in: watch::Sender<bool>,
    leaves: watch::Sender<bool>,
    /// RPC messages to be sent.
    said: mpsc::Sender<RpcMessage<'static>>,
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, ClientView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Enters a world: waits until the server starts sending it.
    pub async fn connect(
        server: impl ToSocketAddrs,
        config: Settings,
    ) -> Result<Self, ConnectError> {
        let addresses: Vec<_> = tokio::net::lookup_host(server).await?.collect();
        let (start, mut config) = (Instant::now(), config);
        loop {
            let left = config.setup_time.saturating_sub(start.elapsed());
            match Self::try_connect(&addresses, &config, left.min(RETRY_AFTER)).await {
                Err(ConnectError::NoAnswer(NO_ANSWER)) if start.elapsed() < config.setup_time => {}
                entered => return entered,
            }
            // Make the next attempt lose different datagrams.
            if let Some(conditions) = &mut config.conditions {
                conditions.seed = conditions.seed.wrapping_add(1 << 32);
            }
        }
    }

    /// Makes one attempt to enter, and gives up after `patience`.
    async fn try_connect(
        server: &[SocketAddr],
        config: &Settings,
        patience: Duration,
    ) -> Result<Self, ConnectError> {
        let mut seed = [0; 24];
        getrandom::fill(&mut seed).map_err(ConnectError::Random)?;
        let mut carrying = None;
        let mut counts = None;
        let socket = match config.conditions {
            None => udp::dial(server).await?,
            Some(conditions) => {
                let server =
                    server.first().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                let stretch = LossyLink::to(*server, conditions).await?;
                let (stop, address) = (Stop::new(), stretch.address()?);
                counts = Some(stretch.counts());
                tokio::spawn(stretch.run(stop.signal()));
                carrying = Some(stop);
                udp::dial(address).await?
            }
        };
        let mut client = Self::drive(socket, config, seed, patience);
        (client.carrying, client.counts) = (carrying, counts);
        client.admitted(patience).await
    }

    /// Makes one attempt to enter a world, over a socket that is already connected to the world's
    /// server. Ignores the simulated network in the settings.
    ///
    /// # Errors
    /// [`ConnectError::Random`], [`ConnectError::NoAnswer`].
    pub async fn over(socket: impl Datagrams, config: &Settings) -> Result<Self, ConnectError> {
        let mut seed = [0; 24];
        getrandom::fill(&mut seed).map_err(ConnectError::Random)?;
        let client = Self::drive(socket, config, seed, config.setup_time);
        client.admitted(config.setup_time).await
    }

    /// Starts the task that drives a connection.
    fn drive(
        socket: impl Datagrams,
        config: &Settings,
        seed: [u8; 24],
        patience: Duration,
    ) -> Self {
        let [vectors, chance] = [&seed[..16], &seed[16..]];
        let vectors: [u8; 16] = vectors.try_into().unwrap_or_default();
        let chance = u64::from_le_bytes(chance.try_into().unwrap_or_default());
        let clock = Clock::start();
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let session = Session::new(config.session, config.key.clone(), &vectors);
        let mut client = ClientConfig::new(since_1970, config.uid);
        client.setup_time = patience;
        let connection = Connection::client(client, session, clock.now());
        let (said, says) = mpsc::channel(SAID);
        let mut view = ClientView::new(Arc::clone(&config.objects), chance);
        view.set_walking(config.walks);
        let state = Arc::new(Shared {
            said,
            view: Mutex::new(view),
            is_in: watch::Sender::new(false),
            leaves: watch::Sender::new(false),
        });
        let application = ClientApplication::new(Arc::clone(&state), says, config.step);
        let driving = tokio::spawn(async move {
            udp::drive(&Driver::client(clock), socket, connection, application).await
        });
        Self { uid: config.uid, state, driving, carrying: None, counts: None }
    }

    /// Waits until the server starts sending the world.
    async fn admitted(mut self, patience: Duration) -> Result<Self, ConnectError> {
        let mut is_in = self.state.is_in.subscribe();
        tokio::select! {
            end = &mut self.driving => {
                Err(ConnectError::NoAnswer(end.unwrap_or(End::Cut)))
            }
            _ = is_in.wait_for(|is_in| *is_in) => Ok(self),
            () = sleep(patience) => Err(ConnectError::NoAnswer(NO_ANSWER)),
        }
    }

    /// The character's number.
    #[must_use]
    pub const fn uid(&self) -> u64 {
        self.uid
    }

    /// Calls `read` with what the client sees.
    pub fn with_view<R>(&self, read: impl FnOnce(&mut ClientView) -> R) -> R {
        read(&mut self.state.view())
    }

    /// What the simulated network did to the datagrams.
    #[must_use]
    pub fn counts(&self) -> Option<&LinkCounts> {
        self.counts.as_deref()
    }

    /// Whether the connection has ended without [`leave`](Self::leave).
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driving.is_finished()
    }

    /// Waits until the connection ends without [`leave`](Self::leave), and returns the reason. Do
    /// not call it again after it has returned.
    pub async fn ended(&mut self) -> End {
        (&mut self.driving).await.unwrap_or(End::Cut)
    }

    /// Says something to everyone nearby.
    ///
    /// # Errors
    /// A value error for text that the protocol cannot carry.
    pub fn say(&self, text: &str) -> worldwire_core::Result<()> {
        let text = Str::new(text)?;
        self.send(Chat { scope: ChatScope::Area, reserved: 0, text })
    }

    /// Says something to the player with this name.
    ///
    /// # Errors
    /// A value error for text that the protocol cannot carry.
    pub fn whisper(&self, handle: &str, text: &str) -> worldwire_core::Result<()> {
        let receiver = Str::new(handle)?;
        self.send(Whisper { reserved: 0, counter: BigU16(0), receiver, text: Str::new(text)? })
    }

    /// Plays an emote.
    ///
    /// # Errors
    /// None in practice.
    pub fn emote(&self, emote: EmoteId) -> worldwire_core::Result<()> {
        self.send(Emote { emote, target: 0 })
    }

    /// Travels to a district through a hardline and waits at most this long for the character to
    /// arrive. A server refuses by sending a text message: if one arrives and the character does
    /// not leave its district within three seconds, the wait ends.
    ///
    /// # Errors
    /// None in practice.
    pub async fn travel(
        &self,
        district: u32,
        patience: Duration,
    ) -> worldwire_core::Result<Travel> {
        let from = self.with_view(|view| {
            view.take_answer();
            view.district().unwrap_or(0)
        });
        self.send(HardlineTeleport {
            from_hardline: 0,
            from_district: from,
            to_hardline: 0,
            to_district: district,
        })?;
        let start = Instant::now();
        let mut answer: Option<(Instant, String)> = None;
        while !self.is_over() && start.elapsed() < patience {
            let (now_in, text) = self.with_view(|view| (view.district(), view.take_answer()));
            if now_in == Some(district) {
                return Ok(Travel::Arrived);
            }
            answer = text.map(|text| (Instant::now(), text)).or(answer);
            match answer {
                _ if now_in.is_none() => answer = None,
                Some((at, text)) if at.elapsed() >= REFUSAL_TIME => {
                    return Ok(Travel::Refused(text));
                }
                _ => {}
            }
            sleep(ARRIVAL_POLL).await;
        }
        Ok(Travel::Late)
    }

    /// Jacks out: asks the server to let the character go, which takes a few seconds, and waits
    /// until the connection has ended. Moving cancels the request, so the character stops walking.
    /// If the future is dropped before it completes, the character can walk again.
    ///
    /// # Errors
    /// None in practice.
    pub async fn jack_out(&mut self) -> worldwire_core::Result<End> {
        self.with_view(|view| view.set_walking(false));
        self.send(LeaveWorld { exit: WorldExit::JackOut, rest: worldwire_core::Rest(Vec::new()) })?;
        Ok(self.ended().await)
    }

    fn send(&self, message: impl Into<ClientRpc<'static>>) -> worldwire_core::Result<()> {
        let message = message.into().encode()?;
        // The message is dropped if too many are waiting. If the connection has ended, that is
        // reported elsewhere.
        let _ = self.state.said.try_send(message);
        Ok(())
    }

    /// Leaves the world. Waits up to two seconds for the server to acknowledge this. UDP cannot
    /// close a connection: a server that misses the message, or does not support it, times the
    /// client out.
    pub async fn leave(mut self) -> End {
        let _ = self.state.leaves.send(true);
        self.ended().await
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driving.abort();
        if let Some(carrying) = &self.carrying {
            carrying.stop();
        }
    }
}

/// The application that drives the client's connection.
struct ClientApplication {
    state: Arc<Shared>,
    says: mpsc::Receiver<RpcMessage<'static>>,
    steps: tokio::time::Interval,
    leaves: watch::Receiver<bool>,
    /// When the client started to leave.
    leaving: Option<Instant>,
    /// Whether the server has let the character go.
    has_left: bool,
}

/// How long one attempt to connect may take. A server gives up on a client if all datagrams are
/// lost for a few seconds; then a new attempt is needed.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The server did not reply in time.
const NO_ANSWER: End = End::Closed(CloseReason::Timeout(Timer::Setup));

/// How long to wait for the acknowledgement of the leave message and how often to check for it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
const LEAVE_POLL: Duration = Duration::from_millis(10);

/// How often to check whether the character has arrived in another district.
const ARRIVAL_POLL: Duration = Duration::from_millis(20);
/// How long the wait continues after a text message from the server. A text message that is not a
/// refusal must not end the wait, even on a bad network.
const REFUSAL_TIME: Duration = Duration::from_secs(3);
/// A message that says that the character leaves a district. Its layout is unknown.
const LEAVE_WORLD: u16 = 0x8107;

/// The maximum number of RPC messages that can wait to be sent.
const SAID: usize = 64;

/// The size of a section without operations.
const EMPTY: usize = SectionWriter::FRAME;

/// The reasons for the application to wake up.
enum Wake {
    Step,
    Say(RpcMessage<'static>),
    Leave,
}

impl ClientApplication {
    fn new(state: Arc<Shared>, says: mpsc::Receiver<RpcMessage<'static>>, step: Duration) -> Self {
        let mut steps = interval(step);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let leaves = state.leaves.subscribe();
        Self { state, says, steps, leaves, leaving: None, has_left: false }
    }

    /// Sends the leave message and closes the connection once it is acknowledged.
    fn leave(&mut self, sender: &mut Sender) -> Flow {
        let is_sent = match self.leaving {
            Some(since) => since.elapsed() < LEAVE_TIMEOUT,
            None => {
                self.leaving = Some(Instant::now());
                self.has_left || sender.send(&RpcMessage::new(LEAVE, b"")).is_ok()
            }
        };
        if is_sent && sender.unacknowledged_bytes() > 0 {
            return Flow::Continue(());
        }
        sender.close();
        Flow::Break(())
    }
}

impl ClientApplication {
    /// Replies to an RPC message.
    fn answer(&mut self, body: &[u8], sender: &mut Sender) {
        if RpcMessage::of(body).opcode() == LEAVE_WORLD {
            self.state.view().depart();
            return respond(ReadyForNewWorld { reserved: 0 }.into(), sender);
        }
        let Ok(Some(message)) = ServerRpc::decode(body) else { return };
        let answer = match &message {
            ServerRpc::LoadWorld(_) => {
                self.state.view().hear(&message);
                ClientRpc::from(ReadyForSpawn {})
            }
            ServerRpc::JackOutDone(_) => {
                self.has_left = true;
                self.state.leaves.send_replace(true);
                ClientRpc::from(JackOutFinished { reserved: 0 })
            }
            message => return self.state.view().hear(message),
        };
        respond(answer, sender);
    }
}

/// Sends a reply. If that fails, the server waits for the reply until it times the client out.
fn respond(answer: ClientRpc<'static>, sender: &mut Sender) {
    if let Ok(answer) = answer.encode() {
        let _ = sender.send(&answer);
    }
}

impl Application<Connection> for ClientApplication {
    type Notice = Wake;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::Received(piece) if matches!(piece.unit, Unit::Rpc { .. }) => {
                self.answer(piece.bytes, sender);
            }
            Event::Received(piece) => {
                if let Unit::Section { id: MPM_ID, .. } = piece.unit {
                    let mut view = self.state.view();
                    // The view counts unreadable sections.
                    let _ = view.receive(piece.bytes);
                    // The server first sends an empty section to see whether the client replies,
                    // then the world. The world may be unreadable.
                    if piece.bytes.len() > EMPTY {
                        self.state.is_in.send_replace(true);
                    }
                }
            }
            Event::News(news) => self.state.view().handle_news(&news),
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Wake {
        if self.leaving.is_some() {
            sleep(LEAVE_POLL).await;
            return Wake::Leave;
        }
        tokio::select! {
            _ = self.steps.tick() => Wake::Step,
            Some(message) = self.says.recv() => Wake::Say(message),
            _ = self.leaves.wait_for(|leaves| *leaves) => Wake::Leave,
        }
    }

    async fn notice(&mut self, wake: Wake, sender: &mut Sender) -> Flow {
        match wake {
            Wake::Step => {
                // If the movement cannot be sent now, it is sent with the next step.
                let _ = self.state.view().step(sender);
                Flow::Continue(())
            }
            Wake::Say(message) => {
                // The message is dropped if too much is unacknowledged.
                let _ = sender.send(&message);
                Flow::Continue(())
            }
            Wake::Leave => self.leave(sender),
        }
    }
}
