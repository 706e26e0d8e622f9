//! How many messages a second pass through rules, in the sample conversations of TERA and Uru:
//! without rules, with a rule that names another message, and with rules on every message.
//!
//! `relay` is a whole proxy: decrypt, frame, decide, encrypt. Its difference to `none` is the cost of
//! the rules.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use divan::Bencher;
use divan::counter::ItemsCount;

#[path = "../tests/rules/samples.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with tests")]
mod samples;

use samples::{Sample, tera, uru};

fn main() {
    divan::main();
}

/// The rules that are compared.
const RULES: [(&str, &str); 5] = [
    ("none", ""),
    ("other", "when tera.S_SPAWN_NPC or auth.VaultNodeSave { drop }"),
    ("filter", "when * and transId == 4711 or channel == 4711 { drop }"),
    ("set", SET),
    ("log", "when * { log \"{name} {message.length}\" }"),
];

/// Sets a field of every message that has one.
const SET: &str = "when C_CHAT or S_CHAT { set message = \"Hello, too!\" }\n\
    when C_START_SKILL { set w = 0.25 }\n\
    when S_SPAWN_USER { set alive = false }\n\
    when S_LOGIN_ACCOUNT_INFO { set accountId = accountId + 1 }\n\
    when C_LOGIN_ARBITER or auth.AcctLoginRequest { set fields.name = \"x\" }\n\
    when *.PingRequest or *.PingReply { set pingTimeMs = 7 }\n\
    when *.*Reply { set transId = 9 }\n";

#[divan::bench(name = "tera/relay", args = RULES.map(|(name, _)| name), sample_count = 40)]
fn tera_relay(bencher: Bencher<'_, '_>, rules: &str) {
    measure(bencher, &tera(), rules);
}
