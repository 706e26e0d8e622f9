//! The performance of an age, without sockets.
//!
//! The budgets: 10 % of a core for an age with 150 walking avatars, each sending one message per
//! second to all others (22,350 deliveries per second); 20 ms for joining an age with 500 states.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use worldwire_core::{Field, Writer};
use worldwire_uru::age::{AgeBounds, Config, Instance, Player, SendQueue};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::net_message::{
    GameMessage, GameStateRequest, NetFlags, NetHeader, NetMessage, SdlState, SdlStateBCast, Stream,
};
use worldwire_uru::plasma_message::{
    AvatarInputStateMsg, BroadcastFlags, InputState, MessageHeader, PlasmaMessage,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{ObjectState, Scalar};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, List, Location, LocationFlags, SequenceNumber, UnifiedTime,
    Uoid,
};

fn main() {
    divan::main();
}

const TIME: UnifiedTime = UnifiedTime { seconds: 1_700_000_000, microseconds: 250_000 };
const AVATARS: u32 = 150;
/// The deliveries when every avatar sends one message to all others.
const DELIVERIES: usize = 150 * 149;

const SDL: &str = "
STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] VAR QUATERNION orientation[1] }
STATEDESC lever { VERSION 1 VAR INT place[1] VAR BOOL moving[1] VAR STRING32 label[1] }
";

fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).expect("the sample fits");
    writer.into_bytes()
}

fn object(name: &str, clone: Option<CloneIds>) -> Uoid<'static> {
    let name = name.to_owned();
    Uoid {
        location: Location { sequence_number: SequenceNumber(0x78_0021), flags: LocationFlags(0) },
        load_mask: None,
        class_index: 1,
        object_id: 9,
        name: name.as_str().into(),
        clone,
    }
}

fn avatar(player_id: u32) -> Uoid<'static> {
    object("Male", Some(CloneIds { id: 1, filler: 0, player_id }))
}

fn age(descriptors: &Arc<Descriptors>, relevance: bool) -> Instance {
    let file = AgeFile { sequence_prefix: 120, ..AgeFile::default() };
    let unix = Duration::from_secs(1_700_000_000);
    // One player creates all the states for the benchmark.
    let bounds = AgeBounds { share: 1, ..AgeBounds::default() };
    let config = Config { relevance, bounds, ..Config::default() };
    Instance::new(Duration::ZERO, unix, "city", file, Arc::clone(descriptors), config)
}

fn state(
    descriptors: &Descriptors,
    object: Uoid<'static>,
    position: bool,
    seed: u16,
) -> SdlState<'static> {
    let name = if position { "avatarPhysical" } else { "lever" };
    let mut state = ObjectState::new(descriptors.newest(name).expect("a descriptor"));
    let set = match position {
        true => state.set("position", &[Scalar::Triple([f32::from(seed), 2.0, 3.0])], &TIME),
        false => state.set("place", &[Scalar::Int(seed.into())], &TIME),
    };
    set.expect("a variable of this name");
    SdlState {
        header: NetHeader::from_client(TIME, 1, NetFlags::UseRelevanceRegions),
        object,
        stream: Stream::new(state.to_blob().to_bytes().expect("the state fits")),
        is_initial_state: false.into(),
        persist_on_server: (!position).into(),
        is_avatar_state: position.into(),
    }
}

fn walk(descriptors: &Descriptors, player_id: u32) -> Vec<u8> {
    let position = state(descriptors, avatar(player_id), true, 7);
    bytes(&NetMessage::from(SdlStateBCast { state: position }))
}

fn keys(player_id: u32) -> Vec<u8> {
    let payload = PlasmaMessage::from(AvatarInputStateMsg {
        message: MessageHeader {
            sender: Key::from(avatar(player_id)),
            receivers: vec![Key::from(avatar(player_id))].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags(0x8140),
        },
        state: InputState(1),
    });
    bytes(&NetMessage::from(GameMessage {
        header: NetHeader::from_client(TIME, player_id, NetFlags::UseRelevanceRegions),
        stream: Stream::new(bytes(&payload)),
        has_delivery_time: false.into(),
        delivery_time: None,
    }))
}

