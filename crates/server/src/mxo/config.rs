//! `mxo.toml`: the settings of a server with logins.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use worldwire_mxo::rpc::OptionValue;
use worldwire_net::Capacity;

use super::PORT;
use super::districts::path_of;
use crate::config::{ConfigError, ServerConfig, SettingError, address, at_least_1, path_text};

/// The name of the configuration file in a server's directory.
pub const CONFIG: &str = "mxo.toml";
/// The SQLite database in a server's directory.
pub const SQLITE_FILE: &str = "mxo.sqlite";
/// The port of the original auth servers.
pub const AUTH_PORT: u16 = 11_000;

/// The maximum length of the message of the day and of the weather, in bytes.
pub(super) const MAX_TEXT: usize = 1_024;

/// The configuration of a server. Paths are relative to the server's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MxoConfig {
    /// The address for logins, over TCP.
    pub auth_listen: SocketAddr,
    /// The address for characters, over TCP.
    pub margin_listen: SocketAddr,
    /// The address for the game, over UDP. Clients use the host of the margin server.
    pub game_listen: SocketAddr,
    /// The addresses of proxies that use the PROXY protocol.
    pub trusted_proxies: Vec<IpAddr>,
    /// The address of the status page; empty for none.
    pub status: String,
    /// The world's name.
    pub name: String,
    /// The number of the world that characters belong to.
    pub world_id: u16,
    /// Whether players can log in.
    pub open: bool,
    /// The message shown to everyone who loads a character; empty for none.
    pub message_of_the_day: String,
    /// The URL of a PostgreSQL database; empty for SQLite in the server's directory.
    pub database: String,
    /// The server's keys.
    pub keys: KeySettings,
    /// Limits on connections and players.
    pub limits: Limits,
    /// Rules for logging in.
    pub login: LoginSettings,
    /// The world that characters enter.
    pub world: WorldSettings,
}

/// The server's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeySettings {
    /// The private key that signs the server key.
    #[serde(serialize_with = "path_text")]
    pub signing: PathBuf,
    /// The private server key.
    #[serde(serialize_with = "path_text")]
    pub server: PathBuf,
    /// The ID of the server key in `pubkey.dat`.
    pub id: u32,
    /// Whether the key is also sent to clients that have one with this ID.
    pub always_send: bool,
}

/// Limits on connections and players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum number of connections to each of the auth and margin servers.
    pub connections: usize,
    /// The maximum number of connections to each of them from one address.
    pub connections_per_address: usize,
    /// The maximum number of characters in the world.
    pub players: usize,
    /// The maximum number of characters in the world from one address.
    pub players_per_address: usize,
    /// The maximum number of simultaneous margin sessions per account.
    pub sessions_per_account: usize,
    /// The maximum number of characters per account.
    pub characters_per_account: usize,
    /// The maximum size of a message from a client, in bytes.
    pub message_bytes: usize,
}

/// Rules for logging in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginSettings {
    /// Whether replies are delayed after failed logins from an address or to an account.
    pub delay_after_failures: bool,
    /// How long a correct password is remembered, so that another login needs no full hash; 0 for
    /// never.
    pub remember_seconds: u32,
    /// How long a certificate is valid.
    pub certificate_seconds: u32,
    /// How long a client without a character in the world may send nothing on the margin channel.
    pub idle_seconds: u32,
    /// How long the client of a loaded character must have sent nothing before another client can
    /// replace it.
    pub replace_after_seconds: u32,
    /// How long a character takes to leave the world.
    pub jack_out_seconds: u32,
}

/// The world that characters enter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldSettings {
    /// The file of the scene; empty for the built-in scene.
    #[serde(serialize_with = "path_text")]
    pub scene: PathBuf,
    /// The number of the district.
    pub district: u32,
    /// The client's file of the district; empty for the original game's file.
    pub path: String,
    /// Other districts that players can go to through hardlines.
    pub other_districts: Vec<u32>,
    /// The weather: names of effects, separated by commas.
    pub sky: String,
    /// Options of clients, by name.
    pub options: BTreeMap<String, OptionSetting>,
    /// The time between ticks.
    pub tick_milliseconds: u32,
    /// The distance within which clients see objects and hear chat, in units; 100 units are a metre.
    pub reach: u32,
    /// The maximum number of bytes of objects sent to a client per tick.
    pub tick_bytes: usize,
}

/// The value of a client option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionSetting {
    /// A number.
    Number(u32),
    /// A text.
    Text(String),
}

