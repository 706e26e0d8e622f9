//! Messages are changed, dropped, held and added at random. Both ends receive exactly what a model
//! says, however streams are split and whatever a bad network does.

use worldwire_proxy::fuzzing::relayed::{Choices, FAMILIES, MXO_LOGIN, MakeWorld, Play, Rates};

/// The number of conversations of each family: `$WORLDWIRE_RELAY_RUNS`, or 250.
fn runs() -> u64 {
    let runs = std::env::var("WORLDWIRE_RELAY_RUNS").ok().and_then(|runs| runs.parse().ok());
    runs.unwrap_or(250)
}

fn relay(family: MakeWorld) {
    const STEPS: usize = 60;
    for seed in 0..runs() {
        let outcome = std::panic::catch_unwind(|| {
            let mut choices = Choices::seeded(seed);
            let world = family(&mut choices);
            let rates = if seed % 4 == 3 { Rates::BUSY } else { Rates::USUAL };
            let mut play = Play::new(world, choices, rates);
            play.steps(STEPS, seed % 8 == 7);
            play.finish();
        });
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn ki() {
    relay(FAMILIES[0]);
}

#[test]
fn mxo() {
    relay(FAMILIES[1]);
}

#[test]
fn mxo_login() {
    relay(MXO_LOGIN);
}

#[test]
fn tera() {
    relay(FAMILIES[2]);
}

#[test]
fn uru() {
    relay(FAMILIES[3]);
}
