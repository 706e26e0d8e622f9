//! A client that runs steps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::{Instant, timeout_at};
use worldwire_client::uru::folder::{self, InstalledFile};
use worldwire_client::uru::games::PlayerGames;
use worldwire_client::uru::{
    Auth, ClientError, Files, Gatekeeper, Login, NewAge, Notifications, Player, Result, VaultMirror,
};
use worldwire_uru::crypt::login::PASSWORD_UNITS;
use worldwire_uru::file::secure;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::message::Score;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;

use super::Setup;
use super::age::InAge;
use super::play_step::PlayStep;
use super::shown::{self, node_fields};
use super::step::{Node, Step};

/// The maximum size of a downloaded secure file. Real ones are a few megabytes long.
const MAX_SECURE: u32 = 256 << 20;

/// A client with the connections that its steps have needed so far.
#[derive(Debug)]
pub(super) struct Session<'s> {
    setup: &'s Setup,
    gatekeeper: Option<Gatekeeper>,
    files: Option<Files>,
    auth: Option<(Auth, Option<Notifications>)>,
    login: Option<Login>,
    pub(super) player: u32,
    pub(super) made: Option<u32>,
    age: Option<InAge>,
    /// Whether to measure how long steps take, instead of printing events.
    measures: bool,
}

impl<'s> Session<'s> {
    pub(super) fn new(setup: &'s Setup) -> Self {
        Self {
            setup,
            gatekeeper: None,
            files: None,
            auth: None,
            login: None,
            player: 0,
            made: None,
            age: None,
            measures: false,
        }
    }

    /// A session that prints no events but measures how long steps take.
    pub(super) fn measuring(setup: &'s Setup) -> Self {
        Self { measures: true, ..Self::new(setup) }
    }

    /// Runs a step and returns its results.
    pub(super) async fn take(&mut self, step: &Step) -> Result<Vec<Json>> {
        if *step != Step::Logout {
            self.kicked().map_or(Ok(()), Err)?;
        }
        let taken = self.perform(step).await;
        // A kicked client also loses the age connection, but only the auth server gives the reason.
        taken.map_err(|error| self.kicked().unwrap_or(error))
    }

    fn kicked(&self) -> Option<ClientError> {
        let (auth, _) = self.auth.as_ref()?;
        auth.link().kicked().map(ClientError::KickedOff)
    }

