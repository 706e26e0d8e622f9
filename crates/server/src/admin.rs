//! Administering a server from its directory, whether it is running or not.
//!
//! [`Admin::open`] checks which is the case. A running server has locked its directory and listens
//! on a [local socket](crate::operators) there. If the server is not running, the database is
//! opened directly, for as long as the [`Admin`] lives. Requests and replies are the same in both
//! cases.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::config::{ConfigError, ServerConfig};
use crate::folder::{blocking, reason};
use crate::operators::{self, Operated, Rejection};
use crate::start::{locked_store, or_close};
use crate::store::lease::SharedStore as _;
use crate::store::lock::{FolderLock, LOCK_FILE};
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, CopyError, Ledger as _, Store, StoreError};

/// A kind of server that [`Admin`] can find in a directory.
pub trait Administered: Operated {
    /// The name that operators use for this kind, such as `shard`.
    const NAME: &'static str;
    /// The command that creates such a server, such as `worldwire serve uru`.
    const COMMAND: &'static str;

    /// Why the stored data of such a server cannot be loaded.
    type LoadError: Error + Send + Sync + 'static;

    /// Whether a request is about connections and therefore needs a running server.
    fn needs_running(request: &Self::Request) -> bool {
        let _ = request;
        false
    }

    /// Checks, without locking a directory, that it belongs to a server of this kind. Fails with
    /// [`AdminError::NoServer`] or [`AdminError::NoKey`].
    fn check_folder(folder: &Path) -> Result<(), AdminError<Self::LoadError>>;

    /// Opens the database of a server that is not running. `lock` is the directory's lock; the
    /// database is closed before the lock is dropped.
    fn open_stopped(
        folder: &Path,
        lock: &mut FolderLock,
    ) -> impl Future<Output = Result<Self, AdminError<Self::LoadError>>> + Send;

    /// The error for a directory without such a server.
    fn missing(folder: &Path) -> AdminError<Self::LoadError> {
        let (folder, name, command) = (folder.to_owned(), Self::NAME, Self::COMMAND);
        AdminError::NoServer { folder, name, command }
    }

    /// Closes the database that [`open_stopped`](Self::open_stopped) opened.
    fn close_stopped(&self) -> impl Future<Output = ()> + Send;
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError<E> {
    /// The server refused the request for this reason.
    #[error("{0}")]
    Refused(String),
    /// The request failed on the server for this reason, such as a database error.
    #[error("{}: {problem}", folder.display())]
    Failed {
        /// The directory.
        folder: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The directory does not belong to such a server.
    #[error("{}: not the directory of a {name}; `{command}` creates one", folder.display())]
    NoServer {
        /// The directory.
        folder: PathBuf,
        /// The name that operators use for the server.
        name: &'static str,
        /// The command that creates such a server.
        command: &'static str,
    },
    /// The server exists, but the key that seals its passwords is missing.
    #[error("{}: file is missing; restore it, or start the server once", .0.display())]
    NoKey(PathBuf),
    /// The request needs a running server.
    #[error("{}: the server is not running", .0.display())]
    NotRunning(PathBuf),
    /// The directory belongs to a process that uses another process's vault and that is not
    /// running.
    #[error(
        "{}: the {name}'s vault is in another process, and this folder's own process is not \
         running; start it, or run the command in the folder of the process that has the vault",
        folder.display()
    )]
    NoVault {
        /// The directory.
        folder: PathBuf,
        /// The name that operators use for the server.
        name: &'static str,
    },
    /// The request needs the server to be stopped.
    #[error("{}: in use by {holder}; stop that process first", folder.display())]
    Running {
        /// The directory.
        folder: PathBuf,
        /// A description of the process, for display.
        holder: String,
    },
    /// The directory's process is not running, but other processes are using its database.
    #[error(
        "{}: this folder's process is not running, but others use its database; run the command in the folder of \
        the process that serves the {name} (the last one was {writer})", folder.display()
    )]
    Elsewhere {
        /// The directory.
        folder: PathBuf,
        /// The name that operators use for the server.
        name: &'static str,
        /// The process that last served the database, with its directory.
        writer: String,
    },
    /// The database was not copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A server has locked the directory but does not reply.
    #[error("{}: a {name} is running here but does not respond: {}", folder.display(), reason(source))]
    Silent {
        /// The directory.
        folder: PathBuf,
        /// The name that operators use for the server.
        name: &'static str,
        /// The error of the server's socket.
        source: io::Error,
    },
    /// A process has locked the directory but has no socket.
    #[error(
        "{}: the process in this directory is not serving the {name}: it is a standby, or is starting or stopping; run the \
        command where the {name} is served", folder.display()
    )]
    NotServing {
        /// The directory.
        folder: PathBuf,
        /// The name that operators use for the server.
        name: &'static str,
    },
    /// A file in the directory cannot be used.
    #[error("{}: {}", file.display(), reason(source))]
    File {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The configuration cannot be used.
    #[error("{}: {error}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: ConfigError,
    },
    /// The key that seals passwords cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data in the database cannot be loaded.
    #[error("{0}")]
    Load(#[source] E),
}

impl<E> AdminError<E> {
    /// The error for a request that a server has refused or could not carry out.
    fn rejected(folder: &Path, Rejection { problem, is_failure }: Rejection) -> Self {
        match is_failure {
            true => Self::Failed { folder: folder.to_owned(), problem },
            false => Self::Refused(problem),
        }
    }

