//! The research community's dump: the create properties of each goobj.

use core::ops::Range;
use std::collections::{HashMap, HashSet};

use worldwire_core::Diagnostic;

use super::class::{Class, MAX_PROPERTIES, Order, Slot, is_label, is_name};
use super::known;
use super::problems::{Problems, lines, quoted, span_of};
use super::tables::Tables;
use crate::types::PropertyType;

const VALUES: &str = "#VALUES FOR GOID:";
const USING: &str = "#USING";

impl Tables {
    /// Reads the community's dump: classes, and each goobj's class and name. It has no update
    /// orders; an existing class with the same properties keeps its own.
    ///
    /// ```text
    /// #VALUES FOR GOID: 415, Door SL Push Knob Greenmetal01texvar
    /// #USING 364, Binary-Present: YES
    /// 17,Orientation,LTQuaternion,16
    /// ```
    ///
    /// The number before a property's name identifies its property type, which is not used here.
    pub fn read_dump(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        self.reading(name, |tables| {
            let mut reader = DumpReader {
                tables,
                text,
                problems: Problems::new(name, text),
                block: None,
                read: HashMap::new(),
                goobjs: HashSet::new(),
            };
            for (_, line) in lines(text) {
                reader.line(line.trim());
            }
            reader.close();
            reader.problems.finish()
        })
    }
}

/// The lines below a header.
struct Block<'t> {
    goid: u16,
    name: &'t str,
    class: Option<u32>,
    span: Range<usize>,
    properties: Vec<(&'t str, PropertyType)>,
    names: HashSet<&'t str>,
    /// Whether a line was invalid, which makes the class incomplete.
    broken: bool,
}

struct DumpReader<'s, 't> {
    tables: &'s mut Tables,
    text: &'t str,
    problems: Problems<'t>,
    block: Option<Block<'t>>,
    /// The classes in this file, with their properties.
    read: HashMap<u32, Vec<(&'t str, PropertyType)>>,
    /// The goobjs in this file.
    goobjs: HashSet<u16>,
}

impl<'t> DumpReader<'_, 't> {
    fn wrong(&mut self, part: &str, wanted: &str) {
        let message = format!("wanted {wanted}, found {}", quoted(part));
        self.problems.error(span_of(self.text, part), message);
        if let Some(block) = &mut self.block {
            block.broken = true;
        }
    }

