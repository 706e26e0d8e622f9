//! Lua source code with tables of data.

use std::collections::HashMap;
use std::fmt::Write as _;

use worldwire_core::Names;

/// Tables of data as Lua source code.
///
/// A Lua function can have at most 200 local variables and a limited number of constants, so the
/// tables are fields of a few variables and are filled piece by piece.
#[derive(Default)]
pub(super) struct Lua {
    out: String,
    /// The numbers of tables of names, by their source code.
    names: HashMap<String, usize>,
}

impl Lua {
    /// A string literal. Everything but printable ASCII is escaped, so no name can end it.
    pub(super) fn quoted(text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => {
                    out.push('\\');
                    out.push(char::from(byte));
                }
                b' '..=b'~' => out.push(char::from(byte)),
                _ => {
                    let _ = write!(out, "\\{byte:03}");
                }
            }
        }
        out.push('"');
        out
    }

    /// Appends a line.
    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// A reference to the names of numbers: a table with numbers as keys.
    pub(super) fn names(&mut self, names: &Names) -> String {
        let pairs =
            names.iter().map(|(number, name)| format!("[{number}] = {}", Self::quoted(name)));
        self.shared(pairs.collect())
    }

    /// A reference to the names of flags: a list of pairs.
    pub(super) fn flags(&mut self, names: &Names) -> String {
        let pairs =
            names.iter().map(|(mask, name)| format!("{{ {mask}, {} }}", Self::quoted(name)));
        self.shared(pairs.collect())
    }

    fn shared(&mut self, entries: Vec<String>) -> String {
        let code = format!("{{ {} }}", entries.join(", "));
        if let Some(number) = self.names.get(&code) {
            return format!("NAMES[{number}]");
        }
        let number = self.names.len() + 1;
        if number == 1 {
            self.line("local NAMES = {}");
        }
        self.line(&format!("NAMES[{number}] = {code}"));
        self.names.insert(code, number);
        format!("NAMES[{number}]")
    }

    pub(super) fn into_source(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_a_literal() {
        assert_eq!(
            Lua::quoted("a\"] = os.exit() --\\\n\u{e4}"),
            r#""a\"] = os.exit() --\\\010\195\164""#
        );
    }

    #[test]
    fn equal_names_are_written_once() {
        let mut lua = Lua::default();
        let names = Names::from_pairs([(1, "One".into()), (-2, "Two".into())]);
        assert_eq!((lua.names(&names), lua.names(&names)), ("NAMES[1]".into(), "NAMES[1]".into()));
        assert_eq!(
            lua.into_source(),
            "local NAMES = {}\nNAMES[1] = { [-2] = \"Two\", [1] = \"One\" }\n"
        );
    }
}
