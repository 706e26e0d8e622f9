//! This process of a shard, described for operators.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Description;
use super::config::{Role, ShardConfig};
use super::figures::Figures;
use super::game::Games;
use super::vault::Vault;

/// How often changes are reported to the leader.
const DESCRIBE_EVERY: Duration = Duration::from_secs(1);

/// This process. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct OwnProcess {
    node: Arc<str>,
    roles: Arc<[Role]>,
    address: Arc<str>,
    pub(super) has_bus: bool,
    figures: Arc<Figures>,
    games: Games,
}

impl OwnProcess {
    pub(super) fn new(config: &ShardConfig, figures: Arc<Figures>, games: Games) -> Self {
        let node = config.cluster.node_name().into();
        let roles = config.cluster.roles.as_slice().into();
        let has_bus = !config.cluster.bus.is_empty();
        Self { node, roles, address: config.host().into(), has_bus, figures, games }
    }

    /// The process's name in the cluster.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Tells the leader what this process does, if it uses the leader's vault.
    pub(super) async fn keep_described(self, vault: Vault) {
        let Some(link) = vault.link() else { return };
        let mut draining = link.draining();
        loop {
            let is_draining = *draining.borrow_and_update();
            link.describe(Description { is_draining, ..self.describe() });
            tokio::select! {
                _ = draining.changed() => {}
                () = sleep(DESCRIBE_EVERY) => {}
            }
        }
    }

    /// A description of this process and of what it is doing now.
    pub(super) fn describe(&self) -> Description {
        let ages = self.games.figures();
        let count = |count| u64::try_from(count).unwrap_or(u64::MAX);
        Description {
            roles: self.roles.iter().map(|role| role.name().to_owned()).collect(),
            address: self.address.to_string(),
            started: self.figures.started(),
            clients: self.figures.clients(),
            ages: count(ages.ages),
            players: count(ages.players),
            ..Description::of_this_version()
        }
    }
}
