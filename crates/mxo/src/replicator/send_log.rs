//! The log of sections that were sent to a client and may still arrive, with their contents.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::layout::Mask;
use super::view::{NO_ENTRY, View};
use crate::frame::MAX_NEWER;

/// The maximum number of sections that are unacknowledged or may still arrive. No more sections are
/// sent to the client until the number drops below this.
pub(super) const MAX_SECTIONS: usize = 1_024;
/// The maximum number of remembered entries of given-up sections.
const MAX_PAST: usize = 16_384;

/// The outcome of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not known yet.
    Open,
    /// The section arrived.
    Delivered,
    /// Considered lost, but may still arrive.
    Lost,
    /// The section did not arrive, or the outcome will never be known.
    Expired,
}

/// The contents of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Create,
    /// A pending update of these values.
    Pending(Mask),
    /// A plain update of these values.
    Plain(Mask),
    /// A deletion. It is clean if nothing sent before it can arrive after it.
    Delete {
        is_clean: bool,
    },
}

impl Content {
    pub(super) const fn mask(self) -> Mask {
        match self {
            Self::Pending(mask) | Self::Plain(mask) => mask,
            Self::Create | Self::Delete { .. } => 0,
        }
    }
}

/// One operation in a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) content: Content,
    /// The previous entry for the same view.
    pub(super) before: u64,
    /// The view's ID.
    pub(super) id: u16,
    /// The section that contains it.
    section: u64,
}

/// A given-up section whose acknowledgement may still arrive.
#[derive(Debug)]
pub(super) struct GivenUp {
    pub(super) entries: Box<[Entry]>,
    /// The section's stamp.
    pub(super) stamp: u64,
    /// When it was given up.
    pub(super) at: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: Option<u64>,
    /// The number of its first entry.
    first: u64,
    entries: u32,
    /// The section's stamp. Values that changed later are not in the section.
    stamp: u64,
    outcome: Outcome,
    at: Duration,
}

/// A client's log. Sections and entries are numbered from 0; the oldest are removed first.
#[derive(Debug, Default)]
pub(super) struct SendLog {
    sections: VecDeque<Sent>,
    first_section: u64,
    entries: VecDeque<Entry>,
    first_entry: u64,
    /// Lost sections, and when they expire; `None` until the next tick sets the time.
    late: VecDeque<(Option<Duration>, u64)>,
    newest: Option<u64>,
    /// The given-up sections, by packet number.
    past: BTreeMap<u64, GivenUp>,
    past_entries: usize,
}

impl SendLog {
    pub(super) fn is_full(&self) -> bool {
        self.sections.len() >= MAX_SECTIONS
    }

