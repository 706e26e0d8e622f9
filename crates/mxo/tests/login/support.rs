//! Keys, accounts and conversations.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::connection::{CloseReason, Event, Sender as _};
use worldwire_core::json::Json;
use worldwire_core::testing::hex;
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Field as _, Sampler};
use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    AuthAccount, AuthAction, AuthClient, AuthClientConfig, AuthServer, AuthServerConfig,
    Background, BackgroundText, Character, CharacterData, CharacterStatus, KnownAccount,
    LoginConfig, LoginConnection, LoginMessage, LoginNews, LoginReceived, LoginRefusal,
    LoginSender, LoginStatus, LoginTicket, MarginAction, MarginAnswer, MarginClient,
    MarginClientAction, MarginQuery, MarginServer, MarginServerConfig, World, WorldLoad,
    WorldStatus, WorldType,
};
use worldwire_mxo::types::{Padded, Str};

/// The time at which all conversations begin.
pub(crate) const NOW: u32 = 1_248_965_312;

/// The test keys of the conformance vectors.
pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mxo-login/keys.json");
    let json: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let key = |name: &str, purpose| {
        let number = |part| hex(&json[name], part).unwrap();
        PrivateKey::from_exponent(purpose, &number("n"), &number("d")).unwrap()
    };
    Keys {
        signing: key("signing_2048", KeyUse::Signing),
        server: key("server_1024", KeyUse::Server),
        user: Arc::new(key("user_768", KeyUse::User)),
    }
});

pub(crate) struct Keys {
    pub(crate) signing: PrivateKey,
    pub(crate) server: PrivateKey,
    pub(crate) user: Arc<PrivateKey>,
}

pub(crate) fn random(seed: u8) -> Random {
    Random::new([seed; 32])
}

pub(crate) fn public_key() -> PublicKeyFile {
    PublicKeyFile::sign(4, KEYS.server.public(), &KEYS.signing, &mut random(9)).unwrap()
}

pub(crate) fn auth_config() -> AuthServerConfig {
    AuthServerConfig::new(KEYS.server.clone(), public_key())
}

pub(crate) fn account() -> AuthAccount {
    AuthAccount {
        user_id: 28,
        name: "neo".into(),
        key: Arc::clone(&KEYS.user),
        created: 1_100_000_000,
        characters: vec![Character {
            reserved: 0,
            id: 2,
            status: CharacterStatus::Ready,
            world_id: 1,
            handle: Str::new("Neo").unwrap(),
        }],
        worlds: vec![World {
            reserved: 0,
            id: 1,
            name: Padded::new("Reality").unwrap(),
            status: WorldStatus::Open,
            type_: WorldType::NoPvp,
            client_version: AuthClientConfig::CLIENT_VERSION,
            unknown1: 1,
            load: WorldLoad::Low,
        }],
    }
}

/// Checks a password as a server does.
pub(crate) fn accounts(name: &str, password: &str) -> Result<AuthAccount, LoginStatus> {
    match (name, password) {
        ("neo", "zion") => Ok(account()),
        ("smith", _) => Err(LoginStatus::Banned),
        _ => Err(LoginStatus::WrongPassword),
    }
}

pub(crate) fn connections(channel: Channel, conditions: Conditions) -> Pair<LoginConnection> {
    let [client, server] = ends(channel);
    Pair::new(client, server, conditions)
}

/// A client and a server.
pub(crate) fn ends(channel: Channel) -> [LoginConnection; 2] {
    let epoch = Duration::from_secs(NOW.into());
    let server = Arc::new(LoginConfig::server(channel, epoch));
    let client = Arc::new(LoginConfig::client(channel, epoch));
    [
        LoginConnection::client(client, &[1; 16], Duration::ZERO),
        LoginConnection::server(server, &[2; 16], Duration::ZERO),
    ]
}

/// What happens at a relay.
pub(crate) type OnRelay<'f> = dyn FnMut(Event<LoginReceived<'_>, LoginNews>, &mut LoginSender) + 'f;

/// The outcome of a login.
pub(crate) struct AuthEnd {
    pub(crate) outcome: Option<Result<LoginTicket, LoginRefusal>>,
    /// Why the server closed the connection, if it did.
    pub(crate) refusal: Option<LoginRefusal>,
    /// Whether a connection had a fault.
    pub(crate) fault: Option<String>,
}

/// Logs in at an auth server.
pub(crate) fn log_in(
    server: AuthServerConfig,
    client: AuthClientConfig,
    conditions: Conditions,
) -> AuthEnd {
    log_in_over(&mut connections(Channel::Auth, conditions), server, client, &mut |_, _| {})
}

/// The messages of both sides during a login at an auth server.
pub(crate) fn auth_streams() -> [Vec<u8>; 2] {
    let mut pair = connections(Channel::Auth, Conditions::default());
    let end = log_in_over(&mut pair, auth_config(), client_config("neo", "zion"), &mut |_, _| {});
    assert!(end.outcome.unwrap().is_ok());
    pair.written
}

