//! The leader's end of the cluster: admits nodes, decides where ages run, and serves the sessions
//! on all nodes with its vault and its ages.

pub(super) mod admission;
mod isolation;
pub(super) mod machine;
mod nodes;
pub(super) mod scheduler;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error, info, warn};
use worldwire_net::LogLimiter;
use worldwire_uru::types::NetError;

use super::admin::RemoteOperators;
use super::bus::{Bus, BusError, Messages, Publisher};
use super::link::HeardLeader;
use super::members::{LeaderInbox, Question, Traffic};
use super::passport::{Passport, PassportOffice};
use super::subjects::Subjects;
use crate::boot_clock::BootInstant;
use crate::store::lease::VALID;
use crate::uru::Shared;
use crate::uru::vault::Vault;
use crate::uru::vault::age_states;
use crate::uru::vault::placements::Placement;
use admission::Admission;
use isolation::Isolation;
use machine::{LeaderEvent, LeaderMachine, RemoteSession};
use scheduler::Scheduler;
use session::{Input, Output, serve};

pub(in crate::uru) use isolation::Successors;
pub(super) use machine::{MAX_REQUEST_BYTES, MAX_REQUESTS};
pub(in crate::uru) use nodes::NodeAges;
pub(in crate::uru) use scheduler::NotExpected;

/// The maximum number of messages handled in one go.
const MAX_AT_ONCE: usize = 256;
/// The time limit for sending the last messages.
const GOODBYE: Duration = Duration::from_secs(1);
/// The delay before one of the leader's own failed requests is repeated.
const BACK_OFF: Duration = Duration::from_millis(500);
/// How often to look for players in ages on nodes who are no longer online.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often to log that another shard has a leader on the bus.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How often to check whether an unavailable database is back.
const PAUSE: Duration = Duration::from_millis(100);

/// What a process needs in order to lead a cluster.
#[derive(Debug)]
pub(in crate::uru) struct Leading {
    /// Answers operators in other processes, if they are allowed to ask.
    pub(in crate::uru) operators: Option<RemoteOperators>,
    /// Questions from operators of this process.
    pub(in crate::uru) inbox: LeaderInbox,
    /// The standbys that can lead instead, if the database is one that standbys can follow.
    pub(in crate::uru) successors: Option<Successors>,
    /// Issues the passports that joining processes are compared with.
    pub(in crate::uru) office: PassportOffice,
}

