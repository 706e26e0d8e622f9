//! The leader's end of the cluster: serves the sessions of all nodes with its vault and its ages.
//!
//! Each session has a task, which handles one request after another, like a client's connection to
//! this process, so notices and replies are in the same order.

pub(super) mod machine;

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use worldwire_uru::types::NetError;

use super::admin::{ADMIN, Dialogue, RemoteOperators};
use super::bus::{Bus, BusError, Messages, Pending, Publisher, Subjects};
use super::members::{LeaderSeat, Question, Traffic};
use super::requests::{ClientReport, ENTER_AGE, OF_CLIENTS, address};
use crate::uru::Shared;
use crate::uru::game::Presence;
use crate::uru::vault::ask::{Ask, ForKind, decoded, encoded, for_kind};
use crate::uru::vault::{Connection, Notice, Notices};
use machine::{LeaderEvent, LeaderMachine, RemoteSession};

pub(super) use machine::MAX_REQUESTS;

/// How many messages are handled at once.
const MAX_AT_ONCE: usize = 256;
/// How long the last messages may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a process needs to lead others.
#[derive(Debug)]
pub(in crate::uru) struct Leading {
    pub(in crate::uru) bus: Arc<dyn Bus>,
    /// Answers operators at other processes, if they may ask.
    pub(in crate::uru) operators: Option<RemoteOperators>,
    /// For operators at this process.
    pub(in crate::uru) seat: LeaderSeat,
}

/// The leader's task.
#[derive(Debug)]
pub(in crate::uru) struct Leader {
    stop: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Leader {
    /// Leads a cluster in an epoch of the vault.
    pub(in crate::uru) async fn start(
        leading: Leading,
        cluster: &str,
        epoch: u64,
        shared: Arc<Shared>,
    ) -> Result<Self, BusError> {
        let Leading { bus, operators, seat } = leading;
        let machine = LeaderMachine::new(Subjects::of(cluster), epoch, Duration::ZERO);
        let start = Instant::now();
        let frames = bus.subscribe(&machine.subscription()).await?;
        let (outputs, results) = mpsc::unbounded_channel();
        let (stop, stopped) = mpsc::channel(1);
        let sessions = HashMap::new();
        let publisher = Publisher::new(bus);
        let LeaderSeat { questions, traffic } = seat;
        traffic.is_connected.store(true, Ordering::Relaxed);
        let task =
            Task { machine, publisher, start, shared, operators, traffic, sessions, outputs };
        let task = tokio::spawn(task.run(frames, results, questions, stopped));
        info!(cluster, epoch, "this process leads the cluster");
        Ok(Self { stop, task })
    }

    /// Ends the sessions of all nodes.
    pub(in crate::uru) async fn close(self) {
        drop(self.stop);
        // It has a time limit.
        let _ = self.task.await;
    }
}

/// What a session's client wants.
enum Input {
    Request { number: u64, kind: u16, body: Vec<u8> },
    Report(ClientReport),
}

/// What a session's task has for its node.
enum Output {
    Notice(Notice),
    Reply {
        number: u64,
        notices: u64,
        outcome: Result<Vec<u8>, NetError>,
    },
    /// The vault has ended the session.
    Ended,
}

/// Drives the machine.
struct Task {
    machine: LeaderMachine,
    publisher: Publisher,
    start: Instant,
    shared: Arc<Shared>,
    operators: Option<RemoteOperators>,
    traffic: Arc<Traffic>,
    sessions: HashMap<RemoteSession, mpsc::UnboundedSender<Input>>,
    outputs: mpsc::UnboundedSender<(RemoteSession, Output)>,
}

impl Task {
    async fn run(
        mut self,
        mut frames: Messages,
        mut results: mpsc::UnboundedReceiver<(RemoteSession, Output)>,
        mut questions: mpsc::Receiver<Question>,
        mut stopped: mpsc::Receiver<()>,
    ) {
        let (mut received, mut outputs) = (Vec::new(), Vec::new());
        loop {
            let due = self.publisher.paused_until();
            let due = due.unwrap_or_else(|| self.start + self.machine.poll_timeout());
            tokio::select! {
                count = frames.recv_many(&mut received, MAX_AT_ONCE) => {
                    if count == 0 {
                        break;
                    }
                }
                _ = results.recv_many(&mut outputs, MAX_AT_ONCE) => {}
                Some(Question::Members(reply)) = questions.recv() => {
                    // The operator may be gone.
                    let _ = reply.send(self.machine.members(self.start.elapsed()));
                }
                _ = stopped.recv() => break,
                () = sleep_until(due) => {}
            }
            let now = self.start.elapsed();
            self.machine.timeout(now);
            self.traffic.add_received(&received);
            for frame in received.drain(..) {
                self.machine.received(now, &frame);
            }
            for (session, output) in outputs.drain(..) {
                self.output(session, output);
            }
            self.handle_events();
            let (machine, traffic) = (&mut self.machine, &self.traffic);
            let next = || machine.poll_transmit(now).inspect(|(_, sent)| traffic.add_sent(sent));
            self.publisher.publish(next).await;
            self.traffic.resent.store(self.machine.resent(), Ordering::Relaxed);
        }
        self.traffic.is_connected.store(false, Ordering::Relaxed);
        self.machine.close();
        let goodbye = async {
            self.publisher.publish(|| self.machine.poll_transmit(Duration::ZERO)).await;
            self.publisher.bus.flush().await;
        };
        // Otherwise the nodes notice that nobody answers.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
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

    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                LeaderEvent::Joined { node, .. } => info!(node, "a node has joined"),
                LeaderEvent::Left { node, reason, .. } => {
                    warn!(node, %reason, "a node was given up");
                }
                LeaderEvent::Opened(session) => {
                    let (inputs, inbox) = mpsc::unbounded_channel();
                    self.sessions.insert(session, inputs);
                    let (shared, outputs) = (Arc::clone(&self.shared), self.outputs.clone());
                    let operators = self.operators.clone();
                    tokio::spawn(serve(shared, operators, session, inbox, outputs));
                }
                LeaderEvent::Ended(session) => {
                    self.sessions.remove(&session);
                }
                LeaderEvent::Requested { from, number, kind, body } => {
                    self.input(from, Input::Request { number, kind, body });
                }
                LeaderEvent::Reported { from, report } => self.input(from, Input::Report(report)),
            }
        }
    }

    fn input(&self, session: RemoteSession, input: Input) {
        if let Some(inputs) = self.sessions.get(&session) {
            // This fails if the session has just ended, which its node will learn.
            let _ = inputs.send(input);
        }
    }
}