pub(crate) fn log_in_over(
    pair: &mut Pair<LoginConnection>,
    server: AuthServerConfig,
    client: AuthClientConfig,
    on_relay: &mut OnRelay<'_>,
) -> AuthEnd {
    let mut client = AuthClient::new(client, random(1));
    let mut server = AuthServer::new(Arc::new(server), random(2));
    let mut end = AuthEnd { outcome: None, refusal: None, fault: None };
    while let Some(message) = client.poll() {
        send(&mut pair.client, LoginMessage::AuthClient(message));
    }
    pair.settle(|member, event, sender| match (member, event) {
        (Member::Relay, event) => on_relay(event, sender),
        (Member::Client, Event::Received(received)) => {
            client.receive(&received);
            while let Some(message) = client.poll() {
                sender.send(&LoginMessage::AuthClient(message)).unwrap();
            }
            end.outcome = end.outcome.take().or_else(|| client.outcome());
        }
        (Member::Server, Event::Received(received)) => {
            server.receive(&received, NOW);
            while let Some(action) = server.poll() {
                match action {
                    AuthAction::Send(message) => {
                        sender.send(&LoginMessage::AuthServer(message)).unwrap();
                    }
                    AuthAction::Query(query) => {
                        server.answer(accounts(&query.name, &query.password), NOW);
                    }
                    AuthAction::Close(refusal) => {
                        end.refusal = refusal;
                        sender.close();
                    }
                }
            }
        }
        (_, Event::Fault { error, .. }) => end.fault = Some(error.to_string()),
        _ => {}
    });
    end
}

pub(crate) fn send(connection: &mut LoginConnection, message: LoginMessage<'_>) {
    worldwire_core::connection::Connection::send(connection, &message).unwrap();
}

pub(crate) fn client_config(name: &str, password: &str) -> AuthClientConfig {
    AuthClientConfig {
        signing_key: Some(KEYS.signing.public().clone()),
        ..AuthClientConfig::new(name, password, Some(public_key()))
    }
}

pub(crate) fn ticket() -> LoginTicket {
    let end = log_in(auth_config(), client_config("neo", "zion"), Conditions::default());
    end.outcome.unwrap().unwrap()
}

/// A margin server with one character and the client's side of a conversation with it.
pub(crate) struct Margin {
    pub(crate) pair: Pair<LoginConnection>,
    pub(crate) client: MarginClient,
    pub(crate) server: MarginServer,
    /// Everything that the client's machine reports, as text.
    pub(crate) news: Vec<String>,
    /// The bodies that the client has received.
    pub(crate) bodies: Vec<Vec<u8>>,
    pub(crate) refusal: Option<LoginRefusal>,
    pub(crate) fault: Option<String>,
    pub(crate) closed: Option<CloseReason>,
    /// The session as each side knows it.
    pub(crate) sessions: [Option<(u32, [u8; 16])>; 2],
    /// The accounts that a relay finds.
    pub(crate) accounts: Vec<Arc<KnownAccount>>,
    pub(crate) on_relay: Box<OnRelay<'static>>,
}

impl Margin {
    pub(crate) fn new(ticket: LoginTicket, motd: Option<&str>, conditions: Conditions) -> Self {
        Self::over(connections(Channel::Margin, conditions), ticket, motd)
    }

    pub(crate) fn over(
        pair: Pair<LoginConnection>,
        ticket: LoginTicket,
        motd: Option<&str>,
    ) -> Self {
        let config = MarginServerConfig {
            key: KEYS.server.public().clone(),
            message_of_the_day: motd.map(str::to_owned),
        };
        Self {
            pair,
            client: MarginClient::new(ticket, random(3)),
            server: MarginServer::new(Arc::new(config), random(4)),
            news: Vec::new(),
            bodies: Vec::new(),
            refusal: None,
            fault: None,
            closed: None,
            sessions: [None, None],
            accounts: Vec::new(),
            on_relay: Box::new(|_, _| {}),
        }
    }

    /// A conversation whose session is open.
    pub(crate) fn open() -> Self {
        let mut margin = Self::new(ticket(), None, Conditions::default());
        margin.run();
        assert!(margin.client.is_open(), "{:?} {:?}", margin.refusal, margin.fault);
        margin
    }

    /// Runs until nothing more happens.
    pub(crate) fn run(&mut self) {
        self.run_for(Duration::ZERO);
        if let Some(relay) = &mut self.pair.relay
            && let Some(modulus) = relay.wanted_account()
        {
            let is_it =
                |account: &&Arc<KnownAccount>| account.certificate.certificate.modulus == *modulus;
            let account = self.accounts.iter().find(is_it).cloned();
            relay.set_account(account);
            self.run_for(Duration::ZERO);
        }
    }

