//! A node's membership in a cluster, without I/O: its sessions at the leader and their requests.
//!
//! A node that hears a leader presents its passport. If the leader refuses it, the node asks again
//! later. Otherwise the leader gives it a number, the *incarnation*, which identifies all of its
//! frames. If the node does not hear the leader for 3 s, or another process leads, the membership
//! ends, along with all its sessions. Unanswered requests are then refused, although they may have
//! taken effect.
//!
//! The 3 s start when the node *sent* a frame that the leader has heard. The leader starts counting
//! when it *received* the frame, and allows more time before it gives a node up. So it never ends a
//! session that the node still serves, although their clocks are never compared.
//!
//! Leaders of earlier epochs are ignored: they no longer lead. A database restored from a backup
//! may have an earlier epoch than the lost one, although new epochs are derived from the database's
//! clock. So a node follows an earlier leader once it has heard that leader, and no other, for 5 s.
//! By then, its membership has ended, and so has the time of its ages. A leader whose database does
//! not confirm that it leads is not followed: it may be an old one that was suspended and has
//! resumed.

mod membership;

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use worldwire_core::Bytes32;
use worldwire_uru::types::NetError;

use super::super::ages::{AgeOrder, AgeReport, encoded_order};
use super::super::channel::ChannelError;
use super::super::frames::{
    Admitted, AgesOrder, AgesReport, Announcement, Described, DownItem, EndSession, Farewell, Head,
    Introduced, Notified, OpenSession, Report, Request, SessionEnded, SettingsChanged, Stopping,
    UpItem, decode_frame, decode_item, encode_frame,
};
use super::super::passport::{Passport, Refusal};
use super::super::requests::ClientReport;
use super::super::subjects::{NodeKind, Subjects};
use crate::uru::vault::Notice;
use crate::uru::vault::ask::{decoded, encoded};
use membership::Membership;

pub(in super::super) use membership::LeaveReason;

/// How long a node may go without confirmation that the leader still hears it.
pub(in super::super) const MEMBERSHIP: Duration = Duration::from_secs(3);

/// How long a node must hear only a leader of an earlier epoch before it follows that leader. Must
/// be longer than a membership.
pub(in super::super) const RESTORED_AFTER: Duration = Duration::from_secs(5);
/// The longest pause allowed between two announcements of such a leader.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How long a leader counts as fit to lead after an announcement that says so.
const FIT_FOR: Duration = Duration::from_secs(2);

/// How long a refused node waits before it asks again.
pub(in super::super) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An event for the node.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum LinkEvent {
    /// The settings shared by all processes of the shard, as JSON. The first ones precede
    /// [`Joined`](Self::Joined); others follow when an operator changes them.
    Settings(String),
    /// The node has become a member.
    Joined,
    /// The leader refuses to admit the node.
    NotAdmitted(Refusal),
    /// The answer to a request, after this many notices to its session.
    Answered { number: u64, notices: u64, outcome: Result<Vec<u8>, NetError> },
    /// A request will not be answered. It may have taken effect.
    Refused { number: u64 },
    /// A notice to a session.
    Notice { session: u64, notice: Notice },
    /// The leader ended a session without being asked to.
    Ended { session: u64 },
    /// The leader has sent an order about ages.
    Ordered(AgeOrder),
    /// An operator is draining this node, or lets it serve clients again.
    Draining(bool),
    /// The leader's database rejects changes, or accepts them again.
    Failing(bool),
    /// The node follows a leader of an earlier epoch, because the database was restored. Everything
    /// that the node knows about its ages is invalid.
    Restored { former: u64, epoch: u64 },
    /// The membership has ended, and so have all sessions.
    Left(LeaveReason),
}

