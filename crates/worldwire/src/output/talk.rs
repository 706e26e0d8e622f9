//! Writes to standard error. A closed pipe or a full disk there never ends the program.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::cli::Common;

/// Prints a line to standard error, without error numbers.
pub(crate) fn say(text: impl Display) {
    // In one write, so that other threads' output cannot be interleaved.
    let line = without_error_numbers(&format!("{text}\n"));
    let _ = anstream::stderr().lock().write_all(line.as_bytes());
}

/// Reports a problem with an input on standard error.
pub(crate) fn complain(subject: &str, problem: &str) {
    say(format_args!("worldwire: {}: {}", printable(subject), printable(problem)));
}

/// The last lines of the log, for the page of a server.
static RECENT: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
/// The number of lines kept, and the maximum length of each.
const MAX_RECENT: usize = 200;
const MAX_LINE: usize = 1_000;

/// The last lines of the log, oldest first.
#[cfg(feature = "network")]
pub(crate) fn recent_log() -> Vec<String> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The output of a log, without error numbers. Each line is written in one piece.
#[derive(Debug)]
pub(crate) struct Log<W>(pub(crate) W);

impl<W: Write> Write for Log<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let plain = without_error_numbers(&String::from_utf8_lossy(line));
        let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == MAX_RECENT {
            recent.pop_front();
        }
        recent.push_back(plain.trim_end().chars().take(MAX_LINE).collect());
        drop(recent);
        self.0.write_all(plain.as_bytes()).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A message without the numbers that the standard library appends to errors of the operating
/// system: `No such file or directory (os error 2)`.
pub(crate) fn without_error_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<i32>().is_ok() => plain.push_str(rest),
            _ => {
                plain.push_str(" (os error ");
                plain.push_str(part);
            }
        }
    }
    plain
}

impl Common {
    /// Prints a message that is not an error, unless `--quiet` is given.
    pub(crate) fn note(&self, subject: &str, text: &str) {
        if !self.quiet {
            complain(subject, text);
        }
    }
}

/// Escapes untrusted text for a terminal: control characters, and characters that change the
/// direction of text.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.chars() {
        match part {
            '"' | '\'' | '\\' => out.push(part),
            _ => out.extend(part.escape_debug()),
        }
    }
    out
}

/// The width of the terminal in columns, if standard output is a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn counted(count: impl TryInto<u64> + Display, what: &str) -> String {
    let shown = count.to_string();
    let plural = if count.try_into().is_ok_and(|count| count == 1) { "" } else { "s" };
    format!("{shown} {what}{plural}")
}

/// A duration in readable form.
pub(crate) fn spent(since: Instant) -> String {
    format!("{:.2} s", since.elapsed().as_secs_f64())
}

/// A path in readable form.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{Log, counted, printable, without_error_numbers};

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(0_u64, "file"), "0 files");
        assert_eq!(counted(1_usize, "file"), "1 file");
        assert_eq!(counted(2_u8, "byte"), "2 bytes");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31m\n\u{202e}"), "a\\u{1b}[31m\\n\\u{202e}");
        let plain = "it's \"Ω\" in a\\b";
        assert_eq!(printable(plain), plain);
        let escaped = printable("\u{7}");
        assert_eq!(printable(&escaped), escaped, "escaping is idempotent");
    }

    #[test]
    fn error_numbers_are_removed() {
        let message = "cannot write x: No space left on device (os error 28); free some";
        let plain = "cannot write x: No space left on device; free some";
        assert_eq!(without_error_numbers(message), plain);
        for other in ["(os error 2)", "a (os error x) b", "a (os error 2"] {
            assert_eq!(without_error_numbers(other), other);
        }
        let mut log = Vec::new();
        let line = b"ERROR cannot accept connections error=Too many open files (os error 24)\n";
        Log(&mut log).write_all(line).expect("memory");
        assert_eq!(log, b"ERROR cannot accept connections error=Too many open files\n");
    }
}
