//! `shard.toml`: the settings of a shard.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use worldwire_net::Capacity;
use worldwire_uru::age::{Capacity as AgeCapacity, Config as AgeConfig};
use worldwire_uru::connect::BUILD_ID;
use worldwire_uru::connection::Encryption;
use worldwire_uru::games::{GameType, GamesConfig};

use super::vault::{OnDuplicate, VaultConfig};
use crate::config::{ConfigError, ServerConfig, SettingError, at_least_1, path_text};

mod addresses;
mod ages;
mod cluster;
mod common;
mod edit;
mod settings;

pub use addresses::{check_public_address, parse_listen};
pub use ages::FixedAge;
pub use cluster::Role;
pub(super) use cluster::is_name;
pub(super) use common::{RESTRICTED, Settings, WELCOME};
pub(super) use edit::edit;

use addresses::listen_address;
use settings::settings;

/// The name of the configuration file in a shard's directory.
pub const CONFIG: &str = "shard.toml";

/// The SQLite database in a shard's directory.
pub const SQLITE_FILE: &str = "shard.sqlite";

/// The standard port of Uru servers.
pub const PORT: u16 = 14_617;
settings! {
    TEMPLATE = "# Configuration of this shard. Changes take effect at the next start.
# Paths are relative to the folder of this file.

";

    /// The configuration of a shard. Paths are relative to the shard's directory.
    pub struct ShardConfig {
        /// The address for clients, with a port unless it is 14617. All services share one port.
        /// 0.0.0.0 means all addresses of this machine.
        #[serde(deserialize_with = "listen_address")]
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        /// The IP addresses of proxies in front of this shard, such as ["10.0.0.2"]. They must begin
        /// every connection with a PROXY protocol header, version 1 or 2. Limits then apply
        /// to the addresses of their clients. No header is accepted from other addresses.
        trusted_proxies: Vec<IpAddr> = Vec::new(),
        /// The IPv4 address or host name (at most 23 characters) that clients are told to connect
        /// to. With 127.0.0.1, only clients on this machine can connect.
        public_address: String = "127.0.0.1".to_owned(),
        /// The address of the status page (/status, /welcome, /metrics and /health). Empty for
        /// none.
        status: String = "127.0.0.1:14680".to_owned(),
        /// The message that launchers show to players.
        welcome: String = "Welcome to this shard.".to_owned(),
        /// "require": clients must encrypt. "allow_plain": they choose. "openuru_plain": for
        /// clients compiled without encryption. "auto": allow_plain if listen is a loopback
        /// address and there are no trusted_proxies, else require.
        encryption: EncryptionPolicy = EncryptionPolicy::Auto,
        /// The client build to accept.
        build: u32 = BUILD_ID,
        /// Accept clients of all other builds as well.
        any_build: bool = false,
        /// The shard's secret keys. Clients need the lines that `serve` prints.
        #[serde(serialize_with = "path_text")]
        keys: PathBuf = "keys.toml".into(),
        /// The folder with files for clients. The file service offers files/: manifests (NAME.mfs),
        /// and folders, each of which has its own manifest. Clients get secure/Python and
        /// secure/SDL after logging in.
        #[serde(serialize_with = "path_text")]
        data: PathBuf = "data".into(),
        /// The database: postgres://USER:PASSWORD@HOST/DATABASE, or empty for SQLite in this
        /// folder.
        database: String = String::new(),
    } {
        /// Limits on connections and on the vault.
        limits: Limits,
        /// The auth service.
        auth: Auth,
        /// The game service.
        game: Game,
        /// The small games that the shard runs in ages.
        games: GameSwitches,
        /// The shard's own ages, and who may enter ages.
        ages: Ages,
        /// Other processes that serve clients of this shard.
        cluster: Cluster,
    }

    /// Limits on connections and on the vault.
    [limits]
    pub struct Limits {
        /// The maximum number of connections in total.
        connections: usize = Capacity::default().total,
        /// The maximum number of connections from one address.
        connections_per_address: usize = Capacity::default().per_address,
        /// The maximum number of vault nodes that one player may create. 0: no limit.
        nodes_per_player: usize = VaultConfig::default().max_nodes,
        /// The maximum number of nodes in a player's inbox, beyond which others cannot send more.
        /// 0: no limit.
        nodes_in_inbox: usize = VaultConfig::default().max_in_inbox,
    }

    /// The auth service.
    [auth]
    pub struct Auth {
        /// How the server announces its capabilities: "compatible" with all clients, "always" with
        /// H'uru's message, or "never".
        caps: CapsPolicy = CapsPolicy::Compatible,
        /// Send Python and SDL files in small chunks, as the original client expects.
        strict_chunks: bool = false,
        /// Only administrators, developers and testers may log in.
        restricted: bool = false,
        /// The number of failed logins per minute after which more are refused, for one name from
        /// one address. The limit for one address, and for one name from addresses that never
        /// logged in to it, is four times as high. 0: no limit.
        failed_logins: u32 = 5,
        /// The number of seconds that a client has to reconnect without logging in after it loses
        /// its connection. Its player remains visible to others until then. 0: clients must log in again.
        reconnect_seconds: u32 = 30,
        /// If a player logs in twice, disconnect the first connection. If false, the second login
        /// is refused.
        kick_on_duplicate: bool = false,
        /// Players may change only their own vault nodes.
        strict_vault: bool = true,
        /// Players may enter any age, even if it is not in the vault. For developers.
        temporary_ages: bool = false,
    }

    /// The game service.
    [game]
    pub struct Game {
        /// Refuse players once an age is full, according to its file (ages/NAME.age in data).
        refuse_full: bool = false,
        /// Send avatar positions only to players nearby.
        relevance: bool = false,
        /// Deliver messages addressed to players in other ages, even if the messages do not request
        /// it.
        directed_anywhere: bool = false,
        /// Console commands that objects in this shard's ages may run on other players' consoles.
        console_commands: Vec<String> = Vec::new(),
        /// The sustained rate, in bytes per second, at which a player may send into an age. Clients
        /// need a few thousand. Players who exceed it are slowed down.
        bytes_per_second: u32 = 64 << 10,
    }

    /// The small games that the shard runs in ages.
    [games]
    pub struct GameSwitches {
        /// The door with seven cloths, in Eder Delin and Eder Tsogal. H'uru clients run
        /// games themselves if the shard does not; OpenUru clients need the shard for all games.
        blue_spiral: bool = false,
        /// Rock, paper, scissors at the Heek table (Ayoheek). Only for OpenUru clients.
        heek: bool = false,
        /// Marker games. Once players have made some, leave this on: H'uru clients need the shard
        /// for them from then on.
        marker: bool = false,
        /// Shared variables: the quabs of Ahnonay.
        var_sync: bool = false,
        /// Tic-tac-toe, from the console of OpenUru clients.
        tic_tac_toe: bool = false,
        /// The climbing wall in Gahreesen. No known client asks for it.
        climbing_wall: bool = false,
        /// When the owner of shared variables leaves, the next player becomes the owner. H'uru
        /// clients rely on this. If false, nobody becomes the owner.
        var_sync_handoff: bool = true,
    }

    /// The shard's own ages, and who may enter ages.
    [ages]
    pub struct Ages {
        /// Ages that players may enter without their being in the vault.
        temporary: Vec<String> = VaultConfig::default().temporary_ages,
        /// Ages that owners may make public.
        public: Vec<String> = VaultConfig::default().may_be_public,
        /// Let players enter any age they know, as other shards do. If false, only owners, the
        /// players they invite, and the players they share books with can enter ages that are not
        /// public.
        open: bool = false,
        /// Let players enter an age while they are in the same age as one of its owners, and for
        /// five minutes after. Without this, sharing a book fails unless both players may enter its
        /// age.
        sharing: bool = VaultConfig::default().sharing,
        /// The city that new players get a link to.
        city: FixedAge = FixedAge::of(VaultConfig::default().city),
        /// The neighbourhoods that new players join.
        neighbourhood: FixedAge = FixedAge::neighbourhood(),
        /// Create the public ages that the game's scripts link to: the pubs of the guilds, K'veer and
        /// others. An instance that a script names, but that is missing, is created for the first
        /// player who follows the link.
        standard: bool = true,
        /// More public ages to create at startup, such as { filename = "Fern", instance_name =
        /// "Fern" }. Add instance = "UUID" to choose an age's instance.
        fixed: Vec<FixedAge> = Vec::new(),
    }

    /// Other processes that serve clients of this shard.
    [cluster]
    pub struct Cluster {
        /// The bus between the shard's processes: NATS servers, such as ["tls://10.0.0.1:4222"].
        /// Empty if there is only this process.
        bus: Vec<String> = Vec::new(),
        /// The name of the shard on the bus: lowercase letters, digits and hyphens.
        name: String = "shard".to_owned(),
        /// The name of this process, which no other process of the shard may have. Empty for the
        /// host name of this machine.
        node: String = String::new(),
        /// What this process does: ["front"] to serve logins and files, ["age"] to run ages, or
        /// both, for a shard whose vault is in another process; or ["front", "age", "vault"] for
        /// everything.
        roles: Vec<Role> = Role::ALL.to_vec(),
        /// At the leader: answer the commands of `worldwire uru` in the folders of other processes. A
        /// process that sends them can do everything that an operator can.
        node_commands: bool = true,
        /// The number of players in ages that this process is meant for. Processes get new ages in
        /// proportion to it.
        max_players: u32 = 2_000,
        /// How many seconds (at most 30) ages in other processes continue while this one, which has
        /// the vault, cannot reach the database. An age whose process fails together with this one
        /// starts elsewhere only after this time.
        hold_seconds: u32 = 30,
        /// A file with the seed of this process's nkey for the bus. Empty for none.
        #[serde(serialize_with = "path_text")]
        bus_key: PathBuf = PathBuf::new(),
        /// A file with the certificates of the authorities that certify the bus. Empty for the
        /// system's.
        #[serde(serialize_with = "path_text")]
        bus_ca: PathBuf = PathBuf::new(),
    }
}

