//! The common parts of all servers' configurations. Each is a TOML file in the server's directory.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::folder::reason;

/// A configuration that the operator must correct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A line is not valid TOML, or has an unknown setting or a value of the wrong type.
    #[error("line {line}: {problem}")]
    Line {
        /// The line number, from 1. The line itself is not stored, because it may contain a
        /// password.
        line: usize,
        /// The parser's message.
        problem: String,
    },
    /// A setting has a value that the server cannot use.
    #[error("{name}: {problem}")]
    Setting {
        /// The setting, such as `limits.connections`.
        name: &'static str,
        /// What is wrong with the value.
        problem: SettingError,
    },
}

/// A value that a server cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A number that must not be zero.
    #[error("must be at least 1")]
    Zero,
    /// A number above its maximum.
    #[error("must be at most {max}, not {found}")]
    TooLarge {
        /// The maximum.
        max: usize,
        /// The value.
        found: usize,
    },
    /// Not an address with a port.
    #[error("must be an address with a port, such as 127.0.0.1:8080, not \"{0}\"")]
    NotAnAddress(String),
    /// Neither an IP address nor a host name.
    #[error("must be an {kind} address or a name such as {example}, not {found:?}")]
    NotAHost {
        /// `IP` or `IPv4`.
        kind: &'static str,
        /// An example of a valid name.
        example: &'static str,
        /// The value.
        found: String,
    },
    /// A text whose length the protocol cannot carry.
    #[error("must have 1 to {max} characters, not {found}")]
    Length {
        /// The maximum, in UTF-16 units.
        max: usize,
        /// The length of the value.
        found: usize,
    },
    /// Text that is too long for the vault, or contains control characters.
    #[error("must have at most {max} characters and no control characters: {found:?}")]
    Text {
        /// The maximum, in UTF-16 units.
        max: usize,
        /// The value.
        found: String,
    },
    /// A name from which clients cannot derive a host name.
    #[error("must have 1 to {max} letters, not {found:?}")]
    NotAWorldName {
        /// The maximum length.
        max: usize,
        /// The value.
        found: String,
    },
    /// A district whose file is unknown.
    #[error("must be set, because the file of district {0} is unknown")]
    NoPath(u32),
    /// A district whose file is unknown, and cannot be set.
    #[error("the file of district {0} is unknown")]
    UnknownDistrict(u32),
    /// The zone server's address is set, but its port is not.
    #[error("must be set when zone.address is")]
    NoPort,
    /// An age without a filename.
    #[error("needs a filename")]
    NoFilename,
    /// A filename that no age file can have.
    #[error("filename must not contain the characters / \\ : * ? \" < > |, as {0:?} does")]
    NotAFilename(String),
    /// An instance that is not a UUID.
    #[error("instance must be a UUID, not {0:?}")]
    NotAUuid(String),
    /// A name that cannot be part of a bus subject.
    #[error("must have 1 to {max} lowercase letters, digits and hyphens, not {found:?}")]
    NotANodeName {
        /// The maximum length.
        max: usize,
        /// The value.
        found: String,
    },
    /// The bus servers' addresses cannot be used.
    #[error(
        "must be addresses such as tls://10.0.0.1:4222; only loopback addresses can use nats://: {0:?}"
    )]
    NotABus(String),
    /// A process without the role `vault` has no bus.
    #[error("must be set for a process without the role \"vault\", because it has no vault")]
    NoBus,
    /// A combination of roles that this version does not support.
    #[error("must be \"front\", \"age\" or both, or all of \"front\", \"age\" and \"vault\"")]
    Roles,
    /// A process is to take over a shard but has no vault.
    #[error("must include \"vault\" for a standby, which takes over the vault")]
    StandbyWithoutVault,
    /// An instance is set for a kind of age that has many instances.
    #[error("must not have an instance: the shard creates several")]
    Instance,
}

impl SettingError {
    /// Names the setting that has this value.
    pub(crate) fn of(self, name: &'static str) -> ConfigError {
        ConfigError::Setting { name, problem: self }
    }
}

