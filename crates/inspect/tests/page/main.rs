//! The page's server, as its clients and attackers see it.

mod answers;
mod attacks;
mod client;
mod exports;
