//! The coverage-guided fuzzer: one program for all targets, which takes the name of the target from
//! `$WORLDWIRE_FUZZ_TARGET` and libFuzzer's arguments from the command line.

#![no_main]

use std::sync::LazyLock;

use worldwire_core::testing::Target;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("WORLDWIRE_FUZZ_TARGET").unwrap_or_default();
    worldwire_fuzz::find(&name).unwrap_or_else(|why| {
        eprintln!("WORLDWIRE_FUZZ_TARGET: {why}");
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&TARGET); }, |data: &[u8]| (TARGET.run)(data));
