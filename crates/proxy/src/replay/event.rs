//! What a replay reports while it runs.

use core::fmt;
use core::time::Duration;

use super::script::Step;

/// A message of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number within the conversation, counted from 1.
    pub number: u64,
    /// When it was recorded, since the first packet of the capture.
    pub since: Duration,
    /// The number of its packet in the capture.
    pub packet: Option<u64>,
    /// Its name.
    pub name: String,
}

/// Something that happened in a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayEvent {
    /// Setup is complete: messages can be sent.
    Established,
    /// A message was sent to the peer.
    Sent {
        /// The message in the recording.
        place: Place,
        /// The fields that were adapted.
        adapted: Vec<&'static str>,
    },
    /// The peer sent what was recorded.
    Received {
        /// The message in the recording.
        place: Place,
    },
    /// The peer sent a message that the replay does not wait for.
    Ignored {
        /// Its name.
        name: String,
    },
    /// Rules changed or dropped an outgoing message.
    Changed {
        /// Its name.
        name: String,
        /// Whether it was dropped.
        is_dropped: bool,
    },
    /// A rule logged this.
    Log(String),
    /// Something is wrong, but the replay continues.
    Problem(String),
}

/// What a completed replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Messages in the recording.
    pub recorded: u64,
    /// Messages that were sent to the peer.
    pub sent: u64,
    /// The number of sent messages that were adapted.
    pub adapted: u64,
    /// Messages from the peer that were expected.
    pub received: u64,
    /// Messages from the peer that were ignored.
    pub ignored: u64,
    /// Outgoing messages that rules changed or dropped.
    pub changed: u64,
    /// Recorded messages from both sides that are neither replayed nor expected, such as pings.
    pub skipped: u64,
    /// How long it took.
    pub time: Duration,
}

impl Place {
    pub(super) fn of(step: &Step) -> Self {
        let Step { number, since, packet, .. } = *step;
        Self { number, since, packet, name: step.name.clone() }
    }
}

impl fmt::Display for Place {
    /// `message 7, auth.AcctLoginReply, recorded at 0.125 s, packet 31`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, since, packet, name } = self;
        write!(f, "message {number}, {name}, recorded at {:.6} s", since.as_secs_f64())?;
        match packet {
            Some(packet) => write!(f, " in packet {packet}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ReplaySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorded, sent, adapted, received, ignored, changed, skipped, .. } = self;
        write!(f, "{recorded} recorded, {sent} sent, {adapted} adapted, {received} received")?;
        write!(f, ", {ignored} ignored, {changed} changed by rules, {skipped} skipped")
    }
}
