//! UDP: a listener with one connection per peer address on one socket, and a dialer for clients.
//! [`drive`] also drives connections over any other [`Datagrams`].

use core::future::Future;
use core::time::Duration;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{ToSocketAddrs, UdpSocket, lookup_host};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use worldwire_core::Side;
use worldwire_core::connection::{Connection, Event, Input};

use crate::accept::{Accept, Counts, LOG_EVERY, OpenConnections, Options, Peer};
use crate::application::{Application, End};
use crate::drive::Driver;
use crate::drive::between::{Between, Dial, Intermediary as _};
use crate::drive::stream::{Receive, Transmit};
use crate::reason::reason;
use crate::stop::Signal;
use crate::unwind::catch_panic;

/// Decides which datagrams from a new address start a connection.
pub trait AcceptDatagrams: Accept {
    /// A temporary machine that reads the first datagram, `opening`. A connection is created only if
    /// it accepts the datagram, so stray and forged datagrams allocate nothing permanent. `None`
    /// refuses it outright.
    fn probe(&self, peer: Peer, now: Duration, opening: &[u8]) -> Option<Self::Connection>;

    /// Creates the connection of a new peer, as [`accept`](Accept::accept) does, if its settings
    /// depend on the first datagram. The connection then reads that datagram.
    fn accept_opening(
        &self,
        peer: Peer,
        now: Duration,
        opening: &[u8],
    ) -> (Self::Connection, Self::Application) {
        let _ = opening;
        self.accept(peer, now)
    }

    /// Whether a connection can begin with a datagram, judging only by its shape. Machines may accept
    /// more, such as unknown packets.
    fn begins_with(&self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }
}

/// Carries datagrams to and from one peer: a connected UDP socket, or a simulation of one. Datagrams
/// can be lost.
pub trait Datagrams: Send + Sync + 'static {
    /// Sends a datagram.
    fn send(&self, datagram: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits for the next datagram and copies it to the buffer. Returns its length. Dropping the
    /// future loses nothing. After an error, the peer is gone.
    fn receive(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;
}

impl Datagrams for UdpSocket {
    async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        Self::send(self, datagram).await.map(drop)
    }

    async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv(buffer).await
    }
}

/// Receives datagrams and maintains a connection for each peer.
#[derive(Debug)]
pub struct Listener {
    socket: Arc<UdpSocket>,
    options: Options,
    connections: OpenConnections<SocketAddr>,
    /// The queue of each connection, by peer address.
    queues: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>>,
}

