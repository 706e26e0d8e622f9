//! The findings of a diagnosis.

use core::fmt;

use worldwire_core::{Side, listed};

use crate::schema::Patch;
use crate::schema::diff::Change;

/// Something that is missing or does not fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The build has no opcode map, so its messages have no names.
    NoMap {
        /// The build, if known.
        revision: Option<u32>,
    },
    /// The map has no name for an opcode.
    Unmapped {
        /// The opcode.
        opcode: u16,
        /// Who sends it.
        from: Side,
        /// The number of messages.
        count: u64,
    },
    /// A message has no definition.
    Undefined {
        /// The opcode.
        opcode: u16,
        /// The message's name.
        name: Box<str>,
        /// The number of messages.
        count: u64,
    },
    /// A message has definitions, but all of them are deprecated at the build's patch, even for
    /// reading.
    Deprecated {
        /// The opcode.
        opcode: u16,
        /// The message's name.
        name: Box<str>,
        /// The number of messages.
        count: u64,
        /// The newest version.
        version: u32,
    },
    /// Client messages have a counter and checksum, but no list names them.
    UnlistedIntegrity {
        /// Their names.
        names: Vec<Box<str>>,
    },
    /// Client messages are on the build's integrity list, but have no counter and checksum: the list
    /// is probably for another patch.
    WrongList {
        /// Their names.
        names: Vec<Box<str>>,
    },
    /// Client messages are on an integrity list that is not used because the client's patch is not
    /// known.
    UnusedList {
        /// The patch of the first such list.
        patch: u16,
        /// Their names.
        names: Vec<Box<str>>,
    },
    /// Messages do not come from the side that their name indicates.
    WrongSide {
        /// The opcode.
        opcode: u16,
        /// The message's name.
        name: Box<str>,
        /// The side they come from.
        from: Side,
        /// The number of messages.
        count: u64,
        /// The number of those that come from that side.
        crossed: u64,
    },
    /// The definition cannot read all messages, or they look as if they had a different layout.
    Misfit {
        /// The opcode.
        opcode: u16,
        /// Name and version of the definition.
        title: Box<str>,
        /// The number of messages.
        count: u64,
        /// The number of those that it cannot read.
        failed: u64,
        /// The number of messages with trailing bytes, or with bodies that do not begin where the
        /// one before them ends.
        odd: u64,
        /// The number of those that have unused bytes.
        gaps: u64,
        /// The first decoding error.
        error: Option<String>,
        /// A version that fits better, if there is one.
        better: Option<Better>,
    },
    /// The definition can be used for reading, but is deprecated at the build's patch.
    Obsolete {
        /// Name and version of the definition.
        title: Box<str>,
        /// The patch.
        patch: Patch,
    },
}

/// A version of a definition that fits better.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// Its name and version.
    pub title: Box<str>,
    /// The number of kept messages that it reads without gaps or misplaced bodies.
    pub fits: usize,
    /// The number of kept messages.
    pub of: usize,
    /// How its layout differs from the definition in use.
    pub changes: Vec<Change>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        match self {
            Self::NoMap { revision: Some(revision) } => {
                write!(f, "no opcode map for revision {revision} (protocol.{revision}.map)")
            }
            Self::NoMap { revision: None } => f.write_str("no opcode map"),
            Self::Unmapped { opcode, from, count } => {
                write!(f, "{opcode}: {count} unnamed message{} from the {from}", plural(*count))
            }
            Self::Undefined { opcode, name, count } => {
                let plural = plural(*count);
                write!(f, "{name} ({opcode}): {count} message{plural} without a definition")
            }
            Self::Deprecated { opcode, name, count, .. } => {
                let plural = plural(*count);
                write!(
                    f,
                    "{name} ({opcode}): {count} message{plural}, but every version of its \
                     definition is deprecated"
                )
            }
            Self::UnlistedIntegrity { names } => {
                let names = listed(names);
                write!(f, "messages that have counters but are on no integrity list: {names}")
            }
            Self::WrongList { names } => {
                let (is, has) = if names.len() == 1 { ("is", "has") } else { ("are", "have") };
                let names = listed(names);
                write!(f, "{names} {is} on the integrity list, but {has} no counter and checksum")
            }
            Self::UnusedList { patch, names } => {
                let (names, verb) = (listed(names), if names.len() == 1 { "is" } else { "are" });
                write!(
                    f,
                    "{names} {verb} on the integrity list of patch {patch}, but that list is not \
                     used because the client's patch is unknown"
                )
            }
            Self::WrongSide { opcode, name, from, count, crossed } => {
                let of = if crossed == count { String::new() } else { format!(" of {count}") };
                let plural = plural(*count);
                write!(
                    f,
                    "{name} ({opcode}): {crossed}{of} message{plural} sent by the {from}, which never \
                     sends messages of that name"
                )
            }
            Self::Misfit { title, count, failed, odd, gaps, error, better, .. } => {
                let plural = plural(*count);
                match (failed, error, gaps) {
                    (0, _, 0) | (_, None, 0) => {
                        let what = "expects bodies at offsets other than those in";
                        write!(f, "{title} {what} {odd} of {count} message{plural}")?;
                    }
                    (0, _, _) | (_, None, _) => {
                        write!(f, "{title} leaves gaps in {gaps} of {count} message{plural}")?;
                    }
                    (_, Some(error), _) => {
                        write!(f, "{title} cannot read {failed} of {count} message{plural}")?;
                        if *gaps > 0 {
                            write!(f, ", and leaves gaps in {gaps}")?;
                        }
                        write!(f, ": {error}")?;
                    }
                }
                let Some(Better { title, fits, of, changes }) = better else { return Ok(()) };
                write!(f, "; {title} fits {fits} of {of}")?;
                for change in changes {
                    write!(f, "\n    {change}")?;
                }
                Ok(())
            }
            Self::Obsolete { title, patch } => write!(f, "{title} is outdated at patch {patch}"),
        }
    }
}
