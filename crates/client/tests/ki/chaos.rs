//! Acknowledged changes survive `kill -9`.
//!
//! A child process serves clients that create characters, and prints every change that it has
//! acknowledged. It is killed at some point; every printed change must be in the database.
//! `WORLDWIRE_CHAOS_ROUNDS=N` runs N rounds over SQLite and a fifth of that over PostgreSQL; a
//! plain `cargo test` runs a few.

use std::collections::BTreeMap;
use std::path::Path;

use worldwire_client::ki::{Client, Settings};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_net::Stop;
use worldwire_server::ki::admin::{Admin, Request};
use worldwire_server::ki::realm::Privileges;
use worldwire_server::ki::{LoginServer, Start};

use crate::child::{self, say};
use crate::database::Database;

const FOLDER: &str = "WORLDWIRE_KI_CHAOS_FOLDER";
const URL: &str = "WORLDWIRE_KI_CHAOS_URL";
const ROUND: &str = "WORLDWIRE_KI_CHAOS_ROUND";
const ROUNDS: &str = "WORLDWIRE_CHAOS_ROUNDS";
const WORKERS: usize = 4;

fn wanted() -> usize {
    std::env::var(ROUNDS).ok().map_or(2, |rounds| rounds.parse().unwrap())
}

#[tokio::test]
async fn no_acknowledged_character_is_lost_over_sqlite() {
    let lines = rounds(&Database::sqlite(), wanted()).await;
    println!("{} kills over SQLite: {lines} acknowledged changes, none lost", wanted());
}

#[tokio::test]
async fn no_acknowledged_character_is_lost_over_postgres() {
    let Some(database) = Database::postgres() else { return };
    let number = wanted().div_ceil(5);
    let lines = rounds(&database, number).await;
    println!("{number} kills over PostgreSQL: {lines} acknowledged changes, none lost");
}

async fn rounds(database: &Database, rounds: usize) -> usize {
    let folder = database.folder.path();
    // The acknowledged names, and whether each character was deleted again.
    let mut told = BTreeMap::<String, bool>::new();
    let mut lines = 0;
    for round in 0..rounds {
        let mut command = child::command("chaos::server");
        command.env(FOLDER, folder).env(ROUND, round.to_string());
        command.env(URL, database.url.as_deref().unwrap_or_default());
        let mut child = command.spawn().unwrap();
        let enough = lines + 20 + round * 17 % 31;
        for line in child::lines(&mut child) {
            let gone = match line.split_once(' ') {
                Some(("made", name)) => (name, false),
                Some(("deleted", name)) => (name, true),
                _ => continue,
            };
            told.insert(gone.0.to_owned(), gone.1);
            lines += 1;
            if lines == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(lines >= enough, "round {round}: the server ended by itself");
        let there = names(folder).await;
        let lost = told.iter().filter(|(name, gone)| !**gone && !there.contains_key(*name));
        // A deletion that was not acknowledged may have happened.
        let lost: Vec<_> = lost.filter(|(name, _)| !is_deleted_later(name)).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        let kept = told.iter().filter(|(name, gone)| **gone && there.contains_key(*name)).count();
        assert_eq!(kept, 0, "round {round}: a deleted character exists");
    }
    lines
}

/// Whether the writers delete this character after creating it.
fn is_deleted_later(name: &str) -> bool {
    let number = name.rsplit('n').next().and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| number % 4 == 3)
}

/// The characters in a server's database.
async fn names(folder: &Path) -> BTreeMap<String, u64> {
    let admin = Admin::open(folder).await.unwrap();
    let accounts = admin.ask(Request::Accounts).await.unwrap();
    admin.close().await;
    let characters = accounts.iter().flat_map(|one| one["characters"].as_array().unwrap());
    let named = characters.map(|one| {
        let id = one["id"].as_str().unwrap().parse().unwrap();
        (one["name"].as_str().unwrap().to_owned(), id)
    });
    named.collect()
}

/// The child: serves until it is killed. When run as an ordinary test, it does nothing.
#[test]
fn server() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (round, url) = (std::env::var(ROUND).unwrap(), std::env::var(URL).unwrap());
    child::run(async {
        let start = Start {
            change: Some(Box::new(move |config| {
                config.database = url;
                config.listen = "127.0.0.1:0".parse().unwrap();
                config.status = String::new();
            })),
            secrets: None,
        };
        let server = LoginServer::open(folder.as_ref(), start).await.unwrap();
        let (address, realm) = (server.address().unwrap().to_string(), server.realm().clone());
        let stop = Stop::new();
        tokio::spawn(server.serve(stop.signal()));
        say("");
        let mut workers = tokio::task::JoinSet::new();
        for number in 0..WORKERS {
            let name = format!("w{round}x{number}");
            let privileges = Privileges { paying: true, slots: 255 };
            realm.add_account(&name, "hunter2", privileges).await.unwrap();
            workers.spawn(work(address.clone(), name));
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
    });
}

async fn work(address: String, account: String) {
    let mut client = Client::connect(&address, &Settings::default()).await.unwrap();
    client.log_in(&account, &password_hash("hunter2")).await.unwrap();
    for number in 0.. {
        let name = format!("{account}n{number}");
        client.create(Character::plain(&name, "Fire", 1).as_bytes()).await.unwrap();
        say(&format!("made {name}"));
        if number % 4 == 3 {
            let list = client.characters().await.unwrap().list;
            let last = list.iter().find(|one| one.name() == name.as_bytes()).unwrap();
            client.delete(last.global_id()).await.unwrap();
            say(&format!("deleted {name}"));
        }
    }
}