/// The maximum length of a datagram.
const MAX_DATAGRAM: usize = 65_535;
/// The maximum number of datagrams that wait for a busy connection. Further ones are lost, as on
/// any network.
const WAITING: usize = 256;

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Self> {
        Ok(Self::new(UdpSocket::bind(address).await?, options))
    }

    /// Uses a bound socket.
    ///
    /// # Errors
    /// The system cannot watch the socket.
    pub fn from_std(socket: std::net::UdpSocket, options: Options) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self::new(UdpSocket::from_std(socket)?, options))
    }

    fn new(socket: UdpSocket, options: Options) -> Self {
        let connections = OpenConnections::new(&options);
        Self { socket: Arc::new(socket), options, connections, queues: HashMap::new() }
    }

    /// The address it listens on. If the requested port was 0, the system chose one.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.connections.counts)
    }

    /// Receives datagrams until the signal fires, then waits for the connections to end.
    pub async fn serve<A: AcceptDatagrams>(self, accept: Arc<A>, signal: Signal) {
        let Options { settings, clock, .. } = self.options;
        let probing = Arc::clone(&accept);
        let begins = move |datagram: &[u8], peer: Peer| {
            let now = clock.now();
            probing.begins_with(datagram)
                && probing
                    .probe(peer, now, datagram)
                    .is_some_and(|machine| reads(machine, now, datagram))
        };
        let attend = move |(mut reader, mut writer): Ends, peer: Peer, signal: Signal| {
            let accept = Arc::clone(&accept);
            async move {
                let driver = Driver { peer: Side::Client, clock, settings, signal };
                let opening = reader.opening.as_deref().unwrap_or_default();
                let accepted = async { accept.accept_opening(peer, clock.now(), opening) };
                match catch_panic(accepted).await {
                    Ok((connection, application)) => {
                        driver.run(&mut reader, &mut writer, connection, application).await
                    }
                    Err(panic) => End::Panicked(panic),
                }
            }
        };
        self.run(&begins, &attend, signal).await;
    }

    /// Relays datagrams until the signal fires, then waits for the connections to end.
    pub async fn relay<D: Dial<UdpSocket>>(self, dial: Arc<D>, signal: Signal) {
        let Options { settings, clock, .. } = self.options;
        let dials = Arc::clone(&dial);
        let begins = move |datagram: &[u8], _: Peer| dials.begins_with(datagram);
        let attend = move |(client, writer): Ends, peer: Peer, signal: Signal| {
            let dial = Arc::clone(&dial);
            async move {
                let mut client = client;
                let opening = client.opening.take().unwrap_or_default();
                let dialed = catch_panic(async { dial.dial(peer, &opening).await });
                let (server, mut relay) = match dialed.await {
                    Ok(Ok(connected)) => connected,
                    Ok(Err(error)) => {
                        let address = peer.address;
                        tracing::warn!(
                            %address, error = %reason(&error), "cannot connect a client to the server"
                        );
                        return End::Lost;
                    }
                    Err(panic) => return End::Panicked(panic),
                };
                relay.input(clock.now(), Side::Client, Input::Datagram(&opening));
                let server = Arc::new(server);
                let reader = Reader { socket: Arc::clone(&server), buffer: vec![0; MAX_DATAGRAM] };
                let server = (reader, Writer::new(server));
                let between = Between { clock, settings, signal };
                between.datagrams((client, writer), server, &mut relay).await
            }
        };
        self.run(&begins, &attend, signal).await;
    }

    async fn run<F>(
        mut self,
        begins: &(impl Fn(&[u8], Peer) -> bool + Sync),
        attend: &(impl Fn(Ends, Peer, Signal) -> F + Clone + Send + 'static),
        mut signal: Signal,
    ) where
        F: Future<Output = End> + Send,
    {
        let mut minute = interval(LOG_EVERY);
        minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            tokio::select! {
                () = signal.stopping() => break,
                // Errors report that an earlier datagram could not be delivered.
                received = self.socket.recv_from(&mut buffer) => if let Ok((length, from)) = received {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    self.arrived(datagram, from, begins, attend).await;
                },
                Some(ended) = self.connections.tasks.join_next() => {
                    if let Ok(address) = ended
                        && self.queues.get(&address).is_some_and(mpsc::Sender::is_closed)
                    {
                        self.queues.remove(&address);
                    }
                }
                _ = minute.tick() => self.connections.log_due(),
            }
        }
        self.connections.shut_down().await;
    }

    async fn arrived<F>(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        begins: &(impl Fn(&[u8], Peer) -> bool + Sync),
        attend: &(impl Fn(Ends, Peer, Signal) -> F + Clone + Send + 'static),
    ) where
        F: Future<Output = End> + Send,
    {
        if let Some(queue) = self.queues.get(&from)
            && !queue.is_closed()
        {
            // A full queue loses the datagram.
            let _ = queue.try_send(datagram.to_vec());
            return;
        }
        let peer = Peer { address: from, local: self.socket.local_addr().unwrap_or(from) };
        if catch_panic(async { begins(datagram, peer) }).await != Ok(true) {
            tracing::debug!(address = %from, "ignored a datagram that cannot begin a connection");
            return;
        }
        let Some(permit) = self.connections.admit(from, false) else { return };
        let (queue, datagrams) = mpsc::channel(WAITING);
        self.queues.insert(from, queue);
        let writer = Writer::new(PeerAddress { socket: Arc::clone(&self.socket), address: from });
        let reader = Queue { opening: Some(datagram.to_vec()), datagrams, last: Vec::new() };
        let (attend, signal) = (attend.clone(), self.connections.signal());
        self.connections.spawn(from, from, async move {
            let _permit = permit;
            attend((reader, writer), peer, signal).await
        });
    }
}

/// Both halves of a connection with a listener's peer.
type Ends = (Queue, Writer<PeerAddress>);

