//! The syntax tree of a rules file.

use core::ops::Range;
use core::time::Duration;

use worldwire_core::json::Json;

/// A byte range of the file.
pub(super) type Span = Range<usize>;

/// Text with its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spanned {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A top-level part of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// `let name = value`
    Let { name: Spanned, value: Value },
    /// `when filter { ... }`
    When { filter: Spanned, body: Vec<Statement> },
    /// `every 30s { ... }`
    Every { period: Duration, body: Vec<Statement> },
    /// `on connect { ... }`
    Connect { body: Vec<Statement> },
}

/// A statement in a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) span: Span,
    pub(super) action: Action,
}

/// The effect of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Set { path: Spanned, value: Value },
    Let { name: Spanned, value: Value },
    Drop,
    Pause,
    Delay(Duration),
    Log(Vec<Piece>),
    Count(String),
    Inject { to: Target, name: Spanned, fields: Value },
}

impl Action {
    /// The keyword.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Let { .. } => "let",
            Self::Drop => "drop",
            Self::Pause => "pause",
            Self::Delay(_) => "delay",
            Self::Log(_) => "log",
            Self::Count(_) => "count",
            Self::Inject { .. } => "inject",
        }
    }
}

/// All statements.
pub(super) const STATEMENTS: [&str; 8] =
    ["count", "delay", "drop", "inject", "let", "log", "pause", "set"];

/// The receiver of an added message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Client,
    Server,
    /// The sender of the message.
    Back,
}

/// A part of the text to log.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// `{field}`
    Value(Spanned),
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Constant(Json),
    /// A variable, a field, or the name of a value.
    Word(Spanned),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Negative(Box<Self>),
    Computed(Operator, Box<(Self, Self)>),
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
}
