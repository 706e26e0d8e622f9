//! Conversations between a client and a server of any family through an
//! [`Exchange`](crate::Exchange), in virtual time. A random handler changes, drops, holds and adds
//! messages, and a [`Model`] says what each end must receive.

mod choices;
mod end;
mod ki;
mod model;
mod mxo;
mod mxo_login;
mod packet_model;
mod play;
mod tera;
mod uru;
mod wire;

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use worldwire_core::Side;
use worldwire_core::testing::Target;
use worldwire_dissect::{Definitions, Facts, Families, Keys, RelaySession, Start};

pub use choices::Choices;
pub use end::{End, Heard};
pub use model::StreamModel;
pub use play::Play;
pub use wire::Network;

use crate::exchange::{Counts, Known};
use crate::handler::{Effects, Handler, Next, Passing};

/// The targets that relay conversations.
pub(super) static TARGETS: &[Target] = &[
    Target { name: "ki_relay_decisions", run: |data| fuzz(FAMILIES[0], data), seeds },
    Target { name: "mxo_relay_decisions", run: |data| fuzz(FAMILIES[1], data), seeds },
    Target { name: "mxo_login_relay_decisions", run: |data| fuzz(MXO_LOGIN, data), seeds },
    Target { name: "tera_relay_decisions", run: |data| fuzz(FAMILIES[2], data), seeds },
    Target { name: "uru_relay_decisions", run: |data| fuzz(FAMILIES[3], data), seeds },
];

/// Creates a conversation of one family; the choices select the kind of conversation.
pub type MakeWorld = fn(&mut Choices) -> World;

/// All families, by name.
pub const FAMILIES: [MakeWorld; 4] = [ki::world, mxo::world, tera::world, uru::world];

/// MxO's login. Its game channel is one of the families above.
pub const MXO_LOGIN: MakeWorld = mxo_login::world;

/// The two ends of a conversation, and the relay between them.
pub struct World {
    /// The client and the server.
    pub ends: [Box<dyn End>; 2],
    /// The relay.
    pub session: Box<dyn RelaySession>,
    /// The proxy's definitions, keys and other knowledge.
    pub known: Known,
    /// The network between the ends and the proxy.
    pub network: Network,
    /// The source of the messages that the ends send.
    pub content: Arc<Content>,
    /// The first messages of the ends. They reveal the conversation's details to the proxy.
    pub opening: Vec<(Side, Vec<u8>)>,
    /// What the ends must receive.
    pub model: Box<dyn Model>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("known", &self.known).finish_non_exhaustive()
    }
}

/// Creates the messages that the ends of a conversation send.
pub struct Content {
    /// Whether the family's relays can add messages.
    pub can_add: bool,
    /// Converts a message as an end would send it to the form in which a relay adds it.
    added: fn(&[u8]) -> Vec<u8>,
    make: Box<MakeMessage>,
    normal: fn(Side, &mut [u8]),
    is_upkeep: fn(&str) -> bool,
}

/// Creates a message from a side. If another message is given, it has the same type.
type MakeMessage = dyn Fn(Side, Option<&[u8]>, &mut Choices) -> Vec<u8> + Send + Sync;

impl Content {
    /// A new message from a side.
    pub fn make(&self, from: Side, choices: &mut Choices) -> Vec<u8> {
        (self.make)(from, None, choices)
    }

    /// A new message of the same type as this one.
    fn make_like(&self, from: Side, body: &[u8], choices: &mut Choices) -> Vec<u8> {
        (self.make)(from, Some(body), choices)
    }

    /// A message without the parts that relays rewrite on their own, such as counters.
    fn normal(&self, from: Side, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        (self.normal)(from, &mut body);
        body
    }

    /// Whether the connections themselves send messages of this name.
    fn is_upkeep(&self, name: &str) -> bool {
        (self.is_upkeep)(name)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("can_add", &self.can_add).finish_non_exhaustive()
    }
}

/// How often each of these happens to a message, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// It is changed.
    pub change: u64,
    /// It is dropped.
    pub drop: u64,
    /// Another message is added before it, or sent back to its sender.
    pub add: u64,
    /// It is held for a set time.
    pub delay: u64,
    /// It is held until somebody decides.
    pub pause: u64,
}

impl Rates {
    /// Each of these happens to some messages, but most pass unchanged.
    pub const USUAL: Self = Self { change: 30, drop: 5, add: 5, delay: 1, pause: 1 };
    /// Something happens to most messages.
    pub const BUSY: Self = Self { change: 30, drop: 15, add: 20, delay: 8, pause: 8 };
    /// Messages pass unchanged.
    pub const NONE: Self = Self { change: 0, drop: 0, add: 0, delay: 0, pause: 0 };
    /// Every message is held until somebody decides.
    pub const PAUSE: Self = Self { pause: 100, ..Self::NONE };
}

