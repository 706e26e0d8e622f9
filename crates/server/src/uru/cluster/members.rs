//! What operators can see about the processes of a cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::bus::BusMessage;
use super::subjects::NodeKind;
use crate::metrics::Metrics;
use crate::page;
use crate::uru::vault::ask::wire_struct;

/// How long the leader may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum number of waiting questions.
const MAX_QUESTIONS: usize = 16;

/// A process's description of itself, sent when it joins and whenever it changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct Description {
    /// Its worldwire version.
    pub(in crate::uru) version: String,
    /// Its roles: `front`, `age`, `vault` or `standby`.
    pub(in crate::uru) roles: Vec<String>,
    /// The IPv4 address or host name that clients are told to connect to.
    pub(in crate::uru) address: String,
    /// When it started, in Unix seconds.
    pub(in crate::uru) started: u64,
    /// The number of clients connected to its auth service.
    pub(in crate::uru) clients: u64,
    /// The number of ages it runs.
    pub(in crate::uru) ages: u64,
    /// The number of players in them.
    pub(in crate::uru) players: u64,
    /// On a standby, how many batches its copy of the vault is behind.
    pub(in crate::uru) behind: Option<u64>,
    /// Whether it is being drained and so gets no new clients or ages.
    pub(in crate::uru) is_draining: bool,
}

wire_struct! {
    Description {
        version: String,
        roles: Vec<String>,
        address: String,
        started: u64,
        clients: u64,
        ages: u64,
        players: u64,
        behind: Option<u64>,
        is_draining: bool,
    }
}

impl Description {
    /// The description as allowed for this kind of process: only some kinds can be standbys.
    pub(super) fn of(self, kind: NodeKind) -> Self {
        let mut description = self;
        if !kind.can_lead() {
            description.behind = None;
            description.roles.retain(|role| !["vault", "standby"].contains(&&**role));
        }
        description
    }

    /// A description that contains only the version.
    pub(in crate::uru) fn of_this_version() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }
}

/// A member of a cluster, as its leader sees it.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Member {
    pub(in crate::uru) node: String,
    /// How long it has been a member.
    pub(in crate::uru) member_for: Duration,
    /// How long ago it was last heard from.
    pub(in crate::uru) heard: Duration,
    /// The number of its open sessions.
    pub(in crate::uru) sessions: usize,
    /// The number of its unanswered requests.
    pub(in crate::uru) requests: usize,
    /// Its description of itself.
    pub(in crate::uru) description: Option<Description>,
}

impl Member {
    /// Whether it is a standby, waiting to take over from the leader.
    pub(in crate::uru) fn is_standby(&self) -> bool {
        self.description.as_ref().is_some_and(|description| description.behind.is_some())
    }
}

/// A question to the leader's task.
#[derive(Debug)]
pub(super) enum Question {
    /// List all members.
    Members(oneshot::Sender<Vec<Member>>),
    /// Drain a node, or let it serve clients again. The answer is false if it is not a member.
    Drain {
        /// The node's name.
        node: String,
        /// Whether to drain it.
        is_draining: bool,
        /// The answer.
        reply: oneshot::Sender<bool>,
    },
    /// Share the settings of the shard with all processes, as JSON, because they have changed.
    Share(String),
}

/// Asks the leader's task in this process, if it has one. Cheap to clone.
#[derive(Clone)]
pub(in crate::uru) struct LeaderHandle {
    questions: mpsc::Sender<Question>,
    traffic: Arc<Traffic>,
}

impl fmt::Debug for LeaderHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaderHandle")
    }
}

/// The receiving end of a [`LeaderHandle`].
#[derive(Debug)]
pub(in crate::uru) struct LeaderInbox {
    pub(super) questions: mpsc::Receiver<Question>,
    pub(super) traffic: Arc<Traffic>,
}

impl LeaderHandle {
    pub(in crate::uru) fn new() -> (Self, LeaderInbox) {
        let (sender, questions) = mpsc::channel(MAX_QUESTIONS);
        let traffic = Arc::<Traffic>::default();
        let inbox = LeaderInbox { questions, traffic: Arc::clone(&traffic) };
        (Self { questions: sender, traffic }, inbox)
    }

    /// The members of the cluster, by name. Empty if this process is not the leader.
    pub(in crate::uru) async fn members(&self) -> Vec<Member> {
        let (reply, members) = oneshot::channel();
        if self.questions.send(Question::Members(reply)).await.is_err() {
            return Vec::new();
        }
        let members = timeout(PATIENCE, members).await;
        members.ok().and_then(|members| members.ok()).unwrap_or_default()
    }

