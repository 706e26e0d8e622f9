//! Input that a relay has received but not read yet.

use std::collections::VecDeque;

use worldwire_core::Side;
use worldwire_core::connection::Input;

/// The inputs from both sides, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// One queue per sending side, with the number of each input.
    inputs: [VecDeque<(u64, Arrival)>; 2],
    bytes: [usize; 2],
    count: u64,
}

/// An owned [`Input`].
#[derive(Debug)]
pub(super) enum Arrival {
    Bytes(Vec<u8>),
    Datagram(Vec<u8>),
    Gap(u64),
    End,
}

/// The minimum size counted for an input, since even an empty one takes up memory.
const MIN_COUNTED_BYTES: usize = 64;

impl Backlog {
    pub(super) fn push(&mut self, from: Side, input: Input<'_>) {
        let arrival = Arrival::from(input);
        self.bytes[from.index()] += arrival.counted();
        self.count += 1;
        self.inputs[from.index()].push_back((self.count, arrival));
    }

    /// The oldest input from a side that may be read.
    pub(super) fn pop(&mut self, may_read: impl Fn(Side) -> bool) -> Option<(Side, Arrival)> {
        let number = |side: &Side| self.inputs[side.index()].front().map(|(number, _)| *number);
        let readable = Side::BOTH.into_iter().filter(|side| may_read(*side));
        let side = readable.filter(|side| number(side).is_some()).min_by_key(number)?;
        let (_, arrival) = self.inputs[side.index()].pop_front()?;
        self.bytes[side.index()] -= arrival.counted();
        Some((side, arrival))
    }

    /// The estimated number of waiting bytes from a side; never too low.
    pub(super) fn bytes(&self, side: Side) -> usize {
        self.bytes[side.index()]
    }
}

impl Arrival {
    pub(super) fn as_input(&self) -> Input<'_> {
        match self {
            Self::Bytes(bytes) => Input::Bytes(bytes),
            Self::Datagram(bytes) => Input::Datagram(bytes),
            Self::Gap(length) => Input::Gap(*length),
            Self::End => Input::End,
        }
    }

    fn counted(&self) -> usize {
        match self {
            Self::Bytes(bytes) | Self::Datagram(bytes) => bytes.len().max(MIN_COUNTED_BYTES),
            Self::Gap(_) | Self::End => MIN_COUNTED_BYTES,
        }
    }
}

impl From<Input<'_>> for Arrival {
    fn from(input: Input<'_>) -> Self {
        match input {
            Input::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Input::Datagram(bytes) => Self::Datagram(bytes.to_vec()),
            Input::Gap(length) => Self::Gap(length),
            Input::End => Self::End,
        }
    }
}
