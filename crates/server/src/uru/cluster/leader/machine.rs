//! The leader's end of a cluster, without I/O: the nodes that have joined, and their sessions.
//!
//! A node that has been silent for 3.5 s is given up. By then, it has ended its sessions itself, and
//! their clients may come back at another node: see [`link::machine`](super::super::link).

mod joining;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Bytes32;
use worldwire_uru::types::NetError;

use super::super::ages::{AgeOrder, AgeReport, encoded_order};
use super::super::bus::Subjects;
use super::super::channel::{Channel, ChannelError};
use super::super::frames::{
    AgesOrder, Announcement, DownItem, Drain, Farewell, Head, Notified, Reply, SessionEnded,
    UpItem, decode_frame, decode_item, encode_frame,
};
use super::super::members::{Description, Member};
use super::super::passport::{FileDifferences, Passport, Refusal};
use super::super::requests::ClientReport;
use super::admission::{Admission, Identity, Refusals};
use crate::uru::config::is_name;
use crate::uru::vault::Notice;
use crate::uru::vault::ask::{decoded, encoded};

/// How long a node may be silent.
pub(in super::super) const PATIENCE: Duration = Duration::from_millis(3_500);
/// How often the leader announces itself.
pub(in super::super) const ANNOUNCE_EVERY: Duration = Duration::from_millis(250);
/// The maximum number of requests of a node without a reply.
pub(in super::super) const MAX_REQUESTS: usize = 1_024;
/// The maximum number of sessions of a node.
const MAX_SESSIONS: usize = 1 << 16;
/// The maximum number of nodes, with those that are joining.
const MAX_NODES: usize = 256;
/// The maximum number of queued answers to nodes that were given up.
const MAX_FAREWELLS: usize = 256;

/// A session of a client that is connected to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct RemoteSession {
    /// Its node.
    pub(in super::super) incarnation: u64,
    /// Its number there.
    pub(in super::super) session: u64,
}

/// Why a node was given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum GiveUpReason {
    /// Nothing was heard.
    #[error("nothing has been heard from it for {PATIENCE:?}")]
    Silence,
    /// The node has said so.
    #[error("it has stopped")]
    Stopped,
    /// The same process joined again.
    #[error("it has joined again")]
    Rejoined,
    /// Another process joined under the name, and this one has been silent, or has the same folder.
    #[error("it was started again")]
    Restarted,
    /// This process no longer leads.
    #[error("this process no longer leads")]
    Resigned,
    /// The stream of items is broken.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It does not wait for replies.
    #[error("it has more than {MAX_REQUESTS} requests without a reply")]
    TooManyRequests,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum LeaderEvent {
    /// A node has joined.
    Joined { node: String, incarnation: u64, process: u64 },
    /// A process was not admitted, for another reason than the last time.
    NotAdmitted { node: String, place: String, refusal: Refusal },
    /// The files of a node about ages differ from the leader's, or no longer do.
    FilesCompared { node: String, incarnation: u64, differences: Option<FileDifferences> },
    /// A client has connected to a node.
    Opened(RemoteSession),
    /// A session has ended, because its client disconnected or did not come back.
    Ended(RemoteSession),
    /// A session's node was given up. Its client may come back at another one.
    Abandoned(RemoteSession),
    /// A request, which needs a reply.
    Requested { from: RemoteSession, number: u64, kind: u16, body: Vec<u8> },
    /// Something has happened to a client.
    Reported { from: RemoteSession, report: ClientReport },
    /// A node says something about itself or its ages.
    AgesReported { incarnation: u64, report: AgeReport },
    /// A node that was last heard from at this time was given up. All its sessions were abandoned.
    Left { node: String, incarnation: u64, heard: Duration, reason: GiveUpReason },
}

/// The machine.
#[derive(Debug)]
pub(in super::super) struct LeaderMachine {
    subjects: Subjects,
    epoch: u64,
    admission: Admission,
    refusals: Refusals,
    /// By incarnation.
    nodes: BTreeMap<u64, Node>,
    /// The incarnations of members, by name.
    members: HashMap<String, u64>,
    last: u64,
    /// How many frames were sent again.
    resent: u64,
    /// Whether the database accepts no changes.
    is_failing: bool,
    announce_at: Duration,
    /// Messages that belong to no channel.
    farewells: VecDeque<(String, Vec<u8>)>,
    events: VecDeque<LeaderEvent>,
}

