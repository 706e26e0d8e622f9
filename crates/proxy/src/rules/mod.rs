//! Rules: a small language that decides what a proxy does with messages.
//!
//! ```text
//! let muted = "Elin"                      # each conversation has its own variables
//!
//! when S_CHAT and authorName == muted { drop }
//! when C_CHAT { set message = "[" + channel + "] " + message; count "chats" }
//! every 30s { inject server C_REQUEST_PING {} }
//! on connect { log "a conversation begins" }
//! ```
//!
//! `docs/proxy.md` describes the language. A file passes through these modules: `scan` reads words
//! and texts; `parse` and `value` build the statements and values of `syntax`; `check` compares
//! these with the definitions, using `set` and `inject` for the statements of those names, and
//! builds the `program`; `run` carries it out; `evaluate` computes values.

mod check;
mod evaluate;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod inject;
mod parse;
mod program;
mod run;
mod scan;
mod set;
mod syntax;
mod value;

use core::fmt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use worldwire_core::Diagnostic;
use worldwire_dissect::Definitions;

use crate::handler::Handler;
use program::Program;
use run::RuleHandler;

/// The rules of a file, checked against the definitions of messages.
///
/// ```
/// use worldwire_dissect::Definitions;
/// use worldwire_proxy::Rules;
///
/// let definitions = Definitions::built_in();
/// let text = "when auth.AcctLoginRequest {\n  set os = \"mac\"\n  dorp\n}\n";
/// let errors = Rules::parse("my.rules", text, &definitions).unwrap_err();
/// assert_eq!(
///     errors[0].to_string(),
///     "my.rules:3:3: error: unknown statement `dorp` (did you mean `drop`?)"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Rules {
    program: Arc<Program>,
}

impl Rules {
    /// Reads and checks a rules file.
    ///
    /// # Errors
    /// All errors and warnings in the file, in the order of their lines.
    pub fn parse(
        file: &str,
        text: &str,
        definitions: &Definitions,
    ) -> Result<Self, Vec<Diagnostic>> {
        check::check(file, text, definitions).map(|program| Self { program: Arc::new(program) })
    }

    /// The warnings about the file.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.program.warnings
    }

    /// A handler that carries out the rules in one conversation, with its own variables and timers.
    #[must_use]
    pub fn handler(&self) -> Box<dyn Handler> {
        let current =
            Current { program: Arc::clone(&self.program).into(), version: AtomicU64::new(0) };
        Box::new(RuleHandler::new(Arc::new(current)))
    }
}

/// A rules file that can change while conversations use it.
///
/// A conversation uses the new rules from its next message on.
#[derive(Debug)]
pub struct RuleFile {
    file: String,
    definitions: Arc<Definitions>,
    current: Arc<Current>,
}

impl RuleFile {
    /// Reads and checks a rules file.
    ///
    /// # Errors
    /// Those of [`Rules::parse`].
    pub fn new(
        file: &str,
        text: &str,
        definitions: Arc<Definitions>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let program = Rules::parse(file, text, &definitions)?.program;
        let current = Current { program: program.into(), version: AtomicU64::new(0) };
        Ok(Self { file: file.to_owned(), definitions, current: Arc::new(current) })
    }

    /// Replaces the rules with the new text of the file, in all conversations at once. Returns the
    /// warnings about it. Variables and counters that keep their names keep their values.
    ///
    /// # Errors
    /// Those of [`Rules::parse`]. The old rules then stay in force.
    pub fn reload(&self, text: &str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let mut program = check::check(&self.file, text, &self.definitions)?;
        let mut current = self.current.program.write().unwrap_or_else(PoisonError::into_inner);
        let known: HashMap<&str, &Arc<AtomicU64>> =
            current.counters.iter().map(|counter| (&*counter.name, &counter.count)).collect();
        for counter in &mut program.counters {
            if let Some(count) = known.get(&*counter.name) {
                counter.count = Arc::clone(count);
            }
        }
        drop(known);
        let warnings = program.warnings.clone();
        *current = Arc::new(program);
        self.current.version.fetch_add(1, Ordering::Release);
        Ok(warnings)
    }

    /// The warnings about the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.current.get().warnings.clone()
    }

    /// A handler that carries out the rules in one conversation, with its own variables and timers.
    #[must_use]
    pub fn handler(&self) -> Box<dyn Handler> {
        Box::new(RuleHandler::new(Arc::clone(&self.current)))
    }

    /// The counters of `count` statements, over all conversations, by name.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, u64)> {
        let program = self.current.get();
        let counts = program.counters.iter();
        let mut counts: Vec<(String, u64)> = counts
            .map(|counter| (counter.name.clone(), counter.count.load(Ordering::Relaxed)))
            .collect();
        counts.sort();
        counts
    }
}

/// The rules that all conversations of a file use.
struct Current {
    program: RwLock<Arc<Program>>,
    /// Increases with each change.
    version: AtomicU64,
}

impl Current {
    fn get(&self) -> Arc<Program> {
        Arc::clone(&self.program.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("version", &self.version).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
