//! What dissection, codecs and relays need from a family.

use core::any::Any;
use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Diagnostic, Error, Result, Side};

use crate::codec::Codec;
use crate::item::Stamp;
use crate::keys_error::KeyFault;
use crate::knowledge::{Definitions, Facts, Keys};
use crate::line::{Blob, Line};
use crate::session::{RelaySession, Session};
use crate::vocabulary::Vocabulary;

/// A group of games that share a protocol.
///
/// The rest of this crate knows families only through this trait and their [`Vocabulary`].
/// [`Families::standard`](crate::Families::standard) lists the built-in ones; a program can list
/// its own.
pub trait Family: fmt::Debug + Sync {
    /// The name in output, on the command line and at the start of codec names: `uru`.
    fn name(&self) -> &'static str;

    /// The names that filters, completion and help use.
    fn vocabulary(&self) -> &dyn Vocabulary;

    /// Whether the family uses UDP. If not, it is never asked to recognise UDP conversations.
    fn speaks_datagrams(&self) -> bool {
        false
    }

    /// Whether a conversation belongs to this family, judging by its first bytes.
    fn recognize(&self, opening: &Opening<'_>) -> Verdict;

    /// Whether a conversation of this family lacks its beginning. UDP itself cannot tell, because
    /// it has no handshake.
    fn begins_late(&self, opening: &Opening<'_>) -> bool {
        let _ = opening;
        false
    }

    /// Explains why a conversation without its beginning was not recognised, if it probably
    /// belongs to this family.
    fn missed(&self, opening: &Opening<'_>) -> Option<String> {
        let _ = opening;
        None
    }

    /// Computes in advance what the sessions of many conversations will need. Each beginning is the
    /// first bytes of one client, at most [`BEGINNING`].
    ///
    /// The result is in the order of `beginnings`; a shorter list means `None` for the rest. Each
    /// value becomes [`Start::prepared`] if the conversation turns out to belong to this family.
    /// Sessions must produce the same items without it.
    fn prepare(&self, keys: &Keys, beginnings: &[&[u8]]) -> Vec<Option<Prepared>> {
        let _ = (keys, beginnings);
        Vec::new()
    }

    /// Starts reading a conversation.
    fn session(&self, start: &Start<'_>) -> Box<dyn Session>;

    /// Starts relaying a conversation. `random` fills a buffer with fresh random bytes. `now` is the
    /// time on the clock that all later calls use: setup has a time limit.
    ///
    /// # Errors
    /// `Value` if the family cannot be relayed, or not with these keys.
    fn relay(
        &self,
        start: &Start<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        now: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        let _ = (start, random, now);
        Err(Error::invalid(format!("{} conversations cannot be relayed", self.name())))
    }

    /// The family's codecs, sorted by name.
    fn codecs(&self) -> &'static [Codec] {
        &[]
    }

    /// The codec for a message given as a line of JSON, and the JSON that the codec takes. `None`
    /// for a step of connection setup without a codec.
    fn blob(&self, line: &Line<'_>) -> Result<Option<Blob>> {
        let _ = line;
        Err(Error::invalid(format!("{} has no codecs for messages", self.name())))
    }

    /// Adds the family's part of a key file to `keys`. Returns whether the file had such a part.
    ///
    /// # Errors
    /// Every fault in that part, including conflicts with keys read earlier.
    fn read_keys(&self, text: &str, keys: &mut Keys) -> Result<bool, Vec<KeyFault>> {
        let _ = (text, keys);
        Ok(false)
    }

    /// Adds the family's built-in definitions.
    fn built_in(&self, definitions: &mut Definitions) {
        let _ = definitions;
    }

    /// Whether a file of this name can hold definitions for this family.
    fn may_define(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Reads the files that hold definitions for this family, judging by name and content. They
    /// override earlier definitions. Returns all errors and warnings, or `None` if no file is for
    /// this family.
    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        let _ = (files, definitions);
        None
    }
}

/// The methods of [`Family`] that call the modules `session` and `codecs` of a built-in family.
#[cfg(any(feature = "ki", feature = "mxo", feature = "tera", feature = "uru"))]
macro_rules! by_modules {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn vocabulary(&self) -> &dyn $crate::Vocabulary {
            self
        }

        fn recognize(&self, opening: &$crate::Opening<'_>) -> $crate::Verdict {
            session::recognize(opening)
        }

        fn codecs(&self) -> &'static [$crate::Codec] {
            codecs::CODECS
        }

