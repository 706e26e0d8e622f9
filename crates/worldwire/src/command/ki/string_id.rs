//! `worldwire ki string-id`.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use worldwire_core::json::string;
use worldwire_core::{Limits, Result as Read};
use worldwire_ki::object::{Leaf, MAGIC, ObjectCodec, ObjectOptions, Slot, Visitor};
use worldwire_ki::schema::Protocols;
use worldwire_ki::schema::classes::Classes;
use worldwire_ki::{Dictionary, djb2_31, property_hash, string_id};

use super::loader::Loader;
use super::op::inputs::{self, Input};
use crate::cli::{Common, KiStringId};
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, complain, print, printable};
use crate::{definitions, input, types};

/// Longer texts are not names.
const LONGEST: usize = 256;

pub(crate) fn run(arguments: &KiStringId, common: &Common) -> Result<(), Failure> {
    let mut out = String::new();
    if arguments.find.is_empty() {
        for text in &arguments.texts {
            let bytes = text.as_bytes();
            let (id, kind) = match &arguments.property {
                Some(name) => (property_hash(name.as_bytes(), bytes), Kind::Property),
                None if arguments.djb2 => (djb2_31(bytes), Kind::Djb2),
                None => (string_id(bytes), Kind::Id),
            };
            line(&Found { id, kind, text: text.clone() }, arguments.json, false, &mut out);
        }
        return print(&out);
    }
    let mut search =
        Search { wanted: arguments.find.iter().copied().collect(), ..Search::default() };
    let known = Dictionary::new();
    for id in &arguments.find {
        known.find(*id).iter().for_each(|word| search.word(word));
    }
    for path in &arguments.words {
        input::read_text(path)?.lines().for_each(|word| search.word(word.trim()));
    }
    let definitions = definitions::load_from(&arguments.data, common)?;
    definitions.part::<Protocols>().words().for_each(|word| search.word(word));
    let classes = match &arguments.types[..] {
        [] => None,
        lists => Some(types::load(lists, common)?),
    };
    if let Some(classes) = &classes {
        search.classes(classes);
    }
    if !arguments.inside.is_empty() {
        inputs::with(&arguments.inside, &Limits::DEFAULT, |inputs| {
            search.inside(inputs, classes.as_deref(), common)
        })?;
    }
    let mut missing = false;
    for id in &arguments.find {
        let mut found = search.found.iter().filter(|found| found.id == *id).peekable();
        if found.peek().is_none() {
            missing = true;
            let help = "no known word has this ID; add more with --words, --data, --types or --in";
            complain(&id.to_string(), help);
        }
        found.for_each(|found| line(found, arguments.json, true, &mut out));
    }
    print(&out)?;
    if missing { Err(Failure::Input) } else { Ok(()) }
}

/// The kind of number derived from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Id,
    Djb2,
    Property,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Djb2 => "djb2",
            Self::Property => "property",
        }
    }
}

/// A text with a matching number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    id: u32,
    kind: Kind,
    text: String,
}

/// The wanted numbers and the texts found for them.
#[derive(Clone, Debug, Default)]
struct Search {
    wanted: HashSet<u32>,
    found: BTreeSet<Found>,
}

impl Search {
    fn word(&mut self, text: &str) {
        if text.is_empty() || text.len() > LONGEST {
            return;
        }
        let bytes = text.as_bytes();
        for (id, kind) in [(string_id(bytes), Kind::Id), (djb2_31(bytes), Kind::Djb2)] {
            if self.wanted.contains(&id) {
                self.found.insert(Found { id, kind, text: text.to_owned() });
            }
        }
    }

