//! `worldwire uru who`, `games`, `message`, `welcome`, `close` and `open`.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value as Json;
use worldwire_server::uru::admin::Request;

use super::account::{ask, kicked_shown};
use crate::cli::{Common, UruShard};
use crate::command::administration::{print_lines, text};
use crate::output::{Failure, counted, print};

/// Lists the clients that are logged in.
pub(crate) fn who(shard: &UruShard, common: &Common) -> Result<(), Failure> {
    let online = ask(&shard.shard, Request::Online, Vec::new())?;
    let openness = ask(&shard.shard, Request::Openness, Vec::new())?;
    if openness.first().is_some_and(|answer| answer["open"] == false) {
        let closed = "closed: only administrators, developers and testers can log in";
        common.note(&shard.shard.to_string_lossy(), closed);
    }
    if shard.json { print_lines(&online) } else { print(&table(&online)) }
}

/// Lists the running games.
pub(crate) fn games(shard: &UruShard) -> Result<(), Failure> {
    let games = ask(&shard.shard, Request::Games, Vec::new())?;
    if shard.json {
        return print_lines(&games);
    }
    let mut out = String::new();
    for game in &games {
        let player = |player: &Json| match player["name"].as_str() {
            Some(name) => format!("{name} ({})", player["id"]),
            None => player["id"].to_string(),
        };
        let players: Vec<_> =
            game["players"].as_array().into_iter().flatten().map(player).collect();
        let _ = writeln!(
            out,
            "{} {}{}  in {} {}  since {}  {}",
            text(&game["game"]),
            game["id"],
            marker_game(game),
            text(&game["age"]),
            text(&game["instance"]),
            game["since"].as_u64().map(since).unwrap_or_default(),
            players.join(", "),
        );
    }
    print(&out)
}

/// The name and template of a marker game: ` "Hunt" 0f1e2d3c-...`.
fn marker_game(game: &Json) -> String {
    match game["template"].as_str() {
        Some(template) => format!("  \"{}\" {template}", text(&game["name"])),
        None => String::new(),
    }
}

/// Shows a message to players.
pub(crate) fn message(
    words: &str,
    age: Option<&str>,
    sender: &str,
    shard: &UruShard,
    common: &Common,
) -> Result<(), Failure> {
    let (sender, age) = (sender.to_owned(), age.map(str::to_owned));
    let request = Request::Message { sender, text: words.to_owned(), age };
    let sent = ask(&shard.shard, request, Vec::new())?;
    let players = sent.first().and_then(|sent| sent["players"].as_u64()).unwrap_or_default();
    common.note("message", &format!("shown to {}", counted(players, "player")));
    if shard.json { print_lines(&sent) } else { Ok(()) }
}

/// Shows or changes the welcome message.
pub(crate) fn welcome(
    message: Option<&str>,
    shard: &UruShard,
    common: &Common,
) -> Result<(), Failure> {
    let request = Request::Welcome { text: message.map(str::to_owned) };
    let answer = ask(&shard.shard, request, Vec::new())?;
    if shard.json {
        return print_lines(&answer);
    }
    match message {
        Some(_) => common.note("welcome", "changed"),
        None => answer.iter().try_for_each(|one| print(&(text(&one["welcome"]) + "\n")))?,
    }
    Ok(())
}

/// Closes the shard to players or opens it.
pub(crate) fn restrict(
    closed: bool,
    kick: bool,
    shard: &UruShard,
    common: &Common,
) -> Result<(), Failure> {
    let answer = ask(&shard.shard, Request::Restrict { closed, kick }, Vec::new())?;
    let kicked = answer.first().and_then(|answer| answer["kicked"].as_array());
    kicked_shown(kicked.map_or(&[], Vec::as_slice), common);
    let done = match closed {
        true => "only administrators, developers and testers can log in now",
        false => "everyone can log in now",
    };
    common.note(&shard.shard.to_string_lossy(), done);
    if shard.json { print_lines(&answer) } else { Ok(()) }
}

/// A moment, given in Unix seconds, in UTC.
pub(super) fn since(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok().and_then(|it| Timestamp::from_second(it).ok());
    moment.map_or_else(|| seconds.to_string(), |it| it.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}

fn table(online: &[Json]) -> String {
    let mut out = String::new();
    for one in online {
        let player = match &one["player"] {
            Json::Null => "no player".to_owned(),
            player => format!("{} ({})", text(&player["name"]), player["id"]),
        };
        let _ = write!(out, "{player}  {}", text(&one["account"]));
        let place = text(&one["place"]);
        if !place.is_empty() {
            let came = one["placeSince"].as_u64().map(|at| format!(" since {}", since(at)));
            let node = one["node"].as_str().map(|node| format!(" at {node}"));
            let [node, came] = [node, came].map(Option::unwrap_or_default);
            let _ = write!(out, "  in {place}{node}{came}");
        }
        let Some(begun) = one["since"].as_u64().map(since) else {
            // The process that served the player has failed.
            out.push_str("  waiting for its client to return\n");
            continue;
        };
        let front = one["front"].as_str().map(|front| format!(" at {front}")).unwrap_or_default();
        let lost = if one["connected"] == true { "" } else { ", connection lost" };
        let _ = writeln!(out, "  online since {begun} from {}{front}{lost}", text(&one["address"]));
    }
    out
}
