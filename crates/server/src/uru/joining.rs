//! How a process of a shard joins the others.

use std::path::Path;
use std::sync::Arc;

use super::Parts;
use super::cluster::{
    Bus, BusError, HeardLeader, Joining, Link, Nats, NodeInfo, Passport, PassportOffice,
};
use super::config::{Role, ShardConfig};
use super::vault::Vault;
use crate::start::StartError;

/// Connects to the bus between the shard's processes, now or later.
pub(super) async fn bus(folder: &Path, config: &ShardConfig) -> Result<Arc<dyn Bus>, BusError> {
    let cluster = &config.cluster;
    let [seed, roots] = cluster.files(folder);
    Ok(Arc::new(Nats::connect(&cluster.bus, seed.as_deref(), roots.as_deref()).await?))
}

/// The properties that a process shows to the other processes of its shard.
pub(super) fn passports(folder: &Path, parts: &Parts, is_standby: bool) -> PassportOffice {
    let passport = Passport::of_process(folder, &parts.server.keys);
    let has_ages = parts.config.cluster.has(Role::Age);
    let files = has_ages.then(|| Arc::clone(&parts.ages));
    let port = parts.config.listen.port().into();
    PassportOffice::new(Passport { port, is_standby, ..passport }, files)
}

/// Refuses to lead a shard if another process on the bus already leads another shard.
pub(super) fn not_led(
    other: Option<HeardLeader>,
    config: &ShardConfig,
    shard: u64,
) -> Result<(), StartError> {
    let Some(HeardLeader { shard: other, place: leader, .. }) = other else { return Ok(()) };
    Err(StartError::OtherShard { name: config.cluster.name.clone(), shard, other, leader })
}

/// The vault of the process that leads the cluster, which this one joins.
pub(super) async fn vault_at_leader(
    bus: Arc<dyn Bus>,
    joining: Joining,
    config: &ShardConfig,
) -> Result<Vault, BusError> {
    let (cluster, rules) = (&config.cluster, config.vault());
    let link = Link::open(bus, &cluster.name, joining, rules.max_notices);
    Ok(Vault::elsewhere(link.await?, &rules))
}

/// The information that a node gives its leader about itself.
pub(super) fn node_info(config: &ShardConfig) -> NodeInfo {
    let cluster = &config.cluster;
    NodeInfo {
        runs_ages: cluster.has(Role::Age),
        host: config.host().to_owned(),
        max_players: cluster.max_players,
    }
}
