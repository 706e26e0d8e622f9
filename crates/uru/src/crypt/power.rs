//! Powers modulo an odd number of 512 bits, in a time that depends on the exponent.
//!
//! A capture of many short connections is mostly key exchanges, so reading it is about as fast as
//! this. The library that servers and clients use takes the same time for all numbers, or 1.5
//! times as long as this where it need not (`uru/exchange/capture` in the bench `crypt`).
//!
//! Numbers are in Montgomery form and below 2^512, not below the modulus: a multiple of the modulus
//! is subtracted only where the 512 bits would overflow.

/// The words of a number, least significant first.
pub(super) type Words = [u64; WORDS];

const WORDS: usize = 8;
const BITS: usize = 512;
/// Bits of the exponent that cost one multiplication.
const WINDOW: usize = 5;

/// An odd modulus of exactly 512 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Montgomery {
    n: Words,
    /// What makes the lowest word of a multiple of `n` the negative of 1: -1 / n mod 2^64.
    factor: u64,
    /// 2^512 mod n, the form of 1.
    one: Words,
}

impl Montgomery {
    /// Prepares a modulus, with its lowest and highest bit set.
    pub(super) fn new(n: Words) -> Self {
        debug_assert!(n[0] & 1 == 1 && n[WORDS - 1] >> 63 == 1);
        // Three bits are right to begin with; each step doubles them.
        let mut inverse = n[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(n[0].wrapping_mul(inverse)));
        }
        Self { n, factor: inverse.wrapping_neg(), one: minus(&[0; WORDS], &n).0 }
    }

    /// `base^exponent mod n`; base and result are in Montgomery form. The result is below `n`.
    pub(super) fn power(&self, base: &Words, exponent: &Words) -> Words {
        // The odd powers, up to a window full of ones.
        let square = self.square(base);
        let mut odd = [*base; 1 << (WINDOW - 1)];
        for at in 1..odd.len() {
            odd[at] = self.times(&odd[at - 1], &square);
        }
        let is_set = |bit: usize| exponent[bit / 64] >> (bit % 64) & 1 == 1;
        let mut result: Option<Words> = None;
        let mut left = BITS;
        while left > 0 {
            if !is_set(left - 1) {
                result = result.map(|result| self.square(&result));
                left -= 1;
                continue;
            }
            // A window begins and ends with a one.
            let mut end = left.saturating_sub(WINDOW);
            while !is_set(end) {
                end += 1;
            }
            let digits = (end..left).rev().fold(0, |all, bit| all << 1 | usize::from(is_set(bit)));
            let factor = &odd[digits >> 1];
            result = Some(result.map_or(*factor, |mut result| {
                for _ in end..left {
                    result = self.square(&result);
                }
                self.times(&result, factor)
            }));
            left = end;
        }
        let result = result.unwrap_or(self.one);
        // Below 2^512 is below 2n.
        let (reduced, is_less) = minus(&result, &self.n);
        if is_less { result } else { reduced }
    }

    /// `a * b / 2^512`.
    #[inline(never)]
    fn times(&self, a: &Words, b: &Words) -> Words {
        let mut sum = [0; WORDS];
        let mut top = false;
        for word in b {
            let mut carry = 0;
            for (sum, a) in sum.iter_mut().zip(a) {
                (*sum, carry) = a.carrying_mul_add(*word, *sum, carry);
            }
            let (high, over) = carry.overflowing_add(u64::from(top));
            let (last, again) = self.step(&mut sum).overflowing_add(high);
            sum[WORDS - 1] = last;
            top = over | again;
        }
        self.fit(sum, top)
    }

    /// `a * a / 2^512`.
    #[inline(never)]
    fn square(&self, a: &Words) -> Words {
        // Each product of two different words, once.
        let mut all = [0; 2 * WORDS];
        for at in 0..WORDS - 1 {
            let mut carry = 0;
            for other in at + 1..WORDS {
                let sum = &mut all[at + other];
                (*sum, carry) = a[at].carrying_mul_add(a[other], *sum, carry);
            }
            all[at + WORDS] = carry;
        }
        // Twice that, and the squares of the words.
        let (mut carry, mut shifted) = (false, 0);
        for at in 0..WORDS {
            let [low, high] = [all[2 * at], all[2 * at + 1]];
            let (square, upper) = a[at].carrying_mul(a[at], 0);
            (all[2 * at], carry) = (low << 1 | shifted).carrying_add(square, carry);
            (all[2 * at + 1], carry) = (high << 1 | low >> 63).carrying_add(upper, carry);
            shifted = high >> 63;
        }
        let mut sum = [0; WORDS];
        sum.copy_from_slice(&all[..WORDS]);
        for _ in 0..WORDS {
            sum[WORDS - 1] = self.step(&mut sum);
        }
        let mut carry = false;
        for (sum, high) in sum.iter_mut().zip(&all[WORDS..]) {
            (*sum, carry) = sum.carrying_add(*high, carry);
        }
        self.fit(sum, carry)
    }

    /// Adds what makes the lowest word zero, and drops that word. The highest word is the result.
    #[inline(always)]
    fn step(&self, sum: &mut Words) -> u64 {
        let multiple = sum[0].wrapping_mul(self.factor);
        let (_, mut carry) = multiple.carrying_mul_add(self.n[0], sum[0], 0);
        for at in 1..WORDS {
            (sum[at - 1], carry) = multiple.carrying_mul_add(self.n[at], sum[at], carry);
        }
        carry
    }

    /// A sum of up to 513 bits that is below 2^512 + n, in 512.
    #[inline(always)]
    fn fit(&self, sum: Words, is_over: bool) -> Words {
        if is_over { minus(&sum, &self.n).0 } else { sum }
    }
}

