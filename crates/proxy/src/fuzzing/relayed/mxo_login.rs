//! MxO's auth and margin channels, with the key of the session.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::connection::{Connection as _, Event, EventOf, SendError};
use worldwire_core::{Field as _, Sampler, Side, Writer};
use worldwire_dissect::{Definitions, Keys};
use worldwire_mxo::crypt::{KeyFile, KnownSession, SessionKey};
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    CertChallenge, CertChallengeResponse, CertConnectRequest, GetPublicKeyRequest, LoginConfig,
    LoginConnection, LoginMessage, SignedCertificate,
};
use worldwire_mxo::types::Bytes16;

use super::choices::Choices;
use super::end::{Bare, Heard, Machine, Speaker};
use super::model::StreamModel;
use super::{Content, Network, World, start};

const KEY: [u8; 16] = [0x4b; 16];
/// The opcode of the challenge.
const CERT_CHALLENGE: u8 = 2;
/// The time since 1970 when a play begins.
const EPOCH: Duration = Duration::from_secs(1_248_965_312);
/// Longer than any play, because these ends send no keep-alives.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Cached, because reading them takes longer than a run.
static DEFINITIONS: LazyLock<Arc<Definitions>> =
    LazyLock::new(|| Arc::new(Definitions::built_in()));
static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| {
    let session = KnownSession { id: None, key: SessionKey::new(&KEY) };
    Arc::new(Keys::parse(&KeyFile::format_session(&session)).expect("a key file"))
});

/// Creates a conversation on the channel that the choices select.
pub(super) fn world(choices: &mut Choices) -> World {
    let channel = if choices.percent(50) { Channel::Auth } else { Channel::Margin };
    let patient = |config: LoginConfig| {
        let (first_time, idle_time, message_time) = (PATIENCE, PATIENCE, PATIENCE);
        let max_message_bytes = 0x7fff;
        Arc::new(LoginConfig { first_time, idle_time, message_time, max_message_bytes, ..config })
    };
    let now = Duration::ZERO;
    let client = patient(LoginConfig::client(channel, EPOCH));
    let client = LoginConnection::client(client, &[1; 16], now);
    let server = patient(LoginConfig::server(channel, EPOCH));
    let server = LoginConnection::server(server, &[2; 16], now);
    let content = Arc::new(Content {
        can_add: true,
        added: <[u8]>::to_vec,
        make: Box::new(move |from, like, choices| make(channel, from, like, choices)),
        normal: |_, _| {},
        is_upkeep: |_| false,
    });
    let end = |side, connection| {
        let speaker = Login { channel, side };
        Box::new(Machine { side, connection, speaker, wrapping: Box::new(Bare) })
    };
    let (session, known) = start("mxo", &DEFINITIONS, &KEYS, false);
    World {
        ends: [end(Side::Client, client), end(Side::Server, server)],
        session,
        known,
        network: Network::default(),
        model: Box::new(StreamModel::new(Arc::clone(&content), true)),
        content,
        opening: opening(channel),
    }
}

/// The messages that reveal the channel and, on the margin channel, precede all encrypted ones.
fn opening(channel: Channel) -> Vec<(Side, Vec<u8>)> {
    if channel == Channel::Auth {
        let request = GetPublicKeyRequest { client_version: 467_417, key_id: 4 };
        return vec![(Side::Client, body(&LoginMessage::AuthClient(request.into())))];
    }
    let certificate = SignedCertificate::sample(&mut Sampler::new(1));
    let request = CertConnectRequest { certificate };
    let challenge = CertChallenge { blob: Bytes16(vec![1; 96].into()) };
    // The first encrypted message reveals the session.
    let response = CertChallengeResponse { challenge: [1; 16] };
    vec![
        (Side::Client, body(&LoginMessage::MarginClient(Box::new(request.into())))),
        (Side::Server, body(&LoginMessage::MarginServer(challenge.into()))),
        (Side::Client, body(&LoginMessage::MarginClient(Box::new(response.into())))),
    ]
}

fn body(message: &LoginMessage<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer).expect("a sample");
    writer.into_bytes()
}

/// Any message from a side. If another message is given, it has the same type.
fn make(channel: Channel, from: Side, like: Option<&[u8]>, choices: &mut Choices) -> Vec<u8> {
    let mut sampler = choices.sampler();
    loop {
        let sample = LoginMessage::sample(&mut sampler, channel, from);
        let made = body(&sample);
        let is_alike = like.is_none_or(|like| like.first() == made.first());
        let is_known = !matches!(sample, LoginMessage::Other { .. });
        if is_alike && is_known && LoginMessage::decode_strictly(&made, channel, from).is_ok() {
            return made;
        }
    }
}

#[derive(Debug)]
struct Login {
    channel: Channel,
    side: Side,
}

impl Login {
    /// Encrypts everything after the challenge.
    fn note(&self, connection: &mut LoginConnection, from: Side, body: &[u8]) {
        let is_challenge = body.first() == Some(&CERT_CHALLENGE) && from == Side::Server;
        if self.channel == Channel::Margin && is_challenge {
            connection.set_key(SessionKey::new(&KEY));
        }
    }
}

impl Speaker for Login {
    type Connection = LoginConnection;

    fn say(&mut self, connection: &mut LoginConnection, body: &[u8]) -> Result<(), SendError> {
        let message = LoginMessage::decode_strictly(body, self.channel, self.side);
        connection.send(&message.map_err(SendError::Encode)?)?;
        self.note(connection, self.side, body);
        Ok(())
    }

    fn hear(&mut self, event: EventOf<'_, LoginConnection>) -> Option<Heard> {
        let Event::Received(received) = event else { return None };
        Some(Heard::Message(received.bytes.to_vec()))
    }

    fn after(&mut self, connection: &mut LoginConnection, heard: &[Heard]) {
        for heard in heard {
            if let Heard::Message(body) = heard {
                self.note(connection, self.side.other(), body);
            }
        }
    }
}
