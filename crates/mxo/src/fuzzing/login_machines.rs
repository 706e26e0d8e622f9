//! The login state machines, fed arbitrary messages and bytes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::testing::{Target, encoded};
use worldwire_core::{Field as _, Sampler, Side};

use crate::crypt::{KeyUse, PrivateKey, Random};
use crate::file::PublicKeyFile;
use crate::frame::Channel;
use crate::login::{
    AuthAccount, AuthAction, AuthClient, AuthClientConfig, AuthServer, AuthServerConfig,
    Background, CharacterData, Characters, LoginConfig, LoginConnection, LoginMessage, LoginTicket,
    MarginAction, MarginAnswer, MarginClient, MarginClientAction, MarginQuery, MarginServer,
    MarginServerConfig,
};
use crate::types::Str;

/// All targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "mxo_login_machines", run: machines, seeds: conversations },
    Target { name: "mxo_login_connection", run: connection, seeds: streams },
];

const NOW: u32 = 1_248_965_312;

/// An auth server's keys and an account.
static SERVER: LazyLock<(Arc<AuthServerConfig>, AuthAccount)> = LazyLock::new(|| {
    let mut random = random(1);
    let [server, user] = [KeyUse::Server, KeyUse::User]
        .map(|purpose| PrivateKey::generate(purpose, &mut random).expect("a key"));
    let modulus = server.public().modulus().try_into().expect("128 bytes");
    let public_key = PublicKeyFile { key_id: 4, modulus, exponent: 17, signature: [0; 256] };
    let account = AuthAccount {
        user_id: 28,
        name: "neo".into(),
        key: Arc::new(user),
        created: 5,
        characters: Characters::sample(&mut Sampler::new(3)).0,
        worlds: Vec::new(),
    };
    (Arc::new(AuthServerConfig::new(server, public_key)), account)
});

pub(super) fn random(seed: u8) -> Random {
    Random::new([seed; 32])
}

/// The auth server's private and public keys.
pub(super) fn server_keys() -> (&'static PrivateKey, &'static PublicKeyFile) {
    (&SERVER.0.key, &SERVER.0.public_key)
}

fn auth_server() -> AuthServer {
    AuthServer::new(Arc::clone(&SERVER.0), random(2))
}

fn auth_client() -> AuthClient {
    let public_key = Some(SERVER.0.public_key.clone());
    AuthClient::new(AuthClientConfig::new("neo", "zion", public_key), random(3))
}

fn margin_server() -> MarginServer {
    let key = SERVER.0.key.public().clone();
    let message_of_the_day = Some("Welcome".to_owned());
    MarginServer::new(Arc::new(MarginServerConfig { key, message_of_the_day }), random(4))
}

/// The ticket of a successful login.
static TICKET: LazyLock<LoginTicket> =
    LazyLock::new(|| talk_at_auth().1.expect("a login that succeeds"));

/// Runs a login between the two auth machines. Returns the bodies that each side sent.
pub(super) fn talk_at_auth() -> ([Vec<Vec<u8>>; 2], Option<LoginTicket>) {
    let (mut client, mut server) = (auth_client(), auth_server());
    let mut sent = [Vec::new(), Vec::new()];
    while let Some(message) = client.poll() {
        sent[0].push(body(&LoginMessage::AuthClient(message.clone())));
        server.handle(&message, NOW);
        for message in auth_actions(&mut server) {
            if let LoginMessage::AuthServer(message) = &message {
                client.handle(message);
            }
            sent[1].push(body(&message));
        }
    }
    (sent, client.outcome().and_then(Result::ok))
}

/// Runs a login at a margin server until a character is loaded. Returns the bodies that each side
/// sent.
pub(super) fn talk_at_margin() -> [Vec<Vec<u8>>; 2] {
    let mut client = MarginClient::new(TICKET.clone(), random(5));
    let mut server = margin_server();
    let mut sent = [Vec::new(), Vec::new()];
    let mut has_asked = false;
    while let Some(action) = client.poll() {
        if let MarginClientAction::Send(message) = action {
            sent[0].push(body(&LoginMessage::MarginClient(Box::new(message.clone()))));
            server.handle(message, NOW);
            for message in margin_actions(&mut server) {
                sent[1].push(body(&message));
                if let LoginMessage::MarginServer(message) = message {
                    client.handle(message);
                }
            }
        }
        if client.is_open() && !core::mem::replace(&mut has_asked, true) {
            client.claim(Str::new("Trinity").unwrap_or_default());
            client.create(crate::login::CreateCharacterRequest::sample(&mut Sampler::new(3)));
            client.delete(2);
            client.load(2);
        }
    }
    sent
}

/// Carries out a server's actions and returns what it sends.
fn auth_actions(server: &mut AuthServer) -> Vec<LoginMessage<'static>> {
    let mut sent = Vec::new();
    while let Some(action) = server.poll() {
        match action {
            AuthAction::Send(message) => sent.push(LoginMessage::AuthServer(message)),
            AuthAction::Query(_) => server.answer(Ok(SERVER.1.clone()), NOW),
            AuthAction::Close(_) => {}
        }
    }
    sent
}

fn margin_actions(server: &mut MarginServer) -> Vec<LoginMessage<'static>> {
    let mut sent = Vec::new();
    while let Some(action) = server.poll() {
        match action {
            MarginAction::Send(message) => sent.push(LoginMessage::MarginServer(message)),
            MarginAction::Query(query) => {
                let answer = match query {
                    MarginQuery::Account { .. } => MarginAnswer::Account(true),
                    MarginQuery::Claim { .. } => MarginAnswer::Claimed(Ok(7)),
                    MarginQuery::Delete { .. } => {
                        MarginAnswer::Deleted(crate::login::LoginStatus::Success)
                    }
                    MarginQuery::Create { .. } | MarginQuery::Load { .. } => {
                        MarginAnswer::Loaded(Ok(Box::new(character())))
                    }
                };
                server.answer(answer, NOW);
            }
            _ => {}
        }
    }
    sent
}

