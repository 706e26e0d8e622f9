//! TERA: the definition language, maps, messages, and the connection.

pub mod connection;
pub mod crypt;
pub mod frame;
pub mod integrity;
