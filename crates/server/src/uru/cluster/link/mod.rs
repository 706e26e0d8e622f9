//! A node's end of the cluster: its sessions in the leader's vault.

mod heard;
pub(super) mod machine;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error, info, warn};
use worldwire_net::LogLimiter;
use worldwire_uru::types::NetError;

use super::ages::{AgeOrder, AgeReport};
use super::bus::{Bus, BusError, Messages, Publisher};
use super::frames::MAX_BODY;
use super::leader::{MAX_REQUEST_BYTES, MAX_REQUESTS};
use super::members::{Description, Traffic};
use super::passport::{Passport, PassportOffice, Refusal};
use super::requests::ClientReport;
use super::subjects::{NodeKind, Subjects};
use super::tenure::{NodeTime, Tenure};
use crate::boot_clock::BootInstant;
use crate::uru::vault::Notice;
use crate::uru::vault::ask::encoded;
use heard::{Heard, LISTEN_FOR, LOG_EVERY};
use machine::{ASK_AGAIN_AFTER, LeaveReason, LinkEvent, LinkMachine, RESTORED_AFTER};

pub(in crate::uru) use heard::{HeardLeader, LeadersSettings, other_leader};

/// The maximum number of messages or commands handled in one go.
const MAX_AT_ONCE: usize = 256;

/// How a process joins its cluster.
#[derive(Debug)]
pub(in crate::uru) struct Joining {
    /// Its node name.
    pub(in crate::uru) node: String,
    /// Its kind, which determines what it may do.
    pub(in crate::uru) kind: NodeKind,
    /// Its random number.
    pub(in crate::uru) process: u64,
    /// Issues its passports.
    pub(in crate::uru) office: PassportOffice,
    /// What to do with the leader's settings.
    pub(in crate::uru) settings: LeadersSettings,
}

#[cfg(test)]
impl Joining {
    /// A process without a passport.
    pub(in crate::uru) fn of(node: &str, process: u64) -> Self {
        let (node, office) = (node.to_owned(), PassportOffice::default());
        let (kind, settings) = (NodeKind::FrontAndAge, LeadersSettings::Ignored);
        Self { node, kind, process, office, settings }
    }
}

/// A process's link to the leader. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    commands: mpsc::UnboundedSender<Command>,
    /// Limits the number and total size of unanswered requests.
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    traffic: Arc<Traffic>,
    max_notices: usize,
    /// How long ages may send to clients.
    time: Arc<NodeTime>,
    opened: Instant,
    heard: Arc<Heard>,
}

/// What an age node hears about the leader.
#[derive(Debug)]
pub(crate) enum NodeEvent {
    /// The node has joined a leader that knows nothing about its ages.
    Joined,
    /// The next leader's database was restored from a backup, so its fences are lower than ours.
    Restored,
    /// The leader has sent an order.
    Ordered {
        /// The order.
        order: AgeOrder,
        /// The number of lapses of the node's time when the order arrived; see [`Link::tenure`].
        lapses: u64,
    },
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_member", &self.is_member()).finish_non_exhaustive()
    }
}

/// The reply to a request, and the number of notices sent to its session before it.
pub(crate) type Answer = Result<(Vec<u8>, u64), NetError>;

/// A command for the link's task.
enum Command {
    Open { notices: mpsc::Sender<Notice>, reply: oneshot::Sender<u64> },
    Request { session: u64, kind: u16, body: Vec<u8>, waiting: Waiting },
    Report { session: u64, report: ClientReport },
    End(u64),
    Describe(Description),
    Show(Passport),
    BelongTo(u64),
    Attend(mpsc::UnboundedSender<NodeEvent>),
    ReportAges(AgeReport),
    Stop,
    Flush(oneshot::Sender<()>),
}

