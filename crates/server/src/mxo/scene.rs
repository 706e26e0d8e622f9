//! A scene: a TOML file with a world's objects and their behaviour. `docs/mxo-world.md` describes
//! it.
//!
//! ```toml
//! [[object]]
//! goobj = 414
//! at = [1800.0, 495.0, 2400.0]
//! cycle = { property = "CurrentState", values = [0x834, 0x838], every = 5.0 }
//! ```
//!
//! Values are written as `worldwire decode` prints them. Only objects whose updates include
//! movement, that is, characters and NPCs, can walk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use worldwire_core::json::{Given, Json};
use worldwire_mxo::message::Properties;
use worldwire_mxo::replicator::Point;
use worldwire_mxo::schema::{Class, Objects, Order, Updates};

use super::actor::{Cycle, Walk};
use crate::folder::reason;

/// The maximum number of objects in a scene.
pub const MAX_OBJECTS: usize = 60_000;
/// The maximum number of points in a path, and of values in a cycle.
const MAX_STEPS: usize = 1_024;
/// The highest coordinate. Up to this value, an `f32` can distinguish centimetres.
const FURTHEST: f64 = 1e6;
/// The built-in scene.
const BUILT_IN: &str = include_str!("scene.toml");

/// A world's objects and their behaviour.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The position at which characters start.
    pub(super) start: Point,
    pub(super) things: Vec<SceneObject>,
}

/// An object and its behaviour.
#[derive(Clone, Debug)]
pub(super) struct SceneObject {
    pub(super) goid: u16,
    pub(super) world_id: Option<u32>,
    pub(super) place: Point,
    pub(super) properties: Properties<'static>,
    pub(super) walk: Option<Arc<Walk>>,
    pub(super) cycle: Option<Arc<Cycle>>,
}

/// Why a scene cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// The file cannot be read.
    #[error("{}: {}", path.display(), reason(error))]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file is not TOML, or has unknown or missing fields.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[from] toml::de::Error),
    /// Characters would start too far away.
    #[error("start: coordinates must be at most {FURTHEST}, not {0:?}")]
    Start(Point),
    /// An object is invalid.
    #[error("object {number}: {error}")]
    Object {
        /// The object's number in the file, from 1.
        number: usize,
        /// What is wrong with it.
        error: ObjectError,
    },
}

