//! A reliable, ordered stream of items in each direction, over a bus that can lose messages.
//!
//! Both ends number their frames and keep them until the other end has acknowledged them. A frame
//! that arrives out of order is dropped. The receiver then requests the missing frames, and the
//! sender resends everything after the last acknowledged frame. Every frame states how many frames
//! have been sent so far, and each end sends a frame at least every 250 ms, so even the loss of the
//! last frame is noticed. As a last resort, unacknowledged frames are resent after a second.
//!
//! All items waiting when a frame can be sent share that frame. No timer delays them.

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::{Error, Messages};

use super::frames::{Cutter, Head, MAX_PAYLOAD, encode_item};

/// How often an otherwise idle end sends a frame.
const BEAT: Duration = Duration::from_millis(250);
/// How long to wait for an acknowledgement before resending all unacknowledged frames.
const RESEND_AFTER: Duration = Duration::from_secs(1);
/// The shortest interval between two resends of the same frames on request.
const REPEAT_AFTER: Duration = Duration::from_millis(100);
/// The number of frames received after which an acknowledgement is sent at once.
const ACKNOWLEDGE_AFTER: u32 = 64;
/// The maximum number of unacknowledged frames.
const MAX_FRAMES: usize = 4_096;
/// The maximum total size of all unacknowledged items.
const MAX_BYTES: usize = 64 << 20;

/// Why a channel failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChannelError {
    /// The other end is too slow or unreachable.
    #[error("more than {MAX_BYTES} bytes or {MAX_FRAMES} frames were not acknowledged")]
    Overflow,
    /// The other end acknowledged a frame that was never sent.
    #[error("frame {acknowledged} was acknowledged, but only {sent} were sent")]
    NeverSent { acknowledged: u64, sent: u64 },
    /// The other end's items cannot be read.
    #[error(transparent)]
    Malformed(#[from] Error),
}

/// One end of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    outgoing: Outgoing,
    incoming: Incoming,
    /// Whether to send something to the other end immediately.
    owes: bool,
    /// When the next frame is due, even if there is nothing to send.
    beat_at: Duration,
}

#[derive(Debug)]
struct Outgoing {
    /// Items that are not yet in a frame.
    waiting: Vec<u8>,
    /// The unacknowledged payloads.
    frames: VecDeque<Vec<u8>>,
    /// The number of the first unacknowledged frame.
    first: u64,
    bytes: usize,
    /// How many of the unacknowledged frames have been sent or resent.
    sent: usize,
    /// The highest frame number sent so far.
    last_sent: u64,
    /// When to resend all unacknowledged frames.
    resend_at: Duration,
    /// The last resend on request: its first frame, and its time.
    repeated: Option<(u64, Duration)>,
}

#[derive(Debug, Default)]
struct Incoming {
    /// The number of the last frame received.
    received: u64,
    cutter: Cutter,
    unacknowledged: u32,
    /// Whether frames are missing: later ones are known to exist.
    lacks: bool,
    /// When to request the missing frames again.
    ask_at: Duration,
}

/// An outgoing frame: the fields of its head, and its payload.
#[derive(Debug)]
pub(super) struct Outbound<'c> {
    sequence: u64,
    sent: u64,
    received: u64,
    lacks: u8,
    /// Whether this frame has been sent before.
    pub(super) is_repeated: bool,
    pub(super) payload: &'c [u8],
}

impl Outbound<'_> {
    /// Fills in the channel's fields of a head.
    pub(super) fn head(&self, head: Head) -> Head {
        let &Self { sequence, sent, received, lacks, .. } = self;
        Head { sequence, sent, received, lacks, ..head }
    }
}

impl Channel {
    pub(super) fn new(now: Duration) -> Self {
        let outgoing = Outgoing {
            waiting: Vec::new(),
            frames: VecDeque::new(),
            first: 1,
            bytes: 0,
            sent: 0,
            last_sent: 0,
            resend_at: now,
            repeated: None,
        };
        Self { outgoing, incoming: Incoming::default(), owes: true, beat_at: now }
    }

