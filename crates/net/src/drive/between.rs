//! Drives a relay between two peers.

use core::future::Future;
use core::pin::pin;
use core::time::Duration;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::time::{Instant, sleep_until, timeout};
use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Input, Timer};

use super::Settings;
use super::stream::{Receive, StreamReader, StreamWriter, Transmit};
use crate::accept::Peer;
use crate::application::End as Ended;
use crate::clock::Clock;
use crate::stop::Signal;
use crate::unwind::catch_panic;

/// What a [`Between`] drives: a relay, together with the code that decides on its pieces.
///
/// The methods correspond to those of [`Connection`](worldwire_core::connection::Connection), for
/// both sides.
pub trait Intermediary: Send {
    /// Handles input from a side.
    fn input(&mut self, now: Duration, from: Side, input: Input<'_>);

    /// Advances time to `now`.
    fn timeout(&mut self, now: Duration);

    /// Continues after sent output has made room, and after [`woken`](Self::woken).
    fn resume(&mut self, now: Duration);

    /// The next bytes for a side; over UDP, one datagram.
    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>>;

    /// The time by which to call [`timeout`](Self::timeout).
    fn poll_timeout(&self) -> Option<Duration>;

    /// Whether it has stopped reading from a side for now.
    fn is_paused(&self, from: Side) -> bool;

    /// The number of bytes from a side that it keeps.
    fn kept_bytes(&self, from: Side) -> usize;

    /// The number of bytes queued for a side.
    fn queued_bytes(&self, to: Side) -> usize;

    /// Whether the conversation has ended.
    fn is_closed(&self) -> bool;

    /// Ends the conversation.
    fn close(&mut self);

    /// Waits for input from another task, which [`resume`](Self::resume) handles. Dropping the
    /// future loses nothing.
    fn woken(&mut self) -> impl Future<Output = ()> + Send;
}

/// Connects clients to their servers, for relays.
pub trait Dial<S>: Send + Sync + 'static {
    /// The relay between a client and its server.
    type Relay: Intermediary + 'static;

    /// The number of bytes of a client's stream that [`dial`](Self::dial) needs to see; 0 where the
    /// server sends first.
    fn opening(&self) -> usize {
        0
    }

    /// Whether a conversation can begin with a datagram, judging only by its shape.
    fn begins_with(&self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }

    /// Connects to the server of a new client, whose first bytes are `opening`: up to
    /// [`opening`](Self::opening) bytes of a stream, or a datagram.
    ///
    /// # Errors
    /// The server cannot be reached. The client's connection is then closed.
    fn dial(
        &self,
        peer: Peer,
        opening: &[u8],
    ) -> impl Future<Output = io::Result<(S, Self::Relay)>> + Send;
}

/// Drives a relay between two peers.
#[derive(Clone, Debug)]
pub struct Between {
    /// The relay's clock.
    pub clock: Clock,
    /// Queue limits and time limits, for each side.
    pub settings: Settings,
    /// When to stop.
    pub signal: Signal,
}

/// How long both peers may be silent over UDP, which has no way to end a conversation.
const SILENCE: Duration = Duration::from_secs(120);
/// How long a relay may hold what a peer sent before it ended its stream. The peer has most likely
/// gone, and a message that nobody decides on must not keep both connections open forever.
const ABANDON_TIME: Duration = Duration::from_secs(60);

impl Between {
    /// Drives a relay between two streams until both have ended and all output is written. A panic
    /// in the relay ends only this conversation. A conversation also ends if the relay still
    /// [keeps](Intermediary::kept_bytes) bytes of a stream that has ended, and forwards none of
    /// them for a minute.
    pub async fn streams<C, S, R>(&self, client: C, server: S, relay: &mut R) -> Ended
    where
        C: AsyncRead + AsyncWrite + Send,
        S: AsyncRead + AsyncWrite + Send,
        R: Intermediary,
    {
        let ((from_client, to_client), (from_server, to_server)) = (split(client), split(server));
        let client = End::new(StreamReader::new(from_client), StreamWriter::new(to_client));
        let server = End::new(StreamReader::new(from_server), StreamWriter::new(to_server));
        self.guarded(client, server, relay, None).await
    }

    /// Drives a relay between two peers that send datagrams.
    pub(crate) async fn datagrams<CR, CW, SR, SW, R>(
        &self,
        client: (CR, CW),
        server: (SR, SW),
        relay: &mut R,
    ) -> Ended
    where
        CR: Receive,
        CW: Transmit,
        SR: Receive,
        SW: Transmit,
        R: Intermediary,
    {
        let (client, server) = (End::new(client.0, client.1), End::new(server.0, server.1));
        self.guarded(client, server, relay, Some(SILENCE)).await
    }

