//! The binary form of the protocol: frames instead of lines, for hooks that handle many messages.
//!
//! A frame consists of its length as a `u32`, which does not count itself, a byte for its kind, and
//! its content. Numbers are little-endian.
//!
//! | kind | from | content |
//! | --- | --- | --- |
//! | 0 | both | a line of JSON |
//! | 1 | proxy | a message: conversation `u64`, number `u64`, sender `u8`, flags `u8`, begin and end in the stream `u64`, name, bytes |
//! | 2 | hook | an answer: conversation `u64`, number `u64`, action `u8`, additions, bytes |
//! | 3 | hook | additions independent of an answer: conversation `u64`, additions |
//!
//! A name consists of its length as a `u16` and its UTF-8 bytes. Additions consist of their count
//! as a `u16` and, for each, the receiver `u8`, a name, which can be empty, the length `u32` and
//! the bytes. Sides are 0 for the client and 1 for the server. Flags are 1 for modified, 2 for
//! silenced and 4 for fake. Actions are 0 to 4: pass, forward, drop, replace and hold. Bytes extend
//! to the end of the frame; only `replace` has any.

use core::ops::Range;

use worldwire_core::Side;
use worldwire_core::json::Parser;

use super::protocol::{
    Action, Addition, Content, Flags, FromHook, LineError, MAX_ADDED, MessageId, Reply,
};

const JSON: u8 = 0;
const MESSAGE: u8 = 1;
const ANSWER: u8 = 2;
const ADD: u8 = 3;

/// A message for a hook.
pub(crate) struct MessageFrame<'m> {
    pub(crate) id: MessageId,
    pub(crate) from: Side,
    pub(crate) flags: Flags<bool>,
    /// Its position in its side's stream.
    pub(crate) range: &'m Range<u64>,
    pub(crate) name: &'m str,
    pub(crate) bytes: &'m [u8],
}

impl MessageFrame<'_> {
    /// Writes the frame. False if the name or the message is too long and must be sent as a line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> bool {
        let Ok(name_length) = u16::try_from(self.name.len()) else { return false };
        let length = 1 + 8 + 8 + 1 + 1 + 16 + 2 + self.name.len() + self.bytes.len();
        let Ok(length) = u32::try_from(length) else { return false };
        out.extend(length.to_le_bytes());
        out.push(MESSAGE);
        out.extend(self.id.conversation.to_le_bytes());
        out.extend(self.id.number.to_le_bytes());
        out.push(u8::from(self.from == Side::Server));
        let Flags { modified, silenced, fake } = self.flags;
        out.push(u8::from(modified) | u8::from(silenced) << 1 | u8::from(fake) << 2);
        out.extend(self.range.start.to_le_bytes());
        out.extend(self.range.end.to_le_bytes());
        out.extend(name_length.to_le_bytes());
        out.extend(self.name.as_bytes());
        out.extend(self.bytes);
        true
    }
}

/// Writes a line as a frame.
pub(crate) fn push_line(line: &str, out: &mut Vec<u8>) {
    let line = line.trim_end();
    // Lines are bounded by the limits of messages, far below 4 GB.
    let length = u32::try_from(line.len() + 1).unwrap_or(u32::MAX);
    out.extend(length.to_le_bytes());
    out.push(JSON);
    out.extend(line.as_bytes());
}

/// Reads a frame without its length.
pub(crate) fn parse(frame: &[u8], parser: &mut Parser) -> Result<FromHook, LineError> {
    let fault = |text: String| LineError { id: None, text };
    let Some((kind, content)) = frame.split_first() else {
        return Err(fault("the frame is empty; its first byte must be its kind".to_owned()));
    };
    let mut cursor = Cursor { rest: content, id: None };
    match *kind {
        JSON => {
            let line = core::str::from_utf8(content);
            let line = line.map_err(|error| fault(format!("a frame is not UTF-8: {error}")))?;
            FromHook::parse(line, parser)
        }
        ANSWER => cursor.answer(),
        ADD => {
            let conversation = cursor.u64("conversation")?;
            let messages = cursor.additions()?;
            cursor.end()?;
            Ok(FromHook::Add(conversation, messages))
        }
        other => Err(fault(format!("the kind of a frame must be 0, 2 or 3, not {other}"))),
    }
}

/// The unread part of a frame.
struct Cursor<'f> {
    rest: &'f [u8],
    id: Option<MessageId>,
}

impl<'f> Cursor<'f> {
    fn answer(&mut self) -> Result<FromHook, LineError> {
        let (conversation, number) = (self.u64("conversation")?, self.u64("number")?);
        let id = MessageId { conversation, number };
        self.id = Some(id);
        let action = self.u8("action")?;
        let add = self.additions()?;
        let action = match action {
            0 => Action::Pass,
            1 => Action::Forward,
            2 => Action::Drop,
            3 => Action::Bytes(core::mem::take(&mut self.rest).to_vec()),
            4 => Action::Hold,
            other => return Err(self.fault(format!("action: wanted 0 to 4, found {other}"))),
        };
        self.end()?;
        Ok(FromHook::Answer(id, Reply { add, action }))
    }

    fn additions(&mut self) -> Result<Vec<Addition>, LineError> {
        let count = usize::from(self.u16("additions")?);
        if count > MAX_ADDED {
            let text =
                format!("additions: a frame can add at most {MAX_ADDED} messages, found {count}");
            return Err(self.fault(text));
        }
        let mut additions = Vec::with_capacity(count);
        for _ in 0..count {
            let to = match self.u8("receiver")? {
                0 => Side::Client,
                1 => Side::Server,
                other => {
                    let text = format!("receiver: wanted 0 or 1, found {other}");
                    return Err(self.fault(text));
                }
            };
            let length = usize::from(self.u16("name")?);
            let name = core::str::from_utf8(self.take("name", length)?).map(str::to_owned);
            let name = name.map_err(|_| self.fault("name: not UTF-8".to_owned()))?;
            let length = self.u32("length")?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let content = Content::Bytes(self.take("bytes", length)?.to_vec());
            additions.push(Addition { to, name: Some(name).filter(|it| !it.is_empty()), content });
        }
        Ok(additions)
    }

