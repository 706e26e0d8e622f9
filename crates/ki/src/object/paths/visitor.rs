//! The visitor that collects the values.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Error, Result};

use super::{ALL, CLASS, PathValue, ValuePaths, index_of};
use crate::object::json::JsonWriter;
use crate::object::plain::Plain;
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, PropertyKind};

/// Collects the values at some paths from an object, or from several objects in succession. The
/// decoder skips everything else, as far as the stream's format allows: see [`Visitor::wants`].
#[derive(Debug)]
pub struct PathVisitor<'p> {
    paths: &'p ValuePaths,
    values: Vec<Option<PathValue>>,
    /// How the paths continue at a class: the index of a property, and the step after it.
    known: HashMap<(u32, Step), Option<(u32, Step)>, FixedState>,
    /// The steps that reach the next value, if they have already been looked up.
    steps: Vec<Step>,
    is_ready: bool,
    open: Vec<Open>,
    /// How the paths continue in the open objects and lists.
    ways: Vec<Way>,
    /// Objects and lists that are needed as a whole.
    whole: Vec<Whole>,
}

/// The rest of a path, after the part that has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Step {
    path: u32,
    /// The position at which the rest begins.
    rest: u32,
    /// Whether the rest of the path is in a list of which every element is needed.
    in_list: bool,
}

/// An object or list that is not complete yet.
#[derive(Debug)]
struct Open {
    /// The position of the first continuation of a path in it.
    ways: usize,
    /// The index of the next element.
    next: u32,
}

/// A step, and the index of the property or element at which it continues.
#[derive(Clone, Copy, Debug)]
struct Way {
    at: u32,
    step: Step,
}

/// Stands for a property whose first value has been found. If an object repeats a property, its
/// other values are ignored.
const USED: u32 = u32::MAX - 1;

/// An object or list that is being written as JSON.
#[derive(Debug)]
struct Whole {
    step: Step,
    json: JsonWriter<Vec<u8>>,
    /// The number of objects and lists around the value.
    depth: usize,
}

impl<'p> PathVisitor<'p> {
    /// Collects the values at these paths.
    #[must_use]
    pub fn new(paths: &'p ValuePaths) -> Self {
        Self {
            paths,
            values: vec![None; paths.len()],
            known: HashMap::default(),
            steps: Vec::new(),
            is_ready: false,
            open: Vec::new(),
            ways: Vec::new(),
            whole: Vec::new(),
        }
    }

    /// Takes the value at each path, or `None` if the last object has none. If an object repeats a
    /// property, its first value is used.
    pub fn take(&mut self) -> impl Iterator<Item = Option<PathValue>> {
        self.values.iter_mut().map(Option::take)
    }

    /// Forgets the last object. If decoding failed, the collected state is incomplete.
    fn reset(&mut self, slot: Slot<'_>) {
        if matches!(slot, Slot::Root) {
            self.values.fill(None);
            self.open.clear();
            self.ways.clear();
            self.whole.clear();
            self.is_ready = false;
        }
    }

    /// Looks up the steps that reach the value at a slot, unless they have already been looked up.
    #[inline]
    fn approach(&mut self, slot: Slot<'_>) {
        if core::mem::take(&mut self.is_ready) {
            return;
        }
        self.steps.clear();
        let Some(open) = self.open.last_mut() else {
            let paths = 0..u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
            self.steps.extend(paths.map(|path| Step { path, rest: 0, in_list: false }));
            return;
        };
        let ways = self.ways.get_mut(open.ways..).unwrap_or_default();
        match slot {
            Slot::Property(property) => {
                let here = ways.iter_mut().filter(|way| way.at == property.index());
                self.steps.extend(here.map(|way| {
                    way.at = USED;
                    way.step
                }));
            }
            Slot::Element(_) => {
                let here = ways.iter().filter(|way| way.at == open.next || way.at == ALL);
                self.steps.extend(here.map(|way| way.step));
                open.next += 1;
            }
            Slot::Root | Slot::Unknown(_) | Slot::Rest => {}
        }
    }

