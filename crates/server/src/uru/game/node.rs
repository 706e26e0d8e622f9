//! The node's side of the cluster: carries out the leader's orders for the ages here, and reports
//! what happens in them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::command::Command;
use super::games::{FRESH, Games};
use super::registry::{AgeRef, ExpectedPlayer, HeldTenure, Registry, Tables};
use super::small_games::templates;
use crate::uru::cluster::{
    AgeOrder, AgeReport, Bus, Link, NodeEvent, NodeInfo, Routes, Tenure, Visit,
};
use crate::uru::vault::age_states::{AgeRecord, Owner, PlayerIdentity};

/// How often to check whether the node is being drained.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The number of checks after which every age is reported again.
const REPORT_EVERY: u32 = 10;
/// The number of checks after which the leader is told again which marker games run here. The leader
/// removes games that have been unused for a day, so this interval must be much shorter.
const KEEP_EVERY: u32 = 600;
/// How long to remember ended tenures. Later orders for the same ages have other fences.
const REMEMBER: Duration = Duration::from_secs(60);

impl Games {
    /// Carries out the leader's orders and reports to it. Runs until the link ends.
    pub(in crate::uru) async fn serve_leader(self, link: Link, mut info: NodeInfo) {
        let (mut events, draining) = (link.attend(), link.draining());
        let max_players = info.max_players;
        let mut reported = None;
        let mut clock = interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0;
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(NodeEvent::Joined) => {
                        reported = None;
                        report_info(&link, &info, &mut reported);
                        self.report_all(&link);
                    }
                    Some(NodeEvent::Restored) => self.forget_ages(),
                    Some(NodeEvent::Ordered { order, lapses }) => {
                        self.carry_out(&link, order, lapses);
                    }
                    None => return,
                },
                _ = clock.tick() => {
                    ticks += 1;
                    if ticks % REPORT_EVERY == 0 {
                        self.report_running(&link);
                        self.forget_ended();
                    }
                    if ticks % KEEP_EVERY == 0 {
                        self.keep_games();
                    }
                }
            }
            // If the maximum is 0, the leader places no ages here.
            info.max_players = if *draining.borrow() { 0 } else { max_players };
            report_info(&link, &info, &mut reported);
        }
    }

    /// Exchanges messages with ages in other processes until the task is aborted. `process` is this
    /// process's random number.
    pub(in crate::uru) fn route_over(
        &self,
        bus: Arc<dyn Bus>,
        cluster: &str,
        process: u64,
    ) -> [JoinHandle<()>; 2] {
        let (routes, mut arrived, task) = Routes::start(bus, cluster, process);
        let registry = self.registry().clone();
        registry.route_over(routes);
        let deliver = async move {
            while let Some((to, packet)) = arrived.recv().await {
                match to {
                    Some(player) => registry.deliver(&packet, &[player]),
                    None => registry.deliver_to_all(&packet, None),
                }
            }
        };
        [task, tokio::spawn(deliver)]
    }

    fn carry_out(&self, link: &Link, order: AgeOrder, lapses: u64) {
        match order {
            AgeOrder::Expect { request, visit } => {
                let tenure = link.tenure(visit.number, visit.fence, lapses);
                match self.expect(visit, tenure) {
                    true => link.report_ages(AgeReport::Expecting { request }),
                    false => tracing::debug!(request, "cannot prepare an age for a player"),
                }
            }
            AgeOrder::Out { number, player, auth } => self.send_out(number, player, auth),
            AgeOrder::Announce { instance, sender, text } => {
                let instance = Some(instance).filter(|instance| !instance.is_zero());
                if let Err(error) = self.announce_text(&sender, &text, instance) {
                    tracing::warn!(%error, "cannot show a message to players");
                }
            }
            AgeOrder::Revoke { number, fence } => self.revoke(number, fence),
        }
    }

    /// Expects a player in an age. Returns false if this process must not run the age.
    fn expect(&self, visit: Visit, tenure: Arc<Tenure>) -> bool {
        let Visit { number, fence, filename, age, instance, .. } = visit;
        let Visit { player, account, player_name, is_admin, auth, address, .. } = visit;
        let mut tables = self.registry().tables();
        if tables.is_closed {
            return false;
        }
        let tenure = match tables.tenures.get(&number) {
            // This is a delayed order. The leader knows, or will learn, that this placement has
            // ended.
            Some(held) if held.tenure.fence > fence => return false,
            Some(held) if held.tenure.fence == fence && held.tenure.is_over() => return false,
            Some(held) if held.tenure.fence == fence => Arc::clone(&held.tenure),
            _ => {
                end_age(&mut tables, number);
                let held = HeldTenure { tenure: Arc::clone(&tenure), ended: None };
                tables.tenures.insert(number, held);
                tenure
            }
        };
        let place = AgeRef {
            name: filename,
            record: AgeRecord { age, instance },
            owner: Owner { number, fence },
            tenure: Some(tenure),
        };
        let identity = PlayerIdentity { account, player, name: player_name, is_admin };
        let since = Instant::now();
        let expected = ExpectedPlayer { since, auth, address, identity, number, place };
        tables.numbers.insert(number);
        tables.expected.insert(player, expected);
        true
    }

    /// Removes a player whose session has ended or now has another player.
    fn send_out(&self, number: u32, player: u32, auth: u64) {
        let mut tables = self.registry().tables();
        let is_expected = |it: &ExpectedPlayer| it.number == number && it.auth == auth;
        if tables.expected.get(player).is_some_and(is_expected) {
            tables.expected.remove(player);
        }
        let present = tables.present.get(player);
        let present = present.filter(|it| it.number == number && it.auth == auth);
        if let (Some(present), Some(host)) = (present, tables.hosts.get(&number)) {
            send(&host.commands, Command::Kick { player, serial: present.serial });
        }
    }

    /// Ends an age at once, without saving.
    fn revoke(&self, number: u32, fence: u64) {
        let mut tables = self.registry().tables();
        if tables.tenures.get(&number).is_some_and(|held| held.tenure.fence == fence) {
            end_age(&mut tables, number);
        }
    }

    /// Reports everything to a leader that does not know it yet.
    fn report_all(&self, link: &Link) {
        let mut tables = self.registry().tables();
        let now = Instant::now();
        for (number, held) in &mut tables.tenures {
            let fence = held.tenure.fence;
            if held.tenure.is_over() {
                held.ended.get_or_insert(now);
                link.report_ages(AgeReport::Ended { number: *number, fence });
            }
        }
        drop(tables);
        self.report_running(link);
        let tables = self.registry().tables();
        for (player, present) in tables.present.iter() {
            let Some(held) = tables.tenures.get(&present.number) else { continue };
            let (number, fence, auth) = (present.number, held.tenure.fence, present.auth);
            if !held.tenure.is_over() {
                link.report_ages(AgeReport::Arrived { number, fence, player, auth });
            }
        }
    }

    /// Reports the running ages.
    fn report_running(&self, link: &Link) {
        let tables = self.registry().tables();
        for (number, host) in &tables.hosts {
            if let Some(tenure) = &host.place.tenure
                && !tenure.is_over()
            {
                let (number, fence) = (*number, tenure.fence);
                link.report_ages(AgeReport::Running { number, fence });
            }
        }
    }

    /// Ends all ages without saving, and forgets their fences, because the vault may assign them
    /// again.
    fn forget_ages(&self) {
        let mut tables = self.registry().tables();
        let numbers: Vec<_> = tables.tenures.keys().copied().collect();
        numbers.into_iter().for_each(|number| end_age(&mut tables, number));
        tables.tenures.clear();
    }

    /// Tells the leader which marker games run here.
    fn keep_games(&self) {
        let open = templates(self.registry().tables().games.values());
        if !open.is_empty() {
            let vault = self.registry().vault().clone();
            tokio::spawn(async move { vault.keep_marker_games(open).await });
        }
    }

    fn forget_ended(&self) {
        let is_recent = |ended: Instant| ended.elapsed() < REMEMBER;
        self.registry().tables().tenures.retain(|_, held| held.ended.is_none_or(is_recent));
    }
}

