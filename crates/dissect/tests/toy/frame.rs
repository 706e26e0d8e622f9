//! The bytes around messages: the hello, frames over TCP, and headers of datagrams.

use worldwire_core::{Error, Reader, Result, Side};

use crate::message::{Channel, Message, ServerMessage};

/// The server's first bytes.
pub const MAGIC: [u8; 4] = *b"TOY1";
/// The first bytes of every datagram.
pub const LETTERS: [u8; 2] = *b"TU";
/// The length of a datagram's header.
pub const HEADER: usize = 8;
/// The numbers of received datagrams: the highest, and which of the 64 below it have arrived.
#[derive(Debug, Default)]
pub struct Numbers(Option<(u16, u64)>);

impl Numbers {
    /// Whether this is the first datagram of that number. A very late one counts as repeated.
    pub fn is_new(&mut self, number: u16) -> bool {
        let (highest, window) = self.0.unwrap_or_else(|| (number.wrapping_sub(1), 0));
        let ahead = number.wrapping_sub(highest);
        if (1..1 << 15).contains(&ahead) {
            let window = window.checked_shl(ahead.into()).unwrap_or(0) | 1;
            self.0 = Some((number, window));
            return true;
        }
        let bit = 1_u64.checked_shl(highest.wrapping_sub(number).into()).unwrap_or(0);
        let is_new = bit != 0 && window & bit == 0;
        self.0 = Some((highest, window | bit));
        is_new
    }
}

/// Encrypts or decrypts. A toy cipher.
pub fn apply(key: [u8; 4], bytes: &mut [u8]) {
    bytes.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

/// Reads a hello. Returns the session and the length.
pub fn hello(bytes: &[u8]) -> Result<(u32, usize)> {
    let mut reader = Reader::new(bytes);
    if reader.take_array()? != MAGIC {
        return Err(Error::malformed("TOY1", "something else"));
    }
    Ok((reader.u32("session")?, reader.position()))
}

/// Reads a frame of at least one byte.
pub fn frame(bytes: &[u8]) -> Result<((), usize)> {
    let mut reader = Reader::new(bytes);
    let length = reader.u16("length")?;
    if length == 0 {
        return Err(Error::malformed("a message", "an empty frame"));
    }
    reader.take(length.into())?;
    Ok(((), reader.position()))
}

/// The session and key in a server's frame.
pub fn key_in(side: Side, frame: &[u8]) -> Option<(u32, [u8; 4])> {
    let mut reader = Reader::new(frame.get(2..).filter(|_| side == Side::Server)?);
    match Message::decode(Channel::Stream, side, &mut reader).ok()? {
        Message::Server(ServerMessage::DatagramKey(door)) => Some((door.session.0, door.key)),
        _ => None,
    }
}
