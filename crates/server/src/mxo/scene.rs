//! A scene: the objects of a world, and what they do, as a TOML file.
//!
//! ```toml
//! start = [0.0, 0.0, 0.0]       # where characters begin
//!
//! [[object]]
//! goobj = 414                   # by number or by name
//! at = [1800.0, 495.0, 2400.0]  # x, y (height), z; 100 units are a metre
//! world_id = 0x34f0089a         # an object that the client's world has; may be left out
//! values = { CurrentState = 0x838 }
//! cycle = { property = "CurrentState", values = [0x834, 0x838], every = 5.0 }
//!
//! [[object]]
//! goobj = 599
//! at = [0.0, 0.0, 0.0]
//! count = 20                    # so many, each a step further
//! step = [100.0, 0.0, 0.0]
//! row = 10                      # a new row after so many
//! next_row = [0.0, 0.0, 100.0]
//! path = [[0.0, 0.0, 0.0], [500.0, 0.0, 0.0]]  # from `at`; round and round
//! speed = 180.0                 # units a second
//! pause = 2.0                   # seconds at each point
//! ```
//!
//! Values are those that `worldwire decode` shows. Only objects whose updates have movement walk:
//! characters and NPCs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use worldwire_core::json::{Given, Json};
use worldwire_mxo::message::Properties;
use worldwire_mxo::replicator::Point;
use worldwire_mxo::schema::{Class, Objects, Order, Updates};

use super::actor::{Cycle, Walk};

/// The most objects of a scene.
pub const MAX_OBJECTS: usize = 60_000;
/// The most points of a path, and the most values of a cycle.
const MAX_STEPS: usize = 1_024;
/// The furthest coordinate: an `f32` tells centimetres apart up to there.
const FURTHEST: f64 = 1e6;
/// The scene that is built in.
const BUILT_IN: &str = include_str!("scene.toml");

/// The objects of a world.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Where characters begin.
    pub(super) start: Point,
    pub(super) things: Vec<Thing>,
}

/// An object and what it does.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) goid: u16,
    pub(super) world_id: Option<u32>,
    pub(super) place: Point,
    pub(super) properties: Properties<'static>,
    pub(super) walk: Option<Arc<Walk>>,
    pub(super) cycle: Option<Arc<Cycle>>,
}

/// Why a scene cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// The file.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The syntax, or the fields.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[from] toml::de::Error),
    /// Where characters begin.
    #[error("start: wanted coordinates up to {FURTHEST}, found {0:?}")]
    Start(Point),
    /// An object.
    #[error("object {number}: {what}")]
    Object {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong.
        what: String,
    },
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
    /// The scene that is built in: a square with 100 doors, 200 things and 200 people.
    ///
    /// # Errors
    /// [`SceneError::Object`], when tables have taken the built-in goobjs away.
    pub fn built_in(objects: &Objects) -> Result<Self, SceneError> {
        Self::parse(BUILT_IN, objects)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Those of the system, and of [`parse`](Self::parse).
    pub fn read(path: &Path, objects: &Objects) -> Result<Self, SceneError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SceneError::Io { path: path.to_owned(), error })?;
        Self::parse(&text, objects)
    }

    /// Reads a scene whose goobjs are among these.
    ///
    /// # Errors
    /// What is wrong with the start, or with the first object that cannot stand.
    pub fn parse(text: &str, objects: &Objects) -> Result<Self, SceneError> {
        let file: File = toml::from_str(text)?;
        if !file.start.iter().all(is_near) {
            return Err(SceneError::Start(file.start));
        }
        let mut things = Vec::new();
        for (index, entry) in file.object.iter().enumerate() {
            entry
                .add(objects, &mut things)
                .map_err(|what| SceneError::Object { number: index + 1, what })?;
        }
        Ok(Self { start: file.start, things })
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }
}

