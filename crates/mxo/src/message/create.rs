//! Creates: the AdminView creates a view of an object.
//!
//! ```text
//! 01 00 | flags:u8 goobjId:u16 [worldObjectId:u32] spawnSeq:u8 cd ab count:u8
//!       | presence bytes and values | newViewId:u16 tail:u8
//! ```
//!
//! The world object ID is present if bit 2 of the flags is clear: the view then shows an object
//! that the client's world already has.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

use super::admin::{COMMAND, CREATE};
use super::fault::Fault;
use super::properties::Properties;
use super::views::{ADMIN_VIEW, Context, END, SectionViews};
use crate::schema::{Class, ClassId, Objects};
use crate::types::Value as PropertyValue;

/// Bit 2 of the flags: a dynamic object, not part of the static world.
const DYNAMIC: u8 = 0x04;
/// Bit 3 of the flags: always set.
pub(super) const NORMAL: u8 = 0x08;
/// The magic number in every create, little-endian.
const MAGIC: u16 = 0xabcd;

/// The creation of a view. Sent by servers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create<'d> {
    /// The flags: `0c` for a dynamic object, `08` for a world object. Bits 4 to 7 are unknown and
    /// mostly 0; the lowest two are 0.
    pub flags: u8,
    /// The game object type, which tells the client what to draw.
    pub goid: u16,
    /// The world object: the low half is its index in the sector, and the high half is the sector.
    pub world_id: Option<u32>,
    /// Distinguishes successive objects with the same view ID.
    ///
    /// Unverified: the documents only say that it should increase from object to object. The
    /// client's requests suggest that it identifies an object by view ID and this byte.
    pub spawn_seq: u8,
    /// The class that determines the layout of the properties.
    pub class: ClassId,
    /// Whether the class was guessed from the bytes. Several classes may fit; this is the first
    /// one, so property names are guesses, too.
    pub guess: bool,
    /// The properties, in the class's create order. At most 255.
    pub properties: Properties<'d>,
    /// The new view's ID: 2 or more.
    pub new_view: u16,
    /// One byte of unknown meaning, always 0.
    pub tail: u8,
}

impl<'d> Create<'d> {
    /// A create of a dynamic object.
    #[must_use]
    pub fn dynamic(goid: u16, class: ClassId, spawn_seq: u8, new_view: u16) -> Self {
        Self {
            flags: NORMAL | DYNAMIC,
            goid,
            world_id: None,
            spawn_seq,
            class,
            guess: false,
            properties: Properties::new(),
            new_view,
            tail: 0,
        }
    }

    /// A create of a view of a world object.
    #[must_use]
    pub fn of_world(
        goid: u16,
        world_id: u32,
        class: ClassId,
        spawn_seq: u8,
        new_view: u16,
    ) -> Self {
        let dynamic = Self::dynamic(goid, class, spawn_seq, new_view);
        Self { flags: NORMAL, world_id: Some(world_id), ..dynamic }
    }

    /// The same create with these properties.
    #[must_use]
    pub fn with(self, properties: Properties<'d>) -> Self {
        Self { properties, ..self }
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Create<'static> {
        let Self { flags, goid, world_id, spawn_seq, class, guess, new_view, tail, properties } =
            self;
        let properties = properties.into_owned();
        Create { flags, goid, world_id, spawn_seq, class, guess, properties, new_view, tail }
    }

