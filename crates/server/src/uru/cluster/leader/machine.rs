//! The leader's end of a cluster, without I/O: the member nodes and their sessions.
//!
//! A node that has been silent for 3.5 s is given up. By then it has ended its sessions itself, and
//! their clients can reconnect through another node: see [`link::machine`](super::super::link).

mod give_up;
mod joining;
mod quota;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Bytes32;
use worldwire_uru::types::NetError;

use super::super::ages::{AgeOrder, AgeReport, encoded_order};
use super::super::channel::{Channel, ChannelError};
use super::super::frames::{
    AgesOrder, Announcement, DownItem, Drain, Farewell, Head, Notified, Reply, SessionEnded,
    SettingsChanged, UpItem, decode_frame, decode_item, encode_frame,
};
use super::super::members::{Description, Member};
use super::super::passport::{FileDifferences, Passport, Refusal};
use super::super::requests::ClientReport;
use super::super::subjects::{NodeKind, Sender, Subjects};
use super::admission::{Admission, Identity, Refusals};
use crate::uru::vault::Notice;
use crate::uru::vault::ask::{decoded, encoded};
use quota::Quotas;

pub(in super::super) use give_up::GiveUpReason;

/// How long a node may be silent.
pub(in super::super) const PATIENCE: Duration = Duration::from_millis(3_500);
/// How often the leader announces itself.
pub(in super::super) const ANNOUNCE_EVERY: Duration = Duration::from_millis(250);
/// The maximum number of unanswered requests per node.
pub(in super::super) const MAX_REQUESTS: usize = 1_024;
/// The maximum number of sessions per node.
const MAX_SESSIONS: usize = 1 << 16;
/// The maximum number of sessions that a node may open per second. Each one costs the leader work.
const MAX_OPENED: usize = 2_000;
/// The maximum number of bytes of a node's requests without a reply.
pub(in super::super) const MAX_REQUEST_BYTES: usize = 16 << 20;
/// The maximum number of nodes, including those that are still joining.
const MAX_NODES: usize = 256;
/// The maximum number of queued replies to nodes that are no longer members.
const MAX_FAREWELLS: usize = 256;

/// A session of a client that is connected to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct RemoteSession {
    /// Its node.
    pub(in super::super) incarnation: u64,
    /// The session's number on that node.
    pub(in super::super) session: u64,
}

/// An event for the leader's task.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum LeaderEvent {
    /// A node has joined.
    Joined { node: String, incarnation: u64, process: u64, folder: u64 },
    /// A process was refused for a new reason.
    NotAdmitted { node: String, place: String, refusal: Refusal },
    /// A node's age files differ from the leader's, or match them again.
    FilesCompared { node: String, incarnation: u64, differences: Option<FileDifferences> },
    /// A client has connected to a node.
    Opened(RemoteSession),
    /// A session has ended because its client disconnected or did not return.
    Ended(RemoteSession),
    /// The node of a session was given up. The client may return through another node.
    Abandoned(RemoteSession),
    /// A request that needs a reply.
    Requested { from: RemoteSession, number: u64, kind: u16, body: Vec<u8> },
    /// Something has happened to a session's client.
    Reported { from: RemoteSession, report: ClientReport },
    /// A report from a node about itself or its ages.
    AgesReported { incarnation: u64, report: AgeReport },
    /// A node, last heard from at `heard`, was given up. All its sessions have been abandoned.
    Left { node: String, incarnation: u64, heard: Duration, reason: GiveUpReason },
}

/// The machine.
#[derive(Debug)]
pub(in super::super) struct LeaderMachine {
    subjects: Subjects,
    epoch: u64,
    admission: Admission,
    refusals: Refusals,
    quotas: Quotas,
    /// The nodes, by incarnation.
    nodes: BTreeMap<u64, Node>,
    /// The incarnations of members, by name.
    members: HashMap<String, u64>,
    last: u64,
    /// The number of resent frames.
    resent: u64,
    /// Whether the database rejects changes.
    is_failing: bool,
    announce_at: Duration,
    /// Messages that belong to no channel.
    farewells: VecDeque<(String, Vec<u8>)>,
    events: VecDeque<LeaderEvent>,
}

