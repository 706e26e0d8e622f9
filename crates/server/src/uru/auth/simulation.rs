//! Clients that resume their sessions by token while fronts and leaders fail, in virtual time.
//!
//! Each seed produces a different history: clients log in through fronts and through the leader,
//! lose their connections and come back through any process, while messages on the bus are lost,
//! fronts are killed or cut off, and leaders are killed and replaced. The vault, the leader and the
//! links are real; the bus and the database are in memory. `WORLDWIRE_CLUSTER_SEEDS=N` runs N
//! seeds. The scheduler's own choices do not depend on the seed.

mod bus;
mod client;
mod database;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout};
use worldwire_core::Sampler;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::resume::{HeldTicket, Identity, Recent, Reconnections, SuspendedSession};
use super::returning::{self, Return};
use super::{Notices, Presence, Session};
use crate::start::Absent;
use crate::store::follow::Follower;
use crate::store::lease::Verdict;
use crate::store::seal::ServerKey;
use crate::uru::cluster::{Joining, Leader, LeaderHandle, Leading, Link, PassportOffice};
use crate::uru::config::{Settings, ShardConfig};
use crate::uru::game::{GameRandom, Games};
use crate::uru::vault::resume::Ticket;
use crate::uru::vault::{Environment, Login, Vault, VaultConfig, VaultCopy};
use crate::uru::{Parts, Shared, end_waiting, keys};
use bus::{End, Hub};
use client::Client;
use database::{Data, Database};

const SEEDS: &str = "WORLDWIRE_CLUSTER_SEEDS";
const CLUSTER: &str = "sim";
const FRONTS: usize = 2;
const CLIENTS: usize = 4;
/// How long sessions are kept for their clients.
const WAIT: Duration = Duration::from_secs(6);
/// How long faults occur.
const BAD: Duration = Duration::from_secs(25);
/// How long one attempt of a client may take.
const ATTEMPT: Duration = Duration::from_secs(6);
/// The time within which everything must work again after a failure. In the worst case, a leader
/// fails and then its front is given up.
const REPAIR: Duration = Duration::from_secs(12);

/// The bug in the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Fronts do not ask the leader before a client resumes a session that they keep, so the token
    /// stays valid elsewhere.
    TokenStaysValid,
}

type Outcome<T = ()> = Result<T, String>;

/// Fails unless a condition holds.
macro_rules! require {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
use require;

/// A process that serves clients.
#[derive(Debug)]
struct Place {
    end: End,
    vault: Vault,
    reconnections: Arc<Reconnections>,
    /// A leader's ages and task.
    games: Option<(Games, Leader, LeaderHandle)>,
    is_dead: Arc<AtomicBool>,
    seats: Mutex<Vec<AbortHandle>>,
}

impl Place {
    /// The process can no longer send anything, and its connections break.
    fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.end.set_cut(true);
        self.seats.lock().unwrap().iter().for_each(AbortHandle::abort);
    }

    fn presence(&self, session: u64) -> Presence {
        match (&self.games, self.vault.link()) {
            (Some((games, ..)), _) => games.presence(session),
            (None, Some(link)) => Presence::elsewhere(link.clone(), session),
            (None, None) => unreachable!("a front has a link"),
        }
    }
}

/// A client's connection to a process. It behaves like [`AuthService`](super::AuthService).
struct Seat {
    place: Arc<Place>,
    address: IpAddr,
    session: Session,
    presence: Presence,
    notices: Notices,
    identity: Identity,
    token: Uuid,
    held: Option<HeldTicket>,
}

/// A client's action on its connection.
enum Act {
    /// The client loses its connection.
    Lose,
    /// The client asks for its player's nodes.
    Ask(oneshot::Sender<bool>),
}

/// A connection that is served. Dropping it disconnects it.
struct Seated {
    token: Uuid,
    player: u32,
    acts: mpsc::Sender<Act>,
    task: JoinHandle<()>,
}