impl OptionSetting {
    /// The value as clients receive it.
    pub(super) fn to_wire(&self) -> worldwire_core::Result<OptionValue<'static>> {
        match self {
            Self::Number(number) => Ok(OptionValue::of_number(*number)),
            Self::Text(text) => OptionValue::of_text(text),
        }
    }
}

impl Default for MxoConfig {
    fn default() -> Self {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            auth_listen: at(AUTH_PORT),
            margin_listen: at(PORT),
            game_listen: at(PORT),
            trusted_proxies: Vec::new(),
            status: "127.0.0.1:10080".to_owned(),
            name: "Reality".to_owned(),
            world_id: 1,
            open: true,
            message_of_the_day: String::new(),
            database: String::new(),
            keys: KeySettings::default(),
            limits: Limits::default(),
            login: LoginSettings::default(),
            world: WorldSettings::default(),
        }
    }
}

impl Default for KeySettings {
    fn default() -> Self {
        let (signing, server) = ("signing.pem".into(), "auth.pem".into());
        Self { signing, server, id: 4, always_send: false }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_address: 16,
            players: 256,
            players_per_address: 16,
            sessions_per_account: 4,
            characters_per_account: 10,
            message_bytes: 4_096,
        }
    }
}

impl Default for LoginSettings {
    fn default() -> Self {
        Self {
            delay_after_failures: true,
            remember_seconds: 3_600,
            certificate_seconds: 600,
            idle_seconds: 60,
            replace_after_seconds: 5,
            jack_out_seconds: 10,
        }
    }
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            scene: PathBuf::new(),
            district: 1,
            path: String::new(),
            other_districts: Vec::new(),
            sky: "Massive".to_owned(),
            options: BTreeMap::new(),
            tick_milliseconds: 50,
            reach: 10_000,
            tick_bytes: 2_590,
        }
    }
}

impl MxoConfig {
    /// Parses `mxo.toml`. Missing settings get their defaults.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_text(text)
    }

    /// The address of the status page, if there is one.
    pub fn status_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("status", &self.status)
    }

    /// The message of the day, if there is one.
    #[must_use]
    pub fn message_of_the_day(&self) -> Option<&str> {
        Some(&*self.message_of_the_day).filter(|text| !text.is_empty())
    }

    /// The maximum number of connections that each of the auth and margin servers accepts.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let Limits { connections, connections_per_address, .. } = self.limits;
        Capacity { total: connections, per_address: connections_per_address }
    }

    /// The maximum number of players that the world admits.
    #[must_use]
    pub fn players(&self) -> Capacity {
        let Limits { players, players_per_address, .. } = self.limits;
        Capacity { total: players, per_address: players_per_address }
    }

    /// How long the client of a loaded character must have sent nothing before another can replace
    /// it.
    #[must_use]
    pub fn replace_after(&self) -> Duration {
        Duration::from_secs(self.login.replace_after_seconds.into())
    }
}

impl WorldSettings {
    /// The client's file of a district; `None` if it is not known.
    #[must_use]
    pub fn path_of(&self, district: u32) -> Option<String> {
        match &*self.path {
            path if !path.is_empty() && district == self.district => Some(path.to_owned()),
            _ => path_of(district),
        }
    }
}

impl ServerConfig for MxoConfig {
    const FILE: &'static str = CONFIG;
    const TEMPLATE: &'static str = TEMPLATE;
    const SQLITE_FILE: &'static str = SQLITE_FILE;

    fn validate(&self) -> Result<(), ConfigError> {
        let Limits { connections, connections_per_address, players, players_per_address, .. } =
            self.limits;
        let number = |seconds: u32| usize::try_from(seconds).unwrap_or(usize::MAX);
        at_least_1([
            ("limits.connections", connections),
            ("limits.connections_per_address", connections_per_address),
            ("limits.players", players),
            ("limits.players_per_address", players_per_address),
            ("limits.sessions_per_account", self.limits.sessions_per_account),
            ("limits.characters_per_account", self.limits.characters_per_account),
            ("limits.message_bytes", self.limits.message_bytes),
            ("login.certificate_seconds", number(self.login.certificate_seconds)),
            ("login.idle_seconds", number(self.login.idle_seconds)),
            ("world.tick_milliseconds", number(self.world.tick_milliseconds)),
            ("world.reach", number(self.world.reach)),
        ])?;
        let most = [
            ("limits.message_bytes", self.limits.message_bytes, MAX_MESSAGE_BYTES),
            ("limits.characters_per_account", self.limits.characters_per_account, MAX_CHARACTERS),
        ];
        for (name, found, max) in most {
            if found > max {
                return Err(SettingError::TooLarge { max, found }.of(name));
            }
        }
        check_name(&self.name).map_err(|problem| problem.of("name"))?;
        if self.world.path_of(self.world.district).is_none() {
            return Err(SettingError::NoPath(self.world.district).of("world.path"));
        }
        let others = &self.world.other_districts;
        if let Some(unknown) = others.iter().find(|other| self.world.path_of(**other).is_none()) {
            return Err(SettingError::UnknownDistrict(*unknown).of("world.other_districts"));
        }
        let options = self.world.options.iter().flat_map(|(name, value)| match value {
            OptionSetting::Number(_) => vec![("world.options", name)],
            OptionSetting::Text(text) => vec![("world.options", name), ("world.options", text)],
        });
        for (name, text) in [
            ("message_of_the_day", &self.message_of_the_day),
            ("world.sky", &self.world.sky),
            ("world.path", &self.world.path),
        ]
        .into_iter()
        .chain(options)
        {
            if !is_server_text(text) {
                let problem = SettingError::Text { max: MAX_TEXT, found: text.clone() };
                return Err(problem.of(name));
            }
        }
        self.status_address().map(drop)
    }

