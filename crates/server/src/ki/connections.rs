//! Client connections. Each has a protocol state machine, a [`Login`], and an entry in the realm.
//!
//! While the database stores a change for a client, keep-alives and pings are answered. Other
//! requests wait until the change is stored or refused. The same applies while the server waits for
//! a shared database to confirm that this process is active. If the confirmation does not arrive in
//! time, the client is disconnected and can log in again to the active process.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use worldwire_core::connection::{Connection as _, Event, EventOf, Sender as _};
use worldwire_ki::connection::{
    Connection, Ignored, Life, News, ObserverKeys, Received, Sender, ServerConfig, SessionIds, Unit,
};
use worldwire_ki::control::Opcode;
use worldwire_ki::crypt::login::Secret;
use worldwire_ki::frame::control_opcode;
use worldwire_ki::schema::Protocols;
use worldwire_net::udp::AcceptDatagrams;
use worldwire_net::{Accept, Application, Clock, End, Flow, Peer};
use zeroize::Zeroizing;

use super::config::KiConfig;
use super::figures::Figures;
use super::login::{Answer, Login, LoginEvent, Output, Query, Rules};
use super::peers::Peers;
use super::realm::{Answering, Changing, Confirming, Number, Orders, Realm, Wakeup};
use super::refusal::Refusal;
use super::wire::{Decoded, Dialect, Reply, Request};
use crate::secrets::Secrets;

/// The largest body of a frame, in bytes: a 64 KiB message, the largest that its length field can
/// express, plus headers.
const MAX_FRAME_BYTES: u32 = 65 << 10;
/// The maximum size of messages sent before the client accepts its session, in bytes.
const MAX_EARLY_BYTES: usize = 16 << 10;
/// The maximum number and total size, in bytes, of requests that wait for the reply to an earlier
/// request. There is room for one request of the maximum size, or for several typical ones.
const MAX_HELD: usize = 16;
const MAX_HELD_BYTES: usize = 64 << 10;
/// How long a stopping server waits for a result from the database on a client's behalf.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// Creates a login server's connections.
#[derive(Debug)]
pub struct Connections {
    server: Arc<ServerConfig>,
    dialect: Dialect,
    rules: Arc<Rules>,
    realm: Realm,
    ids: Mutex<SessionIds>,
    clock: Clock,
    pub(super) figures: Arc<Figures>,
    secrets: Option<Arc<Secrets>>,
    peers: Peers,
}

impl Connections {
    /// Creates the shared state of connections. `epoch` is the clock's zero, in time since 1970.
    /// The listener must use the same clock.
    #[must_use]
    pub fn new(
        config: &KiConfig,
        rules: Rules,
        protocols: Arc<Protocols>,
        realm: Realm,
        clock: Clock,
        epoch: Duration,
    ) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let mut server = ServerConfig::new(epoch);
        server.common.keep_alive_every = seconds(config.session.keep_alive_seconds);
        server.common.life = Life::AnyTraffic;
        server.common.max_frame_bytes = MAX_FRAME_BYTES;
        server.max_early_bytes = MAX_EARLY_BYTES;
        server.accept_time = seconds(config.session.accept_seconds);
        server.protocols = Some(Arc::clone(&protocols));
        server.started = clock.now();
        Self {
            server: server.into(),
            dialect: Dialect::new(protocols),
            rules: rules.into(),
            realm,
            ids: Mutex::new(SessionIds::new()),
            clock,
            figures: Arc::default(),
            secrets: None,
            peers: Peers::new(Vec::new()),
        }
    }

    /// Sets the key file to which the secrets of logins are written.
    #[must_use]
    pub(super) fn with_secrets(mut self, secrets: Option<Secrets>) -> Self {
        self.secrets = secrets.map(Arc::new);
        self
    }

    /// Sets the servers that drop a client's sessions when it logs in.
    #[must_use]
    pub(super) fn with_peers(self, peers: Peers) -> Self {
        Self { peers, ..self }
    }

    /// The accounts, characters and queue.
    #[must_use]
    pub fn realm(&self) -> &Realm {
        &self.realm
    }

    /// The number of session IDs in use.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.ids().live()
    }

    fn ids(&self) -> MutexGuard<'_, SessionIds> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, id: Option<u16>) {
        if let Some(id) = id {
            self.ids().release(id);
        }
    }
}

