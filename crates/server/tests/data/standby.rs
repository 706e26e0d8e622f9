//! Two processes share a PostgreSQL database: one serves the shard, and the other is a standby for
//! it.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::sleep;
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_server::uru::{Standby, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use crate::support::child::say;
use crate::support::processes::{
    Kind, Numbers, check, cut_off, delay_an_answer, is_quiet, now, obey, take_turns, with_database,
};
use crate::support::{Database, key, login, note, titled};

const WORKERS: usize = 8;
const SHARD: Kind = Kind { child: "standby::process", prepare };

/// Writes the files that a shard's processes share.
fn prepare(folder: &Path, url: &str) {
    let settings = format!("listen = \"127.0.0.1:0\"\nstatus = \"\"\ndatabase = \"{url}\"\n");
    std::fs::write(folder.join("shard.toml"), settings).unwrap();
    // A process with other keys does not take over.
    static KEYS: LazyLock<KeyRing> = LazyLock::new(|| keys::generate(PrimeKind::Plain));
    keys::save(&KEYS, &folder.join("keys.toml")).unwrap();
}

#[tokio::test]
async fn a_standby_takes_over_without_loss() {
    let tested = with_database(|database| take_turns(SHARD, database)).await;
    let Some((database, (saved, times))) = tested else { return };
    check_stored(&database, &saved).await;
    println!("{} nodes with acknowledged saves, all there; {times:?}", saved.len());
}

#[tokio::test]
async fn nothing_is_lost_in_a_partition() {
    let tested = with_database(|database| cut_off(SHARD, database)).await;
    let Some((database, (saved, times))) = tested else { return };
    check_stored(&database, &saved).await;
    println!("{} nodes with acknowledged saves, all there; {times:?}", saved.len());
}

#[tokio::test]
async fn a_late_answer_does_not_extend_the_lease() {
    let tested = with_database(|database| delay_an_answer(SHARD, database)).await;
    let Some((database, saved)) = tested else { return };
    check_stored(&database, &saved).await;
}

async fn check_stored(database: &Database, saved: &Numbers) {
    let vault = Vault::open(database.store().await, key(), VaultConfig::default());
    let vault = vault.await.unwrap();
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    check(saved, &numbers(&vault).await, "in the database");
    vault.close().await;
}

/// The numbers in all nodes, by node.
async fn numbers(vault: &Vault) -> Numbers {
    let dump = vault.export().await.unwrap();
    let lines = dump.lines().map(|line| line.parse::<serde_json::Value>().unwrap());
    let number = |line: serde_json::Value| {
        let node = line.get("node")?;
        let number = node["String64_1"].as_str()?.parse().ok()?;
        Some((node["NodeId"].as_u64()?.to_string(), number))
    };
    lines.filter_map(number).collect()
}

/// The child process: a standby, which writes once it serves.
#[test]
fn process() {
    obey(async |folder, signal| {
        let standby = Standby::open(folder, |_| ()).await.unwrap();
        // The test harness has already started a line.
        say("\nwaits");
        let Some(shard) = standby.lead(signal.clone()).await.unwrap() else { return };
        say("serves");
        let vault = shard.vault().clone();
        tokio::spawn(async move {
            for (node, number) in numbers(&vault).await {
                say(&format!("holds {node} {number}"));
            }
            say("ready");
            for number in 0..WORKERS {
                tokio::spawn(work(vault.clone(), format!("Writer{number}")));
            }
        });
        let error = shard.serve(signal).await.err();
        say(&format!("ended {}", error.map(|error| error.to_string()).unwrap_or_default()));
    });
}

/// Writes and reads, and starts over whenever a request fails.
async fn work(vault: Vault, name: String) {
    loop {
        let _ = write(&vault, &name).await;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn write(vault: &Vault, name: &str) -> Result<(), NetError> {
    while is_quiet() {
        sleep(Duration::from_millis(5)).await;
    }
    // The account exists after the first takeover.
    let _ = vault.add_account(name, name, AccountFlags::User).await;
    let (connection, mut notices) = vault.connect().await?;
    tokio::spawn(async move { while notices.recv().await.is_some() {} });
    let known = connection.log_in(login(name, name)).await?.players;
    let player = match known.first() {
        Some(player) => player.id,
        None => connection.create_player(name.to_owned(), "male".to_owned()).await?.id,
    };
    connection.set_player(player).await?;
    loop {
        let node = connection.create(note("0")).await?;
        connection.add(player, node, player).await?;
        for number in 1..=5 {
            let began = now();
            connection.save(node, Uuid([1; 16]), titled(&number.to_string())).await?;
            say(&format!("saved {node} {number} {began}"));
            let began = now();
            connection.fetch(node).await?;
            say(&format!("read {began}"));
        }
        while is_quiet() {
            let began = now();
            connection.fetch(node).await?;
            say(&format!("read {began}"));
            sleep(Duration::from_millis(5)).await;
        }
    }
}