/// The machine.
#[derive(Debug)]
pub(in super::super) struct LinkMachine {
    subjects: Subjects,
    kind: NodeKind,
    node: String,
    process: u64,
    /// The node's passport.
    passport: Passport,
    /// Whether the passport has changed since the node asked to join.
    has_changed: bool,
    /// The shard that the node belongs to: that of the first leader it heard. 0: not known yet.
    shard: u64,
    /// The epoch of the leader that this node follows.
    epoch: u64,
    /// When that leader was last heard.
    heard: Duration,
    /// Whether the leader's database rejects changes.
    is_failing: bool,
    /// Until when the leader counts as fit to lead.
    fit_until: Duration,
    /// A leader of an earlier epoch, if one has been heard.
    earlier: Option<Earlier>,
    /// The current attempt to join.
    attempt: u64,
    /// Whether the node is stopping, and so joins no leader.
    is_stopping: bool,
    state: State,
    /// Until when ages may send to clients. Can be later than the end of a membership, if another
    /// membership follows it.
    tenure_end: Duration,
    /// The open sessions, with the numbers of their unanswered requests.
    sessions: HashMap<u64, Vec<u64>>,
    /// The session of each unanswered request.
    requests: HashMap<u64, u64>,
    next: u64,
    /// The number of resent frames.
    resent: u64,
    events: VecDeque<LinkEvent>,
}

/// A leader whose epoch is earlier than that of the leader the node follows.
#[derive(Debug)]
struct Earlier {
    epoch: u64,
    /// The start of the period in which it has been heard without long pauses.
    since: Duration,
    last: Duration,
}

#[derive(Debug)]
enum State {
    /// Waiting for a leader.
    Apart,
    /// Refused, and waiting to ask again.
    Refused {
        since: Duration,
    },
    /// Asking the leader for an incarnation, at once if `is_due`.
    Asking {
        since: Duration,
        is_due: bool,
    },
    Member(Box<Membership>),
}

impl LinkMachine {
    /// `process` is the random number of this process.
    pub(in super::super) fn new(
        subjects: Subjects,
        kind: NodeKind,
        node: &str,
        process: u64,
    ) -> Self {
        Self {
            subjects,
            kind,
            node: node.to_owned(),
            process,
            passport: Passport::default(),
            has_changed: false,
            shard: 0,
            epoch: 0,
            heard: Duration::ZERO,
            is_failing: false,
            fit_until: Duration::ZERO,
            earlier: None,
            attempt: 0,
            is_stopping: false,
            state: State::Apart,
            tenure_end: Duration::ZERO,
            sessions: HashMap::new(),
            requests: HashMap::new(),
            next: 0,
            resent: 0,
            events: VecDeque::new(),
        }
    }

    /// Updates the node's passport.
    pub(in super::super) fn show(&mut self, passport: Passport) {
        if passport == self.passport {
            return;
        }
        self.passport = passport;
        self.has_changed = true;
        self.introduce();
    }

    /// Binds the node to this shard. It leaves a leader of any other shard.
    pub(in super::super) fn belong_to(&mut self, shard: u64) {
        if shard != self.shard && shard != 0 {
            self.leave(LeaveReason::OtherLeader);
            (self.shard, self.epoch) = (shard, 0);
            (self.fit_until, self.earlier) = (Duration::ZERO, None);
        }
    }

    /// The shard that the node belongs to; 0 if it has heard no leader yet.
    pub(in super::super) fn shard(&self) -> u64 {
        self.shard
    }

    /// The subjects to subscribe to: one for announcements, one for frames.
    pub(in super::super) fn subscriptions(&self) -> [String; 2] {
        [self.subjects.leader(), self.subjects.down(&self.node, self.process)]
    }

