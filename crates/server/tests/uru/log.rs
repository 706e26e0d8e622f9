//! A shard's log. A test that reads it runs in a separate process, because subscribers for single
//! threads interfere with each other, and the database uses other threads.

use std::process::Command;
use std::sync::{Arc, Mutex};

/// The environment variable that is set in the process of such a test.
const ALONE: &str = "WORLDWIRE_LOG_TEST";

/// Runs a test that begins with [`Log::alone`] in a separate process.
pub(crate) fn run_alone(test: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test}");
}

/// All log lines, at any level.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Captures the lines of all threads if this process runs only one test. Otherwise, the test
    /// does nothing.
    pub(crate) fn alone() -> Option<Self> {
        std::env::var_os(ALONE)?;
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        Some(log)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        // Lines below the default level may be more frequent.
        let is_shown = |line: &&str| line.contains(" WARN ") || line.contains(" INFO ");
        self.text().lines().filter(is_shown).filter(|line| line.contains(what)).count()
    }
}
