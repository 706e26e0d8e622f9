//! Names, literals and comments that are good Rust whatever a definition says.

use std::collections::HashSet;

/// Names that are in use.
#[derive(Default)]
pub(super) struct Taken(HashSet<String>);

impl Taken {
    /// The name, or one like it that nobody has.
    pub(super) fn fresh(&mut self, name: String) -> String {
        let mut unique = name.clone();
        let mut number = 2;
        while !self.0.insert(unique.clone()) {
            // Types have no underscores, fields do.
            let apart = match name.starts_with(|c: char| c.is_ascii_uppercase()) {
                true => "No",
                false if name.ends_with('_') => "",
                false => "_",
            };
            unique = format!("{name}{apart}{number}");
            number += 1;
        }
        unique
    }
}

/// `gameId` and `game_id` become `game_id`.
pub(super) fn snake(text: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        let word = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase()
                    && rest.peek().is_some_and(char::is_ascii_lowercase)));
        if word {
            out.push('_');
        }
        if c != '_' || !out.ends_with('_') {
            out.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    named(out.trim_matches('_'), "field")
}

/// `S_SPAWN_USER` becomes `SSpawnUser`, `gameId` becomes `GameId`.
pub(super) fn camel(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let out: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            let shouted = !rest.bytes().any(|byte| byte.is_ascii_lowercase());
            let rest = if shouted { rest.to_ascii_lowercase() } else { rest.to_owned() };
            first.to_ascii_uppercase() + &rest
        })
        .collect();
    named(&out, "Type")
}

/// A name that Rust takes.
fn named(name: &str, instead: &str) -> String {
    const KEYWORDS: [&str; 52] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
        "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
        "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
        "ref", "return", "self", "Self", "static", "struct", "super", "trait", "true", "try",
        "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    ];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        let apart = if instead.starts_with(char::is_uppercase) { "" } else { "_" };
        return format!("{instead}{apart}{name}").trim_end_matches('_').to_owned();
    }
    let apart = if name.starts_with(char::is_uppercase) { "Type" } else { "_" };
    if KEYWORDS.contains(&name) { format!("{name}{apart}") } else { name.to_owned() }
}

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

/// A text inside a documentation comment, on one line; it cannot leave it, and is shown as code.
pub(super) fn code(text: &str) -> String {
    // What controls or turns text round has no place in a source; a bar would end a cell.
    let plain = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '`' | '|' | '\\')
    };
    let text: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(plain).collect();
    if text.is_empty() { "(no name)".to_owned() } else { format!("`{text}`") }
}

/// Whether a name stands in a source as a word.
pub(super) fn uses(source: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        let before = source.get(..at).is_some_and(|text| text.ends_with(part));
        let behind = source.get(at + name.len()..).is_some_and(|text| text.starts_with(part));
        !before && !behind
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rusts() {
        let snakes =
            ["gameId", "game_id", "type", "IPAddress", "3D", "", "é", "TCPPort", "a1", "Self"];
        let wanted = [
            "game_id",
            "game_id",
            "type_",
            "ip_address",
            "field_3_d",
            "field",
            "field",
            "tcp_port",
            "a1",
            "self_",
        ];
        assert_eq!(snakes.map(snake), wanted);
        let camels = ["S_SPAWN_USER", "gameId", "self", "__", "3d", "C_3D"];
        let wanted = ["SSpawnUser", "GameId", "SelfType", "Type", "Type3d", "C3d"];
        assert_eq!(camels.map(camel), wanted);
        let mut taken = Taken::default();
        let names = ["a", "a", "a_2", "a", "A", "A"].map(|name| taken.fresh(name.into()));
        assert_eq!(names, ["a", "a_2", "a_2_2", "a_3", "A", "ANo2"]);
        assert_eq!(code("a`b\n|c\\ \u{202e}d"), "`ab c d`");
    }
}
