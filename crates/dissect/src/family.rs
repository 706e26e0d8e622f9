//! The families: how their conversations are recognised and read.

use core::fmt;

use worldwire_core::Side;

use crate::item::{Item, Stamp};
use crate::{Definitions, Keys};
use crate::{ki, tera, uru};

/// The families that conversations can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Wizard101 and Pirate101.
    Ki,
    /// TERA.
    Tera,
    /// Myst Online: Uru Live.
    Uru,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ki, Self::Tera, Self::Uru];

    /// The name in output and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ki => "ki",
            Self::Tera => "tera",
            Self::Uru => "uru",
        }
    }

    /// The family of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes that came before the conversation was recognised.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) side: Side,
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Vec<u8>,
}

/// What is made of the first bytes of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recognition {
    /// It is this family's; true when client and server have to change places.
    Yes(Family, bool),
    /// It is nobody's.
    No,
    /// More bytes are needed to tell.
    NeedMore,
}

/// What a family makes of the first bytes of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is this family's, and the sides are right.
    Yes,
    /// It is this family's, but what looks like the client is the server.
    Swapped,
    /// It is not.
    No,
    /// More bytes are needed to tell.
    NeedMore,
}

/// Whose conversation begins with these pieces.
pub(crate) fn recognize(held: &[Held], datagrams: bool, midstream: bool) -> Recognition {
    let first = |side: Side| {
        let of_side = held.iter().filter(|piece| piece.side == side);
        of_side.flat_map(|piece| &piece.bytes).copied().take(256).collect::<Vec<u8>>()
    };
    let first = Side::BOTH.map(first);
    let verdicts = [
        (Family::Ki, ki::recognize(held, datagrams, midstream)),
        (Family::Tera, if datagrams { Verdict::No } else { tera::recognize(&first) }),
        (Family::Uru, if datagrams { Verdict::No } else { uru::recognize(&first) }),
    ];
    for (family, verdict) in verdicts {
        match verdict {
            Verdict::Yes => return Recognition::Yes(family, false),
            Verdict::Swapped => return Recognition::Yes(family, true),
            Verdict::No | Verdict::NeedMore => {}
        }
    }
    if verdicts.iter().any(|(_, verdict)| *verdict == Verdict::NeedMore) {
        Recognition::NeedMore
    } else {
        Recognition::No
    }
}

/// A conversation that is being read.
#[derive(Debug)]
pub(crate) enum Session {
    Ki(Box<ki::KiSession>),
    Tera(Box<tera::TeraSession>),
    Uru(Box<uru::UruSession>),
}

impl Session {
    pub(crate) fn new(
        family: Family,
        midstream: bool,
        keys: &Keys,
        definitions: &Definitions,
    ) -> Self {
        match family {
            Family::Ki => Self::Ki(Box::new(ki::KiSession::new(midstream, keys, definitions))),
            Family::Tera => Self::Tera(Box::new(tera::TeraSession::new(definitions))),
            Family::Uru => Self::Uru(Box::new(uru::UruSession::new(keys))),
        }
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Self::Ki(_) => Family::Ki,
            Self::Tera(_) => Family::Tera,
            Self::Uru(_) => Family::Uru,
        }
    }

    /// Bytes: a segment, or a datagram.
    pub(crate) fn data(
        &mut self,
        datagram: bool,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        match self {
            Self::Ki(session) => session.data(datagram, side, stamp, bytes, out),
            Self::Tera(session) => session.data(side, stamp, bytes, out),
            Self::Uru(session) => session.data(side, stamp, bytes, out),
        }
    }

    pub(crate) fn gap(
        &mut self,
        side: Side,
        stamp: Stamp,
        length: u64,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        match self {
            Self::Ki(session) => session.gap(side, stamp, length, out),
            Self::Tera(session) => session.gap(side, stamp, length, out),
            Self::Uru(session) => session.gap(side, stamp, length, out),
        }
    }

    pub(crate) fn end(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        match self {
            Self::Ki(session) => session.end(stamp, out),
            Self::Tera(session) => session.end(stamp, out),
            Self::Uru(session) => session.end(stamp, out),
        }
    }
}
