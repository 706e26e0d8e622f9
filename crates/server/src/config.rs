//! The configuration of a server: a file of TOML in its folder.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde::de::DeserializeOwned;

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// Reads the file of a configuration; none before the first start.
///
/// # Errors
/// Those of the system, and those of `parse`.
pub(crate) fn read<T>(
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, ConfigError>,
) -> Result<Option<T>, ConfigError> {
    match fs::read_to_string(file) {
        Ok(text) => parse(&text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError(error.to_string())),
    }
}

/// Reads a configuration from its text.
///
/// # Errors
/// The first line that cannot be read: its number, without the line itself, which may hold the
/// password of a database.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        ConfigError(format!("line {line}: {}", error.message()))
    })
}

/// An address with a port, or none for an empty text. `name` is the setting's.
///
/// # Errors
/// A text that is neither an address nor empty.
pub(crate) fn address(name: &str, text: &str) -> Result<Option<SocketAddr>, ConfigError> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let wanted = "wanted an address with a port, such as 127.0.0.1:8080";
            ConfigError(format!("{name}: {wanted}, found \"{text}\""))
        }),
    }
}

/// Whether a text is an IPv4 address or the name of a host, without a port.
pub(crate) fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(fits)
    };
    // Whatever ends in a number is an address.
    let is_number =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit('.').next().is_some_and(is_number) {
        true => host.parse::<Ipv4Addr>().is_ok(),
        false => host.strip_suffix('.').unwrap_or(host).split('.').all(is_label),
    }
}

/// The URL of a database; none for an empty text, which stands for SQLite in the server's folder.
pub(crate) fn database(url: &str) -> Option<&str> {
    Some(url).filter(|url| !url.is_empty())
}
