//! Packets from a capture that another program is still writing.
//!
//! A separate thread reads, so that waiting for input never delays earlier packets. It passes
//! packets on in blocks, always before it blocks on the next read, so no packet is left behind in a
//! pipe, a FIFO or a terminal. This needs only blocking reads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::process::ChildStdout;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use worldwire_capture::{CaptureError, CaptureReader, Packet, Record};
use worldwire_core::Limits;
use worldwire_dissect::catch_defect;

use super::packets::{Filled, Meanwhile, PATIENCE, Refusal};
use super::tcpdump::Child;
use crate::cli::StopAfter;
use crate::output::{Failure, Interruption, PacketsTarget, SavedPackets, printable, reason, say};

/// The packets of a capture that is being written.
pub(super) struct Live {
    messages: Receiver<Message>,
    /// Whether the user has requested a stop.
    interrupted: Arc<AtomicBool>,
    _interruption: Interruption,
    /// When to stop, once the user has requested it.
    last_moment: Option<Instant>,
    copy: SharedCopy,
    /// The capturing program, if this program started it.
    child: Option<Child>,
    /// How long packets wait, and the waiting packets with their arrival times.
    wait: Duration,
    waiting: VecDeque<(Instant, Block)>,
    waiting_bytes: usize,
    /// What ended the capture, while packets are still waiting.
    end: Option<Message>,
}

/// The input. Opened in the reading thread, because opening a FIFO can block.
type Opened = Result<Box<dyn Read + Send>, Failure>;
/// The file that also receives the packets. Completed when the capture is dropped.
type SharedCopy = Arc<Mutex<Option<SavedPackets>>>;

/// A message from the reading thread.
enum Message {
    Opened,
    Refused(Refusal),
    Block(Block),
    /// The capture has ended, with an error if it was truncated.
    End(Option<CaptureError>),
    /// The user requests a stop.
    Interrupted,
    /// Nobody reads standard output any more.
    Unread,
}

/// Packets whose bytes share one buffer.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// The packets without their bytes, and the positions of the bytes in the buffer.
    packets: Vec<(Packet<'static>, Range<usize>)>,
}

/// A block of this many bytes is passed on immediately.
const BLOCK_BYTES: usize = 256 << 10;
/// A block with this many packets is passed on immediately.
const BLOCK_PACKETS: usize = 4096;
/// The maximum number of blocks waiting for the receiver.
const BLOCKS: usize = 16;
/// The maximum total size of waiting packets in bytes. Beyond it, packets are passed on early.
const MAX_WAITING: usize = 32 << 20;
/// How long the capturing program has to finish after the user interrupts both programs: it may
/// still have packets in its buffers.
const GRACE: Duration = Duration::from_millis(300);

impl Live {
    /// Opens a capture and waits for its header. With `grows`, waits for more data at the end of
    /// the file.
    pub(super) fn open(
        path: &Path,
        grows: bool,
        limits: &Limits,
        meanwhile: Meanwhile,
    ) -> Result<Self, Refusal> {
        let path = path.to_owned();
        let open = move || {
            let input = super::open(&path)?;
            Ok(if grows { Box::new(Growing(input)) } else { input })
        };
        Self::begin(open, None, &[], limits, meanwhile)
    }

    /// Reads a program's capture and waits for the header.
    pub(super) fn of_child(
        (child, stdout): (Child, ChildStdout),
        stop_after: &[StopAfter],
        limits: &Limits,
        meanwhile: Meanwhile,
    ) -> Result<Self, Refusal> {
        let open = move || -> Opened { Ok(Box::new(stdout)) };
        Self::begin(open, Some(child), stop_after, limits, meanwhile)
    }

