//! The ages on other processes, as the leader's services use them.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use worldwire_uru::types::{NetError, Uuid};

use super::super::ages::Visit;
use super::scheduler::{Choice, NotExpected, Scheduler};
use crate::boot_clock::BootInstant;
use crate::uru::game::RunningAge;
use crate::uru::hosts::Hosts;
use crate::uru::vault::AgeFound;
use crate::uru::vault::age_states::PlayerIdentity;
use crate::uru::vault::placements::{Candidate, Placement};

/// How long an age counts as running in this process after a player was admitted to it.
const HERE_FOR: Duration = Duration::from_secs(70);
/// The number of ages beyond which old ones are discarded.
const MAX_HERE: usize = 1_024;
/// The number of addresses beyond which all are discarded.
const MAX_ADDRESSES: usize = 256;
/// How long to wait for nodes that an earlier leader knew.
const WAIT_FOR_NODES: Duration = Duration::from_secs(2);
/// How often to check whether they have joined.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The ages on other processes. Cheap to clone. Does nothing unless this process leads a cluster.
#[derive(Clone, Default)]
pub(in crate::uru) struct NodeAges(Arc<Inner>);

#[derive(Default)]
struct Inner {
    leading: Mutex<Option<Leading>>,
    /// Notified when there is something to do.
    changed: Notify,
    /// Whether this process is stopping.
    is_stopping: AtomicBool,
    /// When players were last admitted to ages of this process, by Age node and instance.
    here: Mutex<HashMap<(u32, Uuid), Instant>>,
    /// The addresses of nodes, by host.
    addresses: Mutex<HashMap<String, Arc<Hosts>>>,
}

/// The scheduler, and the callers waiting for its answers.
struct Leading {
    start: BootInstant,
    scheduler: Scheduler,
    answers: HashMap<u64, oneshot::Sender<Result<(), NotExpected>>>,
}

/// Counts an age towards a process's load until it is placed, so that ages requested at the same
/// time go to different processes.
pub(in crate::uru) struct Reservation {
    nodes: NodeAges,
    /// The process.
    pub(in crate::uru) candidate: Candidate,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.nodes.with(|scheduler, _| scheduler.release(self.candidate.process));
    }
}

impl fmt::Debug for NodeAges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeAges").field("is_leading", &self.is_leading()).finish_non_exhaustive()
    }
}

impl NodeAges {
    /// Starts leading.
    pub(super) fn lead(&self, start: BootInstant, scheduler: Scheduler) {
        *self.leading() = Some(Leading { start, scheduler, answers: HashMap::new() });
    }

    /// Stops leading: all requests are refused from now on.
    pub(super) fn resign(&self) {
        *self.leading() = None;
    }

    /// Whether this process leads others.
    pub(in crate::uru) fn is_leading(&self) -> bool {
        self.leading().is_some()
    }

