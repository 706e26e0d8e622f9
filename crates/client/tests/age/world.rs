//! Two ages of a shard, with clients over sockets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_client::uru::{Auth, Game, NetBuffer, NewAge, Notification, Notifications, Shard};
use worldwire_core::{Bytes32, Field as _, Reader};
use worldwire_net::Stop;
use worldwire_server::uru::vault::{Dump, Vault};
use worldwire_server::uru::{Shard as Server, ShardConfig};
use worldwire_uru::age::{Capacity, Config, Instance};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::frame::Message;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::game::client::{ClientMessage, GameMgrMsg, PropagateBuffer};
use worldwire_uru::net_message::patch::restamp;
use worldwire_uru::net_message::{MembersListReq, NetFlags, NetMessage};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{ClassIndex, NetError, UnifiedTime, Uuid};

pub(crate) use crate::messages::*;

const PATIENCE: Duration = Duration::from_secs(20);
/// The pause before a retry.
const SHORT: Duration = Duration::from_millis(5);
const PASSWORD: &str = "linking book";
const PLAYERS: [u32; 5] = [A, B, C, D, P];
/// A step of time that keeps connections alive.
const HOP: Duration = Duration::from_secs(10);

/// A message that a player received.
#[derive(Debug)]
pub(crate) struct Got(NetBuffer);

impl Got {
    pub(crate) fn decode(&self) -> worldwire_core::Result<NetMessage<'_>> {
        self.0.decode()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    pub(crate) fn class(&self) -> ClassIndex {
        self.0.class
    }
}

/// A player in an age.
struct Visitor {
    _auth: Auth,
    game: Game,
    told: Notifications,
}

pub(crate) struct World {
    pub(crate) admins: Vec<u32>,
    pub(crate) descriptors: Arc<Descriptors>,
    config: Config,
    name: String,
    runtime: Runtime,
    /// Started when the first player joins.
    running: Option<Running>,
    visitors: BTreeMap<u32, Visitor>,
    inboxes: BTreeMap<u32, Vec<Got>>,
}

struct Running {
    _folder: TempDir,
    shard: Shard,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
}

fn local(config: &mut ShardConfig) {
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.status = String::new();
    config.public_address = "127.0.0.1".to_owned();
}

/// The export of a vault whose players have the numbers that the tests use.
fn dump() -> &'static [String] {
    static LINES: OnceLock<Vec<String>> = OnceLock::new();
    LINES.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let server = Server::open_with(folder.path(), PrimeKind::Plain, local).await.unwrap();
            let mut shard = Shard::parse(&server.server_ini()).unwrap();
            shard.patience = PATIENCE;
            let (vault, stop) = (server.vault().clone(), Stop::new());
            let serving = tokio::spawn(server.serve(stop.signal()));
            for player in PLAYERS {
                let mut lines = lines(&vault).await;
                let mut head: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
                head["next_node"] = player.into();
                lines[0] = head.to_string();
                import(&vault, &lines).await;
                vault.add_account(&player.to_string(), PASSWORD, AccountFlags(0)).await.unwrap();
                let (auth, _) = Auth::connect(&shard).await.unwrap();
                auth.log_in(&player.to_string(), PASSWORD).await.unwrap();
                let name = format!("player {player}");
                assert_eq!(auth.create_player(&name, "male").await.unwrap().id, player);
                auth.link().clone().close().await;
            }
            let lines = lines(&vault).await;
            stop.stop();
            timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
            lines
        })
    })
}

async fn lines(vault: &Vault) -> Vec<String> {
    vault.export().await.unwrap().lines().collect()
}

/// Replaces the vault, once nobody is logged in.
async fn import(vault: &Vault, lines: &[String]) {
    let imported = async {
        loop {
            let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
            match vault.import(dump, true).await {
                Err(NetError::LoggedInElsewhere) => tokio::time::sleep(SHORT).await,
                outcome => return outcome,
            }
        }
    };
    timeout(PATIENCE, imported).await.unwrap().unwrap();
}

