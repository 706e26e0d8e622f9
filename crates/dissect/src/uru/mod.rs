//! Uru: its codecs, and how its conversations are recognised and read.

mod codecs;
mod session;

pub(crate) use codecs::CODECS;
pub(crate) use session::{PORT, SETUP_NAMES, UruSession, recognize};
