//! Clients of a front whose vault and ages are in another process. The bus is a real `nats-server`,
//! which is also killed and suspended.

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream as TokioStream;
use tokio::time::{sleep, timeout};
use worldwire_core::{Field as _, Writer};
use worldwire_server::uru::config::Role;
use worldwire_server::uru::vault::{Login, Vault};
use worldwire_server::uru::{BusUser, GameRandom, ShardConfig, Standby, nats_config};
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::between_ages::age_node;
use crate::client::{ACCOUNTS, PATIENCE, Running};
use crate::fern::prepare;
use crate::nats::NatsServer;
use crate::player::{ANN, BOB, Player, result};
use crate::reconnect::{hears, is_online};
use crate::traveller::Traveller;

/// A `nats-server` with methods to start processes that use it.
pub(crate) struct Bus(NatsServer);

impl Deref for Bus {
    type Target = NatsServer;

    fn deref(&self) -> &NatsServer {
        &self.0
    }
}

impl DerefMut for Bus {
    fn deref_mut(&mut self) -> &mut NatsServer {
        &mut self.0
    }
}

impl Bus {
    /// Starts a `nats-server`; `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        NatsServer::start(None).map(Self)
    }

    /// The settings of a process that uses this bus.
    pub(crate) fn settings(&self, node: &str) -> impl FnOnce(&mut ShardConfig) + use<> {
        let (server, node) = (format!("nats://127.0.0.1:{}", self.port), node.to_owned());
        move |config| {
            config.cluster.bus = vec![server];
            config.cluster.node = node;
        }
    }

    /// Starts a process with the vault and ages.
    pub(crate) async fn leader(&self, folder: TempDir) -> Running {
        self.leader_with(folder, |_| ()).await
    }

    pub(crate) async fn leader_with(
        &self,
        folder: TempDir,
        change: impl FnOnce(&mut ShardConfig),
    ) -> Running {
        let settings = self.settings("leader");
        let change = |config: &mut ShardConfig| {
            settings(config);
            change(config);
        };
        Running::start_in(folder, change).await
    }

    /// Starts a front with the leader's keys and waits until it serves clients.
    pub(crate) async fn front(&self, leader: &Running) -> Running {
        self.front_with(leader, |_| ()).await
    }

    pub(crate) async fn front_named(&self, leader: &Running, node: &str) -> Running {
        self.front_with(leader, |config| config.cluster.node = node.to_owned()).await
    }

    /// The settings of a process that uses this bus, as text.
    pub(crate) fn section(&self, node: &str) -> String {
        format!(
            "[cluster]\nbus = [\"nats://127.0.0.1:{}\"]\nname = \"shard\"\nnode = \"{node}\"\n",
            self.port
        )
    }

    pub(crate) async fn front_with(
        &self,
        leader: &Running,
        change: impl FnOnce(&mut ShardConfig),
    ) -> Running {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(leader.folder.path().join("keys.toml"), folder.path().join("keys.toml"))
            .unwrap();
        // Operators' commands recognize the folder by this file.
        let text = "[cluster]\nroles = [\"front\"]\nbus = [\"nats://127.0.0.1:4222\"]\n";
        std::fs::write(folder.path().join("shard.toml"), text).unwrap();
        let settings = self.settings("front");
        let change = |config: &mut ShardConfig| {
            settings(config);
            config.cluster.roles = vec![Role::Front];
            change(config);
        };
        let front = Running::start_within(folder, change, GameRandom::default()).await;
        serves(&front.vault).await;
        front
    }
}

/// Waits until a front has found its leader.
pub(crate) async fn serves(vault: &Vault) {
    let found = async {
        while vault.is_failing() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, found).await.unwrap();
}

#[tokio::test]
async fn a_front_cannot_be_a_standby() {
    let folder = tempfile::tempdir().unwrap();
    let front = |config: &mut ShardConfig| {
        config.cluster.roles = vec![Role::Front];
        config.cluster.bus = vec!["nats://127.0.0.1:4222".to_owned()];
    };
    let refusal = Standby::open(folder.path(), front).await.unwrap_err().to_string();
    let wanted = "cluster.roles: must include \"vault\" for a standby";
    assert!(refusal.contains(wanted), "{refusal}");
}

