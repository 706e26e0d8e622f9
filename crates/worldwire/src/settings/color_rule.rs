//! Rules that colour messages.

use std::fmt;
use std::str::FromStr;

/// A rule that gives a colour to messages that match a filter.
#[derive(Clone, Debug)]
pub(crate) struct ColorRule {
    /// A filter whose syntax is valid.
    pub(crate) filter: String,
    pub(crate) color: Paint,
}

/// A terminal colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    is_bold: bool,
    /// The number of the colour in an escape sequence.
    code: u8,
}

const COLORS: [(&str, u8); 7] = [
    ("red", 31),
    ("green", 32),
    ("yellow", 33),
    ("blue", 34),
    ("magenta", 35),
    ("cyan", 36),
    ("gray", 90),
];

impl Paint {
    /// Appends lines in this colour.
    pub(crate) fn write(self, lines: &str, out: &mut String) {
        for line in lines.split_inclusive('\n') {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            let bold = if self.is_bold { "1;" } else { "" };
            out.push_str(&format!("\x1b[{bold}{}m{text}\x1b[0m{end}", self.code));
        }
    }
}

impl fmt::Display for Paint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bold = if self.is_bold { "bold " } else { "" };
        let known = COLORS.iter().find(|(_, code)| *code == self.code);
        write!(f, "{bold}{}", known.map_or("", |(name, _)| name))
    }
}

/// Text that is not a colour.
#[derive(Debug)]
pub(crate) struct NotAColor;

impl fmt::Display for NotAColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = COLORS.map(|(name, _)| name).join(", ");
        write!(f, "must be one of {names}, optionally preceded by \"bold\"")
    }
}

impl FromStr for Paint {
    type Err = NotAColor;

    fn from_str(text: &str) -> Result<Self, NotAColor> {
        let (is_bold, name) = text.strip_prefix("bold ").map_or((false, text), |it| (true, it));
        let found = COLORS.iter().find(|(known, _)| *known == name);
        found.map(|(_, code)| Self { is_bold, code: *code }).ok_or(NotAColor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_coloured() {
        let paint: Paint = "bold red".parse().expect("it is valid");
        let mut out = String::new();
        paint.write("a\nb\n", &mut out);
        assert_eq!(out, "\x1b[1;31ma\x1b[0m\n\x1b[1;31mb\x1b[0m\n");
        assert_eq!(paint.to_string(), "bold red");
        assert!("bold".parse::<Paint>().is_err());
        assert!("\u{1b}[31m".parse::<Paint>().is_err());
    }
}
