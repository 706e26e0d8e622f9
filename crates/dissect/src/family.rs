//! What there is to know of a family: everything that dissection, codecs, filters and relays ask.

use core::any::Any;
use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use worldwire_core::{Diagnostic, Error, FieldInfo, Names, Result, Side};

use crate::codec::Codec;
use crate::item::Stamp;
use crate::knowledge::{Definitions, Facts, Keys};
use crate::line::{Blob, Line};
use crate::session::{RelaySession, Session};

/// A family of games with a protocol of its own.
///
/// Everything else in this crate knows families only by this trait. The ones that worldwire comes
/// with stand in [`Families::standard`]; a program may add its own.
pub trait Family: fmt::Debug + Sync {
    /// The name in output, in front of codecs and on the command line: `uru`.
    fn name(&self) -> &'static str;

    /// Whether its conversations may be UDP.
    fn speaks_datagrams(&self) -> bool {
        false
    }

    /// Whether a conversation is one of its own, by what was said first.
    fn recognize(&self, opening: &Opening<'_>) -> Verdict;

    /// Whether the beginning of a conversation of its own is missing, though nothing below it says
    /// so: UDP has no beginning.
    fn begins_late(&self, opening: &Opening<'_>) -> bool {
        let _ = opening;
        false
    }

    /// What there is to say of a conversation whose beginning is missing and that nobody
    /// recognised, if it was likely one of its own.
    fn missed(&self, opening: &Opening<'_>) -> Option<String> {
        let _ = opening;
        None
    }

    /// Computes in advance, for many conversations at once, what their sessions will need. Each is
    /// told by the first bytes of its client, up to [`BEGINNING`] of them.
    ///
    /// What is returned has the order of the conversations and becomes
    /// [`Start::prepared`] of those that turn out to be of this family; a shorter list has nothing
    /// for the others. Sessions must come to the same without it.
    fn prepare(&self, keys: &Keys, beginnings: &[&[u8]]) -> Vec<Option<Prepared>> {
        let _ = (keys, beginnings);
        Vec::new()
    }

    /// Begins to read a conversation.
    fn session(&self, start: &Start<'_>) -> Box<dyn Session>;

    /// Begins to relay a conversation: to read it, and to forward it changed or unchanged.
    /// `random` fills a buffer with fresh random bytes.
    ///
    /// # Errors
    /// Value, when the family cannot be relayed, or not with these keys.
    fn relay(
        &self,
        start: &Start<'_>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Box<dyn RelaySession>> {
        let _ = (start, random);
        Err(Error::value("a family that can be relayed", self.name()))
    }

    /// Its codecs, by name.
    fn codecs(&self) -> &'static [Codec] {
        &[]
    }

    /// The fields of a codec that has no table of messages, for people.
    fn layout(&self, codec: &str) -> Vec<FieldInfo> {
        let _ = codec;
        Vec::new()
    }

    /// The codec of a message that a line of JSON shows, and the JSON that this codec takes. `None`
    /// for a step of setup without a codec.
    ///
    /// # Errors
    /// Value, for what is none of its messages.
    fn blob(&self, line: &Line<'_>) -> Result<Option<Blob>> {
        let _ = line;
        Err(Error::value("a family with codecs of messages", self.name()))
    }

    /// Every message, with the names of its fields: what a filter is checked against.
    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>>;

    /// The fields whose values have names: what a filter is checked against.
    fn values<'d>(&self, definitions: &'d Definitions) -> Vec<ValueNames<'d>> {
        let _ = definitions;
        Vec::new()
    }

    /// The way to a field that stands inside of others, for those who look for it at the top: of
    /// several, one.
    fn path_to(&self, field: &str, definitions: &Definitions) -> Option<String> {
        let _ = (field, definitions);
        None
    }

    /// Fields that are numbers wherever they stand, though output shows names beside them: no text is
    /// ever equal to one.
    fn numbers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Fields that are records whose value stands in a field inside, with that field.
    fn holders<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, &'static str)> {
        let _ = definitions;
        Vec::new()
    }

    /// The types whose values have names, as the layouts of fields call them.
    fn named_types(&self) -> &'static [(&'static str, &'static Names)] {
        &[]
    }

    /// Reads its part of a key file, and adds it to what is there; whether there was any.
    ///
    /// # Errors
    /// All faults of its part, a line each, and what contradicts what is there.
    fn read_keys(&self, text: &str, keys: &mut Keys) -> Result<bool, Vec<String>> {
        let _ = (text, keys);
        Ok(false)
    }

    /// Puts what is built in into definitions.
    fn built_in(&self, definitions: &mut Definitions) {
        let _ = definitions;
    }

    /// Whether a file may hold its definitions, by its name alone.
    fn may_define(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Reads definitions from those files that hold its own, told by their names and contents, over
    /// what is there. `None` when none does; else all that is to be said about them.
    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        let _ = (files, definitions);
        None
    }

    /// The classes of objects that a codec of the family reads, for documentation; none for a codec
    /// that reads something else.
    fn classes(&self, codec: &str) -> Vec<ClassRow> {
        let _ = codec;
        Vec::new()
    }

    /// How to make a message known that nobody knows, by its name: `give ... with --data`, where
    /// only definitions of users could have it and none were given.
    fn advice_on(&self, name: &str, definitions: &Definitions) -> Option<&'static str> {
        let _ = (name, definitions);
        None
    }

    /// How to learn the names of messages that have none, for `doctor`: `give ... with --data`.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// The faults of a key file, a line each, for [`Family::read_keys`].
