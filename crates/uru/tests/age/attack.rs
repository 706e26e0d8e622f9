//! An age under attack: runs lists of operations with honest, forged and damaged messages, and
//! compares the results with a model based only on the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::{Field, Limits, Reader, Sampler};
use worldwire_uru::age::{
    AgeBounds, Capacity, Config, Event, Importance, Instance, JoinRefused, Packet, Player,
    SendQueue,
};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::{NetFlags, NetHeader, NetMessage};
use worldwire_uru::plasma_message::{ChatFlags, PlasmaMessage};
use worldwire_uru::safety::{Rules, check};
use worldwire_uru::sdl::Blob;
use worldwire_uru::types::{ClassIndex, UnifiedTime, Uoid};

use crate::world::{
    self, PREFIX, UNIX, World, avatar, broadcast, bytes, chat, clone, directed, game, load_avatar,
    load_clone, lock, members_request, notify, object, player_page, position, regions, state,
    state_request, voice,
};

const BOUNDS: AgeBounds = AgeBounds {
    malformed: 10,
    state_requests: 12,
    clones: 8,
    clone_bytes: 30_000,
    states: 14,
    state_bytes: 30_000,
    share: 2,
    locks: 3,
    pages: 4,
};
const CAPACITY: usize = 5;
const PLAYERS: u32 = 7;
const SILENCE: Duration = Duration::from_secs(120);
const LINGER: Duration = Duration::from_secs(9);
/// Objects with locks that are not clones.
const LEVERS: [&str; 5] = ["Lever", "Gate", "Lift", "Bell", "Door"];

/// A client's view, built only from the messages it receives.
#[derive(Default)]
struct Client {
    last_active: Duration,
    /// `None` before the first member list.
    members: Option<BTreeSet<u32>>,
    is_owner: bool,
    /// Initial messages received since the last count.
    initial: u32,
    /// Whether a state and an avatar arrived since the last count.
    had_state: bool,
    had_avatar: bool,
    queue: Option<SendQueue>,
}

struct Attack {
    world: World,
    instance: Instance,
    now: Duration,
    /// The members, in the order of joining.
    joined: Vec<u32>,
    clients: BTreeMap<u32, Client>,
    owner: Option<u32>,
    locks: BTreeMap<&'static str, u32>,
    /// The sender of the message being handled and its permitted receivers.
    sender: Option<u32>,
    listed: Option<Vec<u32>>,
    empty_since: Option<Duration>,
    is_over: bool,
    closing: BTreeSet<u32>,
}

impl Attack {
    fn new(relevance: bool) -> Self {
        let world = World::new();
        let file = AgeFile {
            sequence_prefix: PREFIX,
            max_capacity: 5,
            linger_time: 9,
            ..AgeFile::default()
        };
        let config = Config {
            bounds: BOUNDS,
            relevance,
            capacity: Capacity::Refuse,
            silence: SILENCE,
            ..Config::default()
        };
        let unix = Duration::from_secs(UNIX.into());
        let descriptors = Arc::clone(&world.descriptors);
        let instance = Instance::new(Duration::ZERO, unix, "Fern", file, descriptors, config);
        Self {
            world,
            instance,
            now: Duration::ZERO,
            joined: Vec::new(),
            clients: BTreeMap::new(),
            owner: None,
            locks: BTreeMap::new(),
            sender: None,
            listed: None,
            empty_since: Some(Duration::ZERO),
            is_over: false,
            closing: BTreeSet::new(),
        }
    }

    fn step(&mut self, kind: u8, player_id: u32, seed: u64) {
        let mut sampler = Sampler::new(seed);
        match kind {
            0 => self.join(player_id),
            1 => self.leave(player_id),
            2 => self.wait(&mut sampler),
            3 => self.damaged(player_id, &mut sampler),
            4 => self.read(player_id, &mut sampler),
            5 => self.lock(player_id, &mut sampler),
            6 => {
                self.instance.mark_active(self.now, player_id);
                if let Some(client) = self.clients.get_mut(&player_id) {
                    client.last_active = self.now;
                }
            }
            _ => {
                // Sometimes claim that the message comes from another player.
                let claims =
                    if sampler.below(4) == 0 { player_id % PLAYERS + 1 } else { player_id };
                let message = self.message(claims, &mut sampler);
                self.send(player_id, &bytes(&message));
            }
        }
        self.settle();
    }

