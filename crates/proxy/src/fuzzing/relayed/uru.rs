//! Uru: all services, plain and encrypted, with shared keys and with keys for each hop.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::connection::{Connection as _, Event, EventOf, SendError};
use worldwire_core::testing::sample_file;
use worldwire_core::{Reader, Side};
use worldwire_dissect::{Definitions, Keys};
use worldwire_uru::connection::{
    ClientConfig, Connection, Encryption, RelayKeys, ServerConfig, Unit,
};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service, table};

use super::choices::Choices;
use super::end::{Bare, Heard, Machine, Speaker};
use super::model::StreamModel;
use super::{Content, Network, World, start};

/// Cached, because reading them takes longer than a run.
static DEFINITIONS: LazyLock<Arc<Definitions>> =
    LazyLock::new(|| Arc::new(Definitions::built_in()));
static RING: LazyLock<KeyRing> = LazyLock::new(|| {
    let text = String::from_utf8(sample_file("uru-keys.toml")).expect("a text");
    KeyRing::parse(&text).expect("a key file")
});
/// Keys for each hop: first the same key for both, then a different one for each.
static KEYS: LazyLock<[Arc<Keys>; 2]> = LazyLock::new(|| {
    let mut shared = Keys::none();
    shared.set(RING.clone());
    let mut separate = Keys::none();
    separate.set(RelayKeys::Separate { own: RING.clone(), server: RING.clone() });
    [Arc::new(shared), Arc::new(separate)]
});

/// Creates a conversation of the kind that the choices select.
pub(super) fn world(choices: &mut Choices) -> World {
    let service = Service::ALL[choices.index(Service::ALL.len())];
    let keys = &KEYS[choices.index(2)];
    let key = RING.public(kind(service)).filter(|_| choices.percent(75)).cloned();
    let mut server = ServerConfig::new(RING.clone());
    server.encryption = Encryption::AllowPlain;
    let now = Duration::ZERO;
    let client = Connection::client(ClientConfig::new(service, key).into(), [0x5a; 64], now);
    let server = Connection::server(server.into(), [1, 2, 3, 4, 5, 6, 7], now);
    let content = Arc::new(Content {
        can_add: true,
        added: <[u8]>::to_vec,
        make: Box::new(move |from, like, choices| {
            let decoded = like.map(|body| Message::decode(service, from, &mut Reader::new(body)));
            let like = decoded.and_then(|message| Some(message.ok()?.number()));
            make(service, from, like, choices)
        }),
        normal: |_, _| {},
        is_upkeep: |name| name.ends_with(".PingRequest") || name.ends_with(".PingReply"),
    });
    let end = |side, connection| {
        let speaker = Uru { service, side };
        Box::new(Machine { side, connection, speaker, wrapping: Box::new(Bare) })
    };
    let (session, known) = start("uru", &DEFINITIONS, keys, false);
    World {
        ends: [end(Side::Client, client.expect("usable random bytes")), end(Side::Server, server)],
        session,
        known,
        network: Network::default(),
        model: Box::new(StreamModel::new(Arc::clone(&content), true)),
        content,
        opening: Vec::new(),
    }
}

fn kind(service: Service) -> ServerKind {
    match service {
        Service::Gatekeeper => ServerKind::Gatekeeper,
        Service::Game => ServerKind::Game,
        _ => ServerKind::Auth,
    }
}

/// Any message but a ping.
fn make(service: Service, from: Side, like: Option<u32>, choices: &mut Choices) -> Vec<u8> {
    let mut sampler = choices.sampler();
    let messages = table(service, from).messages;
    loop {
        let index = usize::try_from(sampler.below(messages.len() as u64)).unwrap_or(0);
        let number = like.unwrap_or(messages[index].number);
        if number == 0 {
            continue;
        }
        let message = Message::sample(service, from, number, &mut sampler);
        if let Some(Ok(bytes)) = message.map(|message| message.to_bytes()) {
            return bytes;
        }
    }
}

#[derive(Debug)]
struct Uru {
    service: Service,
    side: Side,
}

impl Speaker for Uru {
    type Connection = Connection;

    fn say(&mut self, connection: &mut Connection, body: &[u8]) -> Result<(), SendError> {
        let message = Message::decode(self.service, self.side, &mut Reader::new(body));
        connection.send(&message.map_err(SendError::Encode)?)
    }

    fn hear(&mut self, event: EventOf<'_, Connection>) -> Option<Heard> {
        let Event::Received(received) = event else { return None };
        let is_message = matches!(received.unit, Unit::Message(_));
        let is_ping = received.name().1.starts_with("Ping");
        (is_message && !is_ping).then(|| Heard::Message(received.bytes.to_vec()))
    }
}
