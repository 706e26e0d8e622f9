//! A result that is read from the whole capture and kept until the capture grows.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::error::Refusal;
use crate::state::State;

/// The latest result, with the length of the capture that it covers. Concurrent requests wait for
/// the same read.
#[derive(Debug)]
pub(crate) struct Latest<T>(Mutex<Option<(u64, Arc<T>)>>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + Sync + 'static> Latest<T> {
    /// Reads the capture, unless the latest result already covers all of it.
    pub(crate) async fn current(
        &self,
        state: &Arc<State>,
        read: fn(&State) -> T,
    ) -> Result<Arc<T>, Refusal> {
        self.at_least(state, state.recording.length(), read).await
    }

    /// The latest result. Reads the capture if there is none.
    pub(crate) async fn known(
        &self,
        state: &Arc<State>,
        read: fn(&State) -> T,
    ) -> Result<Arc<T>, Refusal> {
        self.at_least(state, 0, read).await
    }

    async fn at_least(
        &self,
        state: &Arc<State>,
        wanted: u64,
        read: fn(&State) -> T,
    ) -> Result<Arc<T>, Refusal> {
        let mut latest = self.0.lock().await;
        if let Some((length, known)) = &*latest
            && *length >= wanted
        {
            return Ok(Arc::clone(known));
        }
        let length = state.recording.length();
        let found = state.busy(move |state| match (read(state), state.is_closed()) {
            (_, true) => Err(Refusal::failed("the program is shutting down")),
            (found, false) => Ok(Arc::new(found)),
        });
        let found = found.await?;
        *latest = Some((length, Arc::clone(&found)));
        Ok(found)
    }
}
