//! `worldwire uru clear-states`.

use worldwire_server::uru::admin::Request;

use super::account::ask;
use crate::cli::{Common, UruShard};
use crate::command::administration::print_lines;
use crate::output::{Failure, counted};

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
        let count = counted(one["states"].as_u64().unwrap_or_default(), "object state");
        let own = match (with_age, one["ownState"] == true) {
            (true, true) => ", and the age's own state",
            (true, false) => "; the age itself had no state",
            (false, _) => "",
        };
        // `DRC(1) Hood (10031)`.
        let title = format!("{} ({})", one["name"].as_str().unwrap_or_default(), one["age"]);
        common.note(&title, &format!("{count} cleared{own}"));
    }
    if shard.json { print_lines(&cleared) } else { Ok(()) }
}