    async fn guarded<CR, CW, SR, SW, R>(
        &self,
        client: End<CR, CW>,
        server: End<SR, SW>,
        relay: &mut R,
        silence: Option<Duration>,
    ) -> Ended
    where
        CR: Receive,
        CW: Transmit,
        SR: Receive,
        SW: Transmit,
        R: Intermediary,
    {
        let mut signal = self.signal.clone();
        let run = Run { driver: self, client, server, relay, silence };
        let working = catch_panic(async {
            tokio::select! {
                biased;
                () = signal.cutting() => Ended::Cut,
                parted = run.until_the_end() => parted,
            }
        });
        working.await.unwrap_or_else(Ended::Panicked)
    }
}

/// One of the two peers.
struct End<R, W> {
    reader: R,
    writer: W,
    /// The peer may still send something.
    is_reading: bool,
    /// Its stream was ended, because the other peer's has ended.
    is_finished: bool,
    /// When it last read something, and how many bytes it had read by then.
    progress: (Instant, u64),
    /// Once it has ended its stream: when the relay last forwarded bytes of the stream, and the
    /// number of bytes that it still kept.
    kept: (Instant, usize),
}

impl<R: Receive, W: Transmit> End<R, W> {
    fn new(reader: R, writer: W) -> Self {
        let (progress, kept) = ((Instant::now(), 0), (Instant::now(), 0));
        Self { reader, writer, is_reading: true, is_finished: false, progress, kept }
    }

    /// Moves output to the writer.
    fn load(&mut self, side: Side, relay: &mut impl Intermediary) {
        if self.is_finished {
            // A message added to a stream that has ended: it must not break the other direction.
            while relay.poll_transmit(side).is_some() {}
        }
        self.writer.load(|| relay.poll_transmit(side));
        let written = self.writer.written();
        if self.writer.pending() == 0 || written != self.progress.1 {
            self.progress = (Instant::now(), written);
        }
    }

    /// When the peer counts as stalled.
    fn stalls(&self, patience: Duration) -> Option<Instant> {
        (self.writer.pending() > 0).then(|| self.progress.0 + patience)
    }

    /// When the relay will have held the rest of its ended stream for too long. The relay still
    /// keeps `kept` bytes of the stream.
    fn abandoned_at(&mut self, kept: usize) -> Option<Instant> {
        if self.is_reading || kept == 0 {
            return None;
        }
        if kept != self.kept.1 {
            self.kept = (Instant::now(), kept);
        }
        Some(self.kept.0 + ABANDON_TIME)
    }
}

/// A relay that is being driven.
struct Run<'r, CR, CW, SR, SW, R> {
    driver: &'r Between,
    client: End<CR, CW>,
    server: End<SR, SW>,
    relay: &'r mut R,
    silence: Option<Duration>,
}

/// Why a relay woke up.
enum Woke<'i> {
    Input(Side, io::Result<Input<'i>>),
    Wrote,
    Due,
    Command,
    Stop,
}

