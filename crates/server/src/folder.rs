//! The folder of a server: what the first start writes, and what is read of it later.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a new file that only its owner may read.
///
/// # Errors
/// Those of the system; a file that exists is left alone.
pub(crate) fn write_secret(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file)?;
    out.write_all(bytes)?;
    out.sync_all()
}

/// Reads the text of a configuration; none before the first start.
///
/// # Errors
/// Those of the system.
pub(crate) fn configuration(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The URL of the database in a configuration, if there is one.
///
/// # Errors
/// What is wrong with the file, without its text, which may hold a password.
pub(crate) fn database_url(file: &Path) -> Result<Option<String>, String> {
    let text = configuration(file).map_err(|error| error.to_string())?;
    let table: Result<toml::Table, toml::de::Error> = text.unwrap_or_default().parse();
    let table = table.map_err(|error| error.message().to_owned())?;
    let url = table.get("database").and_then(toml::Value::as_str);
    Ok(url.filter(|url| !url.is_empty()).map(str::to_owned))
}

/// What is wrong with a text of TOML: its line, without the line itself, which may hold the
/// password of a database.
pub(crate) fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    format!("line {line}: {}", error.message())
}
