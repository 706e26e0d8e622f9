//! Typed Rust from definitions: for servers and tools that speak one revision and want it fast.
//!
//! Every message becomes a struct made by [`record!`](worldwire_core::record), so that it decodes,
//! encodes and reads JSON exactly as the run-time definition does; every service a module with an
//! enum over its messages. The text is always the same for the same definitions.

use core::fmt::Write as _;
use std::collections::HashSet;

use worldwire_core::codegen::{Taken, camel, quoted, snake};
use worldwire_core::{Error, Result};

use crate::schema::{FieldDef, Message, Protocol, Protocols};
use crate::types::FieldType;

/// The Rust source of a selection: services (`LOGIN`, `7`) and messages (`LOGIN.MSG_PING`,
/// `7.27`); all of them when nothing is selected.
///
/// # Errors
/// Value, for a name that no definition has, with the nearest one.
pub fn rust(protocols: &Protocols, selection: &[String]) -> Result<String> {
    let mut wanted: HashSet<(u8, u8)> = HashSet::new();
    for name in selection {
        let before = wanted.len();
        for protocol in protocols.services_named(name) {
            wanted.extend(protocol.messages().iter().map(|m| (m.service, m.order)));
        }
        wanted.extend(protocols.message_named(name).map(|m| (m.service, m.order)));
        let empty = protocols.services_named(name).next().is_some();
        if wanted.len() == before && !empty && protocols.message_named(name).is_none() {
            let error = Error::value("a service or message of the definitions", quoted(name));
            return Err(match protocols.suggest(name) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error,
            });
        }
    }
    let mut out = String::from(
        "// Made by worldwire from message definitions. Changes are lost when it is made again.\n",
    );
    let mut modules = Taken::default();
    for protocol in protocols.iter() {
        let chosen = |message: &&Message| {
            selection.is_empty() || wanted.contains(&(message.service, message.order))
        };
        let messages: Vec<&Message> = protocol.messages().iter().filter(chosen).collect();
        if !messages.is_empty() {
            let name = protocols.service_name(protocol.service);
            let name = modules.fresh(snake(&name, "service"));
            module(&name, protocol, &messages, &mut out);
        }
    }
    Ok(out)
}

/// A message with the names that Rust has for it.
struct Struct<'p> {
    message: &'p Message,
    name: String,
    borrows: bool,
}

impl Struct<'_> {
    fn with_lifetime(&self) -> String {
        let lifetime = if self.borrows { "<'d>" } else { "" };
        format!("{}{lifetime}", self.name)
    }
}

fn module(name: &str, protocol: &Protocol, messages: &[&Message], out: &mut String) {
    let mut taken = Taken::default();
    taken.fresh("Message".into());
    let structs: Vec<Struct<'_>> = messages
        .iter()
        .map(|message| Struct {
            message,
            name: taken.fresh(camel(&message.tag, "Msg")),
            borrows: message.fields().iter().any(|field| borrows(field.kind)),
        })
        .collect();
    let _ = writeln!(out);
    doc(out, "", &format!("{} ({}).", protocol.kind, protocol.service));
    if !protocol.description.trim().is_empty() {
        doc(out, "", &protocol.description);
    }
    let _ = writeln!(out, "pub mod {name} {{");
    let any = structs.iter().any(|one| one.borrows);
    let _ = writeln!(
        out,
        "    use worldwire_core::{{Error, Reader, Record, Result, Trace, Writer, record}};"
    );
    let kinds = messages.iter().flat_map(|message| message.fields()).map(|field| field.kind);
    let mut used: Vec<&str> = kinds.filter_map(imported).collect();
    used.sort_unstable();
    used.dedup();
    match used[..] {
        [] => {}
        [one] => {
            let _ = writeln!(out, "    use worldwire_ki::types::{one};");
        }
        _ => {
            let _ = writeln!(out, "    use worldwire_ki::types::{{{}}};", used.join(", "));
        }
    }
    for one in &structs {
        record(one, out);
    }
    dispatch(&structs, any, out);
    out.push_str("}\n");
}

fn record(one: &Struct<'_>, out: &mut String) {
    let Message { service, order, tag, description, access_level, .. } = one.message;
    out.push_str("\n    record! {\n");
    doc(out, "        ", &format!("{tag} ({service}/{order})."));
    if !description.trim().is_empty() {
        doc(out, "        ", description);
    }
    let _ = writeln!(out, "        pub struct {} {{", one.with_lifetime());
    let mut taken = Taken::default();
    // Words that mean something to what is made of the struct.
    for word in ["reader", "writer", "sampler"] {
        taken.fresh(word.to_owned());
    }
    for field in one.message.fields() {
        let name = taken.fresh(snake(&field.name, "field"));
        doc(out, "            ", &format!("{}.", field.kind.name()));
        let wire = quoted(&field.name);
        let _ = writeln!(out, "            {name} {wire}: {},", rust_type(field));
    }
    out.push_str("        }\n    }\n\n");
    let elided = if one.borrows { "<'_>" } else { "" };
    let _ = writeln!(out, "    impl {}{elided} {{", one.name);
    let consts = [
        ("SERVICE", "The protocol.", service),
        ("ORDER", "The message in it.", order),
        ("ACCESS_LEVEL", "What a session needs to send it.", access_level),
    ];
    for (name, about, value) in consts {
        doc(out, "        ", about);
        let _ = writeln!(out, "        pub const {name}: u8 = {value};");
    }
    out.push_str("    }\n");
}

