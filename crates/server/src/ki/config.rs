//! `ki.toml`: what an operator chooses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use worldwire_net::Capacity;

use super::login::{Legacy, Rules};
use crate::config::{ConfigError, address, is_host, parse};

/// The port of login servers.
pub const PORT: u16 = 12_000;
/// Slots for characters that every account has.
pub const SLOTS: u32 = 6;
/// Sessions that can live at the same time: their ids have 16 bits, and 0 is nobody's.
const MAX_CONNECTIONS: usize = 65_535;

/// The configuration of a login server. Paths are relative to the server's folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KiConfig {
    /// Where clients log in, and ask for the list of files.
    pub listen: SocketAddr,
    /// Another address with the same services; empty for none.
    pub patch_listen: String,
    /// Where the status page listens; empty for none.
    pub status: String,
    /// What clients are told to connect to; empty for the address that this server listens at.
    pub public_address: String,
    /// The name of the server.
    pub name: String,
    /// Whether anybody is let in.
    pub open: bool,
    /// Message XML of the clients: a file or a folder; empty for what is built in.
    pub messages: PathBuf,
    /// Type lists that characters are read with.
    pub types: Vec<PathBuf>,
    /// The URL of a PostgreSQL database; empty for SQLite in the server's folder.
    pub database: String,
    /// How many are let in.
    pub limits: Limits,
    /// Sessions.
    pub session: Session,
    /// The login.
    pub login: LoginSettings,
    /// Where players go.
    pub zone: ZoneSettings,
    /// The patch service.
    pub patch: Patch,
}

/// How many are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Players that are let in; others wait in the queue.
    pub players: usize,
    /// Players that do not pay; 0 for no limit.
    pub free_players: usize,
}

/// Sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Session {
    /// How long a client may take to accept a session.
    pub accept_seconds: u32,
    /// How often the server asks whether a client lives.
    pub keep_alive_seconds: u32,
    /// How long a client may say nothing but keep-alives.
    pub afk_seconds: u32,
}

/// The login.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginSettings {
    /// How long a CK2 is good.
    pub ck2_seconds: u32,
    /// How many logins of one connection may fail.
    pub attempts: u32,
    /// What becomes of the older forms of login.
    pub legacy: Legacy,
    /// Machines that nobody logs in from.
    pub banned_machines: Vec<u64>,
}

/// Where players go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZoneSettings {
    /// The address of the zone server; empty for the waiting room of this server.
    pub address: String,
    /// Its TCP port.
    pub tcp_port: u16,
    /// Its UDP port.
    pub udp_port: u16,
    /// The zone's id.
    pub id: u64,
    /// The zone's name.
    pub name: String,
    /// Where in the zone.
    pub location: String,
}

/// The patch service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patch {
    /// The folder with the client's files; without it there is no patch service.
    pub folder: PathBuf,
    /// The URL under which a web server offers that folder; empty for `/patch` of the host that
    /// clients are told to connect to.
    pub url_prefix: String,
    /// The number of the version.
    pub version: u32,
}

impl Default for KiConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            patch_listen: String::new(),
            status: "127.0.0.1:12080".to_owned(),
            public_address: String::new(),
            name: "worldwire".to_owned(),
            open: true,
            messages: PathBuf::new(),
            types: Vec::new(),
            database: String::new(),
            limits: Limits::default(),
            session: Session::default(),
            login: LoginSettings::default(),
            zone: ZoneSettings::default(),
            patch: Patch::default(),
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

impl Default for Session {
    fn default() -> Self {
        Self { accept_seconds: 15, keep_alive_seconds: 60, afk_seconds: 15 * 60 }
    }
}

