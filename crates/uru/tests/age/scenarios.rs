//! The scenarios of `vectors/uru-game/scenarios.json`: exactly the messages that a server must
//! send.

use std::collections::BTreeMap;
use std::path::PathBuf;

use worldwire_core::json::Json;
use worldwire_core::{Field, Reader};
use worldwire_uru::age::Config;
use worldwire_uru::net_message::{NetFlags, NetMessage};
use worldwire_uru::plasma_message::{ChatFlags, PlasmaMessage};
use worldwire_uru::sdl::Blob;
use worldwire_uru::types::Uoid;

use crate::world::{
    A, B, C, D, Got, P, World, avatar, broadcast, bytes, chat, directed, game, ki, load_avatar,
    load_clone, lock, members_request, notify, object, payload, position, regions, reply,
    state_request, warp,
};

#[test]
fn every_scenario_runs() {
    let folder = std::env::var_os("WORLDWIRE_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/uru-game")),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(folder.join("scenarios.json")) else {
        assert!(std::env::var_os("WORLDWIRE_VECTORS").is_some(), "no scenarios");
        return;
    };
    let scenarios: Json = serde_json::from_str(&text).unwrap();
    let scenarios = scenarios["vectors"].as_array().unwrap();
    for scenario in scenarios {
        run(scenario["id"].as_str().unwrap(), scenario["steps"].as_array().unwrap());
    }
    assert!(!scenarios.is_empty());
}

fn run(id: &str, steps: &[Json]) {
    let config = Config {
        relevance: id == "relevance",
        relevance_after: std::time::Duration::ZERO,
        ..Config::default()
    };
    let mut scene = Scene {
        id,
        world: World::with(config, if id == "state-request" { "Fern" } else { "Bare" }),
        sent: Vec::new(),
        sender: 0,
    };
    if !matches!(id, "first-join") && steps[0].get("state").is_none() {
        scene.state("A,B joined");
    }
    for step in steps {
        if let Some(player) = step.get("C") {
            scene.send(name(player.as_str().unwrap()), step["send"].as_str().unwrap());
        } else if let Some(event) = step.get("event") {
            scene.event(event.as_str().unwrap());
        } else if step.as_object().unwrap().keys().any(|key| key.starts_with("S->")) {
            scene.expect(step);
            if let Some(state) = step.get("state") {
                scene.holds(state.as_str().unwrap());
            }
        } else {
            scene.state(step["state"].as_str().unwrap());
        }
    }
}

fn name(name: &str) -> u32 {
    match name {
        "A" => A,
        "B" => B,
        "C" => C,
        "D" => D,
        "P" => P,
        other => panic!("{other}"),
    }
}

struct Scene<'s> {
    id: &'s str,
    world: World,
    /// The last message sent.
    sent: Vec<u8>,
    sender: u32,
}

