//! A node's membership in a cluster, without I/O: its sessions at the leader, and their requests.
//!
//! A node shows its passport to the leader that it hears. The leader may refuse it; then it asks
//! again later. Otherwise the leader gives it a number, the *incarnation*, under which all frames
//! travel. If the node does not hear the leader for 3 s, or another process leads, the membership is
//! over, with all its sessions. Requests without a reply are then refused, although they may have
//! taken effect.
//!
//! That time counts from when the node *sent* a frame that the leader has heard. The leader counts
//! from when it *received* the frame, and gives a node up later. So it never ends a session that its
//! node still serves, although their clocks are not compared.
//!
//! Leaders of earlier epochs are ignored: they no longer lead. A database that was restored from a
//! backup may have an earlier epoch than the lost one, although new epochs follow its clock. So a node
//! follows an earlier leader if it has heard that one, and no other, for 5 s. By then, its
//! membership is over, and so is the time of its ages. A leader whose database does not confirm that
//! it leads may have been stopped and woken up: it does not count.

mod membership;

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use worldwire_core::Bytes32;
use worldwire_uru::types::NetError;

use super::super::ages::{AgeOrder, AgeReport, encoded_order};
use super::super::bus::Subjects;
use super::super::channel::ChannelError;
use super::super::frames::{
    Admitted, AgesOrder, AgesReport, Announcement, Described, DownItem, EndSession, Farewell, Head,
    Introduced, Notified, OpenSession, Report, Request, SessionEnded, Stopping, UpItem,
    decode_frame, decode_item, encode_frame,
};
use super::super::passport::{Passport, Refusal};
use super::super::requests::ClientReport;
use crate::uru::vault::Notice;
use crate::uru::vault::ask::{decoded, encoded};
use membership::Membership;

pub(in super::super) use membership::LeaveReason;

/// How long a node may go without learning that the leader still hears it.
pub(in super::super) const MEMBERSHIP: Duration = Duration::from_secs(3);

/// How long a node hears only a leader of an earlier epoch before it follows that one. It must be
/// longer than a membership.
pub(in super::super) const RESTORED_AFTER: Duration = Duration::from_secs(5);
/// The longest pause between two announcements of such a leader.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How long the leader counts as fit to lead after it has announced that.
const FIT_FOR: Duration = Duration::from_secs(2);

/// How long a node that was refused waits before it asks again.
pub(in super::super) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum LinkEvent {
    /// The settings that all processes of the shard share, as JSON. [`Joined`](Self::Joined) follows.
    Settings(String),
    /// The node is a member now.
    Joined,
    /// The leader does not admit the node.
    NotAdmitted(Refusal),
    /// A request was answered, after this many notices to its session.
    Answered { number: u64, notices: u64, outcome: Result<Vec<u8>, NetError> },
    /// A request has no answer. It may have taken effect.
    Refused { number: u64 },
    /// A notice to a session.
    Notice { session: u64, notice: Notice },
    /// A session has ended, although nobody asked for that.
    Ended { session: u64 },
    /// The leader has an order about ages.
    Ordered(AgeOrder),
    /// An operator wants this node to be without clients and new ages, or to serve clients again.
    Draining(bool),
    /// The leader's database accepts no changes, or accepts them again.
    Failing(bool),
    /// The node follows a leader of an earlier epoch, because the database was restored. Nothing that
    /// it knows about its ages counts.
    Restored { former: u64, epoch: u64 },
    /// The membership is over. All sessions have ended.
    Left(LeaveReason),
}

/// The machine.
#[derive(Debug)]
pub(in super::super) struct LinkMachine {
    subjects: Subjects,
    node: String,
    process: u64,
    /// What the node shows.
    passport: Passport,
    /// Whether that has changed since the node asked to join.
    has_changed: bool,
    /// The shard to which the node belongs: that of the first leader that was heard. 0: not known yet.
    shard: u64,
    /// The epoch of the leader that this node follows.
    epoch: u64,
    /// When something was heard from that leader.
    heard: Duration,
    /// Whether its database accepts no changes.
    is_failing: bool,
    /// Until when it counts as fit to lead.
    fit_until: Duration,
    /// A leader of an earlier epoch.
    earlier: Option<Earlier>,
    /// Counts attempts to join.
    attempt: u64,
    /// Whether it joins no leader any more.
    is_stopping: bool,
    state: State,
    /// How long ages may speak: longer than a membership if another one follows.
    tenure_end: Duration,
    /// The open sessions, with the numbers of their open requests.
    sessions: HashMap<u64, Vec<u64>>,
    /// The session of each open request.
    requests: HashMap<u64, u64>,
    next: u64,
    /// How many frames were sent again.
    resent: u64,
    events: VecDeque<LinkEvent>,
}

/// A leader of an earlier epoch than that of the leader that a node follows.
#[derive(Debug)]
struct Earlier {
    epoch: u64,
    /// Since when it has been heard without long pauses.
    since: Duration,
    last: Duration,
}

