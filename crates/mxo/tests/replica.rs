//! A client's views, as sections change them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use worldwire_core::json::Style;
use worldwire_core::{ErrorKind, Result, Side};
use worldwire_mxo::message::{
    Create, Delete, Fault, Operation, PendingUpdate, Properties, Rules, Section, Update, Views as _,
};
use worldwire_mxo::replica::{Bounds, Notice, Replica};
use worldwire_mxo::schema::{ClassId, Objects};
use worldwire_mxo::types::Value;

const DOOR: u16 = 415;

fn replica() -> Replica {
    Replica::new(Arc::new(Objects::built_in()))
}

fn door(replica: &Replica) -> ClassId {
    replica.objects().class_of(DOOR).unwrap().0
}

fn create(replica: &Replica, view: u16, state: u32) -> Operation<'static> {
    let mut properties = Properties::new();
    properties.set(13, state.to_le_bytes().to_vec());
    Operation::Create(Create::dynamic(DOOR, door(replica), 1, view).with(properties))
}

fn update(replica: &Replica, view: u16, state: u32) -> Update<'static> {
    let mut properties = Properties::new();
    properties.set(8, state.to_le_bytes().to_vec());
    Update::of(view, door(replica), properties)
}

fn pending(replica: &Replica, view: u16, state: u32) -> Operation<'static> {
    let update = update(replica, view, state);
    Operation::PendingUpdate(PendingUpdate::wrap(&update, replica.objects()).unwrap())
}

fn apply(replica: &mut Replica, operations: Vec<Operation<'static>>) -> Result<Vec<Notice>> {
    replica.apply(&Section { operations, unterminated: false }, Side::Server)
}

fn state(replica: &Replica, view: u16) -> Option<u32> {
    match replica.view(view)?.value("CurrentState")? {
        Value::Unsigned(state) => Some(state),
        other => panic!("{other:?}"),
    }
}

#[test]
fn views_come_change_and_go() {
    let mut replica = replica();
    let made = create(&replica, 3, 1);
    assert_eq!(apply(&mut replica, vec![made]).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(1));
    let changed = Operation::Update(update(&replica, 3, 2));
    assert_eq!(apply(&mut replica, vec![changed]).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(2));
    let gone = Operation::Delete(Delete::of(vec![3, 4]));
    assert_eq!(apply(&mut replica, vec![gone]).unwrap(), [Notice::DeletedUnknown(4)]);
    assert!(replica.is_empty() && replica.viewed(3).is_none());
}

#[test]
fn pending_updates_wait_for_their_create_and_keep_their_order() {
    let mut replica = replica();
    let early = vec![pending(&replica, 3, 7), pending(&replica, 3, 8)];
    assert_eq!(apply(&mut replica, early).unwrap(), []);
    assert!(replica.is_empty() && replica.pending_bytes() > 0);
    let made = create(&replica, 3, 1);
    assert_eq!(apply(&mut replica, vec![made]).unwrap(), []);
    assert_eq!((state(&replica, 3), replica.pending_bytes()), (Some(8), 0));
    // With the view there, they apply at once.
    let late = pending(&replica, 3, 9);
    assert_eq!(apply(&mut replica, vec![late]).unwrap(), []);
    assert_eq!((state(&replica, 3), replica.pending_bytes()), (Some(9), 0));
    // What waits for a view that is deleted is not for the next one of its id.
    let list = vec![
        Operation::Delete(Delete::of(vec![3])),
        pending(&replica, 3, 5),
        Operation::Delete(Delete::of(vec![3])),
        create(&replica, 3, 1),
    ];
    assert_eq!(apply(&mut replica, list).unwrap(), [Notice::DeletedUnknown(3)]);
    assert_eq!(state(&replica, 3), Some(1));
}

#[test]
fn a_pending_update_that_cannot_be_read_is_left_out() {
    let mut replica = replica();
    let data = vec![1, 0x80, 2, 0x38].into();
    let bad = Operation::PendingUpdate(PendingUpdate { flags: 2, target: 3, data });
    let list = vec![bad, pending(&replica, 3, 8), create(&replica, 3, 1)];
    let notices = apply(&mut replica, list).unwrap();
    let [Notice::BadPending { view: 3, error }] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!(Fault::of(error), Some(Fault::Truncated));
    assert_eq!(state(&replica, 3), Some(8));
}

#[test]
fn a_repeated_create_changes_nothing() {
    let mut replica = replica();
    let list = vec![
        create(&replica, 3, 1),
        Operation::Update(update(&replica, 3, 2)),
        create(&replica, 3, 1),
    ];
    assert_eq!(apply(&mut replica, list).unwrap(), [Notice::CreatedAgain(3)]);
    assert_eq!(state(&replica, 3), Some(2));
    // Another object under the same id takes its place.
    let Operation::Create(mut other) = create(&replica, 3, 5) else { panic!() };
    other.spawn_seq = 2;
    let notices = apply(&mut replica, vec![Operation::Create(other)]).unwrap();
    assert_eq!(notices, [Notice::Replaced(3)]);
    assert_eq!((state(&replica, 3), replica.view(3).unwrap().spawn_seq()), (Some(5), 2));
}

