//! Compares two captures, or two messages from captures.
//!
//! Captures are read twice. The first reading keeps only a hash of each message, for the alignment.
//! The second keeps the contents of the messages that differ.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;
use worldwire_core::json::{Style as JsonStyle, parse, string, write_children, write_node};
use worldwire_core::value::push_hex;
use worldwire_core::{Side, Value};
use worldwire_dissect::{Definitions, Item, NoteKind, Scratch};

use super::align::{Pair, align, pair_up, refine};
use super::changes::{Changes, changes_between, line, numbers};
use super::fields::{FieldChanges, remove};
use super::ignored::Ignored;
use super::style::Style;
use crate::cli::{Capture, Common, DiffArguments};
use crate::command::capture::{self, Extras};
use crate::command::dissect::read_filter;
use crate::command::selection::{Selection, Shown};
use crate::definitions;
use crate::output::{Failure, complain, counted, print, printable, say, shown};

/// The maximum number of bytes kept for one capture's differing messages. Further messages are
/// listed without their fields.
const MAX_KEPT: usize = 128 << 20;

/// Compares two captures. Returns whether they are the same.
pub(super) fn compare(arguments: &DiffArguments, common: &Common) -> Result<bool, Failure> {
    let readers = [&arguments.before, &arguments.after].map(|path| Reader::new(path, arguments));
    let pass = Pass::new(arguments, common)?;
    let mut names = Names::default();
    let [before, after] = &readers;
    // The second capture is not read if a signal has interrupted the first reading.
    let old = pass.digest(before, &mut names)?;
    let new = pass.digest(after, &mut names)?;
    let has_messages =
        |digest: &Digest| digest.conversations.iter().any(|it| !it.messages.is_empty());
    if (arguments.filter.is_some() || arguments.stream.is_some())
        && !has_messages(&old)
        && !has_messages(&new)
    {
        say("worldwire: diff: no message in either capture matches");
        return Err(Failure::Input);
    }
    let keys: [&dyn Fn(&Conversation) -> u64; 6] = [
        &|it| it.hash(|hasher| it.messages.iter().for_each(|it| hasher.write_u64(it.content))),
        &|it| it.hash(|hasher| it.messages.iter().for_each(|it| it.kind().hash(hasher))),
        &|it| it.hash(|hasher| (it.first_kind(), it.server).hash(hasher)),
        &|it| it.hash(|hasher| it.first_kind().hash(hasher)),
        &|it| it.hash(|hasher| it.server.hash(hasher)),
        &|it| it.hash(|_| ()),
    ];
    let pairs = pair_up(&old.conversations, &new.conversations, &keys);
    let aligned: Vec<(Pair, Vec<Pair>)> = pairs
        .into_iter()
        .map(|pair| {
            let messages = |conversation: Option<&Conversation>| {
                conversation.map(|it| it.messages.as_slice()).unwrap_or_default().to_vec()
            };
            let olds = messages(old.of(pair.0));
            let news = messages(new.of(pair.1));
            let pairs = align(&olds, &news, |it| (it.content, it.kind()));
            (pair, refine(pairs, &olds, &news, Message::kind))
        })
        .collect();
    let mut changes = Changes::new([&old, &new], &names);
    aligned.iter().for_each(|(pair, messages)| changes.add(*pair, messages));
    let is_same = changes.is_empty();
    if !is_same {
        let [old_numbers, new_numbers] = changes.numbers();
        let olds = pass.contents(before, &old_numbers)?;
        let news = pass.contents(after, &new_numbers)?;
        let style = Style::new(common.colour(None));
        print(&changes.write(&olds, &news, arguments.json, style))?;
    }
    conclude(&pass, [(&arguments.before, &old), (&arguments.after, &new)], common)?;
    Ok(is_same)
}

/// Compares one message of each capture. Returns whether they are the same.
pub(super) fn compare_messages(
    arguments: &DiffArguments,
    inputs: [(&Path, u64); 2],
    common: &Common,
) -> Result<bool, Failure> {
    let pass = Pass::new(arguments, common)?;
    let mut found = Vec::new();
    for (path, number) in inputs {
        let content = pass.contents(&Reader::new(path, arguments), &HashSet::from([number]))?;
        match content.found.into_iter().next() {
            Some((_, content)) => found.push(content),
            None => {
                let why = match content.is_full {
                    true => format!("message {number} is too large to compare"),
                    false => format!("there is no message {number}: only {} match", content.count),
                };
                complain(&shown(path), &why);
                return Err(Failure::Input);
            }
        }
    }
    let [(_, first), (_, second)] = inputs;
    let [old, new] = <[Content; 2]>::try_from(found).map_err(|_| Failure::Input)?;
    let mut changes = changes_between(&old.text, &new.text);
    if (&old.name, old.from) != (&new.name, new.from) {
        let head = |it: &Content| parse(&json!([it.from.name(), it.name]).to_string());
        if let (Ok(old), Ok(new)) = (head(&old), head(&new)) {
            changes.insert(0, FieldChanges::between(&old, &new));
        }
    }
    let (style, mut out) = (Style::new(common.colour(None)), String::new());
    if changes.iter().all(FieldChanges::is_empty) {
        unused(&pass.ignored, common);
        return Ok(true);
    }
    if arguments.json {
        let line = line("changed", [Some(first), Some(second)], [Some(&old), Some(&new)], &changes);
        let _ = writeln!(out, "{line}");
    } else {
        let title = match old.name == new.name && old.from == new.from {
            true => format!("{:<6}  {}", old.from.name(), printable(&old.name)),
            false => {
                let [old, new] =
                    [&old, &new].map(|it| format!("{} {}", it.from.name(), printable(&it.name)));
                style.change(&old, &new)
            }
        };
        let _ = writeln!(out, "{}  {title}", style.changed(&numbers(Some(first), Some(second))));
        let is_other = old.name != new.name || old.from != new.from;
        // The heading already shows the first of these changes.
        for changes in changes.iter().skip(usize::from(is_other)) {
            changes.push_text("    ", style, &mut out);
        }
    }
    print(&out)?;
    unused(&pass.ignored, common);
    Ok(false)
}