/// Whether connections are encrypted. Connections to the file service never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncryptionPolicy {
    /// [`AllowPlain`](Self::AllowPlain) on a loopback address, [`Require`](Self::Require)
    /// elsewhere.
    Auto,
    /// Clients choose.
    AllowPlain,
    /// Clients that do not encrypt are refused.
    Require,
    /// For OpenUru clients that were compiled without encryption.
    OpenuruPlain,
}

/// How the server announces its capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapsPolicy {
    /// With H'uru's message, which OpenUru clients cannot decode.
    Always,
    /// In a form that all clients can decode.
    Compatible,
    /// Not at all.
    Never,
}

impl ShardConfig {
    /// Parses `shard.toml`. Missing settings get their defaults.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_text(text)
    }

    /// The encryption that the services require from clients.
    #[must_use]
    pub fn encryption(&self) -> Encryption {
        match self.encryption {
            EncryptionPolicy::Auto if self.is_private() => Encryption::AllowPlain,
            EncryptionPolicy::Auto | EncryptionPolicy::Require => Encryption::Require,
            EncryptionPolicy::AllowPlain => Encryption::AllowPlain,
            EncryptionPolicy::OpenuruPlain => Encryption::OpenUruPlain,
        }
    }

    /// The vault's rules.
    #[must_use]
    pub fn vault(&self) -> VaultConfig {
        let Auth { restricted, failed_logins, kick_on_duplicate, strict_vault, .. } = self.auth;
        let on_duplicate = match kick_on_duplicate {
            true => OnDuplicate::Kick,
            false => OnDuplicate::Refuse,
        };
        let mut vault = VaultConfig {
            strict: strict_vault,
            on_duplicate,
            restricted,
            failed_logins,
            max_nodes: self.limits.nodes_per_player,
            max_in_inbox: self.limits.nodes_in_inbox,
            any_temporary_age: self.auth.temporary_ages,
            ..VaultConfig::default()
        };
        self.ages.apply_to(&mut vault);
        vault
    }

    /// The rules within ages.
    #[must_use]
    pub fn age(&self) -> AgeConfig {
        let Game { refuse_full, relevance, directed_anywhere, console_commands, .. } = &self.game;
        let capacity = if *refuse_full { AgeCapacity::Refuse } else { AgeCapacity::Warn };
        AgeConfig {
            capacity,
            relevance: *relevance,
            directed_anywhere: *directed_anywhere,
            console_commands: console_commands.clone(),
            ..AgeConfig::default()
        }
    }

    /// The small games that run in ages.
    #[must_use]
    pub fn games(&self) -> GamesConfig {
        let GameSwitches {
            blue_spiral, heek, marker, var_sync, tic_tac_toe, climbing_wall, ..
        } = self.games;
        let switches = [
            (GameType::BlueSpiral, blue_spiral),
            (GameType::Heek, heek),
            (GameType::Marker, marker),
            (GameType::VarSync, var_sync),
            (GameType::TicTacToe, tic_tac_toe),
            (GameType::ClimbingWall, climbing_wall),
        ];
        let served = switches.into_iter().filter(|(_, is_on)| *is_on).map(|(game, _)| game);
        let var_sync_handoff = self.games.var_sync_handoff;
        GamesConfig { var_sync_handoff, ..GamesConfig::serving(served) }
    }

    /// How long a lost connection's session is kept for its client.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.auth.reconnect_seconds.into())
    }

    /// The maximum number of connections.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let Limits { connections, connections_per_address, .. } = self.limits;
        Capacity { total: connections, per_address: connections_per_address }
    }
}

