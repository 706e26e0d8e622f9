//! Drives one connection over one stream.

pub(crate) mod between;
pub(crate) mod stream;

use core::future::{Future, poll_fn, ready};
use core::pin::pin;
use core::task::Poll;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};
use worldwire_core::connection::{CloseReason, Connection, Event, Input};
use worldwire_core::{Error, Side};

use crate::application::{Application, End, Flow};
use crate::clock::Clock;
use crate::stop::Signal;
use crate::unwind::catch_panic;
use stream::{Receive, StreamReader, StreamWriter, Transmit};

/// Queue limits and time limits of a driver. The queue limit that closes a connection belongs to
/// the machine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Below this, an application that wants room is asked for more data. Default 128 KiB.
    pub low_water: usize,
    /// Above this, nothing is read from the peer, so that it causes no more answers. Default 1 MiB.
    pub high_water: usize,
    /// How long a peer may go without reading queued data. Default 60 s.
    pub stall_time: Duration,
    /// How long a closed connection may take to write its queued data. Default 5 s.
    pub flush_time: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            low_water: 128 << 10,
            high_water: 1 << 20,
            stall_time: Duration::from_secs(60),
            flush_time: Duration::from_secs(5),
        }
    }
}

/// How long a closed connection waits for the peer's end; see [`Receive::LINGERS`].
const LINGER: Duration = Duration::from_secs(1);

/// Limits how many connections are set up at the same moment. A key exchange occupies a thread for
/// milliseconds, so without this limit, a burst of clients would keep all threads from doing
/// anything else.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let threads = Handle::current().metrics().num_workers();
    Semaphore::new((threads / 2).max(1))
});

/// Waits until another connection can be set up. A runtime with a single thread needs no such
/// limit.
async fn turn() -> Option<SemaphorePermit<'static>> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return None;
    }
    // The semaphore is never closed, so this cannot fail.
    TURNS.acquire().await.ok()
}

/// Drives connections.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The side whose bytes are received: for a server, the client.
    pub peer: Side,
    /// The machine's clock.
    pub clock: Clock,
    /// Queue limits and time limits.
    pub settings: Settings,
    /// When to stop.
    pub signal: Signal,
}

impl Driver {
    /// A driver for clients. Their connections end by themselves.
    #[must_use]
    pub fn client(clock: Clock) -> Self {
        let (settings, signal) = (Settings::default(), Signal::never());
        Self { peer: Side::Server, clock, settings, signal }
    }

    /// Drives a connection over a stream until it has ended, queued data has been written, and the
    /// application has been notified. A panic in the machine or the application ends only this
    /// connection.
    ///
    /// If one of the machine's deadlines passes while the application is busy, input that has
    /// arrived in the meantime is read first.
    pub async fn drive<S, C, A>(&self, io: S, connection: C, application: A) -> End
    where
        S: AsyncRead + AsyncWrite + Send,
        C: Connection<Sender: Send> + Send + 'static,
        A: Application<C>,
    {
        let (reader, writer) = split(io);
        let mut reader = StreamReader::new(reader);
        let mut writer = StreamWriter::new(writer);
        self.run(&mut reader, &mut writer, connection, application).await
    }

    pub(crate) async fn run<R, W, C, A>(
        &self,
        reader: &mut R,
        writer: &mut W,
        mut connection: C,
        mut application: A,
    ) -> End
    where
        R: Receive,
        W: Transmit,
        C: Connection<Sender: Send> + Send + 'static,
        A: Application<C>,
    {
        let mut signal = self.signal.clone();
        let working = async {
            let mut run = Run {
                driver: self,
                connection: &mut connection,
                application: &mut application,
                reader,
                writer,
                is_reading: true,
                is_lost: false,
                fault: None,
                has_input: false,
            };
            let end = run.until_the_end().await;
            run.finish(&end).await;
            end
        };
        let working = catch_panic(async {
            tokio::select! {
                biased;
                () = signal.cutting() => End::Cut,
                end = working => end,
            }
        });
        let end = working.await.unwrap_or_else(End::Panicked);
        match catch_panic(application.ended(&end)).await {
            Ok(()) => end,
            Err(panic) => End::Panicked(panic),
        }
    }
}

