//! The subjects on the bus, and what a subject reveals about the sender.
//!
//! A node controls the contents of its messages, but not the subjects it may send to: the bus
//! server restricts its key to a few. So the leader takes the sender's name and kind from the
//! subject.

use crate::uru::config::{Role, is_name};

/// The subjects of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    /// Contains the cluster's name and the major version of the frames.
    prefix: String,
}

/// A process that sends to the leader, as identified by the subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sender<'a> {
    pub(super) kind: NodeKind,
    pub(super) node: &'a str,
}

/// The kind of a process, which determines what it may do in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::uru) enum NodeKind {
    /// It serves clients.
    Front,
    /// It runs ages.
    Age,
    /// It serves clients and runs ages.
    FrontAndAge,
    /// It can also become the leader.
    Vault,
}

impl NodeKind {
    const ALL: [Self; 4] = [Self::Front, Self::Age, Self::FrontAndAge, Self::Vault];

    /// The kind of process with these roles.
    pub(in crate::uru) fn of(roles: &[Role]) -> Self {
        let has = |role| roles.contains(&role);
        match (has(Role::Vault), has(Role::Front), has(Role::Age)) {
            (true, ..) => Self::Vault,
            (_, true, true) => Self::FrontAndAge,
            (_, false, true) => Self::Age,
            (_, _, false) => Self::Front,
        }
    }

    /// The kind's name in subjects.
    const fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Age => "age",
            Self::FrontAndAge => "front-age",
            Self::Vault => "vault",
        }
    }

    /// Whether it may run ages.
    pub(super) const fn runs_ages(self) -> bool {
        !matches!(self, Self::Front)
    }

    /// Whether it may become the leader.
    pub(super) const fn can_lead(self) -> bool {
        matches!(self, Self::Vault)
    }
}

impl Subjects {
    pub(super) fn of(cluster: &str) -> Self {
        Self { prefix: format!("ww.{cluster}.1") }
    }

    /// The subject of the leader's announcements.
    pub(super) fn leader(&self) -> String {
        format!("{}.leader", self.prefix)
    }

    /// The subject to which a node sends for the leader of an epoch.
    pub(super) fn up(&self, epoch: u64, kind: NodeKind, node: &str) -> String {
        format!("{}.up.{epoch}.{}.{node}", self.prefix, kind.name())
    }

    /// A pattern for everything sent to the leader of an epoch.
    pub(super) fn all_up_to(&self, epoch: u64) -> String {
        format!("{}.up.{epoch}.>", self.prefix)
    }

    /// A pattern for everything that a node sends to leaders, whatever their epoch.
    pub(super) fn all_up_from(&self, kind: NodeKind, node: &str) -> String {
        format!("{}.up.*.{}.{node}", self.prefix, kind.name())
    }

    /// A pattern for everything sent to leaders, whatever their epoch.
    pub(super) fn all_up(&self) -> String {
        format!("{}.up.>", self.prefix)
    }

    /// The sender of a message to the leader of an epoch.
    pub(super) fn sender<'a>(&self, epoch: u64, subject: &'a str) -> Option<Sender<'a>> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".up.")?;
        let (to, rest) = rest.split_once('.')?;
        let (kind, node) = rest.split_once('.')?;
        let kind = NodeKind::ALL.into_iter().find(|it| it.name() == kind)?;
        (to.parse() == Ok(epoch) && is_name(node)).then_some(Sender { kind, node })
    }

    /// A pattern for everything sent to nodes.
    pub(super) fn all_down(&self) -> String {
        format!("{}.down.>", self.prefix)
    }

    /// A pattern for everything sent to the processes of a node.
    pub(super) fn all_down_to(&self, node: &str) -> String {
        format!("{}.down.{node}.>", self.prefix)
    }

    /// The subject of messages to one process of a node.
    pub(super) fn down(&self, node: &str, process: u64) -> String {
        format!("{}.down.{node}.{process:016x}", self.prefix)
    }

    /// Patterns for all messages between ages on different processes.
    pub(super) fn all_players(&self) -> [String; 2] {
        [format!("{}.player.*", self.prefix), format!("{}.all", self.prefix)]
    }

    /// The subject for a single player in an age on another process, or for all such players.
    pub(super) fn players(&self, one: Option<u32>) -> String {
        match one {
            Some(player) => format!("{}.player.{player}", self.prefix),
            None => format!("{}.all", self.prefix),
        }
    }
}

/// Whether a subscription to `pattern` receives messages sent to `subject`.
#[cfg(test)]
pub(in crate::uru) fn matches(pattern: &str, subject: &str) -> bool {
    match pattern.strip_suffix('>') {
        Some(start) => subject.len() > start.len() && subject.starts_with(start),
        None => pattern == subject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_its_sender() {
        let subjects = Subjects::of("shard");
        for kind in NodeKind::ALL {
            let subject = subjects.up(7, kind, "node-1");
            assert_eq!(subjects.sender(7, &subject), Some(Sender { kind, node: "node-1" }));
            assert_eq!(subjects.sender(8, &subject), None);
            assert!(matches(&subjects.all_up_to(7), &subject), "{subject}");
            assert!(matches(&subjects.all_up(), &subject), "{subject}");
            assert!(!matches(&subjects.all_up_to(70), &subject), "{subject}");
            let allowed = subjects.all_up_from(kind, "node-1");
            assert_eq!(allowed.replace('*', "7"), subject);
        }
    }

    #[test]
    fn subjects_without_a_sender_are_refused() {
        let subjects = Subjects::of("shard");
        for subject in [
            "",
            "ww.shard.1.up.7",
            "ww.shard.1.up.7.age",
            "ww.shard.1.up.7.age.",
            "ww.shard.1.up.7.age.a.b",
            "ww.shard.1.up.7.age.A",
            "ww.shard.1.up.7.leader.a",
            "ww.shard.1.up..age.a",
            "ww.shard.1.down.7.age.a",
            "ww.other.1.up.7.age.a",
        ] {
            assert_eq!(subjects.sender(7, subject), None, "{subject}");
        }
    }

    #[test]
    fn kinds_follow_from_roles() {
        for (roles, kind) in [
            (&[Role::Front][..], NodeKind::Front),
            (&[Role::Age], NodeKind::Age),
            (&[Role::Age, Role::Front], NodeKind::FrontAndAge),
            (&Role::ALL, NodeKind::Vault),
        ] {
            assert_eq!(NodeKind::of(roles), kind);
        }
        assert!(!NodeKind::Front.runs_ages() && NodeKind::Age.runs_ages());
        assert!(NodeKind::Vault.can_lead() && !NodeKind::FrontAndAge.can_lead());
    }
}
