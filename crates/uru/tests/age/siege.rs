//! An age under siege: thousands of operations by honest and hostile clients, judged only by the
//! messages that clients receive. There is no model of the instance; each rule comes from the
//! specification.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Field, Limits, Reader, Sampler, Writer};
use worldwire_uru::age::{AgeBounds, Config, Event, Instance, JoinRefused, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::{NetFlags, NetMessage};
use worldwire_uru::plasma_message::{ChatFlags, PlasmaMessage};
use worldwire_uru::safety::{Rules, check};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectKey, ObjectState, Scalar};
use worldwire_uru::types::{UnifiedTime, Uoid};

use crate::world::{
    self, PREFIX, UNIX, World, broadcast, bytes, chat, clone, directed, game, load_avatar,
    load_clone, lock, members_request, notify, object, page, position, state, state_request, voice,
    warp,
};

const BOUNDS: AgeBounds = AgeBounds {
    malformed: 16,
    state_requests: 30,
    clones: 54,
    clone_bytes: 120_000,
    states: 180,
    state_bytes: 400_000,
    share: 9,
    locks: 4,
    pages: 8,
};
/// One member's share of the clones.
const SHARE: usize = BOUNDS.clones / BOUNDS.share;
/// An honest player who is always present and remembers everything.
const WITNESS: u32 = 100;
/// Players who follow the rules; those with higher numbers do not.
const HONEST: std::ops::RangeInclusive<u32> = 1..=6;
const ALL: u64 = 12;
const LEVERS: [&str; 6] = ["Lever", "Gate", "Lift", "Bell", "Door", "Lamp"];

/// One client's knowledge.
#[derive(Default)]
struct Client {
    members: Option<BTreeSet<u32>>,
    is_owner: bool,
    has_avatar: bool,
    initial: u32,
    /// How much of the initial state has arrived since the last count: 1 after an avatar, 2 after
    /// an object's state, otherwise 0.
    stage: u8,
}

struct Siege {
    world: World,
    age: Instance,
    now: Duration,
    clients: BTreeMap<u32, Client>,
    /// Players who were granted a lock and have not released it or left.
    granted: BTreeMap<&'static str, u32>,
    /// The position of each lever as announced to everyone.
    places: BTreeMap<&'static str, i32>,
    /// The states that the instance asked to have stored, by object and descriptor.
    stored: BTreeMap<(ObjectKey, String), (Uoid<'static>, Vec<u8>)>,
    stored_age: Option<Vec<u8>>,
}

fn age(descriptors: &Arc<Descriptors>) -> Instance {
    let file = AgeFile { sequence_prefix: PREFIX, linger_time: 30, ..AgeFile::default() };
    let config = Config { bounds: BOUNDS, ..Config::default() };
    let unix = Duration::from_secs(UNIX.into());
    Instance::new(Duration::ZERO, unix, "Fern", file, Arc::clone(descriptors), config)
}

fn below(sampler: &mut Sampler, bound: usize) -> usize {
    usize::try_from(sampler.below(bound as u64)).unwrap()
}

/// How a message should be received.
#[derive(Default)]
struct Sent<'s> {
    sender: u32,
    /// Whether the sender may receive it too.
    is_echoed: bool,
    /// The permitted receivers, if not everyone.
    listed: Option<&'s [u32]>,
    /// Whether everyone else must receive it.
    is_good: bool,
}

impl Siege {
    fn new() -> Self {
        let world = World::new();
        let age = age(&world.descriptors);
        let mut siege = Self {
            world,
            age,
            now: Duration::ZERO,
            clients: BTreeMap::new(),
            granted: BTreeMap::new(),
            places: BTreeMap::new(),
            stored: BTreeMap::new(),
            stored_age: None,
        };
        siege.join(WITNESS);
        siege
    }

    fn join(&mut self, id: u32) {
        let is_new = !self.clients.contains_key(&id);
        match self.age.join(self.now, Player::new(id, "Somebody")) {
            Ok(()) => assert!(self.clients.insert(id, Client::default()).is_none()),
            Err(why) => assert!(!is_new && why == JoinRefused::AlreadyJoined, "{why}"),
        }
        self.settle(&Sent::default());
        if is_new {
            self.send(id, &bytes(&NetMessage::from(members_request(id))), Sent::default());
            assert!(self.clients[&id].members.is_some());
        }
    }

    fn leave(&mut self, id: u32) {
        self.age.leave(self.now, id);
        self.clients.remove(&id);
        self.granted.retain(|_, holder| *holder != id);
        self.settle(&Sent::default());
    }

