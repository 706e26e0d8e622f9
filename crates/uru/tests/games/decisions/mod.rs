//! The decisions about the game manager's behaviour, by number.

mod heek;
mod manager;
mod marker;
mod others;