    fn database(&self) -> &str {
        &self.database
    }
}

/// Whether clients can show a text: whether it is short, in Windows-1252, and without control
/// characters.
pub(super) fn is_server_text(text: &str) -> bool {
    let is_plain = worldwire_mxo::types::text::encode(text).is_some();
    text.len() <= MAX_TEXT && is_plain && !text.contains(char::is_control)
}

/// The largest message that a length prefix can announce.
const MAX_MESSAGE_BYTES: usize = 0x7fff;
/// The maximum length of a world name; a zero byte follows the name.
const MAX_NAME: usize = 19;
/// The maximum number of characters per account: the number that fits in an auth reply if all
/// handles have the maximum length.
const MAX_CHARACTERS: usize = 256;

/// Checks a world's name. Clients derive a host name from it.
fn check_name(name: &str) -> Result<(), SettingError> {
    let fits = (1..=MAX_NAME).contains(&name.len());
    if fits && name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(());
    }
    Err(SettingError::NotAWorldName { max: MAX_NAME, found: name.to_owned() })
}

/// The text of `mxo.toml`; see [`ServerConfig::TEMPLATE`].
const TEMPLATE: &str = r#"# Configuration of this server. Changes take effect at the next start.
# Paths are relative to the folder of this file.

# The addresses of the three parts: logins (TCP), characters (TCP), and the game (UDP). Clients send UDP to
# the host of the margin server, to port 10000. 0.0.0.0 means all addresses of this machine.
auth_listen =
margin_listen =
game_listen =
# The IP addresses of proxies that clients connect through, such as ["10.0.0.2"]. They must begin every TCP
# connection with a PROXY protocol header, version 1 or 2. No header is accepted from other addresses.
trusted_proxies =
# The address of the status page (/status, /metrics and /health). It has no password. Empty for none.
status =
# The world's name, 1 to 19 letters. Clients look up the margin server under this name in lower case, followed by
# the MarginServerDNSSuffix in their useropts.cfg.
name =
# The world's number. Characters belong to the world in which they were created.
world_id =
# Whether players can log in. If false, logins are refused with the status Inactive.
open =
# The message that is shown to everyone who loads a character. Empty for none.
message_of_the_day =
# The database for accounts and characters: postgres://USER:PASSWORD@HOST/DATABASE, or empty for
# SQLite in this folder.
database =

[keys]
# The private keys: PKCS#8 as DER or PEM, PKCS#1 as PEM, or RSAKeyValue XML. The first start generates missing
# keys. The client program must trust the signing key (2048 bits), which signs the server key (1024 bits). The signed
# public key is in pubkey.dat, which belongs in the client's folder.
signing =
server =
# The key's ID. Clients that do not have a key with this ID ask for it.
id =
# Whether to send the key even to clients that have one with this ID.
always_send =

[limits]
# The maximum number of connections to the auth server, and to the margin server, in total and from one address.
connections =
connections_per_address =
# The maximum number of characters in the world, in total and from one address.
players =
players_per_address =
# The maximum number of simultaneous sessions of one account. Further logins are refused with AccountInUse.
sessions_per_account =
# The maximum number of characters in one account.
characters_per_account =
# The largest message from a client, in bytes.
message_bytes =

