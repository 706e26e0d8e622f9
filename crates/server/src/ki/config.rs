//! `ki.toml`: the settings of a login server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use worldwire_net::Capacity;

use crate::config::{
    ConfigError, ServerConfig, SettingError, address, at_least_1, is_host, path_text, path_texts,
};

/// The name of the configuration file in a server's directory.
pub const CONFIG: &str = "ki.toml";

/// The SQLite database in a server's directory.
pub const SQLITE_FILE: &str = "login.sqlite";

/// The standard port of login servers.
pub const PORT: u16 = 12_000;
/// Character slots that every account has.
pub const SLOTS: u32 = 6;
/// The maximum number of open sessions: their IDs have 16 bits, and 0 is reserved.
const MAX_CONNECTIONS: usize = 65_535;

/// The configuration of a login server. Paths are relative to the server's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KiConfig {
    /// The address for logins and patch requests.
    pub listen: SocketAddr,
    /// The addresses of proxies that pass on their clients' addresses with the PROXY protocol.
    pub trusted_proxies: Vec<IpAddr>,
    /// A second address with the same services; empty for none.
    pub patch_listen: String,
    /// The address for clients that use UDP; empty for none.
    pub udp_listen: String,
    /// The directories of other servers, which drop a client's sessions when it logs in here.
    #[serde(serialize_with = "path_texts")]
    pub other_servers: Vec<PathBuf>,
    /// The address of the status page; empty for none.
    pub status: String,
    /// The host that clients are told to connect to; empty for the address in `listen`.
    pub public_address: String,
    /// The server's name, which clients receive.
    pub name: String,
    /// Whether players can log in.
    pub open: bool,
    /// The clients' message XML: a file or a directory; empty for the built-in definitions.
    #[serde(serialize_with = "path_text")]
    pub messages: PathBuf,
    /// Type lists for decoding characters.
    #[serde(serialize_with = "path_texts")]
    pub types: Vec<PathBuf>,
    /// The URL of a PostgreSQL database; empty for SQLite in the server's directory.
    pub database: String,
    /// Limits on connections and players.
    pub limits: Limits,
    /// Timeouts of sessions.
    pub session: SessionSettings,
    /// Rules for logging in.
    pub login: LoginSettings,
    /// Where players go after choosing a character.
    pub zone: ZoneSettings,
    /// The patch service.
    pub patch: PatchSettings,
}

/// Limits on connections and players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum number of connections in total.
    pub connections: usize,
    /// The maximum number of connections from one address.
    pub connections_per_address: usize,
    /// The maximum number of players online; others wait in the queue.
    pub players: usize,
    /// The maximum number of free players online; 0 for no limit.
    pub free_players: usize,
}

/// Timeouts of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// How long a client may take to accept a session.
    pub accept_seconds: u32,
    /// The interval between keep-alives.
    pub keep_alive_seconds: u32,
    /// How long a client may send nothing but keep-alives.
    pub afk_seconds: u32,
}

/// Rules for logging in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginSettings {
    /// How long a CK2 is valid.
    pub ck2_seconds: u32,
    /// The number of failed logins after which a connection is closed.
    pub attempts: u32,
    /// Whether replies are delayed after failed logins from an address or to an account.
    pub delay_after_failures: bool,
    /// Whether older login messages are accepted.
    pub legacy: Legacy,
    /// Machines from which logins are refused.
    pub banned_machines: Vec<u64>,
}

/// How to treat login messages older than `MSG_USER_AUTHEN_V3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Legacy {
    /// Treat them like the newest message. Unverified: that their `Rec1` has the same form.
    Accept,
    /// Reply with `AuthenFailed`.
    Refuse,
    /// Send no reply.
    Ignore,
}

/// Where players go after choosing a character.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZoneSettings {
    /// The address of the zone server; empty for this server's waiting room.
    pub address: String,
    /// The zone server's TCP port.
    pub tcp_port: u16,
    /// The zone server's UDP port.
    pub udp_port: u16,
    /// The zone's ID.
    pub id: u64,
    /// The zone's name.
    pub name: String,
    /// The place in the zone where characters arrive.
    pub location: String,
}

/// The patch service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PatchSettings {
    /// The directory with the client's files. If it does not exist, patching is disabled.
    #[serde(serialize_with = "path_text")]
    pub folder: PathBuf,
    /// The URL at which a web server offers that directory; empty for `/patch` on the host that
    /// clients are told to connect to.
    pub url_prefix: String,
    /// The version number.
    pub version: u32,
}

