//! Bytes queued for one side.

use std::collections::VecDeque;

use crate::{Error, Result};

/// How much may be queued for a peer. One that does not read must not fill the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes. Default 8 MiB.
    pub queued_bytes: usize,
    /// Messages, frames or datagrams. Default 1,024.
    pub queued_messages: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { queued_bytes: 8 << 20, queued_messages: 1024 }
    }
}

/// The bytes queued for one side, a buffer for every write; messages that wait until setup is
/// complete; and what a relay forwards and the bounds have no room for yet.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    bounds: Bounds,
    ready: VecDeque<Vec<u8>>,
    /// Sent before setup was complete, not encrypted yet.
    deferred: VecDeque<Vec<u8>>,
    /// How many bytes the two queues above hold.
    bytes: usize,
    overflow: VecDeque<Overflow>,
    overflow_bytes: usize,
}

/// Forwarded bytes without room, as they go onto the wire.
#[derive(Clone, Debug)]
struct Overflow {
    bytes: Vec<u8>,
    /// Whether they may join the write before them.
    joins: bool,
}

impl Outgoing {
    /// Empty, with these bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Checks that a message of this length has room. Every message goes through here before it is
    /// queued, including the answers that a machine gives by itself.
    ///
    /// # Errors
    /// The limits on queued messages and queued bytes.
    pub fn check_room(&self, length: usize) -> Result<()> {
        self.check(length.saturating_add(self.overflow_bytes))
    }

    fn check(&self, length: usize) -> Result<()> {
        let Bounds { queued_messages, .. } = self.bounds;
        let messages = self.ready.len() + self.deferred.len() + 1;
        if messages > queued_messages {
            return Err(Error::limit("queued messages", queued_messages as u64, messages as u64));
        }
        check_bytes(self.bounds, self.bytes, length)
    }

    /// Checks that bytes of this length have room in an empty queue.
    ///
    /// # Errors
    /// The limit on queued bytes.
    pub fn check_fits(&self, length: usize) -> Result<()> {
        check_bytes(self.bounds, 0, length)
    }

    /// Queues bytes as they go onto the wire.
    pub fn push(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    /// Queues bytes of a stream that need no write of their own: they join the one before, up to
    /// 64 KiB.
    ///
    /// # Errors
    /// Those of [`check_room`](Self::check_room); bytes that join a write add no message.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self.ready.back_mut() {
            Some(last) if last.len().saturating_add(bytes.len()) <= JOINED_BYTES => {
                check_bytes(self.bounds, self.bytes, bytes.len())?;
                last.extend_from_slice(bytes);
                self.bytes += bytes.len();
            }
            _ => {
                self.check(bytes.len())?;
                self.push(bytes.to_vec());
            }
        }
        Ok(())
    }

    /// Takes in bytes that a relay forwards, as they go onto the wire. Without room they wait for
    /// [`refill`](Self::refill), and the relay should forward nothing more: see
    /// [`is_full`](Self::is_full).
    pub fn forward(&mut self, bytes: Vec<u8>) {
        match self.overflow.is_empty() && self.check(bytes.len()).is_ok() {
            true => self.push(bytes),
            false => self.spill(bytes, false),
        }
    }

    /// The same for bytes of a stream that need no write of their own, so that many small messages
    /// do not count as many writes; see [`append`](Self::append).
    pub fn forward_joined(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || (self.overflow.is_empty() && self.append(bytes).is_ok()) {
            return;
        }
        self.spill(bytes.to_vec(), true);
    }

    fn spill(&mut self, bytes: Vec<u8>, joins: bool) {
        self.overflow_bytes += bytes.len();
        self.overflow.push_back(Overflow { bytes, joins });
    }

    /// Queues what waits for room, as far as there is some now.
    ///
    /// # Errors
    /// The limit that the next bytes exceed even in an empty queue.
    pub fn refill(&mut self) -> Result<()> {
        while let Some(Overflow { bytes, joins }) = self.overflow.pop_front() {
            let queued = match joins {
                true => self.append(&bytes),
                false => self.check(bytes.len()),
            };
            if let Err(error) = queued {
                self.overflow.push_front(Overflow { bytes, joins });
                return if self.bytes > 0 { Ok(()) } else { Err(error) };
            }
            self.overflow_bytes -= bytes.len();
            if !joins {
                self.push(bytes);
            }
        }
        Ok(())
    }

    /// Whether forwarded bytes wait for room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// How many forwarded bytes wait for room.
    #[must_use]
    pub fn overflow_bytes(&self) -> usize {
        self.overflow_bytes
    }

    /// Keeps a message until setup is complete.
    pub fn defer(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.deferred.push_back(message);
    }

    /// The next message that waits for setup; to be [pushed](Self::push) as it goes onto the wire.
    pub fn release_deferred(&mut self) -> Option<Vec<u8>> {
        let message = self.deferred.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// The next bytes to write.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let bytes = self.ready.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// How many bytes are queued, including those that wait for setup and without those that wait
    /// for room.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl AsMut<Self> for Outgoing {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The longest write that others [join](Outgoing::append).
const JOINED_BYTES: usize = 64 << 10;

fn check_bytes(bounds: Bounds, queued: usize, more: usize) -> Result<()> {
    let (most, asked) = (bounds.queued_bytes, queued.saturating_add(more));
    if asked > most {
        return Err(Error::limit("queued bytes", most as u64, asked as u64));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_count_what_waits_for_setup_too() {
        let mut queue = Outgoing::new(Bounds { queued_bytes: 10, queued_messages: 3 });
        queue.defer(vec![1; 4]);
        queue.push(vec![2; 4]);
        assert_eq!(queue.bytes(), 8);
        let error = queue.check_room(3).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 10 (queued bytes), found 11");
        queue.check_room(2).unwrap();
        queue.push(vec![3; 2]);
        let error = queue.check_room(0).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 3 (queued messages), found 4");
        assert_eq!(queue.pop(), Some(vec![2; 4]));
        assert_eq!(queue.release_deferred(), Some(vec![1; 4]));
        assert_eq!((queue.release_deferred(), queue.bytes()), (None, 2));
        assert_eq!((queue.pop(), queue.pop(), queue.bytes()), (Some(vec![3; 2]), None, 0));
    }

    #[test]
    fn small_writes_are_joined_within_the_bounds() {
        let mut queue = Outgoing::new(Bounds { queued_bytes: 70_000, queued_messages: 2 });
        for _ in 0..100 {
            queue.append(&[1; 600]).unwrap();
        }
        queue.append(&[2; 6000]).unwrap();
        let error = queue.append(&[3; 4001]).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 70000 (queued bytes), found 70001");
        let error = queue.append(&vec![3; JOINED_BYTES]).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 2 (queued messages), found 3");
        assert_eq!((queue.pop().unwrap().len(), queue.pop().unwrap().len()), (60_000, 6000));
        assert_eq!((queue.pop(), queue.bytes()), (None, 0));
    }
}
