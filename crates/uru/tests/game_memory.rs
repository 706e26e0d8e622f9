//! Checking and stamping a message that may be forwarded does not allocate.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::alloc::System;

use worldwire_core::{Field, Limits, Sampler, Writer};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::net_message::patch::restamp;
use worldwire_uru::safety::{Rules, check};
use worldwire_uru::types::UnifiedTime;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn passing_messages_do_not_allocate() {
    let (mut inflater, limits) = (Inflater::new(), Limits::DEFAULT);
    let mut good: Vec<Vec<u8>> = Vec::new();
    for seed in 0..3000 {
        let mut writer = Writer::new();
        NetMessage::sample(&mut Sampler::new(seed)).encode(&mut writer).unwrap();
        // The first pass allocates room for inflated payloads.
        if check(writer.as_bytes(), &Rules::PLAYER, &mut inflater, &limits).is_ok() {
            let mut message = writer.into_bytes();
            // Stamping adds a player number to messages without one.
            message.reserve(4);
            good.push(message);
        }
    }
    assert!(good.len() > 500, "{}", good.len());
    let mut passed = 0;
    // From here on, any allocation aborts the program.
    MEMORY.set_limit(MEMORY.allocated()).unwrap();
    for message in &mut good {
        let walked = check(message, &Rules::PLAYER, &mut inflater, &limits).is_ok();
        let time = UnifiedTime { seconds: 1, microseconds: 2 };
        passed += usize::from(walked && restamp(message, time, 3).is_ok());
    }
    MEMORY.set_limit(usize::MAX).unwrap();
    assert_eq!(passed, good.len());
}
