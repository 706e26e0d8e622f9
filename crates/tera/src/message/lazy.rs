//! Single fields, read in place.

use core::ops::Range;

use worldwire_core::Result;

use super::bounds::{self, Budget, Chain};
use super::decode::{check_list, floor, segment};
use super::fault::Fault;
use super::oddity::Oddities;
use super::scalar::{ScalarValue, read_scalar};
use super::visit::{Visit, VisitSink};
use super::{HeaderForm, read_front, run_fields};
use crate::schema::plan::{Field, FieldKind, Plan, Spot, TextPlace};
use crate::types::TextView;
use crate::types::text::text_length;

/// A message whose fields are read when somebody asks, without copying.
///
/// Its length and the fixed part of every record are checked when the view of it is made, an offset
/// when it is followed: nothing that is asked can lead outside the message. What nobody asks for
/// nobody checks; [`Plan::check`] does that for the whole message. A list whose elements have texts,
/// bytes or lists is checked as a whole when its first element is read: elements may share those,
/// and nothing else would bound what walking through all of them takes.
///
/// To find a field of fixed size behind a body of variable length, which few definitions have, the
/// bodies before it are read.
///
/// ```
/// # use worldwire_tera::message::{HeaderForm, Item, View};
/// # use worldwire_tera::schema::{Definition, FileName, ParseOptions};
/// # let file = FileName::parse("S_GREETING.1.def").unwrap();
/// # let text = "string name\nint32 level\n";
/// # let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
/// let message = [14, 0, 1, 0, 10, 0, 65, 0, 0, 0, b'E', 0, 0, 0];
/// let view = View::new(definition.plan(), &message, HeaderForm::Plain)?;
/// let Some(Item::Text(name)) = view.fields().get("name")? else { panic!("no name") };
/// assert_eq!(name.to_string(), "E");
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'d, 'p> {
    plan: &'p Plan,
    data: &'d [u8],
    // Items are moved about, and the smaller they are the better: all places are 16 bits wide.
    floor: u16,
    start: u16,
    /// Whether all that it leads to was checked.
    whole: bool,
}

/// The fields of a message, element or object.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'d, 'p> {
    view: View<'d, 'p>,
    fields: &'p Range<u32>,
    /// Its scope, and where that begins.
    scope: u32,
    start: u16,
}

/// The elements of an array, or the values of a row.
#[derive(Clone, Copy, Debug)]
pub struct ListView<'d, 'p> {
    view: View<'d, 'p>,
    count: u16,
    place: ListPlace<'p>,
}

#[derive(Clone, Copy, Debug)]
enum ListPlace<'p> {
    /// The offset of the first element, where count and offset stand, and the scope of an element.
    Array {
        first: u16,
        words: (u16, u16),
        scope: u32,
    },
    Row {
        fields: &'p Range<u32>,
        within: u32,
        start: u16,
    },
}

