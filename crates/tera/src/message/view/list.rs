//! Lists, read in place.

use core::fmt;

use worldwire_core::{Error, Result};

use super::location::RecordLocation;
use super::{Item, RecordView, View, named, narrow};
use crate::message::bounds::{Budget, Chain, too_long};
use crate::message::decode::{check_list, in_order};
use crate::schema::plan::{Field, FieldKind, LINKS};

/// The elements of an array, or the values of a row, seen through a [`View`].
#[derive(Clone, Copy)]
pub struct ListView<'v, 'd, 'p>(
    /// The field of an array or row.
    RecordView<'v, 'd, 'p>,
);

impl<'v, 'd, 'p> ListView<'v, 'd, 'p> {
    /// The list of a field whose words can be read.
    #[inline]
    pub(super) fn of(field: RecordView<'v, 'd, 'p>) -> Self {
        Self(field)
    }

    /// The array or row.
    #[inline]
    fn field(&self) -> Option<&'p Field> {
        self.0.view.plan.fields.get(self.0.place.from())
    }

    /// The number of elements according to the message.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.field().map(Field::kind) {
            Some(FieldKind::Array { count, offset, .. }) => self.0.words(*count, *offset).0.into(),
            Some(FieldKind::Row(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// Whether the list is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element; `None` if there are fewer. The elements before it are read.
    pub fn get(&self, index: usize) -> Result<Option<Item<'v, 'd, 'p>>> {
        let mut elements = self.iter();
        for _ in 0..index {
            if elements.next().transpose()?.is_none() {
                break;
            }
        }
        elements.next().transpose()
    }

    /// The elements. An error is returned once and ends the iteration.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Elements<'v, 'd, 'p> {
        let RecordView { view, place } = self.0;
        let (plan, list) = (view.plan, self.field());
        let elements = Elements {
            view,
            list,
            place,
            scope: 0,
            fields: &[],
            kind: ElementKind::Row,
            in_order: place.is_whole(),
            left: 0,
            count: 0,
            at: 0,
            link: 0,
            progress: None,
        };
        match list.map(Field::kind) {
            Some(FieldKind::Array { count, offset, scope, .. }) => {
                let (count, first, link) = self.0.words(*count, *offset);
                let inner = plan.scope(*scope);
                Elements {
                    place: RecordLocation::new(&inner.fields, first.into(), place.is_whole()),
                    scope: *scope,
                    fields: plan.fields_of(&inner.fields),
                    kind: if inner.single { ElementKind::Values } else { ElementKind::Records },
                    left: count,
                    count,
                    at: first,
                    link,
                    ..elements
                }
            }
            Some(FieldKind::Row(fields)) => Elements {
                fields: plan.fields_of(fields),
                left: narrow(fields.len()),
                count: narrow(fields.len()),
                in_order: true,
                ..elements
            },
            _ => elements,
        }
    }
}

impl<'v, 'd, 'p> IntoIterator for ListView<'v, 'd, 'p> {
    type Item = Result<Item<'v, 'd, 'p>>;
    type IntoIter = Elements<'v, 'd, 'p>;

    #[inline]
    fn into_iter(self) -> Elements<'v, 'd, 'p> {
        self.iter()
    }
}

impl<'v, 'd, 'p> IntoIterator for &ListView<'v, 'd, 'p> {
    type Item = Result<Item<'v, 'd, 'p>>;
    type IntoIter = Elements<'v, 'd, 'p>;

    #[inline]
    fn into_iter(self) -> Elements<'v, 'd, 'p> {
        self.iter()
    }
}

/// Formats its elements.
impl fmt::Debug for ListView<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}

/// Formats the remaining elements.
impl fmt::Debug for Elements<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The elements of a [`ListView`].
#[derive(Clone)]
pub struct Elements<'v, 'd, 'p> {
    view: &'v View<'d, 'p>,
    /// The array or row.
    list: Option<&'p Field>,
    /// The fields of the current element, or of the row itself, with the start of their scope.
    place: RecordLocation,
    /// The scope of an element.
    scope: u32,
    /// The fields of an element, or of the row.
    fields: &'p [Field],
    kind: ElementKind,
    /// Whether the links have been validated and only need to be followed.
    in_order: bool,
    left: u16,
    count: u16,
    at: u16,
    /// Where the offset of the first element is stored.
    link: u16,
    /// State for a list that is not in order.
    progress: Option<Progress>,
}

