//! Saving to SQLite: how long each save takes at a steady rate, and the maximum rate.
//!
//! `cargo bench -p worldwire-server --bench vault`, optionally with a directory on the disk to
//! measure: `WORLDWIRE_BENCH_FOLDER=/srv`.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use worldwire_core::{Field as _, Writer};
use worldwire_server::store;
use worldwire_server::store::seal::ServerKey;
use worldwire_server::uru::SQLITE_FILE;
use worldwire_server::uru::vault::{Connection, Login, Vault, VaultConfig};
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

const CONNECTIONS: usize = 50;
const RATE: u32 = 500;
const SECONDS: u32 = 20;

fn main() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
    let folder = match std::env::var_os("WORLDWIRE_BENCH_FOLDER") {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.expect("a folder for the database");
    runtime.block_on(async {
        let store = store::open(folder.path().join(SQLITE_FILE), None).await.expect("a database");
        let key = ServerKey::from_bytes(&[1; 32]);
        let vault = Vault::open(store, key, VaultConfig::default()).await.expect("a vault");
        let start = Instant::now();
        let mut players = Vec::new();
        for number in 0..CONNECTIONS {
            players.push(play(&vault, &format!("Player{number}")).await.expect("a player"));
        }
        let each = start.elapsed() / u32::try_from(CONNECTIONS).unwrap_or(1);
        println!("account, login, player with its tree, first node: {each:?} each");
        steady(&players).await;
        flood(&players).await;
        vault.close().await;
    });
}

/// A connection with its own node.
async fn play(vault: &Vault, name: &str) -> Result<(Connection, u32), NetError> {
    vault.add_account(name, name, AccountFlags(0)).await?;
    let (connection, mut notices) = vault.connect().await?;
    tokio::spawn(async move { while notices.recv().await.is_some() {} });
    let fields = login_fields(name, name, 1, 2);
    let login = Login {
        name: name.to_owned(),
        client_challenge: fields.client_challenge,
        server_challenge: 2,
        proof: fields.challenge_hash,
        address: None,
    };
    connection.log_in(login).await?;
    let player = connection.create_player(name.to_owned(), "male".to_owned()).await?.id;
    connection.set_player(player).await?;
    let node = connection.create(state(0)).await?;
    Ok((connection, node))
}

/// The kind of node that clients save most: an age's state, 600 bytes.
fn state(number: u32) -> Vec<u8> {
    let node = VaultNode {
        node_type: Some(NodeType::SDL),
        string64_1: Some(TermStr::from("Garden")),
        int32_1: Some(0),
        uint32_1: Some(number),
        blob_1: Some(NodeBlob::new(vec![7; 500])),
        ..VaultNode::default()
    };
    let mut writer = Writer::new();
    node.encode(&mut writer).expect("a node");
    writer.into_bytes()
}

async fn steady(players: &[(Connection, u32)]) {
    let mut tick = interval(Duration::from_secs(1) / RATE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut saves = JoinSet::new();
    let start = Instant::now();
    for number in 0..RATE * SECONDS {
        let due = tick.tick().await;
        let (connection, node) = &players[number as usize % players.len()];
        let save = connection.save(*node, Uuid([1; 16]), state(number));
        saves.spawn(async move {
            save.await.expect("a save");
            due.elapsed()
        });
    }
    let mut times: Vec<_> = saves.join_all().await;
    let elapsed = start.elapsed();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{:.0} saves a second for {:.0} s: p50 {:?}, p99 {:?}, longest {:?}",
        times.len() as f64 / elapsed.as_secs_f64(),
        elapsed.as_secs_f64(),
        at(50),
        at(99),
        at(100)
    );
}

async fn flood(players: &[(Connection, u32)]) {
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for (connection, node) in players {
        let saves: Vec<_> =
            (0..400).map(|number| connection.save(*node, Uuid([1; 16]), state(number))).collect();
        workers.spawn(async move {
            for save in saves {
                save.await.expect("a save");
            }
        });
    }
    workers.join_all().await;
    let rate = (players.len() * 400) as f64 / start.elapsed().as_secs_f64();
    println!(
        "as fast as it goes, {CONNECTIONS} connections one save at a time: {rate:.0} a second"
    );
}