impl Seat {
    /// Connects with the token of an earlier connection, or zero. Returns whether its session was
    /// resumed.
    async fn take(
        place: &Arc<Place>,
        address: IpAddr,
        token: Uuid,
        bug: Bug,
    ) -> Result<(Self, bool), NetError> {
        let (session, notices) = place.vault.connect().await?;
        let presence = place.presence(session.number());
        let (reconnections, vault) = (&place.reconnections, &place.vault);
        let Some((new_token, held)) = reconnections.issue_token(address) else {
            return Err(NetError::InternalError);
        };
        let new = Some(held.ticket());
        let (identity, held) = (Identity::default(), Some(held));
        let mut seat = Self {
            place: Arc::clone(place),
            address,
            session,
            presence,
            notices,
            identity,
            token: new_token,
            held,
        };
        if token.is_zero() {
            return Ok((seat, false));
        }
        let presented = Ticket::new(token, address);
        let kept = match bug == Bug::TokenStaysValid && vault.link().is_some() {
            true => reconnections.claim(presented).await.map(Return::Kept),
            false => None,
        };
        let found = match kept {
            Some(kept) => Some(kept),
            None => returning::resume(vault, reconnections, &seat.session, presented, new).await?,
        };
        match found {
            None => return Ok((seat, false)),
            Some(Return::Kept(kept)) => {
                let SuspendedSession { session, presence, notices, identity, .. } = *kept;
                (seat.session, seat.presence, seat.notices) = (session, presence, notices);
                seat.identity = identity;
            }
            Some(Return::Moved(client)) => seat.identity = Identity::from(&client),
        }
        seat.presence.resumed((address, 1).into());
        Ok((seat, true))
    }

    async fn log_in(&mut self, name: &str) -> Result<u32, NetError> {
        let fields = login_fields(name, name, 5, 6);
        let login = Login {
            name: name.to_owned(),
            client_challenge: fields.client_challenge,
            server_challenge: 6,
            proof: fields.challenge_hash,
            address: Some(self.address),
        };
        let found = self.session.log_in(login).await?;
        self.identity = Identity { account: found.account, player: 0 };
        self.presence.logged_in((self.address, 1).into());
        let new = self.held.as_ref().map(HeldTicket::ticket);
        returning::renew(&self.place.vault, &self.session, None, new).await?;
        match found.players.first() {
            Some(player) => Ok(player.id),
            None => Ok(self.session.create_player(name.to_owned(), "male".to_owned()).await?.id),
        }
    }

    async fn choose(&mut self, player: u32) -> Result<(), NetError> {
        let identity = Identity { player, ..self.identity };
        self.place.reconnections.give_up(identity).await;
        self.session.set_player(player).await?;
        self.presence.changed();
        self.identity = identity;
        Ok(())
    }

    fn sit(self) -> Seated {
        let (acts, inbox) = mpsc::channel(10);
        let (place, token) = (Arc::clone(&self.place), self.token);
        let player = self.identity.player;
        let task = tokio::spawn(self.serve(inbox));
        place.seats.lock().unwrap().push(task.abort_handle());
        if place.is_dead.load(Ordering::Relaxed) {
            task.abort();
        }
        Seated { token, player, acts, task }
    }

    async fn serve(mut self, mut inbox: mpsc::Receiver<Act>) {
        loop {
            let Some(held) = &mut self.held else { return };
            tokio::select! {
                notice = self.notices.recv() => {
                    if notice.is_none() {
                        return;
                    }
                }
                claim = held.claimed() => {
                    let _ = claim.send(Box::new(self.into_kept().0));
                    return;
                }
                act = inbox.recv() => match act {
                    None => return,
                    Some(Act::Lose) => {
                        self.presence.lost();
                        if let (kept, Some(held)) = self.into_kept() {
                            held.keep(kept, WAIT);
                        }
                        return;
                    }
                    Some(Act::Ask(reply)) => {
                        let known = self.session.refs(self.identity.player).await;
                        let _ = reply.send(known.is_ok());
                    }
                },
            }
        }
    }

    fn into_kept(self) -> (SuspendedSession, Option<HeldTicket>) {
        let Self { session, presence, notices, identity, held, .. } = self;
        let (account_name, recent) = (None, Recent::default());
        (SuspendedSession { session, presence, notices, identity, account_name, recent }, held)
    }
}

