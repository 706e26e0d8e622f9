//! The primitive types of Uru's protocols and of Plasma's data.
//!
//! | type | on the wire | used by |
//! | --- | --- | --- |
//! | [`Uuid`] | 16 bytes, first three groups little-endian | everything |
//! | [`Ipv4`] | `u32`, first octet in the most significant byte | `ServerAddr`, `AgeReply` |
//! | [`TransId`] | `u32` | requests and replies |
//! | [`Str`] | `u16` unit count, UTF-16LE units, no terminator | NetMsg strings |
//! | [`WFix`] | fixed number of UTF-16LE units, text ends at the first zero | file requests, `NetAgeInfo` |
//! | [`TermStr`] | `u32` byte count, UTF-16LE units including a terminator | vault, scores |
//! | [`ZStr`], [`HiLo`] | UTF-16LE units up to a zero; two units and a zero | manifests, file lists |
//! | [`NetError`] | `i32` | replies |
//! | [`Nested`] | `u32` count, content in another format | vault nodes, manifests, scores |
//! | [`SafeString`], [`SafeWString`] | counted, inverted | Plasma objects |
//! | [`BitVector`], [`UnifiedTime`], [`SequenceNumber`], [`Location`], [`Uoid`], [`Key`], ... | | Plasma objects |
//! | [`CountedString`], [`Bytes16`] | `u16` byte count, plain bytes | net messages |
//! | [`List`] | count of a given integer type, elements | net messages, Plasma messages |
//! | [`FixedText`] | fixed number of bytes, padded with zeros | `plNetMsgGetSharedState` |
//! | [`Bool8`], [`Bool32`] | 0 or 1 in one or four bytes | Plasma objects |
//! | [`Float`], [`Double`], [`Floats`], [`Matrix44`] | IEEE 754, little-endian | Plasma messages |
//! | [`GenericType`] | `u8` type, value | shared states |
//! | [`NetGroupId`], [`ClientGuid`] | | net messages |
//!
//! Strings of all kinds are created with `from`, such as `Str::from("127.0.0.1")`, and read with
//! `to_text`.

use worldwire_core::{Field, Result, Writer};

/// The encoded bytes of a value.
pub(crate) fn encoded<'d>(value: &impl Field<'d>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

mod address;
mod bits;
mod boolean;
mod counted;
mod error;
mod float;
mod generic;
mod hi_lo;
mod location;
mod member;
mod nested;
mod object;
mod padded;
mod plasma;
mod text;
mod units;
mod wide;

pub use address::{Ipv4, TransId, Uuid};
pub use bits::BitVector;
pub use boolean::{Bool8, Bool32};
pub use counted::{Bytes16, Count, List, Tail};
pub(crate) use counted::{encode_counted, take_counted};
pub use error::NetError;
pub use float::Floats;
pub use generic::GenericType;
pub use hi_lo::HiLo;
pub use location::{Location, LocationFlags, SequenceNumber};
pub use member::{ClientGuid, ClientGuidFlags, Matrix44, NetGroupFlags, NetGroupId};
pub use nested::{Inner, InnerFamily, Nested};
pub use object::{ClassIndex, CloneIds, Key, LoadMask, Uoid};
pub(crate) use padded::{decode_padded, encode_padded, padded_from_json};
pub use plasma::{Creatable, SafeForm, SafeString, UnifiedTime};
pub use text::{CountedString, FixedText, Str, TermStr, Text, TextFormat, WFix, ZStr};
pub use units::{wide, wide_text};
pub use wide::SafeWString;
pub use worldwire_core::{Double, Float};
