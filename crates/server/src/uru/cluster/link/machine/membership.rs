//! A node's membership under one leader, and how it ends.

use std::collections::VecDeque;
use std::time::Duration;

use super::MEMBERSHIP;
use crate::uru::cluster::channel::{Channel, ChannelError};

/// The shortest interval between increments of `beat`.
const COUNT_EVERY: Duration = Duration::from_millis(50);

/// A membership.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) incarnation: u64,
    /// Whether the leader has confirmed that it admitted the node.
    pub(super) is_admitted: bool,
    pub(super) channel: Channel,
    /// When the node sent the last frame that the leader is known to have heard.
    pub(super) heard: Duration,
    /// The beats sent since then, and when each was first sent.
    beats: VecDeque<(u64, Duration)>,
    last_beat: u64,
}

/// Why a node has left its cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::uru::cluster) enum LeaveReason {
    /// Another process leads the cluster.
    #[error("another process leads the cluster")]
    OtherLeader,
    /// The leader was silent.
    #[error("nothing has been heard from the leader for {} s", MEMBERSHIP.as_secs())]
    Silence,
    /// The leader no longer knows the node.
    #[error("the leader has not heard from this node for a while and has dropped it")]
    GivenUp,
    /// The leader is stopping, or is handing the shard over.
    #[error("the leader is giving up its role")]
    LeaderStops,
    /// Another process has the same name.
    #[error(
        "another process uses this node's name; give each process its own node name in [cluster]"
    )]
    Replaced,
    /// This process is stopping.
    #[error("this process is stopping")]
    Stopped,
    /// The stream of items is invalid.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Membership {
    pub(super) fn new(incarnation: u64, asked: Duration, now: Duration) -> Self {
        let (channel, beats) = (Channel::new(now), VecDeque::new());
        Self { incarnation, is_admitted: false, channel, heard: asked, beats, last_beat: 0 }
    }

    /// The beat for a frame that is sent now.
    pub(super) fn beat(&mut self, now: Duration) -> u64 {
        if self.beats.back().is_none_or(|(_, since)| now.saturating_sub(*since) >= COUNT_EVERY) {
            self.last_beat += 1;
            self.beats.push_back((self.last_beat, now));
        }
        self.last_beat
    }

    /// Records that the leader has heard frames up to this beat.
    pub(super) fn heard_up_to(&mut self, beat: u64) {
        while let Some((_, since)) = self.beats.pop_front_if(|(number, _)| *number <= beat) {
            self.heard = since;
        }
    }
}

impl LeaveReason {
    /// Whether an operator should look into it: normal stops and takeovers do not cause it.
    pub(in crate::uru::cluster) fn is_problem(&self) -> bool {
        !matches!(self, Self::OtherLeader | Self::LeaderStops | Self::Stopped)
    }
}