/// A field that was read.
#[derive(Clone, Copy, Debug)]
pub enum Item<'d, 'p> {
    /// A value of fixed size.
    Scalar(ScalarValue),
    /// A text.
    Text(TextView<'d>),
    /// Bytes.
    Bytes(&'d [u8]),
    /// An array or row.
    List(ListView<'d, 'p>),
    /// An object or element.
    Record(RecordView<'d, 'p>),
}

impl<'d, 'p> View<'d, 'p> {
    /// Checks the length of a message and the fixed part of its root.
    ///
    /// # Errors
    /// Malformed, when they are wrong.
    #[inline]
    pub fn new(plan: &'p Plan, message: &'d [u8], form: HeaderForm) -> Result<Self> {
        read_front(message, form)?;
        let (floor, start) = (narrow(floor(plan, form)), narrow(form.bytes()));
        let view = Self { plan, data: message, floor, start, whole: false };
        view.need(form.bytes(), plan.scope(plan.root).size)?;
        Ok(view)
    }

    /// Checks a whole message, and gives the view of it together with what is odd. Nothing that is
    /// asked of this view can fail, and no list is checked once more.
    ///
    /// # Errors
    /// As [`Plan::decode`].
    #[inline]
    pub fn checked(
        plan: &'p Plan,
        message: &'d [u8],
        form: HeaderForm,
    ) -> Result<(Self, Oddities)> {
        let notes = plan.check(message, form)?;
        let (floor, start) = (narrow(floor(plan, form)), narrow(form.bytes()));
        Ok((Self { plan, data: message, floor, start, whole: true }, notes))
    }

    /// Tells a visitor every field, which takes less than asking for one after the other, and checks
    /// the whole message. See [`Plan::visit`].
    ///
    /// # Errors
    /// As [`Plan::decode`].
    pub fn visit(&self, visitor: &mut impl Visit<'d, 'p>) -> Result<Oddities> {
        let integrity = usize::from(self.start) == HeaderForm::Integrity.bytes();
        let form = if integrity { HeaderForm::Integrity } else { HeaderForm::Plain };
        Ok(run_fields(self.plan, self.data, form, &mut VisitSink(visitor))?.notes)
    }

    /// The fields of the message.
    #[inline]
    #[must_use]
    pub fn fields(&self) -> RecordView<'d, 'p> {
        let fields = &self.plan.scope(self.plan.root).fields;
        RecordView { view: *self, fields, scope: self.plan.root, start: self.start }
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
    fn offset(&self, place: usize) -> Result<usize> {
        let at = self.word(place)?;
        self.check(at, place)?;
        Ok(at)
    }

    #[inline]
    fn check(&self, at: usize, place: usize) -> Result<()> {
        bounds::check_offset(self.data, self.floor.into(), at, place)
    }

    /// Reads a field of a scope that begins at `start`.
    #[inline(always)]
    fn item(&self, field: &'p Field, scope: u32, start: u16) -> Result<Item<'d, 'p>> {
        match self.scalar(field, start) {
            Some(value) => Ok(Item::Scalar(value)),
            None => self.named_item(field, scope, start),
        }
    }

    /// Reads a field of fixed size in the first segment of a scope. Most fields are, and it takes few
    /// steps.
    #[inline(always)]
    fn scalar(&self, field: &Field, start: u16) -> Option<ScalarValue> {
        match field.kind() {
            FieldKind::Scalar { scalar, spot: Spot { segment: 0, offset } } => {
                let bytes = self.data.get(usize::from(start) + usize::from(*offset)..)?;
                read_scalar(*scalar, bytes)
            }
            _ => None,
        }
    }

    /// Reads any field, and puts its name to an error.
    #[inline(never)]
    fn named_item(&self, field: &'p Field, scope: u32, start: u16) -> Result<Item<'d, 'p>> {
        self.any_item(field, scope, start).map_err(|error| match field.name() {
            // Its index is put to it.
            "" => error,
            name => error.inside(name),
        })
    }

    fn any_item(&self, field: &'p Field, scope: u32, start: u16) -> Result<Item<'d, 'p>> {
        let at = |spot: Spot| {
            let (start, floor) = (start.into(), self.floor.into());
            let begin = match spot.segment {
                0 => start,
                further => segment(self.plan, self.data, floor, scope, start, further)?,
            };
            Ok(begin + usize::from(spot.offset))
        };
        match field.kind() {
            FieldKind::Scalar { scalar, spot } => {
                let at = at(*spot)?;
                let value = read_scalar(*scalar, self.data.get(at..).unwrap_or_default());
                let value = value.ok_or_else(|| Fault::Truncated.malformed(at, "its end"))?;
                Ok(Item::Scalar(value))
            }
            FieldKind::Text { place } => {
                let begin = match place {
                    TextPlace::Offset(offset) => self.offset(at(*offset)?)?,
                    TextPlace::Here(spot) => at(*spot)?,
                };
                let rest = self.data.get(begin..).unwrap_or_default();
                let Some(length) = text_length(rest) else {
                    let found = format!("{} bytes", rest.len());
                    return Err(Fault::UnterminatedString.malformed(begin, found));
                };
                Ok(Item::Text(TextView::new(rest.get(..length).unwrap_or_default())))
            }
            FieldKind::Bytes { offset, count } => {
                let (count, place) = (at(*count)?, at(*offset)?);
                let length = self.word(count)?;
                if length == 0 {
                    return Ok(Item::Bytes(&[]));
                }
                let begin = self.word(place)?;
                if begin != self.data.len() {
                    self.check(begin, place)?;
                }
                let bytes = self.data.get(begin..begin + length);
                bytes.map(Item::Bytes).ok_or_else(|| {
                    let found = format!("{length} bytes at {begin} of {}", self.data.len());
                    Fault::BytesOutOfRange.malformed(count, found)
                })
            }
            FieldKind::Array { count, offset, scope, .. } => {
                let words = (at(*count)?, at(*offset)?);
                let count = narrow(self.word(words.0)?);
                let first = narrow(self.word(words.1)?);
                let words = (narrow(words.0), narrow(words.1));
                let place = ListPlace::Array { first, words, scope: *scope };
                Ok(Item::List(ListView { view: *self, count, place }))
            }
            FieldKind::Object(fields) => {
                Ok(Item::Record(RecordView { view: *self, fields, scope, start }))
            }
            FieldKind::Row(fields) => {
                let place = ListPlace::Row { fields, within: scope, start };
                Ok(Item::List(ListView { view: *self, count: narrow(fields.len()), place }))
            }
        }
    }
}

impl<'d, 'p> RecordView<'d, 'p> {
    /// The field of a name; `None` when the definition has none.
    ///
    /// # Errors
    /// Malformed, when the field leads outside the message.
    #[inline]
    pub fn get(&self, name: &str) -> Result<Option<Item<'d, 'p>>> {
        let fields = self.view.plan.fields_of(self.fields);
        match fields.iter().position(|field| field.name() == name) {
            Some(slot) => self.at(slot),
            None => Ok(None),
        }
    }

    /// The place of a name in the record, for [`Self::at`].
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.view.plan.fields_of(self.fields).iter().position(|field| field.name() == name)
    }

    /// The field of a place in the record; `None` when the definition has none.
    ///
    /// # Errors
    /// Malformed, when the field leads outside the message.
    #[inline]
    pub fn at(&self, slot: usize) -> Result<Option<Item<'d, 'p>>> {
        let Some(field) = self.view.plan.fields_of(self.fields).get(slot) else {
            return Ok(None);
        };
        // Put into its place at once: an item that is moved is read back before it is written.
        match self.view.scalar(field, self.start) {
            Some(value) => Ok(Some(Item::Scalar(value))),
            None => self.view.named_item(field, self.scope, self.start).map(Some),
        }
    }

    /// All fields with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'p str, Result<Item<'d, 'p>>)> {
        let Self { view, scope, start, .. } = *self;
        let fields = view.plan.fields_of(self.fields);
        fields.iter().map(move |field| (field.name(), view.item(field, scope, start)))
    }
}

impl<'d, 'p> ListView<'d, 'p> {
    /// How many elements there should be.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements. After an error, which is given once, there are no more.
    #[must_use]
    pub fn iter(&self) -> Elements<'d, 'p> {
        let (at, link) = match self.place {
            ListPlace::Array { first, words: (_, link), .. } => (first.into(), link.into()),
            ListPlace::Row { .. } => (0, 0),
        };
        let (chain, budget) = (Chain::new(), Budget::of(self.view.data.len()));
        Elements { list: *self, index: 0, at, link, chain, budget }
    }
}

impl<'d, 'p> IntoIterator for ListView<'d, 'p> {
    type Item = Result<Item<'d, 'p>>;
    type IntoIter = Elements<'d, 'p>;