impl Seated {
    /// Waits for `time`, or until the connection ends. Returns whether it is still open.
    async fn stays_for(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.task.is_finished() {
            sleep(Duration::from_millis(50)).await;
        }
        !self.task.is_finished()
    }

    async fn lose(self) {
        // This fails if the process is gone.
        let _ = self.acts.send(Act::Lose).await;
        let _ = self.task.await;
    }

    /// Whether the vault answers a request on behalf of the client's player.
    async fn is_answered(&self) -> bool {
        let (reply, answered) = oneshot::channel();
        let sent = self.acts.send(Act::Ask(reply)).await;
        sent.is_ok() && timeout(ATTEMPT, answered).await.is_ok_and(|answer| answer == Ok(true))
    }
}

/// How long a player must stay online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presumed {
    Always,
    Until(Instant),
}

struct World {
    bug: Bug,
    folder: PathBuf,
    hub: Arc<Hub>,
    data: Arc<Mutex<Data>>,
    fronts: Mutex<Vec<Arc<Place>>>,
    leader: Mutex<Option<Arc<Place>>>,
    presumed: Mutex<BTreeMap<u32, Presumed>>,
    end: Instant,
    /// The numbers of logins, resumed sessions, and refused tokens.
    counts: [AtomicU64; 3],
}

/// A directory with keys.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    keys::save(&keys::generate(PrimeKind::Plain), &folder.path().join("keys.toml")).unwrap();
    folder
}

/// The settings of all processes.
fn config() -> ShardConfig {
    let mut config = ShardConfig::default();
    config.auth.reconnect_seconds = u32::try_from(WAIT.as_secs()).unwrap();
    config
}

impl World {
    async fn new(folder: &Path, seed: u64, bug: Bug) -> Arc<Self> {
        let mut sampler = Sampler::new(seed);
        let loss = [0, 0, 10, 50][usize::try_from(sampler.below(4)).unwrap()];
        let hub = Arc::new(Hub::new(sampler, loss));
        let world = Arc::new(Self {
            bug,
            folder: folder.to_owned(),
            hub,
            data: Arc::default(),
            fronts: Mutex::default(),
            leader: Mutex::default(),
            presumed: Mutex::default(),
            end: Instant::now() + BAD,
            counts: Default::default(),
        });
        world.lead().await;
        for name in names() {
            let vault = world.leader().unwrap().vault.clone();
            vault.add_account(&name, &name, AccountFlags(0)).await.unwrap();
        }
        for index in 0..FRONTS {
            let front = world.front(index).await;
            world.fronts.lock().unwrap().push(front);
        }
        world
    }

    fn leader(&self) -> Option<Arc<Place>> {
        self.leader.lock().unwrap().clone()
    }

    /// Starts a process, which takes over as soon as the database allows it.
    async fn lead(&self) {
        let (end, is_dead) = (self.hub.end(), Arc::<AtomicBool>::default());
        let store = Database::new(Arc::clone(&self.data), Arc::clone(&is_dead));
        let key = ServerKey::from_bytes(&[1; 32]);
        let environment = Environment { clock: Box::new(|| 1_000_000), ..Environment::default() };
        let copy = VaultCopy::new(key, VaultConfig::default(), environment);
        let mut follower = Follower::open(Arc::new(store), copy).await.unwrap();
        let taken = loop {
            let look = follower.look().await.unwrap();
            if look.verdict != Verdict::Wait
                && let Some(taken) = follower.take_over(&look).await.unwrap()
            {
                break taken;
            }
            sleep(Duration::from_millis(100)).await;
        };
        let vault = Vault::lead(follower.lead(taken).await.unwrap()).await.unwrap();
        let absent = Absent { server: false, config: false };
        let parts = Parts::load(&self.folder, config(), PrimeKind::Plain, absent).await.unwrap();
        let Parts { config, server, library, secure, ages, .. } = parts;
        let (random, settings) = (GameRandom::default(), Settings::new(config));
        let games = Games::new(vault.clone(), ages, settings.clone(), random);
        let parts = (settings, server, library, secure);
        let shared = Shared::new(parts, vault.clone(), games.clone());
        let reconnections = Arc::clone(&shared.reconnections);
        tokio::spawn(end_waiting(vault.clone(), WAIT));
        let bus = Arc::new(end.clone());
        let (handle, inbox) = LeaderHandle::new();
        let leading =
            Leading { operators: None, inbox, successors: None, office: PassportOffice::default() };
        let leader = Leader::start(bus, leading, CLUSTER, vault.epoch(), shared).await.unwrap();
        let (games, seats) = (Some((games, leader, handle)), Mutex::default());
        let place = Place { end, vault, reconnections, games, is_dead, seats };
        *self.leader.lock().unwrap() = Some(place.into());
    }