    fn rest(&self, step: Step) -> &'p str {
        self.paths.rest(step.path, step.rest)
    }

    /// How a step continues in an object.
    fn way(&mut self, class: &Class, step: Step) -> Option<Way> {
        let key = (class.index(), step);
        let found = match self.known.get(&key) {
            Some(found) => *found,
            None => {
                let found = continued(class, self.rest(step)).map(|(property, length)| {
                    let length = u32::try_from(length).unwrap_or(u32::MAX);
                    (property, Step { rest: step.rest.saturating_add(length), ..step })
                });
                self.known.insert(key, found);
                found
            }
        };
        found.map(|(at, step)| Way { at, step })
    }

    fn found(&mut self, step: Step, value: PathValue) {
        match self.values.get_mut(step.path as usize) {
            Some(Some(PathValue::List(list))) if step.in_list => list.push(value),
            Some(slot @ None) => *slot = Some(value),
            _ => {}
        }
    }

    /// Begins to write an object or list as JSON for the steps that end here.
    fn begin_whole(&mut self) {
        for step in &self.steps {
            if self.rest(*step).is_empty() {
                let json = JsonWriter::new(Vec::new(), Style::default());
                self.whole.push(Whole { step: *step, json, depth: self.open.len() });
            }
        }
    }

    fn write_whole<'c>(
        &mut self,
        slot: Slot<'c>,
        write: impl Fn(&mut JsonWriter<Vec<u8>>, Slot<'c>) -> Result<()>,
    ) -> Result<()> {
        for whole in &mut self.whole {
            let is_first = whole.depth == self.open.len();
            write(&mut whole.json, if is_first { nameless(slot) } else { slot })?;
        }
        Ok(())
    }

    /// Ends the innermost object or list.
    fn end(&mut self, write: impl Fn(&mut JsonWriter<Vec<u8>>) -> Result<()>) -> Result<()> {
        if let Some(open) = self.open.pop() {
            self.ways.truncate(open.ways);
        }
        self.whole.iter_mut().try_for_each(|whole| write(&mut whole.json))?;
        while self.whole.last().is_some_and(|whole| whole.depth == self.open.len())
            && let Some(Whole { step, json, .. }) = self.whole.pop()
        {
            self.found(step, PathValue::Json(text_of(json)?));
        }
        Ok(())
    }
}

impl<'c> Visitor<'c> for PathVisitor<'_> {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        self.reset(slot);
        self.approach(slot);
        self.begin_whole();
        self.write_whole(slot, |json, slot| json.begin_object(slot, class, id))?;
        self.open.push(Open { ways: self.ways.len(), next: 0 });
        for index in 0..self.steps.len() {
            let Some(step) = self.steps.get(index).copied() else { break };
            if let Some(way) = self.way(class, step) {
                self.ways.push(way);
            } else if self.rest(step) == CLASS {
                self.found(step, PathValue::Text((&*class.name).into()));
            }
        }
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.end(Visitor::end_object)
    }

    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        self.approach(slot);
        self.begin_whole();
        self.write_whole(slot, Visitor::begin_list)?;
        self.open.push(Open { ways: self.ways.len(), next: 0 });
        for step in &self.steps {
            let Some((at, length)) = index_of(self.rest(*step)) else { continue };
            if at == ALL
                && !step.in_list
                && let Some(value) = self.values.get_mut(step.path as usize)
            {
                // If a property is repeated, its first value is used.
                if value.is_some() {
                    continue;
                }
                *value = Some(PathValue::List(Vec::new()));
            }
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let rest = step.rest.saturating_add(length);
            let step = Step { rest, in_list: step.in_list || at == ALL, ..*step };
            self.ways.push(Way { at, step });
        }
        Ok(())
    }

    fn end_list(&mut self) -> Result<()> {
        self.end(Visitor::end_list)
    }

    fn value(&mut self, slot: Slot<'c>, leaf: Leaf<'_>) -> Result<()> {
        self.reset(slot);
        self.approach(slot);
        self.write_whole(slot, |json, slot| json.value(slot, leaf))?;
        for index in 0..self.steps.len() {
            let Some(step) = self.steps.get(index).copied() else { break };
            if let Some(value) = value_of(slot, leaf, self.rest(step))? {
                self.found(step, value);
            }
        }
        Ok(())
    }

    fn wants(&mut self, slot: Slot<'c>) -> bool {
        self.approach(slot);
        let is_wanted = !self.steps.is_empty() || !self.whole.is_empty();
        self.is_ready = is_wanted;
        is_wanted
    }
}