impl Running {
    async fn start(config: &Config, name: &str, admins: &[u32], dump: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let put = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let age = format!("MaxCapacity=4\nLingerTime=180\nSequencePrefix={PREFIX}\n");
        put(&data.join(format!("ages/{name}.age")), &age);
        put(&data.join("secure/SDL/age.sdl"), SDL);
        let server = Server::open_with(folder.path(), PrimeKind::Plain, |shard| {
            local(shard);
            shard.game.relevance = config.relevance;
            shard.game.directed_anywhere = config.directed_anywhere;
            shard.game.console_commands = config.console_commands.clone();
            shard.game.refuse_full = config.capacity == Capacity::Refuse;
        });
        let server = server.await.unwrap();
        let vault = server.vault().clone();
        // A flag on the account marks administrators.
        let lines: Vec<String> = dump
            .iter()
            .map(|line| {
                let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                let account = value.get_mut("account");
                let is_admin = |name: &serde_json::Value| {
                    name.as_str().is_some_and(|name| admins.iter().any(|it| it.to_string() == name))
                };
                match account.filter(|account| is_admin(&account["name"])) {
                    Some(account) => {
                        account["flags"] = AccountFlags::Admin.0.into();
                        value.to_string()
                    }
                    None => line.clone(),
                }
            })
            .collect();
        import(&vault, &lines).await;
        for player in PLAYERS {
            vault.set_password(&player.to_string(), PASSWORD).await.unwrap();
        }
        let mut shard = Shard::parse(&server.server_ini()).unwrap();
        shard.patience = PATIENCE;
        let stop = Stop::new();
        let serving = tokio::spawn(server.serve(stop.signal()));
        Self { _folder: folder, shard, stop, serving }
    }
}

impl World {
    /// Two ages with this name; `Bare` has no state of its own.
    pub(crate) fn with(config: Config, name: &str) -> Self {
        // Time can only be advanced on a single-threaded runtime.
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self {
            admins: Vec::new(),
            descriptors: Arc::new(Descriptors::load([("age.sdl", SDL)])),
            config,
            name: name.to_owned(),
            runtime,
            running: None,
            visitors: BTreeMap::new(),
            inboxes: BTreeMap::new(),
        }
    }

    pub(crate) fn new() -> Self {
        Self::with(Config::default(), "Fern")
    }

    /// Joins an age. The error is the result code in the reply.
    pub(crate) fn try_join(&mut self, age: usize, player: u32) -> Result<(), NetError> {
        let (config, name, admins) = (&self.config, &self.name, &self.admins);
        if self.running.is_none() {
            let dump = dump();
            let started = self.runtime.block_on(Running::start(config, name, admins, dump));
            self.running = Some(started);
        }
        let shard = &self.running.as_ref().unwrap().shard;
        let instance = Uuid([u8::try_from(age).unwrap() + 1; 16]);
        let joined = self.runtime.block_on(async {
            let (auth, _) = Auth::connect(shard).await.unwrap();
            let login = loop {
                match auth.log_in(&player.to_string(), PASSWORD).await {
                    // The time advanced while the database was busy.
                    Err(error) if error.net_error() == Some(NetError::TimeoutOdbc) => {
                        tokio::time::sleep(SHORT).await;
                    }
                    login => break login.unwrap(),
                }
            };
            auth.set_player(player).await.unwrap();
            auth.init_age(&NewAge::new(name, instance)).await.unwrap();
            let age = auth.age(name, instance).await.unwrap();
            match Game::join(shard, &age, login.account_id, player).await {
                Ok((game, told)) => Ok(Visitor { _auth: auth, game, told }),
                Err(error) => Err(error.net_error().unwrap()),
            }
        });
        self.visitors.insert(player, joined?);
        Ok(())
    }

    pub(crate) fn join(&mut self, player: u32) {
        self.try_join(0, player).unwrap();
    }

    /// Joins with an avatar and discards the messages received.
    pub(crate) fn enter(&mut self, player: u32) {
        self.join(player);
        self.send(player, load_avatar(player, true));
        self.forget();
    }