    /// Reads what follows the flags.
    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        flags: u8,
        context: &Context<'n, '_>,
        views: &SectionViews<'_>,
    ) -> Result<Self> {
        let objects = context.objects;
        let head = CreateHead::decode(reader, flags, objects)?;
        let CreateHead { goid, world_id, spawn_seq, count, .. } = head;
        let (class, layout, guess) = Self::class(reader, &head, context, views)?;
        if T::ON {
            let here = reader.place();
            reader.leaf_from(
                "class",
                here,
                Value::Enum(class.number().into(), objects.class_names()),
            );
            if guess {
                reader.leaf_from("guess", here, Value::Bool(true));
            }
        }
        let (properties, new_view, tail) = Self::decode_after_head(reader, layout, count)
            .map_err(|error| super::misfit(error, &format!("goobj {goid}"), layout))?;
        Ok(Self { flags, goid, world_id, spawn_seq, class, guess, properties, new_view, tail })
    }

    /// Reads the part whose layout depends on the class.
    #[inline]
    fn decode_after_head<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        layout: &'n Class,
        count: u8,
    ) -> Result<(Properties<'d>, u16, u8)> {
        let properties = Properties::decode_with_room(reader, layout.create(), count.into())?;
        if properties.len() != usize::from(count) {
            let found = format!("a count of {count} and {} bits", properties.len());
            return Err(Fault::CountMismatch.at(reader, 0, found).inside("properties"));
        }
        let new_view = reader.u16("new_view")?;
        if new_view <= ADMIN_VIEW {
            let error = Fault::BadViewId.at(reader, 2, new_view.to_string());
            return Err(error.inside("new_view"));
        }
        let tail = reader.u8("tail")?;
        Ok((properties, new_view, tail))
    }

    /// The class that determines the properties and whether it is a guess.
    #[inline]
    fn class<'n, T>(
        reader: &Reader<'d, T>,
        head: &CreateHead,
        context: &Context<'n, '_>,
        views: &SectionViews<'_>,
    ) -> Result<(ClassId, &'n Class, bool)> {
        let goid = head.goid;
        if let Some((id, class)) = context.objects.class_of(goid) {
            return Ok((id, class, false));
        }
        if context.rules.guess
            && let Some((id, class)) = guessed(reader.rest(), head.count, context, views)
        {
            return Ok((id, class, true));
        }
        let found = match context.objects.name_of(goid) {
            Some(name) => format!("{goid} ({name})"),
            None => goid.to_string(),
        };
        Err(Fault::UnknownGoid.at(reader, head.encoded_len(), found).inside("goid"))
    }

    /// Writes the AdminView's view ID and the create.
    ///
    /// # Errors
    /// A value error if flags and world object ID do not match, for the view IDs 0 and 1, for more
    /// than 255 properties, and for properties that the class does not have or that do not fit.
    pub fn encode(&self, objects: &Objects, writer: &mut Writer) -> Result<()> {
        let class = objects.class(self.class).ok_or_else(|| {
            Error::value("a class from these tables", "a class from other tables")
        })?;
        if self.new_view <= ADMIN_VIEW {
            return Err(Fault::BadViewId.value(self.new_view.to_string()).inside("new_view"));
        }
        let count = u8::try_from(self.properties.len()).map_err(|_| {
            let found = self.properties.len().to_string();
            Error::value("at most 255 properties", found).inside("properties")
        })?;
        let Self { flags, goid, world_id, spawn_seq, .. } = *self;
        CreateHead { flags, goid, world_id, spawn_seq, count }.encode(writer)?;
        self.properties
            .encode(class.create(), writer)
            .map_err(|error| error.inside("properties"))?;
        writer.u16(self.new_view);
        writer.u8(self.tail);
        Ok(())
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self, objects: &Objects) -> usize {
        let properties = objects
            .class(self.class)
            .map_or(0, |class| self.properties.encoded_len(class.create()));
        12 + if self.world_id.is_some() { 4 } else { 0 } + properties
    }

    pub(super) fn from_json(json: Given<'_>, context: &Context<'_, '_>) -> Result<Create<'static>> {
        let objects = context.objects;
        let mut fields = FieldsOf::new(json)?;
        let CreateHead { flags, goid, world_id, spawn_seq, .. } =
            CreateHead::from_json(&mut fields, objects)?;
        let known = objects.class_of(goid).map(|(class, _)| class);
        let class = match (fields.take_optional("class"), known) {
            (Some(json), _) => super::class_from_json(json, known, objects)?,
            (None, Some(class)) => class,
            (None, None) => {
                return Err(Fault::UnknownGoid.value(goid.to_string()).inside("goid"));
            }
        };
        let guess = super::guess(&mut fields)?.unwrap_or(false);
        let count = fields.take_optional("count");
        let order = objects
            .class(class)
            .ok_or_else(|| Error::value("a class from these tables", "a class from other tables"))?
            .create();
        let given = fields.given("properties")?;
        let properties = Properties::from_json(given, fields.take_optional("padding"), order)
            .map_err(|error| error.inside("properties"))?;
        super::agrees("count", count, properties.len() as u64)?;
        let new_view: u16 = fields.value("new_view")?;
        let tail = super::optional(&mut fields, "tail")?.unwrap_or(0);
        fields.end()?;
        Ok(Create { flags, goid, world_id, spawn_seq, class, guess, properties, new_view, tail })
    }
}

