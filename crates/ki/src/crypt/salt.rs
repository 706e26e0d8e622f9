//! The salt of the login's secrets.

use core::fmt;

use crate::control::SessionOffer;

/// The ID and time of the session offer, on which all secrets of a connection depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Salt {
    /// The session ID.
    pub session_id: u16,
    /// The time of the offer, in Unix seconds.
    pub seconds: i64,
    /// The milliseconds of that time.
    pub millis: u32,
}

impl From<&SessionOffer<'_>> for Salt {
    fn from(offer: &SessionOffer<'_>) -> Self {
        Self {
            session_id: offer.session_id,
            seconds: offer.time.seconds(),
            millis: offer.time.millis,
        }
    }
}

/// Displays the salt as it is hashed: three decimal numbers without separators.
impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session_id, seconds, millis } = self;
        write!(f, "{session_id}{seconds}{millis}")
    }
}
