//! How operators list the ages on nodes and send messages to them.

use std::collections::HashMap;
use std::time::Duration;

use worldwire_uru::types::Uuid;

use super::{Age, Scheduler, Task};
use crate::uru::cluster::ages::AgeOrder;

/// A running age on a node.
#[derive(Clone, Debug)]
pub(in crate::uru) struct NodeAge {
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// The name of the node.
    pub(in crate::uru) node: String,
    /// How long it has run, as far as this leader knows.
    pub(in crate::uru) since: Duration,
    /// The players in it, and how long ago they arrived.
    pub(in crate::uru) players: Vec<(u32, Duration)>,
}

impl Scheduler {
    /// Shows a message to all players in one instance, or in all ages on nodes. Returns the number
    /// of players.
    pub(in crate::uru::cluster) fn announce(
        &mut self,
        instance: Option<Uuid>,
        sender: &str,
        text: &str,
    ) -> usize {
        let order = AgeOrder::Announce {
            instance: instance.unwrap_or(Uuid::ZERO),
            sender: sender.to_owned(),
            text: text.to_owned(),
        };
        for node in self.nodes.values().filter(|node| node.info.runs_ages) {
            let (incarnation, order) = (node.incarnation, order.clone());
            self.tasks.push_back(Task::Order { incarnation, order });
        }
        let is_meant = |number| {
            let age = self.ages.get(&number);
            age.is_some_and(|age| instance.is_none_or(|instance| age.instance == instance))
        };
        self.present.iter().filter(|(_, place)| is_meant(place.number)).count()
    }

    /// The ages on nodes, in no particular order. Times are durations up to now.
    pub(in crate::uru::cluster) fn running(&self, now: Duration) -> Vec<NodeAge> {
        let mut players: HashMap<u32, Vec<_>> = HashMap::new();
        for (player, place) in self.present.iter() {
            let since = now.saturating_sub(place.since);
            players.entry(place.number).or_default().push((player, since));
        }
        let age = |(number, age): (&u32, &Age)| {
            let mut players = players.remove(number).unwrap_or_default();
            players.sort_unstable();
            let since = now.saturating_sub(age.since);
            let (filename, node) = (age.filename.clone(), age.node.clone());
            NodeAge { filename, instance: age.instance, node, since, players }
        };
        self.ages.iter().map(age).collect()
    }
}
