//! The data that a report shows beyond the totals. Its size is bounded, too.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_dissect::stats::{Counted, MAX_NAMES, Rates};
use worldwire_dissect::{Overview, Time};

/// The maximum number of conversations kept, which are the largest ones.
pub(super) const MAX_CONVERSATIONS: usize = 100;
/// The maximum number of problems kept, which are the first ones.
pub(super) const MAX_PROBLEMS: usize = 100;
/// The maximum length of a problem's text in bytes.
const MAX_TEXT: usize = 500;
/// The number of size classes: one for each power of two, and the last for everything larger.
pub(super) const SIZES: usize = 32;

/// Messages over time by name, sizes, conversations, and problems.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// Messages over time, by name.
    pub(super) rates: HashMap<Box<str>, Rates>,
    /// Messages by size, in classes of `ilog2(bytes) + 1`, or 0 for empty ones; by sender.
    pub(super) sizes: [[u64; 2]; SIZES],
    conversations: Vec<ConversationRow>,
    /// The first problems.
    pub(super) problems: Vec<ProblemRow>,
}

/// A conversation.
#[derive(Clone, Debug)]
pub(super) struct ConversationRow {
    pub(super) stream: u64,
    pub(super) family: &'static str,
    pub(super) ends: [SocketAddr; 2],
    pub(super) first: Time,
    pub(super) last: Time,
    /// Captured bytes, by [`Side::index`].
    pub(super) bytes: [u64; 2],
    pub(super) messages: u64,
    pub(super) gaps: u64,
    pub(super) problems: u64,
}

/// A part that could not be decoded.
#[derive(Clone, Debug)]
pub(super) struct ProblemRow {
    pub(super) stream: u64,
    pub(super) from: Side,
    pub(super) since: Duration,
    pub(super) text: Box<str>,
}

impl Details {
    pub(super) fn add(&mut self, item: &Counted) {
        if let Some(text) = &item.problem
            && self.problems.len() < MAX_PROBLEMS
        {
            let end = (0..=text.len().min(MAX_TEXT)).rev().find(|end| text.is_char_boundary(*end));
            let text = text.get(..end.unwrap_or(0)).unwrap_or_default().into();
            let Counted { stream, from, since, .. } = *item;
            self.problems.push(ProblemRow { stream, from, since, text });
        }
        if !item.is_message {
            return;
        }
        let class = item.bytes.checked_ilog2().map_or(0, |power| power as usize + 1);
        if let Some(size) = self.sizes.get_mut(class.min(SIZES - 1)) {
            size[item.from.index()] += 1;
        }
        if let Some(rates) = self.rates.get_mut(&item.name) {
            rates.add(item.since, item.from);
        } else if self.rates.len() < MAX_NAMES {
            let mut rates = Rates::default();
            rates.add(item.since, item.from);
            self.rates.insert(item.name.clone(), rates);
        }
    }

    pub(super) fn add_conversation(&mut self, overview: &Overview) {
        self.conversations.push(ConversationRow {
            stream: overview.stream,
            family: overview.family.map_or("unknown", |family| family.name()),
            ends: [overview.client, overview.server],
            first: overview.first,
            last: overview.last,
            bytes: overview.bytes,
            messages: overview.messages.total(),
            gaps: overview.gaps,
            problems: overview.problems,
        });
        if self.conversations.len() >= 8 * MAX_CONVERSATIONS {
            self.forget();
        }
    }

    /// The largest conversations, largest first.
    pub(super) fn conversations(&mut self) -> &[ConversationRow] {
        self.forget();
        &self.conversations
    }

    /// Keeps only the largest conversations.
    fn forget(&mut self) {
        let size = |row: &ConversationRow| core::cmp::Reverse(row.bytes.iter().sum::<u64>());
        self.conversations.sort_by_key(|row| (size(row), row.stream));
        self.conversations.truncate(MAX_CONVERSATIONS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_problems_and_sizes_are_bounded() {
        let mut details = Details::default();
        for number in 0..MAX_NAMES as u64 + 9 {
            let name = format!("toy.{number}");
            details.add(&Counted {
                stream: 0,
                family: "toy",
                from: Side::Client,
                since: Duration::ZERO,
                name: name.into(),
                bytes: u64::MAX >> (number % 64),
                transaction: None,
                is_message: true,
                is_problem: true,
                lacks_definition: false,
                problem: Some("\u{e4}".repeat(MAX_TEXT).into()),
            });
        }
        assert_eq!((details.rates.len(), details.problems.len()), (MAX_NAMES, MAX_PROBLEMS));
        assert!(details.problems.iter().all(|problem| problem.text.len() <= MAX_TEXT));
        let counted: u64 = details.sizes.iter().flatten().sum();
        assert_eq!(counted, MAX_NAMES as u64 + 9);
    }
}
