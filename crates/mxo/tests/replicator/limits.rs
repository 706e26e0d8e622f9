//! Operations that the replicator refuses, and the names of their faults.

use worldwire_core::Error;
use worldwire_mxo::message::{Animation, Fault, Movement, Properties};
use worldwire_mxo::replicator::{Config, Spawn};
use worldwire_mxo::types::Value;

use crate::desk::{DOOR, Desk, NPC, PLAYER};

fn fault(error: &Error) -> Option<&'static str> {
    Fault::of(error).map(Fault::name)
}

#[test]
fn a_client_may_only_update_its_own_view() {
    let mut desk = Desk::new(Config::default());
    let movement = [3, 2, 0, 1, 4, 0x80, 0, 0];
    let error = desk.server.read(desk.client, &movement).unwrap_err();
    assert_eq!(fault(&error), Some("unknown_view"), "it has no character");
    let neo = desk.server.spawn(Spawn::new(PLAYER)).unwrap();
    let door = desk.door_at([1.0; 3]);
    desk.server.possess(desk.client, neo).unwrap();
    assert_eq!(desk.exchange(), "create 2:1, create 3:2");
    assert!(desk.server.read(desk.client, &movement).is_ok());
    // Another client's view, and the AdminView: a create, a deletion.
    for bytes in [
        &[3, 3, 0, 1, 0x80, 2, 0x38, 8, 0, 0, 0, 0][..],
        &[3, 1, 0, 0x0c, 0x9f, 1, 1, 0xcd, 0xab, 0, 0, 9, 0, 0, 0, 0],
        &[3, 1, 0, 1, 1, 0, 3, 0, 0, 0],
    ] {
        let error = desk.server.read(desk.client, bytes).unwrap_err();
        assert_eq!(fault(&error), Some("bad_view_id"));
    }
    assert_eq!(desk.server.target(desk.client, 3, 2).unwrap(), door);
    let errors = [(0, 1, "bad_view_id"), (1, 1, "bad_view_id"), (9, 1, "unknown_view")];
    for (view, seq, name) in errors {
        let error = desk.server.target(desk.client, view, seq).unwrap_err();
        assert_eq!(fault(&error), Some(name));
    }
    let error = desk.server.target(desk.client, 3, 1).unwrap_err();
    assert_eq!(error.to_string(), "spawn_seq: wanted the spawn sequence 2 of view 3, found 1");
    desk.server.despawn(door).unwrap();
    assert_eq!(fault(&desk.server.target(desk.client, 3, 2).unwrap_err()), Some("unknown_view"));
}

#[test]
fn limits_are_named() {
    let config = Config { objects: 3, clients: 2, views: 2, late: None, ..Config::default() };
    let mut desk = Desk::new(config);
    let doors: Vec<_> = (0..3).map(|x| desk.door_at([f64::from(x), 0.0, 0.0])).collect();
    let error = desk.server.spawn(Spawn::new(DOOR)).unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 3 (objects), found 4");
    desk.server.join().unwrap();
    let error = desk.server.join().unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 2 (clients), found 3");

    assert_eq!(desk.exchange(), "create 3:1, create 4:2");
    desk.server.despawn(doors[0]).unwrap();
    assert_eq!(desk.exchange(), "delete [3]");
    assert_eq!(desk.exchange(), "create 3:3");
}

#[test]
fn missing_objects_and_invalid_values_are_refused() {
    let mut desk = Desk::new(Config::default());
    let door = desk.door_at([1.0; 3]);
    let text = |error: Error| error.to_string();
    let error = desk.server.spawn(Spawn::new(9)).unwrap_err();
    assert_eq!(fault(&error), Some("unknown_goid"));
    let position = [f64::NAN, 0.0, 0.0];
    let error = desk.server.spawn(Spawn { position, ..Spawn::new(DOOR) }).unwrap_err();
    insta::assert_snapshot!(
        text(error), @"position: wanted finite coordinates, found [NaN, 0.0, 0.0]"
    );
    let mut properties = Properties::new();
    properties.set(13, vec![1, 2]);
    let error = desk.server.spawn(Spawn { properties, ..Spawn::new(DOOR) }).unwrap_err();
    insta::assert_snapshot!(
        text(error), @"properties.CurrentState: wanted 4 bytes of EventID, found 2"
    );
    let mut properties = Properties::new();
    properties.set(14, vec![1, 2]);
    let error = desk.server.spawn(Spawn { properties, ..Spawn::new(DOOR) }).unwrap_err();
    assert_eq!(fault(&error), Some("index_out_of_range"));

    let error = desk.server.set_value(door, "CurrentStat", &Value::Unsigned(1)).unwrap_err();
    insta::assert_snapshot!(
        text(error), @r#"wanted a property of the class, found "CurrentStat""#
    );
    let error = desk.server.set_value(door, "CurrentState", &Value::Bool(true)).unwrap_err();
    insta::assert_snapshot!(
        text(error),
        @"CurrentState: wanted a whole number from 0 to 4294967295, found Bool(true)"
    );
    let level = desk.server.property(PLAYER, "Level").unwrap();
    let error = desk.server.set(door, level, &[1]).unwrap_err();
    insta::assert_snapshot!(
        text(error), @"property: wanted a property of the object's class, found a property of another class"
    );

    let npc = desk.server.spawn(Spawn::new(NPC)).unwrap();
    let animation = Some(Animation { animation: 1, mood: 1 });
    let moves = Movement { animation, ..Movement::default() };
    assert!(desk.server.set_movement(npc, &moves).is_ok());
    let error = desk.server.set_movement(door, &moves).unwrap_err();
    insta::assert_snapshot!(text(error), @"wanted an object with movement, found one without movement");
    let script = Movement { script_counter: Some(1), ..moves };
    let error = desk.server.set_movement(npc, &script).unwrap_err();
    insta::assert_snapshot!(
        text(error),
        @"script_counter: wanted a movement that a server can send, found a script counter"
    );
    let nowhere = Movement { position: Some([0.0, f32::INFINITY, 0.0]), ..moves };
    let error = desk.server.set_movement(npc, &nowhere).unwrap_err();
    insta::assert_snapshot!(
        text(error), @"position: wanted finite coordinates, found [0.0, inf, 0.0]"
    );

    desk.server.despawn(door).unwrap();
    let error = desk.server.despawn(door).unwrap_err();
    assert!(text(error).starts_with("wanted an existing object, found ObjectId"));
    // The object's index is reused, but its ID is not.
    let other = desk.door_at([1.0; 3]);
    assert!(desk.server.move_to(door, [0.0; 3]).is_err() && other != door);
    let error = desk.server.sent(desk.client, 1).unwrap_err();
    insta::assert_snapshot!(
        text(error), @"wanted a section that was polled but not sent, found none"
    );
    desk.tick();
    desk.poll();
    desk.set(other, 5);
    desk.tick();
    assert!(desk.server.poll(desk.client, &mut Vec::new()).unwrap());
    let error = desk.server.sent(desk.client, 1).unwrap_err();
    insta::assert_snapshot!(text(error), @"number: wanted a number above 1, found 1");
    desk.server.leave(desk.client).unwrap();
    assert!(desk.server.poll(desk.client, &mut Vec::new()).is_err());
    assert_eq!(desk.server.views(desk.client).count(), 0);
    let again = desk.server.join().unwrap();
    assert!(again != desk.client && desk.server.traffic(desk.client).is_err());
}
