//! Object states in SDL, the State Description Language: as encoded blobs and as values in memory,
//! with the rules for updating them.
//!
//! ```
//! use worldwire_core::{Reader, Writer};
//! use worldwire_uru::schema::Descriptors;
//! use worldwire_uru::sdl::{Blob, MergePolicy, Scalar, ObjectState};
//! use worldwire_uru::types::UnifiedTime;
//!
//! let text = "STATEDESC Lever { VERSION 1 VAR BOOL up[1] VAR INT place[1] DEFAULT=3 }";
//! let descriptors = Descriptors::load([("lever.sdl", text)]);
//!
//! // A client sends this after moving the lever to position 9.
//! let bytes = b"\x00\x80\x05\xf0\xb3\x9a\x89\x9a\x8d\x01\x00\
//!               \x00\x00\x06\x01\x01\x02\x00\x00\xf0\x30\x09\x00\x00\x00\x00";
//! let update = Blob::decode(&descriptors, &mut Reader::new(bytes))?;
//! let mut writer = Writer::new();
//! update.encode(&mut writer)?;
//! assert_eq!(writer.as_bytes(), bytes);
//!
//! // A server applies it.
//! let mut state = ObjectState::new(update.descriptor.clone());
//! let now = UnifiedTime { seconds: 1_700_000_000, microseconds: 0 };
//! state.apply(&update, MergePolicy::OURS, &now)?;
//! assert_eq!(state.scalar("place"), Some(Scalar::Int(9)));
//! assert_eq!(state.scalar("up"), Some(Scalar::Bool(false)));
//! assert!(state.is_set("place") && !state.is_set("up"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | description |
//! | --- | --- |
//! | [`Blob`], [`BlobHeader`] | a blob with its stream header |
//! | [`StateRecord`], [`SimpleVariable`], [`NestedVariable`], [`NestedElement`] | the variables in a blob |
//! | [`Elements`], [`Scalar`] | the values of a variable |
//! | [`ObjectState`], [`MergePolicy`] | the state of an object, and how updates change it |
//! | [`StateChange`] | a difference between two states |
//! | [`StateDb`], [`ObjectKey`] | all states of an age |
//! | [`hook`] | the state of the age itself, under `AgeSDLHook` |

mod blob;
mod damage;
mod db;
mod diff;
mod elements;
pub mod hook;
mod json;
mod record;
mod sample;
mod scalar;
mod state;
mod update;
mod upgrade;

pub use blob::{Blob, BlobHeader, StreamFlags};
#[cfg(feature = "fuzzing")]
pub(crate) use damage::missing_records;
pub use db::{ObjectKey, StateDb, StoredState, UpdateOrigin};
pub use diff::{ChangedPart, JsonText, StateChange};
pub use elements::{Elements, MAX_ELEMENTS};
pub use record::{
    MAX_DEPTH, NestedElement, NestedVariable, RecordFlags, SimpleFlags, SimpleVariable,
    StateRecord, ValueHeader,
};
pub use scalar::Scalar;
pub use state::{ObjectState, StateView};
pub use update::{CleanPolicy, HintPolicy, MergePolicy, NestedPolicy, TimePolicy, UpdateError};
