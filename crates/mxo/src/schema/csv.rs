//! Tables as lines of fields between commas. No field is quoted.

use core::ops::Range;
use std::collections::{BTreeMap, HashSet};

use worldwire_core::Diagnostic;

use super::class::{Class, MOST_PROPERTIES, is_label, is_name};
use super::known;
use super::problems::{Problems, lines, quoted, span_of};
use super::tables::Tables;
use crate::types::PropertyType;

/// The first line of a table of classes, which may be missing.
const CLASS_HEADER: &str = "class_id,create_index,name,size,update_index";
/// The same of a map.
const MAP_HEADER: &str = "goid,class_id";

impl Tables {
    /// Reads classes: lines of `class_id,create_index,name,size,update_index`. The update index of
    /// a property that is never updated is -1. A class that is not whole is a problem and left out.
    ///
    /// Types are those that the same names have in the classes that are built in; others are bytes.
    ///
    /// Unverified: classes with the property `NPCRank` are updated as NPCs, and one laid out as the
    /// player that is built in as that.
    pub fn read_class_csv(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut classes: BTreeMap<u32, Vec<Row<'_>>> = BTreeMap::new();
        for line in rows(text, CLASS_HEADER) {
            let Some((class, row)) = class_row(text, line, &mut problems) else { continue };
            let list = classes.entry(class).or_default();
            if list.len() < MOST_PROPERTIES {
                list.push(row);
            } else {
                problems.error(span_of(text, line), "wanted at most 1024 properties, found more");
            }
        }
        for (number, mut list) in classes {
            if let Some(class) = whole_class(number, &mut list, &mut problems)
                && !self.reading(name, |tables| tables.add(class))
            {
                let span = list.first().map_or(0..0, |row| row.span.clone());
                problems.error(span, "wanted at most 65534 classes, found more");
            }
        }
        problems.finish()
    }

    /// Reads names of goobjs: lines of `name,id,`, where more fields may follow. Of several names
    /// for an id the first one counts. Ids that are not from 0 to 65535 are of other things: they are
    /// left out, and one warning says how many there are.
    pub fn read_name_csv(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut seen = HashSet::new();
        let mut others: Option<(&str, usize)> = None;
        for line in rows(text, "name,id,") {
            let mut fields = line.split(',').map(str::trim);
            let (name, id) = (fields.next().unwrap_or_default(), fields.next());
            let Some(id) = id else {
                let message = format!("wanted name,id, found {}", quoted(line));
                problems.error(span_of(text, line), message);
                continue;
            };
            let Ok(number) = id.parse::<i64>() else {
                let message = format!("wanted a number, found {}", quoted(id));
                problems.error(span_of(text, id), message);
                continue;
            };
            if !is_label(name) {
                let message = format!("wanted a name, found {}", quoted(name));
                problems.error(span_of(text, name), message);
                continue;
            }
            match u16::try_from(number) {
                Ok(goid) if seen.insert(goid) => self.goobj_mut(goid).name = Some(name.into()),
                Ok(_) => {}
                Err(_) => others.get_or_insert((id, 0)).1 += 1,
            }
        }
        if let Some((first, count)) = others {
            let plural = if count == 1 { "" } else { "s" };
            let message = format!(
                "{count} name{plural} left out: wanted a goobj, 0 to 65535, found {first}{}",
                if count == 1 { "" } else { " and others" }
            );
            problems.warning(span_of(text, first), message);
        }
        problems.finish()
    }

    /// Reads the class of each goobj: lines of `goid,class_id`. The classes have to be there.
    pub fn read_map(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut seen = HashSet::new();
        for line in rows(text, MAP_HEADER) {
            let fields: Vec<&str> = line.splitn(3, ',').map(str::trim).collect();
            let [goid, class] = fields.as_slice() else {
                let message = format!("wanted goid,class_id, found {}", quoted(line));
                problems.error(span_of(text, line), message);
                continue;
            };
            let span = span_of(text, goid);
            let Ok(number) = goid.parse::<u16>() else {
                let message = format!("wanted a goobj, 0 to 65535, found {}", quoted(goid));
                problems.error(span, message);
                continue;
            };
            if self.class(class).is_none() {
                let message = format!("there is no class {}", quoted(class));
                let help = "read the table of classes first";
                problems.error_with(span_of(text, class), message, help);
                continue;
            }
            if !seen.insert(number) {
                problems.error(span, format!("goobj {number} has a class already"));
                continue;
            }
            self.set_class(number, class);
        }
        problems.finish()
    }
}

