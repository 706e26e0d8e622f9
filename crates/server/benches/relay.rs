//! The cost of relaying a message in an age, from the sender's bytes to the task that writes to
//! each receiver's socket. Excludes ciphers and sockets.
//!
//! `cargo bench -p worldwire-server --bench relay`. The items counted are receivers. A message from
//! a small game (`games_alone`, `games_through_outboxes`) should cost no more than a message in the
//! age with the same number of receivers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use worldwire_core::{Field, Writer};
use worldwire_server::uru::{Outbox, hand_out};
use worldwire_uru::age::{Config, Instance, Packet, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::games::message::manager::GameOptions;
use worldwire_uru::games::message::manager::client::{ClientMessage as Manager, JoinGame};
use worldwire_uru::games::message::var_sync::client::{
    ClientMessage as VarSync, CreateNumericVar, SetNumericVar,
};
use worldwire_uru::games::message::{CreateData, JoinRequest, NewGame};
use worldwire_uru::games::{
    GameBody, GameBounds, GameIds, GameManager, GameMessage as ManagerMessage, GamePlayer,
    GameType, GamesConfig,
};
use worldwire_uru::net_message::{
    GameMessage, NetFlags, NetHeader, NetMessage, SdlState, SdlStateBCast, Stream,
};
use worldwire_uru::plasma_message::{
    AvatarInputStateMsg, BroadcastFlags, InputState, MessageHeader, PlasmaMessage,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{ObjectState, Scalar};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, Location, LocationFlags, SequenceNumber, TransId,
    UnifiedTime, Uoid,
};

fn main() {
    divan::main();
}

const NOW: Duration = Duration::from_secs(20);
const RECEIVERS: [u32; 3] = [1, 10, 149];
/// The number of messages between two drains of a receiver's queue.
const MESSAGES: u32 = 10;
const SDL: &str =
    "STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] VAR QUATERNION orientation[1] }";

/// An avatar's position: a state, which the age stores.
const POSITION: char = 'P';
/// The movement keys that a player holds down, which the age only forwards.
const KEYS: char = 'K';
const SAID: [char; 2] = [POSITION, KEYS];

/// An age with a sender and this many receivers, plus a message and its class.
fn age(said: char, receivers: u32) -> (Instance, ClassIndex, Vec<u8>) {
    let descriptors = Arc::new(Descriptors::load([("bench", SDL)]));
    let file = AgeFile { sequence_prefix: 120, ..AgeFile::default() };
    let (unix, config) = (Duration::from_secs(1_700_000_000), Config::default());
    let set = Arc::clone(&descriptors);
    let mut instance = Instance::new(Duration::ZERO, unix, "city", file, set, config);
    for player in 1..=receivers + 1 {
        instance.join(Duration::ZERO, Player::new(player, "Walker")).expect("room for all");
    }
    while instance.poll_delivery().is_some() {}
    let (class, message) = match said {
        KEYS => (ClassIndex::plNetMsgGameMessage, NetMessage::from(keys())),
        _ => (ClassIndex::plNetMsgSDLStateBCast, NetMessage::from(walk(&descriptors))),
    };
    let message = bytes(&message);
    (instance, class, message)
}

fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).expect("a value that fits");
    writer.into_bytes()
}

fn avatar() -> Uoid<'static> {
    Uoid {
        location: Location { sequence_number: SequenceNumber(0x78_0021), flags: LocationFlags(0) },
        load_mask: None,
        class_index: 1,
        object_id: 9,
        name: "Male".into(),
        clone: Some(CloneIds { id: 1, filler: 0, player_id: 1 }),
    }
}

const TIME: UnifiedTime = UnifiedTime { seconds: 1_700_000_000, microseconds: 250_000 };

