//! Checked rules, ready to run.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use worldwire_core::Diagnostic;
use worldwire_core::json::Json;
use worldwire_dissect::Families;
use worldwire_dissect::filter::{FieldPath, Filter};

use super::syntax::{Operator, Target};

/// All rules of a file, checked.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) file: Arc<str>,
    pub(super) families: Families,
    pub(super) rules: Vec<Rule>,
    /// Run when a conversation begins.
    pub(super) connect: Vec<Block>,
    pub(super) timers: Vec<Timer>,
    pub(super) variables: Vec<Variable>,
    pub(super) counters: Vec<Counter>,
    /// The number of [places](Origin::number) that can report problems.
    pub(super) places: usize,
    pub(super) warnings: Vec<Diagnostic>,
}

impl Program {
    /// No rules.
    pub(super) fn new(file: &str, families: Families) -> Self {
        Self {
            file: file.into(),
            families,
            rules: Vec::new(),
            connect: Vec::new(),
            timers: Vec::new(),
            variables: Vec::new(),
            counters: Vec::new(),
            places: 0,
            warnings: Vec::new(),
        }
    }
}

/// `when filter { ... }`
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) filter: Filter,
    /// Whether the filter uses variables.
    pub(super) is_bound: bool,
    /// The work of the filter and of the block, in steps per byte of the message.
    pub(super) work: [u64; 2],
    pub(super) block: Block,
    pub(super) origin: Origin,
}

/// `every 30s { ... }`
#[derive(Debug)]
pub(super) struct Timer {
    pub(super) period: Duration,
    pub(super) block: Block,
}

/// Statements in order.
pub(super) type Block = Vec<Step>;

#[derive(Debug)]
pub(super) struct Step {
    pub(super) origin: Origin,
    pub(super) action: StepAction,
}

/// A place in the file where a problem can occur.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) line: usize,
    /// The number of the place, for limiting the rate of its reports.
    pub(super) number: usize,
    /// The beginning of its text: `set os`.
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) enum StepAction {
    Set { path: FieldPath, value: Term },
    Let { variable: usize, value: Term },
    Drop,
    Pause,
    Delay(Duration),
    Log(Vec<Part>),
    Count(usize),
    Inject(Injection),
}

#[derive(Debug)]
pub(super) struct Injection {
    pub(super) to: Target,
    /// The full name.
    pub(super) name: String,
    pub(super) family: &'static str,
    /// The codec of the message. Messages of different codecs belong to different conversations.
    pub(super) codec: Option<&'static str>,
    pub(super) fields: Term,
    /// Where it is in the file: ``my.rules:7: `inject C_CHAT` ``.
    pub(super) origin: Arc<str>,
}

/// A value to compute.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Constant(Json),
    Variable(usize),
    Field(FieldPath),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Negative(Box<Self>),
    Computed(Operator, Box<(Self, Self)>),
}

/// A part of the text to log.
#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Value(Term),
}

/// A variable. Each conversation has its own copy.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Its initial value.
    pub(super) initial: Option<Json>,
}

/// A counter, shared by all conversations.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) count: Arc<AtomicU64>,
}
