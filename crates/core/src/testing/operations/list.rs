//! Lists of operations, and the bytes that encode them.

use std::time::Duration;

use crate::{Sampler, Side};

/// One step of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'d> {
    /// A side's next bytes arrive.
    Bytes(Side, &'d [u8]),
    /// A datagram from a side arrives.
    Datagram(Side, &'d [u8]),
    /// Bytes from a side are missing.
    Gap(Side, u64),
    /// A side's stream ends.
    End(Side),
    /// Time passes.
    Wait(Duration),
    /// Time passes until the next deadline.
    Timeout,
    /// The driver issues a command now.
    Now(Command<'d>),
    /// The driver issues a command when the next piece is received, before it polls again.
    OnPiece(Command<'d>),
    /// The driver polls for at most this many events.
    Poll(u8),
    /// The driver transmits at most this many times to a side.
    Transmit(Side, u8),
    /// With true, the driver polls only on [`Poll`](Self::Poll); with false, after each operation.
    Lazy(bool),
}

/// A command to a connection's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'d> {
    /// Send a message made from these bytes; see [`sampler`].
    Send(&'d [u8]),
    /// Relays: forward the piece unchanged.
    AsIs,
    /// Relays: drop the piece.
    Drop,
    /// Relays: forward a replacement made from these bytes.
    Instead(&'d [u8]),
    /// Relays: inject a message made from these bytes.
    Inject(Side, &'d [u8]),
    /// Relays: hold the piece.
    Hold,
    /// Relays: release a held piece. The first byte selects it. The second byte is 0 to forward it
    /// unchanged and 1 to drop it; any other value forwards a replacement made from the rest.
    Release(&'d [u8]),
    /// Close the connection.
    Close,
}

/// A sampler seeded with these bytes.
#[must_use]
pub fn sampler(data: &[u8]) -> Sampler {
    let fold = |seed: u64, byte: &u8| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte);
    Sampler::new(data.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// Encodes a list of operations. Bytes that are too long for one operation are split.
#[must_use]
pub fn list(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut list = Vec::new();
    for operation in operations {
        match operation {
            Operation::Bytes(side, bytes) if !bytes.is_empty() => {
                let parts = bytes.chunks(MAX_PART);
                parts.for_each(|part| Operation::Bytes(*side, part).write(&mut list));
            }
            operation => operation.write(&mut list),
        }
    }
    list
}

/// The length of the parts into which [`list`] splits bytes.
const MAX_PART: usize = 200;

const SERVER: u8 = 0x10;
const ON_PIECE: u8 = 0x20;

impl<'d> Operation<'d> {
    /// Appends the operation to a list. Bytes are truncated to 255; gaps and times are rounded down
    /// to fit.
    fn write(&self, list: &mut Vec<u8>) {
        let bit = |side: Side| if side == Side::Server { SERVER } else { 0 };
        let mut put = |kind: u8, data: &[u8]| {
            let length = u8::try_from(data.len()).unwrap_or(u8::MAX);
            list.extend([kind, length]);
            list.extend_from_slice(data.get(..usize::from(length)).unwrap_or(data));
        };
        let scaled = |number: u64| {
            let shift = (64 - number.leading_zeros()).saturating_sub(8);
            let [shift, head] = [u64::from(shift), number >> shift];
            [shift, head].map(|number| number.to_le_bytes()[0])
        };
        match *self {
            Self::Bytes(side, bytes) => put(bit(side), bytes),
            Self::Datagram(side, bytes) => put(1 | bit(side), bytes),
            Self::Gap(side, length) => put(2 | bit(side), &scaled(length)),
            Self::End(side) => put(3 | bit(side), &[]),
            Self::Wait(time) => {
                put(4, &scaled(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
            }
            Self::Timeout => put(5, &[]),
            Self::Poll(most) => put(6, &[most]),
            Self::Transmit(side, most) => put(7 | bit(side), &[most]),
            Self::Lazy(lazy) => put(8, &[u8::from(lazy)]),
            Self::Now(command) | Self::OnPiece(command) => {
                let later = if matches!(self, Self::OnPiece(_)) { ON_PIECE } else { 0 };
                match command {
                    Command::Send(data) => put(9 | later, data),
                    Command::AsIs => put(10 | later, &[]),
                    Command::Drop => put(11 | later, &[]),
                    Command::Instead(data) => put(12 | later, data),
                    Command::Inject(to, data) => put(13 | later | bit(to), data),
                    Command::Close => put(14 | later, &[]),
                    Command::Hold => put(15 | later, &[]),
                    Command::Release(data) => put(15 | later, data),
                }
            }
        }
    }

    /// Reads an operation from its kind and data. Every pair is valid.
    fn read(kind: u8, data: &'d [u8]) -> Self {
        let side = if kind & SERVER == 0 { Side::Client } else { Side::Server };
        let first = data.first().copied().unwrap_or(0);
        let scaled = || {
            let head = u64::from(data.get(1).copied().unwrap_or(0));
            head.checked_shl(u32::from(first % 64)).unwrap_or(0)
        };
        let command = match kind & 0x0f {
            0 => return Self::Bytes(side, data),
            1 => return Self::Datagram(side, data),
            2 => return Self::Gap(side, scaled()),
            3 => return Self::End(side),
            4 => return Self::Wait(Duration::from_millis(scaled() % (1 << 32))),
            5 => return Self::Timeout,
            6 => return Self::Poll(first),
            7 => return Self::Transmit(side, first),
            8 => return Self::Lazy(first & 1 != 0),
            9 => Command::Send(data),
            10 => Command::AsIs,
            11 => Command::Drop,
            12 => Command::Instead(data),
            13 => Command::Inject(side, data),
            14 => Command::Close,
            _ if data.is_empty() => Command::Hold,
            _ => Command::Release(data),
        };
        if kind & ON_PIECE == 0 { Self::Now(command) } else { Self::OnPiece(command) }
    }
}

/// Reads operations until the bytes are used up.
#[derive(Debug)]
pub(super) struct Operations<'d>(pub(super) &'d [u8]);

impl<'d> Iterator for Operations<'d> {
    type Item = Operation<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.0.split_first()?;
        let (length, rest) = rest.split_first().unwrap_or((&0, rest));
        let (data, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        self.0 = rest;
        Some(Operation::read(*kind, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_survive_encoding() {
        let all = [
            Operation::Bytes(Side::Server, b"bytes"),
            Operation::Datagram(Side::Client, b""),
            Operation::Gap(Side::Client, 0x3400),
            Operation::End(Side::Server),
            Operation::Wait(Duration::from_millis(255)),
            Operation::Timeout,
            Operation::Now(Command::Inject(Side::Server, b"x")),
            Operation::OnPiece(Command::Instead(b"y")),
            Operation::OnPiece(Command::Drop),
            Operation::OnPiece(Command::AsIs),
            Operation::Now(Command::Close),
            Operation::OnPiece(Command::Hold),
            Operation::Now(Command::Release(&[0, 1])),
            Operation::Poll(3),
            Operation::Transmit(Side::Server, 4),
            Operation::Lazy(true),
        ];
        assert_eq!(Operations(&list(&all)).collect::<Vec<_>>(), all);
        // Any bytes form a list.
        assert_eq!(Operations(&[3]).collect::<Vec<_>>(), [Operation::End(Side::Client)]);
        let cut = Operations(&[0x10, 9, 1]).next();
        assert_eq!(cut, Some(Operation::Bytes(Side::Server, &[1])));
    }
}