/// The keys that the walker holds down.
fn keys() -> GameMessage<'static> {
    let payload = PlasmaMessage::from(AvatarInputStateMsg {
        message: MessageHeader {
            sender: Key::from(avatar()),
            receivers: vec![Key::from(avatar())].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags(0x8140),
        },
        state: InputState(1),
    });
    GameMessage {
        header: NetHeader::from_client(TIME, 1, NetFlags::UseRelevanceRegions),
        stream: Stream::new(bytes(&payload)),
        has_delivery_time: false.into(),
        delivery_time: None,
    }
}

/// The walker's position.
fn walk(descriptors: &Descriptors) -> SdlStateBCast<'static> {
    let mut position =
        ObjectState::new(descriptors.newest("avatarPhysical").expect("a descriptor"));
    position.set("position", &[Scalar::Triple([1.0, 2.0, 3.0])], &TIME).expect("a variable");
    let state = SdlState {
        header: NetHeader::from_client(TIME, 1, NetFlags::UseRelevanceRegions),
        object: avatar(),
        stream: Stream::new(position.to_blob().to_bytes().expect("a state")),
        is_initial_state: false.into(),
        persist_on_server: false.into(),
        is_avatar_state: true.into(),
    };
    SdlStateBCast { state }
}

/// A VarSync game with this many players besides the sender, and a change to one of its variables.
fn games(receivers: u32) -> (GameManager, Vec<u8>) {
    // No rate limit applies to the sender.
    let bounds = GameBounds { interval: Duration::ZERO, ..GameBounds::default() };
    let config = GamesConfig { bounds, ..GamesConfig::serving([GameType::VarSync]) };
    let mut games = GameManager::new(config, Arc::new(GameIds::new(7)));
    let says = |games: &mut GameManager, player: u32, message: &ManagerMessage<'_>| {
        let bytes = message.to_bytes().expect("a message that fits");
        let from = GamePlayer { id: player, is_admin: false };
        games.receive(NOW, from, &bytes, &mut |bytes: &mut [u8]| bytes.fill(0));
    };
    let new_game =
        NewGame { game_type: GameType::VarSync.id(), data: CreateData::Nothing { filler: true } };
    let join = ManagerMessage {
        trans_id: TransId(1),
        game_id: 0,
        body: GameBody::from(Manager::from(JoinGame {
            request: JoinRequest {
                game_id: 255,
                options: GameOptions::Common,
                new_game: Some(new_game),
            },
        })),
    };
    for player in 1..=receivers + 1 {
        says(&mut games, player, &join);
    }
    let game_id = games.games().next().map(|game| game.0).expect("a game");
    let trans_id = TransId(0);
    let create = VarSync::from(CreateNumericVar { name: "QuabRun1".into(), value: Double(1.0) });
    says(&mut games, 1, &ManagerMessage { trans_id, game_id, body: GameBody::from(create) });
    let set = VarSync::from(SetNumericVar { var: 1, value: Double(2.0) });
    let set = ManagerMessage { trans_id, game_id, body: GameBody::from(set) };
    while games.poll_delivery().is_some() {}
    while games.poll_event().is_some() {}
    (games, set.to_bytes().expect("a message that fits"))
}

/// Only the games: the cost of a message without queues.
#[divan::bench(args = RECEIVERS)]
fn games_alone(bencher: Bencher<'_, '_>, receivers: u32) {
    let (mut games, message) = games(receivers);
    let from = GamePlayer { id: 1, is_admin: false };
    bencher.counter(ItemsCount::new(receivers + 1)).bench_local(|| {
        games.receive(NOW, from, black_box(&message), &mut |bytes: &mut [u8]| bytes.fill(0));
        while let Some(delivery) = games.poll_delivery() {
            black_box(delivery);
        }
    });
    assert_eq!(games.poll_event(), None);
}

