//! Captures log lines for tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// All lines that this thread logs, at any level, while this value lives.
pub(crate) struct Log {
    lines: Lines,
    _guard: DefaultGuard,
    /// While there is only one dispatcher, `tracing` disables a call site for good if a thread
    /// without a dispatcher reaches it first. Other tests run in such threads.
    _second: Dispatch,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn begin() -> Self {
        let lines = Lines::default();
        let second = Dispatch::new(lines.clone());
        Self { _guard: tracing::subscriber::set_default(lines.clone()), lines, _second: second }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.0.lock().unwrap().clone()
    }

    /// The lines that contain these words.
    pub(crate) fn with(&self, words: &str) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.contains(words));
        lines
    }
}

/// An event's fields as one line.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("worldwire")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
