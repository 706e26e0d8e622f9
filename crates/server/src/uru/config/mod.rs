//! `shard.toml`: what an operator chooses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use worldwire_net::Capacity;
use worldwire_uru::age::{Capacity as AgeCapacity, Config as AgeConfig};
use worldwire_uru::connect::BUILD_ID;
use worldwire_uru::connection::Encryption;

use super::vault::{OnDuplicate, VaultConfig};
use crate::config::{ConfigError, address, is_host, parse};

mod ages;

pub use ages::{Ages, FixedAge};

/// The port of Uru's servers.
pub const PORT: u16 = 14_617;
/// The most units of a gatekeeper's address: its field holds 24 with a terminator.
const MAX_ADDRESS_UNITS: usize = 23;

/// The configuration of a shard. Paths are relative to the shard's folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardConfig {
    /// Where all services of clients listen.
    pub listen: SocketAddr,
    /// What the gatekeeper tells clients to connect to.
    pub public_address: String,
    /// Where the status page listens; empty for none.
    pub status: String,
    /// What the status page says to players.
    pub welcome: String,
    /// Whether connections are encrypted.
    pub encryption: EncryptionPolicy,
    /// The build of the clients.
    pub build: u32,
    /// Whether to let clients of other builds in.
    pub any_build: bool,
    /// The file with the keys of the servers. Secret.
    pub keys: PathBuf,
    /// Files for clients.
    pub data: PathBuf,
    /// The URL of a PostgreSQL database; empty for SQLite in the shard's folder.
    pub database: String,
    /// How many connections are let in.
    pub limits: Limits,
    /// The auth service.
    pub auth: Auth,
    /// The game service.
    pub game: Game,
    /// Which ages there are, and who may enter them.
    pub ages: Ages,
}

/// Whether connections are encrypted. File connections never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncryptionPolicy {
    /// As [`AllowPlain`](Self::AllowPlain) on a loopback address, as [`Require`](Self::Require)
    /// elsewhere.
    Auto,
    /// Clients choose.
    AllowPlain,
    /// Clients that do not encrypt are turned away.
    Require,
    /// For OpenUru clients that were compiled without encryption.
    OpenuruPlain,
}

/// How many connections are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// In all.
    pub connections: usize,
    /// From one address.
    pub connections_per_address: usize,
    /// Nodes of the vault that one player may make; 0 for no limit.
    pub nodes_per_player: usize,
    /// Nodes in a player's inbox, above which others send it no more; 0 for no limit.
    pub nodes_in_inbox: usize,
}

/// The auth service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// How clients are told what the server can do.
    pub caps: CapsPolicy,
    /// Send secure files in chunks of 1,460 bytes, for which the original client was built.
    pub strict_chunks: bool,
    /// Whether only administrators, developers and testers may log in.
    pub restricted: bool,
    /// Failed logins in a minute for a name from an address, after which more are refused; 0 for no
    /// limit.
    pub failed_logins: u32,
    /// How long the session of a lost connection waits for its client, in seconds; 0 for not at
    /// all.
    pub reconnect_seconds: u32,
    /// Log in a second time with the same player: whether the first connection is thrown out.
    pub kick_on_duplicate: bool,
    /// Whether players may change only what is theirs.
    pub strict_vault: bool,
    /// Whether any age may be entered without being in the vault.
    pub temporary_ages: bool,
}

/// The game service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Game {
    /// Whether players are refused when there are as many in an age as its file allows.
    pub refuse_full: bool,
    /// Whether messages that say so go only to players nearby.
    pub relevance: bool,
    /// Whether messages for certain players reach them in other ages, whatever the messages say.
    pub directed_anywhere: bool,
    /// Console commands that objects of the shard's ages may run on the consoles of others.
    pub console_commands: Vec<String>,
    /// How many bytes a second a player may send into an age for long.
    pub bytes_per_second: u32,
}

impl Default for Game {
    fn default() -> Self {
        Self {
            refuse_full: false,
            relevance: false,
            directed_anywhere: false,
            console_commands: Vec::new(),
            bytes_per_second: 64 << 10,
        }
    }
}

/// How clients are told what the server can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapsPolicy {
    /// With the message of H'uru clients, which OpenUru clients cannot read.
    Always,
    /// In the form that both can read.
    Compatible,
    /// Not at all.
    Never,
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            public_address: "127.0.0.1".to_owned(),
            status: "127.0.0.1:14680".to_owned(),
            welcome: "Welcome to this shard.".to_owned(),
            encryption: EncryptionPolicy::Auto,
            build: BUILD_ID,
            any_build: false,
            keys: "keys.toml".into(),
            data: "data".into(),
            database: String::new(),
            limits: Limits::default(),
            auth: Auth::default(),
            game: Game::default(),
            ages: Ages::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let Capacity { total, per_address } = Capacity::default();
        let VaultConfig { max_nodes, max_in_inbox, .. } = VaultConfig::default();
        Self {
            connections: total,
            connections_per_address: per_address,
            nodes_per_player: max_nodes,
            nodes_in_inbox: max_in_inbox,
        }
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            caps: CapsPolicy::Compatible,
            strict_chunks: false,
            restricted: false,
            failed_logins: 5,
            reconnect_seconds: 30,
            kick_on_duplicate: false,
            strict_vault: true,
            temporary_ages: false,
        }
    }
}

