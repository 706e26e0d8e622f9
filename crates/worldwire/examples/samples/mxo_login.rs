//! A complete login to The Matrix Online between `worldwire client mxo` and `worldwire serve mxo`:
//! auth and margin over TCP, then the world over UDP.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::{SyntheticTcp, SyntheticUdp};
use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_core::value::parse_hex;
use worldwire_core::{Float, Rest, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, ServerConfig, Session};
use worldwire_mxo::crypt::{KeyFile, KeyUse, KnownSession, PrivateKey, Random, SessionKey};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    Ability, AuthAccount, AuthAction, AuthClient, AuthClientConfig, AuthServer, AuthServerConfig,
    Background, BackgroundText, CharacterData, InventoryItem, LoginConfig, LoginConnection,
    LoginMessage, LoginReceived, LoginSender, LoginStatus, LoginTicket, MarginAction, MarginAnswer,
    MarginClient, MarginClientAction, MarginQuery, MarginServer, MarginServerConfig, World,
    WorldLoad, WorldStatus, WorldType,
};
use worldwire_mxo::rpc::{
    Chat, ChatMessage, ChatScope, ClientRpc, Emote, EmoteId, Experience, Info, JackOutDone,
    JackOutFinished, LeaveWorld, LoadWorld, ReadyForSpawn, ServerRpc, WorldExit,
};
use worldwire_mxo::types::{Array, List8, Padded, Str};

use super::{DAY, Outcome, Tape};

/// Keys generated from fixed seeds, for tests only.
const KEYS: &str = include_str!("../../../../vectors/mxo-login/keys.json");
const ACCOUNT: &str = "merle";
const PASSWORD: &str = "white rabbit";
const HANDLE: &str = "Merle";
const CHARACTER: u64 = 191;

/// Writes the sample and the file that `serve mxo --secrets` writes.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    let mut tape = Tape::new(&folder.join("mxo-login.pcapng"), Duration::from_micros(240))?;
    let keys = Keys::read()?;
    let ticket = log_in(&keys, &mut tape)?;
    let (id, key) = choose(&keys, ticket, &mut tape)?;
    play(id, &key, &mut tape)?;
    let secrets = KeyFile::format_session(&KnownSession { id: Some(id), key });
    Ok(std::fs::write(folder.join("mxo-login-keys.toml"), secrets)?)
}

struct Keys {
    server: PrivateKey,
    user: Arc<PrivateKey>,
    public_key: PublicKeyFile,
}

impl Keys {
    fn read() -> Outcome<Self> {
        let json: serde_json::Value = serde_json::from_str(KEYS)?;
        let key = |name: &str, purpose| -> Outcome<PrivateKey> {
            let number = |part: &str| {
                let digits = json[name][part].as_str().and_then(parse_hex);
                digits.ok_or_else(|| format!("{name}.{part}"))
            };
            Ok(PrivateKey::from_exponent(purpose, &number("n")?, &number("d")?)?)
        };
        let signing = key("signing_2048", KeyUse::Signing)?;
        let server = key("server_1024", KeyUse::Server)?;
        let user = Arc::new(key("user_768", KeyUse::User)?);
        let public_key = PublicKeyFile::sign(4, server.public(), &signing, &mut random(9))?;
        Ok(Self { server, user, public_key })
    }
}

/// Real seeds are random.
fn random(seed: u8) -> Random {
    Random::new([seed; 32])
}

/// Both ends of a TCP connection and the wire between them.
struct Talk {
    ends: [LoginConnection; 2],
    wire: SyntheticTcp,
}

impl Talk {
    fn new(channel: Channel, ports: [u16; 2], tape: &mut Tape) -> Outcome<Self> {
        let epoch = Duration::from_secs(DAY.unsigned_abs());
        let client = Arc::new(LoginConfig::client(channel, epoch));
        let server = Arc::new(LoginConfig::server(channel, epoch));
        let ends = [
            LoginConnection::client(client, &[3; 16], tape.clock),
            LoginConnection::server(server, &[4; 16], tape.clock),
        ];
        let [from, to] = ports;
        let mut wire = SyntheticTcp::new(end(10, from), end(1, to));
        tape.capture(wire.open())?;
        Ok(Self { ends, wire })
    }

    /// Carries queued bytes to the other end until nothing is queued.
    fn exchange(
        &mut self,
        tape: &mut Tape,
        hear: &mut dyn FnMut(Side, &LoginReceived<'_>, &mut LoginSender) -> Outcome<()>,
    ) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    tape.capture(self.wire.data(side, &bytes))?;
                    let other = &mut self.ends[side.other().index()];
                    other.input(tape.clock, side, Input::Bytes(&bytes));
                }
                while let Some((event, sender)) = self.ends[side.index()].poll() {
                    quiet = false;
                    if let Event::Received(received) = event {
                        hear(side, &received, sender)?;
                    }
                }
            }
            if quiet {
                return Ok(());
            }
        }
    }
}

