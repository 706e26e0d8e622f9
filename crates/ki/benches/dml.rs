//! Performance of loading definitions, and of decoding and encoding messages: as typed structs,
//! with run-time definitions, and as a tree.

#![allow(clippy::unwrap_used, reason = "a panic fails the benchmark")]

use std::hint::black_box;
use std::mem::take;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::{Reader, Sampler, Tree, Writer};
use worldwire_ki::frame::{Frame, FrameHead};
use worldwire_ki::message::{RawMessage, Values};
use worldwire_ki::schema::{Mode, Protocols};

#[path = "../tests/generated/messages.rs"]
#[allow(dead_code, unreachable_pub, reason = "generated for other crates")]
#[rustfmt::skip]
mod generated;
#[allow(dead_code, reason = "a test uses the rest")]
mod synthetic;

use generated::{game, login, system};

/// The messages that the stream repeats.
const MIX: [(u8, u8); 6] = [
    (game::MsgClientmove::SERVICE, game::MsgClientmove::ORDER),
    (game::MsgClientmove::SERVICE, game::MsgClientmove::ORDER),
    (game::MsgClientmove::SERVICE, game::MsgClientmove::ORDER),
    (system::MsgPing::SERVICE, system::MsgPing::ORDER),
    (login::MsgUserAdmitInd::SERVICE, login::MsgUserAdmitInd::ORDER),
    (login::MsgCharacterselected::SERVICE, login::MsgCharacterselected::ORDER),
];
const MESSAGES: usize = 600;

fn main() {
    divan::main();
}

/// Frames with one message each.
fn frames(protocols: &Protocols) -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(5);
    (0..MESSAGES)
        .map(|index| {
            let (service, order) = MIX[index % MIX.len()];
            let message = protocols.message(service, order).unwrap();
            let payload = message.payload(&message.sample(&mut sampler)).unwrap();
            Frame::message(RawMessage { service, order, payload: payload.into() })
                .to_bytes()
                .unwrap()
        })
        .collect()
}

/// Measures an operation on each frame.
fn each(bencher: Bencher<'_, '_>, frames: &[Vec<u8>], mut work: impl FnMut(&[u8])) {
    counted(bencher, frames, || frames.iter().for_each(|frame| work(black_box(frame))));
}

fn counted(bencher: Bencher<'_, '_>, frames: &[Vec<u8>], work: impl FnMut()) {
    let bytes: usize = frames.iter().map(Vec::len).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(frames.len()))
        .bench_local(work);
}

/// Decodes the message of a frame, from its frame header and message header.
#[inline]
fn raw<'d>(reader: &mut Reader<'d>) -> RawMessage<'d> {
    let head = FrameHead::decode(reader).unwrap();
    reader.take(4).unwrap();
    let message = RawMessage::decode(reader, head.is_large()).unwrap();
    reader.take(1).unwrap();
    message
}

/// The payload as bytes that outlive the message.
#[inline]
fn payload<'d>(message: &RawMessage<'d>) -> &'d [u8] {
    match message.payload {
        std::borrow::Cow::Borrowed(bytes) => bytes,
        std::borrow::Cow::Owned(_) => unreachable!("decoded messages borrow"),
    }
}

/// A typed message of any service.
enum Typed<'d> {
    Game(game::Message),
    System(system::Message),
    Login(login::Message<'d>),
}

fn typed<'d>(message: &RawMessage<'d>) -> Typed<'d> {
    let reader = &mut Reader::new(payload(message));
    match message.service {
        game::MsgClientmove::SERVICE => {
            Typed::Game(game::Message::decode(message.order, reader).unwrap())
        }
        system::MsgPing::SERVICE => {
            Typed::System(system::Message::decode(message.order, reader).unwrap())
        }
        _ => Typed::Login(login::Message::decode(message.order, reader).unwrap()),
    }
}

#[divan::bench(name = "ki/load", sample_count = 20)]
fn load(bencher: Bencher<'_, '_>) {
    let files = synthetic::files();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let mut protocols = Protocols::new();
        for (name, text) in &files {
            assert!(protocols.add(name, text.as_bytes(), Mode::Lenient).is_empty());
        }
        protocols
    });
}

#[divan::bench(name = "ki/decode_typed")]
fn decode_typed(bencher: Bencher<'_, '_>) {
    let frames = frames(&Protocols::built_in());
    each(bencher, &frames, |frame| {
        let message = raw(&mut Reader::new(frame));
        black_box(typed(&message));
    });
}

#[divan::bench(name = "ki/decode_plan")]
fn decode_plan(bencher: Bencher<'_, '_>) {
    let protocols = Protocols::built_in();
    let frames = frames(&protocols);
    counted(bencher, &frames, || {
        let mut values = Values::new();
        for frame in black_box(&frames) {
            let message = raw(&mut Reader::new(frame));
            let definition = protocols.message(message.service, message.order).unwrap();
            let reader = &mut Reader::new(payload(&message));
            definition.decode(reader, &mut values).unwrap();
            black_box(&values);
        }
    });
}

#[divan::bench(name = "ki/decode_tree")]
fn decode_tree(bencher: Bencher<'_, '_>) {
    let protocols = Protocols::built_in();
    let frames = frames(&protocols);
    let mut kept = Tree::new();
    each(bencher, &frames, |frame| {
        let mut reader = Reader::traced("frame", frame, take(&mut kept).recycle());
        let decoded = Frame::decode_named(&mut reader, None, &protocols);
        black_box(decoded.is_ok());
        kept = black_box(reader.finish()).recycle();
    });
}

#[divan::bench(name = "ki/encode_typed")]
fn encode_typed(bencher: Bencher<'_, '_>) {
    let frames = frames(&Protocols::built_in());
    let raws: Vec<_> = frames.iter().map(|frame| raw(&mut Reader::new(frame))).collect();
    let messages: Vec<_> = raws.iter().map(typed).collect();
    // This measures the encoding of payloads only.
    let payloads: Vec<_> = raws.iter().map(|message| payload(message).to_vec()).collect();
    let mut out = Vec::new();
    counted(bencher, &payloads, || {
        out.clear();
        let mut writer = Writer::append_to(take(&mut out));
        for message in black_box(&messages) {
            match message {
                Typed::Game(message) => message.encode(&mut writer),
                Typed::System(message) => message.encode(&mut writer),
                Typed::Login(message) => message.encode(&mut writer),
            }
            .unwrap();
        }
        out = black_box(writer.into_bytes());
    });
}

#[divan::bench(name = "ki/encode_plan")]
fn encode_plan(bencher: Bencher<'_, '_>) {
    let protocols = Protocols::built_in();
    let frames = frames(&protocols);
    let raws: Vec<_> = frames.iter().map(|frame| raw(&mut Reader::new(frame))).collect();
    let messages: Vec<_> = raws
        .iter()
        .map(|message| {
            let definition = protocols.message(message.service, message.order).unwrap();
            let mut values = Values::new();
            let reader = &mut Reader::new(payload(message));
            definition.decode(reader, &mut values).unwrap();
            (definition, values)
        })
        .collect();
    let payloads: Vec<_> = raws.iter().map(|message| payload(message).to_vec()).collect();
    let mut out = Vec::new();
    counted(bencher, &payloads, || {
        out.clear();
        let mut writer = Writer::append_to(take(&mut out));
        for (definition, values) in black_box(&messages) {
            definition.encode(values, &mut writer).unwrap();
        }
        out = black_box(writer.into_bytes());
    });
}
