//! A request that this process hand over the shard to a standby. It comes from an operator, or from
//! this process itself if it is a leader that is cut off from its nodes.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether this process should hand over the shard. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Handover(Arc<watch::Sender<bool>>);

impl Handover {
    /// Whether a handover was requested. If so, [`Shard::serve`](super::Shard::serve) ends, and a
    /// standby takes over.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) fn request(&self) {
        self.0.send_replace(true);
    }

    /// Waits until a handover is requested.
    pub(super) async fn requested(self) {
        // The sender is part of this value, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|requested| *requested).await;
    }
}