fn end(host: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), port)
}

fn now(tape: &Tape) -> u32 {
    u32::try_from(DAY.unsigned_abs() + tape.clock.as_secs()).unwrap_or_default()
}

/// Logs in at the auth server.
fn log_in(keys: &Keys, tape: &mut Tape) -> Outcome<LoginTicket> {
    let config = AuthClientConfig::new(ACCOUNT, PASSWORD, None);
    let mut client = AuthClient::new(config, random(1));
    let config = AuthServerConfig::new(keys.server.clone(), keys.public_key.clone());
    let mut server = AuthServer::new(Arc::new(config), random(2));
    let mut talk = Talk::new(Channel::Auth, [50_400, 11_000], tape)?;
    while let Some(message) = client.poll() {
        talk.ends[0].send(&LoginMessage::AuthClient(message))?;
    }
    let time = now(tape);
    talk.exchange(tape, &mut |side, received, sender| {
        if side == Side::Client {
            client.receive(received);
            while let Some(message) = client.poll() {
                sender.send(&LoginMessage::AuthClient(message))?;
            }
            return Ok(());
        }
        server.receive(received, time);
        while let Some(action) = server.poll() {
            match action {
                AuthAction::Send(message) => sender.send(&LoginMessage::AuthServer(message))?,
                AuthAction::Query(_) => server.answer(Ok(account(keys)?), time),
                AuthAction::Close(Some(refusal)) => return Err(refusal.to_string().into()),
                AuthAction::Close(None) => {}
            }
        }
        Ok(())
    })?;
    tape.capture(talk.wire.close())?;
    Ok(client.outcome().ok_or("the login ends")??)
}

fn account(keys: &Keys) -> Outcome<AuthAccount> {
    Ok(AuthAccount {
        user_id: 7,
        name: ACCOUNT.into(),
        key: Arc::clone(&keys.user),
        created: 1_767_000_000,
        characters: Vec::new(),
        worlds: vec![World {
            reserved: 0,
            id: 1,
            name: Padded::new("Reality")?,
            status: WorldStatus::Open,
            type_: WorldType::NoPvp,
            client_version: AuthClientConfig::CLIENT_VERSION,
            unknown1: 1,
            load: WorldLoad::Low,
        }],
    })
}

/// The session at the margin server: the player creates a character. Returns the session.
fn choose(keys: &Keys, ticket: LoginTicket, tape: &mut Tape) -> Outcome<(u32, SessionKey)> {
    let config = MarginServerConfig {
        key: keys.server.public().clone(),
        message_of_the_day: Some("Follow the white rabbit.".into()),
    };
    let mut server = MarginServer::new(Arc::new(config), random(4));
    let mut client = MarginClient::new(ticket, random(3));
    let mut talk = Talk::new(Channel::Margin, [50_401, 10_000], tape)?;
    let mut session = None;
    while let Some(MarginClientAction::Send(message)) = client.poll() {
        talk.ends[0].send(&LoginMessage::MarginClient(Box::new(message)))?;
    }
    let time = now(tape);
    talk.exchange(tape, &mut |side, received, sender| {
        if side == Side::Client {
            client.receive(received);
            while let Some(action) = client.poll() {
                match action {
                    MarginClientAction::Send(message) => {
                        sender.send(&LoginMessage::MarginClient(Box::new(message)))?;
                    }
                    MarginClientAction::SetKey(key) => sender.set_key(key),
                    MarginClientAction::Opened { session_id, key } => {
                        session = Some((session_id, key));
                        client.claim(Str::new(HANDLE)?);
                    }
                    MarginClientAction::Claimed { .. } => {
                        let character = worldwire_client::mxo::plain_character(
                            "Merle",
                            "Ambrose",
                            "A hacker.",
                        )?;
                        client.create(character);
                    }
                    _ => {}
                }
            }
            return Ok(());
        }
        server.receive(received, time);
        while let Some(action) = server.poll() {
            match action {
                MarginAction::Send(message) => sender.send(&LoginMessage::MarginServer(message))?,
                MarginAction::SetKey(key) => sender.set_key(key),
                MarginAction::Query(query) => server.answer(answer(&query)?, time),
                MarginAction::Close(refusal) => return Err(refusal.to_string().into()),
                MarginAction::Opened { .. } => {}
            }
        }
        Ok(())
    })?;
    // The hello has arrived on the game channel.
    server.established();
    while let Some(MarginAction::Send(message)) = server.poll() {
        talk.ends[1].send(&LoginMessage::MarginServer(message))?;
    }
    talk.exchange(tape, &mut |_, _, _| Ok(()))?;
    Ok(session.ok_or("the session is open")?)
}

