//! Tables as comma-separated lines.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use worldwire_core::Diagnostic;

use super::class::{Class, MAX_PROPERTIES, is_label, is_name};
use super::known;
use super::problems::{Problems, lines, quoted, span_of};
use super::tables::Tables;
use crate::types::PropertyType;

/// The optional first line of a class table.
const CLASS_HEADER: &str = "class_id,create_index,name,size,update_index";
/// The optional first line of a name table.
const NAME_HEADER: &str = "name,id,";
/// The optional first line of a goobj map.
const MAP_HEADER: &str = "goid,class_id";

/// The fields of a line, separated by commas, without surrounding spaces and quotes. Within quotes,
/// commas are part of the text and `""` is a quote. Accepts any text, wherever its quotes are.
pub fn csv_fields(line: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(line);
    core::iter::from_fn(move || {
        let text = rest?.trim_start();
        let (field, behind) = match text.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted),
            None => match text.split_once(',') {
                Some((field, behind)) => (Cow::Borrowed(field.trim_end()), Some(behind)),
                None => (Cow::Borrowed(text.trim_end()), None),
            },
        };
        rest = behind;
        Some(field)
    })
}

/// A quoted field, starting after its opening quote, and the text after the following comma.
fn quoted_field(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let mut end = 0;
    let mut has_quotes = false;
    while let Some(at) = text.get(end..).and_then(|rest| rest.find('"')) {
        end += at;
        if !text[end + 1..].starts_with('"') {
            break;
        }
        has_quotes = true;
        end += 2;
    }
    let end = if text.get(end..).is_some_and(|rest| rest.contains('"')) { end } else { text.len() };
    let (field, behind) = text.split_at(end);
    let field = field.trim();
    let field = if has_quotes { Cow::Owned(field.replace("\"\"", "\"")) } else { field.into() };
    (field, behind.split_once(',').map(|(_, rest)| rest))
}

/// Whether a line is the given header, regardless of case and of spaces or underscores between
/// words.
pub fn is_csv_header(line: &str, header: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '-'], "_");
    let line = line.trim_start_matches('\u{feff}');
    let mut given: Vec<String> = csv_fields(line).map(|field| plain(&field)).collect();
    while given.last().is_some_and(String::is_empty) {
        given.pop();
    }
    given.iter().map(String::as_str).eq(header.split(',').filter(|name| !name.is_empty()))
}

impl Tables {
    /// Reads classes from lines of `class_id,create_index,name,size,update_index`. The update index
    /// is -1 for a property that is never updated. An incomplete class is reported as a problem and
    /// skipped.
    ///
    /// A property has the type that the built-in classes use for its name; if they do not contain
    /// the name, it is raw bytes.
    ///
    /// Unverified: classes with the property `NPCRank` are updated as NPCs, and a class with the
    /// layout of the built-in player is updated as a player.
    pub fn read_class_csv(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut classes: BTreeMap<u32, Vec<Row<'_>>> = BTreeMap::new();
        for line in rows(text, CLASS_HEADER) {
            let Some((class, row)) = class_row(text, line, &mut problems) else { continue };
            let list = classes.entry(class).or_default();
            if list.len() < MAX_PROPERTIES {
                list.push(row);
            } else {
                problems.error(span_of(text, line), "wanted at most 1024 properties, found more");
            }
        }
        self.reading(name, |tables| {
            for (number, mut list) in classes {
                let Some(class) = whole_class(number, &mut list, &mut problems) else { continue };
                let span = list.first().map_or(0..0, |row| row.span.clone());
                if let Some(before) = tables.contradiction(&class) {
                    problems.warning(span.clone(), before);
                }
                if !tables.add(class) {
                    problems.error(span, "wanted at most 65534 classes, found more");
                }
            }
        });
        problems.finish()
    }

    /// Reads goobj names from lines of `name,id,`, which may have more fields. If an ID has several
    /// names, the first one wins. IDs above 65535 do not belong to goobjs: they are skipped, and
    /// one warning reports how many there were.
    pub fn read_name_csv(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut seen = HashSet::new();
        let mut others: Option<(Range<usize>, i64, usize)> = None;
        for line in rows(text, NAME_HEADER) {
            let mut fields = csv_fields(line);
            let (name, id) = (fields.next().unwrap_or_default(), fields.next());
            let Some(id) = id else {
                let message = format!("wanted \"name,id\", found {}", quoted(line));
                problems.error(span_of(text, line), message);
                continue;
            };
            let Ok(number) = id.parse::<i64>() else {
                let message = format!("wanted a number, found {}", quoted(&id));
                problems.error(field_span(text, line, &id), message);
                continue;
            };
            if !is_label(&name) {
                let message = format!("wanted a name, found {}", quoted(&name));
                problems.error(field_span(text, line, &name), message);
                continue;
            }
            match u16::try_from(number) {
                Ok(goid) if seen.insert(goid) => {
                    self.goobj_mut(goid).name = Some(name.into());
                }
                Ok(_) => {}
                Err(_) => {
                    others.get_or_insert_with(|| (field_span(text, line, &id), number, 0)).2 += 1;
                }
            }
        }
        if let Some((span, first, count)) = others {
            let plural = if count == 1 { "" } else { "s" };
            let message = format!(
                "{count} name{plural} left out: wanted a goobj from 0 to 65535, found {first}{}",
                if count == 1 { "" } else { " and others" }
            );
            problems.warning(span, message);
        }
        problems.finish()
    }

