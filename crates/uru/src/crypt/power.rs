//! Powers modulo an odd 512-bit number, in a time that depends on the exponent.
//!
//! When a capture of many short connections is read, key exchanges take most of the time, so this
//! module's speed matters most. The library used by servers and clients takes constant time or,
//! where that is not needed, 1.5 times as long as this (`uru/exchange/capture` in the bench
//! `crypt`). For many numbers with one key, [`lanes`](super::lanes) is faster still.
//!
//! Numbers are in Montgomery form and below 2^512, not below the modulus: a multiple of the modulus
//! is subtracted only if 512 bits would overflow.

/// The words of a number, least significant first.
pub(super) type Words = [u64; WORDS];

const WORDS: usize = 8;
const BITS: usize = 512;
/// The number of exponent bits handled by one multiplication.
const WINDOW: usize = 5;

/// An odd modulus of exactly 512 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Montgomery {
    n: Words,
    /// The factor that makes the lowest word of a multiple of `n` equal to -1: -1 / n mod 2^64.
    factor: u64,
    /// 2^512 mod n, the Montgomery form of 1.
    one: Words,
}

impl Montgomery {
    /// Prepares a modulus whose lowest and highest bits are set.
    pub(super) fn new(n: Words) -> Self {
        debug_assert!(n[0] & 1 == 1 && n[WORDS - 1] >> 63 == 1);
        // Three bits are correct initially; each step doubles their number.
        let mut inverse = n[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(n[0].wrapping_mul(inverse)));
        }
        Self { n, factor: inverse.wrapping_neg(), one: minus(&[0; WORDS], &n).0 }
    }

    /// `base^exponent mod n`; base and result are in Montgomery form. The result is below `n`.
    pub(super) fn power(&self, base: &Words, exponent: &Words) -> Words {
        self.reduced(&power(self, base, exponent).unwrap_or(self.one))
    }

    /// Reduces a number below 2^512, and therefore below 2n, to one below n.
    fn reduced(&self, number: &Words) -> Words {
        let (reduced, is_less) = minus(number, &self.n);
        if is_less { *number } else { reduced }
    }

    /// Adds a multiple of n that makes the lowest word zero and drops that word. Returns the
    /// highest word.
    #[inline(always)]
    fn step(&self, sum: &mut Words) -> u64 {
        let multiple = sum[0].wrapping_mul(self.factor);
        let (_, mut carry) = multiple.carrying_mul_add(self.n[0], sum[0], 0);
        for at in 1..WORDS {
            (sum[at - 1], carry) = multiple.carrying_mul_add(self.n[at], sum[at], carry);
        }
        carry
    }

    /// Fits a sum of up to 513 bits, below 2^512 + n, into 512 bits.
    #[inline(always)]
    fn fit(&self, sum: Words, is_over: bool) -> Words {
        if is_over { minus(&sum, &self.n).0 } else { sum }
    }
}

/// The precomputed values that [`lanes`](super::lanes) needs.
#[cfg(any(test, all(feature = "simd", target_arch = "x86_64")))]
impl Montgomery {
    /// The modulus.
    pub(super) fn n(&self) -> &Words {
        &self.n
    }

    /// -1 / n mod 2^64.
    pub(super) fn factor(&self) -> u64 {
        self.factor
    }

    /// `2^(512 + bits) mod n`, the Montgomery form of `2^bits`.
    pub(super) fn power_of_two(&self, bits: u32) -> Words {
        let mut result = self.one;
        for bit in (0..u32::BITS - bits.leading_zeros()).rev() {
            result = self.reduced(&self.square(&result));
            if bits >> bit & 1 == 1 {
                let top = result[WORDS - 1] >> 63 == 1;
                for at in (1..WORDS).rev() {
                    result[at] = result[at] << 1 | result[at - 1] >> 63;
                }
                result[0] <<= 1;
                result = self.fit(result, top);
            }
        }
        result
    }
}

impl Multiply for Montgomery {
    type Number = Words;

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
        // Compute each product of two different words once.
        let mut all = [0; 2 * WORDS];
        for at in 0..WORDS - 1 {
            let mut carry = 0;
            for other in at + 1..WORDS {
                let sum = &mut all[at + other];
                (*sum, carry) = a[at].carrying_mul_add(a[other], *sum, carry);
            }
            all[at + WORDS] = carry;
        }
        // Double them and add the squares of the words.
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
}

/// Modular multiplication.
pub(super) trait Multiply {
    /// A number or several side by side.
    type Number: Copy;

    /// The product of two numbers.
    fn times(&self, a: &Self::Number, b: &Self::Number) -> Self::Number;

    /// The square of a number.
    fn square(&self, a: &Self::Number) -> Self::Number;
}