/// The property at which a path continues in an object, and the length of its part of the path.
fn continued(class: &Class, path: &str) -> Option<(u32, usize)> {
    let ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().find_map(|end| {
        let (name, rest) = path.split_at(end);
        let property = class.property(name)?;
        let is_fitting = match (property.is_list(), property.kind()) {
            _ if rest.is_empty() => true,
            (true, _) => rest.starts_with('['),
            (false, PropertyKind::Object | PropertyKind::Tuple(_)) => rest.starts_with('.'),
            _ => false,
        };
        let length = end + usize::from(rest.starts_with('.'));
        is_fitting.then_some((property.index(), length))
    })
}

/// A value or a part of it. Returns `None` if the path does not lead to a value.
fn value_of(slot: Slot<'_>, leaf: Leaf<'_>, rest: &str) -> Result<Option<PathValue>> {
    if rest.is_empty() {
        match leaf {
            // In JSON, numbers that are not finite are written as text.
            Leaf::F32(value) if !value.is_finite() => {
                return Ok(Some(PathValue::Real(value.into())));
            }
            Leaf::F64(value) if !value.is_finite() => return Ok(Some(PathValue::Real(value))),
            _ => {}
        }
        if let Some(plain) = Plain::of(slot, leaf) {
            return Ok(Some(plain.into()));
        }
    }
    // Only these values have parts.
    let has_parts = matches!(leaf, Leaf::Tuple(..) | Leaf::Raw(_) | Leaf::Object { .. });
    if !rest.is_empty() && !has_parts {
        return Ok(None);
    }
    let mut json = JsonWriter::new(Vec::new(), Style::default());
    json.value(nameless(slot), leaf)?;
    let text = text_of(json)?;
    let json = parse(&text).map_err(|error| Error::invalid(error.to_string()))?;
    if rest.is_empty() && matches!(json, Json::Array(_) | Json::Object(_)) {
        // If they were written again, numbers could look different.
        return Ok(Some(PathValue::Json(text)));
    }
    Ok(part(&json, rest).map(PathValue::from))
}

/// The part of a tuple at a path.
fn part<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    if path.is_empty() {
        return Some(json);
    }
    if let Some((index, length)) = index_of(path) {
        return part(json.as_array()?.get(index as usize)?, path.get(length..)?);
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    part(json.get(name)?, rest.strip_prefix('.').unwrap_or(rest))
}

