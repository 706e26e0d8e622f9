//! Captures with tcpdump or dumpcap.
//!
//! They are child processes rather than a library: users who can capture can run one of them, so
//! this program needs no privileges and parses untrusted packets without any. tcpdump's filter
//! language is also the best known.

use std::process::{self, ChildStdout, Command, Stdio};

use super::guard::{COMMAND, QUIET};
use crate::cli::Tcpdump;
use crate::output::{Failure, reason};

/// A running capture, stopped on drop.
pub(super) struct Child(process::Child);

impl Child {
    /// Starts the capture, through the guard that also ends it when this program is killed. Its
    /// packets are forwarded as they arrive; its messages go to standard error, with `is_quiet` only if
    /// it fails.
    pub(super) fn start(asked: &Tcpdump, is_quiet: bool) -> Result<(Self, ChildStdout), Failure> {
        let failed = |error| Failure::Run(format!("cannot start a capture: {}", reason(&error)));
        let program = std::env::current_exe().map_err(failed)?;
        let mut guard = Command::new(program);
        guard.arg(COMMAND).args(is_quiet.then_some(QUIET));
        guard.arg(&asked.interface).args(&asked.packets);
        let mut child =
            guard.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdout = child.stdout.take();
        let child = Self(child);
        let stdout = stdout
            .ok_or_else(|| Failure::Run("cannot read the capturing program's output".to_owned()))?;
        Ok((child, stdout))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The guard ends with its input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
