//! Comments that are valid Rust whatever a definition contains.

/// Formats a text as code in a doc comment, on one line, so that it cannot end the comment.
pub(super) fn code(text: &str) -> String {
    // Control and bidirectional characters could hide code, and a bar would end a table cell.
    let plain = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '`' | '|' | '\\')
    };
    let text: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(plain).collect();
    if text.is_empty() { "(no name)".to_owned() } else { format!("`{text}`") }
}

/// Whether a name occurs in a source as a whole word.
pub(super) fn uses(source: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        let before = source.get(..at).is_some_and(|text| text.ends_with(part));
        let after = source.get(at + name.len()..).is_some_and(|text| text.starts_with(part));
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_cannot_be_left() {
        assert_eq!(code("a`b\n|c\\ \u{202e}d"), "`ab c d`");
    }
}
