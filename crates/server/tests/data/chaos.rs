//! Acknowledged changes survive `kill -9`.
//!
//! A child process writes under load and prints every acknowledged change. It is killed at some
//! point; every printed change must be in the database. `WORLDWIRE_CHAOS_ROUNDS=N` runs N rounds
//! over SQLite and a fifth of that over PostgreSQL; a plain `cargo test` runs a few.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use worldwire_server::store;
use worldwire_server::uru::SQLITE_FILE;
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::support::child::{self, say};
use crate::support::{Database, encoded, key, log_in};

const FOLDER: &str = "WORLDWIRE_CHAOS_FOLDER";
const URL: &str = "WORLDWIRE_CHAOS_URL";
const ROUND: &str = "WORLDWIRE_CHAOS_ROUND";
const ROUNDS: &str = "WORLDWIRE_CHAOS_ROUNDS";
const WORKERS: usize = 8;

/// The child's acknowledged requests.
#[derive(Default)]
struct Acknowledged {
    /// Nodes, and the last number saved in each.
    nodes: BTreeMap<u32, u32>,
    /// Nodes whose reference was acknowledged.
    refs: BTreeSet<(u32, u32)>,
    players: BTreeMap<u32, String>,
    /// Scores and their points.
    scores: BTreeMap<u32, i32>,
    lines: usize,
}

impl Acknowledged {
    fn take(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        match words[0] {
            "saved" => {
                self.nodes.insert(number(1), number(2));
            }
            "linked" => {
                self.refs.insert((number(1), number(2)));
            }
            "player" => {
                self.players.insert(number(1), words[2].to_owned());
            }
            "score" => {
                self.scores.insert(number(1), words[2].parse().unwrap());
            }
            _ => return,
        }
        self.lines += 1;
    }
}

async fn rounds(database: Database, rounds: usize) -> usize {
    let mut acknowledged = Acknowledged::default();
    for round in 0..rounds {
        let mut command = child::command("chaos::writer");
        command.env(FOLDER, database.folder.path()).env(ROUND, round.to_string());
        if let Some(url) = &database.url {
            command.env(URL, url);
        }
        let mut child = command.spawn().unwrap();
        // Kill it at a different moment in each round.
        let enough = acknowledged.lines + 40 + round * 37 % 211;
        for line in child::lines(&mut child) {
            acknowledged.take(&line);
            if acknowledged.lines == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.lines >= enough, "round {round}: the writer ended by itself");

        let vault = database.vault().await;
        let findings = vault.check().await.unwrap();
        let problems: Vec<_> = findings.iter().filter(|finding| finding.problem).collect();
        assert!(problems.is_empty(), "round {round}: {problems:?}");
        // The only unreachable nodes are those that were created but not placed before the kill.
        let loose = findings.len();
        assert!(loose <= WORKERS * (round + 1), "round {round}: {loose} nodes belong to no tree");
        let dump: Vec<serde_json::Value> =
            vault.export().await.unwrap().lines().map(|line| line.parse().unwrap()).collect();
        let of = |name: &'static str| dump.iter().filter_map(move |line| line.get(name));
        let number = |value: &serde_json::Value| u32::try_from(value.as_u64().unwrap()).unwrap();
        let nodes: BTreeMap<_, _> =
            of("node").map(|node| (number(&node["NodeId"]), node)).collect();
        let online =
            |node: &&&serde_json::Value| node["NodeType"] == "PlayerInfo" && node["Int32_1"] != 0;
        assert_eq!(nodes.values().filter(online).count(), 0, "round {round}: nobody is there");
        for (id, saved) in &acknowledged.nodes {
            let title = nodes[id]["String64_1"].as_str().unwrap();
            assert!(title.parse::<u32>().unwrap() >= *saved, "round {round}: node {id}");
        }
        let refs: BTreeSet<_> =
            of("ref").map(|one| (number(&one["parent"]), number(&one["child"]))).collect();
        assert!(acknowledged.refs.is_subset(&refs), "round {round}");
        let players: BTreeMap<_, _> = of("player")
            .map(|one| (number(&one["id"]), one["name"].as_str().unwrap().to_owned()))
            .collect();
        for (id, name) in &acknowledged.players {
            assert_eq!(players.get(id), Some(name), "round {round}");
        }
        let scores: BTreeMap<_, _> =
            of("score").map(|one| (number(&one["id"]), one["value"].as_i64().unwrap())).collect();
        for (id, points) in &acknowledged.scores {
            assert!(scores[id] >= i64::from(*points), "round {round}: score {id}");
        }
        vault.close().await;
    }
    acknowledged.lines
}

fn wanted() -> usize {
    std::env::var(ROUNDS).ok().map_or(3, |rounds| rounds.parse().unwrap())
}

#[tokio::test]
async fn sqlite_survives_kills() {
    let lines = rounds(Database::sqlite(), wanted()).await;
    println!("{} kills over SQLite: {lines} acknowledged changes, all there", wanted());
}

#[tokio::test]
async fn postgres_survives_kills() {
    let Some(database) = Database::postgres() else { return };
    let number = wanted().div_ceil(5);
    let lines = rounds(database, number).await;
    println!("{number} kills over PostgreSQL: {lines} acknowledged changes, all there");
}

/// The child: writes until it is killed. When run directly, it does nothing.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let round: usize = std::env::var(ROUND).unwrap().parse().unwrap();
    let url = std::env::var(URL).ok();
    child::run(async {
        let store =
            store::open(Path::new(&folder).join(SQLITE_FILE), url.as_deref()).await.unwrap();
        let vault = Vault::open(store, key(), VaultConfig::default()).await.unwrap();
        // The test harness has already started a line.
        say("");
        let mut workers = tokio::task::JoinSet::new();
        for number in 0..WORKERS {
            workers.spawn(write(vault.clone(), format!("Writer{round}x{number}")));
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
    });
}

async fn write(vault: Vault, name: String) {
    let (connection, mut notices) = log_in(&vault, &name).await;
    tokio::spawn(async move { while notices.recv().await.is_some() {} });
    let player = connection.create_player(name.clone(), "male".to_owned()).await.unwrap().id;
    say(&format!("player {player} {name}"));
    connection.set_player(player).await.unwrap();
    let refs = connection.refs(player).await.unwrap();
    let mut folder = 0;
    for reference in refs.iter().filter(|reference| reference.parent_id == player) {
        let node = connection.fetch(reference.child_id).await.unwrap();
        let template = VaultNode {
            node_id: Some(reference.child_id),
            node_type: Some(NodeType::Folder),
            int32_1: Some(14),
            ..VaultNode::default()
        };
        if !connection.find(encoded(&template)).await.unwrap().is_empty() && !node.is_empty() {
            folder = reference.child_id;
        }
    }
    let (score, _) = connection.create_score(player, "points".to_owned(), 1, 0).await.unwrap();
    for number in 1.. {
        let titled = |title: u32, kind| {
            encoded(&VaultNode {
                node_type: kind,
                string64_1: Some(TermStr::from(&*title.to_string())),
                ..VaultNode::default()
            })
        };
        let node = connection.create(titled(0, Some(NodeType::TextNote))).await.unwrap();
        connection.add(folder, node, player).await.unwrap();
        say(&format!("linked {folder} {node}"));
        for title in 1..=3 {
            connection.save(node, Uuid([1; 16]), titled(title, None)).await.unwrap();
            say(&format!("saved {node} {title}"));
        }
        connection.add_points(score, 1).await.unwrap();
        say(&format!("score {score} {number}"));
    }
}