impl ServerConfig for ShardConfig {
    const FILE: &'static str = CONFIG;
    const TEMPLATE: &'static str = TEMPLATE;
    const SQLITE_FILE: &'static str = SQLITE_FILE;

    fn validate(&self) -> Result<(), ConfigError> {
        check_public_address(&self.public_address)
            .map_err(|problem| problem.of("public_address"))?;
        at_least_1([
            ("limits.connections", self.limits.connections),
            ("limits.connections_per_address", self.limits.connections_per_address),
        ])?;
        if self.game.bytes_per_second == 0 {
            return Err(SettingError::Zero.of("game.bytes_per_second"));
        }
        self.ages.check()?;
        self.cluster.check()?;
        self.status_address().map(drop)
    }

    fn database(&self) -> &str {
        &self.database
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_configuration_reads_back() {
        let default = ShardConfig::default();
        assert_eq!(ShardConfig::parse(&default.to_text()), Ok(default));
        assert_eq!(ShardConfig::parse(""), Ok(ShardConfig::default()));
        let text = r#"
            listen = "[::]:9"
            trusted_proxies = ["192.0.2.1", "2001:db8::1"]
            public_address = "uru.example.org"
            status = ""
            welcome = "\"Shorah\"\n\\o/"
            encryption = "openuru_plain"
            build = 1
            any_build = true
            keys = "a b"
            data = "/srv/uru"
            database = "postgres://uru@localhost/shard"
            [limits]
            connections = 1
            connections_per_address = 2
            nodes_per_player = 3
            nodes_in_inbox = 0
            [game]
            refuse_full = true
            relevance = true
            directed_anywhere = true
            console_commands = ["Foo.Bar"]
            bytes_per_second = 7
            [games]
            blue_spiral = true
            heek = true
            marker = true
            var_sync = true
            tic_tac_toe = true
            climbing_wall = true
            var_sync_handoff = false
            [auth]
            caps = "never"
            strict_chunks = true
            restricted = true
            failed_logins = 0
            reconnect_seconds = 0
            kick_on_duplicate = true
            strict_vault = false
            temporary_ages = true
            [ages]
            temporary = []
            public = ["a", "b"]
            open = true
            sharing = false
            standard = false
            city = { filename = "Town" }
            neighbourhood = { filename = "Hood", user_name = "\"The\"" }
            fixed = [
                { filename = "Fern" },
                { filename = "Fern", instance = "12345678-1234-5678-1234-567812345678" },
            ]
            [cluster]
            bus = ["tls://10.0.0.1:4222", "nats://127.0.0.1:4222"]
            name = "mine"
            node = "front-1"
            roles = ["front", "age"]
            max_players = 8
            hold_seconds = 0
            bus_key = "bus.nk"
            bus_ca = "bus-ca.pem"
        "#;
        let other = ShardConfig::parse(text).unwrap();
        let [ours, default] =
            [&other, &ShardConfig::default()].map(|it| serde_json::to_value(it).unwrap());
        for (name, value) in ours.as_object().unwrap() {
            assert_ne!(*value, default[name], "{name}");
        }
        assert_eq!(other.games().caps(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(ShardConfig::default().games().caps(), [0]);
        let vault = other.vault();
        assert!(vault.open_ages && vault.static_ages[1].instance.is_some());
        assert_eq!(ShardConfig::parse(&other.to_text()), Ok(other));
    }

    #[test]
    fn plain_connections_default_to_loopback() {
        let mut config = ShardConfig::default();
        assert_eq!(config.encryption(), Encryption::AllowPlain);
        config.listen = "0.0.0.0:14617".parse().unwrap();
        assert_eq!(config.encryption(), Encryption::Require);
        config.encryption = EncryptionPolicy::AllowPlain;
        assert_eq!(config.encryption(), Encryption::AllowPlain);
        // The clients of a proxy on this machine can be on any machine.
        let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let config = ShardConfig { trusted_proxies, ..ShardConfig::default() };
        assert_eq!(config.encryption(), Encryption::Require);
        assert!(config.misleads_others());
    }

    #[test]
    fn errors_name_the_setting() {
        let error = |text: &str| ShardConfig::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("public_address = \"a-rather-long-name.example.org\""),
            "public_address: must have 1 to 23 characters, not 30"
        );
        for host in ["a b", "300.1.1.1", "::1", "x:70000", "a..b", "x:", "1.2.3", "-\u{e9}"] {
            let error = error(&format!("public_address = \"{host}\""));
            assert!(error.starts_with("public_address: must be an IPv4 address"), "{error}");
        }
        for host in ["10.0.0.1", "uru.example.org", "localhost", "x:14617", "1.2.3.4:5", "a-1.b."] {
            assert!(ShardConfig::parse(&format!("public_address = \"{host}\"")).is_ok(), "{host}");
        }
        for (listen, wanted) in
            [("0.0.0.0", "0.0.0.0:14617"), ("::1", "[::1]:14617"), ("127.0.0.1:9", "127.0.0.1:9")]
        {
            let config = ShardConfig::parse(&format!("listen = \"{listen}\"")).unwrap();
            assert_eq!(config.listen, wanted.parse().unwrap());
        }
        assert!(error("listen = \"here\"").contains("listen: must be an address with a port"));
        for (listen, public, misleads) in [
            ("127.0.0.1:1", "127.0.0.1", false),
            ("0.0.0.0:1", "127.0.0.1", true),
            ("192.0.2.7:1", "LOCALHOST:1", true),
            ("[::]:1", "0.0.0.0", true),
            ("0.0.0.0:1", "192.0.2.7:1", false),
            ("0.0.0.0:1", "uru.example.org", false),
        ] {
            let (listen, public_address) = (listen.parse().unwrap(), public.to_owned());
            let config = ShardConfig { listen, public_address, ..ShardConfig::default() };
            assert_eq!(config.misleads_others(), misleads, "{listen} {public}");
        }
        assert_eq!(error("[limits]\nconnections = 0"), "limits.connections: must be at least 1");
        assert_eq!(
            error("[game]\nbytes_per_second = 0"),
            "game.bytes_per_second: must be at least 1"
        );
        assert!(error("status = \"yes\"").starts_with("status: must be an address with a port"));
        for (age, problem) in [
            ("city = {}", "ages.city: needs a filename"),
            (
                "fixed = [{ filename = \"x\", instance = \"y\" }]",
                "ages.fixed: instance must be a UUID, not \"y\"",
            ),
            (
                "neighbourhood = { filename = \"x\", instance = \"12345678-1234-5678-1234-567812345678\" }",
                "ages.neighbourhood: must not have an instance: the shard creates several",
            ),
        ] {
            assert_eq!(error(&format!("[ages]\n{age}")), problem);
        }
        for (cluster, problem) in [
            (
                "roles = [\"front\"]",
                "cluster.bus: must be set for a process without the role \"vault\", because it has no \
                 vault",
            ),
            (
                "roles = [\"age\", \"vault\"]",
                "cluster.roles: must be \"front\", \"age\" or both, or all of \"front\", \"age\" and \
                 \"vault\"",
            ),
            (
                "roles = []",
                "cluster.roles: must be \"front\", \"age\" or both, or all of \"front\", \"age\" and \
                 \"vault\"",
            ),
            ("max_players = 0", "cluster.max_players: must be at least 1"),
            ("hold_seconds = 31", "cluster.hold_seconds: must be at most 30, not 31"),
            (
                "node = \"A.b\"",
                "cluster.node: must have 1 to 32 lowercase letters, digits and hyphens, not \"A.b\"",
            ),
            (
                "bus = [\"nats://10.0.0.1:4222\"]",
                "cluster.bus: must be addresses such as tls://10.0.0.1:4222; only loopback addresses \
                 can use nats://: \"nats://10.0.0.1:4222\"",
            ),
        ] {
            assert_eq!(error(&format!("[cluster]\n{cluster}")), problem);
        }
        let unknown = error("build = 1\nlisen = 1");
        assert!(unknown.starts_with("line 2: unknown field `lisen`"), "{unknown}");
        let secret = error("database = \"postgres://uru:secret@host/\" shard");
        assert!(secret.starts_with("line 1: ") && !secret.contains("secret"), "{secret}");
    }
}