/// Serves a session until its client or the vault ends it.
async fn serve(
    shared: Arc<Shared>,
    operators: Option<RemoteOperators>,
    remote: RemoteSession,
    mut inbox: mpsc::UnboundedReceiver<Input>,
    outputs: mpsc::UnboundedSender<(RemoteSession, Output)>,
) {
    // Sending fails if this process no longer leads.
    let send = |output| outputs.send((remote, output)).is_ok();
    let Ok((session, notices)) = shared.vault.connect().await else {
        send(Output::Ended);
        return;
    };
    let presence = shared.games.presence(session.number());
    let (dialogue, notified) = (Dialogue::default(), 0);
    let mut client =
        RemoteClient { shared: &shared, operators, dialogue, session, presence, notices, notified };
    loop {
        let input = tokio::select! {
            notice = client.notices.recv() => {
                let Some(notice) = notice else {
                    send(Output::Ended);
                    return;
                };
                client.notified += 1;
                if !send(Output::Notice(notice)) {
                    return;
                }
                continue;
            }
            input = inbox.recv() => input,
        };
        match input {
            Some(Input::Request { number, kind, body }) => {
                let outcome = client.request(kind, &body).await;
                while let Some(notice) = client.notices.due() {
                    client.notified += 1;
                    send(Output::Notice(notice));
                }
                send(Output::Reply { number, notices: client.notified, outcome });
            }
            Some(Input::Report(report)) => client.report(report),
            None => return,
        }
    }
}

/// A client that is connected to a node.
struct RemoteClient<'s> {
    shared: &'s Shared,
    operators: Option<RemoteOperators>,
    /// With an operator.
    dialogue: Dialogue,
    session: Connection,
    presence: Presence,
    notices: Notices,
    /// The number of notices sent.
    notified: u64,
}

impl RemoteClient<'_> {
    async fn request(&mut self, kind: u16, body: &[u8]) -> Result<Vec<u8>, NetError> {
        if kind == ENTER_AGE {
            let wanted = decoded(body).map_err(|_| NetError::InvalidParameter)?;
            let entered = self.shared.enter_age(&self.session, wanted);
            return encoded(&entered.await?).map_err(|_| NetError::InternalError);
        }
        if let (ADMIN, Some(operators)) = (kind, &self.operators) {
            let part = decoded(body).map_err(|_| NetError::InvalidParameter)?;
            let answer = self.dialogue.take(operators, part).await?;
            return encoded(&answer).map_err(|_| NetError::InternalError);
        }
        // Nodes may do what clients may do.
        let carried = OF_CLIENTS.contains(&kind).then(|| {
            let session = &self.session;
            for_kind(kind, CarryOut { session, body })
        });
        match carried.flatten() {
            Some(outcome) => outcome.await,
            None => Err(NetError::NotSupported),
        }
    }

    fn report(&self, report: ClientReport) {
        match report {
            ClientReport::LoggedIn { ip, port } => self.presence.logged_in(address(ip, port)),
            ClientReport::Lost => self.presence.lost(),
            ClientReport::Resumed { ip, port } => self.presence.resumed(address(ip, port)),
            ClientReport::PlayerChanged => self.presence.changed(),
        }
    }
}

/// Makes an encoded request of a session, and encodes its reply.
struct CarryOut<'s> {
    session: &'s Connection,
    body: &'s [u8],
}

impl<'s> ForKind for CarryOut<'s> {
    type Output = Pending<'s, Result<Vec<u8>, NetError>>;

    fn run<A: Ask>(self) -> Self::Output {
        let Ok(ask) = decoded::<A>(self.body) else {
            return Box::pin(ready(Err(NetError::InvalidParameter)));
        };
        let reply = self.session.ask(ask);
        Box::pin(async move { encoded(&reply.await?).map_err(|_| NetError::InternalError) })
    }
}
