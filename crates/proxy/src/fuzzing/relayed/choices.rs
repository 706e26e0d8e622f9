//! The choices of a play.

use std::collections::VecDeque;

use worldwire_core::Sampler;

/// A source of choices: a seed, or the input of a fuzz target.
#[derive(Debug)]
pub struct Choices(Source);

#[derive(Debug)]
enum Source {
    Seed(Sampler),
    Bytes(VecDeque<u8>),
}

impl Choices {
    /// Random choices, which never end.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seed(Sampler::new(seed)))
    }

    /// Choices encoded in these bytes. Once they are used up, every choice is 0.
    #[must_use]
    pub fn encoded(bytes: &[u8]) -> Self {
        Self(Source::Bytes(bytes.iter().copied().collect()))
    }

    /// Whether the bytes are used up.
    #[must_use]
    pub fn are_over(&self) -> bool {
        matches!(&self.0, Source::Bytes(bytes) if bytes.is_empty())
    }

    /// A number below `bound`, which is at most 65536; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        match &mut self.0 {
            Source::Seed(sampler) => sampler.below(bound),
            Source::Bytes(bytes) => {
                let mut next = || u64::from(bytes.pop_front().unwrap_or(0));
                let number = if bound > 256 { next() << 8 | next() } else { next() };
                number.checked_rem(bound).unwrap_or(0)
            }
        }
    }

    /// An index below `count`; 0 if `count` is 0.
    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }

    /// True with this probability, in percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) >= 100 - percent.min(100)
    }

    /// A generator of values that uses little input.
    pub fn sampler(&mut self) -> Sampler {
        Sampler::new(self.below(65_536))
    }
}
