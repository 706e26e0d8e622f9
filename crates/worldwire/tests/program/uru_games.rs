//! Headless clients play the games of a shard.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::client::{Serving, command, good, serve_at, typed};

/// A shard that serves games, with two players.
fn shard(folder: &Path, games: &str) -> Serving {
    fs::create_dir_all(folder.join("shard")).unwrap();
    fs::write(folder.join("shard/shard.toml"), format!("[games]\n{games}")).unwrap();
    let serving = serve_at(folder, &["worldwire", "serve", "uru"], 0);
    for name in ["ann", "bob"] {
        let account = format!("{name}@example.org");
        good(typed(command(folder, &["worldwire", "uru", "account", "add", &account])));
    }
    good(player(folder, "ann", "", "create-player Ann female").wait_with_output().unwrap());
    good(player(folder, "bob", "", "create-player Bob male").wait_with_output().unwrap());
    serving
}

/// Starts a client that logs in and then runs these steps. Words with spaces are in double quotes.
fn player(folder: &Path, name: &str, options: &str, steps: &str) -> Child {
    let account = format!("{name}@example.org");
    let mut words = vec!["worldwire", "client", "uru", "shard", "--account", &account];
    words.extend(options.split_whitespace());
    words.extend(["login", "+"]);
    let parts: Vec<&str> = steps.split('"').collect();
    for (at, part) in parts.iter().enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    let mut command = command(folder, &words);
    command.env("WORLDWIRE_PASSWORD", "secret").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The lines that a client prints in the city.
fn in_city(folder: &Path, name: &str, steps: &str) -> Vec<Json> {
    let player = begin(folder, name, steps);
    lines(&good(player.wait_with_output().unwrap()))
}

fn begin(folder: &Path, name: &str, steps: &str) -> Child {
    let player_name = if name == "ann" { "Ann" } else { "Bob" };
    player(folder, name, "--json", &format!("set-player {player_name} + enter city + {steps}"))
}

fn lines(printed: &str) -> Vec<Json> {
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of a message or step.
fn of<'l>(lines: &'l [Json], key: &str, name: &str) -> Vec<&'l Json> {
    lines.iter().filter(|line| line[key] == name).collect()
}

