//! What was sent to a client and may yet arrive: a log of sections, and what each one carried.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::layout::Mask;
use super::view::{NO_ENTRY, View};
use crate::frame::MAX_NEWER;

/// The most sections of a client whose fate is open, or that may yet arrive. Nothing more is sent
/// to it until there are fewer.
pub(super) const MAX_SECTIONS: usize = 1_024;
/// The most entries of sections that were given up which are kept in mind.
const MAX_PAST: usize = 16_384;

/// What is known of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Open,
    /// It arrived.
    Delivered,
    /// It counts as lost, and may still arrive.
    Lost,
    /// It did not arrive, or nobody will ever know.
    Expired,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Create,
    /// A pending update of these.
    Pending(Mask),
    /// A plain update of these.
    Plain(Mask),
    /// A deletion; whether nothing that was sent before may arrive behind it.
    Delete {
        is_clean: bool,
    },
}

impl What {
    pub(super) const fn mask(self) -> Mask {
        match self {
            Self::Pending(mask) | Self::Plain(mask) => mask,
            Self::Create | Self::Delete { .. } => 0,
        }
    }
}

/// One operation of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) what: What,
    /// The entry before it about the same view.
    pub(super) before: u64,
    /// The id of the view.
    pub(super) id: u16,
    /// Its section.
    section: u64,
}

/// A section that was not expected any more, and whose acknowledgement may come all the same.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) entries: Box<[Entry]>,
    /// That of the section.
    pub(super) stamp: u64,
    /// When it was given up.
    pub(super) at: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: Option<u64>,
    /// Its first entry.
    first: u64,
    entries: u32,
    /// Values that changed later are not in it.
    stamp: u64,
    fate: Fate,
    at: Duration,
}

/// The log of a client. Sections and entries are numbered from 0; the oldest leave it first.
#[derive(Debug, Default)]
pub(super) struct Flight {
    sections: VecDeque<Sent>,
    first_section: u64,
    entries: VecDeque<Entry>,
    first_entry: u64,
    /// Lost sections, and when they can arrive no more; `None` before the next tick tells the time.
    late: VecDeque<(Option<Duration>, u64)>,
    newest: Option<u64>,
    /// By their numbers, and how many entries they have.
    past: BTreeMap<u64, Past>,
    past_entries: usize,
}

impl Flight {
    pub(super) fn is_full(&self) -> bool {
        self.sections.len() >= MAX_SECTIONS
    }

