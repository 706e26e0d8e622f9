//! Eight powers at a time modulo an odd 512-bit number, on processors that can multiply eight pairs
//! of 52-bit numbers at once (AVX-512 IFMA).
//!
//! Each number has its own lane, so nothing carries between lanes. A number consists of ten 52-bit
//! limbs in Montgomery form to 2^520. The eight bits that the modulus leaves free keep every
//! product below 2n without comparisons: for a, b < 2n it is below 4n^2 / 2^520 + n.

use super::power::{Montgomery, Words};

/// The number of powers computed at a time.
pub(super) const LANES: usize = 8;

/// `base^exponent mod n` for up to eight bases below n, in a time that depends on the exponent.
/// Bases and results are plain numbers. `None` if the processor lacks the instructions.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
pub(super) fn powers(n: &Montgomery, bases: &[Words], exponent: &Words) -> Option<Vec<Words>> {
    let simd = ifma::Ifma::try_new()?;
    let count = bases.len().min(LANES);
    let results = simd.vectorize(ifma::Powers { simd, n, bases, exponent });
    Some(results[..count].to_vec())
}

/// Always `None`, because the instructions belong to a different architecture or the feature `simd`
/// is off.
#[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
pub(super) fn powers(_: &Montgomery, _: &[Words], _: &Words) -> Option<Vec<Words>> {
    None
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod ifma {
    use core::arch::x86_64::__m512i;

    use super::super::power::{Montgomery, Multiply, Words, power};
    use super::LANES;

    pulp::simd_type! {
        /// Proof that the processor has the instructions.
        pub(super) struct Ifma {
            avx512f: "avx512f",
            avx512ifma: "avx512ifma",
        }
    }

    const LIMBS: usize = 10;
    /// The number of bits in a limb.
    const BITS: u32 = 52;
    const LIMB: u64 = (1 << BITS) - 1;

    /// Eight numbers: all lowest limbs, all second limbs, and so on.
    type Numbers = [__m512i; LIMBS];

    /// The computation of [`powers`](super::powers), compiled for these instructions.
    pub(super) struct Powers<'p> {
        pub(super) simd: Ifma,
        pub(super) n: &'p Montgomery,
        pub(super) bases: &'p [Words],
        pub(super) exponent: &'p Words,
    }

    impl pulp::NullaryFnOnce for Powers<'_> {
        type Output = [Words; LANES];

        #[inline(always)]
        fn call(self) -> [Words; LANES] {
            let lanes = Lanes::new(self.simd, self.n);
            // Unused lanes repeat the first base.
            let first = self.bases.first().copied().unwrap_or_default();
            let base = |lane: usize| limbs(self.bases.get(lane).unwrap_or(&first));
            let bases: [[u64; LIMBS]; LANES] = core::array::from_fn(base);
            let base = load(|lane, at| bases[lane][at]);
            // 2^1040 mod n, to multiply by 2^520.
            let form = limbs(&self.n.power_of_two(1040 - 512));
            let base = lanes.times(&base, &load(|_, at| form[at]));
            let one = load(|_, at| u64::from(at == 0));
            let result = match power(&lanes, &base, self.exponent) {
                Some(result) => lanes.times(&result, &one),
                None => one,
            };
            let result: [[u64; LANES]; LIMBS] = result.map(pulp::cast);
            core::array::from_fn(|lane| {
                let number = words(&core::array::from_fn(|at| result[at][lane]));
                // The product with 1 is at most n.
                if number == *self.n.n() { Words::default() } else { number }
            })
        }
    }

    /// A modulus in all lanes.
    struct Lanes {
        simd: Ifma,
        n: Numbers,
        /// -1 / n mod 2^52.
        factor: __m512i,
    }

    impl Lanes {
        #[inline(always)]
        fn new(simd: Ifma, n: &Montgomery) -> Self {
            let limbs = limbs(n.n());
            let factor = pulp::cast([n.factor() & LIMB; LANES]);
            Self { simd, n: load(|_, at| limbs[at]), factor }
        }

        /// Divides twenty columns of limbs by 2^520.
        #[inline(always)]
        fn reduce(&self, mut sum: [__m512i; 2 * LIMBS]) -> Numbers {
            let Ifma { avx512f: f, avx512ifma: i } = self.simd;
            let zero = f._mm512_setzero_si512();
            for at in 0..LIMBS {
                // Adds the multiple of n that makes the lowest limb zero; the rest is carried.
                let multiple = i._mm512_madd52lo_epu64(zero, sum[at], self.factor);
                sum[at] = i._mm512_madd52lo_epu64(sum[at], multiple, self.n[0]);
                let carry = f._mm512_srli_epi64::<BITS>(sum[at]);
                sum[at + 1] = f._mm512_add_epi64(sum[at + 1], carry);
                for limb in 1..LIMBS {
                    let column = &mut sum[at + limb];
                    *column = i._mm512_madd52lo_epu64(*column, multiple, self.n[limb]);
                }
                for limb in 0..LIMBS {
                    let column = &mut sum[at + limb + 1];
                    *column = i._mm512_madd52hi_epu64(*column, multiple, self.n[limb]);
                }
            }
            let mask = pulp::cast([LIMB; LANES]);
            let (mut result, mut carry) = ([zero; LIMBS], zero);
            for at in 0..LIMBS {
                let column = f._mm512_add_epi64(sum[LIMBS + at], carry);
                carry = f._mm512_srli_epi64::<BITS>(column);
                result[at] = f._mm512_and_si512(column, mask);
            }
            result
        }
    }

    impl Multiply for Lanes {
        type Number = Numbers;

        // A column is a sum of at most 40 halves of 52 bits, so it has at most 58 bits.

        #[inline(always)]
        fn times(&self, a: &Numbers, b: &Numbers) -> Numbers {
            let Ifma { avx512f: f, avx512ifma: i } = self.simd;
            let mut sum = [f._mm512_setzero_si512(); 2 * LIMBS];
            for x in 0..LIMBS {
                for y in 0..LIMBS {
                    sum[x + y] = i._mm512_madd52lo_epu64(sum[x + y], a[x], b[y]);
                    sum[x + y + 1] = i._mm512_madd52hi_epu64(sum[x + y + 1], a[x], b[y]);
                }
            }
            self.reduce(sum)
        }

        #[inline(always)]
        fn square(&self, a: &Numbers) -> Numbers {
            let Ifma { avx512f: f, avx512ifma: i } = self.simd;
            let mut sum = [f._mm512_setzero_si512(); 2 * LIMBS];
            // Each product of two different limbs is computed once and doubled; the squares are
            // added.
            for x in 0..LIMBS {
                for y in x + 1..LIMBS {
                    sum[x + y] = i._mm512_madd52lo_epu64(sum[x + y], a[x], a[y]);
                    sum[x + y + 1] = i._mm512_madd52hi_epu64(sum[x + y + 1], a[x], a[y]);
                }
            }
            for column in &mut sum {
                *column = f._mm512_add_epi64(*column, *column);
            }
            for x in 0..LIMBS {
                sum[2 * x] = i._mm512_madd52lo_epu64(sum[2 * x], a[x], a[x]);
                sum[2 * x + 1] = i._mm512_madd52hi_epu64(sum[2 * x + 1], a[x], a[x]);
            }
            self.reduce(sum)
        }
    }

    /// Arranges eight numbers by limb and lane.
    #[inline(always)]
    fn load(limb: impl Fn(usize, usize) -> u64) -> Numbers {
        core::array::from_fn(|at| {
            pulp::cast(core::array::from_fn::<u64, LANES, _>(|lane| limb(lane, at)))
        })
    }

    /// Splits a number into limbs.
    fn limbs(words: &Words) -> [u64; LIMBS] {
        core::array::from_fn(|at| {
            let (word, shift) = place(at);
            let low = words.get(word).map_or(0, |word| word >> shift);
            let high = words.get(word + 1).map_or(0, |word| word << 1 << (63 - shift));
            (low | high) & LIMB
        })
    }

    /// Joins limbs into a number, keeping 512 bits.
    fn words(limbs: &[u64; LIMBS]) -> Words {
        let mut words = Words::default();
        for (at, limb) in limbs.iter().enumerate() {
            let (word, shift) = place(at);
            words[word] |= limb << shift;
            if let Some(next) = words.get_mut(word + 1) {
                *next |= limb >> 1 >> (63 - shift);
            }
        }
        words
    }

    /// The word and the bit at which a limb begins.
    fn place(limb: usize) -> (usize, usize) {
        let bit = limb * BITS as usize;
        (bit / 64, bit % 64)
    }
}