impl Default for LoginSettings {
    fn default() -> Self {
        Self {
            ck2_seconds: 5 * 60,
            attempts: 5,
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

impl Default for Patch {
    fn default() -> Self {
        Self { folder: "patch".into(), url_prefix: String::new(), version: 1 }
    }
}

impl KiConfig {
    /// Reads `ki.toml`. What it does not say has its default.
    ///
    /// # Errors
    /// The first line that cannot be read, or a value that cannot be served.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = parse(text)?;
        config.check()?;
        Ok(config)
    }

    /// Checks what no single value shows.
    ///
    /// # Errors
    /// A value that cannot be served.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Limits { connections, connections_per_address, players, .. } = self.limits;
        if connections > MAX_CONNECTIONS {
            let wanted = format!("wanted at most {MAX_CONNECTIONS}, found {connections}");
            return Err(ConfigError(format!("limits.connections: {wanted}")));
        }
        let number = |seconds: u32| usize::try_from(seconds).unwrap_or(usize::MAX);
        for (name, value) in [
            ("limits.connections", connections),
            ("limits.connections_per_address", connections_per_address),
            ("limits.players", players),
            ("session.accept_seconds", number(self.session.accept_seconds)),
            ("session.keep_alive_seconds", number(self.session.keep_alive_seconds)),
            ("session.afk_seconds", number(self.session.afk_seconds)),
            ("login.ck2_seconds", number(self.login.ck2_seconds)),
            ("login.attempts", number(self.login.attempts)),
        ] {
            if value == 0 {
                return Err(ConfigError(format!("{name}: wanted at least 1, found 0")));
            }
        }
        if !self.zone.address.is_empty() && self.zone.tcp_port == 0 {
            return Err(ConfigError("zone.tcp_port: wanted a port, found 0".to_owned()));
        }
        if !self.public_address.is_empty() {
            check_public_address(&self.public_address)
                .map_err(|problem| ConfigError(format!("public_address: {problem}")))?;
        }
        address("patch_listen", &self.patch_listen)?;
        self.status_address().map(drop)
    }

    /// Where the status page listens.
    ///
    /// # Errors
    /// A text that is neither an address nor empty.
    pub fn status_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("status", &self.status)
    }

    /// Where the patch service listens beside the login.
    ///
    /// # Errors
    /// A text that is neither an address nor empty.
    pub fn patch_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("patch_listen", &self.patch_listen)
    }

    /// What clients are told to connect to. A server that listens at all addresses of its machine
    /// does not know which of them clients can reach: then it is this machine.
    #[must_use]
    pub fn host(&self) -> String {
        match self.listen.ip() {
            _ if !self.public_address.is_empty() => self.public_address.clone(),
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
            ip => ip.to_string(),
        }
    }

    /// Whether clients of other machines are told to connect to their own.
    #[must_use]
    pub fn misleads_others(&self) -> bool {
        self.public_address.is_empty() && self.listen.ip().is_unspecified()
    }

    /// Where the client's files are offered.
    #[must_use]
    pub fn url_prefix(&self) -> String {
        let prefix = self.patch.url_prefix.trim_end_matches('/');
        match self.host() {
            _ if !prefix.is_empty() => prefix.to_owned(),
            host if host.contains(':') => format!("http://[{host}]/patch"),
            host => format!("http://{host}/patch"),
        }
    }

    /// How long a CK2 is good.
    #[must_use]
    pub fn ck2_life(&self) -> Duration {
        Duration::from_secs(self.login.ck2_seconds.into())
    }

    /// The rules of the login, without a type list and without a patch service.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            open: self.open,
            attempts: self.login.attempts,
            afk: Duration::from_secs(self.session.afk_seconds.into()),
            legacy: self.login.legacy,
            banned_machines: self.login.banned_machines.iter().copied().collect(),
            server: self.name.clone(),
            classes: None,
            files: None,
        }
    }

    /// How many connections are let in.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let Limits { connections, connections_per_address, .. } = self.limits;
        Capacity { total: connections, per_address: connections_per_address }
    }

    /// The text of `ki.toml` with comments: what the first start writes.
    #[must_use]
    pub fn commented(&self) -> String {
        Commented(self).to_string()
    }
}

/// Checks what clients are told to connect to: an IP address or the name of a host, without a port.
///
/// # Errors
/// What is wrong with it.
pub fn check_public_address(text: &str) -> Result<(), ConfigError> {
    if is_host(text) || text.parse::<Ipv6Addr>().is_ok() {
        return Ok(());
    }
    let wanted = "wanted an IP address, or a name such as ki.example.org";
    Err(ConfigError(format!("{wanted}, found {text:?}")))
}

