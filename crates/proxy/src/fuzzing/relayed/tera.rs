//! TERA: with messages that carry a counter and a checksum, which the server verifies.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, EventOf, Piece as _, SendError};
use worldwire_dissect::{Definitions, Keys};
use worldwire_tera::connection::{Config, Connection};
use worldwire_tera::crypt::exchange::{Key, Variant};
use worldwire_tera::frame::CHECK_VERSION;
use worldwire_tera::integrity::{self, Verdict, verify};

use super::choices::Choices;
use super::end::{Bare, Heard, Machine, Speaker};
use super::model::StreamModel;
use super::{Content, Network, World, start};

/// The build's revision and the opcodes of its messages.
const REVISION: u32 = 999_001;
const LOGIN_ACCOUNT_INFO: u16 = 30_112;
const PING: u16 = 30_113;
const PONG: u16 = 30_114;
const PLAIN: [u16; 2] = [1, 2];
const SIGNED: [u16; 2] = [3, 4];
/// The seed of checksums.
const SEED: u32 = 0x1234_5678;
/// The interval at which the server pings.
const PING_EVERY: Duration = Duration::from_secs(30);

/// Cached, because reading them takes longer than a run.
static DEFINITIONS: LazyLock<Arc<Definitions>> = LazyLock::new(|| {
    let map = format!(
        "C_CHECK_VERSION = {CHECK_VERSION}\nS_LOGIN_ACCOUNT_INFO = {LOGIN_ACCOUNT_INFO}\n\
         C_PLAIN = 1\nC_OTHER = 2\nC_SIGNED = 3\nC_ALSO_SIGNED = 4\n\
         S_PING = {PING}\nC_PONG = {PONG}\n"
    );
    let files = [
        (format!("protocol.{REVISION}.map"), map),
        ("revisions.json".to_owned(), format!("{{ \"{REVISION}\": \"eu-98.02\" }}")),
        ("integrity/98.json".to_owned(), "[\"C_SIGNED\", \"C_ALSO_SIGNED\"]".to_owned()),
        (
            "S_LOGIN_ACCOUNT_INFO.1.def".to_owned(),
            "uint64 accountId\nuint32 integrityIv\n".to_owned(),
        ),
    ];
    let mut definitions = Definitions::built_in();
    let mistakes = definitions.add(files.iter().map(|(name, text)| (&**name, &**text)));
    assert_eq!(mistakes, Some(Vec::new()));
    Arc::new(definitions)
});
static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| Arc::new(Keys::none()));

/// Creates a conversation of the kind that the choices select.
pub(super) fn world(choices: &mut Choices) -> World {
    let variant = Variant::ALL[choices.index(Variant::ALL.len())];
    let is_seeded = choices.percent(50);
    let integrity = HashSet::from(SIGNED);
    let config = |integrity| Arc::new(Config { variant, integrity, ..Config::default() });
    let now = Duration::ZERO;
    let client = Connection::client(config(integrity), [key(1), key(2)], now);
    let server = Connection::server(config(HashSet::new()), [key(3), key(4)], now);
    let content = Arc::new(Content {
        can_add: true,
        added: <[u8]>::to_vec,
        make: Box::new(make),
        normal: |from, body| {
            if from == Side::Client && opcode(body).is_some_and(|it| SIGNED.contains(&it)) {
                body.iter_mut().take(integrity::HEADER_BYTES).skip(4).for_each(|it| *it = 0);
            }
        },
        is_upkeep: |name| matches!(name, "tera.S_PING" | "tera.C_PONG"),
    });
    let mut opening = vec![(Side::Client, check_version())];
    if is_seeded {
        let body = [&5_u64.to_le_bytes()[..], &SEED.to_le_bytes()].concat();
        opening.push((Side::Server, message(LOGIN_ACCOUNT_INFO, &body)));
    }
    let end = |side, connection| {
        let ping_at = (side == Side::Server).then_some(PING_EVERY);
        let speaker = Tera { side, seed: None, counters: HashMap::new(), ping_at, pings: 0 };
        Box::new(Machine { side, connection, speaker, wrapping: Box::new(Bare) })
    };
    let (session, known) = start("tera", &DEFINITIONS, &KEYS, false);
    World {
        ends: [end(Side::Client, client), end(Side::Server, server)],
        session,
        known,
        network: Network::default(),
        model: Box::new(StreamModel::new(Arc::clone(&content), true)),
        content,
        opening,
    }
}

