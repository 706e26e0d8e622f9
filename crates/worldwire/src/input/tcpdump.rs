//! Captures with tcpdump or dumpcap.
//!
//! They are run as child processes, and no library is used: users who may capture packets can run
//! one of these programs, so this program itself needs no privileges and parses untrusted packets
//! without any. tcpdump's filter language is also the best known one.

use std::process::{self, ChildStdout, Command, Stdio};

use super::guard::{COMMAND, QUIET};
use crate::cli::Tcpdump;
use crate::output::{Failure, reason};

/// A running capture, stopped on drop.
pub(super) struct Child(process::Child);

impl Child {
    /// Starts the capture through the guard, which also ends it when this program is killed. The
    /// packets are forwarded as they arrive. Messages go to standard error; with `is_quiet`, only
    /// if the capture fails.
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
        // The guard ends when its input does.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
