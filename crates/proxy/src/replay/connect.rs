//! Replays over sockets.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};
use worldwire_core::connection::Input;
use worldwire_net::{Clock, Signal, reason, tcp, udp};

use super::event::ReplayEvent;
use super::run::{Outcome, Replay};

/// A socket to the live peer.
#[derive(Debug)]
pub struct ReplaySocket(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    /// UDP, with the first datagram from the peer, which revealed its address.
    Udp(UdpSocket, Option<Vec<u8>>),
}

/// A port on which one live client is expected.
#[derive(Debug)]
pub struct ReplayListener(Port);

#[derive(Debug)]
enum Port {
    Tcp(TcpListener),
    /// `None` once it has a client.
    Udp(Option<UdpSocket>),
}

/// The maximum length of a datagram.
const MAX_DATAGRAM: usize = 65_535;
/// The number of bytes read at a time.
const BUFFER: usize = 64 << 10;
/// How long to wait after a socket error.
const RETRY_TIME: Duration = Duration::from_millis(50);
/// The time limit for writing the remaining output once the outcome is known.
const FLUSH_TIME: Duration = Duration::from_secs(2);

impl ReplayListener {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: SocketAddr, is_datagrams: bool) -> io::Result<Self> {
        Ok(Self(match is_datagrams {
            true => Port::Udp(Some(UdpSocket::bind(address).await?)),
            false => Port::Tcp(TcpListener::bind(address).await?),
        }))
    }

    /// The address it listens on. If the requested port was 0, the system chose one.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Port::Tcp(listener) => listener.local_addr(),
            Port::Udp(Some(socket)) => socket.local_addr(),
            Port::Udp(None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Waits for a client. Over UDP, a port has only one client.
    ///
    /// # Errors
    /// A network error; a second client over UDP.
    pub async fn accept(&mut self) -> io::Result<ReplaySocket> {
        Ok(ReplaySocket(match &mut self.0 {
            Port::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Kind::Tcp(stream)
            }
            Port::Udp(socket) => {
                let taken = || io::Error::other("the port is in use by another conversation");
                let socket = socket.take().ok_or_else(taken)?;
                let mut buffer = vec![0; MAX_DATAGRAM];
                let (length, client) = socket.recv_from(&mut buffer).await?;
                socket.connect(client).await?;
                buffer.truncate(length);
                Kind::Udp(socket, Some(buffer))
            }
        }))
    }
}

impl ReplaySocket {
    /// Connects to a server, given as host and port.
    ///
    /// # Errors
    /// The host cannot be found or does not accept the connection in time.
    pub async fn dial(to: &str, is_datagrams: bool, patience: Duration) -> io::Result<Self> {
        Ok(Self(match is_datagrams {
            true => Kind::Udp(udp::dial(to).await?, None),
            false => Kind::Tcp(tcp::dial(to, patience).await?),
        }))
    }
}

impl ReplaySocket {
    /// Runs a replay until its outcome is known. `report` receives its events. The replay takes its
    /// time from `clock`. The connection stays open.
    pub async fn drive(
        &mut self,
        replay: &mut Replay,
        clock: Clock,
        signal: Signal,
        report: &mut dyn FnMut(ReplayEvent),
    ) -> Outcome {
        let outcome = match &mut self.0 {
            Kind::Tcp(stream) => over_tcp(replay, stream, clock, signal, report).await,
            Kind::Udp(socket, first) => {
                if let Some(first) = first.take() {
                    replay.input(clock.now(), Input::Datagram(&first));
                }
                over_udp(replay, socket, clock, signal, report).await
            }
        };
        while let Some(event) = replay.poll_event() {
            report(event);
        }
        outcome
    }

    /// Ends a replay's connection.
    pub async fn close(mut self, replay: &mut Replay, clock: Clock) {
        replay.close(clock.now());
        let flush = async {
            match &mut self.0 {
                Kind::Tcp(stream) => {
                    while let Some(bytes) = replay.poll_transmit() {
                        stream.write_all(&bytes).await?;
                    }
                    stream.shutdown().await?;
                    // Unread bytes would reset the connection and so destroy the last
                    // messages.
                    let mut buffer = vec![0; BUFFER];
                    while stream.read(&mut buffer).await? > 0 {}
                }
                Kind::Udp(socket, _) => {
                    while let Some(datagram) = replay.poll_transmit() {
                        socket.send(&datagram).await?;
                    }
                }
            }
            io::Result::Ok(())
        };
        // The outcome is already known, so errors no longer matter.
        let _ = timeout(FLUSH_TIME, flush).await;
    }
}

/// Output that is being written.
#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }
}

async fn over_tcp(
    replay: &mut Replay,
    stream: &mut TcpStream,
    clock: Clock,
    mut signal: Signal,
    report: &mut dyn FnMut(ReplayEvent),
) -> Outcome {
    let (mut reader, mut writer) = stream.split();
    let mut buffer = vec![0; BUFFER];
    let mut output = Output::default();
    let mut is_reading = true;
    loop {
        if output.rest().is_empty() {
            output = Output { bytes: replay.poll_transmit().unwrap_or_default(), written: 0 };
        }
        if output.rest().is_empty() {
            replay.timeout(clock.now());
        }
        while let Some(event) = replay.poll_event() {
            report(event);
        }
        if output.rest().is_empty()
            && let Some(outcome) = replay.outcome()
        {
            return outcome.clone();
        }
        let now = clock.now();
        let due = replay.poll_timeout().map(|at| at.saturating_sub(now));
        // The peer may never read what is left.
        let due = due.unwrap_or(FLUSH_TIME);
        tokio::select! {
            length = writer.write(output.rest()), if !output.rest().is_empty() => match length {
                Ok(length) if length > 0 => output.written += length,
                // The peer hung up. Anything that it sent before is still read.
                _ => output = Output::default(),
            },
            read = reader.read(&mut buffer), if is_reading && !replay.is_paused() => {
                let length = read.unwrap_or(0);
                is_reading = length > 0;
                let bytes = buffer.get(..length).unwrap_or_default();
                let input = if is_reading { Input::Bytes(bytes) } else { Input::End };
                replay.input(clock.now(), input);
            }
            () = sleep(due) => {
                replay.timeout(clock.now());
                if replay.outcome().is_some() {
                    output = Output::default();
                }
            }
            () = signal.stopping() => {
                replay.stop();
                output = Output::default();
            }
        }
    }
}

async fn over_udp(
    replay: &mut Replay,
    socket: &UdpSocket,
    clock: Clock,
    mut signal: Signal,
    report: &mut dyn FnMut(ReplayEvent),
) -> Outcome {
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        while let Some(datagram) = replay.poll_transmit() {
            // A datagram that cannot be sent counts as lost, so it is repeated.
            let _ = socket.send(&datagram).await;
        }
        replay.timeout(clock.now());
        while let Some(event) = replay.poll_event() {
            report(event);
        }
        if let Some(outcome) = replay.outcome() {
            return outcome.clone();
        }
        let now = clock.now();
        let due = replay.poll_timeout().map(|at| at.saturating_sub(now));
        tokio::select! {
            received = socket.recv(&mut buffer), if !replay.is_paused() => match received {
                Ok(length) => {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    replay.input(clock.now(), Input::Datagram(datagram));
                }
                // Nothing is listening on the port yet. The machine retries until its time is up.
                Err(error) => {
                    tracing::debug!(error = %reason(&error), "cannot receive");
                    sleep(RETRY_TIME).await;
                }
            },
            () = sleep(due.unwrap_or_default()), if due.is_some() => {}
            () = signal.stopping() => replay.stop(),
        }
    }
}
