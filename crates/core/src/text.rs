//! Trees as text for people.

use std::fmt::Write as _;

pub use crate::error::{byte_count, more_bytes};
use crate::value::{Content, push_hex};
use crate::{NodeRef, Tree, Value};

/// Options for showing a tree.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    /// Begin every line with the byte range, with bits where a value does not begin or end at a
    /// byte boundary, and with the layer if there are several.
    pub ranges: bool,
    /// Use colours, for terminals.
    pub colour: bool,
    /// Show at most this many bytes of a blob or characters of text; 0 shows all.
    pub longest: usize,
    /// Spaces before every line.
    pub indent: usize,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { ranges: false, colour: false, longest: 48, indent: 0 }
    }
}

/// Appends a whole tree, one line for each value. The error of a failed decode is the last line.
///
/// A record in a list takes one line if all its fields are plain values.
pub fn write_tree(tree: &Tree<'_>, style: TextStyle, out: &mut String) {
    write_nodes_noting(tree, tree.roots(), style, &|_, _| None, out);
    if let Some(error) = tree.error() {
        let (red, reset) = if style.colour { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(out, "{:1$}{red}! {error}{reset}", "", style.indent);
    }
}

/// Appends these nodes like [`write_tree`], without an error. A comment follows each non-negative
/// integer for which `note`, given the name of its field or list, returns one:
/// `playerId: 10190 ("Yeesha")`.
pub fn write_nodes_noting<'t, 'n>(
    tree: &'t Tree<'n>,
    nodes: impl Iterator<Item = NodeRef<'t, 'n>>,
    style: TextStyle,
    note: &dyn Fn(&str, u64) -> Option<String>,
    out: &mut String,
) {
    let mut show = Show { tree, style, note, out };
    for node in nodes {
        show.node(node, style.indent, None, node.name());
    }
}

/// Appends the value of one node on one line, without its name.
pub fn write_value(node: NodeRef<'_, '_>, longest: usize, out: &mut String) {
    let _ = match node.value() {
        Value::Record => {
            for (index, child) in node.children().enumerate() {
                if index > 0 {
                    out.push_str("  ");
                }
                out.push_str(child.name());
                out.push(' ');
                write_value(child, longest, out);
            }
            Ok(())
        }
        Value::List => {
            let count = node.children().count();
            write!(out, "{count} item{}", if count == 1 { "" } else { "s" })
        }
        Value::Null => out.write_str("nothing"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Hex(value) => write!(out, "0x{value:04x}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::F32(value) => write!(out, "{value:?}"),
        Value::F64(value) => write!(out, "{value:?}"),
        Value::Enum(value, names) => match names.name(value) {
            Some(name) if names.are_words() => out.write_str(name),
            Some(name) => write!(out, "{name} ({value})"),
            None => write!(out, "{value}"),
        },
        Value::Flags(bits, names) => {
            let (known, rest) = names.flags(bits);
            let _ = write!(out, "0x{bits:x}");
            if !known.is_empty() {
                let _ = write!(out, " ({}", known.join(" | "));
                if rest != 0 {
                    let _ = write!(out, " | 0x{rest:x}");
                }
                out.push(')');
            }
            Ok(())
        }
        Value::Span(span) => {
            match span.form.read(node.span(span)) {
                Content::Text(text) => write_text(&text, span.form, longest, out),
                Content::Bytes(bytes) => write_bytes(&bytes, longest, out),
            }
            Ok(())
        }
    };
}

struct Show<'s, 't, 'n> {
    tree: &'t Tree<'n>,
    style: TextStyle,
    note: &'s dyn Fn(&str, u64) -> Option<String>,
    out: &'s mut String,
}

impl Show<'_, '_, '_> {
    /// Writes a node with the name of its field: its own name, or the name of the list that
    /// contains it.
    fn node(&mut self, node: NodeRef<'_, '_>, indent: usize, index: Option<usize>, field: &str) {
        if self.style.ranges {
            self.range(node);
        }
        let (cyan, dim, reset) =
            if self.style.colour { ("\x1b[36m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
        let _ = write!(self.out, "{:indent$}", "");
        let _ = match index {
            Some(index) => write!(self.out, "{dim}[{index}]{reset}"),
            None => write!(self.out, "{cyan}{}{reset}:", node.name()),
        };
        let one_line = match node.value() {
            Value::Record => index.is_some() && fits_a_line(node),
            Value::List => node.children().next().is_none(),
            _ => true,
        };
        if one_line {
            self.out.push(' ');
            write_value(node, self.style.longest, self.out);
            let number = match node.value() {
                Value::Unsigned(number) => Some(number),
                Value::Signed(number) => u64::try_from(number).ok(),
                _ => None,
            };
            if let Some(number) = number
                && let Some(note) = (self.note)(field, number)
            {
                let _ = write!(self.out, " ({note})");
            }
            self.out.push('\n');
            return;
        }
        if matches!(node.value(), Value::List) {
            self.out.push(' ');
            write_value(node, self.style.longest, self.out);
        }
        self.out.push('\n');
        let list = matches!(node.value(), Value::List);
        for (index, child) in node.children().enumerate() {
            let field = if list { node.name() } else { child.name() };
            self.node(child, indent + 2, list.then_some(index), field);
        }
    }

    /// `0x0012..0x0016`, and the layer if there are several.
    fn range(&mut self, node: NodeRef<'_, '_>) {
        let (start, end) = node.places();
        let layer = self.tree.layers().get(usize::from(node.layer()));
        let base = layer.map_or(0, |layer| layer.base());
        let from = self.out.len();
        let _ = write!(self.out, "{:#06x}", base + u64::from(start.byte));
        if start.bit != 0 {
            let _ = write!(self.out, ".{}", start.bit);
        }
        let _ = write!(self.out, "..{:#06x}", base + u64::from(end.byte));
        if end.bit != 0 {
            let _ = write!(self.out, ".{}", end.bit);
        }
        if self.tree.layers().len() > 1
            && let Some(layer) = layer
        {
            let _ = write!(self.out, " {}", layer.name());
        }
        let width = self.out.len() - from;
        let _ = write!(self.out, "{:1$}", "", 2 + 16_usize.saturating_sub(width));
    }
}

/// Whether a record is short and flat enough for one line.
fn fits_a_line(node: NodeRef<'_, '_>) -> bool {
    const LONGEST: usize = 100;
    let mut width = 0;
    let mut value = String::new();
    for child in node.children() {
        if child.value().is_container() {
            return false;
        }
        value.clear();
        write_value(child, LONGEST, &mut value);
        width += child.name().len() + value.len() + 3;
        if width > LONGEST {
            return false;
        }
    }
    true
}

fn write_text(text: &str, form: crate::Form, longest: usize, out: &mut String) {
    let plain = matches!(form, crate::Form::Guid | crate::Form::Ipv4);
    if plain {
        out.push_str(text);
        return;
    }
    let longest = if longest == 0 { usize::MAX } else { longest.saturating_mul(4) };
    let cut = text.char_indices().nth(longest).map_or(text, |(at, _)| &text[..at]);
    let is_raw = reads_better_raw(cut);
    out.push_str(if is_raw { "r\"" } else { "\"" });
    for c in cut.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' if !is_raw => out.push_str("\\\\"),
            _ if is_hostile(c) => {
                let _ = write!(out, "{}", c.escape_default());
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    if cut.len() < text.len() {
        let _ = write!(out, "... ({} characters)", text.chars().count());
    }
}

/// Whether a text is shown as `r"C:\dat"`, where backslashes are literal: it contains a backslash,
/// and nothing that must be escaped. Otherwise a backslash is shown as `\\`, because it could seem
/// to begin an escape.
#[must_use]
pub fn reads_better_raw(text: &str) -> bool {
    text.contains('\\') && !text.chars().any(|c| c == '"' || is_hostile(c))
}

/// The character that an escape sequence in quoted text stands for, and the length of the sequence,
/// both without the backslash. `rest` is what follows the backslash. Accepts the escapes of text,
/// `\"`, `\\`, `\n`, `\r`, `\t`, `\0` and `\u{...}`, and those that only JSON has: `\/`, `\b`, `\f`
/// and `\u001b`, also as surrogate pairs. So a value can be copied from either kind of output.
#[must_use]
pub fn parse_escape(rest: &str) -> Option<(char, usize)> {
    let c = match rest.chars().next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'b' => '\u{8}',
        'f' => '\u{c}',
        c @ ('"' | '\\' | '/') => c,
        'u' => return code_point(rest.get(1..)?).map(|(c, length)| (c, 1 + length)),
        _ => return None,
    };
    Some((c, 1))
}

/// The character that follows `\u`, and the length of its number.
fn code_point(rest: &str) -> Option<(char, usize)> {
    let number = |digits: &str| {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    if let Some(rest) = rest.strip_prefix('{') {
        let end = rest.bytes().take(7).position(|byte| byte == b'}')?;
        return Some((char::from_u32(number(rest.get(..end)?)?)?, end + 2));
    }
    let unit = |text: &str| u16::try_from(number(text.get(..4)?)?).ok();
    let first = unit(rest)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first.into())?, 4));
    }
    let second = unit(rest.get(4..)?.strip_prefix("\\u")?)?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, "d83d\\ude00".len()))
}

