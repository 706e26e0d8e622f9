//! Filters and searches: the rows that match, collected in the background.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use worldwire_core::Limits;
use worldwire_dissect::filter::{Filter, Resolver, Subject};
use worldwire_dissect::{Item, Scratch};

use crate::error::Refusal;
use crate::index::RowName;
use crate::recording::Progress;
use crate::state::State;

/// The rows that match a filter.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) id: u64,
    pub(crate) chosen: Chosen,
    rows: Mutex<Vec<u32>>,
    progress: Arc<Progress>,
    is_complete: AtomicBool,
    is_cancelled: AtomicBool,
    fault: Mutex<Option<String>>,
}

/// What is selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Only rows of this conversation.
    pub(crate) stream: Option<u64>,
    /// Only rows that match.
    pub(crate) filter: Option<Filter>,
    /// What may be wrong with the filter.
    pub(crate) remarks: Vec<String>,
}

/// A selection's status, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SelectionStatus {
    pub(crate) id: u64,
    /// The number of rows so far.
    rows: usize,
    /// The progress of the search, in bytes of the file.
    bytes: u64,
    complete: bool,
    /// Whether all rows so far are present, and more are added when the file grows.
    caught_up: bool,
    /// What may be wrong with the filter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl SelectionStatus {
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }
}

/// A text to search for in all values and message names. Pairs of digits after `hex:` are bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'s> {
    pub(crate) text: &'s str,
    /// Whether the search is case-sensitive.
    pub(crate) match_case: bool,
}

/// The selections of all clients.
#[derive(Debug, Default)]
pub(crate) struct Selections {
    all: Mutex<VecDeque<Arc<Selection>>>,
    last: AtomicU64,
}

/// The maximum number of selections. Beyond that, the oldest complete one is dropped.
const MAX_SELECTIONS: usize = 64;
/// The maximum number of selections being collected.
const MAX_COLLECTING: usize = 4;
/// The interval at which a selection that needs only the index looks for new rows.
const PATIENCE: Duration = Duration::from_millis(20);

impl Chosen {
    /// Parses a filter and a search. A filter with a message, field or value that cannot exist is
    /// refused.
    pub(crate) fn parse(
        state: &State,
        stream: Option<u64>,
        filter: &str,
        search: Search<'_>,
    ) -> Result<Self, Refusal> {
        let mut remarks = Vec::new();
        let resolver = Resolver::new(state.recording.definitions());
        let mut wanted = None;
        if !filter.trim().is_empty() {
            let own = parse(filter)?.resolve(&resolver);
            let mut remark = |remark: &str| remarks.push(remark.to_owned());
            own.check(&resolver, &mut remark).map_err(Refusal::bad)?;
            wanted = Some(own);
        }
        if let Some(found) = search.filter()? {
            let found = found.resolve(&resolver);
            wanted = Some(match wanted {
                Some(own) => own.and(found),
                None => found,
            });
        }
        Ok(Self { stream, filter: wanted, remarks })
    }

    /// Whether an item is selected.
    fn has(&self, item: &Item<'_>, scratch: &mut Scratch) -> bool {
        if self.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return false;
        }
        let Some(filter) = &self.filter else { return true };
        let limits = Limits::DEFAULT;
        let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
        let matches = filter.matches(&Subject::of(item, &scratch.name, &tree));
        scratch.tree = tree.recycle();
        matches
    }

    /// Whether names alone decide, so no message needs to be decoded.
    fn is_by_name(&self, names: &[RowName]) -> bool {
        names.iter().all(|name| {
            self.filter.as_ref().is_none_or(|it| it.matches_name(name.family, &name.name).is_some())
        })
    }
}

fn parse(text: &str) -> Result<Filter, Refusal> {
    Filter::parse(text).map_err(|error| {
        let mut refusal = Refusal::bad(error.problem());
        refusal.column = Some(error.column());
        refusal
    })
}

impl Search<'_> {
    /// The filter that finds the text; `None` if there is nothing to search for.
    fn filter(self) -> Result<Option<Filter>, Refusal> {
        if self.text.is_empty() {
            return Ok(None);
        }
        let filter = parse(&self.filter_text()?)?;
        Ok(Some(if self.match_case { filter } else { filter.ignore_case() }))
    }

    /// The filter as text, which matches case.
    fn filter_text(self) -> Result<String, Refusal> {
        if let Some(digits) = self.text.strip_prefix("hex:") {
            let bytes = worldwire_core::value::parse_hex(digits).filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| {
                Refusal::bad("`hex:` needs an even number of hexadecimal digits, such as hex:98 53")
            })?;
            let mut filter = String::from("any contains hex\"");
            worldwire_core::value::push_hex(&mut filter, &bytes);
            filter.push('"');
            return Ok(filter);
        }
        let mut literal = String::from("\"");
        for c in self.text.chars() {
            match c {
                '"' | '\\' => literal.extend(['\\', c]),
                _ if c.is_control() => {
                    let _ = write!(literal, "\\u{{{:x}}}", u32::from(c));
                }
                _ => literal.push(c),
            }
        }
        literal.push('"');
        Ok(format!("any contains {literal} or message.name contains {literal}"))
    }
}

