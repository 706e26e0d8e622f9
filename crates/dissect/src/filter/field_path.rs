//! Finds fields in the JSON of a message, by the same paths as filters.

use core::fmt;
use std::collections::BTreeSet;

use worldwire_core::json::Json;

use super::error::Problem;
use super::expression::{Expression, Path, Pattern, Start, Step};
use super::path_value::PathValue;
use super::resolve::Resolver;
use super::{Filter, FilterError, Subject, values};
use crate::vocabulary::ValueKind;

/// A path to a field, to be followed in the value of `fields` in a JSON line.
///
/// It finds what a filter finds among the fields of the same message's tree: a field by its path, or
/// by the end of its path if that is unambiguous. A name applied to a list means all of its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath {
    path: Path,
    scope: Vec<Pattern>,
    /// See [`Self::plain`].
    plain: Option<Box<str>>,
}

/// Why it is unclear where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// The path can mean several fields.
    Ambiguous {
        /// The path as written.
        path: String,
        /// The fields that the path can mean.
        candidates: Vec<String>,
    },
    /// The path leads to more places than allowed.
    Places {
        /// The bound.
        limit: usize,
    },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous { path, candidates } => {
                let all = candidates.iter().map(|candidate| format!("`{candidate}`"));
                let all = worldwire_core::listed(all);
                write!(f, "`{path}` is ambiguous: it can be {all}; write more of the path")
            }
            Self::Places { limit } => {
                write!(f, "the path matches more than {limit} values; add an index")
            }
        }
    }
}

impl core::error::Error for PathError {}

/// A step in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JsonStep {
    Name(Box<str>),
    Index(usize),
}

type Place = Vec<JsonStep>;

impl FieldPath {
    /// Parses a path to a field of the messages that a filter names.
    ///
    /// # Errors
    /// What is wrong with the path, as for a filter. Columns count from the start of the path.
    pub fn parse(text: &str, of: &Filter, resolver: &Resolver<'_>) -> Result<Self, FilterError> {
        // Only a plain path parses as a test for existence.
        let Expression::Exists(path) = Filter::parse(&format!("exists({text})"))?.expression else {
            return Err(Problem::new(0, "a field", format!("`{text}`")).in_filter(text));
        };
        let scope: Vec<Pattern> = match &of.expression {
            Expression::Message(pattern) => vec![pattern.clone()],
            Expression::All(parts) => {
                let names = parts.iter().filter_map(|part| match part {
                    Expression::Message(pattern) => Some(pattern.clone()),
                    _ => None,
                });
                names.collect()
            }
            _ => Vec::new(),
        };
        let path = resolver.known().path(path, &scope);
        let plain = plain(&path);
        Ok(Self { path, scope, plain })
    }

    /// A filter for the messages that have the field, to check its names.
    #[must_use]
    pub fn filter(&self) -> Filter {
        let named = self.scope.iter().cloned().map(Expression::Message);
        let exists = Expression::Exists(self.path.clone());
        Filter::of(Expression::all(named.chain([exists]).collect()))
    }

    /// The same filter with a condition on the field, such as `== 5`, to check a value.
    ///
    /// # Errors
    /// What is wrong with the condition.
    pub fn filter_with(&self, condition: &str) -> Result<Filter, FilterError> {
        let test = match Filter::parse(&format!("x {condition}"))?.expression {
            Expression::Test(_, check) => Expression::Test(self.path.clone(), check),
            other => other,
        };
        let named = self.scope.iter().cloned().map(Expression::Message);
        Ok(Filter::of(Expression::all(named.chain([test]).collect())))
    }

    /// The path, if it is written from the top of the fields with names and indices only:
    /// `members[2].name`. In a message that has this path, it leads to the field and to nothing else.
    #[must_use]
    pub fn plain(&self) -> Option<&str> {
        self.plain.as_deref()
    }

    /// The kind of value in the field, if the definitions state it and all messages of the family
    /// agree.
    #[must_use]
    pub fn kind(&self, resolver: &Resolver<'_>) -> Option<ValueKind> {
        values::kind(&self.path, &self.scope, resolver)
    }

    /// Whether it can only be metadata: `message.from`.
    #[must_use]
    pub fn is_only_metadata(&self) -> bool {
        matches!(self.path.start(), Start::Message(_))
    }

