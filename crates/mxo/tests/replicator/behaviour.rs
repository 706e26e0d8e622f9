//! Creates, updates and deletions when packets arrive, are lost or arrive late.

use std::time::Duration;

use worldwire_mxo::message::{Animation, Movement};
use worldwire_mxo::replicator::{Config, Spawn, ViewState};
use worldwire_mxo::types::Value;

use crate::desk::{DOOR, Desk, NPC, PLAYER};

/// For clients that drop overtaken packets.
fn in_order() -> Config {
    Config { late: None, ..Config::default() }
}

#[test]
fn a_lost_update_is_sent_again_with_the_newest_value() {
    for config in [in_order(), Config::default()] {
        let mut desk = Desk::new(config);
        let door = desk.door_at([1.0; 3]);
        assert_eq!(desk.exchange(), "create 3:1");
        desk.set(door, 7);
        let (first, _) = desk.flush();
        // Nothing is repeated unnecessarily.
        assert_eq!(desk.exchange(), "");
        desk.lost(first);
        desk.set(door, 8);
        assert_eq!(desk.exchange(), "update 3");
        assert_eq!(desk.state(3), Some(Value::Unsigned(8)));
    }
}

#[test]
fn values_in_a_newer_packet_are_not_sent_again() {
    let mut desk = Desk::new(in_order());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.set(door, 7);
    desk.server.set_value(door, "IsGMAligned", &Value::Bytes(vec![1].into())).unwrap();
    let (older, _) = desk.flush();
    desk.set(door, 8);
    let (newer, _) = desk.flush();
    desk.lost(older);
    // The state is in flight, but the other property is not.
    let (again, section) = desk.flush();
    assert_eq!(section, [3, 3, 0, 1, 0x40, 1, 0, 0]);
    desk.delivered(newer);
    desk.delivered(again);
    assert!(desk.flush().1.is_empty());
    // A newer packet does not make up for an older one if it was lost, too.
    desk.set(door, 9);
    let (older, _) = desk.flush();
    desk.set(door, 10);
    let (newer, _) = desk.flush();
    desk.lost(newer);
    desk.lost(older);
    assert_eq!(desk.exchange(), "update 3");
    assert_eq!(desk.state(3), Some(Value::Unsigned(10)));
}

#[test]
fn values_that_an_older_packet_may_have_overwritten_are_sent_again() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.set(door, 7);
    let (older, old) = desk.flush();
    desk.set(door, 8);
    let (newer, new) = desk.flush();
    desk.receive(&new);
    desk.receive(&old);
    assert_eq!(desk.state(3), Some(Value::Unsigned(7)));
    desk.delivered(newer);
    assert!(desk.flush().1.is_empty());
    desk.delivered(older);
    assert_eq!(desk.exchange(), "update 3");
    assert_eq!(desk.state(3), Some(Value::Unsigned(8)));
    assert!(desk.server.is_settled(desk.client).unwrap());

    // The same if it was reported lost.
    desk.set(door, 9);
    let (older, old) = desk.flush();
    desk.lost(older);
    desk.set(door, 10);
    assert_eq!(desk.exchange(), "update 3");
    desk.receive(&old);
    desk.wait(2_000);
    let (number, section) = desk.poll();
    desk.receive(&section);
    desk.delivered(number);
    assert_eq!(desk.state(3), Some(Value::Unsigned(10)));
    // The packet may arrive even later; its acknowledgement then reveals this.
    assert!(!desk.server.is_settled(desk.client).unwrap());
    desk.receive(&old);
    desk.delivered(older);
    assert_eq!(desk.exchange(), "update 3");
    assert_eq!(desk.state(3), Some(Value::Unsigned(10)));
    desk.delivered(older);
    assert_eq!(desk.exchange(), "", "once");
    assert!(desk.server.is_settled(desk.client).unwrap());
}

