//! Clients that meet in ages, talk, and change ages. They rejoin whenever they lose an age.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use worldwire_client::uru::{
    Auth, ClientError, Game, NewAge, Notification, Notifications, Scene, SceneEvent, Shard,
};
use worldwire_core::Sampler;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::Uuid;

use crate::client::{CONNECT_WITHIN, PATIENCE, RETRY};
use crate::history::{History, Talking};
use crate::rounds::AGES;

type Result<T> = std::result::Result<T, ClientError>;

/// How often a player says something.
const TALK_EVERY: Duration = Duration::from_millis(100);
/// How long a player keeps its connection to an age that it has left, and continues to talk there.
const KEEP: Duration = Duration::from_secs(6);
/// How long a process may take to let a player in.
const JOIN_WITHIN: Duration = Duration::from_secs(1);
/// How long a player stays in an age, in milliseconds.
const STAY: std::ops::Range<u64> = 4_000..20_000;
/// The text that a player says is a number, which no other text has.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The name of a client's account and player, which is also its password.
pub(crate) fn name(index: usize) -> String {
    format!("Walker{index}")
}

/// A client.
pub(crate) struct Walker {
    name: String,
    addresses: Vec<Ipv4Addr>,
    next: usize,
    port: u16,
    history: Arc<History>,
    sampler: Sampler,
    account: Uuid,
    player: u32,
    /// The age that the client is in, or wants to enter.
    age: usize,
    /// Whether the client changes ages.
    moves: bool,
}

/// A connection to an age.
struct Visit {
    age: usize,
    /// The address of the process that runs the age.
    node: Ipv4Addr,
    game: Game,
    notifications: Notifications,
    scene: Scene,
    /// When somebody was last heard. This detects stopped processes, whose connections stay open.
    heard: Instant,
    /// When the player left for another age.
    left: Option<Instant>,
}

impl Walker {
    pub(crate) fn new(
        index: usize,
        addresses: Vec<Ipv4Addr>,
        port: u16,
        history: &Arc<History>,
        seed: u64,
    ) -> Self {
        Self {
            name: name(index),
            addresses,
            next: 0,
            port,
            history: Arc::clone(history),
            sampler: Sampler::new(!seed ^ index as u64),
            account: Uuid::ZERO,
            player: 0,
            age: index % AGES.len(),
            // In each age, two clients stay, so that they always hear each other.
            moves: index >= 2 * AGES.len(),
        }
    }

    /// Walks until told to stop. Returns the client's player.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) -> u32 {
        let mut visits = VecDeque::new();
        while !*stop.borrow() {
            match self.enter().await {
                Ok((shard, auth, told)) => {
                    // The client tries again until its session is over.
                    let _ = self.walk(&shard, &auth, told, &mut visits, &stop).await;
                }
                Err(_) => self.next += 1,
            }
            sleep(RETRY).await;
        }
        self.player
    }

    /// Logs in.
    async fn enter(&mut self) -> Result<(Shard, Auth, Notifications)> {
        let address = self.addresses[self.next % self.addresses.len()];
        let mut shard = Shard::new(&address.to_string());
        (shard.port, shard.patience) = (self.port, PATIENCE);
        let timed_out = |_| ClientError::Timeout { request: "Connect" };
        let connecting = timeout(CONNECT_WITHIN, Auth::connect(&shard));
        let (auth, told) = connecting.await.map_err(timed_out)??;
        let login = auth.log_in(&self.name, &self.name).await?;
        self.account = login.account_id;
        self.player = match login.players.first() {
            Some(player) => player.id,
            None => auth.create_player(&self.name, "male").await?.id,
        };
        auth.set_player(self.player).await?;
        Ok((shard, auth, told))
    }

    /// Changes ages until the session ends.
    async fn walk(
        &mut self,
        shard: &Shard,
        auth: &Auth,
        mut told: Notifications,
        visits: &mut VecDeque<Visit>,
        stop: &watch::Receiver<bool>,
    ) -> Result<()> {
        loop {
            if *stop.borrow() {
                return Ok(());
            }
            let Ok(visit) = self.join(shard, auth).await else {
                // The age may be about to move.
                auth.link().ping().await?;
                sleep(RETRY).await;
                continue;
            };
            for old in visits.iter_mut().filter(|visit| visit.left.is_none()) {
                old.left = Some(Instant::now());
            }
            visits.push_back(visit);
            let stay = STAY.start + self.sampler.below(STAY.end - STAY.start);
            let end = Instant::now() + Duration::from_millis(stay);
            loop {
                sleep(TALK_EVERY).await;
                if *stop.borrow() {
                    return Ok(());
                }
                while told.try_next().is_some() {}
                visits.retain(|visit| visit.left.is_none_or(|left| left.elapsed() < KEEP));
                let mut is_there = false;
                for visit in visits.iter_mut() {
                    let talks = self.talk(visit).await.is_ok() && visit.heard.elapsed() < PATIENCE;
                    is_there |= visit.left.is_none() && talks;
                    if !talks {
                        // The connection is lost.
                        visit.left.get_or_insert_with(|| Instant::now() - KEEP);
                    }
                }
                if !is_there {
                    // Rejoin the same age.
                    break;
                }
                if self.moves && Instant::now() >= end {
                    self.age = (self.age + 1) % AGES.len();
                    break;
                }
            }
        }
    }

    async fn join(&self, shard: &Shard, auth: &Auth) -> Result<Visit> {
        let (file, instance) = (AGES[self.age], instance(self.age));
        auth.init_age(&NewAge::new(file, instance)).await?;
        let place = auth.age(file, instance).await?;
        let timed_out = |_| ClientError::Timeout { request: "JoinAgeRequest" };
        let joining = Game::join(shard, &place, self.account, self.player);
        let (game, mut notifications) =
            timeout(JOIN_WITHIN, joining).await.map_err(timed_out)??;
        let mut scene = Scene::new(self.player, Arc::new(Descriptors::load([("x.sdl", "")])));
        let number = place.mcp_id;
        let joined = Talking::Joined { player: self.player, age: self.age, number };
        self.history.talk(joined);
        game.arrive("male", &mut scene, &mut notifications).await?;
        let (age, node) = (self.age, place.game_server);
        let (heard, left) = (Instant::now(), None);
        Ok(Visit { age, node, game, notifications, scene, heard, left })
    }

    /// Says something and processes what others have said.
    async fn talk(&self, visit: &mut Visit) -> Result<()> {
        let (age, node) = (visit.age, visit.node);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.history.talk(Talking::Said { speaker: self.player, age, number, node });
        visit.game.say(&self.name, &number.to_string()).await?;
        while let Some(told) = visit.notifications.try_next() {
            if let Notification::NetMessage(_) = told {
                for event in visit.scene.apply(&told)? {
                    if self.hear((age, node), event) {
                        visit.heard = Instant::now();
                    }
                }
            }
        }
        Ok(())
    }

    /// Records an event if it is a text.
    fn hear(&self, (age, node): (usize, Ipv4Addr), event: SceneEvent) -> bool {
        if let SceneEvent::Chat { player: speaker, text, .. } = event
            && let Ok(number) = text.parse()
        {
            let listener = self.player;
            self.history.talk(Talking::Heard { listener, speaker, age, number, node });
            return true;
        }
        false
    }
}

/// The instance of an age.
fn instance(age: usize) -> Uuid {
    Uuid([0x40 + u8::try_from(age).unwrap(); 16])
}
