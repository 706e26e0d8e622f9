//! The secrets of logins, in the format of key files: what a capture of this server's traffic is
//! read with.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use worldwire_ki::crypt::login::Secret;
use worldwire_net::Tally;

/// A file that grows with every login.
#[derive(Debug)]
pub(super) struct Secrets {
    file: Mutex<File>,
    failures: Tally,
}

impl Secrets {
    /// Opens the file, which is made for its owner alone if there is none.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failures = Tally::new(std::time::Duration::from_secs(60));
        Ok(Self { file: Mutex::new(options.open(path)?), failures })
    }

    /// Adds what an account was given.
    pub(super) fn append(&self, user: &str, ck2: &Secret) {
        let user = toml::Value::String(user.to_owned());
        let text = format!("[[ki.login]]\nuser = {user}\nck2 = \"{}\"\n\n", ck2.as_str());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes())
            && let Some(count) = self.failures.count()
        {
            tracing::warn!(%error, count, "secrets cannot be written");
        }
    }
}
