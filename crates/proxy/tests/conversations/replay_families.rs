//! Replays of every family.

use worldwire_core::Side;

use crate::replay::{Played, Terms, play};
use crate::samples::{Sample, ki, mxo, tera, uru, uru_age};

const DIFFERENT: Terms = Terms {
    rules: "",
    account: None,
    pace: worldwire_proxy::replay::Pace::Fast,
    ignored: None,
    seed: 11,
};

/// Plays both sides, which must both complete.
fn complete(sample: &Sample, capture: &str, stream: u64, client: &Terms) -> Played {
    let played = play(sample, capture, stream, [client, &DIFFERENT]);
    for side in Side::BOTH {
        let summary = played.summary(side);
        println!("{capture} {stream} {side}: {summary}");
    }
    played
}

#[test]
fn uru_conversations_are_replayed() {
    for stream in 0..4 {
        complete(&uru(), "uru-login.pcapng", stream, &Terms::default());
    }
    complete(&uru_age(), "uru-age.pcapng", 1, &Terms::default());
}

#[test]
fn ki_conversations_are_replayed() {
    let terms = Terms { account: Some(("merle", "secret")), ..Terms::default() };
    complete(&ki(), "ki-login.pcapng", 0, &terms);
    complete(&ki(), "ki-login.pcapng", 1, &terms);
    complete(&ki(), "ki-login.pcapng", 2, &terms);
}

#[test]
fn tera_conversations_are_replayed() {
    complete(&tera(), "tera-login.pcapng", 0, &Terms::default());
}

#[test]
fn mxo_conversations_are_replayed() {
    complete(&mxo(), "mxo-world.pcapng", 0, &Terms::default());
}
