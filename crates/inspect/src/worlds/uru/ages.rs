//! Ages, as far as messages show them: the states of their objects over time, and the positions of
//! players.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::report::{NamedValue, ObjectId, Point};
use super::{Moment, size, values};

/// The ages seen so far.
#[derive(Debug, Default)]
pub(super) struct Ages {
    ages: BTreeMap<u32, Age>,
    /// The age of each game connection, by conversation.
    joined: HashMap<u64, u32>,
    /// Ages that clients requested, by conversation and transaction.
    asked: HashMap<(u64, u64), String>,
    players: HashMap<u32, String>,
    objects: usize,
    /// The number of all positions.
    points: usize,
    /// The size of all values.
    bytes: usize,
    is_full: bool,
}

#[derive(Debug, Default)]
struct Age {
    name: String,
    objects: BTreeMap<(ObjectId, String), Object>,
    paths: BTreeMap<ObjectId, Path>,
}

#[derive(Debug, Default)]
struct Object {
    variables: Vec<NamedValue>,
    changes: VecDeque<Change>,
    /// The size of all changes.
    bytes: usize,
}

#[derive(Debug)]
struct Change {
    moment: Moment,
    variables: Vec<NamedValue>,
}

/// The positions of an object over time.
#[derive(Debug, Default)]
struct Path {
    points: Vec<(Moment, Point)>,
    /// Only positions whose numbers are multiples of this are kept.
    step: usize,
    count: usize,
}

const MAX_AGES: usize = 1000;
const MAX_OBJECTS: usize = 50_000;
/// The maximum size of all values and changes, in bytes; estimated.
const MAX_BYTES: usize = 64 << 20;
/// The maximum number of changes of an object; the oldest are merged.
const MAX_CHANGES: usize = 1000;
/// The maximum size of an object's changes; estimated.
const MAX_HISTORY: usize = 4 << 20;
/// The maximum number of positions of an object. Beyond that, every other one is dropped.
const MAX_POINTS: usize = 4096;
/// The maximum number of positions of all objects.
const MAX_ALL_POINTS: usize = 1_000_000;
/// The approximate number of positions in one response, evenly chosen.
const MAX_SENT: usize = 200_000;
/// The maximum number of names of players, of connections, and of unanswered requests.
const MAX_NAMES: usize = 65_536;
/// The maximum number of paths in one response.
const MAX_LISTED: usize = 1000;

impl Ages {
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn ask(&mut self, stream: u64, transaction: u64, name: &str) {
        if self.asked.len() < MAX_NAMES {
            self.asked.insert((stream, transaction), name.to_owned());
        }
    }

    /// The host of a requested age.
    pub(super) fn found(&mut self, stream: u64, transaction: u64, host: u32) {
        let Some(name) = self.asked.remove(&(stream, transaction)) else { return };
        if let Some(age) = self.age(host) {
            age.name = name;
        }
    }

    pub(super) fn join(&mut self, stream: u64, host: u32) {
        if self.joined.len() < MAX_NAMES {
            self.joined.insert(stream, host);
            self.age(host);
        }
    }

    pub(super) fn player(&mut self, id: u32, name: &str) {
        if self.players.len() < MAX_NAMES || self.players.contains_key(&id) {
            self.players.insert(id, name.to_owned());
        }
    }

    /// Records variables of an object. The same change reaches several clients but is counted once.
    pub(super) fn change(
        &mut self,
        stream: u64,
        object: &ObjectId,
        descriptor: &str,
        variables: &[NamedValue],
        moment: Moment,
    ) {
        if self.bytes + 2 * size(variables) > MAX_BYTES || self.objects >= MAX_OBJECTS {
            self.is_full = true;
            return;
        }
        let host = self.joined.get(&stream).copied().unwrap_or_default();
        let Some(age) = self.age(host) else { return };
        let before = age.objects.len();
        let own = age.objects.entry((object.clone(), descriptor.to_owned())).or_default();
        let memory = own.memory();
        own.change(variables, moment);
        let (grown, added) = (own.memory(), age.objects.len() - before);
        self.bytes = (self.bytes + grown).saturating_sub(memory);
        self.objects += added;
    }

