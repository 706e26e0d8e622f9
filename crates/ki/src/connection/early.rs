//! Servers: what comes before the session is accepted, or may not be sent.

use core::ops::Range;

#[cfg(feature = "fuzzing")]
use worldwire_core::Side;
use worldwire_core::connection::Event;
use worldwire_core::{Error, Result};

use super::event::{News, PieceInfo, Unreported};
use super::sender::{Role, Verdict};
use super::{Connection, Pending};

impl Connection {
    /// Server: keeps or ignores a piece, if it is not to be delivered.
    pub(super) fn admit(&mut self, piece: Unreported) -> Option<Unreported> {
        let side = piece.info.side;
        let why = match self.sender.judge(piece.info.unit) {
            Ok(Verdict::Deliver) => return Some(piece),
            Ok(Verdict::Ignore(why)) => why,
            Ok(Verdict::Keep) => {
                let piece = self.copied(piece);
                let kept = self.keep(piece);
                self.refuse_if(side, kept);
                return None;
            }
            Err(error) => {
                let error = error.at(piece.info.range.start);
                self.refuse(side, error);
                return None;
            }
        };
        let Unreported { info, copy } = self.copied(piece);
        let PieceInfo { unit, message, range, .. } = info;
        let mut bytes = copy.unwrap_or_default();
        bytes.truncate(message.end);
        bytes.drain(..message.start.min(bytes.len()));
        let news = News::Ignored { unit, why, range, bytes };
        self.events.push_front(Pending::Event(Event::News(news)));
        None
    }

    /// The bytes of the stream whose messages are kept.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn early_ranges(&self) -> Vec<(Side, Range<u64>)> {
        self.early.0.iter().map(|piece| (piece.info.side, piece.info.range.clone())).collect()
    }

    fn keep(&mut self, piece: Unreported) -> Result<()> {
        let Role::Server(config) = &self.sender.role else { return Ok(()) };
        let (pieces, total) = &mut self.early;
        let Range { start, end } = piece.info.range;
        let bytes = total.saturating_add(usize::try_from(end - start).unwrap_or(usize::MAX));
        let limit = match (pieces.len() >= config.max_early_frames, config.max_early_bytes) {
            (true, _) => {
                let most = config.max_early_frames as u64;
                Error::limit("messages before the session is accepted", most, most + 1)
            }
            (false, most) if bytes > most => {
                let name = "bytes of messages before the session is accepted";
                Error::limit(name, most as u64, bytes as u64)
            }
            _ => {
                pieces.push(piece);
                *total = bytes;
                return Ok(());
            }
        };
        Err(limit.at(start))
    }
}
