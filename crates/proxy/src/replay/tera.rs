//! Replays of TERA conversations.
//!
//! | value | adapted |
//! | --- | --- |
//! | keys | new ones for the live connection |
//! | counter and checksum | recomputed with the live server's seed, where the definitions list them |
//! | IDs of objects, accounts and servers | to what the live peer sent in the same place |
//!
//! The login's ticket stays as recorded. Unverified: which messages a server sends on its own;
//! the list below covers those that depend on other players and on the world.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, SendError};
use worldwire_core::json::Json;
use worldwire_tera::connection::{Config, Connection};

use super::actor::{Acting, Actor, Role};
use super::learnt::{Learnt, Links};
use super::script::{Script, Step};
use super::setup::ReplaySetup;

/// One side of a TERA connection.
#[derive(Debug)]
struct Tera;

/// Messages about other players and the world, by the beginnings and ends of their names.
const PUSHED: [&str; 10] = [
    "S_SPAWN_",
    "S_DESPAWN_",
    "S_CREATURE_",
    "S_ABNORMALITY_",
    "S_ACTION_",
    "S_NPC_",
    "S_USER_",
    "S_PLAYER_STAT_",
    "S_SYSTEM_MESSAGE",
    "S_WEATHER",
];
const PUSHED_ALSO: [&str; 5] = ["_LOCATION", "_CHAT", "S_WHISPER", "S_PING", "S_SOCIAL"];

/// The machine of one side.
pub(super) fn actor(
    script: &Script,
    setup: &ReplaySetup,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> Box<dyn Actor> {
    let integrity = script.build.as_ref().map(|build| build.integrity()).unwrap_or_default();
    let config = Config {
        integrity,
        step_time: setup.patience,
        // The script decides when the client speaks.
        idle_time: None,
        ..Config::default()
    };
    let mut keys = [[0; 128]; 2];
    keys.iter_mut().for_each(|key| random(key));
    let machine = match setup.own {
        Side::Client => Connection::client(Arc::new(config), keys, now),
        Side::Server => Connection::server(Arc::new(config), keys, now),
    };
    Box::new(Acting { role: Tera, machine, own: setup.own })
}

impl Role for Tera {
    type Machine = Connection;

    const LINKS: &'static [Links] = &[
        Links { fields: &["gameId", "target", "source", "owner"], is_reused: false },
        Links { fields: &["accountId", "accountID"], is_reused: false },
        Links { fields: &["playerId"], is_reused: false },
        Links { fields: &["serverId"], is_reused: false },
    ];

    fn send(&mut self, machine: &mut Connection, _: &Step, body: &[u8]) -> Result<(), SendError> {
        machine.send(body)
    }

    fn learn(
        &mut self,
        machine: &mut Connection,
        _: &mut Learnt,
        name: &str,
        _: &Json,
        live: &Json,
    ) {
        let seed = live.get("integrityIv").and_then(Json::as_u64);
        if name == "tera.S_LOGIN_ACCOUNT_INFO"
            && let Some(seed) = seed.and_then(|seed| u32::try_from(seed).ok())
        {
            // Servers have no seed.
            let _ = machine.sender().set_integrity_seed(seed);
        }
    }

    /// The machines send no keep-alives in TERA.
    fn is_upkeep(&self, _: &str) -> bool {
        false
    }

    fn is_unsolicited(&self, from: Side, name: &str, _: &dyn Fn() -> Json) -> bool {
        let Some(name) = name.strip_prefix("tera.").filter(|_| from == Side::Server) else {
            return false;
        };
        PUSHED.iter().any(|begin| name.starts_with(begin))
            || PUSHED_ALSO.iter().any(|end| name.ends_with(end))
    }

    fn is_learnt_from(&self, name: &str) -> bool {
        name == "tera.S_SPAWN_ME"
    }

    fn refusal(&self, name: &str, fields: &Json) -> Option<String> {
        let field = match name {
            "tera.S_CHECK_VERSION" => "ok",
            "tera.S_LOGIN_ARBITER" => "success",
            _ => return None,
        };
        let value = fields.get(field)?;
        let is_refused = value.as_bool() == Some(false) || value.as_u64() == Some(0);
        is_refused.then(|| format!("{field} {value}"))
    }

    fn advice_on_refusal(&self, name: &str) -> Option<&'static str> {
        match name {
            "tera.S_CHECK_VERSION" => {
                Some("the live server is for a different build of the client")
            }
            "tera.S_LOGIN_ARBITER" => Some(
                "the recorded ticket is no longer valid; set `ticket` of C_LOGIN_ARBITER to a \
                 new one with --rules",
            ),
            _ => None,
        }
    }
}