/// The leader's task.
#[derive(Debug)]
pub(in crate::uru) struct Leader {
    stop: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Leader {
    /// Starts leading a cluster in an epoch of the vault.
    pub(in crate::uru) async fn start(
        bus: Arc<dyn Bus>,
        leading: Leading,
        cluster: &str,
        epoch: u64,
        shared: Arc<Shared>,
    ) -> Result<Self, BusError> {
        let Leading { operators, inbox, successors, office } = leading;
        let (config, shard) = (shared.config(), shared.vault.identity());
        let hold = Duration::from_secs(config.cluster.hold_seconds.into());
        let (node, passport) = (config.cluster.node_name(), office.issue().await);
        let admission = Admission { node, shard, settings: config.common(), passport };
        let subjects = Subjects::of(cluster);
        let announcements = bus.subscribe(&subjects.leader()).await?;
        let machine = LeaderMachine::new(subjects, epoch, Duration::ZERO).admitting(admission);
        let frames = bus.subscribe(&machine.subscription()).await?;
        let stored = placements(&shared.vault).await;
        let start = BootInstant::now();
        let old_leader = if shared.vault.follows_failure() { hold } else { Duration::ZERO };
        let nodes = shared.games.nodes().clone();
        nodes.lead(start, Scheduler::new(Duration::ZERO, stored, old_leader));
        let (outputs, results) = mpsc::unbounded_channel();
        let (stop, stopped) = mpsc::channel(1);
        let sessions = HashMap::new();
        let publisher = Publisher::new(bus);
        let LeaderInbox { questions, traffic } = inbox;
        traffic.is_connected.store(true, Ordering::Relaxed);
        let (shows, shown) = mpsc::channel(1);
        tokio::spawn(keep_showing(office, shows));
        let heard = Heard { announcements, shown };
        let task = Task {
            machine,
            shard,
            other_shards: LogLimiter::new(LOG_EVERY),
            publisher,
            start,
            shared,
            operators,
            successors,
            isolation: Isolation::default(),
            traffic,
            nodes,
            hold,
            look_at: Instant::now() + LOOK_EVERY,
            sessions,
            outputs,
        };
        let task = tokio::spawn(task.run(frames, heard, results, questions, stopped));
        info!(cluster, epoch, "this process leads the cluster");
        Ok(Self { stop, task })
    }

    /// Ends the sessions of all nodes.
    pub(in crate::uru) async fn close(self) {
        drop(self.stop);
        // This has a time limit.
        let _ = self.task.await;
    }
}

/// The leader's other inputs.
struct Heard {
    /// Announcements, its own and those of other leaders.
    announcements: Messages,
    /// This process's new passport whenever its files have changed.
    shown: mpsc::Receiver<Passport>,
}

/// Drives the machine.
struct Task {
    machine: LeaderMachine,
    /// The random number of the shard.
    shard: u64,
    other_shards: LogLimiter,
    publisher: Publisher,
    start: BootInstant,
    shared: Arc<Shared>,
    operators: Option<RemoteOperators>,
    successors: Option<Successors>,
    isolation: Isolation,
    traffic: Arc<Traffic>,
    nodes: NodeAges,
    /// How long nodes are still served after the last renewal of the lease.
    hold: Duration,
    look_at: Instant,
    sessions: HashMap<RemoteSession, mpsc::UnboundedSender<Input>>,
    outputs: mpsc::UnboundedSender<(RemoteSession, Output)>,
}

impl Task {
    async fn run(
        mut self,
        mut frames: Messages,
        mut heard: Heard,
        mut results: mpsc::UnboundedReceiver<(RemoteSession, Output)>,
        mut questions: mpsc::Receiver<Question>,
        mut stopped: mpsc::Receiver<()>,
    ) {
        let (mut received, mut outputs) = (Vec::new(), Vec::new());
        loop {
            let due = self.publisher.paused_until();
            let due = due.unwrap_or_else(|| (self.start + self.machine.poll_timeout()).timer());
            let is_silent = self.is_silent();
            let due = match is_silent {
                true => Instant::now() + PAUSE,
                false => due.min(self.ages_due()),
            };
            tokio::select! {
                count = frames.recv_many(&mut received, MAX_AT_ONCE) => {
                    if count == 0 {
                        break;
                    }
                }
                _ = results.recv_many(&mut outputs, MAX_AT_ONCE) => {}
                Some(announcement) = heard.announcements.recv() => self.hear_leader(&announcement.body),
                Some(passport) = heard.shown.recv() => self.machine.show(passport),
                Some(question) = questions.recv() => self.answer(question),
                () = self.nodes.changed() => {}
                _ = stopped.recv() => break,
                () = sleep_until(due) => {}
            }
            let now = self.start.elapsed();
            self.machine.timeout(now);
            self.traffic.add_received(&received);
            let is_silent = self.is_silent();
            for frame in received.drain(..).filter(|_| !is_silent) {
                self.machine.received(now, &frame.subject, &frame.body);
            }
            if !is_silent
                && self.isolation.begins(now, self.machine.heard())
                && let Some(successors) = self.successors.clone()
            {
                tokio::spawn(successors.take_over());
            }
            for (session, output) in outputs.drain(..) {
                self.output(session, output);
            }
            self.handle_events(now);
            self.look_after_ages(now);
            // An order may have overflowed its node's queue.
            self.handle_events(now);
            if !is_silent {
                self.machine.set_failing(self.shared.vault.is_failing());
                let (machine, traffic) = (&mut self.machine, &self.traffic);
                let next =
                    || machine.poll_transmit(now).inspect(|(_, sent)| traffic.add_sent(sent));
                self.publisher.publish(next).await;
                self.traffic.resent.store(self.machine.resent(), Ordering::Relaxed);
            }
        }
        self.traffic.is_connected.store(false, Ordering::Relaxed);
        self.nodes.resign();
        self.machine.close();
        let goodbye = async {
            self.publisher.publish(|| self.machine.poll_transmit(Duration::ZERO)).await;
            self.publisher.bus.flush().await;
        };
        // If this fails, the nodes time out.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }

    /// Reports that another shard has a leader on the same bus.
    fn hear_leader(&self, announcement: &[u8]) {
        if let Some(other) = HeardLeader::of(announcement)
            && other.shard != self.shard
            && let Some(count) = self.other_shards.count()
        {
            error!(
                own = format_args!("{:016x}", self.shard),
                other = format_args!("{:016x}", other.shard),
                leader = other.place,
                count,
                "another shard with the same name has a leader on the bus; let all processes of a shard \
                 use one database, and give each shard its own `name` in [cluster]"
            );
        }
    }

    fn answer(&mut self, question: Question) {
        // The operator may have stopped waiting.
        match question {
            Question::Members(reply) => {
                let _ = reply.send(self.machine.members(self.start.elapsed()));
            }
            Question::Drain { node, is_draining, reply } => {
                let _ = reply.send(self.machine.drain(&node, is_draining));
            }
            Question::Share(settings) => self.machine.share(settings),
        }
    }

    fn output(&mut self, session: RemoteSession, output: Output) {
        match output {
            Output::Notice(notice) => self.machine.notify(session, notice),
            Output::Reply { number, notices, outcome } => {
                self.machine.reply(session, number, notices, outcome);
            }
            Output::Ended => {
                self.machine.end_session(session);
                self.sessions.remove(&session);
            }
        }
    }

    /// Whether to send nodes nothing, because this process may no longer lead. Each frame would
    /// extend their time.
    fn is_silent(&self) -> bool {
        let away = self.shared.vault.inactive_since().map(|since| since.elapsed());
        away.is_some_and(|away| away + VALID >= self.hold)
    }

    /// When the ages next need attention from the leader.
    fn ages_due(&self) -> Instant {
        let due = self.nodes.with(|scheduler, _| scheduler.poll_timeout());
        due.map_or(self.look_at, |due| self.look_at.min((self.start + due).timer()))
    }

    /// Carries out the scheduler's tasks.
    fn look_after_ages(&mut self, now: Duration) {
        self.nodes.with(|scheduler, _| scheduler.timeout(now));
        while let Some(task) = self.nodes.with(|scheduler, _| scheduler.poll_task()).flatten() {
            match task {
                scheduler::Task::Order { incarnation, order } => {
                    self.machine.order(incarnation, &order);
                }
                scheduler::Task::Answer { request, outcome } => self.nodes.answer(request, outcome),
                scheduler::Task::End(over) => {
                    let (vault, nodes) = (self.shared.vault.clone(), self.nodes.clone());
                    tokio::spawn(end_placements(vault, nodes, over));
                }
                scheduler::Task::Left { auth, age } => {
                    let vault = self.shared.vault.clone();
                    tokio::spawn(async move { age_states::left(&vault, auth, age).await });
                }
                scheduler::Task::Came { player } => self.shared.games.remove_player(player),
                scheduler::Task::Missing { nodes, ages, after } => {
                    let nodes = nodes.into_iter().collect::<Vec<_>>().join(", ");
                    let seconds = after.as_secs() + 1;
                    warn!(
                        nodes,
                        ages,
                        seconds,
                        "some nodes have not joined since the last leader failed, and may still be running ages; \
                         unless they join, these ages can restart after this number of seconds"
                    );
                }
            }
        }
        if Instant::now() >= self.look_at {
            self.look_at = Instant::now() + LOOK_EVERY;
            let (vault, nodes) = (self.shared.vault.clone(), self.nodes.clone());
            tokio::spawn(remove_offline(vault, nodes));
        }
    }

    fn handle_events(&mut self, now: Duration) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                LeaderEvent::Joined { node, incarnation, process, folder } => {
                    info!(node, "a node has joined");
                    self.nodes.with(|scheduler, _| {
                        scheduler.joined(now, node, incarnation, (process, folder));
                    });
                }
                LeaderEvent::NotAdmitted { node, place, refusal } => {
                    let process = place.replace(char::is_control, "?");
                    error!(node, process, reason = %refusal, "a process was not admitted");
                }
                LeaderEvent::FilesCompared { node, incarnation, differences } => {
                    let agree = differences.is_none();
                    self.nodes.with(|scheduler, _| scheduler.compared(incarnation, agree));
                    match differences {
                        Some(differences) => warn!(
                            node, %differences,
                            "the files of a node differ from the leader's, so it gets no new ages; copy \
                             data/ages and data/secure/SDL from the leader's folder"
                        ),
                        None => info!(node, "the files of a node match the leader's again"),
                    }
                }
                LeaderEvent::Left { node, incarnation, heard, reason } => {
                    match reason.is_problem() {
                        true => warn!(node, %reason, "gave up on a node"),
                        false => info!(node, %reason, "a node has left"),
                    }
                    let has_ended = reason.has_no_ages();
                    self.nodes.with(|scheduler, _| scheduler.left(heard, incarnation, has_ended));
                }
                LeaderEvent::Opened(session) => {
                    let (inputs, inbox) = mpsc::unbounded_channel();
                    self.sessions.insert(session, inputs);
                    let (shared, outputs) = (Arc::clone(&self.shared), self.outputs.clone());
                    let node = self.machine.name_of(session.incarnation);
                    let operators = self.operators.as_ref().zip(node.as_deref());
                    let operators = operators.map(|(operators, node)| operators.of_node(node));
                    let remote = (session, node);
                    tokio::spawn(serve(shared, operators, remote, inbox, outputs));
                }
                LeaderEvent::Ended(session) => {
                    self.sessions.remove(&session);
                }
                LeaderEvent::Abandoned(session) => {
                    self.input(session, Input::Abandoned);
                    self.sessions.remove(&session);
                }
                LeaderEvent::Requested { from, number, kind, body } => {
                    self.input(from, Input::Request { number, kind, body });
                }
                LeaderEvent::Reported { from, report } => self.input(from, Input::Report(report)),
                LeaderEvent::AgesReported { incarnation, report } => {
                    self.nodes.with(|scheduler, _| scheduler.reported(now, incarnation, report));
                }
            }
        }
    }

    fn input(&self, session: RemoteSession, input: Input) {
        if let Some(inputs) = self.sessions.get(&session) {
            // This fails if the session has just ended. Its node will learn that.
            let _ = inputs.send(input);
        }
    }
}