/// A connection that is being driven.
struct Run<'r, R, W, C, A> {
    driver: &'r Driver,
    connection: &'r mut C,
    application: &'r mut A,
    reader: &'r mut R,
    writer: &'r mut W,
    /// The peer may still send something.
    is_reading: bool,
    /// The network has failed, in either direction.
    is_lost: bool,
    /// The machine's last fault.
    fault: Option<Box<Error>>,
    /// The machine may have input that it has not handled.
    has_input: bool,
}

/// Why a connection woke up.
enum Woke<'i, N> {
    Input(std::io::Result<Input<'i>>),
    Wrote,
    Due,
    Notice(N),
    Room,
    Stop,
}

impl<R, W, C, A> Run<'_, R, W, C, A>
where
    R: Receive,
    W: Transmit,
    C: Connection<Sender: Send> + Send + 'static,
    A: Application<C>,
{
    async fn until_the_end(&mut self) -> End {
        let Settings { low_water, high_water, stall_time, .. } = self.driver.settings;
        let mut signal = self.driver.signal.clone();
        let mut timer = pin!(sleep_until(Instant::now()));
        // When the peer last read something, and how much it had read by then.
        let (mut progress, mut before) = (Instant::now(), None);
        let mut is_due = false;
        loop {
            let queued = self.load();
            let is_full = queued > high_water;
            // A closed machine only reports the reason.
            if !is_full || self.connection.is_closed() {
                match self.event().await {
                    Some(Ok(())) => continue,
                    Some(Err(end)) => return end,
                    None => {}
                }
            }
            let now = self.driver.clock.now();
            if core::mem::take(&mut is_due)
                && self.connection.poll_timeout().is_some_and(|at| at <= now)
            {
                self.connection.timeout(now);
                continue;
            }
            if self.writer.is_broken() && core::mem::take(&mut self.is_reading) {
                // A peer that hung up does not count as lost.
                self.is_lost |= !matches!(arrived(self.reader), Some(Ok(Input::End)));
                self.connection.input(now, self.driver.peer, Input::End);
                continue;
            }
            let queued = self.load();
            let has_output = self.writer.pending() > 0;
            let written = Some(self.writer.written()).filter(|_| has_output);
            if written.is_none() || written != before {
                progress = Instant::now();
            }
            before = written;
            let stalls = has_output.then(|| progress + stall_time);
            let due = self.connection.poll_timeout().and_then(|at| self.driver.clock.instant(at));
            let wake = due.into_iter().chain(stalls).min();
            if let Some(wake) = wake
                && timer.deadline() != wake
            {
                timer.as_mut().reset(wake);
            }
            let wants_room = queued < low_water && self.application.wants_room();
            let woke = tokio::select! {
                input = self.reader.receive(), if self.is_reading && !is_full => Woke::Input(input),
                () = self.writer.write(), if has_output => Woke::Wrote,
                () = timer.as_mut(), if wake.is_some() => Woke::Due,
                notice = self.application.notified() => Woke::Notice(notice),
                () = ready(()), if wants_room => Woke::Room,
                () = signal.stopping() => Woke::Stop,
            };
            let now = self.driver.clock.now();
            let flow = match woke {
                Woke::Input(input) => {
                    self.is_lost |= input.is_err();
                    let input = input.unwrap_or(Input::End);
                    self.is_reading = input != Input::End;
                    self.has_input = true;
                    self.connection.input(now, self.driver.peer, input);
                    Flow::Continue(())
                }
                Woke::Wrote => Flow::Continue(()),
                Woke::Due if stalls.is_some_and(|at| at <= Instant::now()) => return End::Stalled,
                Woke::Due => {
                    is_due = true;
                    if self.is_reading && !is_full {
                        self.input_now();
                    }
                    Flow::Continue(())
                }
                Woke::Notice(notice) => {
                    self.tell_time(now);
                    let sender = self.connection.sender();
                    attended(self.application.notice(notice, sender), self.writer).await
                }
                Woke::Room => {
                    self.tell_time(now);
                    attended(self.application.room(self.connection.sender()), self.writer).await
                }
                Woke::Stop => {
                    let sender = self.connection.sender();
                    attended(self.application.stopping(sender), self.writer).await;
                    self.connection.close();
                    return End::Stopped;
                }
            };
            if flow.is_break() {
                self.connection.close();
                return End::Application;
            }
        }
    }

    /// Tells the machine the time, so that the application's work can set deadlines from it.
    /// Deadlines that have passed wait until input that has arrived is read.
    fn tell_time(&mut self, now: Duration) {
        if self.connection.poll_timeout().is_none_or(|at| at > now) {
            self.connection.timeout(now);
        }
    }

    /// Moves output to the writer. Returns the total number of queued bytes.
    fn load(&mut self) -> usize {
        let (connection, peer) = (&mut *self.connection, self.driver.peer);
        self.writer.load(|| connection.poll_transmit(peer));
        self.connection.queued_bytes(peer).saturating_add(self.writer.pending())
    }

    /// Passes the next event to the application. Returns `None` if there is no event, and an error
    /// after the last one.
    async fn event(&mut self) -> Option<Result<(), End>> {
        let is_setup = core::mem::take(&mut self.has_input) && !self.connection.is_established();
        let turn = if is_setup { turn().await } else { None };
        let begun = begin(self.connection, self.application, &mut self.fault);
        drop(turn);
        let (work, closed) = begun?;
        self.has_input = true;
        let flow = attended(work, self.writer).await;
        match closed {
            Some(CloseReason::Fault) => {
                let Some(error) = self.fault.take() else {
                    return Some(Err(End::Closed(CloseReason::Fault)));
                };
                return Some(Err(End::Fault { error, state: self.application.state() }));
            }
            Some(CloseReason::Remote) if self.is_lost => return Some(Err(End::Lost)),
            Some(reason) => return Some(Err(End::Closed(reason))),
            None => {}
        }
        if flow.is_break() {
            self.connection.close();
            return Some(Err(End::Application));
        }
        // A busy peer must not starve the others.
        tokio::task::consume_budget().await;
        Some(Ok(()))
    }

    /// Reads input that has already arrived, since the deadline may have passed only because the
    /// application was busy.
    fn input_now(&mut self) {
        let (now, peer) = (self.driver.clock.now(), self.driver.peer);
        let Some(input) = arrived(self.reader) else { return };
        self.is_lost |= input.is_err();
        let input = input.unwrap_or(Input::End);
        self.is_reading = input != Input::End;
        self.has_input = true;
        self.connection.input(now, peer, input);
    }

    /// Writes queued data and ends the stream.
    async fn finish(&mut self, end: &End) {
        if matches!(end, End::Stalled) {
            return;
        }
        let flush_time = self.driver.settings.flush_time;
        let flush = async {
            loop {
                self.load();
                if self.writer.pending() == 0 {
                    break;
                }
                self.writer.write().await;
            }
            self.writer.finish().await;
        };
        let is_written = timeout(flush_time, flush).await.is_ok();
        let is_local =
            matches!(end, End::Application | End::Stopped | End::Closed(CloseReason::Local));
        if R::LINGERS && is_local && is_written && self.is_reading && !self.writer.is_broken() {
            let drain = async {
                while self.reader.receive().await.is_ok_and(|input| input != Input::End) {}
            };
            let _ = timeout(LINGER, drain).await;
        }
    }
}

