//! The program under test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use worldwire_core::json::{Json, parse};

use crate::output::{Failure, reason};

/// The maximum size of an answer in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// A running program that answers questions, one line each. It is killed on drop.
pub(super) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Result<String, String>>,
    timeout: Duration,
}

impl Peer {
    pub(super) fn start(program: &[String], timeout: Duration) -> Result<Self, Failure> {
        let Some((name, arguments)) = program.split_first() else {
            return Err(Failure::Run("no program is given".to_owned()));
        };
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error: &std::io::Error| Failure::Run(format!("{name}: {}", reason(error)));
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = sync_channel(1);
        // Without standard output, the channel closes immediately.
        if let Some(stdout) = stdout {
            std::thread::spawn(move || {
                let mut stdout = BufReader::new(stdout);
                loop {
                    let mut line = String::new();
                    let read = stdout.by_ref().take(MAX_ANSWER).read_line(&mut line);
                    let line = match read {
                        Ok(0) => return,
                        Ok(_) if !line.ends_with('\n') && line.len() as u64 == MAX_ANSWER => {
                            Err(format!("its response has more than {MAX_ANSWER} bytes"))
                        }
                        Ok(_) => Ok(line),
                        Err(error) => Err(reason(&error)),
                    };
                    let is_over = line.is_err();
                    if sender.send(line).is_err() || is_over {
                        return;
                    }
                }
            });
        }
        Ok(Self { child, stdin, lines, timeout })
    }

    /// Asks a question and waits for its answer: an object with the same `id`.
    ///
    /// # Errors
    /// The reason why the program cannot answer further questions.
    pub(super) fn ask(&mut self, id: u64, question: &str) -> Result<Json, String> {
        let stdin = self.stdin.as_mut().ok_or("its standard input is closed")?;
        let written = stdin.write_all(question.as_bytes()).and_then(|()| stdin.write_all(b"\n"));
        written
            .and_then(|()| stdin.flush())
            .map_err(|error| format!("cannot write to its standard input: {}", reason(&error)))?;
        let line = match self.lines.recv_timeout(self.timeout) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("no response within {} s", self.timeout.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err("it exited without a response".to_owned());
            }
        };
        let answer =
            parse(line.trim()).map_err(|error| format!("its response is not JSON: {error}"))?;
        match answer.get("id").and_then(Json::as_u64) {
            Some(of) if of == id => Ok(answer),
            _ => Err(format!("its response does not have the request's \"id\": {id}")),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
