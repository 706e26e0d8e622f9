//! Messages that are shown as bytes, wholly or in part, because definitions are missing.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use worldwire_dissect::{Definitions, Families, Item, KiObjects, TeraDefinitions};
use worldwire_ki::schema::Protocols;

use crate::knowledge::{WarningClass, warn_as};

/// What the reading threads note about a message, because only they have it as a whole.
pub(crate) enum Lack {
    /// There is no definition of it.
    Definition,
    /// A part of it is shown as bytes. The advice continues "this is a message".
    Part(Box<str>),
}

impl Lack {
    pub(crate) fn of(item: &Item<'_>) -> Option<Self> {
        if item.lacks_definition() {
            return Some(Self::Definition);
        }
        item.advice().map(|advice| Self::Part(advice.into()))
    }
}

/// What is missing, in a message of a family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Definition,
    TypeList,
    Part,
}

/// The hint for a message that is shown as bytes: what is missing, and what to pass as `data`.
pub(crate) fn hint(
    lack: Option<&Lack>,
    family: &'static str,
    name: &str,
    definitions: &Definitions,
) -> Option<String> {
    missing(lack, family, name, definitions).map(|(_, hint)| hint)
}

fn missing(
    lack: Option<&Lack>,
    family: &'static str,
    name: &str,
    definitions: &Definitions,
) -> Option<(Kind, String)> {
    let undefined = || {
        let advice = match family {
            "tera" if !has_no_name(name) => Some("supply its definition (.def) with --data"),
            "tera" if has_map(definitions) => {
                Some("supply an opcode map that names it and its definition (.def) with --data")
            }
            _ => {
                let family = Families::standard().named(family).ok();
                family.and_then(|family| family.vocabulary().advice())
            }
        };
        let advice = advice.map_or(String::new(), |advice| format!(": {}", in_python(advice)));
        (Kind::Definition, format!("{name} has no definition, so it is shown as bytes{advice}"))
    };
    match lack {
        Some(Lack::Definition) => return Some(undefined()),
        Some(Lack::Part(advice)) => {
            return Some((Kind::Part, format!("{name} is a message {}", in_python(advice))));
        }
        None if family != "ki" => return None,
        None => {}
    }
    if has_no_name(name) {
        return Some(undefined());
    }
    let (objects, protocols) = (definitions.part::<KiObjects>(), definitions.part::<Protocols>());
    if objects.classes().is_some() {
        return None;
    }
    let field = objects.fields(protocols.message_named(name)?).next()?.to_owned();
    let advice = in_python("supply a type list with --data");
    Some((Kind::TypeList, format!("{name}.{field} is an object shown as bytes: {advice}")))
}

/// Whether there is an opcode map, so that only some messages have no name.
fn has_map(definitions: &Definitions) -> bool {
    let tera = definitions.get_ref::<TeraDefinitions>();
    tera.is_some_and(|tera| !tera.library().opcodes.is_empty())
}

/// Whether the definitions lack a name, so that the message has only numbers.
fn has_no_name(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The program's advice, for callers of Python functions.
fn in_python(advice: &str) -> String {
    advice.replace("supply ", "pass ").replace(" with --data", " as `data`")
}

/// The warnings about a capture: one for each kind of definition that is missing.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<Given>);

#[derive(Default)]
struct Given {
    kinds: Vec<(&'static str, Kind)>,
    texts: Vec<String>,
}

impl Warnings {
    /// Adds a warning, if the message is the first one that lacks this kind of definition.
    pub(crate) fn note(
        &self,
        lack: Option<&Lack>,
        family: &'static str,
        name: &str,
        definitions: &Definitions,
    ) {
        let is_possible = lack.is_some() || family == "ki";
        if !is_possible {
            return;
        }
        let Some((kind, hint)) = missing(lack, family, name, definitions) else { return };
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !given.kinds.contains(&(family, kind)) {
            given.kinds.push((family, kind));
            given.texts.push(hint);
        }
    }

    /// Passes new warnings to Python.
    pub(crate) fn give(&self, py: Python<'_>) -> PyResult<()> {
        let texts = {
            let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut given.texts)
        };
        texts.iter().try_for_each(|text| warn_as(py, WarningClass::Definitions, text))
    }
}