    /// Reads each goobj's class from lines of `goid,class_id`. Read the classes first.
    pub fn read_map(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let pairs = rows(text, MAP_HEADER).map(|line| {
            let mut fields = csv_fields(line);
            let pair = fields.next().zip(fields.next()).filter(|_| fields.next().is_none());
            (line, pair)
        });
        self.read_pairs(name, text, pairs)
    }

    /// Reads each goobj's class from the C# source of the community's servers, which declares
    /// `AttributeClass364 Object415` for class 364 of goobj 415. Read the classes first.
    pub fn read_declarations(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let pairs = lines(text).filter_map(|(_, line)| {
            let (goid, class) = declared_class(line)?;
            Some((line, Some((goid.into(), class.into()))))
        });
        self.read_pairs(name, text, pairs)
    }

    /// Reads goobjs and their classes, each with its line.
    fn read_pairs<'t>(
        &mut self,
        name: &str,
        text: &'t str,
        pairs: impl Iterator<Item = (&'t str, Option<(Cow<'t, str>, Cow<'t, str>)>)>,
    ) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        let mut seen = HashSet::new();
        for (line, pair) in pairs {
            let Some((goid, class)) = pair else {
                let message = format!("wanted \"goid,class_id\", found {}", quoted(line));
                problems.error(span_of(text, line), message);
                continue;
            };
            let span = field_span(text, line, &goid);
            let Ok(number) = goid.parse::<u16>() else {
                let message = format!("wanted a goobj from 0 to 65535, found {}", quoted(&goid));
                problems.error(span, message);
                continue;
            };
            if self.class(&class).is_none() {
                let message = format!("there is no class {}", quoted(&class));
                let help = "read the table of classes first";
                problems.error_with(field_span(text, line, &class), message, help);
                continue;
            }
            if !seen.insert(number) {
                problems.error(span, format!("goobj {number} already has a class"));
                continue;
            }
            if let Some(before) = self.reading(name, |tables| tables.set_class(number, &class)) {
                problems.warning(span, before);
            }
        }
        problems.finish()
    }
}

/// The goobj and the class in a line of C# such as `AttributeClass364 Object415`.
pub fn declared_class(line: &str) -> Option<(&str, &str)> {
    let digits = |text: &'_ str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (_, rest) = line.split_once("AttributeClass")?;
    let (class, rest) = rest.split_at(digits(rest));
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start().strip_prefix("Object")?;
    let goid = &rest[..digits(rest)];
    (!class.is_empty() && !goid.is_empty()).then_some((goid, class))
}

/// The non-empty lines, without a header.
fn rows<'t>(text: &'t str, header: &'static str) -> impl Iterator<Item = &'t str> {
    let held = lines(text).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let columns = move |(index, (_, line)): &(usize, (usize, &str))| {
        *index > 0 || !is_csv_header(line, header)
    };
    held.enumerate().filter(columns).map(|(_, (_, line))| line)
}

/// A property's name. The table format does not allow spaces, so they become `_`.
pub(super) fn property_name<'t>(name: &Cow<'t, str>) -> Cow<'t, str> {
    if name.contains(' ') { name.replace(' ', "_").into() } else { name.clone() }
}

/// A field's position in its line, or the position of the whole line if quotes were removed.
fn field_span(text: &str, line: &str, field: &str) -> Range<usize> {
    let is_part = line.as_bytes().as_ptr_range().contains(&field.as_ptr());
    span_of(text, if is_part || field.is_empty() { field } else { line })
}

/// A property in a class table.
struct Row<'t> {
    create: usize,
    name: Cow<'t, str>,
    kind: PropertyType,
    update: Option<usize>,
    span: Range<usize>,
}

fn class_row<'t>(text: &str, line: &'t str, problems: &mut Problems<'_>) -> Option<(u32, Row<'t>)> {
    let fields: Vec<Cow<'t, str>> = csv_fields(line).take(6).collect();
    let [class, create, name, size, update] = fields.as_slice() else {
        let message = format!("wanted \"{CLASS_HEADER}\", found {}", quoted(line));
        problems.error(span_of(text, line), message);
        return None;
    };
    let mut wrong = |part: &str, wanted: &str| {
        let message = format!("wanted {wanted}, found {}", quoted(part));
        problems.error(field_span(text, line, part), message);
    };
    let Ok(number) = class.parse::<u32>() else {
        wrong(class, "the number of a class");
        return None;
    };
    let Some(create) = create.parse().ok().filter(|index| *index < MAX_PROPERTIES) else {
        wrong(create, "an index from 0 to 1023");
        return None;
    };
    let name = property_name(name);
    if !is_name(&name) {
        wrong(&name, "the name of a property");
        return None;
    }
    let Some(kind) = size.parse().ok().and_then(|size| known::type_of(&name, size)) else {
        wrong(size, "a size from 1 to 255");
        return None;
    };
    let is_updated = update != "-1";
    let update = update.parse().ok().filter(|index| *index < MAX_PROPERTIES);
    if is_updated && update.is_none() {
        wrong(&fields[4], "an index from 0 to 1023, or -1");
        return None;
    }
    Some((number, Row { create, name, kind, update, span: span_of(text, line) }))
}

/// The class of a complete set of rows.
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
        if !names.insert(&*row.name) {
            let message = format!("class {number} already has a property named {}", row.name);
            problems.error(row.span.clone(), message);
            return None;
        }
    }
    let create = rows.iter().map(|row| (&*row.name, row.kind));
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
    let updated: Vec<_> = updated.into_iter().map(|(_, row)| (&*row.name, row.kind)).collect();
    Some(known::grouped(class, &updated))
}
