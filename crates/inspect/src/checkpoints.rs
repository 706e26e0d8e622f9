//! Checkpoints: places in the capture from which later conversations can be read without what
//! precedes them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use worldwire_capture::Mark;
use worldwire_dissect::{Checkpoint, Dissection};

use crate::recording::Recording;
use crate::state::State;

/// All checkpoints so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    places: Vec<Place>,
    /// Their estimated memory.
    bytes: u64,
}

#[derive(Debug)]
struct Place {
    mark: Mark,
    checkpoint: Checkpoint,
}

/// The distance between checkpoints, in bytes of the file, if memory allows.
const DISTANCE: u64 = 2 << 20;
/// The maximum estimated memory of all checkpoints.
const MAX_BYTES: u64 = 64 << 20;
/// The estimated memory of a checkpoint, and of each conversation in it.
const PLACE: u64 = 4 << 10;
const CONVERSATION: u64 = 512;

impl Checkpoints {
    /// Whether a checkpoint is due at this position of the file. Checkpoints are spread evenly,
    /// within the limit on their memory.
    pub(crate) fn is_due(&self, at: u64, recording: &Recording) -> bool {
        let kept = self.lock();
        let last = kept.places.last().map_or(0, |place| place.mark.offset());
        let share = u128::from(MAX_BYTES) * u128::from(at) / u128::from(recording.length().max(1));
        at >= last.saturating_add(DISTANCE) && u128::from(kept.bytes) <= share
    }

    pub(crate) fn add(&self, mark: Mark, checkpoint: Checkpoint) {
        let mut kept = self.lock();
        kept.bytes += PLACE + CONVERSATION * checkpoint.open_conversations() as u64;
        kept.places.push(Place { mark, checkpoint });
    }

    /// Reads a conversation with its captured bytes, from the last checkpoint before its beginning;
    /// `None` is the beginning of the capture.
    pub(crate) fn resume(&self, state: &State, stream: u64) -> (Dissection, Option<Mark>) {
        let kept = self.lock();
        let (recording, facts) = (&state.recording, state.facts());
        let begins_after = |place: &Place| place.checkpoint.next_conversation() <= stream;
        let count = kept.places.partition_point(begins_after);
        match count.checked_sub(1).and_then(|last| kept.places.get(last)) {
            Some(Place { mark, checkpoint }) => {
                let dissection = checkpoint.resume(recording.options_of(stream), facts);
                (dissection, Some(mark.clone()))
            }
            None => (recording.dissection_of(stream, facts), None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
