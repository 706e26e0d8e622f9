//! Targets for frames, key files and the login's secrets.

use worldwire_core::json::Style;
use worldwire_core::testing::{Target, render};
use worldwire_core::{Reader, Sampler, Side, Tree};

use crate::control::{Control, KeepAlive, Opcode, SessionAccept, SessionOffer, SessionTime};
use crate::crypt::Salt;
use crate::crypt::keys::KeyFile;
use crate::crypt::login::{Rec1, password_hash};
use crate::crypt::stream::{Sealer, StreamKey};
use crate::crypto_block::{Challenge, ChallengeKind, CryptoBlock, SignedOffer};
use crate::frame::Frame;
use crate::message::RawMessage;
use crate::schema::Protocols;

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_frame", run: frame, seeds: frames },
    Target { name: "ki_key_file", run: key_file, seeds: key_files },
    Target { name: "ki_client_args", run: client_args, seeds: command_lines },
];

/// Decodes with and without a trace and with and without definitions, then encodes again.
fn frame(data: &[u8]) {
    let protocols = protocols();
    for from in [None, Some(Side::Client), Some(Side::Server)] {
        let mut reader = Reader::new(data);
        let plain = Frame::decode(&mut reader, from);
        let rest = reader.remaining();
        let mut traced = Reader::traced("frame", data, Tree::new());
        let outcome = Frame::decode(&mut traced, from);
        let (tree, outcome) = traced.conclude(outcome);
        assert_eq!(plain, outcome, "a trace changed the outcome");
        let mut named = Reader::traced("frame", data, Tree::new());
        let outcome = Frame::decode_named(&mut named, from, protocols);
        let (named, outcome) = named.conclude(outcome);
        assert_eq!(plain, outcome, "names changed the outcome");
        let shown = [&tree, &named].map(|tree| render(tree, Style::default()));
        let Ok(frame) = plain else { continue };
        let bytes = frame.to_bytes();
        if named.nodes().any(|node| node.name() == "isBoundByFrame") {
            // The encoding of such a message is unknown.
            assert!(bytes.is_err());
            continue;
        }
        assert_eq!(bytes.as_deref(), Ok(&data[..data.len() - rest]), "round trip");
        for json in shown {
            let again = Frame::from_json(&json, protocols).and_then(|frame| frame.to_bytes());
            assert_eq!(again, bytes, "round trip through JSON");
        }
    }
}

/// Created once, because this takes longer than a run.
fn protocols() -> &'static Protocols {
    static PROTOCOLS: std::sync::LazyLock<Protocols> =
        std::sync::LazyLock::new(Protocols::built_in);
    &PROTOCOLS
}

/// The key and first nonce of the encrypted samples.
pub(super) const KEY: StreamKey = StreamKey { key: [1; 16], nonce: [2; 16] };

fn key_file(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match KeyFile::parse("fuzz", text) {
        Ok(file) => {
            let salt = Salt { session_id: 1, seconds: 2, millis: 3 };
            drop(file.open_rec1(data, salt));
        }
        Err(errors) => assert!(!errors.is_empty()),
    }
    let salt = Salt { session_id: 7, seconds: 1_700_000_000, millis: 1 };
    drop(Rec1::open(data, salt));
}

fn client_args(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(given) = crate::client_args::parse(text.split_whitespace()) else { return };
    let line: Vec<String> = given.iter().map(ToString::to_string).collect();
    let line = line.join(" ");
    assert_eq!(crate::client_args::parse(line.split_whitespace()), Ok(given));
}

