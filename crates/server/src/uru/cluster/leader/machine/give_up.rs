//! The reasons for which the leader gives up a node.

use super::{MAX_REQUEST_BYTES, MAX_REQUESTS, PATIENCE};
use crate::uru::cluster::channel::ChannelError;

/// Why a node was given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::uru::cluster) enum GiveUpReason {
    /// The node was silent.
    #[error("nothing has been heard from it for {PATIENCE:?}")]
    Silence,
    /// The node announced that it was stopping.
    #[error("it has stopped")]
    Stopped,
    /// The same process joined again.
    #[error("it has rejoined")]
    Rejoined,
    /// Another process joined under the same name, after this one had been silent or from the same
    /// folder.
    #[error("it was restarted")]
    Restarted,
    /// This process no longer leads.
    #[error("this process no longer leads")]
    Resigned,
    /// The stream of items is invalid.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It sends requests without waiting for replies.
    #[error(
        "it has more than {MAX_REQUESTS} unanswered requests, or {} MiB of them",
        MAX_REQUEST_BYTES >> 20
    )]
    TooManyRequests,
    /// It sends more than its clients and ages can cause.
    #[error("it sends too many items per second")]
    TooManyItems,
}

impl GiveUpReason {
    /// Whether an operator should look into it: processes that are stopped or started do not cause
    /// it.
    pub(in crate::uru::cluster) fn is_problem(&self) -> bool {
        !matches!(self, Self::Stopped | Self::Rejoined | Self::Restarted | Self::Resigned)
    }

    /// Whether the node's ages are certain to have ended.
    pub(in crate::uru::cluster) fn has_no_ages(&self) -> bool {
        matches!(self, Self::Silence | Self::Stopped)
    }
}