[login]
# Whether to delay replies, by at most 4 s, after several failed logins from one address or for one account.
delay_after_failures =
# How long a correct password is remembered, so that checking it again takes little computing time. Only a keyed hash is
# kept, in memory. 0 hashes every password in full.
remember_seconds =
# The time limit from a client's login until it connects to the margin server.
certificate_seconds =
# How long a client that has no character in the world may stay silent.
idle_seconds =
# When a character in the world is loaded again, the new client replaces the old one if the old one has been silent for
# this long.
replace_after_seconds =
# How long a character takes to leave the world. Moving cancels it.
jack_out_seconds =

[world]
# The scene: a TOML file with the world's objects. Empty for a square with 500 objects.
scene =
# The number of the district that clients load: 0 tutorial, 1 slums, 2 downtown, 3 international, 4 and 5
# archives. Others need the path of the client's file.
district =
path =
# The numbers of other districts that players can go to through hardlines, such as [2, 3]. Each is a separate
# world, with its own copy of the scene.
other_districts =
# The weather: names of effects, separated by commas, such as bluesky1 or WinterSky3. `worldwire mxo sky` changes
# it while the server runs.
sky =
# Client options, such as { PvPServer = 6, WR_RezEvents = "Halloween_Event" }: numbers and strings.
options =
# The time between ticks.
tick_milliseconds =
# The distance within which clients see objects and hear chat, in units. 100 units are a metre.
reach =
# The maximum number of bytes of object data sent to a client per tick.
tick_bytes =
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_configuration_reads_back() {
        let default = MxoConfig::default();
        assert_eq!(MxoConfig::parse(&default.to_text()), Ok(default));
        assert_eq!(MxoConfig::parse(""), Ok(MxoConfig::default()));
        let other = MxoConfig {
            auth_listen: "[::]:9".parse().unwrap(),
            margin_listen: "192.0.2.1:8".parse().unwrap(),
            game_listen: "192.0.2.1:7".parse().unwrap(),
            trusted_proxies: vec!["192.0.2.1".parse().unwrap()],
            status: String::new(),
            name: "Zion".to_owned(),
            world_id: 9,
            open: false,
            message_of_the_day: "Follow the \"white\" rabbit.".to_owned(),
            database: "postgres://mxo@localhost/mxo".to_owned(),
            keys: KeySettings {
                signing: "a b.xml".into(),
                server: "c.der".into(),
                id: 7,
                always_send: true,
            },
            limits: Limits {
                connections: 1,
                connections_per_address: 2,
                players: 3,
                players_per_address: 4,
                sessions_per_account: 5,
                characters_per_account: 6,
                message_bytes: 7,
            },
            login: LoginSettings {
                delay_after_failures: false,
                remember_seconds: 0,
                certificate_seconds: 1,
                idle_seconds: 2,
                replace_after_seconds: 0,
                jack_out_seconds: 0,
            },
            world: WorldSettings {
                scene: "square.toml".into(),
                district: 2,
                path: "resource/worlds/x.metr".to_owned(),
                other_districts: vec![1, 3],
                sky: "bluesky1".to_owned(),
                options: BTreeMap::from([
                    ("EventSlot1_Effect".to_owned(), OptionSetting::Text("a \"b\"".to_owned())),
                    ("PvPServer".to_owned(), OptionSetting::Number(6)),
                ]),
                tick_milliseconds: 10,
                reach: 5_000,
                tick_bytes: 1_295,
            },
        };
        assert_eq!(MxoConfig::parse(&other.to_text()), Ok(other));
    }

    #[test]
    fn errors_name_the_setting() {
        let error = |text: &str| MxoConfig::parse(text).unwrap_err().to_string();
        assert_eq!(error("[limits]\nplayers = 0"), "limits.players: must be at least 1");
        assert_eq!(
            error("[limits]\nmessage_bytes = 32768"),
            "limits.message_bytes: must be at most 32767, not 32768"
        );
        for name in ["", "The Matrix", "9lives", "Reality-2", "abcdefghijklmnopqrst"] {
            assert_eq!(
                error(&format!("name = \"{name}\"")),
                format!("name: must have 1 to 19 letters, not {name:?}")
            );
        }
        assert_eq!(
            error("[world]\ndistrict = 9"),
            "world.path: must be set, because the file of district 9 is unknown"
        );
        assert_eq!(
            error("[world]\nother_districts = [2, 99]"),
            "world.other_districts: the file of district 99 is unknown"
        );
        assert!(error("[world]\noptions = { a = \"\\u0007\" }").starts_with("world.options: must"));
        let long = error("message_of_the_day = \"a\\u0007\"");
        assert!(
            long.starts_with("message_of_the_day: must have at most 1024 characters"),
            "{long}"
        );
        assert!(error("status = \"yes\"").starts_with("status: must be an address with a port"));
    }
}
