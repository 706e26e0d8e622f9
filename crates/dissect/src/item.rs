//! What a conversation consists of: messages, and notes about everything else.

use core::any::Any;
use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::OnceLock;

use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result, Side, Tree};

use crate::message::{Message, NumberNames};

/// Identifies a conversation and a moment in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The conversation, counted from 0 in the order of first packets.
    pub stream: u64,
    /// When the item was complete.
    pub time: Time,
    /// The time since the beginning, which in a capture is the first packet.
    pub since: Duration,
    /// The number of the packet that completed the item, counted from 1; `None` if the source has
    /// no packets.
    pub packet: Option<u64>,
}

/// A point in time: nanoseconds since 1970-01-01 00:00 UTC, negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// The time since `earlier`, or zero if `earlier` is later. Timestamps in a capture can go
    /// backwards.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

impl fmt::Display for Time {
    /// `1700000000.000000001`: seconds, a point and nine digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", nanos / SECOND, nanos % SECOND)
    }
}

/// One message or note.
#[derive(Clone, Debug)]
pub struct Item<'i> {
    /// The conversation and the moment.
    pub stamp: Stamp,
    /// The family that it belongs to.
    pub family: &'static str,
    /// The sender.
    pub from: Side,
    /// The addresses of the conversation; `None` if the source has no addresses.
    pub ends: Option<&'i Ends>,
    /// Its byte range in the sender's stream.
    pub range: Range<u64>,
    /// The message or note itself.
    pub body: ItemBody<'i>,
    /// Whether the message decodes without an error, if that is already known.
    is_whole: Cell<Option<bool>>,
}

/// The addresses of a conversation.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Client and server, by [`Side::index`].
    of: [SocketAddr; 2],
    /// Whether it is UDP.
    is_datagrams: bool,
    /// The addresses as members of a JSON line, by sender. Formatted on first use.
    members: [OnceLock<String>; 2],
}

impl PartialEq for Ends {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Ends {}

impl Ends {
    /// The addresses of a client and its server, over TCP.
    #[must_use]
    pub fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self { of: [client, server], is_datagrams: false, members: Default::default() }
    }

    /// The same addresses, over UDP or TCP.
    pub(crate) fn over(self, is_datagrams: bool) -> Self {
        Self { is_datagrams, ..self }
    }

    /// Whether the conversation is UDP; otherwise it is TCP.
    #[must_use]
    pub fn is_datagrams(&self) -> bool {
        self.is_datagrams
    }

    /// The address of a side.
    #[must_use]
    pub fn of(&self, side: Side) -> SocketAddr {
        self.of[side.index()]
    }

    /// Source and destination as members of a JSON line: `,"src":"192.0.2.1",...`.
    pub(crate) fn members(&self, from: Side) -> &str {
        self.members[from.index()].get_or_init(|| {
            let [from, to] = [from, from.other()].map(|side| self.of(side));
            format!(
                ",\"src\":\"{}\",\"srcport\":{},\"dst\":\"{}\",\"dstport\":{}",
                from.ip(),
                from.port(),
                to.ip(),
                to.port()
            )
        })
    }

    /// Swaps client and server.
    pub(crate) fn swap(&mut self) {
        self.of.reverse();
        self.members.reverse();
    }
}

/// The content of an item.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ItemBody<'i> {
    /// A message, or a step of connection setup.
    Message(&'i dyn Message),
    /// A note about the conversation.
    Note(Note),
    /// Captured bytes of a stream. Only reported if [requested](crate::Options::wire).
    Wire(Wire<'i>),
}

/// A segment or datagram as it was captured. The items decoded from it follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'w> {
    /// The bytes of a segment, as captured: possibly encrypted.
    Bytes(&'w [u8]),
    /// The bytes of a datagram, as captured.
    Datagram(&'w [u8]),
    /// This many bytes are missing.
    Missing(u64),
}

/// Something to report that is not a message, such as missing bytes or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What the note reports.
    pub kind: NoteKind,
    /// The text, on one line.
    pub text: String,
}

/// What a note reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A conversation was recognised; the text names its endpoints.
    Opened,
    /// Bytes are missing from the capture.
    Gap,
    /// Decoding resumed after bytes that could not be decoded.
    Resync,
    /// A message was decoded, but its definition seems to be from another revision.
    Warning,
    /// Something cannot be decoded.
    Problem,
}