    fn join(&mut self, player_id: u32) {
        let outcome = self.instance.join(self.now, Player::new(player_id, "Somebody"));
        // Joining twice is an error. This configuration refuses players beyond the capacity.
        let wanted = if self.is_over {
            Err(JoinRefused::Over)
        } else if self.joined.contains(&player_id) {
            Err(JoinRefused::AlreadyJoined)
        } else if self.joined.len() >= CAPACITY {
            Err(JoinRefused::Full { capacity: CAPACITY })
        } else {
            Ok(())
        };
        assert_eq!(outcome, wanted);
        if wanted.is_err() {
            return;
        }
        self.joined.push(player_id);
        let queue = Some(SendQueue::new(20_000));
        self.clients
            .insert(player_id, Client { last_active: self.now, queue, ..Client::default() });
        self.owner.get_or_insert(player_id);
        self.empty_since = None;
    }

    fn leave(&mut self, player_id: u32) {
        self.instance.leave(self.now, player_id);
        if !self.joined.contains(&player_id) {
            return;
        }
        self.joined.retain(|other| *other != player_id);
        self.clients.remove(&player_id);
        self.closing.remove(&player_id);
        self.locks.retain(|_, holder| *holder != player_id);
        if self.owner == Some(player_id) {
            // The longest-standing member who is not silent or, if all are, the longest-standing
            // one.
            let is_active = |player: &&u32| self.now - self.clients[*player].last_active <= SILENCE;
            let active = self.joined.iter().find(is_active);
            self.owner = active.or_else(|| self.joined.first()).copied();
        }
        if self.joined.is_empty() {
            self.empty_since = Some(self.now);
        }
    }

    fn wait(&mut self, sampler: &mut Sampler) {
        self.now += Duration::from_millis(pick(sampler, &[1, 300, 4_000, 61_000]));
        for _ in 0..4 {
            if self.instance.poll_timeout().is_some_and(|at| at <= self.now) {
                self.instance.timeout(self.now);
            }
        }
        assert!(self.instance.poll_timeout().is_none_or(|at| at > self.now));
        // An empty instance lingers before it ends.
        self.is_over |= self.empty_since.is_some_and(|since| self.now >= since + LINGER);
        assert_eq!(self.instance.is_over(), self.is_over);
    }