    /// The number of sections without an outcome.
    pub(super) fn open(&self) -> usize {
        self.sections.iter().filter(|sent| sent.outcome == Outcome::Open).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The number of the next entry.
    pub(super) fn next_entry(&self) -> u64 {
        self.first_entry + self.entries.len() as u64
    }

    /// The newest packet number.
    pub(super) const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Begins a section.
    pub(super) fn begin(&mut self, stamp: u64, now: Duration) {
        let first = self.first_entry + self.entries.len() as u64;
        let outcome = Outcome::Open;
        self.sections.push_back(Sent { number: None, first, entries: 0, stamp, outcome, at: now });
    }

    /// Adds an entry to the newest section and returns its number.
    #[inline]
    pub(super) fn push(&mut self, slot: u32, view: &View, content: Content) -> u64 {
        let number = self.next_entry();
        let View { generation, last: before, id, .. } = *view;
        let section = self.first_section + (self.sections.len() as u64).saturating_sub(1);
        self.entries.push_back(Entry { slot, generation, content, before, id, section });
        if let Some(sent) = self.sections.back_mut() {
            sent.entries += 1;
        }
        number
    }

    /// Whether the newest section has no packet number yet.
    pub(super) fn is_unsent(&self) -> bool {
        self.sections.back().is_some_and(|last| last.number.is_none())
    }

    /// Removes the last entry of the newest section, which must be unsent. If no entry is left,
    /// removes the section and returns `None`.
    pub(super) fn take_back(&mut self) -> Option<Entry> {
        let last = self.sections.back_mut().filter(|last| last.number.is_none())?;
        if last.entries == 0 {
            self.sections.pop_back();
            return None;
        }
        last.entries -= 1;
        self.entries.pop_back()
    }

    /// Assigns the newest section its packet number, which is higher than all others.
    pub(super) fn number(&mut self, number: u64) {
        if let Some(last) = self.sections.back_mut() {
            last.number = Some(number);
            self.newest = Some(number);
        }
    }

    /// The section in a packet.
    pub(super) fn find(&self, number: u64) -> Option<u64> {
        // Only the last section can lack a number.
        let is_before = |sent: &Sent| sent.number.is_some_and(|found| found < number);
        let index = self.sections.partition_point(is_before);
        let sent = self.sections.get(index)?;
        (sent.number == Some(number)).then(|| self.first_section + index as u64)
    }

    fn sent(&self, section: u64) -> Option<&Sent> {
        self.sections.get(usize::try_from(section.checked_sub(self.first_section)?).ok()?)
    }

    pub(super) fn outcome(&self, section: u64) -> Option<Outcome> {
        self.sent(section).map(|sent| sent.outcome)
    }

    pub(super) fn stamp(&self, section: u64) -> u64 {
        self.sent(section).map_or(0, |sent| sent.stamp)
    }

    /// Records the outcome of a section. A lost section is kept until it expires.
    pub(super) fn decide(&mut self, section: u64, outcome: Outcome) {
        let Some(index) = section.checked_sub(self.first_section) else { return };
        let sent = usize::try_from(index).ok().and_then(|at| self.sections.get_mut(at));
        let Some(sent) = sent else { return };
        sent.outcome = outcome;
        if outcome == Outcome::Lost {
            self.late.push_back((None, section));
        }
    }

    /// The numbers of a section's entries.
    pub(super) fn entries_of(&self, section: u64) -> core::ops::Range<u64> {
        self.sent(section).map_or(0..0, |sent| sent.first..sent.first + u64::from(sent.entries))
    }

    #[inline]
    pub(super) fn entry(&self, number: u64) -> Option<Entry> {
        let index = usize::try_from(number.checked_sub(self.first_entry)?).ok()?;
        self.entries.get(index).copied()
    }

    /// The entries for a view, from this one back to the one after `end`, with the outcomes and
    /// stamps of their sections.
    pub(super) fn chain(
        &self,
        last: u64,
        end: Option<u64>,
    ) -> impl Iterator<Item = (u64, Entry, Outcome, u64)> {
        let mut next = last;
        core::iter::from_fn(move || {
            if next == NO_ENTRY || Some(next) == end {
                return None;
            }
            let number = next;
            let entry = self.entry(number)?;
            let sent = self.sent(entry.section)?;
            next = entry.before;
            Some((number, entry, sent.outcome, sent.stamp))
        })
    }

    /// Makes sections that have been lost since the last tick expire at this time.
    pub(super) fn wait_until(&mut self, until: Duration) {
        let unset = self.late.iter_mut().rev().take_while(|(until, _)| until.is_none());
        unset.for_each(|(room, _)| *room = Some(until));
    }

    /// The next lost section that has expired.
    pub(super) fn next_expired(&mut self, now: Duration) -> Option<u64> {
        let (Some(until), section) = *self.late.front()? else { return None };
        if until > now {
            return None;
        }
        self.late.pop_front();
        Some(section)
    }

    /// The oldest section without an outcome that was sent at least this long ago.
    pub(super) fn overdue(&self, now: Duration, give_up: Duration) -> Option<u64> {
        let is_old = |sent: &&Sent| sent.at.saturating_add(give_up) <= now;
        let index =
            self.sections.iter().take_while(is_old).position(|sent| sent.outcome == Outcome::Open);
        index.map(|index| self.first_section + index as u64)
    }

    /// Remembers a given-up section.
    pub(super) fn remember(&mut self, section: u64, at: Duration) {
        let range = self.entries_of(section);
        let Some(&Sent { number: Some(number), stamp, .. }) = self.sent(section) else { return };
        let entries: Box<[Entry]> = range.filter_map(|number| self.entry(number)).collect();
        self.past_entries += entries.len();
        self.past.insert(number, GivenUp { entries, stamp, at });
        let reached = self.newest.unwrap_or(0).saturating_sub(MAX_NEWER.into());
        while let Some(first) = self.past.first_entry()
            && (*first.key() < reached || self.past_entries > MAX_PAST)
        {
            self.past_entries -= first.remove().entries.len();
        }
    }

    /// Takes out the given-up section of a packet.
    pub(super) fn recall(&mut self, number: u64) -> Option<GivenUp> {
        let past = self.past.remove(&number)?;
        self.past_entries -= past.entries.len();
        Some(past)
    }

    /// The given-up sections.
    pub(super) fn past(&self) -> impl Iterator<Item = &GivenUp> {
        self.past.values()
    }

    /// Removes the oldest sections that have an outcome.
    pub(super) fn trim(&mut self) {
        while let Some(sent) = self.sections.front()
            && matches!(sent.outcome, Outcome::Delivered | Outcome::Expired)
        {
            let entries = sent.entries;
            self.sections.pop_front();
            self.first_section += 1;
            for _ in 0..entries {
                self.entries.pop_front();
                self.first_entry += 1;
            }
        }
    }

    /// Forgets everything. Numbers continue.
    pub(super) fn clear(&mut self) {
        self.first_section += self.sections.len() as u64;
        self.first_entry += self.entries.len() as u64;
        self.sections.clear();
        self.entries.clear();
        self.late.clear();
        self.past.clear();
        self.past_entries = 0;
    }
}
