//! MxO (The Matrix Online): distributed objects, and the connection around them.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`types`] | types of properties |
//! | [`schema`] | tables of game objects: which properties they have |
//! | [`message`] | sections of objects: creates, deletes and updates of views |

pub mod message;
pub mod schema;
pub mod types;
