//! Shared states, which represent the locks of objects.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Value, Writer, list_from_json};

use crate::types::{Bool8, CountedString, GenericType, List, SafeString};
use crate::walk::{Guard, Walk, WalkResult, walked_record};

walked_record! {
    /// A variable of a [`SharedState`].
    pub struct SharedVariable<'a> {
        /// The name.
        name "name": SafeString<'a>,
        /// The value.
        value "value": GenericType<'a>,
    }
}

/// A state shared between clients (`plNetSharedState`).
///
/// Layout: [`CountedString`] name, `i32` count of variables, `u8` whether the server may delete it,
/// then the variables. In practice, the name is `TrigState` and there is one boolean, `Triggered`.
/// In a request for a lock, the server may not delete the state and the variable is true; in a
/// release, the server may delete it and the variable is false.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedState<'d> {
    /// The name.
    pub name: CountedString<'d>,
    /// Whether the server may delete it.
    pub server_may_delete: Bool8,
    /// The variables.
    pub variables: Vec<SharedVariable<'d>>,
}

/// The list of variables, used to check their count.
type Variables<'d> = List<i32, SharedVariable<'d>>;

/// The minimum size of a variable in bytes.
const LEAST_VARIABLE: usize = 3;

impl SharedState<'_> {
    /// The shared state with which clients request or release a lock.
    #[must_use]
    pub fn trigger(lock: bool) -> Self {
        let value = GenericType::Bool(lock.into());
        Self {
            name: "TrigState".into(),
            server_may_delete: (!lock).into(),
            variables: vec![SharedVariable { name: "Triggered".into(), value }],
        }
    }
}

impl<'d> Field<'d> for SharedState<'d> {
    type Owned = SharedState<'static>;
    const LEAST: usize = 7;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("plNetSharedState")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| {
            let name = Field::decode(reader, "name")?;
            let start = reader.place_if_on();
            let count = Variables::take_count(reader, LEAST_VARIABLE);
            let count = count.map_err(|error| error.inside("variables"))?;
            let server_may_delete = Field::decode(reader, "serverMayDelete")?;
            let variables = reader.scope_from("variables", Value::List, start, |reader| {
                let room = reader.capacity(count as u64, u64::MAX, LEAST_VARIABLE)?;
                let mut variables = Vec::with_capacity(room);
                for index in 0..count {
                    let read = |reader: &mut Reader<'d, T>| SharedVariable::decode(reader, "");
                    variables.push(reader.item(index, read)?);
                }
                Ok(variables)
            })?;
            Ok(Self { name, server_may_delete, variables })
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.name.encode(writer).map_err(|error| error.inside("name"))?;
        <i32 as crate::types::Count>::write(self.variables.len(), writer)
            .map_err(|error| error.inside("variables"))?;
        self.server_may_delete.encode(writer)?;
        for (index, variable) in self.variables.iter().enumerate() {
            variable
                .encode(writer)
                .map_err(|error| error.inside_item(index).inside("variables"))?;
        }
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let name = Field::from_json(fields.given("name")?).map_err(|error| error.inside("name"))?;
        let server_may_delete = fields.value("serverMayDelete")?;
        let variables = list_from_json(fields.given("variables")?)
            .map_err(|error| error.inside("variables"))?;
        fields.end()?;
        Ok(Self { name, server_may_delete, variables })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4);
        Self {
            name: Field::sample(sampler),
            server_may_delete: Field::sample(sampler),
            variables: (0..count).map(|_| Field::sample(sampler)).collect(),
        }
    }

    fn into_owned(self) -> Self::Owned {
        SharedState {
            name: self.name.into_owned(),
            server_may_delete: self.server_may_delete,
            variables: self.variables.into_iter().map(Field::into_owned).collect(),
        }
    }
}

impl<'d> Walk<'d> for SharedState<'d> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        CountedString::decode(reader, "name")?;
        let count = Variables::take_count(reader, LEAST_VARIABLE)?;
        Bool8::decode(reader, "serverMayDelete")?;
        for index in 0..count {
            SharedVariable::walk(reader, guard)
                .map_err(|refusal| refusal.inside_item(index).inside("variables"))?;
        }
        Ok(())
    }
}