    /// Drains a node, or lets it serve clients again. Returns false if it is not a member.
    pub(in crate::uru) async fn drain(&self, node: String, is_draining: bool) -> bool {
        let (reply, done) = oneshot::channel();
        let question = Question::Drain { node, is_draining, reply };
        if self.questions.send(question).await.is_err() {
            return false;
        }
        timeout(PATIENCE, done).await.is_ok_and(|done| done.unwrap_or(false))
    }

    /// Sends all nodes the settings shared by all processes of the shard, as JSON.
    pub(in crate::uru) fn share(&self, settings: String) {
        // In a process that is not the leader, nothing receives it.
        let _ = self.questions.try_send(Question::Share(settings));
    }

    /// Whether this process leads a cluster.
    pub(in crate::uru) fn leads(&self) -> bool {
        self.traffic.is_connected.load(Ordering::Relaxed)
    }

    /// The leader's traffic on the bus.
    pub(in crate::uru) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// Counts what a process sends and receives over the bus.
#[derive(Debug, Default)]
pub(in crate::uru) struct Traffic {
    /// Whether the process is a member or the leader.
    pub(in crate::uru) is_connected: AtomicBool,
    /// On a node: whether the leader's database rejects changes.
    pub(in crate::uru) is_failing: AtomicBool,
    /// Whether an operator is draining this process.
    pub(in crate::uru) draining: watch::Sender<bool>,
    /// Bytes in messages sent to the bus, excluding those between ages on different processes.
    pub(in crate::uru) sent: AtomicU64,
    /// Bytes in messages received from the bus, with the same exception.
    pub(in crate::uru) received: AtomicU64,
    /// Frames resent because they were lost or not acknowledged in time.
    pub(in crate::uru) resent: AtomicU64,
    /// Open sessions at the leader.
    pub(in crate::uru) sessions: AtomicU64,
    /// Unanswered requests.
    pub(in crate::uru) requests: AtomicU64,
}

impl Traffic {
    pub(super) fn add_sent(&self, message: &[u8]) {
        self.sent.fetch_add(message.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn add_received(&self, messages: &[BusMessage]) {
        let bytes = messages.iter().map(|message| message.body.len() as u64).sum();
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the bus metrics of a node, or of the leader if `members` is given. `routed` is the
    /// number of bytes sent and received in messages between ages on different processes.
    pub(in crate::uru) fn add_to(
        &self,
        metrics: &mut Metrics,
        members: Option<&[Member]>,
        routed: [u64; 2],
    ) {
        let load = |count: &AtomicU64| i128::from(count.load(Ordering::Relaxed));
        let [sent, received] = routed.map(i128::from);
        let (sessions, requests) = match members {
            Some(members) => {
                let help = "Processes that have joined this leader.";
                metrics.add("nodes", "gauge", help, "", &[("", members.len() as i128)]);
                let sum = |count: fn(&Member) -> usize| members.iter().map(count).sum::<usize>();
                let sessions = sum(|member| member.sessions) as i128;
                (sessions, sum(|member| member.requests) as i128)
            }
            None => {
                let is_member = self.is_connected.load(Ordering::Relaxed);
                metrics.add("node_joined", "gauge", page::JOINED, "", &[("", is_member.into())]);
                (load(&self.sessions), load(&self.requests))
            }
        };
        for (name, kind, help, value) in [
            ("node_sessions", "gauge", "Sessions of nodes at the leader.", sessions),
            ("node_requests", "gauge", "Unanswered requests of nodes.", requests),
            (
                "bus_resent_total",
                "counter",
                "Frames resent because they were lost or not acknowledged in time.",
                load(&self.resent),
            ),
            ("bus_sent_bytes_total", "counter", "Bytes sent to the bus.", load(&self.sent) + sent),
            (
                "bus_received_bytes_total",
                "counter",
                "Bytes received from the bus.",
                load(&self.received) + received,
            ),
        ] {
            metrics.add(name, kind, help, "", &[("", value)]);
        }
    }

    /// Stores a machine's current figures.
    pub(super) fn state(&self, resent: u64, sessions: usize, requests: usize) {
        self.resent.store(resent, Ordering::Relaxed);
        self.sessions.store(sessions as u64, Ordering::Relaxed);
        self.requests.store(requests as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;

    use super::*;
    use crate::uru::vault::ask::{Wire, decoded, encoded};

    #[test]
    fn descriptions_survive() {
        for seed in 0..200 {
            let description = Description::sample(&mut Sampler::new(seed));
            let bytes = encoded(&description).unwrap();
            assert_eq!(decoded::<Description>(&bytes).unwrap(), description);
        }
    }
}
