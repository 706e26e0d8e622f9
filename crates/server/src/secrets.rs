//! A key file with the secrets of a server's clients, for decrypting captures of its traffic.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_blocking;
use worldwire_net::LogLimiter;
use zeroize::Zeroizing;

/// A key file that grows with every login.
#[derive(Debug)]
pub(crate) struct Secrets {
    file: Mutex<File>,
    failures: LogLimiter,
}

impl Secrets {
    /// Opens or creates the file. A new file is readable by its owner only.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failures = LogLimiter::new(std::time::Duration::from_secs(60));
        Ok(Self { file: Mutex::new(options.open(path)?), failures })
    }

    /// Appends TOML, on a thread for file I/O.
    pub(crate) fn append(self: &Arc<Self>, text: Zeroizing<String>) {
        let secrets = Arc::clone(self);
        spawn_blocking(move || secrets.write(&text));
    }

    fn write(&self, text: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes())
            && let Some(count) = self.failures.count()
        {
            tracing::warn!(%error, count, "cannot write secrets to the key file");
        }
    }
}
