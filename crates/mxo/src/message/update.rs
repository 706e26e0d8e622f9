//! Updates of existing views: a mask, and the blocks that it announces.
//!
//! ```text
//! viewId:u16 mask:u8 blocks, lowest bit first
//! ```
//!
//! | object | mask `01` | mask `02` | mask `04` |
//! | --- | --- | --- | --- |
//! | plain | properties | | |
//! | player, own view | movement | properties, length-prefixed text | |
//! | player, other view | movement | properties | |
//! | NPC | a byte, see [`Update::block1`] | movement | properties |
//!
//! Updates have no length, so an unreadable update ends the section.

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Side, Trace, Value, Writer};

use super::fault::Fault;
use super::movement::Movement;
use super::properties::Properties;
use super::views::{Context, OWN_VIEW, Viewed};
use crate::schema::{Class, ClassId, Objects, Order, Updates};

/// An update of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<'d> {
    /// The view: [`OWN_VIEW`], or one that was created.
    pub view: u16,
    /// The class of its object, which determines the layout.
    pub class: ClassId,
    /// Whether the class is a guess, which makes all other fields guesses, too.
    pub guess: bool,
    /// An NPC's first block, known only from the deaths of NPCs. Unverified: its size, one byte, and
    /// its meaning. With [`Rules::keep_unknown`](super::Rules::keep_unknown), it is read only if the
    /// rest of the section can then be read.
    pub block1: Option<u8>,
    /// The movement; only characters have one.
    pub movement: Option<Movement>,
    /// The properties, in the class's update order.
    pub properties: Option<Properties<'d>>,
}

impl<'d> Update<'d> {
    /// An update of properties, in the class's update order for this view ([`Updates::order`]).
    #[must_use]
    pub fn of(view: u16, class: ClassId, properties: Properties<'d>) -> Self {
        let properties = Some(properties);
        Self { view, class, guess: false, block1: None, movement: None, properties }
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Update<'static> {
        let Self { view, class, guess, block1, movement, properties } = self;
        let properties = properties.map(Properties::into_owned);
        Update { view, class, guess, block1, movement, properties }
    }

    /// The mask of the blocks that are present.
    ///
    /// # Errors
    /// A value error if the class is not in these tables or does not have such blocks.
    pub fn mask(&self, objects: &Objects) -> Result<u8> {
        let class = objects.class(self.class).ok_or_else(no_class)?;
        let blocks = Blocks::of(class, self.view);
        let bit = |present: bool, bit: u8| match (present, bit) {
            (true, 0) => Err(Fault::UnknownLayout
                .value(format!("a block that is not in updates of {}", class.name()))),
            (true, bit) => Ok(bit),
            (false, _) => Ok(0),
        };
        let movement = bit(self.movement.is_some(), blocks.movement)?;
        let first = bit(self.block1.is_some(), blocks.first)?;
        Ok(first | movement | bit(self.properties.is_some(), blocks.properties)?)
    }

