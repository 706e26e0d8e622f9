//! Generated values: the seeds of property tests, fuzz corpora and benchmarks.

/// A deterministic generator of values.
///
/// Every field type can generate itself from a sampler, so a message declared with
/// [`messages!`](crate::messages) can be tested, fuzzed and measured without further code. Edge
/// cases of a type (empty, one, all bits set) are far more frequent than with uniform random
/// values.
#[derive(Clone, Debug)]
pub struct Sampler {
    state: u64,
    size: u64,
}

impl Sampler {
    /// Starts from a seed. Lists and strings are short (at most 24 elements).
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self::sized(seed, 24)
    }

    /// Starts from a seed, with at most `size` elements in a list or string.
    #[must_use]
    pub const fn sized(seed: u64, size: u64) -> Self {
        Self { state: seed, size }
    }

    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (0 when `bound` is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is uniform enough here.
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A full-width number, often an edge case.
    pub fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => self.below(256),
            _ => self.bits(),
        }
    }

    /// A length of at most `most` elements, often 0 or 1.
    pub fn length(&mut self, most: u64) -> usize {
        let most = most.min(self.size);
        let length = match self.below(8) {
            0 => 0,
            1 => most.min(1),
            2 => most,
            _ => self.below(most + 1),
        };
        usize::try_from(length).unwrap_or(0)
    }

    /// Random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.bits().to_le_bytes()[0]).collect()
    }

    /// A character: mostly ASCII letters, sometimes others, never a surrogate or zero.
    pub fn character(&mut self) -> char {
        const FAR: [char; 6] = ['é', 'Ж', '€', '日', '\u{fffd}', '🙂'];
        match self.below(8) {
            0 => FAR[usize::try_from(self.below(6)).unwrap_or(0)],
            1 => char::from(b' ' + self.below(95).to_le_bytes()[0]),
            _ => char::from(b'a' + self.below(26).to_le_bytes()[0]),
        }
    }

    /// Text of at most `most` UTF-16 units.
    pub fn text(&mut self, most: u64) -> String {
        let mut left = self.length(most);
        let mut text = String::new();
        while left > 0 {
            let next = self.character();
            if next.len_utf16() > left {
                break;
            }
            left -= next.len_utf16();
            text.push(next);
        }
        text
    }
}