/// The configuration of one kind of server.
pub(crate) trait ServerConfig: Default + DeserializeOwned + Serialize {
    /// The name of the configuration file in the server's directory.
    const FILE: &'static str;
    /// The file's comments and headings, with a line `name =` for each setting.
    const TEMPLATE: &'static str;
    /// The name of the SQLite database in the server's directory.
    const SQLITE_FILE: &'static str;

    /// Rejects invalid values and combinations.
    fn validate(&self) -> Result<(), ConfigError>;

    /// The URL of a PostgreSQL database; empty for SQLite in the server's directory.
    fn database(&self) -> &str;

    /// Reads a configuration from its text. Missing settings get their defaults.
    fn from_text(text: &str) -> Result<Self, ConfigError> {
        let config: Self = parse(text)?;
        config.validate()?;
        Ok(config)
    }

    /// The text, with comments, that the first start writes.
    fn to_text(&self) -> String {
        // This cannot fail: all keys are strings, and every setting can be serialised.
        let json = serde_json::to_value(self).unwrap_or_default();
        let mut section = &json;
        let mut text = String::new();
        for line in Self::TEMPLATE.lines() {
            text.push_str(line);
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = &json[name];
            } else if let Some(name) = line.strip_suffix(" =") {
                text.push(' ');
                text.push_str(&toml_value(&section[name]));
            }
            text.push('\n');
        }
        text
    }

    /// Reads the file in a directory; `None` before the first start.
    fn read(folder: &Path) -> Result<Option<Self>, ConfigError> {
        match read_text(&folder.join(Self::FILE)) {
            Ok(text) => Self::from_text(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ConfigError::Unreadable(reason(&error))),
        }
    }

    /// The URL of the database, if it is not SQLite in the server's directory.
    fn database_url(&self) -> Option<&str> {
        Some(self.database()).filter(|url| !url.is_empty())
    }
}

/// The maximum size of a configuration or a scene, in bytes.
const MAX_TEXT: u64 = 16 << 20;

/// Reads a regular file of limited size as text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    let problem = match about.len() {
        _ if !about.is_file() => "not a regular file".to_owned(),
        length if length > MAX_TEXT => format!("larger than {} MiB", MAX_TEXT >> 20),
        _ => return fs::read_to_string(path),
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// Parses TOML. An error contains the line's number but not its text, which may contain a database
/// password.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        ConfigError::Line { line, problem: error.message().to_owned() }
    })
}

/// Refuses settings that are zero.
pub(crate) fn at_least_1(
    settings: impl IntoIterator<Item = (&'static str, usize)>,
) -> Result<(), ConfigError> {
    match settings.into_iter().find(|(_, value)| *value == 0) {
        Some((name, _)) => Err(SettingError::Zero.of(name)),
        None => Ok(()),
    }
}

/// Parses an address with a port; an empty text is `None`. `name` is the setting's name.
pub(crate) fn address(name: &'static str, text: &str) -> Result<Option<SocketAddr>, ConfigError> {
    match text.trim() {
        "" => Ok(None),
        text => {
            let not_one = |_| SettingError::NotAnAddress(text.to_owned()).of(name);
            text.parse().map(Some).map_err(not_one)
        }
    }
}

/// Whether a text is an IPv4 address or a host name, without a port.
pub(crate) fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(fits)
    };
    // If the last label consists of digits, the text is an address.
    let is_number =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit('.').next().is_some_and(is_number) {
        true => host.parse::<Ipv4Addr>().is_ok(),
        false => host.strip_suffix('.').unwrap_or(host).split('.').all(is_label),
    }
}

/// A setting's value on one line of TOML.
pub(crate) fn toml_value(json: &Json) -> String {
    match json {
        // TOML's own numbers have 63 bits.
        Json::Number(number) => number.to_string(),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        json => toml::Value::try_from(json).map(|value| value.to_string()).unwrap_or_default(),
    }
}

/// Serialises a path as text, even one that is not UTF-8.
pub(crate) fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Serialises several paths as [`path_text`] does.
pub(crate) fn path_texts<S: Serializer>(
    paths: &[PathBuf],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
