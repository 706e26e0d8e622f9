//! Single fields, read in place.

mod list;
mod location;

use core::{fmt, slice};

use worldwire_core::{Error, Result};

use super::bounds;
use super::content::Content;
use super::decode::segment;
use super::fault::Fault;
use super::note::Notes;
use super::scalar::{ScalarValue, read_scalar};
use super::steps::{Step, path_steps};
use super::{Head, HeaderForm};
use crate::schema::plan::{Field, FieldKind, Plan, Spot, TextPlace};
use crate::types::{Scalar, TextView};
use location::RecordLocation;

pub use list::ListView;

/// A message whose fields are read on request, without copying.
///
/// Creating a view checks the message's length and the fixed part of its root record. Offsets are
/// checked when they are followed, so no request can read outside the message. Parts that are never
/// requested are not checked; use [`Plan::check`] for the whole message. A list whose elements have
/// texts, bytes or lists is validated as a whole when its first element is read: elements can share
/// those, and nothing else would bound the work of walking them all.
///
/// Few definitions have a fixed-size field after a body of variable length. To find such a field,
/// the bodies before it are read.
///
/// Records and lists borrow from the view (`'v`), texts and bytes from the message (`'d`), and
/// names from the plan (`'p`). Texts, bytes and names can outlive the view.
///
/// An error has the path of the field, relative to the record that was accessed: `members[3].name`.
/// If a body before the field is faulty, the error has that body's path in the message.
///
/// ```
/// # use worldwire_tera::message::{HeaderForm, Item, View};
/// # use worldwire_tera::schema::{Definition, FileName, ParseOptions};
/// # let file = FileName::parse("S_GREETING.1.def").unwrap();
/// # let text = "string name\nint32 level\n";
/// # let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
/// let message = [14, 0, 1, 0, 10, 0, 65, 0, 0, 0, b'E', 0, 0, 0];
/// let view = View::new(definition.plan(), &message, HeaderForm::Plain)?;
/// let name = view.fields().get("name")?.and_then(Item::text).expect("a text");
/// assert_eq!(name.to_string(), "E");
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'d, 'p> {
    plan: &'p Plan,
    data: &'d [u8],
    /// Its fields, and whether the whole message has been validated.
    root: RecordLocation,
}

/// The fields of a message, element or object, seen through a [`View`].
// Two words, like every variant of `Item`, so that it stays in registers until it is examined.
#[derive(Clone, Copy)]
pub struct RecordView<'v, 'd, 'p> {
    view: &'v View<'d, 'p>,
    place: RecordLocation,
}

/// The contents of a field, seen through a [`View`].
pub type Item<'v, 'd, 'p> = Content<'d, ListView<'v, 'd, 'p>, RecordView<'v, 'd, 'p>>;

impl<'d, 'p> View<'d, 'p> {
    /// Checks the length of a message and the fixed part of its root record.
    #[inline]
    pub fn new(plan: &'p Plan, message: &'d [u8], form: HeaderForm) -> Result<Self> {
        Head::check(message, form).map_err(|error| plan.named(error))?;
        let (root, start) = (plan.scope(plan.root), form.bytes());
        let view =
            Self { plan, data: message, root: RecordLocation::new(&root.fields, start, false) };
        view.need(start, root.size).map_err(|error| plan.named(error))?;
        Ok(view)
    }

    /// Validates a whole message and returns a view of it with notes. No request to this view
    /// fails, and no list is validated again.
    #[inline]
    pub fn checked(plan: &'p Plan, message: &'d [u8], form: HeaderForm) -> Result<(Self, Notes)> {
        let notes = plan.check(message, form)?;
        let fields = &plan.scope(plan.root).fields;
        Ok((
            Self { plan, data: message, root: RecordLocation::new(fields, form.bytes(), true) },
            notes,
        ))
    }

    /// The fields of the message.
    #[inline]
    #[must_use]
    pub fn fields(&self) -> RecordView<'_, 'd, 'p> {
        RecordView { view: self, place: self.root }
    }

    /// The first byte that an offset may point to.
    #[inline]
    fn floor(&self) -> usize {
        self.root.start() + self.plan.words as usize
    }

    #[inline]
    fn need(&self, start: usize, size: u32) -> Result<()> {
        if start + size as usize <= self.data.len() {
            return Ok(());
        }
        let found = format!("{} of {size} bytes", self.data.len().saturating_sub(start));
        Err(Fault::Truncated.malformed(start, found))
    }

    #[inline]
    fn word(&self, at: usize) -> Result<usize> {
        bounds::word(self.data, at)
    }

    #[inline]
    fn check(&self, at: usize, place: usize) -> Result<()> {
        bounds::check_offset(self.data, self.floor(), at, place)
    }
}