    /// Disconnects and waits until the others have noticed.
    pub(crate) fn leave(&mut self, player: u32) {
        let Some(Visitor { game, .. }) = self.visitors.remove(&player) else { return };
        self.runtime.block_on(game.leave());
        let is_told = |message: &NetMessage<'_>| match message {
            NetMessage::MemberUpdate(update) => update.member.client.player_id == Some(player),
            _ => false,
        };
        if let Some((other, visitor)) = self.visitors.iter_mut().next() {
            let told = self.runtime.block_on(visitor.hear_until(is_told));
            self.inboxes.entry(*other).or_default().extend(told);
        }
    }

    pub(crate) fn send<'m>(&mut self, player: u32, message: impl Into<NetMessage<'m>>) {
        self.send_bytes(player, &bytes(&message.into()));
    }

    /// Sends a message and waits until the age has handled it.
    pub(crate) fn send_bytes(&mut self, player: u32, message: &[u8]) {
        let (type_, buffer) = (outer(message), Bytes32::new(message.to_vec()));
        let is_list = type_ == ClassIndex::plNetMsgMembersListReq;
        let message = Message::from(ClientMessage::from(PropagateBuffer { type_, buffer }));
        let visitor = &self.visitors[&player];
        self.runtime.block_on(visitor.game.link().send(message)).unwrap();
        self.settle(player, usize::from(is_list));
    }

    fn settle(&mut self, player: u32, lists: usize) {
        let Some(visitor) = self.visitors.get_mut(&player) else { return };
        let told = self.runtime.block_on(visitor.settle(lists));
        self.inboxes.entry(player).or_default().extend(told);
    }

    fn settle_all(&mut self) {
        let players: Vec<u32> = self.visitors.keys().copied().collect();
        players.into_iter().for_each(|player| self.settle(player, 0));
    }

    /// Advances the time for the shard and its clients.
    pub(crate) fn wait(&mut self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let hop = left.min(HOP);
            self.runtime.block_on(async {
                tokio::time::pause();
                tokio::time::advance(hop).await;
                tokio::time::resume();
                // Work that is due takes some real time.
                tokio::time::sleep(Duration::from_millis(10)).await;
            });
            self.settle_all();
            left -= hop;
        }
    }

    /// The messages that a player received since the last call.
    pub(crate) fn got(&mut self, player: u32) -> Vec<Got> {
        self.settle(player, 0);
        self.inboxes.remove(&player).unwrap_or_default()
    }

    /// The classes of the messages that a player received.
    pub(crate) fn received(&mut self, player: u32) -> Vec<String> {
        self.got(player).iter().map(class_name).collect()
    }

    pub(crate) fn forget(&mut self) {
        self.settle_all();
        self.inboxes.clear();
    }

    /// A state with these integers set, as a blob.
    pub(crate) fn blob(&self, name: &str, version: u16, values: &[(&str, i32)]) -> Vec<u8> {
        blob(&self.descriptors, name, version, values)
    }

    /// The state of a lever.
    pub(crate) fn lever(&self, place: i32) -> Vec<u8> {
        self.blob("lever", 1, &[("place", place)])
    }

    /// Whether a packet is the message that was sent, except for the server's time and the true
    /// sender.
    pub(crate) fn is_forwarded(&self, packet: &Got, sent: &[u8], sender: u32) -> bool {
        let message = packet.decode().unwrap();
        let time = message.header().and_then(|header| header.time_sent.clone()).unwrap();
        assert!(time.seconds > WRONG.seconds, "the time of the sender");
        let mut wanted = sent.to_vec();
        restamp(&mut wanted, time, sender).unwrap();
        packet.bytes() == wanted
    }

    /// Whether a time is close to now; the test may have advanced it by a few minutes.
    pub(crate) fn is_now(&self, time: &UnifiedTime) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        now.abs_diff(time.seconds.into()) < 300
    }

    /// Sends a malformed message to the game manager.
    pub(crate) fn ask_game_manager(&mut self, player: u32) {
        let message = GameMgrMsg { buffer: Bytes32::new(vec![1, 0, 0, 0]) };
        let message = Message::from(ClientMessage::from(message));
        self.runtime.block_on(self.visitors[&player].game.link().send(message)).unwrap();
        self.settle(player, 0);
    }

    /// Another task owns the instance, so the test cannot reach it.
    pub(crate) fn inside(&self, _: impl FnOnce(&Instance)) {}
}

impl Drop for World {
    fn drop(&mut self) {
        self.visitors.clear();
        let Some(Running { stop, serving, .. }) = self.running.take() else { return };
        stop.stop();
        if !std::thread::panicking() {
            let ended = async { timeout(PATIENCE, serving).await };
            self.runtime.block_on(ended).unwrap().unwrap().unwrap();
        }
    }
}

impl Visitor {
    /// Receives messages up to and including the first that `is_last` accepts.
    async fn hear_until(&mut self, mut is_last: impl FnMut(&NetMessage<'_>) -> bool) -> Vec<Got> {
        let mut heard = Vec::new();
        loop {
            let told = timeout(PATIENCE, self.told.next()).await.unwrap().expect("it is open");
            let Notification::NetMessage(buffer) = told else { continue };
            let mut reader = Reader::new(&buffer.bytes);
            let is_last = is_last(&NetMessage::decode(&mut reader, "").unwrap());
            heard.push(Got(buffer));
            if is_last {
                return heard;
            }
        }
    }

    /// Waits until the age has handled everything sent so far. The age replies in order, and this
    /// function asks for one more member list than the `lists` that are already on their way.
    async fn settle(&mut self, mut lists: usize) -> Vec<Got> {
        let header = self.game.header(NetFlags::IsSystemMessage);
        self.game.send(MembersListReq { header }).await.unwrap();
        let is_last = |message: &NetMessage<'_>| {
            let is_list = matches!(message, NetMessage::MembersList(_));
            let is_last = is_list && lists == 0;
            lists -= usize::from(is_list && !is_last);
            is_last
        };
        let mut heard = self.hear_until(is_last).await;
        heard.pop();
        heard
    }
}
