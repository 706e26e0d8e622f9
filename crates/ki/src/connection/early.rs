//! Servers: messages that arrive before the session is accepted, or that the client may not send.

use core::ops::Range;

#[cfg(feature = "fuzzing")]
use worldwire_core::Side;
use worldwire_core::connection::{Event, StreamMachine};
use worldwire_core::{Error, Result};

use super::Connection;
use super::event::{News, PieceInfo, Unread};
use super::sender::{Role, Verdict};

impl Connection {
    /// Server: returns a piece to deliver and keeps or ignores any other.
    pub(super) fn admit_piece(&mut self, piece: Unread) -> Option<Unread> {
        let side = piece.info.side;
        let reason = match self.sender.judge(piece.info.unit) {
            Ok(Verdict::Deliver) => return Some(piece),
            Ok(Verdict::Ignore(reason)) => reason,
            Ok(Verdict::Keep) => {
                let piece = self.copied(piece);
                let kept = self.keep(piece);
                self.refuse_if(side, kept);
                return None;
            }
            Err(error) => {
                let error = error.at(piece.info.range.start);
                self.parts_mut().refuse(side, error);
                return None;
            }
        };
        let Unread { info, copy } = self.copied(piece);
        let PieceInfo { unit, message, range, .. } = info;
        let mut bytes = copy.unwrap_or_default();
        bytes.truncate(message.end);
        bytes.drain(..message.start.min(bytes.len()));
        let news = News::Ignored { unit, why: reason, range, bytes };
        self.events.push_front(Event::News(news));
        None
    }

    /// The stream ranges of kept messages.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn early_ranges(&self) -> Vec<(Side, Range<u64>)> {
        self.early.0.iter().map(|piece| (piece.info.side, piece.info.range.clone())).collect()
    }

    fn keep(&mut self, piece: Unread) -> Result<()> {
        let Role::Server(config) = &self.sender.half.role else { return Ok(()) };
        let (pieces, total) = &mut self.early;
        let Range { start, end } = piece.info.range;
        let bytes = total.saturating_add(usize::try_from(end - start).unwrap_or(usize::MAX));
        let limit = match (pieces.len() >= config.max_early_frames, config.max_early_bytes) {
            (true, _) => {
                let max = config.max_early_frames as u64;
                Error::limit("messages before the session is accepted", max, max + 1)
            }
            (false, max) if bytes > max => {
                let name = "bytes of messages before the session is accepted";
                Error::limit(name, max as u64, bytes as u64)
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
