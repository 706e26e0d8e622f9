//! An age of a shard, and clients who play its games over sockets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use worldwire_core::json::Json;
use worldwire_core::{Bytes32, Field as _, Reader, Writer};
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_server::uru::vault::{Dump, Vault};
use worldwire_server::uru::{GameRandom, ShardConfig};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::game::client as game;
use worldwire_uru::message::game::server::ServerMessage as GameReply;
use worldwire_uru::net_message::{MembersListReq, NetFlags, NetHeader, NetMessage};
use worldwire_uru::types::{ClassIndex, NetError, TransId, UnifiedTime, Uuid};

use crate::client::{Client, Running};
pub(crate) use crate::mailbox::{Got, Mailbox};
use crate::model::{BURST, Operation};
use crate::player::Player;
use crate::process::ShardProcess;
pub(crate) use crate::said::{encoded, join, markers};

/// The players of the model. The numbers between them are for their nodes.
pub(crate) const PLAYERS: [u32; 8] =
    [20_000, 21_000, 22_000, 23_000, 24_000, 25_000, 26_000, 27_000];
pub(crate) const A: u32 = PLAYERS[0];
pub(crate) const B: u32 = PLAYERS[1];
pub(crate) const D: u32 = PLAYERS[3];
/// A player who plays no game and sees others leave.
const WITNESS: u32 = 28_000;
/// The maximum length of a list of operations.
pub(crate) const OPERATIONS: usize = 220;

pub(crate) const PASSWORD: &str = "linking book";
pub(crate) const AGE: &str = "Ahnonay";
pub(crate) const INSTANCE: Uuid = Uuid([7; 16]);
/// How long a test may take, in real time.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often clients send a ping, in milliseconds.
const PING_EVERY: u64 = 10_000;
/// The number of refused messages per minute that a shard tolerates.
const TOLERATED: usize = 15;
/// The number of milliseconds before and after a timer during which the clock runs a millisecond at
/// a time.
const NEAR: u64 = 3;

/// The number of lists of operations with which the model is compared.
pub(crate) fn rounds() -> u32 {
    let wanted = std::env::var("WORLDWIRE_GAMES_ROUNDS").ok();
    wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

/// A runtime whose clock moves only when a test advances it.
pub(crate) struct StillTime {
    /// While a blocking task runs, the runtime does not skip idle time.
    _awake: Sender<()>,
    runtime: Runtime,
}

impl StillTime {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.unwrap();
        let (awake, ended) = channel::<()>();
        // If a test hangs, the clock runs again, so that time limits end the test.
        drop(runtime.spawn_blocking(move || ended.recv_timeout(PATIENCE)));
        Self { _awake: awake, runtime }
    }

    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// Waits a moment of real time.
async fn moment() {
    spawn_blocking(|| std::thread::sleep(Duration::from_millis(2))).await.unwrap();
}

/// A player who is logged in.
pub(crate) struct Guest {
    pub(crate) auth: Player,
    account: Uuid,
    player: u32,
    /// The connection to the age.
    pub(crate) game: Option<Client>,
}

pub(crate) struct World {
    guests: BTreeMap<u32, Guest>,
    mailboxes: BTreeMap<u32, Mailbox>,
    /// The first message starts the shard.
    shard: Option<ShardProcess>,
    is_random_fixed: bool,
    checks: AtomicUsize,
    runtime: Runtime,
}

/// All games.
pub(crate) fn all_games(config: &mut ShardConfig) {
    let games = &mut config.games;
    for switch in [
        &mut games.blue_spiral,
        &mut games.heek,
        &mut games.marker,
        &mut games.var_sync,
        &mut games.tic_tac_toe,
        &mut games.climbing_wall,
    ] {
        *switch = true;
    }
}

pub(crate) fn settings(config: &mut ShardConfig) {
    all_games(config);
    config.auth.temporary_ages = true;
    config.auth.reconnect_seconds = 1;
}

/// The name, content and permissions of a file.
type PreparedFile = (PathBuf, Vec<u8>, Permissions);

/// The files of a stopped shard, whose players have the numbers that the tests use.
fn prepared() -> &'static [PreparedFile] {
    static FILES: OnceLock<Vec<PreparedFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let time = StillTime::new();
        time.run(async {
            let folder = tempfile::tempdir().unwrap();
            let shard = Running::start_within(folder, settings, GameRandom::default()).await;
            for player in PLAYERS.into_iter().chain([WITNESS]) {
                let mut lines = lines(&shard.vault).await;
                let mut head: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
                head["next_node"] = player.into();
                lines[0] = head.to_string();
                import(&shard.vault, &lines).await;
                let name = player.to_string();
                shard.vault.add_account(&name, PASSWORD, AccountFlags(0)).await.unwrap();
                let mut client = Player::connect(&shard).await;
                client.log_in(&name, PASSWORD).await;
                let created = client.create(&format!("player {player}"), "male").await;
                assert_eq!(created, Ok(player));
            }
            let folder = shard.stop().await;
            let mut files = Vec::new();
            for entry in fs::read_dir(folder.path()).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::metadata(&path).unwrap();
                if about.is_file() {
                    let name = path.file_name().unwrap().into();
                    files.push((name, fs::read(&path).unwrap(), about.permissions()));
                }
            }
            files
        })
    })
}