    /// Whether it can be metadata, if the message has no such field.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        self.path.is_metadata()
    }

    /// The metadata that the path names, if any. If there are several values, the first.
    #[must_use]
    pub fn metadata(&self, subject: &Subject<'_>) -> Option<Json> {
        let values = subject.metadata(self.path.metadata()?);
        Some(match values.into_iter().flatten().next()? {
            PathValue::Text(text) => text.into(),
            PathValue::Whole(number) => number.into(),
            PathValue::Real(number) => number.into(),
            PathValue::Address(address) => address.to_string().into(),
            PathValue::Moment(time) => time.to_string().into(),
            PathValue::Error(error) => error.to_string().into(),
            // Metadata is outside the tree.
            PathValue::Node(_) => return None,
        })
    }

    /// The values of the field; none if the message lacks it.
    ///
    /// # Errors
    /// [`PathError::Ambiguous`], and [`PathError::Places`] if there are more values than `limit`.
    pub fn values<'j>(&self, fields: &'j Json, limit: usize) -> Result<Vec<&'j Json>, PathError> {
        let places = self.places(fields, limit)?;
        Ok(places.iter().filter_map(|place| follow(fields, place)).collect())
    }

    /// Sets the field wherever the path leads and returns the number of places.
    ///
    /// If a field shows what was decoded from its `bytes`, setting something inside it removes the
    /// `bytes`, which would contradict the new value. New bytes replace what was decoded from the
    /// old ones.
    ///
    /// # Errors
    /// [`PathError::Ambiguous`], and [`PathError::Places`] if there are more places than `limit`.
    pub fn set(&self, fields: &mut Json, value: &Json, limit: usize) -> Result<usize, PathError> {
        let places = self.places(fields, limit)?;
        places.iter().for_each(|place| set(fields, place, value));
        Ok(places.len())
    }

    fn places(&self, fields: &Json, limit: usize) -> Result<Vec<Place>, PathError> {
        let steps = match self.path.start() {
            Start::Message(_) => return Ok(Vec::new()),
            Start::Top => self.path.steps().get(1..).unwrap_or_default(),
            Start::Anywhere(_) => self.path.steps(),
        };
        let mut search = Search { places: Vec::new(), limit };
        search.walk(fields, steps, &mut Vec::new())?;
        if search.places.is_empty() && self.path.is_tail() {
            self.tails(fields, &mut search)?;
        }
        Ok(search.places)
    }

    /// Finds the path in the objects nearest to the top.
    fn tails(&self, fields: &Json, search: &mut Search) -> Result<(), PathError> {
        /// An object, how it is reached, and the names on the way.
        type Container<'j> = (&'j Json, Place, Vec<&'j str>);
        let steps = self.path.steps();
        let mut level: Vec<Container<'_>> = vec![(fields, Vec::new(), Vec::new())];
        while !level.is_empty() {
            let mut next: Vec<Container<'_>> = Vec::new();
            for (json, place, names) in &level {
                inside(json, place, names, &mut next);
            }
            let mut found: BTreeSet<Vec<&str>> = BTreeSet::new();
            for (json, place, names) in &next {
                let before = search.places.len();
                search.walk(json, steps, &mut place.clone())?;
                if search.places.len() > before {
                    found.insert(names.clone());
                }
            }
            if found.len() > 1 {
                let path = self.path.to_string();
                let candidate = |names: Vec<&str>| {
                    let names = names.into_iter().map(|name| Step::Name(name.into()));
                    Path::new(names.chain(steps.iter().cloned()).collect()).to_string()
                };
                let candidates = found.into_iter().map(candidate).collect();
                return Err(PathError::Ambiguous { path, candidates });
            }
            if !found.is_empty() {
                return Ok(());
            }
            level = next;
        }
        Ok(())
    }
}

/// The path as it is written.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

fn plain(path: &Path) -> Option<Box<str>> {
    let steps = match path.start() {
        Start::Message(_) => return None,
        Start::Top => path.steps().get(1..)?,
        Start::Anywhere(_) => path.steps(),
    };
    let mut plain = String::new();
    for step in steps {
        match step {
            Step::Name(name) if !name.contains(['.', '[', ']']) => {
                if !plain.is_empty() {
                    plain.push('.');
                }
                plain.push_str(name);
            }
            Step::Index(index) if !plain.is_empty() => plain.push_str(&format!("[{index}]")),
            _ => return None,
        }
    }
    (!plain.is_empty()).then(|| plain.into())
}

/// Adds the objects that are values of an object, or elements of lists that are such values.
fn inside<'j>(
    json: &'j Json,
    place: &[JsonStep],
    names: &[&'j str],
    out: &mut Vec<(&'j Json, Place, Vec<&'j str>)>,
) {
    let with = |step| place.iter().cloned().chain([step]).collect::<Place>();
    match json {
        Json::Object(object) => {
            for (name, value) in object {
                let place = with(JsonStep::Name(name.into()));
                let names: Vec<&str> = names.iter().copied().chain([name]).collect();
                match value {
                    Json::Object(_) => out.push((value, place, names)),
                    Json::Array(_) => inside(value, &place, &names, out),
                    _ => {}
                }
            }
        }
        Json::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let place = with(JsonStep::Index(index));
                match value {
                    Json::Object(_) => out.push((value, place, names.to_vec())),
                    Json::Array(_) => inside(value, &place, names, out),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Collects the places that a path leads to.
struct Search {
    places: Vec<Place>,
    limit: usize,
}

impl Search {
    fn walk(&mut self, json: &Json, steps: &[Step], at: &mut Place) -> Result<(), PathError> {
        let Some((step, rest)) = steps.split_first() else {
            if self.places.len() >= self.limit {
                return Err(PathError::Places { limit: self.limit });
            }
            self.places.push(at.clone());
            return Ok(());
        };
        let mut deeper = |json: &Json, to: JsonStep, steps: &[Step]| {
            at.push(to);
            let outcome = self.walk(json, steps, at);
            at.pop();
            outcome
        };
        match (step, json) {
            (Step::Name(name), Json::Object(object)) => {
                let Some(value) = object.get(name) else { return Ok(()) };
                deeper(value, JsonStep::Name(name.clone()), rest)
            }
            // A name applied to a list means any of its elements.
            (Step::Name(_), Json::Array(items)) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| deeper(item, JsonStep::Index(index), steps))
            }
            (Step::Index(index), Json::Array(items)) => {
                let Some(item) = items.get(*index) else { return Ok(()) };
                deeper(item, JsonStep::Index(*index), rest)
            }
            (Step::Each, Json::Array(items)) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| deeper(item, JsonStep::Index(index), rest))
            }
            (Step::Each, Json::Object(object)) => {
                let mut values = object.iter();
                values.try_for_each(|(name, item)| deeper(item, JsonStep::Name(name.into()), rest))
            }
            _ => Ok(()),
        }
    }
}