impl NoteKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Opened, Self::Gap, Self::Resync, Self::Warning, Self::Problem];

    /// The word for it in output.
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
    /// A note with one line of text.
    #[must_use]
    pub const fn new(kind: NoteKind, text: String) -> Self {
        Self { kind, text }
    }

    pub(crate) const fn opened(text: String) -> Self {
        Self::new(NoteKind::Opened, text)
    }

    pub(crate) fn gap(range: &Range<u64>) -> Self {
        let text = match range.end - range.start {
            1 => "1 byte is missing".to_owned(),
            bytes => format!("{bytes} bytes are missing"),
        };
        Self::new(NoteKind::Gap, text)
    }

    pub(crate) fn resync(skipped: &Range<u64>) -> Self {
        let bytes = skipped.end - skipped.start;
        let plural = if bytes == 1 { "" } else { "s" };
        let text = format!("decoding resumes after {bytes} missing or unreadable byte{plural}");
        Self::new(NoteKind::Resync, text)
    }

    /// A definition seems to be from another revision.
    #[must_use]
    pub const fn warning(text: String) -> Self {
        Self::new(NoteKind::Warning, text)
    }

    /// Something cannot be decoded.
    #[must_use]
    pub const fn problem(text: String) -> Self {
        Self::new(NoteKind::Problem, text)
    }
}

impl<'i> Item<'i> {
    /// An item without addresses.
    #[must_use]
    pub const fn new(
        stamp: Stamp,
        family: &'static str,
        from: Side,
        range: Range<u64>,
        body: ItemBody<'i>,
    ) -> Self {
        Self { stamp, family, from, ends: None, range, body, is_whole: Cell::new(None) }
    }

    /// The same item with the addresses of its conversation.
    #[must_use]
    pub fn with_ends(self, ends: &'i Ends) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// A note in place of this item.
    #[must_use]
    pub(crate) fn replaced_by(&self, note: Note) -> Self {
        Self { body: note.into(), ..self.clone() }
    }

    /// Appends the dotted name, `auth.AcctLoginRequest`, or the kind of a note.
    pub fn push_name(&self, name: &mut String) {
        match &self.body {
            ItemBody::Message(message) => message.push_name(name),
            ItemBody::Note(note) => name.push_str(note.kind.name()),
            ItemBody::Wire(_) => name.push_str("wire"),
        }
    }

    /// Appends the names of the messages inside a message; see [`Message::push_inside`].
    pub fn push_inside(&self, inside: &mut String) {
        if let ItemBody::Message(message) = &self.body {
            message.push_inside(inside);
        }
    }

    /// Appends a message's number; see [`Message::push_number`].
    pub(crate) fn push_number(&self, text: &mut String) {
        if let ItemBody::Message(message) = &self.body {
            message.push_number(text);
        }
    }

    /// The meaning of numbers in the fields.
    #[must_use]
    pub(crate) fn number_names(&self) -> Option<&dyn NumberNames> {
        match &self.body {
            ItemBody::Message(message) => message.number_names(),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// How to decode a part that is shown as bytes.
    #[must_use]
    pub fn advice(&self) -> Option<Cow<'static, str>> {
        match &self.body {
            ItemBody::Message(message) => message.advice(),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// Whether a message is shown as bytes because the user gave no definition of it, in any
    /// version.
    #[must_use]
    pub fn lacks_definition(&self) -> bool {
        self.message().is_some_and(Message::lacks_definition)
    }

    /// The note, if the item is one.
    #[must_use]
    pub fn note(&self) -> Option<&Note> {
        match &self.body {
            ItemBody::Note(note) => Some(note),
            ItemBody::Message(_) | ItemBody::Wire(_) => None,
        }
    }

    /// The message or step of connection setup, if the item is one.
    #[must_use]
    pub fn message(&self) -> Option<&'i dyn Message> {
        match self.body {
            ItemBody::Message(message) => Some(message),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// Data that only programs aware of the family can use; see [`Message::knowledge`].
    #[must_use]
    pub fn knowledge<T: Any>(&self) -> Option<&'i T> {
        self.message()?.knowledge()?.downcast_ref()
    }

    /// The plain bytes of a message; empty for notes.
    #[must_use]
    pub fn bytes(&self) -> &'i [u8] {
        self.message().map_or(&[], |message| message.bytes())
    }

    /// The bytes of a message without its frame; empty for notes. [`encode`](Self::encode) returns
    /// the same bytes for unchanged JSON.
    #[must_use]
    pub fn body(&self) -> &'i [u8] {
        self.message().map_or(&[], |message| message.body())
    }

    /// The tree of a message, built in the memory of `tree`; empty for notes. The message's fields
    /// are below a record: `tree.find("fields.accountName")`.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        match &self.body {
            ItemBody::Message(message) => {
                let tree = message.tree(tree, limits);
                let is_whole = tree.error().is_none() && !message.has_opaque_fields(&tree);
                self.is_whole.set(Some(is_whole));
                tree
            }
            ItemBody::Note(_) | ItemBody::Wire(_) => tree.recycle(),
        }
    }