/// A caller waiting for a reply. Holds the request's permits until then.
struct Waiting {
    reply: oneshot::Sender<Answer>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Link {
    /// Connects a node to the leader of a cluster, immediately or later. Each session can queue up
    /// to `max_notices` notices.
    pub(in crate::uru) async fn open(
        bus: Arc<dyn Bus>,
        cluster: &str,
        joining: Joining,
        max_notices: usize,
    ) -> Result<Self, BusError> {
        let Joining { node, kind, process, office, settings } = joining;
        let mut machine = LinkMachine::new(Subjects::of(cluster), kind, &node, process);
        machine.show(office.issue().await);
        let [announcements, frames] = machine.subscriptions();
        let announcements = bus.subscribe(&announcements).await?;
        let frames = bus.subscribe(&frames).await?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let traffic = Arc::<Traffic>::default();
        let start = BootInstant::now();
        let time = NodeTime::new(start);
        let heard = Arc::<Heard>::default();
        let task = Task {
            machine,
            settings,
            heard: Arc::clone(&heard),
            other_shards: LogLimiter::new(LOG_EVERY),
            publisher: Publisher::new(bus),
            start,
            sessions: HashMap::new(),
            requests: HashMap::new(),
            description: None,
            traffic: Arc::clone(&traffic),
            time: Arc::clone(&time),
            attendant: None,
            flushes: Vec::new(),
        };
        tokio::spawn(task.run(inbox, announcements, frames));
        tokio::spawn(keep_showing(office, commands.downgrade()));
        let (requests, bytes) = (Semaphore::new(MAX_REQUESTS), Semaphore::new(MAX_REQUEST_BYTES));
        let (requests, bytes) = (Arc::new(requests), Arc::new(bytes));
        let max_notices = max_notices.max(1);
        let opened = Instant::now();
        let shared =
            Shared { commands, requests, bytes, traffic, max_notices, time, opened, heard };
        Ok(Self(Arc::new(shared)))
    }

    /// Why the leader refuses to admit this process.
    pub(in crate::uru) fn refusal(&self) -> Option<Refusal> {
        self.0.heard.refusal().clone()
    }

    /// Binds the process to this shard, unless `shard` is 0: it joins no leader of another shard.
    pub(in crate::uru) fn belong_to(&self, shard: u64) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::BelongTo(shard));
    }

    /// A live leader of a shard other than `shard`. First waits long enough to have heard them all.
    pub(in crate::uru) async fn other_leader(&self, shard: u64) -> Option<HeardLeader> {
        sleep_until(self.0.opened + LISTEN_FOR).await;
        self.0.heard.other_leader(shard)
    }

    /// Whether this node is currently a member of the cluster.
    pub(crate) fn is_member(&self) -> bool {
        self.0.traffic.is_connected.load(Ordering::Relaxed)
    }

    /// Whether the leader's database rejects changes.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.traffic.is_failing.load(Ordering::Relaxed)
    }

    /// This process's traffic on the bus.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// Whether an operator is draining this process, so that it gets no new clients or ages.
    pub(in crate::uru) fn draining(&self) -> watch::Receiver<bool> {
        self.0.traffic.draining.subscribe()
    }

    /// Sends the leader this process's description, immediately or after joining, unless the leader
    /// already has it.
    pub(in crate::uru) fn describe(&self, description: Description) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::Describe(description));
    }

    /// Opens a session. Returns its number and a receiver for its notices.
    ///
    /// # Errors
    /// [`NetError::InternalError`] while there is no leader.
    pub(crate) async fn open_session(&self) -> Result<(u64, mpsc::Receiver<Notice>), NetError> {
        let (notices, received) = mpsc::channel(self.0.max_notices);
        let (reply, opened) = oneshot::channel();
        self.send(Command::Open { notices, reply })?;
        let session = opened.await.map_err(|_| NetError::InternalError)?;
        Ok((session, received))
    }

    /// Makes a request in a session. Waits while there are too many unanswered requests.
    ///
    /// # Errors
    /// The request's own errors. [`NetError::InternalError`] if the session has ended; the request
    /// may then have taken effect. [`NetError::InvalidParameter`] if the request is too large.
    pub(crate) async fn request(&self, session: u64, kind: u16, body: Vec<u8>) -> Answer {
        let size = body.len().min(MAX_REQUEST_BYTES);
        let size = u32::try_from(size).map_err(|_| NetError::InvalidParameter)?;
        if body.len() > MAX_BODY {
            return Err(NetError::InvalidParameter);
        }
        let bytes = Arc::clone(&self.0.bytes).acquire_many_owned(size).await;
        let number = Arc::clone(&self.0.requests).acquire_owned().await;
        let permits = [bytes, number].map(|permit| permit.map_err(|_| NetError::RemoteShutdown));
        let [bytes, number] = permits;
        let (reply, replied) = oneshot::channel();
        let waiting = Waiting { reply, _permits: [bytes?, number?] };
        self.send(Command::Request { session, kind, body, waiting })?;
        replied.await.map_err(|_| NetError::RemoteShutdown)?
    }

    /// Reports something that happened to a session's client.
    pub(crate) fn report(&self, session: u64, report: ClientReport) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::Report { session, report });
    }

    /// Ends a session.
    pub(crate) fn end_session(&self, session: u64) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::End(session));
    }

    /// Receives the leader's orders from now on. Earlier receivers get nothing more.
    pub(crate) fn attend(&self) -> mpsc::UnboundedReceiver<NodeEvent> {
        let (attendant, events) = mpsc::unbounded_channel();
        // Fails if the runtime has ended.
        let _ = self.send(Command::Attend(attendant));
        events
    }

    /// The right to run an age, granted by an order that arrived after this many lapses.
    pub(crate) fn tenure(&self, number: u32, fence: u64, lapses: u64) -> Arc<Tenure> {
        Tenure::new(number, fence, Arc::clone(&self.0.time), lapses)
    }

    /// Reports something about this node or its ages. The report is lost while there is no leader.
    pub(crate) fn report_ages(&self, report: AgeReport) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::ReportAges(report));
    }

    /// Tells the leader that this process is stopping: its sessions and ages have ended.
    pub(crate) fn stop(&self) {
        // Fails if the runtime has ended.
        let _ = self.send(Command::Stop);
    }

    /// Waits until the leader has received everything that was sent, or there is no leader.
    pub(crate) async fn flush(&self) {
        let (flushed, done) = oneshot::channel();
        if self.send(Command::Flush(flushed)).is_ok() {
            // Fails if the task has ended.
            let _ = done.await;
        }
    }

    fn send(&self, command: Command) -> Result<(), NetError> {
        self.0.commands.send(command).map_err(|_| NetError::RemoteShutdown)
    }
}

