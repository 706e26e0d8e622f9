//! Takes the cipher's place in builds without the feature `keys`. No [`StreamKey`] can exist in
//! such builds, so this code never runs.

use core::convert::Infallible;

use super::observer::StreamKey;

pub(super) const BLOCK_BYTES: usize = 16;

#[derive(Clone)]
pub(super) struct Cipher(Infallible);

pub(super) fn derived_nonce(key: &StreamKey, _: [u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    match key.never {}
}

impl Cipher {
    pub(super) fn new(key: &StreamKey) -> Self {
        match key.never {}
    }

    pub(super) fn begin(&self, _: &[u8; BLOCK_BYTES]) {
        match self.0 {}
    }

    pub(super) fn apply(&self, _: &mut [u8]) {
        match self.0 {}
    }

    pub(super) fn pass(&self, _: usize) {
        match self.0 {}
    }

    pub(super) fn hash(&self, _: &[u8]) {
        match self.0 {}
    }

    pub(super) fn tag(&self, _: usize) -> [u8; BLOCK_BYTES] {
        match self.0 {}
    }

    pub(super) fn is_tag(&self, _: &[u8; BLOCK_BYTES], _: usize) -> bool {
        match self.0 {}
    }
}
