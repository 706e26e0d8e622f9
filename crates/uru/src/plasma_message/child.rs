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

/// Returns the class index of the next object without advancing.
fn next_class<T>(reader: &Reader<'_, T>) -> Result<u16> {
    match reader.rest().first_chunk() {
        Some(index) => Ok(u16::from_le_bytes(*index)),
        None => {
            let error = Error::incomplete(2, reader.remaining());
            Err(error.at(reader.position() as u64))
        }
    }
}

fn is_known<'d, C: Classes<'d>>(class: u16) -> bool {
    C::info(class.into()).is_some_and(|info| info.fields.is_some())
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
        let class = next_class(reader).map_err(|error| error.inside(name))?;
        if class == NULL {
            let start = reader.place_if_on();
            reader.take(2)?;
            reader.leaf_from(name, start, Value::Null);
            return Ok(Self(None));
        }
        if !is_known::<C>(class) {
            let error = unknown(class, C::NAMES.name(class.into()));
            return Err(reader.place_error(error).inside(name));
        }
        C::decode(reader, name).map(Self::from)
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
        let object = C::from_json(json)?;
        match u16::try_from(object.class()) {
            Ok(class) if is_known::<C>(class) => Ok(Self::from(object)),
            _ => {
                let found = format!("0x{:04x}", object.class());
                Err(Error::value("a class with a known layout", found).inside("class"))
            }
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        // Rarely, since samples may contain further objects.
        if sampler.below(3) != 0 {
            return Self(None);
        }
        let object = C::sample(sampler);
        let ends = u16::try_from(object.class()).is_ok_and(ends_itself::<C>);
        Self(ends.then(|| Box::new(object)))
    }

    fn into_owned(self) -> Self::Owned {
        Child(self.0.map(|object| Box::new(object.into_owned())))
    }
}

/// Whether fields can follow an object of this class. A class with a [`Tail`] extends to the end,
/// so it is only sent alone.
fn ends_itself<'d, C: Classes<'d>>(class: u16) -> bool {
    let fields = C::info(class.into()).and_then(|info| info.fields);
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
        let class = next_class(reader)?;
        reader.take(2)?;
        if class == NULL {
            return Ok(());
        }
        let refuse = |reason| Refusal::at(reason, C::NAMES.name(class.into()), at).inside("class");
        guard.class(class).map_err(refuse)?;
        if !is_known::<C>(class) {
            return Err(refuse(Reason::UnknownInside(class)));
        }
        // The reader counts depth as when decoding: a nested object may be a field of a record in a
        // list, and is a record itself.
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

#[cold]
fn unknown(class: u16, name: Option<&str>) -> Error {
    let found = match name {
        Some(name) => format!("{name} (0x{class:04x})"),
        None => format!("class 0x{class:04x}"),
    };
    Error::malformed("a class with a known layout", found)
}
