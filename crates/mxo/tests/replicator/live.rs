//! The replicator over this crate's connections, on a wire that loses, repeats and reorders
//! datagrams.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, News, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::message::Rules;
use worldwire_mxo::replica::Replica;
use worldwire_mxo::replicator::{ClientId, Config, Replicator, Spawn};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::Value;

use crate::desk::DOOR;

const TICK: Duration = Duration::from_millis(50);

struct Live {
    pair: Pair<Connection>,
    server: Replicator,
    client: ClientId,
    replica: Replica,
}

impl Live {
    fn new(conditions: Conditions) -> Self {
        let epoch = Duration::from_secs(1_248_965_312);
        let session = |seed| Session::new(0x1234, SessionKey::new(&[7; 16]), &seed);
        let client = Connection::client(ClientConfig::new(epoch, 2), session([2; 16]), TICK);
        let machine = Connection::server(ServerConfig::new(epoch), session([1; 16]), TICK);
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(Arc::clone(&objects), Config::default()).unwrap();
        let id = server.join().unwrap();
        server.look_from(id, [0.0; 3]).unwrap();
        let pair = Pair::new(client, machine, conditions);
        Self { pair, server, client: id, replica: Replica::new(objects) }
    }

    fn tick(&mut self) {
        let Self { pair, server, client, replica } = self;
        pair.run_until(pair.now + TICK, |member, event, _| match (member, event) {
            (Member::Client, Event::Received(piece)) => {
                if let Unit::Section { id: 3, .. } = piece.unit {
                    // The bytes include the section's ID.
                    let read = replica.receive(piece.bytes, Side::Server, Rules::STRICT);
                    assert_eq!(read.unwrap().0, piece.bytes.len());
                }
            }
            (Member::Server, Event::News(News::Delivered(number) | News::Late(number))) => {
                server.delivered(*client, number.0).unwrap();
            }
            (Member::Server, Event::News(News::Lost(number))) => {
                server.lost(*client, number.0).unwrap();
            }
            _ => {}
        });
        server.tick(pair.now);
        if !pair.server.is_established() {
            return;
        }
        let mut section = Vec::new();
        while server.poll(*client, &mut section).unwrap() {
            // Sections that cannot be sent now are polled again.
            let Ok(number) = pair.server.sender().send_objects(&section, None) else { break };
            server.sent(*client, number.0).unwrap();
            section.clear();
        }
    }
}

#[test]
fn a_client_on_a_bad_wire_receives_everything() {
    for seed in 0..6 {
        let conditions = Conditions {
            latency: Duration::from_millis(60),
            datagrams: true,
            loss: 300,
            duplication: 100,
            reordering: 300,
            seed,
            ..Conditions::default()
        };
        let mut live = Live::new(conditions);
        let mut sampler = Sampler::new(seed);
        let mut doors = Vec::new();
        for round in 0..400 {
            for _ in 0..sampler.below(3) {
                let picked = usize::try_from(sampler.below(30)).unwrap();
                match doors.get(picked) {
                    None => doors.push(live.server.spawn(Spawn::new(DOOR)).unwrap()),
                    Some(door) if sampler.below(8) == 0 => {
                        live.server.despawn(*door).unwrap();
                        doors.swap_remove(picked);
                    }
                    Some(door) => {
                        let state = Value::Unsigned(round);
                        live.server.set_value(*door, "CurrentState", &state).unwrap();
                    }
                }
            }
            live.tick();
        }
        let mut rounds = 0;
        while rounds < 100 || !live.server.is_settled(live.client).unwrap() {
            live.tick();
            rounds += 1;
            assert!(rounds < 4_000, "still not at rest");
        }
        assert_eq!(live.replica.len(), doors.len());
        let state = live.server.property(DOOR, "CurrentState").unwrap();
        for view in live.server.views(live.client) {
            let held = live.server.value(view.object.unwrap(), state);
            let held = held.and_then(|held| Some(u32::from_le_bytes(held.try_into().ok()?)));
            let seen = live.replica.view(view.id).unwrap().value("CurrentState");
            assert_eq!(seen, held.map(Value::Unsigned), "view {}", view.id);
        }
    }
}