    fn line(&mut self, line: &'t str) {
        if let Some(rest) = line.strip_prefix(VALUES) {
            self.close();
            self.header(line, rest.trim());
        } else if let Some(rest) = line.strip_prefix(USING) {
            let number = rest.split(',').next().unwrap_or_default().trim();
            match (number.parse().ok(), &mut self.block) {
                (Some(class), Some(block)) if block.class.is_none() => block.class = Some(class),
                (Some(_), _) => self.wrong(line, "one #USING after #VALUES FOR GOID:"),
                (None, _) => self.wrong(number, "the number of a class"),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            self.property(line);
        }
    }

    fn header(&mut self, line: &'t str, rest: &'t str) {
        let (goid, name) = rest.split_once(',').unwrap_or((rest, ""));
        let (goid, name) = (goid.trim(), name.trim());
        let Ok(number) = goid.parse() else {
            return self.wrong(goid, "a goobj from 0 to 65535");
        };
        if !name.is_empty() && !is_label(name) {
            return self.wrong(name, "the name of a goobj");
        }
        self.block = Some(Block {
            goid: number,
            name,
            class: None,
            span: span_of(self.text, line),
            properties: Vec::new(),
            names: HashSet::new(),
            broken: false,
        });
    }

    fn property(&mut self, line: &'t str) {
        let fields: Vec<&str> = line.splitn(5, ',').map(str::trim).collect();
        let [_, name, kind, size] = fields.as_slice() else {
            return self.wrong(line, "property type id, name, type and size");
        };
        let Some(size) = size.parse::<u8>().ok().filter(|size| *size > 0) else {
            return self.wrong(size, "a size from 1 to 255");
        };
        if !is_name(name) {
            return self.wrong(name, "the name of a property");
        }
        let named = PropertyType::parse(kind);
        if let Some(named) = named.filter(|named| named.size() != size) {
            let message = format!(
                "wanted {} as the size of {named}, found {size}; it is read as bytes",
                named.size()
            );
            self.problems.warning(span_of(self.text, kind), message);
        }
        let kind = named.filter(|named| named.size() == size);
        let Some(kind) = kind.or_else(|| known::type_of(name, size)) else { return };
        let Some(block) = &mut self.block else {
            return self.wrong(line, "#VALUES FOR GOID: before properties");
        };
        if block.properties.len() >= MAX_PROPERTIES {
            return self.wrong(name, "at most 1024 properties");
        }
        if !block.names.insert(name) {
            return self.wrong(name, "a property that is not in the class yet");
        }
        block.properties.push((name, kind));
    }

    /// Handles a complete block.
    fn close(&mut self) {
        let Some(block) = self.block.take() else { return };
        if !self.goobjs.insert(block.goid) {
            let message =
                format!("goobj {} is already defined above; this definition is used", block.goid);
            self.problems.warning(block.span.clone(), message);
        }
        if !block.name.is_empty() {
            self.tables.goobj_mut(block.goid).name = Some(block.name.into());
        }
        if block.broken {
            return;
        }
        let Some(number) = block.class else {
            let help = "a line such as #USING 364, Binary-Present: YES";
            return self.problems.error_with(block.span, "no class for the goobj", help);
        };
        let name = number.to_string();
        if block.properties.is_empty() && self.tables.class(&name).is_none() {
            let message = format!("class {number} has no properties here; it is skipped");
            return self.problems.warning(block.span, message);
        }
        match self.read.get(&number) {
            Some(before) if !block.properties.is_empty() && *before != block.properties => {
                let message = format!("class {number} is defined with different properties above");
                return self.problems.error(block.span, message);
            }
            _ if block.properties.is_empty() => {}
            Some(_) => {}
            None => {
                let class = self.class(&name, &block);
                if !self.tables.add(class) {
                    let message = "wanted at most 65534 classes, found more";
                    return self.problems.error(block.span, message);
                }
                self.read.insert(number, block.properties);
            }
        }
        if let Some(before) = self.tables.set_class(block.goid, &name) {
            self.problems.warning(block.span, before);
        }
    }

    /// A block's class. An existing class with the same layout contributes its updates, and the
    /// types that the dump does not state.
    fn class(&mut self, name: &str, block: &Block<'t>) -> Class {
        let read = Class::new(name, block.properties.iter().copied());
        let Some(before) = self.tables.class(name) else { return read };
        if !known::layout(before).eq(known::layout(&read)) {
            let message = format!("class {name} was already defined with different properties");
            self.problems.warning(block.span.clone(), message);
            return read;
        }
        // The types of properties, in creates and updates.
        let both = before.create().slots().iter().zip(read.create().slots());
        let types: HashMap<&str, PropertyType> = both
            .map(|(old, new)| {
                if new.kind().is_raw() {
                    (old.name(), old.kind())
                } else {
                    (new.name(), new.kind())
                }
            })
            .collect();
        let of = |order: &Order| -> Vec<(Box<str>, PropertyType)> {
            let kind = |slot: &Slot| {
                let kind = types.get(slot.name()).filter(|kind| kind.size() == slot.kind().size());
                kind.copied().unwrap_or_else(|| slot.kind())
            };
            order.slots().iter().map(|slot| (slot.name().into(), kind(slot))).collect()
        };
        let create = of(before.create());
        let mut class = Class::new(name, create.iter().map(|(name, kind)| (&**name, *kind)));
        if let Some(source) = before.source() {
            class = class.with_source(source);
        }
        for (group, order) in before.groups() {
            let list = of(order);
            class = class.grouped(group, list.iter().map(|(name, kind)| (&**name, *kind)));
        }
        class
    }
}