#[tokio::test]
async fn a_front_serves_clients_of_the_leaders_shard() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;

    let (mut ann, a) = Player::enter(&front, ANN, "Ann").await;
    let note =
        ann.make(VaultNode { node_type: Some(NodeType::TextNote), ..VaultNode::default() }).await;
    assert_eq!(
        result!(ann, VaultNodeFetch { node_id: 1_000_000 }, VaultNodeFetched),
        NetError::VaultNodeNotFound
    );

    let (mut bob, b) = Player::enter(&leader, BOB, "Bob").await;
    assert!(is_online(&leader, a).await && is_online(&leader, b).await);
    // The note that Bob sends reaches Ann, and its notice arrives before later replies.
    let of_bob =
        bob.make(VaultNode { node_type: Some(NodeType::TextNote), ..VaultNode::default() }).await;
    bob.say(ask::VaultSendNode { node_id: of_bob, receiver_id: a }).await;
    hears(&mut ann, |it| matches!(it, Reply::VaultNodeAdded(it) if it.child_id == of_bob)).await;
    let text = VaultNode { text_1: Some(TermStr::from("kept")), ..VaultNode::default() };
    let node = Nested::encode_from(&text).unwrap();
    let saved = result!(
        ann,
        VaultNodeSave { node_id: note, revision_id: Uuid([9; 16]), node: node },
        VaultSaveNodeReply
    );
    assert_eq!(saved, NetError::Success);
    assert_eq!(leader.vault.show(note).await.unwrap()["Text_1"], "kept");

    // After losing its connection, the client resumes its session through the front.
    let token = ann.token;
    ann.client.lose();
    let stream = worldwire_net::tcp::dial(front.address, PATIENCE).await.unwrap();
    let mut ann = Player::connect_over(stream, &front, token).await;
    ann.register().await;
    ann.say(ask::VaultNodeFetch { trans_id: TransId(99), node_id: note }).await;
    // Notices that may have been lost are repeated before the reply.
    hears(&mut ann, |it| match it {
        Reply::VaultNodeFetched(it) if it.trans_id == TransId(99) => {
            let node = it.node.decode::<VaultNode<'_>>().unwrap();
            assert_eq!(node.text_1.unwrap().to_text(), "kept");
            true
        }
        _ => false,
    })
    .await;

    // An operator on the leader ends the session.
    leader.vault.kick("Ann").await.unwrap();
    hears(&mut ann, |it| matches!(it, Reply::KickedOff(_))).await;
    assert!(!is_online(&leader, a).await);
    front.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn players_of_a_front_join_ages_at_the_leader() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let ann = Traveller::to_fern(&front, ACCOUNTS[0], "Ann").await;
    let bob = Traveller::to_fern(&leader, ACCOUNTS[1], "Bob").await;
    assert_eq!(ann.number, bob.number);
    let mut here = ann.join(&leader).await;
    let there = bob.join(&leader).await;
    // When the auth connection ends, so does the game connection.
    drop(ann);
    while here.game.hear().await.is_some() {}
    drop(there);
    front.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn a_front_finds_the_next_leader() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let (connection, mut notices) = front.vault.connect().await.unwrap();
    let folder = leader.stop().await;
    assert_eq!(notices.recv().await, None, "the leader has ended the session");
    assert_eq!(connection.refs(1).await, Err(NetError::InternalError));
    assert!(front.vault.is_failing());
    assert_eq!(front.vault.connect().await.unwrap_err(), NetError::InternalError);

    let leader = bus.leader(folder).await;
    serves(&front.vault).await;
    let (mut ann, a) = Player::enter(&front, ANN, "Ann").await;
    assert!(is_online(&leader, a).await);
    assert!(!ann.refs(a).await.is_empty());
    front.stop().await;
    leader.stop().await;
}

/// Writes a key for the bus to a file that only its owner can read.
fn seed_file(folder: &Path, name: &str, pair: &KeyPair) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, format!("{}\n", pair.seed().unwrap())).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    file
}

/// The permissions in the documentation are sufficient.
#[tokio::test]
async fn each_process_logs_in_to_the_bus_with_its_own_key() {
    let [of_leader, of_front, of_age] = [(); 3].map(|()| KeyPair::new_user());
    let user = |node: &str, pair: &KeyPair, role| BusUser {
        node: node.to_owned(),
        key: pair.public_key(),
        roles: vec![role],
    };
    let users = [
        user("leader", &of_leader, Role::Vault),
        user("front", &of_front, Role::Front),
        user("age-1", &of_age, Role::Age),
    ];
    let users = nats_config("shard", &users).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("nats.conf");
    std::fs::write(&settings, users).unwrap();
    let Some(bus) = NatsServer::start(Some(settings)).map(Bus) else { return };
    let key = |name: &str, pair: &KeyPair| {
        let file = seed_file(folder.path(), name, pair);
        move |config: &mut ShardConfig| config.cluster.bus_key = file
    };
    let data = tempfile::tempdir().unwrap();
    prepare(data.path());
    let leader = bus.leader_with(data, key("leader.nk", &of_leader)).await;
    let front = bus.front_with(&leader, key("front.nk", &of_front)).await;
    let (_, a) = Player::enter(&front, ANN, "Ann").await;
    assert!(is_online(&leader, a).await);
    let node = age_node(&bus, &leader, "age-1", key("age.nk", &of_age)).await;
    let bob = Traveller::to_fern(&front, ACCOUNTS[1], "Bob").await;
    bob.join(&node).await;
    node.stop().await;
    front.stop().await;
    leader.stop().await;
}

