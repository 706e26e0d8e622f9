//! What a process hears from the leaders on a bus: announcements, refusals and settings.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{error, info, warn};

use super::super::bus::{Bus, BusError};
use super::super::frames::Announcement;
use super::super::passport::Refusal;
use super::super::subjects::Subjects;
use crate::boot_clock::BootInstant;
use crate::uru::config::{Settings, ShardConfig};

/// How long to listen before concluding that there is no other leader.
pub(super) const LISTEN_FOR: Duration = Duration::from_millis(400);
/// How long a leader counts as alive after its latest announcement.
const ALIVE_FOR: Duration = Duration::from_secs(3);
/// The maximum number of remembered leaders.
const MAX_LEADERS: usize = 4;
/// How often to log that another shard has a leader on the bus.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(60);

/// What to do with the settings shared by all processes of a shard.
#[derive(Debug)]
pub(in crate::uru) enum LeadersSettings {
    /// Ignore them.
    #[cfg(test)]
    Ignored,
    /// Let them replace this process's settings.
    Taken(Settings),
    /// Log how they differ from the settings that this process will use once it leads.
    Compared(Box<ShardConfig>),
}

/// A leader that was heard on the bus.
#[derive(Clone, Debug)]
pub(in crate::uru) struct HeardLeader {
    /// The random number of its shard.
    pub(in crate::uru) shard: u64,
    /// A description of the process for people.
    pub(in crate::uru) place: String,
    heard: BootInstant,
}

/// What has been heard from the leaders.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Why the last leader that answered did not admit this process.
    refusal: Mutex<Option<Refusal>>,
    /// The leaders heard, one per shard.
    leaders: Mutex<Vec<HeardLeader>>,
}

/// Listens for a leader of a shard other than `shard`.
pub(in crate::uru) async fn other_leader(
    bus: &dyn Bus,
    cluster: &str,
    shard: u64,
) -> Result<Option<HeardLeader>, BusError> {
    let mut announcements = bus.subscribe(&Subjects::of(cluster).leader()).await?;
    let listen = async {
        while let Some(announcement) = announcements.recv().await {
            if let Some(leader) = HeardLeader::of(&announcement.body)
                && leader.shard != shard
            {
                return Some(leader);
            }
        }
        None
    };
    Ok(timeout(LISTEN_FOR, listen).await.ok().flatten())
}

impl HeardLeader {
    /// The leader named in an announcement that has just arrived.
    pub(in crate::uru) fn of(announcement: &[u8]) -> Option<Self> {
        let Announcement { shard, place, .. } = Announcement::parse(announcement).ok()?;
        let place = String::from_utf8_lossy(&place).replace(char::is_control, "?");
        Some(Self { shard, place, heard: BootInstant::now() })
    }

    fn is_alive(&self) -> bool {
        self.heard.elapsed() < ALIVE_FOR
    }
}

impl Heard {
    pub(super) fn refusal(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a leader that has just been heard.
    pub(super) fn remember(&self, leader: HeardLeader) {
        let mut leaders = self.leaders();
        leaders.retain(|it| it.shard != leader.shard && it.is_alive());
        if leaders.len() < MAX_LEADERS {
            leaders.push(leader);
        }
    }

    /// A live leader of a shard other than `shard`.
    pub(super) fn other_leader(&self, shard: u64) -> Option<HeardLeader> {
        self.leaders().iter().find(|it| it.shard != shard && it.is_alive()).cloned()
    }

    fn leaders(&self) -> MutexGuard<'_, Vec<HeardLeader>> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeadersSettings {
    /// Handles the leader's settings.
    pub(super) fn hear(&self, leaders: &str) {
        match self {
            #[cfg(test)]
            Self::Ignored => {}
            Self::Taken(settings) => match settings.take(leaders) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => info!(%changes, "this node uses the leader's settings"),
                Err(error) => {
                    error!(%error, "cannot use the leader's settings; run the same version everywhere");
                }
            },
            Self::Compared(own) => match own.with_common(leaders).map(|(_, it)| it.lasting()) {
                Ok(differences) if differences.is_empty() => {}
                Ok(differences) => warn!(
                    %differences,
                    "the settings of the shard will change when this standby takes over"
                ),
                Err(error) => {
                    warn!(%error, "cannot compare the leader's settings with those of this standby")
                }
            },
        }
    }
}