    /// Runs for this time.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let Self { pair, client, server, news, bodies, refusal, fault, closed, sessions, .. } =
            self;
        let on_relay = &mut self.on_relay;
        let mut begin = Vec::new();
        while let Some(action) = client.poll() {
            begin.push(action);
        }
        for action in begin {
            client_action(action, news, &mut sessions[0], pair.client.sender_mut());
        }
        while let Some(action) = server.poll() {
            let sender = pair.server.sender_mut();
            server_action(action, server, refusal, &mut sessions[1], sender);
        }
        let on = |member, event: Event<LoginReceived<'_>, _>, sender: &mut _| match (member, event)
        {
            (Member::Relay, event) => on_relay(event, sender),
            (Member::Client, Event::Received(received)) => {
                bodies.push(received.bytes.to_vec());
                client.receive(&received);
                while let Some(action) = client.poll() {
                    client_action(action, news, &mut sessions[0], sender);
                }
            }
            (Member::Server, Event::Received(received)) => {
                server.receive(&received, NOW);
                while let Some(action) = server.poll() {
                    server_action(action, server, refusal, &mut sessions[1], sender);
                }
            }
            (_, Event::Fault { error, .. }) => *fault = Some(error.to_string()),
            (Member::Server, Event::Closed(reason)) => *closed = Some(reason),
            _ => {}
        };
        match time {
            Duration::ZERO => pair.settle(on),
            time => pair.run_until(pair.now + time, on),
        }
    }
}

/// Access to the sender of a connection.
pub(crate) trait SenderMut {
    fn sender_mut(&mut self) -> &mut LoginSender;
}

impl SenderMut for LoginConnection {
    fn sender_mut(&mut self) -> &mut LoginSender {
        worldwire_core::connection::Connection::sender(self)
    }
}

fn client_action(
    action: MarginClientAction,
    news: &mut Vec<String>,
    session: &mut Option<(u32, [u8; 16])>,
    sender: &mut LoginSender,
) {
    match action {
        MarginClientAction::Send(message) => {
            sender.send(&LoginMessage::MarginClient(Box::new(message))).unwrap();
        }
        MarginClientAction::SetKey(key) => sender.set_key(key),
        MarginClientAction::Opened { session_id, key } => {
            *session = Some((session_id, *key.as_bytes()));
        }
        MarginClientAction::Part(part) => {
            news.push(format!("part {} {} {}", part.number, part.kind, part.status));
        }
        other => news.push(format!("{other:?}")),
    }
}

fn server_action(
    action: MarginAction,
    server: &mut MarginServer,
    refusal: &mut Option<LoginRefusal>,
    session: &mut Option<(u32, [u8; 16])>,
    sender: &mut LoginSender,
) {
    match action {
        MarginAction::Send(message) => sender.send(&LoginMessage::MarginServer(message)).unwrap(),
        MarginAction::SetKey(key) => sender.set_key(key),
        MarginAction::Query(query) => server.answer(owner(&query), NOW),
        MarginAction::Opened { session_id, key } => {
            *session = Some((session_id, *key.as_bytes()));
        }
        MarginAction::Close(why) => {
            *refusal = Some(why);
            sender.close();
        }
    }
}

/// Account management with a single character, 2.
fn owner(query: &MarginQuery) -> MarginAnswer {
    match query {
        MarginQuery::Account { user_id, name } => {
            MarginAnswer::Account((*user_id, name.as_str()) == (28, "neo"))
        }
        MarginQuery::Claim { handle } if handle.eq_ignore_ascii_case("neo") => {
            MarginAnswer::Claimed(Err(LoginStatus::NameInUse))
        }
        MarginQuery::Claim { .. } => MarginAnswer::Claimed(Ok(0x1_0000_0003)),
        MarginQuery::Create { character_id: 0x1_0000_0003, .. }
        | MarginQuery::Load { character_id: 2 } => MarginAnswer::Loaded(Ok(character().into())),
        MarginQuery::Create { .. } | MarginQuery::Load { .. } => {
            MarginAnswer::Loaded(Err(LoginStatus::CharacterInUse))
        }
        MarginQuery::Delete { character_id: 2 } => MarginAnswer::Deleted(LoginStatus::Success),
        MarginQuery::Delete { .. } => MarginAnswer::Deleted(LoginStatus::InvalidName),
    }
}

pub(crate) fn character() -> CharacterData {
    let text = BackgroundText::sample(&mut Sampler::new(1));
    CharacterData {
        background: Background { appearance: Some([7; 9]), text: Box::new(text) },
        inventory: Vec::new(),
        loaded_abilities: Vec::new(),
        known_abilities: Vec::new(),
        hardlines: Vec::new(),
        access_nodes: Vec::new(),
        code_recipes: Vec::new(),
        contacts: Vec::new(),
    }
}
