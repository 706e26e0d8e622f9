//! The dates of session offers and accepts.

use std::time::Duration;

use jiff::Timestamp;
use worldwire_core::Reader;
use worldwire_ki::connection::{Received, Unit};
use worldwire_ki::control::{Control, Opcode};

use crate::message::NumberNames;

/// The field with the lower half of the seconds; the date is shown beside it.
const FIELD: &str = "timeLow";

/// The date of an offer or accept, in UTC.
#[derive(Debug)]
pub(super) struct OfferDate {
    low: u64,
    date: String,
}

impl OfferDate {
    /// The date of a message; `None` for other messages, and for dates outside 1970 to 2038, when
    /// the lower half of the seconds is not a date by itself.
    pub(super) fn of(received: &Received<'_>) -> Option<Self> {
        let Unit::Control(opcode @ (Opcode::SessionOffer | Opcode::SessionAccept)) = received.unit
        else {
            return None;
        };
        let body = received.bytes.get(received.message.clone())?;
        let mut reader = Reader::new(body);
        let time = match Control::decode(opcode, Some(received.side), &mut reader).ok()? {
            Control::SessionOffer(offer) => offer.time,
            Control::SessionAccept(accept) => accept.time,
            _ => return None,
        };
        let low = u64::try_from(time.low).ok().filter(|_| time.high == 0)?;
        let since = Duration::from_secs(low) + Duration::from_millis(time.millis.into());
        let date = Timestamp::UNIX_EPOCH.checked_add(since).ok()?;
        Some(Self { low, date: date.strftime("%Y-%m-%d %H:%M:%S.%3f").to_string() })
    }
}

impl NumberNames for OfferDate {
    fn key(&self) -> &'static str {
        "dates"
    }

    fn name(&self, field: &str, number: u64) -> Option<&str> {
        (field == FIELD && number == self.low).then_some(&self.date)
    }
}
