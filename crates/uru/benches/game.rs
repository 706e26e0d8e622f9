//! The performance of decoding, checking and stamping forwarded messages on a game server.
//!
//! The budget for all three together is 1 us for a message with an uncompressed payload, and 5 us
//! for a compressed one.

use std::hint::black_box;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::{Field, Limits, Reader, Tree, Writer};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::patch::{clear_chat_admin, restamp};
use worldwire_uru::net_message::{
    GameMessage, LoadClone, NetFlags, NetHeader, NetMessage, Stream, received,
};
use worldwire_uru::plasma_message::{
    AvatarInputStateMsg, BroadcastFlags, ChatFlags, Child, CollisionEvent, InputState, KiCommand,
    KiMsg, LoadAvatarMsg, LoadCloneMsg, MessageHeader, NotifyEvent, NotifyMsg, PlasmaMessage,
};
use worldwire_uru::safety::{Rules, check};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid,
};

fn main() {
    divan::main();
}

struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
}

const TIME: UnifiedTime = UnifiedTime { seconds: 1_700_000_000, microseconds: 250_000 };

fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).expect("the sample fits");
    writer.into_bytes()
}

fn uoid(class_index: u16, name: &str, clone: Option<CloneIds>) -> Uoid<'static> {
    Uoid {
        location: Location { sequence_number: SequenceNumber(0x6_0023), flags: LocationFlags(0) },
        load_mask: None,
        class_index,
        object_id: 413,
        name: name.into(),
        clone,
    }
}

fn avatar() -> Uoid<'static> {
    uoid(1, "Male", Some(CloneIds { id: 3, filler: 0, player_id: 5 }))
}

fn message(receivers: Vec<Key<'static>>) -> MessageHeader<'static> {
    MessageHeader {
        sender: Key::from(avatar()),
        receivers: receivers.into(),
        timestamp: Double(0.0),
        bcast_flags: BroadcastFlags(0x840),
    }
}

fn game(payload: &PlasmaMessage<'_>) -> Vec<u8> {
    bytes(&NetMessage::from(GameMessage {
        header: NetHeader::from_client(TIME, 5, NetFlags(0)),
        stream: Stream::new(bytes(payload)),
        has_delivery_time: false.into(),
        delivery_time: None,
    }))
}

fn chat(text: &str, flags: ChatFlags) -> Vec<u8> {
    game(&PlasmaMessage::from(KiMsg {
        message: MessageHeader { sender: Key::NONE, ..message(Vec::new()) },
        command: KiCommand::HACKChatMsg,
        user: "Yeesha Tester".into(),
        player_id: 5,
        text: text.into(),
        flags,
        delay: 0.0.into(),
        value: 0,
    }))
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let lever = || Key::from(uoid(0x2d, "cRespLever01", None));
    let input = PlasmaMessage::from(AvatarInputStateMsg {
        message: message(vec![Key::from(avatar())]),
        state: InputState(0x41),
    });
    let hit = CollisionEvent { enter: true.into(), hitter: Key::from(avatar()), hittee: lever() };
    let notify = PlasmaMessage::from(NotifyMsg {
        message: message(vec![lever()]),
        notify_type: 0,
        state: 1.0.into(),
        id: 0,
        events: vec![NotifyEvent::from(hit).into()].into(),
    });
    let load = LoadAvatarMsg {
        clone_msg: LoadCloneMsg {
            message: message(vec![Key::from(uoid(0x52, "kNetClientMgr_KEY", None))]),
            clone: Key::from(avatar()),
            requestor: Key::from(uoid(0xf4, "kAvatarMgr_KEY", None)),
            originating_player_id: 5,
            user_data: 0,
            valid: true.into(),
            loading: true.into(),
            trigger: Child::NONE,
        },
        is_player: true.into(),
        spawn_point: lever(),
        has_initial_task: false.into(),
        initial_task: None,
        user_string: "".into(),
    };
    let clone = NetMessage::from(LoadClone {
        header: NetHeader::from_client(TIME, 5, NetFlags(0)),
        stream: Stream::new(bytes(&PlasmaMessage::from(load))),
        has_delivery_time: false.into(),
        delivery_time: None,
        uoid: avatar(),
        is_player: true.into(),
        is_loading: true.into(),
        is_initial_state: false.into(),
    });
    vec![
        Sample { name: "input", bytes: game(&input) },
        Sample { name: "notify", bytes: game(&notify) },
        Sample { name: "clone", bytes: bytes(&clone) },
        Sample { name: "chat", bytes: chat("Shorah, b'shem!", ChatFlags(0)) },
        Sample { name: "deflated", bytes: chat(&"Shorah, b'shem! ".repeat(20), ChatFlags(0)) },
    ]
});