/// Reports the parts that were not compared.
fn conclude(
    pass: &Pass<'_>,
    sides: [(&std::path::PathBuf, &Digest); 2],
    common: &Common,
) -> Result<(), Failure> {
    unused(&pass.ignored, common);
    let mut is_unread = false;
    for (path, digest) in sides {
        if digest.unrecognised > 0 {
            let of = counted(digest.unrecognised, "conversation");
            let text = format!("{of} not recognised and not compared");
            common.note(&shown(path), &text);
        }
        is_unread |= digest.is_unread;
    }
    if is_unread {
        say("worldwire: diff: parts that could not be read were not compared");
        return Err(Failure::Input);
    }
    Ok(())
}

fn unused(ignored: &Ignored, common: &Common) {
    for pattern in ignored.unused() {
        common.note("diff", &format!("--ignore {pattern}: no field has this name"));
    }
}

/// What to read from a capture.
struct Pass<'p> {
    common: &'p Common,
    definitions: Definitions,
    selection: Selection,
    ignored: Ignored,
}

/// A capture and how to read it.
struct Reader(Capture);

impl Reader {
    fn new(path: &Path, arguments: &DiffArguments) -> Self {
        let mut capture = Capture::plain(path, arguments.knowledge.data.clone());
        capture.knowledge = arguments.knowledge.clone();
        Self(capture)
    }
}

/// The names of messages, each with a number.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map(String::as_str).unwrap_or_default()
    }
}

/// A message, without its contents.
#[derive(Clone, Copy)]
pub(super) struct Message {
    /// Its number in the capture, from 1.
    pub(super) number: u64,
    pub(super) name: u32,
    pub(super) from: Side,
    /// A hash of its contents.
    pub(super) content: u64,
}

impl Message {
    pub(super) fn kind(&self) -> (Side, u32) {
        (self.from, self.name)
    }
}

pub(super) struct Conversation {
    pub(super) stream: u64,
    pub(super) family: &'static str,
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) messages: Vec<Message>,
}

impl Conversation {
    /// A hash of the family and another value.
    fn hash(&self, more: impl Fn(&mut DefaultHasher)) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.family.hash(&mut hasher);
        more(&mut hasher);
        hasher.finish()
    }

    fn first_kind(&self) -> Option<(Side, u32)> {
        self.messages.first().map(Message::kind)
    }
}

/// A capture, without the contents of its messages.
pub(super) struct Digest {
    pub(super) conversations: Vec<Conversation>,
    pub(super) unrecognised: u64,
    /// Whether a part of a recognised conversation could not be read.
    pub(super) is_unread: bool,
}

impl Digest {
    pub(super) fn of(&self, at: Option<usize>) -> Option<&Conversation> {
        at.and_then(|at| self.conversations.get(at))
    }
}

/// The contents of messages, by number.
pub(super) struct Contents {
    pub(super) found: HashMap<u64, Content>,
    /// The number of messages in the capture.
    pub(super) count: u64,
    /// Whether contents were dropped to limit memory.
    pub(super) is_full: bool,
}

pub(super) struct Content {
    pub(super) name: String,
    pub(super) from: Side,
    pub(super) text: String,
    pub(super) info: String,
}

/// A message or a problem that a thread has read.
enum Seen {
    Message { stream: u64, from: Side, name: String, content: u64 },
    Content(Content),
    Problem,
}

impl<'p> Pass<'p> {
    fn new(arguments: &DiffArguments, common: &'p Common) -> Result<Self, Failure> {
        let definitions = definitions::load(&arguments.knowledge.data, common)?;
        let filter = arguments.filter.as_deref();
        let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
        let selection = Selection { stream: arguments.stream, filter };
        let ignored = Ignored::parse(&arguments.ignore)?;
        Ok(Self { common, definitions, selection, ignored })
    }