/// The kind of a list's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementKind {
    Records,
    /// Each is the only field of its scope.
    Values,
    /// They are adjacent fields of one scope.
    Row,
}

/// Progress in following the links of a list.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Where the offset of the next element is stored.
    link: usize,
    chain: Chain,
    /// Bounds the work if elements overlap.
    budget: Budget,
}

impl<'v, 'd, 'p> Elements<'v, 'd, 'p> {
    /// Advances to the next element and returns its record.
    #[inline(always)]
    fn step(&mut self) -> Option<Result<RecordView<'v, 'd, 'p>>> {
        let left = self.left.checked_sub(1)?;
        if !self.in_order
            && let Err(error) = self.look()
        {
            return Some(Err(error));
        }
        self.left = left;
        let view = self.view;
        if self.kind == ElementKind::Row {
            return Some(Ok(RecordView { view, place: self.place }));
        }
        let at = usize::from(self.at);
        // These bytes have been checked.
        self.at = match view.data.get(at + 2..at + LINKS) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]),
            _ => 0,
        };
        Some(Ok(RecordView { view, place: self.place.moved(at + LINKS) }))
    }

    /// The number of elements returned so far.
    #[inline]
    fn index(&self) -> usize {
        usize::from(self.count - self.left)
    }

    /// Validates an element of a list that is not known to be in order.
    #[inline(never)]
    fn look(&mut self) -> Result<()> {
        self.follow().map_err(|error| self.ended(error))
    }

    /// Ends the iteration and adds the name of the list to the error.
    #[cold]
    fn ended(&mut self, error: Error) -> Error {
        self.left = 0;
        match self.list {
            Some(field) => named(error, field),
            None => error,
        }
    }

    fn follow(&mut self) -> Result<()> {
        let View { plan, data, .. } = *self.view;
        let (at, count, index) = (self.at.into(), self.count.into(), self.index());
        let element = plan.scope(self.scope);
        if index == 0 {
            let floor = self.view.floor();
            if element.has_bodies {
                check_list(plan, data, floor, (count, at, self.link.into()), self.scope)?;
                // Validated together with the lists in it.
                self.place = RecordLocation::new(&element.fields, at, true);
                self.in_order = true;
            } else {
                self.in_order = at >= floor && in_order(data, element, count, at);
            }
            if self.in_order {
                return Ok(());
            }
        }
        let next = self.check_links(at, index).map_err(|error| error.inside_item(index))?;
        if index + 1 == count && next != 0 {
            return Err(too_long(next, count, at + 2));
        }
        Ok(())
    }

    /// Validates the position and links of an element; returns the offset of the next one.
    fn check_links(&mut self, at: usize, index: usize) -> Result<usize> {
        let View { plan, data, .. } = *self.view;
        let (count, element) = (self.count, plan.scope(self.scope));
        let Progress { link, chain, budget } = self.progress.get_or_insert_with(|| Progress {
            link: self.link.into(),
            chain: Chain::new(),
            budget: Budget::of(data.len()),
        });
        let floor = self.view.floor();
        let next = chain.element((data, floor), (at, *link), (index, count.into()))?;
        let start = at + LINKS;
        self.view.need(start, element.size)?;
        budget.spend(element.cost as usize, start)?;
        *link = at + 2;
        Ok(next)
    }

    /// The contents of an element's record.
    #[inline(always)]
    fn element(&mut self, record: RecordView<'v, 'd, 'p>) -> Result<Item<'v, 'd, 'p>> {
        let index = self.index() - 1;
        let field = match self.kind {
            ElementKind::Records => return Ok(Item::Record(record)),
            ElementKind::Values => self.fields.first(),
            ElementKind::Row => self.fields.get(index),
        };
        let Some(field) = field else { return Ok(Item::Record(record)) };
        record.item(field).map_err(|error| self.ended(error.inside_item(index)))
    }
}

impl<'v, 'd, 'p> Iterator for Elements<'v, 'd, 'p> {
    type Item = Result<Item<'v, 'd, 'p>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.step()? {
            Ok(record) => self.element(record),
            Err(error) => Err(error),
        })
    }
}
