//! Bits, from the least significant up.

use super::Reader;
use crate::{Result, Trace, Value};

impl<'n, T: Trace<'n>> Reader<'_, T> {
    /// Reads `count` bits (at most 64) as an unsigned number, least significant bit first.
    #[inline]
    pub fn bits(&mut self, name: &'n str, count: u8) -> Result<u64> {
        self.shown(name, |r| r.take_bits(count), |v| Value::Unsigned(*v))
    }

    /// Reads one bit.
    #[inline]
    pub fn bit(&mut self, name: &'n str) -> Result<bool> {
        self.shown(name, |r| r.take_bits(1).map(|bit| bit != 0), |v| Value::Bool(*v))
    }

    /// Takes `count` bits (at most 64) without reporting them to the trace.
    #[inline]
    pub fn take_bits(&mut self, count: u8) -> Result<u64> {
        let count = count.min(64);
        let have = u64::from(self.partial_bits) + self.rest.len() as u64 * 8;
        if have < u64::from(count) {
            let missing = (u64::from(count) - have).div_ceil(8);
            let want = self.rest.len().saturating_add(usize::try_from(missing).unwrap_or(1));
            return Err(self.place_error(self.short(want)));
        }
        let mut value = 0;
        let mut done = 0;
        while done < count {
            if self.partial_bits == 0
                && let Some((first, rest)) = self.rest.split_first()
            {
                self.partial = *first;
                self.partial_bits = 8;
                self.rest = rest;
            }
            let step = self.partial_bits.min(count - done);
            let mask = u16::from(u8::MAX) >> (8 - step);
            value |= u64::from(u16::from(self.partial) & mask) << done;
            // A shift by eight empties the byte.
            self.partial = self.partial.checked_shr(u32::from(step)).unwrap_or(0);
            self.partial_bits -= step;
            done += step;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, Tree};

    #[test]
    fn bits_come_from_the_least_significant_up_and_bytes_realign() {
        let mut r = Reader::traced("m", &[0b1010_0110, 0xab, 0x01], Tree::new());
        assert!(!r.bit("a").unwrap());
        assert_eq!(r.bits("b", 3).unwrap(), 0b011);
        assert_eq!(r.place(), Place { byte: 0, bit: 4 });
        assert_eq!(r.u8("c").unwrap(), 0xab);
        assert!(r.bit("d").unwrap());
        let tree = r.finish();
        let places: Vec<_> =
            tree.nodes().map(|n| (n.places().0.byte, n.places().0.bit, n.places().1.bit)).collect();
        assert_eq!(places, [(0, 0, 1), (0, 1, 4), (0, 4, 0), (2, 0, 1)]);
    }

    #[test]
    fn bits_cross_bytes() {
        let mut r = Reader::new(&[0xff, 0x00, 0xff, 0x0f]);
        assert_eq!(r.take_bits(4).unwrap(), 0xf);
        assert_eq!(r.take_bits(12).unwrap(), 0x00f);
        assert_eq!(r.bits("s", 13).unwrap(), 0x0fff);
        assert_eq!(r.bits("too many", 4).unwrap_err().needed(), Some(1));
    }
}