    /// The names of classes, properties, types and options, and the hashes of properties.
    fn classes(&mut self, classes: &Classes) {
        for class in classes.all() {
            self.word(&class.name);
            class.bases.iter().for_each(|base| self.word(base));
            for property in class.properties() {
                self.word(&property.name);
                self.word(&property.type_name);
                let options = property.choices.iter().flat_map(|choices| choices.names().iter());
                options.for_each(|(_, name)| self.word(name));
                if self.wanted.contains(&property.hash) {
                    let text = format!("{}.{}: {}", class.name, property.name, property.type_name);
                    self.found.insert(Found { id: property.hash, kind: Kind::Property, text });
                }
            }
        }
    }

    /// The names of files, the parts of these names, and the files' contents.
    fn inside(
        &mut self,
        inputs: &[Input<'_>],
        classes: Option<&Classes>,
        common: &Common,
    ) -> Result<(), Failure> {
        let codec = classes.map(|classes| ObjectCodec::new(classes, ObjectOptions::file()));
        let bar = work::progress(inputs.len(), common);
        let empty = Self { wanted: self.wanted.clone(), found: BTreeSet::new() };
        let memory = Memory::new();
        let need = || Loader::new(&memory, Loader::OBJECT);
        let look = |loader: &mut Loader<'_>, input: &Input<'_>| {
            bar.inc(1);
            let mut search = empty.clone();
            search.name(&input.name.to_string_lossy());
            let outcome = match input.read(loader) {
                Ok(Some(bytes)) => search.content(&bytes, codec.as_ref()),
                Ok(None) => Ok(()),
                Err(fault) => Err(fault),
            };
            (search.found, outcome)
        };
        let pool = work::pool(0)?;
        let outcomes = work::share(&pool, inputs, Input::size, need, look);
        bar.finish_and_clear();
        for (input, (found, outcome)) in inputs.iter().zip(outcomes) {
            self.found.extend(found);
            // A damaged file just contributes fewer words.
            if let Err(fault) = outcome {
                common.note(&input.subject(), &fault);
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) {
        self.word(name);
        for part in name.split('/') {
            self.word(part);
            if let Some((stem, _)) = part.rsplit_once('.') {
                self.word(stem);
            }
        }
    }

    fn content(&mut self, bytes: &[u8], codec: Option<&ObjectCodec<'_>>) -> Result<(), String> {
        if bytes.starts_with(MAGIC) {
            let Some(codec) = codec else { return Ok(()) };
            let decoded = codec.decode_all(bytes, self);
            return decoded.map(drop).map_err(|error| error.to_string());
        }
        // The file is UTF-16 with a byte order mark, like `.lang` files.
        if let Some(wide) = bytes.strip_prefix(b"\xff\xfe") {
            let units = wide.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            let text: String =
                char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
            text.lines().for_each(|line| self.word(line.trim()));
        } else if let Ok(text) = str::from_utf8(bytes) {
            for line in text.lines() {
                self.word(line.trim());
                line.split(['<', '>', '"', ' ']).for_each(|word| self.word(word.trim()));
            }
        }
        Ok(())
    }
}

/// The texts in objects.
impl<'c> Visitor<'c> for Search {
    fn value(&mut self, _: Slot<'c>, leaf: Leaf<'_>) -> Read<()> {
        if let Leaf::Text(bytes) = leaf
            && let Ok(text) = str::from_utf8(bytes)
        {
            self.word(text);
        }
        Ok(())
    }
}

/// Writes a number and its text, along with the kind of number if there may be several kinds.
fn line(Found { id, kind, text }: &Found, json: bool, is_search: bool, out: &mut String) {
    let kind = Some(kind.name()).filter(|name| is_search && *name != "id");
    if json {
        let _ = write!(out, "{{\"id\":{id},");
        if let Some(kind) = kind {
            let _ = write!(out, "\"kind\":\"{kind}\",");
        }
        out.push_str("\"text\":");
        string(text, out);
        out.push_str("}\n");
    } else {
        let kind = kind.map_or_else(String::new, |kind| format!("  ({kind})"));
        let _ = writeln!(out, "{id:<10} {}{kind}", printable(text));
    }
}
