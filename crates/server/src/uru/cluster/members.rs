//! What operators see of the processes of a cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::metrics::Metrics;
use crate::page;
use crate::uru::vault::ask::wire_struct;

/// How long the leader may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many questions may wait.
const MAX_QUESTIONS: usize = 16;

/// What a process says about itself, when it joins and after changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct Description {
    /// The version of its program.
    pub(in crate::uru) version: String,
    /// What it does: `front`, `age`, `vault` or `standby`.
    pub(in crate::uru) roles: Vec<String>,
    /// The IPv4 address or host name that clients are told to connect to.
    pub(in crate::uru) address: String,
    /// When it started, in Unix seconds.
    pub(in crate::uru) started: u64,
    /// Its clients that are connected to the auth service.
    pub(in crate::uru) clients: u64,
    /// Its running ages.
    pub(in crate::uru) ages: u64,
    /// The players in them.
    pub(in crate::uru) players: u64,
    /// How many batches its copy of the vault lacks, at a standby.
    pub(in crate::uru) behind: Option<u64>,
    /// Whether it gets no clients and no new ages.
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
    /// Only the version.
    pub(in crate::uru) fn of_this_version() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }
}

/// A member of a cluster, as its leader knows it.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Member {
    pub(in crate::uru) node: String,
    /// For how long it has been a member.
    pub(in crate::uru) member_for: Duration,
    /// How long ago it was heard from.
    pub(in crate::uru) heard: Duration,
    /// Its open sessions.
    pub(in crate::uru) sessions: usize,
    /// Its requests without a reply.
    pub(in crate::uru) requests: usize,
    /// What it says about itself.
    pub(in crate::uru) description: Option<Description>,
}

impl Member {
    /// Whether it waits to take over from the leader.
    pub(in crate::uru) fn is_standby(&self) -> bool {
        self.description.as_ref().is_some_and(|description| description.behind.is_some())
    }
}

/// A question to the leader's task.
#[derive(Debug)]
pub(super) enum Question {
    /// All members.
    Members(oneshot::Sender<Vec<Member>>),
    /// Drain a node, or let it serve clients again. The answer is whether there is such a member.
    Drain {
        /// Its name.
        node: String,
        /// Whether to drain it.
        is_draining: bool,
        /// The answer.
        reply: oneshot::Sender<bool>,
    },
}

/// Asks the task of the leader in this process, if there is one. Cheap to clone.
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

/// The other end of a [`LeaderHandle`].
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

    /// The members of the cluster, by name. Empty if this process leads none.
    pub(in crate::uru) async fn members(&self) -> Vec<Member> {
        let (reply, members) = oneshot::channel();
        if self.questions.send(Question::Members(reply)).await.is_err() {
            return Vec::new();
        }
        let members = timeout(PATIENCE, members).await;
        members.ok().and_then(|members| members.ok()).unwrap_or_default()
    }

    /// Drains a node, or lets it serve clients again. Returns false if there is no such member.
    pub(in crate::uru) async fn drain(&self, node: String, is_draining: bool) -> bool {
        let (reply, done) = oneshot::channel();
        let question = Question::Drain { node, is_draining, reply };
        if self.questions.send(question).await.is_err() {
            return false;
        }
        timeout(PATIENCE, done).await.is_ok_and(|done| done.unwrap_or(false))
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

/// Counts what a process sends to the bus and receives from it.
#[derive(Debug, Default)]
pub(in crate::uru) struct Traffic {
    /// Whether it is a member, or leads.
    pub(in crate::uru) is_connected: AtomicBool,
    /// At a node: whether the leader's database accepts no changes.
    pub(in crate::uru) is_failing: AtomicBool,
    /// Whether an operator wants it to be without clients.
    pub(in crate::uru) draining: watch::Sender<bool>,
    /// Bytes in messages to the bus, without those between ages of different processes.
    pub(in crate::uru) sent: AtomicU64,
    /// Bytes in messages from the bus, without those between ages of different processes.
    pub(in crate::uru) received: AtomicU64,
    /// Frames that were sent again, because they were lost or not acknowledged in time.
    pub(in crate::uru) resent: AtomicU64,
    /// Open sessions at the leader.
    pub(in crate::uru) sessions: AtomicU64,
    /// Requests without a reply.
    pub(in crate::uru) requests: AtomicU64,
}

impl Traffic {
    pub(super) fn add_sent(&self, message: &[u8]) {
        self.sent.fetch_add(message.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn add_received(&self, messages: &[Vec<u8>]) {
        let bytes = messages.iter().map(|message| message.len() as u64).sum();
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the metrics of the bus: of a node, or of the leader with these members. `routed` is the
    /// number of bytes sent and received between ages of different processes.
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
            ("node_requests", "gauge", "Requests of nodes without a reply.", requests),
            (
                "bus_resent_total",
                "counter",
                "Frames sent again, because they were lost or not acknowledged in time.",
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

    /// Takes the figures of a machine.
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
