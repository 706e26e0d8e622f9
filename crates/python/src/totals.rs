//! Statistics of captures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use worldwire_core::Tree;
use worldwire_dissect::stats::{Counted, Totals};
use worldwire_dissect::{Item, Overview};

use crate::capture::Capture;
use crate::reading::Harvest;

/// Reads a capture to its end. Returns the JSON that `worldwire stats --json` prints and, if the
/// capture cannot be read completely, the exception.
#[pyfunction]
pub(crate) fn totals(py: Python<'_>, capture: &Capture) -> PyResult<(String, Option<Py<PyAny>>)> {
    let (stream, is_filtered) = capture.selected(py);
    let totals = Arc::new(Mutex::new(Totals::new(stream, is_filtered)));
    let harvest = Sums(Arc::clone(&totals));
    let outcome = capture.drain(py, harvest, |batch| {
        let mut totals = lock(&totals);
        batch.iter().for_each(|item| totals.add(item));
    })?;
    let mut json = String::new();
    lock(&totals).push_json(&mut json);
    let error = outcome.err().map(|fault| fault.raise(py).into_value(py).into_any());
    Ok((json, error))
}

/// Counts messages, problems and conversations.
struct Sums(Arc<Mutex<Totals>>);

impl Harvest for Sums {
    type Batch = Vec<Counted>;
    const NEEDS_FIELDS: bool = false;

    fn keep(&self, item: &Item<'_>, name: &str, _: &Tree<'_>, batch: &mut Vec<Counted>) {
        batch.extend(Counted::of(item, name));
    }

    fn conversation(&self, overview: &Overview) {
        lock(&self.0).add_conversation(overview);
    }
}

fn lock(totals: &Mutex<Totals>) -> MutexGuard<'_, Totals> {
    totals.lock().unwrap_or_else(PoisonError::into_inner)
}