fn follow<'j>(json: &'j Json, place: &[JsonStep]) -> Option<&'j Json> {
    place.iter().try_fold(json, |json, step| match step {
        JsonStep::Name(name) => json.get(&**name),
        JsonStep::Index(index) => json.get(*index),
    })
}

fn set(json: &mut Json, place: &[JsonStep], value: &Json) {
    let Some((step, rest)) = place.split_first() else {
        json.clone_from(value);
        return;
    };
    if let (JsonStep::Name(name), Json::Object(object)) = (step, &mut *json)
        && object.len() > 1
        && object.get("bytes").is_some_and(is_plain)
    {
        if &**name == "bytes" && rest.is_empty() {
            json.clone_from(value);
            return;
        }
        if &**name != "bytes" {
            object.remove("bytes");
        }
    }
    let inner = match step {
        JsonStep::Name(name) => json.get_mut(&**name),
        JsonStep::Index(index) => json.get_mut(*index),
    };
    if let Some(inner) = inner {
        set(inner, rest, value);
    }
}

/// Whether it is the bytes or the text of a field.
fn is_plain(json: &Json) -> bool {
    json.is_string() || json.get("$hex").is_some()
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::{Json, json};

    use super::super::Resolver;
    use super::{FieldPath, Filter, PathError};
    use crate::Definitions;

    /// A path in a message whose definitions list only the ends of paths.
    fn path(text: &str) -> FieldPath {
        let definitions = Definitions::built_in();
        let of = Filter::parse("game.PropagateBuffer and from == client").unwrap();
        FieldPath::parse(text, &of, &Resolver::new(&definitions)).unwrap()
    }

    fn fields() -> Json {
        json!({
            "type": "plNetMsgSDLState",
            "buffer": {
                "bytes": { "$hex": "0102" },
                "message": {
                    "playerId": 7,
                    "members": [{ "client": { "playerId": 1 } }, { "client": { "playerId": 2 } }],
                    "object": { "objectId": 1 },
                    "other": { "objectId": 2 }
                }
            }
        })
    }

    #[test]
    fn fields_are_found_by_path_and_by_the_end_of_it() {
        let fields = fields();
        let values = |text: &str| {
            let values = path(text).values(&fields, 9).unwrap();
            values.into_iter().cloned().collect::<Json>().to_string()
        };
        assert_eq!(values("type"), "[\"plNetMsgSDLState\"]");
        assert_eq!(values("fields.buffer.message.playerId"), "[7]");
        assert_eq!(values("playerId"), "[7]");
        assert_eq!(values("client.playerId"), "[1,2]");
        assert_eq!(values("members[1].client.playerId"), "[2]");
        assert_eq!(
            values("buffer.message.members[*].client"),
            "[{\"playerId\":1},{\"playerId\":2}]"
        );
        assert_eq!(values("missing"), "[]");
        assert_eq!(values("message.length"), "[]");
    }

    #[test]
    fn ambiguous_paths_are_errors() {
        let error = path("objectId").values(&fields(), 9).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`objectId` is ambiguous: it can be `buffer.message.object.objectId`, \
             `buffer.message.other.objectId`; write more of the path"
        );
        let error = path("client.playerId").values(&fields(), 1).unwrap_err();
        assert_eq!(error, PathError::Places { limit: 1 });
    }

    #[test]
    fn bytes_do_not_contradict_what_is_set() {
        let mut changed = fields();
        assert_eq!(path("playerId").set(&mut changed, &8.into(), 9), Ok(1));
        assert_eq!(changed["buffer"].get("bytes"), None);
        assert_eq!(changed["buffer"]["message"]["playerId"], 8_u32);
        let bytes = json!({ "$hex": "ff" });
        let mut changed = fields();
        assert_eq!(path("buffer.bytes").set(&mut changed, &bytes, 9), Ok(1));
        assert_eq!(changed["buffer"], bytes);
        assert_eq!(path("client.playerId").set(&mut fields(), &bytes, 9), Ok(2));
    }
}