    /// Handles an announcement.
    pub(in super::super) fn announced(&mut self, now: Duration, message: &[u8]) {
        self.timeout(now);
        let Ok(announcement) = Announcement::parse(message) else { return };
        if self.shard == 0 {
            self.shard = announcement.shard;
        }
        if announcement.shard != self.shard {
            return;
        }
        let (epoch, is_failing) = (announcement.epoch, announcement.is_failing());
        match epoch.cmp(&self.epoch) {
            // That leader has probably been suspended, and its database has since been restored.
            Ordering::Greater if is_failing && now < self.fit_until => return,
            Ordering::Greater => self.leave(LeaveReason::OtherLeader),
            Ordering::Equal => {}
            Ordering::Less if is_failing || !self.is_restored(now, epoch) => return,
            Ordering::Less => {
                self.leave(LeaveReason::Silence);
                self.events.push_back(LinkEvent::Restored { former: self.epoch, epoch });
            }
        }
        (self.epoch, self.heard, self.earlier) = (epoch, now, None);
        self.fit_until = if is_failing { Duration::ZERO } else { now + FIT_FOR };
        if std::mem::replace(&mut self.is_failing, is_failing) != is_failing {
            self.events.push_back(LinkEvent::Failing(is_failing));
        }
        match &mut self.state {
            State::Apart | State::Asking { .. } | State::Refused { .. } if self.is_stopping => {}
            State::Asking { is_due, .. } => *is_due = true,
            State::Refused { since } if now.saturating_sub(*since) < ASK_AGAIN_AFTER => {}
            State::Apart | State::Refused { .. } => {
                self.attempt += 1;
                self.has_changed = false;
                self.state = State::Asking { since: now, is_due: true };
            }
            State::Member(_) => {}
        }
    }

    /// Handles a frame.
    pub(in super::super) fn received(&mut self, now: Duration, message: &[u8]) {
        self.timeout(now);
        let Ok((head, payload)) = decode_frame(message) else { return };
        let is_ours = head.process == self.process && head.attempt == self.attempt;
        if head.epoch != self.epoch || head.shard != self.shard || !is_ours {
            return;
        }
        if let State::Asking { .. } = self.state
            && head.incarnation == 0
            && Farewell::of(head.gone).is_some()
        {
            self.state = State::Refused { since: now };
            let refusal = Refusal::parse(&payload).unwrap_or(Refusal::Unreadable);
            self.events.push_back(LinkEvent::NotAdmitted(refusal));
            return;
        }
        self.heard = now;
        if let State::Asking { since: asked, .. } = self.state
            && head.gone == 0
            && head.incarnation != 0
        {
            self.state = State::Member(Box::new(Membership::new(head.incarnation, asked, now)));
        }
        let State::Member(member) = &mut self.state else { return };
        if head.incarnation != member.incarnation {
            return;
        }
        if let Some(farewell) = Farewell::of(head.gone) {
            return self.leave(match farewell {
                Farewell::GivenUp => LeaveReason::GivenUp,
                Farewell::LeaderStops => LeaveReason::LeaderStops,
                Farewell::Replaced => LeaveReason::Replaced,
                Farewell::Stopped => LeaveReason::Stopped,
            });
        }
        member.heard_up_to(head.beat);
        self.tenure_end = self.tenure_end.max(member.heard + MEMBERSHIP);
        let mut items = Vec::new();
        let received = member.channel.receive(now, &head, &payload, |item| {
            items.push(item.to_vec());
        });
        let done = items.iter().try_for_each(|item| match decode_item(item)? {
            Some(item) => self.item(item),
            // An item from a newer version.
            None => Ok(()),
        });
        if let Err(error) = received.and(done) {
            self.leave(error.into());
        }
    }

    /// Opens a session. Returns its number, or `None` while the node is not a member.
    pub(in super::super) fn open_session(&mut self) -> Option<u64> {
        if !self.is_admitted() {
            return None;
        }
        self.next += 1;
        let session = self.next;
        self.push(OpenSession { session }).then(|| self.sessions.insert(session, Vec::new()))?;
        Some(session)
    }

    /// Ends a session.
    pub(in super::super) fn end_session(&mut self, session: u64) {
        let Some(requests) = self.sessions.remove(&session) else { return };
        self.refuse(requests);
        self.push(EndSession { session });
    }

    /// Makes a request. Returns its number, or `None` if the session has ended.
    pub(in super::super) fn request(
        &mut self,
        session: u64,
        kind: u16,
        body: Vec<u8>,
    ) -> Option<u64> {
        self.next += 1;
        let number = self.next;
        self.sessions.get_mut(&session)?.push(number);
        self.requests.insert(number, session);
        // If this fails, the request is refused later.
        self.push(Request { number, session, kind, body: Bytes32::new(body) });
        Some(number)
    }

