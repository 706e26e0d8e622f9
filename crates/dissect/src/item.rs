//! What a conversation consists of: messages, and notes about what is none.

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

/// Where something stands: in which conversation, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The conversation, counted from 0 in the order of first packets.
    pub stream: u64,
    /// When it was complete.
    pub time: Time,
    /// How long after the beginning that was: after the first packet of a capture.
    pub since: Duration,
    /// The number of the packet that completed it, counted from 1; `None` where there are no
    /// packets.
    pub packet: Option<u64>,
}

/// A moment: nanoseconds since 1970-01-01 00:00 UTC, negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// How long after `earlier` this is; nothing when it is before. Packets of a capture may go
    /// back in time.
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

/// A message of any family, as [`Item`]s carry it.
///
/// It borrows what it takes to read it: the connection's buffer, keys, definitions.
pub trait Message: fmt::Debug {
    /// Appends the dotted name: `auth.AcctLoginRequest`. Numbers stand where no name is known.
    fn push_name(&self, name: &mut String);

    /// Appends what the message carries, where its name alone says little: names in the protocol's own
    /// spelling, from an outer one to an inner one, with a space in front of each. The number of
    /// different texts has to be bounded, and making one has to be cheap.
    fn push_inside(&self, inside: &mut String) {
        let _ = inside;
    }

    /// Appends the number by which its family names it, where notes speak of such numbers and a brief
    /// line would not show it, with a space in front.
    fn push_number(&self, text: &mut String) {
        let _ = text;
    }

    /// Its plain bytes.
    fn bytes(&self) -> &[u8];

    /// The part of its bytes that [`encode`](Self::encode) makes anew and a relay takes: all of
    /// them, unless a frame stands around the message.
    fn body(&self) -> &[u8] {
        self.bytes()
    }

    /// Whether it is a message, rather than a step of connection setup.
    fn is_message(&self) -> bool;

    /// Whether it can be read to its end: whether [`tree`](Self::tree) holds no error. It is asked of
    /// every message, whatever is shown of it, and is to be quicker than making the tree.
    fn is_whole(&self) -> bool;

    /// Its tree, in the memory of an old one. Places count from the start of the sender's stream.
    fn tree<'t>(&'t self, tree: Tree<'t>, limits: &'t Limits) -> Tree<'t>;

    /// Encodes what [`Item::encode`] was given, with the definitions that [`tree`](Self::tree) uses.
    ///
    /// # Errors
    /// Value, when the JSON is something else, or a piece of this kind cannot be encoded.
    fn encode(&self, fields: &Json) -> Result<Vec<u8>>;

    /// What numbers in its fields stand for, as the capture told; `None` where it told nothing.
    fn number_names(&self) -> Option<&dyn NumberNames> {
        None
    }

    /// What would show more of it, if something it holds stays closed: `give ... with --data`.
    fn advice(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Whether it is bytes for want of a definition that users have to give, and none of any version
    /// was given.
    fn lacks_definition(&self) -> bool {
        false
    }

    /// Appends members of the line of JSON that encoding it needs beside name and fields:
    /// `,"version":3`.
    fn push_members(&self, line: &mut String) {
        let _ = line;
    }

    /// What only this family knows of the message, for programs that know the family: TERA's
    /// `Arc<Packets>`.
    fn knowledge(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// What numbers in the fields of messages stand for, such as the names of players. It is shown beside
/// the number, never in its place.
pub trait NumberNames {
    /// The key of the names in JSON: `players`.
    fn key(&self) -> &'static str;

    /// The name of a number in a field, or in a list of that name.
    fn name(&self, field: &str, number: u64) -> Option<&str>;
}

/// One thing that was said on a conversation, or that there is to say about it.
#[derive(Clone, Debug)]
pub struct Item<'i> {
    /// Where it stands.
    pub stamp: Stamp,
    /// Whose protocol it is.
    pub family: &'static str,
    /// Who sent it.
    pub from: Side,
    /// The ends of its conversation; `None` where there are no addresses.
    pub ends: Option<&'i Ends>,
    /// Its bytes in the sender's stream.
    pub range: Range<u64>,
    /// What it is.
    pub body: ItemBody<'i>,
    /// Whether the message decodes without an error, once that is known.
    is_whole: Cell<Option<bool>>,
}

/// The ends of a conversation.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Client and server, by [`Side::index`].
    of: [SocketAddr; 2],
    /// What a line of JSON says of them, by the side that sends; written when it is first asked for.
    members: [OnceLock<String>; 2],
}

impl PartialEq for Ends {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Ends {}

impl Ends {
    /// A client and its server.
    #[must_use]
    pub fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self { of: [client, server], members: Default::default() }
    }

    /// The address of a side.
    #[must_use]
    pub fn of(&self, side: Side) -> SocketAddr {
        self.of[side.index()]
    }

    /// Who sends, and to whom, as members of a line of JSON: `,"src":"192.0.2.1",...`.
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

    /// Client and server change places.
    pub(crate) fn swap(&mut self) {
        self.of.reverse();
        self.members.reverse();
    }
}