const NAMES: [&str; 5] = ["input", "notify", "clone", "chat", "deflated"];

fn count(bencher: Bencher<'_, '_>, name: &str, mut work: impl FnMut(&'static Sample)) {
    let sample = SAMPLES.iter().find(|sample| sample.name == name).expect("a sample of this name");
    bencher
        .counter(BytesCount::new(sample.bytes.len()))
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| work(sample));
}

fn outer(bytes: &[u8]) -> ClassIndex {
    ClassIndex(bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class).into()))
}

/// All of a server's work on a message that it forwards.
#[divan::bench(args = NAMES)]
fn forward(bencher: Bencher<'_, '_>, name: &str) {
    let limits = Limits::DEFAULT;
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    count(bencher, name, |sample| {
        let bytes = black_box(&sample.bytes);
        black_box(received(outer(bytes), bytes, &limits).is_ok());
        assert!(check(bytes, &Rules::PLAYER, &mut inflater, &limits).is_ok());
        out.clear();
        out.extend_from_slice(bytes);
        assert_eq!(restamp(&mut out, TIME, 5), Ok(()));
        black_box(&out);
    });
}

#[divan::bench(args = NAMES)]
fn decode(bencher: Bencher<'_, '_>, name: &str) {
    let limits = Limits::DEFAULT;
    count(bencher, name, |sample| {
        let bytes = black_box(&sample.bytes);
        black_box(received(outer(bytes), bytes, &limits).is_ok());
    });
}

#[divan::bench(args = NAMES)]
fn safety_check(bencher: Bencher<'_, '_>, name: &str) {
    let limits = Limits::DEFAULT;
    let mut inflater = Inflater::new();
    count(bencher, name, |sample| {
        let walked = check(black_box(&sample.bytes), &Rules::PLAYER, &mut inflater, &limits);
        black_box(walked.is_ok());
    });
}

#[divan::bench(args = NAMES)]
fn stamp(bencher: Bencher<'_, '_>, name: &str) {
    let mut out = Vec::new();
    count(bencher, name, |sample| {
        out.clear();
        out.extend_from_slice(black_box(&sample.bytes));
        black_box(restamp(&mut out, TIME, 5).is_ok());
    });
}

/// The most expensive case: changing a deflated payload.
#[divan::bench]
fn clear_admin_of_deflated_chat(bencher: Bencher<'_, '_>) {
    let limits = Limits::DEFAULT;
    let mut inflater = Inflater::new();
    let marked = chat(&"Shorah, b'shem! ".repeat(20), ChatFlags::Admin);
    bencher.counter(BytesCount::new(marked.len())).counter(ItemsCount::new(1_usize)).bench_local(
        || {
            let mut bytes = black_box(&marked).clone();
            assert_eq!(clear_chat_admin(&mut bytes, &mut inflater, &limits), Ok(true));
            black_box(bytes)
        },
    );
}

#[divan::bench(args = NAMES)]
fn decode_traced(bencher: Bencher<'_, '_>, name: &str) {
    let mut tree = Tree::new();
    count(bencher, name, |sample| {
        let old = std::mem::take(&mut tree);
        let mut reader = Reader::traced("message", black_box(&sample.bytes), old);
        black_box(NetMessage::decode(&mut reader, "message").is_ok());
        tree = black_box(reader.finish());
    });
}