impl Entry {
    fn add(&self, objects: &Objects, things: &mut Vec<Thing>) -> Result<(), String> {
        let goid = self.goobj.find(objects)?;
        let Some((_, class)) = objects.class_of(goid) else {
            return Err(format!("goobj: wanted one whose class is known, found {goid}"));
        };
        let count = self.count.unwrap_or(1);
        if things.len().saturating_add(count) > MAX_OBJECTS {
            return Err(format!("count: wanted at most {MAX_OBJECTS} objects in all"));
        }
        let mut values = values(&self.values, class).map_err(|error| format!("values: {error}"))?;
        let walk = self.walk(class)?.map(Arc::new);
        let cycle = self.cycle(class)?.map(Arc::new);
        let row = self.row.unwrap_or(usize::MAX).max(1);
        for number in 0..count {
            let place = along(self.at, self.step, number % row);
            let place = along(place, self.next_row, number / row);
            if !place.iter().all(is_near) {
                return Err(format!("at: wanted coordinates up to {FURTHEST}, found {place:?}"));
            }
            set_position(&mut values, class, place);
            things.push(Thing {
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

    fn walk(&self, class: &Class) -> Result<Option<Walk>, String> {
        let (points, speed) = match (&self.path, self.speed) {
            (None, None) => return Ok(None),
            (Some(points), Some(speed)) => (points, speed),
            _ => return Err("wanted both a path and a speed, or neither".to_owned()),
        };
        if !(1..=MAX_STEPS).contains(&points.len()) {
            return Err(format!("path: wanted 1 to {MAX_STEPS} points, found {}", points.len()));
        }
        if !points.iter().flatten().all(is_near) {
            return Err(format!("path: wanted coordinates up to {FURTHEST}"));
        }
        let range = 0.0..=FURTHEST;
        if !(speed > 0.0 && range.contains(&speed) && range.contains(&self.pause)) {
            return Err("wanted a speed above 0, and a pause of 0 or more".to_owned());
        }
        if !matches!(class.updates(), Updates::Npc(_) | Updates::Player { .. }) {
            let found = class.name();
            return Err(format!("path: wanted an object that walks, found one of class {found}"));
        }
        Ok(Some(Walk::new(points, speed, self.pause)))
    }

    fn cycle(&self, class: &Class) -> Result<Option<Cycle>, String> {
        let Some(cycle) = &self.cycle else { return Ok(None) };
        let CycleEntry { property, values: list, every } = cycle;
        let is_updated = |order: &Order| order.index_of(property).is_some();
        if !class.updates().orders().any(is_updated) {
            return Err(format!("cycle: wanted a property that updates have, found {property:?}"));
        }
        if !(0.05..=FURTHEST).contains(every) {
            return Err(format!("cycle: wanted at least 0.05 seconds, found {every}"));
        }
        if !(1..=MAX_STEPS).contains(&list.len()) {
            return Err(format!("cycle: wanted 1 to {MAX_STEPS} values, found {}", list.len()));
        }
        let bytes = |value: &toml::Value| {
            let mut one = toml::Table::new();
            one.insert(property.clone(), value.clone());
            let one = values(&one, class).map_err(|error| format!("cycle: {error}"))?;
            let first = one.list().first().map(|property| property.bytes().to_vec());
            first.ok_or_else(|| "cycle: wanted a value".to_owned())
        };
        let list = list.iter().map(bytes).collect::<Result<_, String>>()?;
        Ok(Some(Cycle::new(property, list, *every)))
    }
}

impl Goobj {
    fn find(&self, objects: &Objects) -> Result<u16, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => (0..=u16::MAX)
                .find(|goid| objects.name_of(*goid) == Some(name))
                .ok_or_else(|| format!("goobj: there is none named {name:?}")),
        }
    }
}

/// Values by the names of their properties.
fn values(table: &toml::Table, class: &Class) -> Result<Properties<'static>, String> {
    let json = serde_json::to_value(table).map_err(|error| error.to_string())?;
    Properties::from_json(Given::from(&Json::from(json)), None, class.create())
        .map_err(|it| it.to_string())
}

/// Tells the client where the object is, if its class has a place for that.
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

/// Whether a coordinate is a number that is not too large.
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
    fn the_scene_that_is_built_in_is_read() {
        let objects = Objects::built_in();
        assert_eq!(Scene::built_in(&objects).unwrap().len(), 500);
    }

    #[test]
    fn a_goobj_may_be_named() {
        let scene = "[[object]]\ngoobj = 'Subway Car Default'\nat = [1.0, 2.0, 3.0]\n";
        let scene = Scene::parse(scene, &Objects::built_in()).unwrap();
        assert_eq!((scene.things[0].goid, scene.len()), (6568, 1));
    }

    #[test]
    fn characters_begin_where_they_can_stand() {
        let objects = Objects::built_in();
        let started = |start: &str| Scene::parse(&format!("start = {start}\n"), &objects);
        assert_eq!(started("[1e6, 0.0, -1e6]").unwrap().start, [1e6, 0.0, -1e6]);
        for start in ["[nan, 0.0, 0.0]", "[1e300, 0.0, inf]", "[0.0, 0.0, -1000001.0]"] {
            let error = started(start).unwrap_err().to_string();
            let wanted = "start: wanted coordinates up to 1000000, found [";
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let objects = Objects::built_in();
        let wrong = |lines: &str| {
            let text = format!("[[object]]\ngoobj = 414\nat = [0.0, 0.0, 0.0]\n{lines}\n");
            Scene::parse(&text, &objects).unwrap_err().to_string()
        };
        let cases = [
            ("count = 70000", "object 1: count: wanted at most 60000 objects in all"),
            ("step = [1e6, 0.0, 0.0]\ncount = 3", "object 1: at: wanted coordinates up to 1000000"),
            ("speed = 3.0", "object 1: wanted both a path and a speed, or neither"),
            ("speed = 3.0\npath = []", "object 1: path: wanted 1 to 1024 points, found 0"),
            ("speed = nan\npath = [[0.0, 0.0, 0.0]]", "object 1: wanted a speed above 0"),
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
                "object 1: cycle: wanted a property that updates have, found \"Position\"",
            ),
        ];
        for (lines, wanted) in cases {
            let found = wrong(lines);
            assert!(found.starts_with(wanted), "{lines}: {found}");
        }
        assert!(wrong("colour = 3").contains("unknown field `colour`"));
        let text = "[[object]]\ngoobj = 9\nat = [0.0, 0.0, 0.0]\n";
        let found = Scene::parse(text, &objects).unwrap_err().to_string();
        assert_eq!(found, "object 1: goobj: wanted one whose class is known, found 9");
    }
}
