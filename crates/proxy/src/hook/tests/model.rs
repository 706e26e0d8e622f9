//! Random answers in random order, compared with what each side must receive.

use core::time::Duration;
use std::collections::BTreeMap;

use worldwire_core::json::{Json, json};
use worldwire_core::{Sampler, Side};

use super::{Player, World, hex, number};

/// A message on its way, and the decision on it.
struct Sent {
    from: Side,
    number: u32,
    is_dropped: bool,
    /// What is added before it, by hook.
    added: Vec<(Side, u32)>,
}

#[test]
fn both_sides_receive_what_the_hooks_decided() {
    for seed in 0..60 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut sampler = Sampler::new(seed);
    let mut world = World::new(false);
    let players = [
        world.hook("a", json!([{"id": "all", "silenced": null}])),
        world.hook("b", json!([{"id": "some", "filter": "pingTimeMs >= 1000", "silenced": null}])),
        world.hook("c", json!([{"id": "all", "from": "client"}])),
    ];
    // The hook, the question and the message's index, for each question that is not answered yet.
    let mut open: Vec<(usize, Json, usize)> = Vec::new();
    let mut sent: Vec<Sent> = Vec::new();
    // The index of each message by its current number, which hooks change.
    let mut current: BTreeMap<u32, usize> = BTreeMap::new();
    let mut fresh = 0;
    let mut next = |sampler: &mut Sampler| {
        fresh += 1;
        // About half of the numbers concern the second hook.
        fresh + if sampler.below(2) == 0 { 0 } else { 100_000 }
    };
    for _ in 0..200 {
        if sampler.below(3) == 0 && sent.len() < 40 {
            let from = if sampler.below(2) == 0 { Side::Client } else { Side::Server };
            let number = next(&mut sampler);
            current.insert(number, sent.len());
            sent.push(Sent { from, number, is_dropped: false, added: Vec::new() });
            world.send(from, number);
        } else if !open.is_empty() {
            let at = usize::try_from(sampler.below(open.len() as u64)).unwrap();
            let (player, message, index) = open.swap_remove(at);
            let message_of = &mut sent[index];
            let mut what = match sampler.below(6) {
                0 => {
                    message_of.is_dropped = true;
                    json!({"do": "drop"})
                }
                1 => json!({"do": "pass"}),
                2 => {
                    message_of.is_dropped = false;
                    json!({"do": "forward"})
                }
                3 => {
                    message_of.number = next(&mut sampler);
                    message_of.is_dropped = false;
                    current.insert(message_of.number, index);
                    json!({"do": "replace", "fields": {"pingTimeMs": message_of.number}})
                }
                4 => {
                    message_of.number = next(&mut sampler);
                    message_of.is_dropped = false;
                    current.insert(message_of.number, index);
                    json!({"do": "replace", "bytes": hex(message_of.number)})
                }
                _ => {
                    open.push((player, message.clone(), index));
                    json!({"do": "hold"})
                }
            };
            if what["do"].as_str() != Some("hold") && sampler.below(3) == 0 {
                let (to, number) = (message_of.from.other(), next(&mut sampler));
                message_of.added.push((to, number));
                what["add"] = json!([{"to": to.name(), "bytes": hex(number)}]);
            }
            world.answer(&players[player], &message, what);
        }
        collect(&players, &current, &mut open);
        world.wait(Duration::from_micros(1));
    }
    while let Some((player, message, _)) = open.pop() {
        world.answer(&players[player], &message, json!({"do": "pass"}));
        collect(&players, &current, &mut open);
    }
    for side in Side::BOTH {
        let mut expected = Vec::new();
        for message in sent.iter().filter(|message| message.from == side.other()) {
            expected.extend(message.added.iter().map(|(_, number)| *number));
            expected.extend((!message.is_dropped).then_some(message.number));
        }
        assert_eq!(world.received(side), expected, "seed {seed}, {side:?}");
    }
    assert!(world.problems().is_empty(), "seed {seed}");
    let errors: Vec<String> = players.iter().flat_map(Player::errors).collect();
    assert_eq!(errors, Vec::<String>::new(), "seed {seed}");
}

/// Removes the messages that hooks have been sent.
fn collect(
    players: &[Player],
    current: &BTreeMap<u32, usize>,
    open: &mut Vec<(usize, Json, usize)>,
) {
    for (player, of) in players.iter().enumerate() {
        for line in of.lines() {
            let index = current[&number(&line)];
            open.push((player, line, index));
        }
    }
}
