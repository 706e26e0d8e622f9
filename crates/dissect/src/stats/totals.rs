//! Totals over all conversations.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use worldwire_core::{Side, Tree};

use super::rates::Rates;
use super::replies::Replies;
use crate::item::{Item, NoteKind, Time};
use crate::overview::Overview;

/// The maximum number of names that are counted separately. A hostile capture can have any number
/// of them.
pub const MAX_NAMES: usize = 4096;

/// The facts about an item that are counted.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The conversation.
    pub stream: u64,
    /// Its family.
    pub family: &'static str,
    /// The sender.
    pub from: Side,
    /// The time since the first packet.
    pub since: Duration,
    /// The name, with the names of messages inside.
    pub name: Box<str>,
    /// The number of its bytes.
    pub bytes: u64,
    /// The number that connects a request with its reply.
    pub transaction: Option<u64>,
    /// Whether it is a message rather than a note.
    pub is_message: bool,
    /// Whether it is a problem; see [`Item::is_problem`].
    pub is_problem: bool,
    /// Whether it is a message without a definition.
    pub lacks_definition: bool,
    /// A description of the problem, for reports.
    pub problem: Option<Box<str>>,
}

impl Counted {
    /// Counts an item with this name; `None` for notes other than problems.
    #[must_use]
    pub fn of(item: &Item<'_>, name: &str) -> Option<Self> {
        let is_problem_note = item.note().is_some_and(|note| note.kind == NoteKind::Problem);
        let message = item.message();
        (message.is_some() || is_problem_note).then(|| {
            let mut full = String::with_capacity(name.len() + 64);
            full.push_str(name);
            item.push_inside(&mut full);
            Self {
                stream: item.stamp.stream,
                family: item.family,
                from: item.from,
                since: item.stamp.since,
                name: full.into(),
                bytes: item.bytes().len() as u64,
                transaction: message.and_then(|message| message.transaction()),
                is_message: message.is_some(),
                is_problem: item.is_problem(),
                lacks_definition: item.lacks_definition(),
                problem: None,
            }
        })
    }

    /// Adds the text of the problem, if it is one, given the item and its tree.
    #[must_use]
    pub fn with_problem(self, item: &Item<'_>, tree: &Tree<'_>) -> Self {
        if !self.is_problem {
            return self;
        }
        let problem = match (item.note(), tree.error()) {
            (Some(note), _) => note.text.clone(),
            (None, Some(error)) => format!("{}: {error}", self.name),
            (None, None) => format!("{}: cannot be decoded completely", self.name),
        };
        Self { problem: Some(problem.into()), ..self }
    }

    /// A message for tests.
    #[cfg(test)]
    pub(super) fn message(name: &str, family: &'static str, from: Side) -> Self {
        Self {
            stream: 0,
            family,
            from,
            since: Duration::ZERO,
            name: name.into(),
            bytes: 10,
            transaction: None,
            is_message: true,
            is_problem: false,
            lacks_definition: false,
            problem: None,
        }
    }
}

/// Messages, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of messages.
    pub messages: u64,
    /// The sum of their bytes.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

/// The messages of one name.
#[derive(Clone, Copy, Debug)]
pub struct NameRow {
    /// Their family.
    pub family: &'static str,
    /// The number that each side sent, by [`Side::index`].
    pub sent: [u64; 2],
    /// The sum of their bytes.
    pub bytes: u64,
}

/// Totals over all selected items and conversations. However many there are, the totals stay small:
/// they hold at most [`MAX_NAMES`] names, and the other parts are bounded as well.
#[derive(Debug)]
pub struct Totals {
    /// Only this conversation.
    stream: Option<u64>,
    /// Whether a filter selects the items.
    pub is_filtered: bool,
    /// The number of conversations.
    pub conversations: u64,
    /// Recognised conversations by family.
    pub families: BTreeMap<&'static str, u64>,
    /// Captured bytes by [`Side::index`].
    pub captured: [u64; 2],
    /// Captured bytes of conversations that were not recognised.
    pub unrecognised_bytes: u64,
    /// Gaps in the capture.
    pub gaps: u64,
    /// The first and the last packet.
    pub span: Option<(Time, Time)>,
    /// Messages by sender, by [`Side::index`].
    pub sent: [Amount; 2],
    /// Messages without a definition.
    pub undefined: Amount,
    /// Messages that cannot be decoded completely.
    pub incomplete: Amount,
    /// Notes about problems.
    pub problems: u64,
    names: HashMap<Box<str>, NameRow>,
    /// Messages with any other name.
    pub others: Amount,
    /// Messages over time.
    pub rates: Rates,
    /// Times between requests and replies.
    pub replies: Replies,
}