impl Default for KiConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            trusted_proxies: Vec::new(),
            patch_listen: String::new(),
            udp_listen: String::new(),
            other_servers: Vec::new(),
            status: "127.0.0.1:12080".to_owned(),
            public_address: String::new(),
            name: "worldwire".to_owned(),
            open: true,
            messages: PathBuf::new(),
            types: Vec::new(),
            database: String::new(),
            limits: Limits::default(),
            session: SessionSettings::default(),
            login: LoginSettings::default(),
            zone: ZoneSettings::default(),
            patch: PatchSettings::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let Capacity { total, per_address } = Capacity::default();
        Self {
            connections: total,
            connections_per_address: per_address,
            players: 2_000,
            free_players: 0,
        }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { accept_seconds: 15, keep_alive_seconds: 60, afk_seconds: 15 * 60 }
    }
}

impl Default for LoginSettings {
    fn default() -> Self {
        Self {
            ck2_seconds: 5 * 60,
            attempts: 5,
            delay_after_failures: true,
            legacy: Legacy::Accept,
            banned_machines: Vec::new(),
        }
    }
}

impl Default for ZoneSettings {
    fn default() -> Self {
        Self {
            address: String::new(),
            tcp_port: 0,
            udp_port: 0,
            id: 191_965_934_121_493_239,
            name: "WizardCity/Tutorial_Exterior".to_owned(),
            location: "START".to_owned(),
        }
    }
}

impl Default for PatchSettings {
    fn default() -> Self {
        Self { folder: "patch".into(), url_prefix: String::new(), version: 1 }
    }
}

impl KiConfig {
    /// Parses `ki.toml`. Missing settings get their defaults.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_text(text)
    }

    /// The address of the status page, if there is one.
    pub fn status_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("status", &self.status)
    }

    /// The second address for logins and patch requests, if there is one.
    pub fn patch_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("patch_listen", &self.patch_listen)
    }

    /// The address for clients that use UDP, if there is one.
    pub fn udp_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("udp_listen", &self.udp_listen)
    }

    /// The host that clients are told to connect to. A server that listens on all of its machine's
    /// addresses cannot tell which of them clients can reach, so it uses the loopback address.
    #[must_use]
    pub fn host(&self) -> String {
        match self.listen.ip() {
            _ if !self.public_address.is_empty() => self.public_address.clone(),
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
            ip => ip.to_string(),
        }
    }

    /// Whether clients on other machines would be told to connect to their own machine.
    #[must_use]
    pub fn misleads_others(&self) -> bool {
        self.public_address.is_empty() && self.listen.ip().is_unspecified()
    }

    /// The URL of the client's files.
    #[must_use]
    pub fn url_prefix(&self) -> String {
        let prefix = self.patch.url_prefix.trim_end_matches('/');
        match self.host() {
            _ if !prefix.is_empty() => prefix.to_owned(),
            host if host.contains(':') => format!("http://[{host}]/patch"),
            host => format!("http://{host}/patch"),
        }
    }

    /// How long a CK2 is valid.
    #[must_use]
    pub fn ck2_life(&self) -> Duration {
        Duration::from_secs(self.login.ck2_seconds.into())
    }

    /// The maximum number of connections.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let Limits { connections, connections_per_address, .. } = self.limits;
        Capacity { total: connections, per_address: connections_per_address }
    }
}

impl ServerConfig for KiConfig {
    const FILE: &'static str = CONFIG;
    const TEMPLATE: &'static str = TEMPLATE;
    const SQLITE_FILE: &'static str = SQLITE_FILE;

    fn validate(&self) -> Result<(), ConfigError> {
        let Limits { connections, connections_per_address, players, .. } = self.limits;
        if connections > MAX_CONNECTIONS {
            let problem = SettingError::TooLarge { max: MAX_CONNECTIONS, found: connections };
            return Err(problem.of("limits.connections"));
        }
        let number = |seconds: u32| usize::try_from(seconds).unwrap_or(usize::MAX);
        at_least_1([
            ("limits.connections", connections),
            ("limits.connections_per_address", connections_per_address),
            ("limits.players", players),
            ("session.accept_seconds", number(self.session.accept_seconds)),
            ("session.keep_alive_seconds", number(self.session.keep_alive_seconds)),
            ("session.afk_seconds", number(self.session.afk_seconds)),
            ("login.ck2_seconds", number(self.login.ck2_seconds)),
            ("login.attempts", number(self.login.attempts)),
        ])?;
        if !self.zone.address.is_empty() && self.zone.tcp_port == 0 {
            return Err(SettingError::NoPort.of("zone.tcp_port"));
        }
        if !self.public_address.is_empty() {
            check_public_address(&self.public_address)
                .map_err(|problem| problem.of("public_address"))?;
        }
        self.patch_address()?;
        self.udp_address()?;
        self.status_address().map(drop)
    }