impl<'v, 'd, 'p> RecordView<'v, 'd, 'p> {
    /// The field with this name; `None` if the definition has no such field.
    #[inline]
    pub fn get(&self, name: &str) -> Result<Option<Item<'v, 'd, 'p>>> {
        match self.slot(name) {
            Some(slot) => self.at(slot),
            None => Ok(None),
        }
    }

    /// The field at a path of names and indices, such as `members[2].name`. To find an element, the
    /// ones before it are read.
    pub fn find(&self, path: &str) -> Result<Option<Item<'v, 'd, 'p>>> {
        let mut found = Item::Record(*self);
        for step in path_steps(path) {
            let next = match (found, step) {
                (Item::Record(record), Some(Step::Name(name))) => record.get(name)?,
                (Item::List(list), Some(Step::Index(index))) => list.get(index)?,
                _ => None,
            };
            let Some(next) = next else { return Ok(None) };
            found = next;
        }
        Ok(Some(found))
    }

    /// The index of a field in the record, for [`Self::at`]. It is the same as in [`Plan::fields`],
    /// [`Plan::element`] or [`Plan::fields_of`], so it holds for all messages of a definition.
    #[inline]
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.fields().iter().position(|field| field.name() == name)
    }

    /// The field at an index in the record; `None` if there are fewer fields.
    #[inline(always)]
    pub fn at(&self, slot: usize) -> Result<Option<Item<'v, 'd, 'p>>> {
        if slot >= self.place.count() {
            return Ok(None);
        }
        match self.view.plan.fields.get(self.place.from() + slot) {
            Some(field) => self.item(field).map(Some),
            None => Ok(None),
        }
    }

    /// All fields with their names.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Fields<'v, 'd, 'p> {
        Fields { record: *self, fields: self.fields().iter() }
    }

    #[inline]
    fn fields(&self) -> &'p [Field] {
        let (from, count) = (self.place.from(), self.place.count());
        self.view.plan.fields.get(from..from + count).unwrap_or_default()
    }

    #[inline(always)]
    fn item(&self, field: &'p Field) -> Result<Item<'v, 'd, 'p>> {
        match self.scalar(field) {
            Some(value) => Ok(Item::Scalar(value)),
            None => self.body(field),
        }
    }

    /// Reads a fixed-size field in the first segment of its scope, the most frequent case.
    #[inline(always)]
    fn scalar(&self, field: &Field) -> Option<ScalarValue> {
        match field.kind() {
            FieldKind::Scalar { scalar, spot: Spot { segment: 0, offset } } => {
                let bytes = self.view.data.get(self.place.start() + usize::from(*offset)..)?;
                read_scalar(*scalar, bytes)
            }
            _ => None,
        }
    }

    /// Reads any other field and adds its name to errors.
    // Inlined so that errors and pieces stay in registers: writing a result to memory in one
    // function and reading parts of it in another would stall.
    #[inline(always)]
    fn body(&self, field: &'p Field) -> Result<Item<'v, 'd, 'p>> {
        let Self { view, place } = *self;
        let list = || Ok(Item::List(ListView::of(Self { view, place: place.of_one(field.index) })));
        let error = match field.kind() {
            FieldKind::Object(inner) => {
                return Ok(Item::Record(Self { view, place: place.of(inner) }));
            }
            FieldKind::Row(_) => return list(),
            // The first segment was checked when the view was created.
            FieldKind::Array {
                count: Spot { segment: 0, .. },
                offset: Spot { segment: 0, .. },
                ..
            } => return list(),
            FieldKind::Array { count, offset, .. } => match self.far_words(*count, *offset) {
                Ok(_) => return list(),
                Err(error) => error,
            },
            FieldKind::Text { place } => match self.text(*place) {
                Ok(text) => return Ok(Item::Text(TextView::new(text.of(view.data)))),
                Err(error) => error,
            },
            FieldKind::Bytes { offset, count } => match self.bytes(*count, *offset) {
                Ok(bytes) => return Ok(Item::Bytes(bytes.of(view.data))),
                Err(error) => error,
            },
            FieldKind::Scalar { scalar, spot } => match self.far_scalar(*scalar, *spot) {
                Ok(value) => return Ok(Item::Scalar(value)),
                Err(error) => error,
            },
        };
        Err(named(error, field))
    }

    /// The offset of a spot in its scope.
    #[inline]
    fn at_spot(&self, spot: Spot) -> Result<usize> {
        let begin = match spot.segment {
            0 => self.place.start(),
            further => self.segment(further)?,
        };
        Ok(begin + usize::from(spot.offset))
    }

    #[cold]
    fn segment(&self, further: u16) -> Result<usize> {
        let View { plan, data, .. } = *self.view;
        // The scope of the requested field.
        let scope = plan.scope_around(self.place.from());
        let found = segment(plan, data, self.view.floor(), scope, self.place.start(), further);
        // The error is about another field. Its scope is the root: lists whose elements have
        // further segments are validated as a whole, before any element is read.
        found.map_err(Error::absolute)
    }

    #[cold]
    fn far_scalar(&self, scalar: Scalar, spot: Spot) -> Result<ScalarValue> {
        let at = self.at_spot(spot)?;
        let value = read_scalar(scalar, self.view.data.get(at..).unwrap_or_default());
        value.ok_or_else(|| Fault::Truncated.malformed(at, "its end"))
    }

    #[inline(never)]
    fn text(&self, place: TextPlace) -> Result<Piece> {
        let view = self.view;
        let begin = match place {
            TextPlace::Offset(offset) => {
                let place = self.at_spot(offset)?;
                let at = view.word(place)?;
                view.check(at, place)?;
                at
            }
            TextPlace::Here(spot) => self.at_spot(spot)?,
        };
        Ok(Piece::new(begin, bounds::text(view.data, begin)?.len()))
    }

    #[inline(never)]
    fn bytes(&self, count: Spot, offset: Spot) -> Result<Piece> {
        let view = self.view;
        let (count, place) = (self.at_spot(count)?, self.at_spot(offset)?);
        let length = view.word(count)?;
        if length == 0 {
            return Ok(Piece::new(0, 0));
        }
        let begin = view.word(place)?;
        bounds::bytes(view.data, view.floor(), (length, count), (begin, place))?;
        Ok(Piece::new(begin, length))
    }

    /// The count of an array, the offset of its first element, and where that offset is stored.
    #[inline]
    fn words(&self, count: Spot, offset: Spot) -> (u16, u16, u16) {
        if count.segment != 0 || offset.segment != 0 {
            return self.far_words(count, offset).unwrap_or_default();
        }
        let word = |at: usize| match self.view.data.get(at..at + 2) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]),
            _ => 0,
        };
        let start = self.place.start();
        let link = start + usize::from(offset.offset);
        (word(start + usize::from(count.offset)), word(link), narrow(link))
    }

    #[cold]
    fn far_words(&self, count: Spot, offset: Spot) -> Result<(u16, u16, u16)> {
        let (count, link) = (self.at_spot(count)?, self.at_spot(offset)?);
        let (count, first) = (self.view.word(count)?, self.view.word(link)?);
        Ok((narrow(count), narrow(first), narrow(link)))
    }
}