/// Accepts connections.
#[derive(Clone, Debug)]
pub struct Acceptor(pub Arc<Connections>);

impl Accept for Acceptor {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, now: Duration) -> (Connection, Client) {
        let connections = Arc::clone(&self.0);
        let id = connections.ids().allocate().ok();
        let connection = match id {
            Some(id) => Connection::server(Arc::clone(&connections.server), id, now),
            None => {
                connections.figures.no_ids.fetch_add(1, Ordering::Relaxed);
                if let Some(count) = connections.figures.turned_away.count() {
                    let address = peer.address;
                    tracing::warn!(%address, count, "connection closed: all session IDs are in use");
                }
                // A connection that only observes sends nothing, not even a session offer.
                let mut connection = Connection::observer(Arc::new(ObserverKeys::default()));
                connection.close();
                connection
            }
        };
        let (number, wakeup) = connections.realm.arrive();
        let epoch = connections.server.common.epoch;
        let login = Login::new(Arc::clone(&connections.rules), epoch);
        let client = Client {
            connections,
            peer,
            number,
            wakeup,
            login,
            id,
            next: None,
            paused: None,
            waiting: None,
            held: VecDeque::new(),
            held_bytes: 0,
        };
        (connection, client)
    }
}

impl AcceptDatagrams for Acceptor {
    /// Never replies and takes no session ID.
    fn probe(&self, _: Peer, now: Duration, _: &[u8]) -> Option<Connection> {
        Some(Connection::server(Arc::clone(&self.0.server), 1, now))
    }

    fn begins_with(&self, datagram: &[u8]) -> bool {
        control_opcode(datagram) == Some(Opcode::UdpHello)
    }
}

/// A client's connection.
#[derive(Debug)]
pub struct Client {
    connections: Arc<Connections>,
    peer: Peer,
    number: Number,
    wakeup: Arc<Wakeup>,
    login: Login,
    /// The session's ID, and the ID of the session that will replace it.
    id: Option<u16>,
    next: Option<u16>,
    /// The login's outputs are held back until this time.
    paused: Option<Duration>,
    /// The event that the login waits for.
    waiting: Option<Waiting>,
    /// Requests that arrived in the meantime, and their total size.
    held: VecDeque<(u8, u8, Request)>,
    held_bytes: usize,
}

/// An event that a login waits for.
#[derive(Debug)]
enum Waiting {
    /// The database is storing a change.
    Change(Changing<()>),
    /// The database must confirm that this process is active before the query can be answered.
    Confirmation(Confirming, Query),
}

/// A reason for a connection to wake up.
#[derive(Debug)]
pub enum Wake {
    /// Orders have arrived from other tasks.
    Orders,
    /// The login's deadline has passed.
    Due,
    /// A delay is over.
    Resumed,
    /// The database has stored a change, or failed to do so.
    Changed(Result<(), Refusal>),
    /// The database has confirmed that this process is active, or failed to do so.
    Confirmed(bool),
}

