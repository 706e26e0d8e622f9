//! `worldwire ki find`.

mod check;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use worldwire_core::json::{Style, string, write_node};
use worldwire_core::{Diagnostic, Limits, Reader, Severity, Tree};
use worldwire_dissect::Time;
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_ki::object::{COMPACT, HUMAN_READABLE, Header, MAGIC, STATEFUL};
use worldwire_ki::object::{ObjectCodec, ObjectOptions, xml};

use super::op::inputs::{self, Input};
use crate::cli::{Common, KiFind};
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, complain, counted, print, printable, say, spent};
use crate::types;

/// The name under which filters look for fields.
const FIELDS: &str = "fields";
/// The kind of name that a class has in a filter.
const KIND: &str = "class";
/// The field with the class of an object.
const TAG: &str = "$class";
/// The number of bytes of a file that are examined to tell whether it is object XML.
const LOOK: usize = 4096;
/// The maximum number of characters of a value in text output.
const MAX_SHOWN: usize = 200;

pub(super) fn run(arguments: &KiFind, common: &Common) -> Result<(), Failure> {
    let start = Instant::now();
    let classes = types::load(&arguments.types, common)?;
    let filter = with_classes(&arguments.filter);
    let filter = Filter::parse(&filter).map_err(|error| Failure::Run(error.to_string()))?;
    let properties = classes.all().iter().flat_map(|class| class.properties());
    let properties: HashSet<&str> = properties.map(|property| &*property.name).collect();
    let filter = filter.join_names(|name| properties.contains(name)).derive_classes(|class| {
        let tags: Vec<i64> = classes.derived(class).map(|class| class.hash.into()).collect();
        (!tags.is_empty()).then_some(tags)
    });
    check::check(&filter, &classes)?;
    let paths = filter.field_names();
    let search = Search {
        strict: ObjectCodec::new(&classes, ObjectOptions::file()),
        lenient: ObjectCodec::new(
            &classes,
            ObjectOptions { lenient: true, ..ObjectOptions::file() },
        ),
        shown: paths
            .iter()
            .filter_map(|path| path.first().copied())
            // The class is shown anyway.
            .filter(|name| *name != TAG)
            .collect(),
        filter: &filter,
        is_json: arguments.json || arguments.json_safe,
        style: Style { safe: arguments.json_safe },
    };
    inputs::with(&arguments.inputs, &Limits::DEFAULT, |inputs| {
        let bar = work::progress(inputs.len(), common);
        let look = |loader: &mut Loader<'_>, input: &Input<'_>| {
            bar.inc(1);
            search.look(input, loader)
        };
        let memory = Memory::new();
        let need = || Loader::new(&memory, Loader::OBJECT);
        let pool = work::pool(arguments.threads)?;
        let outcomes = work::share(&pool, inputs, Input::size, need, look);
        bar.finish_and_clear();
        let (mut objects, mut found, mut failed) = (0_u64, 0_u64, 0_u64);
        let mut out = String::new();
        for (input, outcome) in inputs.iter().zip(outcomes) {
            match outcome {
                Ok(seen) => {
                    objects += seen.objects;
                    found += seen.found;
                    out.push_str(&seen.out);
                }
                Err(fault) => {
                    failed += 1;
                    complain(&input.subject(), &fault);
                }
            }
        }
        print(&out)?;
        if !common.quiet {
            let (objects, time) = (counted(objects, "object"), spent(start));
            let failed = match failed {
                0 => String::new(),
                count => format!(", {count} failed"),
            };
            say(format_args!("{found} of {objects}{failed}; {time}"));
        }
        if failed == 0 { Ok(()) } else { Err(Failure::Input) }
    })
}

/// The data that all threads share.
struct Search<'s> {
    strict: ObjectCodec<'s>,
    /// For objects with unknown parts.
    lenient: ObjectCodec<'s>,
    filter: &'s Filter,
    /// The properties to show: those that the filter mentions.
    shown: BTreeSet<&'s str>,
    is_json: bool,
    style: Style,
}

#[derive(Default)]
struct Seen {
    objects: u64,
    found: u64,
    out: String,
}