const fn key(seed: u8) -> Key {
    let mut key = [seed; 128];
    key[0] = !seed;
    key[100] = seed ^ 0x55;
    key
}

fn message(opcode: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4).unwrap_or(u16::MAX);
    [&length.to_le_bytes()[..], &opcode.to_le_bytes(), body].concat()
}

/// The client's first message, which names its build.
fn check_version() -> Vec<u8> {
    let [count, first, second] = [2_u16, 8, 20].map(u16::to_le_bytes);
    let versions = [0, REVISION, 1, REVISION].map(u32::to_le_bytes);
    let [index, value, next_index, next_value] = &versions;
    let parts: [&[u8]; 10] =
        [&count, &first, &first, &second, index, value, &second, &[0, 0], next_index, next_value];
    message(CHECK_VERSION, &parts.concat())
}

fn opcode(body: &[u8]) -> Option<u16> {
    let [_, _, low, high] = *body.first_chunk()?;
    Some(u16::from_le_bytes([low, high]))
}

fn make(from: Side, like: Option<&[u8]>, choices: &mut Choices) -> Vec<u8> {
    let length = if choices.percent(3) { 5000 } else { 60 };
    let length = choices.index(length);
    let mut sampler = choices.sampler();
    let index = usize::try_from(sampler.below(2)).unwrap_or(0);
    let is_signed = from == Side::Client && sampler.below(2) == 0;
    let rest = sampler.bytes(length);
    let any = if is_signed { SIGNED[index] } else { PLAIN[index] };
    let number = like.and_then(opcode).unwrap_or(any);
    match from == Side::Client && SIGNED.contains(&number) {
        true => message(number, &[&[0; 8][..], &rest].concat()),
        false => message(number, &rest),
    }
}

/// An end that knows the seed, and the counters of the client's messages.
#[derive(Debug)]
struct Tera {
    side: Side,
    seed: Option<u32>,
    counters: HashMap<u16, u32>,
    /// When the server pings again.
    ping_at: Option<Duration>,
    /// The number of pings that the client has to answer.
    pings: usize,
}

impl Tera {
    /// Checks the counter and checksum.
    fn check(&mut self, body: &mut [u8]) {
        let Some(opcode) = opcode(body).filter(|opcode| SIGNED.contains(opcode)) else { return };
        let counter = self.counters.entry(opcode).or_default();
        *counter += 1;
        let (found, checksum) = integrity::header(body).expect("room for both");
        assert_eq!(found, *counter, "the counter of opcode {opcode}");
        match self.seed {
            Some(seed) => assert_eq!(verify(body, seed), Verdict::Right),
            None => assert_eq!(checksum, 0),
        }
        body.iter_mut().take(integrity::HEADER_BYTES).skip(4).for_each(|it| *it = 0);
    }
}

impl Speaker for Tera {
    type Connection = Connection;

    fn say(&mut self, connection: &mut Connection, body: &[u8]) -> Result<(), SendError> {
        if opcode(body) == Some(LOGIN_ACCOUNT_INFO) {
            self.seed = Some(SEED);
        }
        connection.send(body)
    }

    fn hear(&mut self, event: EventOf<'_, Connection>) -> Option<Heard> {
        let Event::Received(received) = event else { return None };
        if !received.is_message() {
            return None;
        }
        if let Some(number @ (PING | PONG)) = opcode(received.bytes) {
            self.pings += usize::from(number == PING);
            return None;
        }
        let mut body = received.bytes.to_vec();
        if self.side == Side::Server {
            self.check(&mut body);
        }
        Some(Heard::Message(body))
    }

    fn due(&self) -> Option<Duration> {
        self.ping_at
    }

    fn send_due(&mut self, now: Duration, connection: &mut Connection) {
        self.ping_at = Some(now + PING_EVERY);
        connection.send(&message(PING, &[])).expect("room for a ping");
    }

    fn after(&mut self, connection: &mut Connection, heard: &[Heard]) {
        for _ in 0..core::mem::take(&mut self.pings) {
            // A closed connection refuses the message.
            let _ = connection.send(&message(PONG, &[]));
        }
        let is_seed = |heard: &&Heard| matches!(heard, Heard::Message(body) if opcode(body) == Some(LOGIN_ACCOUNT_INFO));
        if self.side == Side::Client && heard.iter().any(|it| is_seed(&it)) {
            connection.sender().set_integrity_seed(SEED).expect("a client");
        }
    }
}
