//! Admits clients: connects each to its server and puts a relay in between.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use worldwire_dissect::{Definitions, Ends, Family, Keys, Start, Time};
use worldwire_net::{Clock, Dial, Peer, WaitingList, tcp, udp};

use crate::command::Command;
use crate::conversation::{Conversation, Inputs, SharedFacts};
use crate::exchange::{Counts, Exchange, Known};
use crate::handler::Handler;
use crate::hook::Hooks;
use crate::ports::{OpenPorts, Ports};
use crate::record::Recorder;
use crate::world::{PATIENCE, World};

/// Creates the handlers of a new conversation, given its number.
pub type MakeHandlers = dyn Fn(u64) -> Vec<Box<dyn Handler>> + Send + Sync;

/// What all conversations of a proxy share.
pub(crate) struct Shared {
    pub(crate) family: &'static dyn Family,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) handlers: Box<MakeHandlers>,
    pub(crate) hooks: Option<Hooks>,
    pub(crate) world: Box<dyn World>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) clock: Clock,
    /// The wall-clock time when the clock reads zero.
    pub(crate) epoch: Time,
    pub(crate) facts: Arc<SharedFacts>,
    pub(crate) next: AtomicU64,
    pub(crate) conversations: Mutex<Conversations>,
    /// Over UDP, the clients that have not replied to anything yet.
    pub(crate) waiting: WaitingList,
}

/// A proxy's conversations.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    /// The open ones, by number.
    pub(crate) open: BTreeMap<u64, Open>,
    /// The message counts of those that have ended.
    pub(crate) past: Counts,
}

/// An open conversation.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) since: Duration,
    pub(crate) commands: mpsc::Sender<Command>,
    counts: Arc<Mutex<Counts>>,
}

/// The maximum number of UDP clients that have not replied to anything yet. Beyond that, the oldest
/// is dropped.
pub(crate) const MAX_WAITING: usize = 1_024;
/// The maximum number of commands waiting for a conversation.
const COMMANDS: usize = 64;

impl Shared {
    pub(crate) fn conversations(&self) -> MutexGuard<'_, Conversations> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("family", &self.family).finish_non_exhaustive()
    }
}

/// One of a proxy's ports.
#[derive(Debug)]
pub(crate) struct Gate {
    shared: Arc<Shared>,
    /// The server to which this port leads. `None` for the main port, where the [`World`] chooses.
    server: Option<String>,
    ports: Arc<OpenPorts>,
}

impl Gate {
    pub(crate) fn main(shared: Arc<Shared>, ports: Arc<OpenPorts>) -> Self {
        Self { shared, server: None, ports }
    }

    pub(crate) fn to_server(shared: Arc<Shared>, server: String, ports: Arc<OpenPorts>) -> Self {
        Self { shared, server: Some(server), ports }
    }

    fn server(&self, peer: Peer, opening: &[u8]) -> String {
        match &self.server {
            Some(server) => server.clone(),
            None => self.shared.world.server(peer, opening),
        }
    }

    /// A relay between a client and the server that it is connected to.
    fn relay(
        &self,
        peer: Peer,
        (own, server): (SocketAddr, SocketAddr),
        datagrams: bool,
    ) -> io::Result<Conversation> {
        let Shared { family, definitions, keys, clock, epoch, facts, .. } = &*self.shared;
        let mut failure = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = getrandom::fill(bytes) {
                failure = Some(error);
            }
        };
        let session = {
            let facts = &facts.known();
            let start =
                Start { keys, definitions, facts, prepared: None, datagrams, midstream: false };
            family.relay(&start, &mut random, clock.now())
        };
        if let Some(error) = failure {
            return Err(io::Error::other(format!("cannot get random numbers: {error}")));
        }
        let session = session.map_err(io::Error::other)?;
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let ports: Arc<dyn Ports> = Arc::new(Arc::clone(&self.ports));
        let ends = Ends::new(peer.address, server);
        let known = Known {
            family: family.name(),
            definitions: Arc::clone(definitions),
            keys: Arc::clone(keys),
        };
        let rewriter = self.shared.world.rewriter(peer, &ports);
        let mut handlers: Vec<_> = rewriter.into_iter().collect();
        handlers.extend((self.shared.handlers)(number));
        let hooks = self.shared.hooks.as_ref();
        let joined = hooks.map(|hooks| hooks.join(number, known.clone(), Some(&ends)));
        let (hooks, events) = joined.unzip();
        let mut exchange = Exchange::new(session, handlers, known, (number, *epoch), Some(ends));
        if let Some(hooks) = hooks {
            exchange = exchange.with_hooks(hooks);
        }
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (since, counts) = (clock.now(), Arc::default());
        let listed = Listed { number, shared: Arc::clone(&self.shared), counts };
        let counts = Arc::clone(&listed.counts);
        let open = Open { client: peer.address, server, since, commands: sender, counts };
        tracing::info!(connection = number, client = %open.client, %server, "opened");
        self.shared.conversations().open.insert(number, open);
        let addresses = [peer.address, peer.local, own, server];
        let recorder = self.shared.recorder.as_ref();
        let legs = recorder.map(|recorder| recorder.conversation(addresses, datagrams));
        let inputs = Inputs { commands, events };
        let waiting = datagrams.then(|| self.shared.waiting.wait());
        let facts = Arc::clone(facts);
        Ok(Conversation::new(exchange, number, facts, inputs, listed, (waiting, legs)))
    }
}

impl Dial<TcpStream> for Gate {
    type Relay = Conversation;

    fn opening(&self) -> usize {
        match self.server {
            Some(_) => 0,
            None => self.shared.world.opening(),
        }
    }

    async fn dial(&self, peer: Peer, opening: &[u8]) -> io::Result<(TcpStream, Conversation)> {
        let server = tcp::dial(self.server(peer, opening), PATIENCE).await?;
        let addresses = (server.local_addr()?, server.peer_addr()?);
        Ok((server, self.relay(peer, addresses, false)?))
    }
}

impl Dial<UdpSocket> for Gate {
    type Relay = Conversation;

    async fn dial(&self, peer: Peer, opening: &[u8]) -> io::Result<(UdpSocket, Conversation)> {
        let server = udp::dial(self.server(peer, opening)).await?;
        let addresses = (server.local_addr()?, server.peer_addr()?);
        Ok((server, self.relay(peer, addresses, true)?))
    }
}

/// Keeps a conversation listed as long as it exists.
#[derive(Debug)]
pub(crate) struct Listed {
    number: u64,
    shared: Arc<Shared>,
    counts: Arc<Mutex<Counts>>,
}

impl Listed {
    /// Publishes the conversation's message counts.
    pub(crate) fn update(&self, counts: Counts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut conversations = self.shared.conversations();
        if let Some(open) = conversations.open.remove(&self.number) {
            conversations.past += open.counts();
        }
    }
}
