//! The parts of a shard that operators control: its vault, its configuration file and, while it is
//! running, its connections and ages.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::{AdminError, Request, RequestError, kicked_json, the_only};
use crate::admin::{Administered, stopped_config, stopped_store};
use crate::config::ServerConfig as _;
use crate::folder::blocking;
use crate::operators::Operated;
use crate::page::unix;
use crate::start::or_close;
use crate::store::lease::{SeenStandby, SharedStore};
use crate::store::lock::FolderLock;
use crate::store::seal::KEY_FILE;
use crate::uru::cluster::{Description, LeaderHandle, Member};
use crate::uru::config::{self, FixedAge, Role, SQLITE_FILE, Settings, ShardConfig};
use crate::uru::game::{Games, RunningAge, RunningGame, can_be_shown};
use crate::uru::own_process::OwnProcess;
use crate::uru::vault::{AgeSummary, OnlineSession, Vault, VaultError};
use crate::uru::{Handover, Shared};

/// How long it may take to deliver the reply to a request that ends the shard, even to another
/// process.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);

/// The parts of a shard that operators control. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    folder: PathBuf,
    vault: Vault,
    live: Option<Live>,
    /// Held while settings are changed, so that the file and the settings in force agree.
    changing: Arc<Mutex<()>>,
}

/// The parts of a running shard.
#[derive(Clone)]
struct Live {
    games: Games,
    settings: Settings,
    server_ini: Arc<str>,
    /// The addresses on which the shard listens.
    listen: SocketAddr,
    cluster: ClusterControl,
}

/// A running shard's access to its processes.
#[derive(Clone)]
pub(in crate::uru) struct ClusterControl {
    pub(in crate::uru) own: OwnProcess,
    pub(in crate::uru) leader: LeaderHandle,
    /// The database, if standbys may follow it.
    pub(in crate::uru) store: Option<Arc<dyn SharedStore>>,
    pub(in crate::uru) handover: Handover,
}