#[derive(Debug)]
struct Node {
    name: String,
    identity: Identity,
    /// How its files differ, as far as that was reported.
    differences: Option<FileDifferences>,
    attempt: u64,
    channel: Channel,
    joined: Duration,
    heard: Duration,
    /// The number of the last frame that was heard.
    beat: u64,
    /// Whether it knows its incarnation.
    is_member: bool,
    /// The open sessions, with the numbers of their requests without a reply.
    sessions: HashMap<u64, usize>,
    requests: usize,
    description: Option<Description>,
}

impl LeaderMachine {
    pub(in super::super) fn new(subjects: Subjects, epoch: u64, now: Duration) -> Self {
        Self {
            subjects,
            epoch,
            admission: Admission::default(),
            refusals: Refusals::default(),
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

    /// A machine that admits only processes that fit this one. Others admit those that show nothing.
    pub(in super::super) fn admitting(self, admission: Admission) -> Self {
        Self { admission, ..self }
    }

    /// What this process would show now, after its files have changed.
    pub(in super::super) fn show(&mut self, passport: Passport) {
        if passport == self.admission.passport {
            return;
        }
        self.admission.passport = passport;
        let members: Vec<_> = self.nodes.keys().copied().collect();
        members.into_iter().for_each(|incarnation| self.compare_files(incarnation));
    }

    /// The subject to subscribe to.
    pub(in super::super) fn subscription(&self) -> String {
        self.subjects.up(self.epoch)
    }

    /// Takes a frame.
    pub(in super::super) fn received(&mut self, now: Duration, message: &[u8]) {
        let Ok((head, payload)) = decode_frame(message) else { return };
        let name = std::str::from_utf8(&head.node).ok().filter(|name| is_name(name));
        let is_ours = head.epoch == self.epoch && head.shard == self.admission.shard;
        let Some(name) = name.filter(|_| is_ours) else { return };
        if head.incarnation == 0 {
            return self.asked_to_join(now, name, &head, &payload);
        }
        // Even if `timeout` was not called in time.
        let is_late = |node: &Node| now.saturating_sub(node.heard) >= PATIENCE;
        if self.nodes.get(&head.incarnation).is_some_and(is_late) {
            self.give_up(head.incarnation, GiveUpReason::Silence);
        }
        let latest = self.members.get(name).copied().unwrap_or_default();
        let known = self
            .nodes
            .get_mut(&head.incarnation)
            .filter(|node| node.name == name && node.is_asked_by(&head));
        let Some(node) = known.filter(|node| node.is_member || head.incarnation > latest) else {
            return self.farewell(name, &head, Farewell::GivenUp, &[]);
        };
        node.heard = now;
        node.beat = node.beat.max(head.beat);
        if !node.is_member {
            // Another process may have taken the name since this one asked.
            let identity = node.identity.clone();
            if let Err(refusal) = self.check_name(now, name, &identity) {
                self.nodes.remove(&head.incarnation);
                return self.refuse(name, &head, &identity.passport.place, refusal);
            }
            self.joined(name, &head);
        }
        let Some(node) = self.nodes.get_mut(&head.incarnation) else { return };
        let mut items = Vec::new();
        let received = node.channel.receive(now, &head, &payload, |item| {
            items.push(item.to_vec());
        });
        let done = items.iter().try_for_each(|item| {
            match decode_item(item).map_err(ChannelError::from)? {
                Some(item) => self.item(head.incarnation, item),
                // A newer version's.
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

    /// Answers a request, after this many notices to the session.
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
        *open = open.saturating_sub(1);
        node.requests = node.requests.saturating_sub(1);
        self.push(to, Reply { number, notices, result, body: Bytes32::new(body) });
    }

    /// Notifies a session.
    pub(in super::super) fn notify(&mut self, to: RemoteSession, notice: Notice) {
        // A notice has numbers only.
        let notice = Bytes32::new(encoded(&notice).unwrap_or_default());
        self.push(to, Notified { session: to.session, notice });
    }

    /// Ends a session. There is no event for that.
    pub(in super::super) fn end_session(&mut self, ended: RemoteSession) {
        self.push(ended, SessionEnded { session: ended.session });
        if let Some(node) = self.nodes.get_mut(&ended.incarnation) {
            node.end(ended.session);
        }
    }

    /// Gives a node an order about ages. Returns false if the node was given up, or the order is too
    /// long.
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

    /// Gives up all nodes, and tells them so, which is faster than a timeout.
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

    /// The name of the member that has this incarnation.
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

    /// Drains a node, or lets it serve clients again. Returns false if there is no such member.
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

    /// States whether the database accepts no changes, or does not confirm that this process leads.
    /// Nodes learn it at once.
    pub(in super::super) fn set_failing(&mut self, is_failing: bool) {
        if std::mem::replace(&mut self.is_failing, is_failing) != is_failing {
            self.announce_at = Duration::ZERO;
        }
    }

    /// How many frames were sent again.
    pub(in super::super) fn resent(&self) -> u64 {
        self.resent
    }

    /// What happened next.
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
                node: Bytes32::new(node.name.as_bytes()),
                process: node.identity.process,
                attempt: node.attempt,
                incarnation: *incarnation,
                beat: node.beat,
                ..Head::of(epoch)
            });
            // Its parts are within their limits.
            let message = encode_frame(&head, frame.payload).ok()?;
            Some((self.subjects.down(&node.name, node.identity.process), message))
        })
    }