    async fn front(&self, index: usize) -> Arc<Place> {
        let end = self.hub.end();
        let (bus, name) = (Arc::new(end.clone()), format!("front-{index}"));
        let process = self.hub.bits();
        let link = Link::open(bus, CLUSTER, Joining::of(&name, process), 1_000).await.unwrap();
        let vault = Vault::elsewhere(link, &VaultConfig::default());
        let reconnections = Arc::new(Reconnections::new(Settings::new(config())));
        let (is_dead, seats) = (Arc::default(), Mutex::default());
        Place { end, vault, reconnections, games: None, is_dead, seats }.into()
    }

    /// A front, or the leader.
    fn somewhere(&self, sampler: &mut Sampler) -> Option<Arc<Place>> {
        let choice = usize::try_from(sampler.below(FRONTS as u64 + 1)).unwrap();
        let front = self.fronts.lock().unwrap().get(choice).cloned();
        front.or_else(|| self.leader())
    }

    fn presume(&self, player: u32, presumed: Option<Presumed>) {
        let mut all = self.presumed.lock().unwrap();
        match presumed {
            Some(presumed) => all.insert(player, presumed),
            None => all.remove(&player),
        };
    }

    fn count(&self, what: usize) {
        self.counts[what].fetch_add(1, Ordering::Relaxed);
    }

    /// Causes one failure after another.
    async fn fail(self: Arc<Self>, mut sampler: Sampler) {
        loop {
            sleep(some_time(&mut sampler, Duration::from_secs(6))).await;
            if Instant::now() >= self.end {
                break;
            }
            let index = usize::try_from(sampler.below(FRONTS as u64)).unwrap();
            let front = self.fronts.lock().unwrap()[index].clone();
            match sampler.below(4) {
                0 => {
                    front.kill();
                    sleep(some_time(&mut sampler, Duration::from_secs(5))).await;
                    let next = self.front(index).await;
                    self.fronts.lock().unwrap()[index] = next;
                }
                1 | 2 => {
                    front.end.set_cut(true);
                    sleep(some_time(&mut sampler, Duration::from_secs(6))).await;
                    front.end.set_cut(false);
                }
                _ => {
                    let leader = self.leader.lock().unwrap().take();
                    if let Some(leader) = leader {
                        leader.kill();
                    }
                    self.lead().await;
                }
            }
        }
        self.hub.loss.store(0, Ordering::Relaxed);
    }

    /// Checks that players whose clients may return are online, with one session each.
    async fn watch(self: Arc<Self>) -> Outcome {
        loop {
            sleep(Duration::from_millis(50)).await;
            let Some(leader) = self.leader() else { continue };
            let before = self.presumed.lock().unwrap().clone();
            let players: Vec<_> = before.keys().copied().collect();
            let seen = leader.vault.operate(None, move |state| {
                let count = |player: &u32| {
                    state.sessions().values().filter(|it| it.player == *player).count()
                };
                Ok(players.iter().map(count).collect::<Vec<_>>())
            });
            let Ok(Ok(seen)) = timeout(Duration::from_secs(1), seen).await else { continue };
            if leader.is_dead.load(Ordering::Relaxed) {
                continue;
            }
            let after = self.presumed.lock().unwrap().clone();
            for ((player, presumed), sessions) in before.into_iter().zip(seen) {
                require!(sessions < 2, "player {player} has {sessions} sessions");
                let is_over = match presumed {
                    Presumed::Always => false,
                    Presumed::Until(end) => end <= Instant::now(),
                };
                let is_same = after.get(&player) == Some(&presumed);
                require!(
                    sessions == 1 || is_over || !is_same,
                    "player {player} is offline, but {presumed:?} at {:?}",
                    Instant::now()
                );
            }
        }
    }
}