/// Drives the machine.
struct Task {
    machine: LinkMachine,
    settings: LeadersSettings,
    heard: Arc<Heard>,
    other_shards: LogLimiter,
    publisher: Publisher,
    start: BootInstant,
    sessions: HashMap<u64, mpsc::Sender<Notice>>,
    requests: HashMap<u64, Waiting>,
    /// This process's description of itself.
    description: Option<Description>,
    traffic: Arc<Traffic>,
    time: Arc<NodeTime>,
    attendant: Option<mpsc::UnboundedSender<NodeEvent>>,
    flushes: Vec<oneshot::Sender<()>>,
}

impl Task {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Command>,
        mut announcements: Messages,
        mut frames: Messages,
    ) {
        let (mut commands, mut received) = (Vec::new(), Vec::new());
        loop {
            let due = self.machine.poll_timeout().map(|due| (self.start + due).timer());
            let due = self.publisher.paused_until().or(due);
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                count = inbox.recv_many(&mut commands, MAX_AT_ONCE) => {
                    // The last handle has been dropped.
                    if count == 0 {
                        return;
                    }
                }
                count = frames.recv_many(&mut received, MAX_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                }
                announcement = announcements.recv() => {
                    let Some(announcement) = announcement else { return };
                    self.traffic.add_received(std::slice::from_ref(&announcement));
                    self.hear_leader(&announcement.body);
                    self.machine.announced(self.now(), &announcement.body);
                }
                () = timer => {}
            }
            let now = self.now();
            self.machine.timeout(now);
            self.traffic.add_received(&received);
            for frame in received.drain(..) {
                self.machine.received(now, &frame.body);
            }
            // Before orders are handled, because they are valid from now on.
            self.time.extend(self.machine.tenure_end());
            // Before commands, which may concern sessions that have just ended.
            self.handle_events();
            for command in commands.drain(..) {
                self.command(command);
            }
            self.handle_events();
            let (machine, traffic) = (&mut self.machine, &self.traffic);
            let next = || machine.poll_transmit(now).inspect(|(_, sent)| traffic.add_sent(sent));
            self.publisher.publish(next).await;
            let (resent, sessions, requests) = self.machine.figures();
            self.traffic.state(resent, sessions, requests);
            if self.machine.is_idle() {
                for flushed in self.flushes.drain(..) {
                    // The caller may have stopped waiting.
                    let _ = flushed.send(());
                }
            }
        }
    }

    /// Records the leader that sent this announcement.
    fn hear_leader(&self, announcement: &[u8]) {
        let Some(leader) = HeardLeader::of(announcement) else { return };
        let (shard, own) = (leader.shard, self.machine.shard());
        if own != 0
            && shard != own
            && let Some(count) = self.other_shards.count()
        {
            error!(
                own = format_args!("{own:016x}"),
                other = format_args!("{shard:016x}"),
                leader = leader.place,
                count,
                "another shard with the same name has a leader on the bus, and this process does not join \
                 it; let all processes of a shard use one database, and give each shard its own `name` in \
                 [cluster]"
            );
        }
        self.heard.remember(leader);
    }

    fn describe(&mut self) {
        if let Some(description) = self.description.as_ref().map(encoded).and_then(Result::ok) {
            self.machine.describe(description);
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Open { notices, reply } => {
                let Some(session) = self.machine.open_session() else { return };
                match reply.send(session) {
                    Ok(()) => {
                        self.sessions.insert(session, notices);
                    }
                    // The caller is gone, so nothing else would end this session.
                    Err(_) => self.machine.end_session(session),
                }
            }
            Command::Request { session, kind, body, waiting } => {
                match self.machine.request(session, kind, body) {
                    Some(number) => {
                        self.requests.insert(number, waiting);
                    }
                    None => refuse(waiting),
                }
            }
            Command::Report { session, report } => self.machine.report(session, &report),
            Command::Describe(description) => {
                if self.description.replace(description.clone()) != Some(description) {
                    self.describe();
                }
            }
            Command::Show(passport) => self.machine.show(passport),
            Command::BelongTo(shard) => self.machine.belong_to(shard),
            Command::End(session) => {
                self.sessions.remove(&session);
                self.machine.end_session(session);
            }
            Command::Attend(attendant) => {
                self.attendant = Some(attendant);
                if self.traffic.is_connected.load(Ordering::Relaxed) {
                    self.tell(NodeEvent::Joined);
                }
            }
            Command::ReportAges(report) => drop(self.machine.report_ages(&report)),
            Command::Stop => self.machine.stop(),
            Command::Flush(flushed) => self.flushes.push(flushed),
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                LinkEvent::Settings(settings) => self.settings.hear(&settings),
                LinkEvent::NotAdmitted(refusal) => {
                    let mut last = self.heard.refusal();
                    let is_news = last.clone().map(Refusal::without_times)
                        != Some(refusal.clone().without_times());
                    if is_news {
                        let every = ASK_AGAIN_AFTER.as_secs();
                        error!(reason = %refusal, "the leader does not admit this process; it retries every {every} s");
                    }
                    *last = Some(refusal);
                }
                LinkEvent::Joined => {
                    *self.heard.refusal() = None;
                    self.traffic.is_connected.store(true, Ordering::Relaxed);
                    self.describe();
                    info!("this node has found the leader");
                    self.tell(NodeEvent::Joined);
                }
                LinkEvent::Draining(is_draining) => {
                    match is_draining {
                        true => info!(
                            "an operator is draining this node: it accepts no new clients or ages"
                        ),
                        false => info!("this node serves clients again"),
                    }
                    self.traffic.draining.send_replace(is_draining);
                }
                LinkEvent::Failing(is_failing) => {
                    self.traffic.is_failing.store(is_failing, Ordering::Relaxed);
                    match is_failing {
                        true => {
                            warn!("the leader's database accepts no changes; see the leader's log")
                        }
                        false => info!("the leader's database accepts changes again"),
                    }
                }
                LinkEvent::Restored { former, epoch } => {
                    warn!(
                        former,
                        epoch,
                        "this node follows a leader of an earlier epoch, because it has heard from no \
                         other leader for {} s: the database was probably restored from a backup",
                        RESTORED_AFTER.as_secs()
                    );
                    self.tell(NodeEvent::Restored);
                }
                LinkEvent::Left(reason) => {
                    self.traffic.is_connected.store(false, Ordering::Relaxed);
                    match reason.is_problem() {
                        false if reason == LeaveReason::Stopped => {
                            debug!(%reason, "left the leader")
                        }
                        true => warn!(
                            %reason,
                            "this node has lost the leader; its clients must reconnect"
                        ),
                        false => info!(
                            %reason,
                            "this node is looking for the leader; clients of a front must reconnect"
                        ),
                    }
                }
                LinkEvent::Answered { number, notices, outcome } => {
                    if let Some(waiting) = self.requests.remove(&number) {
                        // The caller may have stopped waiting.
                        let _ = waiting.reply.send(outcome.map(|body| (body, notices)));
                    }
                }
                LinkEvent::Refused { number } => {
                    self.requests.remove(&number).into_iter().for_each(refuse);
                }
                LinkEvent::Notice { session, notice } => self.notify(session, notice),
                LinkEvent::Ordered(order) => {
                    let lapses = self.time.lapses();
                    self.tell(NodeEvent::Ordered { order, lapses });
                }
                LinkEvent::Ended { session } => {
                    self.sessions.remove(&session);
                }
            }
        }
    }

    /// Notifies the ages of this node of an event.
    fn tell(&self, event: NodeEvent) {
        if let Some(attendant) = &self.attendant {
            // Fails if the process is ending.
            let _ = attendant.send(event);
        }
    }

    fn notify(&mut self, session: u64, notice: Notice) {
        let Some(notices) = self.sessions.get(&session) else { return };
        if let Err(error) = notices.try_send(notice) {
            if let mpsc::error::TrySendError::Full(_) = error {
                warn!(connection = session, "session ended: too many queued notices");
            }
            self.sessions.remove(&session);
            self.machine.end_session(session);
        }
    }
}

/// Passes on changed passports until the link ends.
async fn keep_showing(office: PassportOffice, commands: mpsc::WeakUnboundedSender<Command>) {
    let Some(every) = office.look_every() else { return };
    loop {
        sleep(every).await;
        let passport = office.issue().await;
        // A strong handle would keep the link alive.
        let Some(commands) = commands.upgrade() else { return };
        if commands.send(Command::Show(passport)).is_err() {
            return;
        }
    }
}

fn refuse(waiting: Waiting) {
    // The caller may have stopped waiting.
    let _ = waiting.reply.send(Err(NetError::InternalError));
}
