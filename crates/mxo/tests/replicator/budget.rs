//! Interest management, and what is sent first when not everything fits.

use std::sync::Arc;

use proptest::prelude::*;
use worldwire_mxo::message::Properties;
use worldwire_mxo::replicator::{Config, Replicator, Spawn};
use worldwire_mxo::schema::{Class, Tables};
use worldwire_mxo::types::PropertyType;

use crate::desk::{DOOR, Desk};

#[test]
fn objects_at_the_edge_do_not_flicker() {
    let mut desk =
        Desk::new(Config { enter: 100.0, leave: 120.0, late: None, ..Config::default() });
    let door = desk.door_at([101.0, 0.0, 0.0]);
    let mut at = |x: f64| {
        desk.server.move_to(door, [x, 0.0, 0.0]).unwrap();
        desk.exchange()
    };
    assert_eq!(at(100.5), "");
    assert_eq!(at(100.0), "create 3:1");
    assert_eq!(at(119.0), "");
    assert_eq!(at(101.0), "");
    assert_eq!(at(120.5), "delete [3]");
    assert_eq!(at(101.0), "");
    assert_eq!(at(-99.0), "create 3:2");
    // The client moves.
    desk.server.look_from(desk.client, [21.5, 0.0, 0.0]).unwrap();
    assert_eq!(desk.exchange(), "delete [3]");
    desk.server.look_from(desk.client, [-150.0, 70.0, 0.0]).unwrap();
    assert_eq!(desk.exchange(), "create 3:3");
}

#[test]
fn deletions_come_first_then_near_creates_then_updates() {
    let mut desk = Desk::new(Config::default());
    let gone = desk.door_at([1.0; 3]);
    let stays = desk.door_at([2.0; 3]);
    assert_eq!(desk.exchange(), "create 3:1, create 4:2");
    desk.set(stays, 7);
    for x in [50.0, 10.0, 30.0] {
        desk.door_at([x, 0.0, 0.0]);
    }
    desk.server.despawn(gone).unwrap();
    let (_, section) = desk.flush();
    assert_eq!(desk.receive(&section), "delete [3], create 5:3, create 6:4, create 7:5, update 4");
    assert_eq!(desk.server.target(desk.client, 5, 3).unwrap(), {
        let nearest = desk.server.views(desk.client).find(|view| view.id == 5).unwrap();
        nearest.object.unwrap()
    });
}

#[test]
fn a_large_update_is_split() {
    let names: Vec<String> = (0..100).map(|index| format!("p{index}")).collect();
    let kind = PropertyType::raw(20).unwrap();
    let first = |count| names[..count].iter().map(move |name| (name.as_str(), kind));
    let mut tables = Tables::built_in();
    tables.add(Class::new("large", first(2)).updated(first(100)));
    tables.goobj_mut(77).class = Some("large".into());
    let objects = Arc::new(tables.compile());
    let config = Config { packet_bytes: 1_200, tick_bytes: 1_300, ..Config::default() };
    let mut server = Replicator::new(Arc::clone(&objects), config).unwrap();
    let client = server.join().unwrap();
    server.look_from(client, [0.0; 3]).unwrap();
    let large = server.spawn(Spawn::new(77)).unwrap();
    let mut desk = Desk::new(Config::default());
    desk.replica = worldwire_mxo::replica::Replica::new(objects);
    (desk.server, desk.client) = (server, client);
    let (_, create) = desk.flush();
    assert_eq!(desk.receive(&create), "create 3:1");
    for (index, name) in names.iter().enumerate() {
        let property = desk.server.property(77, name).unwrap();
        let value = [u8::try_from(index).unwrap(); 20];
        desk.server.set(large, property, &value).unwrap();
    }
    let (_, first) = desk.flush();
    assert_eq!(desk.receive(&first), "pending 3");
    assert!(first.len() <= 1_200);
    assert!(desk.poll().1.is_empty(), "the tick's budget is exceeded");
    let (_, second) = desk.flush();
    assert_eq!(desk.receive(&second), "pending 3");
    let view = desk.replica.view(3).unwrap();
    assert_eq!(view.values().len(), 100);
}

/// A row of doors: the nearest ones change constantly, the others occasionally.
#[derive(Clone, Debug)]
struct Row {
    doors: usize,
    busy: usize,
    patience: u32,
    /// The number of doors that appear and disappear per tick.
    churn: usize,
}

fn row() -> impl Strategy<Value = Row> {
    (50..400_usize, 1..300_usize, 1..20_u32, 0..30_usize).prop_map(
        |(doors, busy, patience, churn)| Row { doors, busy: busy.min(doors), patience, churn },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn waiting_changes_are_sent_within_bounds(row in row()) {
        let Row { doors, busy, patience, churn } = row;
        let config = Config {
            patience, packet_bytes: 512, tick_bytes: 512, late: None, ..Config::default()
        };
        let mut desk = Desk::new(config);
        let row: Vec<_> =
            (0..doors).map(|at| desk.door_at([100.0 + at as f64, 0.0, 0.0])).collect();
        while desk.exchange() != "" {}
        let far = *row.last().unwrap();
        // An update of a door takes 9 bytes, so 56 fit into a section. A deletion takes 2 bytes.
        let bound = u64::from(patience) + 2 * (doors as u64).div_ceil(50) + 2;
        let mut extra = Vec::new();
        let mut state = 0;
        for _ in 0..4 {
            state += 1;
            desk.set(far, state);
            let mut waited = 0;
            loop {
                for door in &row[..busy] {
                    if *door != far {
                        state += 1;
                        desk.set(*door, state);
                    }
                }
                for door in extra.drain(..) {
                    desk.server.despawn(door).unwrap();
                }
                for _ in 0..churn {
                    extra.push(desk.door_at([1.0; 3]));
                }
                desk.exchange();
                waited += 1;
                let view = desk.server.views(desk.client).find(|view| view.object == Some(far));
                if !view.unwrap().is_dirty {
                    break;
                }
                prop_assert!(waited <= bound, "{waited} ticks of {bound}");
            }
        }
    }

    #[test]
    fn the_same_calls_produce_the_same_bytes(seed in any::<u64>()) {
        let run = || {
            let mut desk = Desk::new(Config { packet_bytes: 512, ..Config::default() });
            let mut sampler = worldwire_core::Sampler::new(seed);
            let mut all = Vec::new();
            let mut doors = Vec::new();
            for _ in 0..60 {
                let mut part = || u32::try_from(sampler.below(30_000)).unwrap();
                let parts = [part(), part(), part()];
                let position = parts.map(f64::from);
                doors.push(desk.door_at(position));
                let picked = doors[usize::try_from(sampler.below(doors.len() as u64)).unwrap()];
                match sampler.below(4) {
                    0 => desk.server.move_to(picked, position).unwrap(),
                    _ => desk.set(picked, parts[0]),
                }
                let (number, section) = desk.flush();
                if sampler.below(3) == 0 { desk.lost(number) } else { desk.delivered(number) }
                all.push(section);
            }
            all
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_create_contains_the_spawned_properties() {
    let mut desk = Desk::new(Config::default());
    let mut properties = Properties::new();
    properties.set(13, vec![0x34, 8, 0, 0]);
    let spawn = Spawn { properties, ..Spawn::new(DOOR) };
    desk.server.spawn(spawn).unwrap();
    let (_, section) = desk.flush();
    let create = "0301000c9f0101cdab0180403408000003000000 00";
    let create = worldwire_core::value::parse_hex(&create.replace(' ', "")).unwrap();
    assert_eq!(section, create);
}
