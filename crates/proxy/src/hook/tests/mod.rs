//! Hooks in virtual time, without I/O: an exchange between a client and a file server, whose
//! messages are pings, and hooks that the tests control line by line.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod added;
mod broken;
mod catching_up;
mod chain;
mod model;

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use tokio::sync::mpsc;
use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_core::json::{Json, Parser, json, parse};
use worldwire_dissect::{Definitions, Facts, Keys, Start, Time};

use super::hub::{Event, Hub, HubSettings};
use super::link::Link;
use super::protocol::{Action, FromHook, Reply};
use super::{HookEvent, Hooks};
use crate::{Exchange, Known, Report};

/// The connect packet of a client that downloads files.
const CONNECT: &str =
    "101f00000000002800000002000000219848ea356cd04b9daebb17c585e6800c0000009603000000000000";
/// The number of the conversation.
pub(super) const CONVERSATION: u64 = 7;

/// A proxy with one conversation.
pub(super) struct World {
    pub(super) hub: Arc<Hub>,
    pub(super) exchange: Exchange,
    pub(super) now: Duration,
    /// Keeps the channel of the conversation open.
    events: mpsc::Receiver<HookEvent>,
    /// The numbers of the messages that each side has received, by [`Side::index`].
    received: [Vec<u32>; 2],
}

/// A hook.
pub(super) struct Player {
    pub(super) link: Arc<Link>,
}

/// A ping with this number.
pub(super) fn ping(number: u32) -> Vec<u8> {
    [&[12, 0, 0, 0, 0, 0, 0, 0], &number.to_le_bytes()[..]].concat()
}

/// A ping in hexadecimal digits.
pub(super) fn hex(number: u32) -> String {
    let mut text = String::new();
    worldwire_core::value::push_hex(&mut text, &ping(number));
    text
}

impl World {
    pub(super) fn new(is_required: bool) -> Self {
        Self::with_sources(is_required, &[])
    }

    /// A proxy that expects hooks from these sources.
    pub(super) fn with_sources(is_required: bool, sources: &[&str]) -> Self {
        static DEFINITIONS: LazyLock<Arc<Definitions>> =
            LazyLock::new(|| Arc::new(Definitions::built_in()));
        let definitions = Arc::clone(&DEFINITIONS);
        let settings = HubSettings { is_required, answer_time: Duration::from_secs(1) };
        let sources = sources.iter().map(|source| (*source).to_owned());
        let hub = Arc::new(Hub::new(sources, settings, Arc::clone(&definitions)));
        let keys = Arc::new(Keys::none());
        let facts = Facts::default();
        let start = Start {
            keys: &keys,
            definitions: &definitions,
            facts: &facts,
            prepared: None,
            datagrams: false,
            midstream: false,
        };
        let family = definitions.families().named("uru").unwrap();
        let session = family.relay(&start, &mut |bytes| bytes.fill(7), Duration::ZERO).unwrap();
        let known = Known { family: "uru", definitions, keys };
        let running = tokio::sync::watch::channel(()).1;
        let hooks = Hooks { hub: Arc::clone(&hub), addresses: Vec::new(), running };
        let (joined, events) = hooks.join(CONVERSATION, known.clone(), None);
        let exchange = Exchange::new(session, Vec::new(), known, (CONVERSATION, Time(0)), None)
            .with_hooks(joined);
        let received = [Vec::new(), Vec::new()];
        let mut world = Self { hub, exchange, now: Duration::ZERO, events, received };
        let connect = worldwire_core::value::parse_hex(CONNECT).unwrap();
        world.exchange.input(world.now, Side::Client, Input::Bytes(&connect));
        while world.exchange.poll_transmit(Side::Server).is_some() {}
        world
    }

    /// A hook with these subscriptions.
    pub(super) fn hook(&self, name: &str, subscriptions: Json) -> Player {
        self.hook_with(name, subscriptions, &[])
    }

    /// Like [`hook`](Self::hook), with these members of the hello set to true.
    pub(super) fn hook_with(&self, name: &str, subscriptions: Json, set: &[&str]) -> Player {
        let mut hello = json!({"type": "hello", "version": 1, "name": name});
        hello["subscriptions"] = subscriptions;
        for member in set {
            hello[*member] = true.into();
        }
        let Ok(FromHook::Hello(hello)) =
            FromHook::parse(&hello.to_string(), &mut Parser::default())
        else {
            panic!("{hello}");
        };
        let player = Player { link: self.hub.enter(0, hello).unwrap() };
        player.lines();
        player
    }