/// With a queue per receiver, drained periodically.
#[divan::bench(args = RECEIVERS)]
fn games_through_outboxes(bencher: Bencher<'_, '_>, receivers: u32) {
    let (mut games, message) = games(receivers);
    let from = GamePlayer { id: 1, is_admin: false };
    let outboxes: HashMap<u32, Arc<Outbox>> =
        (1..=receivers + 1).map(|player| (player, Arc::default())).collect();
    let mut taken = Vec::new();
    let items = ItemsCount::new((receivers + 1) * MESSAGES);
    bencher.counter(items).bench_local(|| {
        for _ in 0..MESSAGES {
            games.receive(NOW, from, black_box(&message), &mut |bytes: &mut [u8]| bytes.fill(0));
            while let Some(delivery) = games.poll_delivery() {
                if let Some(outbox) = outboxes.get(&delivery.to) {
                    outbox.push(Packet::of_game(delivery.bytes));
                }
            }
        }
        for outbox in outboxes.values() {
            outbox.take(usize::MAX, &mut taken);
            taken.drain(..).for_each(|packet| drop(black_box(packet)));
        }
    });
}

/// Only the age: the cost of a message without queues.
#[divan::bench(args = RECEIVERS, consts = SAID)]
fn instance_alone<const SAID: char>(bencher: Bencher<'_, '_>, receivers: u32) {
    let (mut instance, class, message) = age(SAID, receivers);
    bencher.counter(ItemsCount::new(receivers)).bench_local(|| {
        instance.receive(NOW, 1, class, black_box(&message));
        while let Some(delivery) = instance.poll_delivery() {
            black_box(delivery);
        }
    });
}

/// With a queue per receiver, drained periodically.
#[divan::bench(args = RECEIVERS, consts = SAID)]
fn through_outboxes<const SAID: char>(bencher: Bencher<'_, '_>, receivers: u32) {
    let (mut instance, class, message) = age(SAID, receivers);
    let outboxes: HashMap<u32, Arc<Outbox>> =
        (2..=receivers + 1).map(|player| (player, Arc::default())).collect();
    let mut taken = Vec::new();
    let items = ItemsCount::new(receivers * MESSAGES);
    bencher.counter(items).bench_local(|| {
        for _ in 0..MESSAGES {
            instance.receive(NOW, 1, class, black_box(&message));
            hand_out(&mut instance, |player| outboxes.get(&player).map(|outbox| &**outbox));
        }
        for outbox in outboxes.values() {
            outbox.take(usize::MAX, &mut taken);
            taken.drain(..).for_each(|packet| drop(black_box(packet)));
        }
    });
}

/// As above, but one task per receiver is woken to drain its queue.
#[divan::bench(args = RECEIVERS, consts = SAID)]
fn through_tasks<const SAID: char>(bencher: Bencher<'_, '_>, receivers: u32) {
    let (mut instance, class, message) = age(SAID, receivers);
    let runtime: Runtime = Builder::new_current_thread().build().expect("a runtime");
    let heard = Arc::new(Semaphore::new(0));
    let outboxes: HashMap<u32, Arc<Outbox>> =
        (2..=receivers + 1).map(|player| (player, Arc::default())).collect();
    for outbox in outboxes.values().map(Arc::clone) {
        let heard = Arc::clone(&heard);
        runtime.spawn(async move {
            let mut taken = Vec::new();
            loop {
                outbox.news().await;
                while !outbox.is_empty() {
                    outbox.take(64 << 10, &mut taken);
                    heard.add_permits(taken.len());
                    taken.drain(..).for_each(|packet| drop(black_box(packet)));
                }
            }
        });
    }
    let items = ItemsCount::new(receivers * MESSAGES);
    bencher.counter(items).bench_local(|| {
        runtime.block_on(async {
            for _ in 0..MESSAGES {
                instance.receive(NOW, 1, class, black_box(&message));
                hand_out(&mut instance, |player| outboxes.get(&player).map(|outbox| &**outbox));
            }
            let all = heard.acquire_many(receivers * MESSAGES).await;
            all.expect("running tasks").forget();
        });
    });
}