    pub(super) fn moved(&mut self, stream: u64, object: &ObjectId, to: Point, moment: Moment) {
        let host = self.joined.get(&stream).copied().unwrap_or_default();
        if self.objects >= MAX_OBJECTS || self.points >= MAX_ALL_POINTS {
            self.is_full = true;
            return;
        }
        let Some(age) = self.age(host) else { return };
        let before = age.paths.len();
        let path = age.paths.entry(object.clone()).or_default();
        let points = path.points.len();
        path.push(moment, to);
        let (grown, added) = (path.points.len(), age.paths.len() - before);
        self.points = (self.points + grown).saturating_sub(points);
        self.objects += added;
    }

    /// All ages.
    pub(super) fn list(&self) -> Value {
        let line = |(host, age): (&u32, &Age)| {
            json!({
                "age": host,
                "name": age.name,
                "objects": age.objects.len(),
                "paths": age.paths.len(),
            })
        };
        self.ages.iter().map(line).collect()
    }

    /// The objects of an age.
    pub(super) fn objects(&self, host: u32, start: usize, count: usize) -> Option<Value> {
        let age = self.ages.get(&host)?;
        let line =
            |(number, ((id, descriptor), object)): (usize, (&(ObjectId, String), &Object))| {
                json!({
                    "object": number,
                    "name": id.name,
                    "player": self.who(id.player),
                    "descriptor": descriptor,
                    "page": id.location.1,
                    "changes": object.changes.len(),
                })
            };
        let objects: Vec<Value> =
            age.objects.iter().enumerate().skip(start).take(count).map(line).collect();
        Some(json!({ "total": age.objects.len(), "start": start, "objects": objects }))
    }

    /// An object with its variables and their changes.
    pub(super) fn object(&self, host: u32, number: usize) -> Option<Value> {
        let ((id, descriptor), object) = self.ages.get(&host)?.objects.iter().nth(number)?;
        let change = |change: &Change| change.moment.with("variables", values(&change.variables));
        Some(json!({
            "object": number,
            "name": id.name,
            "player": self.who(id.player),
            "descriptor": descriptor,
            "variables": values(&object.variables),
            "history": object.changes.iter().map(change).collect::<Value>(),
        }))
    }

    /// The positions of players and other objects in an age.
    pub(super) fn paths(&self, host: u32) -> Option<Value> {
        let age = self.ages.get(&host)?;
        let total: usize = age.paths.values().take(MAX_LISTED).map(|path| path.points.len()).sum();
        let step = total.div_ceil(MAX_SENT).max(1);
        let line = |(id, path): (&ObjectId, &Path)| {
            let point = |(moment, [x, y, z]): &(Moment, Point)| {
                json!([moment.time.to_string(), moment.row, x, y, z])
            };
            let last = path.points.len().saturating_sub(1);
            let chosen = path.points.iter().enumerate();
            let chosen = chosen.filter(|(at, _)| at.is_multiple_of(step) || *at == last);
            let points: Value = chosen.map(|(_, at)| point(at)).collect();
            json!({ "name": id.name, "player": self.who(id.player), "points": points })
        };
        Some(json!({ "paths": age.paths.iter().take(MAX_LISTED).map(line).collect::<Value>() }))
    }

    /// A player by name, or by number if the name is unknown; `null` for 0.
    fn who(&self, player: u32) -> Value {
        match self.players.get(&player) {
            _ if player == 0 => Value::Null,
            Some(name) => name.as_str().into(),
            None => format!("player {player}").into(),
        }
    }

    fn age(&mut self, host: u32) -> Option<&mut Age> {
        if self.ages.len() >= MAX_AGES && !self.ages.contains_key(&host) {
            self.is_full = true;
            return None;
        }
        Some(self.ages.entry(host).or_default())
    }
}

impl Object {
    fn memory(&self) -> usize {
        size(&self.variables) + self.bytes
    }

    /// Records variables.
    fn change(&mut self, variables: &[NamedValue], moment: Moment) {
        let known = |new: &NamedValue| {
            self.variables.iter().any(|own| own.same_name(new) && own.value == new.value)
        };
        let changed: Vec<NamedValue> = variables.iter().filter(|it| !known(it)).cloned().collect();
        if changed.is_empty() {
            return;
        }
        merge(&mut self.variables, &changed);
        self.bytes += size(&changed);
        self.changes.push_back(Change { moment, variables: changed });
        while (self.changes.len() > MAX_CHANGES || self.bytes > MAX_HISTORY)
            && self.changes.len() > 1
            && let Some(oldest) = self.changes.pop_front()
            && let Some(next) = self.changes.front_mut()
        {
            // Merging does not change the state at any later moment.
            self.bytes -= size(&oldest.variables) + size(&next.variables);
            let mut merged = oldest.variables;
            merge(&mut merged, &next.variables);
            self.bytes += size(&merged);
            next.variables = merged;
        }
    }
}