/// The lines that hold something, without the first one if it names the columns.
fn rows<'t>(text: &'t str, header: &'static str) -> impl Iterator<Item = &'t str> {
    let held = lines(text).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let columns = move |(index, (_, line)): &(usize, (usize, &str))| {
        *index > 0 || line.trim_start_matches('\u{feff}').trim() != header
    };
    held.enumerate().filter(columns).map(|(_, (_, line))| line)
}

/// A property of a class.
struct Row<'t> {
    create: usize,
    name: &'t str,
    kind: PropertyType,
    update: Option<usize>,
    span: Range<usize>,
}

fn class_row<'t>(text: &str, line: &'t str, problems: &mut Problems<'_>) -> Option<(u32, Row<'t>)> {
    let fields: Vec<&str> = line.splitn(6, ',').map(str::trim).collect();
    let [class, create, name, size, update] = fields.as_slice() else {
        let message = format!("wanted {CLASS_HEADER}, found {}", quoted(line));
        problems.error(span_of(text, line), message);
        return None;
    };
    let mut wrong = |part: &str, wanted: &str| {
        let message = format!("wanted {wanted}, found {}", quoted(part));
        problems.error(span_of(text, part), message);
    };
    let Ok(number) = class.parse::<u32>() else {
        wrong(class, "the number of a class");
        return None;
    };
    let Some(create) = create.parse().ok().filter(|index| *index < MOST_PROPERTIES) else {
        wrong(create, "an index from 0 to 1023");
        return None;
    };
    if !is_name(name) {
        wrong(name, "the name of a property");
        return None;
    }
    let Some(kind) = size.parse().ok().and_then(|size| known::type_of(name, size)) else {
        wrong(size, "a size from 1 to 255");
        return None;
    };
    let update = match update.parse::<i64>() {
        Ok(-1) => None,
        Ok(index) => match usize::try_from(index).ok().filter(|index| *index < MOST_PROPERTIES) {
            Some(index) => Some(index),
            None => {
                wrong(update, "an index from 0 to 1023, or -1");
                return None;
            }
        },
        Err(_) => {
            wrong(update, "an index from 0 to 1023, or -1");
            return None;
        }
    };
    Some((number, Row { create, name, kind, update, span: span_of(text, line) }))
}

/// The class of rows that are all there.
fn whole_class(number: u32, rows: &mut [Row<'_>], problems: &mut Problems<'_>) -> Option<Class> {
    rows.sort_by_key(|row| row.create);
    let mut names = HashSet::new();
    for (index, row) in rows.iter().enumerate() {
        if row.create != index {
            let message =
                format!("wanted create index {index} of class {number}, found {}", row.create);
            problems.error(row.span.clone(), message);
            return None;
        }
        if !names.insert(row.name) {
            let message = format!("class {number} has a property {} already", row.name);
            problems.error(row.span.clone(), message);
            return None;
        }
    }
    let create = rows.iter().map(|row| (row.name, row.kind));
    let class = Class::new(&number.to_string(), create);
    let mut updated: Vec<_> = rows.iter().filter_map(|row| Some((row.update?, row))).collect();
    updated.sort_by_key(|(index, _)| *index);
    for (wanted, (index, row)) in updated.iter().enumerate() {
        if wanted != *index {
            let message = format!("wanted update index {wanted} of class {number}, found {index}");
            problems.error(row.span.clone(), message);
            return None;
        }
    }
    let updated: Vec<_> = updated.into_iter().map(|(_, row)| (row.name, row.kind)).collect();
    Some(known::grouped(class, &updated))
}