impl Search<'_> {
    fn look(&self, input: &Input<'_>, loader: &mut Loader<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for object in objects(input, loader, &self.strict)? {
            self.object(input, &object, &mut seen)?;
        }
        Ok(seen)
    }

    fn object(&self, input: &Input<'_>, bytes: &[u8], seen: &mut Seen) -> Result<(), String> {
        let read = |codec: &ObjectCodec<'_>| {
            let limits = Limits::DEFAULT;
            let mut reader = Reader::traced_within("input", bytes, Tree::new(), &limits);
            let outcome = codec.decode_as(FIELDS, &mut reader, &mut ());
            let outcome = outcome.and_then(|_| reader.end());
            let (tree, outcome) = reader.conclude(outcome);
            outcome.map(|()| self.matched(input, bytes.len() as u64, &tree))
        };
        // Lenient reading takes longer, and few objects need it.
        let line = read(&self.strict).or_else(|_| read(&self.lenient));
        seen.objects += 1;
        if let Some(line) = line.map_err(|error| error.to_string())? {
            seen.found += 1;
            seen.out.push_str(&line);
        }
        Ok(())
    }

    /// The output line of an object, if it matches the filter.
    fn matched(&self, input: &Input<'_>, length: u64, tree: &Tree<'_>) -> Option<String> {
        let fields = tree.roots().find(|node| node.name() == FIELDS)?;
        let class = fields.child(TAG).and_then(|tag| match tag.value() {
            worldwire_core::Value::Enum(number, names) => names.name(number),
            _ => None,
        });
        let class = class.unwrap_or_default();
        let name = class.replacen(' ', ".", 1);
        // The object is not from a packet.
        let subject = Subject {
            name: &name,
            family: "ki",
            from: "",
            stream: 0,
            packet: 0,
            time: 0.0,
            date: Time::default(),
            ends: None,
            length,
            tree,
            item: None,
        };
        if !self.filter.matches(&subject) {
            return None;
        }
        let shown = self.shown.iter().filter_map(|name| fields.child(name));
        let mut out = String::new();
        if self.is_json {
            out.push_str("{\"file\":");
            string(&input.subject(), &mut out);
            out.push_str(",\"class\":");
            string(class, &mut out);
            out.push_str(",\"fields\":{");
            for (index, node) in shown.enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(node.name(), &mut out);
                out.push(':');
                write_node(node, self.style, &mut out);
            }
            out.push_str("}}\n");
            return Some(out);
        }
        out.push_str(&printable(&format!("{}  {class}", input.subject())));
        for node in shown {
            let mut value = String::new();
            write_node(node, self.style, &mut value);
            if let Some((end, _)) = value.char_indices().nth(MAX_SHOWN) {
                value.truncate(end);
                value.push_str("...");
            }
            out.push_str(&printable(&format!("  {}: {value}", node.name())));
        }
        out.push('\n');
        Some(out)
    }
}

/// The objects in a file. The file can be an object itself, contain some in XML, or contain none.
pub(super) fn objects<'b>(
    input: &'b Input<'_>,
    loader: &'b mut Loader<'_>,
    codec: &ObjectCodec<'_>,
) -> Result<Vec<Cow<'b, [u8]>>, String> {
    let is_wanted = |head: &[u8]| head.starts_with(MAGIC) || is_xml(head);
    let Some(bytes) = input.read_if(loader, is_wanted)? else { return Ok(Vec::new()) };
    if bytes.starts_with(MAGIC) {
        return Ok(vec![bytes]);
    }
    // `ki op encode` reports other oddities.
    let loaded = xml::load(codec.classes(), &input.subject(), &bytes);
    let Some(objects) = loaded.objects else {
        let errors = |said: &&Diagnostic| said.severity() == Severity::Error;
        return Err(match loaded.diagnostics.iter().find(errors) {
            Some(error) => format!("line {}: {}", error.line(), error.message()),
            None => "not XML objects".to_owned(),
        });
    };
    let flags = STATEFUL | COMPACT | HUMAN_READABLE;
    let header = Header { flags, is_compressed: false, is_packed: false };
    let encoded = |object| codec.encode(&object, header).map(Cow::Owned);
    objects.into_iter().map(encoded).collect::<Result<_, _>>().map_err(|it| it.to_string())
}

/// Whether a text file may contain objects.
pub(super) fn is_xml(bytes: &[u8]) -> bool {
    const ROOT: &[u8] = b"<Objects";
    let head = bytes.get(..LOOK).unwrap_or(bytes);
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"<") && head.windows(ROOT.len()).any(|part| part == ROOT)
}

/// Rewrites a filter. Each `class Name` becomes the single word `class.Name`, which filters treat
/// as a message name, and each `class is Name` becomes a test of the object's own class.
fn with_classes(filter: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '*' | '$' | '.' | ':');
    let mut out = String::with_capacity(filter.len());
    let mut rest = filter;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let is_raw = out.ends_with('r');
            let (text, behind) = rest.split_at(quoted(rest, is_raw));
            out.push_str(text);
            rest = behind;
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            rest = behind;
            let next = behind.trim_start();
            let name = next.split(|c| !is_word(c)).next().unwrap_or_default();
            out.push_str(if word == KIND && name == "is" { TAG } else { word });
            let is_name = !name.is_empty() && !Filter::is_keyword(name);
            if word == KIND && is_name && next.len() < behind.len() {
                out.push('.');
                rest = next;
            }
        } else {
            out.push(first);
            rest = rest.split_at(first.len_utf8()).1;
        }
    }
    out
}

/// The length of a quoted text.
fn quoted(text: &str, is_raw: bool) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' if !is_raw && !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::with_classes;

    #[test]
    fn a_class_is_one_word() {
        let cases = [
            ("class A and m_x > 1", "class.A and m_x > 1"),
            ("not (class  *Template)", "not (class.*Template)"),
            ("class == \"class A\"", "class == \"class A\""),
            ("class has x or class in {1}", "class has x or class in {1}"),
            ("m_x == \"\\\"class A\" and class B", "m_x == \"\\\"class A\" and class.B"),
            ("m_x ~ r\"class \\\" and class C", "m_x ~ r\"class \\\" and class.C"),
            ("subclass A", "subclass A"),
            ("class is A and not class B", "$class is A and not class.B"),
            ("m_x == \"class A", "m_x == \"class A"),
        ];
        for (filter, wanted) in cases {
            assert_eq!(with_classes(filter), wanted);
        }
    }
}