/// What is wrong with an object of a scene.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// A goobj without a class.
    #[error("goobj: the class of {0} is unknown")]
    NoClass(u16),
    /// A name that no goobj has.
    #[error("goobj: no goobj is named {0:?}")]
    NoGoobj(String),
    /// Too many objects.
    #[error("count: a scene has at most {MAX_OBJECTS} objects")]
    TooMany,
    /// A position too far away.
    #[error("at: coordinates must be at most {FURTHEST}, not {0:?}")]
    TooFar(Point),
    /// Properties that the class does not have, or wrong values.
    #[error("values: {0}")]
    Values(worldwire_core::Error),
    /// A path without a speed, or a speed without a path.
    #[error("path and speed must be given together")]
    PathOrSpeed,
    /// An empty path, or one that is too long.
    #[error("path: must have 1 to {MAX_STEPS} points, not {0}")]
    PathLength(usize),
    /// A point too far away.
    #[error("path: coordinates must be at most {FURTHEST}")]
    PathTooFar,
    /// A speed or pause out of range.
    #[error("speed must be greater than 0, and pause must be at least 0")]
    Speed,
    /// A path for an object that cannot walk.
    #[error("path: objects of class {0} cannot walk")]
    CannotWalk(String),
    /// A cycle for a property that updates do not include.
    #[error("cycle: updates do not include the property {0:?}")]
    NotUpdated(String),
    /// A cycle that is too fast or too slow.
    #[error("cycle: `every` must be at least 0.05 seconds, not {0}")]
    Interval(f64),
    /// An empty cycle, or one that is too long.
    #[error("cycle: must have 1 to {MAX_STEPS} values, not {0}")]
    CycleLength(usize),
    /// A value of a cycle that its property cannot have.
    #[error("cycle: {0}")]
    CycleValue(worldwire_core::Error),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    start: Point,
    #[serde(default)]
    object: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    goobj: Goobj,
    at: Point,
    world_id: Option<u32>,
    #[serde(default)]
    values: toml::Table,
    count: Option<usize>,
    #[serde(default)]
    step: Point,
    row: Option<usize>,
    #[serde(default)]
    next_row: Point,
    path: Option<Vec<Point>>,
    speed: Option<f64>,
    #[serde(default)]
    pause: f64,
    cycle: Option<CycleEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Goobj {
    Number(u16),
    Name(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CycleEntry {
    property: String,
    values: Vec<toml::Value>,
    every: f64,
}

impl Scene {
    /// The built-in scene: a square with 100 doors, 200 things and 200 people. Fails with
    /// [`SceneError::Object`] if the tables lack a goobj that it uses.
    pub fn built_in(objects: &Objects) -> Result<Self, SceneError> {
        Self::parse(BUILT_IN, objects)
    }

    /// Reads a scene from a file.
    pub fn read(path: &Path, objects: &Objects) -> Result<Self, SceneError> {
        let text = crate::config::read_text(path)
            .map_err(|error| SceneError::Io { path: path.to_owned(), error })?;
        Self::parse(&text, objects)
    }

    /// Parses a scene, using the goobjs and classes of these tables.
    pub fn parse(text: &str, objects: &Objects) -> Result<Self, SceneError> {
        let file: File = toml::from_str(text)?;
        if !file.start.iter().all(is_near) {
            return Err(SceneError::Start(file.start));
        }
        let mut things = Vec::new();
        for (index, entry) in file.object.iter().enumerate() {
            entry
                .add(objects, &mut things)
                .map_err(|error| SceneError::Object { number: index + 1, error })?;
        }
        Ok(Self { start: file.start, things })
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }
}

impl Entry {
    fn add(&self, objects: &Objects, things: &mut Vec<SceneObject>) -> Result<(), ObjectError> {
        let goid = self.goobj.find(objects)?;
        let Some((_, class)) = objects.class_of(goid) else {
            return Err(ObjectError::NoClass(goid));
        };
        let count = self.count.unwrap_or(1);
        if things.len().saturating_add(count) > MAX_OBJECTS {
            return Err(ObjectError::TooMany);
        }
        let mut values = values(&self.values, class).map_err(ObjectError::Values)?;
        let walk = self.walk(class)?.map(Arc::new);
        let cycle = self.cycle(class)?.map(Arc::new);
        let row = self.row.unwrap_or(usize::MAX).max(1);
        for number in 0..count {
            let place = along(self.at, self.step, number % row);
            let place = along(place, self.next_row, number / row);
            if !place.iter().all(is_near) {
                return Err(ObjectError::TooFar(place));
            }
            set_position(&mut values, class, place);
            things.push(SceneObject {
                goid,
                world_id: self.world_id,
                place,
                properties: values.clone(),
                walk: walk.clone(),
                cycle: cycle.clone(),
            });
        }
        Ok(())
    }

    fn walk(&self, class: &Class) -> Result<Option<Walk>, ObjectError> {
        let (points, speed) = match (&self.path, self.speed) {
            (None, None) => return Ok(None),
            (Some(points), Some(speed)) => (points, speed),
            _ => return Err(ObjectError::PathOrSpeed),
        };
        if !(1..=MAX_STEPS).contains(&points.len()) {
            return Err(ObjectError::PathLength(points.len()));
        }
        if !points.iter().flatten().all(is_near) {
            return Err(ObjectError::PathTooFar);
        }
        let range = 0.0..=FURTHEST;
        if !(speed > 0.0 && range.contains(&speed) && range.contains(&self.pause)) {
            return Err(ObjectError::Speed);
        }
        if !matches!(class.updates(), Updates::Npc(_) | Updates::Player { .. }) {
            return Err(ObjectError::CannotWalk(class.name().to_string()));
        }
        Ok(Some(Walk::new(points, speed, self.pause)))
    }

    fn cycle(&self, class: &Class) -> Result<Option<Cycle>, ObjectError> {
        let Some(cycle) = &self.cycle else { return Ok(None) };
        let CycleEntry { property, values: list, every } = cycle;
        let is_updated = |order: &Order| order.index_of(property).is_some();
        if !class.updates().orders().any(is_updated) {
            return Err(ObjectError::NotUpdated(property.clone()));
        }
        if !(0.05..=FURTHEST).contains(every) {
            return Err(ObjectError::Interval(*every));
        }
        if !(1..=MAX_STEPS).contains(&list.len()) {
            return Err(ObjectError::CycleLength(list.len()));
        }
        let bytes = |value: &toml::Value| {
            let mut one = toml::Table::new();
            one.insert(property.clone(), value.clone());
            let one = values(&one, class).map_err(ObjectError::CycleValue)?;
            let first = one.list().first().map(|property| property.bytes().to_vec());
            first.ok_or_else(|| ObjectError::NotUpdated(property.clone()))
        };
        let list = list.iter().map(bytes).collect::<Result<_, ObjectError>>()?;
        Ok(Some(Cycle::new(property, list, *every)))
    }
}

impl Goobj {
    fn find(&self, objects: &Objects) -> Result<u16, ObjectError> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => (0..=u16::MAX)
                .find(|goid| objects.name_of(*goid) == Some(name))
                .ok_or_else(|| ObjectError::NoGoobj(name.clone())),
        }
    }
}