    async fn perform(&mut self, step: &Step) -> Result<Vec<Json>> {
        Ok(match step {
            Step::Gatekeeper => {
                let gatekeeper = self.gatekeeper().await?;
                let auth = gatekeeper.auth_server().await?;
                let file = gatekeeper.file_server().await?;
                vec![json!({"auth": auth, "file": file})]
            }
            Step::Build => vec![json!({"build": self.files().await?.build_id().await?})],
            Step::Manifest(group) => self.manifest(group).await?,
            Step::Download(group, folder) => self.download(group, folder).await?,
            Step::Login => self.log_in().await?,
            Step::Players => self.players()?.iter().map(player_shown).collect(),
            Step::CreatePlayer(name, shape) => {
                let made = self.auth().await?.create_player(name, shape).await?;
                let shown = player_shown(&made);
                self.login.iter_mut().for_each(|login| login.players.push(made.clone()));
                vec![shown]
            }
            Step::SetPlayer(player) => {
                let id = self.player_named("AcctSetPlayerRequest", player)?;
                self.auth().await?.set_player(id).await?;
                self.player = id;
                vec![json!({"id": id})]
            }
            Step::DeletePlayer(player) => {
                let id = self.player_named("PlayerDeleteRequest", player)?;
                self.auth().await?.delete_player(id).await?;
                self.login.iter_mut().for_each(|login| login.players.retain(|one| one.id != id));
                vec![json!({"id": id})]
            }
            Step::Vault(node) => {
                let root = self.number(node.unwrap_or(Node::Player))?;
                tree(&VaultMirror::fetch(self.auth().await?, root).await?)
            }
            Step::Node(node) => {
                let id = self.number(*node)?;
                vec![node_fields(&self.auth().await?.fetch_node(id).await?)]
            }
            Step::Find(template) => {
                let found = self.auth().await?.find_nodes(template).await?;
                found.into_iter().map(|id| json!({"id": id})).collect()
            }
            Step::CreateNode(node) => {
                let id = self.auth().await?.create_node(node).await?;
                self.made = Some(id);
                vec![json!({"id": id})]
            }
            Step::SaveNode(node, fields) => {
                let id = self.number(*node)?;
                self.auth().await?.save_node(id, revision(), fields).await?;
                vec![json!({"id": id})]
            }
            Step::AddNode(parent, child) => {
                let (parent, child) = (self.number(*parent)?, self.number(*child)?);
                let owner = self.player;
                self.auth().await?.add_node(parent, child, owner).await?;
                vec![json!({"parent": parent, "child": child})]
            }
            Step::RemoveNode(parent, child) => {
                let (parent, child) = (self.number(*parent)?, self.number(*child)?);
                self.auth().await?.remove_node(parent, child).await?;
                vec![json!({"parent": parent, "child": child})]
            }
            Step::SendNode(node, player) => {
                let id = self.number(*node)?;
                self.auth().await?.send_node(id, *player).await.map(silent)?
            }
            Step::Ages(filename) => {
                let ages = self.auth().await?.public_ages(filename).await?;
                let shown = ages.iter().map(|age| {
                    json!({
                        "instance": age.instance_id.to_string(),
                        "name": age.instance_name.to_text(),
                        "userName": age.user_name.to_text(),
                        "sequence": age.sequence_number,
                        "owners": age.owner_count,
                        "population": age.current_population,
                    })
                });
                shown.collect()
            }
            Step::Age(filename, instance) => {
                let age = self.auth().await?.age(filename, *instance).await?;
                vec![json!({
                    "node": age.node_id,
                    "mcpId": age.mcp_id,
                    "gameServer": age.game_server.to_string(),
                })]
            }
            Step::InitAge(filename, instance, name) => {
                let name = name.as_deref().unwrap_or_default();
                let age = NewAge { user_name: name, ..NewAge::new(filename, *instance) };
                let (node, info) = self.auth().await?.init_age(&age).await?;
                vec![json!({"node": node, "info": info})]
            }
            Step::SetPublic(node, public) => {
                let id = self.number(*node)?;
                self.auth().await?.set_age_public(id, *public).await.map(silent)?
            }
            Step::Scores(owner, name) => {
                let owner = self.number(*owner)?;
                let scores = self.auth().await?.scores(owner, name).await?;
                scores.iter().map(score_shown).collect()
            }
            Step::HighScores(owner, most, name) => {
                let owner = self.number(*owner)?;
                let scores = self.auth().await?.high_scores(owner, *most, name).await?;
                scores.iter().map(score_shown).collect()
            }
            Step::CreateScore(owner, name, kind, points) => {
                let owner = self.number(*owner)?;
                let id = self.auth().await?.create_score(owner, name, *kind, *points).await?;
                vec![json!({"id": id})]
            }
            Step::AddPoints(score, points) => {
                self.auth().await?.add_points(*score, *points).await?;
                vec![json!({"id": score})]
            }
            Step::SetPoints(score, points) => {
                self.auth().await?.set_points(*score, *points).await?;
                vec![json!({"id": score})]
            }
            Step::TransferPoints(from, to, points) => {
                self.auth().await?.transfer_points(*from, *to, *points).await?;
                vec![json!({"from": from, "to": to})]
            }
            Step::Secure(directory, extension, folder) => {
                self.secure(directory, extension, folder).await?
            }
            Step::Enter(filename, instance) => self.enter(filename, *instance).await?,
            Step::Say(text) => self.age()?.say(text).await.map(silent)?,
            Step::Walk(seconds) => self.age()?.walk(*seconds).await?,
            Step::Lock(thing) => self.age()?.lock(thing).await?,
            Step::Release(thing) => self.age()?.release(thing).await.map(silent)?,
            Step::SetState(thing, descriptor, variables) => {
                self.age()?.set_state(thing, descriptor, variables).await.map(silent)?
            }
            Step::Leave => {
                self.age()?;
                self.leave().await;
                Vec::new()
            }
            Step::Play(PlayStep::CreateMarkerGame(name, marker_type)) => {
                let marker_type = marker_type.unwrap_or(MarkerGameType::Quest);
                self.create_marker_game(name, marker_type).await?
            }
            Step::Play(PlayStep::OpenMarkerGame(name)) => self.open_marker_game(name).await?,
            Step::Play(step) => self.age()?.play(step).await?,
            Step::Logout => {
                self.leave().await;
                if let Some((auth, _)) = self.auth.take() {
                    auth.link().clone().close().await;
                }
                (self.login, self.player) = (None, 0);
                Vec::new()
            }
            Step::Ping => self.auth().await?.link().ping().await.map(silent)?,
            Step::Wait(time) => self.wait(*time).await?,
            Step::Again => Vec::new(),
        })
    }

    fn number(&self, node: Node) -> Result<u32> {
        let (what, number) = match node {
            Node::Number(number) => return Ok(number),
            Node::Player => ("player", Some(self.player).filter(|player| *player != 0)),
            Node::Made => ("made", self.made),
        };
        let error = NetError::VaultNodeNotFound;
        number.ok_or(ClientError::Refused { request: what, error })
    }