    /// How many sections have no fate yet.
    pub(super) fn open(&self) -> usize {
        self.sections.iter().filter(|sent| sent.fate == Fate::Open).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The number of the entry that is added next.
    pub(super) fn next_entry(&self) -> u64 {
        self.first_entry + self.entries.len() as u64
    }

    /// The number of the newest section that has one.
    pub(super) const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Begins a section.
    pub(super) fn begin(&mut self, stamp: u64, now: Duration) {
        let first = self.first_entry + self.entries.len() as u64;
        let fate = Fate::Open;
        self.sections.push_back(Sent { number: None, first, entries: 0, stamp, fate, at: now });
    }

    /// Adds an entry to the section that was begun last; returns its number.
    #[inline]
    pub(super) fn push(&mut self, slot: u32, view: &View, what: What) -> u64 {
        let number = self.next_entry();
        let View { generation, last: before, id, .. } = *view;
        let section = self.first_section + (self.sections.len() as u64).saturating_sub(1);
        self.entries.push_back(Entry { slot, generation, what, before, id, section });
        if let Some(sent) = self.sections.back_mut() {
            sent.entries += 1;
        }
        number
    }

    /// Whether the section that was begun last has no number yet.
    pub(super) fn is_unsent(&self) -> bool {
        self.sections.back().is_some_and(|last| last.number.is_none())
    }

    /// Takes back the last entry of the section that was begun last and has no number; `None`
    /// when there are none left, and the section is taken back too.
    pub(super) fn take_back(&mut self) -> Option<Entry> {
        let last = self.sections.back_mut().filter(|last| last.number.is_none())?;
        if last.entries == 0 {
            self.sections.pop_back();
            return None;
        }
        last.entries -= 1;
        self.entries.pop_back()
    }

    /// Gives it its number, which is above all others.
    pub(super) fn number(&mut self, number: u64) {
        if let Some(last) = self.sections.back_mut() {
            last.number = Some(number);
            self.newest = Some(number);
        }
    }

    /// The section of a number.
    pub(super) fn find(&self, number: u64) -> Option<u64> {
        // Only the last one can be without a number.
        let is_before = |sent: &Sent| sent.number.is_some_and(|found| found < number);
        let index = self.sections.partition_point(is_before);
        let sent = self.sections.get(index)?;
        (sent.number == Some(number)).then(|| self.first_section + index as u64)
    }

    fn sent(&self, section: u64) -> Option<&Sent> {
        self.sections.get(usize::try_from(section.checked_sub(self.first_section)?).ok()?)
    }

    pub(super) fn fate(&self, section: u64) -> Option<Fate> {
        self.sent(section).map(|sent| sent.fate)
    }

    pub(super) fn stamp(&self, section: u64) -> u64 {
        self.sent(section).map_or(0, |sent| sent.stamp)
    }

    /// Says what became of a section. A lost one is kept in mind until it can arrive no more.
    pub(super) fn decide(&mut self, section: u64, fate: Fate) {
        let Some(index) = section.checked_sub(self.first_section) else { return };
        let sent = usize::try_from(index).ok().and_then(|at| self.sections.get_mut(at));
        let Some(sent) = sent else { return };
        sent.fate = fate;
        if fate == Fate::Lost {
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

    /// Entries about a view, from this one backwards to the one behind `end`, with the fates of
    /// their sections and their stamps.
    pub(super) fn chain(
        &self,
        last: u64,
        end: Option<u64>,
    ) -> impl Iterator<Item = (u64, Entry, Fate, u64)> {
        let mut next = last;
        core::iter::from_fn(move || {
            if next == NO_ENTRY || Some(next) == end {
                return None;
            }
            let number = next;
            let entry = self.entry(number)?;
            let sent = self.sent(entry.section)?;
            next = entry.before;
            Some((number, entry, sent.fate, sent.stamp))
        })
    }

    /// Sections that were lost since the last tick can arrive until then.
    pub(super) fn wait_until(&mut self, until: Duration) {
        let unset = self.late.iter_mut().rev().take_while(|(until, _)| until.is_none());
        unset.for_each(|(room, _)| *room = Some(until));
    }

    /// A lost section that can arrive no more.
    pub(super) fn next_expired(&mut self, now: Duration) -> Option<u64> {
        let (Some(until), section) = *self.late.front()? else { return None };
        if until > now {
            return None;
        }
        self.late.pop_front();
        Some(section)
    }

    /// The oldest section that was sent this long ago and has no fate.
    pub(super) fn overdue(&self, now: Duration, give_up: Duration) -> Option<u64> {
        let is_old = |sent: &&Sent| sent.at.saturating_add(give_up) <= now;
        let index =
            self.sections.iter().take_while(is_old).position(|sent| sent.fate == Fate::Open);
        index.map(|index| self.first_section + index as u64)
    }

    /// Keeps in mind a section that is given up.
    pub(super) fn remember(&mut self, section: u64, at: Duration) {
        let range = self.entries_of(section);
        let Some(&Sent { number: Some(number), stamp, .. }) = self.sent(section) else { return };
        let entries: Box<[Entry]> = range.filter_map(|number| self.entry(number)).collect();
        self.past_entries += entries.len();
        self.past.insert(number, Past { entries, stamp, at });
        let reached = self.newest.unwrap_or(0).saturating_sub(MAX_NEWER.into());
        while let Some(first) = self.past.first_entry()
            && (*first.key() < reached || self.past_entries > MAX_PAST)
        {
            self.past_entries -= first.remove().entries.len();
        }
    }

    /// Takes back what was kept in mind of the section with a number.
    pub(super) fn recall(&mut self, number: u64) -> Option<Past> {
        let past = self.past.remove(&number)?;
        self.past_entries -= past.entries.len();
        Some(past)
    }

    /// What is kept in mind.
    pub(super) fn past(&self) -> impl Iterator<Item = &Past> {
        self.past.values()
    }

    /// Forgets the oldest sections that are done with.
    pub(super) fn trim(&mut self) {
        while let Some(sent) = self.sections.front()
            && matches!(sent.fate, Fate::Delivered | Fate::Expired)
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

    /// Forgets everything. Numbers go on.
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