impl Client {
    fn established(&mut self, previous: Option<u16>, sender: &Sender) {
        if let Some(previous) = previous {
            self.connections.release(Some(previous));
            self.id = self.next.take();
            self.connections.figures.refreshes.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(salt) = sender.salt() {
            self.login.established(self.connections.clock.now(), salt);
        }
    }

    fn receive(&mut self, received: &Received<'_>, sender: &mut Sender) -> Flow {
        let Unit::Message { service, order } = received.unit else {
            return Flow::Continue(());
        };
        let figures = &self.connections.figures;
        if self.paused.is_some() {
            self.ignored(service, order, DELAYED);
            return Flow::Continue(());
        }
        let payload = received.payload();
        match self.connections.dialect.decode(service, order, payload) {
            Decoded::Request(Request::Ping) if self.waiting.is_some() => {
                return self.send(&Reply::Pong, sender);
            }
            Decoded::Request(request) if self.waiting.is_some() => {
                let bytes = self.held_bytes.saturating_add(payload.len());
                if self.held.len() < MAX_HELD && bytes <= MAX_HELD_BYTES {
                    self.held_bytes = bytes;
                    self.held.push_back((service, order, request));
                } else {
                    self.ignored(service, order, "too many requests are waiting for the database");
                }
            }
            Decoded::Request(request) => {
                self.login.handle(self.connections.clock.now(), request);
            }
            Decoded::Unknown => self.ignored(service, order, "not for a login server"),
            Decoded::Malformed => {
                figures.malformed.fetch_add(1, Ordering::Relaxed);
                self.ignored(service, order, "does not match its definition");
            }
        }
        Flow::Continue(())
    }

    fn ignored(&self, service: u8, order: u8, why: &str) {
        let figures = &self.connections.figures;
        figures.ignored.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = figures.ignored_messages.count() {
            let address = self.peer.address;
            tracing::info!(%address, service, order, why, count, "ignored messages");
        }
    }

    /// Handles the login's outputs up to the next delay, and requests that were held back.
    fn work(&mut self, sender: &mut Sender) -> Flow {
        loop {
            self.outputs(sender)?;
            if self.waiting.is_some() {
                return Flow::Continue(());
            }
            let Some((service, order, request)) = self.held.pop_front() else {
                self.held_bytes = 0;
                return Flow::Continue(());
            };
            match self.paused {
                Some(_) => self.ignored(service, order, DELAYED),
                None => self.login.handle(self.connections.clock.now(), request),
            }
        }
    }

    fn outputs(&mut self, sender: &mut Sender) -> Flow {
        while self.paused.is_none()
            && let Some(output) = self.login.poll()
        {
            match output {
                Output::Send(reply) => self.send(&reply, sender)?,
                // If this waited, the connection could not answer keep-alives.
                Output::Ask(query) => self.ask(query),
                // If this waited, the connection would stay open after its client has left.
                Output::Pause(time) => {
                    self.paused = Some(self.connections.clock.now().saturating_add(time));
                }
                Output::Tell(note) => self.note(note),
                Output::Close => {
                    // Free the client's slot now, not only when the stream has ended.
                    self.connections.realm.depart(self.number);
                    return Flow::Break(());
                }
            }
        }
        Flow::Continue(())
    }

    fn ask(&mut self, query: Query) {
        let address = self.peer.address.ip();
        match self.connections.realm.answer(self.number, address, query) {
            Answering::Now(answer) => self.answer(answer),
            Answering::Later(change) => self.waiting = Some(Waiting::Change(change)),
            Answering::Unconfirmed(confirming, query) => {
                self.waiting = Some(Waiting::Confirmation(confirming, query));
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.login.answer(self.connections.clock.now(), answer);
    }

    fn send(&self, reply: &Reply, sender: &mut Sender) -> Flow {
        match reply {
            Reply::Authenticated { outcome: Ok(_), .. }
            | Reply::Validated { outcome: Ok(_), .. } => {
                self.connections.figures.logins.fetch_add(1, Ordering::Relaxed);
            }
            Reply::Selected(Ok(_)) => {
                self.connections.figures.selections.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        if let Some(refusal) = reply.refusal() {
            self.connections.figures.refused(refusal);
        }
        let written = match self.connections.dialect.write(reply) {
            Ok(message) => sender.send(&message),
            Err(error) => {
                tracing::warn!(%error, "the loaded definitions cannot encode a reply");
                return Flow::Continue(());
            }
        };
        match written {
            Ok(()) => Flow::Continue(()),
            Err(error) => {
                tracing::debug!(%error, "cannot send: closing the connection");
                Flow::Break(())
            }
        }
    }

    fn note(&self, note: LoginEvent) {
        let Connections { realm, figures, secrets, .. } = &*self.connections;
        let address = self.peer.address;
        match note {
            LoginEvent::Issued { user, name, machine, ck2 } => {
                if let Some(secrets) = secrets {
                    secrets.append(key_file_entry(&name, &ck2));
                }
                realm.issue(user, Some(machine), ck2);
            }
            LoginEvent::Failed { name, why } => {
                realm.failed(address.ip(), &name);
                if let Some(count) = figures.failed_logins.count() {
                    tracing::info!(%address, account = ?name, %why, count, "refused logins");
                }
            }
            LoginEvent::LoggedIn(user) => {
                tracing::debug!(%address, user, "logged in");
                realm.logged_in(self.number, user);
                self.connections.peers.drop_sessions(user, realm.account_name(user).as_deref());
            }
            LoginEvent::LoggedOut => realm.logged_out(self.number),
            LoginEvent::Creation { stage, parameter } => {
                tracing::debug!(%address, stage, parameter, "character creation");
                figures.creations.fetch_add(1, Ordering::Relaxed);
            }
            LoginEvent::Ignored => {
                figures.ignored.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn carry_out(&mut self, orders: Orders, sender: &mut Sender) {
        let Orders { leave, refresh, moved } = orders;
        let now = self.connections.clock.now();
        if refresh && self.next.is_none() {
            let next = self.connections.ids().allocate().ok();
            match next.map(|next| sender.refresh(next)) {
                Some(Ok(())) => self.next = next,
                _ => self.connections.release(next),
            }
        }
        if moved && let Some(place) = self.connections.realm.place(self.number) {
            self.login.placed(now, place);
        }
        if let Some(words) = leave {
            self.login.kick(now, words);
        }
    }
}

/// The CK2 issued to an account, as an entry of a key file.
fn key_file_entry(user: &str, ck2: &Secret) -> Zeroizing<String> {
    let user = toml::Value::String(user.to_owned());
    Zeroizing::new(format!("[[ki.login]]\nuser = {user}\nck2 = \"{}\"\n\n", ck2.as_str()))
}

impl Application<Connection> for Client {
    type Notice = Wake;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { previous, .. }) => self.established(previous, sender),
            Event::Received(received) => self.receive(&received, sender)?,
            // Clients resend messages that arrived after their session became stale.
            Event::News(News::Ignored { unit: Unit::Message { service, order }, why, .. })
                if why != Ignored::Stale =>
            {
                self.ignored(service, order, "not allowed in this session");
            }
            _ => {}
        }
        self.work(sender)
    }

    async fn notified(&mut self) -> Wake {
        let now = self.connections.clock.now();
        let until = async |at: Option<Duration>| match at {
            Some(at) => sleep(at.saturating_sub(now)).await,
            None => pending().await,
        };
        tokio::select! {
            () = self.wakeup.woken() => Wake::Orders,
            () = until(self.login.poll_timeout()) => Wake::Due,
            () = until(self.paused) => Wake::Resumed,
            wake = done(self.waiting.as_mut()) => wake,
        }
    }

    async fn notice(&mut self, wake: Wake, sender: &mut Sender) -> Flow {
        match wake {
            Wake::Orders => self.carry_out(self.wakeup.take(), sender),
            Wake::Due => self.login.timeout(self.connections.clock.now()),
            Wake::Resumed => self.paused = None,
            Wake::Changed(stored) => {
                self.waiting = None;
                self.answer(Answer::Done(stored));
            }
            Wake::Confirmed(is_active) => match self.waiting.take() {
                Some(Waiting::Confirmation(_, query)) if is_active => self.ask(query),
                _ => {
                    tracing::debug!(address = %self.peer.address, "the database does not respond");
                    return Flow::Break(());
                }
            },
        }
        self.work(sender)
    }

    async fn stopping(&mut self, sender: &mut Sender) {
        if let Some(Waiting::Change(change)) = self.waiting.take()
            && let Ok(stored) = timeout(LAST_ANSWER, change).await
        {
            self.answer(Answer::Done(stored));
        }
        self.login.stop();
        self.paused = None;
        let _ = self.work(sender);
    }

    async fn ended(&mut self, end: &End) {
        self.connections.realm.depart(self.number);
        self.connections.release(self.id.take());
        self.connections.release(self.next.take());
        tracing::debug!(address = %self.peer.address, %end, "disconnected");
    }
}

/// Why requests after a failed login are ignored.
const DELAYED: &str = "sent before a delayed reply";

/// Completes when the login no longer needs to wait. Never completes if the login is not waiting.
async fn done(waiting: Option<&mut Waiting>) -> Wake {
    match waiting {
        Some(Waiting::Change(change)) => Wake::Changed(change.await),
        Some(Waiting::Confirmation(confirming, _)) => Wake::Confirmed(confirming.await),
        None => pending().await,
    }
}