    fn send(&mut self, id: u32, message: &[u8], sent: Sent<'_>) {
        self.age.receive(self.now, id, world::outer(message), message);
        self.settle(&Sent { sender: id, ..sent });
    }

    fn says<'m>(&mut self, id: u32, message: impl Into<NetMessage<'m>>) {
        let is_good = HONEST.contains(&id);
        self.send(id, &bytes(&message.into()), Sent { is_good, ..Sent::default() });
    }

    /// Checks the results of an operation and the instance's invariants.
    fn settle(&mut self, sent: &Sent<'_>) {
        let mut got = BTreeSet::new();
        let mut count = 0_usize;
        while let Some(delivery) = self.age.poll_delivery() {
            assert!(self.clients.contains_key(&delivery.to), "{} is not here", delivery.to);
            self.client_reads(delivery.to, delivery.packet.bytes(), sent);
            got.insert(delivery.to);
            count += 1;
        }
        let (clones, states) = (BOUNDS.clones, BOUNDS.states);
        assert!(count <= 2 * self.clients.len() * (2 + clones) + states, "{count}");
        if sent.is_good && sent.listed.is_none() && !got.is_empty() {
            let here = self.clients.keys().filter(|id| **id != sent.sender || sent.is_echoed);
            assert_eq!(got.iter().collect::<Vec<_>>(), here.collect::<Vec<_>>());
        }
        let mut closed = Vec::new();
        while let Some(event) = self.age.poll_event() {
            match event {
                Event::Close { player_id, .. } => closed.push(player_id),
                Event::StoreState { object, descriptor, blob } => {
                    let key = (ObjectKey::of(&object), descriptor);
                    match blob {
                        Some(blob) => drop(self.stored.insert(key, (object, blob))),
                        None => drop(self.stored.remove(&key)),
                    }
                }
                Event::StoreAge { blob } => self.stored_age = Some(blob),
                Event::RouteToAll { .. } | Event::Over => panic!("{event:?}"),
                Event::Dropped { player_id, why } => {
                    assert!(!sent.is_good, "{player_id}: {why:?}");
                }
                _ => {}
            }
        }
        let age = &self.age;
        assert!(age.clones().count() <= clones && age.states().len() <= states);
        assert!(age.state_bytes() <= BOUNDS.state_bytes);
        assert!(age.lock_holders().count() <= BOUNDS.locks * self.clients.len());
        let owners: Vec<u32> =
            self.clients.iter().filter(|(_, client)| client.is_owner).map(|(id, _)| *id).collect();
        assert_eq!(owners, age.owner().into_iter().collect::<Vec<_>>(), "one owner");
        let here: BTreeSet<u32> = self.clients.keys().copied().collect();
        for (id, client) in &self.clients {
            let mut others = here.clone();
            others.remove(id);
            assert!(client.members.as_ref().is_none_or(|known| *known == others), "{id}");
        }
        closed.into_iter().for_each(|id| self.leave(id));
    }

    /// Acts on a message as a stock client does, and checks everything that the client relies on.
    fn client_reads(&mut self, to: u32, message: &[u8], sent: &Sent<'_>) {
        let limits = Limits::DEFAULT;
        let (mut inflater, rules) = (Inflater::new(), Rules::PLAYER);
        let payload = check(message, &rules, &mut inflater, &limits);
        payload.unwrap_or_else(|refusal| panic!("sent to {to}: {refusal}"));
        let decoded = NetMessage::decode(&mut Reader::new(message), "").unwrap();
        let header = decoded.header().unwrap();
        assert!(header.time_sent.as_ref().is_none_or(|time| *time == self.time()), "{header:?}");
        assert!(!header.flags.contains(NetFlags::RouteToAllPlayers), "{header:?}");
        let is_forwarded = header.player_id.is_some();
        let here: BTreeSet<u32> = self.clients.keys().copied().collect();
        let client = self.clients.get_mut(&to).unwrap();
        let initial = match &decoded {
            NetMessage::LoadClone(load) => load.is_initial_state.is_true(),
            NetMessage::SdlState(state) => state.is_initial_state.is_true(),
            _ => false,
        };
        if is_forwarded && !initial && !matches!(decoded, NetMessage::MembersList(_)) {
            assert_eq!(header.player_id, Some(sent.sender), "the sender");
            let may = to != sent.sender || sent.is_echoed;
            let listed = sent.listed.is_none_or(|listed| listed.contains(&to));
            assert!(listed && (may || sent.listed.is_some()), "{to} of {}", sent.sender);
        }
        match &decoded {
            NetMessage::GroupOwner(owner) => client.is_owner = owner.groups[0].owned.is_true(),
            NetMessage::MembersList(list) => {
                let ids = list.members.iter().map(|member| member.client.player_id.unwrap());
                client.members = Some(ids.collect());
                assert!(!client.members.as_ref().unwrap().contains(&to));
            }
            NetMessage::MemberUpdate(update) => {
                let id = update.member.client.player_id.unwrap();
                if let Some(members) = &mut client.members {
                    let changed = match update.was_added.is_true() {
                        true => members.insert(id),
                        false => members.remove(&id),
                    };
                    assert!(changed, "{id} came or left twice");
                }
            }
            NetMessage::LoadClone(load) => {
                assert!(
                    !initial || load.is_loading.is_true() && client.stage <= 1,
                    "a clone after a state"
                );
                let is_player = load.is_player.is_true();
                assert!(!initial || client.stage == 0 || is_player, "avatars come last");
                let payload = load.stream.payload(&mut inflater, &limits).unwrap();
                let payload = PlasmaMessage::decode(&mut Reader::new(payload), "").unwrap();
                let originator = match payload {
                    PlasmaMessage::LoadCloneMsg(clone) => clone.originating_player_id,
                    PlasmaMessage::LoadAvatarMsg(load) => load.clone_msg.originating_player_id,
                    other => panic!("{other:?}"),
                };
                if load.is_loading.is_true() {
                    assert!(here.contains(&originator), "a member");
                    let known = client.members.as_ref();
                    assert!(originator == to || known.is_some_and(|it| it.contains(&originator)));
                }
                if initial {
                    assert!(!is_player || originator != to, "its own avatar");
                    client.initial += 1;
                    client.stage = client.stage.max(u8::from(is_player));
                }
            }
            NetMessage::SdlState(state) if initial => {
                client.stage = 2;
                client.initial += 1;
                let blob = self.blob(state.stream.as_bytes());
                let name = String::from_utf8_lossy(&state.object.name.to_bytes()).into_owned();
                let known = self.places.iter().find(|(lever, _)| **lever == name);
                if let Some((lever, place)) = known.filter(|_| state.object.clone.is_none()) {
                    assert_eq!(blob, Some(*place), "{lever}: late joiners see what all see");
                }
            }
            NetMessage::SdlStateBCast(broadcast) => {
                let state = &broadcast.state;
                let payload = state.stream.payload(&mut inflater, &limits).unwrap();
                let place = self.blob(payload);
                let name = state.object.name.to_bytes();
                let lever = LEVERS.iter().find(|lever| lever.as_bytes() == name);
                if let Some((lever, place)) = lever.zip(place).filter(|_| to == WITNESS) {
                    self.places.insert(lever, place);
                }
            }
            NetMessage::InitialAgeStateSent(sent) => {
                assert_eq!(sent.state_count, client.initial, "an exact count");
                (client.initial, client.stage) = (0, 0);
            }
            NetMessage::GameMessage(_)
            | NetMessage::GameMessageDirected(_)
            | NetMessage::Voice(_) => {}
            other => panic!("no client can read {other:?}"),
        }
    }

    /// The lever's position in a payload, if the payload is a lever's state.
    fn blob(&self, payload: &[u8]) -> Option<i32> {
        let mut reader = Reader::new(payload);
        let blob = Blob::decode(&self.world.descriptors, &mut reader);
        let state = ObjectState::of(&blob.expect("a descriptor that clients have"));
        assert_eq!(reader.remaining(), 0);
        if state.descriptor().name() != "lever" {
            return None;
        }
        match state.scalar("place") {
            Some(Scalar::Int(place)) => Some(place),
            _ => None,
        }
    }

    fn time(&self) -> UnifiedTime {
        let since = Duration::from_secs(UNIX.into()) + self.now;
        let seconds = u32::try_from(since.as_secs()).unwrap();
        UnifiedTime { seconds, microseconds: since.subsec_micros() }
    }

    fn locks(&mut self, id: u32, sampler: &mut Sampler) {
        let name = LEVERS[below(sampler, LEVERS.len())];
        let asks = sampler.below(3) > 0;
        let message = bytes(&NetMessage::from(lock(id, name, asks)));
        self.age.receive(self.now, id, world::outer(&message), &message);
        let mut answers = Vec::new();
        while let Some(delivery) = self.age.poll_delivery() {
            assert_eq!(delivery.to, id);
            answers.push(world::reply(&delivery.packet).unwrap());
        }
        let is_here = self.clients.contains_key(&id);
        if !asks {
            assert_eq!(answers, [0; 0], "no reply to a release");
            if self.granted.get(name) == Some(&id) {
                self.granted.remove(name);
            }
        } else if is_here {
            let holder = self.granted.get(name).copied();
            let own = self.granted.values().filter(|holder| **holder == id).count();
            let is_free = holder.is_none_or(|holder| holder == id);
            let may = holder == Some(id) || own < BOUNDS.locks;
            assert_eq!(answers, [i32::from(is_free && may)], "one holder");
            if is_free && may {
                self.granted.insert(name, id);
            }
        }
        self.settle(&Sent::default());
    }

    fn honest(&mut self, id: u32, sampler: &mut Sampler) {
        let lever = LEVERS[below(sampler, LEVERS.len())];
        let place = i32::try_from(sampler.below(1000)).unwrap();
        match sampler.below(8) {
            0 => self.says(id, game(id, &notify(), NetFlags(0))),
            1 => {
                let message = game(id, &chat(ChatFlags(0)), NetFlags::EchoBackToSender);
                let (is_echoed, is_good) = (true, true);
                let sent = Sent { is_echoed, is_good, ..Sent::default() };
                self.send(id, &bytes(&NetMessage::from(message)), sent);
            }
            2 => self.says(id, broadcast(id, object(1, lever), self.world.lever(place))),
            3 => {
                self.says(id, load_avatar(id, true));
                self.clients.get_mut(&id).unwrap().has_avatar = true;
            }
            4 if self.clients[&id].has_avatar => self.says(id, position(&self.world, id, 1.0)),
            5 => {
                let listed = [1, 3, id + 1];
                let message =
                    bytes(&NetMessage::from(directed(id, &notify(), &listed, NetFlags(0))));
                let sent = Sent { listed: Some(&listed), is_good: true, ..Sent::default() };
                self.send(id, &message, sent);
            }
            6 => {
                let message = bytes(&NetMessage::from(state_request(id, &[])));
                let most = self.age.counts().delivered;
                self.send(id, &message, Sent::default());
                assert!(self.age.counts().delivered >= most);
            }
            _ => {
                let listed = [2, 4];
                let message = bytes(&NetMessage::from(voice(id, &listed, NetFlags(0))));
                let sent = Sent { listed: Some(&listed), is_good: true, ..Sent::default() };
                self.send(id, &message, sent);
            }
        }
    }

    /// Sends messages in others' names, about others' objects, of forbidden classes or with too
    /// little data, and floods of them.
    fn hostile(&mut self, id: u32, sampler: &mut Sampler) {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let other = u32::try_from(sampler.below(ALL)).unwrap() + 1;
        let number = u16::try_from(sampler.below(20)).unwrap();
        let name = NAMES[below(sampler, NAMES.len())];
        let times = if sampler.below(20) == 0 { 60 } else { 1 };
        for turn in 0..times {
            let number = number + turn % 9;
            let blob = self.world.lever(turn.into());
            let message: NetMessage<'static> = match sampler.below(15) {
                0 => game(other, &warp(), NetFlags(0)).into(),
                1 => game(other, &chat(ChatFlags::Admin), NetFlags::RouteToAllPlayers).into(),
                2 => load_avatar(other, true).into(),
                3 => load_clone(id, name, 1 + number, true).into(),
                4 => load_clone(other, name, 1 + number, false).into(),
                5 => broadcast(id, clone("Male", 1, other), blob).into(),
                6 => broadcast(other, clone(name, 1 + number, id), blob).into(),
                7 => state(id, clone(name, 1 + number, other), blob).into(),
                8 => members_request(other).into(),
                9 => state_request(id, &[0, number]).into(),
                10 => {
                    let mut message = broadcast(id, object(1, name), blob);
                    message.state.object.location = page(number);
                    message.into()
                }
                11 => broadcast(id, object(1, "AgeSDLHook"), blob).into(),
                12 => position(&self.world, other, f32::NAN).into(),
                _ => NetMessage::sample(sampler).into_owned(),
            };
            let mut writer = Writer::new();
            if message.encode(&mut writer).is_err() {
                continue;
            }
            let mut bytes = writer.into_bytes();
            match sampler.below(12) {
                0 => bytes.truncate(below(sampler, bytes.len() + 1)),
                1 => {
                    let at = below(sampler, bytes.len());
                    bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff);
                }
                2 => {
                    let at = below(sampler, bytes.len());
                    bytes[at] ^= 1 << (at % 8);
                }
                _ => {}
            }
            self.attack(id, &bytes);
        }
    }

    fn attack(&mut self, id: u32, bytes: &[u8]) {
        let decoded = NetMessage::decode(&mut Reader::new(bytes), "").ok();
        let is_echoed = decoded.as_ref().and_then(NetMessage::header);
        let is_echoed = is_echoed.is_some_and(|it| it.flags.contains(NetFlags::EchoBackToSender));
        // A sender who is listed, or requests an echo, receives its own message.
        let listed: Option<Vec<u32>> = match &decoded {
            Some(NetMessage::GameMessageDirected(it)) => Some(it.receivers.to_vec()),
            Some(NetMessage::Voice(it)) => Some(it.receivers.to_vec()),
            _ => None,
        };
        let listed = listed.map(|mut listed| {
            listed.extend(is_echoed.then_some(id));
            listed
        });
        let listed = listed.as_deref();
        let asks_for_lock = matches!(decoded, Some(NetMessage::TestAndSet(_)));
        if !asks_for_lock {
            self.send(id, bytes, Sent { is_echoed, listed, ..Sent::default() });
        }
    }

    fn step(&mut self, sampler: &mut Sampler) {
        let id = u32::try_from(sampler.below(ALL)).unwrap() + 1;
        let is_here = self.clients.contains_key(&id);
        match sampler.below(12) {
            0 | 1 => self.join(id),
            2 => self.leave(id),
            3 => {
                self.now += Duration::from_millis(700);
                self.age.mark_active(self.now, WITNESS);
                if self.age.poll_timeout().is_some_and(|at| at <= self.now) {
                    self.age.timeout(self.now);
                }
                self.settle(&Sent::default());
            }
            4 => self.locks(id, sampler),
            _ if HONEST.contains(&id) && is_here => self.honest(id, sampler),
            _ if !HONEST.contains(&id) => self.hostile(id, sampler),
            // A message from a player who is not a member.
            _ => self.attack(id, &bytes(&NetMessage::from(game(id, &notify(), NetFlags(0))))),
        }
    }

    /// Everyone leaves, and the stored states are restored in another instance.
    fn end(mut self) {
        let all: Vec<u32> = self.clients.keys().copied().collect();
        all.into_iter().for_each(|id| self.leave(id));
        assert_eq!((self.age.clones().count(), self.age.lock_holders().count()), (0, 0));
        let durable = self.age.states().iter().filter(|stored| stored.is_durable()).count();
        assert_eq!(self.stored.len(), durable, "stored states");
        let mut again = age(&self.world.descriptors);
        for (object, blob) in self.stored.values() {
            again.restore(object.clone(), blob).unwrap();
        }
        if let Some(blob) = &self.stored_age {
            again.restore_age(blob).unwrap();
        }
        self.age = again;
        self.join(WITNESS);
        let request = bytes(&NetMessage::from(state_request(WITNESS, &[])));
        self.send(WITNESS, &request, Sent::default());
        self.leave(WITNESS);
        self.now += Duration::from_secs(30);
        self.age.timeout(self.now);
        assert!(self.age.is_over(), "the linger time is over");
        assert!(matches!(self.age.poll_event(), Some(Event::Over)));
    }
}

#[test]
fn a_siege_breaks_no_invariant() {
    for seed in 0..6 {
        let mut sampler = Sampler::new(seed);
        let mut siege = Siege::new();
        for _ in 0..1500 {
            siege.step(&mut sampler);
        }
        siege.end();
    }
}

/// A member that creates clones endlessly leaves room for others' avatars.
#[test]
fn one_member_cannot_use_up_the_room() {
    let mut siege = Siege::new();
    siege.join(7);
    for id in 1..100 {
        let message = bytes(&NetMessage::from(load_clone(7, "Crab", id, true)));
        siege.send(7, &message, Sent::default());
    }
    assert_eq!(siege.age.clones().count(), SHARE);
    for id in HONEST {
        siege.join(id);
        siege.says(id, load_avatar(id, true));
    }
    assert_eq!(siege.age.clones().count(), SHARE + 6);
    // Clones that were handed over do not count towards the new owner's share, because the new
    // owner must still be able to load avatars.
    siege.leave(7);
    assert_eq!(siege.age.clones().count(), SHARE + 6);
    siege.leave(1);
    siege.join(1);
    siege.says(1, load_avatar(1, true));
    assert_eq!(siege.age.clones().count(), SHARE + 6);
}