#[test]
fn late_arrivals_are_corrected() {
    // If the packet's outcome stays unknown, the client is considered settled after a while.
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.set(door, 7);
    let (older, _) = desk.flush();
    desk.lost(older);
    assert_eq!(desk.exchange(), "update 3");
    desk.wait(2_000);
    assert!(desk.server.is_settled(desk.client).unwrap(), "the value differs");
    desk.set(door, 8);
    assert_eq!(desk.exchange(), "update 3");
    assert!(!desk.server.is_settled(desk.client).unwrap());
    desk.wait(5_000);
    assert!(desk.server.is_settled(desk.client).unwrap());
    // The packet arrives after all, more than a minute late.
    desk.wait(60_000);
    desk.delivered(older);
    assert_eq!(desk.exchange(), "update 3");
}

#[test]
fn a_late_create_leaves_no_ghost() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    let (create, late) = desk.flush();
    desk.lost(create);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.server.despawn(door).unwrap();
    desk.wait(2_000);
    let (number, section) = desk.poll();
    assert_eq!(desk.receive(&section), "delete [3]");
    desk.delivered(number);
    assert_eq!(desk.server.views(desk.client).count(), 0);
    assert!(!desk.server.is_settled(desk.client).unwrap());
    desk.receive(&late);
    assert_eq!(desk.replica.len(), 1);
    desk.delivered(create);
    // The ID is not reused yet.
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "delete [3], create 4:2");
    assert_eq!(desk.replica.len(), 1);
    assert!(desk.server.is_settled(desk.client).unwrap());
    // The same while the deletion is in flight.
    let door = desk.door_at([1.0; 3]);
    let (create, late) = desk.flush();
    desk.lost(create);
    assert_eq!(desk.exchange(), "create 5:3");
    desk.server.despawn(door).unwrap();
    desk.wait(2_000);
    let (number, section) = desk.poll();
    assert_eq!(desk.receive(&section), "delete [5]");
    desk.receive(&late);
    desk.delivered(create);
    desk.delivered(number);
    assert_eq!(desk.exchange(), "delete [5]");
    assert_eq!((desk.replica.len(), desk.server.views(desk.client).count()), (1, 1));
}

#[test]
fn an_object_is_created_again_if_a_late_packet_took_its_id() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.server.despawn(door).unwrap();
    let (delete, late) = desk.flush();
    desk.lost(delete);
    assert_eq!(desk.exchange(), "delete [3]");
    desk.wait(2_000);
    desk.wait(5_000);
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:2");
    desk.receive(&late);
    assert!(desk.replica.is_empty());
    desk.delivered(delete);
    assert_eq!(desk.exchange(), "delete [3]");
    assert_eq!(desk.exchange(), "create 3:3");
    assert_eq!(desk.replica.len(), 1);
}

#[test]
fn a_create_is_repeated_only_until_it_is_acknowledged() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    let (first, late) = desk.flush();
    desk.set(door, 7);
    // The client keeps the update until the create arrives.
    let (number, section) = desk.flush();
    assert_eq!(desk.receive(&section), "pending 3");
    desk.delivered(number);
    desk.lost(first);
    let (second, section) = desk.flush();
    assert_eq!(desk.receive(&section), "create 3:1");
    assert_eq!(desk.state(3), Some(Value::Unsigned(7)));
    desk.receive(&late);
    assert_eq!(desk.state(3), Some(Value::Unsigned(7)), "the repetition changed the value");
    desk.lost(second);
    desk.delivered(first);
    assert_eq!(desk.exchange(), "", "a create was repeated after one arrived");
    desk.set(door, 8);
    assert_eq!(desk.exchange(), "update 3");
}

#[test]
fn a_deletion_waits_for_updates_in_flight() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.set(door, 7);
    let (number, update) = desk.flush();
    desk.server.despawn(door).unwrap();
    assert!(desk.flush().1.is_empty());
    desk.receive(&update);
    desk.delivered(number);
    assert_eq!(desk.exchange(), "delete [3]");
    assert_eq!(desk.server.views(desk.client).count(), 0);
    // This is not needed for clients that drop overtaken packets.
    let mut desk = Desk::new(in_order());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.set(door, 7);
    desk.flush();
    desk.server.despawn(door).unwrap();
    assert_eq!(desk.exchange(), "delete [3]");
    assert_eq!(desk.server.views(desk.client).count(), 0);
}