    /// Whether a message decodes without an error; true for notes. Decodes the message only if no
    /// tree was built from it before.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let Some(message) = self.message() else { return true };
        let decode = || {
            let limits = &Limits::DEFAULT;
            let opaque = || message.has_opaque_fields(&message.tree(Tree::new(), limits));
            message.is_whole() && !(message.has_contents() && opaque())
        };
        let is_whole = self.is_whole.get().unwrap_or_else(decode);
        self.is_whole.set(Some(is_whole));
        is_whole
    }

    /// Whether it counts as a problem: a note about one, or a message that does not decode without
    /// an error.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        match self.note() {
            Some(note) => note.kind == NoteKind::Problem,
            None => !self.is_whole(),
        }
    }

    /// Encodes a message from JSON, with the definitions that its tree uses. `fields` is the value
    /// of `fields` in a JSON line, edited or not. For unchanged JSON the result equals
    /// [`body`](Self::body). It is a whole plain message, as a [relay](crate::RelaySession) takes
    /// it.
    ///
    /// # Errors
    /// `Value` for notes, for steps of connection setup that cannot be encoded, and for JSON that
    /// does not fit.
    pub fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match &self.body {
            ItemBody::Message(message) => message.encode(fields),
            ItemBody::Note(note) => Err(Error::value("a message", note.kind.name())),
            ItemBody::Wire(_) => Err(Error::value("a message", "captured bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message that counts how often it is decoded.
    #[derive(Debug, Default)]
    struct Counted(Cell<u32>);

    impl Message for Counted {
        fn push_name(&self, _: &mut String) {}

        fn bytes(&self) -> &[u8] {
            &[]
        }

        fn is_message(&self) -> bool {
            true
        }

        fn is_whole(&self) -> bool {
            self.0.set(self.0.get() + 1);
            false
        }

        fn tree_of<'t>(&'t self, _: &'t [u8], tree: Tree<'t>, _: &'t Limits) -> Tree<'t> {
            self.0.set(self.0.get() + 1);
            let mut tree = tree.recycle();
            tree.set_error(Error::value("a whole message", "half of one"));
            tree
        }

        fn encode(&self, _: &Json) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_message_is_decoded_once() {
        for builds_tree in [true, false] {
            let message = Counted::default();
            let body = ItemBody::Message(&message);
            let item = Item::new(Stamp::default(), "toy", Side::Client, 0..0, body);
            if builds_tree {
                let _ = item.tree(Tree::new(), &Limits::DEFAULT);
            }
            assert!(!item.is_whole() && !item.is_whole());
            assert_eq!(message.0.get(), 1);
        }
    }
}
