//! The stream of one side's datagrams.

use crate::frame::{Missing, PacketHead, RccFlags, ReceiveWindow};

/// The stream of one side's datagrams.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// The bytes received so far, without repeated packets.
    pub(super) end: u64,
    pub(super) ended: bool,
    /// Observers and relays: the received packets, and the initialisation vector of the last reset.
    pub(super) window: ReceiveWindow,
    pub(super) reset_by: Option<[u8; 16]>,
    /// Observers and relays: the missing packets.
    pub(super) missing: Missing,
    /// Observers: the start of the part that could not be read without a key.
    pub(super) unread: Option<u64>,
}

impl Stream {
    /// Starts over for a new session.
    pub(super) fn forget_packets(&mut self) {
        (self.window, self.reset_by) = (ReceiveWindow::default(), None);
        self.missing = Missing::default();
    }

    /// Whether a packet restarts the sequence numbers. A repeated reset has the same initialisation
    /// vector.
    pub(super) fn is_reset_by(&self, head: &PacketHead, iv: &[u8; 16]) -> bool {
        head.flags.contains(RccFlags::Reset) && self.reset_by != Some(*iv)
    }

    /// Notes a packet, for observers and relays. Returns whether it is new.
    pub(super) fn note(&mut self, head: &PacketHead, iv: &[u8; 16]) -> bool {
        let (number, time) = (head.sequence.local, head.time);
        if !head.flags.contains(RccFlags::Reset) {
            let is_repeated = self.window.contains(number) && !self.missing.is_later(time);
            if !is_repeated && self.missing.is_after_long_hole(number, time) {
                // The window cannot look back past the hole.
                self.window = ReceiveWindow::default();
            }
            let is_new = self.window.note(number);
            if is_new {
                self.missing.note(number, time);
            }
            return is_new;
        }
        if !self.is_reset_by(head, iv) {
            return false;
        }
        self.reset_by = Some(*iv);
        (self.window, self.missing) = Default::default();
        self.missing.note(number, time);
        self.window.note(number)
    }
}