impl ShardConfig {
    /// Reads `shard.toml`. What it does not say has its default.
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
        check_public_address(&self.public_address)
            .map_err(|problem| ConfigError(format!("public_address: {problem}")))?;
        let Limits { connections, connections_per_address, .. } = self.limits;
        for (name, most) in
            [("connections", connections), ("connections_per_address", connections_per_address)]
        {
            if most == 0 {
                return Err(ConfigError(format!("limits.{name}: wanted at least 1, found 0")));
            }
        }
        if self.game.bytes_per_second == 0 {
            return Err(ConfigError(
                "game.bytes_per_second: wanted at least 1, found 0".to_owned(),
            ));
        }
        self.ages.check()?;
        self.status_address().map(drop)
    }

    /// Where the status page listens.
    ///
    /// # Errors
    /// A text that is neither an address nor empty.
    pub fn status_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("status", &self.status)
    }

    /// How connections are encrypted, where they are accepted.
    #[must_use]
    pub fn encryption(&self) -> Encryption {
        match self.encryption {
            EncryptionPolicy::Auto if is_loopback(self.listen.ip()) => Encryption::AllowPlain,
            EncryptionPolicy::Auto | EncryptionPolicy::Require => Encryption::Require,
            EncryptionPolicy::AllowPlain => Encryption::AllowPlain,
            EncryptionPolicy::OpenuruPlain => Encryption::OpenUruPlain,
        }
    }

    /// The public address without a port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.public_address.split(':').next().unwrap_or_default()
    }

    /// Whether clients of other machines are told to connect to their own.
    #[must_use]
    pub fn misleads_others(&self) -> bool {
        let host = self.host();
        let is_here = match host.parse::<Ipv4Addr>() {
            Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        is_here && !is_loopback(self.listen.ip())
    }

    /// The rules of the vault.
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
        self.ages.tell(&mut vault);
        vault
    }

    /// How ages behave.
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

    /// How long the session of a lost connection waits for its client.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.auth.reconnect_seconds.into())
    }

    /// How many connections are let in.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let Limits { connections, connections_per_address, .. } = self.limits;
        Capacity { total: connections, per_address: connections_per_address }
    }

    /// The text of `shard.toml` with comments: what the first start writes.
    #[must_use]
    pub fn commented(&self) -> String {
        Commented(self).to_string()
    }
}

/// Checks what clients are told to connect to: an IPv4 address or the name of a host, with or without
/// a port.
///
/// # Errors
/// What is wrong with it.
pub fn check_public_address(text: &str) -> Result<(), ConfigError> {
    let units = text.encode_utf16().count();
    if units == 0 || units > MAX_ADDRESS_UNITS {
        let wanted = format!("wanted 1 to {MAX_ADDRESS_UNITS} characters, found {units}");
        return Err(ConfigError(wanted));
    }
    let (host, port) = text.split_once(':').unwrap_or((text, "1"));
    if !is_host(host) || !port.parse::<u16>().is_ok_and(|port| port != 0) {
        let wanted = "wanted an IPv4 address, or a name such as uru.example.org";
        return Err(ConfigError(format!("{wanted}, found {text:?}")));
    }
    Ok(())
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

struct Commented<'c>(&'c ShardConfig);

