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
    /// With the datagram by which the peer was found.
    Udp(UdpSocket, Option<Vec<u8>>),
}

/// A port at which one live client is expected.
#[derive(Debug)]
pub struct ReplayListener(Port);

#[derive(Debug)]
enum Port {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// The maximum length of a datagram.
const MAX_DATAGRAM: usize = 65_535;
/// How long output may take to be written after the outcome is known.
const FLUSH_TIME: Duration = Duration::from_secs(2);

impl ReplayListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: SocketAddr, is_datagrams: bool) -> io::Result<Self> {
        Ok(Self(match is_datagrams {
            true => Port::Udp(UdpSocket::bind(address).await?),
            false => Port::Tcp(TcpListener::bind(address).await?),
        }))
    }

    /// The address it listens on. If the requested port was 0, the system chose one.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Port::Tcp(listener) => listener.local_addr(),
            Port::Udp(socket) => socket.local_addr(),
        }
    }

    /// Waits for a client. Further ones are not accepted.
    pub async fn accept(self) -> io::Result<ReplaySocket> {
        Ok(ReplaySocket(match self.0 {
            Port::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Kind::Tcp(stream)
            }
            Port::Udp(socket) => {
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

/// Runs a replay to its end. `report` gets its events. The replay's time is that of `clock`.
pub async fn drive(
    replay: &mut Replay,
    socket: ReplaySocket,
    clock: Clock,
    signal: Signal,
    report: &mut dyn FnMut(ReplayEvent),
) -> Outcome {
    match socket.0 {
        Kind::Tcp(stream) => over_tcp(replay, stream, clock, signal, report).await,
        Kind::Udp(socket, first) => {
            if let Some(first) = first {
                replay.input(clock.now(), Input::Datagram(&first));
            }
            over_udp(replay, &socket, clock, signal, report).await
        }
    }
}

async fn over_tcp(
    replay: &mut Replay,
    mut stream: TcpStream,
    clock: Clock,
    signal: Signal,
    report: &mut dyn FnMut(ReplayEvent),
) -> Outcome {
    let mut signal = signal;
    let (mut reader, mut writer) = stream.split();
    let mut buffer = vec![0; 64 << 10];
    let (mut output, mut written) = (Vec::new(), 0);
    let mut is_reading = true;
    let outcome = loop {
        if written == output.len() {
            (output, written) = (replay.poll_transmit().unwrap_or_default(), 0);
        }
        if output.is_empty() {
            replay.timeout(clock.now());
        }
        while let Some(event) = replay.poll_event() {
            report(event);
        }
        if let Some(outcome) = replay.outcome() {
            break outcome.clone();
        }
        let now = clock.now();
        let due = replay.poll_timeout().map(|at| at.saturating_sub(now));
        let unwritten = output.get(written..).unwrap_or_default();
        tokio::select! {
            length = writer.write(unwritten), if !unwritten.is_empty() => match length {
                Ok(length) if length > 0 => written += length,
                // The peer hung up; what it sent before is still read.
                _ => (output, written) = (Vec::new(), 0),
            },
            read = reader.read(&mut buffer), if is_reading && !replay.is_paused() => {
                let length = read.unwrap_or(0);
                is_reading = length > 0;
                let bytes = buffer.get(..length).unwrap_or_default();
                let input = if is_reading { Input::Bytes(bytes) } else { Input::End };
                replay.input(clock.now(), input);
            }
            () = sleep(due.unwrap_or_default()), if due.is_some() => replay.timeout(clock.now()),
            () = signal.stopping() => replay.stop(),
        }
    };
    let flush = async {
        let rest = output.split_off(written);
        writer.write_all(&rest).await?;
        while let Some(bytes) = replay.poll_transmit() {
            writer.write_all(&bytes).await?;
        }
        writer.shutdown().await?;
        // A peer that still sends would otherwise see a reset, and lose the last messages.
        while is_reading && reader.read(&mut buffer).await? > 0 {}
        io::Result::Ok(())
    };
    // The outcome is known, whatever becomes of the rest.
    let _ = timeout(FLUSH_TIME, flush).await;
    outcome
}

async fn over_udp(
    replay: &mut Replay,
    socket: &UdpSocket,
    clock: Clock,
    signal: Signal,
    report: &mut dyn FnMut(ReplayEvent),
) -> Outcome {
    let mut signal = signal;
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        while let Some(datagram) = replay.poll_transmit() {
            // A lost datagram is repeated like any other.
            let _ = socket.send(&datagram).await;
        }
        replay.timeout(clock.now());
        while let Some(event) = replay.poll_event() {
            report(event);
        }
        if let Some(outcome) = replay.outcome().cloned() {
            while let Some(datagram) = replay.poll_transmit() {
                let _ = socket.send(&datagram).await;
            }
            return outcome;
        }
        let now = clock.now();
        let due = replay.poll_timeout().map(|at| at.saturating_sub(now));
        tokio::select! {
            received = socket.recv(&mut buffer), if !replay.is_paused() => match received {
                Ok(length) => {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    replay.input(clock.now(), Input::Datagram(datagram));
                }
                // Nobody listens at the port (yet): the machine repeats itself until its time is up.
                Err(error) => {
                    tracing::debug!(error = %reason(&error), "cannot receive");
                    sleep(Duration::from_millis(50)).await;
                }
            },
            () = sleep(due.unwrap_or_default()), if due.is_some() => {}
            () = signal.stopping() => replay.stop(),
        }
    }
}
