//! Random definitions in every dialect.

mod shuffled;

pub(crate) use shuffled::shuffled;

use proptest::prelude::*;
use worldwire_core::Sampler;
use worldwire_tera::schema::{Dialect, Patch};
use worldwire_tera::types::Scalar;

/// The patch ranges of random fields, as written in definitions.
const RANGES: [&str; 5] = ["", "^86", "^0-86", "^60.05-98.02", "^98.02"];

/// The type of a random field.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    Text,
    Bytes,
    /// An array with fields, and whether it is interleaved if possible.
    Array(Vec<Field>, bool),
    /// `array<T>`.
    List(Box<Self>, bool),
    Object(Vec<Field>),
    Row(Box<Self>, u8),
}

/// A random field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    kind: Kind,
    /// Whether it shares the name of an earlier field if possible.
    again: bool,
    /// An index of [`RANGES`].
    range: usize,
    name: String,
}

/// A random definition.
#[derive(Clone, Debug)]
pub(crate) struct SyntheticDefinition {
    pub(crate) dialect: Dialect,
    pub(crate) patch: Option<Patch>,
    fields: Vec<Field>,
    /// Whether counts and offsets have their own lines.
    explicit: bool,
    /// Determines where those lines are, and how the text is spaced.
    seed: u64,
}

pub(crate) fn definitions() -> impl Strategy<Value = SyntheticDefinition> {
    let dialect = prop_oneof![Just(Dialect::Legacy), Just(Dialect::Toolbox), Just(Dialect::Proto)];
    let patch = prop_oneof![
        Just(None),
        Just(Some(Patch::major(60))),
        Just(Some(Patch::major(86))),
        Just(Some(Patch { major: 98, minor: 2 })),
    ];
    (dialect, patch).prop_flat_map(|(dialect, patch)| {
        (fields(dialect, 3), any::<bool>(), any::<u64>()).prop_map(
            move |(fields, explicit, seed)| {
                let explicit = explicit && dialect != Dialect::Proto;
                let mut made = SyntheticDefinition { dialect, patch, fields, explicit, seed };
                name(&mut made.fields, &mut 0);
                made
            },
        )
    })
}

fn fields(dialect: Dialect, depth: u32) -> BoxedStrategy<Vec<Field>> {
    let field = (kind(dialect, depth), prop::bool::weighted(0.2), 0..RANGES.len() * 2);
    let field = field.prop_map(move |(kind, again, range)| {
        let range = if dialect == Dialect::Proto && range < RANGES.len() { range } else { 0 };
        Field { kind, again, range, name: String::new() }
    });
    prop::collection::vec(field, 0..6).boxed()
}

fn scalar() -> impl Strategy<Value = Kind> {
    prop::sample::select(Scalar::ALL.to_vec()).prop_map(Kind::Scalar)
}

fn kind(dialect: Dialect, depth: u32) -> BoxedStrategy<Kind> {
    let leaf = prop_oneof![4 => scalar(), 2 => Just(Kind::Text), 1 => Just(Kind::Bytes)];
    if depth == 0 {
        return leaf.boxed();
    }
    let array = (fields(dialect, depth - 1), any::<bool>())
        .prop_map(|(fields, mixed)| Kind::Array(fields, mixed));
    let object = fields(dialect, depth - 1).prop_map(Kind::Object);
    match dialect {
        Dialect::Legacy => prop_oneof![5 => leaf, 2 => array, 1 => object].boxed(),
        Dialect::Toolbox => {
            let element = prop_oneof![3 => scalar(), 1 => Just(Kind::Text)];
            let list = (element, any::<bool>())
                .prop_map(|(element, mixed)| Kind::List(Box::new(element), mixed));
            prop_oneof![5 => leaf, 2 => array, 2 => list, 1 => object].boxed()
        }
        Dialect::Proto => {
            let list =
                kind(dialect, depth - 1).prop_map(|element| Kind::List(Box::new(element), false));
            let row = (kind(dialect, depth - 1), 1..4_u8)
                .prop_map(|(element, count)| Kind::Row(Box::new(element), count));
            prop_oneof![5 => leaf, 2 => array, 2 => list, 1 => object, 2 => row].boxed()
        }
    }
}

/// Names all fields; those that may share a name do.
fn name(fields: &mut [Field], next: &mut usize) {
    let (mut scalar, mut object) = (None, None);
    for field in fields {
        // Keywords at the start of a line are valid names, too.
        let words = ["ref", "count", "array", "type", "x_", "_"];
        let fresh = format!("{}{next}", words[*next % words.len()]);
        *next += 1;
        let known = match &field.kind {
            Kind::Scalar(_) => &mut scalar,
            Kind::Object(_) => &mut object,
            _ => &mut None,
        };
        field.name = match known {
            Some(name) if field.again => String::clone(name),
            _ => fresh,
        };
        *known = Some(field.name.clone());
        name_inside(&mut field.kind, next);
    }
}

fn name_inside(kind: &mut Kind, next: &mut usize) {
    match kind {
        Kind::Array(fields, _) | Kind::Object(fields) => name(fields, next),
        Kind::List(inner, _) | Kind::Row(inner, _) => name_inside(inner, next),
        Kind::Scalar(_) | Kind::Text | Kind::Bytes => {}
    }
}

impl Kind {
    fn varies(&self) -> bool {
        matches!(self, Self::Text | Self::Bytes | Self::Array(..) | Self::List(..))
    }

