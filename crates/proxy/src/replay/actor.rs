//! The machine that plays the recorded side, and its family's knowledge about messages.

use core::fmt;
use core::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    CloseReason, Connection, Event, EventOf, Input, SendError, Sender as _,
};
use worldwire_core::json::Json;

use super::learnt::{Learnt, Links};
use super::script::Step;
use super::setup::Carried;

/// An account to log in with, instead of the recorded one.
#[derive(Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The role that a family's machine plays, and the family's knowledge about its messages.
pub(super) trait Role: fmt::Debug + Send {
    /// The machine.
    type Machine: Connection<Sender: Send> + fmt::Debug + Send;

    /// Fields whose values the live peer may choose differently.
    const LINKS: &'static [Links];

    /// Sends a message.
    fn send(
        &mut self,
        machine: &mut Self::Machine,
        step: &Step,
        body: &[u8],
    ) -> Result<(), SendError>;

    /// Adapts the fields of an outgoing message, beyond [`LINKS`](Self::LINKS). Returns what it
    /// changed.
    ///
    /// # Errors
    /// Why the message cannot be adapted. It is then sent as it was recorded.
    fn adapt(
        &mut self,
        machine: &Self::Machine,
        step: &Step,
        fields: &mut Json,
    ) -> Result<Vec<&'static str>, String> {
        let _ = (machine, step, fields);
        Ok(Vec::new())
    }

    /// Learns from a live message that corresponds to a recorded one, beyond
    /// [`LINKS`](Self::LINKS).
    fn learn(
        &mut self,
        machine: &mut Self::Machine,
        learnt: &mut Learnt,
        name: &str,
        recorded: &Json,
        live: &Json,
    ) {
        let _ = (machine, learnt, name, recorded, live);
    }

    /// Notes what a later conversation needs, beyond learnt values.
    fn carry(&self, carried: &mut Carried) {
        let _ = carried;
    }

    /// Whether the machines send this message on their own: pings and their replies.
    fn is_upkeep(&self, name: &str) -> bool;

    /// Whether this message from this sender can be missing, be repeated, or arrive at any time.
    fn is_unsolicited(&self, from: Side, name: &str, fields: &dyn Fn() -> Json) -> bool;

    /// Whether messages of this name can be learnt from even though their number can differ.
    fn is_learnt_from(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Why the message refuses a request, if it does: `result AuthenticationFailed`.
    fn refusal(&self, name: &str, fields: &Json) -> Option<String> {
        let _ = (name, fields);
        None
    }

    /// The field that matches a reply to its request. With such a field, replies can arrive in a
    /// different order.
    fn correlation(&self) -> Option<&'static str> {
        None
    }

    /// What the user can do after this refusal.
    fn advice_on_refusal(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// Turns a received piece into a message, in families whose relays see whole packets.
    fn piece(&self, received: <Self::Machine as Connection>::Received<'_>) -> Option<Heard> {
        let _ = received;
        None
    }

    /// Whether the relay's items are messages, rather than whole packets.
    fn hears_relay(&self) -> bool {
        true
    }

    /// The number of bytes that the peer has not acknowledged.
    fn unacknowledged(&self, machine: &mut Self::Machine) -> usize {
        let _ = machine;
        0
    }
}

/// A live message from the peer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heard {
    pub(super) name: String,
    pub(super) fields: Json,
    /// Whether the user wants it ignored.
    pub(super) is_ignored: bool,
}

/// What a machine reports.
#[derive(Clone, Debug)]
pub(super) enum Report {
    Heard(Heard),
    Fault(String),
    Closed(CloseReason),
    Other,
}

