//! Worldwire's table format: everything about game objects, as text.

use core::fmt::Write as _;
use std::collections::HashSet;

use worldwire_core::{Diagnostic, nearest};

use super::class::{Class, Group, MAX_PROPERTIES, Order, is_label, is_name};
use super::problems::{Problems, lines, quoted, span_of};
use super::tables::{Goobj, Tables};
use crate::types::PropertyType;

/// The first line of a table.
const VERSION: &str = "worldwire-mxo-objects 1";

/// The keywords for the update orders.
const GROUPS: [(Group, &str); 4] = [
    (Group::Plain, "update plain:"),
    (Group::Npc, "update npc:"),
    (Group::Own, "update own:"),
    (Group::Other, "update other:"),
];

impl Tables {
    /// Reads a table in worldwire's format; problems use `name` as the file name. Invalid lines are
    /// reported as problems; all others are read. A class with an invalid line is skipped, because
    /// a missing property would shift all others.
    ///
    /// ```text
    /// worldwire-mxo-objects 1
    ///
    /// # The door that most houses have.
    /// class door364 fits an official create
    ///   create:
    ///     Orientation LTQuaternion
    ///     CurrentState EventID
    ///   update plain:
    ///     CurrentState
    ///
    /// goobj 415 door364 Door SL Push Knob Greenmetal01texvar
    ///   source: class inferred from an official create
    /// goobj 599 - NPC_BASE
    /// ```
    ///
    /// The first line states the format and its version. Lines starting with `#` are comments;
    /// below a class, `#` also starts a comment within a line.
    ///
    /// `class` is followed by its name and, optionally, its source. Its orders follow, indented,
    /// with one property per line in the order of their presence bits: name, then type. `update
    /// plain:`, `update npc:`, or `update own:` and `update other:` state the layout of updates; a
    /// property without a type has the same type as in creates. An order without properties is
    /// known to be empty; a missing order is unknown.
    ///
    /// `goobj` is followed by its number, its class (`-` if unknown) and its name. Anything the
    /// file does not state about a goobj stays unchanged. A file can define each class and each
    /// goobj only once.
    pub fn read(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        self.reading(name, |tables| {
            let mut reader = TableReader {
                tables,
                text,
                problems: Problems::new(name, text),
                open: Open::Nothing,
                named: HashSet::new(),
                goobjs: HashSet::new(),
            };
            reader.read();
            reader.problems.finish()
        })
    }

    /// Prints the tables in worldwire's format. Reading the text again yields the same tables.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = format!("{VERSION}\n");
        for class in self.classes() {
            print_class(class, &mut out);
        }
        let mut gap = "\n";
        for (goid, goobj) in self.goobjs() {
            out.push_str(gap);
            gap = "";
            print_goobj(goid, goobj, &mut out);
        }
        out
    }

    /// Prints one goobj with its class, and classes by name, in worldwire's format. A comment after
    /// each property's type states its index and size.
    #[must_use]
    pub fn print_some(&self, goid: Option<u16>, classes: &[&str]) -> String {
        let mut out = format!("{VERSION}\n");
        let goobj = goid.and_then(|goid| Some((goid, self.goobjs.get(&goid)?)));
        let of_goobj = goobj.and_then(|(_, goobj)| goobj.class.as_deref());
        let others = classes.iter().copied().filter(|name| Some(*name) != of_goobj);
        for class in of_goobj.into_iter().chain(others).filter_map(|name| self.class(name)) {
            print_head(class, &mut out);
            let create = ("create:", class.create());
            let updates = class.groups().map(|(group, order)| (group_word(group), order));
            for (word, order) in core::iter::once(create).chain(updates) {
                let _ = writeln!(out, "  {word}");
                print_slots(order, &mut out);
            }
        }
        if let Some((goid, goobj)) = goobj {
            out.push('\n');
            print_goobj(goid, goobj, &mut out);
        }
        out
    }
}

fn print_goobj(goid: u16, goobj: &Goobj, out: &mut String) {
    let class = goobj.class.as_deref().unwrap_or("-");
    let _ = write!(out, "goobj {goid} {class}");
    if let Some(name) = &goobj.name {
        let _ = write!(out, " {name}");
    }
    out.push('\n');
    if let Some(source) = &goobj.source {
        let _ = writeln!(out, "  source: {source}");
    }
}

fn print_head(class: &Class, out: &mut String) {
    let _ = write!(out, "\nclass {}", class.name());
    if let Some(source) = class.source() {
        let _ = write!(out, " {source}");
    }
    out.push('\n');
}