pub(crate) fn key_errors(errors: &[Diagnostic]) -> Vec<String> {
    let line = |error: &Diagnostic| {
        let (line, column) = (error.line(), error.column());
        let help = error.help_text().map_or(String::new(), |help| format!(" ({help})"));
        format!("line {line}, column {column}: {}{help}", error.message())
    };
    errors.iter().map(line).collect()
}

/// A class of objects that a codec reads, as `worldwire codecs` describes it.
#[derive(Clone, Debug)]
pub struct ClassRow {
    /// The index on the wire.
    pub class: u32,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The class it derives from.
    pub parent: &'static str,
    /// Who sends it: `client`, `server`, `both`; empty where that is not known, or nobody does.
    pub sender: &'static str,
    /// What else is to be said of it: `abstract`, `unused`, `layout unknown`; mostly empty.
    pub state: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its fields; `None` for a class without a known layout.
    pub fields: Option<fn() -> Vec<FieldInfo>>,
}

/// Which families there are.
#[derive(Clone, Copy)]
pub struct Families(&'static [&'static dyn Family]);

impl Families {
    /// These families, in the order in which they are asked about a conversation.
    #[must_use]
    pub const fn of(families: &'static [&'static dyn Family]) -> Self {
        Self(families)
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Family> {
        self.0.iter().copied()
    }

    /// The family of that name.
    ///
    /// # Errors
    /// Value, with the nearest known name.
    pub fn named(self, name: &str) -> Result<&'static dyn Family> {
        self.iter().find(|family| family.name() == name).ok_or_else(|| {
            let error = Error::value("the name of a family", format!("\"{name}\""));
            match worldwire_core::nearest(name, self.iter().map(Family::name)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error,
            }
        })
    }

    /// All codecs, by family and name.
    pub fn codecs(self) -> impl Iterator<Item = &'static Codec> {
        self.iter().flat_map(|family| family.codecs())
    }

    /// Whose conversation this is; true when client and server have to change places.
    pub(crate) fn recognize(self, opening: &Opening<'_>) -> Recognition {
        let mut wait = false;
        for family in self.iter().filter(|family| !opening.datagrams || family.speaks_datagrams()) {
            match family.recognize(opening) {
                Verdict::Yes => return Recognition::Yes(family, false),
                Verdict::Swapped => return Recognition::Yes(family, true),
                Verdict::NeedMore => wait = true,
                Verdict::No => {}
            }
        }
        if wait { Recognition::NeedMore } else { Recognition::No }
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Family::name)).finish()
    }
}

