//! What a conversation tells: messages, and notes about what is none.

use core::ops::Range;
use core::time::Duration;

use worldwire_capture::Timestamp;
use worldwire_core::{Limits, Side, Tree};
use worldwire_uru::connection::Received;

use crate::ki::KiItem;
use crate::tera::TeraItem;

/// Where something stands in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The conversation, counted from 0 in the order of first packets.
    pub stream: u64,
    /// When the packet was captured that completed it.
    pub time: Timestamp,
    /// How long after the first packet of the capture that was.
    pub since: Duration,
    /// That packet's number, counted from 1.
    pub packet: u64,
}

/// One thing that was said on a conversation, or that there is to say about it.
#[derive(Debug)]
pub struct Item<'i> {
    /// Where it stands.
    pub stamp: Stamp,
    /// Whose protocol it is.
    pub family: &'static str,
    /// Who sent it.
    pub from: Side,
    /// Its bytes in the sender's stream.
    pub range: Range<u64>,
    /// What it is.
    pub body: ItemBody<'i>,
}

/// What an item is.
#[derive(Debug)]
#[non_exhaustive]
pub enum ItemBody<'i> {
    /// A control message or DML message of KI.
    Ki(KiItem<'i>),
    /// A message of TERA, or a step of its handshake.
    Tera(TeraItem<'i>),
    /// A message of Uru.
    Uru(Received<'i>),
    /// Something about the conversation.
    Note(Note),
}

/// Something that is no message: what is missing, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// One line.
    pub text: String,
}

/// What a note tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A conversation was recognised; the text names its ends.
    Opened,
    /// Bytes are missing in the capture.
    Gap,
    /// Reading goes on behind something that could not be read.
    Resync,
    /// Something was read, but a definition seems to be of another revision.
    Warning,
    /// Something cannot be read.
    Problem,
}

impl NoteKind {
    /// The word in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Gap => "gap",
            Self::Resync => "resync",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl From<Note> for ItemBody<'_> {
    fn from(note: Note) -> Self {
        Self::Note(note)
    }
}

impl Note {
    pub(crate) fn opened(text: String) -> Self {
        Self { kind: NoteKind::Opened, text }
    }

    /// Bytes of a stream that are missing.
    pub(crate) fn gap(range: &Range<u64>) -> Self {
        let text = format!("{} bytes are missing", range.end - range.start);
        Self { kind: NoteKind::Gap, text }
    }

    /// Bytes of a stream that were passed over.
    pub(crate) fn resync(skipped: &Range<u64>) -> Self {
        let bytes = skipped.end - skipped.start;
        let text = format!("reading goes on, {bytes} bytes were passed over");
        Self { kind: NoteKind::Resync, text }
    }

    pub(crate) fn warning(text: String) -> Self {
        Self { kind: NoteKind::Warning, text }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { kind: NoteKind::Problem, text }
    }
}

impl<'i> Item<'i> {
    /// Appends the dotted name: `auth.AcctLoginRequest`; for notes the word of their kind.
    pub fn push_name(&self, name: &mut String) {
        match &self.body {
            ItemBody::Ki(item) => item.push_name(name),
            ItemBody::Tera(item) => item.push_name(name),
            ItemBody::Uru(received) => {
                let (kind, message) = received.name();
                name.push_str(kind);
                name.push('.');
                name.push_str(message);
            }
            ItemBody::Note(note) => name.push_str(note.kind.name()),
        }
    }

    /// The note, if it is one.
    #[must_use]
    pub fn note(&self) -> Option<&Note> {
        match &self.body {
            ItemBody::Note(note) => Some(note),
            ItemBody::Ki(_) | ItemBody::Tera(_) | ItemBody::Uru(_) => None,
        }
    }

    /// The plain bytes of a message; none for notes.
    #[must_use]
    pub fn bytes(&self) -> &'i [u8] {
        match &self.body {
            ItemBody::Ki(item) => item.received.bytes,
            ItemBody::Tera(item) => item.received.bytes,
            ItemBody::Uru(received) => received.bytes,
            ItemBody::Note(_) => &[],
        }
    }

    /// The tree of a message, in the memory of an old one; empty for notes.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        match &self.body {
            ItemBody::Ki(item) => item.tree(tree, limits),
            ItemBody::Tera(item) => item.tree(tree, limits),
            ItemBody::Uru(received) => received.tree(tree, limits),
            ItemBody::Note(_) => tree.recycle(),
        }
    }
}
