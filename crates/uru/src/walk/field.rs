//! Walking the field types.

use worldwire_core::{Field, Reader, count32};

use super::{Guard, Refusal, Walk, WalkResult};
use crate::types::{
    BitVector, Bool8, Bool32, Bytes16, ClientGuid, Count, CountedString, Double, FixedText, Float,
    Floats, GenericType, Key, List, Location, Matrix44, NetGroupId, SafeString, SafeWString, Tail,
    UnifiedTime, Uoid, Uuid,
};

/// Fields that no guard can object to and that decode without allocating.
macro_rules! plain {
    ($($type:ty;)*) => {
        $($crate::walk::walk_plain! { @impl [] $type })*
    };
    (@impl [$($generics:tt)*] $type:ty) => {
        impl<'d, $($generics)*> $crate::walk::Walk<'d> for $type {
            type Summary = Self;

            #[inline]
            fn walk<G: $crate::walk::Guard>(
                reader: &mut ::worldwire_core::Reader<'d>,
                _: &mut G,
            ) -> $crate::walk::WalkResult<Self> {
                Ok(<Self as ::worldwire_core::Field<'d>>::decode(reader, "")?)
            }
        }
    };
}

pub(crate) use plain as walk_plain;

walk_plain! {
    u8;
    u16;
    u32;
    i16;
    i32;
    Float;
    Double;
    Matrix44;
    Uuid;
    Location;
    UnifiedTime;
    NetGroupId;
    ClientGuid<'d>;
    CountedString<'d>;
    Bytes16<'d>;
    Tail<'d>;
}
walk_plain! { @impl [const N: usize] Floats<N> }
walk_plain! { @impl [const N: usize] FixedText<'d, N> }
walk_plain! { @impl [const N: usize] SafeWString<'d, N> }

macro_rules! booleans {
    ($($type:ty;)*) => {$(
        impl<'d> Walk<'d> for $type {
            type Summary = Self;

            #[inline]
            fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult<Self> {
                let at = reader.position();
                let value = Self::decode(reader, "")?;
                let checked = guard.boolean(value.is_canonical());
                checked.map_err(|reason| Refusal::at(reason, None, at))?;
                Ok(value)
            }
        }
    )*};
}

booleans! {
    Bool8;
    Bool32;
}

impl<'d> Walk<'d> for SafeString<'d> {
    type Summary = ();

    #[inline]
    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let text = Self::decode(reader, "")?;
        check_text(guard, &text, at)
    }
}

impl<'d> Walk<'d> for Uoid<'d> {
    type Summary = ();

    #[inline]
    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let uoid = Self::decode(reader, "")?;
        guard.object(&uoid).map_err(|reason| Refusal::at(reason, None, at))
    }
}

impl<'d> Walk<'d> for Key<'d> {
    type Summary = Self;

    #[inline]
    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult<Self> {
        let at = reader.position();
        let key = Self::decode(reader, "")?;
        guard.boolean(key.is_canonical()).map_err(|reason| Refusal::at(reason, None, at))?;
        if let Some(uoid) = key.uoid() {
            guard.object(uoid).map_err(|reason| Refusal::at(reason, None, at))?;
        }
        Ok(key)
    }
}

impl<'d> Walk<'d> for GenericType<'d> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        match Self::decode(reader, "")? {
            Self::String(text) | Self::Any(text) => check_text(guard, &text, at),
            _ => Ok(()),
        }
    }
}

/// Passes the guard a text read at offset `at`.
#[inline]
fn check_text<G: Guard>(guard: &mut G, text: &SafeString<'_>, at: usize) -> WalkResult {
    guard.text(text).map_err(|reason| Refusal::at(reason, None, at))
}

/// The lowest bits of a bit vector, which later conditions may test.
#[derive(Clone, Copy, Debug)]
pub struct LowBits(u32);

impl LowBits {
    /// Whether a bit below 32 is set.
    #[must_use]
    pub fn contains(self, bit: u32) -> bool {
        self.0.checked_shr(bit).is_some_and(|bits| bits & 1 == 1)
    }
}

impl<'d> Walk<'d> for BitVector {
    type Summary = LowBits;

    fn walk<G: Guard>(reader: &mut Reader<'d>, _: &mut G) -> WalkResult<LowBits> {
        let count = count32(reader, Self::MAX_WORDS, "words of a bit vector")?;
        let words = reader.take(count * 4)?;
        let first = words.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        Ok(LowBits(first))
    }
}

impl<'d, C: Count + 'static, E: Walk<'d>, const MIN: usize> Walk<'d> for List<C, E, MIN> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let count = Self::take_count(reader, E::LEAST)?;
        for index in 0..count {
            E::walk(reader, guard).map_err(|refusal| refusal.inside_item(index))?;
        }
        Ok(())
    }
}