/// When a server reloads its configuration, it ends subscriptions that are no longer allowed.
#[tokio::test]
async fn processes_subscribe_again_when_they_may() {
    let [of_leader, of_front] = [(); 2].map(|()| KeyPair::new_user());
    let users = |front| {
        let users = [("leader", &of_leader, Role::Vault), (front, &of_front, Role::Front)];
        let users = users.map(|(node, pair, role)| BusUser {
            node: node.to_owned(),
            key: pair.public_key(),
            roles: vec![role],
        });
        nats_config("shard", &users).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("nats.conf");
    std::fs::write(&settings, users("front")).unwrap();
    let Some(bus) = NatsServer::start(Some(settings.clone())).map(Bus) else { return };
    let key = |name: &str, pair: &KeyPair| {
        let file = seed_file(folder.path(), name, pair);
        move |config: &mut ShardConfig| config.cluster.bus_key = file
    };
    let leader = bus.leader_with(tempfile::tempdir().unwrap(), key("leader.nk", &of_leader)).await;
    let front = bus.front_with(&leader, key("front.nk", &of_front)).await;

    std::fs::write(&settings, users("another")).unwrap();
    bus.signal("-HUP");
    let failing = async {
        while !front.vault.is_failing() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, failing).await.unwrap();
    std::fs::write(&settings, users("front")).unwrap();
    bus.signal("-HUP");
    serves(&front.vault).await;
    front.stop().await;
    leader.stop().await;
}

/// The bus's response to a protocol line from a process with this key, up to the next PONG.
async fn said(bus: &Bus, pair: &KeyPair, line: &str) -> String {
    let stream = TokioStream::connect((Ipv4Addr::LOCALHOST, bus.port)).await.unwrap();
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let info = lines.next_line().await.unwrap().unwrap();
    let info: serde_json::Value =
        serde_json::from_str(info.strip_prefix("INFO ").unwrap()).unwrap();
    let signature = pair.sign(info["nonce"].as_str().unwrap().as_bytes()).unwrap();
    let signature = URL_SAFE_NO_PAD.encode(signature);
    let connect =
        serde_json::json!({ "nkey": pair.public_key(), "sig": signature, "verbose": false });
    let text = format!("CONNECT {connect}\r\n{line}\r\nPING\r\n");
    writer.write_all(text.as_bytes()).await.unwrap();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        match line.as_str() {
            "PONG" => return said,
            "PING" => writer.write_all(b"PONG\r\n").await.unwrap(),
            line => said.push_str(line),
        }
    }
    panic!("the bus closed the connection: {said}");
}