/// The location of text or a byte string.
// 16 bits each, so that a `Result` of it still fits in two registers.
#[derive(Clone, Copy)]
struct Piece {
    at: u16,
    length: u16,
}

impl Piece {
    #[inline]
    fn new(at: usize, length: usize) -> Self {
        Self { at: narrow(at), length: narrow(length) }
    }

    #[inline]
    fn of(self, data: &[u8]) -> &[u8] {
        let (at, length) = (usize::from(self.at), usize::from(self.length));
        data.get(at..at + length).unwrap_or_default()
    }
}

/// Adds the name of a field to an error; elements of lists have none, so their index is added
/// instead.
#[cold]
fn named(error: Error, field: &Field) -> Error {
    match field.name() {
        "" => error,
        name => error.inside(name),
    }
}

impl<'v, 'd, 'p> IntoIterator for RecordView<'v, 'd, 'p> {
    type Item = (&'p str, Result<Item<'v, 'd, 'p>>);
    type IntoIter = Fields<'v, 'd, 'p>;

    #[inline]
    fn into_iter(self) -> Fields<'v, 'd, 'p> {
        self.iter()
    }
}

/// Formats its fields.
impl fmt::Debug for View<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields().fmt(f)
    }
}

/// Formats its fields.
impl fmt::Debug for RecordView<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}

