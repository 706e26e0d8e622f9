//! Exporting locale files for translators, as comma-separated values and as gettext PO.

use std::collections::HashMap;
use std::fmt::Write as _;

use worldwire_core::Result;

use super::LangFile;
use crate::file::csv;

impl LangFile<'_> {
    /// Writes the entries as comma-separated values, with columns `code`, `comment` and `text`.
    /// Codes begin with this name. With `has_heading`, the first line contains the column names.
    pub fn to_csv(&self, stem: &str, has_heading: bool) -> Result<String> {
        let heading = has_heading.then(|| ["code", "comment", "text"].map(str::to_owned).to_vec());
        let rows = self.entries.iter().map(|entry| {
            let code = format!("{stem}_{}", entry.key.to_text());
            vec![code, entry.comment.to_text(), entry.text.to_text()]
        });
        let rows: Vec<Vec<String>> = heading.into_iter().chain(rows).collect();
        csv::written(&rows)
    }

    /// Writes the entries as a PO file: the code as `msgctxt`, the comment as `#.`, the text as
    /// `msgid`, and the translation with the same key as `msgstr`. Entries without text are
    /// omitted, because an empty `msgid` is the header of a PO file. If keys repeat, the last one
    /// wins.
    #[must_use]
    pub fn to_po(&self, stem: &str, translation: &Translation) -> String {
        let mut out = String::new();
        // Each pair of context and text must be unique.
        let keys = self.entries.iter().map(|entry| entry.key.as_bytes());
        let last: HashMap<&[u8], usize> = keys.zip(0..).collect();
        for (index, entry) in self.entries.iter().enumerate() {
            let (key, text) = (entry.key.to_text(), entry.text.to_text());
            if text.is_empty() || last.get(entry.key.as_bytes()) != Some(&index) {
                continue;
            }
            let comment = entry.comment.to_text();
            // Anything that other programs read as a line end must not end the comment.
            for line in comment.split(|c: char| c.is_control()).filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "#. {line}");
            }
            let translated = translation.0.get(&key).map_or("", String::as_str);
            let code = format!("{stem}_{key}");
            for (keyword, text) in [("msgctxt", &*code), ("msgid", &text), ("msgstr", translated)] {
                let _ = write!(out, "{keyword} \"");
                push_quoted(text, &mut out);
                out.push_str("\"\n");
            }
            out.push('\n');
        }
        out
    }

    /// The header of a PO file.
    #[must_use]
    pub fn po_head() -> &'static str {
        "msgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\
         \"Content-Transfer-Encoding: 8bit\\n\"\n\n"
    }
}

/// The texts of a file in another language, by key.
#[derive(Clone, Debug, Default)]
pub struct Translation(HashMap<String, String>);

impl Translation {
    /// Collects the texts of a file.
    #[must_use]
    pub fn of(file: &LangFile<'_>) -> Self {
        let texts = file.entries.iter().map(|entry| (entry.key.to_text(), entry.text.to_text()));
        Self(texts.collect())
    }
}

fn push_quoted(text: &str, out: &mut String) {
    for part in text.chars() {
        match part {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Other control characters are escaped in octal, as in C.
            '\0'..='\u{1f}' => {
                let _ = write!(out, "\\{:03o}", u32::from(part));
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;
    use crate::types::WStr;

    fn file(entries: &[[&str; 3]]) -> LangFile<'static> {
        let entry = |[key, comment, text]: &[&str; 3]| Entry {
            key: WStr::from(*key),
            comment: WStr::from(*comment),
            text: WStr::from(*text),
        };
        let entries = entries.iter().map(entry).collect();
        LangFile { number: 1, name: WStr::from("Zone"), entries }
    }

    #[test]
    fn translators_get_codes_comments_and_texts() {
        let entries = [
            ["1", "", "The \"Commons\", \\n"],
            ["2", "a note\nin two lines", "x\u{1e}\r\ny"],
            ["3", "", ""],
        ];
        let english = file(&entries);
        let csv = english.to_csv("Zone", true).unwrap().replace('\r', "").replace('\u{1e}', "^");
        insta::assert_snapshot!(csv, @r#"
        code,comment,text
        Zone_1,,"The ""Commons"", \n"
        Zone_2,"a note
        in two lines","x^
        y"
        Zone_3,,
        "#);
        let german = Translation::of(&file(&[["1", "", "Der Platz"], ["9", "", "?"]]));
        insta::assert_snapshot!(english.to_po("Zone", &german), @r#"
        msgctxt "Zone_1"
        msgid "The \"Commons\", \\n"
        msgstr "Der Platz"

        #. a note
        #. in two lines
        msgctxt "Zone_2"
        msgid "x\036\r\ny"
        msgstr ""
        "#);
    }
}
