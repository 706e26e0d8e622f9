//! The three dialects of the definition language.
//!
//! | construct | legacy | toolbox | proto |
//! | --- | --- | --- | --- |
//! | counts and offsets | at the start of their scope | likewise | at their field |
//! | `count x`, `offset x` | where they are written | `count` is ignored, `offset` means `ref` | |
//! | `ref x` | | where it is written | |
//! | `array<T>` | | fixed-size types and `string` | any type |
//! | `array[interleaved]` | | yes | |
//! | `T[n]`, `^from-to`, `@include`, `name=value` | | | yes |
//! | `skillid` | 8 bytes | 8 bytes | 8 bytes from patch 74 on, 4 before |
//!
//! If any line gives a count or offset an explicit position, every count and offset in that file
//! must have one.

use super::parse::{Line, MAX_DEPTH, Meta, Statement, Type};
use super::problem::ProblemKind;
use crate::named::named;

named! {
    /// A dialect of the definition language.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Dialect {
        /// The original one, with lines for counts and offsets.
        Legacy = "legacy",
        /// tera-toolbox's, with `ref`, typed arrays and interleaved arrays.
        Toolbox = "toolbox",
        /// tera-proxy's in 2020, with patch ranges and includes.
        Proto = "proto",
    }
}

impl Dialect {
    /// The dialect with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// Constructs in the text that only some dialects have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Lines for counts or offsets.
    pub legacy: bool,
    /// `ref`, `array<T>` or `[interleaved]`.
    pub toolbox: bool,
    /// Patch ranges, includes, rows or values.
    pub proto: bool,
}

impl Marks {
    /// The constructs that statements use.
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

    /// The union of two texts' constructs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            legacy: self.legacy || other.legacy,
            toolbox: self.toolbox || other.toolbox,
            proto: self.proto || other.proto,
        }
    }

    /// The dialect of a set that uses these constructs, if all its files share one. Anything from
    /// proto makes it proto; without any of the constructs, the other two dialects agree.
    #[must_use]
    pub const fn of_set(self) -> Option<Dialect> {
        match self {
            Self { proto: true, .. } => Some(Dialect::Proto),
            Self { legacy: true, toolbox: true, .. } => None,
            Self { legacy: true, .. } => Some(Dialect::Legacy),
            _ => Some(Dialect::Toolbox),
        }
    }

    /// The dialect of one file in a mixed set. A file with only `count` and `offset` lines was
    /// written for the first parser, which alone reads them as written.
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

/// Why a line is not allowed where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: ProblemKind,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

fn refuse(kind: ProblemKind, message: String, help: Option<&str>) -> Refusal {
    Refusal { kind, message, help: help.map(str::to_owned) }
}

/// Checks that a dialect has everything a line uses.
pub(crate) fn check(line: &Line, dialect: Dialect) -> Result<(), Refusal> {
    let foreign = |what: String, home: &str| {
        let message = format!("the {dialect} dialect has no {what}");
        let help = format!("it belongs to the {home} dialect; a set can use only one dialect");
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
                let message = format!("{element} cannot be an array element");
                let help = "use a fixed-size type or string; only the proto dialect allows others";
                Err(refuse(ProblemKind::UnknownType, message, Some(help)))
            }
        },
        _ => Ok(()),
    }
}

/// Checks that a line may follow the one before it.
pub(crate) fn check_depth(
    line: &Line,
    before: Option<&Line>,
    dialect: Dialect,
) -> Result<(), Refusal> {
    let depth = before.map_or(0, |before| before.depth);
    let max_depth = before.map_or(0, |before| before.depth + 1);
    if line.depth > max_depth {
        let message = format!("{} dashes after a line with {depth}", line.depth);
        let help = "a line can be at most one dash deeper than the line before it";
        return Err(refuse(ProblemKind::DepthJump, message, Some(help)));
    }
    if line.depth > MAX_DEPTH {
        let message = format!("fields are nested more than {MAX_DEPTH} deep");
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
    let message = format!("{} has type {}, which cannot hold fields", parent.name, parent.kind);
    Err(refuse(ProblemKind::ParentNotContainer, message, Some("only array and object can")))
}
