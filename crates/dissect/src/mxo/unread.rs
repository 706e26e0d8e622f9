//! Sections of packets that cannot be decoded.

use worldwire_core::Side;
use worldwire_mxo::frame::{RPC, Section};

use crate::codec::Remark;
use crate::item::Note;

/// Why a section is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unread {
    /// Section 5 from clients, whose layout is unknown.
    Five,
    /// An RPC list is damaged.
    Rpc,
    /// The MPM ID is unknown.
    Id(u8),
    /// Bytes after the last section. Zeros are harmless.
    Behind { id: u8, are_zero: bool },
}

/// Why the section at this index of a packet is shown as bytes, if it is.
pub(super) fn unread(index: usize, section: &Section<'_>, from: Side) -> Option<Unread> {
    let Section::Other { id, bytes } = section else { return None };
    Some(match (*id, from) {
        (5, Side::Client) => Unread::Five,
        (RPC, _) => Unread::Rpc,
        (id, _) if index == 0 => Unread::Id(id),
        (id, _) => {
            let are_zero = id == 0 && bytes.iter().all(|byte| *byte == 0);
            Unread::Behind { id, are_zero }
        }
    })
}

/// Why a create is shown as bytes.
pub(super) fn unknown_goobj(goid: u16) -> String {
    format!(
        "goobj {goid} has no known class, and no known layout fits: its create is kept as bytes; \
         supply its table with --data"
    )
}

impl Unread {
    pub(super) fn text(self, section: &Section<'_>, from: Side) -> String {
        let Section::Other { bytes, .. } = section else { return String::new() };
        let counted = |count: usize| match count {
            1 => "1 byte".to_owned(),
            _ => format!("{count} bytes"),
        };
        let all = counted(bytes.len() + 1);
        match self {
            Self::Five => {
                format!("section 5 is kept as bytes because its layout is unknown: {all}")
            }
            Self::Rpc => {
                let why = section.rpc_fault(Some(from));
                let why = why.map_or(String::new(), |error| format!(": {error}"));
                format!("undecodable RPC lists ({all}) are kept as bytes{why}")
            }
            Self::Id(id) => {
                let is_named = id == 5;
                let whose = if is_named { format!(" of a {from}") } else { String::new() };
                format!("MPM ID {id}{whose} is unknown, so the packet is not decoded: {all}")
            }
            Self::Behind { are_zero: true, .. } => {
                format!("{all} after the last section, all zero")
            }
            Self::Behind { id, .. } => format!(
                "{all} after the last section are not decoded: they start with {id}, which is not \
                 a known MPM ID"
            ),
        }
    }

    /// Whether something may be lost.
    const fn is_problem(self) -> bool {
        !matches!(self, Self::Five | Self::Behind { are_zero: true, .. })
    }

    /// A problem if something may be lost, otherwise a warning.
    pub(super) fn note(self, text: String) -> Note {
        if self.is_problem() { Note::problem(text) } else { Note::warning(text) }
    }

    /// A remark about a blob.
    pub(super) fn remark(self, section: &Section<'_>, from: Side) -> Remark {
        Remark { text: self.text(section, from), is_problem: self.is_problem() }
    }
}