impl Live {
    /// The node with this name, or this process; `None` unless this process leads others.
    fn node<'a>(&'a self, name: Option<&'a str>) -> Option<&'a str> {
        let is_leading = self.games.nodes().is_leading();
        is_leading.then(|| name.unwrap_or_else(|| self.cluster.own.node()))
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Control {
    /// Controls a vault that no shard is serving. The directory contains the shard's configuration.
    #[must_use]
    pub fn stopped(folder: &Path, vault: Vault) -> Self {
        Self { folder: folder.to_owned(), vault, live: None, changing: Arc::default() }
    }

    pub(in crate::uru) fn running(
        folder: &Path,
        shared: &Shared,
        (server_ini, listen): (String, SocketAddr),
        cluster: ClusterControl,
    ) -> Self {
        let (vault, games) = (shared.vault.clone(), shared.games.clone());
        let settings = shared.settings().clone();
        let live = Live { games, settings, server_ini: server_ini.into(), listen, cluster };
        Self { folder: folder.to_owned(), vault, live: Some(live), changing: Arc::default() }
    }

    /// The running ages. Empty if the shard is not running.
    fn running_ages(&self) -> Vec<RunningAge> {
        self.live.as_ref().map(|live| live.games.running()).unwrap_or_default()
    }

    async fn ages(&self, all: bool, running: bool) -> Result<Vec<Json>, RequestError> {
        let mut hosts = self.running_ages();
        let names = self.vault.online().await?;
        let name = |player: u32| {
            let own = names.iter().filter_map(|session| session.player.as_ref());
            own.into_iter().find(|(id, _)| *id == player).map(|(_, name)| name.clone())
        };
        let mut listed = Vec::new();
        for age in self.vault.ages(all || running).await? {
            let host = hosts.iter().position(|host| host.instance == age.age.instance);
            let host = host.map(|at| hosts.swap_remove(at));
            if host.is_some() || !running {
                listed.push(age_json(&age, host.as_ref(), name));
            }
        }
        // Ages that are not in the vault.
        if all || running {
            listed.extend(hosts.iter().map(|host| temporary_json(host, name)));
        }
        Ok(listed)
    }

    async fn add_age(&self, age: FixedAge, another: bool) -> Result<Vec<Json>, RequestError> {
        age.check().map_err(|problem| RequestError::NewAge(problem.to_string()))?;
        if !another && age.instance.is_empty() {
            self.check_only(&age).await?;
        }
        let (filename, instance) = (age.filename.clone(), age.instance.clone());
        let (age, is_new) =
            self.vault.add_age(age.into_age()).await.map_err(|error| match error {
                NetError::InvalidParameter if !instance.is_empty() => RequestError::NewAge(
                    format!("{instance} is an instance of an age other than {filename}"),
                ),
                error => error.into(),
            })?;
        if is_new {
            let (title, instance) = (&age.title, age.age.instance);
            tracing::info!(filename, title, %instance, "operator added an age");
        }
        let mut added = age_json(&age, None, |_| None);
        added["added"] = is_new.into();
        Ok(vec![added])
    }

    /// Refuses to create a second public instance of an age under other names.
    async fn check_only(&self, new: &FixedAge) -> Result<(), RequestError> {
        let ages = self.vault.ages(false).await?;
        let others: Vec<_> = ages.iter().filter(|it| it.age.filename == new.filename).collect();
        let is_new = |it: &&AgeSummary| {
            it.age.instance_name == new.instance_name && it.age.user_name == new.user_name
        };
        match others.first() {
            Some(other) if !others.iter().any(is_new) => Err(RequestError::AnotherAge {
                filename: new.filename.clone(),
                title: other.title.clone(),
                instance: other.age.instance.to_string(),
            }),
            _ => Ok(()),
        }
    }

    async fn remove_age(&self, word: String) -> Result<Vec<Json>, RequestError> {
        let node = the_only(&word, "age", self.vault.ages_called(&word).await?)?;
        let all = self.vault.ages(true).await?;
        let removed = all.into_iter().find(|age| age.id == node);
        self.vault
            .remove_age(node)
            .await
            .map_err(|error| RequestError::RemoveAge { age: word, error })?;
        let Some(removed) = removed else { return Ok(Vec::new()) };
        tracing::info!(age = node, title = removed.title, "operator removed an age");
        Ok(vec![age_json(&removed, None, |_| None)])
    }

    async fn online(&self) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let running = live.games.running();
        let in_age = |player: u32| {
            let mut ages = running.iter();
            ages.find_map(|age| {
                let (_, since) = age.players.iter().find(|(id, _)| *id == player)?;
                Some((age, unix(*since)))
            })
        };
        let node = |name: Option<&str>| live.node(name).map(str::to_owned);
        let shown = |OnlineSession { number, account, player, place, instance }| {
            let client = live.games.client(number);
            let (age, since) = player.as_ref().and_then(|(id, _)| in_age(*id)).unzip();
            json!({
                "account": account,
                "player": player.map(|(id, name)| json!({ "id": id, "name": name })),
                "place": place,
                "instance": (instance != Uuid::ZERO).then(|| instance.to_string()),
                "placeSince": since,
                "node": age.and_then(|age| node(age.node.as_deref())),
                "address": client.as_ref().map(|client| client.address.to_string()),
                "front": client.as_ref().and_then(|client| node(client.front.as_deref())),
                "since": client.as_ref().map(|client| unix(client.since)),
                "connected": client.is_some_and(|client| client.is_connected),
            })
        };
        Ok(self.vault.online().await?.into_iter().map(shown).collect())
    }

    async fn games(&self) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let names = self.vault.online().await?;
        let name = |player: u32| {
            let own = names.iter().filter_map(|session| session.player.as_ref());
            own.into_iter().find(|(id, _)| *id == player).map(|(_, name)| name.clone())
        };
        let running = live.games.running_games();
        let templates = running.iter().filter_map(|game| game.template).collect();
        let titles = self.vault.marker_names(templates).await?;
        let shown = |game: RunningGame| {
            let player = |id: &u32| json!({ "id": id, "name": name(*id) });
            json!({
                "id": game.id,
                "game": game.game_type.name(),
                "name": game.template.and_then(|template| titles.get(&template)),
                "template": game.template.map(|template| template.to_string()),
                "age": game.filename,
                "instance": game.instance.to_string(),
                "players": game.players.iter().map(player).collect::<Vec<_>>(),
                "since": unix(game.since),
            })
        };
        Ok(running.into_iter().map(shown).collect())
    }