    /// A side sends a ping.
    pub(super) fn send(&mut self, from: Side, number: u32) {
        self.exchange.input(self.now, from, Input::Bytes(&ping(number)));
        self.collect();
    }

    /// A client asks for the build. Unlike a ping, this never overtakes held messages.
    pub(super) fn ask_build(&mut self, number: u32) {
        let mut message = ping(number);
        message[4] = 10;
        self.exchange.input(self.now, Side::Client, Input::Bytes(&message));
        self.collect();
    }

    /// A hook says something.
    pub(super) fn say(&mut self, player: &Player, line: &Json) {
        let parsed = FromHook::parse(&line.to_string(), &mut Parser::default());
        let link = Arc::clone(&player.link);
        let event = match parsed.unwrap() {
            FromHook::Answer(id, reply) => {
                assert_eq!(id.conversation, CONVERSATION);
                Event::Answer(link, id.number, reply)
            }
            FromHook::Add(_, messages) => Event::Add(link, messages),
            FromHook::Sync(_, id) => Event::Sync(link, id),
            FromHook::Subscribe(wanted) => return self.hub.subscribe(&link, wanted).unwrap(),
            FromHook::Unsubscribe(ids) => return self.hub.unsubscribe(&link, &ids).unwrap(),
            other => panic!("{other:?}"),
        };
        self.event(event);
    }

    /// A hook answers a message.
    pub(super) fn answer(&mut self, player: &Player, message: &Json, what: Json) {
        let mut line = what;
        line["type"] = "answer".into();
        line["id"] = message["id"].clone();
        self.say(player, &line);
    }

    /// A hook replaces a message with many bytes.
    pub(super) fn replace(&mut self, player: &Player, message: &Json, bytes: Vec<u8>) {
        let (_, number) = message["id"].as_str().unwrap().split_once('.').unwrap();
        let reply = Reply { add: Vec::new(), action: Action::Bytes(bytes) };
        let number = number.parse().unwrap();
        self.event(Event::Answer(Arc::clone(&player.link), number, reply));
    }

    /// A hook ends.
    pub(super) fn leave(&mut self, player: &Player) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.hub.leave(&player.link));
        while let Ok(HookEvent(event)) = self.events.try_recv() {
            self.event(event);
        }
    }

    fn event(&mut self, event: Event) {
        self.exchange.hook(self.now, HookEvent(event));
        self.collect();
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.exchange.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.exchange.timeout(self.now);
        }
        self.now = end;
        self.collect();
    }

    fn collect(&mut self) {
        for side in Side::BOTH {
            let mut bytes = Vec::new();
            while let Some(more) = self.exchange.poll_transmit(side) {
                bytes.extend(more);
            }
            for message in bytes.chunks(12) {
                let number = u32::from_le_bytes(*message.last_chunk().unwrap());
                self.received[side.index()].push(number);
            }
        }
    }

    /// What a side has received since the last call.
    pub(super) fn received(&mut self, side: Side) -> Vec<u32> {
        core::mem::take(&mut self.received[side.index()])
    }

    /// The problems that were reported.
    pub(super) fn problems(&mut self) -> Vec<String> {
        let reports = core::iter::from_fn(|| self.exchange.poll_report());
        let problem = |report| if let Report::Problem(text) = report { Some(text) } else { None };
        reports.filter_map(problem).collect()
    }
}

impl Player {
    /// What the hook has been sent since the last call.
    pub(super) fn lines(&self) -> Vec<Json> {
        String::from_utf8(self.link.take())
            .unwrap()
            .lines()
            .map(|line| parse(line).unwrap())
            .collect()
    }

    /// The only message that it has been sent since the last call.
    pub(super) fn message(&self) -> Json {
        let lines = self.lines();
        let [line] = <[Json; 1]>::try_from(lines).unwrap();
        assert_eq!(line["type"].as_str(), Some("message"), "{line}");
        line
    }

    /// The texts of the errors that it has been sent since the last call.
    pub(super) fn errors(&self) -> Vec<String> {
        let is_error = |line: &Json| line["type"].as_str() == Some("error");
        let errors = self.lines().into_iter().filter(is_error);
        errors.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// The number of the ping in a message.
pub(super) fn number(message: &Json) -> u32 {
    u32::try_from(message["fields"]["pingTimeMs"].as_u64().unwrap()).unwrap()
}

/// The flags of a message.
pub(super) fn flags(message: &Json) -> Vec<&str> {
    message["flags"].as_array().unwrap().iter().filter_map(Json::as_str).collect()
}
