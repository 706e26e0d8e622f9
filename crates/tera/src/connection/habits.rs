//! Finds a side's next message after missing bytes, based on the messages that it has sent before.

use std::collections::BTreeMap;

use worldwire_core::connection::Probe;

use crate::frame::{HEADER_BYTES, Header};

/// The messages of a side so far. Opcodes change with every build, and nothing else marks the
/// beginning of a message, so only earlier messages show what a later one looks like.
#[derive(Clone, Debug, Default)]
pub(super) struct Habits {
    /// The shortest and the longest message of each opcode.
    lengths: BTreeMap<u16, (u16, u16)>,
}

/// The bits of a number in a header.
const BITS: u32 = 16;

impl Habits {
    /// Notes a message.
    pub(super) fn learn(&mut self, opcode: u16, length: usize) {
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        let (least, most) = self.lengths.entry(opcode).or_insert((length, length));
        *least = length.min(*least);
        *most = length.max(*most);
    }

    /// Whether these bytes begin with a message whose opcode is known. The evidence is stronger the
    /// fewer opcodes there are, and the fewer lengths the messages with this opcode have.
    pub(super) fn probe(&self, bytes: &[u8]) -> Probe {
        const MAX: u32 = 24;
        let header = match Header::peek(bytes) {
            Ok(Some(header)) => header,
            Ok(None) => return Probe::Incomplete(HEADER_BYTES.saturating_sub(bytes.len())),
            Err(_) => return Probe::Not,
        };
        let length = usize::from(header.length);
        let habit = self.lengths.get(&header.opcode);
        if let Some((least, most)) = habit
            && length > 4 * usize::from(*most)
            && least == most
        {
            return Probe::Not;
        }
        if length > bytes.len() {
            return match habit {
                Some(_) => Probe::Incomplete(length - bytes.len()),
                None => Probe::Not,
            };
        }
        let evidence = habit.map(|(least, most)| {
            let opcodes = bits(self.lengths.len());
            let lengths = match (*least..=*most).contains(&header.length) {
                true => bits(usize::from(most - least)),
                false => BITS,
            };
            (2 * BITS - opcodes - lengths).min(MAX)
        });
        Probe::Message { length, evidence }
    }
}

/// The bits that distinguish this many values.
fn bits(count: usize) -> u32 {
    (usize::BITS - count.leading_zeros()).min(BITS)
}
