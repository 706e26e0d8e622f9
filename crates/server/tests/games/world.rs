//! An age of a shard, and clients who play its games over sockets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{spawn_blocking, yield_now};
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
use crate::model::Operation;
use crate::player::Player;
pub(crate) use crate::said::{encoded, join, markers};

/// The players of the model. The numbers between them are for their nodes.
pub(crate) const PLAYERS: [u32; 8] =
    [20_000, 21_000, 22_000, 23_000, 24_000, 25_000, 26_000, 27_000];
pub(crate) const A: u32 = PLAYERS[0];
pub(crate) const B: u32 = PLAYERS[1];
pub(crate) const D: u32 = PLAYERS[3];
/// A player who plays nothing, and sees others leave.
const WITNESS: u32 = 28_000;
/// The maximum length of a list of operations.
pub(crate) const OPERATIONS: usize = 220;

pub(crate) const PASSWORD: &str = "linking book";
pub(crate) const AGE: &str = "Ahnonay";
pub(crate) const INSTANCE: Uuid = Uuid([7; 16]);
/// The first ID of a game if random numbers are fixed, as the model wants it.
const FIRST_GAME: u32 = 7_000;
/// How long a test may take, in real time.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often clients send a ping, in milliseconds.
const PING_EVERY: u64 = 10_000;
/// How many refused messages per minute a shard tolerates.
const TOLERATED: usize = 15;

/// How many lists of operations the model is compared with.
pub(crate) fn rounds() -> u32 {
    let wanted = std::env::var("WORLDWIRE_GAMES_ROUNDS").ok();
    wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

/// A runtime whose clock only moves when a test advances it.
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
        // If a test hangs, time passes again, and its time limits end it.
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
    /// Started by the first message.
    pub(crate) shard: Option<Running>,
    is_random_fixed: bool,
    checks: AtomicUsize,
    time: StillTime,
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

/// The export of a vault whose players have the numbers that the tests use.
fn dump() -> &'static [String] {
    static LINES: OnceLock<Vec<String>> = OnceLock::new();
    LINES.get_or_init(|| {
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
            let lines = lines(&shard.vault).await;
            shard.stop().await;
            lines
        })
    })
}

async fn lines(vault: &Vault) -> Vec<String> {
    vault.export().await.unwrap().lines().collect()
}