/// Passes on this process's passport whenever it changes, until the leader's task ends.
async fn keep_showing(office: PassportOffice, shows: mpsc::Sender<Passport>) {
    let Some(every) = office.look_every() else { return };
    loop {
        sleep(every).await;
        if shows.send(office.issue().await).await.is_err() {
            return;
        }
    }
}

/// The placements that earlier leaders stored.
async fn placements(vault: &Vault) -> Vec<(u32, Placement)> {
    loop {
        match vault.placements().await {
            Ok(stored) => return stored,
            Err(NetError::RemoteShutdown) => return Vec::new(),
            Err(error) => debug!(?error, "cannot yet read where ages run"),
        }
        sleep(BACK_OFF).await;
    }
}

/// Ends placements, retrying until it succeeds.
async fn end_placements(vault: Vault, nodes: NodeAges, over: Vec<(u32, u64)>) {
    while let Err(error) = vault.end_placements(over.clone()).await {
        if error == NetError::RemoteShutdown {
            return;
        }
        debug!(?error, "cannot yet end placements of ages");
        sleep(BACK_OFF).await;
    }
    nodes.with(|scheduler, _| scheduler.have_ended(&over));
}

/// Removes players who are not online from ages on nodes.
async fn remove_offline(vault: Vault, nodes: NodeAges) {
    let players = nodes.with(|scheduler, _| scheduler.players()).unwrap_or_default();
    if !players.is_empty()
        && let Ok(offline) = vault.offline(players).await
    {
        nodes.with(|scheduler, _| scheduler.offline(&offline));
    }
}