/// Replaces existing values and adds new ones.
fn merge(into: &mut Vec<NamedValue>, changed: &[NamedValue]) {
    for new in changed {
        match into.iter_mut().find(|own| own.same_name(new)) {
            Some(own) => own.value.clone_from(&new.value),
            None => into.push(new.clone()),
        }
    }
}

impl Path {
    fn push(&mut self, moment: Moment, point: Point) {
        if self.points.last().is_some_and(|(_, last)| *last == point) {
            return;
        }
        self.step = self.step.max(1);
        if self.count.is_multiple_of(self.step) {
            self.points.push((moment, point));
        }
        self.count += 1;
        if self.points.len() > MAX_POINTS {
            self.step *= 2;
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lever() -> ObjectId {
        ObjectId { name: "Lever".to_owned(), player: 0, location: (120, 1) }
    }

    fn variable(name: &str, value: &str) -> NamedValue {
        NamedValue { name: name.to_owned(), game: None, value: value.to_owned() }
    }

    #[test]
    fn a_change_counts_once() {
        let mut ages = Ages::default();
        ages.ask(0, 1, "Fernhollow");
        ages.found(0, 1, 7);
        ages.join(3, 7);
        ages.join(4, 7);
        let (up, down) = ([variable("place", "1")], [variable("place", "0")]);
        for (stream, state, row) in [(3, &up, 1), (4, &up, 2), (3, &down, 3), (4, &down, 4)] {
            ages.change(stream, &lever(), "fhLever", state, Moment::test(row));
        }
        assert_eq!(
            ages.list()[0],
            json!({ "age": 7, "name": "Fernhollow", "objects": 1, "paths": 0 })
        );
        let object = ages.object(7, 0).unwrap();
        assert_eq!(object["variables"][0], json!({ "name": "place", "value": "0" }));
        let rows: Vec<_> =
            object["history"].as_array().unwrap().iter().map(|it| &it["row"]).collect();
        assert_eq!(rows, [1, 3]);
        assert!(ages.object(7, 1).is_none() && ages.object(8, 0).is_none());
    }

    #[test]
    fn long_histories_keep_the_state_and_long_paths_their_shape() {
        let mut ages = Ages::default();
        let first = [variable("label", "x"), variable("place", "?")];
        ages.change(1, &lever(), "fhLever", &first, Moment::test(0));
        for row in 1..10_000 {
            let state = [variable("place", &row.to_string())];
            ages.change(1, &lever(), "fhLever", &state, Moment::test(row));
            ages.moved(1, &lever(), [row as f64, 0.0, 0.0], Moment::test(row));
        }
        let object = ages.object(0, 0).unwrap();
        let history = object["history"].as_array().unwrap();
        assert_eq!(history.len(), MAX_CHANGES);
        assert_eq!(history[0]["variables"][0], json!({ "name": "label", "value": "x" }));
        assert!(ages.bytes < 400_000, "{}", ages.bytes);
        let paths = ages.paths(0).unwrap();
        let points = paths["paths"][0]["points"].as_array().unwrap();
        assert!((1000..=MAX_POINTS).contains(&points.len()), "{}", points.len());
        let last = points.last().unwrap()[2].as_f64().unwrap();
        assert!(last > 9_990.0, "{last}");
    }

    #[test]
    fn positions_are_bounded() {
        let mut ages = Ages::default();
        for number in 0..2_000_u32 {
            let object = ObjectId { name: number.to_string(), player: 0, location: (1, 1) };
            for row in 0..600 {
                ages.moved(1, &object, [f64::from(number), f64::from(row), 0.0], Moment::test(0));
            }
        }
        assert!(ages.is_full() && ages.points <= MAX_ALL_POINTS, "{}", ages.points);
        let paths = ages.paths(0).unwrap();
        let paths = paths["paths"].as_array().unwrap();
        let sent: usize = paths.iter().map(|path| path["points"].as_array().unwrap().len()).sum();
        assert!(paths.len() == MAX_LISTED && sent < MAX_SENT + 2 * MAX_LISTED, "{sent}");
    }
}