pub(super) fn samples() -> Vec<(Side, Frame<'static>)> {
    let time = SessionTime::new(1_700_000_000, 321);
    let signed = SignedOffer {
        flags: 1,
        key_slot: 2,
        key_mask: 31,
        challenge: Challenge {
            hash_offset: 64,
            hash_length: 512,
            kind: ChallengeKind::ClientSignature { control_mask: 2, spec: 3, key: 4 },
        },
        echo: 5,
        signature: vec![6; 256].into(),
    };
    let mut block = worldwire_core::Writer::new();
    signed.encode(&mut block).expect("it can be encoded");
    let offer = |crypto| Control::SessionOffer(SessionOffer { session_id: 0x1234, time, crypto });
    let accept = |crypto| {
        let (reserved, session_id) = (0, 0x1234);
        Control::SessionAccept(SessionAccept { reserved, time, session_id, crypto })
    };
    let block = CryptoBlock(block.into_bytes().into());
    let asks = KeepAlive::Client { session_id: 0x1234, millis: 14_097, minutes: 11 };
    let keep_alive = KeepAlive::Server { session_id: 0, uptime_millis: 123_456_789 };
    let mut sampler = Sampler::new(1);
    let long = RawMessage { service: 5, order: 122, payload: sampler.bytes(33_000).into() };
    let hello = Control::Other { opcode: Opcode::UdpHello, body: b"name"[..].into() };
    let mut alive = Frame::control(Control::KeepAlive(asks));
    alive.trailer = None;
    vec![
        (Side::Server, Frame::control(offer(Some(CryptoBlock::NONE)))),
        (Side::Client, Frame::control(accept(Some(CryptoBlock::NONE)))),
        (Side::Server, Frame::control(offer(None))),
        (Side::Server, Frame::control(offer(Some(block)))),
        (Side::Client, Frame::control(accept(Some(CryptoBlock(vec![9; 257].into()))))),
        (Side::Client, alive),
        (Side::Server, Frame::control(Control::KeepAlive(keep_alive))),
        (Side::Server, Frame::control(Control::KeepAliveRsp(Some(asks)))),
        (Side::Client, Frame::control(Control::KeepAliveRsp(None))),
        (Side::Client, Frame::control(hello)),
        (
            Side::Client,
            Frame::message(RawMessage { service: 1, order: 1, payload: b""[..].into() }),
        ),
        (Side::Server, Frame::message(long)),
    ]
}

fn frames() -> Vec<Vec<u8>> {
    samples().into_iter().filter_map(|(_, frame)| frame.to_bytes().ok()).collect()
}

/// Everything that one side sends, in pieces of 200 bytes.
fn stream(side: Side) -> Vec<u8> {
    let of_side = samples().into_iter().filter(|(by, _)| *by == side);
    let frames = of_side.filter_map(|(_, frame)| frame.to_bytes().ok());
    core::iter::once(vec![200]).chain(frames).collect::<Vec<_>>().concat()
}

pub(super) fn server_streams() -> Vec<Vec<u8>> {
    let whole = stream(Side::Server);
    vec![whole.iter().take(29).copied().collect(), whole]
}

pub(super) fn client_streams() -> Vec<Vec<u8>> {
    let whole = stream(Side::Client);
    let mut sealed: Vec<u8> = whole.iter().take(31 + 270).copied().collect();
    Sealer::new(&KEY, Side::Client).seal(&whole[1..], &mut sealed, || [3; 16]);
    vec![whole.iter().take(31).copied().collect(), whole, sealed]
}

fn key_files() -> Vec<Vec<u8>> {
    let text = "[[ki.stream]]\nsession = 1419\nkey = \"000102030405060708090a0b0c0d0e0f\"\n\
                nonce = \"101112131415161718191a1b1c1d1e1f\"\n\
                [[ki.login]]\nuser = \"Merle\"\npassword = \"hunter2\"\n";
    let salt = Salt { session_id: 7, seconds: 1_700_000_000, millis: 1 };
    vec![text.into(), Rec1::new("Merle", &password_hash("hunter2"), salt).seal(salt)]
}

fn command_lines() -> Vec<Vec<u8>> {
    vec![b"-L 127.0.0.1 12000 -U ..5 Y2sy Merle -V -P 0".to_vec(), b"-CS -A English".to_vec()]
}
