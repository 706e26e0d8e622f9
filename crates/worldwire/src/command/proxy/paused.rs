//! `worldwire proxy --pause`: breakpoints.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use worldwire_dissect::Definitions;
use worldwire_dissect::filter::{Filter, Resolver, Subject};
use worldwire_proxy::{Effects, Handler, Next, Passing};

use crate::cli::Common;
use crate::command::dissect::read_filter;
use crate::output::Failure;

/// Holds the messages that match any of its filters, which can be replaced while the proxy runs.
#[derive(Clone)]
pub(super) struct Paused {
    filters: Arc<RwLock<Arc<[Pause]>>>,
    definitions: Arc<Definitions>,
}

/// A filter, as given and as resolved.
#[derive(Clone, Debug)]
struct Pause {
    text: String,
    filter: Filter,
}

/// The maximum number of filters that operators can set.
const MAX_FILTERS: usize = 64;

impl Paused {
    pub(super) fn new(
        filters: &[String],
        definitions: &Arc<Definitions>,
        common: &Common,
    ) -> Result<Self, Failure> {
        let read = |text: &String| -> Result<Pause, Failure> {
            let filter = read_filter(text, definitions, common)?;
            Ok(Pause { text: text.clone(), filter })
        };
        let filters: Arc<[Pause]> = filters.iter().map(read).collect::<Result<_, Failure>>()?;
        Ok(Self { filters: Arc::new(RwLock::new(filters)), definitions: Arc::clone(definitions) })
    }

    /// Replaces the filters. Messages that are already held stay held.
    ///
    /// # Errors
    /// If a filter cannot be read or names something that cannot exist. The old filters then stay
    /// in force.
    pub(super) fn set(&self, texts: &[String]) -> Result<(), String> {
        if texts.len() > MAX_FILTERS {
            return Err(format!("at most {MAX_FILTERS} filters can hold messages"));
        }
        let resolver = Resolver::new(&self.definitions);
        let read = |text: &String| -> Result<Pause, String> {
            let filter = Filter::parse(text).map_err(|error| error.to_string())?;
            let filter = filter.resolve(&resolver);
            filter.check(&resolver, &mut |_| ()).map_err(|problem| format!("filter: {problem}"))?;
            Ok(Pause { text: text.clone(), filter })
        };
        let filters = texts.iter().map(read).collect::<Result<_, String>>()?;
        *self.filters.write().unwrap_or_else(PoisonError::into_inner) = filters;
        Ok(())
    }

    /// The filters as they were given.
    pub(super) fn texts(&self) -> Vec<String> {
        self.filters().iter().map(|pause| pause.text.clone()).collect()
    }

    /// The handler of one conversation.
    pub(super) fn handler(&self) -> Box<dyn Handler> {
        Box::new(self.clone())
    }

    fn filters(&self) -> Arc<[Pause]> {
        Arc::clone(&self.filters.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Paused").field(&self.texts()).finish()
    }
}

impl Handler for Paused {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        let filters = self.filters();
        if passing.is_dropped || filters.is_empty() {
            return Next::Done;
        }
        let subject = Subject::of(passing.item, passing.name, passing.tree());
        if filters.iter().any(|pause| pause.filter.matches(&subject)) {
            effects.pause();
        }
        Next::Done
    }
}
