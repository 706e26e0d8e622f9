//! `worldwire codecs`.

mod json;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use worldwire_core::{FieldInfo, MessageInfo, nearest};
use worldwire_dissect::{ClassRow, Codec, Families};

use crate::cli::{Codecs, Common};
use crate::output::{Failure, complain, print};

pub(crate) fn run(arguments: &Codecs, _: &Common) -> Result<(), Failure> {
    if arguments.json {
        return json::run(arguments);
    }
    let mut out = String::new();
    match &arguments.name {
        None => list_codecs(Codec::all(), &mut out),
        Some(name) if let Ok(family) = Families::standard().named(name) => {
            if arguments.entry.is_some() {
                let problem =
                    format!("{name} is a family, not a codec; use one of its codecs, such as ");
                let first = family.codecs().first().map_or("", |codec| codec.name);
                return Err(Failure::Run(problem + first));
            }
            list_codecs(family.codecs().iter(), &mut out);
        }
        Some(name) => {
            let codec = Codec::named(name).map_err(|error| Failure::Run(error.to_string()))?;
            let _ = writeln!(out, "{}: {}", codec.name, codec.about);
            match &arguments.entry {
                None => {
                    let mut fields = Vec::new();
                    for message in codec.tables().into_iter().flatten() {
                        describe(message, &mut out);
                        fields.extend((message.fields)());
                    }
                    list(&codec.classes(), &mut out);
                    lay_out(&codec.layout(), &mut out);
                    describe_records(codec, &mut fields, &mut out);
                    name_values(codec, &fields, &mut out);
                }
                Some(entry) => one(codec, entry, &mut out).map_err(|problem| {
                    complain(codec.name, &problem);
                    Failure::Input
                })?,
            }
        }
    }
    print(&out)
}

fn list_codecs<'c>(codecs: impl Iterator<Item = &'c Codec>, out: &mut String) {
    for codec in codecs {
        let _ = writeln!(out, "{:<18} {}", codec.name, codec.about);
    }
}

/// Describes the messages or classes with this name; a class can also be given by number.
///
/// # Errors
/// A description of what is wrong with the name.
fn one(codec: &Codec, entry: &str, out: &mut String) -> Result<(), String> {
    let messages: Vec<&MessageInfo> = codec.tables().into_iter().flatten().collect();
    let classes = codec.classes();
    let number = match entry.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => entry.parse().ok(),
    };
    let before = out.len();
    let mut fields = Vec::new();
    for message in &messages {
        if message.name.eq_ignore_ascii_case(entry) || number == Some(message.number) {
            describe(message, out);
            fields.extend((message.fields)());
        }
    }
    for class in &classes {
        if class.name.eq_ignore_ascii_case(entry) || number == Some(class.class) {
            describe_class(class, out);
            fields.extend(class.fields.map(|fields| fields()).unwrap_or_default());
        }
    }
    if out.len() > before {
        describe_records(codec, &mut fields, out);
        name_values(codec, &fields, out);
        return Ok(());
    }
    let names = messages.iter().map(|message| message.name);
    let hint = match nearest(entry, names.chain(classes.iter().map(|class| class.name))) {
        Some(near) => format!("; did you mean {near}?"),
        None if codec.name == "ki.dml" => {
            "; `worldwire ki dml show SERVICE.MESSAGE` describes messages".to_owned()
        }
        None => String::new(),
    };
    Err(format!("no message or class is named {entry:?}{hint}"))
}