/// What was said first on a conversation, by which it is recognised.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'o> {
    /// The pieces, in the order of the capture: segments or datagrams.
    pub pieces: &'o [HeldPiece],
    /// The ends, client first; `None` where there are no addresses.
    pub ends: Option<[SocketAddr; 2]>,
    /// Whether it is UDP.
    pub datagrams: bool,
    /// Whether the beginning is missing.
    pub midstream: bool,
}

impl Opening<'_> {
    /// The first bytes of a side, at most this many; none when they are missing.
    #[must_use]
    pub fn first(&self, side: Side, most: usize) -> Vec<u8> {
        match self.late(side, most) {
            (0, first) => first,
            _ => Vec::new(),
        }
    }

    /// How many bytes are missing at the beginning of a side's stream, and the first behind them up
    /// to the next hole, at most this many.
    #[must_use]
    pub fn late(&self, side: Side, most: usize) -> (u64, Vec<u8>) {
        let mut of_side = self.pieces.iter().filter(|piece| piece.side == side).peekable();
        let mut missing = 0_u64;
        while let Some(piece) = of_side.next_if(|piece| piece.missing > 0) {
            missing = missing.saturating_add(piece.missing);
        }
        let mut first = Vec::new();
        for piece in of_side.take_while(|piece| piece.missing == 0) {
            let room = most - first.len();
            first.extend_from_slice(piece.bytes.get(..room).unwrap_or(&piece.bytes));
            if first.len() == most {
                break;
            }
        }
        (missing, first)
    }
}

/// Bytes that came before a conversation was recognised, or a hole in them.
#[derive(Clone, Debug)]
pub struct HeldPiece {
    /// Who sent them.
    pub side: Side,
    /// Where they stand.
    pub stamp: Stamp,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many are missing here, for a hole; then it has no bytes.
    pub missing: u64,
}

/// What a family makes of the first bytes of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is its own, and the sides are right.
    Yes,
    /// It is its own, but what looks like the client is the server.
    Swapped,
    /// It is not.
    No,
    /// More bytes are needed to tell.
    NeedMore,
}

/// What all families make of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recognition {
    /// It is this family's; true when client and server have to change places.
    Yes(&'static dyn Family, bool),
    /// It is nobody's.
    No,
    /// More bytes are needed to tell.
    NeedMore,
}

/// How many of the first bytes of a client [`Family::prepare`] gets to see at most.
pub const BEGINNING: usize = 256;

/// What a family computed in advance for a conversation.
pub type Prepared = Arc<dyn Any + Send + Sync>;

/// What a session begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    /// Secrets.
    pub keys: &'s Keys,
    /// What users know of messages.
    pub definitions: &'s Definitions,
    /// What other conversations stated so far.
    pub facts: &'s Facts,
    /// What [`Family::prepare`] made of its first bytes, if it was asked.
    pub prepared: Option<&'s Prepared>,
    /// Whether it is UDP.
    pub datagrams: bool,
    /// Whether the beginning is missing.
    pub midstream: bool,
}

/// The names of a message and of its fields.
#[derive(Clone, Debug)]
pub struct MessageNames<'d> {
    /// The dotted name.
    pub name: String,
    /// Its own fields.
    pub fields: Vec<&'d str>,
    /// What may stand inside them.
    pub inner: Vec<&'d str>,
    /// Whether these are all the names there can be.
    pub is_complete: bool,
}

/// The names that the values of a field have: those of an enumeration or of flags.
#[derive(Clone, Debug)]
pub struct ValueNames<'d> {
    /// The field. What it stands in may be told too: `system.name`.
    pub field: &'d str,
    /// The names.
    pub names: Vec<&'d str>,
    /// Whether no field of that name has values of another kind, in any message.
    pub is_only: bool,
}
