//! MxO (The Matrix Online): distributed objects, and the connection around them.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`types`] | types of properties |
//! | [`schema`] | tables of game objects: which properties they have |
//! | [`message`] | sections of objects: creates, deletes and updates of views |
//! | [`replica`] | the views of a client as sections change them |
//! | [`replicator`] | a server's world, and the views that many clients have of it |

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod message;
pub mod replica;
pub mod replicator;
pub mod schema;
pub mod types;