    fn digest(&self, reader: &Reader, names: &mut Names) -> Result<Digest, Failure> {
        let show = |shown: &Shown<'_, '_>, out: &mut Vec<Seen>| {
            let mut hasher = DefaultHasher::new();
            self.comparable(shown).hash(&mut hasher);
            let (stream, content) = (shown.item.stamp.stream, hasher.finish());
            out.push(Seen::Message {
                stream,
                from: shown.item.from,
                name: shown.name.to_owned(),
                content,
            });
        };
        let (mut messages, mut count): (BTreeMap<u64, Vec<Message>>, _) = (BTreeMap::new(), 0);
        let mut is_unread = false;
        let (dissection, clean) = self.read(reader, false, show, |seen| {
            for one in seen {
                match one {
                    Seen::Message { stream, from, name, content } => {
                        count += 1;
                        let name = names.number(name);
                        let message =
                            Message { number: count, name, from: *from, content: *content };
                        messages.entry(*stream).or_default().push(message);
                    }
                    Seen::Problem => is_unread = true,
                    Seen::Content(_) => {}
                }
            }
        })?;
        let (mut conversations, mut unrecognised) = (Vec::new(), 0);
        for overview in dissection.overviews() {
            let Some(family) = overview.family else {
                unrecognised += 1;
                continue;
            };
            let messages = messages.remove(&overview.stream).unwrap_or_default();
            if messages.is_empty() && self.selection.filter.is_some() {
                continue;
            }
            let (stream, client, server) = (overview.stream, overview.client, overview.server);
            let family = family.name();
            conversations.push(Conversation { stream, family, client, server, messages });
        }
        Ok(Digest { conversations, unrecognised, is_unread: is_unread || !clean })
    }

    fn contents(&self, reader: &Reader, wanted: &HashSet<u64>) -> Result<Contents, Failure> {
        let mut contents = Contents { found: HashMap::new(), count: 0, is_full: false };
        let show = |shown: &Shown<'_, '_>, out: &mut Vec<Seen>| {
            let mut info = String::new();
            shown.item.push_info(shown.name, shown.tree, &mut info);
            let (name, from) = (shown.name.to_owned(), shown.item.from);
            out.push(Seen::Content(Content { name, from, text: self.comparable(shown), info }));
        };
        let mut kept = 0;
        self.read(reader, true, show, |seen| {
            for one in seen {
                let Seen::Content(content) = one else { continue };
                contents.count += 1;
                if !wanted.contains(&contents.count) {
                    continue;
                }
                kept += content.text.len() + content.info.len();
                if kept > MAX_KEPT {
                    contents.is_full = true;
                    continue;
                }
                let Content { name, from, text, info } = content;
                let (name, text, info) = (name.clone(), text.clone(), info.clone());
                contents.found.insert(contents.count, Content { name, from: *from, text, info });
            }
        })?;
        Ok(contents)
    }

    fn read(
        &self,
        Reader(arguments): &Reader,
        is_again: bool,
        show: impl Fn(&Shown<'_, '_>, &mut Vec<Seen>) + Sync,
        mut add: impl FnMut(&[Seen]),
    ) -> Result<(worldwire_dissect::Dissection, bool), Failure> {
        let Self { common, definitions, selection, .. } = self;
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Seen>| {
            if item.note().is_some_and(|note| note.kind == NoteKind::Problem) {
                out.push(Seen::Problem);
            }
            if item.message().is_some() {
                selection.pass(item, scratch, true, |shown| show(shown, out));
            }
        };
        let extras = Extras { is_again, ..Extras::default() };
        let write = |seen: &Vec<Seen>| {
            selection.check()?;
            add(seen);
            Ok(())
        };
        let read = capture::read_with(arguments, common, definitions.clone(), extras, show, write)?;
        selection.check()?;
        Ok(read)
    }

    /// The part of a message that is compared: an object with its fields and, if they do not cover
    /// all of it, its bytes.
    fn comparable(&self, shown: &Shown<'_, '_>) -> String {
        let (item, tree, style) = (shown.item, shown.tree, JsonStyle::default());
        let mut text = String::from("{\"fields\":");
        match tree.find("fields") {
            Some(fields) => write_node(fields, style, &mut text),
            None => write_children(Value::Record, tree.roots(), style, &mut text),
        }
        if let Some(message) = item.message() {
            message.push_members(&mut text);
        }
        if let Some(error) = tree.error() {
            text.push_str(",\"error\":");
            string(&error.to_string(), &mut text);
            text.push_str(",\"payload\":{\"$hex\":\"");
            push_hex(&mut text, item.body());
            text.push_str("\"}");
        }
        text.push('}');
        if self.ignored.is_empty() {
            return text;
        }
        let Ok(mut json) = parse(&text) else { return text };
        if let Some(fields) = json.get_mut("fields") {
            remove(fields, &mut shown.name.to_owned(), &self.ignored);
        }
        serde_json::to_string(&json).unwrap_or(text)
    }
}