#[derive(Debug)]
enum State {
    /// Waits for a leader.
    Apart,
    /// Was refused, and waits before it asks again.
    Refused {
        since: Duration,
    },
    /// Asks the leader for an incarnation, now if `is_due`.
    Asking {
        since: Duration,
        is_due: bool,
    },
    Member(Box<Membership>),
}

impl LinkMachine {
    /// `process` is a random number.
    pub(in super::super) fn new(subjects: Subjects, node: &str, process: u64) -> Self {
        Self {
            subjects,
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

    /// What the node shows from now on.
    pub(in super::super) fn show(&mut self, passport: Passport) {
        if passport == self.passport {
            return;
        }
        self.passport = passport;
        self.has_changed = true;
        self.introduce();
    }

    /// The node belongs to this shard, and leaves the leaders of others.
    pub(in super::super) fn belong_to(&mut self, shard: u64) {
        if shard != self.shard && shard != 0 {
            self.leave(LeaveReason::OtherLeader);
            (self.shard, self.epoch) = (shard, 0);
            (self.fit_until, self.earlier) = (Duration::ZERO, None);
        }
    }

    /// The shard to which the node belongs; 0 if it has heard no leader yet.
    pub(in super::super) fn shard(&self) -> u64 {
        self.shard
    }

    /// The subjects to subscribe to: announcements, and frames.
    pub(in super::super) fn subscriptions(&self) -> [String; 2] {
        [self.subjects.leader(), self.subjects.down(&self.node, self.process)]
    }

    /// Takes an announcement.
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
            // It was probably stopped, and its database has been restored from a backup since.
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

    /// Takes a frame.
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
            // A newer version's.
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
        // If this fails, the request is refused.
        self.push(Request { number, session, kind, body: Bytes32::new(body) });
        Some(number)
    }

    /// Reports what happens to a client.
    pub(in super::super) fn report(&mut self, session: u64, report: &ClientReport) {
        if self.sessions.contains_key(&session)
            && let Ok(report) = encoded(report)
        {
            self.push(Report { session, report: Bytes32::new(report) });
        }
    }

    /// Sends what this process says about itself.
    pub(in super::super) fn describe(&mut self, description: Vec<u8>) {
        self.push(Described { description: Bytes32::new(description) });
    }

    /// Says that this process stops: its sessions and ages have ended. It joins no leader any more.
    pub(in super::super) fn stop(&mut self) {
        self.is_stopping = true;
        if !self.push(Stopping { reserved: 0 }) {
            self.state = State::Apart;
        }
    }

    /// How many frames were sent again, and how many sessions and requests are open.
    pub(in super::super) fn figures(&self) -> (u64, usize, usize) {
        (self.resent, self.sessions.len(), self.requests.len())
    }

    /// Reports what happens to this node and its ages. Returns false while the node is not a member.
    pub(in super::super) fn report_ages(&mut self, report: &AgeReport) -> bool {
        encoded_order(report)
            .is_some_and(|report| self.push(AgesReport { report: Bytes32::new(report) }))
    }

    /// Until when the ages of this node may speak to clients. The end of a membership does not change
    /// this.
    pub(in super::super) fn tenure_end(&self) -> Duration {
        self.tenure_end
    }

    /// Whether the leader has everything that was sent.
    pub(in super::super) fn is_idle(&self) -> bool {
        match &self.state {
            State::Member(member) => member.channel.is_idle(),
            _ => true,
        }
    }

    /// What happened next.
    pub(in super::super) fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// The next message to publish, and its subject.
    pub(in super::super) fn poll_transmit(&mut self, now: Duration) -> Option<(String, Vec<u8>)> {
        let to = self.subjects.up(self.epoch);
        let (node, process) = (Bytes32::new(self.node.as_bytes()), self.process);
        let (shard, attempt) = (self.shard, self.attempt);
        let head = Head { shard, node, process, attempt, ..Head::of(self.epoch) };
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
        // Its parts are within their limits.
        message.ok().map(|message| (to, message))
    }

    /// When to call [`timeout`](Self::timeout) and [`poll_transmit`](Self::poll_transmit) again,
    /// after the latter returned `None`.
    pub(in super::super) fn poll_timeout(&self) -> Option<Duration> {
        match &self.state {
            State::Member(member) => {
                Some(member.channel.poll_timeout().min(member.heard + MEMBERSHIP))
            }
            _ => None,
        }
    }

    /// Time has passed.
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
                // Unless its session has ended.
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
                // Otherwise it is a newer version's.
                if let Ok(order) = decoded(&order) {
                    self.events.push_back(LinkEvent::Ordered(order));
                }
            }
            DownItem::Drain(it) => {
                self.events.push_back(LinkEvent::Draining(it.is_draining != 0));
            }
        }
        Ok(())
    }

    /// Shows the leader what has changed.
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

    /// Notes that a leader of an earlier epoch was heard. Returns whether it must be the leader of a
    /// restored database.
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
    /// The epoch and the incarnation, and the number of the next frame to receive.
    pub(in super::super) fn membership(&self) -> Option<(u64, u64, u64)> {
        match &self.state {
            State::Member(it) => Some((self.epoch, it.incarnation, it.channel.expected())),
            _ => None,
        }
    }
}
