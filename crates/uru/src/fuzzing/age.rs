//! An age driven by a list of operations with hostile payloads.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::testing::operations::sampler;
use worldwire_core::testing::{Target, encoded};
use worldwire_core::{Field, Limits, Reader, Sampler};

use super::DESCRIPTORS as SET;
use crate::age::{
    AgeBounds, Capacity, Config, Event, Instance, Packet, Player, SendQueue, check_blob,
};
use crate::file::age::AgeFile;
use crate::inflate::Inflater;
use crate::net_message::{
    GameStateRequest, LoadClone, NetFlags, NetHeader, NetMessage, SdlState, SdlStateBCast,
    SharedState, Stream, TestAndSet,
};
use crate::plasma_message::{Child, LoadCloneMsg, MessageHeader, PlasmaMessage};
use crate::safety::{Rules, check};
use crate::sdl::Blob;
use crate::types::{
    ClassIndex, CloneIds, Key, Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid,
};

/// Bounds low enough for a list of operations to reach.
const BOUNDS: AgeBounds = AgeBounds {
    malformed: 8,
    state_requests: 20,
    clones: 6,
    clone_bytes: 20_000,
    states: 12,
    state_bytes: 40_000,
    share: 2,
    locks: 3,
    pages: 4,
};

/// The header of an operation: a kind, a player and a byte count, followed by the bytes.
const HEAD: usize = 3;
const KINDS: u8 = 10;
const PLAYERS: u8 = 5;

/// Drives an age through the operations that `data` encodes. Invariants: every outgoing message has
/// passed the safety check and crashes no client; receivers, lock holders, clone owners and the
/// age's owner are members; the count of initial messages is exact; bounds hold.
fn run(data: &[u8]) {
    drive(data);
}

/// The maxima seen so far.
#[derive(Default)]
struct Maxima {
    members: usize,
    states: usize,
    clones: usize,
    locks: usize,
    /// The total number of initial messages.
    initial: u32,
}

