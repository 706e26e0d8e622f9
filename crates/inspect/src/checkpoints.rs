//! Checkpoints: places in the capture where reading can start. Conversations that begin later can
//! be read from there, and so can the rest of any conversation whose state was copied.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use worldwire_capture::Mark;
use worldwire_dissect::{Checkpoint, Dissection, Fork};

use crate::index::Row;
use crate::recording::Recording;
use crate::state::State;

/// All checkpoints so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    places: Vec<Place>,
    /// The estimated memory of all places.
    bytes: u64,
    /// The copied states of each conversation, in order.
    forks: HashMap<u64, Vec<Forked>>,
    fork_bytes: u64,
    /// The number of copies.
    fork_count: u64,
}

#[derive(Clone, Debug)]
struct Place {
    mark: Mark,
    checkpoint: Arc<Checkpoint>,
}

/// The state of a conversation at a place.
#[derive(Clone, Debug)]
struct Forked {
    /// Only one thread copies it at a time.
    fork: Arc<Mutex<Fork>>,
    bytes: u64,
    place: usize,
    /// The number of earlier rows of the conversation.
    ordinal: u32,
    /// The number of its payload bytes plus the number of its gaps: a sum that grows whenever
    /// something happens.
    events: u64,
}

impl Kept {
    /// Drops every second copy of each conversation to make room as the file grows.
    fn thin(&mut self) {
        let Self { forks, fork_bytes, fork_count, .. } = self;
        for forks in forks.values_mut() {
            let mut number = 0_usize;
            forks.retain(|forked| {
                number += 1;
                let stays = number.is_multiple_of(2);
                if !stays {
                    *fork_bytes = fork_bytes.saturating_sub(forked.bytes);
                    *fork_count = fork_count.saturating_sub(1);
                }
                stays
            });
        }
        forks.retain(|_, forks| !forks.is_empty());
    }
}

/// Copied states of a place, each with the number of payload bytes and gaps before it.
#[derive(Debug)]
pub(crate) struct NewForks {
    place: usize,
    forks: Vec<(u64, Fork)>,
}

/// Where to begin reading a conversation.
pub(crate) struct Beginning {
    pub(crate) dissection: Dissection,
    /// `None` for the beginning of the capture.
    pub(crate) mark: Option<Mark>,
    /// The number of earlier rows of the conversation.
    pub(crate) ordinal: u32,
}

/// The distance between checkpoints, in bytes of the file, if memory allows.
const DISTANCE: u64 = 2 << 20;
/// The maximum estimated memory of all checkpoints and of all copied states.
const MAX_BYTES: u64 = 32 << 20;
const MAX_FORK_BYTES: u64 = 64 << 20;
/// The estimated memory of a checkpoint and of each conversation in it.
const PLACE: u64 = 4 << 10;
const CONVERSATION: u64 = 512;
/// The estimated memory of a copied state while none exists yet.
const FORK: u64 = 16 << 10;

impl Checkpoints {
    /// Whether a checkpoint is due at this position of the file. Checkpoints are spread evenly,
    /// within the limit on their memory.
    pub(crate) fn is_due(&self, at: u64, recording: &Recording) -> bool {
        let kept = self.lock();
        let last = kept.places.last().map_or(0, |place| place.mark.offset());
        at >= last.saturating_add(DISTANCE) && kept.bytes <= share(MAX_BYTES, at, recording)
    }