    /// Closes all connections in an orderly way, so that the server is notified.
    pub(super) async fn close(mut self) {
        self.leave().await;
        if let Some((auth, _)) = self.auth {
            auth.link().clone().close().await;
        }
        if let Some(files) = self.files {
            files.link().clone().close().await;
        }
        if let Some(gatekeeper) = self.gatekeeper {
            gatekeeper.link().clone().close().await;
        }
    }

    async fn leave(&mut self) {
        if let Some(age) = self.age.take() {
            age.leave().await;
        }
    }

    async fn gatekeeper(&mut self) -> Result<&Gatekeeper> {
        if self.gatekeeper.is_none() {
            self.gatekeeper = Some(Gatekeeper::connect(&self.setup.shard).await?);
        }
        self.gatekeeper.as_ref().ok_or(ClientError::NoHost("gatekeeper"))
    }

    async fn files(&mut self) -> Result<&Files> {
        if self.files.is_none() {
            self.files = Some(Files::connect(&self.setup.shard).await?);
        }
        self.files.as_ref().ok_or(ClientError::NoHost("file"))
    }

    pub(super) async fn auth(&mut self) -> Result<&Auth> {
        if self.auth.is_none() {
            let (auth, notifications) = Auth::connect(&self.setup.shard).await?;
            self.auth = Some((auth, Some(notifications).filter(|_| !self.measures)));
        }
        self.auth.as_ref().map(|(auth, _)| auth).ok_or(ClientError::NoHost("auth"))
    }

    async fn log_in(&mut self) -> Result<Vec<Json>> {
        let setup = self.setup;
        let Some((account, password)) = &setup.account else { return Ok(Vec::new()) };
        let login = match self.auth().await?.log_in(account, password).await {
            Err(ClientError::Refused { error: NetError::AuthenticationFailed, .. })
                if password.encode_utf16().count() > PASSWORD_UNITS =>
            {
                self.auth().await?.log_in_uncut(account, password).await?
            }
            login => login?,
        };
        let shown = json!({
            "account": login.account_id.to_string(),
            "flags": login.flags.0,
            "players": login.players.len(),
        });
        self.login = Some(login);
        Ok(vec![shown])
    }

    fn players(&self) -> Result<&[Player]> {
        let refused =
            ClientError::Refused { request: "players", error: NetError::AuthenticationFailed };
        self.login.as_ref().map(|login| &*login.players).ok_or(refused)
    }

    /// A player by number, or one of the account's players by name.
    fn player_named(&self, request: &'static str, player: &str) -> Result<u32> {
        if let Ok(id) = player.parse() {
            return Ok(id);
        }
        let own = self.login.iter().flat_map(|login| &login.players);
        let found = own.into_iter().find(|one| one.name.to_lowercase() == player.to_lowercase());
        found
            .map(|one| one.id)
            .ok_or(ClientError::Refused { request, error: NetError::PlayerNotFound })
    }

    /// The player's current age.
    pub(super) fn age(&mut self) -> Result<&mut InAge> {
        let refused = ClientError::Refused { request: "enter", error: NetError::AgeNotFound };
        self.age.as_mut().ok_or(refused)
    }

    /// Links to an age as the game client does: requests the age, leaves the previous one, and
    /// joins.
    async fn enter(&mut self, filename: &str, instance: Option<Uuid>) -> Result<Vec<Json>> {
        let refused = |error| ClientError::Refused { request: "enter", error };
        let id = self.player;
        let player = self.players()?.iter().find(|player| player.id == id).cloned();
        let player = player.ok_or_else(|| refused(NetError::PlayerNotFound))?;
        let account = self.login.as_ref().map_or(Uuid::ZERO, |login| login.account_id);
        let instance = match instance {
            Some(instance) => instance,
            None => {
                let ages = self.auth().await?.public_ages(filename).await?;
                let first = ages.first().ok_or_else(|| refused(NetError::AgeNotFound))?;
                first.instance_id
            }
        };
        let descriptors = self.descriptors().await?;
        let age = self.auth().await?.age(filename, instance).await?;
        self.leave().await;
        let shard = &self.setup.shard;
        let caps = self.auth().await?.link().caps();
        let games = (!self.measures).then(|| PlayerGames::new(id, caps.as_ref()));
        let at = (filename, &age);
        let (age, values) = InAge::enter(shard, at, account, player, descriptors, games).await?;
        self.age = Some(age);
        Ok(values)
    }