    fn begin(
        open: impl FnOnce() -> Opened + Send + 'static,
        child: Option<Child>,
        stop_after: &[StopAfter],
        limits: &Limits,
        Meanwhile { copy, wait, watches_stdout }: Meanwhile,
    ) -> Result<Self, Refusal> {
        let (sender, messages) = sync_channel(BLOCKS);
        let (target, copy) = (copy, SharedCopy::default());
        if watches_stdout {
            let sender = sender.clone();
            std::thread::spawn(move || {
                if wait_for_closed_stdout() {
                    let _ = sender.send(Message::Unread);
                }
            });
        }
        let interrupted = Arc::new(AtomicBool::new(false));
        let interruption = {
            let (interrupted, sender) = (Arc::clone(&interrupted), sender.clone());
            Interruption::ask_first(move || {
                interrupted.store(true, Ordering::SeqCst);
                // If the channel is full, the receiver is not waiting for a message.
                let _ = sender.try_send(Message::Interrupted);
            })
        };
        for limit in stop_after {
            if let StopAfter::Time(time) = *limit {
                let (interrupted, sender) = (Arc::clone(&interrupted), sender.clone());
                std::thread::spawn(move || {
                    std::thread::sleep(time);
                    interrupted.store(true, Ordering::SeqCst);
                    let _ = sender.try_send(Message::Interrupted);
                });
            }
        }
        let mut quota = Quota::of(stop_after);
        let (limits, copied) = (limits.clone(), Arc::clone(&copy));
        let reader = std::thread::Builder::new().name("capture".to_owned());
        let spawned = reader.spawn(move || {
            let outcome = catch_defect(|| {
                let copy = (target, &*copied);
                read(open(), &limits, copy, &mut quota, &sender);
            });
            if let Err(defect) = outcome {
                let source = io::Error::other(defect.report("the capture file", &[]));
                let fault = CaptureError::Read { offset: 0, source };
                let _ = sender.send(Message::End(Some(fault)));
            }
        });
        spawned.map_err(|error| {
            Refusal::Failed(Failure::Run(format!("cannot start a thread: {}", reason(&error))))
        })?;
        let (last_moment, _interruption) = (None, interruption);
        let mut live = Self {
            messages,
            interrupted,
            _interruption,
            last_moment,
            copy,
            child,
            wait,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            end: None,
        };
        match live.receive(None) {
            Some(Message::Refused(Refusal::NoCapture(..))) if live.child.is_some() => {
                let text = "nothing was captured; see the message above";
                Err(Refusal::Failed(Failure::Run(text.to_owned())))
            }
            Some(Message::Refused(refusal)) => Err(refusal),
            _ => Ok(live),
        }
    }

    /// Collects packets until the batch is full or no more arrive within [`PATIENCE`]. Waits
    /// indefinitely for the first packets, unless `is_brief`.
    pub(super) fn fill(
        &mut self,
        is_brief: bool,
        push: &mut impl FnMut(&Packet<'_>) -> bool,
    ) -> Filled {
        let mut until = is_brief.then(|| Instant::now() + PATIENCE);
        loop {
            if self.release(push, &mut until) {
                return Filled::More;
            }
            match self.end.take() {
                None => {}
                Some(Message::End(fault)) => return Filled::End(fault),
                Some(Message::Unread) => return Filled::Unread,
                Some(_) => return Filled::End(None),
            }
            let due = self.waiting.front().map(|(arrived, _)| *arrived + self.wait);
            match self.receive(until.into_iter().chain(due).min()) {
                Some(Message::Block(block)) => {
                    self.waiting_bytes += block.bytes.len();
                    self.waiting.push_back((Instant::now(), block));
                }
                None if until.is_some_and(|until| until <= Instant::now()) => return Filled::More,
                None => {}
                end => self.end = end,
            }
        }
    }

    /// Passes on the packets that have waited long enough; at the end of the capture, all of them.
    /// Returns whether the batch is full.
    fn release(
        &mut self,
        push: &mut impl FnMut(&Packet<'_>) -> bool,
        until: &mut Option<Instant>,
    ) -> bool {
        let Self { wait, waiting, waiting_bytes, end, .. } = self;
        let mut is_full = false;
        while !is_full {
            let is_due = |(arrived, _): &mut (Instant, Block)| {
                end.is_some() || *waiting_bytes > MAX_WAITING || arrived.elapsed() >= *wait
            };
            let Some((_, block)) = waiting.pop_front_if(is_due) else { break };
            *waiting_bytes -= block.bytes.len();
            for packet in block.packets() {
                is_full |= push(&packet);
            }
            until.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
        is_full
    }

    /// The next message, or `None` if none arrives in time. After the user requests a stop, waits a
    /// moment longer for packets in transit.
    fn receive(&mut self, until: Option<Instant>) -> Option<Message> {
        loop {
            if self.interrupted.load(Ordering::SeqCst) && self.last_moment.is_none() {
                self.last_moment = Some(Instant::now() + GRACE);
            }
            let limit = match (until, self.last_moment) {
                (Some(until), Some(last)) => Some(until.min(last)),
                (one, other) => one.or(other),
            };
            let received = match limit {
                None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(limit) => {
                    let now = Instant::now();
                    if self.last_moment.is_some_and(|last| last <= now) {
                        return Some(Message::End(None));
                    }
                    self.messages.recv_timeout(limit.saturating_duration_since(now))
                }
            };
            match received {
                Ok(Message::Interrupted) => {}
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => {
                    if self.last_moment.is_none_or(|last| Instant::now() < last) {
                        return None;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Some(Message::End(None)),
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(Failure::Run(why))) = copy.map(SavedPackets::finish) {
            say(format_args!("worldwire: {}", printable(&why)));
        }
    }
}

impl Block {
    fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        self.packets.iter().map(|(packet, range)| Packet {
            data: self.bytes.get(range.clone()).unwrap_or_default(),
            ..*packet
        })
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES || self.packets.len() >= BLOCK_PACKETS
    }

    fn push(&mut self, packet: &Packet<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet.data);
        let Packet { number, time, interface, link, original_length, unusable, offset, .. } =
            *packet;
        let data = &[];
        let packet =
            Packet { number, time, interface, link, data, original_length, unusable, offset };
        self.packets.push((packet, start..self.bytes.len()));
    }
}

/// How much more to capture.
#[derive(Debug)]
struct Quota {
    packets: u64,
    bytes: u64,
}

impl Quota {
    fn of(limits: &[StopAfter]) -> Self {
        let mut quota = Self { packets: u64::MAX, bytes: u64::MAX };
        for limit in limits {
            match *limit {
                StopAfter::Packets(packets) => quota.packets = quota.packets.min(packets),
                StopAfter::Bytes(bytes) => quota.bytes = quota.bytes.min(bytes),
                // A timer interrupts the capture.
                StopAfter::Time(_) => {}
            }
        }
        quota
    }

    /// Counts a packet and returns whether it is the last one.
    fn is_used_up_by(&mut self, packet: &Packet<'_>) -> bool {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(packet.data.len() as u64);
        self.packets == 0 || self.bytes == 0
    }
}

/// Packets read since the last block, and their receiver.
struct Outbox {
    block: Block,
    sender: SyncSender<Message>,
}

impl Outbox {
    /// Passes on the pending packets; an error if the receiver is gone.
    fn send(&mut self) -> io::Result<()> {
        if self.block.packets.is_empty() {
            return Ok(());
        }
        let (bytes, packets) = (self.block.bytes.len(), self.block.packets.len());
        let fresh =
            Block { bytes: Vec::with_capacity(bytes), packets: Vec::with_capacity(packets) };
        let full = std::mem::replace(&mut self.block, fresh);
        self.sender.send(Message::Block(full)).map_err(|_| io::Error::other("the reader is gone"))
    }
}

/// An input that passes on all pending packets before every read.
struct Punctual<R> {
    input: R,
    outbox: Rc<RefCell<Outbox>>,
}

impl<R: Read> Read for Punctual<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.outbox.borrow_mut().send()?;
        self.input.read(room)
    }
}

/// A file that is still being written.
struct Growing<R>(R);

/// How often the end of a growing file is checked.
const NAP: Duration = Duration::from_millis(100);

impl<R: Read> Read for Growing<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(room)? {
                0 if !room.is_empty() => std::thread::sleep(NAP),
                count => return Ok(count),
            }
        }
    }
}