fn some_time(sampler: &mut Sampler, most: Duration) -> Duration {
    Duration::from_millis(sampler.below(u64::try_from(most.as_millis()).unwrap()) + 1)
}

fn names() -> impl Iterator<Item = String> {
    (0..CLIENTS).map(|number| format!("Client{number}"))
}

async fn run(folder: &Path, seed: u64, bug: Bug) -> Outcome<[u64; 3]> {
    let world = World::new(folder, seed, bug).await;
    let mut sampler = Sampler::new(seed ^ 0x5eed);
    let failures = Arc::clone(&world).fail(Sampler::new(sampler.bits()));
    let mut watch = tokio::spawn(Arc::clone(&world).watch());
    let clients: Vec<_> = names()
        .zip(1_u8..)
        .map(|(name, number)| {
            let (world, address) = (Arc::clone(&world), [127, 0, 0, number].into());
            let sampler = Sampler::new(sampler.bits());
            tokio::spawn(Client { world, name, address, sampler, used: Vec::new() }.live())
        })
        .collect();
    let lives = async {
        let mut seats = Vec::new();
        for client in clients {
            seats.extend(client.await.unwrap()?);
        }
        Ok::<_, String>(seats)
    };
    let all = async {
        let (seats, ()) = tokio::join!(lives, failures);
        sleep(WAIT + REPAIR).await;
        seats
    };
    let seats = tokio::select! {
        seats = all => seats?,
        problem = &mut watch => return Err(problem.unwrap().unwrap_err()),
    };
    watch.abort();
    // All waiting tasks have ended.
    let leader = world.leader().unwrap();
    let sessions = leader.vault.operate(None, |state| {
        let of_players = state.sessions().values().filter(|session| session.player != 0);
        Ok(of_players.map(|session| session.player).collect::<Vec<_>>())
    });
    let mut sessions = sessions.await.unwrap();
    sessions.sort_unstable();
    for seat in &seats {
        require!(seat.is_answered().await, "player {} has received no reply", seat.player);
    }
    let mut players: Vec<_> = seats.iter().map(|seat| seat.player).collect();
    players.sort_unstable();
    require!(sessions == players, "sessions of {sessions:?}, but {players:?} are connected");
    require!(
        leader.reconnections.lost_count() == 0,
        "sessions are still waiting for their clients"
    );
    let places = world.fronts.lock().unwrap().clone();
    for place in places {
        require!(place.reconnections.lost_count() == 0, "sessions are still waiting at a front");
    }
    Ok(world.counts.each_ref().map(|count| count.load(Ordering::Relaxed)))
}

/// Runs a history on its own runtime, so that all its tasks end with it.
fn simulate(folder: &Path, seed: u64, bug: Bug) -> Outcome<[u64; 3]> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder.build().unwrap().block_on(run(folder, seed, bug))
}

#[test]
fn clients_return_anywhere_whatever_fails() {
    let seeds = std::env::var(SEEDS).ok().map_or(8, |seeds| seeds.parse().unwrap());
    let (folder, mut totals) = (folder(), [0; 3]);
    for seed in 0..seeds {
        match simulate(folder.path(), seed, Bug::None) {
            Ok(counts) => totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count),
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    let [logins, returns, refused] = totals;
    println!("{logins} logins, {returns} returns, {refused} tokens refused");
    assert!(logins > seeds && returns > 2 * seeds && refused > seeds);
}

/// The simulation detects the bug that it is meant to detect.
#[test]
fn a_token_that_stays_valid_is_noticed() {
    let folder = folder();
    let run = |seed| simulate(folder.path(), seed, Bug::TokenStaysValid).err();
    assert!((0..12).any(|seed| run(seed).is_some()), "no history shows it");
}