impl<CR, CW, SR, SW, R> Run<'_, CR, CW, SR, SW, R>
where
    CR: Receive,
    CW: Transmit,
    SR: Receive,
    SW: Transmit,
    R: Intermediary,
{
    async fn until_the_end(mut self) -> Ended {
        let parted = self.work().await;
        if !self.relay.is_closed() {
            self.relay.close();
        }
        if !matches!(parted, Ended::Stalled) {
            self.flush().await;
        }
        parted
    }

    async fn work(&mut self) -> Ended {
        let Settings { high_water, stall_time, .. } = self.driver.settings;
        let mut signal = self.driver.signal.clone();
        let mut timer = pin!(sleep_until(Instant::now()));
        let mut heard = Instant::now();
        loop {
            self.client.load(Side::Client, self.relay);
            self.server.load(Side::Server, self.relay);
            if self.relay.is_closed() {
                return Ended::Closed(CloseReason::Remote);
            }
            for side in [Side::Client, Side::Server] {
                if self.is_broken(side) {
                    return Ended::Lost;
                }
            }
            self.finish_sides().await;
            let Self { driver, client, server, relay, silence } = self;
            let stalls = [client.stalls(stall_time), server.stalls(stall_time)];
            let abandoned = [
                client.abandoned_at(relay.kept_bytes(Side::Client)),
                server.abandoned_at(relay.kept_bytes(Side::Server)),
            ];
            let silent = silence.map(|silence| heard + silence);
            let due = relay.poll_timeout().and_then(|at| driver.clock.instant(at));
            let limits = stalls.into_iter().chain(abandoned).flatten();
            let wake = limits.chain(silent).chain(due).min();
            if let Some(wake) = wake
                && timer.deadline() != wake
            {
                timer.as_mut().reset(wake);
            }
            let (to_client, to_server) = (client.writer.pending(), server.writer.pending());
            let reads_client =
                client.is_reading && has_room(*relay, Side::Client, to_server, high_water);
            let reads_server =
                server.is_reading && has_room(*relay, Side::Server, to_client, high_water);
            let End { reader: from_client, writer: client_writer, .. } = client;
            let End { reader: from_server, writer: server_writer, .. } = server;
            let woke = tokio::select! {
                input = from_client.receive(), if reads_client => Woke::Input(Side::Client, input),
                input = from_server.receive(), if reads_server => Woke::Input(Side::Server, input),
                () = client_writer.write(), if to_client > 0 => Woke::Wrote,
                () = server_writer.write(), if to_server > 0 => Woke::Wrote,
                () = timer.as_mut(), if wake.is_some() => Woke::Due,
                () = relay.woken() => Woke::Command,
                () = signal.stopping() => Woke::Stop,
            };
            let now = driver.clock.now();
            let mut ended = None;
            match woke {
                Woke::Input(side, Ok(input)) => {
                    heard = Instant::now();
                    ended = (input == Input::End).then_some(side);
                    relay.input(now, side, input);
                }
                Woke::Input(_, Err(_)) => return Ended::Lost,
                Woke::Wrote | Woke::Command => relay.resume(now),
                Woke::Due => {
                    let passed = Instant::now();
                    if stalls.into_iter().flatten().any(|at| at <= passed) {
                        return Ended::Stalled;
                    }
                    if abandoned.into_iter().flatten().any(|at| at <= passed) {
                        return Ended::Abandoned;
                    }
                    if silent.is_some_and(|at| at <= passed) {
                        return Ended::Closed(CloseReason::Timeout(Timer::Idle));
                    }
                    if relay.poll_timeout().is_some_and(|at| at <= now) {
                        relay.timeout(now);
                    }
                }
                Woke::Stop => return Ended::Stopped,
            }
            match ended {
                Some(Side::Client) => self.client.is_reading = false,
                Some(Side::Server) => self.server.is_reading = false,
                None => {}
            }
        }
    }

    fn is_broken(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client.writer.is_broken(),
            Side::Server => self.server.writer.is_broken(),
        }
    }

    /// Ends each stream whose opposite stream has ended, once all of that stream's data is written.
    async fn finish_sides(&mut self) {
        let Self { client, server, relay, .. } = self;
        let is_due = Side::BOTH.map(|from| {
            let is_passed = relay.kept_bytes(from) == 0 && relay.queued_bytes(from.other()) == 0;
            let to = from.other();
            let pending =
                if to == Side::Client { client.writer.pending() } else { server.writer.pending() };
            is_passed && pending == 0
        });
        if !client.is_reading && !server.is_finished && is_due[Side::Client.index()] {
            server.is_finished = true;
            server.writer.finish().await;
        }
        if !server.is_reading && !client.is_finished && is_due[Side::Server.index()] {
            client.is_finished = true;
            client.writer.finish().await;
        }
    }

    /// Writes what is queued and ends both streams.
    async fn flush(&mut self) {
        let flush_time = self.driver.settings.flush_time;
        let flush = async {
            loop {
                self.client.load(Side::Client, self.relay);
                self.server.load(Side::Server, self.relay);
                let pending = [self.client.writer.pending(), self.server.writer.pending()];
                let (client, server) = (&mut self.client.writer, &mut self.server.writer);
                tokio::select! {
                    () = client.write(), if pending[0] > 0 => {}
                    () = server.write(), if pending[1] > 0 => {}
                    else => break,
                }
            }
            self.client.writer.finish().await;
            self.server.writer.finish().await;
        };
        let _ = timeout(flush_time, flush).await;
    }
}

/// Whether to read from a side: the relay has not stopped, and the queue to the other side has
/// room.
fn has_room(relay: &impl Intermediary, from: Side, pending: usize, high_water: usize) -> bool {
    !relay.is_paused(from) && relay.queued_bytes(from.other()).saturating_add(pending) <= high_water
}
