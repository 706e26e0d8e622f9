//! The faults of processes, the bus and the database.

use std::fmt;
use std::time::Duration;

use worldwire_core::Sampler;

use crate::cluster::Cluster;
use crate::gate::Way;
use crate::late_commit::send_late_commit;
use crate::rounds::{AGE_NODES, FRONTS};

/// A process, by its role when the fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Leader,
    Standby,
    Front,
    AgeNode,
}

/// What a process is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Nats,
    Postgres,
    Both,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process is ended with SIGKILL.
    Killed(Target),
    /// The process is stopped with SIGSTOP and continued later with SIGCONT.
    Stopped(Target),
    /// Nothing gets through but connections stay open, connections are cut, or everything is slow.
    CutOff(Target, From, Way),
    NatsKilled,
    NatsStopped,
    PostgresCrashed,
    /// Nothing gets through between PostgreSQL and any process.
    PostgresHeld,
    /// A commit of the leader arrives after its standby has taken over.
    LateCommit,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(target) => write!(f, "{target:?} killed"),
            Self::Stopped(target) => write!(f, "{target:?} stopped"),
            Self::CutOff(target, from, way) => write!(f, "{target:?} and {from:?}: {way:?}"),
            Self::NatsKilled => f.write_str("NATS killed"),
            Self::NatsStopped => f.write_str("NATS stopped"),
            Self::PostgresCrashed => f.write_str("PostgreSQL crashed"),
            Self::PostgresHeld => f.write_str("PostgreSQL held"),
            Self::LateCommit => f.write_str("late commit"),
        }
    }
}

impl Kind {
    fn is_of_age_node(self) -> bool {
        match self {
            Self::Killed(target) | Self::Stopped(target) | Self::CutOff(target, ..) => {
                target == Target::AgeNode
            }
            _ => false,
        }
    }
}

/// The number of faults in a short test.
pub(crate) const BRIEF: usize = 4;

/// The kinds of faults, in the order in which short tests use them. Longer tests draw from all of
/// them.
const KINDS: [Kind; 31] = [
    Kind::Killed(Target::Leader),
    Kind::Killed(Target::AgeNode),
    Kind::Killed(Target::Front),
    Kind::LateCommit,
    Kind::Stopped(Target::AgeNode),
    Kind::CutOff(Target::AgeNode, From::Nats, Way::Held),
    Kind::CutOff(Target::AgeNode, From::Nats, Way::Cut),
    Kind::CutOff(Target::AgeNode, From::Nats, Way::Slow),
    Kind::CutOff(Target::Leader, From::Postgres, Way::Held),
    Kind::Stopped(Target::Leader),
    Kind::Stopped(Target::Front),
    Kind::NatsKilled,
    Kind::PostgresCrashed,
    Kind::Killed(Target::Standby),
    Kind::Stopped(Target::Standby),
    Kind::NatsStopped,
    Kind::PostgresHeld,
    Kind::CutOff(Target::Leader, From::Nats, Way::Held),
    Kind::CutOff(Target::Leader, From::Both, Way::Held),
    Kind::CutOff(Target::Leader, From::Postgres, Way::Cut),
    Kind::CutOff(Target::Leader, From::Nats, Way::Cut),
    Kind::CutOff(Target::Leader, From::Both, Way::Cut),
    Kind::CutOff(Target::Leader, From::Both, Way::Slow),
    Kind::CutOff(Target::Standby, From::Postgres, Way::Held),
    Kind::CutOff(Target::Standby, From::Postgres, Way::Cut),
    Kind::CutOff(Target::Front, From::Nats, Way::Held),
    Kind::CutOff(Target::Front, From::Nats, Way::Cut),
    Kind::CutOff(Target::Front, From::Nats, Way::Slow),
    // The most important ones again, so that they are drawn more often.
    Kind::Killed(Target::Leader),
    Kind::Killed(Target::AgeNode),
    Kind::Killed(Target::Front),
];

/// A fault, and how long it lasts unless it is over immediately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) time: Duration,
    /// The front or age node that fails, if the target is one.
    node: usize,
}

/// How often to try again to let a commit arrive late.
const LATE_COMMITS: usize = 3;
/// The maximum time for which a process is stopped.
const LONGEST: u64 = 60_000;

