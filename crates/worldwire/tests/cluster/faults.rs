//! What happens to processes, the bus and the database.

use std::fmt;
use std::time::Duration;

use worldwire_core::Sampler;

use crate::cluster::{AGE_NODES, Cluster, FRONTS, VAULTS};
use crate::gate::Way;

/// A process, by what it does when the fault begins.
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
    /// SIGKILL.
    Killed(Target),
    /// SIGSTOP, and SIGCONT later.
    Stopped(Target),
    /// Nothing passes, but connections stay open; connections are cut; or everything is slow.
    CutOff(Target, From, Way),
    NatsKilled,
    NatsStopped,
    PostgresCrashed,
    /// Nothing passes between PostgreSQL and any process.
    PostgresHeld,
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

/// The kinds in the order in which short tests use them. Longer ones draw from all.
const KINDS: [Kind; 30] = [
    Kind::Killed(Target::Leader),
    Kind::Killed(Target::AgeNode),
    Kind::Killed(Target::Front),
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
    // Those that matter most, once more.
    Kind::Killed(Target::Leader),
    Kind::Killed(Target::AgeNode),
    Kind::Killed(Target::Front),
];

/// A fault, and how long it lasts unless it is over at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) time: Duration,
    /// Which front or age node, if it is one.
    node: usize,
}

/// The longest time for which a process is stopped.
const LONGEST: u64 = 60_000;

impl Fault {
    /// The fault of a round.
    pub(crate) fn draw(round: usize, sampler: &mut Sampler) -> Self {
        let drawn = usize::try_from(sampler.below(KINDS.len() as u64)).unwrap();
        let second = usize::from(sampler.below(2) == 1);
        // Leases and memberships end within a few seconds, so most are about as long.
        let time = match sampler.below(16) {
            0 => sampler.below(LONGEST),
            1..4 => sampler.below(LONGEST / 4),
            _ => sampler.below(5_000),
        };
        // The first rounds are the same for each seed.
        let (kind, time) = match round {
            0..3 => (KINDS[round], 0),
            _ => (KINDS[drawn], 1_000 + time),
        };
        let nodes = if kind.is_of_age_node() { AGE_NODES } else { FRONTS };
        Self { kind, time: Duration::from_millis(time.min(LONGEST)), node: nodes[second] }
    }

    /// Whether it is over by itself.
    pub(crate) fn is_brief(&self) -> bool {
        matches!(self.kind, Kind::Killed(_) | Kind::PostgresCrashed)
    }

    /// Applies it, and returns what undoes it. `None` without a leader.
    pub(crate) fn begin(&self, cluster: &Cluster) -> Option<Undo> {
        let node = |target| match target {
            Target::Leader => cluster.leader(),
            Target::Standby => cluster.standby(),
            Target::Front | Target::AgeNode => Some(self.node),
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
                for node in VAULTS {
                    cluster.way(node, None, Some(Way::Held));
                }
                Undo::Open
            }
        })
    }
}

/// What ends a fault.
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
                for node in VAULTS.into_iter().chain(FRONTS).chain(AGE_NODES) {
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
        (0..100).map(|round| format!("{:?}", Fault::draw(round, &mut sampler))).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let kinds = drawn(1).iter().filter(|fault| fault.contains("NatsStopped")).count();
    assert!((1..20).contains(&kinds), "{kinds}");
}
