//! Replays of KI conversations.
//!
//! | value | adapted |
//! | --- | --- |
//! | session IDs and times of offers, accepts and keep-alives | by the machine, for the live session |
//! | `Rec1` of `MSG_USER_AUTHEN*` | a client logs in with the given account and the live session |
//! | `Rec1` of `MSG_USER_AUTHEN_RSP` | a server encrypts the recorded secret for the live session |
//! | `PassKey3` of `MSG_USER_VALIDATE` | a client proves that it knows the secret from the live server |
//! | IDs of users and characters | to what the live peer sent in the same place |
//!
//! Live servers must offer unencrypted sessions.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::connection::{Connection as _, SendError};
use worldwire_core::json::{Json, bytes};
use worldwire_core::{Reader, Side};
use worldwire_ki::character::Character;
use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig};
use worldwire_ki::control::{Control, Opcode};
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, Secret, apply_rec1, password_hash, pk3};
use worldwire_ki::message::RawMessage;

use super::actor::{Account, Acting, Actor, Role};
use super::learnt::{Learnt, Links};
use super::script::{Script, Step};
use super::setup::{Carried, ReplaySetup};

/// One side of a KI connection.
#[derive(Debug)]
struct Ki {
    own: Side,
    account: Option<Account>,
    /// The recorded salts, and the number of messages before each.
    salts: Vec<(u64, Salt)>,
    /// The secret of the live login.
    ck2: Option<Secret>,
}

const USERS: Links = Links { fields: &["UserID"], is_reused: false };
const CHARACTERS: Links = Links { fields: &["CharID"], is_reused: false };
/// The index of the characters in the links.
const CHARACTER: usize = 1;

/// The machine of one side.
pub(super) fn actor(
    script: &Script,
    setup: &ReplaySetup,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> Box<dyn Actor> {
    let machine = match setup.own {
        Side::Client => {
            let mut config = ClientConfig::new(setup.epoch);
            config.says_hello = script.is_datagrams;
            config.offer_time = setup.patience;
            Connection::client(Arc::new(config), now)
        }
        Side::Server => {
            let mut config = ServerConfig::new(setup.epoch);
            config.accept_time = setup.patience;
            let mut id = [0; 2];
            random(&mut id);
            Connection::server(Arc::new(config), u16::from_le_bytes(id).max(1), now)
        }
    };
    let offers = script.setup.iter().filter(|step| step.name == "control.SessionOffer");
    let salts = offers.filter_map(|step| {
        let mut reader = Reader::new(body(&step.bytes)?);
        let offer = Control::decode(Opcode::SessionOffer, Some(Side::Server), &mut reader);
        let Ok(Control::SessionOffer(offer)) = offer else { return None };
        Some((step.before as u64, Salt::from(&offer)))
    });
    let (own, account) = (setup.own, setup.account.clone());
    let carried = setup.carried.as_ref().and_then(|it| it.ck2.clone());
    let ck2 = setup.token.clone().map(Secret::new).or(carried);
    Box::new(Acting { role: Ki { own, account, salts: salts.collect(), ck2 }, machine, own })
}

/// The body of a control message, from its whole frame.
fn body(frame: &[u8]) -> Option<&[u8]> {
    /// Magic, length, and the four bytes before the body.
    const HEAD_BYTES: usize = 8;
    frame.get(HEAD_BYTES..)
}

/// Finds messages that a client sent again because the server had replaced its session.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<Vec<u8>>,
    /// Whether a session was offered after the last message.
    is_offered: bool,
}

impl Repeats {
    pub(super) fn setup(&mut self, name: &str) {
        self.is_offered |= name == "control.SessionOffer" && self.last.is_some();
    }

    /// Whether a message repeats the one before. The machine repeats messages on its own.
    pub(super) fn is_repeated(&mut self, from: Side, body: &[u8]) -> bool {
        if from == Side::Server {
            (self.last, self.is_offered) = (None, false);
            return false;
        }
        let is_repeated = core::mem::take(&mut self.is_offered)
            && self.last.as_deref().is_some_and(|last| last == body);
        self.last = Some(body.to_vec());
        is_repeated
    }
}

impl Ki {
    /// The salt of the recorded session at the time of a message.
    fn recorded_salt(&self, step: &Step) -> Option<Salt> {
        let before = self.salts.iter().take_while(|(before, _)| *before < step.number);
        before.last().or_else(|| self.salts.first()).map(|(_, salt)| *salt)
    }

    fn log_in(&self, salt: Salt, fields: &mut Json) -> Result<Vec<&'static str>, String> {
        let account = self.account.as_ref().ok_or(
            "the recorded proof of the password depends on the recorded session; supply the account \
             with --account",
        )?;
        let hash = password_hash(&account.password);
        let rec1 = Rec1::new(&account.name, &hash, salt).seal(salt);
        Ok(set(fields, "Rec1", hex(&rec1)))
    }

    fn validate(&self, salt: Salt, fields: &mut Json) -> Result<Vec<&'static str>, String> {
        let ck2 = self.ck2.as_ref().ok_or(
            "the recorded PassKey3 depends on the login in another conversation; replay that one \
             first, or supply the secret of a login with --token",
        )?;
        Ok(set(fields, "PassKey3", pk3(ck2, salt).as_str().into()))
    }
}

