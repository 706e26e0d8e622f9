//! What waits to be sent.

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

/// The bytes queued for one side, a buffer for every write, and messages that wait until setup is
/// complete.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    bounds: Bounds,
    ready: VecDeque<Vec<u8>>,
    /// Sent before setup was complete, not encrypted yet.
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Outgoing {
    /// Empty, with these bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Checks that a message of this length has room. Every message goes through here before it is
    /// queued, answers that a machine gives by itself included.
    ///
    /// # Errors
    /// The limits on queued messages and queued bytes.
    pub fn check_room(&self, length: usize) -> Result<()> {
        let Bounds { queued_messages, .. } = self.bounds;
        let messages = self.ready.len() + self.waiting.len() + 1;
        if messages > queued_messages {
            return Err(Error::limit("queued messages", queued_messages as u64, messages as u64));
        }
        check_bytes(self.bounds, self.bytes, length)
    }

    /// Queues bytes as they go onto the wire.
    pub fn push(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    /// Queues bytes of a stream that need no write of their own: they join the one before, up to
    /// 64 KiB. What a relay forwards, so that many small messages do not count as many writes.
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
                self.check_room(bytes.len())?;
                self.push(bytes.to_vec());
            }
        }
        Ok(())
    }

    /// Keeps a message until setup is complete.
    pub fn hold(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.waiting.push_back(message);
    }

    /// The next message that waits for setup; to be [pushed](Self::push) as it goes onto the wire.
    pub fn release(&mut self) -> Option<Vec<u8>> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// The next bytes to write.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let bytes = self.ready.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// How many bytes are queued, those that wait for setup included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How long a write gets by what [joins](Outgoing::append) it.
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
        queue.hold(vec![1; 4]);
        queue.push(vec![2; 4]);
        assert_eq!(queue.bytes(), 8);
        let error = queue.check_room(3).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 10 (queued bytes), found 11");
        queue.check_room(2).unwrap();
        queue.push(vec![3; 2]);
        let error = queue.check_room(0).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 3 (queued messages), found 4");
        assert_eq!(queue.pop(), Some(vec![2; 4]));
        assert_eq!(queue.release(), Some(vec![1; 4]));
        assert_eq!((queue.release(), queue.bytes()), (None, 2));
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