/// One second of an age in which all avatars walk: 150 messages, 22,350 deliveries.
fn second(bencher: Bencher<'_, '_>, class: ClassIndex, message: fn(&Descriptors, u32) -> Vec<u8>) {
    let descriptors = Arc::new(Descriptors::load([("bench", SDL)]));
    let mut instance = age(&descriptors, false);
    for player in 1..=AVATARS {
        instance.join(Duration::ZERO, Player::new(player, "Walker")).expect("room for all");
    }
    while instance.poll_delivery().is_some() {}
    let messages: Vec<(u32, Vec<u8>)> =
        (1..=AVATARS).map(|player| (player, message(&descriptors, player))).collect();
    bencher.counter(ItemsCount::new(DELIVERIES)).bench_local(|| {
        let mut count = 0;
        for (player, message) in &messages {
            instance.receive(Duration::from_secs(20), *player, class, black_box(message));
            while let Some(delivery) = instance.poll_delivery() {
                black_box(&delivery);
                count += 1;
            }
        }
        assert_eq!(count, DELIVERIES);
    });
}

#[divan::bench]
fn walking_positions(bencher: Bencher<'_, '_>) {
    second(bencher, ClassIndex::plNetMsgSDLStateBCast, walk);
}

#[divan::bench]
fn walking_keys(bencher: Bencher<'_, '_>) {
    second(bencher, ClassIndex::plNetMsgGameMessage, |_, player| keys(player));
}

/// The same second, with a send queue for each client, emptied once.
#[divan::bench]
fn walking_positions_through_queues(bencher: Bencher<'_, '_>) {
    let descriptors = Arc::new(Descriptors::load([("bench", SDL)]));
    let mut instance = age(&descriptors, false);
    for player in 1..=AVATARS {
        instance.join(Duration::ZERO, Player::new(player, "Walker")).expect("room for all");
    }
    while instance.poll_delivery().is_some() {}
    let messages: Vec<(u32, Vec<u8>)> =
        (1..=AVATARS).map(|player| (player, walk(&descriptors, player))).collect();
    let mut queues: Vec<SendQueue> = (0..=AVATARS).map(|_| SendQueue::new(1 << 20)).collect();
    bencher.counter(ItemsCount::new(DELIVERIES)).bench_local(|| {
        for (player, message) in &messages {
            let class = ClassIndex::plNetMsgSDLStateBCast;
            instance.receive(Duration::from_secs(20), *player, class, black_box(message));
            while let Some(delivery) = instance.poll_delivery() {
                let queue = queues.get_mut(delivery.to as usize).expect("a queue");
                queue.push(delivery.packet).expect("room for a second");
            }
        }
        for queue in &mut queues {
            while let Some(packet) = queue.pop() {
                black_box(packet);
            }
        }
    });
}

/// A player joins and requests everything.
#[divan::bench(args = [500, 5000])]
fn join_an_age_with_states(bencher: Bencher<'_, '_>, states: u16) {
    let descriptors = Arc::new(Descriptors::load([("bench", SDL)]));
    let mut instance = age(&descriptors, false);
    let zero = Duration::ZERO;
    instance.join(zero, Player::new(1, "Host")).expect("room");
    for seed in 0..states {
        let lever = state(&descriptors, object(&format!("Lever{seed}"), None), false, seed);
        let message = bytes(&NetMessage::from(lever));
        instance.receive(zero, 1, ClassIndex::plNetMsgSDLState, &message);
    }
    assert_eq!(instance.states().len(), usize::from(states));
    while instance.poll_delivery().is_some() {}
    let request = bytes(&NetMessage::from(GameStateRequest {
        header: NetHeader::from_client(TIME, 2, NetFlags::InitialAgeStateRequest),
        rooms: List::default(),
    }));
    bencher.counter(ItemsCount::new(states)).bench_local(|| {
        instance.join(zero, Player::new(2, "Late")).expect("room");
        instance.receive(zero, 2, ClassIndex::plNetMsgGameStateRequest, black_box(&request));
        let mut count = 0;
        while let Some(delivery) = instance.poll_delivery() {
            count += usize::from(delivery.to == 2);
        }
        assert_eq!(count, usize::from(states) + 2);
        instance.leave(zero, 2);
        while instance.poll_delivery().is_some() || instance.poll_event().is_some() {}
    });
}