/// Sets a field. Returns its name, if the message has it.
fn set(fields: &mut Json, name: &'static str, value: Json) -> Vec<&'static str> {
    let Some(field) = fields.get_mut(name) else { return Vec::new() };
    *field = value;
    vec![name]
}

fn hex(bytes: &[u8]) -> Json {
    let mut text = String::new();
    worldwire_core::value::push_hex(&mut text, bytes);
    [("$hex", Json::from(text.as_str()))].into_iter().collect()
}

/// The bytes of a field. They may be shown as text, or next to their decoded content.
fn field_bytes(fields: &Json, name: &str) -> Option<Vec<u8>> {
    let field = fields.get(name)?;
    match field.get("bytes").unwrap_or(field) {
        Json::String(text) => Some(text.as_bytes().to_vec()),
        other => bytes(other).ok(),
    }
}

impl Role for Ki {
    type Machine = Connection;

    const LINKS: &'static [Links] = &[USERS, CHARACTERS];

    fn send(&mut self, machine: &mut Connection, _: &Step, body: &[u8]) -> Result<(), SendError> {
        let message = RawMessage::decode(&mut Reader::new(body), false);
        machine.send(&message.map_err(SendError::Encode)?)
    }

    fn adapt(
        &mut self,
        machine: &Connection,
        step: &Step,
        fields: &mut Json,
    ) -> Result<Vec<&'static str>, String> {
        let Some(salt) = machine.salt() else { return Ok(Vec::new()) };
        match (&*step.name, self.own) {
            ("LOGIN.MSG_USER_AUTHEN_RSP", Side::Server) => {
                let recorded = self.recorded_salt(step);
                let Some((mut ck2, recorded)) = field_bytes(fields, "Rec1").zip(recorded) else {
                    return Ok(Vec::new());
                };
                if ck2.is_empty() {
                    return Ok(Vec::new());
                }
                apply_rec1(recorded, &mut ck2);
                apply_rec1(salt, &mut ck2);
                Ok(set(fields, "Rec1", hex(&ck2)))
            }
            ("LOGIN.MSG_USER_VALIDATE", Side::Client) => self.validate(salt, fields),
            (name, Side::Client) if name.starts_with("LOGIN.MSG_USER_AUTHEN") => {
                self.log_in(salt, fields)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn learn(
        &mut self,
        machine: &mut Connection,
        learnt: &mut Learnt,
        name: &str,
        recorded: &Json,
        live: &Json,
    ) {
        match name {
            "LOGIN.MSG_USER_AUTHEN_RSP" => {
                let sealed = field_bytes(live, "Rec1").filter(|sealed| !sealed.is_empty());
                if let Some((mut ck2, salt)) = sealed.zip(machine.salt()) {
                    apply_rec1(salt, &mut ck2);
                    self.ck2 = String::from_utf8(ck2).ok().map(Secret::new);
                }
            }
            "LOGIN.MSG_CHARACTERINFO" => {
                let id = |fields: &Json| {
                    let blob = field_bytes(fields, "CharacterInfo")?;
                    Some(Json::from(Character::read(&blob).ok()?.global_id()))
                };
                if let Some((recorded, live)) = id(recorded).zip(id(live)) {
                    learnt.state(Self::LINKS, CHARACTER, &recorded, &live);
                }
            }
            _ => {}
        }
    }

    fn carry(&self, carried: &mut Carried) {
        carried.ck2.clone_from(&self.ck2);
    }

    /// Keep-alives are part of setup.
    fn is_upkeep(&self, _: &str) -> bool {
        false
    }

    fn is_unsolicited(&self, _: Side, name: &str, fields: &dyn Fn() -> Json) -> bool {
        match name {
            // A position in the queue, which can differ.
            "LOGIN.MSG_USER_ADMIT_IND" => {
                let fields = fields();
                let number = |name: &str| fields.get(name).and_then(Json::as_u64);
                number("Status") != Some(1) || number("PositionInQueue") != Some(0)
            }
            "EXTENDEDBASE.MSG_SERVERMESSAGE" | "LOGIN.MSG_LOGIN_NOT_AFK" => true,
            _ => false,
        }
    }

    fn refusal(&self, _: &str, fields: &Json) -> Option<String> {
        ["Error", "ErrorCode"].into_iter().find_map(|name| {
            let code = fields.get(name)?;
            let is_fine = code.as_i64() == Some(0) || code.as_str() == Some("Success");
            let code = || code.as_str().map_or_else(|| code.to_string(), str::to_owned);
            (!is_fine).then(|| format!("{name} {}", code()))
        })
    }

    fn advice_on_refusal(&self, name: &str) -> Option<&'static str> {
        match name {
            "LOGIN.MSG_USER_AUTHEN_RSP" => Some(
                "use --account to log in to an account on the live server, and supply its password \
                 with --password-file or the variable WORLDWIRE_PASSWORD",
            ),
            "LOGIN.MSG_USER_VALIDATE_RSP" => Some(
                "replay the conversation with the login first, as in --stream 1,3, or supply the \
                 secret of another login with --token",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repetitions_for_a_new_session_are_skipped() {
        let mut repeats = Repeats::default();
        repeats.setup("control.SessionOffer");
        assert!(!repeats.is_repeated(Side::Client, b"list"));
        assert!(!repeats.is_repeated(Side::Client, b"list"));
        repeats.setup("control.SessionOffer");
        assert!(repeats.is_repeated(Side::Client, b"list"));
        assert!(!repeats.is_repeated(Side::Client, b"list"));
        repeats.setup("control.SessionOffer");
        assert!(!repeats.is_repeated(Side::Client, b"other"));
        assert!(!repeats.is_repeated(Side::Server, b"answer"));
        repeats.setup("control.SessionOffer");
        assert!(!repeats.is_repeated(Side::Client, b"other"));
    }
}
