//! What is said on standard error. Nobody may be listening there, or the disk behind it may be
//! full: talking never ends the program.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

use crate::cli::Common;

/// Says a line on standard error, as it is.
pub(crate) fn say(text: impl Display) {
    // In one piece, so that nothing of another thread comes between.
    let line = format!("{text}\n");
    let _ = anstream::stderr().lock().write_all(line.as_bytes());
}

/// Says on standard error what is wrong with an input.
pub(crate) fn complain(subject: &str, problem: &str) {
    say(format_args!("worldwire: {}: {}", printable(subject), printable(problem)));
}

impl Common {
    /// Says on standard error what is no error, unless only results and errors are wanted.
    pub(crate) fn note(&self, subject: &str, text: &str) {
        if !self.quiet {
            complain(subject, text);
        }
    }
}

/// A text that may have come from anywhere, for a terminal: what would steer it, or change the
/// direction of the text, is escaped.
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

/// A path for people.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(printable("a\u{1b}[31m\n\u{202e}"), "a\\u{1b}[31m\\n\\u{202e}");
        let plain = "it's \"Ω\" in a\\b";
        assert_eq!(printable(plain), plain);
        let escaped = printable("\u{7}");
        assert_eq!(printable(&escaped), escaped, "twice is as good as once");
    }
}
