//! Replays of Uru conversations.
//!
//! | value | adapted |
//! | --- | --- |
//! | keys | new ones for the live connection |
//! | `AcctLoginRequest` | account and digest, with the live server's challenge, if an account is given |
//! | transaction IDs | a server takes them from the live client; a client keeps its own |
//! | IDs of nodes, players and ages, scores and accounts | to what the live peer sent in the same place |
//!
//! Values inside nodes and inside game messages stay as recorded.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::connection::{Connection as _, SendError};
use worldwire_core::json::Json;
use worldwire_core::{Error, Reader, Result, Side};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{
    BuildPolicy, ClientConfig, Connection, Encryption, RelayKeys, ServerConfig,
};
use worldwire_uru::crypt::key::{Modulus, PrivateKey, ServerKind};
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};

use super::actor::{Account, Acting, Actor, Role};
use super::learnt::{Learnt, Links};
use super::script::{Script, Step};
use super::setup::ReplaySetup;

/// One side of an Uru connection.
#[derive(Debug)]
struct Uru {
    service: Service,
    own: Side,
    account: Option<Account>,
    /// The client's own challenge.
    client_challenge: u32,
    /// The live server's challenge, and the recorded one.
    challenges: Option<[u32; 2]>,
}

const TRANSACTIONS: Links = Links { fields: &["transId"], is_reused: true };
/// Vault nodes, which include players and ages.
const NODES: Links = Links {
    fields: &[
        "nodeId",
        "parentId",
        "childId",
        "ownerId",
        "playerId",
        "receiverId",
        "ageNodeId",
        "ageInfoNodeId",
        "ageInfoId",
        "parentFolderId",
        "nodeIds",
    ],
    is_reused: false,
};
const AGE_INSTANCES: Links =
    Links { fields: &["ageInstanceId", "parentAgeInstanceId"], is_reused: false };

/// Server messages on game connections that answer a client's message.
const GAME_REPLIES: [&str; 2] = ["plNetMsgMembersList", "plNetMsgInitialAgeStateSent"];
/// Client messages on game connections that a server answers.
const GAME_REQUESTS: [&str; 2] = ["plNetMsgMembersListReq", "plNetMsgGameStateRequest"];

