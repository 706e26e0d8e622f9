//! Replays game connections of real clients against a shard, over sockets: every client receives
//! what the recorded server sent it. Each difference has a reason, the same as for an age in
//! virtual time (see the test `uru_age` of `worldwire-dissect`, which also lists the environment
//! variables to set).

#[path = "../../../dissect/tests/uru_age/replay.rs"]
mod replay;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use replay::{Recording, Stage, paths};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_client::uru::{Auth, Game, NewAge, Notification, Notifications, Shard};
use worldwire_core::{Bytes32, Limits};
use worldwire_net::Stop;
use worldwire_server::uru::Shard as Server;
use worldwire_server::uru::vault::Dump;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::frame::Message;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::game::client::{ClientMessage, PropagateBuffer};
use worldwire_uru::net_message::{MembersListReq, NetFlags, NetMessage, received};
use worldwire_uru::types::{ClassIndex, NetError, Uuid};

const PATIENCE: Duration = Duration::from_secs(20);
/// The pause before a retry.
const SHORT: Duration = Duration::from_millis(5);
const PASSWORD: &str = "linking book";
const INSTANCE: Uuid = Uuid([7; 16]);

#[test]
fn recorded_clients_get_the_expected_messages_over_sockets() {
    let Some(recording) = Recording::of_environment() else { return };
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&recording.folder.join("ages"), &folder.path().join("data/ages"));
    copy(&recording.folder.join("sdl"), &folder.path().join("data/secure/SDL"));
    let running = runtime.block_on(Running::start(folder));
    runtime.block_on(running.make(&recording.players()));
    let (name, visitors) = (recording.name.clone(), BTreeMap::new());
    let running = Some(running);
    let mut sockets = Sockets { runtime, name, running, visitors, heard: Vec::new() };
    recording.play(&mut sockets);
    sockets.runtime.block_on(sockets.running.take().unwrap().stop());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in paths(from) {
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A running shard.
struct Running {
    folder: TempDir,
    shard: Shard,
    vault: worldwire_server::uru::vault::Vault,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
}

impl Running {
    async fn start(folder: TempDir) -> Self {
        let server = Server::open_with(folder.path(), PrimeKind::Plain, |config| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status = String::new();
            config.public_address = "127.0.0.1".to_owned();
            // Players must have the same numbers as in the recording.
            config.ages.standard = false;
        });
        let server = server.await.unwrap();
        let mut shard = Shard::parse(&server.server_ini()).unwrap();
        shard.patience = PATIENCE;
        let (vault, stop) = (server.vault().clone(), Stop::new());
        let serving = tokio::spawn(server.serve(stop.signal()));
        Self { folder, shard, vault, stop, serving }
    }

    async fn stop(self) -> TempDir {
        self.stop.stop();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap().unwrap();
        self.folder
    }

    /// Creates players with the same numbers as in the recording: an export states which number is
    /// next.
    async fn make(&self, players: &BTreeMap<u32, String>) {
        for (player, name) in players {
            let mut lines: Vec<String> = self.vault.export().await.unwrap().lines().collect();
            let mut head: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
            assert!(head["next_node"].as_u64() <= Some((*player).into()), "{head}");
            head["next_node"] = (*player).into();
            lines[0] = head.to_string();
            // The previous player is about to be logged out.
            let imported = async {
                loop {
                    let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
                    match self.vault.import(dump, true).await {
                        Err(NetError::LoggedInElsewhere) => tokio::time::sleep(SHORT).await,
                        outcome => return outcome,
                    }
                }
            };
            timeout(PATIENCE, imported).await.unwrap().unwrap();
            let account = player.to_string();
            let added = self.vault.add_account(&account, PASSWORD, AccountFlags(0)).await;
            assert!(matches!(added, Ok(_) | Err(NetError::AccountAlreadyExists)));
            // An export contains no passwords.
            for known in players.keys().filter(|known| *known <= player) {
                self.vault.set_password(&known.to_string(), PASSWORD).await.unwrap();
            }
            let (auth, _) = Auth::connect(&self.shard).await.unwrap();
            auth.log_in(&account, PASSWORD).await.unwrap();
            let made = auth.create_player(name, "female").await.unwrap();
            assert_eq!(made.id, *player);
            auth.link().clone().close().await;
        }
    }
}

