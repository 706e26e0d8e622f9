//! The integrity header: the counter and checksum of some client messages, from patch 92 on.
//!
//! | offset | field | type |
//! | --- | --- | --- |
//! | 0 | `length` | `u16` |
//! | 2 | `opcode` | `u16` |
//! | 4 | `counter` | `u32` |
//! | 8 | `checksum` | `u32` |
//!
//! A list of names, which depends on the patch, specifies the messages that have it. From patch 93
//! on, the server sends the seed of the checksum in `S_LOGIN_ACCOUNT_INFO`; in patch 92 there is
//! none, and the checksum is 0. The first message of an opcode has the counter 1, so no client
//! sends 0. Servers may ignore both fields.
//!
//! A [client](crate::connection::Config::integrity) and a
//! [relay](crate::connection::RelayConfig::integrity) fill in both fields when sending; programs
//! that send in other ways can use a [`Signer`]. Messages are encoded with zeros in their place.
//!
//! Unverified: the checksum comes from a single public source and has not been checked against a
//! client. Whether the running sum wraps at 32 bits is not known; it would only matter for seeds
//! near 2^32.

use std::collections::HashMap;

/// Length of a header with counter and checksum.
pub const HEADER_BYTES: usize = 12;
/// The first patch whose clients count their messages.
pub(crate) const FIRST_PATCH: u16 = 92;
/// Position of the counter.
pub const COUNTER: core::ops::Range<usize> = 4..8;
/// Position of the checksum, which is excluded from its own computation.
const CHECKSUM: core::ops::Range<usize> = 8..12;

/// The counter and checksum of a message; `None` if it is shorter than the header.
#[must_use]
pub fn header(message: &[u8]) -> Option<(u32, u32)> {
    let (head, _) = message.split_first_chunk::<HEADER_BYTES>()?;
    let [_, _, _, _, a, b, c, d, e, f, g, h] = *head;
    Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
}

/// The checksum of a message whose counter is in place, for a seed (`iv`); `None` if the message is
/// shorter than the header.
#[must_use]
pub fn checksum(message: &[u8], iv: u32) -> Option<u32> {
    let (counter, _) = header(message)?;
    let [_, _, low, high, ..] = *message else { return None };
    let opcode = i64::from(u16::from_le_bytes([low, high]));
    let (iv, counter) = (i64::from(iv), i64::from(counter));
    let mut place = iv;
    let mut sum: i64 = 0;
    for (at, byte) in message.iter().enumerate().filter(|(at, _)| !CHECKSUM.contains(at)) {
        // A message has at most 65535 bytes.
        let index = at as i64;
        let byte = i64::from(*byte);
        place += index;
        let value = match place % 5 {
            0 => (-iv + opcode + counter + index) ^ (byte << (index % 3)),
            1 => (iv + opcode + counter + index) & (byte << (index % 4)),
            2 => (-2 * iv + opcode + counter + index) | (byte << (index % 2)),
            3 => (2 * iv - opcode + counter + index) ^ (byte << (index % 3)),
            _ => (iv + opcode + counter) ^ (byte << (index % 3)),
        };
        // The original uses bit operations on signed 32-bit integers.
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are wanted")]
        let value = value as i32;
        sum += i64::from(value);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2^32")]
    let sum = sum as u32;
    Some(sum)
}

/// The result of verifying a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The checksum is right.
    Right,
    /// The checksum is wrong.
    Checksum {
        /// The right checksum.
        wanted: u32,
        /// The checksum in the message.
        found: u32,
    },
    /// The message is shorter than the header.
    Short,
}

/// Verifies the checksum of a message.
#[must_use]
pub fn verify(message: &[u8], iv: u32) -> Verdict {
    match (checksum(message, iv), header(message)) {
        (Some(wanted), Some((_, found))) if wanted == found => Verdict::Right,
        (Some(wanted), Some((_, found))) => Verdict::Checksum { wanted, found },
        _ => Verdict::Short,
    }
}

/// Fills in counters and checksums of messages sent by a client.
#[derive(Clone, Debug, Default)]
pub struct Signer {
    /// The seed; if `None` (patch 92), checksums are 0.
    pub iv: Option<u32>,
    counters: HashMap<u16, u32>,
}

impl Signer {
    /// Creates a signer with or without a seed.
    #[must_use]
    pub fn new(iv: Option<u32>) -> Self {
        Self { iv, counters: HashMap::new() }
    }

    /// Fills in the header of a message that has space for it: the next counter of its opcode,
    /// starting at 1, and the checksum. Returns `false` if the message is shorter than the header.
    pub fn sign(&mut self, message: &mut [u8]) -> bool {
        let Some(([_, _, low, high, ..], _)) = message.split_first_chunk::<HEADER_BYTES>() else {
            return false;
        };
        let counter = self.counters.entry(u16::from_le_bytes([*low, *high])).or_default();
        *counter = counter.wrapping_add(1);
        write(message, *counter, self.iv);
        true
    }
}

/// Corrects counters and checksums of messages to the server if a relay drops, adds or changes
/// some. Messages shorter than the header are not counted.
#[derive(Debug, Default)]
pub(crate) struct Resigner {
    iv: Option<u32>,
    counts: HashMap<u16, Count>,
}

