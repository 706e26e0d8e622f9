//! The primitive types of Uru's protocols and of Plasma's data.
//!
//! | type | on the wire | used by |
//! | --- | --- | --- |
//! | [`Uuid`] | 16 bytes, first three groups little-endian | everything |
//! | [`Ipv4`] | `u32`, first dotted octet in the most significant byte | `ServerAddr`, `AgeReply` |
//! | [`TransId`] | `u32` | requests and replies |
//! | [`Str`] | `u16` unit count, UTF-16LE units, no terminator | NetMsg strings |
//! | [`WFix`] | a fixed number of UTF-16LE units, text ends at the first zero | file requests, `NetAgeInfo` |
//! | [`TermStr`] | `u32` byte count, UTF-16LE units with a terminator that is counted | vault, scores |
//! | [`ZStr`], [`HiLo`] | UTF-16LE units up to a zero; two units and a zero | manifests, file lists |
//! | [`NetError`] | `i32` | replies |
//! | [`Nested`] | `u32` count, content with a format of its own | vault nodes, manifests, scores |
//! | [`SafeString`], [`SafeWString`] | counted, inverted | Plasma objects |
//! | [`BitVector`], [`UnifiedTime`], [`SequenceNumber`], [`Location`], [`Uoid`], [`Key`], ... | | Plasma objects |

mod address;
mod bits;
mod error;
mod nested;
mod object;
mod plasma;
mod string;
mod terminated;

pub use address::{Ipv4, TransId, Uuid};
pub use bits::BitVector;
pub use error::NetError;
pub use nested::{Inner, InnerFamily, Nested};
pub use object::{
    ClassIndex, CloneIds, Key, LoadMask, Location, LocationFlags, SequenceNumber, Uoid,
};
pub use plasma::{Creatable, SafeForm, SafeString, SafeWString, UnifiedTime};
pub use string::{Str, WFix, wide, wide_text};
pub use terminated::{HiLo, TermStr, ZStr};