/// The machine of one side.
pub(super) fn actor(
    script: &Script,
    setup: &mut ReplaySetup,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> Result<Box<dyn Actor>> {
    let connect = script.setup(Side::Client, "connect.");
    let connect = connect.map(|bytes| ConnectPacket::decode_fields(&mut Reader::new(bytes)));
    let connect = connect.ok_or_else(|| Error::invalid("the connect packet is missing"))??;
    let service = connect
        .service()
        .ok_or_else(|| Error::invalid("connections of this type are no longer used"))?;
    let ring = setup.keys.get_ref::<KeyRing>().cloned().unwrap_or_default();
    let machine = match setup.own {
        Side::Client => {
            let server = kind(service).filter(|kind| ring.public(*kind).is_some());
            let key = server.map(|kind| inner_key(kind, random)).transpose()?;
            let mut config =
                ClientConfig::new(service, key.as_ref().map(|key| key.public().clone()));
            config.connect = connect;
            if let Some(key) = key {
                let mut own = KeyRing::new();
                own.insert_private(key);
                let mut keys = (*setup.keys).clone();
                keys.set(RelayKeys::Separate { own, server: ring });
                setup.keys = Arc::new(keys);
            }
            config.setup_time = setup.patience;
            client(Arc::new(config), random, now)?
        }
        Side::Server => {
            let mut config = ServerConfig::new(ring);
            config.encryption = Encryption::AllowPlain;
            config.builds = BuildPolicy::Any;
            config.setup_time = setup.patience;
            let mut seed = [0; 7];
            random(&mut seed);
            Connection::server(Arc::new(config), seed, now)
        }
    };
    let mut challenge = [0; 4];
    random(&mut challenge);
    let role = Uru {
        service,
        own: setup.own,
        account: setup.account.take(),
        client_challenge: u32::from_le_bytes(challenge),
        challenges: None,
    };
    Ok(Box::new(Acting { role, machine, own: setup.own }))
}

/// A client, with a secret that servers accept.
fn client(
    config: Arc<ClientConfig>,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> Result<Connection> {
    /// Hardly any secret is refused.
    const ATTEMPTS: usize = 8;
    let mut last = Err(Error::invalid("cannot generate a secret for the key exchange"));
    for _ in 0..ATTEMPTS {
        let mut secret = [0; 64];
        random(&mut secret);
        last = Connection::client(Arc::clone(&config), secret, now);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// The key between the machine and the relay. What it encrypts never leaves this process.
fn inner_key(kind: ServerKind, random: &mut dyn FnMut(&mut [u8])) -> Result<PrivateKey> {
    /// The largest prime below 2^512 is 2^512 - 569.
    const TAIL: [u8; 2] = (0_u16.wrapping_sub(569)).to_be_bytes();
    let mut prime = [0xff; 64];
    prime[62..].copy_from_slice(&TAIL);
    let mut secret = [0; 64];
    random(&mut secret);
    let modulus =
        Modulus::from_be_bytes(&prime).map_err(|error| Error::invalid(error.to_string()))?;
    PrivateKey::new(kind, modulus, &secret).map_err(|error| Error::invalid(error.to_string()))
}

fn kind(service: Service) -> Option<ServerKind> {
    match service {
        Service::Gatekeeper => Some(ServerKind::Gatekeeper),
        Service::Auth => Some(ServerKind::Auth),
        Service::Game => Some(ServerKind::Game),
        Service::File => None,
    }
}

impl Uru {
    /// Replaces the proof of the password.
    fn log_in(&self, fields: &mut Json) -> Result<Vec<&'static str>, String> {
        let recorded = fields.get("clientChallenge").and_then(Json::as_u64).unwrap_or(0);
        let Some(account) = &self.account else {
            return match self.challenges {
                Some([live, recorded]) if live == recorded => Ok(Vec::new()),
                _ if recorded == 0 => Ok(Vec::new()),
                _ => Err("the recorded digest depends on the recorded challenge; supply the \
                          account with --account"
                    .to_owned()),
            };
        };
        let challenge = self.challenges.map_or(0, |[live, _]| live);
        let login =
            login_fields(&account.name, &account.password, self.client_challenge, challenge);
        let mut hash = String::new();
        worldwire_core::value::push_hex(&mut hash, &login.challenge_hash);
        let hash: Json = [("$hex", Json::from(hash.as_str()))].into_iter().collect();
        let new = [
            ("accountName", account.name.as_str().into()),
            ("clientChallenge", u64::from(login.client_challenge).into()),
            ("challengeHash", hash),
        ];
        let mut changed = Vec::new();
        for (name, value) in new {
            if let Some(field) = fields.get_mut(name)
                && *field != value
            {
                *field = value;
                changed.push(name);
            }
        }
        Ok(changed)
    }
}

impl Role for Uru {
    type Machine = Connection;

    const LINKS: &'static [Links] = &[
        TRANSACTIONS,
        NODES,
        AGE_INSTANCES,
        Links { fields: &["ageMcpId"], is_reused: false },
        Links { fields: &["accountId"], is_reused: false },
        Links { fields: &["scoreId", "srcScoreId", "destScoreId"], is_reused: false },
    ];

    fn send(&mut self, machine: &mut Connection, _: &Step, body: &[u8]) -> Result<(), SendError> {
        let message = Message::decode(self.service, self.own, &mut Reader::new(body));
        machine.send(&message.map_err(SendError::Encode)?)
    }

    fn adapt(
        &mut self,
        _: &Connection,
        step: &Step,
        fields: &mut Json,
    ) -> Result<Vec<&'static str>, String> {
        match &*step.name {
            "auth.AcctLoginRequest" => self.log_in(fields),
            _ => Ok(Vec::new()),
        }
    }

    fn learn(
        &mut self,
        _: &mut Connection,
        _: &mut Learnt,
        name: &str,
        recorded: &Json,
        live: &Json,
    ) {
        if name == "auth.ClientRegisterReply" {
            let challenge = |fields: &Json| {
                let number = fields.get("serverChallenge").and_then(Json::as_u64);
                number.and_then(|number| u32::try_from(number).ok())
            };
            self.challenges =
                challenge(live).zip(challenge(recorded)).map(|(live, recorded)| [live, recorded]);
        }
    }

    fn is_upkeep(&self, name: &str) -> bool {
        name.ends_with(".PingRequest") || name.ends_with(".PingReply")
    }

    fn is_unsolicited(&self, from: Side, name: &str, _: &dyn Fn() -> Json) -> bool {
        if let Some(inside) = name.strip_prefix("game.PropagateBuffer") {
            let expected = if from == Side::Server { GAME_REPLIES } else { GAME_REQUESTS };
            return !expected.contains(&inside.trim_start());
        }
        matches!(
            name,
            "auth.ServerCaps"
                | "auth.ServerAddr"
                | "auth.NotifyNewBuild"
                | "auth.AcctPlayerInfo"
                | "auth.VaultNodeChanged"
                | "auth.VaultNodeAdded"
                | "auth.VaultNodeRemoved"
                | "auth.VaultNodeDeleted"
                | "auth.LogPythonTraceback"
                | "auth.LogStackDump"
                | "auth.LogClientDebuggerConnect"
                | "game.GameMgrMsg"
                | "file.BuildIdUpdate"
        )
    }

    fn is_learnt_from(&self, name: &str) -> bool {
        name == "auth.AcctPlayerInfo"
    }

    fn refusal(&self, _: &str, fields: &Json) -> Option<String> {
        let result = fields.get("result")?;
        let text = match result.as_str() {
            Some("Success") => return None,
            Some(name) => name.to_owned(),
            None => result.to_string(),
        };
        Some(format!("result {text}"))
    }

    fn correlation(&self) -> Option<&'static str> {
        Some("transId")
    }

    fn advice_on_refusal(&self, name: &str) -> Option<&'static str> {
        Some(match name {
            "auth.AcctLoginReply" => {
                "use --account to log in to an account on the live server, and supply its password \
                 with --password-file or the variable WORLDWIRE_PASSWORD; LoginDenied means that the \
                 server is closed to players"
            }
            "auth.AcctSetPlayerReply" => {
                "use --account to log in to an account that has this player, or that is not in use"
            }
            "game.JoinAgeReply" => {
                "replay the auth conversation that led to the age first, as in --stream 1,2"
            }
            _ => return None,
        })
    }
}