    async fn nodes(&self) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let ClusterControl { own, leader, store, .. } = &live.cluster;
        let mut listed = vec![node_json(own.node(), Some(&own.describe()), None)];
        let members = leader.members().await;
        listed.extend(
            members
                .iter()
                .map(|member| node_json(&member.node, member.description.as_ref(), Some(member))),
        );
        // If there is a bus, standbys are members of the cluster.
        if let Some(store) = store.as_ref().filter(|_| !own.has_bus) {
            let standbys = store.standbys().await.map_err(|_| NetError::TimeoutOdbc)?;
            listed.extend(standbys.iter().map(standby_json));
        }
        Ok(listed)
    }

    /// Drains a node, or lets it serve clients again.
    async fn drain(&self, node: String, undo: bool) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let ClusterControl { own, leader, .. } = &live.cluster;
        if own.has_bus && own.node() == node {
            return Err(RequestError::DrainsLeader(node));
        }
        if leader.members().await.iter().any(|it| it.node == node && it.is_standby()) {
            return Err(RequestError::DrainsStandby(node));
        }
        if !leader.drain(node.clone(), !undo).await {
            return Err(RequestError::NoSuchNode(node));
        }
        match undo {
            true => tracing::info!(node, "operator stopped draining a node"),
            false => tracing::info!(node, "operator started draining a node"),
        }
        Ok(vec![json!({ "node": node, "draining": !undo })])
    }

    /// Hands over the shard to a standby.
    async fn hand_over(&self) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let ClusterControl { own, leader, store, handover } = &live.cluster;
        let store = store.as_ref().ok_or(RequestError::NotShared)?;
        let standbys = store.standbys().await.map_err(|_| NetError::TimeoutOdbc)?;
        if standbys.is_empty() {
            return Err(RequestError::NoStandby);
        }
        // A standby that was refused also follows the database.
        if own.has_bus && !leader.members().await.iter().any(Member::is_standby) {
            return Err(RequestError::NotAdmitted);
        }
        tracing::info!("operator started handing over the shard to a standby");
        let handover = handover.clone();
        tokio::spawn(async move {
            sleep(ANSWER_WITHIN).await;
            handover.request();
        });
        Ok(standbys.iter().map(standby_json).collect())
    }

    async fn message(
        &self,
        sender: &str,
        text: &str,
        age: Option<String>,
    ) -> Result<Vec<Json>, RequestError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        if !can_be_shown(sender, text) {
            return Err(RequestError::Message);
        }
        let instance = match age {
            None => None,
            Some(word) => {
                let node = the_only(&word, "age", self.vault.ages_called(&word).await?)?;
                let all = self.vault.ages(true).await?;
                all.iter().find(|age| age.id == node).map(|age| age.age.instance)
            }
        };
        let players = live.games.announce_text(sender, text, instance)?;
        tracing::info!(sender, text, players, "operator sent a message");
        Ok(vec![json!({ "players": players })])
    }

    /// Changes a setting in the configuration file.
    async fn configure(
        &self,
        (section, key): (&'static str, &'static str),
        value: Json,
    ) -> Result<(), RequestError> {
        let folder = self.folder.clone();
        Ok(blocking(move || config::edit(&folder, section, key, value)).await?)
    }

    /// Changes settings in force, also in the other processes.
    fn change(&self, change: impl FnOnce(&mut ShardConfig)) {
        if let Some(live) = &self.live {
            live.settings.change(change);
            live.cluster.leader.share(live.settings.current().common());
        }
    }

    /// Shows or changes the welcome message. A change also affects the configuration.
    async fn welcome(&self, text: Option<String>) -> Result<Vec<Json>, RequestError> {
        let welcome = match text {
            Some(text) => {
                let _changing = self.changing.lock().await;
                self.configure(config::WELCOME, json!(text)).await?;
                self.vault.set_welcome(&text).await?;
                self.change(|config| config.welcome.clone_from(&text));
                tracing::info!(text, "operator changed the welcome message");
                text
            }
            None => match &self.live {
                Some(live) => live.settings.current().welcome.clone(),
                None => ShardConfig::read(&self.folder)?.unwrap_or_default().welcome,
            },
        };
        Ok(vec![json!({ "welcome": welcome })])
    }

    /// Closes the shard to players or opens it. Also changes the configuration.
    async fn restrict(&self, closed: bool, kick: bool) -> Result<Vec<Json>, RequestError> {
        let _changing = self.changing.lock().await;
        self.configure(config::RESTRICTED, json!(closed)).await?;
        let kicked = self.vault.restrict(closed, kick).await?;
        self.change(|config| config.auth.restricted = closed);
        match closed {
            true => tracing::info!(kicked = kicked.len(), "operator closed the shard to players"),
            false => tracing::info!("operator opened the shard to players"),
        }
        let kicked: Vec<_> = kicked.iter().map(kicked_json).collect();
        Ok(vec![json!({ "closed": closed, "kicked": kicked })])
    }
}