    /// From now on, players stay in their ages when their sessions end, because this process is
    /// stopping and another one may continue the sessions.
    pub(in crate::uru) fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Calls `act` with the scheduler and the current time, if this process leads.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Scheduler, Duration) -> T) -> Option<T> {
        self.leading().as_mut().map(|it| act(&mut it.scheduler, it.start.elapsed()))
    }

    /// Waits until there is something to do. Cancel safe.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Passes on the answer to a request.
    pub(super) fn answer(&self, request: u64, outcome: Result<(), NotExpected>) {
        let waiting = self.leading().as_mut().and_then(|it| it.answers.remove(&request));
        if let Some(waiting) = waiting {
            // The caller may have stopped waiting.
            let _ = waiting.send(outcome);
        }
    }

    /// Reserves the process for a new age; `None` means this process. Waits for nodes that an
    /// earlier leader knew, which may still be joining.
    pub(in crate::uru) async fn reserve(&self) -> Option<Reservation> {
        let start = Instant::now();
        let choose = |scheduler: &mut Scheduler, _| {
            let choice = scheduler.choose();
            if let Choice::Node(candidate) = &choice {
                scheduler.reserve(candidate.process);
            }
            choice
        };
        loop {
            match self.with(choose)? {
                Choice::Node(candidate) => {
                    return Some(Reservation { nodes: self.clone(), candidate });
                }
                Choice::Here => return None,
                Choice::Wait if start.elapsed() >= WAIT_FOR_NODES => return None,
                Choice::Wait => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Whether an age runs in this process, or will once its players arrive. `runs` says whether it
    /// runs here now, and `will` whether it must run here if it runs nowhere else.
    pub(in crate::uru) fn is_here(&self, found: AgeFound, runs: bool, will: bool) -> bool {
        let key = (found.age, found.instance);
        let mut here = self.0.here.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |since: &Instant| since.elapsed() < HERE_FOR;
        let is_here = runs || will || here.get(&key).is_some_and(is_recent);
        if is_here {
            if here.len() >= MAX_HERE {
                here.retain(|_, since| is_recent(since));
            }
            here.insert(key, Instant::now());
        }
        is_here
    }

    /// Tells a node to expect a session's player in an age. Returns the host that the client must
    /// connect to.
    pub(in crate::uru) async fn expect(
        &self,
        number: u32,
        placement: &Placement,
        age: u32,
        player: &PlayerIdentity,
        (auth, address): (u64, IpAddr),
    ) -> Result<String, NotExpected> {
        let visit = Visit {
            number,
            fence: placement.fence,
            filename: placement.filename.clone(),
            age,
            instance: placement.instance,
            player: player.player,
            account: player.account,
            player_name: player.name.clone(),
            is_admin: player.is_admin,
            auth,
            address,
        };
        let (waiting, answer) = oneshot::channel();
        match self.leading().as_mut() {
            Some(leading) => {
                let now = leading.start.elapsed();
                let request = leading.scheduler.expect(now, placement, visit);
                leading.answers.insert(request, waiting);
            }
            None => drop(waiting),
        }
        self.0.changed.notify_one();
        answer.await.unwrap_or(Err(NotExpected::NoAnswer))?;
        let host = self.with(|scheduler, _| scheduler.host(placement.process).map(str::to_owned));
        host.flatten().ok_or(NotExpected::NoAnswer)
    }

    /// Whether a node runs ages.
    pub(super) fn runs_ages(&self, incarnation: u64) -> bool {
        self.with(|scheduler, _| scheduler.runs_ages(incarnation)).unwrap_or_default()
    }

    /// The IPv4 address of a node's host.
    pub(in crate::uru) async fn ipv4(&self, host: &str) -> Result<Ipv4Addr, NetError> {
        let hosts = {
            let addresses = self.0.addresses.lock();
            let mut addresses = addresses.unwrap_or_else(PoisonError::into_inner);
            if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(host) {
                addresses.clear();
            }
            let name = host.split_once(':').map_or(host, |(name, _)| name);
            let new = || Arc::new(Hosts::new(name));
            Arc::clone(addresses.entry(host.to_owned()).or_insert_with(new))
        };
        hosts.ipv4().await.ok_or(NetError::NameLookupFailed)
    }

    /// Removes the player of a session from all ages.
    pub(in crate::uru) fn session_ended(&self, auth: u64) {
        if !self.0.is_stopping.load(Ordering::Relaxed)
            && self.with(|scheduler, _| scheduler.session_ended(auth)).is_some()
        {
            self.0.changed.notify_one();
        }
    }

    /// Shows a message to players. Returns the number of players.
    pub(in crate::uru) fn announce(
        &self,
        instance: Option<Uuid>,
        sender: &str,
        text: &str,
    ) -> usize {
        let players = self.with(|scheduler, _| scheduler.announce(instance, sender, text));
        self.0.changed.notify_one();
        players.unwrap_or_default()
    }

    /// The running ages on other processes.
    pub(in crate::uru) fn running(&self) -> Vec<RunningAge> {
        let now = Instant::now();
        let ago = |time: Duration| now.checked_sub(time).unwrap_or(now);
        let ages = self.with(|scheduler, now| scheduler.running(now)).unwrap_or_default();
        let age = |age: super::scheduler::NodeAge| RunningAge {
            filename: age.filename,
            instance: age.instance,
            node: Some(age.node),
            since: ago(age.since),
            players: age.players.into_iter().map(|(id, since)| (id, ago(since))).collect(),
        };
        ages.into_iter().map(age).collect()
    }

    fn leading(&self) -> MutexGuard<'_, Option<Leading>> {
        self.0.leading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