    fn end(&self) -> Result<(), LineError> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(self.fault(format!("{more} bytes follow the end of the frame's content"))),
        }
    }

    fn u8(&mut self, what: &str) -> Result<u8, LineError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    fn u16(&mut self, what: &str) -> Result<u16, LineError> {
        self.array(what).map(u16::from_le_bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32, LineError> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, LineError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], LineError> {
        let Some((first, rest)) = self.rest.split_first_chunk() else {
            return Err(self.too_short(what, N));
        };
        self.rest = rest;
        Ok(*first)
    }

    fn take(&mut self, what: &str, length: usize) -> Result<&'f [u8], LineError> {
        let Some((first, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.too_short(what, length));
        };
        self.rest = rest;
        Ok(first)
    }

    fn too_short(&self, what: &str, wanted: usize) -> LineError {
        let found = self.rest.len();
        self.fault(format!("{what}: wanted {wanted} bytes, found {found}"))
    }

    fn fault(&self, text: String) -> LineError {
        LineError { id: self.id.map(|id| id.to_string()), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(frame: &[u8]) -> Result<FromHook, LineError> {
        parse(frame, &mut Parser::default())
    }

    fn answer(action: u8, rest: &[u8]) -> Vec<u8> {
        let ids = [2_u64, 17].map(u64::to_le_bytes);
        [&[ANSWER], ids.as_flattened(), &[action], rest].concat()
    }

    #[test]
    fn answers_and_additions_are_read() {
        let addition = b"\x01\x01\x00x\x02\x00\x00\x00ab";
        let add = Addition {
            to: Side::Server,
            name: Some("x".to_owned()),
            content: Content::Bytes(b"ab".to_vec()),
        };
        let id = MessageId { conversation: 2, number: 17 };
        let reply = Reply { add: vec![add.clone()], action: Action::Bytes(b"new".to_vec()) };
        let frame = answer(3, &[b"\x01\x00", &addition[..], b"new"].concat());
        assert_eq!(parsed(&frame), Ok(FromHook::Answer(id, reply)));
        let reply = Reply { add: Vec::new(), action: Action::Hold };
        assert_eq!(parsed(&answer(4, &[0, 0])), Ok(FromHook::Answer(id, reply)));
        let nameless = [&7_u64.to_le_bytes()[..], b"\x01\x00\x00\x00\x00\x00\x00\x00\x00"].concat();
        let add = Addition { to: Side::Client, name: None, content: Content::Bytes(Vec::new()) };
        let frame = [&[ADD], &nameless[..]].concat();
        assert_eq!(parsed(&frame), Ok(FromHook::Add(7, vec![add])));
        let line = [&[JSON], &br#"{"type":"sync","conversation":7,"id":"s"}"#[..]].concat();
        assert_eq!(parsed(&line), Ok(FromHook::Sync(7, "s".to_owned())));
    }

    #[test]
    fn faulty_frames_are_named() {
        for (frame, id, text) in [
            (Vec::new(), None, "the frame is empty; its first byte must be its kind"),
            (vec![9], None, "the kind of a frame must be 0, 2 or 3, not 9"),
            (vec![JSON, 0xff], None, "a frame is not UTF-8"),
            (vec![ANSWER, 1], None, "conversation: wanted 8 bytes, found 1"),
            (answer(5, &[0, 0]), Some("2.17"), "action: wanted 0 to 4, found 5"),
            (answer(0, &[0, 0, 1]), Some("2.17"), "1 bytes follow"),
            (answer(0, &[1, 1]), Some("2.17"), "additions: a frame can add at most 256 messages"),
            (answer(0, &[1, 0, 2]), Some("2.17"), "receiver: wanted 0 or 1, found 2"),
            (answer(0, &[1, 0, 0, 1, 0, 0xff]), Some("2.17"), "name: not UTF-8"),
            (
                answer(0, &[1, 0, 0, 0, 0, 9, 0, 0, 0]),
                Some("2.17"),
                "bytes: wanted 9 bytes, found 0",
            ),
        ] {
            let error = parsed(&frame).unwrap_err();
            assert_eq!(error.id.as_deref(), id, "{frame:?}");
            assert!(error.text.starts_with(text), "{frame:?}: {}", error.text);
        }
    }

    #[test]
    fn messages_are_written_as_documented() {
        let flags = Flags { modified: true, silenced: false, fake: true };
        let message = MessageFrame {
            id: MessageId { conversation: 1, number: 2 },
            from: Side::Server,
            flags,
            range: &(3..4),
            name: "tera.A",
            bytes: b"xy",
        };
        let mut frame = Vec::new();
        assert!(message.write(&mut frame));
        let numbers = [1_u64, 2].map(u64::to_le_bytes);
        let range = [3_u64, 4].map(u64::to_le_bytes);
        let expected = [
            &45_u32.to_le_bytes()[..],
            &[MESSAGE],
            numbers.as_flattened(),
            &[1, 5],
            range.as_flattened(),
            b"\x06\x00tera.Axy",
        ];
        assert_eq!(frame, expected.concat());
        let mut line = Vec::new();
        push_line("{}\n", &mut line);
        assert_eq!(line, b"\x03\x00\x00\x00\x00{}");
        let mut long = Vec::new();
        assert!(!MessageFrame { name: &"x".repeat(65_536), ..message }.write(&mut long));
    }
}