    /// Queues an item.
    ///
    /// # Errors
    /// [`ChannelError::Overflow`]. The channel is then dead.
    pub(super) fn push<'a>(&mut self, item: &impl Messages<'a>) -> Result<(), ChannelError> {
        let mut stream = Vec::new();
        encode_item(item, &mut stream)?;
        self.outgoing.append(&stream)
    }

    /// Accepts a frame from the other end and passes its items to `item`.
    ///
    /// # Errors
    /// [`ChannelError`]. The channel is then dead.
    pub(super) fn receive(
        &mut self,
        now: Duration,
        head: &Head,
        payload: &[u8],
        item: impl FnMut(&[u8]),
    ) -> Result<(), ChannelError> {
        self.outgoing.acknowledged(now, head.received)?;
        if head.lacks != 0 {
            self.outgoing.repeat(now, head.received);
        }
        let incoming = &mut self.incoming;
        if head.sequence == incoming.received + 1 {
            incoming.received = head.sequence;
            incoming.cutter.feed(payload, item)?;
            incoming.lacks = false;
            incoming.ask_at = now;
            incoming.unacknowledged += 1;
            self.owes |= incoming.unacknowledged >= ACKNOWLEDGE_AFTER;
        } else if head.sequence != 0 && head.sequence <= incoming.received {
            // The other end does not know that this frame has already arrived.
            self.owes = true;
        }
        if head.sent.max(head.sequence) > incoming.received && now >= incoming.ask_at {
            incoming.lacks = true;
            incoming.ask_at = now + REPEAT_AFTER;
            self.owes = true;
        }
        Ok(())
    }

    /// The next frame to send.
    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<Outbound<'_>> {
        let outgoing = &mut self.outgoing;
        let index = outgoing.sent;
        if index == outgoing.frames.len() && !outgoing.waiting.is_empty() {
            outgoing.cut();
        }
        let has_frame = index < outgoing.frames.len();
        if !has_frame && !self.owes && now < self.beat_at {
            return None;
        }
        if has_frame && index == 0 {
            outgoing.resend_at = now + RESEND_AFTER;
        }
        outgoing.sent += usize::from(has_frame);
        let sequence = if has_frame { outgoing.number(index) } else { 0 };
        let is_repeated = has_frame && sequence <= outgoing.last_sent;
        outgoing.last_sent = outgoing.last_sent.max(sequence);
        self.owes = false;
        self.beat_at = now + BEAT;
        self.incoming.unacknowledged = 0;
        Some(Outbound {
            sequence,
            sent: outgoing.number(outgoing.sent) - 1,
            received: self.incoming.received,
            lacks: self.incoming.lacks.into(),
            is_repeated,
            payload: outgoing.frames.get(index).map_or(&[], Vec::as_slice),
        })
    }

    /// Whether everything has been acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.outgoing.waiting.is_empty() && self.outgoing.frames.is_empty()
    }

    /// Sends a frame immediately, even an empty one.
    pub(super) fn greet(&mut self) {
        self.owes = true;
    }

    /// When to call [`timeout`](Self::timeout) and [`poll_transmit`](Self::poll_transmit) again,
    /// once the latter has returned `None`.
    pub(super) fn poll_timeout(&self) -> Duration {
        match self.outgoing.frames.is_empty() {
            true => self.beat_at,
            false => self.beat_at.min(self.outgoing.resend_at),
        }
    }

    /// Handles the passage of time.
    pub(super) fn timeout(&mut self, now: Duration) {
        if !self.outgoing.frames.is_empty() && now >= self.outgoing.resend_at {
            self.outgoing.sent = 0;
        }
    }
}

