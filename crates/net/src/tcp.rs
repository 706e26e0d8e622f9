//! TCP: a listener, and a dialer for clients.

use core::future::Future;
use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use worldwire_core::{Error, Side};

use crate::accept::{Accept, Counts, LOG_EVERY, OpenConnections, Options, Peer};
use crate::application::End;
use crate::capacity::{Permit, Refused};
use crate::drive::Driver;
use crate::drive::between::{Between, Dial};
use crate::log_limiter::LogLimiter;
use crate::proxy::{self, Header};
use crate::reason::reason;
use crate::stop::Signal;
use crate::unwind::catch_panic;

/// Accepts connections, each in its own task from the first byte.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    options: Options,
    connections: OpenConnections<()>,
    trusted_proxies: Vec<IpAddr>,
}

/// The maximum number of connections that wait to be accepted, if the system allows that many.
/// Beyond that, the system still lets clients believe that they are connected.
const WAITING: u32 = 4_096;
/// How long a trusted proxy may take to name its client.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// How long a relay's client may take to send the bytes that determine its server.
const OPENING_TIME: Duration = Duration::from_secs(10);
/// How long to wait when the system has no sockets left.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Self> {
        let mut last = io::ErrorKind::NotFound.into();
        for address in lookup_host(address).await? {
            match listen(address) {
                Ok(tcp) => {
                    let (connections, trusted_proxies) = (OpenConnections::new(&options), vec![]);
                    return Ok(Self { tcp, options, connections, trusted_proxies });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Uses a socket that already listens.
    ///
    /// # Errors
    /// The system cannot watch the socket.
    pub fn from_std(socket: std::net::TcpListener, options: Options) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let tcp = TcpListener::from_std(socket)?;
        let (connections, trusted_proxies) = (OpenConnections::new(&options), vec![]);
        Ok(Self { tcp, options, connections, trusted_proxies })
    }

    /// Sets the addresses of proxies. They must begin each connection with a header of the
    /// [PROXY protocol](crate::proxy); the client's address is then used instead of the proxy's.
    /// Headers from other peers are not accepted.
    #[must_use]
    pub fn trusting(mut self, proxies: &[IpAddr]) -> Self {
        self.trusted_proxies = proxies.iter().map(IpAddr::to_canonical).collect();
        self
    }

    /// The address it listens on. If the requested port was 0, the system chose one.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.connections.counts)
    }

    /// Accepts connections until the signal fires, then waits for them to end.
    pub async fn serve<A: Accept>(self, accept: Arc<A>, signal: Signal) {
        let Options { settings, clock, .. } = self.options;
        let attend = move |stream: TcpStream, peer: Peer, signal: Signal| {
            let accept = Arc::clone(&accept);
            async move {
                let driver = Driver { peer: Side::Client, clock, settings, signal };
                match catch_panic(async { accept.accept(peer, clock.now()) }).await {
                    Ok((connection, application)) => {
                        driver.drive(stream, connection, application).await
                    }
                    Err(panic) => End::Panicked(panic),
                }
            }
        };
        self.run(&attend, signal).await;
    }

    /// Relays connections until the signal fires, then waits for them to end.
    pub async fn relay<D: Dial<TcpStream>>(self, dial: Arc<D>, signal: Signal) {
        let Options { settings, clock, .. } = self.options;
        let attend = move |stream: TcpStream, peer: Peer, signal: Signal| {
            let dial = Arc::clone(&dial);
            async move {
                let dialed = catch_panic(async {
                    let opening = opening(&stream, dial.opening()).await?;
                    dial.dial(peer, &opening).await
                });
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
                Between { clock, settings, signal }.streams(stream, server, &mut relay).await
            }
        };
        self.run(&attend, signal).await;
    }

    async fn run<F>(
        mut self,
        attend: &(impl Fn(TcpStream, Peer, Signal) -> F + Clone + Send + 'static),
        mut signal: Signal,
    ) where
        F: Future<Output = End> + Send,
    {
        let mut minute = interval(LOG_EVERY);
        minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let failures = LogLimiter::new(LOG_EVERY);
        loop {
            tokio::select! {
                () = signal.stopping() => break,
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, address)) => self.admit(stream, address, attend),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        self.connections.counts.accept_failed();
                        if let Some(count) = failures.count() {
                            tracing::error!(%error, count, "cannot accept connections");
                        }
                        sleep(OUT_OF_SOCKETS).await;
                    }
                },
                Some(_) = self.connections.tasks.join_next() => {}
                _ = minute.tick() => self.connections.log_due(),
            }
        }
        drop(self.tcp);
        self.connections.shut_down().await;
    }

    fn admit<F>(
        &mut self,
        mut stream: TcpStream,
        address: SocketAddr,
        attend: &(impl Fn(TcpStream, Peer, Signal) -> F + Clone + Send + 'static),
    ) where
        F: Future<Output = End> + Send,
    {
        let is_proxy = self.trusted_proxies.contains(&address.ip().to_canonical());
        let Some(permit) = self.connections.admit(address, is_proxy) else { return };
        let (attend, signal) = (attend.clone(), self.connections.signal());
        self.connections.spawn(address, (), async move {
            let mut permit = permit;
            let address = match is_proxy {
                true => match client(&mut stream, address, &mut permit).await {
                    Ok(client) => client,
                    Err(end) => return end,
                },
                false => address,
            };
            // Both fail only if the peer is already gone.
            let _ = stream.set_nodelay(true);
            let local = stream.local_addr().unwrap_or(address);
            attend(stream, Peer { address, local }, signal).await
        });
    }
}

/// The first bytes of a client's stream, which stay in the stream.
async fn opening(stream: &TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut opening = vec![0; length];
    if length == 0 {
        return Ok(opening);
    }
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let arrived = timeout(OPENING_TIME, stream.peek(&mut opening)).await.map_err(late)??;
    opening.truncate(arrived);
    Ok(opening)
}

/// Reads the address of a proxy's client and counts the connection for it.
async fn client(
    stream: &mut TcpStream,
    proxy: SocketAddr,
    permit: &mut Permit,
) -> Result<SocketAddr, End> {
    let fault = |error| End::Fault { error: Box::new(error), state: "a proxy's header".to_owned() };
    let header = timeout(HEADER_TIME, header(stream)).await;
    let late = |_| Error::malformed("", "no PROXY protocol header arrived within 5 s");
    let source =
        header.map_err(late).map_err(fault)?.map_err(|why| why.map_or(End::Lost, fault))?;
    let address = source.unwrap_or(proxy);
    permit.name(address.ip()).map_err(|why: Refused| {
        tracing::debug!(%address, %proxy, %why, "connection refused");
        End::Application
    })?;
    Ok(address)
}

/// Reads a header, and nothing after it.
///
/// # Errors
/// Why it is invalid; `None` if the stream failed.
async fn header(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<SocketAddr>, Option<Error>> {
    let mut bytes = Vec::new();
    loop {
        match proxy::parse(&bytes).map_err(Some)? {
            Header::Complete { source, .. } => return Ok(source),
            Header::Needs(count) => {
                let start = bytes.len();
                bytes.resize(start + count, 0);
                let rest = bytes.get_mut(start..).unwrap_or_default();
                stream.read_exact(rest).await.map_err(|_| None)?;
            }
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Lets a restarted server reuse its port. On Windows it would also take ports in use by others.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Connects to a server, trying each of its addresses for at most `patience`.
///
/// # Errors
/// The error of the last address, such as `TimedOut`; `NotFound` if there is no address.
pub async fn dial(address: impl ToSocketAddrs, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in lookup_host(address).await? {
        match timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}
