//! Objects inside messages.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Classes, Error, Field, Reader, Result, Sampler, Trace, Value, Writer};

use crate::types::Tail;
use crate::walk::{Guard, Reason, Refusal, Walk, WalkClasses, WalkResult};

/// The class index for "no object".
pub const NULL: u16 = 0x8000;

/// A nested object: `u16` class index, then the object; 0x8000 alone for null.
///
/// Nested objects have no length field, so one without a known layout cannot be skipped and is
/// refused. The depth limit bounds nesting.
#[derive(Clone, Debug, PartialEq)]
pub struct Child<C>(pub Option<Box<C>>);

impl<C> From<C> for Child<C> {
    fn from(object: C) -> Self {
        Self(Some(Box::new(object)))
    }
}

impl<C> Child<C> {
    /// Null.
    pub const NONE: Self = Self(None);
}

/// An object whose class must have a known layout, because an object inside a message has no length
/// field and cannot be skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<C>(pub C);

impl<C> From<C> for Known<C> {
    fn from(object: C) -> Self {
        Self(object)
    }
}

/// Returns the class index of the next object without advancing.
fn next_class<'d, C: Field<'d>, T>(reader: &Reader<'_, T>) -> Result<u32> {
    let Some(index) = reader.rest().get(..C::LEAST) else {
        let error = Error::incomplete(C::LEAST, reader.remaining());
        return Err(error.at(reader.position() as u64));
    };
    Ok(index.iter().rev().fold(0, |index, byte| index << 8 | u32::from(*byte)))
}

fn is_known<'d, C: Classes<'d>>(class: u32) -> bool {
    C::info(class).is_some_and(|info| info.fields.is_some())
}

/// The expected and the actual content, for a class without a known layout.
#[cold]
fn unknown<'d, C: Classes<'d>>(class: u32) -> (&'static str, String) {
    let found = match C::NAMES.name(class.into()) {
        Some(name) => format!("{name} (0x{class:04x})"),
        None => format!("class 0x{class:04x}"),
    };
    ("a class with a known layout", found)
}

impl<'d, C> Known<C>
where
    C: Classes<'d> + Field<'d>,
    <C as Field<'d>>::Owned: Clone + PartialEq + fmt::Debug,
{
    fn check(&self) -> Result<()> {
        let class = self.0.class();
        if is_known::<C>(class) {
            return Ok(());
        }
        let (wanted, found) = unknown::<C>(class);
        Err(Error::value(wanted, found).inside("class"))
    }
}

impl<'d, C> Field<'d> for Known<C>
where
    C: Classes<'d> + Field<'d>,
    <C as Field<'d>>::Owned: Clone + PartialEq + fmt::Debug,
{
    type Owned = Known<<C as Field<'d>>::Owned>;
    const LEAST: usize = C::LEAST;

    fn layout() -> Cow<'static, str> {
        C::layout()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let class = next_class::<C, T>(reader).map_err(|error| error.inside(name))?;
        if !is_known::<C>(class) {
            let (wanted, found) = unknown::<C>(class);
            return Err(reader.place_error(Error::malformed(wanted, found)).inside(name));
        }
        C::decode(reader, name).map(Self)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.check()?;
        self.0.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let object = Self(C::from_json(json)?);
        object.check().map(|()| object)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        loop {
            // Nearly all classes have a known layout.
            let object = C::sample(sampler);
            if is_known::<C>(object.class()) {
                return Self(object);
            }
        }
    }

    fn into_owned(self) -> Self::Owned {
        Known(self.0.into_owned())
    }
}

impl<'d, C> Field<'d> for Child<C>
where
    C: Classes<'d> + Field<'d>,
    <C as Field<'d>>::Owned: Clone + PartialEq + fmt::Debug,
{
    type Owned = Child<<C as Field<'d>>::Owned>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("creatable")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        if reader.rest().starts_with(&NULL.to_le_bytes()) {
            let start = reader.place_if_on();
            reader.take(2)?;
            reader.leaf_from(name, start, Value::Null);
            return Ok(Self(None));
        }
        Known::<C>::decode(reader, name).map(|object| object.0.into())
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        match &self.0 {
            None => {
                writer.u16(NULL);
                Ok(())
            }
            Some(object) => object.encode(writer),
        }
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.is_null() {
            return Ok(Self(None));
        }
        Known::<C>::from_json(json).map(|object| object.0.into())
    }

    fn sample(sampler: &mut Sampler) -> Self {
        // Generate an object only rarely, since samples may contain further objects.
        if sampler.below(3) != 0 {
            return Self(None);
        }
        let object = C::sample(sampler);
        Self(ends_itself::<C>(object.class()).then(|| Box::new(object)))
    }

    fn into_owned(self) -> Self::Owned {
        Child(self.0.map(|object| Box::new(object.into_owned())))
    }
}

/// Whether fields can follow an object of this class. A class with a [`Tail`] extends to the end,
/// so it is only sent alone.
fn ends_itself<'d, C: Classes<'d>>(class: u32) -> bool {
    let fields = C::info(class).and_then(|info| info.fields);
    fields
        .is_some_and(|fields| fields().iter().all(|field| !field.layout.contains(&*Tail::layout())))
}

impl<'d, C> Walk<'d> for Child<C>
where
    C: WalkClasses<'d> + Field<'d>,
    <C as Field<'d>>::Owned: Clone + PartialEq + fmt::Debug,
{
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let class = u16::from_le_bytes(reader.take_array()?);
        if class == NULL {
            return Ok(());
        }
        let refuse = |reason| Refusal::at(reason, C::NAMES.name(class.into()), at).inside("class");
        guard.class(class).map_err(refuse)?;
        if !is_known::<C>(class.into()) {
            return Err(refuse(Reason::UnknownInside(class)));
        }
        // The reader counts depth as decoding does: a nested object may be a field of a record in a
        // list, and is itself a record.
        let mut walked = Ok(());
        reader.list("", |reader| {
            reader.record("", |reader| {
                reader.record("", |reader| {
                    walked = C::walk_class(class.into(), reader, guard);
                    Ok(())
                })
            })
        })?;
        walked
    }
}

/// An object whose class is accepted by every guard.
impl<'d, C> Walk<'d> for Known<C>
where
    C: WalkClasses<'d> + Field<'d>,
    <C as Field<'d>>::Owned: Clone + PartialEq + fmt::Debug,
{
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let class = next_class::<C, _>(reader)?;
        if !is_known::<C>(class) {
            let (wanted, found) = unknown::<C>(class);
            return Err(reader.place_error(Error::malformed(wanted, found)).into());
        }
        reader.take(C::LEAST)?;
        C::walk_class(class, reader, guard)
    }
}