#[test]
fn an_id_is_reused_once_nothing_of_its_object_can_arrive() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    let (create, late) = desk.flush();
    desk.server.despawn(door).unwrap();
    let (delete, section) = desk.flush();
    assert_eq!(desk.receive(&section), "delete [3]");
    desk.delivered(delete);
    // The create arrives after the deletion.
    desk.receive(&late);
    assert_eq!(desk.replica.len(), 1);
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 4:2");
    desk.delivered(create);
    assert_eq!(desk.exchange(), "delete [3]");
    assert_eq!(desk.replica.len(), 1);
    // The new view has the lowest ID and another spawn sequence.
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:3");
}

#[test]
fn a_late_deletion_does_not_hit_the_next_object() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.server.despawn(door).unwrap();
    let (first, late) = desk.flush();
    desk.lost(first);
    assert_eq!(desk.exchange(), "delete [3]");
    // The first deletion may still arrive.
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 4:2");
    desk.receive(&late);
    assert_eq!(desk.replica.len(), 1);
    desk.wait(2_000);
    // It may arrive even later.
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 5:3");
    desk.wait(5_000);
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:4");
}

#[test]
fn a_lost_deletion_is_sent_until_it_arrives() {
    let mut desk = Desk::new(in_order());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.server.despawn(door).unwrap();
    for _ in 0..30 {
        let (number, section) = desk.flush();
        assert_eq!(section, [3, 1, 0, 1, 1, 0, 3, 0, 0, 0]);
        desk.lost(number);
    }
    assert_eq!(desk.exchange(), "delete [3]");
    desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:2");
}

#[test]
fn a_returning_object_waits_for_its_deletion() {
    let mut desk = Desk::new(in_order());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    desk.server.move_to(door, [1e6; 3]).unwrap();
    let (number, section) = desk.flush();
    assert_eq!(desk.receive(&section), "delete [3]");
    desk.server.move_to(door, [1.0; 3]).unwrap();
    assert!(desk.flush().1.is_empty());
    desk.delivered(number);
    assert_eq!(desk.exchange(), "create 3:2");
}

#[test]
fn packets_without_an_outcome_are_eventually_lost() {
    let mut desk = Desk::new(Config { give_up: Duration::from_secs(1), ..in_order() });
    desk.door_at([1.0; 3]);
    desk.flush();
    desk.wait(900);
    assert!(desk.poll().1.is_empty());
    desk.wait(100);
    let (_, section) = desk.poll();
    assert_eq!(desk.receive(&section), "create 3:1");
}

#[test]
fn a_section_that_was_never_sent_is_composed_again() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    let other = desk.door_at([2.0; 3]);
    desk.tick();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    assert!(desk.server.poll(desk.client, &mut first).unwrap());
    desk.tick();
    assert!(desk.server.poll(desk.client, &mut second).unwrap());
    assert_eq!(first, second);
    desk.server.sent(desk.client, 1).unwrap();
    desk.number = 1;
    desk.receive(&second);
    desk.delivered(1);
    desk.set(door, 1);
    desk.server.despawn(other).unwrap();
    desk.tick();
    assert!(desk.server.poll(desk.client, &mut Vec::new()).unwrap());
    assert_eq!(desk.exchange(), "delete [4], update 3");
    assert!(desk.server.is_settled(desk.client).unwrap());
}