/// Reports the node's properties unless the leader already knows them.
fn report_info(link: &Link, info: &NodeInfo, reported: &mut Option<NodeInfo>) {
    if link.is_member() && reported.as_ref() != Some(info) {
        *reported = Some(info.clone());
        link.report_ages(AgeReport::Info { info: info.clone() });
    }
}

/// Ends the tenure of an age and, if the age runs, ends it without saving.
fn end_age(tables: &mut Tables, number: u32) {
    let Some(held) = tables.tenures.get_mut(&number) else { return };
    held.tenure.revoke();
    held.ended.get_or_insert_with(Instant::now);
    if let Some(host) = tables.hosts.remove(&number) {
        // The age's next step would notice the end, too.
        send(&host.commands, Command::Stop);
    }
}

/// Sends a command; if the age is busy, sends it later.
fn send(commands: &mpsc::Sender<Command>, command: Command) {
    let commands = commands.clone();
    // Sending fails if the age has ended.
    tokio::spawn(async move { commands.send(command).await });
}

impl Registry {
    /// Gives back an age that has ended, so that another process may run it. If a player is about
    /// to join the age, this process keeps it.
    pub(super) fn ended(&self, place: &AgeRef) {
        let (Some(tenure), Some(link)) = (&place.tenure, self.vault().link()) else { return };
        let (number, fence) = (tenure.number, tenure.fence);
        let mut tables = self.tables();
        let is_coming = |(_, it): (u32, &ExpectedPlayer)| {
            it.number == number && it.place.owner.fence == fence && it.since.elapsed() < FRESH
        };
        if !tables.is_closed && !tenure.is_over() && tables.expected.iter().any(is_coming) {
            return;
        }
        let was_over = tenure.is_over();
        // This has no effect if the tenure ended earlier.
        tenure.revoke();
        tenure.log_end();
        if was_over {
            return;
        }
        if let Some(held) = tables.tenures.get_mut(&number)
            && held.tenure.fence == fence
        {
            held.ended = Some(Instant::now());
        }
        link.report_ages(AgeReport::Ended { number, fence });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::time::{advance, sleep, timeout};
    use worldwire_uru::file::secure::SecureKey;
    use worldwire_uru::games::GameType;
    use worldwire_uru::types::{NetError, Uuid};

    use super::super::files::AgeFiles;
    use super::super::games::Membership;
    use super::super::outbox::Outbox;
    use super::super::registry::StartedGame;
    use super::super::small_games::GameRandom;
    use super::*;
    use crate::uru::ShardConfig;
    use crate::uru::cluster::{Joining, LocalBus, LocalLeader};
    use crate::uru::config::Settings;
    use crate::uru::vault::Vault;
    use crate::uru::vault::ask::{Ask as _, decoded};
    use crate::uru::vault::markers::KeepGames;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ACCOUNT: Uuid = Uuid([3; 16]);
    const NUMBER: u32 = 0x8000_0000;
    const ANN: u32 = 100;
    const BOB: u32 = 101;

    /// A node that runs ages, and its leader.
    struct Cluster {
        bus: Arc<LocalBus>,
        leader: LocalLeader,
        link: Link,
        games: Games,
        requests: u64,
        _data: tempfile::TempDir,
    }

    impl Cluster {
        async fn start() -> Self {
            let bus = LocalBus::new();
            let leader = LocalLeader::start(&bus, "shard", 1).await;
            let config = ShardConfig::default();
            let link =
                Link::open(Arc::clone(&bus) as _, "shard", Joining::of("a", 1), 100).await.unwrap();
            let vault = Vault::elsewhere(link.clone(), &config.vault());
            let data = tempfile::tempdir().unwrap();
            let files = AgeFiles::open(data.path(), SecureKey::from_words([1; 4])).unwrap();
            let random = GameRandom::default();
            let games = Games::new(vault, files, Settings::new(config), random);
            let info = NodeInfo { runs_ages: true, max_players: 9, ..NodeInfo::default() };
            tokio::spawn(games.clone().serve_leader(link.clone(), info));
            let mut cluster = Self { bus, leader, link, games, requests: 0, _data: data };
            cluster.hears(|it| matches!(it, AgeReport::Info { .. })).await;
            cluster
        }

        async fn hears(&mut self, is_meant: impl FnMut(&AgeReport) -> bool) -> AgeReport {
            let heard = self.leader.hears(is_meant);
            timeout(Duration::from_secs(600), heard).await.expect("the leader hears it")
        }

        /// Orders the node to expect a player whose session has the same number as the player.
        fn expect(&mut self, player: u32, fence: u64) -> u64 {
            self.requests += 1;
            let visit = Visit {
                number: NUMBER,
                fence,
                filename: "Fern".to_owned(),
                age: 0,
                instance: Uuid([7; 16]),
                player,
                account: ACCOUNT,
                player_name: player.to_string(),
                is_admin: false,
                auth: player.into(),
                address: ADDRESS,
            };
            self.leader.order(AgeOrder::Expect { request: self.requests, visit });
            self.requests
        }

        async fn expected(&mut self, player: u32, fence: u64) {
            let request = self.expect(player, fence);
            self.hears(|it| *it == AgeReport::Expecting { request }).await;
        }

        async fn join(&self, player: u32) -> Result<Member, NetError> {
            let (outbox, mut place) = (Arc::new(Outbox::new()), None);
            let from = (ADDRESS, &outbox);
            self.games.join(NUMBER, ACCOUNT, player, from, &mut place).await?;
            Ok(Member { outbox, membership: place.unwrap() })
        }

        async fn joined(&mut self, player: u32, fence: u64) -> Member {
            self.expected(player, fence).await;
            let member = self.join(player).await.unwrap();
            let auth = player.into();
            let arrived = AgeReport::Arrived { number: NUMBER, fence, player, auth };
            self.hears(|it| *it == arrived).await;
            member
        }
    }

    /// A player in the age.
    struct Member {
        outbox: Arc<Outbox>,
        membership: Membership,
    }

    impl Member {
        /// Waits until the age closes the connection.
        async fn is_closed(&self) {
            let closed = async {
                while self.outbox.end().is_none() {
                    self.outbox.take(usize::MAX, &mut Vec::new());
                    sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(Duration::from_secs(1), closed).await.expect("the age ends");
        }

        fn takes_nothing(&self) -> bool {
            self.membership.is_over()
        }

        async fn leave(self) {
            let Membership { player, serial, commands, .. } = self.membership;
            commands.send(Command::Leave { player, serial }).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn players_come_and_go_in_an_age_that_the_leader_gave() {
        let mut cluster = Cluster::start().await;
        assert_eq!(cluster.join(ANN).await.err(), Some(NetError::AgeNotFound));
        let ann = cluster.joined(ANN, 5).await;
        let bob = cluster.joined(BOB, 5).await;
        let running = AgeReport::Running { number: NUMBER, fence: 5 };
        cluster.hears(|it| *it == running).await;

        // Another session's player stays.
        cluster.leader.order(AgeOrder::Out { number: NUMBER, player: BOB, auth: 7 });
        cluster.leader.order(AgeOrder::Out { number: NUMBER, player: ANN, auth: ANN.into() });
        ann.is_closed().await;
        let departed = |player| AgeReport::Departed { number: NUMBER, fence: 5, player };
        cluster.hears(|it| *it == departed(ANN)).await;
        assert_eq!(bob.outbox.end(), None);
        bob.leave().await;
        cluster.hears(|it| *it == departed(BOB)).await;
        // The age waits for players for a while.
        cluster.hears(|it| *it == AgeReport::Ended { number: NUMBER, fence: 5 }).await;
        let request = cluster.expect(ANN, 5);
        cluster.expected(ANN, 6).await;
        assert!(cluster.join(ANN).await.is_ok());
        assert!(request < cluster.requests, "an order that crossed the report is not answered");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_an_age_travel_by_its_session() {
        let cluster = Cluster::start().await;
        let vault = cluster.games.registry().vault().of_age();
        assert_eq!(vault.age_settings("Fern").await, Err(NetError::InternalError));
        let (session, _notices) = vault.connect().await.unwrap();
        vault.carry_by(&session);
        // The leader of this test refuses everything.
        assert_eq!(vault.clone().age_settings("Fern").await, Err(NetError::NotSupported));
    }

    #[tokio::test(start_paused = true)]
    async fn an_age_that_is_placed_again_starts_again() {
        let mut cluster = Cluster::start().await;
        let ann = cluster.joined(ANN, 5).await;
        cluster.leader.order(AgeOrder::Revoke { number: NUMBER, fence: 4 });
        let bob = cluster.joined(BOB, 5).await;
        cluster.leader.order(AgeOrder::Revoke { number: NUMBER, fence: 5 });
        ann.is_closed().await;
        bob.is_closed().await;
        assert!(ann.takes_nothing() && bob.takes_nothing());
        // A later placement ends an earlier one, too.
        let bob = cluster.joined(BOB, 6).await;
        let ann = cluster.joined(ANN, 7).await;
        bob.is_closed().await;
        assert!(bob.takes_nothing() && !ann.takes_nothing());
    }

    #[tokio::test(start_paused = true)]
    async fn ages_end_when_the_leader_is_silent_for_too_long() {
        let mut cluster = Cluster::start().await;
        let ann = cluster.joined(ANN, 5).await;
        cluster.expected(BOB, 5).await;
        cluster.leader.fail();
        sleep(Duration::from_millis(2_500)).await;
        assert!(!ann.takes_nothing());
        sleep(Duration::from_millis(501)).await;
        assert!(ann.takes_nothing());
        ann.is_closed().await;
        // A player who was expected cannot start the age again, no matter which leader is found
        // later.
        cluster.leader = LocalLeader::start(&cluster.bus, "shard", 2).await;
        cluster.hears(|it| *it == AgeReport::Ended { number: NUMBER, fence: 5 }).await;
        assert_eq!(cluster.join(BOB).await.err(), Some(NetError::AgeNotFound));
        cluster.joined(BOB, 6).await;
    }

    /// The clock jumps like this when the process is suspended for a while.
    #[tokio::test(start_paused = true)]
    async fn ages_say_nothing_after_the_clock_has_jumped() {
        let mut cluster = Cluster::start().await;
        let ann = cluster.joined(ANN, 5).await;
        let commands = ann.membership.commands.clone();
        cluster.leader.fail();
        advance(Duration::from_secs(60)).await;
        // No task has run again yet.
        assert!(ann.takes_nothing());
        let packet = super::super::announcement::announcement("Shard", "Hello").unwrap();
        commands.try_send(Command::DeliverToAll { packet: packet.clone() }).unwrap();
        // The node finds a leader before the age takes a step.
        cluster.leader = LocalLeader::start(&cluster.bus, "shard", 2).await;
        cluster.hears(|it| matches!(it, AgeReport::Info { .. })).await;
        assert!(cluster.link.is_member() && ann.takes_nothing());
        let mut taken = Vec::new();
        ann.outbox.take(usize::MAX, &mut taken);
        assert!(!taken.contains(&packet), "the age has spoken");
        ann.is_closed().await;
        cluster.hears(|it| *it == AgeReport::Ended { number: NUMBER, fence: 5 }).await;
    }

    #[tokio::test(start_paused = true)]
    async fn ages_run_on_when_another_process_leads() {
        let mut cluster = Cluster::start().await;
        let ann = cluster.joined(ANN, 5).await;
        for epoch in 2..5 {
            cluster.leader.fail();
            sleep(Duration::from_secs(2)).await;
            cluster.leader = LocalLeader::start(&cluster.bus, "shard", epoch).await;
            let running = AgeReport::Running { number: NUMBER, fence: 5 };
            cluster.hears(|it| *it == running).await;
            let (player, auth) = (ANN, ANN.into());
            let arrived = AgeReport::Arrived { number: NUMBER, fence: 5, player, auth };
            cluster.hears(|it| *it == arrived).await;
            assert!(!ann.takes_nothing() && ann.outbox.end().is_none());
        }
        cluster.joined(BOB, 5).await;
    }

    /// The restored database assigns the same fences again.
    #[tokio::test(start_paused = true)]
    async fn ages_start_afresh_after_a_restore_of_the_database() {
        let mut cluster = Cluster::start().await;
        cluster.leader.fail();
        cluster.leader = LocalLeader::start(&cluster.bus, "shard", 9).await;
        cluster.hears(|it| matches!(it, AgeReport::Info { .. })).await;
        let ann = cluster.joined(ANN, 5).await;
        cluster.leader.fail();
        sleep(Duration::from_secs(4)).await;
        ann.is_closed().await;
        cluster.leader = LocalLeader::start(&cluster.bus, "shard", 3).await;
        cluster.hears(|it| matches!(it, AgeReport::Info { .. })).await;
        cluster.joined(ANN, 4).await;
        cluster.expected(BOB, 4).await;
    }

    /// If the leader did not know of these games, it could remove them.
    #[tokio::test(start_paused = true)]
    async fn the_leader_learns_which_marker_games_run() {
        let mut cluster = Cluster::start().await;
        let template = Uuid([8; 16]);
        let game = |template| StartedGame {
            host: 1,
            place: AgeRef {
                name: "Fern".to_owned(),
                record: AgeRecord { age: 0, instance: Uuid([7; 16]) },
                owner: Owner { number: NUMBER, fence: 5 },
                tenure: None,
            },
            game_type: GameType::Marker,
            template,
            since: Instant::now(),
            players: Vec::new(),
        };
        cluster.games.registry().game_joined(1, ANN, game(Some(template)));
        cluster.games.registry().game_joined(2, BOB, game(None));
        for _ in 0..2 {
            let asked = timeout(Duration::from_secs(601), cluster.leader.refused());
            let (kind, body) = asked.await.expect("the node asks");
            let templates: BTreeSet<Uuid> = decoded(&body).unwrap();
            assert_eq!((kind, templates), (KeepGames::KIND, [template].into()));
        }
    }

    /// The last reports arrive before the process ends.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_stops_gives_its_ages_back() {
        let mut cluster = Cluster::start().await;
        let ann = cluster.joined(ANN, 5).await;
        cluster.expected(BOB, 5).await;
        assert_eq!(cluster.games.close().await, 0);
        cluster.link.flush().await;
        ann.is_closed().await;
        let ended = cluster.leader.hears(|it| *it == AgeReport::Ended { number: NUMBER, fence: 5 });
        timeout(Duration::ZERO, ended).await.expect("it has arrived");
    }
}