    /// Sends any message, possibly damaged: changed, missing or extra bytes, or huge counts.
    fn damaged(&mut self, player_id: u32, sampler: &mut Sampler) {
        let message = match sampler.below(2) {
            0 => NetMessage::sample(sampler).into_owned(),
            _ => self.message(player_id, sampler),
        };
        let mut writer = worldwire_core::Writer::new();
        if message.encode(&mut writer).is_err() {
            return;
        }
        let mut bytes = writer.into_bytes();
        for _ in 0..sampler.below(4) {
            let at = below(sampler, bytes.len() + 1);
            match sampler.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.extend(sampler.bytes(at % 9)),
                2 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (at % 8)),
            }
        }
        self.send(player_id, &bytes);
    }

    /// A slow reader reads some messages.
    fn read(&mut self, player_id: u32, sampler: &mut Sampler) {
        let queue = self.clients.get_mut(&player_id).and_then(|client| client.queue.as_mut());
        if let Some(queue) = queue {
            (0..sampler.below(30)).for_each(|_| drop(queue.pop()));
        }
    }

    fn lock(&mut self, player_id: u32, sampler: &mut Sampler) {
        let name = pick(sampler, &LEVERS);
        let is_request = sampler.below(3) != 0;
        let is_member = self.joined.contains(&player_id) && !self.closing.contains(&player_id);
        self.hear(player_id);
        let message = NetMessage::from(lock(player_id, name, is_request));
        let message = bytes(&message);
        self.instance.receive(self.now, player_id, world::outer(&message), &message);
        if !is_member {
            return;
        }
        // Requests get a reply, even those from the holder of the lock. Releases get none.
        let mut answers = Vec::new();
        let mut rest = Vec::new();
        while let Some(delivery) = self.instance.poll_delivery() {
            assert_eq!(delivery.to, player_id);
            answers.extend(world::reply(&delivery.packet));
            rest.push(delivery.packet);
        }
        assert_eq!(rest.len(), answers.len());
        rest.into_iter().for_each(|packet| self.queue(player_id, packet));
        if !is_request {
            assert!(answers.is_empty(), "{answers:?}");
            if self.locks.get(name) == Some(&player_id) {
                self.locks.remove(name);
            }
            return;
        }
        let holder = self.locks.get(name).copied();
        let held = self.instance.lock_holders().filter(|holder| *holder == player_id).count();
        match holder {
            Some(holder) => assert_eq!(answers, [i32::from(holder == player_id)]),
            // A free lock is denied only to a member who already holds the maximum number.
            None if answers == [0] => assert!(held >= BOUNDS.locks),
            None => {
                assert_eq!(answers, [1]);
                self.locks.insert(name, player_id);
            }
        }
    }

    fn hear(&mut self, player_id: u32) {
        if let Some(client) = self.clients.get_mut(&player_id)
            && !self.closing.contains(&player_id)
        {
            client.last_active = self.now;
        }
    }

    fn message(&self, player_id: u32, sampler: &mut Sampler) -> NetMessage<'static> {
        let flags = match sampler.below(6) {
            0 => NetFlags::EchoBackToSender,
            1 => NetFlags::RouteToAllPlayers,
            2 => NetFlags::UseRelevanceRegions,
            3 => NetFlags::InterAgeRouting,
            _ => NetFlags(0),
        };
        let other = pick(sampler, &[1, 2, 3, 4, 5, 6, 7]);
        let things = [
            object(1, "Lever"),
            object(1, "AgeSDLHook"),
            avatar(other),
            clone("Crab", 2, player_id),
            clone("Crab", 2, other),
            clone("hat", 1, player_id),
        ];
        let thing = things[below(sampler, things.len())].clone();
        let blob = self.world.lever(pick(sampler, &[0, 1, 2]));
        let loading = sampler.below(3) != 0;
        match sampler.below(13) {
            0 => game(player_id, &notify(), flags).into(),
            1 => game(player_id, &chat(ChatFlags::Admin), flags).into(),
            2 => directed(player_id, &notify(), &[other, 2, 9_999], flags).into(),
            3 => voice(player_id, &[other, 3], flags).into(),
            4 => load_avatar(player_id, loading).into(),
            5 => load_clone(player_id, ["Crab", "Hen"][usize::from(loading)], 2, loading).into(),
            6 => state(player_id, thing, blob).into(),
            7 => broadcast(player_id, thing, blob).into(),
            8 => position(&self.world, player_id, 1.0).into(),
            9 => members_request(player_id).into(),
            10 => state_request(player_id, &[]).into(),
            11 => regions(player_id, &[other], &[player_id]).into(),
            _ => player_page(player_id).into(),
        }
    }

    fn send(&mut self, player_id: u32, message: &[u8]) {
        self.hear(player_id);
        self.sender = Some(player_id);
        let limits = Limits::DEFAULT;
        self.listed = match NetMessage::decode(&mut Reader::within(message, &limits), "") {
            Ok(NetMessage::GameMessageDirected(it)) => Some(it.receivers.to_vec()),
            Ok(NetMessage::Voice(it)) => Some(it.receivers.to_vec()),
            _ => None,
        };
        self.instance.receive(self.now, player_id, world::outer(message), message);
    }

    /// Takes the results of an operation and checks every invariant.
    fn settle(&mut self) {
        while let Some(delivery) = self.instance.poll_delivery() {
            assert!(self.joined.contains(&delivery.to), "{} is not here", delivery.to);
            self.receive(delivery.to, &delivery.packet);
            self.queue(delivery.to, delivery.packet);
        }
        (self.sender, self.listed) = (None, None);
        while let Some(event) = self.instance.poll_event() {
            match event {
                Event::Close { player_id, .. } => drop(self.closing.insert(player_id)),
                Event::Route { players, .. } => {
                    assert!(players.iter().all(|player| !self.joined.contains(player)));
                }
                // Only administrators reach everyone, and there are none here.
                Event::RouteToAll { .. } => panic!("a route to all"),
                Event::StoreState { object, .. } => {
                    // States of clones are not stored.
                    assert!(object.clone.is_none_or(|ids| ids.id == 0));
                }
                _ => {}
            }
        }
        self.agrees();
        let slow = |(player, client): (&u32, &Client)| client.queue.is_none().then_some(*player);
        if let Some(player_id) = self.clients.iter().find_map(slow) {
            // Clients that read too slowly are disconnected.
            self.leave(player_id);
            self.settle();
        }
    }

    /// Checks that instance and model agree.
    fn agrees(&self) {
        let instance = &self.instance;
        let members: Vec<u32> = instance.members().map(|member| member.player().id).collect();
        assert_eq!(members, self.joined);
        assert_eq!(instance.owner(), self.owner);
        for (player, client) in &self.clients {
            assert_eq!(client.is_owner, self.owner == Some(*player), "owner: {player}");
            if let Some(known) = &client.members {
                let others: BTreeSet<u32> =
                    members.iter().copied().filter(|other| other != player).collect();
                assert_eq!(*known, others, "the members that {player} knows");
            }
        }
        for name in LEVERS {
            let holder = instance.lock_holder(&object(0x2d, name));
            assert_eq!(holder, self.locks.get(name).copied(), "{name}");
        }
        assert!(instance.lock_holders().all(|holder| members.contains(&holder)));
        assert!(instance.clones().all(|(_, owner)| members.contains(&owner)));
        assert!(instance.clones().count() <= BOUNDS.clones);
        assert!(instance.lock_holders().count() <= BOUNDS.locks * members.len());
        assert!(instance.states().len() <= BOUNDS.states);
        assert!(instance.state_bytes() <= BOUNDS.state_bytes);
        assert!(instance.members().all(|member| member.pages().count() <= BOUNDS.pages));
        assert!(!members.is_empty() || instance.clones().count() == 0);
    }

    fn queue(&mut self, to: u32, packet: Packet) {
        let Some(client) = self.clients.get_mut(&to) else { return };
        let Some(queue) = &mut client.queue else { return };
        let kept = queue.len();
        let is_kept = *packet.importance() == Importance::Kept;
        if queue.push(packet).is_err() {
            client.queue = None;
        } else {
            assert!(queue.queued_bytes() <= 20_000 && (!is_kept || queue.len() <= kept + 1));
        }
    }

    /// Handles a message as described in the specification's chapter on clients.
    fn receive(&mut self, to: u32, packet: &Packet) {
        let limits = &Limits::DEFAULT;
        let mut inflater = Inflater::new();
        assert!(packet.bytes().len() <= 1 << 20);
        // No message that crashes clients or cannot be decoded may arrive.
        let checked = check(packet.bytes(), &Rules::ADMIN, &mut inflater, limits);
        checked.unwrap_or_else(|refusal| panic!("{refusal}"));
        let message = packet.decode().unwrap();
        let (sender, listed) = (self.sender, self.listed.clone());
        let stamp = self.stamp();
        let is_from_sender = |header: &NetHeader| {
            // The server sets time and player. If a message has no time, none is added, and
            // receivers keep their clocks.
            assert!(header.time_sent.as_ref().is_none_or(|time| *time == stamp));
            assert_eq!(header.player_id, sender);
            assert!(!header.flags.contains(NetFlags::RouteToAllPlayers));
        };
        let is_echo = |header: &NetHeader| {
            Some(to) != sender || header.flags.contains(NetFlags::EchoBackToSender)
        };
        let members = self.joined.clone();
        let client = self.clients.get_mut(&to).unwrap();
        match &message {
            NetMessage::GroupOwner(owner) => {
                assert!(!owner.groups.is_empty());
                client.is_owner = owner.groups[0].owned.is_true();
            }
            NetMessage::MembersList(list) => {
                let ids = list.members.iter().filter_map(|member| member.client.player_id);
                let ids: Vec<u32> = ids.collect();
                assert!(!ids.contains(&to) && ids.len() == list.members.len());
                client.members = Some(ids.into_iter().collect());
            }
            NetMessage::MemberUpdate(update) => {
                let member = update.member.client.player_id.unwrap();
                assert_ne!(member, to);
                if let Some(members) = &mut client.members {
                    let changed = match update.was_added.is_true() {
                        true => members.insert(member),
                        false => members.remove(&member),
                    };
                    assert!(changed);
                }
            }
            NetMessage::InitialAgeStateSent(sent) => {
                assert_eq!(sent.state_count, client.initial);
                (client.initial, client.had_state, client.had_avatar) = (0, false, false);
            }
            NetMessage::LoadClone(load) if load.is_initial_state.is_true() => {
                assert!(load.is_loading.is_true() && !client.had_state, "a clone after a state");
                assert!(!client.had_avatar || load.is_player.is_true(), "avatars come last");
                client.had_avatar |= load.is_player.is_true();
                client.initial += 1;
                let payload = world::payload(packet);
                let payload = PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap();
                let originator = match payload {
                    PlasmaMessage::LoadCloneMsg(clone) => clone.originating_player_id,
                    PlasmaMessage::LoadAvatarMsg(avatar) => avatar.clone_msg.originating_player_id,
                    other => panic!("{other:?}"),
                };
                // Otherwise the client ignores the message.
                assert!(members.contains(&originator));
                let known = client.members.as_ref().unwrap();
                assert!(originator == to || known.contains(&originator));
                assert!(originator != to || !load.is_player.is_true(), "its own avatar");
            }
            NetMessage::LoadClone(load) => match sender {
                Some(_) => {
                    is_from_sender(&load.header);
                    assert!(is_echo(&load.header));
                }
                // A player who left no longer has an avatar.
                None => assert!(load.is_player.is_true() && !load.is_loading.is_true()),
            },
            NetMessage::SdlState(state) => {
                assert!(state.is_initial_state.is_true());
                client.had_state = true;
                client.initial += 1;
                let mut reader = Reader::new(state.stream.as_bytes());
                let blob = Blob::decode(&self.world.descriptors, &mut reader);
                assert!(blob.is_ok() && reader.remaining() == 0);
            }
            NetMessage::SdlStateBCast(broadcast) => {
                let state = &broadcast.state;
                is_from_sender(&state.header);
                assert!(is_echo(&state.header) && !state.is_initial_state.is_true());
                assert!(is_theirs(&state.object, &members, sender), "the avatar of another");
            }
            NetMessage::GameMessage(game) if game.header.player_id.is_none() => {
                assert!(world::reply(packet).is_some() && Some(to) == sender);
            }
            NetMessage::GameMessage(game) => {
                is_from_sender(&game.header);
                assert!(is_echo(&game.header));
            }
            // Directed messages reach the listed members only.
            NetMessage::GameMessageDirected(directed) => {
                is_from_sender(&directed.game.header);
                let is_listed = listed.is_some_and(|listed| listed.contains(&to));
                assert!(is_listed || Some(to) == sender && is_echo(&directed.game.header));
            }
            NetMessage::Voice(voice) => {
                is_from_sender(&voice.header);
                let is_listed = listed.is_some_and(|listed| listed.contains(&to));
                assert!(is_listed || Some(to) == sender && is_echo(&voice.header));
            }
            // Other classes are never forwarded.
            other => panic!("{other:?}"),
        }
    }

    fn stamp(&self) -> UnifiedTime {
        let since = Duration::from_secs(UNIX.into()) + self.now;
        let seconds = u32::try_from(since.as_secs()).unwrap();
        UnifiedTime { seconds, microseconds: since.subsec_micros() }
    }
}

