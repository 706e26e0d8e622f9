//! Players who talk in ages, with measurements of how long it takes until others hear them.

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use worldwire_client::uru::{
    Auth, ClientError, Game, NewAge, Notification, Notifications, Scene, SceneEvent, Shard,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::Uuid;

/// The age file of all ages.
pub(crate) const FILE: &str = "Fern";
/// How long a request may take while all players enter at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of players that enter at once.
const AT_ONCE: usize = 8;
/// How long players listen after the last one has said something.
const LISTEN: Duration = Duration::from_secs(20);

/// The texts that players say are the time since then.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A player in an age.
pub(crate) struct Player {
    name: String,
    pub(crate) age: u8,
    /// The address of the process that runs the age.
    pub(crate) node: Ipv4Addr,
    _auth: (Auth, Notifications),
    game: Game,
    notifications: Notifications,
    scene: Scene,
}

/// What a player heard in a conversation: the latency of each text, and the process that sent it.
pub(crate) struct Heard {
    pub(crate) node: Ipv4Addr,
    pub(crate) times: Vec<Duration>,
}

/// Lets players with these names enter ages through a front, the same number in each age.
pub(crate) async fn enter(front: (Ipv4Addr, u16), ages: u8, names: Vec<String>) -> Vec<Player> {
    let mut shard = Shard::new(&front.0.to_string());
    (shard.port, shard.patience) = (front.1, PATIENCE);
    let shard = Arc::new(shard);
    let mut players = Vec::new();
    let (mut others, permits) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for (index, name) in names.into_iter().enumerate() {
        let (shard, permits) = (Arc::clone(&shard), Arc::clone(&permits));
        let age = u8::try_from(index % usize::from(ages)).unwrap();
        match index < usize::from(ages) {
            // The first player of each age enters alone, so that the leader distributes the ages
            // evenly.
            true => players.push(Player::enter(&shard, name, age).await.unwrap()),
            false => drop(others.spawn(async move {
                let _permit = permits.acquire().await.unwrap();
                Player::enter(&shard, name, age).await.unwrap()
            })),
        }
    }
    players.extend(others.join_all().await);
    players
}

impl Player {
    /// Logs in with an account whose password is its name, and enters an age.
    pub(crate) async fn enter(shard: &Shard, name: String, age: u8) -> Result<Self, ClientError> {
        let (auth, told) = Auth::connect(shard).await?;
        let login = auth.log_in(&name, &name).await?;
        let account = login.account_id;
        let player = match login.players.first() {
            Some(player) => player.id,
            None => auth.create_player(&name, "female").await?.id,
        };
        auth.set_player(player).await?;
        let instance = Uuid([0x40 + age; 16]);
        auth.init_age(&NewAge::new(FILE, instance)).await?;
        let place = auth.age(FILE, instance).await?;
        let (game, mut notifications) = Game::join(shard, &place, account, player).await?;
        let mut scene = Scene::new(player, Arc::new(Descriptors::load([("x.sdl", "")])));
        game.arrive("female", &mut scene, &mut notifications).await?;
        let (node, auth) = (place.game_server, (auth, told));
        Ok(Self { name, age, node, _auth: auth, game, notifications, scene })
    }

    /// Says the current time.
    pub(crate) async fn say(&self) -> Result<(), ClientError> {
        let text = EPOCH.elapsed().as_nanos().to_string();
        self.game.say(&self.name, &text).await
    }

    /// Forgets everything that has arrived.
    pub(crate) fn forget(&mut self) {
        while self.notifications.try_next().is_some() {}
    }

    /// Waits for the next text and returns its latency.
    async fn hear(&mut self) -> Duration {
        loop {
            let told = self.notifications.next().await.expect("the connection stays open");
            let now = EPOCH.elapsed();
            if !matches!(told, Notification::NetMessage(_)) {
                continue;
            }
            for event in self.scene.apply(&told).unwrap() {
                if let SceneEvent::Chat { text, .. } = event
                    && let Ok(said) = text.parse()
                {
                    return now.saturating_sub(Duration::from_nanos(said));
                }
            }
        }
    }

    /// Says something this many times, and listens until each of the `others` has said as much.
    async fn converse(
        mut self,
        begin: Instant,
        every: Duration,
        times: u32,
        others: u32,
    ) -> Talked {
        let mut heard = Vec::new();
        for time in 0..times {
            let due = sleep_until(begin + every * time);
            tokio::pin!(due);
            loop {
                tokio::select! {
                    () = &mut due => break,
                    time = self.hear() => heard.push(time),
                }
            }
            self.say().await.unwrap();
        }
        let wanted = usize::try_from(times * others).unwrap();
        while heard.len() < wanted {
            let next = timeout(LISTEN, self.hear()).await;
            heard.push(next.unwrap_or_else(|_| panic!("{} of {wanted} were heard", heard.len())));
        }
        Talked { heard: Heard { node: self.node, times: heard }, player: self }
    }
}

struct Talked {
    player: Player,
    heard: Heard,
}

/// Lets all players say something at this interval for some time, and returns what they heard: each
/// hears everything that the others in the same age say.
pub(crate) async fn converse(
    players: &mut Vec<Player>,
    every: Duration,
    time: Duration,
) -> Vec<Heard> {
    let times = u32::try_from(time.as_nanos() / every.as_nanos()).unwrap();
    let mut in_age = [0_u32; 256];
    players.iter().for_each(|player| in_age[usize::from(player.age)] += 1);
    let begin = Instant::now() + Duration::from_millis(50);
    let (count, mut tasks) = (u32::try_from(players.len()).unwrap(), JoinSet::new());
    for (index, player) in (0..).zip(players.drain(..)) {
        let others = in_age[usize::from(player.age)] - 1;
        // Players do not all start at the same time.
        tasks.spawn(player.converse(begin + every * index / count, every, times, others));
    }
    let mut heard = Vec::new();
    for Talked { player, heard: one } in tasks.join_all().await {
        players.push(player);
        heard.push(one);
    }
    heard
}