fn print_class(class: &Class, out: &mut String) {
    print_head(class, out);
    out.push_str("  create:\n");
    for slot in class.create().slots() {
        let _ = writeln!(out, "    {} {}", slot.name(), slot.kind());
    }
    for (group, order) in class.groups() {
        let _ = writeln!(out, "  {}", group_word(group));
        for slot in order.slots() {
            let _ = write!(out, "    {}", slot.name());
            if create_type(class.create(), slot.name()) != Some(slot.kind()) {
                let _ = write!(out, " {}", slot.kind());
            }
            out.push('\n');
        }
    }
}

/// Prints an order's properties with their indices and sizes.
fn print_slots(order: &Order, out: &mut String) {
    let lines: Vec<String> =
        order.slots().iter().map(|slot| format!("    {} {}", slot.name(), slot.kind())).collect();
    let width = lines.iter().map(String::len).max().unwrap_or(0);
    for (index, (line, slot)) in lines.iter().zip(order.slots()).enumerate() {
        let _ = write!(out, "{line:width$}  # {index}: ");
        let _ = match slot.fixed_size() {
            Some(1) => writeln!(out, "1 byte"),
            Some(size) => writeln!(out, "{size} bytes"),
            None => writeln!(out, "length-prefixed text"),
        };
    }
}

fn group_word(group: Group) -> &'static str {
    GROUPS.iter().find(|(other, _)| *other == group).map_or("", |(_, word)| word)
}

fn create_type(create: &Order, name: &str) -> Option<PropertyType> {
    create.slot(create.index_of(name)?).map(|slot| slot.kind())
}

/// A property in a line.
type Property<'t> = (&'t str, PropertyType);

/// The statement to which indented lines belong.
enum Open<'t> {
    Nothing,
    /// An invalid statement.
    Broken,
    Goobj(u16),
    Class(OpenClass<'t>),
}

struct OpenClass<'t> {
    name: &'t str,
    source: &'t str,
    create: Vec<Property<'t>>,
    groups: Vec<(Group, Vec<Property<'t>>)>,
    /// The list to which lines are added.
    list: List,
    /// The names in that list.
    names: HashSet<&'t str>,
    /// Whether every line was valid.
    is_whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    Create,
    Group,
    /// After an invalid header: lines below it are skipped.
    Broken,
}

struct TableReader<'s, 't> {
    tables: &'s mut Tables,
    text: &'t str,
    problems: Problems<'t>,
    open: Open<'t>,
    /// The classes in this file.
    named: HashSet<&'t str>,
    /// The goobjs in this file.
    goobjs: HashSet<u16>,
}