struct Commented<'c>(&'c KiConfig);

impl fmt::Display for Commented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KiConfig { limits, session, login, zone, patch, .. } = self.0;
        let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let path = |path: &std::path::Path| text(&path.to_string_lossy());
        let types: Vec<_> = self.0.types.iter().map(|list| path(list)).collect();
        let machines: Vec<_> = login.banned_machines.iter().map(u64::to_string).collect();
        let legacy = match login.legacy {
            Legacy::Accept => "accept",
            Legacy::Refuse => "refuse",
            Legacy::Ignore => "ignore",
        };
        write!(
            f,
            "\
# The configuration of this login server. Changes take effect when it is started again.
# Paths are relative to the folder of this file.

# Where clients log in, and patch clients ask for the list of files: one port does. 0.0.0.0 is every
# address of this machine.
listen = {listen}
# Another address with the same services: the official port of the patch service is 12500.
patch_listen = {patch_listen}
# The status page, with /status, /metrics and /health. Empty for none.
status = {status}
# What clients are told to connect to, if there is no other zone server: an IP address or a name.
# Empty for the address of listen. For 0.0.0.0 that is 127.0.0.1: players on other machines can log
# in then, but not go on with a character.
public_address = {public}
# The name of this server, as clients are told.
name = {name}
# Whether anybody is let in. If not, logins are refused with AISNoLogin.
open = {open}
# Message XML of the clients: a file, or a folder such as the client's Messages. Empty for what is
# built in, which is the revision of 2024-11.
messages = {messages}
# Type lists, as wiztype writes them. With them, a new character has to be a whole object; without
# them, only its ends are looked at.
types = [{types}]
# Where accounts and characters are kept: postgres://USER:PASSWORD@HOST/DATABASE, or empty for SQLite
# in this folder.
database = {database}

[limits]
# How many connections are let in, in all and from one address. No more than 65535 sessions can live.
connections = {connections}
connections_per_address = {per_address}
# How many players are let in; more wait in a queue.
players = {players}
# How many of them may be free players; more are refused with FtpCapped. 0: no limit.
free_players = {free}

[session]
# How long a client may take to accept a session.
accept_seconds = {accept}
# How often the server asks whether a client lives. Anything it sends until then is an answer.
keep_alive_seconds = {keep_alive}
# How long a client may say nothing but keep-alives, before it is disconnected.
afk_seconds = {afk}

[login]
# How long the secret that a login yields is good for the game's own program, again and again.
ck2_seconds = {ck2}
# How many logins of one connection may fail; the last one closes it. Failed logins also slow down
# those behind them from the same address or for the same account, by 4 s at most.
attempts = {attempts}
# The forms of login before MSG_USER_AUTHEN_V3: \"accept\", \"refuse\" or \"ignore\".
legacy = {legacy}
# Machines, by their MachineID, from which logins are refused with MachineBanned.
banned_machines = [{machines}]

[zone]
# The zone server that clients go to with a character. Empty for a waiting room in this server, which
# lets them in and keeps their connection, and no more.
address = {zone_address}
# Its ports; not used for the waiting room.
tcp_port = {tcp}
udp_port = {udp}
# Where characters are.
id = {zone_id}
name = {zone_name}
location = {location}

[patch]
# The client's files. A list of them is written to LatestFileList.bin in this folder when the server
# starts. Without the folder there is no patch service.
folder = {folder}
# Where a web server offers this folder. Empty for http://HOST/patch, with the host that clients are
# told to connect to.
url_prefix = {prefix}
# The number of the version.
version = {version}
",
            listen = text(&self.0.listen.to_string()),
            patch_listen = text(&self.0.patch_listen),
            status = text(&self.0.status),
            public = text(&self.0.public_address),
            name = text(&self.0.name),
            open = self.0.open,
            messages = path(&self.0.messages),
            types = types.join(", "),
            database = text(&self.0.database),
            connections = limits.connections,
            per_address = limits.connections_per_address,
            players = limits.players,
            free = limits.free_players,
            accept = session.accept_seconds,
            keep_alive = session.keep_alive_seconds,
            afk = session.afk_seconds,
            ck2 = login.ck2_seconds,
            attempts = login.attempts,
            legacy = text(legacy),
            machines = machines.join(", "),
            zone_address = text(&zone.address),
            tcp = zone.tcp_port,
            udp = zone.udp_port,
            zone_id = zone.id,
            zone_name = text(&zone.name),
            location = text(&zone.location),
            folder = path(&patch.folder),
            prefix = text(&patch.url_prefix),
            version = patch.version,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_start_writes_is_what_it_reads() {
        let default = KiConfig::default();
        assert_eq!(KiConfig::parse(&default.commented()), Ok(default));
        assert_eq!(KiConfig::parse(""), Ok(KiConfig::default()));
        let other = KiConfig {
            listen: "[::]:9".parse().unwrap(),
            patch_listen: "127.0.0.1:12500".to_owned(),
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
            session: Session { accept_seconds: 1, keep_alive_seconds: 2, afk_seconds: 3 },
            login: LoginSettings {
                ck2_seconds: 1,
                attempts: 2,
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
            patch: Patch { folder: "p".into(), url_prefix: "http://x".to_owned(), version: 9 },
        };
        assert_eq!(KiConfig::parse(&other.commented()), Ok(other));
    }

    #[test]
    fn clients_are_told_where_the_server_listens() {
        let at = |listen: &str, public: &str| {
            let (listen, public_address) = (listen.parse().unwrap(), public.to_owned());
            let config = KiConfig { listen, public_address, ..KiConfig::default() };
            (config.host(), config.url_prefix(), config.misleads_others())
        };
        let told = |host: &str, url: &str, misleads| (host.to_owned(), url.to_owned(), misleads);
        for (listen, public, wanted) in [
            ("127.0.0.1:1", "", told("127.0.0.1", "http://127.0.0.1/patch", false)),
            ("192.0.2.7:1", "", told("192.0.2.7", "http://192.0.2.7/patch", false)),
            ("[2001:db8::1]:1", "", told("2001:db8::1", "http://[2001:db8::1]/patch", false)),
            ("0.0.0.0:1", "", told("127.0.0.1", "http://127.0.0.1/patch", true)),
            ("[::]:1", "", told("::1", "http://[::1]/patch", true)),
            ("0.0.0.0:1", "ki.example", told("ki.example", "http://ki.example/patch", false)),
        ] {
            assert_eq!(at(listen, public), wanted, "{listen} {public:?}");
        }
        let given = KiConfig::parse("[patch]\nurl_prefix = \"https://a.example/r1/\"").unwrap();
        assert_eq!(given.url_prefix(), "https://a.example/r1");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| KiConfig::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("[limits]\nconnections = 65536"),
            "limits.connections: wanted at most 65535, found 65536"
        );
        assert_eq!(error("[limits]\nplayers = 0"), "limits.players: wanted at least 1, found 0");
        assert_eq!(
            error("[session]\nafk_seconds = 0"),
            "session.afk_seconds: wanted at least 1, found 0"
        );
        for host in ["a b", "http://x.example/", "ki.example:12000", "300.1.1.1", "a..b", " "] {
            assert_eq!(
                error(&format!("public_address = \"{host}\"")),
                format!(
                    "public_address: wanted an IP address, or a name such as ki.example.org, \
                     found \"{host}\""
                )
            );
        }
        for host in ["", "10.0.0.1", "2001:db8::1", "ki.example.org", "localhost"] {
            assert!(KiConfig::parse(&format!("public_address = \"{host}\"")).is_ok(), "{host}");
        }
        assert!(error("status = \"yes\"").starts_with("status: wanted an address with a port"));
        assert_eq!(error("[zone]\naddress = \"x\""), "zone.tcp_port: wanted a port, found 0");
        let unknown = error("open = true\nlisen = 1");
        assert!(unknown.starts_with("line 2: unknown field `lisen`"), "{unknown}");
        let secret = error("database = \"postgres://ki:secret@host/\" login");
        assert!(secret.starts_with("line 1: ") && !secret.contains("secret"), "{secret}");
    }
}
