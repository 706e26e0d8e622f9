//! KI: over TCP, encrypted or not, with one message or several in a frame, and over UDP.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::connection::{Connection as _, Event, EventOf, SendError};
use worldwire_core::{Error, Reader, Side, Writer};
use worldwire_dissect::{Definitions, Keys};
use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig, Unit};
use worldwire_ki::control::Control;
use worldwire_ki::crypt::keys::KeyFile;
use worldwire_ki::crypt::stream::{Opener, Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::{Body, Frame, FrameHead};
use worldwire_ki::message::RawMessage;

use super::choices::Choices;
use super::end::{Bare, End, Heard, Machine, Speaker, Wrapping};
use super::model::StreamModel;
use super::{Content, Network, World, start};

const SESSION: u16 = 77;
const KEY: StreamKey = StreamKey { key: [3; 16], nonce: [4; 16] };

/// Cached, because reading them takes longer than a run.
static DEFINITIONS: LazyLock<Arc<Definitions>> =
    LazyLock::new(|| Arc::new(Definitions::built_in()));
static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| {
    let text = KeyFile::format_stream(Some(SESSION), &KEY);
    Arc::new(Keys::parse(&text).expect("a key file"))
});

/// How frames travel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Encrypted,
    /// A frame can contain several messages.
    Merged,
    EncryptedAndMerged,
    Datagrams,
    /// Some datagrams are lost, so nothing depends on keep-alives.
    LostDatagrams,
}

/// Creates a conversation of the kind that the choices select.
pub(super) fn world(choices: &mut Choices) -> World {
    use Kind::{Datagrams, Encrypted, EncryptedAndMerged, LostDatagrams, Merged, Plain};
    let kinds = [Plain, Encrypted, Merged, EncryptedAndMerged, Datagrams, LostDatagrams];
    let kind = kinds[choices.index(kinds.len())];
    let is_datagrams = matches!(kind, Datagrams | LostDatagrams);
    let mut client = ClientConfig::new(Duration::ZERO);
    let mut server = ServerConfig::new(Duration::ZERO);
    if kind == LostDatagrams {
        // A lost keep-alive would end the connection.
        client.common.keep_alive_every = Duration::from_secs(1 << 30);
        server.common.keep_alive_every = Duration::from_secs(1 << 30);
    }
    let client = Connection::client(client.into(), Duration::ZERO);
    let server = Connection::server(server.into(), SESSION, Duration::ZERO);
    let end = |side, connection| -> Box<dyn End> {
        let wrapping: Box<dyn Wrapping> = match kind {
            Plain | Datagrams | LostDatagrams => Box::new(Bare),
            _ => Box::new(Frames::new(side, kind)),
        };
        Box::new(Machine { side, connection, speaker: Ki, wrapping })
    };
    // The model knows only what has reached the proxy.
    let trouble = if kind == LostDatagrams { [[10, 10, 10], [0; 3]] } else { [[0; 3]; 2] };
    let content = Arc::new(Content {
        // Frames are forwarded whole: an addition leaves before or after all messages of a frame.
        can_add: !matches!(kind, Merged | EncryptedAndMerged),
        added: <[u8]>::to_vec,
        make: Box::new(|_, like, choices| make(like, choices)),
        normal: |_, _| {},
        is_upkeep: |_| false,
    });
    // Before its first message, a stream does not show whether it is encrypted.
    let is_encrypted = matches!(kind, Encrypted | EncryptedAndMerged);
    let speakers: &[Side] = if is_encrypted { &Side::BOTH } else { &[] };
    let opening = speakers.iter().map(|side| (*side, make(None, choices))).collect();
    let (session, known) = start("ki", &DEFINITIONS, &KEYS, is_datagrams);
    World {
        ends: [end(Side::Client, client), end(Side::Server, server)],
        session,
        known,
        network: Network { is_datagrams, trouble },
        model: Box::new(StreamModel::new(Arc::clone(&content), !is_datagrams)),
        content,
        opening,
    }
}

fn make(like: Option<&[u8]>, choices: &mut Choices) -> Vec<u8> {
    let length = if choices.percent(3) { 3000 } else { 60 };
    let length = choices.index(length);
    let mut sampler = choices.sampler();
    let order = like.and_then(|body| body.get(1).copied());
    let order = order.unwrap_or_else(|| sampler.bits().to_le_bytes()[0]);
    let message = RawMessage { service: 200, order, payload: sampler.bytes(length).into() };
    let mut writer = Writer::new();
    message.encode(&mut writer).expect("a message");
    writer.into_bytes()
}

