//! Fuzz targets for the game manager and its games.

use worldwire_core::json::Style;
use worldwire_core::testing::{Target, decode};
use worldwire_core::{Limits, Reader, Sampler, Side};

use crate::games::message::tables;
use crate::games::{GameMessage, GameScope, GameType};

/// All scopes of messages.
fn scopes() -> impl Iterator<Item = GameScope> {
    let games = GameType::ALL.map(GameScope::Game);
    [GameScope::Manager, GameScope::Unknown].into_iter().chain(games)
}

/// The type of the game and the sender, selected by a byte.
fn choice(byte: u8) -> (Option<GameType>, Side) {
    let sender = if byte & 1 == 0 { Side::Client } else { Side::Server };
    (GameType::ALL.get(usize::from(byte >> 1)).copied(), sender)
}

/// A message of the game that the first byte selects. What was decoded must encode, directly and
/// from its JSON, to bytes that decode to the same message: only uninitialised memory is lost.
fn message(data: &[u8]) {
    let Some((byte, bytes)) = data.split_first() else { return };
    let (game, sender) = choice(*byte);
    let decoded = decode(
        bytes,
        &Limits::DEFAULT,
        Style { safe: true },
        |reader| GameMessage::decode(game, sender, reader),
        |reader| GameMessage::decode(game, sender, reader),
    );
    assert_eq!(decoded.value, decoded.traced, "a trace changed the value");
    let Ok(value) = decoded.value else { return };
    let made = value.to_bytes().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.len(), bytes.len(), "another length");
    let again = GameMessage::decode(game, sender, &mut Reader::new(&made));
    assert_eq!(again.as_ref(), Ok(&value), "decodes to another message");
    let again = GameMessage::from_json(sender, &decoded.json);
    let again = again.and_then(|message| message.to_bytes());
    assert_eq!(again.as_deref(), Ok(&*made), "JSON encodes to other bytes: {}", decoded.json);
}

/// One of every message, in several generated variants.
fn messages() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for scope in scopes() {
        for side in Side::BOTH {
            for info in tables(scope, side).into_iter().flatten() {
                for seed in 0..2 {
                    let mut sampler = Sampler::new(seed * 1000 + u64::from(info.number));
                    let message = GameMessage::sample(scope, side, info.number, &mut sampler);
                    let Some(bytes) = message.and_then(|message| message.to_bytes().ok()) else {
                        continue;
                    };
                    let game = (0..).zip(GameType::ALL).find(|it| GameScope::Game(it.1) == scope);
                    let game = game.map_or(7, |(number, _)| number);
                    let byte = game << 1 | u8::from(side == Side::Server);
                    seeds.push([&[byte][..], &bytes].concat());
                }
            }
        }
    }
    seeds
}

pub(super) static TARGETS: &[Target] =
    &[Target { name: "uru_game_manager_message", run: message, seeds: messages }];
