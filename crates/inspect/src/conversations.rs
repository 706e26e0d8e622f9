//! The conversations of the capture, as the page lists them.

use serde::Serialize;
use worldwire_dissect::{Family, Overview};

use crate::index::Index;

/// All conversations so far, by number.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    all: Vec<Option<Conversation>>,
    /// The number of gaps in all of them.
    gaps: u64,
    /// The times of the first and last packet of all of them.
    span: Option<(i64, i64)>,
}

/// A conversation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Conversation {
    stream: u64,
    client: String,
    server: String,
    transport: &'static str,
    /// The family; `null` if it was not recognised.
    family: Option<&'static str>,
    /// Whether its first packets are missing.
    midstream: bool,
    /// Times of the first and last packet, in nanoseconds since 1970, as text because they need
    /// more than 53 bits.
    first: String,
    last: String,
    /// Payload bytes from client and server.
    bytes: [u64; 2],
    messages: u64,
    problems: u64,
    gaps: u64,
}

/// A conversation with its messages over time.
#[derive(Debug, Serialize)]
pub(crate) struct ConversationRow<'c> {
    #[serde(flatten)]
    conversation: &'c Conversation,
    /// The number of its rows in equal parts of the capture's duration.
    sparkline: Vec<u32>,
}

/// The number of parts of a sparkline.
const PARTS: usize = 24;
/// The maximum number of conversations that one request lists.
pub(crate) const MAX_LISTED: usize = 1000;

impl Conversations {
    /// Adds a conversation or updates it with new facts.
    pub(crate) fn set(&mut self, overview: &Overview) {
        // The reader assigns the numbers. Each conversation is opened by a packet, so the number of
        // packets limits the memory.
        let Ok(index) = usize::try_from(overview.stream) else { return };
        if self.all.len() <= index {
            self.all.resize(index + 1, None);
        }
        if let Some(place) = self.all.get_mut(index) {
            let before = place.as_ref().map_or(0, |known| known.gaps);
            self.gaps = self.gaps.saturating_sub(before).saturating_add(overview.gaps);
            let (begin, end) = (overview.first.0, overview.last.0);
            let (first, last) = self.span.unwrap_or((begin, end));
            self.span = Some((first.min(begin), last.max(end)));
            *place = Some(Conversation {
                stream: overview.stream,
                client: overview.client.to_string(),
                server: overview.server.to_string(),
                transport: if overview.datagrams { "udp" } else { "tcp" },
                family: overview.family.map(Family::name),
                midstream: overview.midstream,
                first: overview.first.0.to_string(),
                last: overview.last.0.to_string(),
                bytes: overview.bytes,
                messages: overview.messages.total(),
                problems: overview.problems,
                gaps: overview.gaps,
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The times of the first and last packet of all conversations.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// The number of gaps in all conversations.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps
    }
}

/// The conversations from this number, at most [`MAX_LISTED`].
pub(crate) fn list(index: &Index, start: usize, count: usize) -> Vec<ConversationRow<'_>> {
    let end = start.saturating_add(count.min(MAX_LISTED)).min(index.conversations.len());
    let known = index.conversations.all.get(start..end).unwrap_or_default();
    let mut sparklines = vec![vec![0_u32; PARTS]; known.len()];
    if let Some((first, last)) = index.span() {
        let duration = i128::from(last) - i128::from(first) + 1;
        for row in index.rows_from(0) {
            let Some(of) = (row.stream as usize).checked_sub(start) else { continue };
            let since = i128::from(row.time) - i128::from(first);
            let part = usize::try_from(since * PARTS as i128 / duration).unwrap_or(0);
            if let Some(count) = sparklines.get_mut(of).and_then(|line| line.get_mut(part)) {
                *count += 1;
            }
        }
    }
    let listed = known.iter().zip(sparklines);
    listed
        .filter_map(|(conversation, sparkline)| {
            Some(ConversationRow { conversation: conversation.as_ref()?, sparkline })
        })
        .collect()
}