/// What an item is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ItemBody<'i> {
    /// A message, or a step of connection setup.
    Message(&'i dyn Message),
    /// Something about the conversation.
    Note(Note),
    /// What was captured of a stream, for those who [ask](crate::Options::wire) for it.
    Wire(Wire<'i>),
}

/// A piece of a stream as it was captured: a segment or a datagram. What it holds comes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'w> {
    /// The bytes of a segment, encrypted if they were.
    Bytes(&'w [u8]),
    /// Those of a datagram.
    Datagram(&'w [u8]),
    /// So many bytes are missing.
    Missing(u64),
}

/// Something that is no message: what is missing, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// One line.
    pub text: String,
}

/// What a note reports.
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
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Opened, Self::Gap, Self::Resync, Self::Warning, Self::Problem];

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
    /// A note with one line of text.
    #[must_use]
    pub const fn new(kind: NoteKind, text: String) -> Self {
        Self { kind, text }
    }

    pub(crate) const fn opened(text: String) -> Self {
        Self::new(NoteKind::Opened, text)
    }

    /// Bytes of a stream that are missing.
    pub(crate) fn gap(range: &Range<u64>) -> Self {
        let text = format!("{} bytes are missing", range.end - range.start);
        Self::new(NoteKind::Gap, text)
    }

    /// Bytes of a stream that were passed over.
    pub(crate) fn resync(skipped: &Range<u64>) -> Self {
        let bytes = skipped.end - skipped.start;
        let text = format!("reading goes on, {bytes} bytes were passed over");
        Self::new(NoteKind::Resync, text)
    }

    /// A definition seems to be of another revision.
    #[must_use]
    pub const fn warning(text: String) -> Self {
        Self::new(NoteKind::Warning, text)
    }

    /// Something cannot be read.
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
    pub(crate) fn with_ends(self, ends: &'i Ends) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// A note in place of this item.
    #[must_use]
    pub(crate) fn replaced_by(&self, note: Note) -> Self {
        Self { body: note.into(), ..self.clone() }
    }

    /// Appends the dotted name: `auth.AcctLoginRequest`; for notes the word of their kind.
    pub fn push_name(&self, name: &mut String) {
        match &self.body {
            ItemBody::Message(message) => message.push_name(name),
            ItemBody::Note(note) => name.push_str(note.kind.name()),
            ItemBody::Wire(_) => name.push_str("wire"),
        }
    }

    /// Appends what a message carries, where its name alone says little; see [`Message::push_inside`].
    pub fn push_inside(&self, inside: &mut String) {
        if let ItemBody::Message(message) = &self.body {
            message.push_inside(inside);
        }
    }

    /// Appends the number of a message in its family; see [`Message::push_number`].
    pub fn push_number(&self, text: &mut String) {
        if let ItemBody::Message(message) = &self.body {
            message.push_number(text);
        }
    }

    /// What numbers in its fields stand for.
    #[must_use]
    pub fn number_names(&self) -> Option<&dyn NumberNames> {
        match &self.body {
            ItemBody::Message(message) => message.number_names(),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// What would show more of it, if something it holds stays closed.
    #[must_use]
    pub fn advice(&self) -> Option<Cow<'static, str>> {
        match &self.body {
            ItemBody::Message(message) => message.advice(),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// Whether it is bytes for want of a definition that users have to give, and none of any version
    /// was given.
    #[must_use]
    pub fn lacks_definition(&self) -> bool {
        self.message().is_some_and(Message::lacks_definition)
    }

    /// The note, if it is one.
    #[must_use]
    pub fn note(&self) -> Option<&Note> {
        match &self.body {
            ItemBody::Note(note) => Some(note),
            ItemBody::Message(_) | ItemBody::Wire(_) => None,
        }
    }

    /// The message or step of setup, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<&'i dyn Message> {
        match self.body {
            ItemBody::Message(message) => Some(message),
            ItemBody::Note(_) | ItemBody::Wire(_) => None,
        }
    }

    /// What only the message's family knows of it; see [`Message::knowledge`].
    #[must_use]
    pub fn knowledge<T: Any>(&self) -> Option<&'i T> {
        self.message()?.knowledge()?.downcast_ref()
    }

    /// The plain bytes of a message; none for notes.
    #[must_use]
    pub fn bytes(&self) -> &'i [u8] {
        self.message().map_or(&[], |message| message.bytes())
    }

    /// What [`encode`](Self::encode) makes anew from unchanged JSON: the bytes of a message without
    /// the frame around it, if there is one; none for notes.
    #[must_use]
    pub fn body(&self) -> &'i [u8] {
        self.message().map_or(&[], |message| message.body())
    }

    /// The tree of a message, in the memory of an old one; empty for notes.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        match &self.body {
            ItemBody::Message(message) => {
                let tree = message.tree(tree, limits);
                self.is_whole.set(Some(tree.error().is_none()));
                tree
            }
            ItemBody::Note(_) | ItemBody::Wire(_) => tree.recycle(),
        }
    }

    /// Whether a message decodes without an error; true for notes. If its tree was built before,
    /// this costs nothing. Otherwise the message is decoded once.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let Some(message) = self.message() else { return true };
        let is_whole = self.is_whole.get().unwrap_or_else(|| message.is_whole());
        self.is_whole.set(Some(is_whole));
        is_whole
    }

    /// Encodes the message anew from its JSON, with the definitions that its tree was made with.
    /// `fields` is what stands under `fields` of a JSON line, changed or not; unchanged JSON gives
    /// the [`body`](Self::body). The result is a whole message of the family, plain, as a
    /// [relay](crate::RelaySession) takes it.
    ///
    /// # Errors
    /// Value, for notes, for steps of setup that cannot be encoded, and when the JSON is something
    /// else.
    pub fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match &self.body {
            ItemBody::Message(message) => message.encode(fields),
            ItemBody::Note(note) => Err(Error::value("a message", note.kind.name())),
            ItemBody::Wire(_) => Err(Error::value("a message", "a piece of a stream")),
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

        fn tree<'t>(&'t self, tree: Tree<'t>, _: &'t Limits) -> Tree<'t> {
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