#[test]
fn a_reset_client_starts_over() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    desk.door_at([2.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1, create 4:2");
    desk.set(door, 1);
    let (late, _) = desk.flush();
    desk.server.reset(desk.client).unwrap();
    desk.replica.reset();
    // Reports about earlier packets are ignored.
    desk.lost(late);
    assert_eq!(desk.exchange(), "create 3:1, create 4:2");
    assert_eq!(desk.state(3), Some(Value::Unsigned(1)));
    assert!(desk.server.is_settled(desk.client).unwrap());
}

#[test]
fn the_own_character_is_view_2_and_has_its_own_order() {
    let mut desk = Desk::new(Config::default());
    let neo = desk.server.spawn(Spawn::new(PLAYER)).unwrap();
    desk.server.set_value(neo, "RealLastName", &Value::Text("Anderson".into())).unwrap();
    let movement = Movement {
        action: Some(3),
        position: Some([1.0, 2.0, 3.0]),
        time: Some(9),
        ..Movement::default()
    };
    desk.server.set_movement(neo, &movement).unwrap();
    desk.server.possess(desk.client, neo).unwrap();
    let other = desk.server.join().unwrap();
    desk.server.look_from(other, [0.0; 3]).unwrap();
    // Properties that are not in creates follow immediately.
    assert_eq!(desk.exchange(), "create 2:1, pending 2");
    let mut section = Vec::new();
    assert!(desk.server.poll(other, &mut section).unwrap());
    desk.server.sent(other, 1).unwrap();
    desk.server.delivered(other, 1).unwrap();
    desk.server.set_value(neo, "RealLastName", &Value::Text("Neo".into())).unwrap();
    desk.server.set_value(neo, "Level", &Value::Unsigned(50)).unwrap();
    let (_, own) = desk.flush();
    // Text is length-prefixed. In the order of the client's own view, the name is property 5 and
    // the level property 15.
    assert_eq!(own, [3, 2, 0, 2, 0xa0, 3, b'N', b'e', b'o', 0x80, 2, 50, 0, 0]);
    desk.receive(&own);
    let mut section = Vec::new();
    assert!(desk.server.poll(other, &mut section).unwrap());
    // The name is not sent to other clients; in their order, the level is property 9.
    assert_eq!(section, [3, 3, 0, 2, 0x80, 4, 50, 0, 0]);
    let mut text = String::new();
    desk.replica.write_text(&mut text);
    insta::assert_snapshot!(text, @r#"
    view 2: PlayerCharacter (12), class player
      RealLastName: "Neo"
      Level: 50
      movement: action 3  time 9  position x 1.0  y 2.0  z 3.0
    "#);
}

#[test]
fn a_client_is_not_sent_its_own_movement() {
    let mut desk = Desk::new(in_order());
    let neo = desk.server.spawn(Spawn::new(PLAYER)).unwrap();
    desk.server.possess(desk.client, neo).unwrap();
    let other = desk.server.join().unwrap();
    desk.server.look_from(other, [0.0; 3]).unwrap();
    assert_eq!(desk.exchange(), "create 2:1");
    desk.server.poll(other, &mut Vec::new()).unwrap();
    desk.server.sent(other, 1).unwrap();
    desk.server.delivered(other, 1).unwrap();

    let (section, used) = desk.server.read(desk.client, &[3, 2, 0, 1, 4, 0x80, 0, 0, 4]).unwrap();
    assert_eq!(used, 8);
    let [worldwire_mxo::message::Operation::Update(update)] = &section.operations[..] else {
        panic!("{section:?}");
    };
    desk.server.follow(desk.client, &update.movement.unwrap()).unwrap();
    assert_eq!(desk.exchange(), "");
    let mut section = Vec::new();
    assert!(desk.server.poll(other, &mut section).unwrap());
    assert_eq!(section, [3, 3, 0, 1, 4, 0x80, 0, 0]);
    // The server turns the character back to its previous direction.
    let back = Movement { yaw: Some(0), ..Movement::default() };
    desk.server.set_movement(neo, &back).unwrap();
    assert_eq!(desk.exchange(), "update 2");
    assert_eq!(desk.replica.view(2).unwrap().movement().yaw, Some(0));
}

#[test]
fn a_character_can_change_owners() {
    let mut desk = Desk::new(in_order());
    let first = desk.server.spawn(Spawn::new(PLAYER)).unwrap();
    let second = desk.server.spawn(Spawn::new(PLAYER)).unwrap();
    desk.server.possess(desk.client, first).unwrap();
    assert_eq!(desk.exchange(), "create 2:1, create 3:2");
    desk.server.possess(desk.client, second).unwrap();
    assert_eq!(desk.exchange(), "delete [2, 3]");
    assert_eq!(desk.exchange(), "create 2:3, create 3:4");
    let error = {
        let thief = desk.server.join().unwrap();
        desk.server.possess(thief, second).unwrap_err()
    };
    assert_eq!(
        error.to_string(),
        "wanted an object that no other client plays, found another client's character"
    );
    desk.server.despawn(second).unwrap();
    assert_eq!(desk.exchange(), "delete [2]");
    // The client keeps its viewpoint.
    assert_eq!(desk.server.views(desk.client).count(), 1);
}

#[test]
fn movements_of_npcs_have_their_own_block() {
    let mut desk = Desk::new(Config::default());
    let agent = desk.server.spawn(Spawn::new(NPC)).unwrap();
    assert_eq!(desk.exchange(), "create 3:1");
    let movement = Movement {
        animation: Some(Animation { animation: 1, mood: 2 }),
        yaw: Some(64),
        ..Movement::default()
    };
    desk.server.set_movement(agent, &movement).unwrap();
    desk.server.set_value(agent, "UseRSIDescription", &Value::Bytes(vec![1].into())).unwrap();
    let (number, section) = desk.flush();
    assert_eq!(section, [3, 3, 0, 6, 5, 1, 2, 64, 1, 1, 0, 0]);
    desk.delivered(number);
    // Setting the same movement again changes nothing.
    desk.server.set_movement(agent, &movement).unwrap();
    assert!(desk.flush().1.is_empty());
}

#[test]
fn properties_only_in_creates_reach_later_views() {
    let mut desk = Desk::new(in_order());
    let door = desk.door_at([1.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1");
    let position = Value::Vector3d([1.0, 2.0, 3.0]);
    desk.server.set_value(door, "Position", &position).unwrap();
    assert!(desk.flush().1.is_empty());
    desk.server.reset(desk.client).unwrap();
    desk.replica.reset();
    assert_eq!(desk.exchange(), "create 3:1");
    assert_eq!(desk.replica.view(3).unwrap().value("Position"), Some(position));
    assert_eq!(desk.server.views(desk.client).next().unwrap().state, ViewState::Live);
    let property = desk.server.property(DOOR, "Position").unwrap();
    assert_eq!(desk.server.value(door, property).map(<[u8]>::len), Some(24));
}

#[test]
fn a_create_contains_the_current_position() {
    let mut desk = Desk::new(in_order());
    let agent = desk.server.spawn(Spawn::new(NPC)).unwrap();
    desk.server.set_value(agent, "Position", &Value::Vector3d([1.0, 2.0, 3.0])).unwrap();
    let walk = |x: f32| Movement { position: Some([x, 0.0, 7.0]), ..Movement::default() };
    desk.server.set_movement(agent, &walk(5.0)).unwrap();
    desk.exchange();
    desk.exchange();
    // The position where the object was created, and its current position.
    let seen = |desk: &Desk| {
        let agent = desk.replica.view(3).unwrap();
        let Some(Value::Vector3d(created)) = agent.value("Position") else { panic!("no position") };
        (created[0], agent.position().unwrap()[0])
    };
    assert_eq!(seen(&desk), (5.0, 5.0));
    // A client that has the view is sent only the movement.
    desk.server.set_movement(agent, &walk(6.0)).unwrap();
    assert_eq!(desk.exchange(), "update 3");
    assert_eq!(seen(&desk), (5.0, 6.0));
    // A client that gets the view later is sent the current position.
    desk.server.reset(desk.client).unwrap();
    desk.replica.reset();
    desk.exchange();
    assert_eq!(Some(seen(&desk).0), Some(6.0));
}