#[derive(Debug)]
struct Node {
    name: String,
    kind: NodeKind,
    identity: Identity,
    /// How its files differ from the leader's, as last reported in an event.
    differences: Option<FileDifferences>,
    attempt: u64,
    channel: Channel,
    joined: Duration,
    heard: Duration,
    /// The highest beat received from it.
    beat: u64,
    /// Whether it has used its incarnation, and so has joined.
    is_member: bool,
    /// The open sessions, each with its number of unanswered requests.
    sessions: HashMap<u64, VecDeque<usize>>,
    /// How many sessions it has opened since this time.
    opened: (Duration, usize),
    requests: usize,
    /// The bytes of these requests.
    request_bytes: usize,
    description: Option<Description>,
}

impl LeaderMachine {
    pub(in super::super) fn new(subjects: Subjects, epoch: u64, now: Duration) -> Self {
        Self {
            subjects,
            epoch,
            admission: Admission::default(),
            refusals: Refusals::default(),
            quotas: Quotas::default(),
            nodes: BTreeMap::new(),
            members: HashMap::new(),
            last: 0,
            resent: 0,
            is_failing: false,
            announce_at: now,
            farewells: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Makes the machine admit only processes that match. By default, it admits processes that have
    /// no passport.
    pub(in super::super) fn admitting(self, admission: Admission) -> Self {
        Self { admission, ..self }
    }

    /// Updates the leader's passport after its files have changed.
    pub(in super::super) fn show(&mut self, passport: Passport) {
        if passport == self.admission.passport {
            return;
        }
        self.admission.passport = passport;
        let members: Vec<_> = self.nodes.keys().copied().collect();
        members.into_iter().for_each(|incarnation| self.compare_files(incarnation));
    }

    /// Sends all nodes the settings shared by all processes of the shard, as JSON.
    pub(in super::super) fn share(&mut self, settings: String) {
        let item = DownItem::from(SettingsChanged { settings: Bytes32::new(settings.as_bytes()) });
        let mut broken = Vec::new();
        for (incarnation, node) in &mut self.nodes {
            if let Err(error) = node.channel.push(&item) {
                broken.push((*incarnation, error));
            }
        }
        broken.into_iter().for_each(|(node, error)| self.give_up(node, error.into()));
        self.admission.settings = settings;
    }

    /// The subject to subscribe to.
    pub(in super::super) fn subscription(&self) -> String {
        self.subjects.all_up_to(self.epoch)
    }

    /// Handles a message sent to this subject.
    pub(in super::super) fn received(&mut self, now: Duration, subject: &str, message: &[u8]) {
        let Some(sender) = self.subjects.sender(self.epoch, subject) else { return };
        let Ok((head, payload)) = decode_frame(message) else { return };
        if head.epoch != self.epoch || head.shard != self.admission.shard {
            return;
        }
        if head.incarnation == 0 {
            return self.asked_to_join(now, &sender, &head, &payload);
        }
        let name = sender.node;
        // This applies even if `timeout` was not called in time.
        let is_late = |node: &Node| now.saturating_sub(node.heard) >= PATIENCE;
        if self.nodes.get(&head.incarnation).is_some_and(is_late) {
            self.give_up(head.incarnation, GiveUpReason::Silence);
        }
        let latest = self.members.get(name).copied().unwrap_or_default();
        let known = self
            .nodes
            .get_mut(&head.incarnation)
            .filter(|node| node.is_sent_by(&sender) && node.is_asked_by(&head));
        let Some(node) = known.filter(|node| node.is_member || head.incarnation > latest) else {
            return self.farewell(name, &head, Farewell::GivenUp, &[]);
        };
        node.heard = now;
        node.beat = node.beat.max(head.beat);
        if !node.is_member {
            // Another process may have taken the name since this one requested it.
            let identity = node.identity.clone();
            if let Err(refusal) = self.check_name(now, name, &identity) {
                self.nodes.remove(&head.incarnation);
                return self.refuse(now, name, &head, &identity.passport.place, refusal);
            }
            self.joined(name, &head);
        }
        let Some(node) = self.nodes.get_mut(&head.incarnation) else { return };
        let mut items = Vec::new();
        let received = node.channel.receive(now, &head, &payload, |item| {
            items.push(item.to_vec());
        });
        if !self.quotas.take(now, name, items.len()) {
            self.dismiss(head.incarnation, Farewell::GivenUp);
            return self.give_up(head.incarnation, GiveUpReason::TooManyItems);
        }
        let done = items.iter().try_for_each(|item| {
            match decode_item(item).map_err(ChannelError::from)? {
                Some(item) => self.item(now, head.incarnation, item),
                // An item from a newer version.
                None => Ok(()),
            }
        });
        if let Err(reason) = received.map_err(GiveUpReason::from).and(done) {
            if reason == GiveUpReason::Stopped {
                self.dismiss(head.incarnation, Farewell::Stopped);
            }
            self.give_up(head.incarnation, reason);
        }
    }

    /// Answers a request. `notices` is the number of notices sent to its session before this answer.
    pub(in super::super) fn reply(
        &mut self,
        to: RemoteSession,
        number: u64,
        notices: u64,
        outcome: Result<Vec<u8>, NetError>,
    ) {
        let (result, body) = match outcome {
            Ok(body) => (NetError::Success, body),
            Err(error) => (error, Vec::new()),
        };
        let Some(node) = self.nodes.get_mut(&to.incarnation) else { return };
        let Some(open) = node.sessions.get_mut(&to.session) else { return };
        // A session's requests are answered in order.
        if let Some(bytes) = open.pop_front() {
            node.requests -= 1;
            node.request_bytes -= bytes;
        }
        self.push(to, Reply { number, notices, result, body: Bytes32::new(body) });
    }

    /// Notifies a session.
    pub(in super::super) fn notify(&mut self, to: RemoteSession, notice: Notice) {
        // A notice contains only numbers, so encoding cannot fail.
        let notice = Bytes32::new(encoded(&notice).unwrap_or_default());
        self.push(to, Notified { session: to.session, notice });
    }

    /// Ends a session, without an event.
    pub(in super::super) fn end_session(&mut self, ended: RemoteSession) {
        self.push(ended, SessionEnded { session: ended.session });
        if let Some(node) = self.nodes.get_mut(&ended.incarnation) {
            node.end(ended.session);
        }
    }

    /// Sends a node an order about ages. Returns false if the node has been given up or the order
    /// is too long.
    pub(in super::super) fn order(&mut self, incarnation: u64, order: &AgeOrder) -> bool {
        let Some(order) = encoded_order(order) else { return false };
        let Some(node) = self.nodes.get_mut(&incarnation) else { return false };
        let item = DownItem::from(AgesOrder { order: Bytes32::new(order) });
        match node.channel.push(&item) {
            Ok(()) => true,
            Err(error) => {
                self.give_up(incarnation, error.into());
                false
            }
        }
    }

    /// Gives up all nodes and tells them, so that they need not wait for a timeout.
    pub(in super::super) fn close(&mut self) {
        while let Some(&incarnation) = self.nodes.keys().next() {
            self.dismiss(incarnation, Farewell::LeaderStops);
            self.give_up(incarnation, GiveUpReason::Resigned);
        }
    }

    /// When each member was last heard from.
    pub(in super::super) fn heard(&self) -> impl Iterator<Item = Duration> + Clone {
        self.nodes.values().filter(|node| node.is_member).map(|node| node.heard)
    }

    /// The name of the member with this incarnation.
    pub(in super::super) fn name_of(&self, incarnation: u64) -> Option<Arc<str>> {
        self.nodes.get(&incarnation).map(|node| node.name.as_str().into())
    }

    /// All members, by name.
    pub(in super::super) fn members(&self, now: Duration) -> Vec<Member> {
        let members = self.nodes.values().filter(|node| node.is_member);
        let mut members: Vec<_> = members
            .map(|node| Member {
                node: node.name.clone(),
                member_for: now.saturating_sub(node.joined),
                heard: now.saturating_sub(node.heard),
                sessions: node.sessions.len(),
                requests: node.requests,
                description: node.description.clone(),
            })
            .collect();
        members.sort_by(|one, other| one.node.cmp(&other.node));
        members
    }

    /// Drains a node, or lets it serve clients again. Returns false if it is not a member.
    pub(in super::super) fn drain(&mut self, name: &str, is_draining: bool) -> bool {
        let Some(&incarnation) = self.members.get(name) else { return false };
        let Some(node) = self.nodes.get_mut(&incarnation) else { return false };
        let item = DownItem::from(Drain { is_draining: is_draining.into() });
        match node.channel.push(&item) {
            Ok(()) => true,
            Err(error) => {
                self.give_up(incarnation, error.into());
                false
            }
        }
    }

    /// Sets whether the database rejects changes or fails to confirm that this process leads. Nodes
    /// are told at once.
    pub(in super::super) fn set_failing(&mut self, is_failing: bool) {
        if std::mem::replace(&mut self.is_failing, is_failing) != is_failing {
            self.announce_at = Duration::ZERO;
        }
    }

    /// The number of resent frames.
    pub(in super::super) fn resent(&self) -> u64 {
        self.resent
    }

    /// The next event.
    pub(in super::super) fn poll_event(&mut self) -> Option<LeaderEvent> {
        self.events.pop_front()
    }

    /// The next message to publish, and its subject.
    pub(in super::super) fn poll_transmit(&mut self, now: Duration) -> Option<(String, Vec<u8>)> {
        if let Some(farewell) = self.farewells.pop_front() {
            return Some(farewell);
        }
        if now >= self.announce_at {
            self.announce_at = now + ANNOUNCE_EVERY;
            let Admission { shard, passport, .. } = &self.admission;
            let announcement =
                Announcement::of(self.epoch, *shard, &passport.place, self.is_failing);
            let message = announcement.to_bytes().ok()?;
            return Some((self.subjects.leader(), message));
        }
        let (epoch, shard) = (self.epoch, self.admission.shard);
        self.nodes.iter_mut().find_map(|(incarnation, node)| {
            let frame = node.channel.poll_transmit(now)?;
            self.resent += u64::from(frame.is_repeated);
            let head = frame.head(Head {
                shard,
                process: node.identity.process,
                attempt: node.attempt,
                incarnation: *incarnation,
                beat: node.beat,
                ..Head::of(epoch)
            });
            // All its parts are within their limits.
            let message = encode_frame(&head, frame.payload).ok()?;
            Some((self.subjects.down(&node.name, node.identity.process), message))
        })
    }

    /// When to call [`timeout`](Self::timeout) and [`poll_transmit`](Self::poll_transmit) again,
    /// once the latter has returned `None`.
    pub(in super::super) fn poll_timeout(&self) -> Duration {
        let nodes = self.nodes.values();
        let deadlines = nodes.map(|node| node.channel.poll_timeout().min(node.heard + PATIENCE));
        deadlines.fold(self.announce_at, Duration::min)
    }

    /// Handles the passage of time.
    pub(in super::super) fn timeout(&mut self, now: Duration) {
        let mut silent = Vec::new();
        for (incarnation, node) in &mut self.nodes {
            match now.saturating_sub(node.heard) >= PATIENCE {
                true => silent.push(*incarnation),
                false => node.channel.timeout(now),
            }
        }
        silent.into_iter().for_each(|node| self.give_up(node, GiveUpReason::Silence));
    }

    fn item(
        &mut self,
        now: Duration,
        incarnation: u64,
        item: UpItem<'_>,
    ) -> Result<(), GiveUpReason> {
        let Some(node) = self.nodes.get_mut(&incarnation) else { return Ok(()) };
        let of = |session| RemoteSession { incarnation, session };
        match item {
            UpItem::OpenSession(it) if node.can_open(now) => {
                if node.sessions.insert(it.session, VecDeque::new()).is_none() {
                    self.events.push_back(LeaderEvent::Opened(of(it.session)));
                }
            }
            UpItem::OpenSession(it) => {
                node.channel.push(&DownItem::from(SessionEnded { session: it.session }))?;
            }
            UpItem::EndSession(it) => {
                if node.end(it.session) {
                    self.events.push_back(LeaderEvent::Ended(of(it.session)));
                }
            }
            UpItem::Request(it) => {
                // If the session is unknown, the leader has ended it, and the node will learn this.
                let Some(open) = node.sessions.get_mut(&it.session) else { return Ok(()) };
                open.push_back(it.body.len());
                node.requests += 1;
                node.request_bytes += it.body.len();
                if node.requests > MAX_REQUESTS || node.request_bytes > MAX_REQUEST_BYTES {
                    return Err(GiveUpReason::TooManyRequests);
                }
                let (from, body) = (of(it.session), it.body.to_vec());
                let (number, kind) = (it.number, it.kind);
                self.events.push_back(LeaderEvent::Requested { from, number, kind, body });
            }
            UpItem::Report(it) => {
                let report = decoded(&it.report).map_err(ChannelError::from)?;
                if node.sessions.contains_key(&it.session) {
                    let from = of(it.session);
                    self.events.push_back(LeaderEvent::Reported { from, report });
                }
            }
            // Only processes that run ages may send this.
            UpItem::AgesReport(_) if !node.kind.runs_ages() => {}
            UpItem::AgesReport(it) => {
                // A report that cannot be decoded comes from a newer version.
                if let Ok(report) = decoded(&it.report) {
                    self.events.push_back(LeaderEvent::AgesReported { incarnation, report });
                }
            }
            // This is always the last item.
            UpItem::Stopping(_) => return Err(GiveUpReason::Stopped),
            UpItem::Introduced(it) => {
                // A passport that cannot be parsed comes from a newer version.
                if let Ok(passport) = Passport::parse(&it.passport) {
                    node.identity.passport = passport.of(node.kind);
                    self.compare_files(incarnation);
                }
            }
            UpItem::Described(it) => {
                // A description that cannot be decoded comes from a newer version.
                if let Ok(description) = decoded::<Description>(&it.description) {
                    node.description = Some(description.of(node.kind));
                }
            }
        }
        Ok(())
    }

    /// Sends an item to an open session.
    fn push<'a>(&mut self, to: RemoteSession, item: impl Into<DownItem<'a>>) {
        let Some(node) = self.nodes.get_mut(&to.incarnation) else { return };
        if node.sessions.contains_key(&to.session)
            && let Err(error) = node.channel.push(&item.into())
        {
            self.give_up(to.incarnation, error.into());
        }
    }

    fn give_up(&mut self, incarnation: u64, reason: GiveUpReason) {
        let Some(node) = self.nodes.remove(&incarnation) else { return };
        let sessions = node.sessions.into_keys();
        let abandoned =
            sessions.map(|session| LeaderEvent::Abandoned(RemoteSession { incarnation, session }));
        self.events.extend(abandoned);
        if self.members.get(&node.name) == Some(&incarnation) {
            self.members.remove(&node.name);
        }
        if node.is_member {
            let Node { name: node, heard, .. } = node;
            self.events.push_back(LeaderEvent::Left { node, incarnation, heard, reason });
        }
    }

    /// Tells a node that its membership is over.
    fn dismiss(&mut self, incarnation: u64, farewell: Farewell) {
        let Some(node) = self.nodes.get(&incarnation) else { return };
        let name = node.name.clone();
        let head = Head {
            process: node.identity.process,
            attempt: node.attempt,
            incarnation,
            ..Head::of(self.epoch)
        };
        self.farewell(&name, &head, farewell, &[]);
    }

    /// Tells a process that its node was given up, or why it was refused.
    fn farewell(&mut self, name: &str, head: &Head, farewell: Farewell, payload: &[u8]) {
        if self.farewells.len() >= MAX_FAREWELLS {
            return;
        }
        let &Head { process, attempt, incarnation, .. } = head;
        let (shard, gone) = (self.admission.shard, farewell.code());
        let head = Head { shard, process, attempt, incarnation, gone, ..Head::of(self.epoch) };
        if let Ok(message) = encode_frame(&head, payload) {
            self.farewells.push_back((self.subjects.down(name, process), message));
        }
    }
}

impl Node {
    /// Whether the sender's name and kind match this node's.
    fn is_sent_by(&self, sender: &Sender<'_>) -> bool {
        self.name == sender.node && self.kind == sender.kind
    }

    /// Counts a newly opened session. Returns false if there are too many or they come too fast.
    fn can_open(&mut self, now: Duration) -> bool {
        let (since, count) = &mut self.opened;
        if now.saturating_sub(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        self.sessions.len() < MAX_SESSIONS && *count <= MAX_OPENED
    }

    /// Whether a frame belongs to the attempt through which this node joined.
    fn is_asked_by(&self, head: &Head) -> bool {
        self.identity.process == head.process && self.attempt == head.attempt
    }

    /// Removes a session and its requests. Returns whether it was open.
    fn end(&mut self, session: u64) -> bool {
        let Some(open) = self.sessions.remove(&session) else { return false };
        self.requests -= open.len();
        self.request_bytes -= open.iter().sum::<usize>();
        true
    }
}

#[cfg(test)]
impl LeaderMachine {
    /// The number of the next frame to receive from a node.
    pub(in super::super) fn expected(&self, incarnation: u64) -> Option<u64> {
        self.nodes.get(&incarnation).map(|node| node.channel.expected())
    }
}