impl Administered for Control {
    const NAME: &'static str = "shard";
    const COMMAND: &'static str = "worldwire serve uru";

    type LoadError = VaultError;

    fn needs_running(request: &Request) -> bool {
        matches!(
            request,
            Request::Online
                | Request::Games
                | Request::Nodes
                | Request::Drain { .. }
                | Request::HandOver
                | Request::ServerIni
                | Request::Message { .. }
        )
    }

    fn check_folder(folder: &Path) -> Result<(), AdminError> {
        let key = folder.join(KEY_FILE);
        if key.exists() {
            return Ok(());
        }
        let config = ShardConfig::read(folder);
        if config.is_ok_and(|config| config.is_some_and(|config| !config.cluster.has(Role::Vault)))
        {
            return Ok(());
        }
        let has_others =
            [SQLITE_FILE, ShardConfig::FILE].iter().any(|name| folder.join(name).exists());
        Err(if has_others { AdminError::NoKey(key) } else { Self::missing(folder) })
    }

    async fn open_stopped(folder: &Path, lock: &mut FolderLock) -> Result<Self, AdminError> {
        let config: ShardConfig = stopped_config(folder)?;
        if !config.cluster.has(Role::Vault) {
            return Err(AdminError::NoVault { folder: folder.to_owned(), name: Self::NAME });
        }
        let (store, key) = stopped_store(folder, &config, lock, Self::NAME).await?;
        // Opening the vault creates the shard's own ages, so they must have their configured names.
        let opened = Vault::open(Arc::clone(&store), key, config.vault()).await;
        let vault = or_close(opened, &*store).await.map_err(AdminError::Load)?;
        Ok(Self::stopped(folder, vault))
    }

    async fn close_stopped(&self) {
        self.vault.close().await;
    }
}

impl Operated for Control {
    type Request = Request;
    type Error = RequestError;

    fn is_failure(error: &RequestError) -> bool {
        error.is_failure()
    }

    fn has_lines(request: &Request) -> bool {
        matches!(request, Request::Import { .. })
    }

