//! Valid Rust names and literals for generated code, whatever the definitions contain.

pub mod python;

use std::collections::HashMap;

/// Names in use, each with the number to try for the next duplicate.
#[derive(Debug, Default)]
pub struct Taken(HashMap<String, u64>);

impl Taken {
    /// The name, or a variant of it that is not in use yet.
    pub fn fresh(&mut self, name: String) -> String {
        let Some(next) = self.0.get(&name) else {
            self.0.insert(name.clone(), 2);
            return name;
        };
        // Type names have no underscores; field names do.
        let apart = match name.starts_with(|c: char| c.is_ascii_uppercase()) {
            true => "No",
            false if name.ends_with('_') => "",
            false => "_",
        };
        let mut number = *next;
        let mut unique = format!("{name}{apart}{number}");
        while self.0.contains_key(&unique) {
            number += 1;
            unique = format!("{name}{apart}{number}");
        }
        self.0.insert(unique.clone(), 2);
        self.0.insert(name, number + 1);
        unique
    }
}

/// The name of a field: `GlobalID`, `globalId` and `Global_ID` become `global_id`. `instead`
/// replaces a name without letters or digits and precedes one that begins with a digit.
#[must_use]
pub fn snake(text: &str, instead: &str) -> String {
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
    named(out.trim_matches('_'), instead)
}

/// The name of a type: `MSG_USER_VALIDATE` becomes `MsgUserValidate`, `gameId` becomes `GameId`.
/// `instead` replaces a name without letters or digits and precedes one that begins with a digit.
#[must_use]
pub fn camel(text: &str, instead: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let out: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            let shouted = !rest.bytes().any(|byte| byte.is_ascii_lowercase());
            let rest = if shouted { rest.to_ascii_lowercase() } else { rest.to_owned() };
            first.to_ascii_uppercase() + &rest
        })
        .collect();
    named(&out, instead)
}

/// A string literal.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

/// A name that Rust accepts.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rusts() {
        let snakes =
            ["GlobalID", "m_nTotal", "type", "IPAddress", "3D", "", "é", "TCPPort", "A1B", "Self"];
        let wanted = [
            "global_id",
            "m_n_total",
            "type_",
            "ip_address",
            "field_3_d",
            "field",
            "field",
            "tcp_port",
            "a1_b",
            "self_",
        ];
        assert_eq!(snakes.map(|name| snake(name, "field")), wanted);
        let camels = ["MSG_USER_VALIDATE", "gameId", "self", "__", "3d", "C_3D"];
        let wanted = ["MsgUserValidate", "GameId", "SelfType", "Type", "Type3d", "C3d"];
        assert_eq!(camels.map(|name| camel(name, "Type")), wanted);
        let mut taken = Taken::default();
        let names = ["a", "a", "a_2", "a", "A", "A"].map(|name| taken.fresh(name.into()));
        assert_eq!(names, ["a", "a_2", "a_2_2", "a_3", "A", "ANo2"]);
        assert_eq!(quoted("a\"\n"), "\"a\\\"\\n\"");
    }

    #[test]
    fn a_name_may_come_very_often() {
        let mut taken = Taken::default();
        // Trying all numbers from 1 would take minutes.
        let last = (0..50_000).map(|_| taken.fresh("a".into())).last();
        assert_eq!(last.as_deref(), Some("a_50000"));
    }
}
