//! `worldwire codecs`.

use std::fmt::Write as _;

use worldwire_core::{FieldInfo, MessageInfo};
use worldwire_dissect::{Codec, Families};

use crate::cli::{Codecs, Common};
use crate::output::{Failure, print};

pub(crate) fn run(arguments: &Codecs, _: &Common) -> Result<(), Failure> {
    let mut out = String::new();
    match &arguments.name {
        None => {
            for codec in Codec::all() {
                let _ = writeln!(out, "{:<18} {}", codec.name, codec.about);
            }
        }
        Some(name) => {
            let codec = Codec::named(name).map_err(|error| Failure::Run(error.to_string()))?;
            let _ = writeln!(out, "{}: {}", codec.name, codec.about);
            for messages in codec.tables() {
                messages.iter().for_each(|message| describe(message, &mut out));
            }
            let fields = Families::standard().layout(codec);
            if !fields.is_empty() {
                out.push('\n');
                write_fields(&fields, &mut out);
            }
        }
    }
    print(&out)
}

fn describe(message: &MessageInfo, out: &mut String) {
    let _ = writeln!(out, "\n{} {} ({})", message.number, message.name, message.sender);
    for line in plain(message.doc).lines() {
        let _ = writeln!(out, "    {}", line.trim());
    }
    for field in (message.fields)() {
        let _ =
            writeln!(out, "  {:<24} {:<34} {}", field.name, field.layout, plain(field.doc).trim());
    }
}

/// Fields that stand for themselves, in columns as wide as they need.
fn write_fields(fields: &[FieldInfo], out: &mut String) {
    let width = |of: fn(&FieldInfo) -> usize| fields.iter().map(of).max().unwrap_or(0);
    let (name, layout) = (width(|field| field.name.len()), width(|field| field.layout.len()));
    for field in fields {
        let _ = writeln!(out, "  {:name$}  {:layout$}  {}", field.name, field.layout, field.doc);
    }
}

/// Documentation without its links: ``[`gap`](Connection::gap)`` is "gap". Addresses stay.
fn plain(doc: &str) -> String {
    let mut out = String::with_capacity(doc.len());
    let mut rest = doc;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        let Some((text, behind)) = link.split_once(']') else {
            out.push('[');
            rest = link;
            continue;
        };
        let code = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
        let target = behind.strip_prefix('(').and_then(|behind| behind.split_once(')'));
        rest = match (code, target) {
            (_, Some((target, behind))) => {
                out.push_str(code.unwrap_or(text));
                if target.contains("://") {
                    out.push_str(&format!(" ({target})"));
                }
                behind
            }
            (Some(code), None) => {
                out.push_str(code);
                behind
            }
            (None, None) => {
                // Brackets that mean themselves.
                out.push('[');
                link
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use worldwire_dissect::Codec;

    use super::plain;

    #[test]
    fn links_become_words() {
        let doc = "See [`crypt::login`](crate::crypt::login), [`gap`](Connection::gap), [`Foo`], \
                   [here](https://example.org), `n[3]`, [0, 1] and [ alone.";
        let words = "See crypt::login, gap, Foo, here (https://example.org), `n[3]`, [0, 1] and [ \
                     alone.";
        assert_eq!(plain(doc), words);
    }

    #[test]
    fn no_codec_prints_a_link() {
        for message in Codec::all().flat_map(Codec::tables).flatten() {
            let fields = (message.fields)();
            let docs = fields.iter().map(|field| field.doc).chain([message.doc]);
            for doc in docs {
                let words = plain(doc);
                assert!(!words.contains("](") && !words.contains("[`"), "{words}");
            }
        }
    }
}