/// A decision about a message held at a breakpoint.
#[derive(Clone, Debug)]
pub enum Decided {
    /// The message is sent as the handler left it.
    Sent,
    /// It is dropped.
    Dropped,
    /// It is sent with the fields shown at the breakpoint.
    Edited,
    /// Another message is sent in its place.
    Changed(Vec<u8>),
}

/// What the ends of a conversation must receive, and the random decisions about its messages.
///
/// All methods panic if the proxy or an end breaks a promise.
pub trait Model: fmt::Debug + Send {
    /// An end has sent a message.
    fn said(&mut self, from: Side, body: &[u8]);

    /// The proxy asks about a message.
    fn message(
        &mut self,
        choices: &mut Choices,
        rates: Rates,
        passing: &Passing<'_>,
        effects: &mut Effects,
    );

    /// A message was added outside a handler.
    fn added(&mut self, to: Side, body: Vec<u8>);

    /// The proxy has reported that a message is held at a breakpoint.
    fn reported(&mut self, number: u64, from: Side);

    /// Whether a held message still has the type that its name states, so that it can be edited.
    fn is_editable(&self, number: u64) -> bool {
        let _ = number;
        true
    }

    /// Whether a replacement for a held message is checked immediately.
    fn is_checked(&self, number: u64) -> bool {
        let _ = number;
        true
    }

    /// A decision was made about a held message.
    fn decided(&mut self, number: u64, decided: Decided);

    /// The proxy has noticed that time has passed.
    fn passed(&mut self, now: Duration);

    /// An end has received something.
    fn heard(&mut self, by: Side, heard: Heard);

    /// The proxy has passed on the end of a side's stream, so nothing can be added to the stream.
    fn ended(&mut self, from: Side) {
        let _ = from;
    }

    /// A side's messages no longer need to arrive.
    fn abandon(&mut self, from: Side);

    /// Checks that everything from a side has arrived. Called once its stream has ended.
    fn check_ended(&self, from: Side);

    /// Checks that everything that need not wait has left. Called when nothing is in transit.
    fn check_settled(&self);

    /// Whether nothing is held, and everything has arrived.
    fn is_finished(&self) -> bool;

    /// What the proxy must have counted.
    fn counts(&self) -> Counts;

    /// Whether the proxy may report this problem.
    fn allows(&self, problem: &str) -> bool {
        let _ = problem;
        false
    }

    /// A replacement for the message with this number, which is held at a breakpoint.
    fn replacement(
        &mut self,
        number: u64,
        choices: &mut Choices,
        content: &Content,
    ) -> Option<Vec<u8>>;
}

/// For how long a message is delayed: usually up to two seconds, sometimes up to a minute.
fn delay(choices: &mut Choices) -> Duration {
    let most = if choices.percent(10) { 60_000 } else { 2_000 };
    Duration::from_millis(choices.below(most))
}

/// What the random handler and the play share.
#[derive(Debug)]
struct Stage {
    choices: Choices,
    rates: Rates,
    model: Box<dyn Model>,
}

/// The random handler.
#[derive(Clone, Debug)]
struct Meddler(Arc<Mutex<Stage>>);

impl Meddler {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Meddler {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        let Stage { choices, rates, model } = &mut *self.stage();
        model.message(choices, *rates, passing, effects);
        Next::Done
    }
}

/// The relay of a family, and the proxy's knowledge.
fn start(
    family: &'static str,
    definitions: &Arc<Definitions>,
    keys: &Arc<Keys>,
    datagrams: bool,
) -> (Box<dyn RelaySession>, Known) {
    let facts = Facts::default();
    let start =
        Start { keys, definitions, facts: &facts, prepared: None, datagrams, midstream: false };
    let standard = Families::standard();
    let relay = standard
        .named(family)
        .map(|family| family.relay(&start, &mut |it| it.fill(7), Duration::ZERO));
    let session = relay.expect("a family").expect("a relay");
    let (definitions, keys) = (Arc::clone(definitions), Arc::clone(keys));
    (session, Known { family, definitions, keys })
}

/// Relays the conversation that the input describes.
fn fuzz(make: MakeWorld, data: &[u8]) {
    const MAX_STEPS: usize = 150;
    let mut choices = Choices::encoded(data);
    let world = make(&mut choices);
    let mut play = Play::new(world, choices, Rates::BUSY);
    play.steps(MAX_STEPS, true);
    play.finish();
}

/// Inputs of several lengths. Every input is a conversation.
fn seeds() -> Vec<Vec<u8>> {
    let seeds = (0..24_u64).map(|seed| {
        let mut sampler = worldwire_core::Sampler::new(seed);
        let length = 20 << (seed % 5);
        let mut bytes = sampler.bytes(length);
        // The first byte selects the kind of conversation.
        bytes[0] = seed.to_le_bytes()[0];
        bytes
    });
    seeds.collect()
}