/// Runs a client in the city, which must fail, and returns its errors.
fn fails(folder: &Path, name: &str, steps: &str) -> String {
    let output = begin(folder, name, steps).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

const ALL: &str = "blue_spiral = true\nheek = true\nmarker = true\nvar_sync = true\n";

#[test]
fn players_open_a_door_share_variables_and_play_heek() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _serving = shard(folder, ALL);

    let seen = in_city(folder, "ann", "join-game blue-spiral + solve-door + games");
    let order = &of(&seen, "seen", "BlueSpiral.ClothOrder")[0]["order"];
    let solved = of(&seen, "step", "solve-door");
    let last = solved.last().unwrap();
    assert_eq!((&last["pressed"], &last["won"]), (order, &json!(true)));
    assert_eq!(of(&seen, "seen", "BlueSpiral.SuccessfulHit").len(), 7);
    let games = of(&seen, "step", "games");
    assert!(games.iter().any(|it| it["type"] == "heek" && it["announced"] == true));
    assert!(games.iter().any(|it| it["type"] == "climbing-wall" && it["announced"] == false));
    assert!(games.iter().any(|it| it["type"] == "blue-spiral" && it["game"] == last["game"]));
    let said = fails(folder, "ann", "join-game climbing-wall");
    assert!(said.contains("the shard does not announce ClimbingWall"), "{said}");
    let said = fails(folder, "ann", "press-cloth 1");
    assert!(said.contains("press-cloth: not in a BlueSpiral game"), "{said}");

    // Ann owns the variables as long as she stays, and sees what Bob does.
    let steps = "join-game var-sync + create-var QuabRun1 1.5 + create-var motto Shorah \
                 + set-var QuabRun1 -2 + join-game heek + sit 0 + play-round rock + play-round rock \
                 + play-round rock + stand-up + leave-game heek + vars + wait 60";
    let mut ann = begin(folder, "ann", steps);
    let mut sees = BufReader::new(ann.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let mut until = |name: &str| {
        while seen.last().is_none_or(|line: &Json| line["seen"] != name && line["step"] != name) {
            let line = sees.next().expect(name).unwrap();
            seen.push(serde_json::from_str(&line).unwrap());
        }
        seen.clone()
    };
    until("sit");
    let steps = "join-game var-sync + vars + join-game heek + sit 1 + play-round scissors \
                 + play-round scissors + play-round scissors + leave-game var-sync";
    let bob = in_city(folder, "bob", steps);
    let vars = of(&bob, "step", "vars");
    assert_eq!(*vars[0], json!({"step": "vars", "var": 1, "name": "QuabRun1", "value": -2.0}));
    assert_eq!(*vars[1], json!({"step": "vars", "var": 2, "name": "motto", "value": "Shorah"}));
    let rounds = |lines: &[Json]| -> Vec<Json> {
        let rounds = of(lines, "step", "play-round").into_iter();
        let rounds = rounds.filter(|line| line["seen"].is_null());
        rounds.map(|line| json!([line["win"], line["points"]])).collect()
    };
    assert_eq!(rounds(&bob), [json!([false, 99]), json!([false, 99]), json!([false, 99])]);
    let ann_saw = until("vars");
    assert_eq!(rounds(&ann_saw), [json!([true, 99]), json!([true, 99]), json!([true, 101])]);
    assert!(!of(&ann_saw, "seen", "Heek.Goodbye").is_empty());
    // Bob's player cannot set her variables.
    let said = fails(folder, "bob", "join-game var-sync + set-var motto mine");
    assert!(said.contains("set-var: only the owner of the game can do this: player "), "{said}");
    let _ = ann.kill();
    let _ = ann.wait();
}

#[test]
fn a_marker_game_is_created_sent_and_hunted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let serving = shard(folder, ALL);
    let players = good(player(folder, "bob", "--json", "players").wait_with_output().unwrap());
    let bob = lines(&players).iter().find_map(|line| line["id"].as_u64()).unwrap();
    let steps = format!(
        "create-marker-game \"The Hunt\" + add-marker 12.5 -3 0 \"by the fountain\" \
         + add-marker 0 0 1 gone + add-marker 1 2 3 \"in the library\" \
         + rename-marker 0 \"in the fountain\" + delete-marker 1 + limit-marker-game 60000 \
         + play-markers + play-markers + capture-marker 2 + markers + send-node made {bob}"
    );
    let ann = in_city(folder, "ann", &steps);
    let created = of(&ann, "step", "create-marker-game");
    let template = created.last().unwrap()["template"].as_str().unwrap();
    assert_eq!(template.len(), 36);
    let marker = |id: u32, name: &str, position: [f64; 3], captured: bool| {
        json!({
            "step": "markers", "marker": id, "name": name, "age": "city", "position": position,
            "captured": captured,
        })
    };
    let fountain = |captured| marker(0, "in the fountain", [12.5, -3.0, 0.0], captured);
    let library = |captured| marker(2, "in the library", [1.0, 2.0, 3.0], captured);
    let listed =
        |lines: &[Json]| of(lines, "step", "markers").into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(listed(&ann), [fountain(false), library(true)]);
    // A second start is not answered, so its line contains only an outcome.
    assert_eq!(of(&ann, "step", "play-markers")[1]["outcome"], "ok");

    // Bob has the game in the inbox, but cannot change it.
    let steps = "open-marker-game \"The Hunt\" + markers + capture-marker 0 + pause-markers";
    let bob = in_city(folder, "bob", steps);
    assert_eq!(listed(&bob), [fountain(false), library(false)]);
    assert_eq!(of(&bob, "seen", "Marker.MarkerCaptured").len(), 1);
    let begun = Instant::now();
    let said =
        fails(folder, "bob", &format!("open-marker-game {template} + rename-marker-game Mine"));
    assert!(said.ends_with("only the creator of a marker game can change it\n"), "{said}");
    // Other requests may take a minute.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    for (steps, part) in [
        ("capture-marker 0", "capture-marker: marker 0 has already been captured"),
        ("capture-marker 7", "capture-marker: the game has no marker 7"),
    ] {
        let said = fails(folder, "bob", &format!("open-marker-game {template} + {steps}"));
        assert!(said.contains(part), "{said}");
    }
    let said = fails(folder, "bob", "open-marker-game Nothing");
    assert!(
        said.contains("no marker game has this name: refused with VaultNodeNotFound"),
        "{said}"
    );

    // A second game with the same name, distinguishable only by its template.
    let ann = in_city(folder, "ann", "create-marker-game \"The Hunt\" + add-marker 0 0 0 x");
    let other = of(&ann, "step", "create-marker-game").last().unwrap()["template"].clone();
    let other = other.as_str().unwrap();
    let said = fails(folder, "ann", "open-marker-game \"The Hunt\"");
    let problem = "2 marker games are named \"The Hunt\"; open one by its template: ";
    assert!(said.contains(problem) && said.contains(template) && said.contains(other), "{said}");
    let steps = format!("open-marker-game {template} + open-marker-game {other} + wait 60");
    let mut playing = begin(folder, "ann", &steps);
    let mut sees = BufReader::new(playing.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let is_open = |line: &str| {
            let line: Json = serde_json::from_str(line).unwrap();
            line["step"] == "open-marker-game" && line["template"].is_string()
        };
        assert!(sees.any(|line| is_open(&line.unwrap())));
    }
    let running = good(command(folder, &["worldwire", "uru", "games"]).output().unwrap());
    for template in [template, other] {
        assert!(running.contains(&format!("  \"The Hunt\" {template}  in city ")), "{running}");
    }
    let json = good(command(folder, &["worldwire", "uru", "games", "--json"]).output().unwrap());
    assert!(lines(&json).iter().all(|game| game["name"] == "The Hunt"), "{json}");
    assert!(lines(&json).iter().any(|game| game["template"] == other), "{json}");
    let _ = playing.kill();
    let _ = playing.wait();
    in_city(folder, "ann", &format!("open-marker-game {other} + rename-marker-game Another"));

    // Everything survives a restart.
    drop(serving);
    let _serving = serve_at(folder, &["worldwire", "serve", "uru"], 0);
    let steps = format!("open-marker-game {template} + markers + reset-markers + markers");
    let bob = in_city(folder, "bob", &steps);
    assert_eq!(listed(&bob), [fountain(true), library(false), fountain(false), library(false)]);
    // The node still has the old name.
    let steps = format!(
        "open-marker-game {template} + rename-marker-game \"An old hunt\" + markers \
         + delete-marker-game + games"
    );
    let ann = in_city(folder, "ann", &steps);
    assert_eq!(listed(&ann), [fountain(false), library(true)]);
    assert_eq!(of(&ann, "seen", "Marker.GameNameChanged").last().unwrap()["name"], "An old hunt");
    assert!(of(&ann, "step", "games").iter().all(|line| line["game"].is_null()));
}