/// A copy of the prepared shard.
fn copy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, permissions) in prepared() {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, permissions.clone()).unwrap();
    }
    folder
}

async fn lines(vault: &Vault) -> Vec<String> {
    vault.export().await.unwrap().lines().collect()
}

/// Replaces the vault, once nobody is logged in.
async fn import(vault: &Vault, lines: &[String]) {
    loop {
        let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
        match vault.import(dump, true).await {
            // Sessions wait for their clients to return.
            Err(NetError::LoggedInElsewhere) => {
                moment().await;
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            outcome => return outcome.unwrap(),
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            guests: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            shard: None,
            is_random_fixed: false,
            checks: AtomicUsize::new(0),
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
        }
    }

    /// From now on, random bytes are zero.
    pub(crate) fn fix_random(&mut self) {
        assert!(self.shard.is_none());
        self.is_random_fixed = true;
    }

    /// A list of operations that this world can run. A shard would disconnect players who send too
    /// many messages that are refused.
    pub(crate) fn paced(&self, operations: Vec<Operation>) -> Vec<Operation> {
        let mut paced = Vec::new();
        let mut said = BTreeMap::<u32, usize>::new();
        for operation in operations {
            let player = match &operation {
                Operation::Say { player, .. }
                | Operation::Join { player, .. }
                | Operation::Open { player, .. } => Some(*player),
                Operation::Wait { .. } | Operation::Quit { .. } | Operation::Kill { .. } => None,
            };
            if let Some(player) = player {
                *said.entry(player).or_default() += 1;
            }
            // Any player may change a marker game when the shard is killed.
            let is_kill = matches!(operation, Operation::Kill { .. });
            let more = if is_kill { BURST } else { 0 };
            if said.values().any(|count| count + more > TOLERATED) {
                paced.push(Operation::Wait { milliseconds: 60_000 });
                said = player.map(|player| (player, 1)).into_iter().collect();
            }
            if is_kill {
                said.clear();
            }
            paced.push(operation);
        }
        paced
    }

    /// Starts the shard, if it does not run, and lets a player in.
    fn enter(&mut self, player: u32) {
        let Self { runtime, shard, guests, is_random_fixed, .. } = self;
        let is_new = shard.is_none();
        let shard = shard.get_or_insert_with(|| ShardProcess::start(copy(), *is_random_fixed));
        runtime.block_on(async {
            if is_new {
                enter(shard, guests, WITNESS).await;
            }
            enter(shard, guests, player).await;
        });
    }

    pub(crate) fn send_bytes(&mut self, player: u32, bytes: &[u8]) {
        self.enter(player);
        let Self { runtime, shard, guests, mailboxes, .. } = self;
        let Some(shard) = shard else { return };
        runtime.block_on(async {
            guests[&player].play(bytes).await;
            settle(shard, guests, mailboxes, player).await;
        });
    }

    /// Kills the shard while it handles a player's messages to a game, after it has answered this
    /// many of them, and starts it again. Returns all answers that the player has received.
    pub(crate) fn kill(&mut self, player: u32, burst: &[Vec<u8>], answers: usize) -> Vec<Got> {
        self.enter(player);
        let Self { runtime, shard, guests, mailboxes, is_random_fixed, .. } = self;
        let mut got = Vec::new();
        runtime.block_on(async {
            let mailbox = mailboxes.entry(player).or_default();
            let guest = guests.get_mut(&player).unwrap();
            for bytes in burst {
                guest.play(bytes).await;
            }
            while got.len() < answers {
                got.push(guest.hear(mailbox).await.expect("the shard runs"));
            }
            let folder = shard.take().unwrap().kill();
            // Read answers that were on their way.
            while let Some(answer) = guest.hear(mailbox).await {
                got.push(answer);
            }
            guests.clear();
            mailboxes.values_mut().for_each(Mailbox::forget_games);
            let shard = shard.insert(ShardProcess::start(folder, *is_random_fixed));
            enter(shard, guests, WITNESS).await;
        });
        got
    }

    pub(crate) fn send_in(
        &mut self,
        player: u32,
        trans_id: u32,
        game_id: u32,
        name: &str,
        fields: Json,
    ) {
        let bytes = encoded(trans_id, game_id, name, fields);
        self.send_bytes(player, &bytes);
    }

    /// Opens a marker game and returns its ID.
    pub(crate) fn open(&mut self, player: u32, template: &str, kind: u8) -> u32 {
        self.send_in(player, 9, 0, "Manager.CreateGame", markers(template, kind));
        self.mailboxes.get(&player).and_then(Mailbox::last_instance).unwrap()
    }

    /// Breaks a player's connection to the age.
    pub(crate) fn leave(&mut self, player: u32) {
        let Self { runtime, shard, guests, mailboxes, .. } = self;
        let Some(shard) = shard else { return };
        runtime.block_on(async {
            let Some(game) = guests.get_mut(&player).and_then(|guest| guest.game.take()) else {
                return;
            };
            game.lose();
            let is_gone = |message: &NetMessage<'_>| match message {
                NetMessage::MemberUpdate(update) => {
                    let is_gone = !update.was_added.is_true();
                    is_gone && update.member.client.player_id == Some(player)
                }
                _ => false,
            };
            let witness = guests.get_mut(&WITNESS).unwrap();
            hear_until(witness, &mut Mailbox::default(), is_gone).await;
            settle(shard, guests, mailboxes, WITNESS).await;
        });
        if let Some(mailbox) = self.mailboxes.get_mut(&player) {
            mailbox.forget_games();
        }
    }

    /// Lets the clock run, a millisecond at a time.
    pub(crate) fn advance(&mut self, milliseconds: u64) {
        self.pass(milliseconds, |_| true);
    }

    /// Lets the clock run. The games' timers, given as the milliseconds until each one, must not be
    /// late, so the clock runs a millisecond at a time around them. It skips the time in between.
    pub(crate) fn advance_over(&mut self, milliseconds: u64, timers: &[u64]) {
        let is_near = |at: u64| timers.iter().any(|timer| timer.abs_diff(at) <= NEAR);
        self.pass(milliseconds, is_near);
    }

    /// Lets the clock run. Where no moment may be skipped, it runs a millisecond at a time.
    fn pass(&mut self, milliseconds: u64, is_near: impl Fn(u64) -> bool) {
        let Self { runtime, shard, guests, mailboxes, .. } = self;
        let Some(shard) = shard else { return };
        runtime.block_on(async {
            settle(shard, guests, mailboxes, WITNESS).await;
            let (mut now, mut passed) = (0, 0);
            while passed < milliseconds {
                let hop = (milliseconds - passed).min(PING_EVERY);
                // The number of moments from here on that are all near a timer, or all not near
                // one.
                let end = passed + hop;
                while now < end {
                    let near = is_near(now + 1);
                    let more = (now + 1..=end).take_while(|at| is_near(*at) == near).count() as u64;
                    if near {
                        shard.advance(more)
                    } else {
                        shard.skip(more)
                    }
                    now += more;
                }
                for guest in guests.values_mut() {
                    guest.ping().await;
                }
                settle(shard, guests, mailboxes, WITNESS).await;
                passed = end;
            }
        });
    }

    /// Everything that a player has received since the last call.
    pub(crate) fn take(&mut self, player: u32) -> Vec<Got> {
        self.mailboxes.get_mut(&player).map(Mailbox::take).unwrap_or_default()
    }

    /// Lets the next check take place.
    pub(crate) fn look(&self) {
        self.checks.store(0, Ordering::Relaxed);
    }

    /// Checks that exactly these games are running, by ID, with these members. Games without
    /// members are not listed. This takes longer than an operation, so it is not done every time.
    pub(crate) fn runs(&self, games: &[(u32, Vec<u32>)]) {
        let Some(shard) = &self.shard else { return };
        if !self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(8) {
            return;
        }
        let folder = shard.folder.path();
        let asked = Admin::ask_running;
        let listed = self.runtime.block_on(asked(folder, Request::Games)).unwrap().unwrap();
        let game = |game: &serde_json::Value| {
            let number = |json: &serde_json::Value| u32::try_from(json.as_u64().unwrap()).unwrap();
            let players = game["players"].as_array().unwrap().iter();
            (number(&game["id"]), players.map(|player| number(&player["id"])).collect())
        };
        let mut listed: Vec<(u32, Vec<u32>)> = listed.iter().map(game).collect();
        listed.sort();
        let wanted: Vec<_> = games.iter().filter(|game| !game.1.is_empty()).cloned().collect();
        assert_eq!(listed, wanted);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.block_on(async {
            self.guests.clear();
            // Their tasks close the connections.
            moment().await;
        });
        if let Some(shard) = self.shard.take().filter(|_| !std::thread::panicking()) {
            shard.stop();
        }
    }
}