/// Waits until nobody can read standard output any more. Otherwise, only the next write would
/// reveal this, and the next result may be hours away.
#[cfg(target_os = "linux")]
fn wait_for_closed_stdout() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};

    let stdout = io::stdout();
    loop {
        match poll(&mut [PollFd::new(&stdout, PollFlags::empty())], None) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.is_ok(),
        }
    }
}

/// There is no safe way to check this here, so writing the next result reveals it.
#[cfg(not(target_os = "linux"))]
fn wait_for_closed_stdout() -> bool {
    false
}

/// Reads a capture to its end or until the receiver is gone.
fn read(
    opened: Opened,
    limits: &Limits,
    (target, copy): (Option<PacketsTarget>, &Mutex<Option<SavedPackets>>),
    quota: &mut Quota,
    sender: &SyncSender<Message>,
) {
    let tell = |message| sender.send(message).is_ok();
    let input = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            tell(Message::Refused(Refusal::Failed(failure)));
            return;
        }
    };
    let outbox = Outbox { block: Block::default(), sender: sender.clone() };
    let outbox = Rc::new(RefCell::new(outbox));
    let input = Punctual { input, outbox: Rc::clone(&outbox) };
    let mut capture = match CaptureReader::new(input, limits) {
        Ok(capture) => capture,
        Err(error) => {
            tell(Message::Refused(Refusal::NoCapture(None, error)));
            return;
        }
    };
    match target.map(PacketsTarget::open).transpose() {
        Ok(saved) => *copy.lock().unwrap_or_else(PoisonError::into_inner) = saved,
        Err(failure) => {
            tell(Message::Refused(Refusal::Failed(failure)));
            return;
        }
    }
    if !tell(Message::Opened) {
        return;
    }
    let fault = loop {
        match capture.next() {
            Ok(Some(Record::Packet(packet))) => {
                let mut outbox = outbox.borrow_mut();
                outbox.block.push(&packet);
                let mut copy = copy.lock().unwrap_or_else(PoisonError::into_inner);
                let copy = copy.as_mut().filter(|_| packet.unusable.is_none());
                if let Some(Err(error)) = copy.map(|copy| copy.packet(&packet)) {
                    break Some(error);
                }
                if quota.is_used_up_by(&packet) {
                    break None;
                }
                if outbox.block.is_full() && outbox.send().is_err() {
                    return;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    if outbox.borrow_mut().send().is_ok() {
        tell(Message::End(fault));
    }
}
