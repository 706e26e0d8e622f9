//! Defines the protocol of a guessing game, then encodes, decodes and prints its messages.
//!
//! Run it with `cargo run -p worldwire-core --example guessing_game`. Each message is declared
//! once, with this crate's macros. The declaration yields a Rust type, its encoding in bytes and in
//! JSON, and the labels of printed fields.

use worldwire_core::{Bytes32, Messages, Reader, Result, Tree, Writer, json, messages, text};
use worldwire_core::{record, wire_enum};

wire_enum! {
    /// How a guess compares to the secret number.
    pub enum Verdict(u8) {
        /// The guess is too low.
        TooLow = 1,
        /// The guess is too high.
        TooHigh = 2,
        /// The guess is right.
        Right = 3,
    }
}

record! {
    /// A player's number of guesses.
    pub struct Score {
        /// The player's number.
        player "player": u32,
        /// Guesses so far.
        guesses "guesses": u16,
    }
}

messages! {
    /// The messages that servers send on connections called "guess". A lifetime lets messages
    /// borrow from the bytes that they are decoded from.
    pub enum ServerMessage<'a>: "guess", Server;

    /// The answer to a guess.
    1 Answer {
        verdict "verdict": Verdict,
        score "score": Score,
    }

    /// A chat line, in UTF-8.
    2 Chat<'a> {
        player "player": u32,
        line "line": Bytes32<'a, 1024>,
    }
}

/// Encodes a message in a frame: its number and the length of its body, both `u16`, then the body.
fn encode(message: &ServerMessage<'_>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    writer.u16(u16::try_from(message.number()).unwrap_or(u16::MAX));
    let mut body = Writer::new();
    message.encode_body(&mut body)?;
    writer.u16(u16::try_from(body.as_bytes().len()).unwrap_or(u16::MAX));
    writer.bytes(body.as_bytes());
    Ok(writer.into_bytes())
}

/// Decodes one frame to a message and a tree of its fields, and returns its length in bytes. If the
/// error is "Incomplete", receive at least as many bytes as it asks for, then try again.
fn decode(stream: &[u8]) -> Result<(ServerMessage<'_>, Tree<'_>, usize)> {
    let mut header = Reader::new(stream);
    let (number, length) = (header.u16("number")?, usize::from(header.u16("length")?));
    let mut reader = Reader::traced("message", header.take(length)?, Tree::new());
    let message = ServerMessage::decode_body(number.into(), &mut reader)?;
    Ok((message, reader.finish(), 4 + length))
}

fn main() -> Result<()> {
    let score = Score { player: 7, guesses: 3 };
    let mut stream = encode(&Answer { verdict: Verdict::TooLow, score }.into())?;
    stream.extend(encode(&Chat { player: 7, line: Bytes32::new(&b"so close"[..]) }.into())?);

    // A stream may deliver half a message.
    if let Err(error) = decode(&stream[..5]) {
        println!("after 5 bytes: at least {} more are needed", error.needed().unwrap_or_default());
    }

    let mut rest = &stream[..];
    while !rest.is_empty() {
        let (message, tree, length) = decode(rest)?;
        let mut shown = String::new();
        text::write_tree(&tree, text::TextStyle { ranges: true, ..Default::default() }, &mut shown);
        println!("{}, {length} bytes:\n{shown}", message.name());
        rest = &rest[length..];
    }

    // Messages can also be built from JSON, with names instead of numbers.
    let fields = json::json!({"verdict": "Right", "score": {"player": 7, "guesses": 4}});
    let message = ServerMessage::from_json("Answer", &fields)?;
    println!("encoded from JSON: {:02x?}", encode(&message)?);
    Ok(())
}
