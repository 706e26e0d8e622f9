//! Oddities in sections that are readable.

use core::fmt;

use super::create::NORMAL;
use super::operation::Operation;
use super::section::Section;

/// Something unusual that is kept and written back unchanged. Few peers, if any, have been seen to
/// send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// AdminView flags with unknown bits.
    Flags(u8),
    /// A create of an object that is not normal: bit 3 of its flags is clear.
    NotNormal,
    /// A create whose last byte is not 0.
    Tail(u8),
    /// A create or an update with this many superfluous presence bytes.
    Padding(u8),
    /// A deletion without any views.
    NothingDeleted,
    /// An update without blocks.
    NothingUpdated,
    /// The section has no end marker.
    Unterminated,
}

impl Section<'_> {
    /// The section's oddities, each with the index of its operation, if it has one.
    pub fn oddities(&self) -> impl Iterator<Item = (Option<usize>, Oddity)> {
        let of = |(index, operation): (usize, &Operation<'_>)| {
            oddities(operation).into_iter().flatten().map(move |oddity| (Some(index), oddity))
        };
        let rest = self.operations.last().is_some_and(|last| last.fault().is_some());
        let end = (self.unterminated && !rest).then_some((None, Oddity::Unterminated));
        self.operations.iter().enumerate().flat_map(of).chain(end)
    }
}

fn oddities(operation: &Operation<'_>) -> [Option<Oddity>; 4] {
    /// The flag bits with a known meaning.
    const CREATES: u8 = 0x0f;
    const OTHERS: u8 = 0x03;
    let flags = |flags: u8, known: u8| (flags & !known != 0).then_some(Oddity::Flags(flags));
    let padding = |padding: u8| (padding > 0).then_some(Oddity::Padding(padding));
    match operation {
        Operation::Create(create) => [
            flags(create.flags, CREATES),
            (create.flags & NORMAL == 0).then_some(Oddity::NotNormal),
            padding(create.properties.padding()),
            (create.tail != 0).then_some(Oddity::Tail(create.tail)),
        ],
        Operation::UnknownCreate(create) => [
            flags(create.head.flags, CREATES),
            (create.head.flags & NORMAL == 0).then_some(Oddity::NotNormal),
            None,
            None,
        ],
        Operation::Delete(delete) => {
            let nothing = delete.views.is_empty().then_some(Oddity::NothingDeleted);
            [flags(delete.flags, OTHERS), nothing, None, None]
        }
        Operation::PendingUpdate(pending) => [flags(pending.flags, OTHERS), None, None, None],
        Operation::Update(update) => {
            let nothing = update.movement.is_none() && update.properties.is_none();
            let padded = update.properties.as_ref().and_then(|list| padding(list.padding()));
            [nothing.then_some(Oddity::NothingUpdated), padded, None, None]
        }
        Operation::Undecoded(_) => [None; 4],
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flags(flags) => write!(f, "flags {flags:#04x} with unknown bits"),
            Self::NotNormal => {
                f.write_str("an object that is not normal: bit 3 of the flags is clear")
            }
            Self::Tail(tail) => write!(f, "a create that ends with {tail:#04x} instead of 0"),
            Self::Padding(1) => f.write_str("1 more presence byte than needed"),
            Self::Padding(count) => write!(f, "{count} more presence bytes than needed"),
            Self::NothingDeleted => f.write_str("a deletion without views"),
            Self::NothingUpdated => f.write_str("an update without blocks"),
            Self::Unterminated => f.write_str("no end marker (view ID 0)"),
        }
    }
}
