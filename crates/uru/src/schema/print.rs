//! Formats descriptors as text.

use core::fmt;

use super::definition::{Definition, Literal, Variable};

/// The canonical text: one line per variable, with types and names aligned. Parsing it yields the
/// same descriptor; comments are lost.
impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "STATEDESC {}", self.name)?;
        writeln!(f, "{{")?;
        writeln!(f, "    VERSION {}", self.version)?;
        let width = |text: &dyn Fn(&Variable) -> String| {
            let widths = self.variables.iter().map(|variable| text(variable).chars().count());
            // Do not let one very long name push all others to the right.
            widths.filter(|width| *width <= MAX_WIDTH).max().unwrap_or(0)
        };
        let kinds = width(&|variable| variable.kind.to_string());
        let names = width(&named);
        for variable in &self.variables {
            let kind = variable.kind.to_string();
            let options = options(variable);
            if options.is_empty() {
                writeln!(f, "    VAR {kind:kinds$} {}", named(variable))?;
            } else {
                writeln!(f, "    VAR {kind:kinds$} {:names$} {options}", named(variable))?;
            }
        }
        writeln!(f, "}}")
    }
}

/// The widest column to which others are aligned.
const MAX_WIDTH: usize = 40;

/// The name and count, such as `position[1]`.
fn named(variable: &Variable) -> String {
    match variable.count {
        Some(count) => format!("{}[{count}]", variable.name),
        None => format!("{}[]", variable.name),
    }
}

fn options(variable: &Variable) -> String {
    let default = variable.default.as_deref().map(|words| match words {
        [word] => format!("DEFAULT={word}"),
        words => {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            format!("DEFAULT=({})", words.join(","))
        }
    });
    let word = |text: &str| Literal { text: text.into(), quoted: !super::lex::is_word(text) };
    let defaults = variable.default_options();
    let defaults = defaults.map(|option| format!("DEFAULTOPTION={}", word(option)));
    let displays = variable.display_options();
    let displays = displays.map(|option| format!("DISPLAYOPTION={}", word(option)));
    default.into_iter().chain(defaults).chain(displays).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted { write!(f, "\"{}\"", self.text) } else { f.write_str(&self.text) }
    }
}
