//! The network between an end and the proxy.

use std::collections::VecDeque;

use super::choices::Choices;

/// The conditions on a network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Whether it carries datagrams.
    pub is_datagrams: bool,
    /// The percentages of datagrams that are lost, repeated, and overtaken by later ones: first on
    /// the way to the proxy, then on the way from the proxy to an end.
    pub trouble: [[u64; 3]; 2],
}

/// What is in transit in one direction.
#[derive(Debug, Default)]
pub(super) struct Wire {
    units: VecDeque<Vec<u8>>,
    /// See [`Network::trouble`].
    pub(super) trouble: [u64; 3],
    is_datagrams: bool,
    /// Whether the sender has ended its stream, and whether the receiver knows.
    pub(super) is_ended: bool,
    pub(super) has_delivered_end: bool,
}

impl Wire {
    pub(super) fn new(is_datagrams: bool) -> Self {
        Self { is_datagrams, ..Self::default() }
    }

    pub(super) fn push(&mut self, unit: Vec<u8>) {
        if !unit.is_empty() && !self.is_ended {
            self.units.push_back(unit);
        }
    }

    /// What arrives next: a datagram, or a part of the stream of any size. `None` if nothing does.
    pub(super) fn next(&mut self, choices: &mut Choices) -> Option<Vec<u8>> {
        const SMALL: usize = 16;
        const LARGE: usize = 2000;
        if self.is_datagrams {
            return self.next_datagram(choices);
        }
        let mut bytes = self.units.pop_front()?;
        bytes.extend(self.units.drain(..).flatten());
        let length = match choices.below(4) {
            _ if bytes.len() > LARGE => bytes.len() - choices.index(LARGE),
            0 | 1 => bytes.len(),
            2 => 1 + choices.index(bytes.len()),
            _ => 1 + choices.index(bytes.len().min(SMALL)),
        };
        let rest = bytes.split_off(length);
        if !rest.is_empty() {
            self.units.push_front(rest);
        }
        Some(bytes)
    }

    fn next_datagram(&mut self, choices: &mut Choices) -> Option<Vec<u8>> {
        let [loss, repetition, overtaking] = self.trouble;
        let at = match choices.percent(overtaking) {
            true => choices.index(self.units.len()),
            false => 0,
        };
        let datagram = self.units.remove(at)?;
        if choices.percent(loss) {
            return Some(Vec::new());
        }
        if choices.percent(repetition) {
            self.units.push_back(datagram.clone());
        }
        Some(datagram)
    }
}
