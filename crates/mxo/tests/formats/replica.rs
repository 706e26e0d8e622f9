//! A client's views, as sections change them.

use std::sync::Arc;

use worldwire_core::json::Style;
use worldwire_core::{ErrorKind, Result, Sampler, Side};
use worldwire_mxo::frame::{AckBits, SequenceNumber, SequenceWord};
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
fn views_are_created_updated_and_deleted() {
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
    // Once the view exists, updates are applied immediately.
    let late = pending(&replica, 3, 9);
    assert_eq!(apply(&mut replica, vec![late]).unwrap(), []);
    assert_eq!((state(&replica, 3), replica.pending_bytes()), (Some(9), 0));
    // Updates pending for a deleted view are not applied to the next object with its ID.
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
fn an_unreadable_pending_update_is_ignored() {
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
    // Another object with the same ID replaces it.
    let Operation::Create(mut other) = create(&replica, 3, 5) else { panic!() };
    other.spawn_seq = 2;
    let notices = apply(&mut replica, vec![Operation::Create(other)]).unwrap();
    assert_eq!(notices, [Notice::Replaced(3)]);
    assert_eq!((state(&replica, 3), replica.view(3).unwrap().spawn_seq()), (Some(5), 2));
}

#[test]
fn a_section_beyond_the_bounds_changes_nothing() {
    let bounds = Bounds { views: 2, pending_bytes: 60 };
    let mut replica = Replica::within(Arc::new(Objects::built_in()), bounds);
    let three = vec![create(&replica, 3, 1), create(&replica, 4, 1), create(&replica, 5, 1)];
    let error = apply(&mut replica, three).unwrap_err();
    insta::assert_snapshot!(error, @"operations[2]: wanted at most 2 (views of a client), found 3");
    assert!(replica.is_empty());
    // A deletion in between frees a place.
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
fn unreadable_bytes_change_nothing() {
    let mut replica = replica();
    // A door is created, then another with a wrong magic number.
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
    // The character's own name, length-prefixed, and a position.
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

/// Applies operations in a server's packet with this number.
fn apply_in(
    replica: &mut Replica,
    number: u16,
    operations: Vec<Operation<'static>>,
) -> Result<Vec<Notice>> {
    replica.packet(Side::Server, SequenceNumber::new(number), 1);
    apply(replica, operations)
}

#[test]
fn late_values_do_not_overwrite_newer_ones() {
    let mut replica = replica();
    // Packet numbers wrap here.
    let made = create(&replica, 3, 1);
    assert_eq!(apply_in(&mut replica, 4094, vec![made]).unwrap(), []);
    let newer = Operation::Update(update(&replica, 3, 7));
    assert_eq!(apply_in(&mut replica, 1, vec![newer]).unwrap(), []);
    // From a late update, only values newer than the known ones are applied.
    let mut older = update(&replica, 3, 6);
    older.properties.as_mut().unwrap().set(0, vec![1]);
    let older = Operation::Update(older);
    assert_eq!(apply_in(&mut replica, 0, vec![older.clone()]).unwrap(), [Notice::Stale(3)]);
    assert_eq!(state(&replica, 3), Some(7));
    assert!(replica.view(3).unwrap().value("TrapVisible").is_some());
    // The client's packets have their own numbers.
    replica.packet(Side::Client, SequenceNumber::new(1), 1);
    let section = Section { operations: vec![older], unterminated: false };
    assert_eq!(replica.apply(&section, Side::Client).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(6));
}

/// After a long gap in a capture, packet numbers can look late.
#[test]
fn packets_after_a_long_gap_are_newer() {
    let mut replica = replica();
    let made = create(&replica, 3, 1);
    assert_eq!(apply_in(&mut replica, 19, vec![made]).unwrap(), []);
    let newer = Operation::Update(update(&replica, 3, 7));
    assert_eq!(apply_in(&mut replica, 2120, vec![newer]).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(7));
    let gone = Operation::Delete(Delete::of(vec![3]));
    assert_eq!(apply_in(&mut replica, 2121, vec![gone]).unwrap(), []);
    assert!(replica.is_empty());
}

#[test]
fn a_late_packet_refers_to_the_earlier_object_of_an_id() {
    let mut replica = replica();
    let made = create(&replica, 3, 1);
    apply_in(&mut replica, 5, vec![made.clone()]).unwrap();
    let gone = Operation::Delete(Delete::of(vec![3]));
    apply_in(&mut replica, 7, vec![gone.clone()]).unwrap();
    // An update and the create of the deleted object, repeated.
    let old = Operation::Update(update(&replica, 3, 9));
    assert_eq!(apply_in(&mut replica, 6, vec![old.clone()]).unwrap(), [Notice::Stale(3)]);
    assert!(replica.viewed(3).is_some(), "a late packet is readable");
    assert_eq!(apply_in(&mut replica, 6, vec![made.clone()]).unwrap(), [Notice::Stale(3)]);
    assert!(replica.is_empty());
    // The ID is reused for another object. Repetitions do not discard the updates waiting for that
    // object.
    let wait = pending(&replica, 3, 12);
    assert_eq!(apply_in(&mut replica, 11, vec![wait]).unwrap(), []);
    assert_eq!(apply_in(&mut replica, 8, vec![gone.clone()]).unwrap(), [Notice::DeletedUnknown(3)]);
    let Operation::Create(mut other) = made.clone() else { panic!() };
    other.spawn_seq = 2;
    let other = Operation::Create(other);
    assert_eq!(apply_in(&mut replica, 10, vec![other]).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(12));
    for late in [gone, made, old, pending(&replica, 3, 4)] {
        for number in [6, 9] {
            let said = apply_in(&mut replica, number, vec![late.clone()]).unwrap();
            assert_eq!(said, [Notice::Stale(3)], "{number}: {late:?}");
        }
        let view = replica.view(3).unwrap();
        assert_eq!((state(&replica, 3), view.spawn_seq()), (Some(12), 2));
    }
}

#[test]
fn pending_updates_apply_in_the_order_of_their_packets() {
    let mut replica = replica();
    for number in [9, 8] {
        let early = pending(&replica, 3, number.into());
        assert_eq!(apply_in(&mut replica, number, vec![early]).unwrap(), []);
    }
    // The updates were waiting for the create, so they are applied after it, whatever their packet
    // numbers.
    let made = create(&replica, 3, 10);
    assert_eq!(apply_in(&mut replica, 10, vec![made]).unwrap(), []);
    assert_eq!((state(&replica, 3), replica.pending_bytes()), (Some(9), 0));
    let late = pending(&replica, 3, 6);
    assert_eq!(apply_in(&mut replica, 7, vec![late]).unwrap(), [Notice::Stale(3)]);
    assert_eq!(state(&replica, 3), Some(9));
    let mut replica = self::replica();
    for number in [9, 8] {
        let early = pending(&replica, 3, number.into());
        apply_in(&mut replica, number, vec![early]).unwrap();
    }
    let made = create(&replica, 3, 1);
    assert_eq!(apply_in(&mut replica, 7, vec![made]).unwrap(), []);
    assert_eq!(state(&replica, 3), Some(9));
}

#[test]
fn bounds_apply_to_late_packets() {
    let bounds = Bounds { views: 1, pending_bytes: 60 };
    let mut replica = Replica::within(Arc::new(Objects::built_in()), bounds);
    let two = vec![pending(&replica, 9, 1), pending(&replica, 9, 2)];
    apply_in(&mut replica, 9, two).unwrap();
    let bytes = replica.pending_bytes();
    // An older deletion does not free any space.
    let late = vec![Operation::Delete(Delete::of(vec![9])), pending(&replica, 9, 3)];
    assert!(apply_in(&mut replica, 8, late).is_err());
    assert_eq!(replica.pending_bytes(), bytes);
    let made = create(&replica, 3, 1);
    apply_in(&mut replica, 10, vec![made]).unwrap();
    let gone = Operation::Delete(Delete::of(vec![3]));
    apply_in(&mut replica, 12, vec![gone]).unwrap();
    let made = create(&replica, 4, 1);
    apply_in(&mut replica, 13, vec![made]).unwrap();
    // Ignored operations take up no space.
    let late = vec![create(&replica, 3, 1), pending(&replica, 3, 1)];
    assert_eq!(apply_in(&mut replica, 11, late).unwrap(), [Notice::Stale(3)]);
}

/// The history of a view ID: the packets of successive objects, each created, updated and deleted,
/// in the order in which a server sends them.
fn lives(sampler: &mut Sampler, replica: &Replica) -> Vec<Vec<(u16, Operation<'static>)>> {
    let mut number = 4_000;
    let mut next = || {
        number += 1;
        number
    };
    let life = |seq: u8| {
        let mut life = Vec::new();
        let Operation::Create(mut made) = create(replica, 3, u32::from(seq) << 8) else { panic!() };
        made.spawn_seq = seq;
        life.push((next(), Operation::Create(made)));
        for _ in 0..sampler.below(12) {
            let mut change = update(replica, 3, u32::try_from(sampler.below(1 << 20)).unwrap());
            let flag = vec![u8::try_from(sampler.below(256)).unwrap()];
            change.properties = match sampler.below(3) {
                0 => change.properties,
                index => {
                    let mut properties = Properties::new();
                    properties.set(if index == 1 { 0 } else { 4 }, flag);
                    Some(properties)
                }
            };
            let change = PendingUpdate::wrap(&change, replica.objects()).unwrap();
            life.push((next(), Operation::PendingUpdate(change)));
        }
        life.push((next(), Operation::Delete(Delete::of(vec![3]))));
        life
    };
    (1..40).map(life).collect()
}

/// A server reuses an ID once its deletion has arrived. However late, repeated or reordered the
/// other packets are, the resulting views are the same as for packets in order.
#[test]
fn views_do_not_depend_on_the_order_of_packets() {
    for seed in 0..100 {
        let mut sampler = Sampler::new(seed);
        let mut below = |most: usize| usize::try_from(sampler.below(most as u64)).unwrap();
        let (mut ordered, mut mixed) = (replica(), replica());
        let mut late: Vec<(u16, Operation<'static>)> = Vec::new();
        let lives = lives(&mut Sampler::new(seed), &ordered);
        for life in lives {
            let (gone, rest) = life.split_last().unwrap();
            for (number, operation) in rest {
                apply_in(&mut ordered, *number, vec![operation.clone()]).unwrap();
            }
            let mut bag: Vec<_> = rest.iter().chain(rest).cloned().collect();
            bag.extend(core::mem::take(&mut late));
            while !bag.is_empty() {
                let (number, operation) = bag.swap_remove(below(bag.len()));
                apply_in(&mut mixed, number, vec![operation]).unwrap();
            }
            let picture = |replica: &Replica| {
                let mut text = String::new();
                replica.write_text(&mut text);
                text
            };
            assert!(!ordered.is_empty());
            assert_eq!(picture(&ordered), picture(&mixed), "seed {seed}");
            for replica in [&mut ordered, &mut mixed] {
                apply_in(replica, gone.0, vec![gone.1.clone()]).unwrap();
                assert!(replica.is_empty() && replica.pending_bytes() == 0);
            }
            late.extend(life.iter().filter(|_| below(2) == 0).cloned());
        }
    }
}

#[test]
fn a_late_update_of_an_object_that_was_never_seen_has_no_class() {
    let mut replica = replica();
    let made = create(&replica, 3, 1);
    apply_in(&mut replica, 5, vec![made]).unwrap();
    let gone = Operation::Delete(Delete::of(vec![3]));
    apply_in(&mut replica, 7, vec![gone.clone()]).unwrap();
    // The create of the next object is missing.
    assert_eq!(apply_in(&mut replica, 11, vec![gone]).unwrap(), [Notice::DeletedUnknown(3)]);
    let mut viewed = |number| {
        replica.packet(Side::Server, SequenceNumber::new(number), 1);
        replica.viewed(3)
    };
    assert!(viewed(6).is_some_and(|view| !view.guess), "it is about the door");
    assert_eq!([8, 9, 10, 12].map(&mut viewed), [None; 4]);
}

#[test]
fn updates_after_a_gap_that_may_hide_a_create_are_guesses() {
    let mut replica = replica();
    let made = create(&replica, 3, 1);
    apply_in(&mut replica, 5, vec![made.clone()]).unwrap();
    let is_guess = |replica: &mut Replica, number| {
        replica.packet(Side::Server, SequenceNumber::new(number), 1);
        replica.viewed(3).unwrap().guess
    };
    assert!(!is_guess(&mut replica, 6) && is_guess(&mut replica, 8));
    // The missing packet is only late.
    assert!(!is_guess(&mut replica, 7) && !is_guess(&mut replica, 9));
    // The client never acknowledges a packet, so it did not arrive.
    let word = |remote, acks| SequenceWord {
        acks: AckBits(acks),
        remote: SequenceNumber::new(remote),
        local: SequenceNumber::new(1),
    };
    assert!(is_guess(&mut replica, 11));
    replica.packet(Side::Client, SequenceNumber::new(1), 1);
    replica.acknowledged(word(11, 0b1101));
    assert!((12..76).all(|number| is_guess(&mut replica, number)));
    replica.acknowledged(word(75, 1));
    assert!(!is_guess(&mut replica, 76));
    // The client acknowledges a packet that is not in the capture.
    assert!(is_guess(&mut replica, 78));
    replica.acknowledged(word(78, 0b11));
    assert!((79..300).all(|number| is_guess(&mut replica, number)));
    // A new create resolves the uncertainty.
    let Operation::Create(mut other) = made else { panic!() };
    other.spawn_seq = 2;
    apply_in(&mut replica, 300, vec![Operation::Create(other)]).unwrap();
    assert!(!is_guess(&mut replica, 301));
}
