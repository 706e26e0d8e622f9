//! After a process fails, its clients resume their sessions through the process that takes over.
//!
//! Child processes share a PostgreSQL database. They are killed with SIGKILL or suspended with
//! SIGSTOP.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::time::sleep;
use worldwire_core::Field as _;
use worldwire_net::{Signal, tcp};
use worldwire_server::store::{self, seal::ServerKey};
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_server::uru::{SQLITE_FILE, Shard, Standby, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Message;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::child::{self, say, write_key};
use crate::client::PATIENCE;
use crate::player::Player;
use crate::postgres::Database;
use crate::reconnect::{hears, knows_nothing};

const FOLDER: &str = "WORLDWIRE_TAKEOVER_FOLDER";
const ROLE: &str = "WORLDWIRE_TAKEOVER_ROLE";
/// The names of the accounts. Each is also the account's password and its player's name.
pub(crate) const NAMES: [&str; 4] = ["Anna", "Bert", "Cleo", "Dora"];
/// How long a client may wait until its session continues.
const LIMIT: Duration = Duration::from_secs(3);
/// How long sessions are kept for their clients, in seconds.
const WAIT: u32 = 5;

/// A child process with its own directory.
pub(crate) struct Process {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// A standby.
    pub(crate) fn start(folder: &TempDir) -> Self {
        Self::start_as("standby", folder)
    }

    pub(crate) fn start_front(folder: &TempDir) -> Self {
        Self::start_as("front", folder)
    }

    fn start_as(role: &str, folder: &TempDir) -> Self {
        let mut command = child::command("takeover::process");
        command.env(FOLDER, folder.path()).env(ROLE, role).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = child::listen(&mut child, Some);
        Self { child, lines }
    }

    /// The text after this word in the next line that begins with it.
    pub(crate) async fn says(&self, word: &str) -> String {
        let start = Instant::now();
        loop {
            match self.lines.try_recv() {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(word) {
                        return rest.trim().to_owned();
                    }
                }
                Err(error) => {
                    assert!(start.elapsed() < PATIENCE, "{word}: {error}");
                    sleep(Duration::from_millis(2)).await;
                }
            }
        }
    }

    pub(crate) async fn address(&self) -> SocketAddr {
        self.says("serves").await.parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: a front, or a standby that serves once it has taken over. When run directly, it does
/// nothing.
#[test]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let is_front = std::env::var(ROLE).is_ok_and(|role| role == "front");
    let work = async |signal: Signal| {
        // The test harness has already started a line.
        say("");
        let shard = if is_front {
            let shard = Shard::open(Path::new(&folder)).await.unwrap();
            while shard.vault().is_failing() {
                sleep(Duration::from_millis(5)).await;
            }
            shard
        } else {
            let standby = Standby::open(Path::new(&folder), |_| ()).await.unwrap();
            say("waits");
            let Some(shard) = standby.lead(signal.clone()).await.unwrap() else { return };
            shard
        };
        say(&format!("serves {}", shard.address().unwrap()));
        let error = shard.serve(signal).await.err();
        say(&format!("ended {}", error.map(|error| error.to_string()).unwrap_or_default()));
    };
    child::serve(drop, work);
}

/// A directory for a process that shares the database.
pub(crate) fn folder(url: &str, ring: &KeyRing) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nstatus = \"\"\ndatabase = \"{url}\"\n\
        [auth]\nreconnect_seconds = {WAIT}\n"
    );
    std::fs::write(folder.path().join("shard.toml"), settings).unwrap();
    keys::save(ring, &folder.path().join("keys.toml")).unwrap();
    write_key(folder.path());
    folder
}

/// Creates the accounts, each with a player.
pub(crate) async fn found(database: &Database) -> [u32; NAMES.len()] {
    let file = database.folder.path().join(SQLITE_FILE);
    let store = store::open(file, database.url.as_deref()).await.unwrap();
    let key = ServerKey::from_bytes(&[7; 32]);
    let vault = Vault::open(store, key, VaultConfig::default()).await.unwrap();
    let mut players = [0; NAMES.len()];
    for (name, player) in NAMES.into_iter().zip(&mut players) {
        vault.add_account(name, name, AccountFlags(0)).await.unwrap();
        let (connection, _notices) = vault.connect().await.unwrap();
        let fields = worldwire_uru::crypt::login::login_fields(name, name, 5, 6);
        let login = worldwire_server::uru::vault::Login {
            name: name.to_owned(),
            client_challenge: fields.client_challenge,
            server_challenge: 6,
            proof: fields.challenge_hash,
            address: None,
        };
        connection.log_in(login).await.unwrap();
        *player = connection.create_player(name.to_owned(), "female".to_owned()).await.unwrap().id;
    }
    vault.close().await;
    players
}

/// Logs in and chooses a player.
pub(crate) async fn enter(address: SocketAddr, ring: &KeyRing, name: &str, player: u32) -> Player {
    let mut client = Player::connect_to(address, ring).await;
    assert_eq!(client.log_in(name, name).await.1.result, NetError::Success);
    assert_eq!(client.choose(player).await, NetError::Success);
    client
}

/// Reconnects with a token.
pub(crate) async fn back(address: SocketAddr, ring: &KeyRing, token: Uuid) -> Player {
    let stream = tcp::dial(address, PATIENCE).await.unwrap();
    let mut client = Player::connect_with(stream, ring, token).await;
    client.register().await;
    client
}

