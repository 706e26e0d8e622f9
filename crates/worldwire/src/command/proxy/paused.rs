//! `worldwire proxy --pause`: breakpoints.

use std::sync::Arc;

use worldwire_dissect::Definitions;
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_proxy::{Effects, Handler, Next, Passing};

use crate::cli::Common;
use crate::command::dissect::read_filter;
use crate::output::Failure;

/// Holds the messages that match any of its filters.
#[derive(Clone, Debug)]
pub(super) struct Paused(Arc<[Filter]>);

impl Paused {
    pub(super) fn new(
        filters: &[String],
        definitions: &Definitions,
        common: &Common,
    ) -> Result<Option<Self>, Failure> {
        let read = |text: &String| read_filter(text, definitions, common);
        let filters: Vec<Filter> = filters.iter().map(read).collect::<Result<_, _>>()?;
        Ok((!filters.is_empty()).then(|| Self(filters.into())))
    }

    /// The handler of one conversation.
    pub(super) fn handler(&self) -> Box<dyn Handler> {
        Box::new(self.clone())
    }
}

impl Handler for Paused {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        let subject = Subject::of(passing.item, passing.name, passing.tree());
        if !passing.is_dropped && self.0.iter().any(|filter| filter.matches(&subject)) {
            effects.pause();
        }
        Next::Done
    }
}