impl<'t> TableReader<'_, 't> {
    fn read(&mut self) {
        let mut versioned = false;
        for (_, whole) in lines(self.text) {
            let line = whole.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !versioned {
                versioned = true;
                if line != VERSION {
                    let message = format!("wanted {VERSION}, found {}", quoted(line));
                    let help = "the first line names the format and its version";
                    self.problems.error_with(span_of(self.text, line), message, help);
                }
                if line.starts_with("worldwire-mxo-objects") {
                    continue;
                }
            }
            if whole.starts_with([' ', '\t']) {
                self.indented(line);
            } else {
                self.close();
                self.statement(line);
            }
        }
        self.close();
        if !versioned {
            let message = format!("wanted {VERSION}, found an empty file");
            self.problems.error(0..0, message);
        }
    }

    fn wrong(&mut self, part: &str, wanted: &str) {
        let found = if part.is_empty() { "nothing".to_owned() } else { quoted(part) };
        self.problems.error(span_of(self.text, part), format!("wanted {wanted}, found {found}"));
    }

    fn statement(&mut self, line: &'t str) {
        let (word, rest) = split(line);
        self.open = Open::Broken;
        match word {
            "class" => {
                let (name, source) = split(rest);
                if !is_name(name) {
                    self.wrong(name, "the name of a class");
                } else if !source.is_empty() && !is_label(source) {
                    self.wrong(source, "a source on one line");
                } else if !self.named.insert(name) {
                    self.wrong(name, "a class that the file has not defined yet");
                } else {
                    self.open = Open::Class(OpenClass {
                        name,
                        source,
                        create: Vec::new(),
                        groups: Vec::new(),
                        list: List::None,
                        names: HashSet::new(),
                        is_whole: true,
                    });
                }
            }
            "goobj" => self.goobj(rest),
            _ => self.wrong(word, "class or goobj"),
        }
    }

    fn goobj(&mut self, rest: &'t str) {
        let (number, rest) = split(rest);
        let (class, name) = split(rest);
        let Ok(goid) = number.parse::<u16>() else {
            return self.wrong(number, "the number of a goobj from 0 to 65535");
        };
        if class.is_empty() {
            return self.wrong(class, "a class, or -");
        }
        if class != "-" && self.tables.class(class).is_none() {
            let classes = self.tables.classes().iter().map(Class::name);
            let help = match nearest(class, classes) {
                _ if self.named.contains(class) => "it has errors and was left out".to_owned(),
                Some(near) => format!("did you mean {near}?"),
                None => "define a class before using it".to_owned(),
            };
            let message = format!("there is no class {}", quoted(class));
            return self.problems.error_with(span_of(self.text, class), message, help);
        }
        if !name.is_empty() && !is_label(name) {
            return self.wrong(name, "the name of a goobj");
        }
        if !self.goobjs.insert(goid) {
            return self.wrong(number, "a goobj that the file has not defined yet");
        }
        if class == "-" {
            self.tables.goobj_mut(goid).source = None;
        } else if let Some(before) = self.tables.set_class(goid, class) {
            self.problems.warning(span_of(self.text, class), before);
        }
        let goobj = self.tables.goobj_mut(goid);
        if !name.is_empty() {
            goobj.name = Some(name.into());
        }
        self.open = Open::Goobj(goid);
    }

    fn indented(&mut self, line: &'t str) {
        match &mut self.open {
            Open::Nothing => self.wrong(line, "class or goobj"),
            Open::Broken => {}
            Open::Goobj(goid) => match line.strip_prefix("source:").map(str::trim) {
                Some(source) if is_label(source) => {
                    self.tables.goobj_mut(*goid).source = Some(source.into());
                }
                Some(source) => self.wrong(source, "a source on one line"),
                None => self.wrong(line, "source:"),
            },
            Open::Class(class) => {
                let line = line.split('#').next().unwrap_or_default().trim_end();
                let outcome = match line.ends_with(':') {
                    true => class.header(line),
                    false => class.property(line),
                };
                if let Err((part, wanted)) = outcome {
                    class.is_whole = false;
                    self.wrong(part, wanted);
                }
            }
        }
    }

    fn close(&mut self) {
        let Open::Class(open) = core::mem::replace(&mut self.open, Open::Nothing) else { return };
        if !open.is_whole {
            return;
        }
        let mut class = Class::new(open.name, open.create);
        if !open.source.is_empty() {
            class = class.with_source(open.source);
        }
        for (group, properties) in open.groups {
            class = class.grouped(group, properties);
        }
        if let Some(before) = self.tables.contradiction(&class) {
            self.problems.warning(span_of(self.text, open.name), before);
        }
        if !self.tables.add(class) {
            self.wrong(open.name, "at most 65534 classes");
        }
    }
}

/// The invalid part and what is expected instead.
type Wrong<'t> = (&'t str, &'static str);

impl<'t> OpenClass<'t> {
    fn header(&mut self, line: &'t str) -> Result<(), Wrong<'t>> {
        self.names.clear();
        let before = core::mem::replace(&mut self.list, List::Broken);
        if line == "create:" {
            if before != List::None {
                return Err((line, "create: once, before updates"));
            }
            self.list = List::Create;
            return Ok(());
        }
        let Some((group, _)) = GROUPS.iter().find(|(_, word)| *word == line) else {
            return Err((line, "create:, or update plain:, npc:, own: or other:"));
        };
        let players = |group: Group| matches!(group, Group::Own | Group::Other);
        let goes = |other: Group| other != *group && players(other) && players(*group);
        if !self.groups.iter().all(|(other, _)| goes(*other)) {
            return Err((line, "one update order, or one own: order and one other: order"));
        }
        self.list = List::Group;
        self.groups.push((*group, Vec::new()));
        Ok(())
    }

    fn property(&mut self, line: &'t str) -> Result<(), Wrong<'t>> {
        let (name, rest) = split(line);
        if !is_name(name) {
            return Err((name, "the name of a property"));
        }
        let own = self.create.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind);
        let list = match (self.list, self.groups.last_mut()) {
            (List::Create, _) => &mut self.create,
            (List::Group, Some((_, list))) => list,
            (List::Broken, _) => return Ok(()),
            _ => return Err((line, "create: or an update order before properties")),
        };
        if list.len() >= MAX_PROPERTIES {
            return Err((name, "at most 1024 properties"));
        }
        let kind = match (rest, self.list) {
            ("", List::Group) => {
                own.ok_or((name, "a property of the create order, or a type after the name"))?
            }
            ("", _) => return Err((rest, "a type after the name")),
            _ => PropertyType::parse(rest).ok_or((rest, "a type such as uint8 or raw4"))?,
        };
        if !self.names.insert(name) {
            return Err((name, "a property that is not in the order yet"));
        }
        list.push((name, kind));
        Ok(())
    }
}

/// The first word of a line and the rest.
fn split(line: &str) -> (&str, &str) {
    match line.split_once([' ', '\t']) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => line.split_at(line.len()),
    }
}