/// The part of a create before the properties, with the fields of a [`Create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateHead {
    /// The flags.
    pub flags: u8,
    /// The game object type.
    pub goid: u16,
    /// The world object.
    pub world_id: Option<u32>,
    /// Distinguishes successive objects with the same view ID.
    pub spawn_seq: u8,
    /// The number of properties.
    pub count: u8,
}

impl CreateHead {
    /// Reads what follows the flags, up to the count.
    #[inline]
    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'_, T>,
        flags: u8,
        objects: &'n Objects,
    ) -> Result<Self> {
        let start = reader.place_if_on();
        let goid = reader.u16("goid")?;
        if T::ON && objects.name_of(goid).is_some() {
            let name = Value::Enum(goid.into(), objects.names());
            reader.leaf_from("object", start, name);
        }
        let hex = |bytes: &[u8; 4]| Value::Hex(u32::from_le_bytes(*bytes).into());
        let world_id = if flags & DYNAMIC == 0 {
            let bytes = reader.shown("world_id", |r| r.take_array::<4>(), hex)?;
            Some(u32::from_le_bytes(bytes))
        } else {
            None
        };
        let spawn_seq = reader.u8("spawn_seq")?;
        let magic = reader.shown(
            "magic",
            |r| r.take_array().map(u16::from_le_bytes),
            |magic| Value::Hex((*magic).into()),
        )?;
        if magic != MAGIC {
            return Err(Fault::BadMagic.at(reader, 2, format!("{magic:#06x}")).inside("magic"));
        }
        let count = reader.u8("count")?;
        Ok(Self { flags, goid, world_id, spawn_seq, count })
    }

    /// Writes the AdminView's view ID and everything up to the count.
    ///
    /// # Errors
    /// A value error if the flags are not those of a create or do not match the world object ID.
    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.flags & COMMAND != CREATE {
            let error = Error::value("the flags of a create", format!("{:#04x}", self.flags));
            return Err(error.inside("flags"));
        }
        let dynamic = self.flags & DYNAMIC != 0;
        if dynamic == self.world_id.is_some() {
            let (wanted, found) = match dynamic {
                true => ("no world object ID with these flags", "one"),
                false => ("a world object ID with these flags", "none"),
            };
            let error = Error::value(wanted, found).inside("world_id");
            return Err(error.hint("bit 2 of the flags marks a dynamic object"));
        }
        writer.u16(ADMIN_VIEW);
        writer.u8(self.flags);
        writer.u16(self.goid);
        self.world_id.iter().for_each(|id| writer.u32(*id));
        writer.u8(self.spawn_seq);
        writer.u16(MAGIC);
        writer.u8(self.count);
        Ok(())
    }

    /// The number of bytes after the flags.
    pub(super) const fn encoded_len(&self) -> usize {
        if self.world_id.is_some() { 10 } else { 6 }
    }

    /// Reads it from an operation's fields, without the count.
    pub(super) fn from_json(fields: &mut FieldsOf<'_>, objects: &Objects) -> Result<Self> {
        super::agrees("view", fields.take_optional("view"), ADMIN_VIEW.into())?;
        let goid: u16 = fields.value("goid")?;
        if let Some(json) = fields.take_optional("object") {
            is_name_of(goid, json, objects).map_err(|error| error.inside("object"))?;
        }
        let world_id: Option<u32> = super::optional(fields, "world_id")?;
        let usual = if world_id.is_some() { NORMAL } else { NORMAL | DYNAMIC };
        let flags = super::optional(fields, "flags")?.unwrap_or(usual);
        let spawn_seq: u8 = fields.value("spawn_seq")?;
        super::agrees("magic", fields.take_optional("magic"), MAGIC.into())?;
        Ok(Self { flags, goid, world_id, spawn_seq, count: 0 })
    }
}