/// Whether a character could disguise text: it controls a terminal, is invisible, changes the
/// direction of text, or breaks lines. Text from messages is shown with these escaped, and names
/// must not have them, because two names could look alike.
#[must_use]
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn write_bytes(bytes: &[u8], longest: usize, out: &mut String) {
    let longest = if longest == 0 { usize::MAX } else { longest };
    let cut = bytes.get(..longest).unwrap_or(bytes);
    if bytes.is_empty() {
        out.push_str("no bytes");
        return;
    }
    push_hex(out, cut);
    if cut.len() < bytes.len() {
        out.push_str("...");
    }
    let _ = write!(out, " ({})", byte_count(bytes.len() as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Form, Reader};

    #[test]
    fn a_tree_reads_well() {
        let data = [7, 0, 0, 0, 2, 1, 2, 3, 4, b'h', b'i', 0xde, 0xad];
        let mut r = Reader::traced("message", &data, Tree::new());
        r.u32("transId").unwrap();
        r.list("refs", |r| {
            r.take(1)?;
            for index in 0..2 {
                r.item(index, |r| {
                    r.record("", |r| {
                        r.u8("parentId")?;
                        r.u8("childId")
                    })
                })?;
            }
            Ok(())
        })
        .unwrap();
        r.span("name", 2, Form::Utf8).unwrap();
        r.bytes("digest", 2).unwrap();
        let tree = r.finish_with(Error::incomplete(4, 0).inside("result").at(13));
        let mut text = String::new();
        write_tree(&tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut text);
        insta::assert_snapshot!(text, @r#"
        0x0000..0x0004    transId: 7
        0x0004..0x0009    refs: 2 items
        0x0005..0x0007      [0] parentId 1  childId 2
        0x0007..0x0009      [1] parentId 3  childId 4
        0x0009..0x000b    name: "hi"
        0x000b..0x000d    digest: dead (2 bytes)
        ! result at byte 13: wanted 4 bytes, found 0
        "#);
    }

    #[test]
    fn hostile_text_cannot_command_a_terminal() {
        let mut out = String::new();
        write_text("a\x1b[2J\u{202e}\"", Form::Utf8, 48, &mut out);
        assert_eq!(out, "\"a\\u{1b}[2J\\u{202e}\\\"\"");
    }

    /// The text between quotes with its escapes replaced.
    fn unescaped(quoted: &str) -> Option<String> {
        if let Some(raw) = quoted.strip_prefix("r\"") {
            return raw.strip_suffix('"').map(str::to_owned);
        }
        let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
        let mut text = String::new();
        while let Some(c) = rest.chars().next() {
            let (c, length) = match c {
                '\\' => parse_escape(&rest[1..]).map(|(c, length)| (c, length + 1))?,
                c => (c, c.len_utf8()),
            };
            text.push(c);
            rest = &rest[length..];
        }
        Some(text)
    }

    #[test]
    fn text_can_be_read_from_both_kinds_of_output() {
        for text in ["C:\\new\\table.dat", "\"\\\"", "\\u{41}", "\u{1b}\u{7f}\0\n", "Dün \u{202e}"]
        {
            let mut out = String::new();
            write_text(text, Form::Utf8, 0, &mut out);
            assert_eq!(unescaped(&out).as_deref(), Some(text), "{out}");
            out.clear();
            crate::json::string(text, &mut out);
            assert_eq!(unescaped(&out).as_deref(), Some(text), "{out}");
        }
        let of_json = r#""\/\b\f\u00fc\ud83d\ude00\u{1f600}""#;
        assert_eq!(unescaped(of_json).as_deref(), Some("/\u{8}\u{c}ü\u{1f600}\u{1f600}"));
        for wrong in
            ["", "d", "'", "u", "u+123", "u12", "u{", "u{}", "u{110000}", "u{d800}", "ud83d"]
        {
            assert_eq!(parse_escape(wrong), None, "{wrong}");
        }
        for wrong in ["ude00", "ud83dx", "ud83d\\u0041", "u{0000041}"] {
            assert_eq!(parse_escape(wrong), None, "{wrong}");
        }
    }
}
