//! Captures with tcpdump.
//!
//! It is a child process rather than a library: users who can capture can run tcpdump, so this
//! program needs no privileges and parses untrusted packets without any. tcpdump's filter language
//! is also the best known.

use std::fs::{File, OpenOptions};
use std::io;
use std::process::{self, ChildStdout, Command, Stdio};

use worldwire_capture::{CaptureError, CaptureWriter, LinkType, Packet};

use super::packets::Refusal;
use crate::cli::Tcpdump;
use crate::output::{Failure, occupied, reason};

/// A running tcpdump, stopped on drop.
pub(super) struct Child(process::Child);

impl Child {
    /// Starts tcpdump. Its packets are forwarded as they arrive, and optionally also written to a
    /// file; its messages go to standard error.
    pub(super) fn start(
        asked: &Tcpdump,
    ) -> Result<(Self, (ChildStdout, Option<PacketCopy>)), Refusal> {
        let copy = asked.write.as_deref().map(|path| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(asked.force).create_new(!asked.force);
            let file = options.open(path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Failure::Run(occupied(path)),
                _ => Failure::io(path, &error),
            })?;
            PacketCopy::new(file).map_err(|error| Failure::Run(error.to_string()))
        });
        let copy = copy.transpose().map_err(Refusal::Failed)?;
        let mut command = Command::new("tcpdump");
        // Whole packets to standard output, each as soon as it is captured.
        command.args(["-U", "-s", "0", "-w", "-", "-i", &asked.interface, "--"]);
        command.args(&asked.packets).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let text = match error.kind() {
                io::ErrorKind::NotFound => {
                    "tcpdump is not installed; install it, or pipe a capture of \
                     another program into `worldwire dissect -`"
                        .to_owned()
                }
                _ => format!("tcpdump: {}", reason(&error)),
            };
            Refusal::Failed(Failure::Run(text))
        })?;
        let stdout = child.stdout.take();
        let child = Self(child);
        let stdout = stdout.ok_or_else(|| {
            Refusal::Failed(Failure::Run("tcpdump: cannot read its output".to_owned()))
        })?;
        Ok((child, (stdout, copy)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // If both were interrupted, it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pcapng file that receives packets as they arrive. However the program ends, the file contains
/// every packet up to then.
pub(super) struct PacketCopy {
    writer: CaptureWriter<File>,
    /// The number of the interface with each link type.
    links: Vec<LinkType>,
}

impl PacketCopy {
    fn new(file: File) -> Result<Self, CaptureError> {
        Ok(Self { writer: CaptureWriter::new(file, &[])?, links: Vec::new() })
    }

    pub(super) fn write(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        let known = self.links.iter().position(|link| *link == packet.link);
        let interface = match known.and_then(|place| u32::try_from(place).ok()) {
            Some(interface) => interface,
            None => {
                self.links.push(packet.link);
                self.writer.interface(packet.link)?
            }
        };
        self.writer.packet(interface, packet.time, packet.data, packet.original_length)
    }
}