impl Fault {
    /// The fault of a round, of a kind whose name contains `only`.
    pub(crate) fn draw(round: usize, sampler: &mut Sampler, only: &str) -> Self {
        let kinds = KINDS.iter().filter(|kind| kind.to_string().contains(only));
        let kinds: Vec<_> = kinds.collect();
        assert!(!kinds.is_empty(), "no fault contains {only:?}: {KINDS:?}");
        let drawn = usize::try_from(sampler.below(kinds.len() as u64)).unwrap();
        let second = usize::from(sampler.below(2) == 1);
        // Leases and memberships expire within a few seconds, so most faults last about that long.
        let time = match sampler.below(16) {
            0 => sampler.below(LONGEST),
            1..4 => sampler.below(LONGEST / 4),
            _ => sampler.below(5_000),
        };
        // The first rounds are the same for each seed.
        let (kind, time) = match round {
            0..BRIEF if only.is_empty() => (KINDS[round], 0),
            _ => (*kinds[drawn], 1_000 + time),
        };
        let nodes = if kind.is_of_age_node() { AGE_NODES } else { FRONTS };
        Self { kind, time: Duration::from_millis(time.min(LONGEST)), node: nodes[second] }
    }

    /// Whether the fault ends by itself.
    pub(crate) fn is_brief(&self) -> bool {
        matches!(self.kind, Kind::Killed(_) | Kind::PostgresCrashed | Kind::LateCommit)
    }

    /// Applies the fault and returns the action that undoes it. `None` if there is no leader.
    pub(crate) fn begin(&self, cluster: &Cluster) -> Option<Undo> {
        let node = |target| match target {
            Target::Leader => cluster.leader(),
            Target::Standby => cluster.standby(),
            Target::Front => Some(self.node),
            // The loss of a node without ages would not be noticed.
            Target::AgeNode if cluster.runs_ages(self.node) => Some(self.node),
            Target::AgeNode => {
                let other = AGE_NODES.into_iter().find(|node| cluster.runs_ages(*node));
                other.or(Some(self.node))
            }
        };
        Some(match self.kind {
            Kind::Killed(target) => {
                cluster.kill(node(target)?);
                Undo::Nothing
            }
            Kind::Stopped(target) => {
                let node = node(target)?;
                cluster.pause(node, true);
                Undo::Continue(node)
            }
            Kind::CutOff(target, from, way) => {
                let node = node(target)?;
                let nats = (from != From::Postgres).then_some(way);
                cluster.way(node, nats, (from != From::Nats).then_some(way));
                Undo::Open
            }
            Kind::NatsKilled => {
                cluster.nats.lock().unwrap().kill();
                Undo::StartNats
            }
            Kind::NatsStopped => {
                cluster.nats.lock().unwrap().signal("-STOP");
                Undo::ContinueNats
            }
            Kind::PostgresCrashed => {
                cluster.database.crash_server();
                Undo::Nothing
            }
            Kind::PostgresHeld => {
                for node in cluster.all() {
                    cluster.way(node, None, Some(Way::Held));
                }
                Undo::Open
            }
            Kind::LateCommit => {
                let mut attempts = 1..=LATE_COMMITS;
                while !send_late_commit(cluster, cluster.leader()?, cluster.standby()?) {
                    assert!(attempts.next().is_some(), "the old leader commits nothing");
                    cluster.wait_until("no standby is left", || cluster.is_complete());
                }
                Undo::Nothing
            }
        })
    }
}

/// The action that ends a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo {
    Nothing,
    Continue(usize),
    Open,
    StartNats,
    ContinueNats,
}

impl Undo {
    pub(crate) fn end(self, cluster: &Cluster) {
        match self {
            Self::Nothing => {}
            Self::Continue(node) => cluster.pause(node, false),
            Self::Open => {
                for node in cluster.all() {
                    cluster.way(node, Some(Way::Open), Some(Way::Open));
                }
            }
            Self::StartNats => cluster.nats.lock().unwrap().run(),
            Self::ContinueNats => cluster.nats.lock().unwrap().signal("-CONT"),
        }
    }
}

#[test]
fn a_seed_decides_about_all_faults() {
    let drawn = |seed| {
        let mut sampler = Sampler::new(seed);
        let draw = |round| format!("{:?}", Fault::draw(round, &mut sampler, ""));
        (0..100).map(draw).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let kinds = drawn(1).iter().filter(|fault| fault.contains("NatsStopped")).count();
    assert!((1..20).contains(&kinds), "{kinds}");
}