#[tokio::test]
async fn processes_may_do_only_what_they_need_on_the_bus() {
    let [leader, front, age] = [(); 3].map(|()| KeyPair::new_user());
    let users = [("a", &leader, Role::Vault), ("b", &front, Role::Front), ("c", &age, Role::Age)];
    let users = users.map(|(node, pair, role)| BusUser {
        node: node.to_owned(),
        key: pair.public_key(),
        roles: vec![role],
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("nats.conf");
    std::fs::write(&settings, nats_config("shard", &users).unwrap()).unwrap();
    let Some(bus) = NatsServer::start(Some(settings)).map(Bus) else { return };
    for (pair, line, allowed) in [
        (&leader, "PUB ww.shard.1.leader 0\r\n", true),
        (&leader, "PUB ww.shard.1.down.b.1 0\r\n", true),
        (&leader, "SUB ww.shard.1.up.7.> 1", true),
        (&leader, "SUB ww.shard.1.down.a.1 1", true),
        (&leader, "SUB ww.shard.1.down.b.1 1", false),
        (&leader, "PUB ww.other.1.leader 0\r\n", false),
        (&front, "PUB ww.shard.1.up.7.front.b 0\r\n", true),
        // A front can pose neither as another process nor as one that runs ages.
        (&front, "PUB ww.shard.1.up.7.front.c 0\r\n", false),
        (&front, "PUB ww.shard.1.up.7.age.b 0\r\n", false),
        (&front, "PUB ww.shard.1.up.7.vault.b 0\r\n", false),
        (&age, "PUB ww.shard.1.up.7.age.c 0\r\n", true),
        (&age, "PUB ww.shard.1.up.7.vault.c 0\r\n", false),
        (&leader, "PUB ww.shard.1.up.7.vault.a 0\r\n", true),
        (&front, "SUB ww.shard.1.leader 1", true),
        (&front, "SUB ww.shard.1.down.b.1 1", true),
        (&front, "SUB ww.shard.1.up.7.> 1", false),
        (&front, "SUB ww.shard.1.down.c.1 1", false),
        (&front, "PUB ww.shard.1.leader 0\r\n", false),
        (&front, "PUB ww.shard.1.down.c.1 0\r\n", false),
        (&front, "SUB ww.shard.1.player.7 1", false),
        (&front, "PUB ww.shard.1.all 0\r\n", false),
        (&age, "PUB ww.shard.1.player.7 0\r\n", true),
        (&age, "SUB ww.shard.1.player.7 1", true),
        (&age, "SUB ww.shard.1.all 1", true),
        (&age, "PUB ww.shard.1.leader 0\r\n", false),
        (&age, "SUB ww.shard.1.> 1", false),
    ] {
        let said = said(&bus, pair, line).await;
        assert_eq!(!said.contains("Permissions Violation"), allowed, "{line}: {said}");
        assert!(allowed == said.is_empty(), "{line}: {said}");
    }
}

/// The numbers that workers have sent, and those that have been acknowledged.
#[derive(Debug, Default)]
struct History {
    /// The highest number saved in each node.
    sent: BTreeMap<u32, u32>,
    acknowledged: BTreeMap<u32, u32>,
    made: HashSet<u32>,
    refused: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_bus_fails() {
    let Some(mut bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    let history = Arc::<Mutex<History>>::default();
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let name = format!("Worker{number}");
            let (vault, history) = (front.vault.clone(), Arc::clone(&history));
            let accounts = leader.vault.clone();
            tokio::spawn(async move {
                accounts.add_account(&name, &name, AccountFlags::User).await.unwrap();
                loop {
                    if work(&vault, &name, &history).await.is_err() {
                        history.lock().unwrap().refused += 1;
                        serves(&vault).await;
                    }
                }
            })
        })
        .collect();
    progress(&history).await;
    // The pause is too short for sessions to end.
    bus.signal("-STOP");
    sleep(Duration::from_millis(500)).await;
    bus.signal("-CONT");
    progress(&history).await;
    assert_eq!(history.lock().unwrap().refused, 0);
    bus.kill();
    bus.run();
    progress(&history).await;
    assert_eq!(history.lock().unwrap().refused, 0);
    // The pause is long enough for sessions to end.
    bus.signal("-STOP");
    let ended = async {
        while !front.vault.is_failing() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ended).await.unwrap();
    bus.signal("-CONT");
    progress(&history).await;
    workers.iter().for_each(tokio::task::JoinHandle::abort);

    for worker in workers {
        assert!(worker.await.unwrap_err().is_cancelled());
    }

    let history = std::mem::take(&mut *history.lock().unwrap());
    assert!(history.refused > 0);
    for (node, sent) in &history.sent {
        let stored = leader.vault.show(*node).await.unwrap();
        let stored = stored["Text_1"].as_str().map_or(0, |text| text.parse().unwrap());
        let acknowledged = history.acknowledged.get(node).copied().unwrap_or_default();
        assert!((acknowledged..=*sent).contains(&stored), "{node}: {acknowledged} {stored} {sent}");
    }
    let problems = leader.vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    front.stop().await;
    leader.stop().await;
}

/// Waits until more saves have been acknowledged.
async fn progress(history: &Mutex<History>) {
    let count = || history.lock().unwrap().acknowledged.values().sum::<u32>();
    let wanted = count() + 200;
    let done = async {
        while count() < wanted {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, done).await.expect("no requests are answered");
}

/// Saves repeatedly until a request fails.
async fn work(vault: &Vault, name: &str, history: &Mutex<History>) -> Result<(), NetError> {
    let (connection, mut notices) = vault.connect().await?;
    let fields = login_fields(name, name, 5, 6);
    let login = Login {
        name: name.to_owned(),
        client_challenge: fields.client_challenge,
        server_challenge: 6,
        proof: fields.challenge_hash,
        address: None,
    };
    let known = connection.log_in(login).await?.players;
    let player = match known.first() {
        Some(player) => player.id,
        None => connection.create_player(name.to_owned(), "male".to_owned()).await?.id,
    };
    connection.set_player(player).await?;
    loop {
        let note = VaultNode { node_type: Some(NodeType::TextNote), ..VaultNode::default() };
        let node = connection.create(encoded(&note)).await?;
        assert!(history.lock().unwrap().made.insert(node), "node {node} was created twice");
        connection.add(player, node, player).await?;
        for number in 1..=20 {
            history.lock().unwrap().sent.insert(node, number);
            let text = number.to_string();
            let text = VaultNode { text_1: Some(text.as_str().into()), ..VaultNode::default() };
            connection.save(node, Uuid([1; 16]), encoded(&text)).await?;
            history.lock().unwrap().acknowledged.insert(node, number);
            while notices.due().is_some() {}
        }
    }
}

fn encoded(node: &VaultNode<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    node.encode(&mut writer).unwrap();
    writer.into_bytes()
}
