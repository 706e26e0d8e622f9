//! The representation of keys and digests.

use std::fmt;

use ctutils::CtEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A value that is cleared on drop, hidden by `Debug` and compared in constant time.
#[derive(Clone)]
pub(crate) struct Secret<T: Zeroize>(pub(crate) T);

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<T: Zeroize + CtEq> PartialEq for Secret<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl<T: Zeroize + CtEq> Eq for Secret<T> {}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> ZeroizeOnDrop for Secret<T> {}
