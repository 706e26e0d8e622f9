//! Why a server stops serving: because of a signal, or because another process took over the
//! database.

use std::future::{Future, pending};
use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use worldwire_net::{Signal, Stop};

use crate::store::StoreError;

/// Why a server stopped early or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another process took over the database. Nothing acknowledged is lost.
    #[error(transparent)]
    Overtaken(#[from] Arc<StoreError>),
    /// Some ages could not save their last changes.
    #[error("the latest changes to {0} ages could not be saved")]
    Unsaved(usize),
    /// The status page failed.
    #[error("status page: {0}")]
    Status(#[from] io::Error),
}

/// Waits until an error is published; waits forever if none ever is.
pub(crate) async fn until_overtaken(mut overtaken: watch::Receiver<Option<Arc<StoreError>>>) {
    if overtaken.wait_for(Option::is_some).await.is_err() {
        pending::<()>().await;
    }
}

/// A signal that fires when either `signal` fires or `event` completes. Calls `first` before it
/// fires.
pub(crate) fn also_on(
    mut signal: Signal,
    event: impl Future<Output = ()> + Send + 'static,
    first: impl FnOnce() + Send + 'static,
) -> (Signal, Forwarder) {
    let stop = Stop::new();
    let combined = stop.signal();
    let task = tokio::spawn(async move {
        tokio::select! {
            () = signal.stopping() => {}
            () = event => {}
        }
        first();
        stop.stop();
        signal.cutting().await;
        stop.cut();
    });
    (combined, Forwarder(task.abort_handle()))
}

/// Forwards signals until it is dropped.
pub(crate) struct Forwarder(AbortHandle);

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.0.abort();
    }
}
