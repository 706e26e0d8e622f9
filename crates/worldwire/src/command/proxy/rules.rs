//! `worldwire proxy --rules`: rules from a file, which is reloaded when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use worldwire_core::Diagnostic;
use worldwire_dissect::Definitions;
use worldwire_proxy::RuleFile;

use crate::output::{Failure, say, shown};
use crate::report;

/// The interval at which the file is checked for changes.
const INTERVAL: Duration = Duration::from_millis(250);

/// Rules that are reloaded when their file changes.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    path: PathBuf,
    pub(super) file: Arc<RuleFile>,
}

impl Watched {
    /// Reads the rules. Errors are reported with their lines.
    pub(super) fn read(path: &Path, definitions: &Arc<Definitions>) -> Result<Self, Failure> {
        let text = text(path).map_err(|error| Failure::io(path, &error))?;
        let name = path.display().to_string();
        let file = RuleFile::new(&name, &text, Arc::clone(definitions)).map_err(|mistakes| {
            report::diagnostics(mistakes.iter());
            Failure::Input
        })?;
        report::diagnostics(file.warnings().iter());
        Ok(Self { path: path.to_owned(), file: Arc::new(file) })
    }

    /// Reloads the file whenever it changes. Ends with the runtime.
    pub(super) async fn follow(self) {
        let mut known = stamp(&self.path);
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = stamp(&self.path);
            // While an editor replaces the file, it may be missing for a moment.
            if now == known || now.is_none() {
                continue;
            }
            known = now;
            let reader = self.clone();
            let outcome = tokio::task::spawn_blocking(move || reader.reload()).await;
            let name = shown(&self.path);
            match outcome.map_err(io::Error::other).and_then(|outcome| outcome) {
                Ok(Reloaded { in_force, said }) => {
                    let outcome = match in_force {
                        true => "the new rules are in force",
                        false => "has errors; the old rules stay in force",
                    };
                    say(format_args!("worldwire: {name}: {outcome}"));
                    report::diagnostics(said.iter());
                }
                Err(error) => {
                    say(format_args!("worldwire: {name}: {error}; the old rules stay in force"))
                }
            }
        }
    }

    /// Reads the file again.
    pub(super) fn reload(&self) -> io::Result<Reloaded> {
        let text = text(&self.path)?;
        Ok(match self.file.reload(&text) {
            Ok(warnings) => Reloaded { in_force: true, said: warnings },
            Err(errors) => Reloaded { in_force: false, said: errors },
        })
    }
}

/// The outcome of reloading rules.
pub(super) struct Reloaded {
    /// Whether the new rules are in force.
    pub(super) in_force: bool,
    /// Errors and warnings.
    pub(super) said: Vec<Diagnostic>,
}

/// Reads the file. A pipe could be read only once, and might never end.
fn text(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.is_file() {
        true => fs::read_to_string(path),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// The time and size of a file, which show whether it has changed.
fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let about = fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}