fn drive(data: &[u8]) -> Maxima {
    let capacity = Capacity::Refuse;
    let config = Config { bounds: BOUNDS, relevance: true, capacity, ..Config::default() };
    let file =
        AgeFile { sequence_prefix: 7, max_capacity: 4, linger_time: 9, ..AgeFile::default() };
    let name = SET.iter().next().map_or_else(String::new, |it| it.name().to_owned());
    let unix = Duration::from_secs(1_700_000_000);
    let instance = Instance::new(Duration::ZERO, unix, &name, file, Arc::clone(&SET), config);
    let mut age = Age {
        instance,
        now: Duration::ZERO,
        initial: BTreeMap::new(),
        queue: SendQueue::new(9_000),
        seen: Maxima::default(),
    };
    let mut rest = data;
    while let Some((&[kind, player, length], behind)) = rest.split_first_chunk::<HEAD>() {
        let (bytes, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        age.step(kind % KINDS, u32::from(player % PLAYERS) + 1, bytes);
        age.settle();
        let Age { instance, seen, .. } = &mut age;
        seen.members = seen.members.max(instance.members().count());
        seen.states = seen.states.max(instance.states().len());
        seen.clones = seen.clones.max(instance.clones().count());
        seen.locks = seen.locks.max(instance.lock_holders().count());
    }
    age.seen
}

struct Age {
    instance: Instance,
    now: Duration,
    /// Each member's initial messages since the last count.
    initial: BTreeMap<u32, u32>,
    queue: SendQueue,
    seen: Maxima,
}

impl Age {
    fn step(&mut self, kind: u8, player_id: u32, bytes: &[u8]) {
        let now = self.now;
        let mut sampler = sampler(bytes);
        let message = match kind {
            0 => {
                let mut player = Player::new(player_id, &String::from_utf8_lossy(bytes));
                player.is_admin = player_id == 5;
                let joined = self.instance.join(now, player);
                assert!(joined.is_err() || self.instance.members().count() <= 4);
                return;
            }
            1 => {
                self.instance.leave(now, player_id);
                assert!(self.instance.lock_holders().all(|holder| holder != player_id));
                return;
            }
            2 => {
                let seconds = bytes.first().copied().unwrap_or(1);
                self.now += Duration::from_millis(u64::from(seconds) * 250);
                for _ in 0..4 {
                    if self.instance.poll_timeout().is_some_and(|at| at <= self.now) {
                        self.instance.timeout(self.now);
                    }
                }
                assert!(self.instance.poll_timeout().is_none_or(|at| at > self.now));
                return;
            }
            // Arbitrary bytes.
            3 => {
                let class = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
                self.instance.receive(now, player_id, ClassIndex(class.into()), bytes);
                return;
            }
            // Any valid message.
            4 => NetMessage::sample(&mut sampler),
            5 => lock(player_id, &mut sampler).into(),
            6 => state(player_id, &mut sampler).into(),
            7 => {
                let mut state = state(player_id, &mut sampler);
                if sampler.below(3) == 0 {
                    state.header.flags = state.header.flags | NetFlags::UseRelevanceRegions;
                }
                SdlStateBCast { state }.into()
            }
            8 => clone(player_id, &mut sampler).into(),
            _ => {
                let header = NetHeader::from_client(TIME, player_id, NetFlags(0));
                GameStateRequest { header, rooms: Vec::new().into() }.into()
            }
        };
        if let Ok(bytes) = encoded(|writer| message.encode(writer)) {
            let class = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
            self.instance.receive(now, player_id, ClassIndex(class.into()), &bytes);
        }
    }

    /// Takes all output and checks every invariant.
    fn settle(&mut self) {
        while let Some(delivery) = self.instance.poll_delivery() {
            self.sound(delivery.to, &delivery.packet);
            if self.queue.push(delivery.packet).is_err() {
                assert!(self.queue.queued_bytes() > 9_000);
                self.queue = SendQueue::new(9_000);
            }
        }
        while let Some(event) = self.instance.poll_event() {
            match event {
                Event::StoreState { blob: Some(blob), object, .. } => {
                    let restored = self.instance.restore(object, &blob);
                    restored.unwrap_or_else(|error| panic!("{error}"));
                }
                Event::Dropped { why, .. } => assert!(!why.to_string().is_empty()),
                _ => {}
            }
        }
        let instance = &self.instance;
        let is_member = |id: u32| instance.members().any(|member| member.player().id == id);
        assert!(
            instance.lock_holders().all(is_member),
            "a lock is held by a player who is not a member"
        );
        assert!(
            instance.clones().all(|(_, owner)| is_member(owner)),
            "a clone belongs to a player who is not a member"
        );
        assert_eq!(instance.owner().is_some(), instance.members().next().is_some());
        assert!(instance.owner().is_none_or(is_member), "the owner is not a member");
        assert!(instance.clones().count() <= BOUNDS.clones);
        assert!(instance.states().len() <= BOUNDS.states);
        assert!(instance.state_bytes() <= BOUNDS.state_bytes);
        assert!(instance.lock_holders().count() <= BOUNDS.locks * usize::from(PLAYERS));
        assert!(!instance.states().is_empty() || instance.state_bytes() == 0);
    }

    /// Checks that an outgoing message can be decoded and crashes no client.
    fn sound(&mut self, to: u32, packet: &Packet) {
        let limits = &Limits::DEFAULT;
        let mut inflater = Inflater::new();
        let checked = check(packet.bytes(), &Rules::ADMIN, &mut inflater, limits);
        checked.unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(packet.bytes().len() <= 1 << 20);
        let message = packet.decode().unwrap_or_else(|error| panic!("{error}"));
        let initial = self.initial.entry(to).or_default();
        match &message {
            NetMessage::SdlState(state) | NetMessage::SdlStateBCast(SdlStateBCast { state }) => {
                let payload = state.stream.payload(&mut inflater, limits);
                let payload = payload.unwrap_or_else(|error| panic!("{error}"));
                let blob = Blob::decode(&SET, &mut Reader::new(payload));
                let blob = blob.unwrap_or_else(|error| panic!("{error}"));
                let checked = check_blob(&blob, &Rules::ADMIN, limits);
                checked.unwrap_or_else(|refusal| panic!("{refusal}"));
                *initial += u32::from(state.is_initial_state.is_true());
            }
            NetMessage::LoadClone(load) => *initial += u32::from(load.is_initial_state.is_true()),
            NetMessage::InitialAgeStateSent(sent) => {
                let count = core::mem::take(initial);
                assert_eq!(count, sent.state_count, "a wrong count");
                self.seen.initial += count;
            }
            _ => {}
        }
    }
}

const TIME: UnifiedTime = UnifiedTime { seconds: 3, microseconds: 4 };

fn header(player_id: u32, sampler: &mut Sampler) -> NetHeader {
    let flags = match sampler.below(4) {
        0 => NetFlags::EchoBackToSender,
        _ => NetFlags(0),
    };
    NetHeader::from_client(TIME, player_id, flags)
}

/// Returns one of a few objects in most cases.
fn object(player_id: u32, sampler: &mut Sampler) -> Uoid<'static> {
    if sampler.below(8) == 0 {
        return Uoid::sample(sampler).into_owned();
    }
    let names = ["Lever", "Gate", "AgeSDLHook", "\u{c9}owyn"];
    let name = (0..).zip(names).find(|(number, _)| *number == sampler.below(4));
    let name = name.map_or("Hen", |(_, name)| name);
    let ids = CloneIds { id: 1 + u16::from(sampler.below(2) == 0), filler: 0, player_id };
    Uoid {
        location: Location { sequence_number: SequenceNumber(0x7_0021), flags: LocationFlags(0) },
        load_mask: None,
        class_index: 1,
        object_id: 0,
        name: name.into(),
        clone: (sampler.below(2) == 0).then_some(ids),
    }
}