#[test]
fn bounds_are_kept_and_a_section_beyond_them_changes_nothing() {
    let bounds = Bounds { views: 2, pending_bytes: 60 };
    let mut replica = Replica::within(Arc::new(Objects::built_in()), bounds);
    let three = vec![create(&replica, 3, 1), create(&replica, 4, 1), create(&replica, 5, 1)];
    let error = apply(&mut replica, three).unwrap_err();
    insta::assert_snapshot!(error, @"operations[2]: wanted at most 2 (views of a client), found 3");
    assert!(replica.is_empty());
    // A deletion in between makes room.
    let list = vec![
        create(&replica, 3, 1),
        create(&replica, 4, 1),
        Operation::Delete(Delete::of(vec![3])),
        create(&replica, 5, 1),
    ];
    assert_eq!(apply(&mut replica, list).unwrap(), []);

    let flood: Vec<_> = (0..3).map(|state| pending(&replica, 9, state)).collect();
    let error = apply(&mut replica, flood).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Limit { name: "bytes of pending updates", limit: 60, asked: 69 }
    ));
    assert_eq!(replica.pending_bytes(), 0);
    let two: Vec<_> = (0..2).map(|state| pending(&replica, 9, state)).collect();
    assert_eq!(apply(&mut replica, two).unwrap(), []);
    let full = pending(&replica, 9, 3);
    assert!(apply(&mut replica, vec![full.clone()]).is_err());
    let room = vec![Operation::Delete(Delete::of(vec![9])), full];
    assert_eq!(apply(&mut replica, room).unwrap(), [Notice::DeletedUnknown(9)]);
    replica.reset();
    assert_eq!((replica.len(), replica.pending_bytes()), (0, 0));
}

#[test]
fn bytes_that_cannot_be_read_change_nothing() {
    let mut replica = replica();
    // A door is created, then one more whose magic is wrong.
    let good = "01000c9f0101cdab01804034080000030000";
    let bad = "01000c9f0101abcd01804034080000040000";
    let bytes = worldwire_core::value::parse_hex(&format!("03{good}{bad}0000")).unwrap();
    let error = replica.receive(&bytes, Side::Server, Rules::LENIENT).unwrap_err();
    assert_eq!(Fault::of(&error), Some(Fault::BadMagic));
    assert!(replica.is_empty());
    let bytes = worldwire_core::value::parse_hex(&format!("03{good}")).unwrap();
    let (used, notices) = replica.receive(&bytes, Side::Server, Rules::LENIENT).unwrap();
    assert_eq!((used, notices), (bytes.len(), vec![]));
    let rest = [3, 3, 0, 1, 0x80, 2, 1, 0, 0, 0, 0x77, 0, 1];
    let (used, notices) = replica.receive(&rest, Side::Server, Rules::LENIENT).unwrap();
    let told = Notice::Undecoded { view: 0x77, fault: Fault::UnknownView };
    assert_eq!((used, notices), (rest.len(), vec![told]));
    assert_eq!(state(&replica, 3), Some(1));
    let rest = [3, 1, 0, 0x0c, 0xfe, 0xfe, 1, 0xcd, 0xab, 1];
    let (used, notices) = replica.receive(&rest, Side::Server, Rules::LENIENT).unwrap();
    assert_eq!((used, notices), (rest.len(), vec![Notice::UnknownCreate { goid: 0xfefe }]));
}

#[test]
fn the_world_can_be_shown() {
    let mut replica = replica();
    let objects = Arc::clone(replica.objects());
    let mut properties = Properties::new();
    let mut name = b"Ron".to_vec();
    name.resize(32, 0);
    properties.set(3, name);
    let class = objects.class_of(12).unwrap().0;
    let own = Create::dynamic(12, class, 0x2f, 2).with(properties);
    let list = vec![Operation::Create(own), create(&replica, 3, 0x834)];
    apply(&mut replica, list).unwrap();
    // The own name, with a count, and a position.
    let bytes = [
        3, 2, 0, 3, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0x80, 0xbf, 1, 0, 0, 0, 0x20, 3, b'N',
        b'e', b'o', 0, 0,
    ];
    let (_, notices) = replica.receive(&bytes, Side::Server, Rules::STRICT).unwrap();
    assert_eq!(notices, []);
    let mut text = String::new();
    replica.write_text(&mut text);
    insta::assert_snapshot!(text, @r#"
    view 2: PlayerCharacter (12), class player
      RealLastName: "Neo"
      movement: time 1  position x 1.0  y 0.0  z -1.0
    view 3: Door SL Push Knob Greenmetal01texvar (415), class door364
      CurrentState: 0x0834
    "#);
    let mut json = String::new();
    replica.write_json(Style::default(), &mut json);
    insta::assert_snapshot!(json, @r#"[{"view":2,"goid":12,"object":"PlayerCharacter","class":"player","spawn_seq":47,"properties":{"RealLastName":"Neo"},"movement":{"time":1,"position":{"x":1.0,"y":0.0,"z":-1.0}}},{"view":3,"goid":415,"object":"Door SL Push Knob Greenmetal01texvar","class":"door364","spawn_seq":1,"properties":{"CurrentState":2100}}]"#);
}