fn below(sampler: &mut Sampler, bound: usize) -> usize {
    usize::try_from(sampler.below(bound as u64)).unwrap()
}

fn pick<T: Copy>(sampler: &mut Sampler, items: &[T]) -> T {
    items[below(sampler, items.len())]
}

/// Whether an object is anything but another member's avatar, judging by the names used in these
/// messages.
fn is_theirs(object: &Uoid<'_>, members: &[u32], sender: Option<u32>) -> bool {
    object.clone.is_none_or(|ids| {
        ids.id != 1 || Some(ids.player_id) == sender || !members.contains(&ids.player_id)
    })
}

/// Together, the lists of operations reach every kind of message.
#[test]
fn attacks_reach_all_kinds_of_messages() {
    let mut kinds = BTreeSet::new();
    for seed in 0..30 {
        let mut sampler = Sampler::new(seed);
        let mut attack = Attack::new(seed % 2 == 0);
        for player in 1..=4 {
            attack.step(0, player, 0);
        }
        for _ in 0..120 {
            let kind = pick(&mut sampler, &[2, 3, 5, 6, 7, 7, 7, 7, 7, 7, 7]);
            let player = pick(&mut sampler, &[1, 2, 3, 4, 5, 6, 7]);
            attack.step(kind, player, sampler.bits());
            for client in attack.clients.values_mut() {
                let packets = client.queue.iter_mut().flat_map(|queue| {
                    core::iter::from_fn(|| queue.pop()).map(|packet| packet.class())
                });
                kinds.extend(packets.collect::<Vec<ClassIndex>>());
            }
        }
    }
    for class in [
        ClassIndex::plNetMsgGroupOwner,
        ClassIndex::plNetMsgMembersList,
        ClassIndex::plNetMsgMemberUpdate,
        ClassIndex::plNetMsgInitialAgeStateSent,
        ClassIndex::plNetMsgLoadClone,
        ClassIndex::plNetMsgSDLState,
        ClassIndex::plNetMsgSDLStateBCast,
        ClassIndex::plNetMsgGameMessage,
        ClassIndex::plNetMsgGameMessageDirected,
        ClassIndex::plNetMsgVoice,
    ] {
        assert!(kinds.contains(&class), "{class}: {kinds:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn an_age_under_attack_keeps_its_invariants(
        relevance in any::<bool>(),
        operations in prop::collection::vec((0_u8..12, 1..=PLAYERS, any::<u64>()), 1..160),
    ) {
        let mut attack = Attack::new(relevance);
        for (kind, player, seed) in operations {
            attack.step(kind, player, seed);
        }
    }
}