/// The count of an opcode's messages.
#[derive(Debug, Default)]
struct Count {
    /// The counter of the last message forwarded.
    last: u32,
    /// The number of messages forwarded minus the number received, modulo 2^32.
    shift: u32,
}

impl Resigner {
    /// Sets the seed for checksums; until then they are 0.
    pub(crate) fn set_seed(&mut self, iv: u32) {
        self.iv = Some(iv);
    }

    /// Forwards a message, which is only modified if its counter has shifted.
    pub(crate) fn pass(&mut self, message: &mut [u8]) {
        let (iv, Some((counter, _))) = (self.iv, header(message)) else { return };
        let count = self.count(message);
        count.last = counter.wrapping_add(count.shift);
        if count.shift != 0 {
            write(message, count.last, iv);
        }
    }

    /// Forwards a message in place of another with the same opcode.
    pub(crate) fn change(&mut self, original: &[u8], message: &mut [u8]) {
        let Some((counter, _)) = header(original) else { return self.add(message) };
        let iv = self.iv;
        let count = self.count(message);
        count.last = counter.wrapping_add(count.shift);
        write(message, count.last, iv);
    }

    /// Records that a message is not forwarded.
    pub(crate) fn drop(&mut self, message: &[u8]) {
        if header(message).is_some() {
            let count = self.count(message);
            count.shift = count.shift.wrapping_sub(1);
        }
    }

    /// Forwards a message that was not received.
    pub(crate) fn add(&mut self, message: &mut [u8]) {
        let iv = self.iv;
        let count = self.count(message);
        count.last = count.last.wrapping_add(1);
        count.shift = count.shift.wrapping_add(1);
        write(message, count.last, iv);
    }

    fn count(&mut self, message: &[u8]) -> &mut Count {
        let opcode = message.get(2..4).and_then(|bytes| bytes.try_into().ok());
        self.counts.entry(opcode.map_or(0, u16::from_le_bytes)).or_default()
    }
}

/// Writes the counter and checksum into a message that has space for them.
fn write(message: &mut [u8], counter: u32, iv: Option<u32>) {
    if let Some(place) = message.get_mut(COUNTER) {
        place.copy_from_slice(&counter.to_le_bytes());
    }
    let sum = iv.and_then(|iv| checksum(message, iv)).unwrap_or(0);
    if let Some(place) = message.get_mut(CHECKSUM) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_messages_verify() {
        let mut signer = Signer::new(Some(0xffff_fffe));
        for counter in 1..5 {
            let mut message = vec![20, 0, 1, 2, 0, 0, 0, 0, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8];
            assert!(signer.sign(&mut message));
            assert_eq!(header(&message).map(|(counter, _)| counter), Some(counter));
            assert_eq!(verify(&message, 0xffff_fffe), Verdict::Right);
            // It is a weak checksum that misses some changes.
            let shows = |bit: usize| {
                let mut message = message.clone();
                message[12 + bit / 8] ^= 1 << (bit % 8);
                verify(&message, 0xffff_fffe) != Verdict::Right
            };
            assert!((0..64).filter(|bit| shows(*bit)).count() > 16);
        }
        assert!(!signer.sign(&mut [4, 0, 1, 2]));
        assert_eq!(verify(&[4, 0, 1, 2], 1), Verdict::Short);
    }

    #[test]
    fn without_a_seed_the_checksum_is_zero() {
        let mut message = [12, 0, 1, 2, 0, 0, 0, 0, 9, 9, 9, 9];
        Signer::new(None).sign(&mut message);
        assert_eq!(message, [12, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn messages_after_a_change_are_renumbered_and_signed() {
        let iv = 0x1234_5678;
        let mut client = Signer::new(Some(iv));
        let mut came = |last: u8| {
            let mut message = vec![13, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, last];
            client.sign(&mut message);
            message
        };
        let mut relay = Resigner::default();
        relay.set_seed(iv);
        let mut counter = 0;
        let mut gone = |message: &[u8]| {
            counter += 1;
            assert_eq!(header(message).map(|(counter, _)| counter), Some(counter));
            assert_eq!(verify(message, iv), Verdict::Right);
        };
        let same = |relay: &mut Resigner, message: &[u8]| {
            let mut passed = message.to_vec();
            relay.pass(&mut passed);
            let is_same = passed == message;
            (passed, is_same)
        };
        let (passed, is_same) = same(&mut relay, &came(1));
        gone(&passed);
        assert!(is_same);
        // A changed message affects only itself.
        let mut other = vec![14, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7];
        relay.change(&came(2), &mut other);
        gone(&other);
        let (passed, is_same) = same(&mut relay, &came(3));
        gone(&passed);
        assert!(is_same);
        // An added message affects all later ones, until one is dropped.
        relay.add(&mut other);
        gone(&other);
        let (passed, is_same) = same(&mut relay, &came(4));
        gone(&passed);
        assert!(!is_same);
        relay.drop(&came(5));
        let (passed, is_same) = same(&mut relay, &came(6));
        gone(&passed);
        assert!(is_same);
        // Too short for the header, so it has no counter.
        relay.drop(&[4, 0, 1, 2]);
        assert_eq!(same(&mut relay, &[4, 0, 1, 2]), (vec![4, 0, 1, 2], true));
        let (passed, is_same) = same(&mut relay, &came(7));
        gone(&passed);
        assert!(is_same);
    }
}
