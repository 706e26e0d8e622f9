//! A shard's files, read when it starts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use worldwire_uru::connection::ServerConfig;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;

use super::ShardError;
use super::auth::SecureFiles;
use super::config::{CONFIG, ShardConfig};
use super::file::Library;
use super::game::AgeFiles;
use super::keys::{self, KeysError};
use super::shared::server_rules;
use crate::config::ServerConfig as _;
use crate::folder::open_mode;
use crate::start::{Absent, at};

/// The parts of a shard other than its ports and its vault.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) config: ShardConfig,
    pub(super) server: ServerConfig,
    pub(super) library: Library,
    pub(super) secure: SecureFiles,
    pub(super) ages: Arc<AgeFiles>,
    pub(super) data: PathBuf,
    pub(super) absent: Absent,
}

impl Parts {
    /// Reads the files in a shard's directory. Keys are generated on the first start.
    pub(super) async fn load(
        folder: &Path,
        config: ShardConfig,
        primes: PrimeKind,
        absent: Absent,
    ) -> Result<Self, ShardError> {
        let keys = keys_of(&folder.join(&config.keys), primes, absent.server).await?;
        warn_of_open_files(folder, &config);
        let data = folder.join(&config.data);
        let library = Library::open(&data.join("files"), &folder.join("cache"))?;
        let secure = data.join("secure");
        let ages = data.join("ages");
        let droid = keys.droid().cloned().ok_or(KeysError::Missing("droid"));
        let droid = droid.map_err(|error| ShardError::Keys { path: config.keys.clone(), error })?;
        let secure = SecureFiles::open(&secure, droid.clone()).map_err(at(&secure))?;
        let ages = Arc::new(AgeFiles::open(&data, droid).map_err(at(&ages))?);

        let mut server = ServerConfig::new(keys);
        (server.encryption, server.builds) = server_rules(&config);
        Ok(Self { config, server, library, secure, ages, data, absent })
    }
}

/// Warns about files with secrets that others can read. They are not refused, because earlier
/// versions did not refuse them.
fn warn_of_open_files(folder: &Path, config: &ShardConfig) {
    // The configuration file contains the database's password.
    let own = config.database_url().map(|_| Path::new(CONFIG));
    for file in own.into_iter().chain([&*config.keys]) {
        let file = folder.join(file);
        if let Some(mode) = open_mode(&file) {
            let (file, mode) = (file.display(), format_args!("{mode:04o}"));
            tracing::warn!(%file, %mode, "other users can read this file, which contains secrets; \
                                          set its mode to 0600");
        }
    }
}

/// Reads the servers' keys, or generates them on the first start.
async fn keys_of(path: &Path, primes: PrimeKind, is_new: bool) -> Result<KeyRing, ShardError> {
    let wrong = |error| ShardError::Keys { path: path.to_owned(), error };
    if !path.exists() {
        if !is_new {
            return Err(ShardError::KeysLost(path.to_owned()));
        }
        let made = spawn_blocking(move || keys::generate(primes)).await;
        let made = made.map_err(|error| at(path)(io::Error::other(error)))?;
        keys::save(&made, path).map_err(at(path))?;
    }
    keys::load(path).map_err(wrong)
}