/// Formats the remaining fields.
impl fmt::Debug for Fields<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

/// The fields of a [`RecordView`] with their names.
#[derive(Clone)]
pub struct Fields<'v, 'd, 'p> {
    record: RecordView<'v, 'd, 'p>,
    fields: slice::Iter<'p, Field>,
}

impl<'v, 'd, 'p> Iterator for Fields<'v, 'd, 'p> {
    type Item = (&'p str, Result<Item<'v, 'd, 'p>>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        Some((field.name(), self.record.item(field)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.fields.size_hint()
    }
}

impl ExactSizeIterator for Fields<'_, '_, '_> {}

/// Narrows an offset in a message, which has at most 65,535 bytes; nothing is at the largest value.
#[inline]
fn narrow(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Definition;

    const MESSAGE: &[u8] = &[
        0x26, 0, 1, 0, 2, 0, 0x0a, 0, 7, 0, // the fixed part
        0x0a, 0, 0x18, 0, 0x10, 0, b'a', 0, b'b', 0, b'c', 0, 0, 0, // an element
        0x18, 0, 0, 0, 0x1e, 0, b'd', 0, b'e', 0, b'f', 0, 0, 0, // and the last one
    ];

    fn definition() -> Definition {
        let text = "int16 number\narray list\n- string name\n";
        Definition::of_text(text)
    }

    #[test]
    fn names_and_texts_outlive_the_view() {
        let definition = definition();
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let view = View::new(definition.plan(), MESSAGE, HeaderForm::Plain).unwrap();
            for (name, item) in view.fields() {
                names.push(name);
                let Item::List(list) = item.unwrap() else { continue };
                for element in &list {
                    let Item::Record(element) = element.unwrap() else { panic!() };
                    let Some(Item::Text(text)) = element.get("name").unwrap() else { panic!() };
                    texts.push(text);
                }
            }
        }
        assert_eq!(names, ["number", "list", "number", "list"]);
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["abc", "def", "abc", "def"]);
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let definition = definition();
        let view = View::new(definition.plan(), MESSAGE, HeaderForm::Plain).unwrap();
        let find = |path: &str| view.fields().find(path).unwrap();
        assert!(
            matches!(find("list[1].name"), Some(Item::Text(text)) if text.to_string() == "def")
        );
        assert!(matches!(find("number"), Some(Item::Scalar(value)) if value.signed() == Some(7)));
        for nothing in ["list[2]", "list.name", "number[0]", "lists", "list[x]", "list[0].name.x"] {
            assert!(find(nothing).is_none(), "{nothing}");
        }
        // The last element names an offset that is not its own.
        let mut damaged = MESSAGE.to_vec();
        damaged[0x18] = 0x17;
        let view = View::new(definition.plan(), &damaged, HeaderForm::Plain).unwrap();
        let error = view.fields().find("list[1].name").unwrap_err().to_string();
        assert!(error.starts_with("list[1] at byte 24"), "{error}");
    }

    /// To find `x`, the text before it is read. Its path does not continue that of `x`.
    #[test]
    fn an_error_before_the_field_has_its_own_path() {
        let text = "object o\n- object p\n- offset s\n- string s\n- object p\n- - bool x\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let message = [9, 0, 1, 0, 5, 0, 0, 0, 1];
        let wanted = plan.read(&message, HeaderForm::Plain).unwrap_err();
        let view = View::new(plan, &message, HeaderForm::Plain).unwrap();
        let found = view.fields().find("o.p.x").unwrap_err();
        assert_eq!(found.path_text(), "o.s");
        // Callers that walk the view add the names of the enclosing objects.
        let walked = found.inside("p").inside("o").about("S_A.1");
        assert_eq!(walked.to_string(), wanted.to_string());
    }

    #[test]
    fn debug_output_shows_fields_and_not_the_plan() {
        let definition = definition();
        let view = View::new(definition.plan(), MESSAGE, HeaderForm::Plain).unwrap();
        let wanted = "{\"number\": Ok(Scalar(Signed(7))), \
                      \"list\": Ok(List([Ok(Record({\"name\": Ok(Text(\"abc\"))})), \
                      Ok(Record({\"name\": Ok(Text(\"def\"))}))]))}";
        assert_eq!(format!("{view:?}"), wanted);
    }
}
