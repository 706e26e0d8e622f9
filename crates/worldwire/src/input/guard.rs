//! `worldwire capture-guard`, which runs between `worldwire capture` and the capturing program.
//!
//! On a quiet network, a capturing program notices only at its next packet that nobody reads its
//! output any more. The guard notices immediately when the program that started it ends, for
//! whatever reason, because that closes the guard's standard input. It then ends the capturing
//! program.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::output::{Failure, Interruption, reason};

/// The name of the command. Only this program uses it, so `--help` does not list it.
pub(super) const COMMAND: &str = "capture-guard";
/// The option after the command: the capturing program's messages are shown only if the program
/// fails.
pub(super) const QUIET: &str = "--quiet";

/// A requested guard.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Whether the capturing program's messages are shown only if it fails.
    is_quiet: bool,
    interface: String,
    packets: Vec<String>,
}

/// How often to check whether the capturing program has ended.
const NAP: Duration = Duration::from_millis(50);

impl Guard {
    /// The guard requested on the command line, if any.
    pub(crate) fn requested() -> Option<Self> {
        let mut words = std::env::args_os().skip(1);
        if words.next()? != COMMAND {
            return None;
        }
        let mut words = words.map(|word| word.to_string_lossy().into_owned()).peekable();
        let is_quiet = words.next_if(|word| word == QUIET).is_some();
        Some(Self { is_quiet, interface: words.next()?, packets: words.collect() })
    }

    /// Captures until either side ends.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        // Ctrl-C also reaches the capturing program, which may still have packets to write.
        let _interruption = Interruption::ask_first(|| ());
        let mut child = self.start()?;
        let messages = child.stderr.take().map(|messages| std::thread::spawn(|| kept(messages)));
        let (sender, is_gone) = channel::<()>();
        std::thread::spawn(move || {
            // Reading ends when nobody holds the other end of the pipe any longer.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            drop(sender);
        });
        loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) | Err(_) => {
                    let messages = messages.and_then(|messages| messages.join().ok());
                    let _ = io::stderr().write_all(&messages.unwrap_or_default());
                    return Err(Failure::Input);
                }
            }
            if is_gone.recv_timeout(NAP) == Err(RecvTimeoutError::Disconnected) {
                // If the program cannot be killed, it ends at its next packet.
                if child.kill().is_ok() {
                    let _ = child.wait();
                }
                return Ok(());
            }
        }
    }

    /// Starts tcpdump, or dumpcap if there is no tcpdump. Each packet goes to standard output as
    /// soon as it is captured.
    fn start(&self) -> Result<Child, Failure> {
        let Self { is_quiet, interface, packets } = self;
        let mut tcpdump =
            vec!["--immediate-mode", "-U", "-s", "0", "-w", "-", "-i", interface.as_str(), "--"];
        tcpdump.extend(packets.iter().map(String::as_str));
        let filter = packets.join(" ");
        let mut dumpcap = vec!["-q", "-P", "-w", "-", "-i", interface.as_str()];
        if !filter.is_empty() {
            dumpcap.extend(["-f", filter.as_str()]);
        }
        for (program, arguments) in [
            ("tcpdump", &tcpdump),
            ("dumpcap", &dumpcap),
            // Wireshark's installer does not add its directory to the search path.
            #[cfg(windows)]
            (r"C:\Program Files\Wireshark\dumpcap.exe", &dumpcap),
        ] {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null());
            if *is_quiet {
                command.stderr(Stdio::piped());
            }
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                started => {
                    let why = |error| Failure::Run(format!("{program}: {}", reason(&error)));
                    return started.map_err(why);
                }
            }
        }
        Err(Failure::Run(
            "neither tcpdump nor dumpcap is installed; install one of them, or pipe another \
             program's capture into `worldwire dissect -`"
                .to_owned(),
        ))
    }
}

/// Reads messages to the end and keeps the first ones.
fn kept(mut messages: impl Read) -> Vec<u8> {
    const MAX: u64 = 64 << 10;
    let mut kept = Vec::new();
    let _ = messages.by_ref().take(MAX).read_to_end(&mut kept);
    let _ = io::copy(&mut messages, &mut io::sink());
    kept
}