    async fn perform(&self, request: Request, lines: &[String]) -> Result<Vec<Json>, RequestError> {
        match request {
            Request::Ages { all, running } => self.ages(all, running).await,
            Request::AddAge { age, another } => self.add_age(age, another).await,
            Request::RemoveAge { age } => self.remove_age(age).await,
            Request::Online => self.online().await,
            Request::Games => self.games().await,
            Request::Nodes => self.nodes().await,
            Request::Drain { node, undo } => self.drain(node, undo).await,
            Request::HandOver => self.hand_over().await,
            Request::ServerIni => {
                let place = |live: &Live| [json!(&*live.server_ini), json!(live.listen)];
                Ok(self.live.iter().flat_map(place).collect())
            }
            Request::Openness => Ok(vec![json!({ "open": !self.vault.is_restricted() })]),
            Request::Message { sender, text, age } => self.message(&sender, &text, age).await,
            Request::Welcome { text } => self.welcome(text).await,
            Request::Restrict { closed, kick } => self.restrict(closed, kick).await,
            Request::SetRoles { name, flags } => {
                let set = self.vault.set_roles(&name, AccountFlags(flags)).await;
                set.map_err(|error| RequestError::account(&name, error))?;
                tracing::info!(name, flags, "operator changed the roles of an account");
                Ok(Vec::new())
            }
            request => super::perform(&self.vault, request, lines).await,
        }
    }
}

fn age_json(
    age: &AgeSummary,
    host: Option<&RunningAge>,
    name: impl Fn(u32) -> Option<String>,
) -> Json {
    let AgeSummary { id, title, is_public, is_own, age } = age;
    json!({
        "id": id,
        "instance": age.instance.to_string(),
        "filename": age.filename,
        "name": title,
        "public": is_public,
        "own": is_own,
        "owners": age.owners,
        "population": age.population,
        "running": host.map(|host| running_json(host, name)),
    })
}

/// A process: the leader, or a member of the cluster.
fn node_json(node: &str, about: Option<&Description>, member: Option<&Member>) -> Json {
    let now = Instant::now();
    let joined = member.and_then(|member| now.checked_sub(member.member_for)).map(unix);
    json!({
        "node": node,
        "leader": member.is_none(),
        "roles": about.map(|about| &about.roles),
        "version": about.map(|about| &about.version),
        "address": about.map(|about| &about.address),
        "clients": about.map(|about| about.clients),
        "ages": about.map(|about| about.ages),
        "players": about.map(|about| about.players),
        "since": about.map(|about| about.started),
        "joined": joined,
        "heardMs": member.map(|member| member.heard.as_millis()),
        "behind": about.and_then(|about| about.behind),
        "draining": about.is_some_and(|about| about.is_draining),
        "process": null,
    })
}

/// A standby that is known only from the database.
fn standby_json(standby: &SeenStandby) -> Json {
    json!({
        "node": null,
        "leader": false,
        "roles": ["standby"],
        "version": null,
        "address": standby.address,
        "clients": null,
        "ages": null,
        "players": null,
        "since": standby.since,
        "joined": null,
        "heardMs": null,
        "behind": null,
        "draining": false,
        "process": standby.process,
    })
}

/// A running age that is not in the vault.
fn temporary_json(host: &RunningAge, name: impl Fn(u32) -> Option<String>) -> Json {
    json!({
        "id": null,
        "instance": host.instance.to_string(),
        "filename": host.filename,
        "name": host.filename,
        "public": false,
        "own": false,
        "owners": 0,
        "population": host.players.len(),
        "running": running_json(host, name),
    })
}

fn running_json(host: &RunningAge, name: impl Fn(u32) -> Option<String>) -> Json {
    let player = |(id, since): &(u32, Instant)| json!({ "id": id, "name": name(*id), "since": unix(*since) });
    let players: Vec<_> = host.players.iter().map(player).collect();
    json!({ "since": unix(host.since), "players": players })
}
