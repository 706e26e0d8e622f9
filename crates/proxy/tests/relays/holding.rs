//! Messages that are held for a long time, and floods after them.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_proxy::fuzzing::relayed::{Choices, FAMILIES, MXO_LOGIN, MakeWorld, Play, Rates};

const MINUTE: Duration = Duration::from_secs(60);
/// Enough seeds for every kind of conversation of a family.
const KINDS: u64 = 12;

/// A conversation in which a message of a side is held at a breakpoint.
fn held(family: MakeWorld, seed: u64, from: Side) -> Play {
    let mut choices = Choices::seeded(seed);
    let world = family(&mut choices);
    let mut play = Play::new(world, choices, Rates::PAUSE);
    while play.exchange().held().is_empty() {
        play.say_one(from);
        play.advance(Duration::from_millis(100));
    }
    play.set_rates(Rates::NONE);
    play
}

/// Holds a message of each side for an hour. The other side keeps talking. So does the held side if
/// `talks` is true. The model checks that the other direction flows and that later messages wait;
/// an end that misses a keep-alive fails the play.
fn hold_for_an_hour(family: MakeWorld, talks: bool) {
    const MAX_KEPT: usize = 1 << 20;
    for seed in 0..KINDS {
        for from in Side::BOTH {
            let mut play = held(family, seed, from);
            let number = play.exchange().held()[0].id;
            for _ in 0..60 {
                if talks {
                    play.say_one(from);
                }
                play.say_one(from.other());
                play.advance(MINUTE);
                assert_eq!(play.exchange().held()[0].id, number);
                assert!(play.exchange().kept_bytes(from) < MAX_KEPT);
                assert!(!play.exchange().is_paused(from.other()));
            }
            assert!(play.now() > 60 * MINUTE);
            play.finish();
        }
    }
}

/// Keeps sending after a held message until the proxy stops reading. Everything arrives later.
fn flood(family: MakeWorld) {
    const MAX_MESSAGES: usize = 5_000;
    // The limit on kept bytes, plus one message.
    const MAX_KEPT: usize = (8 << 20) + (64 << 10);
    for seed in 0..KINDS {
        let mut play = held(family, seed, Side::Client);
        let mut sent = 0;
        while !play.exchange().is_paused(Side::Client) {
            play.say_one(Side::Client);
            play.drain();
            sent += 1;
            assert!(sent < MAX_MESSAGES, "the proxy keeps reading");
        }
        let kept = play.exchange().kept_bytes(Side::Client);
        assert!(kept < MAX_KEPT);
        for _ in 0..20 {
            play.say_one(Side::Client);
            play.say_one(Side::Server);
            play.advance(Duration::from_millis(100));
        }
        assert_eq!(play.exchange().kept_bytes(Side::Client), kept);
        play.finish();
    }
}

#[test]
fn a_ki_connection_survives_an_hour_of_holding() {
    hold_for_an_hour(FAMILIES[0], true);
}

/// An MxO end repeats unacknowledged messages, each time in a different packet, and its own bounds
/// limit what it sends meanwhile. So only the other end talks.
#[test]
fn an_mxo_connection_survives_an_hour_of_holding() {
    hold_for_an_hour(FAMILIES[1], false);
}

#[test]
fn a_tera_connection_survives_an_hour_of_holding() {
    hold_for_an_hour(FAMILIES[2], true);
}

#[test]
fn an_uru_connection_survives_an_hour_of_holding() {
    hold_for_an_hour(FAMILIES[3], true);
}

/// MxO's ends have at most 64 packets with reliable messages in flight.
#[test]
fn a_flood_behind_a_held_message_pauses_reading() {
    for family in [FAMILIES[0], FAMILIES[2], FAMILIES[3], MXO_LOGIN] {
        flood(family);
    }
}