#[cfg(test)]
impl Channel {
    /// The number of the next frame to receive.
    pub(super) fn expected(&self) -> u64 {
        self.incoming.received + 1
    }
}

impl Outgoing {
    /// The number of a frame.
    fn number(&self, index: usize) -> u64 {
        self.first + index as u64
    }

    /// Appends encoded items to the waiting ones. Full frames are cut off immediately, so no byte
    /// is moved twice.
    fn append(&mut self, mut stream: &[u8]) -> Result<(), ChannelError> {
        self.bytes += stream.len();
        loop {
            let room = MAX_PAYLOAD - self.waiting.len();
            let (now, later) = stream.split_at(room.min(stream.len()));
            self.waiting.extend(now);
            stream = later;
            if stream.is_empty() {
                break;
            }
            self.cut();
        }
        match self.bytes > MAX_BYTES || self.frames.len() >= MAX_FRAMES {
            true => Err(ChannelError::Overflow),
            false => Ok(()),
        }
    }

    /// Turns the waiting items into a frame.
    fn cut(&mut self) {
        self.frames.push_back(std::mem::take(&mut self.waiting));
    }

    /// Discards frames that have been acknowledged.
    fn acknowledged(&mut self, now: Duration, number: u64) -> Result<(), ChannelError> {
        let sent = self.number(self.frames.len()) - 1;
        if number > sent {
            return Err(ChannelError::NeverSent { acknowledged: number, sent });
        }
        while self.first <= number {
            let Some(frame) = self.frames.pop_front() else { break };
            self.first += 1;
            self.bytes -= frame.len();
            self.sent = self.sent.saturating_sub(1);
            self.resend_at = now + RESEND_AFTER;
        }
        Ok(())
    }