fn list(classes: &[ClassRow], out: &mut String) {
    if classes.is_empty() {
        return;
    }
    out.push('\n');
    for row in classes {
        let line = format!(
            "0x{:04x}  {:<28} {:<24} {:<8} {}",
            row.class, row.name, row.parent, row.sender, row.status
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn describe_class(class: &ClassRow, out: &mut String) {
    let _ = write!(out, "\n0x{:04x} {} in {}", class.class, class.name, class.parent);
    let said = [class.sender, class.status];
    let said: Vec<&str> = said.into_iter().filter(|word| !word.is_empty()).collect();
    let _ = match said.is_empty() {
        true => writeln!(out),
        false => writeln!(out, " ({})", said.join(", ")),
    };
    describe_rest(class.doc, class.fields.map(|fields| fields()).unwrap_or_default(), out);
}

fn describe(message: &MessageInfo, out: &mut String) {
    let _ = writeln!(out, "\n{} {} ({})", message.number, message.name, message.sender);
    describe_rest(message.doc, (message.fields)(), out);
}

fn describe_rest(doc: &str, fields: Vec<FieldInfo>, out: &mut String) {
    for line in plain(doc).lines() {
        let _ = writeln!(out, "    {}", line.trim());
    }
    for field in fields {
        describe_field(&field, out);
    }
}

fn describe_field(field: &FieldInfo, out: &mut String) {
    let _ = writeln!(out, "  {:<24} {:<34} {}", field.name, field.layout, plain(field.doc).trim());
}

/// Describes the structures in the fields, and those inside them, each once. Their fields are added
/// to the list.
fn describe_records(codec: &Codec, fields: &mut Vec<FieldInfo>, out: &mut String) {
    let (mut described, mut at) = (BTreeSet::new(), 0);
    while let Some(field) = fields.get(at) {
        for (name, inner) in codec.records(&field.layout) {
            if described.insert(name) {
                let _ = writeln!(out, "\n{name}");
                inner.iter().for_each(|field| describe_field(field, out));
                fields.extend(inner);
            }
        }
        at += 1;
    }
}

/// Fields without further structure, in columns of the necessary width.
fn lay_out(fields: &[FieldInfo], out: &mut String) {
    if !fields.is_empty() {
        out.push('\n');
    }
    let width = |of: fn(&FieldInfo) -> usize| fields.iter().map(of).max().unwrap_or(0);
    let (name, layout) = (width(|field| field.name.len()), width(|field| field.layout.len()));
    for field in fields {
        let _ = writeln!(out, "  {:name$}  {:layout$}  {}", field.name, field.layout, field.doc);
    }
}

/// Lists the named values of enumerations and flags, once per type, with flag bits in hexadecimal.
fn name_values(codec: &Codec, fields: &[FieldInfo], out: &mut String) {
    let types = fields.iter().flat_map(|field| codec.named_types(&field.layout));
    for (name, names) in types.collect::<BTreeMap<_, _>>() {
        let _ = writeln!(out, "\n{name}");
        let are_flags = names.iter().all(|(value, _)| value.cast_unsigned().is_power_of_two());
        for (value, item) in names.iter() {
            let _ = match (are_flags, codec.value_text(name, value)) {
                (true, _) => writeln!(out, "  {value:#10x}  {item}"),
                (false, None) => writeln!(out, "  {value:>10}  {item}"),
                (false, Some(text)) => writeln!(out, "  {value:>10}  {item:<24}  {text}"),
            };
        }
    }
}

/// Documentation without its links: ``[`gap`](Connection::gap)`` becomes "gap". URLs are kept.
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
                // These brackets are literal.
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
        for class in Codec::all().flat_map(Codec::classes) {
            let fields = class.fields.map(|fields| fields()).unwrap_or_default();
            for doc in fields.iter().map(|field| field.doc).chain([class.doc]) {
                let words = plain(doc);
                assert!(!words.contains("](") && !words.contains("[`"), "{words}");
            }
        }
    }

    #[test]
    fn the_names_of_values_follow_the_fields() {
        let described = |codec: &str, entry: &str| {
            let mut out = String::new();
            super::one(Codec::named(codec).unwrap(), entry, &mut out).unwrap();
            out
        };
        let chat = described("uru.plasma-message", "pfKIMsg");
        for wanted in
            ["\nKiCommand\n           0  HACKChatMsg\n", "\nChatFlags\n         0x1  Private\n"]
        {
            assert!(chat.contains(wanted), "{chat}");
        }
        assert!(
            described("uru.net-message", "plNetMsgVoice")
                .contains("\nNetFlags\n         0x1  HasTimeSent\n")
        );
        let reply = described("uru.auth", "AcctLoginReply");
        assert!(reply.contains("\nNetError\n") && reply.contains("  Success\n"), "{reply}");
    }

    #[test]
    fn classes_are_listed_and_described() {
        let codec = Codec::named("uru.net-message").unwrap();
        let mut out = String::new();
        super::list(&codec.classes(), &mut out);
        for wanted in [
            "0x0218  plNetMsgPagingRoom           plNetMsgRoomsList        client\n",
            "0x025e  plNetMessage                 plCreatable                       abstract\n",
            "0x029d  plNetMsgObjectUpdateFilter   plNetMessage             client\n",
            "0x0279  plNetMsgVoice                plNetMessage             both\n",
        ] {
            assert!(out.contains(wanted), "{out}");
        }
        for entry in ["plNetMsgVoice", "PLNETMSGVOICE", "0x0279", "633"] {
            let mut out = String::new();
            super::one(codec, entry, &mut out).unwrap();
            assert!(out.contains("0x0279 plNetMsgVoice in plNetMessage (both)"), "{out}");
            assert!(out.contains("voiceFlags"), "{out}");
        }
        let mut out = String::new();
        let error = super::one(codec, "plNetMsgVoise", &mut out).unwrap_err();
        assert!(format!("{error:?}").contains("did you mean plNetMsgVoice?"), "{error:?}");
        let classes = Codec::named("uru.plasma-message").unwrap().classes();
        assert_eq!(classes.iter().filter(|class| class.fields.is_some()).count(), 44);
    }
}