    fn database(&self) -> &str {
        &self.database
    }
}

/// Checks the host that clients are told to connect to: an IP address or a name, without a port.
pub fn check_public_address(text: &str) -> Result<(), SettingError> {
    if is_host(text) || text.parse::<Ipv6Addr>().is_ok() {
        return Ok(());
    }
    let found = text.to_owned();
    Err(SettingError::NotAHost { kind: "IP", example: "ki.example.org", found })
}

/// The text of `ki.toml`; see [`ServerConfig::TEMPLATE`].
const TEMPLATE: &str = r#"# Configuration of this login server. Changes take effect at the next start.
# Paths are relative to the folder of this file.

# The address for logins and patch requests. 0.0.0.0 means all addresses of this machine.
listen =
# The IP addresses of proxies in front of this server, such as ["10.0.0.2"]. They must begin every
# connection with a PROXY protocol header, version 1 or 2. Limits and delays then apply to the
# addresses of their clients. No header is accepted from other addresses.
trusted_proxies =
# A second address with the same services, such as the official patch port, 12500. Empty for none.
patch_listen =
# The address for clients that use UDP, such as 127.0.0.1:12000. Empty for none. UDP is as reliable as the
# network: lost datagrams are not resent.
udp_listen =
# The folders of other servers on this machine, such as ["../zone"]. When a client logs in here, this
# server asks them to drop the client's sessions: a client talks to one server at a time.
other_servers =
# The address of the status page (/status, /metrics and /health). Empty for none.
status =
# The IP address or host name that clients are told to connect to after choosing a character, unless
# [zone] names another server. If this is empty, they get the address in listen, or 127.0.0.1 if that
# is 0.0.0.0; players on other machines can then log in but cannot enter the game.
public_address =
# The server's name, which clients receive.
name =
# Whether players can log in. If false, logins are refused with AISNoLogin.
open =
# The clients' message XML: a file, or a folder such as the client's Messages. Empty for the built-in
# definitions, revision 2024-11.
messages =
# Type lists written by wiztype. With them, new characters are checked completely; without them, only
# their first and last bytes are.
types =
# The database for accounts and characters: postgres://USER:PASSWORD@HOST/DATABASE, or empty for
# SQLite in this folder.
database =

[limits]
# The maximum number of connections, in total (at most 65535) and from one address.
connections =
connections_per_address =
# The maximum number of players online. Others wait in a queue.
players =
# The maximum number of free players among them. Others are refused with FtpCapped. 0: no limit.
free_players =

[session]
# How long a client may take to accept a session.
accept_seconds =
# The interval between keep-alives. Anything a client sends counts as a reply.
keep_alive_seconds =
# Disconnect a client that sends nothing but keep-alives for this long.
afk_seconds =

[login]
# How long the secret from a login stays valid for starting the game. It can be used repeatedly.
ck2_seconds =
# The number of failed logins after which a connection is closed.
attempts =
# Whether to delay replies, by at most 4 s, after several failed logins from the same address or to
# the same account. Turn this off if many players share an address, and something else limits guesses.
delay_after_failures =
# Login messages older than MSG_USER_AUTHEN_V3: "accept", "refuse" or "ignore".
legacy =
# MachineIDs from which logins are refused with MachineBanned.
banned_machines =

[zone]
# The zone server for players who have chosen a character. Empty for a waiting room in this server,
# which accepts them and keeps them connected, but nothing more.
address =
# The zone server's ports. The waiting room ignores them.
tcp_port =
udp_port =
# The zone, and the location in it, where characters arrive.
id =
name =
location =