/// Checks that a text is a goobj's name. If the goobj has no known name, any text is accepted.
fn is_name_of(goid: u16, json: &Json, objects: &Objects) -> Result<()> {
    let Some(given) = json.as_str() else {
        return Err(json::expected("the name of the goobj", json));
    };
    match objects.name_of(goid) {
        Some(name) if name != given => {
            let wanted = format!("{name:?}, the name of goobj {goid}");
            let error = Error::value(wanted, format!("{given:?}"));
            Err(error.hint("omit it to have it filled in"))
        }
        _ => Ok(()),
    }
}

/// A class with which all bytes after the count can be read: the count is right, the new view is
/// valid, the tail is 0, and a known view or the end follows. The class with the most plausible
/// values wins. `None` if no class fits, or if classes of different sizes fit equally well.
fn guessed<'o>(
    rest: &[u8],
    count: u8,
    context: &Context<'o, '_>,
    views: &SectionViews<'_>,
) -> Option<(ClassId, &'o Class)> {
    let mut found: Option<(ClassId, &Class, Fit)> = None;
    let mut is_ambiguous = false;
    for id in context.objects.shapes().iter() {
        let Some(class) = context.objects.class(id) else { continue };
        let Some(fit) = Fit::of(rest, count, class, context, views) else { continue };
        match &found {
            Some((_, _, best)) if best.plausible > fit.plausible => {}
            Some((_, _, best)) if best.plausible == fit.plausible => {
                is_ambiguous |= best.ends != fit.ends;
            }
            _ => (found, is_ambiguous) = (Some((id, class, fit)), false),
        }
    }
    found.filter(|_| !is_ambiguous).map(|(id, class, _)| (id, class))
}

/// How a class fits the bytes of a create.
struct Fit {
    /// The end of each value.
    ends: Vec<u16>,
    /// The number of plausible positions and orientations; `None` if any is implausible.
    plausible: Option<usize>,
}

impl Fit {
    fn of(
        rest: &[u8],
        count: u8,
        class: &Class,
        context: &Context<'_, '_>,
        views: &SectionViews<'_>,
    ) -> Option<Self> {
        let mut reader = Reader::new(rest);
        let properties =
            Properties::decode_with_room(&mut reader, class.create(), count.into()).ok()?;
        let new_view = reader.u16("new_view").ok()?;
        if properties.len() != usize::from(count) || new_view <= ADMIN_VIEW {
            return None;
        }
        if reader.u8("tail").ok()? != 0 {
            return None;
        }
        if !(context.rules.unterminated && reader.remaining() == 0) {
            let view = reader.u16("view").ok()?;
            let (rest, next) = (reader.rest(), reader.rest().first());
            let is_valid = match view {
                // Another section of the packet, or padding.
                END => matches!(next, Some(3..=5)) || rest.iter().all(|byte| *byte == 0),
                // Flags without unknown bits.
                ADMIN_VIEW => matches!(next, Some(..=0x0f)),
                _ => view == new_view || views.viewed(view).is_some(),
            };
            if !is_valid {
                return None;
            }
        }
        let (mut end, mut plausible) = (0, Some(0));
        let mut ends = Vec::with_capacity(properties.len());
        for property in properties.list() {
            end += u16::try_from(property.bytes().len()).ok()?;
            ends.push(end);
            let kind = class.create().slot(property.index())?.kind();
            plausible = match kind.read(property.bytes()).as_ref().and_then(is_plausible) {
                None => plausible,
                Some(true) => plausible.map(|count| count + 1),
                Some(false) => None,
            };
        }
        Some(Self { ends, plausible })
    }
}

/// Whether a position lies in a world, or an orientation has length 1. `None` for values of other
/// types, which reveal nothing.
fn is_plausible(value: &PropertyValue<'_>) -> Option<bool> {
    /// The highest coordinate, far beyond those of the game's districts.
    const FURTHEST: f64 = 1e7;
    // Numbers this close to 0 are not coordinates, but other bytes.
    let is_near = |part: f64| part == 0.0 || (1e-6..=FURTHEST).contains(&part.abs());
    Some(match value {
        PropertyValue::Vector3d(parts) => parts.iter().all(|part| is_near(*part)),
        PropertyValue::Vector3f(parts) => parts.iter().all(|part| is_near((*part).into())),
        PropertyValue::Quaternion(parts) => {
            let length: f32 = parts.iter().map(|part| part * part).sum();
            (0.9..=1.1).contains(&length)
        }
        _ => return None,
    })
}
