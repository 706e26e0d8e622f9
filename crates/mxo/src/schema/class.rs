//! Classes: layouts of properties, in several orders.

use std::sync::Arc;

use crate::types::PropertyType;

/// Used in place of the built-in tables' file name.
pub(super) const BUILT_IN: &str = "built in";

/// The maximum number of properties in an order. The longest known order has 75.
pub const MAX_PROPERTIES: usize = 1_024;

/// The maximum length of a name in bytes.
pub(super) const MAX_NAME: usize = 64;
/// The maximum length of a goobj's name or of a source.
const MAX_LABEL: usize = 512;

/// An entry of an order: the meaning of a presence bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    name: Box<str>,
    kind: PropertyType,
    size: u8,
    counted: bool,
    /// Its index in the create order, or [`NOWHERE`].
    create: u16,
}

/// Not in the create order.
const NOWHERE: u16 = u16::MAX;

impl Slot {
    /// The property's name.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The property's type.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> PropertyType {
        self.kind
    }

    /// The size of a value in bytes; `None` for length-prefixed text.
    #[inline]
    #[must_use]
    pub const fn fixed_size(&self) -> Option<u8> {
        if self.counted { None } else { Some(self.size) }
    }

    /// The property's index in the class's create order, if it has one.
    #[inline]
    #[must_use]
    pub const fn create_index(&self) -> Option<u16> {
        if self.create == NOWHERE { None } else { Some(self.create) }
    }
}

/// An order of properties, which a presence vector refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    slots: Box<[Slot]>,
}

impl Order {
    /// An order of these names and types.
    fn new<'a>(
        properties: impl IntoIterator<Item = (&'a str, PropertyType)>,
        counts_text: bool,
        create: Option<&Self>,
    ) -> Self {
        let slot = |(index, (name, kind)): (usize, (&str, PropertyType))| {
            let place = match create {
                Some(create) => create.index_of(name),
                None => Some(index),
            };
            Slot {
                name: name.into(),
                kind,
                size: kind.size(),
                counted: counts_text && kind.is_text(),
                create: place.and_then(|place| u16::try_from(place).ok()).unwrap_or(NOWHERE),
            }
        };
        Self { slots: properties.into_iter().enumerate().map(slot).collect() }
    }

    /// The number of properties.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no properties.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The maximum number of presence bytes: one per seven properties, at least one.
    #[inline]
    #[must_use]
    pub(crate) fn max_groups(&self) -> usize {
        self.slots.len().div_ceil(7).max(1)
    }

    /// The property of a presence bit.
    #[inline]
    #[must_use]
    pub fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    /// All properties.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// A property's index.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.slots.iter().position(|slot| slot.name() == name)
    }
}

/// The layout of a class's updates. An update starts with a mask of the blocks in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Updates {
    /// Unknown; updates are unreadable.
    #[default]
    Unknown,
    /// Mask `01`: properties.
    Plain(Order),
    /// Mask `01`: a block of unknown layout; `02`: movement; `04`: properties.
    Npc(Order),
    /// Mask `01`: movement; `02`: properties, with different orders for the client's own character
    /// (view 2) and for others.
    ///
    /// Unverified: the mask of properties in other players' views. A capture with two players would
    /// reveal it.
    Player {
        /// The order for the client's own view. Its text is length-prefixed.
        own: Option<Order>,
        /// The order for all other views.
        other: Option<Order>,
    },
}

/// A layout that several goobjs share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: Box<str>,
    source: Option<Box<str>>,
    pub(super) file: File,
    create: Order,
    updates: Updates,
}

/// The file that a class was read from. Ignored when comparing classes.
#[derive(Clone, Debug, Default)]
pub(super) struct File(pub(super) Option<Arc<str>>);

impl File {
    /// The file's name, if it is a user's file other than the given one.
    pub(super) fn other_than(&self, other: &Self) -> Option<&str> {
        let name = self.0.as_deref().filter(|name| *name != BUILT_IN)?;
        (other.0.as_deref() != Some(name)).then_some(name)
    }
}

impl PartialEq for File {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for File {}

/// One of the update orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Plain,
    Npc,
    Own,
    Other,
}