    /// The type as written, and the fields nested below it.
    fn text(&self) -> (String, &[Field]) {
        match self {
            Self::Scalar(scalar) => (scalar.name().to_owned(), &[]),
            Self::Text => ("string".to_owned(), &[]),
            Self::Bytes => ("bytes".to_owned(), &[]),
            Self::Array(fields, _) => ("array".to_owned(), fields),
            Self::Object(fields) => ("object".to_owned(), fields),
            Self::List(inner, _) => {
                let (text, fields) = inner.text();
                (format!("array<{text}>"), fields)
            }
            Self::Row(_, _) => {
                let (mut inner, mut counts) = (self, String::new());
                while let Self::Row(element, count) = inner {
                    counts.push_str(&format!("[{count}]"));
                    inner = element;
                }
                let (text, fields) = inner.text();
                (format!("{text}{counts}"), fields)
            }
        }
    }

    /// Whether its elements are interleaved with others where that is possible.
    fn mixed(&self) -> bool {
        match self {
            Self::Array(_, mixed) => *mixed,
            Self::List(inner, mixed) => *mixed && !matches!(**inner, Self::Text),
            _ => false,
        }
    }
}

impl SyntheticDefinition {
    /// The text of the definition, with irregular spacing.
    pub(crate) fn text(&self) -> String {
        let mut text = Text { made: self, sampler: Sampler::new(self.seed), out: String::new() };
        text.scope(&self.fields, 0);
        text.out
    }
}

struct Text<'m> {
    made: &'m SyntheticDefinition,
    sampler: Sampler,
    out: String,
}

impl Text<'_> {
    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[usize::try_from(self.sampler.below(texts.len() as u64)).unwrap()]
    }

    fn line(&mut self, depth: usize, kind: &str, name: &str, behind: &str) {
        for _ in 0..depth {
            let dash = self.pick(&["- ", "-", "-\t"]);
            self.out.push_str(dash);
        }
        let parts = [self.pick(&["", "\u{feff}", ""]), kind, self.pick(&[" ", "  ", "\t"]), name];
        // White space is allowed before the dashes, but not twice after a type.
        for part in if depth == 0 { &parts[..] } else { &parts[1..] } {
            self.out.push_str(part);
        }
        let end = self.pick(&["\n", "\r\n", " # int32 no\n", "\n\n\n#\n", "  \n"]);
        self.out.push_str(behind);
        self.out.push_str(end);
    }

    /// Writes the lines of a message, or of an array element.
    fn scope(&mut self, fields: &[Field], depth: usize) {
        let mut front = Vec::new();
        if self.made.explicit {
            self.variable(fields, "", &mut front);
        }
        // Words not placed at the start come just before their fields.
        let mut near: Vec<String> = Vec::new();
        let mut lines: Vec<(&str, String)> = Vec::new();
        for (path, kind) in front {
            // A line between two interleaved arrays would separate them.
            if self.sampler.below(3) == 0 && !kind.mixed() {
                near.push(path);
                continue;
            }
            for word in self.words(kind) {
                let at = usize::try_from(self.sampler.below(lines.len() as u64 + 1)).unwrap();
                lines.insert(at, (word, path.clone()));
            }
        }
        if self.made.explicit && self.made.dialect == Dialect::Legacy && self.sampler.below(8) == 0
        {
            lines.push(("offset", "nobody".to_owned()));
        }
        for (word, path) in lines {
            self.line(depth, word, &path, "");
        }
        // Interleaved arrays must be adjacent, once per scope.
        let first = fields.iter().position(|field| field.kind.mixed());
        let run = first.map_or(0..0, |first| {
            let rest = fields[first..].iter();
            first..first + rest.take_while(|field| field.kind.mixed()).count()
        });
        self.record(fields, depth, "", &near, &run);
    }

    fn words(&self, kind: &Kind) -> &'static [&'static str] {
        match (self.made.dialect, kind) {
            (Dialect::Toolbox, _) => &["ref"],
            (_, Kind::Text) => &["offset"],
            _ => &["count", "offset"],
        }
    }

    /// The fields of a scope that have counts or offsets, with their paths.
    fn variable<'f>(&self, fields: &'f [Field], path: &str, out: &mut Vec<(String, &'f Kind)>) {
        for field in fields {
            let path = format!("{path}{}", field.name);
            if let Kind::Object(fields) = &field.kind {
                self.variable(fields, &format!("{path}."), out);
            } else if field.kind.varies() {
                out.push((path, &field.kind));
            }
        }
    }

    fn record(
        &mut self,
        fields: &[Field],
        depth: usize,
        path: &str,
        near: &[String],
        mixed: &std::ops::Range<usize>,
    ) {
        for (index, field) in fields.iter().enumerate() {
            let path = format!("{path}{}", field.name);
            if near.contains(&path) {
                for word in self.words(&field.kind) {
                    self.line(depth, word, &field.name, "");
                }
            }
            let (mut kind, below) = field.kind.text();
            if mixed.contains(&index) && self.made.dialect == Dialect::Toolbox {
                kind.push_str("[interleaved]");
            }
            let range = RANGES[field.range];
            let space = if range.is_empty() { "" } else { " " };
            let value = if field.range == 3 { "=5" } else { "" };
            self.line(depth, &kind, &field.name, &format!("{value}{space}{range}"));
            match &field.kind {
                Kind::Object(below) => {
                    self.record(below, depth + 1, &format!("{path}."), near, &(0..0));
                }
                Kind::Array(..) | Kind::List(..) => self.scope(below, depth + 1),
                _ => self.record(below, depth + 1, "", &[], &(0..0)),
            }
        }
    }
}
