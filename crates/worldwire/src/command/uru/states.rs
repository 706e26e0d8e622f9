//! `worldwire uru clear-states`.

use serde_json::Value as Json;
use worldwire_server::uru::admin::Request;

use super::account::{ask, print_lines};
use crate::cli::{Common, UruShard};
use crate::output::Failure;

/// Clears the stored states of an age.
pub(crate) fn clear(
    age: &str,
    with_age: bool,
    shard: &UruShard,
    common: &Common,
) -> Result<(), Failure> {
    let request = Request::ClearStates { age: age.to_owned(), own_state: with_age };
    let cleared = ask(&shard.shard, request, Vec::new())?;
    for one in &cleared {
        let count = one["states"].as_u64().unwrap_or_default();
        let own = match (with_age, one["ownState"] == true) {
            (true, true) => ", and that of the age",
            (true, false) => "; the age itself had no state",
            (false, _) => "",
        };
        let plural = if count == 1 { "" } else { "s" };
        let text = format!("{count} object state{plural} cleared{own}");
        common.note(&title(one), &text);
    }
    if shard.json { print_lines(&cleared) } else { Ok(()) }
}

/// `DRC(1) Hood (10031)`.
fn title(cleared: &Json) -> String {
    let name = cleared["name"].as_str().unwrap_or_default();
    format!("{name} ({})", cleared["age"])
}
