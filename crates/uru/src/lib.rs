//! Uru.

pub mod connect;
pub mod connection;
pub mod crypt;
pub mod file;
pub mod frame;
pub mod message;
pub mod types;
pub mod vault;
