//! Uru.

pub mod connect;
pub mod connection;
pub mod crypt;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod message;
pub mod types;
pub mod vault;
