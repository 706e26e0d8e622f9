//! The leader's end of a cluster, without I/O: the nodes that have joined, and their sessions.
//!
//! A node that has been silent for 3.5 s is given up. By then, it has ended its sessions itself, and
//! their clients may come back at another node: see [`link::machine`](super::super::link).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use worldwire_core::Bytes32;
use worldwire_uru::types::NetError;

use super::super::ages::{AgeOrder, AgeReport, encoded_order};
use super::super::bus::Subjects;
use super::super::channel::{Channel, ChannelError};
use super::super::frames::{
    AgesOrder, Announcement, DownItem, Drain, Head, Notified, Reply, SessionEnded, UpItem,
    decode_frame, decode_item, encode_frame,
};
use super::super::members::{Description, Member};
use super::super::requests::ClientReport;
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
    /// The node joined again.
    #[error("it has joined again, or another process uses its name")]
    Replaced,
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
    /// A node was given up, which was heard last at this time. All its sessions were abandoned.
    Left { node: String, incarnation: u64, heard: Duration, reason: GiveUpReason },
}

/// The machine.
#[derive(Debug)]
pub(in super::super) struct LeaderMachine {
    subjects: Subjects,
    epoch: u64,
    /// By incarnation.
    nodes: BTreeMap<u64, Node>,
    /// The incarnations of members, by name.
    members: HashMap<String, u64>,
    last: u64,
    /// How many frames were sent again.
    resent: u64,
    announce_at: Duration,
    /// Messages that belong to no channel.
    farewells: VecDeque<(String, Vec<u8>)>,
    events: VecDeque<LeaderEvent>,
}

#[derive(Debug)]
struct Node {
    name: String,
    process: u64,
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
            nodes: BTreeMap::new(),
            members: HashMap::new(),
            last: 0,
            resent: 0,
            announce_at: now,
            farewells: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The subject to subscribe to.
    pub(in super::super) fn subscription(&self) -> String {
        self.subjects.up(self.epoch)
    }

    /// Takes a frame.
    pub(in super::super) fn received(&mut self, now: Duration, message: &[u8]) {
        let Ok((head, payload)) = decode_frame(message) else { return };
        let name = std::str::from_utf8(&head.node).ok().filter(|name| is_name(name));
        let Some(name) = name.filter(|_| head.epoch == self.epoch) else { return };
        if head.incarnation == 0 {
            return self.asked_to_join(now, name, &head);
        }
        // Even if `timeout` was not called in time.
        let is_late = |node: &Node| now.saturating_sub(node.heard) >= PATIENCE;
        if self.nodes.get(&head.incarnation).is_some_and(is_late) {
            self.give_up(head.incarnation, GiveUpReason::Silence);
        }
        let latest = self.members.get(name).copied().unwrap_or_default();
        let known = self.nodes.get_mut(&head.incarnation).filter(|node| {
            node.name == name && node.process == head.process && node.attempt == head.attempt
        });
        let Some(node) = known.filter(|node| node.is_member || head.incarnation > latest) else {
            return self.farewell(name, &head);
        };
        node.heard = now;
        node.beat = node.beat.max(head.beat);
        if !std::mem::replace(&mut node.is_member, true) {
            self.members.insert(name.to_owned(), head.incarnation);
            self.give_up(latest, GiveUpReason::Replaced);
            let (node, incarnation) = (name.to_owned(), head.incarnation);
            let process = head.process;
            self.events.push_back(LeaderEvent::Joined { node, incarnation, process });
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
        while let Some((&incarnation, node)) = self.nodes.first_key_value() {
            let head = Head {
                node: Bytes32::new(node.name.clone().into_bytes()),
                process: node.process,
                attempt: node.attempt,
                incarnation,
                ..Head::of(self.epoch)
            };
            let name = node.name.clone();
            self.farewell(&name, &head);
            self.give_up(incarnation, GiveUpReason::Silence);
        }
    }

    /// When each member was heard last.
    pub(in super::super) fn heard(&self) -> impl Iterator<Item = Duration> + Clone {
        self.nodes.values().filter(|node| node.is_member).map(|node| node.heard)
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
            let message = Announcement::of(self.epoch).to_bytes().ok()?;
            return Some((self.subjects.leader(), message));
        }
        let epoch = self.epoch;
        self.nodes.iter_mut().find_map(|(incarnation, node)| {
            let frame = node.channel.poll_transmit(now)?;
            self.resent += u64::from(frame.is_repeated);
            let head = frame.head(Head {
                node: Bytes32::new(node.name.as_bytes()),
                process: node.process,
                attempt: node.attempt,
                incarnation: *incarnation,
                beat: node.beat,
                ..Head::of(epoch)
            });
            // Its parts are within their limits.
            let message = encode_frame(&head, frame.payload).ok()?;
            Some((self.subjects.down(&node.name, node.process), message))
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

    /// A node asks for an incarnation. It joins only when it uses that incarnation, because the
    /// request may be an old one that was delayed.
    fn asked_to_join(&mut self, now: Duration, name: &str, head: &Head<'_>) {
        let is_same = |node: &&mut Node| {
            node.name == name && node.process == head.process && node.attempt == head.attempt
        };
        if let Some(node) = self.nodes.values_mut().find(is_same) {
            node.channel.greet();
        } else if self.nodes.len() < MAX_NODES {
            self.last += 1;
            let node = Node {
                name: name.to_owned(),
                process: head.process,
                attempt: head.attempt,
                channel: Channel::new(now),
                joined: now,
                heard: now,
                beat: 0,
                is_member: false,
                sessions: HashMap::new(),
                requests: 0,
                description: None,
            };
            self.nodes.insert(self.last, node);
        }
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

    /// Tells a process that its node was given up.
    fn farewell(&mut self, name: &str, head: &Head<'_>) {
        if self.farewells.len() >= MAX_FAREWELLS {
            return;
        }
        let &Head { process, attempt, incarnation, .. } = head;
        let head = Head { process, attempt, incarnation, gone: 1, ..Head::of(self.epoch) };
        if let Ok(message) = encode_frame(&head, &[]) {
            self.farewells.push_back((self.subjects.down(name, process), message));
        }
    }
}

impl Node {
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
