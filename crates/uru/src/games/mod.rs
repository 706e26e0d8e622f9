//! The game manager: small games that a game server runs in its ages.
//!
//! A `GameMgrMsg` on a game connection carries one [`GameMessage`].

mod array;
mod game_type;
pub mod message;
mod text;

pub use array::Array;
pub use game_type::{GameScope, GameType};
pub use message::{GameBody, GameHeader, GameMessage};
pub use text::{GameText, GameUnits, TextFault, text_fault};