impl Selection {
    pub(crate) fn status(&self) -> SelectionStatus {
        SelectionStatus {
            id: self.id,
            rows: self.rows().len(),
            bytes: self.progress.bytes(),
            complete: self.is_complete.load(Ordering::Acquire),
            caught_up: self.progress.is_waiting(),
            remarks: self.chosen.remarks.clone(),
            error: self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// The rows so far, in order.
    pub(crate) fn rows(&self) -> MutexGuard<'_, Vec<u32>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn end(&self, fault: Option<String>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.is_complete.store(true, Ordering::Release);
    }

    /// Collects rows by name and conversation, as the indexer adds them.
    fn collect_by_name(&self, state: &State) {
        let mut next = 0;
        while !self.is_cancelled.load(Ordering::Relaxed) {
            let index = state.index();
            let wanted: Vec<bool> = index.names().iter().map(|name| self.wants(name)).collect();
            let mut rows = self.rows();
            for row in index.rows_from(next) {
                let is_own =
                    self.chosen.stream.is_none_or(|stream| stream == u64::from(row.stream));
                if is_own && wanted.get(usize::from(row.name)) == Some(&true) {
                    rows.extend(u32::try_from(next));
                }
                next += 1;
            }
            drop(rows);
            if index.is_complete {
                return self.end(None);
            }
            drop(index);
            thread::sleep(PATIENCE);
        }
        self.end(Some("cancelled".to_owned()));
    }

    fn wants(&self, name: &RowName) -> bool {
        let filter = self.chosen.filter.as_ref();
        filter.is_none_or(|it| it.matches_name(name.family, &name.name) != Some(false))
    }

    /// Collects rows by their content: reads the capture again.
    fn collect_by_content(&self, state: &State) {
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<bool>| {
            out.push(self.chosen.has(item, scratch));
        };
        let mut next: u32 = 0;
        let (recording, mut ambiguity) = (&state.recording, None);
        let dissection = recording.dissection();
        let stops = || self.is_cancelled.load(Ordering::Relaxed);
        let take = |found: &Vec<bool>, _| {
            let mut rows = self.rows();
            for is_wanted in found {
                if *is_wanted {
                    rows.push(next);
                }
                next = next.saturating_add(1);
            }
            ambiguity = self.chosen.filter.as_ref().and_then(Filter::ambiguity);
            match self.is_cancelled.load(Ordering::Relaxed) || ambiguity.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        recording.read(dissection, &self.progress, Some(&stops), show, take);
        let is_cancelled = self.is_cancelled.load(Ordering::Relaxed);
        self.end(match ambiguity {
            Some(ambiguity) => Some(ambiguity.to_string()),
            None => is_cancelled.then(|| "cancelled".to_owned()),
        });
    }
}

impl Selections {
    /// Starts collecting the rows of a selection.
    pub(crate) fn start(
        &self,
        state: &Arc<State>,
        chosen: Chosen,
    ) -> Result<Arc<Selection>, Refusal> {
        let mut all = self.lock();
        // A selection that follows the file and has reached its end costs little.
        let is_idle = |selection: &Selection| {
            let status = selection.status();
            status.complete || status.caught_up
        };
        let collecting = all.iter().filter(|it| !is_idle(it)).count();
        if collecting >= MAX_COLLECTING {
            let text = format!("{collecting} searches are running; cancel one or wait");
            return Err(Refusal::busy(text));
        }
        while all.len() >= MAX_SELECTIONS
            && let Some(oldest) = all.iter().position(|it| is_idle(it))
        {
            all.remove(oldest).iter().for_each(|selection| selection.cancel());
        }
        let selection = Arc::new(Selection {
            id: self.last.fetch_add(1, Ordering::Relaxed) + 1,
            chosen,
            rows: Mutex::default(),
            progress: Arc::default(),
            is_complete: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            fault: Mutex::default(),
        });
        let (state, own) = (Arc::clone(state), Arc::clone(&selection));
        let collect = move || {
            // For names that appear later, the name alone may not decide, so the index must be
            // complete.
            let is_by_name = {
                let index = state.index();
                own.chosen.filter.is_none()
                    || index.is_complete && own.chosen.is_by_name(index.names())
            };
            match is_by_name {
                true => own.collect_by_name(&state),
                false => own.collect_by_content(&state),
            }
        };
        let thread = thread::Builder::new().name("selection".to_owned()).spawn(collect);
        thread.map_err(|error| {
            Refusal::failed(format!("cannot start a thread for the search: {error}"))
        })?;
        all.push_back(Arc::clone(&selection));
        Ok(selection)
    }

    /// The selection with this number.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<Selection>, Refusal> {
        let all = self.lock();
        let found = all.iter().find(|selection| selection.id == id).map(Arc::clone);
        found.ok_or_else(|| {
            Refusal::missing(format!("no selection {id}; if it has been dropped, create it again"))
        })
    }

    /// Cancels and forgets a selection.
    pub(crate) fn remove(&self, id: u64) {
        self.lock().retain(|selection| {
            if selection.id == id {
                selection.cancel();
            }
            selection.id != id
        });
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().iter().for_each(|selection| selection.cancel());
    }

    /// The status of all selections.
    pub(crate) fn statuses(&self) -> Vec<SelectionStatus> {
        self.lock().iter().map(|selection| selection.status()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Selection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_a_filter() {
        let search = |text| Search { text, match_case: true };
        let text = search("a\"\\\u{1b}é").filter_text().unwrap();
        assert_eq!(
            text,
            "any contains \"a\\\"\\\\\\u{1b}é\" or message.name contains \"a\\\"\\\\\\u{1b}é\""
        );
        assert_eq!(search("a\"\\\u{1b}é").filter().unwrap(), Some(Filter::parse(&text).unwrap()));
        assert_eq!(search("hex:98 53F1").filter_text().unwrap(), "any contains hex\"9853f1\"");
        assert!(search("hex:98 53F1").filter().unwrap().is_some());
        assert!(search("hex:9").filter().is_err() && search("hex:").filter().is_err());
        assert_eq!(search("").filter().unwrap(), None);
        let ignoring = Search { match_case: false, ..search("a") };
        assert_ne!(ignoring.filter().unwrap(), search("a").filter().unwrap());
    }
}
