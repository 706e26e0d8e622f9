//! Text from messages, rules and hooks, made safe for a log that is read on a terminal.

use worldwire_core::text::is_hostile;

/// The maximum number of bytes of text that are logged.
const MAX_LOG_BYTES: usize = 4_096;

/// Appends text, shortened if it is long, with characters that could control a terminal escaped.
pub(crate) fn push_safe(out: &mut String, text: &str) {
    for c in text.chars() {
        if out.len() >= MAX_LOG_BYTES {
            out.push_str("...");
            return;
        }
        match is_hostile(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_text_cannot_control_a_terminal() {
        let mut text = String::new();
        push_safe(&mut text, "a\u{1b}[2J\n\u{202e}é");
        assert_eq!(text, "a\\u{1b}[2J\\n\\u{202e}é");
        push_safe(&mut text, &"x".repeat(2 * MAX_LOG_BYTES));
        assert!(text.len() < MAX_LOG_BYTES + 8 && text.ends_with("..."));
    }
}