/// Whether a machine accepts a first datagram, that is, reports something other than a fault.
fn reads<C: Connection>(mut machine: C, now: Duration, datagram: &[u8]) -> bool {
    machine.input(now, Side::Client, Input::Datagram(datagram));
    let mut has_read = false;
    while let Some(event) = machine.poll_event() {
        if matches!(event, Event::Fault { .. } | Event::Closed(_)) {
            return false;
        }
        has_read = true;
    }
    has_read && !machine.is_closed()
}

/// Connects a socket to a server. It receives only from there.
///
/// # Errors
/// The error of the last address; `NotFound` if there is no address.
pub async fn dial(address: impl ToSocketAddrs) -> io::Result<UdpSocket> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in lookup_host(address).await? {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        match socket.connect(address).await {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Drives a connection over a connected socket, as [`Driver::drive`] does over a stream.
pub async fn drive<D, C, A>(driver: &Driver, socket: D, connection: C, application: A) -> End
where
    D: Datagrams,
    C: Connection<Sender: Send> + Send + 'static,
    A: Application<C>,
{
    let socket = Arc::new(socket);
    let mut reader = Reader { socket: Arc::clone(&socket), buffer: vec![0; MAX_DATAGRAM] };
    let mut writer = Writer::new(socket);
    driver.run(&mut reader, &mut writer, connection, application).await
}

/// The datagrams of one peer of a listener.
struct Queue {
    /// The first datagram, until it is read.
    opening: Option<Vec<u8>>,
    datagrams: mpsc::Receiver<Vec<u8>>,
    last: Vec<u8>,
}

impl Receive for Queue {
    const LINGERS: bool = false;

    async fn receive(&mut self) -> io::Result<Input<'_>> {
        let next = match self.opening.take() {
            Some(opening) => Some(opening),
            None => self.datagrams.recv().await,
        };
        match next {
            Some(datagram) => {
                self.last = datagram;
                Ok(Input::Datagram(&self.last))
            }
            // A stopped listener delivers nothing; the signal ends the connection.
            None => core::future::pending().await,
        }
    }
}

/// A connected socket.
struct Reader<D> {
    socket: Arc<D>,
    buffer: Vec<u8>,
}

impl<D: Datagrams> Receive for Reader<D> {
    const LINGERS: bool = false;

    async fn receive(&mut self) -> io::Result<Input<'_>> {
        // An error means that nobody is listening there, so the connection ends.
        let length = self.socket.receive(&mut self.buffer).await?;
        Ok(Input::Datagram(self.buffer.get(..length).unwrap_or_default()))
    }
}

/// Where a writer sends datagrams.
trait Destination: Send {
    fn send(&self, datagram: &[u8]) -> impl Future<Output = io::Result<()>> + Send;
}

impl<D: Datagrams> Destination for Arc<D> {
    async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        Datagrams::send(&**self, datagram).await
    }
}

/// A peer of a listener.
struct PeerAddress {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
}

impl Destination for PeerAddress {
    async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send_to(datagram, self.address).await.map(drop)
    }
}

/// Sends datagrams to one peer.
struct Writer<T> {
    to: T,
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    total: u64,
}

/// The maximum number of bytes of datagrams that the writer queues.
const MAX: usize = 64 << 10;

impl<T> Writer<T> {
    const fn new(to: T) -> Self {
        Self { to, queue: VecDeque::new(), bytes: 0, total: 0 }
    }
}

impl<T: Destination> Transmit for Writer<T> {
    fn load(&mut self, mut next: impl FnMut() -> Option<Vec<u8>>) {
        while self.bytes < MAX
            && let Some(datagram) = next()
        {
            self.bytes += datagram.len().max(1);
            self.queue.push_back(datagram);
        }
    }

    fn pending(&self) -> usize {
        self.bytes
    }

    async fn write(&mut self) {
        let Some(datagram) = self.queue.front() else { return };
        // A datagram that cannot be sent is lost, as on any network.
        if let Err(error) = self.to.send(datagram).await {
            tracing::debug!(%error, "a datagram was not sent");
        }
        if let Some(datagram) = self.queue.pop_front() {
            self.bytes -= datagram.len().max(1);
            self.total += datagram.len() as u64;
        }
    }

    fn written(&self) -> u64 {
        self.total
    }

    fn is_broken(&self) -> bool {
        false
    }

    async fn finish(&mut self) {}
}