/// The slot of a value that is written without its name.
fn nameless(slot: Slot<'_>) -> Slot<'_> {
    slot.property().map_or(Slot::Root, Slot::Element)
}

fn text_of(json: JsonWriter<Vec<u8>>) -> Result<Box<str>> {
    let text = String::from_utf8(json.finish()?);
    text.map(String::into_boxed_str).map_err(|error| Error::invalid(error.to_string()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::object::{Object, ObjectCodec, ObjectOptions};
    use crate::schema::classes::Classes;

    pub(in crate::object::paths) const LIST: &str = r#"{"class A": {"hash": 7, "properties": {
        "m_n": {"type": "unsigned int", "id": 0, "flags": 24},
        "m_text": {"type": "std::string", "id": 1, "flags": 24},
        "m_place": {"type": "class Vector3D", "id": 2, "flags": 24},
        "m_kind": {"type": "enum K", "id": 3, "flags": 24, "enum_options": {"ONE": 1}},
        "m_id.m_full": {"type": "int", "id": 4, "flags": 24},
        "m_id": {"type": "int", "id": 5, "flags": 24},
        "m_bits": {"type": "bui5", "id": 6, "flags": 24, "container": "List"},
        "m_one": {"type": "class A*", "id": 7, "flags": 24},
        "m_all": {"type": "class SharedPointer<class A>", "id": 8, "flags": 24,
            "container": "List"}}}}"#;

    fn object(number: u32, inside: &str) -> String {
        format!(
            r#"{{"$class":"class A","m_n":{number},"m_text":"t{number}","m_place":{{"x":0.1,"y":2.0,
            "z":3.5}},"m_kind":"ONE","m_id.m_full":-5,"m_id":6,"m_bits":[1,2,3]{inside}}}"#
        )
    }

    fn values(bytes: &[u8], options: &ObjectOptions, paths: &[&str]) -> Vec<Option<PathValue>> {
        let (classes, paths) = (Classes::of_json(LIST), ValuePaths::parse(paths.iter().copied()));
        let paths = paths.unwrap();
        let mut visitor = PathVisitor::new(&paths);
        let codec = ObjectCodec::new(&classes, options.clone());
        // The second time, the visitor already knows how the paths continue.
        codec.decode_all(bytes, &mut visitor).unwrap();
        let first: Vec<_> = visitor.take().collect();
        codec.decode_all(bytes, &mut visitor).unwrap();
        assert!(visitor.take().eq(first.iter().cloned()));
        first
    }

    fn encoded(json: &str, options: &ObjectOptions) -> Vec<u8> {
        let classes = Classes::of_json(LIST);
        let object = Object::parse_json(&classes, json).unwrap().complete(&classes).unwrap();
        let codec = ObjectCodec::new(&classes, options.clone());
        codec.encode(&object, codec.header()).unwrap()
    }

    #[test]
    fn paths_lead_to_the_same_values_in_all_forms() {
        let inside = object(3, r#","m_one":null,"m_all":[null]"#);
        let more = format!(r#","m_one":{inside},"m_all":[{inside},null,{}]"#, object(4, ""));
        let json = object(2, &more);
        let text = |text: &str| Some(PathValue::Text(text.into()));
        let numbers = |numbers: &[u64]| {
            Some(PathValue::List(numbers.iter().map(|it| PathValue::Unsigned(*it)).collect()))
        };
        let cases = [
            ("m_n", Some(PathValue::Unsigned(2))),
            ("m_text", text("t2")),
            ("m_place.x", Some(PathValue::Real(0.1))),
            ("m_place", Some(PathValue::Json(r#"{"x":0.1,"y":2.0,"z":3.5}"#.into()))),
            ("m_kind", text("ONE")),
            ("m_id.m_full", Some(PathValue::Signed(-5))),
            ("m_id", Some(PathValue::Signed(6))),
            ("m_bits", Some(PathValue::Json("[1,2,3]".into()))),
            ("m_bits[1]", Some(PathValue::Unsigned(2))),
            ("m_bits[3]", None),
            ("m_bits[*]", numbers(&[1, 2, 3])),
            ("m_one.m_text", text("t3")),
            ("m_one.m_all", Some(PathValue::Json("[null]".into()))),
            ("m_one.m_one", Some(PathValue::Null)),
            ("m_one.m_one.m_n", None),
            ("$class", text("class A")),
            ("m_one.$class", text("class A")),
            ("m_all[2].m_n", Some(PathValue::Unsigned(4))),
            ("m_all[1]", Some(PathValue::Null)),
            ("m_all[1].m_n", None),
            ("m_all[*].m_n", numbers(&[3, 4])),
            ("m_all[*].m_bits[0]", numbers(&[1, 1])),
            ("m_all[*].m_bits[*]", numbers(&[1, 2, 3, 1, 2, 3])),
            ("m_all[*].m_absent", numbers(&[])),
            ("m_n[*]", None),
            ("m_n.x", None),
            ("m_text.m_n", None),
            ("m_absent", None),
            ("m_place.w", None),
        ];
        for (deep, lenient) in [(false, false), (true, false), (true, true)] {
            let options = ObjectOptions { deep, lenient, ..ObjectOptions::default() };
            let bytes = encoded(&json, &options);
            let paths = cases.each_ref().map(|(path, _)| *path);
            let together = values(&bytes, &options, &paths);
            for ((path, expected), found) in cases.iter().zip(together) {
                assert_eq!(found, *expected, "{path}, deep: {deep}, lenient: {lenient}");
                assert_eq!(values(&bytes, &options, &[path]), [found], "{path} alone");
            }
        }
        let options = ObjectOptions { deep: true, ..ObjectOptions::default() };
        let whole = values(&encoded(&json, &options), &options, &["m_all[2]"]);
        let Some([Some(PathValue::Json(found))]) = whole.first_chunk::<1>() else { panic!() };
        let classes = Classes::of_json(LIST);
        let four = Object::parse_json(&classes, &object(4, "")).unwrap();
        let four = four.complete(&classes).unwrap().to_json(&classes).unwrap();
        assert_eq!(**found, *four);
    }

    #[test]
    fn what_no_path_needs_is_skipped() {
        let json = object(2, &format!(r#","m_all":[{},{}]"#, object(3, ""), object(4, "")));
        for lenient in [false, true] {
            let options = ObjectOptions { deep: true, lenient, ..ObjectOptions::default() };
            let mut bytes = encoded(&json, &options);
            // The stated length of the text exceeds the bytes.
            let at = bytes.windows(4).position(|it| it == b"\x02\0t3").unwrap();
            bytes[at] = 99;
            let outcome = values_or_error(&bytes, &options, "m_all[1].m_n");
            assert_eq!(outcome, Ok([Some(PathValue::Unsigned(4))].into()), "lenient: {lenient}");
            let is_damaged = values_or_error(&bytes, &options, "m_all[0].m_text").is_err();
            assert_eq!(is_damaged, !lenient);
        }
    }

    /// A property of a deep object.
    fn property(kind: &str, name: &str, value: &[u8]) -> Vec<u8> {
        let hash = crate::property_hash(kind.as_bytes(), name.as_bytes());
        let size = u32::try_from(value.len() * 8 + 64).unwrap();
        [&size.to_le_bytes()[..], &hash.to_le_bytes(), value].concat()
    }

    /// A deep object of the class.
    fn deep(properties: &[Vec<u8>]) -> Vec<u8> {
        let properties = properties.concat();
        let size = u32::try_from(properties.len() * 8 + 32).unwrap();
        [&7_u32.to_le_bytes()[..], &size.to_le_bytes(), &properties].concat()
    }

    #[test]
    fn the_first_value_of_a_repeated_property_is_used() {
        let number = |number: u32| property("unsigned int", "m_n", &number.to_le_bytes());
        let one = |object: &[u8]| property("class A*", "m_one", object);
        let element = deep(&[number(5), number(6)]);
        let list = [&1_u32.to_le_bytes()[..], &element].concat();
        let all = property("class SharedPointer<class A>", "m_all", &list);
        let bytes = deep(&[
            one(&deep(&[])),
            one(&deep(&[number(4)])),
            number(1),
            number(2),
            all.clone(),
            all,
        ]);
        let list = |number| Some(PathValue::List(vec![PathValue::Unsigned(number)]));
        for lenient in [false, true] {
            let options = ObjectOptions { deep: true, lenient, ..ObjectOptions::default() };
            let found = values(&bytes, &options, &["m_n", "m_one.m_n", "m_one", "m_all[*].m_n"]);
            let whole = Some(PathValue::Json(r#"{"$class":"class A"}"#.into()));
            assert_eq!(found, [Some(PathValue::Unsigned(1)), None, whole, list(5)]);
        }
    }

    fn values_or_error(
        bytes: &[u8],
        options: &ObjectOptions,
        path: &str,
    ) -> Result<Vec<Option<PathValue>>> {
        let (classes, paths) = (Classes::of_json(LIST), ValuePaths::parse([path])?);
        let mut visitor = PathVisitor::new(&paths);
        ObjectCodec::new(&classes, options.clone()).decode_all(bytes, &mut visitor)?;
        Ok(visitor.take().collect())
    }
}