    /// Reads the mask and blocks that follow the view ID. A pending update has the same contents.
    ///
    /// # Errors
    /// Incomplete; [`Fault::UnknownLayout`], [`Fault::IndexOutOfRange`].
    #[inline]
    pub fn decode_body<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        view: u16,
        viewed: Viewed,
        objects: &'n Objects,
        from: Side,
    ) -> Result<Self> {
        let Some(class) = objects.class(viewed.class) else {
            return Err(Fault::UnknownView.at(reader, 0, "a class from other tables"));
        };
        if T::ON {
            let here = reader.place();
            let number = Value::Enum(viewed.class.number().into(), objects.class_names());
            reader.leaf_from("class", here, number);
            if viewed.guess {
                reader.leaf_from("guess", here, Value::Bool(true));
            }
        }
        let blocks = Blocks::of(class, view);
        let mask = reader.shown("mask", |r| r.take_array::<1>(), |b| Value::Hex(b[0].into()))?[0];
        let unknown = mask & !(blocks.first | blocks.movement | blocks.properties);
        if unknown != 0 {
            let found = format!("block {unknown:#04x} of class {}", class.name());
            let error = Fault::UnknownLayout.at(reader, 1, found).inside("mask");
            return Err(super::misfit(error, &format!("view {view}"), class));
        }
        let mut update = Self {
            view,
            class: viewed.class,
            guess: viewed.guess,
            block1: None,
            movement: None,
            properties: None,
        };
        if mask & blocks.first != 0 {
            update.block1 = Some(reader.u8("block1")?);
        }
        if mask & blocks.movement != 0 {
            update.movement = Some(Movement::decode(reader, from, view == OWN_VIEW)?);
        }
        if let Some(order) = blocks.order
            && mask & blocks.properties != 0
        {
            let properties = Properties::decode(reader, order);
            update.properties = Some(
                properties.map_err(|error| super::misfit(error, &format!("view {view}"), class))?,
            );
        }
        Ok(update)
    }

    /// Writes view ID, mask and blocks.
    ///
    /// # Errors
    /// A value error for blocks or properties that the class does not have, and values that do not
    /// fit.
    #[inline]
    pub fn encode(&self, objects: &Objects, from: Side, writer: &mut Writer) -> Result<()> {
        if self.view < OWN_VIEW {
            return Err(Fault::BadViewId.value(self.view.to_string()).inside("view"));
        }
        writer.u16(self.view);
        self.encode_body(objects, from, writer)
    }

    /// Writes mask and blocks.
    pub fn encode_body(&self, objects: &Objects, from: Side, writer: &mut Writer) -> Result<()> {
        writer.u8(self.mask(objects)?);
        self.block1.iter().for_each(|byte| writer.u8(*byte));
        if let Some(movement) = &self.movement {
            movement
                .encode(from, self.view == OWN_VIEW, writer)
                .map_err(|error| error.inside("movement"))?;
        }
        if let Some(properties) = &self.properties {
            let order = objects
                .class(self.class)
                .and_then(|class| Blocks::of(class, self.view).order)
                .ok_or_else(no_class)?;
            properties.encode(order, writer).map_err(|error| error.inside("properties"))?;
        }
        Ok(())
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self, objects: &Objects) -> usize {
        let order = objects.class(self.class).and_then(|class| class.updates().order(self.view));
        let properties = self.properties.as_ref().zip(order);
        let properties = properties.map_or(0, |(properties, order)| properties.encoded_len(order));
        let first = usize::from(self.block1.is_some());
        3 + first + self.movement.as_ref().map_or(0, Movement::encoded_len) + properties
    }

    pub(super) fn from_json(
        json: Given<'_>,
        context: &Context<'_, '_>,
        viewed: impl Fn(u16) -> Option<Viewed>,
    ) -> Result<Update<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let view: u16 = fields.value("view")?;
        Self::body_from_json(fields, view, viewed(view), context)
    }

    /// Reads everything but the view ID; no other fields may remain.
    pub(super) fn body_from_json(
        mut fields: FieldsOf<'_>,
        view: u16,
        known: Option<Viewed>,
        context: &Context<'_, '_>,
    ) -> Result<Update<'static>> {
        let certain = known.filter(|viewed| !viewed.guess).map(|viewed| viewed.class);
        let class = match (fields.take_optional("class"), known) {
            (Some(json), _) => super::class_from_json(json, certain, context.objects)?,
            (None, Some(viewed)) => viewed.class,
            (None, None) => {
                return Err(Fault::UnknownView.value(view.to_string()).inside("view"));
            }
        };
        let guess = super::guess(&mut fields)?;
        let guess = guess.unwrap_or_else(|| known.is_some_and(|viewed| viewed.guess));
        let mask = fields.take_optional("mask");
        let block1 = super::optional(&mut fields, "block1")?;
        let movement = fields.given_optional("movement").map(Movement::from_json).transpose();
        let movement = movement.map_err(|error| error.inside("movement"))?;
        let given = fields.given_optional("properties");
        let padding = fields.take_optional("padding");
        fields.end()?;
        let order = context.objects.class(class).and_then(|class| class.updates().order(view));
        let properties = match (given, order) {
            (None, _) => None,
            (Some(json), Some(order)) => Some(
                Properties::from_json(json, padding, order)
                    .map_err(|error| error.inside("properties"))?,
            ),
            (Some(_), None) => {
                return Err(Fault::UnknownLayout
                    .value("a class whose updates are unknown")
                    .inside("properties"));
            }
        };
        let update = Update { view, class, guess, block1, movement, properties };
        agrees("mask", mask, update.mask(context.objects)?.into())?;
        Ok(update)
    }
}

/// The mask bit of an NPC's first block.
const NPC_FIRST: u8 = 1;

/// Whether the bytes after a view ID are the start of an update with an NPC's first block.
pub(super) fn has_npc_first(class: &Class, rest: &[u8]) -> bool {
    matches!(class.updates(), Updates::Npc(_))
        && rest.first().is_some_and(|mask| mask & NPC_FIRST != 0)
}

/// The mask bits of the blocks in a view's updates; 0 for a block that it does not have.
struct Blocks<'o> {
    first: u8,
    movement: u8,
    properties: u8,
    order: Option<&'o Order>,
}

impl<'o> Blocks<'o> {
    #[inline]
    fn of(class: &'o Class, view: u16) -> Self {
        let (first, movement, properties) = match class.updates() {
            Updates::Unknown => (0, 0, 0),
            Updates::Plain(_) => (0, 0, 1),
            Updates::Npc(_) => (NPC_FIRST, 2, 4),
            Updates::Player { .. } => (0, 1, 2),
        };
        let order = class.updates().order(view);
        let properties = if order.is_some() { properties } else { 0 };
        Self { first, movement, properties, order }
    }
}

impl Updates {
    /// All known orders.
    pub fn orders(&self) -> impl Iterator<Item = &Order> {
        let (first, second) = match self {
            Self::Unknown => (None, None),
            Self::Plain(order) | Self::Npc(order) => (Some(order), None),
            Self::Player { own, other } => (own.as_ref(), other.as_ref()),
        };
        first.into_iter().chain(second)
    }

    /// The order of properties in this view's updates: a player's own view uses a different order
    /// from the views that other clients have of that player. `None` if the order is unknown.
    #[inline]
    #[must_use]
    pub fn order(&self, view: u16) -> Option<&Order> {
        match self {
            Self::Unknown => None,
            Self::Plain(order) | Self::Npc(order) => Some(order),
            Self::Player { own, .. } if view == OWN_VIEW => own.as_ref(),
            Self::Player { other, .. } => other.as_ref(),
        }
    }
}

#[cold]
fn no_class() -> Error {
    Error::value("a class from these tables", "a class from other tables")
}

/// Checks an optional JSON number against the value that the other fields imply.
pub(super) fn agrees(name: &'static str, given: Option<&json::Json>, made: u64) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    let number = json::unsigned(given).map_err(|error| error.inside(name))?;
    if number == made {
        return Ok(());
    }
    let error = Error::value(format!("{made}, as the other fields imply"), number.to_string());
    Err(error.inside(name).hint("omit it to have it filled in"))
}
