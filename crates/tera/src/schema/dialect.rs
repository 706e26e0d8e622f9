//! The three dialects of the definition language.
//!
//! | construct | legacy | toolbox | proto |
//! | --- | --- | --- | --- |
//! | counts and offsets | in front of their scope | in front of their scope | where the field stands |
//! | `count x`, `offset x` | where they are written | `count` dropped, `offset` as `ref` | |
//! | `ref x` | | where it is written | |
//! | `array<T>` | | of fixed size, or `string` | of any type |
//! | `array[interleaved]` | | yes | |
//! | `T[n]`, `^from-to`, `@include`, `name=value` | | | yes |
//! | `skillid` | 8 bytes | 8 bytes | 8 bytes from patch 74 on, 4 before |
//!
//! One line with an explicit place for a count or offset turns the places in front off for its
//! whole file.

use core::fmt;

use super::parse::{Line, MAX_DEPTH, Meta, Statement, Type};
use super::problem::ProblemKind;

/// A dialect of the definition language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The first one, with lines for counts and offsets.
    Legacy,
    /// The one of tera-toolbox, with `ref`, typed and interleaved arrays.
    Toolbox,
    /// The one of tera-proxy in 2020, with patch ranges and includes.
    Proto,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Toolbox, Self::Proto];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Toolbox => "toolbox",
            Self::Proto => "proto",
        }
    }

    /// The dialect of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a text uses that only some dialects know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Lines for counts or offsets.
    pub legacy: bool,
    /// `ref`, `array<T>` or `[interleaved]`.
    pub toolbox: bool,
    /// Patch ranges, includes, rows, values.
    pub proto: bool,
}

impl Marks {
    /// What the statements of a text use.
    #[must_use]
    pub fn of(statements: &[Statement]) -> Self {
        let mut marks = Self::default();
        for statement in statements {
            match statement {
                Statement::Include { .. } => marks.proto = true,
                Statement::Line(line) => {
                    marks.proto |=
                        line.range.is_some() || line.init.is_some() || has_row(&line.kind);
                    match &line.kind {
                        Type::Meta(Meta::Ref) => marks.toolbox = true,
                        Type::Meta(_) => marks.legacy = true,
                        Type::Array(element) => {
                            marks.toolbox |= line.interleaved || **element != Type::Object;
                        }
                        _ => {}
                    }
                }
            }
        }
        marks
    }

    /// What either of two texts uses.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            legacy: self.legacy || other.legacy,
            toolbox: self.toolbox || other.toolbox,
            proto: self.proto || other.proto,
        }
    }

    /// The dialect of a set that uses this, when it is one of one dialect: proto for a set of
    /// 2020; without any marks the others agree.
    #[must_use]
    pub const fn of_set(self) -> Option<Dialect> {
        match self {
            Self { proto: true, .. } => Some(Dialect::Proto),
            Self { legacy: true, toolbox: true, .. } => None,
            Self { legacy: true, .. } => Some(Dialect::Legacy),
            _ => Some(Dialect::Toolbox),
        }
    }

    /// The dialect of one file of a mixed set: a file with lines for counts and offsets alone was
    /// written for the first parser, and only that reads them as they stand.
    #[must_use]
    pub const fn of_file(self) -> Dialect {
        match self {
            Self { proto: true, .. } => Dialect::Proto,
            Self { legacy: true, toolbox: false, .. } => Dialect::Legacy,
            _ => Dialect::Toolbox,
        }
    }
}

fn has_row(kind: &Type) -> bool {
    match kind {
        Type::Row(..) => true,
        Type::Array(element) => has_row(element),
        _ => false,
    }
}

/// Why a line cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: ProblemKind,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

fn refuse(kind: ProblemKind, message: String, help: Option<&str>) -> Refusal {
    Refusal { kind, message, help: help.map(str::to_owned) }
}

/// Whether a dialect knows all of a line.
pub(crate) fn check(line: &Line, dialect: Dialect) -> Result<(), Refusal> {
    let foreign = |what: String, home: &str| {
        let message = format!("the {dialect} dialect does not know {what}");
        let help = format!("it belongs to the {home} dialect, and a set has only one dialect");
        Err(refuse(ProblemKind::WrongDialect, message, Some(&help)))
    };
    if dialect != Dialect::Proto {
        if let Some(range) = line.range {
            return foreign(range.to_string(), "proto");
        }
        if line.init.is_some() {
            return foreign("name=value".to_owned(), "proto");
        }
        if has_row(&line.kind) {
            return foreign(line.kind.to_string(), "proto");
        }
    }
    match (&line.kind, dialect) {
        (Type::Meta(Meta::Ref), Dialect::Toolbox) => Ok(()),
        (Type::Meta(_), Dialect::Legacy | Dialect::Toolbox)
            if line.kind != Type::Meta(Meta::Ref) =>
        {
            Ok(())
        }
        (Type::Meta(Meta::Ref), _) => foreign("ref".to_owned(), "toolbox"),
        (Type::Meta(_), _) => foreign(line.kind.to_string(), "legacy"),
        _ if line.interleaved && dialect != Dialect::Toolbox => {
            foreign("[interleaved]".to_owned(), "toolbox")
        }
        (Type::Array(element), Dialect::Legacy) if **element != Type::Object => {
            foreign(line.kind.to_string(), "toolbox")
        }
        (Type::Array(element), Dialect::Toolbox) => match **element {
            Type::Scalar(_) | Type::Text | Type::Object => Ok(()),
            _ => {
                let message = format!("{element} cannot be the type of array elements");
                let help = "they are of fixed size, or string; the proto dialect knows all types";
                Err(refuse(ProblemKind::UnknownType, message, Some(help)))
            }
        },
        _ => Ok(()),
    }
}

/// Whether a line can stand behind the one before it; `parent` is the type that it would belong
/// to, `depth` the depth of the line before.
pub(crate) fn check_depth(
    line: &Line,
    before: Option<&Line>,
    dialect: Dialect,
) -> Result<(), Refusal> {
    let depth = before.map_or(0, |before| before.depth);
    let most = before.map_or(0, |before| before.depth + 1);
    if line.depth > most {
        let message = format!("{} dashes after a line with {depth}", line.depth);
        let help = "a line is at most one dash deeper than the one before it";
        return Err(refuse(ProblemKind::DepthJump, message, Some(help)));
    }
    if line.depth > MAX_DEPTH {
        let message = format!("fields nested more than {MAX_DEPTH} deep");
        return Err(refuse(ProblemKind::TooLarge, message, None));
    }
    let Some(parent) = before.filter(|before| line.depth > before.depth) else {
        return Ok(());
    };
    let holds = match (&parent.kind, dialect) {
        (kind, Dialect::Proto) => *kind.innermost() == Type::Object,
        (Type::Array(element), _) => **element == Type::Object,
        (kind, _) => *kind == Type::Object,
    };
    if holds {
        return Ok(());
    }
    let message = format!("{} is of type {}, which holds no fields", parent.name, parent.kind);
    Err(refuse(ProblemKind::ParentNotContainer, message, Some("only array and object do")))
}