/// The enum over the messages.
fn dispatch(structs: &[Struct<'_>], any: bool, out: &mut String) {
    let (own, elided) = if any { ("<'d>", "<'_>") } else { ("", "") };
    out.push('\n');
    doc(out, "    ", "Any message of the service.");
    out.push_str("    #[derive(Clone, Debug, PartialEq)]\n");
    let _ = writeln!(out, "    pub enum Message{own} {{");
    for one in structs {
        doc(out, "        ", &format!("{}.", one.message.tag));
        let _ = writeln!(out, "        {}({}),", one.name, one.with_lifetime());
    }
    out.push_str("    }\n");
    let _ = writeln!(out, "\n    impl{own} Message{own} {{");
    doc(out, "        ", "Reads the payload of the message with this number.");
    doc(out, "        ", "");
    doc(out, "        ", "# Errors");
    doc(out, "        ", "Malformed, for another number; else those of the fields.");
    let data = if any { "'d" } else { "'_" };
    let _ = writeln!(
        out,
        "        pub fn decode<'n, T: Trace<'n>>(order: u8, reader: &mut Reader<{data}, T>) -> Result<Self> {{"
    );
    out.push_str("            match order {\n");
    for one in structs {
        let (order, name) = (one.message.order, &one.name);
        let _ = writeln!(
            out,
            "                {order} => {name}::decode_fields(reader).map(Self::{name}),"
        );
    }
    out.push_str(
        "                other => Err(Error::malformed(\"a message of this service\", other.to_string())),\n",
    );
    out.push_str("            }\n        }\n    }\n");
    let _ = writeln!(out, "\n    impl Message{elided} {{");
    doc(out, "        ", "The number in the service.");
    out.push_str(
        "        #[must_use]\n        pub fn order(&self) -> u8 {\n            match self {\n",
    );
    for one in structs {
        let (order, name) = (one.message.order, &one.name);
        let _ = writeln!(out, "                Self::{name}(_) => {order},");
    }
    out.push_str("            }\n        }\n\n");
    doc(out, "        ", "Writes the payload.");
    doc(out, "        ", "");
    doc(out, "        ", "# Errors");
    doc(out, "        ", "Value, for a string that is too long.");
    out.push_str("        pub fn encode(&self, writer: &mut Writer) -> Result<()> {\n            match self {\n");
    for one in structs {
        let _ = writeln!(
            out,
            "                Self::{}(message) => message.encode_fields(writer),",
            one.name
        );
    }
    out.push_str("            }\n        }\n    }\n");
}

fn rust_type(field: &FieldDef) -> &'static str {
    match (field.kind, field.names()) {
        (FieldType::Uint, Some(_)) => return "worldwire_ki::LoginError",
        (FieldType::Int, Some(_)) => return "worldwire_ki::LoginErrorInt",
        _ => {}
    }
    match field.kind {
        FieldType::Byt => "i8",
        FieldType::Ubyt | FieldType::Bool => "u8",
        FieldType::Shrt => "i16",
        FieldType::Ushrt => "u16",
        FieldType::Int => "i32",
        FieldType::Uint => "u32",
        FieldType::Flt => "Flt",
        FieldType::Dbl => "Dbl",
        FieldType::Gid => "u64",
        FieldType::Str => "Str<'d>",
        FieldType::WStr => "WStr<'d>",
    }
}

fn imported(kind: FieldType) -> Option<&'static str> {
    match kind {
        FieldType::Flt => Some("Flt"),
        FieldType::Dbl => Some("Dbl"),
        FieldType::Str => Some("Str"),
        FieldType::WStr => Some("WStr"),
        _ => None,
    }
}

fn borrows(kind: FieldType) -> bool {
    matches!(kind, FieldType::Str | FieldType::WStr)
}

/// A documentation comment of one line; what a description holds cannot leave it.
fn doc(out: &mut String, indent: &str, text: &str) {
    // Brackets would be links, and what controls or turns text round has no place in a source.
    let plain = |c: char| {
        !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| plain(*c))
        .flat_map(|c| {
            let escaped = matches!(c, '[' | ']' | '<' | '>' | '`' | '\\' | '*' | '#');
            escaped.then_some('\\').into_iter().chain([c])
        })
        .collect();
    // Headings of our own stay headings.
    let text = if text == "\\# Errors" { "# Errors".to_owned() } else { text };
    let line = format!("{indent}/// {text}");
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told() {
        let error = rust(&Protocols::built_in(), &["LOGIN.MSG_USER_VALIDTE".into()]).unwrap_err();
        assert!(error.to_string().contains("LOGIN.MSG_USER_VALIDATE"), "{error}");
    }
}