/// The application's work on the next event, and the reason if it is the last one. Separate from
/// the code that awaits, so that events need not be `Send`.
fn begin<'r, C, A>(
    connection: &'r mut C,
    application: &'r mut A,
    fault: &mut Option<Box<Error>>,
) -> Option<(impl Future<Output = Flow> + Send + use<'r, C, A>, Option<CloseReason>)>
where
    C: Connection<Sender: Send> + Send + 'static,
    A: Application<C>,
{
    let (event, sender) = connection.poll()?;
    let mut closed = None;
    match &event {
        Event::Closed(reason) => closed = Some(*reason),
        Event::Fault { error, .. } => *fault = Some(Box::new(error.clone())),
        _ => {}
    }
    Some((application.event(event, sender), closed))
}

/// Input that has already arrived.
fn arrived<R: Receive>(reader: &mut R) -> Option<std::io::Result<Input<'_>>> {
    let mut receive = pin!(reader.receive());
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    match receive.as_mut().poll(&mut context) {
        Poll::Ready(input) => Some(input),
        Poll::Pending => None,
    }
}

/// Waits for the application's work and writes in the meantime.
async fn attended<F: Future>(future: F, writer: &mut impl Transmit) -> F::Output {
    let mut future = pin!(future);
    // Most work completes immediately, and writing before it would only split the output.
    let first = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    if let Poll::Ready(output) = first {
        return output;
    }
    loop {
        let has_output = writer.pending() > 0;
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = writer.write(), if has_output => {}
        }
    }
}