#[test]
fn a_shard_without_games_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _serving = shard(folder, "");
    for step in ["join-game heek", "create-marker-game x", "solve-door"] {
        let said = fails(folder, "ann", step);
        let wanted = match step {
            "solve-door" => "not in a BlueSpiral game",
            _ => "its operator must enable the game under [games] in shard.toml",
        };
        assert!(said.contains(wanted), "{said}");
    }
    let words = ["worldwire", "client", "uru", "shard", "--count", "2", "join-game", "heek"];
    let output = command(folder, &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "worldwire: step `join-game` does not work with --count\n");
}

/// The recipes for games in the guide.
#[test]
fn the_guide_recipes_work() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shard.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, chapter) = guide.split_once("### Playing games\n").unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let blocks: Vec<&str> =
        chapter.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let (_, games) = guide.split_once("## Small games\n").unwrap();
    let toml = games.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _serving = shard(folder, toml.strip_prefix("[games]\n").unwrap());
    let run = |line: &str| {
        let rest = line.split_once(" login + ").unwrap_or_else(|| panic!("{line}")).1;
        let name = if line.contains("--account ann@") { "ann" } else { "bob" };
        player(folder, name, "", rest)
    };
    let done = |child: Child| good(child.wait_with_output().unwrap());
    let [door, table, variables, hunt] = &blocks[..] else { panic!("{blocks:?}") };
    let printed = done(run(door.trim()));
    assert!(printed.ends_with("won true\n"), "{printed}");
    let [ann, bob] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
    let ann = run(ann);
    let printed = done(run(bob));
    assert!(printed.contains("  win false\n"), "{printed}");
    assert!(done(ann).contains("  win true\n"));
    let printed = done(run(variables.trim()));
    assert!(printed.contains("name QuabRun1  value 2.0  var 1\n"), "{printed}");
    let [creates, hunts] = hunt.lines().collect::<Vec<_>>()[..] else { panic!("{hunt}") };
    done(run(creates));
    let printed = done(run(hunts));
    assert!(printed.contains("captured true") && printed.contains("captured false"), "{printed}");
}