    /// The error for a failure of a running server's socket.
    fn unanswered(folder: &Path, name: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::File { file: operators::file(folder), source },
            io::ErrorKind::NotFound => Self::NotServing { folder: folder.to_owned(), name },
            _ => Self::Silent { folder: folder.to_owned(), name, source },
        }
    }
}

/// Reads the configuration of a server that is not running.
pub(crate) fn stopped_config<C: ServerConfig, E>(folder: &Path) -> Result<C, AdminError<E>> {
    let file = folder.join(C::FILE);
    let config = C::read(folder).map_err(|error| AdminError::Config { file, error })?;
    Ok(config.unwrap_or_default())
}

/// Opens the database of a server that is not running, and reads its key. `name` is the name that
/// operators use for the server.
pub(crate) async fn stopped_store<C: ServerConfig, E>(
    folder: &Path,
    config: &C,
    lock: &mut FolderLock,
    name: &'static str,
) -> Result<(Arc<dyn Store>, ServerKey), AdminError<E>> {
    if let Some(url) = config.database_url() {
        let shared = store::open_shared(folder, url).await?;
        let writer = served_by(&shared).await;
        // The first error is the one to report.
        let _ = shared.close().await;
        if let Some(writer) = writer? {
            return Err(AdminError::Elsewhere { folder: folder.to_owned(), name, writer });
        }
    }
    let store = match locked_store(folder, config, lock).await {
        Err(StoreError::InUse { holder }) if config.database_url().is_some() => {
            return Err(AdminError::Elsewhere { folder: folder.to_owned(), name, writer: holder });
        }
        store => store?,
    };
    let key = or_close(ServerKey::load(&folder.join(KEY_FILE)), &*store).await?;
    Ok((store, key))
}

/// The process that last served a database, if a standby is watching the database. If that process
/// does not return, the standby will soon serve the database. If this process had the database
/// open, the standby would have to wait for it and could not continue any sessions.
async fn served_by(store: &store::PostgresStore) -> Result<Option<String>, StoreError> {
    match store.standbys().await?.is_empty() {
        true => Ok(None),
        false => Ok(Some(store.look().await?.writer)),
    }
}

/// An operator's access to one server.
#[derive(Debug)]
pub struct Admin<S> {
    folder: PathBuf,
    /// The server's data and the directory's lock, if the server is not running.
    stopped: Option<(S, FolderLock)>,
}

impl<S: Administered> Admin<S> {
    /// Finds the server in a directory: the running server or, if it is not running, its database.
    pub async fn open(folder: &Path) -> Result<Self, AdminError<S::LoadError>> {
        S::check_folder(folder)?;
        let path = folder.to_owned();
        let lock = blocking(move || FolderLock::take(&path))
            .await
            .map_err(|source| AdminError::File { file: folder.join(LOCK_FILE), source })?;
        let stopped = match lock {
            Some(mut lock) => Some((S::open_stopped(folder, &mut lock).await?, lock)),
            None => None,
        };
        Ok(Self { folder: folder.to_owned(), stopped })
    }

    /// Sends a request to the server that is running in a directory; `None` if none replies. Opens
    /// no database.
    pub async fn ask_running(
        folder: &Path,
        request: S::Request,
    ) -> Result<Option<Vec<Json>>, AdminError<S::LoadError>> {
        match operators::ask::<S>(folder, &request, &[]).await {
            Ok(answer) => answer.map(Some).map_err(|why| AdminError::rejected(folder, why)),
            Err(_) => Ok(None),
        }
    }

    /// Carries out a request that no further lines follow.
    pub async fn ask(&self, request: S::Request) -> Result<Vec<Json>, AdminError<S::LoadError>> {
        self.ask_with_lines(request, &[]).await
    }

    /// Carries out a request that is followed by lines, such as an import and its dump.
    pub async fn ask_with_lines(
        &self,
        request: S::Request,
        lines: &[String],
    ) -> Result<Vec<Json>, AdminError<S::LoadError>> {
        let Self { folder, stopped } = self;
        match stopped {
            Some(_) if S::needs_running(&request) => Err(AdminError::NotRunning(folder.clone())),
            Some((server, _)) => {
                let answer = server.perform(request, lines).await;
                answer.map_err(|error| AdminError::rejected(folder, Rejection::of::<S>(&error)))
            }
            None => match operators::ask::<S>(folder, &request, lines).await {
                Ok(answer) => answer.map_err(|why| AdminError::rejected(folder, why)),
                Err(source) => Err(AdminError::unanswered(folder, S::NAME, source)),
            },
        }
    }

    /// Closes the database if this opened it. A running server keeps running.
    pub async fn close(self) {
        if let Some((server, _lock)) = self.stopped {
            server.close_stopped().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_sockets_are_reported_by_cause() {
        let text = |kind: io::ErrorKind| {
            let error = AdminError::<io::Error>::unanswered(Path::new("x"), "shard", kind.into());
            error.to_string()
        };
        let file = operators::file(Path::new("x"));
        let denied = format!("{}: permission denied", file.display());
        assert_eq!(text(io::ErrorKind::PermissionDenied), denied);
        let silent = text(io::ErrorKind::ConnectionRefused);
        assert!(
            silent.starts_with("x: a shard is running here but does not respond: "),
            "{silent}"
        );
        let waiting = text(io::ErrorKind::NotFound);
        assert!(
            waiting.starts_with("x: the process in this directory is not serving the shard"),
            "{waiting}"
        );
    }
}