/// Replaces the vault, once nobody is logged in.
async fn import(vault: &Vault, lines: &[String]) {
    loop {
        let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
        match vault.import(dump, true).await {
            // Sessions wait for their clients to come back.
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
            time: StillTime::new(),
        }
    }

    /// From now on, random bytes are zero.
    pub(crate) fn fix_random(&mut self) {
        assert!(self.shard.is_none());
        self.is_random_fixed = true;
    }

    /// A list of operations that this world can run: a shard disconnects players who send too many
    /// messages that are refused.
    pub(crate) fn paced(&self, operations: Vec<Operation>) -> Vec<Operation> {
        let mut paced = Vec::new();
        let mut said = BTreeMap::<u32, usize>::new();
        for operation in operations {
            match &operation {
                Operation::Say { player, .. }
                | Operation::Join { player, .. }
                | Operation::Open { player, .. } => {
                    let count = said.entry(*player).or_default();
                    *count += 1;
                    if *count > TOLERATED {
                        paced.push(Operation::Wait { milliseconds: 60_000 });
                        said = BTreeMap::from([(*player, 1)]);
                    }
                }
                Operation::Wait { .. } | Operation::Quit { .. } => {}
            }
            paced.push(operation);
        }
        paced
    }

    pub(crate) fn send_bytes(&mut self, player: u32, bytes: &[u8]) {
        let Self { time, shard, guests, mailboxes, is_random_fixed, .. } = self;
        time.run(async {
            if shard.is_none() {
                *shard = Some(start(*is_random_fixed).await);
                enter(shard.as_ref().unwrap(), guests, WITNESS).await;
            }
            let shard = shard.as_ref().unwrap();
            enter(shard, guests, player).await;
            guests[&player].play(bytes).await;
            settle(shard, guests, mailboxes, player).await;
        });
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
        let Self { time, shard, guests, mailboxes, .. } = self;
        let Some(shard) = shard else { return };
        time.run(async {
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

    /// Lets the clock run, a millisecond at a time, because timers must not be late.
    pub(crate) fn advance(&mut self, milliseconds: u64) {
        let Self { time, shard, guests, mailboxes, .. } = self;
        let Some(shard) = shard else { return };
        time.run(async {
            settle(shard, guests, mailboxes, WITNESS).await;
            let mut left = milliseconds;
            while left > 0 {
                let hop = left.min(PING_EVERY);
                for _ in 0..hop {
                    tokio::time::advance(Duration::from_millis(1)).await;
                    yield_now().await;
                }
                for guest in guests.values_mut() {
                    guest.ping().await;
                }
                settle(shard, guests, mailboxes, WITNESS).await;
                left -= hop;
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

    /// Checks that exactly these games run, by ID, with these members. Games without members are
    /// not listed. As this takes longer than an operation, it is not done every time.
    pub(crate) fn runs(&self, games: &[(u32, Vec<u32>)]) {
        let Some(shard) = &self.shard else { return };
        if !self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(8) {
            return;
        }
        let folder = shard.folder.path();
        let asked = Admin::ask_running;
        let listed = self.time.run(asked(folder, Request::Games)).unwrap().unwrap();
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
        self.guests.clear();
        if let Some(shard) = self.shard.take().filter(|_| !std::thread::panicking()) {
            self.time.run(shard.stop());
        }
    }
}

/// Starts a shard with these players.
async fn start(is_random_fixed: bool) -> Running {
    let dump = spawn_blocking(dump).await.unwrap();
    let calls = AtomicUsize::new(0);
    let fixed = GameRandom::new(move |bytes: &mut [u8]| {
        bytes.fill(0);
        if calls.fetch_add(1, Ordering::Relaxed) == 0 {
            bytes.copy_from_slice(&FIRST_GAME.to_le_bytes());
        }
    });
    let random = if is_random_fixed { fixed } else { GameRandom::default() };
    let folder = tempfile::tempdir().unwrap();
    let shard = Running::start_within(folder, settings, random).await;
    import(&shard.vault, dump).await;
    for player in PLAYERS.into_iter().chain([WITNESS]) {
        shard.vault.set_password(&player.to_string(), PASSWORD).await.unwrap();
    }
    shard
}

/// Lets a player into the age, unless it is there.
async fn enter(shard: &Running, guests: &mut BTreeMap<u32, Guest>, player: u32) {
    let guest = match guests.entry(player) {
        Entry::Occupied(guest) => guest.into_mut(),
        Entry::Vacant(place) => {
            let mut auth = Player::connect(shard).await;
            let (_, reply) = auth.log_in(&player.to_string(), PASSWORD).await;
            assert_eq!(auth.choose(player).await, NetError::Success);
            place.insert(Guest::new(auth, reply.account_id, player))
        }
    };
    if guest.game.is_none() {
        guest.link(shard.address, &shard.keys).await;
    }
}

/// Waits until the age and the vault have handled everything, and takes what they sent.
async fn settle(
    shard: &Running,
    guests: &mut BTreeMap<u32, Guest>,
    mailboxes: &mut BTreeMap<u32, Mailbox>,
    sender: u32,
) {
    fence(sender, guests, mailboxes).await;
    // Requests of the age are before this one.
    shard.vault.accounts().await.unwrap();
    for player in guests.keys().copied().collect::<Vec<_>>() {
        fence(player, guests, mailboxes).await;
    }
}

/// Waits until the age has handled everything that a player has sent: it answers in order.
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
    async fn ping(&mut self) {
        let (ping_time_ms, trans_id, payload) = (0, TransId(0), Bytes32::new(Vec::new()));
        self.auth.say(ask::PingRequest { ping_time_ms, trans_id, payload }).await;
        self.auth.client.discard();
        if let Some(game) = &self.game {
            let ping = game::PingRequest { ping_time_ms };
            game.say(Message::from(game::ClientMessage::from(ping))).await;
        }
    }
}