[patch]
# The folder with the client's files. At every start, the server writes a list of them there, as
# LatestFileList.bin. If the folder does not exist, patching is disabled.
folder =
# The URL at which a web server offers this folder. Empty for http://HOST/patch, where HOST is the
# host that clients are told to connect to.
url_prefix =
# The version number that patch clients receive.
version =
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_configuration_reads_back() {
        let default = KiConfig::default();
        assert_eq!(KiConfig::parse(&default.to_text()), Ok(default));
        assert_eq!(KiConfig::parse(""), Ok(KiConfig::default()));
        let other = KiConfig {
            listen: "[::]:9".parse().unwrap(),
            trusted_proxies: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            patch_listen: "127.0.0.1:12500".to_owned(),
            udp_listen: "127.0.0.1:12001".to_owned(),
            other_servers: vec!["../zone".into()],
            status: String::new(),
            public_address: "ki.example.org".to_owned(),
            name: "\"Wu\"\n\\".to_owned(),
            open: false,
            messages: "Messages".into(),
            types: vec!["a b.json".into(), "c.json".into()],
            database: "postgres://ki@localhost/login".to_owned(),
            limits: Limits {
                connections: 65_535,
                connections_per_address: 2,
                players: 3,
                free_players: 4,
            },
            session: SessionSettings { accept_seconds: 1, keep_alive_seconds: 2, afk_seconds: 3 },
            login: LoginSettings {
                ck2_seconds: 1,
                attempts: 2,
                delay_after_failures: false,
                legacy: Legacy::Ignore,
                banned_machines: vec![0, 7],
            },
            zone: ZoneSettings {
                address: "10.0.0.1".to_owned(),
                tcp_port: 1,
                udp_port: 2,
                id: 3,
                name: "Zone".to_owned(),
                location: "There".to_owned(),
            },
            patch: PatchSettings {
                folder: "p".into(),
                url_prefix: "http://x".to_owned(),
                version: 9,
            },
        };
        assert_eq!(KiConfig::parse(&other.to_text()), Ok(other));
    }

    #[test]
    fn clients_get_an_address_that_they_can_reach() {
        let at = |listen: &str, public: &str| {
            let (listen, public_address) = (listen.parse().unwrap(), public.to_owned());
            let config = KiConfig { listen, public_address, ..KiConfig::default() };
            (config.host(), config.url_prefix(), config.misleads_others())
        };
        let host = |host: &str, url: &str, misleads| (host.to_owned(), url.to_owned(), misleads);
        for (listen, public, wanted) in [
            ("127.0.0.1:1", "", host("127.0.0.1", "http://127.0.0.1/patch", false)),
            ("192.0.2.7:1", "", host("192.0.2.7", "http://192.0.2.7/patch", false)),
            ("[2001:db8::1]:1", "", host("2001:db8::1", "http://[2001:db8::1]/patch", false)),
            ("0.0.0.0:1", "", host("127.0.0.1", "http://127.0.0.1/patch", true)),
            ("[::]:1", "", host("::1", "http://[::1]/patch", true)),
            ("0.0.0.0:1", "ki.example", host("ki.example", "http://ki.example/patch", false)),
        ] {
            assert_eq!(at(listen, public), wanted, "{listen} {public:?}");
        }
        let given = KiConfig::parse("[patch]\nurl_prefix = \"https://a.example/r1/\"").unwrap();
        assert_eq!(given.url_prefix(), "https://a.example/r1");
    }

    #[test]
    fn errors_name_the_setting() {
        let error = |text: &str| KiConfig::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("[limits]\nconnections = 65536"),
            "limits.connections: must be at most 65535, not 65536"
        );
        assert_eq!(error("[limits]\nplayers = 0"), "limits.players: must be at least 1");
        assert_eq!(error("[session]\nafk_seconds = 0"), "session.afk_seconds: must be at least 1");
        for host in ["a b", "http://x.example/", "ki.example:12000", "300.1.1.1", "a..b", " "] {
            assert_eq!(
                error(&format!("public_address = \"{host}\"")),
                format!(
                    "public_address: must be an IP address or a name such as ki.example.org, \
                     not \"{host}\""
                )
            );
        }
        for host in ["", "10.0.0.1", "2001:db8::1", "ki.example.org", "localhost"] {
            assert!(KiConfig::parse(&format!("public_address = \"{host}\"")).is_ok(), "{host}");
        }
        assert!(error("udp_listen = \"no\"").starts_with("udp_listen: must be an address"));
        assert!(error("status = \"yes\"").starts_with("status: must be an address with a port"));
        assert_eq!(
            error("[zone]\naddress = \"x\""),
            "zone.tcp_port: must be set when zone.address is"
        );
        let unknown = error("open = true\nlisen = 1");
        assert!(unknown.starts_with("line 2: unknown field `lisen`"), "{unknown}");
        let secret = error("database = \"postgres://ki:secret@host/\" login");
        assert!(secret.starts_with("line 1: ") && !secret.contains("secret"), "{secret}");
    }
}