fn answer(query: &MarginQuery) -> Outcome<MarginAnswer> {
    Ok(match query {
        MarginQuery::Account { .. } => MarginAnswer::Account(true),
        MarginQuery::Claim { .. } => MarginAnswer::Claimed(Ok(CHARACTER)),
        MarginQuery::Delete { .. } => MarginAnswer::Deleted(LoginStatus::InvalidName),
        MarginQuery::Create { .. } | MarginQuery::Load { .. } => {
            MarginAnswer::Loaded(Ok(Box::new(character()?)))
        }
    })
}

fn character() -> Outcome<CharacterData> {
    let text = BackgroundText {
        first_name: Padded::new("Merle")?,
        last_name: Padded::new("Ambrose")?,
        description: Padded::new("A hacker.")?,
        experience: 0,
        information: 250,
        unknown1: 1,
        conquest_points: 0,
        time: 1_767_000_000,
        reputation: Array([0; 7]),
        unknown2: 3,
        in_world: 1,
        values: List8(Vec::new()),
        attributes: List8(Vec::new()),
    };
    let awakened = Ability { slot: 0, ability: 0x8000_0801 };
    Ok(CharacterData {
        background: Background { appearance: None, text: Box::new(text) },
        inventory: vec![InventoryItem { slot: 0x63, goobj: 19_004, unknown1: [0, 0, 0, 12] }],
        loaded_abilities: vec![awakened.clone()],
        known_abilities: vec![awakened],
        hardlines: Vec::new(),
        access_nodes: Vec::new(),
        code_recipes: Vec::new(),
        contacts: Vec::new(),
    })
}

/// The game channel: the client loads the world, says something, and leaves.
fn play(id: u32, key: &SessionKey, tape: &mut Tape) -> Outcome<()> {
    let epoch = Duration::from_secs(DAY.unsigned_abs());
    let session = |seed: u8| Session::new(id, key.clone(), &[seed; 16]);
    let mut config = ServerConfig::new(epoch);
    config.trusts_hellos = true;
    let mut game = Game {
        ends: [
            Connection::client(ClientConfig::new(epoch, CHARACTER), session(5), tape.clock),
            Connection::server(config, session(6), tape.clock),
        ],
        wire: SyntheticUdp::new(end(10, 50_402), end(1, 10_000)),
    };
    game.exchange(tape)?;
    let sim_time = Float(41.5);
    game.ends[1].sender().set_sim_time(sim_time)?;
    game.server(LoadWorld {
        district: 1,
        sim_time,
        unknown1: 1,
        path: Str::new("resource/worlds/final_world/slums_barrens_full.metr")?,
        sky: Str::new("Massive")?,
    })?;
    game.server(Experience { experience: 0 })?;
    game.server(Info { information: 250 })?;
    game.exchange(tape)?;
    tape.clock += Duration::from_secs(2);
    game.client(ReadyForSpawn {})?;
    game.exchange(tape)?;
    game.client(Chat { scope: ChatScope::Area, reserved: 0, text: Str::new("Whoa.")? })?;
    game.client(Emote { emote: EmoteId::Bow, target: 0 })?;
    game.exchange(tape)?;
    game.server(ChatMessage::system(Str::new("The server stops in a minute.")?))?;
    game.exchange(tape)?;
    game.client(LeaveWorld { exit: WorldExit::JackOut, rest: Rest(Vec::new()) })?;
    game.exchange(tape)?;
    tape.clock += Duration::from_secs(10);
    game.server(JackOutDone { reserved: [0; 6] })?;
    game.exchange(tape)?;
    game.client(JackOutFinished { reserved: 0 })?;
    game.exchange(tape)
}

/// Both ends of the game channel and the wire between them.
struct Game {
    ends: [Connection; 2],
    wire: SyntheticUdp,
}

impl Game {
    fn client(&mut self, message: impl Into<ClientRpc<'static>>) -> Outcome<()> {
        Ok(self.ends[0].send(&message.into().encode()?)?)
    }

    fn server(&mut self, message: impl Into<ServerRpc<'static>>) -> Outcome<()> {
        Ok(self.ends[1].send(&message.into().encode()?)?)
    }

    /// Carries everything that is queued, and the acknowledgements, which are sent later.
    fn exchange(&mut self, tape: &mut Tape) -> Outcome<()> {
        for _ in 0..2 {
            self.ends.iter_mut().for_each(|end| end.timeout(tape.clock));
            let mut quiet = false;
            while !core::mem::replace(&mut quiet, true) {
                for side in Side::BOTH {
                    while let Some(bytes) = self.ends[side.index()].poll_transmit(side.other()) {
                        quiet = false;
                        let packet = self.wire.datagram(side, &bytes);
                        tape.capture(vec![packet])?;
                        let other = &mut self.ends[side.other().index()];
                        other.input(tape.clock, side, Input::Datagram(&bytes));
                    }
                    while self.ends[side.index()].poll_event().is_some() {}
                }
            }
            tape.clock += Duration::from_millis(60);
        }
        Ok(())
    }
}