/// A player in the age.
struct Visitor {
    auth: Auth,
    game: Game,
    told: Notifications,
}

/// The age of a shard.
struct Sockets {
    runtime: Runtime,
    name: String,
    running: Option<Running>,
    visitors: BTreeMap<u32, Visitor>,
    heard: Vec<(u32, Vec<u8>)>,
}

impl Visitor {
    async fn join(shard: &Shard, name: &str, player: u32) -> Self {
        let (auth, _) = Auth::connect(shard).await.unwrap();
        let login = auth.log_in(&player.to_string(), PASSWORD).await.unwrap();
        auth.set_player(player).await.unwrap();
        auth.init_age(&NewAge::new(name, INSTANCE)).await.unwrap();
        let age = auth.age(name, INSTANCE).await.unwrap();
        let joined = Game::join(shard, &age, login.account_id, player).await;
        let (game, told) = joined.unwrap();
        Self { auth, game, told }
    }

    /// Collects messages up to and including the last expected one.
    async fn hear_until(
        &mut self,
        mut is_last: impl FnMut(&NetMessage<'_>) -> bool,
    ) -> Vec<Vec<u8>> {
        let mut heard = Vec::new();
        loop {
            let told = timeout(PATIENCE, self.told.next()).await.unwrap().expect("it is open");
            let Notification::NetMessage(buffer) = told else { continue };
            let is_last = is_last(&buffer.decode().unwrap());
            heard.push(buffer.bytes);
            if is_last {
                return heard;
            }
        }
    }

    /// Waits until the age has processed everything that was sent: in reply to this function's
    /// request, it lists the members, after the lists that were requested earlier.
    async fn settle(&mut self, mut lists: usize) -> Vec<Vec<u8>> {
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

impl Stage for Sockets {
    fn start(&mut self, _: Duration) {
        let running = self.running.take().unwrap();
        let again = async { Running::start(running.stop().await).await };
        self.running = Some(self.runtime.block_on(again));
    }

    fn join(&mut self, _: Duration, player: u32) {
        let shard = &self.running.as_ref().unwrap().shard;
        let visitor = self.runtime.block_on(Visitor::join(shard, &self.name, player));
        self.visitors.insert(player, visitor);
    }

    fn receive(&mut self, _: Duration, player: u32, class: ClassIndex, buffer: &[u8]) {
        let message = received(class, buffer, &Limits::DEFAULT).unwrap();
        let lists = usize::from(matches!(message, NetMessage::MembersListReq(_)));
        let visitor = self.visitors.get_mut(&player).unwrap();
        let (type_, buffer) = (class, Bytes32::new(buffer.to_vec()));
        let message = Message::from(ClientMessage::from(PropagateBuffer { type_, buffer }));
        let heard = self.runtime.block_on(async {
            visitor.game.link().send(message).await.unwrap();
            visitor.settle(lists).await
        });
        self.heard.extend(heard.into_iter().map(|bytes| (player, bytes)));
    }

    fn leave(&mut self, _: Duration, player: u32) {
        let Some(mut leaving) = self.visitors.remove(&player) else { return };
        let (heard, visitors) = (&mut self.heard, &mut self.visitors);
        self.runtime.block_on(async {
            let told = leaving.settle(0).await;
            heard.extend(told.into_iter().map(|bytes| (player, bytes)));
            let Visitor { auth, game, .. } = leaving;
            game.leave().await;
            let Some((other, visitor)) = visitors.iter_mut().next() else { return };
            let is_told = |message: &NetMessage<'_>| match message {
                NetMessage::MemberUpdate(update) => {
                    update.member.client.player_id == Some(player) && !update.was_added.is_true()
                }
                _ => false,
            };
            let told = visitor.hear_until(is_told).await;
            heard.extend(told.into_iter().map(|bytes| (*other, bytes)));
            auth.link().clone().close().await;
        });
    }

    fn take(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.heard)
    }

    fn end(&mut self, _: Duration) -> Vec<(u32, Vec<u8>)> {
        let (heard, visitors) = (&mut self.heard, &mut self.visitors);
        self.runtime.block_on(async {
            for (player, visitor) in visitors.iter_mut() {
                let told = visitor.settle(0).await;
                heard.extend(told.into_iter().map(|bytes| (*player, bytes)));
            }
        });
        visitors.clear();
        self.take()
    }
}