    fn into_iter(self) -> Elements<'d, 'p> {
        self.iter()
    }
}

/// The elements of a [`ListView`].
#[derive(Clone, Debug)]
pub struct Elements<'d, 'p> {
    list: ListView<'d, 'p>,
    index: usize,
    at: usize,
    /// Where the offset of the next element stands.
    link: usize,
    chain: Chain,
    /// Elements may overlap.
    budget: Budget,
}

impl<'d, 'p> Elements<'d, 'p> {
    fn element(&mut self, words: (u16, u16), scope: u32) -> Result<Item<'d, 'p>> {
        if self.index == 0 && !self.list.view.whole && self.list.view.plan.scope(scope).has_bodies {
            let View { plan, data, floor, .. } = self.list.view;
            let words = (words.0.into(), words.1.into());
            check_list(plan, data, floor.into(), words, scope)?;
            // With the lists in it.
            self.list.view.whole = true;
        }
        let view = self.list.view;
        if self.at == 0 {
            let found = format!("{} of {}", self.index, self.list.count);
            return Err(Fault::ArrayChainShort.malformed(self.link, found));
        }
        if self.index > 0 {
            self.chain.follow(self.at, self.link)?;
        }
        view.check(self.at, self.link)?;
        let here = view.word(self.at)?;
        if here != self.at {
            let found = format!("{here} at {}", self.at);
            return Err(Fault::HereMismatch.malformed(self.at, found));
        }
        let next = view.word(self.at + 2)?;
        if self.index + 1 == self.list.len() && next != 0 {
            let found = format!("one at {next} behind {} elements", self.list.count);
            return Err(Fault::ArrayChainLong.malformed(self.at + 2, found));
        }
        let start = self.at + 4;
        let element = view.plan.scope(scope);
        view.need(start, element.size)?;
        self.budget.spend(element.cost as usize, start)?;
        let start = narrow(start);
        (self.link, self.at) = (self.at + 2, next);
        match view.plan.fields_of(&element.fields) {
            [field] if element.single => view.item(field, scope, start),
            _ => Ok(Item::Record(RecordView { view, fields: &element.fields, scope, start })),
        }
    }
}

impl<'d, 'p> Iterator for Elements<'d, 'p> {
    type Item = Result<Item<'d, 'p>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.list.len() {
            return None;
        }
        let outcome = match self.list.place {
            ListPlace::Array { words, scope, .. } => self.element(words, scope),
            ListPlace::Row { fields, within, start } => {
                let field = self.list.view.plan.fields_of(fields).get(self.index)?;
                self.list.view.item(field, within, start)
            }
        };
        let index = self.index;
        self.index = if outcome.is_ok() { index + 1 } else { self.list.len() };
        Some(outcome.map_err(|error| error.inside_item(index)))
    }
}

/// A place in a message, which has at most 65,535 bytes: at the largest number there is nothing.
#[inline]
fn narrow(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
