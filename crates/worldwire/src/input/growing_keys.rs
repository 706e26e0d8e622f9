//! Key files to which a server appends while its traffic is captured.
//!
//! A server does not know a session's key until a few messages into the login. So packets wait for
//! a moment, and the key files are read again before a conversation begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use worldwire_dissect::{Keys, KeysError};

/// The key files of a live capture.
#[derive(Debug)]
pub(crate) struct GrowingKeys {
    files: Vec<PathBuf>,
    /// The keys inside the capture.
    inside: Keys,
    versions: Vec<Version>,
    looked: Instant,
}

/// The length of a file, and when it was last changed.
type Version = Option<(u64, Option<SystemTime>)>;

/// How often key files are checked.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long packets wait for keys: long enough for a distant client to log in, and for the files to
/// be checked afterwards.
const PACKETS_WAIT: Duration = Duration::from_secs(1);

impl GrowingKeys {
    /// Watches key files that are read after this call. `capture` can contain keys, too. `None` if a file
    /// cannot be read twice.
    pub(crate) fn watch(files: &[PathBuf], capture: &Path) -> Option<Self> {
        if files.is_empty() || !files.iter().all(|file| file.is_file()) {
            return None;
        }
        let mut inside = Keys::none();
        let text = super::text_inside(capture);
        if !text.trim().is_empty()
            && let Err(error) = inside.add(&text)
        {
            tracing::debug!(%error, "cannot use the keys in the capture");
        }
        let versions = files.iter().map(|file| version(file)).collect();
        Some(Self { files: files.to_owned(), inside, versions, looked: Instant::now() })
    }

    /// How long packets must wait. A running server does not add keys of servers or accounts, so if
    /// the files contain only such keys, packets need not wait.
    pub(crate) fn wait(&self) -> Duration {
        let texts = self.files.iter().map(fs::read_to_string);
        match texts.map_while(Result::ok).any(|text| may_grow(&text)) {
            true => PACKETS_WAIT,
            false => Duration::ZERO,
        }
    }

    /// All keys, if a file has changed since the last check. With `at_once`, the files are checked
    /// even if they were checked a moment ago.
    pub(crate) fn changed(&mut self, at_once: bool) -> Option<Keys> {
        if !at_once && self.looked.elapsed() < PATIENCE {
            return None;
        }
        self.looked = Instant::now();
        let versions: Vec<Version> = self.files.iter().map(|file| version(file)).collect();
        if versions == self.versions {
            return None;
        }
        match self.read() {
            Ok(keys) => {
                tracing::debug!("the key files have changed");
                self.versions = versions;
                Some(keys)
            }
            // The last entry may be incomplete.
            Err(problem) => {
                tracing::debug!(problem, "cannot read the changed key files");
                None
            }
        }
    }

    fn read(&self) -> Result<Keys, String> {
        let mut keys = self.inside.clone();
        for file in &self.files {
            let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
            if !text.trim().is_empty() {
                keys.add(&text).map_err(|error: KeysError| error.to_string())?;
            }
        }
        Ok(keys)
    }
}

/// Whether a key file is like those that servers write: empty, or with keys of individual sessions.
fn may_grow(text: &str) -> bool {
    let is_session = |line: &str| {
        line.starts_with("[[")
            && [".login]]", ".session]]", ".stream]]"]
                .iter()
                .any(|end| line.trim_end().ends_with(end))
    };
    text.trim().is_empty() || text.lines().any(is_session)
}

fn version(file: &Path) -> Version {
    let about = fs::metadata(file).ok()?;
    Some((about.len(), about.modified().ok()))
}

#[cfg(test)]
mod tests {
    use worldwire_mxo::crypt::KeyFile;

    use super::*;

    #[test]
    fn changed_files_are_read_again() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("keys.toml");
        let entry = |digit: &str| format!("[[mxo.session]]\nkey = \"{}\"\n", digit.repeat(32));
        let write = |text: &str| fs::write(&path, text).expect("there is room");
        let sessions =
            |keys: Option<Keys>| keys.map(|keys| keys.part::<KeyFile>().sessions().len());
        write("");
        let files = [path.clone()];
        assert!(GrowingKeys::watch(&[], Path::new("-")).is_none());
        let other = [path.clone(), folder.path().to_owned()];
        assert!(GrowingKeys::watch(&other, Path::new("-")).is_none());
        let mut keys = GrowingKeys::watch(&files, Path::new("-")).expect("there is a file");
        assert_eq!(keys.wait(), PACKETS_WAIT);
        assert_eq!(sessions(keys.changed(true)), None);
        write(&entry("1"));
        assert_eq!(sessions(keys.changed(true)), Some(1));
        assert_eq!(sessions(keys.changed(true)), None);
        // An incomplete entry is read once it is complete.
        let more = entry("1") + &entry("2");
        write(&more[..more.len() - 5]);
        assert_eq!(sessions(keys.changed(true)), None);
        write(&more);
        assert_eq!((sessions(keys.changed(true)), keys.wait()), (Some(2), PACKETS_WAIT));
        // Files are not checked too often.
        keys.looked = Instant::now() + PATIENCE;
        write(&entry("3"));
        assert_eq!(sessions(keys.changed(false)), None);
        write("[uru]\ndroid = \"00\"\n");
        assert_eq!(keys.wait(), Duration::ZERO);
        fs::remove_file(&path).expect("it exists");
        assert_eq!(sessions(keys.changed(true)), None);
    }
}