/// The difference modulo 2^512, and whether `b` is the larger one.
fn minus(a: &Words, b: &Words) -> (Words, bool) {
    let mut difference = *a;
    let mut borrow = false;
    for (a, b) in difference.iter_mut().zip(b) {
        (*a, borrow) = a.borrowing_sub(*b, borrow);
    }
    (difference, borrow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
    use crypto_bigint::{Odd, U512};
    use proptest::prelude::*;

    /// The same power, here and by the library.
    fn both(n: Words, base: Words, exponent: Words) -> [U512; 2] {
        let n = Odd::new(U512::from_words(n)).into_option().unwrap();
        let params = FixedMontyParams::new_vartime(n);
        let base = FixedMontyForm::new(&U512::from_words(base).rem_vartime(n.as_nz_ref()), &params);
        let here = Montgomery::new(n.to_words());
        let power = here.power(&base.to_montgomery().to_words(), &exponent);
        let power = U512::from_words(power);
        assert!(power < *n, "not reduced");
        let there = base.pow(&U512::from_words(exponent));
        [FixedMontyForm::from_montgomery(power, &params).retrieve(), there.retrieve()]
    }

    fn modulus(mut words: Words) -> Words {
        words[0] |= 1;
        words[WORDS - 1] |= 1 << 63;
        words
    }

    /// Words where carries end and begin are as likely as any other.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(1), Just(u64::MAX), Just(1 << 63)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn powers_are_those_of_the_library(
            n in prop::array::uniform8(word()),
            base in prop::array::uniform8(word()),
            exponent in prop::array::uniform8(word()),
        ) {
            let [here, there] = both(modulus(n), base, exponent);
            prop_assert_eq!(here, there);
        }
    }

    #[test]
    fn the_ends_of_the_ranges() {
        let mut one = [0; WORDS];
        one[0] = 1;
        let least = modulus([0; WORDS]);
        let odd = modulus([0x0123_4567_89ab_cdef; WORDS]);
        for n in [least, odd, [u64::MAX; WORDS]] {
            let (last, _) = minus(&n, &one);
            for base in [[0; WORDS], one, last, minus(&last, &one).0] {
                for exponent in [[0; WORDS], one, last, [u64::MAX; WORDS], modulus([0; WORDS])] {
                    let [here, there] = both(n, base, exponent);
                    assert_eq!(here, there, "{base:x?}^{exponent:x?} mod {n:x?}");
                }
            }
        }
    }

    /// Every exponent of one window and a bit, so that windows of each length occur.
    #[test]
    fn small_exponents() {
        let n = modulus([0x0123_4567_89ab_cdef; WORDS]);
        for exponent in 0..1 << (WINDOW + 1) {
            let mut words = [0; WORDS];
            words[0] = exponent;
            let [here, there] = both(n, [3; WORDS], words);
            assert_eq!(here, there, "{exponent}");
        }
    }
}