/// Lets a player into the age, unless it is already there.
async fn enter(shard: &ShardProcess, guests: &mut BTreeMap<u32, Guest>, player: u32) {
    let guest = match guests.entry(player) {
        Entry::Occupied(guest) => guest.into_mut(),
        Entry::Vacant(place) => {
            let mut auth = Player::connect_to(shard.address, &shard.keys).await;
            let (_, reply) = auth.log_in(&player.to_string(), PASSWORD).await;
            assert_eq!(auth.choose(player).await, NetError::Success);
            place.insert(Guest::new(auth, reply.account_id, player))
        }
    };
    if guest.game.is_none() {
        guest.link(shard.address, &shard.keys).await;
    }
}

/// Waits until the age and the vault have handled everything. Takes the messages that they have
/// sent.
async fn settle(
    shard: &mut ShardProcess,
    guests: &mut BTreeMap<u32, Guest>,
    mailboxes: &mut BTreeMap<u32, Mailbox>,
    sender: u32,
) {
    fence(sender, guests, mailboxes).await;
    // The age's requests precede this one.
    shard.settle();
    for player in guests.keys().copied().collect::<Vec<_>>() {
        fence(player, guests, mailboxes).await;
    }
}

/// Waits until the age has handled everything that a player has sent. This works because the age
/// answers in order.
async fn fence(
    player: u32,
    guests: &mut BTreeMap<u32, Guest>,
    mailboxes: &mut BTreeMap<u32, Mailbox>,
) {
    let guest = guests.get_mut(&player).unwrap();
    let Some(game) = &guest.game else { return };
    let time = UnifiedTime { seconds: 5, microseconds: 6 };
    let header = NetHeader::from_client(time, player, NetFlags::IsSystemMessage);
    let mut writer = Writer::new();
    NetMessage::from(MembersListReq { header }).encode(&mut writer).unwrap();
    let buffer = Bytes32::new(writer.into_bytes());
    let type_ = ClassIndex::plNetMsgMembersListReq;
    let message = game::PropagateBuffer { type_, buffer };
    game.say(Message::from(game::ClientMessage::from(message))).await;
    let mailbox = mailboxes.entry(player).or_default();
    let is_list = |message: &NetMessage<'_>| matches!(message, NetMessage::MembersList(_));
    hear_until(guest, mailbox, is_list).await;
}