    /// Reports something that happened to a client.
    pub(in super::super) fn report(&mut self, session: u64, report: &ClientReport) {
        if self.sessions.contains_key(&session)
            && let Ok(report) = encoded(report)
        {
            self.push(Report { session, report: Bytes32::new(report) });
        }
    }

    /// Sends this process's description of itself.
    pub(in super::super) fn describe(&mut self, description: Vec<u8>) {
        self.push(Described { description: Bytes32::new(description) });
    }

    /// Announces that this process is stopping: its sessions and ages have ended. It will not join
    /// a leader again.
    pub(in super::super) fn stop(&mut self) {
        self.is_stopping = true;
        if !self.push(Stopping { reserved: 0 }) {
            self.state = State::Apart;
        }
    }

    /// The number of resent frames, of sessions, and of unanswered requests.
    pub(in super::super) fn figures(&self) -> (u64, usize, usize) {
        (self.resent, self.sessions.len(), self.requests.len())
    }

    /// Reports something about this node or its ages. Returns false while the node is not a member.
    pub(in super::super) fn report_ages(&mut self, report: &AgeReport) -> bool {
        encoded_order(report)
            .is_some_and(|report| self.push(AgesReport { report: Bytes32::new(report) }))
    }

    /// Until when this node's ages may send to clients. Unaffected by the end of a membership.
    pub(in super::super) fn tenure_end(&self) -> Duration {
        self.tenure_end
    }

    /// Whether the leader has received everything that was sent.
    pub(in super::super) fn is_idle(&self) -> bool {
        match &self.state {
            State::Member(member) => member.channel.is_idle(),
            _ => true,
        }
    }

    /// The next event.
    pub(in super::super) fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// The next message to publish, and its subject.
    pub(in super::super) fn poll_transmit(&mut self, now: Duration) -> Option<(String, Vec<u8>)> {
        let to = self.subjects.up(self.epoch, self.kind, &self.node);
        let (shard, process, attempt) = (self.shard, self.process, self.attempt);
        let head = Head { shard, process, attempt, ..Head::of(self.epoch) };
        let message = match &mut self.state {
            State::Asking { is_due, .. } => match std::mem::take(is_due) {
                true => encode_frame(&head, &self.passport.to_bytes()),
                false => return None,
            },
            State::Member(member) => {
                let beat = member.beat(now);
                let frame = member.channel.poll_transmit(now)?;
                self.resent += u64::from(frame.is_repeated);
                let head = frame.head(Head { incarnation: member.incarnation, beat, ..head });
                encode_frame(&head, frame.payload)
            }
            State::Apart | State::Refused { .. } => return None,
        };
        // All its parts are within their limits.
        message.ok().map(|message| (to, message))
    }

    /// When to call [`timeout`](Self::timeout) and [`poll_transmit`](Self::poll_transmit) again,
    /// once the latter has returned `None`.
    pub(in super::super) fn poll_timeout(&self) -> Option<Duration> {
        match &self.state {
            State::Member(member) => {
                Some(member.channel.poll_timeout().min(member.heard + MEMBERSHIP))
            }
            _ => None,
        }
    }

    /// Handles the passage of time.
    pub(in super::super) fn timeout(&mut self, now: Duration) {
        let State::Member(member) = &mut self.state else { return };
        match now.saturating_sub(member.heard) >= MEMBERSHIP {
            true => self.leave(LeaveReason::Silence),
            false => member.channel.timeout(now),
        }
    }

