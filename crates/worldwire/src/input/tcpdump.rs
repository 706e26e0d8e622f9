//! Captures with tcpdump.
//!
//! It is a child process rather than a library: users who can capture can run tcpdump, so this
//! program needs no privileges and parses untrusted packets without any. tcpdump's filter language
//! is also the best known.

use std::io;
use std::process::{self, ChildStdout, Command, Stdio};

use crate::cli::Tcpdump;
use crate::output::{Failure, reason};

/// A running tcpdump, stopped on drop.
pub(super) struct Child(process::Child);

impl Child {
    /// Starts tcpdump. Its packets are forwarded as they arrive; its messages go to standard error.
    pub(super) fn start(asked: &Tcpdump) -> Result<(Self, ChildStdout), Failure> {
        let mut command = Command::new("tcpdump");
        // Whole packets to standard output, each as soon as it is captured.
        command.args(["--immediate-mode", "-U", "-s", "0", "-w", "-", "-i", &asked.interface]);
        command.arg("--").args(&asked.packets).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Run(
                "tcpdump is not installed; install it, or pipe a capture of another program into \
                 `worldwire dissect -`"
                    .to_owned(),
            ),
            _ => Failure::Run(format!("tcpdump: {}", reason(&error))),
        })?;
        let stdout = child.stdout.take();
        let child = Self(child);
        let stdout = stdout.ok_or_else(|| Failure::Run("tcpdump has no output".to_owned()))?;
        Ok((child, stdout))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // If both were interrupted, it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