/// Fetches a node without logging in. Skips notices.
async fn fetch(client: &mut Player, node_id: u32) -> VaultNode<'static> {
    client.say(ask::VaultNodeFetch { trans_id: client.next(), node_id }).await;
    loop {
        match client.hear().await.message() {
            Message::AuthServer(Reply::VaultNodeFetched(reply)) => {
                assert_eq!(reply.result, NetError::Success);
                return reply.node.decode::<VaultNode<'_>>().unwrap().into_owned();
            }
            Message::AuthServer(Reply::VaultNodeChanged(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The PlayerInfo of a player.
pub(crate) async fn info(client: &mut Player, player: u32) -> u32 {
    client.below(player, NodeType::PlayerInfo, None).await
}

pub(crate) async fn is_online(client: &mut Player, info: u32) -> bool {
    fetch(client, info).await.int32_1 == Some(1)
}

#[tokio::test]
async fn clients_resume_their_sessions_after_a_takeover() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.clone().unwrap();
    let ring = keys::generate(PrimeKind::Plain);
    let [anna, bert, cleo, dora] = found(&database).await;
    let folders = [folder(&url, &ring), folder(&url, &ring)];
    let mut first = Process::start(&folders[0]);
    let address = first.address().await;
    let second = Process::start(&folders[1]);
    second.says("waits").await;

    let mut a = enter(address, &ring, NAMES[0], anna).await;
    let annas = info(&mut a, anna).await;
    let mut b = enter(address, &ring, NAMES[1], bert).await;
    let berts = info(&mut b, bert).await;
    let _c = enter(address, &ring, NAMES[2], cleo).await;
    let mut d = enter(address, &ring, NAMES[3], dora).await;
    let doras = info(&mut d, dora).await;
    // All are in one neighbourhood, so each watches the others.
    let is_berts = |told: &Reply<'_>| matches!(told, Reply::VaultNodeChanged(changed) if changed.node_id == berts);
    hears(&mut a, is_berts).await;

    let killed = Instant::now();
    first.child.kill().unwrap();
    let address = second.address().await;
    let served = killed.elapsed();
    let (old, mut a) = (a.token, back(address, &ring, a.token).await);
    // Notices that she may have missed are sent again.
    hears(&mut a, is_berts).await;
    assert!(is_online(&mut a, annas).await, "without a login");
    let resumed = killed.elapsed();
    assert!(resumed < LIMIT, "{resumed:?}");
    assert!(is_online(&mut a, berts).await, "he is still expected");
    assert!(is_online(&mut a, doras).await);

    // A token can be used only once and only from one address.
    knows_nothing(&mut back(address, &ring, old).await).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let mut thief = Player::connect_with(stream, &ring, b.token).await;
    thief.register().await;
    knows_nothing(&mut thief).await;
    let mut b = back(address, &ring, b.token).await;
    assert!(is_online(&mut b, berts).await);

    // Nobody is locked out by her own earlier session.
    let mut c = enter(address, &ring, NAMES[2], cleo).await;
    // She does not return and goes offline.
    while is_online(&mut a, doras).await {
        assert!(killed.elapsed() < PATIENCE, "she is still online");
        sleep(Duration::from_millis(20)).await;
    }
    let expired = killed.elapsed();
    assert!(expired > Duration::from_secs(WAIT.into()));
    assert!(is_online(&mut a, berts).await);
    knows_nothing(&mut back(address, &ring, d.token).await).await;

    // Sessions that were resumed can be resumed again. This time, the process is only suspended.
    let mut third = Process::start(&folders[0]);
    third.says("waits").await;
    let result = b.choose(0).await;
    assert_eq!(result, NetError::Success);
    let stopped = Instant::now();
    child::signal(&second.child, "-STOP");
    let address = third.address().await;
    let mut again = back(address, &ring, a.token).await;
    assert!(is_online(&mut again, annas).await);
    let resumed_again = stopped.elapsed();
    assert!(resumed_again < LIMIT, "{resumed_again:?}");
    assert!(!is_online(&mut again, berts).await);
    // He had only logged out his player.
    let mut b = back(address, &ring, b.token).await;
    assert_eq!(b.choose(bert).await, NetError::Success);
    child::signal(&second.child, "-CONT");
    assert!(second.says("ended").await.contains("was taken over by process"));
    // The process does not tell clients that the shard has stopped; otherwise, they would not try
    // again.
    while let Some(heard) = c.client.hear().await {
        let message = heard.message();
        assert!(!matches!(message, Message::AuthServer(Reply::KickedOff(_))), "{message:?}");
    }
    assert!(is_online(&mut again, annas).await);

    // A process that is told to stop leaves its sessions to the next one.
    let fourth = Process::start(&folders[1]);
    fourth.says("waits").await;
    let told = Instant::now();
    drop(third.child.stdin.take());
    while let Some(heard) = again.client.hear().await {
        let message = heard.message();
        assert!(!matches!(message, Message::AuthServer(Reply::KickedOff(_))), "{message:?}");
    }
    let address = fourth.address().await;
    let mut again = back(address, &ring, again.token).await;
    assert!(is_online(&mut again, annas).await);
    let resumed_at_last = told.elapsed();
    assert!(resumed_at_last < LIMIT, "{resumed_at_last:?}");
    assert_eq!(third.says("ended").await, "");
    println!(
        "served again after {served:?}, resumed after {resumed:?} (killed), {resumed_again:?} (stopped) \
        and {resumed_at_last:?} (ended), the one who did not return offline after {expired:?}"
    );
}