impl Scene<'_> {
    /// Brings the world into a given state and discards the resulting messages.
    fn state(&mut self, text: &str) {
        let world = &mut self.world;
        match text {
            "A joined and loaded" => world.enter(A),
            "A loaded, B joined" => {
                world.enter(A);
                world.join(B);
            }
            "A loaded; NPC clone N owned by A; object O has stored state; age has an AgeSDLHook" => {
                world.enter(A);
                world.send(A, load_clone(A, "N", 2, true));
                world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
                world.join(B);
                // All clients do this before requesting the state.
                world.send(B, members_request(B));
            }
            "A,B,C joined" => [A, B, C].into_iter().for_each(|player| world.join(player)),
            "A,B" | "A,B joined" | "A plain account, B" => {
                [A, B].into_iter().for_each(|player| world.join(player));
            }
            "A,B,C in age X; D in age Y" => {
                [A, B, C].into_iter().for_each(|player| world.join(player));
                world.try_join(1, D).unwrap();
            }
            "A owner with lock on O and NPC clone N; B present" => {
                world.enter(A);
                world.send(A, lock(A, "O", true));
                world.send(A, load_clone(A, "N", 2, true));
                world.send(A, position(world, A, 1.0));
                world.enter(B);
            }
            "A admin in X; B in X; D in Y; P plain in X" => {
                world.admins.push(A);
                [A, B, P].into_iter().for_each(|player| world.join(player));
                world.try_join(1, D).unwrap();
            }
            "A in region 1 cares {0,1}; B in region 2 cares {0,2}; C in region 0" => {
                [A, B, C].into_iter().for_each(|player| world.join(player));
                world.send(A, regions(A, &[0, 1], &[1]));
                world.send(B, regions(B, &[0, 2], &[2]));
                world.wait(std::time::Duration::from_secs(60));
            }
            other => panic!("{}: {other}", self.id),
        }
        self.world.forget();
    }

    fn event(&mut self, text: &str) {
        match text {
            "A disconnects" => self.world.leave(A),
            "C joins and asks for state" => {
                self.world.join(C);
                self.world.forget();
                self.world.send(C, state_request(C, &[]));
            }
            other => panic!("{}: {other}", self.id),
        }
    }

    fn send(&mut self, player: u32, text: &str) {
        let world = &mut self.world;
        let (echo, inter_age) = (NetFlags::EchoBackToSender, NetFlags::InterAgeRouting);
        let all = NetFlags::RouteToAllPlayers;
        let none = NetFlags(0);
        let message: NetMessage<'_> = match text {
            "JoinAgeRequest" => {
                world.join(player);
                return;
            }
            "plNetMsgMembersListReq" => members_request(player).into(),
            "plNetMsgGameStateRequest []" => state_request(player, &[]).into(),
            "plNetMsgGameMessage plNotifyMsg"
            | "plNetMsgGameMessage plNotifyMsg (no relevance flag)" => {
                game(player, &notify(), none).into()
            }
            "plNetMsgGameMessage flags|EchoBackToSender" => game(player, &notify(), echo).into(),
            "plNetMsgGameMessageDirected receivers=[B,D] without InterAgeRouting" => {
                directed(player, &notify(), &[B, D], none).into()
            }
            "same with InterAgeRouting" => directed(player, &notify(), &[B, D], inter_age).into(),
            "plNetMsgTestAndSet O lock=true" | "TestAndSet O lock=true" => {
                lock(player, "O", true).into()
            }
            "plNetMsgTestAndSet O lock=false" => lock(player, "O", false).into(),
            "plNetMsgGameMessage plWarpMsg" => game(player, &warp(), none).into(),
            "plNetMsgGameMessage pfKIMsg command=9" => {
                game(player, &ki(9, ChatFlags(0), "Yeesha"), none).into()
            }
            "plNetMsgGameMessage pfKIMsg chat flags=Admin" => {
                game(player, &chat(ChatFlags::Admin), none).into()
            }
            "plNetMsgGameMessage chat RouteToAllPlayers" => {
                game(player, &chat(ChatFlags(0)), all).into()
            }
            "same" => game(player, &chat(ChatFlags(0)), all).into(),
            "plNetMsgSDLStateBCast avatarPhysical UseRelevanceRegions" => {
                position(world, player, 2.0).into()
            }
            "plNetMsgSDLStateBCast O var=1" => {
                broadcast(player, object(1, "O"), world.lever(1)).into()
            }
            "plNetMsgSDLStateBCast with an unknown descriptor version" => {
                let mut blob = world.lever(1);
                // Flags, count and name precede the version.
                blob[9] = 77;
                broadcast(player, object(1, "O"), blob).into()
            }
            "plNetMsgGameMessage header player_id=B" => game(B, &notify(), none).into(),
            other => panic!("{}: {other}", self.id),
        };
        self.sent = bytes(&message);
        self.sender = player;
        self.world.send_bytes(player, &self.sent);
    }

    /// Checks that every player received exactly the listed messages, in order.
    fn expect(&mut self, step: &Json) {
        let wanted: BTreeMap<u32, Vec<&str>> = step
            .as_object()
            .unwrap()
            .iter()
            .filter_map(|(key, list)| Some((name(key.strip_prefix("S->")?), list)))
            .map(|(player, list)| {
                let list = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
                // The reply to a join is not a net message; it is implied by the success of the
                // join.
                (player, list.filter(|text| *text != "JoinAgeReply result=0").collect())
            })
            .collect();
        for player in [A, B, C, D, P] {
            let mut got = self.world.got(player);
            if self.id == "sdl-bcast" && player == C {
                // Every state request ends with a count; this scenario covers only the state.
                let count = got.pop();
                let count = count.as_ref().map(|packet| packet.decode().unwrap());
                if let Some(NetMessage::InitialAgeStateSent(count)) = count {
                    assert_eq!(count.state_count, 1);
                } else {
                    assert_eq!(count, None);
                }
            }
            let list = wanted.get(&player).map_or(&[][..], Vec::as_slice);
            assert_eq!(got.len(), list.len(), "{}: {player} got {got:?}, not {list:?}", self.id);
            for (packet, text) in got.iter().zip(list) {
                assert!(
                    self.is(packet, player, text),
                    "{}: {player}: {text}: {:?}",
                    self.id,
                    packet.decode()
                );
            }
        }
    }

    /// Whether a packet matches a description.
    fn is(&self, packet: &Got, player: u32, text: &str) -> bool {
        let message = packet.decode().unwrap();
        let is_forwarded = || self.is_forwarded(packet, &self.sent);
        match (text, &message) {
            (
                "message"
                | "same"
                | "same payload, time_sent replaced by server time"
                | "same object, same blob bytes, player_id=A"
                | "message with player_id=A",
                _,
            ) => {
                let cleared = self.id == "route-all" && self.sender == P;
                let mut sent = self.sent.clone();
                if cleared {
                    // The third byte of the flags.
                    sent[4] &= !0x8;
                }
                self.is_forwarded(packet, &sent)
            }
            ("chat with the Admin bit cleared", _) => {
                let plain = game(self.sender, &chat(ChatFlags(0)), NetFlags(0));
                !is_forwarded() && self.is_forwarded(packet, &bytes(&NetMessage::from(plain)))
            }
            ("plNetMsgGroupOwner owned=true", NetMessage::GroupOwner(owner)) => {
                owner.groups[0].owned.is_true()
            }
            ("plNetMsgGroupOwner owned=false", NetMessage::GroupOwner(owner)) => {
                !owner.groups[0].owned.is_true()
            }
            (text, NetMessage::MemberUpdate(update)) => {
                let (who, added) = match text {
                    "plNetMsgMemberUpdate B was_added=true" => (B, true),
                    "plNetMsgMemberUpdate A was_added=false" => (A, false),
                    _ => return false,
                };
                update.member.client.player_id == Some(who) && update.was_added.is_true() == added
            }
            ("plNetMsgMembersList {A}", NetMessage::MembersList(list)) => {
                let [member] = &list.members[..] else { return false };
                member.client.player_id == Some(A)
                    && member.avatar == avatar(A)
                    && list.header.player_id == Some(player)
            }
            ("plNetMsgLoadClone N initial=true", NetMessage::LoadClone(load)) => {
                load.uoid == crate::world::clone("N", 2, A) && load.is_initial_state.is_true()
            }
            ("plNetMsgLoadClone A.avatar initial=true", NetMessage::LoadClone(load)) => {
                load.uoid == avatar(A)
                    && load.is_initial_state.is_true()
                    && load.is_player.is_true()
            }
            ("plNetMsgLoadClone A.avatar loading=false", NetMessage::LoadClone(load)) => {
                let payload = payload(packet);
                let payload = PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap();
                let PlasmaMessage::LoadCloneMsg(clone) = payload else { return false };
                load.uoid == avatar(A)
                    && !load.is_loading.is_true()
                    && !clone.loading.is_true()
                    && clone.clone.uoid() == Some(&avatar(A))
            }
            ("plNetMsgSDLState AgeSDLHook initial=true", NetMessage::SdlState(state)) => {
                state.object.name == "AgeSDLHook".into() && state.is_initial_state.is_true()
            }
            ("plNetMsgSDLState O initial=true", NetMessage::SdlState(state)) => {
                state.object == object(1, "O") && state.is_initial_state.is_true()
            }
            ("plNetMsgSDLState O full record initial=true", NetMessage::SdlState(state)) => {
                let blob = state.stream.as_bytes();
                let blob = Blob::decode(&self.world.descriptors, &mut Reader::new(blob)).unwrap();
                state.is_initial_state.is_true() && blob.record.simple.len() == 1
            }
            ("plNetMsgInitialAgeStateSent count=4", NetMessage::InitialAgeStateSent(sent)) => {
                sent.state_count == 4
            }
            ("plNetMsgInitialAgeStateSent count=0", NetMessage::InitialAgeStateSent(sent)) => {
                sent.state_count == 0
            }
            (text, NetMessage::GameMessage(_)) => {
                let answer = reply(packet);
                let is_to_lever = || {
                    let payload = payload(packet);
                    let reply = PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap();
                    let PlasmaMessage::ServerReplyMsg(reply) = reply else { return false };
                    let receivers: Vec<Option<&Uoid<'_>>> =
                        reply.message.receivers.iter().map(|key| key.uoid()).collect();
                    receivers == [Some(&object(0x2d, "O"))]
                        && reply.message.sender.is_none()
                        && reply.message.bcast_flags.0 == 0x800
                };
                match text {
                    "plNetMsgGameMessage plServerReplyMsg affirm receiver=O sender=null bcast=0x800" => {
                        answer == Some(1) && is_to_lever()
                    }
                    "affirm" | "... affirm" => answer == Some(1),
                    "... deny" => answer == Some(0),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn is_forwarded(&self, packet: &Got, sent: &[u8]) -> bool {
        self.world.is_forwarded(packet, sent, self.sender)
    }

    /// Checks the invariants after a step.
    fn holds(&self, text: &str) {
        self.world.inside(|age| match text {
            "A still holds O" => assert_eq!(age.lock_holder(&object(0x2d, "O")), Some(A)),
            "lock on O free; avatar states of A dropped; N handed to B (kept)" => {
                assert_eq!(age.lock_holder(&object(0x2d, "O")), None);
                assert!(age.states().is_empty());
                let n = crate::world::clone("N", 2, A);
                assert_eq!(age.clones().find(|(object, _)| **object == n), Some((&n, B)));
            }
            "unchanged" => assert!(age.states().is_empty()),
            other => panic!("{}: {other}", self.id),
        });
    }
}

/// The scenarios do not mention that loading an avatar is broadcast, but others depend on it.
#[test]
fn others_see_an_avatar_appear() {
    let mut world = World::new();
    world.enter(A);
    world.join(B);
    world.forget();
    world.send(B, load_avatar(B, true));
    assert_eq!(world.received(A), ["plNetMsgLoadClone"]);
    assert_eq!(world.received(B), [""; 0]);
}
