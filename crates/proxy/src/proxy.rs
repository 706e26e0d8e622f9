//! A proxy: listeners, and everything that their conversations share.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::task::JoinHandle;
use worldwire_dissect::{Definitions, Family, Keys, Time};
use worldwire_net::{Clock, Options, Signal, WaitingList, tcp, udp};

use crate::control::Control;
use crate::gate::{Gate, MAX_WAITING, MakeHandlers, Shared};
use crate::hook::Hooks;
use crate::ports::{OpenPorts, Ports as _, Transport};
use crate::record::Recorder;
use crate::world::World;

/// The settings of a proxy: what it relays, and how.
pub struct Setup {
    /// The family of all conversations.
    pub family: &'static dyn Family,
    /// How connections find their servers.
    pub world: Box<dyn World>,
    /// Definitions of messages.
    pub definitions: Arc<Definitions>,
    /// Secrets that decrypt the conversations.
    pub keys: Arc<Keys>,
    /// Creates the handlers of each conversation. In the messages that they see, the proxy has
    /// already replaced the addresses of servers.
    pub handlers: Box<MakeHandlers>,
    /// Hooks, which see messages after all handlers.
    pub hooks: Option<Hooks>,
    /// Records the conversations.
    pub recorder: Option<Recorder>,
    /// Limits, and the clock.
    pub options: Options,
}

/// A proxy whose listeners are open.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    tcp: Option<tcp::Listener>,
    udp: Option<udp::Listener>,
    address: SocketAddr,
    ports: Arc<OpenPorts>,
    /// The listeners on other addresses.
    others: Mutex<Vec<JoinHandle<()>>>,
    options: Options,
    signal: Signal,
}

impl Proxy {
    /// Listens on an address: over TCP and, if the family uses UDP, over UDP on the same port. The
    /// signal ends the proxy.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(
        setup: Setup,
        listen: SocketAddr,
        is_udp_only: bool,
        signal: Signal,
    ) -> io::Result<Self> {
        let Setup { family, world, definitions, keys, handlers, hooks, recorder, options } = setup;
        let tcp = match is_udp_only {
            true => None,
            false => Some(tcp::Listener::bind(listen, options).await?),
        };
        let first = tcp.as_ref().map(tcp::Listener::local_addr).transpose()?;
        let udp = match family.speaks_datagrams() {
            true => Some(udp::Listener::bind(first.unwrap_or(listen), options).await?),
            false => None,
        };
        let second = udp.as_ref().map(udp::Listener::local_addr).transpose()?;
        let address = first.or(second).unwrap_or(listen);
        let shared = Arc::new(Shared {
            family,
            definitions,
            keys,
            handlers,
            hooks,
            world,
            recorder,
            clock: options.clock,
            epoch: epoch(options.clock),
            facts: Arc::default(),
            next: AtomicU64::new(0),
            conversations: Mutex::default(),
            waiting: WaitingList::new(MAX_WAITING),
        });
        let ports = OpenPorts::new(Arc::clone(&shared), address.ip(), options, signal.clone());
        let (ports, others) = (Arc::new(ports), Mutex::default());
        Ok(Self { shared, tcp, udp, address, ports, others, options, signal })
    }

    /// The address it listens on. If the requested port was 0, the system chose one.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens another port, for a server given as host and port: its conversations are relayed, too.
    /// The same server always has the same port.
    ///
    /// # Errors
    /// No port can be opened, or too many servers were named.
    pub fn port_for(&self, server: &str) -> io::Result<u16> {
        self.ports.port_for(server, Transport::Tcp)
    }

    /// Listens on another address over TCP and relays its connections to a server, given as host
    /// and port. Returns the address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn listen_for(&self, server: String, listen: SocketAddr) -> io::Result<SocketAddr> {
        let listener = tcp::Listener::bind(listen, self.options).await?;
        let address = listener.local_addr()?;
        let gate = Gate::to_server(Arc::clone(&self.shared), server, Arc::clone(&self.ports));
        let relaying = tokio::spawn(listener.relay(Arc::new(gate), self.signal.clone()));
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(relaying);
        Ok(address)
    }

    /// Controls the proxy while it runs.
    #[must_use]
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared))
    }

    /// Relays conversations until the proxy's signal fires, then waits for them to end.
    ///
    /// # Errors
    /// The recording could not be written; it ends at that point.
    pub async fn run(self) -> io::Result<()> {
        let Self { shared, tcp, udp, ports, others, signal, .. } = self;
        let gate = Arc::new(Gate::main(Arc::clone(&shared), ports));
        let over_tcp = async {
            if let Some(tcp) = tcp {
                tcp.relay(Arc::clone(&gate), signal.clone()).await;
            }
        };
        let over_udp = async {
            if let Some(udp) = udp {
                udp.relay(Arc::clone(&gate), signal.clone()).await;
            }
        };
        tokio::join!(over_tcp, over_udp);
        for other in others.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // A panic was reported when it happened.
            let _ = other.await;
        }
        match &shared.recorder {
            Some(recorder) => recorder.finish(),
            None => Ok(()),
        }
    }
}

/// The wall-clock time when a clock reads zero.
fn epoch(clock: Clock) -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = now.saturating_sub(clock.now());
    Time(i64::try_from(start.as_nanos()).unwrap_or(i64::MAX))
}