#[derive(Debug)]
struct Ki;

impl Speaker for Ki {
    type Connection = Connection;

    fn say(&mut self, connection: &mut Connection, body: &[u8]) -> Result<(), SendError> {
        let message = RawMessage::decode(&mut Reader::new(body), false);
        connection.send(&message.map_err(SendError::Encode)?)
    }

    fn hear(&mut self, event: EventOf<'_, Connection>) -> Option<Heard> {
        let Event::Received(received) = event else { return None };
        let body = received.bytes.get(received.message.clone()).unwrap_or_default();
        let is_message = matches!(received.unit, Unit::Message { .. });
        is_message.then(|| Heard::Message(body.to_vec()))
    }
}

/// Merges frames and encrypts everything after the first one.
struct Frames {
    is_merging: bool,
    cipher: Option<(Sealer, Opener)>,
    /// Whether the first frame has left.
    has_begun: bool,
    /// The first frame to arrive, until it is complete.
    first: Option<Vec<u8>>,
    nonce: u64,
}

impl core::fmt::Debug for Frames {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Frames").field("is_merging", &self.is_merging).finish_non_exhaustive()
    }
}

impl Frames {
    fn new(side: Side, kind: Kind) -> Self {
        let cipher = || (Sealer::new(&KEY, side), Opener::new(&KEY, side.other()));
        Self {
            is_merging: kind != Kind::Encrypted,
            cipher: (kind != Kind::Merged).then(cipher),
            has_begun: false,
            first: Some(Vec::new()),
            nonce: side as u64,
        }
    }

    /// Returns the first frame. If it is an accept of an encrypted session, adds a crypto block.
    fn begin(&self, frame: &[u8]) -> Result<Vec<u8>, Error> {
        let mut frame = Frame::decode(&mut Reader::new(frame), None)?;
        if let Body::Control(Control::SessionAccept(accept)) = &mut frame.body
            && self.cipher.is_some()
        {
            accept.crypto = Some(CryptoBlock(vec![1; 257].into()));
        }
        frame.to_bytes()
    }

    fn seal(&mut self, plain: Vec<u8>) -> Vec<u8> {
        let Self { cipher: Some((sealer, _)), nonce, .. } = self else { return plain };
        let mut sealed = Vec::new();
        sealer.seal(&plain, &mut sealed, || {
            *nonce += 2;
            u128::from(*nonce).to_be_bytes()
        });
        sealed
    }
}

impl Wrapping for Frames {
    fn leave(&mut self, writes: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        const MAX_MERGED: usize = 3;
        let mut left: Vec<Vec<u8>> = Vec::new();
        let mut open: Vec<RawMessage<'static>> = Vec::new();
        let close = |open: &mut Vec<RawMessage<'static>>| {
            let mut frame = Frame::message(open.first()?.clone());
            frame.body = Body::Data(core::mem::take(open));
            frame.to_bytes().ok()
        };
        let mut ready = Vec::new();
        for write in writes {
            if !core::mem::replace(&mut self.has_begun, true) {
                left.push(self.begin(&write).expect("a frame"));
                continue;
            }
            let frame = Frame::decode(&mut Reader::new(&write), None).expect("a frame");
            match frame.body {
                Body::Data(messages) if self.is_merging => {
                    open.extend(messages.into_iter().map(RawMessage::into_owned));
                    if open.len() >= MAX_MERGED {
                        ready.extend(close(&mut open));
                    }
                }
                _ => {
                    ready.extend(close(&mut open));
                    ready.push(write);
                }
            }
        }
        ready.extend(close(&mut open));
        left.extend(ready.into_iter().map(|frame| self.seal(frame)));
        left
    }

    fn arrive(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let mut plain = Vec::new();
        if let Some(first) = &mut self.first {
            first.extend_from_slice(&bytes);
            let length = FrameHead::decode(&mut Reader::new(first)).map(FrameHead::frame_bytes);
            let Some(length) = length.ok().filter(|length| *length <= first.len()) else {
                return plain;
            };
            bytes = first.split_off(length);
            plain = self.first.take().unwrap_or_default();
        }
        match &mut self.cipher {
            Some((_, opener)) => opener.open(&bytes, &mut plain).expect("the right key"),
            None => plain.extend_from_slice(&bytes),
        }
        plain
    }
}