fn character() -> CharacterData {
    CharacterData {
        background: Background::sample(&mut Sampler::new(1)),
        inventory: Vec::new(),
        loaded_abilities: Vec::new(),
        known_abilities: Vec::new(),
        hardlines: Vec::new(),
        access_nodes: Vec::new(),
        code_recipes: Vec::new(),
        contacts: Vec::new(),
    }
}

fn body(message: &LoginMessage<'_>) -> Vec<u8> {
    encoded(|writer| message.encode(writer)).expect("a message that a machine sends")
}

/// The first byte selects the machine; messages follow, each preceded by its length. The other side
/// must be able to read whatever a machine sends.
fn machines(data: &[u8]) {
    let (choice, data) = data.split_first().unwrap_or((&0, data));
    let (channel, from) = match choice % 4 {
        0 => (Channel::Auth, Side::Client),
        1 => (Channel::Auth, Side::Server),
        2 => (Channel::Margin, Side::Client),
        _ => (Channel::Margin, Side::Server),
    };
    let (mut auth, mut margin) = (auth_server(), margin_server());
    let mut clients = (auth_client(), MarginClient::new(TICKET.clone(), random(5)));
    for message in messages(data) {
        let Ok(message) = LoginMessage::decode_strictly(message, channel, from) else { continue };
        let mut sent = Vec::new();
        match message {
            LoginMessage::AuthClient(message) => {
                auth.handle(&message, NOW);
                sent = auth_actions(&mut auth);
            }
            LoginMessage::AuthServer(message) => {
                clients.0.handle(&message);
                let next = core::iter::from_fn(|| clients.0.poll());
                sent.extend(next.map(LoginMessage::AuthClient));
            }
            LoginMessage::MarginClient(message) => {
                margin.handle(*message, NOW);
                sent = margin_actions(&mut margin);
            }
            LoginMessage::MarginServer(message) => {
                clients.1.handle(message);
                while let Some(action) = clients.1.poll() {
                    if let MarginClientAction::Send(message) = action {
                        sent.push(LoginMessage::MarginClient(Box::new(message)));
                    }
                }
            }
            LoginMessage::Other { .. } => {}
        }
        assert!(sent.len() <= 16, "{} replies", sent.len());
        for message in sent {
            let read = body(&message);
            let read = LoginMessage::decode_strictly(&read, channel, from.other()).map(drop);
            assert_eq!(read, Ok(()));
        }
    }
}

/// Messages, each preceded by a two-byte length.
fn messages(mut data: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk()
        && found.len() < 32
    {
        let (message, rest) =
            rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        found.push(message);
        data = rest;
    }
    found
}

fn conversations() -> Vec<Vec<u8>> {
    let join = |choice: u8, bodies: &Vec<Vec<u8>>| {
        let mut seed = vec![choice];
        for body in bodies {
            seed.extend(u16::try_from(body.len()).unwrap_or(0).to_le_bytes());
            seed.extend(body);
        }
        seed
    };
    let all = [talk_at_auth().0, talk_at_margin()];
    (0..).zip(all.iter().flatten()).map(|(choice, bodies)| join(choice, bodies)).collect()
}

/// The first byte selects the channel, side and key; the rest arrives in two parts, split at any
/// point.
fn connection(data: &[u8]) {
    let Some(([choice, cut], data)) = data.split_first_chunk() else { return };
    let channel = if choice & 1 == 0 { Channel::Auth } else { Channel::Margin };
    let from = if choice & 2 == 0 { Side::Client } else { Side::Server };
    let read = |cut: usize| {
        let config = Arc::new(LoginConfig::server(channel, Duration::ZERO));
        let mut connection = match from {
            Side::Client => LoginConnection::server(config, &[1; 16], Duration::ZERO),
            Side::Server => LoginConnection::client(config, &[1; 16], Duration::ZERO),
        };
        if choice & 4 != 0 {
            connection.set_key(crate::crypt::SessionKey::new(&[7; 16]));
        }
        let (head, tail) = data.split_at(cut.min(data.len()));
        let mut events = Vec::new();
        for part in [head, tail] {
            connection.input(Duration::ZERO, from, Input::Bytes(part));
            while let Some(event) = connection.poll_event() {
                events.push(format!("{event:?}"));
            }
        }
        events
    };
    assert_eq!(
        read(usize::from(*cut)),
        read(data.len()),
        "the events depend on where the stream is cut"
    );
}

fn streams() -> Vec<Vec<u8>> {
    let framed = |choice: u8, bodies: &Vec<Vec<u8>>| {
        let mut seed = vec![choice, 9];
        for body in bodies {
            let frame = crate::frame::TcpFrame::of(body);
            seed.extend(encoded(|writer| frame.encode(writer)).unwrap_or_default());
        }
        seed
    };
    let [auth, margin] = [talk_at_auth().0, talk_at_margin()];
    [(0, &auth[0]), (2, &auth[1]), (1, &margin[0]), (3, &margin[1]), (5, &margin[0])]
        .map(|(choice, bodies)| framed(choice, bodies))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let [auth, margin] = [talk_at_auth().0, talk_at_margin()];
        let counts = [&auth, &margin].map(|[client, server]| (client.len(), server.len()));
        // Thirteen parts of a character, twice.
        assert_eq!(counts, [(3, 3), (8, 32)]);
    }
}
