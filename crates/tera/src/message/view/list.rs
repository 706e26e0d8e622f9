//! Lists, read in place.

use core::fmt;

use worldwire_core::{Error, Result};

use super::place::Place;
use super::{Item, RecordView, View, named, narrow};
use crate::message::bounds::{Budget, Chain};
use crate::message::decode::{check_list, in_order};
use crate::message::fault::Fault;
use crate::schema::plan::{Field, FieldKind, LINKS};

/// The elements of an array, or the values of a row, seen through a [`View`].
#[derive(Clone, Copy)]
pub struct ListView<'v, 'd, 'p>(
    /// The field of an array or row.
    RecordView<'v, 'd, 'p>,
);

impl<'v, 'd, 'p> ListView<'v, 'd, 'p> {
    /// Of a field whose words can be read.
    #[inline]
    pub(super) fn of(field: RecordView<'v, 'd, 'p>) -> Self {
        Self(field)
    }

    /// The array or row.
    #[inline]
    fn field(&self) -> Option<&'p Field> {
        self.0.view.plan.fields.get(self.0.place.from())
    }

    /// How many elements there should be.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.field().map(Field::kind) {
            Some(FieldKind::Array { count, offset, .. }) => self.0.words(*count, *offset).0.into(),
            Some(FieldKind::Row(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element; `None` when there are not so many. Those before it are read.
    ///
    /// # Errors
    /// Malformed, when one of them leads outside the message.
    pub fn get(&self, index: usize) -> Result<Option<Item<'v, 'd, 'p>>> {
        let mut elements = self.iter();
        for _ in 0..index {
            if elements.next().transpose()?.is_none() {
                break;
            }
        }
        elements.next().transpose()
    }

    /// The elements. After an error, which is given once, there are no more.
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
            kind: Kind::Row,
            in_order: place.is_whole(),
            left: 0,
            count: 0,
            at: 0,
            link: 0,
            odd: None,
        };
        match list.map(Field::kind) {
            Some(FieldKind::Array { count, offset, scope, .. }) => {
                let (count, first, link) = self.0.words(*count, *offset);
                let inner = plan.scope(*scope);
                Elements {
                    place: Place::new(&inner.fields, first.into(), place.is_whole()),
                    scope: *scope,
                    fields: plan.fields_of(&inner.fields),
                    kind: if inner.single { Kind::Values } else { Kind::Records },
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

/// As its elements.
impl fmt::Debug for ListView<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}

/// As those that are left.
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
    /// The fields of an element; of a row itself, and where the scope that it stands in begins.
    place: Place,
    /// The scope of an element.
    scope: u32,
    /// Of an element, or of the row.
    fields: &'p [Field],
    kind: Kind,
    /// Whether the links were checked: nothing is left to do but to follow them.
    in_order: bool,
    left: u16,
    count: u16,
    at: u16,
    /// Where the offset of the first one stands.
    link: u16,
    /// Of a list that is not in order.
    odd: Option<Odd>,
}

/// What the elements of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Records,
    /// Each is the one field of its scope.
    Values,
    /// They are fields that stand side by side.
    Row,
}

/// How far the links of a list were followed.
#[derive(Clone, Copy, Debug)]
struct Odd {
    /// Where the offset of the next element stands.
    link: usize,
    chain: Chain,
    /// Elements may overlap.
    budget: Budget,
}

impl<'v, 'd, 'p> Elements<'v, 'd, 'p> {
    /// Goes on to the next element; gives its record.
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
        if self.kind == Kind::Row {
            return Some(Ok(RecordView { view, place: self.place }));
        }
        let at = usize::from(self.at);
        // It was looked at before.
        self.at = match view.data.get(at + 2..at + LINKS) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]),
            _ => 0,
        };
        Some(Ok(RecordView { view, place: self.place.moved(at + LINKS) }))
    }

    /// How many elements were given.
    #[inline]
    fn index(&self) -> usize {
        usize::from(self.count - self.left)
    }

    /// Looks at the links of an element that are not known to be in order.
    #[inline(never)]
    fn look(&mut self) -> Result<()> {
        self.follow().map_err(|error| self.ended(error))
    }

    /// There are no more elements; an error gets the name of the list.
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
                // With the lists in it.
                self.place = Place::new(&element.fields, at, true);
                self.in_order = true;
            } else {
                self.in_order = at >= floor && in_order(data, element, count, at);
            }
            if self.in_order {
                return Ok(());
            }
        }
        let next = self.odd_links(at, index).map_err(|error| error.inside_item(index))?;
        if index + 1 == count && next != 0 {
            let found = format!("one at {next} behind {count} elements");
            return Err(Fault::ArrayChainLong.malformed(at + 2, found));
        }
        Ok(())
    }

    /// Checks the place of an element and what it says of itself; gives where the next one is.
    fn odd_links(&mut self, at: usize, index: usize) -> Result<usize> {
        let View { plan, data, .. } = *self.view;
        let (count, element) = (self.count, plan.scope(self.scope));
        let Odd { link, chain, budget } = self.odd.get_or_insert_with(|| Odd {
            link: self.link.into(),
            chain: Chain::new(),
            budget: Budget::of(data.len()),
        });
        if at == 0 {
            return Err(Fault::ArrayChainShort.malformed(*link, format!("{index} of {count}")));
        }
        if index > 0 {
            chain.follow(at, *link)?;
        }
        self.view.check(at, *link)?;
        let here = self.view.word(at)?;
        if here != at {
            return Err(Fault::HereMismatch.malformed(at, format!("{here} at {at}")));
        }
        let next = self.view.word(at + 2)?;
        let start = at + LINKS;
        self.view.need(start, element.size)?;
        budget.spend(element.cost as usize, start)?;
        *link = at + 2;
        Ok(next)
    }

    /// What the record of an element holds.
    #[inline(always)]
    fn element(&mut self, record: RecordView<'v, 'd, 'p>) -> Result<Item<'v, 'd, 'p>> {
        let index = self.index() - 1;
        let field = match self.kind {
            Kind::Records => return Ok(Item::Record(record)),
            Kind::Values => self.fields.first(),
            Kind::Row => self.fields.get(index),
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
