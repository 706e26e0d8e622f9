//! Bytes queued for one side.

use std::collections::VecDeque;

use crate::{Error, Result};

/// Limits on the queue for a peer, so that a peer that does not read cannot exhaust memory.
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

/// The bytes queued for one side, one buffer per write. Also keeps messages deferred until setup is
/// complete, and forwarded bytes that exceed the bounds for now.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    bounds: Bounds,
    ready: VecDeque<Vec<u8>>,
    /// Messages sent before setup was complete, still unencrypted.
    deferred: VecDeque<Vec<u8>>,
    /// The number of bytes in the two queues above.
    bytes: usize,
    overflow: VecDeque<Overflow>,
    overflow_bytes: usize,
}

/// Forwarded bytes that found no room, in wire form.
#[derive(Clone, Debug)]
struct Overflow {
    bytes: Vec<u8>,
    /// Whether they may join the preceding write.
    joins: bool,
}

impl Outgoing {
    /// Creates an empty queue with these bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Checks that there is room for a message of this length. Machines call this before they queue
    /// any message, including their own replies.
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

    /// Checks that an empty queue has room for this many bytes.
    ///
    /// # Errors
    /// The limit on queued bytes.
    pub fn check_fits(&self, length: usize) -> Result<()> {
        check_bytes(self.bounds, 0, length)
    }

    /// Queues bytes in wire form as one write.
    pub fn push(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    /// Queues bytes of a stream that need no separate write: they join the previous write, up to 64
    /// KiB.
    ///
    /// # Errors
    /// The limits of [`check_room`](Self::check_room). Bytes that join a write do not count as a
    /// message.
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

    /// Queues bytes that a relay forwards, in wire form. If there is no room, they wait for
    /// [`refill`](Self::refill), and the relay should forward nothing more: see
    /// [`is_full`](Self::is_full).
    pub fn forward(&mut self, bytes: Vec<u8>) {
        match self.overflow.is_empty() && self.check(bytes.len()).is_ok() {
            true => self.push(bytes),
            false => self.spill(bytes, false),
        }
    }

    /// Like [`forward`](Self::forward), for bytes of a stream that may join the previous write as
    /// in [`append`](Self::append), so that many small messages do not count as many writes.
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

    /// Queues forwarded bytes that wait for room, as far as the bounds now allow.
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

    /// The number of forwarded bytes that wait for room.
    #[must_use]
    pub fn overflow_bytes(&self) -> usize {
        self.overflow_bytes
    }

    /// Keeps a message until setup is complete.
    pub fn defer(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.deferred.push_back(message);
    }

    /// Removes the next deferred message. The caller encrypts and [pushes](Self::push) it.
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

    /// The number of queued bytes, including deferred messages but not bytes that wait for room.
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

/// The maximum size of a joined write in bytes; see [`append`](Outgoing::append).
const JOINED_BYTES: usize = 64 << 10;

fn check_bytes(bounds: Bounds, queued: usize, more: usize) -> Result<()> {
    let (max, total) = (bounds.queued_bytes, queued.saturating_add(more));
    if total > max {
        return Err(Error::limit("queued bytes", max as u64, total as u64));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deferred_messages_count_in_the_bounds() {
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