    fn item(&mut self, item: DownItem<'_>) -> Result<(), ChannelError> {
        match item {
            DownItem::Admitted(Admitted { settings }) => {
                if let State::Member(member) = &mut self.state {
                    member.is_admitted = true;
                }
                if self.has_changed {
                    self.introduce();
                }
                let settings = String::from_utf8_lossy(&settings).into_owned();
                self.events.extend([LinkEvent::Settings(settings), LinkEvent::Joined]);
            }
            DownItem::Reply(reply) => {
                let number = reply.number;
                // The request is unknown if its session has ended.
                let Some(session) = self.requests.remove(&number) else { return Ok(()) };
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.retain(|open| *open != number);
                }
                let outcome = match reply.result {
                    NetError::Success => Ok(reply.body.to_vec()),
                    error => Err(error),
                };
                let notices = reply.notices;
                self.events.push_back(LinkEvent::Answered { number, notices, outcome });
            }
            DownItem::SessionEnded(SessionEnded { session }) => {
                if let Some(requests) = self.sessions.remove(&session) {
                    self.refuse(requests);
                    self.events.push_back(LinkEvent::Ended { session });
                }
            }
            DownItem::Notified(Notified { session, notice }) => {
                let notice = decoded(&notice)?;
                if self.sessions.contains_key(&session) {
                    self.events.push_back(LinkEvent::Notice { session, notice });
                }
            }
            DownItem::AgesOrder(AgesOrder { order }) => {
                // An order that cannot be decoded comes from a newer version.
                if let Ok(order) = decoded(&order) {
                    self.events.push_back(LinkEvent::Ordered(order));
                }
            }
            DownItem::SettingsChanged(SettingsChanged { settings }) => {
                let settings = String::from_utf8_lossy(&settings).into_owned();
                self.events.push_back(LinkEvent::Settings(settings));
            }
            DownItem::Drain(it) => {
                self.events.push_back(LinkEvent::Draining(it.is_draining != 0));
            }
        }
        Ok(())
    }

    /// Sends the leader the changed passport.
    fn introduce(&mut self) {
        let passport = Bytes32::new(self.passport.to_bytes());
        self.push(Introduced { passport });
    }

    fn is_admitted(&self) -> bool {
        matches!(&self.state, State::Member(member) if member.is_admitted)
    }

    /// Sends an item. Returns false while the node is not a member.
    fn push<'a>(&mut self, item: impl Into<UpItem<'a>>) -> bool {
        let State::Member(member) = &mut self.state else { return false };
        match member.channel.push(&item.into()) {
            Ok(()) => true,
            Err(error) => {
                self.leave(error.into());
                false
            }
        }
    }

    fn refuse(&mut self, numbers: Vec<u64>) {
        for number in numbers {
            if self.requests.remove(&number).is_some() {
                self.events.push_back(LinkEvent::Refused { number });
            }
        }
    }

    /// Records an announcement by a leader of an earlier epoch. Returns whether that leader's
    /// database must have been restored from a backup.
    fn is_restored(&mut self, now: Duration, epoch: u64) -> bool {
        let is_fresh = |it: &&mut Earlier| now.saturating_sub(it.last) <= MAX_PAUSE;
        match self.earlier.as_mut().filter(is_fresh) {
            Some(known) if known.epoch > epoch => false,
            Some(known) if known.epoch == epoch => {
                known.last = now;
                now.saturating_sub(self.heard.max(known.since)) >= RESTORED_AFTER
            }
            _ => {
                self.earlier = Some(Earlier { epoch, since: now, last: now });
                false
            }
        }
    }

    fn leave(&mut self, reason: LeaveReason) {
        let was_member = self.is_admitted();
        self.state = State::Apart;
        for (session, requests) in std::mem::take(&mut self.sessions) {
            self.refuse(requests);
            self.events.push_back(LinkEvent::Ended { session });
        }
        if was_member {
            self.events.push_back(LinkEvent::Left(reason));
        }
    }
}

#[cfg(test)]
impl LinkMachine {
    /// The epoch, the incarnation, and the number of the next frame to receive.
    pub(in super::super) fn membership(&self) -> Option<(u64, u64, u64)> {
        match &self.state {
            State::Member(it) => Some((self.epoch, it.incarnation, it.channel.expected())),
            _ => None,
        }
    }
}
