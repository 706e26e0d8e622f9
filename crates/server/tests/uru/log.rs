//! What a shard logs. A test that reads it has a process of its own: what listens to logs on one
//! thread is disturbed by others, and the database has threads of its own.

use std::process::Command;
use std::sync::{Arc, Mutex};

/// Says that this process is the one of such a test.
const ALONE: &str = "WORLDWIRE_LOG_TEST";

/// Runs a test that begins with [`Log::alone`] in a separate process.
pub(crate) fn run_alone(test: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test}");
}

/// What is logged, of any level.
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
    /// Listens on all threads, if this process is for one test. Otherwise the test has nothing to
    /// do.
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
        // What operators do not see unless they ask for it may be there more often.
        let is_shown = |line: &&str| line.contains(" WARN ") || line.contains(" INFO ");
        self.text().lines().filter(is_shown).filter(|line| line.contains(what)).count()
    }
}
