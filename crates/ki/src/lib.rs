//! KI (Wizard101, Pirate101): DML messages and tables, frames, control messages, sessions, and
//! the secrets of the login.

pub mod client_args;
pub mod connection;
pub mod control;
pub mod crypt;
pub mod crypto_block;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod message;
pub mod schema;
mod string_id;
pub mod types;

pub use string_id::{Dictionary, LoginError, djb2_31, property_hash, string_id};
