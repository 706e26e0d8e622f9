//! Values, JSON and operations that sections cannot contain.

use worldwire_core::json::{Json, json};
use worldwire_core::{Reader, Result, Side, Writer};
use worldwire_mxo::message::{
    Context, Create, Delete, Fault, Movement, Operation, Properties, Section, Update,
};

use crate::reading::{OBJECTS, VIEWS, server};

#[test]
fn json_that_does_not_fit_is_refused() {
    let error = |json: Json| {
        let operations = json!({"operations": [json]});
        Section::from_json(&operations, &server()).unwrap_err().to_string()
    };
    let create = |class: &str, properties: Json| {
        let goid = if class == "npc" { 599 } else { 415 };
        error(json!({"create": {"goid": goid, "class": class, "spawn_seq": 1, "new_view": 9,
            "count": 1, "properties": properties}}))
    };
    let all = [
        error(json!({"remove": {}})),
        error(json!({"update": {"view": 77}})),
        error(json!({"update": {"view": 3, "mask": 3, "properties": {}}})),
        error(json!({"update": {"view": 6, "properties": {}}})),
        error(json!({"update": {"view": 3, "movement": {}}})),
        error(json!({"update": {"view": 3, "properties": {"CurrentStat": 1}}})),
        error(json!({"delete": {"views": [65536]}})),
        error(json!({"pending_update": {"target": 5, "length": 9, "data": {"$hex": ""}}})),
        create("door", json!({})),
        create("door364", json!({})),
        create("door364", json!({"CurrentState": -1})),
        create("door364", json!({"Orientation": {"x": 0, "y": 0, "z": 0}})),
        create("door364", json!({"TrapFX": {"$hex": "00"}})),
        create("npc", json!({"CharacterName": "日本"})),
        create("npc", json!({"CharacterName": {"text": "a", "behind": {"$hex": "01"}}})),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    operations[0]: wanted create, delete, pending_update, update, unknown_create or undecoded, found "remove"
    operations[0].update.view: wanted a view whose class is known, found 77
    operations[0].update.mask: wanted 1, as the other fields imply, found 3; omit it to have it filled in
    operations[0].update.properties: wanted a block whose layout is known, found a class whose updates are unknown
    operations[0].update: wanted a block whose layout is known, found a block that is not in updates of door364
    operations[0].update.properties: wanted a property of the class, found "CurrentStat"; did you mean "CurrentState"?
    operations[0].delete.views[0]: wanted a whole number from 0 to 65535, found 65536
    operations[0].pending_update.length: wanted 4, as the other fields imply, found 9; omit it to have it filled in
    operations[0].create.class: wanted the name of a class, found "door"
    operations[0].create.count: wanted 0, as the other fields imply, found 1; omit it to have it filled in
    operations[0].create.properties.CurrentState: wanted a whole number from 0 to 4294967295, found -1
    operations[0].create.properties.Orientation.w: is missing
    operations[0].create.properties.TrapFX: wanted 4 bytes, found 1
    operations[0].create.properties.CharacterName: wanted Windows-1252 characters, found "日本"
    operations[0].create.properties.CharacterName: wanted 32 bytes, found 3
    "#);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let door = OBJECTS.class_of(415).unwrap().0;
    let refuse = |operation: Operation<'_>, from: Side| {
        operation.encode(&OBJECTS, from, &mut Writer::new()).unwrap_err().to_string()
    };
    let create = |view| Create::dynamic(415, door, 1, view);
    let mut short = Properties::new();
    short.set(13, &[1, 2][..]);
    let mut far = Properties::new();
    far.set(14, &[1][..]);
    let mut further = Properties::new();
    further.set(900, &[1][..]);
    let moving = Movement { position: Some([0.0; 3]), ..Movement::default() };
    let own = Update {
        view: 2,
        class: OBJECTS.class_of(12).unwrap().0,
        guess: false,
        block1: None,
        movement: Some(moving),
        properties: None,
    };
    let timed = Movement { time: Some(1), ..moving };
    let all = [
        refuse(Operation::Create(create(1)), Side::Server),
        refuse(Operation::Create(Create { flags: 8, ..create(5) }), Side::Server),
        refuse(Operation::Create(Create { flags: 1, ..create(5) }), Side::Server),
        refuse(Operation::Create(create(5).with(short)), Side::Server),
        refuse(Operation::Create(create(5).with(far.clone())), Side::Server),
        refuse(Operation::Create(create(5).with(further)), Side::Server),
        refuse(Operation::Update(Update::of(3, door, far)), Side::Server),
        refuse(Operation::Update(own.clone()), Side::Server),
        refuse(Operation::Update(Update { movement: Some(timed), ..own }), Side::Client),
        refuse(Operation::Delete(Delete::of(vec![5, 0])), Side::Server),
        refuse(Operation::Delete(Delete { flags: 2, views: vec![] }), Side::Server),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    new_view: wanted a view ID that is allowed here, found 1
    world_id: wanted a world object ID with these flags, found none; bit 2 of the flags marks a dynamic object
    flags: wanted the flags of a create, found 0x01
    properties.CurrentState: wanted 4 bytes of EventID, found 2
    properties: wanted presence bits for the class's properties, found index 14 of 14
    properties: wanted presence bits for the class's properties, found index 900 of 14
    properties: wanted presence bits for the class's properties, found index 14 of 9
    movement.time: wanted a time, which servers send with the client's own position and with scripts, found none
    movement.time: wanted no time, found one
    views[1]: wanted a view ID that is allowed here, found 0
    flags: wanted flags whose lowest two bits are 1, found 0x02
    ");
}

#[test]
fn json_that_contradicts_known_facts_is_refused() {
    let read = |operation: Json| {
        let section = json!({ "operations": [operation] });
        Section::from_json(&section, &server()).map(drop)
    };
    let create = |more: (&str, &str)| {
        let mut create = json!({ "goid": 414, "spawn_seq": 1, "new_view": 9, "properties": {} });
        create[more.0] = more.1.into();
        read(json!({ "create": create }))
    };
    let update =
        |class: &str| read(json!({ "update": { "view": 3, "class": class, "properties": {} } }));
    let unknown = |name: &str| {
        let create = json!({ "goid": 12, "object": name, "spawn_seq": 1, "count": 0, "bytes": {"$hex": ""} });
        read(json!({ "unknown_create": create }))
    };
    let right = [
        create(("object", "Door SL Push Knob Graymetal01texvar")),
        create(("class", "door364")),
        update("door364"),
        unknown("PlayerCharacter"),
    ];
    right.into_iter().for_each(Result::unwrap);
    let wrong = [
        create(("object", "PlayerCharacter")),
        create(("class", "vendor")),
        update("vendor"),
        unknown("Nobody"),
    ];
    let told = wrong.map(|outcome| outcome.unwrap_err().to_string());
    insta::assert_snapshot!(told.join("\n"), @r#"
    operations[0].create.object: wanted "Door SL Push Knob Graymetal01texvar", the name of goobj 414, found "PlayerCharacter"; omit it to have it filled in
    operations[0].create.class: wanted door364, the known class, found vendor; omit it to have it filled in
    operations[0].update.class: wanted door364, the known class, found vendor; omit it to have it filled in
    operations[0].unknown_create.object: wanted "PlayerCharacter", the name of goobj 12, found "Nobody"; omit it to have it filled in
    "#);
}

#[test]
fn operations_that_a_client_may_not_send_are_refused() {
    let context = Context::client(&OBJECTS, &*VIEWS);
    let refused = |operation: Json| {
        let json = json!({ "operations": [operation] });
        let section = Section::from_json(&json, &context).unwrap();
        let error = section.encode(&OBJECTS, Side::Client, &mut Writer::new()).unwrap_err();
        // A server may send this operation; a client's cannot be read either.
        let mut writer = Writer::new();
        section.encode(&OBJECTS, Side::Server, &mut writer).unwrap();
        let read = Section::decode(&mut Reader::new(writer.as_bytes()), &context);
        assert_eq!(Fault::of(&read.unwrap_err()), Some(Fault::BadViewId));
        assert_eq!(Fault::of(&error), Some(Fault::BadViewId));
        error.to_string()
    };
    insta::assert_snapshot!(refused(json!({"delete": {"views": [5]}})), @"operations[0].delete.view: wanted a view ID that is allowed here, found 1 from a client");
    insta::assert_snapshot!(refused(json!({"update": {"view": 5, "movement": {"yaw": 3}}})), @"operations[0].update.view: wanted a view ID that is allowed here, found 5 from a client");
    refused(json!({"pending_update": {"target": 2, "data": {"$hex": "00"}}}));
    refused(json!({"undecoded": {"view": 9, "fault": "unknown_view", "bytes": {"$hex": "00"}}}));
}