    /// When to call [`timeout`](Self::timeout) and [`poll_transmit`](Self::poll_transmit) again,
    /// after the latter returned `None`.
    pub(in super::super) fn poll_timeout(&self) -> Duration {
        let nodes = self.nodes.values();
        let deadlines = nodes.map(|node| node.channel.poll_timeout().min(node.heard + PATIENCE));
        deadlines.fold(self.announce_at, Duration::min)
    }

    /// Time has passed.
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

    fn item(&mut self, incarnation: u64, item: UpItem<'_>) -> Result<(), GiveUpReason> {
        let Some(node) = self.nodes.get_mut(&incarnation) else { return Ok(()) };
        let of = |session| RemoteSession { incarnation, session };
        match item {
            UpItem::OpenSession(it) if node.sessions.len() < MAX_SESSIONS => {
                if node.sessions.insert(it.session, 0).is_none() {
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
                // Otherwise the leader has ended the session, and the node will learn of it.
                let Some(open) = node.sessions.get_mut(&it.session) else { return Ok(()) };
                *open += 1;
                node.requests += 1;
                if node.requests > MAX_REQUESTS {
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
            UpItem::AgesReport(it) => {
                // Otherwise it is a newer version's.
                if let Ok(report) = decoded(&it.report) {
                    self.events.push_back(LeaderEvent::AgesReported { incarnation, report });
                }
            }
            // Nothing else follows.
            UpItem::Stopping(_) => return Err(GiveUpReason::Stopped),
            UpItem::Introduced(it) => {
                // Otherwise it is a newer version's.
                if let Ok(passport) = Passport::parse(&it.passport) {
                    node.identity.passport = passport;
                    self.compare_files(incarnation);
                }
            }
            UpItem::Described(it) => {
                // Otherwise it is a newer version's.
                if let Ok(description) = decoded(&it.description) {
                    node.description = Some(description);
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

    /// Tells a process that its node was given up, or why it is refused.
    fn farewell(&mut self, name: &str, head: &Head<'_>, farewell: Farewell, payload: &[u8]) {
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

impl GiveUpReason {
    /// Whether an operator should look at it: it does not happen when processes stop or start.
    pub(in super::super) fn is_problem(&self) -> bool {
        !matches!(self, Self::Stopped | Self::Rejoined | Self::Restarted | Self::Resigned)
    }

    /// Whether the ages of the node have ended.
    pub(in super::super) fn has_no_ages(&self) -> bool {
        matches!(self, Self::Silence | Self::Stopped)
    }
}

impl Node {
    /// Whether a frame is from the attempt to join by which this node came.
    fn is_asked_by(&self, head: &Head<'_>) -> bool {
        self.identity.process == head.process && self.attempt == head.attempt
    }

    /// Forgets a session and its requests. Returns whether it was open.
    fn end(&mut self, session: u64) -> bool {
        let open = self.sessions.remove(&session);
        self.requests = self.requests.saturating_sub(open.unwrap_or_default());
        open.is_some()
    }
}

#[cfg(test)]
impl LeaderMachine {
    /// The number of the next frame to receive from a node.
    pub(in super::super) fn expected(&self, incarnation: u64) -> Option<u64> {
        self.nodes.get(&incarnation).map(|node| node.channel.expected())
    }
}
