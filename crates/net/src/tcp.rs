//! TCP: a listener, and a dialer for clients.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use worldwire_core::Side;

use crate::accept::{Accept, Counts, Guests, LOG_EVERY, Options, Peer};
use crate::application::End;
use crate::capacity::Seat;
use crate::drive::Driver;
use crate::stop::Signal;
use crate::tally::Tally;
use crate::unwind::caught;

/// Accepts connections, each in its own task from the first byte.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    options: Options,
    guests: Guests<()>,
}

/// How many connections may wait until they are accepted, as far as the system allows. Of those
/// that find no room, the system lets the clients believe that they are connected.
const WAITING: u32 = 4_096;
/// How long to wait when the system has no sockets left.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// Those of the system: the address is in use, or not this machine's.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Self> {
        let mut last = io::ErrorKind::NotFound.into();
        for address in lookup_host(address).await? {
            match listen(address) {
                Ok(tcp) => return Ok(Self { tcp, options, guests: Guests::new(&options) }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it listens: with port 0 the system chose one.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Its figures.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.guests.counts)
    }

    /// Accepts connections until the signal comes, then lets them end.
    pub async fn serve<A: Accept>(mut self, accept: Arc<A>, mut signal: Signal) {
        let mut minute = interval(LOG_EVERY);
        minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let failures = Tally::new(LOG_EVERY);
        loop {
            tokio::select! {
                () = signal.stopping() => break,
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, address)) => self.admit(stream, address, &accept),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        if let Some(count) = failures.count() {
                            tracing::error!(%error, count, "connections cannot be accepted");
                        }
                        sleep(OUT_OF_SOCKETS).await;
                    }
                },
                Some(_) = self.guests.tasks.join_next() => {}
                _ = minute.tick() => self.guests.log_due(),
            }
        }
        drop(self.tcp);
        self.guests.shut_down().await;
    }

    fn admit<A: Accept>(&mut self, stream: TcpStream, address: SocketAddr, accept: &Arc<A>) {
        let Some(seat) = self.guests.admit(address) else { return };
        self.spawn(stream, address, seat, Arc::clone(accept));
    }

    fn spawn<A: Accept>(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        seat: Seat,
        accept: Arc<A>,
    ) {
        let Options { settings, clock, .. } = self.options;
        let driver = Driver { peer: Side::Client, clock, settings, signal: self.guests.signal() };
        self.guests.spawn(address, seat, (), async move {
            // Both fail only when the peer is gone already.
            let _ = stream.set_nodelay(true);
            let local = stream.local_addr().unwrap_or(address);
            let made = caught(async { accept.accept(Peer { address, local }, clock.now()) }).await;
            match made {
                Ok((connection, application)) => {
                    driver.drive(stream, connection, application).await
                }
                Err(panic) => End::Panicked(panic),
            }
        });
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that starts again takes its port back. On Windows it would take that of others, too.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Connects to a server, trying each of its addresses for so long.
///
/// # Errors
/// Those of the system, for the last address; `TimedOut`; `NotFound` when there is no address.
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