impl Class {
    /// A class with this create order, whose updates are unknown.
    ///
    /// Names consist of letters, digits, `_`, `.` and `-`, and are unique within the class. Other
    /// names work, but cannot be printed as a table and read again.
    #[must_use]
    pub fn new<'a>(
        name: &str,
        properties: impl IntoIterator<Item = (&'a str, PropertyType)>,
    ) -> Self {
        let create = Order::new(properties, false, None);
        Self {
            name: name.into(),
            source: None,
            file: File::default(),
            create,
            updates: Updates::Unknown,
        }
    }

    /// The class with the updates of a plain object, in this order.
    #[must_use]
    pub fn updated<'a>(
        self,
        properties: impl IntoIterator<Item = (&'a str, PropertyType)>,
    ) -> Self {
        self.grouped(Group::Plain, properties)
    }

    /// The class with the updates of an NPC, in this order.
    #[must_use]
    pub fn updated_as_npc<'a>(
        self,
        properties: impl IntoIterator<Item = (&'a str, PropertyType)>,
    ) -> Self {
        self.grouped(Group::Npc, properties)
    }

    /// The class with the updates of a player's character, for the player's own view and for the
    /// views of others.
    #[must_use]
    pub fn updated_as_player<'a>(
        self,
        own: impl IntoIterator<Item = (&'a str, PropertyType)>,
        other: impl IntoIterator<Item = (&'a str, PropertyType)>,
    ) -> Self {
        self.grouped(Group::Own, own).grouped(Group::Other, other)
    }

    /// Adds an update order.
    pub(super) fn grouped<'a>(
        mut self,
        group: Group,
        properties: impl IntoIterator<Item = (&'a str, PropertyType)>,
    ) -> Self {
        let order = Order::new(properties, group == Group::Own, Some(&self.create));
        self.updates = match (group, self.updates) {
            (Group::Plain, _) => Updates::Plain(order),
            (Group::Npc, _) => Updates::Npc(order),
            (Group::Own, Updates::Player { other, .. }) => {
                Updates::Player { own: Some(order), other }
            }
            (Group::Own, _) => Updates::Player { own: Some(order), other: None },
            (Group::Other, Updates::Player { own, .. }) => {
                Updates::Player { own, other: Some(order) }
            }
            (Group::Other, _) => Updates::Player { own: None, other: Some(order) },
        };
        self
    }

    /// Adds a note about the class's source.
    #[must_use]
    pub fn with_source(mut self, source: &str) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The name; for classes from a numbered table, the number.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the layout comes from, if the table states it.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The file that it was read from, named as in error messages; `None` if it was created in
    /// code.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.0.as_deref()
    }

    /// The order of properties in creates.
    #[inline]
    #[must_use]
    pub const fn create(&self) -> &Order {
        &self.create
    }

    /// The layout of updates.
    #[inline]
    #[must_use]
    pub const fn updates(&self) -> &Updates {
        &self.updates
    }

    /// All update orders, with their keywords in the table format.
    pub(super) fn groups(&self) -> impl Iterator<Item = (Group, &Order)> {
        let (first, second) = match &self.updates {
            Updates::Unknown => (None, None),
            Updates::Plain(order) => (Some((Group::Plain, order)), None),
            Updates::Npc(order) => (Some((Group::Npc, order)), None),
            Updates::Player { own, other } => (
                own.as_ref().map(|order| (Group::Own, order)),
                other.as_ref().map(|order| (Group::Other, order)),
            ),
        };
        first.into_iter().chain(second)
    }
}

/// Whether a name is valid for a class or property: letters, digits, `_`, `.` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && name != "-"
}

/// Whether a text is valid as a goobj's name or a source: one line, without leading or trailing
/// spaces.
pub(super) fn is_label(text: &str) -> bool {
    let length = (1..=MAX_LABEL).contains(&text.len());
    length && text.trim() == text && !text.contains(char::is_control)
}

/// A class in [`Objects`](super::Objects).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub(super) u16);

impl ClassId {
    /// The number, for traces.
    pub(crate) const fn number(self) -> u16 {
        self.0
    }
}