        fn blob(&self, line: &$crate::Line<'_>) -> worldwire_core::Result<Option<$crate::Blob>> {
            codecs::blob(line)
        }
    };
}
#[cfg(any(feature = "ki", feature = "mxo", feature = "tera", feature = "uru"))]
pub(crate) use by_modules;

/// [`Family::read_keys`] for a key file in worldwire's TOML format.
#[cfg(any(feature = "ki", feature = "mxo", feature = "tera"))]
macro_rules! key_file {
    ($file:ty) => {
        fn read_keys(
            &self,
            text: &str,
            keys: &mut $crate::Keys,
        ) -> Result<bool, Vec<$crate::KeyFault>> {
            let file = <$file>::parse("keys", text)
                .map_err(|errors| errors.iter().map(From::from).collect::<Vec<_>>())?;
            let found = !file.is_empty();
            keys.edit(|known: &mut $file| known.merge(file));
            Ok(found)
        }
    };
}
#[cfg(any(feature = "ki", feature = "mxo", feature = "tera"))]
pub(crate) use key_file;

/// The first bytes of a conversation, by which a family recognises it.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'o> {
    /// Segments or datagrams in capture order.
    pub pieces: &'o [HeldPiece],
    /// The addresses of client and server; `None` if the source has no addresses.
    pub ends: Option<[SocketAddr; 2]>,
    /// Whether the conversation is UDP.
    pub datagrams: bool,
    /// Whether the beginning is missing.
    pub midstream: bool,
}

impl Opening<'_> {
    /// The first bytes that a side sent, at most `max`. Empty if they are missing.
    #[must_use]
    pub fn first(&self, side: Side, max: usize) -> Vec<u8> {
        match self.leading(side, max) {
            (0, first) => first,
            _ => Vec::new(),
        }
    }

    /// The number of bytes missing at the start of a side's stream, and the bytes from there to the
    /// next gap (at most `max`).
    #[must_use]
    pub fn leading(&self, side: Side, max: usize) -> (u64, Vec<u8>) {
        let mut of_side = self.pieces.iter().filter(|piece| piece.side == side).peekable();
        let mut missing = 0_u64;
        while let Some(piece) = of_side.next_if(|piece| piece.missing > 0) {
            missing = missing.saturating_add(piece.missing);
        }
        let mut first = Vec::new();
        for piece in of_side.take_while(|piece| piece.missing == 0) {
            let room = max - first.len();
            first.extend_from_slice(piece.bytes.get(..room).unwrap_or(&piece.bytes));
            if first.len() == max {
                break;
            }
        }
        (missing, first)
    }
}

/// A segment, a datagram or a gap received before the conversation was recognised.
#[derive(Clone, Debug)]
pub struct HeldPiece {
    /// The sender.
    pub side: Side,
    /// When it was captured.
    pub stamp: Stamp,
    /// Its bytes; empty for a gap.
    pub bytes: Vec<u8>,
    /// The length of a gap; otherwise 0.
    pub missing: u64,
}

/// A family's verdict on whether a conversation belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The conversation belongs to the family.
    Yes,
    /// It belongs to the family, but the presumed client is the server.
    Swapped,
    /// It does not belong to the family.
    No,
    /// The bytes so far are too few to decide.
    NeedMore,
}

#[cfg(any(feature = "tera", feature = "uru"))]
impl Verdict {
    /// The verdict, given the verdicts for both assignments of client and server.
    pub(crate) fn either(as_assumed: Self, swapped: Self) -> Self {
        match (as_assumed, swapped) {
            (Self::Yes, _) => Self::Yes,
            (_, Self::Yes) => Self::Swapped,
            (Self::No, Self::No) => Self::No,
            _ => Self::NeedMore,
        }
    }
}

/// The maximum length of each beginning given to [`Family::prepare`].
pub const BEGINNING: usize = 256;

/// What a family computed in advance for a conversation.
pub type Prepared = Arc<dyn Any + Send + Sync>;

/// Everything a session needs when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    /// Secrets.
    pub keys: &'s Keys,
    /// Definitions of messages: the built-in ones and the user's.
    pub definitions: &'s Definitions,
    /// The facts that other conversations have stated so far.
    pub facts: &'s Facts,
    /// The result of [`Family::prepare`] for this conversation, if any.
    pub prepared: Option<&'s Prepared>,
    /// Whether the conversation is UDP.
    pub datagrams: bool,
    /// Whether the beginning is missing.
    pub midstream: bool,
}