    /// The descriptors that the shard distributes; empty if it has no such files.
    async fn descriptors(&mut self) -> Result<Arc<Descriptors>> {
        let listed = match self.auth().await?.secure_files("SDL", "sdl").await {
            Ok(listed) => listed,
            Err(ClientError::Refused { error: NetError::FileNotFound, .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut texts = Vec::new();
        for file in listed {
            let plain = self.secure_plain(&file.name).await?;
            texts.push((file.name, String::from_utf8_lossy(&plain).into_owned()));
        }
        Ok(Arc::new(Descriptors::load(texts)))
    }

    /// The latencies of age messages received since the last call, in microseconds.
    pub(super) fn delays(&self) -> Vec<u64> {
        self.age.as_ref().map(InAge::delays).unwrap_or_default()
    }

    async fn manifest(&mut self, group: &str) -> Result<Vec<Json>> {
        let files = self.files().await?.manifest(group).await?;
        let shown = files.iter().map(|file| {
            json!({
                "file": file.client_name.to_text(),
                "bytes": file.file_size.0,
                "md5": file.md5.to_text(),
                "download": file.download_name.to_text(),
                "downloadBytes": file.compressed_size.0,
            })
        });
        Ok(shown.collect())
    }

    async fn download(&mut self, group: &str, folder: &Path) -> Result<Vec<Json>> {
        let mut values = Vec::new();
        let mut placed = |placed: &InstalledFile| {
            if let Some(bytes) = placed.downloaded {
                values.push(json!({"file": placed.path.to_string_lossy(), "bytes": bytes}));
            }
        };
        let summary = folder::update(self.files().await?, group, folder, &mut placed).await?;
        values.push(json!({
            "written": summary.written,
            "kept": summary.kept,
            "bytes": summary.bytes,
        }));
        Ok(values)
    }

    async fn secure(&mut self, directory: &str, extension: &str, to: &Path) -> Result<Vec<Json>> {
        let listed = self.auth().await?.secure_files(directory, extension).await?;
        let mut values = Vec::new();
        for file in listed {
            let plain = self.secure_plain(&file.name).await?;
            let path = folder::store(to, &file.name, &plain)?;
            values.push(json!({"file": path.to_string_lossy(), "bytes": plain.len()}));
        }
        Ok(values)
    }

    /// Downloads a secure file and decrypts it.
    async fn secure_plain(&mut self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.auth().await?.secure_file(name, MAX_SECURE).await?;
        let key = self.login.as_ref().map(|login| &login.file_key);
        Ok(match secure::Magic::detect(&bytes) {
            None => bytes,
            Some(_) => secure::open(&bytes, key, u64::from(MAX_SECURE))
                .map_err(|error| ClientError::Download {
                    name: name.to_owned(),
                    wanted: "a file that the login's key decrypts".to_owned(),
                    found: error.to_string(),
                })?
                .into_plain(),
        })
    }

    /// Collects notifications about the age and the vault until the time is up.
    async fn wait(&mut self, time: Duration) -> Result<Vec<Json>> {
        let end = Instant::now() + time;
        let notified = async {
            let mut values = Vec::new();
            let receiver = self.auth.as_mut().and_then(|(_, notifications)| notifications.as_mut());
            if let Some(notifications) = receiver {
                while let Ok(Some(notification)) = timeout_at(end, notifications.next()).await {
                    values.push(shown::notification(&notification));
                }
            }
            values
        };
        let seen = async {
            match &mut self.age {
                Some(age) => age.watch_until(end).await,
                None => {
                    tokio::time::sleep_until(end).await;
                    Ok(Vec::new())
                }
            }
        };
        let (mut values, seen) = tokio::join!(notified, seen);
        values.extend(seen?);
        Ok(values)
    }
}

/// The results of a step that prints nothing.
fn silent((): ()) -> Vec<Json> {
    Vec::new()
}

/// Generates a revision for a change; it must not be zero.
fn revision() -> Uuid {
    let mut bytes = [1; 16];
    // The change succeeds even if the revision is not unique.
    let _ = getrandom::fill(&mut bytes);
    Uuid(bytes)
}

fn score_shown(score: &Score<'_>) -> Json {
    json!({
        "id": score.score_id,
        "owner": score.owner_id,
        "value": score.value,
        "type": score.game_type,
    })
}

fn player_shown(player: &Player) -> Json {
    json!({"id": player.id, "name": player.name, "shape": player.shape})
}

/// The nodes of a vault mirror as a tree; a repeated node is expanded only once.
fn tree(mirror: &VaultMirror) -> Vec<Json> {
    let mut values = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = vec![(0usize, mirror.root())];
    while let Some((depth, id)) = next.pop() {
        let node = mirror.node(id);
        let is_new = seen.insert(id);
        let kind = node.and_then(|node| node.node_type);
        values.push(json!({
            "depth": depth,
            "id": id,
            "type": kind.map_or_else(|| "unknown".to_owned(), |kind| {
                kind.name().map_or_else(|| kind.0.to_string(), str::to_owned)
            }),
            "title": node.and_then(VaultNode::title),
            "repeated": !is_new,
        }));
        if is_new {
            let below = mirror.below(id).iter().rev();
            next.extend(below.map(|known| (depth + 1, known.child_id)));
        }
    }
    values.push(json!({"nodes": mirror.nodes().len(), "refs": mirror.refs().count()}));
    values
}