fn lock(player_id: u32, sampler: &mut Sampler) -> TestAndSet<'static> {
    let request = sampler.below(3) != 0;
    let state = encoded(|writer| SharedState::trigger(request).encode(writer));
    TestAndSet {
        header: header(player_id, sampler),
        object: object(1, sampler),
        stream: Stream::new(state.expect("a valid state")),
        lock_request: request.into(),
    }
}

fn state(player_id: u32, sampler: &mut Sampler) -> SdlState<'static> {
    let index = sampler.below(SET.len().max(1) as u64);
    let blob = (0..).zip(SET.iter()).find(|(number, _)| *number == index).map(|(_, it)| it);
    let blob = blob.map(|descriptor| Blob::sample(&descriptor, sampler));
    let bytes = blob.and_then(|blob| blob.to_bytes().ok()).unwrap_or_default();
    SdlState {
        header: header(player_id, sampler),
        object: object(player_id, sampler),
        stream: Stream::new(bytes),
        is_initial_state: (sampler.below(2) == 0).into(),
        persist_on_server: (sampler.below(2) == 0).into(),
        is_avatar_state: (sampler.below(4) == 0).into(),
    }
}

fn clone(player_id: u32, sampler: &mut Sampler) -> LoadClone<'static> {
    let of = object(if sampler.below(3) == 0 { 2 } else { player_id }, sampler);
    let loading = sampler.below(3) != 0;
    let payload = PlasmaMessage::from(LoadCloneMsg {
        message: MessageHeader::sample(sampler).into_owned(),
        clone: Key::from(of.clone()),
        requestor: Key::NONE,
        originating_player_id: player_id,
        user_data: 0,
        valid: true.into(),
        loading: loading.into(),
        trigger: Child::NONE,
    });
    let bytes = encoded(|writer| payload.encode(writer)).unwrap_or_default();
    LoadClone {
        header: header(player_id, sampler),
        stream: Stream::new(bytes),
        has_delivery_time: false.into(),
        delivery_time: None,
        uoid: of,
        is_player: (sampler.below(2) == 0).into(),
        is_loading: loading.into(),
        is_initial_state: (sampler.below(2) == 0).into(),
    }
}

/// Operation lists in which players join, perform operations of every kind, and leave.
fn seeds() -> Vec<Vec<u8>> {
    let list = |seed: u8| {
        let mut list = Vec::new();
        for step in 0..60_u8 {
            let mix = step.wrapping_mul(31).wrapping_add(seed.wrapping_mul(97));
            let kind = match step {
                0..4 => 0,
                _ if mix % 11 == 0 => mix % 4,
                _ => 4 + mix % 6,
            };
            let player = if step < 4 { step } else { mix / 3 };
            list.extend([kind, player, 2, mix, seed]);
        }
        list
    };
    (0..24).map(list).collect()
}

/// The text of an age file. Formatting a parsed file must yield text that parses to the same file.
fn age_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (age, problems) = AgeFile::parse("input", &text);
    assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
    let (again, problems) = AgeFile::parse("again", &age.to_string());
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(again, age);
}

pub(super) static TARGETS: &[Target] = &[
    Target { name: "uru_age", run, seeds },
    Target {
        name: "uru_age_file",
        run: age_file,
        seeds: || {
            let text = "StartDateTime=1262304000\nDayLength=30.500000\nMaxCapacity=12\n\
                        LingerTime=180\nSequencePrefix=-120\nReleaseVersion=0\nPage=a,0\n\
                        Page=b,5,1\n";
            vec![text.as_bytes().to_vec()]
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds produce members, states, clones and locks, and members who receive all of these.
    #[test]
    fn seeds_reach_every_part() {
        let mut most = Maxima::default();
        for seen in seeds().iter().map(|seed| drive(seed)) {
            most.members = most.members.max(seen.members);
            most.states = most.states.max(seen.states);
            most.clones = most.clones.max(seen.clones);
            most.locks = most.locks.max(seen.locks);
            most.initial += seen.initial;
        }
        assert_eq!(most.members, 4);
        assert!(most.states >= 6 && most.clones >= 3, "{} {}", most.states, most.clones);
        assert!(most.locks >= 3 && most.initial >= 50, "{} {}", most.locks, most.initial);
    }
}