    /// Adds a place and copies the states of open conversations as far as memory allows, starting
    /// with those whose last copy is the oldest. The copies are used once they are
    /// [kept](Self::keep).
    pub(crate) fn add(
        &self,
        mark: Mark,
        checkpoint: Checkpoint,
        dissection: &Dissection,
        recording: &Recording,
    ) -> NewForks {
        let mut kept = self.lock();
        let (place, at) = (kept.places.len(), mark.offset());
        kept.bytes += PLACE + CONVERSATION * checkpoint.open_conversations() as u64;
        kept.places.push(Place { mark, checkpoint: Arc::new(checkpoint) });
        let mut waiting: Vec<(usize, u64)> = Vec::new();
        let mut happened: HashMap<u64, u64> = HashMap::new();
        for overview in dissection.overviews() {
            let stream = overview.stream;
            let events = overview.bytes.iter().sum::<u64>() + overview.gaps;
            let last = kept.forks.get_mut(&stream).and_then(|forks| forks.last_mut());
            match last {
                // Nothing has happened since, so this is also the state at the new place.
                Some(last) if last.events == events => last.place = place,
                Some(last) => waiting.push((last.place, stream)),
                None => waiting.push((0, stream)),
            }
            happened.insert(stream, events);
        }
        waiting.sort_unstable();
        let typical = kept.fork_bytes.checked_div(kept.fork_count).unwrap_or(FORK).max(1);
        if recording.is_followed() && kept.fork_bytes > MAX_FORK_BYTES / 2 {
            kept.thin();
        }
        let budget = match recording.is_followed() {
            true => MAX_FORK_BYTES,
            false => share(MAX_FORK_BYTES, at, recording),
        };
        let room = budget.saturating_sub(kept.fork_bytes);
        let count = usize::try_from(room / typical).unwrap_or(usize::MAX);
        let wanted: HashSet<u64> = waiting.into_iter().take(count).map(|(_, it)| it).collect();
        let forks = dissection.forks(|stream, _| wanted.contains(&stream)).into_iter();
        let events = |stream| happened.get(&stream).copied().unwrap_or(0);
        let forks: Vec<_> = forks.map(|fork| (events(fork.stream()), fork)).collect();
        kept.fork_bytes += forks.iter().map(|(_, fork)| fork.bytes() as u64).sum::<u64>();
        kept.fork_count += forks.len() as u64;
        NewForks { place, forks }
    }

    /// Keeps copied states, once the index has the rows before their place. `ordinal` returns the
    /// number of rows that a conversation has there.
    pub(crate) fn keep(&self, new: NewForks, ordinal: impl Fn(u64) -> u32) {
        let mut kept = self.lock();
        let place = new.place;
        for (events, fork) in new.forks {
            let (stream, bytes) = (fork.stream(), fork.bytes() as u64);
            let (fork, ordinal) = (Arc::new(Mutex::new(fork)), ordinal(stream));
            let forked = Forked { fork, bytes, place, ordinal, events };
            kept.forks.entry(stream).or_default().push(forked);
        }
    }

    /// Where to begin reading the conversation of a row, with its captured bytes: the last place
    /// before the row where its state was copied, otherwise the last place before the conversation
    /// began. `earlier` skips that many copies, because the message may begin before the last one.
    pub(crate) fn before(&self, row: &Row, state: &State, earlier: usize) -> Beginning {
        let (recording, facts) = (&state.recording, state.facts());
        let stream = u64::from(row.stream);
        let options = recording.options_of(stream);
        let kept = self.lock();
        let forks = kept.forks.get(&stream).map_or(&[][..], Vec::as_slice);
        let count = forks.partition_point(|forked| forked.ordinal <= row.ordinal);
        let last = count.checked_sub(1 + earlier).and_then(|last| forks.get(last)).cloned();
        if let Some(Forked { fork, place, ordinal, .. }) = last
            && let Some(Place { mark, checkpoint }) = kept.places.get(place).cloned()
        {
            drop(kept);
            let fork = fork.lock().unwrap_or_else(PoisonError::into_inner);
            let resumed = checkpoint.resume_fork(&fork, options.clone(), facts.clone());
            drop(fork);
            if let Some(dissection) = resumed {
                return Beginning { dissection, mark: Some(mark), ordinal };
            }
            return Self::start(state, stream, facts);
        }
        let begins_after = |place: &Place| place.checkpoint.next_conversation() <= stream;
        let count = kept.places.partition_point(begins_after);
        let place = count.checked_sub(1).and_then(|last| kept.places.get(last)).cloned();
        drop(kept);
        match place {
            Some(Place { mark, checkpoint }) => {
                let dissection = checkpoint.resume(options, facts);
                Beginning { dissection, mark: Some(mark), ordinal: 0 }
            }
            None => Self::start(state, stream, facts),
        }
    }

    fn start(state: &State, stream: u64, facts: worldwire_dissect::Facts) -> Beginning {
        let dissection = state.recording.dissection_of(stream, facts);
        Beginning { dissection, mark: None, ordinal: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a budget that may be spent up to this position of the file.
fn share(budget: u64, at: u64, recording: &Recording) -> u64 {
    let share = u128::from(budget) * u128::from(at) / u128::from(recording.length().max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(budget)
}
