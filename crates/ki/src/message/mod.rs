//! DML messages: the contents of data frames, and their fields.
//!
//! | offset | field | type | |
//! | --- | --- | --- | --- |
//! | 0 | `service` | `u8` | the protocol |
//! | 1 | `order` | `u8` | the message within the protocol |
//! | 2 | `length` | `u16` | of the message, including these four bytes |
//! | 4 | `payload` | | the fields in order |
//!
//! A [definition](crate::schema::Message) lists the fields.
//!
//! ```
//! use worldwire_ki::message::{RawMessage, Values};
//! use worldwire_ki::schema::Protocols;
//! use worldwire_core::Reader;
//!
//! let protocols = Protocols::built_in();
//! let bytes = [7, 20, 12, 0, 1, 0, 0, 0, 3, 0, 0, 0];
//! let raw = RawMessage::decode(&mut Reader::new(&bytes), false)?;
//! let definition = protocols.message(raw.service, raw.order).expect("it is built in");
//! assert_eq!(protocols.name(definition), "LOGIN.MSG_USER_ADMIT_IND");
//!
//! let mut values = Values::new();
//! definition.decode(&mut Reader::new(&raw.payload), &mut values)?;
//! assert_eq!(definition.payload(&values)?, *raw.payload);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod answer;
mod by_name;
mod codec;
mod fit;
mod named;
mod raw;

pub use answer::{FileListAnswer, Selected};
pub use by_name::{Fields, Put};
pub use codec::Values;
pub use fit::Fit;
pub use raw::{HEAD_BYTES, MAX_PAYLOAD, RawMessage};