/// Receives messages up to the first net message that `is_last` accepts.
async fn hear_until(
    guest: &mut Guest,
    mailbox: &mut Mailbox,
    is_last: impl Fn(&NetMessage<'_>) -> bool,
) {
    let game = guest.game.as_mut().unwrap();
    loop {
        let heard = game.hear().await.expect("the connection is open");
        match heard.message() {
            Message::GameServer(GameReply::PropagateBuffer(message)) => {
                let mut reader = Reader::new(&message.buffer);
                if is_last(&NetMessage::decode(&mut reader, "").unwrap()) {
                    return;
                }
            }
            Message::GameServer(GameReply::GameMgrMsg(message)) => {
                mailbox.deliver(Arc::from(&*message.buffer));
            }
            _ => {}
        }
    }
}

impl Guest {
    pub(crate) fn new(auth: Player, account: Uuid, player: u32) -> Self {
        Self { auth, account, player, game: None }
    }

    /// Links to the age.
    pub(crate) async fn link(&mut self, address: SocketAddr, keys: &KeyRing) {
        let (trans_id, age_name) = (self.auth.next(), AGE.into());
        self.auth.say(ask::AgeRequest { trans_id, age_name, age_instance_id: INSTANCE }).await;
        let age_mcp_id = loop {
            if let Message::AuthServer(Reply::AgeReply(reply)) = self.auth.hear().await.message() {
                assert_eq!(reply.result, NetError::Success);
                break reply.age_mcp_id;
            }
        };
        let key = keys.public(ServerKind::Game).cloned();
        let mut client = Client::connect(address, Service::Game, key).await;
        let (trans_id, account_id, player_id) = (TransId(9), self.account, self.player);
        let request = game::JoinAgeRequest { trans_id, age_mcp_id, account_id, player_id };
        client.say(Message::from(game::ClientMessage::from(request))).await;
        match client.hear().await.unwrap().message() {
            Message::GameServer(GameReply::JoinAgeReply(reply)) => {
                assert_eq!(reply.result, NetError::Success);
            }
            other => panic!("{other:?}"),
        }
        self.game = Some(client);
    }

    /// Sends a message to the game manager.
    pub(crate) async fn play(&self, bytes: &[u8]) {
        let message = game::GameMgrMsg { buffer: Bytes32::new(bytes.to_vec()) };
        let message = Message::from(game::ClientMessage::from(message));
        self.game.as_ref().unwrap().shout(message).await;
    }

    /// Takes the next message of a game; `None` when the connection has ended.
    pub(crate) async fn hear(&mut self, mailbox: &mut Mailbox) -> Option<Got> {
        loop {
            let heard = self.game.as_mut().unwrap().hear().await?;
            if let Message::GameServer(GameReply::GameMgrMsg(message)) = heard.message() {
                mailbox.deliver(Arc::from(&*message.buffer));
                return mailbox.take().pop();
            }
        }
    }

    /// Keeps the connections open.
    pub(crate) async fn ping(&mut self) {
        let (ping_time_ms, trans_id, payload) = (0, TransId(0), Bytes32::new(Vec::new()));
        self.auth.say(ask::PingRequest { ping_time_ms, trans_id, payload }).await;
        self.auth.client.discard();
        if let Some(game) = &self.game {
            let ping = game::PingRequest { ping_time_ms };
            game.say(Message::from(game::ClientMessage::from(ping))).await;
        }
    }
}
