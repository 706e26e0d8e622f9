//! Definitions as Python objects: TERA's definitions and maps, and Uru's state descriptors.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use worldwire_core::nearest;
use worldwire_dissect::{TeraDefinitions, UruDefinitions};
use worldwire_tera::schema::{Definition, Set};
use worldwire_uru::schema::Definition as StateDefinition;

use crate::knowledge::Knowledge;

/// The TERA definitions and maps in the given files.
#[pyclass(frozen, module = "worldwire.tera")]
pub(crate) struct TeraCatalog {
    definitions: Arc<TeraDefinitions>,
}

#[pymethods]
impl TeraCatalog {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let knowledge = Knowledge::read(py, None, Some(data))?;
        Ok(Self { definitions: knowledge.definitions.part::<TeraDefinitions>() })
    }

    /// The names of all messages with definitions.
    fn names(&self) -> Vec<String> {
        self.set().names().map(str::to_owned).collect()
    }

    /// The versions of a message's definition, from the oldest to the newest.
    fn versions(&self, name: &str) -> PyResult<Vec<u32>> {
        let versions: Vec<u32> = self.set().versions(name).map(Definition::version).collect();
        match versions[..] {
            [] => Err(missing("definition", name, self.set().names())),
            _ => Ok(versions),
        }
    }

    /// The fields of a definition: depth, name and type. Nested fields follow the field that
    /// contains them. The default version is the newest.
    #[pyo3(signature = (name, version = None))]
    fn fields(&self, name: &str, version: Option<u32>) -> PyResult<Vec<(usize, String, String)>> {
        let found = match version {
            None => self.set().newest(name),
            Some(version) => self.set().get(name, version),
        };
        let Some(definition) = found else {
            let versions = self.versions(name)?;
            let wanted = version.unwrap_or_default();
            let message = format!("{name} has no version {wanted}; it has {versions:?}");
            return Err(PyKeyError::new_err(message));
        };
        let rows = definition.plan().rows(4).into_iter();
        Ok(rows.map(|row| (row.depth, row.name, row.kind)).collect())
    }

    /// The revisions whose opcodes are known.
    fn revisions(&self) -> Vec<u32> {
        self.definitions.library().opcodes.keys().copied().collect()
    }

    /// The opcodes of a revision, by name.
    fn opcodes(&self, revision: u32) -> PyResult<BTreeMap<String, u32>> {
        let map = self.definitions.library().opcodes.get(&revision);
        let map = map.ok_or_else(|| {
            let known = self.revisions();
            PyKeyError::new_err(format!(
                "no map for revision {revision}; known revisions: {known:?}"
            ))
        })?;
        Ok(map.iter().map(|(name, code)| (name.to_owned(), code)).collect())
    }

    /// The numbers of system messages, by name, for a revision or a patch such as `"92.04"`.
    fn system_messages(&self, version: &str) -> PyResult<BTreeMap<String, u32>> {
        let maps = &self.definitions.library().system_messages;
        let map = maps.get(version);
        let map = map.ok_or_else(|| missing("map", version, maps.keys().map(|name| &**name)))?;
        Ok(map.iter().map(|(name, code)| (name.to_owned(), code)).collect())
    }
}

impl TeraCatalog {
    fn set(&self) -> &Set {
        &self.definitions.library().definitions
    }
}

/// The Uru state descriptors in the given SDL files.
#[pyclass(frozen, module = "worldwire.uru")]
pub(crate) struct StateCatalog {
    definitions: Arc<UruDefinitions>,
}

#[pymethods]
impl StateCatalog {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let knowledge = Knowledge::read(py, None, Some(data))?;
        Ok(Self { definitions: knowledge.definitions.part::<UruDefinitions>() })
    }

    /// The names of all descriptors.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The versions of a descriptor, from the oldest to the newest.
    fn versions(&self, name: &str) -> PyResult<Vec<u16>> {
        let descriptors = self.definitions.descriptors();
        let versions: Vec<u16> = descriptors
            .versions(name)
            .map(|descriptor| descriptor.shape().definition().version())
            .collect();
        match versions[..] {
            [] => {
                let names = self.names();
                Err(missing("descriptor", name, names.iter().map(String::as_str)))
            }
            _ => Ok(versions),
        }
    }

    /// The variables of a descriptor: name, type, and number of values, or `None` if it varies.
    /// The default version is the newest.
    #[pyo3(signature = (name, version = None))]
    fn variables(
        &self,
        name: &str,
        version: Option<u16>,
    ) -> PyResult<Vec<(String, String, Option<u32>)>> {
        let descriptors = self.definitions.descriptors();
        let found = match version {
            None => descriptors.newest(name),
            Some(version) => descriptors.get(name, version),
        };
        let Some(descriptor) = found else {
            let versions = self.versions(name)?;
            let wanted = version.unwrap_or_default();
            let message = format!("{name} has no version {wanted}; it has {versions:?}");
            return Err(PyKeyError::new_err(message));
        };
        let variables = descriptor.shape().definition().variables().iter();
        let shown = variables.map(|variable| {
            let kind = variable.element_type().to_string();
            (variable.name().to_owned(), kind, variable.count())
        });
        Ok(shown.collect())
    }
}

impl StateCatalog {
    fn all(&self) -> impl Iterator<Item = (String, u16)> {
        self.definitions.descriptors().iter().map(|descriptor| {
            let definition: &StateDefinition = descriptor.shape().definition();
            (definition.name().to_owned(), definition.version())
        })
    }
}

fn missing<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> PyErr {
    let near = nearest(name, known);
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    PyKeyError::new_err(format!("no {what} `{name}`{hint}"))
}