/// `base^exponent`; `None` for the exponent 0.
#[inline(always)]
pub(super) fn power<M: Multiply>(by: &M, base: &M::Number, exponent: &Words) -> Option<M::Number> {
    // The odd powers, up to a window of ones.
    let square = by.square(base);
    let mut odd = [*base; 1 << (WINDOW - 1)];
    for at in 1..odd.len() {
        odd[at] = by.times(&odd[at - 1], &square);
    }
    let mut steps = Steps { exponent, left: BITS };
    let mut result = odd[steps.next()?.odd?];
    for step in steps {
        for _ in 0..step.squares {
            result = by.square(&result);
        }
        if let Some(at) = step.odd {
            result = by.times(&result, &odd[at]);
        }
    }
    Some(result)
}

/// Splits an exponent into windows that begin and end with a one, and the zeros between them.
struct Steps<'e> {
    exponent: &'e Words,
    /// The number of remaining bits.
    left: usize,
}

/// A number of squarings, then a multiplication with an odd power.
struct Step {
    squares: usize,
    odd: Option<usize>,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let is_set = |bit: usize| self.exponent[bit / 64] >> (bit % 64) & 1 == 1;
        let before = self.left;
        let Some(top) = (0..before).rev().find(|bit| is_set(*bit)) else {
            self.left = 0;
            return (before > 0).then_some(Step { squares: before, odd: None });
        };
        let mut end = (top + 1).saturating_sub(WINDOW);
        while !is_set(end) {
            end += 1;
        }
        let digits = (end..=top).rev().fold(0, |all, bit| all << 1 | usize::from(is_set(bit)));
        self.left = end;
        Some(Step { squares: before - end, odd: Some(digits >> 1) })
    }
}

/// The difference modulo 2^512 and whether `b` is larger.
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
    use super::super::lanes::{LANES, powers};
    use super::*;
    use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
    use crypto_bigint::{Odd, U512};
    use proptest::prelude::*;

    /// Computes a power with this module and with the library.
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

    /// Generates words; those at which carries start or end are as likely as any others.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(1), Just(u64::MAX), Just(1 << 63)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn powers_match_the_library(
            n in prop::array::uniform8(word()),
            base in prop::array::uniform8(word()),
            exponent in prop::array::uniform8(word()),
        ) {
            let [here, there] = both(modulus(n), base, exponent);
            prop_assert_eq!(here, there);
        }
    }

    #[test]
    fn boundary_values() {
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

    #[test]
    fn powers_of_two() {
        let n = modulus([0x0123_4567_89ab_cdef; WORDS]);
        for bits in [0, 1, 2, 3, 64, 511, 512, 528, 1040] {
            let mut exponent = [0; WORDS];
            exponent[0] = u64::from(bits);
            for n in [n, modulus([0; WORDS]), [u64::MAX; WORDS]] {
                let quick = Montgomery::new(n);
                let base = quick.power_of_two(1);
                let wanted = quick.power(&base, &exponent);
                assert_eq!(quick.reduced(&quick.power_of_two(bits)), wanted, "{bits}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn lanes_compute_the_same_powers(
            n in prop::array::uniform8(word()),
            bases in prop::collection::vec(prop::array::uniform8(word()), 1..LANES + 2),
            exponent in prop::array::uniform8(word()),
        ) {
            let n = modulus(n);
            let modulus = U512::from_words(n).to_nz().unwrap();
            let reduce = |base: &Words| U512::from_words(*base).rem_vartime(&modulus).to_words();
            let bases: Vec<Words> = bases.iter().map(reduce).collect();
            // The processor lacks the instructions, so there is nothing to test.
            if let Some(powers) = powers(&Montgomery::new(n), &bases, &exponent) {
                prop_assert_eq!(powers.len(), bases.len().min(LANES));
                for (power, base) in powers.into_iter().zip(bases) {
                    prop_assert_eq!(U512::from_words(power), both(n, base, exponent)[1]);
                }
            }
        }
    }

    #[test]
    fn lanes_at_boundary_values() {
        let mut one = [0; WORDS];
        one[0] = 1;
        for n in [modulus([0; WORDS]), [u64::MAX; WORDS]] {
            let (last, _) = minus(&n, &one);
            let bases = [[0; WORDS], one, last, minus(&last, &one).0];
            for exponent in [[0; WORDS], one, last, [u64::MAX; WORDS], modulus([0; WORDS])] {
                let found = powers(&Montgomery::new(n), &bases, &exponent).unwrap_or_default();
                for (power, base) in found.into_iter().zip(bases) {
                    assert_eq!(U512::from_words(power), both(n, base, exponent)[1]);
                }
            }
        }
    }

    /// Try every exponent up to one bit longer than a window, so that windows of all lengths occur.
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
