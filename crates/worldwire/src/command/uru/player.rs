//! `worldwire uru player`.

use worldwire_server::uru::admin::Request;

use super::account::ask;
use crate::cli::{Common, UruPlayer};
use crate::command::administration::{print_lines, text};
use crate::output::{Failure, counted};

pub(crate) fn run(command: &UruPlayer, common: &Common) -> Result<(), Failure> {
    let UruPlayer::Rename { player, name, shard } = command;
    let request = Request::RenamePlayer { who: player.clone(), name: name.clone() };
    let renamed = ask(&shard.shard, request, Vec::new())?;
    for one in &renamed {
        let (old, new) = (text(&one["old"]), text(&one["new"]));
        let mut done = format!("renamed to {new}");
        if let Some(count @ 1..) = one["ages"].as_array().map(Vec::len) {
            done.push_str(&format!(", with {}", counted(count, "age")));
        }
        if one["online"] == true {
            done.push_str("; the player's client shows the old name until the next login");
        }
        common.note(&old, &done);
    }
    if shard.json { print_lines(&renamed) } else { Ok(()) }
}