/// A [`Role`] with its machine, for any family.
pub(super) trait Actor: fmt::Debug + Send {
    fn input(&mut self, now: Duration, input: Input<'_>);
    fn timeout(&mut self, now: Duration);
    fn poll(&mut self) -> Option<Report>;
    fn poll_transmit(&mut self) -> Option<Vec<u8>>;
    fn poll_timeout(&self) -> Option<Duration>;
    fn is_established(&self) -> bool;
    fn queued_bytes(&self) -> usize;
    fn unacknowledged(&mut self) -> usize;
    fn close(&mut self);

    fn send(&mut self, step: &Step, body: &[u8]) -> Result<(), SendError>;
    fn adapt(
        &mut self,
        learnt: &Learnt,
        step: &Step,
        fields: &mut Json,
    ) -> (Vec<&'static str>, Option<String>);
    fn learn(&mut self, learnt: &mut Learnt, name: &str, recorded: &Json, live: &Json);
    fn carry(&self, carried: &mut Carried);
    fn is_upkeep(&self, name: &str) -> bool;
    fn is_unsolicited(&self, from: Side, name: &str, fields: &dyn Fn() -> Json) -> bool;
    fn is_learnt_from(&self, name: &str) -> bool;
    fn refusal(&self, name: &str, fields: &Json) -> Option<String>;
    fn correlation(&self) -> Option<&'static str>;
    fn advice_on_refusal(&self, name: &str) -> Option<&'static str>;
    fn hears_relay(&self) -> bool;
}

/// A machine in its role.
#[derive(Debug)]
pub(super) struct Acting<R: Role> {
    pub(super) role: R,
    pub(super) machine: R::Machine,
    pub(super) own: Side,
}

impl<R: Role> Actor for Acting<R> {
    fn input(&mut self, now: Duration, input: Input<'_>) {
        self.machine.input(now, self.own.other(), input);
    }

    fn timeout(&mut self, now: Duration) {
        self.machine.timeout(now);
    }

    fn poll(&mut self) -> Option<Report> {
        let event: EventOf<'_, R::Machine> = self.machine.poll_event()?;
        Some(match event {
            Event::Received(received) => {
                self.role.piece(received).map_or(Report::Other, Report::Heard)
            }
            Event::Fault { error, .. } => Report::Fault(error.to_string()),
            Event::Closed(reason) => Report::Closed(reason),
            _ => Report::Other,
        })
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.machine.poll_transmit(self.own.other())
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.machine.poll_timeout()
    }

    fn is_established(&self) -> bool {
        self.machine.is_established()
    }

    fn queued_bytes(&self) -> usize {
        self.machine.queued_bytes(self.own.other())
    }

    fn unacknowledged(&mut self) -> usize {
        self.role.unacknowledged(&mut self.machine)
    }

    fn close(&mut self) {
        self.machine.sender().close();
    }

    fn send(&mut self, step: &Step, body: &[u8]) -> Result<(), SendError> {
        self.role.send(&mut self.machine, step, body)
    }

    fn adapt(
        &mut self,
        learnt: &Learnt,
        step: &Step,
        fields: &mut Json,
    ) -> (Vec<&'static str>, Option<String>) {
        let mut changed = learnt.apply(R::LINKS, fields);
        match self.role.adapt(&self.machine, step, fields) {
            Ok(more) => {
                changed.extend(more);
                (changed, None)
            }
            Err(why) => (changed, Some(why)),
        }
    }

    fn learn(&mut self, learnt: &mut Learnt, name: &str, recorded: &Json, live: &Json) {
        learnt.learn(R::LINKS, recorded, live);
        self.role.learn(&mut self.machine, learnt, name, recorded, live);
    }

    fn carry(&self, carried: &mut Carried) {
        self.role.carry(carried);
    }

    fn is_upkeep(&self, name: &str) -> bool {
        self.role.is_upkeep(name)
    }

    fn is_unsolicited(&self, from: Side, name: &str, fields: &dyn Fn() -> Json) -> bool {
        self.role.is_upkeep(name) || self.role.is_unsolicited(from, name, fields)
    }

    fn is_learnt_from(&self, name: &str) -> bool {
        self.role.is_learnt_from(name)
    }

    fn refusal(&self, name: &str, fields: &Json) -> Option<String> {
        self.role.refusal(name, fields)
    }

    fn correlation(&self) -> Option<&'static str> {
        self.role.correlation().filter(|_| self.own == Side::Client)
    }

    fn advice_on_refusal(&self, name: &str) -> Option<&'static str> {
        self.role.advice_on_refusal(name)
    }

    fn hears_relay(&self) -> bool {
        self.role.hears_relay()
    }
}