    /// Resends all frames after `received`, unless they have only just been resent.
    fn repeat(&mut self, now: Duration, received: u64) {
        let is_late = received + 1 != self.first;
        let is_done = self.repeated.is_some_and(|(first, when)| {
            first == self.first && now.saturating_sub(when) < REPEAT_AFTER
        });
        if !is_late && !is_done {
            self.repeated = Some((self.first, now));
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Bytes32;
    use worldwire_uru::types::NetError;

    use super::super::frames::{EndSession, Reply, Request, UpItem, decode_item};
    use super::*;

    /// Two ends, and the items that the second one received.
    struct Pair {
        now: Duration,
        ends: [Channel; 2],
        received: Vec<u64>,
    }

    impl Pair {
        fn new() -> Self {
            let now = Duration::ZERO;
            Self { now, ends: [Channel::new(now), Channel::new(now)], received: Vec::new() }
        }

        fn push(&mut self, session: u64) {
            self.ends[0].push(&UpItem::from(EndSession { session })).unwrap();
        }

        /// Transmits everything that one end has to send, except the frames that `lost` selects.
        /// Returns the number of payloads.
        fn transmit(&mut self, from: usize, mut lost: impl FnMut(u64) -> bool) -> usize {
            let (now, mut payloads) = (self.now, 0);
            let [one, other] = &mut self.ends;
            let (from, to) = if from == 0 { (one, other) } else { (other, one) };
            while let Some(frame) = from.poll_transmit(now) {
                let head = frame.head(head());
                payloads += usize::from(head.sequence != 0);
                if lost(head.sequence) {
                    continue;
                }
                let received = &mut self.received;
                to.receive(now, &head, frame.payload, |item| match decode_item(item).unwrap() {
                    Some(UpItem::EndSession(end)) => received.push(end.session),
                    other => panic!("{other:?}"),
                })
                .unwrap();
            }
            payloads
        }

        fn advance(&mut self, time: Duration) {
            self.now += time;
            self.ends.iter_mut().for_each(|end| end.timeout(self.now));
        }
    }

    fn head() -> Head {
        Head { incarnation: 1, ..Head::of(1) }
    }

    #[test]
    fn items_that_wait_share_a_frame() {
        let mut pair = Pair::new();
        (1..=100).for_each(|session| pair.push(session));
        assert_eq!(pair.transmit(0, |_| false), 1);
        assert_eq!(pair.received, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_gap_is_filled_at_once() {
        let mut pair = Pair::new();
        for session in 1..=3 {
            pair.push(session);
            pair.transmit(0, |sequence| sequence == 2);
        }
        assert_eq!(pair.received, [1]);
        pair.transmit(1, |_| false);
        assert_eq!(pair.transmit(0, |_| false), 2, "the lost frame and the one after it");
        assert_eq!(pair.received, [1, 2, 3]);
    }

    #[test]
    fn the_loss_of_the_last_frame_is_noticed_by_the_next_beat() {
        let mut pair = Pair::new();
        pair.push(1);
        pair.transmit(0, |_| true);
        pair.advance(BEAT);
        pair.transmit(0, |_| false);
        pair.transmit(1, |_| false);
        pair.transmit(0, |_| false);
        assert_eq!(pair.received, [1]);
    }

    #[test]
    fn frames_without_acknowledgement_are_sent_again_after_a_second() {
        let mut pair = Pair::new();
        pair.push(1);
        assert_eq!(pair.transmit(0, |_| false), 1);
        pair.advance(RESEND_AFTER - Duration::from_millis(1));
        assert_eq!(pair.transmit(0, |_| false), 0);
        pair.advance(Duration::from_millis(1));
        assert_eq!(pair.transmit(0, |_| false), 1);
        assert_eq!(pair.received, [1], "the second copy is a repetition");
        pair.transmit(1, |_| false);
        pair.advance(RESEND_AFTER);
        assert_eq!(pair.transmit(0, |_| false), 0);
    }

    #[test]
    fn long_items_continue_in_the_next_frame() {
        let body = vec![7; MAX_PAYLOAD * 2];
        let request = Request { number: 1, session: 2, kind: 3, body: Bytes32::new(body) };
        let (mut one, mut other) = (Channel::new(Duration::ZERO), Channel::new(Duration::ZERO));
        one.push(&UpItem::from(request.clone())).unwrap();
        let (mut frames, mut found) = (0, Vec::new());
        while let Some(frame) = one.poll_transmit(Duration::ZERO) {
            frames += usize::from(!frame.payload.is_empty());
            let head = frame.head(head());
            let take = |item: &[u8]| found.push(item.to_vec());
            other.receive(Duration::ZERO, &head, frame.payload, take).unwrap();
        }
        assert_eq!((frames, found.len()), (3, 1));
        assert_eq!(decode_item(&found[0]).unwrap(), Some(UpItem::from(request)));
    }

    #[test]
    fn a_silent_end_is_given_up_within_the_bounds() {
        let body = Bytes32::new(vec![0; 1 << 20]);
        let reply = Reply { number: 1, notices: 0, result: NetError::Success, body };
        let mut end = Channel::new(Duration::ZERO);
        let mut pushed = 0;
        let error = loop {
            match end.push(&super::super::frames::DownItem::from(reply.clone())) {
                Ok(()) => pushed += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((pushed, error), (63, ChannelError::Overflow));

        let mut end = Channel::new(Duration::ZERO);
        let item = UpItem::from(EndSession { session: 1 });
        for _ in 0..MAX_FRAMES {
            end.push(&item).unwrap();
            while end.poll_transmit(Duration::ZERO).is_some() {}
        }
        assert_eq!(end.push(&item), Err(ChannelError::Overflow));
    }

    #[test]
    fn acknowledgements_of_nothing_are_refused() {
        let mut end = Channel::new(Duration::ZERO);
        let head = Head { received: 1, ..head() };
        let error = end.receive(Duration::ZERO, &head, &[], |_| ()).unwrap_err();
        assert_eq!(error, ChannelError::NeverSent { acknowledged: 1, sent: 0 });
    }
}