impl fmt::Display for Commented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardConfig {
            listen,
            public_address,
            status,
            welcome,
            encryption,
            build,
            any_build,
            keys,
            data,
            database,
            limits,
            auth,
            game,
            ages,
        } = self.0;
        let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let encryption = match encryption {
            EncryptionPolicy::Auto => "auto",
            EncryptionPolicy::AllowPlain => "allow_plain",
            EncryptionPolicy::Require => "require",
            EncryptionPolicy::OpenuruPlain => "openuru_plain",
        };
        let caps = match auth.caps {
            CapsPolicy::Always => "always",
            CapsPolicy::Compatible => "compatible",
            CapsPolicy::Never => "never",
        };
        write!(
            f,
            "\
# The configuration of this shard. Changes take effect when it is started again.
# Paths are relative to the folder of this file.

# Where clients connect: all services share one port. 0.0.0.0 is every address of this machine.
listen = {listen}
# What clients are told to connect to: an IPv4 address, or a name of at most {MAX_ADDRESS_UNITS}
# characters. Players on other machines are sent to their own machine while it is 127.0.0.1.
public_address = {public}
# The status page, with /status, /welcome, /metrics and /health. Empty for none.
status = {status}
# What the launcher shows to players.
welcome = {welcome}
# \"require\": clients have to encrypt. \"allow_plain\": they choose. \"openuru_plain\": for clients
# compiled without encryption. \"auto\": allow_plain if listen is a loopback address, else require.
encryption = {encryption}
# The build of the clients that are let in, or all of them.
build = {build}
any_build = {any_build}
# The secret keys of this shard. Clients need the lines that `serve` prints.
keys = {keys}
# Files for clients. files/ is what the file service offers: manifests (NAME.mfs) and folders, each
# of which is a manifest by itself. secure/Python and secure/SDL are what clients get after login.
data = {data}
# Where everything lasting is kept: postgres://USER:PASSWORD@HOST/DATABASE, or empty for SQLite in
# this folder.
database = {database}

[limits]
# How many connections are let in, in all and from one address.
connections = {connections}
connections_per_address = {per_address}
# Nodes of the vault that one player may make, and nodes in a player's inbox, above which others send
# it no more. 0: no limit.
nodes_per_player = {per_player}
nodes_in_inbox = {in_inbox}

[auth]
# How clients are told what this server can do: \"compatible\" with all clients, \"always\" in the
# form of H'uru, or \"never\".
caps = {caps}
# Send Python and SDL files in small chunks, for which the original client was built.
strict_chunks = {strict_chunks}
# Only administrators, developers and testers may log in.
restricted = {restricted}
# Failed logins in a minute for one name from one address, after which more are refused; for an
# address, and for a name from where nobody logged in to it before, it is four times as many.
# 0: no limit.
failed_logins = {failed_logins}
# A client that lost its connection may go on within so many seconds, without a login. Others see its
# player until then. 0: it has to log in again.
reconnect_seconds = {reconnect_seconds}
# A player that logs in twice: throw the first one out, or else refuse the second one.
kick_on_duplicate = {kick}
# Players may change only what is theirs.
strict_vault = {strict_vault}
# Any age may be entered, even if it is not in the vault. For developers.
temporary_ages = {temporary_ages}

[game]
# Refuse players when there are as many in an age as its file (ages/NAME.age in data) allows.
refuse_full = {refuse_full}
# Send positions of avatars only to players who are near them.
relevance = {relevance}
# Deliver messages for certain players in other ages, even if they do not ask for that.
directed_anywhere = {directed_anywhere}
# Console commands that objects of this shard's ages may run on the consoles of other players.
console_commands = {console_commands}
# How many bytes a second a player may send into an age for long; clients send a few thousand. Who
# sends more is read more slowly.
bytes_per_second = {bytes_per_second}

[ages]
# Ages that may be entered without being in the vault, and ages that their owners may make public.
temporary = {temporary}
public = {may_be_public}
# Whoever knows an age may enter it, as on other shards: books can be shared. If not, ages that are
# not public are entered by their owners and by those whom they invite.
open = {open}
# The city to which new players have a link, and the neighbourhoods that they join.
city = {city}
neighbourhood = {neighbourhood}
# Further public ages, made at the start, such as {{ filename = \"Fern\", instance_name = \"Fern\" }}.
# instance = \"UUID\" gives one a certain instance.
fixed = [{fixed}]
",
            listen = text(&listen.to_string()),
            public = text(public_address),
            status = text(status),
            welcome = text(welcome),
            encryption = text(encryption),
            keys = text(&keys.to_string_lossy()),
            data = text(&data.to_string_lossy()),
            database = text(database),
            connections = limits.connections,
            per_address = limits.connections_per_address,
            per_player = limits.nodes_per_player,
            in_inbox = limits.nodes_in_inbox,
            caps = text(caps),
            strict_chunks = auth.strict_chunks,
            restricted = auth.restricted,
            failed_logins = auth.failed_logins,
            reconnect_seconds = auth.reconnect_seconds,
            kick = auth.kick_on_duplicate,
            strict_vault = auth.strict_vault,
            temporary_ages = auth.temporary_ages,
            refuse_full = game.refuse_full,
            relevance = game.relevance,
            directed_anywhere = game.directed_anywhere,
            console_commands = toml::Value::from(game.console_commands.clone()),
            bytes_per_second = game.bytes_per_second,
            temporary = toml::Value::from(ages.temporary.clone()),
            may_be_public = toml::Value::from(ages.public.clone()),
            open = ages.open,
            city = ages.city.shown(),
            neighbourhood = ages.neighbourhood.shown(),
            fixed = ages.fixed.iter().map(FixedAge::shown).collect::<Vec<_>>().join(", "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_start_writes_is_what_it_reads() {
        let default = ShardConfig::default();
        assert_eq!(ShardConfig::parse(&default.commented()), Ok(default));
        assert_eq!(ShardConfig::parse(""), Ok(ShardConfig::default()));
        let other = ShardConfig {
            listen: "[::]:9".parse().unwrap(),
            public_address: "uru.example.org".to_owned(),
            status: String::new(),
            welcome: "\"Shorah\"\n\\o/".to_owned(),
            encryption: EncryptionPolicy::OpenuruPlain,
            build: 1,
            any_build: true,
            keys: "a b".into(),
            data: "/srv/uru".into(),
            database: "postgres://uru@localhost/shard".to_owned(),
            limits: Limits {
                connections: 1,
                connections_per_address: 2,
                nodes_per_player: 3,
                nodes_in_inbox: 0,
            },
            auth: Auth {
                caps: CapsPolicy::Never,
                strict_chunks: true,
                restricted: true,
                failed_logins: 0,
                reconnect_seconds: 0,
                kick_on_duplicate: true,
                strict_vault: false,
                temporary_ages: true,
            },
            game: Game {
                refuse_full: true,
                relevance: true,
                directed_anywhere: true,
                console_commands: vec!["Foo.Bar".to_owned()],
                bytes_per_second: 7,
            },
            ages: Ages {
                temporary: Vec::new(),
                public: vec!["a".to_owned(), "b".to_owned()],
                open: true,
                city: FixedAge { filename: "Town".to_owned(), ..FixedAge::default() },
                neighbourhood: FixedAge {
                    filename: "Hood".to_owned(),
                    user_name: "\"The\"".to_owned(),
                    ..FixedAge::default()
                },
                fixed: vec![
                    FixedAge { filename: "Fern".to_owned(), ..FixedAge::default() },
                    FixedAge {
                        filename: "Fern".to_owned(),
                        instance: "12345678-1234-5678-1234-567812345678".to_owned(),
                        ..FixedAge::default()
                    },
                ],
            },
        };
        let vault = other.vault();
        assert!(vault.open_ages && vault.static_ages[1].instance.is_some());
        assert_eq!(ShardConfig::parse(&other.commented()), Ok(other));
    }

    #[test]
    fn plain_connections_are_for_loopback_unless_told_otherwise() {
        let mut config = ShardConfig::default();
        assert_eq!(config.encryption(), Encryption::AllowPlain);
        config.listen = "0.0.0.0:14617".parse().unwrap();
        assert_eq!(config.encryption(), Encryption::Require);
        config.encryption = EncryptionPolicy::AllowPlain;
        assert_eq!(config.encryption(), Encryption::AllowPlain);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| ShardConfig::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("public_address = \"a-rather-long-name.example.org\""),
            "public_address: wanted 1 to 23 characters, found 30"
        );
        for host in ["a b", "300.1.1.1", "::1", "x:70000", "a..b", "x:", "1.2.3", "-\u{e9}"] {
            let error = error(&format!("public_address = \"{host}\""));
            assert!(error.starts_with("public_address: wanted an IPv4 address"), "{error}");
        }
        for host in ["10.0.0.1", "uru.example.org", "localhost", "x:14617", "1.2.3.4:5", "a-1.b."] {
            assert!(ShardConfig::parse(&format!("public_address = \"{host}\"")).is_ok(), "{host}");
        }
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
        assert_eq!(
            error("[limits]\nconnections = 0"),
            "limits.connections: wanted at least 1, found 0"
        );
        assert_eq!(
            error("[game]\nbytes_per_second = 0"),
            "game.bytes_per_second: wanted at least 1, found 0"
        );
        assert!(error("status = \"yes\"").starts_with("status: wanted an address with a port"));
        for (age, problem) in [
            ("city = {}", "ages.city: wanted a filename, found none"),
            (
                "fixed = [{ filename = \"x\", instance = \"y\" }]",
                "ages.fixed: wanted a UUID, found \"y\"",
            ),
            (
                "neighbourhood = { filename = \"x\", instance = \"12345678-1234-5678-1234-567812345678\" }",
                "ages.neighbourhood: wanted no instance: there may be several",
            ),
        ] {
            assert_eq!(error(&format!("[ages]\n{age}")), problem);
        }
        let unknown = error("build = 1\nlisen = 1");
        assert!(unknown.starts_with("line 2: unknown field `lisen`"), "{unknown}");
        let secret = error("database = \"postgres://uru:secret@host/\" shard");
        assert!(secret.starts_with("line 1: ") && !secret.contains("secret"), "{secret}");
    }
}