/// Encodes a table of property values, given by the properties' names.
fn values(table: &toml::Table, class: &Class) -> worldwire_core::Result<Properties<'static>> {
    // Dates and infinities, which JSON lacks, become null, which no property accepts.
    let json = serde_json::to_value(table).unwrap_or_default();
    Properties::from_json(Given::from(&Json::from(json)), None, class.create())
}

/// Sets the property with the object's position, if its class has one.
pub(super) fn set_position(values: &mut Properties<'static>, class: &Class, place: Point) {
    use worldwire_mxo::types::{PropertyType, Value};
    let Some(index) = class.create().index_of("Position") else { return };
    let is_vector =
        class.create().slot(index).is_some_and(|it| it.kind() == PropertyType::Vector3d);
    if let (true, Ok(index)) = (is_vector, u16::try_from(index))
        && let Ok(bytes) = PropertyType::Vector3d.write(&Value::Vector3d(place))
    {
        values.set(index, bytes);
    }
}

/// Whether a coordinate is a number in range.
fn is_near(part: &f64) -> bool {
    part.abs() <= FURTHEST
}

fn along(place: Point, step: Point, times: usize) -> Point {
    #[expect(clippy::cast_precision_loss, reason = "objects are counted by thousands")]
    let times = times as f64;
    core::array::from_fn(|at| step[at].mul_add(times, place[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_scene_is_valid() {
        let objects = Objects::built_in();
        assert_eq!(Scene::built_in(&objects).unwrap().len(), 500);
    }

    #[test]
    fn goobjs_can_be_given_by_name() {
        let scene = "[[object]]\ngoobj = 'Subway Car Default'\nat = [1.0, 2.0, 3.0]\n";
        let scene = Scene::parse(scene, &Objects::built_in()).unwrap();
        assert_eq!((scene.things[0].goid, scene.len()), (6568, 1));
    }

    #[test]
    fn the_start_must_be_in_range() {
        let objects = Objects::built_in();
        let started = |start: &str| Scene::parse(&format!("start = {start}\n"), &objects);
        assert_eq!(started("[1e6, 0.0, -1e6]").unwrap().start, [1e6, 0.0, -1e6]);
        for start in ["[nan, 0.0, 0.0]", "[1e300, 0.0, inf]", "[0.0, 0.0, -1000001.0]"] {
            let error = started(start).unwrap_err().to_string();
            let wanted = "start: coordinates must be at most 1000000, not [";
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn errors_name_the_object_and_field() {
        let objects = Objects::built_in();
        let wrong = |lines: &str| {
            let text = format!("[[object]]\ngoobj = 414\nat = [0.0, 0.0, 0.0]\n{lines}\n");
            Scene::parse(&text, &objects).unwrap_err().to_string()
        };
        let cases = [
            ("count = 70000", "object 1: count: a scene has at most 60000 objects"),
            (
                "step = [1e6, 0.0, 0.0]\ncount = 3",
                "object 1: at: coordinates must be at most 1000000",
            ),
            ("speed = 3.0", "object 1: path and speed must be given together"),
            ("speed = 3.0\npath = []", "object 1: path: must have 1 to 1024 points, not 0"),
            ("speed = nan\npath = [[0.0, 0.0, 0.0]]", "object 1: speed must be greater than 0"),
            ("values = { Currentstate = 1 }", "object 1: values: wanted a property of the class"),
            ("values = { CurrentState = -1 }", "object 1: values: CurrentState"),
            (
                "cycle = { property = 'CurrentState', values = [1], every = 0.0 }",
                "object 1: cycle: ",
            ),
            (
                "cycle = { property = 'CurrentState', values = ['x'], every = 1.0 }",
                "object 1: cycle",
            ),
            (
                "cycle = { property = 'Position', values = [1], every = 1.0 }",
                "object 1: cycle: updates do not include the property \"Position\"",
            ),
        ];
        for (lines, wanted) in cases {
            let found = wrong(lines);
            assert!(found.starts_with(wanted), "{lines}: {found}");
        }
        assert!(wrong("colour = 3").contains("unknown field `colour`"));
        let text = "[[object]]\ngoobj = 9\nat = [0.0, 0.0, 0.0]\n";
        let found = Scene::parse(text, &objects).unwrap_err().to_string();
        assert_eq!(found, "object 1: goobj: the class of 9 is unknown");
    }
}
