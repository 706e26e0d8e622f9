//! A relay that holds pieces.

use std::sync::LazyLock;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Connection as _};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::{Conditions, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_uru::connection::{ClientConfig, Connection, RelayKeys};
use worldwire_uru::frame::{Message, Service, table};

use crate::ends::{KEYS, key_kind, open_config, server_of};
use crate::relay::relay_of;

/// The number of messages for each side, numbered from 0.
const NUMBERS: u8 = 64;

type Sample = (Message<'static>, Vec<u8>);

/// For each side, a message for every number, with the message's bytes.
static MESSAGES: LazyLock<[Vec<Sample>; 2]> = LazyLock::new(|| {
    Side::BOTH.map(|side| {
        let all = table(Service::Auth, side).messages.iter().filter(|info| info.number != 0);
        let mut samples = all.map(|info| samples(side, info.number));
        samples.find(|samples| is_distinct(samples)).expect("some message has that many values")
    })
});

fn samples(side: Side, number: u32) -> Vec<Sample> {
    let sample = |seed: u8| {
        let mut sampler = Sampler::new(seed.into());
        let message = Message::sample(Service::Auth, side, number, &mut sampler).unwrap();
        let bytes = message.to_bytes().unwrap();
        (message, bytes)
    };
    (0..NUMBERS).map(sample).collect()
}

fn is_distinct(samples: &[Sample]) -> bool {
    let mut bytes: Vec<_> = samples.iter().map(|(_, bytes)| bytes).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes.len() == samples.len() && bytes.iter().all(|bytes| bytes.len() < 1000)
}

fn pair(encrypted: bool, bounds: Bounds) -> Pair<Connection> {
    let key = KEYS.public(key_kind(Service::Auth)).filter(|_| encrypted).cloned();
    let config = ClientConfig::new(Service::Auth, key);
    let client = Connection::client(config.into(), [0x5a; 64], Duration::ZERO).unwrap();
    let mut config = open_config();
    config.answer_pings = true;
    let latency = Duration::from_millis(20);
    let conditions = Conditions { latency, segment: 70, seed: 1, ..Conditions::default() };
    let relay = relay_of(RelayKeys::Shared(KEYS.clone()), bounds);
    let mut pair = Pair::relayed(client, relay, server_of(config, Duration::ZERO), conditions);
    pair.settle(|_, _, _| {});
    assert!(pair.client.is_established() && pair.server.is_established());
    pair
}

#[test]
fn held_pieces_follow_the_contract() {
    for encrypted in [false, true] {
        check(&Family {
            pair: &|bounds| pair(encrypted, bounds),
            say: &|end, side, number| {
                end.send(&MESSAGES[side.index()][usize::from(number)].0).unwrap();
            },
            number: &|side, bytes| {
                let found = MESSAGES[side.index()].iter().position(|(_, it)| it == bytes);
                found.and_then(|index| u8::try_from(index).ok())
            },
            replacement: &|side, _, number| MESSAGES[side.index()][usize::from(number)].1.clone(),
            patience: Duration::from_secs(1800),
        });
    }
}