impl Totals {
    /// Starts with nothing counted. `stream` selects one conversation; `is_filtered` says whether a
    /// filter selects the items that will be [added](Self::add).
    #[must_use]
    pub fn new(stream: Option<u64>, is_filtered: bool) -> Self {
        Self {
            stream,
            is_filtered,
            conversations: 0,
            families: BTreeMap::new(),
            captured: [0; 2],
            unrecognised_bytes: 0,
            gaps: 0,
            span: None,
            sent: [Amount::default(); 2],
            undefined: Amount::default(),
            incomplete: Amount::default(),
            problems: 0,
            names: HashMap::new(),
            others: Amount::default(),
            rates: Rates::default(),
            replies: Replies::default(),
        }
    }

    /// Adds a conversation once it has ended. Returns false if it is not selected.
    pub fn add_conversation(&mut self, overview: &Overview) -> bool {
        if self.stream.is_some_and(|stream| stream != overview.stream) {
            return false;
        }
        self.conversations += 1;
        let bytes: u64 = overview.bytes.iter().sum();
        match overview.family {
            Some(family) => *self.families.entry(family.name()).or_default() += 1,
            None => self.unrecognised_bytes += bytes,
        }
        for side in Side::BOTH {
            self.captured[side.index()] += overview.bytes[side.index()];
        }
        self.gaps += overview.gaps;
        let (first, last) = self.span.unwrap_or((overview.first, overview.last));
        self.span = Some((first.min(overview.first), last.max(overview.last)));
        true
    }

    /// Adds an item, in the order of the capture.
    pub fn add(&mut self, item: &Counted) {
        let Counted { from, bytes, .. } = *item;
        if !item.is_message {
            self.problems += 1;
            return;
        }
        self.sent[from.index()].add(bytes);
        if item.lacks_definition {
            self.undefined.add(bytes);
        }
        if item.is_problem {
            self.incomplete.add(bytes);
        }
        self.rates.add(item.since, from);
        self.replies.add(item);
        let is_full = self.names.len() >= MAX_NAMES;
        if let Some(row) = self.names.get_mut(&item.name) {
            row.sent[from.index()] += 1;
            row.bytes += bytes;
        } else if is_full {
            self.others.add(bytes);
        } else {
            let mut row = NameRow { family: item.family, sent: [0; 2], bytes };
            row.sent[from.index()] = 1;
            self.names.insert(item.name.clone(), row);
        }
    }

    /// All messages.
    #[must_use]
    pub fn total(&self) -> Amount {
        let [client, server] = self.sent;
        Amount { messages: client.messages + server.messages, bytes: client.bytes + server.bytes }
    }

    /// The names, most frequent first.
    #[must_use]
    pub fn names(&self) -> Vec<(&str, NameRow)> {
        let mut names: Vec<_> = self.names.iter().map(|(name, row)| (&**name, *row)).collect();
        names.sort_by_key(|(name, row)| (core::cmp::Reverse(row.sent.iter().sum::<u64>()), *name));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_nothing_is_lost() {
        let mut totals = Totals::new(None, false);
        for number in 0..MAX_NAMES as u64 + 500 {
            let name = format!("toy.{number}");
            totals.add(&Counted::message(&name, "toy", Side::Client));
            totals.add(&Counted::message("toy.0", "toy", Side::Server));
        }
        let names = totals.names();
        assert_eq!((names.len(), names[0].0), (MAX_NAMES, "toy.0"));
        assert_eq!(names[0].1.sent, [1, MAX_NAMES as u64 + 500]);
        let counted: u64 = names.iter().flat_map(|(_, row)| row.sent).sum();
        assert_eq!(totals.others, Amount { messages: 500, bytes: 5000 });
        assert_eq!(counted + totals.others.messages, totals.total().messages);
    }
}
