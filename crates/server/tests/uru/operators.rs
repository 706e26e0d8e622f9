//! Operators' commands in the directories of processes that do not have the vault.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use worldwire_net::Stop;
use worldwire_server::uru::admin::{Admin, AdminError, Request};
use worldwire_server::uru::{ShardConfig, Standby, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::client::PATIENCE;
use crate::cluster::Bus;
use crate::database::rename;
use crate::player::{ANN, BOB, Player};
use crate::postgres::Database;
use crate::reconnect::is_online;
use crate::services::http;

/// Eighty of these do not fit into one part of a reply.
const BLOB: &[u8] = &[7; 10_000];

const HEALTH: &str = "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
const STATUS: &str = "GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n";
const METRICS: &str = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";

pub(crate) async fn ask(
    folder: &Path,
    request: Request,
    lines: &[String],
) -> Result<Vec<Json>, AdminError> {
    let admin = Admin::open(folder).await?;
    let answer = admin.ask_with_lines(request, lines).await;
    admin.close().await;
    answer
}

pub(crate) async fn refusal(folder: &Path, request: Request) -> String {
    ask(folder, request, &[]).await.unwrap_err().to_string()
}

fn texts(lines: &[Json]) -> Vec<String> {
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn commands_work_in_the_folder_of_a_front() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let (mut ann, a) = Player::enter(&front, ANN, "Ann").await;
    for _ in 0..80 {
        let node = VaultNode {
            node_type: Some(NodeType::Image),
            blob_1: Some(NodeBlob::new(BLOB)),
            ..VaultNode::default()
        };
        ann.make(node).await;
    }
    let here = front.folder.path();
    let kick = || Request::Kick { who: "Ann".to_owned() };
    let kicked = ask(here, kick(), &[]).await.unwrap();
    assert_eq!(kicked[0]["player"], json!({ "id": a, "name": "Ann" }));
    assert_eq!(refusal(here, kick()).await, "\"Ann\" is not logged in");
    // A request about the process itself.
    let ini = ask(here, Request::ServerIni, &[]).await.unwrap();
    assert_eq!(ini[1], json!(front.address));

    let export = || Request::Export { passwords: false };
    let at_leader = ask(leader.folder.path(), export(), &[]).await.unwrap();
    let lines = texts(&ask(here, export(), &[]).await.unwrap());
    assert!(lines.iter().map(String::len).sum::<usize>() > 600_000);
    assert_eq!(lines, texts(&at_leader));
    let import = Request::Import { replace: true };
    ask(here, import, &lines).await.unwrap();
    assert_eq!(texts(&ask(leader.folder.path(), export(), &[]).await.unwrap()), lines);
    let malformed = ask(here, Request::Import { replace: true }, &["{}".to_owned()]).await;
    assert!(matches!(malformed, Err(AdminError::Refused(_))), "{malformed:?}");

    leader.stop().await;
    let lost = refusal(here, Request::Check).await;
    assert!(
        lost.ends_with(": the leader, which has the vault, cannot be reached; see the log"),
        "{lost}"
    );
    let folder = front.stop().await;
    let stopped = refusal(folder.path(), Request::Check).await;
    assert!(stopped.contains("the shard's vault is in another process"), "{stopped}");
}

#[tokio::test]
async fn a_leader_can_refuse_commands_of_others() {
    let Some(bus) = Bus::start() else { return };
    let closed = |config: &mut ShardConfig| config.cluster.node_commands = false;
    let leader = bus.leader_with(tempfile::tempdir().unwrap(), closed).await;
    let front = bus.front(&leader).await;
    let refused = refusal(front.folder.path(), Request::Accounts).await;
    assert!(refused.contains("the leader accepts no commands from other processes"), "{refused}");
    ask(leader.folder.path(), Request::Accounts, &[]).await.unwrap();
    front.stop().await;
    leader.stop().await;
}

/// A process that was started with `--standby`.
struct Process {
    folder: TempDir,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Process {
    async fn start(
        first: Option<&Self>,
        url: &str,
        change: impl FnOnce(&mut ShardConfig) + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name| folder.path().join(name);
        match first {
            None => {
                keys::save(&keys::generate(PrimeKind::Plain), &place("keys.toml")).unwrap();
                let key =
                    worldwire_server::store::seal::ServerKey::load_or_create(&place("server.key"));
                key.unwrap();
            }
            Some(first) => {
                for name in ["keys.toml", "server.key"] {
                    std::fs::copy(first.folder.path().join(name), place(name)).unwrap();
                }
            }
        }
        let url = url.to_owned();
        let change = |config: &mut ShardConfig| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status.clear();
            config.database = url;
            change(config);
        };
        let stop = Stop::new();
        let (signal, path) = (stop.signal(), folder.path().to_owned());
        let (opened, opening) = oneshot::channel();
        // The futures stay on one thread.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let standby = Standby::open(&path, change).await.unwrap();
                opened.send(()).unwrap();
                if let Some(shard) = standby.lead(signal.clone()).await.unwrap() {
                    shard.serve(signal).await.unwrap();
                }
            });
        });
        timeout(PATIENCE, opening).await.unwrap().unwrap();
        Self { folder, stop, thread }
    }

    /// Repeats a request until the reply is as expected.
    async fn until(&self, request: Request, wanted: impl Fn(&Result<Vec<Json>, String>) -> bool) {
        let answered = async {
            loop {
                let answer = ask(self.folder.path(), request.clone(), &[]).await;
                if wanted(&answer.map_err(|error| error.to_string())) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, answered).await.unwrap();
    }

    async fn stop(self) {
        self.stop.stop();
        spawn_blocking(|| self.thread.join()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_standby_names_the_active_process() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.clone().unwrap();
    let active = Process::start(None, &url, |_| ()).await;
    active.until(Request::Accounts, |answer| answer == &Ok(Vec::new())).await;
    let standby = Process::start(Some(&active), &url, |_| ()).await;
    let folder = active.folder.path().display().to_string();
    standby
        .until(Request::Accounts, |answer| {
            answer.as_ref().is_err_and(|said| {
                said.contains("this process is a standby") && said.contains(&folder)
            })
        })
        .await;
    // Clients that look for the shard here do not find it.
    assert_eq!(ask(standby.folder.path(), Request::ServerIni, &[]).await.unwrap(), [] as [Json; 0]);
    active.stop().await;
    standby.until(Request::Accounts, |answer| answer == &Ok(Vec::new())).await;
    standby.stop().await;
}

#[tokio::test]
async fn commands_work_in_the_folder_of_a_standby_with_a_bus() {
    let (Some(database), Some(bus)) = (Database::postgres(), Bus::start()) else { return };
    let url = database.url.clone().unwrap();
    let active = Process::start(None, &url, bus.settings("a")).await;
    active.until(Request::Accounts, |answer| answer == &Ok(Vec::new())).await;
    let standby = Process::start(Some(&active), &url, bus.settings("b")).await;
    let password = "secret".to_owned();
    standby.until(Request::Accounts, Result::is_ok).await;
    let add = Request::AddAccount { name: "ann".to_owned(), password, flags: 0 };
    ask(standby.folder.path(), add, &[]).await.unwrap();
    let is_there = |answer: &Result<Vec<Json>, String>| {
        answer.as_ref().is_ok_and(|accounts| accounts.len() == 1 && accounts[0]["name"] == "ann")
    };
    active.until(Request::Accounts, is_there).await;
    active.stop().await;
    // The standby has taken over.
    standby.until(Request::Accounts, is_there).await;
    standby.stop().await;
}

#[tokio::test]
async fn operators_see_all_processes() {
    let (Some(database), Some(bus)) = (Database::postgres(), Bus::start()) else { return };
    let url = database.url.clone().unwrap();
    let first = Process::start(None, &url, bus.settings("a")).await;
    first.until(Request::Accounts, |answer| answer == &Ok(Vec::new())).await;
    let second = Process::start(Some(&first), &url, bus.settings("b")).await;
    let seen = |answer: &Result<Vec<Json>, String>| {
        let Ok([leader, standby]) = answer.as_deref() else { return false };
        if standby["roles"].is_null() {
            return false;
        }
        assert_eq!((&leader["node"], &leader["leader"]), (&json!("a"), &json!(true)));
        assert_eq!(leader["roles"], json!(["front", "age", "vault"]));
        assert_eq!(leader["version"], json!(env!("CARGO_PKG_VERSION")));
        assert_eq!((&standby["node"], &standby["roles"]), (&json!("b"), &json!(["standby"])));
        assert_eq!((&standby["behind"], &standby["leader"]), (&json!(0), &json!(false)));
        assert!(standby["heardMs"].as_u64().unwrap() < 3_500);
        true
    };
    second.until(Request::Nodes, seen).await;
    second.stop().await;
    first.stop().await;
}

/// Without a bus, the database shows which standbys are watching it.
#[tokio::test]
async fn a_standby_is_seen_in_the_database() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.clone().unwrap();
    let active = Process::start(None, &url, |_| ()).await;
    active.until(Request::Accounts, |answer| answer == &Ok(Vec::new())).await;
    assert_eq!(ask(active.folder.path(), Request::Nodes, &[]).await.unwrap().len(), 1);
    let standby = Process::start(Some(&active), &url, |_| ()).await;
    let seen = |answer: &Result<Vec<Json>, String>| {
        let Ok([_, standby]) = answer.as_deref() else { return false };
        assert_eq!((&standby["node"], &standby["roles"]), (&Json::Null, &json!(["standby"])));
        assert!(standby["process"].as_str().unwrap().starts_with("process "));
        true
    };
    active.until(Request::Nodes, seen).await;
    standby.stop().await;
    active.until(Request::Nodes, |answer| answer.as_ref().is_ok_and(|all| all.len() == 1)).await;
    active.stop().await;
}

#[tokio::test]
async fn a_drained_front_has_no_clients() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let (mut ann, a) = Player::enter(&front, ANN, "Ann").await;
    let metrics = http(&leader, METRICS).await;
    for line in ["nodes 1", "node_sessions 1", "node_requests 0", "bus_resent_total 0"] {
        assert!(metrics.contains(&format!("\nworldwire_{line}\n")), "{line}: {metrics}");
    }
    let metrics = http(&front, METRICS).await;
    for line in ["node_joined 1", "node_sessions 1", "node_requests 0", "bus_resent_total 0"] {
        assert!(metrics.contains(&format!("\nworldwire_{line}\n")), "{line}: {metrics}");
    }
    let drain = |node: &str, undo| Request::Drain { node: node.to_owned(), undo };
    let refused = refusal(leader.folder.path(), drain("other", false)).await;
    assert!(refused.contains("\"other\" is not a node of this shard"), "{refused}");
    for folder in [&leader.folder, &front.folder] {
        let refused = refusal(folder.path(), drain("leader", false)).await;
        assert!(
            refused.contains("make a standby the leader with `worldwire uru cluster lead`"),
            "{refused}"
        );
    }

    let here = front.folder.path();
    let done = ask(here, drain("front", false), &[]).await.unwrap();
    assert_eq!(done, [json!({ "node": "front", "draining": true })]);
    while ann.client.hear().await.is_some() {}
    assert!(is_online(&leader, a).await, "her session waits for her");
    let health = async || http(&front, HEALTH).await;
    assert!(health().await.ends_with("\r\n\r\ndraining\n"));
    let is_listed = async |is_draining: bool| {
        let listed = async {
            loop {
                let nodes = ask(here, Request::Nodes, &[]).await.unwrap();
                if nodes.len() == 2 && nodes[1]["draining"] == json!(is_draining) {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, listed).await.unwrap();
    };
    is_listed(true).await;

    ask(here, drain("front", true), &[]).await.unwrap();
    is_listed(false).await;
    assert!(health().await.ends_with("\r\n\r\nok\n"));
    let (_bob, b) = Player::enter(&front, BOB, "Bob").await;
    assert!(is_online(&leader, b).await);
    front.stop().await;
    leader.stop().await;
}

/// Otherwise, a load balancer would send clients to this front, where they could not log in.
#[tokio::test]
async fn the_health_of_a_front_follows_the_leaders_database() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let shows = async |health: &str, database: &str| {
        let shown = async {
            while !http(&front, HEALTH).await.ends_with(health) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, shown).await.expect(health);
        let status = http(&front, STATUS).await;
        assert!(status.contains(&format!("\"database\":\"{database}\"")), "{status}");
        let up = format!("\nworldwire_database_up {}\n", u8::from(database == "ok"));
        assert!(http(&front, METRICS).await.contains(&up));
    };
    shows("\r\n\r\nok\n", "ok").await;
    rename(&leader, "shard", "away").await;
    leader.vault.add_account("bea", "secret", AccountFlags(0)).await.unwrap_err();
    shows("the leader's database does not accept changes; see the leader's log\n", "failing").await;
    rename(&leader, "away", "shard").await;
    shows("\r\n\r\nok\n", "ok").await;
    let (_, a) = Player::enter(&front, ANN, "Ann").await;
    assert!(is_online(&leader, a).await);
    front.stop().await;
    leader.stop().await;
}
