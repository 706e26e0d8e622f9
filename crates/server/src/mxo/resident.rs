//! A player with a margin session: entering the world, and the RPC messages that the world handles.
//!
//! | step | client | server |
//! | --- | --- | --- |
//! | hello | the hello, on the game channel | answers; `EstablishUDPSession` on the margin channel; `LoadWorld` |
//! | spawn | `ReadyForSpawn` | the character, and what is near it |
//! | travel | `HardlineTeleport` | `LeaveWorld` 0x8107 |
//! | reset | `ReadyForNewWorld` | resets the sequence; then `NewWorld` 0x8108, `LoadWorld` as above |
//! | leaving | `LeaveWorld` | `ChatMessage` 23 and a script; later `JackOutDone` |
//! | gone | `JackOutFinished` | closes the margin connection |

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{SendError, Sender as _};
use worldwire_core::{Error, Float, Result};
use worldwire_mxo::connection::Sender;
use worldwire_mxo::frame::RpcMessage;
use worldwire_mxo::rpc::{
    Background, ChatMessage, ChatScope, ClientRpc, Experience, Info, JackOutDone, LoadWorld,
    OptionValue, ServerOption, ServerRpc, WorldExit, YouAreHere,
};
use worldwire_mxo::types::{Str, text};

use super::realm::{GameSession, Notice, Realm};
use super::worlds::Worlds;

/// The number of the client's own text for a player who is leaving. Unverified.
const LEAVING: u32 = 23;
/// Messages whose layout is unknown. The server sends the first two when a player changes
/// districts; the client sends the third to request the description of its character.
const LEAVE_WORLD: u16 = 0x8107;
const NEW_WORLD: u16 = 0x8108;
const OWN_BACKGROUND: u16 = 0x8194;
/// The option that changes the weather.
const WEATHER: &str = "WR_RezEvents";
/// The time limit for a client to confirm that it has left.
const CONFIRMATION: Duration = Duration::from_secs(30);
/// The longest chat message, in characters.
const MAX_CHAT: usize = 512;
/// The number of chat messages and emotes that a player can send at once, and the interval at which
/// another becomes available.
const BURST: u32 = 10;
const REFILL: Duration = Duration::from_millis(500);
/// Separates the parts of a name in a whisper: `SOE+MXO+World+Handle`.
const CHAT_SEPARATOR: char = '+';

/// A player with a margin session.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) session: Arc<GameSession>,
    pub(super) realm: Realm,
    /// When to tell the client that it has left, and the deadline for its confirmation.
    leaves_at: Option<Duration>,
    confirms_by: Option<Duration>,
    allowance: Allowance,
    is_greeted: bool,
}

/// A client's request to the world.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    /// Let the client's character enter, now that the client has loaded the world.
    Enter,
    /// Say something to everyone nearby.
    Say(String),
    /// Say something to one player.
    Whisper {
        /// The player's handle.
        handle: String,
        text: String,
    },
    /// Play an emote, given by its number in scripts.
    Emote(u8),
    /// Play an animation; 0 ends it.
    Animate(u8),
    /// Change the character's mood.
    Mood(u8),
    /// Go to a district, through a hardline.
    Travel(u32),
    /// Continue the journey: the client has left the world that it was in.
    Travelled,
    /// Leave the world after a delay.
    Leave,
    /// Remove the client, because it has left.
    Left,
    /// Change the description of the client's character.
    Describe(String),
    /// Send the client this reply.
    Reply(Box<ServerRpc<'static>>),
    /// Show the player a line of text that says what the server does not support.
    Explain(&'static str),
}

impl Resident {
    pub(super) fn new(session: Arc<GameSession>, realm: Realm) -> Self {
        session.open_channel();
        let (leaves_at, confirms_by, allowance) = (None, None, Allowance::default());
        Self { session, realm, leaves_at, confirms_by, allowance, is_greeted: false }
    }

    /// Handles a hello and notifies the margin connection of the first one.
    pub(super) fn greet(&mut self) {
        if !core::mem::replace(&mut self.is_greeted, true) {
            self.session.tell(Notice::Established);
        }
    }

    /// The district that the character enters: the one that it last left, if there is a world for
    /// that district.
    pub(super) fn district(&self, worlds: &Worlds) -> u32 {
        let place = self.realm.entrant(self.session.character).and_then(|entrant| entrant.place);
        let left = place.map(|place| place.district).filter(|district| worlds.has(*district));
        left.unwrap_or_else(|| self.realm.config().world.district)
    }

    /// Sends what a client needs to load the world of a district. `sim_time` is the simulation
    /// time.
    pub(super) fn begin(
        &self,
        district: u32,
        sky: &str,
        sim_time: f32,
        sender: &mut Sender,
    ) -> Result<(), Error> {
        let world = &self.realm.config().world;
        let sim_time = Float(sim_time);
        let sent = sender.set_sim_time(sim_time);
        sent.map_err(SendError::into_error)?;
        let entrant = self.realm.entrant(self.session.character);
        let (experience, information) =
            entrant.map_or((0, 0), |entrant| (entrant.experience, entrant.information));
        send(
            sender,
            LoadWorld {
                district,
                sim_time,
                unknown1: 1,
                path: Str::new(&world.path_of(district).unwrap_or_default())?,
                sky: Str::new(sky)?,
            },
        )?;
        send(sender, Experience { experience: experience.into() })?;
        send(sender, Info { information: information.into() })?;
        for (name, value) in &world.options {
            send(sender, ServerOption { name: Str::new(name)?, value: value.to_wire()? })?;
        }
        Ok(())
    }

    /// The request in an RPC message; `None` if the message needs no action.
    ///
    /// # Errors
    /// The message does not match its layout.
    pub(super) fn receive(&mut self, body: &[u8], now: Duration) -> Result<Option<Wish>> {
        let Some(message) = ClientRpc::decode(body)? else {
            return Ok(self.receive_unknown(RpcMessage::of(body).opcode()));
        };
        Ok(match message {
            ClientRpc::ReadyForSpawn(_) => Some(Wish::Enter),
            ClientRpc::Chat(chat) => self.chat(chat.scope, chat.text.text(), now),
            ClientRpc::Whisper(whisper) => {
                let name = whisper.receiver.text();
                let handle = name.rsplit(CHAT_SEPARATOR).next().unwrap_or(&name).to_owned();
                let text = cut(&whisper.text.text());
                self.allowance.take(now).then_some(Wish::Whisper { handle, text })
            }
            ClientRpc::Emote(emote) => {
                let number = emote.emote.script_number().filter(|_| self.allowance.take(now));
                number.map(Wish::Emote)
            }
            ClientRpc::StartAnimation(start) => Some(Wish::Animate(start.animation)),
            ClientRpc::StopAnimation(_) => Some(Wish::Animate(0)),
            ClientRpc::Mood(mood) => Some(Wish::Mood(mood.mood)),
            ClientRpc::WhereAmI(ask) => {
                let here = YouAreHere { position: ask.position, unknown1: [7, 1, 0] };
                Some(Wish::Reply(Box::new(here.into())))
            }
            ClientRpc::LeaveWorld(leave) if leave.exit == WorldExit::JackOut => Some(Wish::Leave),
            ClientRpc::LeaveWorld(_) => {
                Some(Wish::Explain("This server has no loading area. Jack out instead."))
            }
            ClientRpc::JackOutFinished(_) | ClientRpc::Leave(_) => Some(Wish::Left),
            ClientRpc::HardlineTeleport(teleport) => {
                let to = Wish::Travel(teleport.to_district);
                self.allowance.take(now).then_some(to)
            }
            ClientRpc::ReadyForNewWorld(_) => Some(Wish::Travelled),
            ClientRpc::SetBackground(set) => {
                self.allowance.take(now).then(|| Wish::Describe(set.text.text()))
            }
            _ => None,
        })
    }

    /// The request in a message of unknown layout.
    fn receive_unknown(&self, opcode: u16) -> Option<Wish> {
        if opcode != OWN_BACKGROUND {
            return None;
        }
        let entrant = self.realm.entrant(self.session.character)?;
        let text = Str::new(&entrant.description).ok()?;
        Some(Wish::Reply(Box::new(Background { reserved: 0, text }.into())))
    }

    /// Schedules the notice to the client that it has left.
    pub(super) fn leave_soon(&mut self, now: Duration) {
        let delay = self.realm.config().login.jack_out_seconds;
        self.leaves_at = Some(now.saturating_add(Duration::from_secs(delay.into())));
    }

    /// Cancels the client's attempt to leave, because it has moved. Returns whether there was one.
    pub(super) const fn moved(&mut self) -> bool {
        self.leaves_at.take().is_some()
    }

    /// Whether the client was told that it has left.
    pub(super) const fn has_left(&self) -> bool {
        self.confirms_by.is_some()
    }

    /// Whether the time has come to tell the client that it has left.
    pub(super) fn is_leaving(&mut self, now: Duration) -> bool {
        let is_due = self.leaves_at.is_some_and(|at| at <= now);
        if is_due {
            self.leaves_at = None;
            self.confirms_by = Some(now.saturating_add(CONFIRMATION));
        }
        is_due
    }

    /// Whether the client has failed to confirm in time that it has left.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        self.confirms_by.is_some_and(|by| by <= now)
    }

    fn chat(&mut self, scope: ChatScope, text: String, now: Duration) -> Option<Wish> {
        match scope {
            _ if !self.allowance.take(now) => None,
            ChatScope::Area => Some(Wish::Say(cut(&text))),
            ChatScope::Crew | ChatScope::Faction | ChatScope::Team => {
                Some(Wish::Explain("This server has no crews, factions or teams."))
            }
            _ => None,
        }
    }
}

/// Tells the client that it is leaving.
pub(super) fn announce_leaving(sender: &mut Sender) -> Result<(), Error> {
    let leaving =
        ChatMessage { message_id: LEAVING, text: None, ..ChatMessage::system(Str::default()) };
    send(sender, leaving)
}

/// Tells the client that it has left.
pub(super) fn let_go(sender: &mut Sender) -> Result<(), Error> {
    send(sender, JackOutDone { reserved: [0; 6] })
}

/// Tells the client to leave the world that it is in. Unverified: that the message has no fields.
pub(super) fn leave_world(sender: &mut Sender) -> Result<(), Error> {
    sender.send(&RpcMessage::new(LEAVE_WORLD, b"")).map_err(SendError::into_error)
}

/// Tells the client that it is entering another world. Unverified: that the message has no fields.
pub(super) fn enter_world(sender: &mut Sender) -> Result<(), Error> {
    sender.send(&RpcMessage::new(NEW_WORLD, b"")).map_err(SendError::into_error)
}

/// Changes the weather.
pub(super) fn show_sky(sender: &mut Sender, sky: &str) -> Result<(), Error> {
    let (name, value) = (Str::new(WEATHER)?, OptionValue::of_text(sky)?);
    send(sender, ServerOption { name, value })
}

/// Shows why the server closes the connection, in a window that the player must dismiss.
pub(super) fn close_with(sender: &mut Sender, reason: &str) -> Result<(), Error> {
    send(sender, ChatMessage { scope: ChatScope::Modal, ..ChatMessage::system(Str::new(reason)?) })
}

/// Shows the client a line of text.
pub(super) fn show(sender: &mut Sender, line: &str) -> Result<(), Error> {
    send(sender, ChatMessage::system(Str::new(line)?))
}

/// Shows the client the description of its character.
pub(super) fn show_description(sender: &mut Sender, description: &str) -> Result<(), Error> {
    send(sender, Background { reserved: 0, text: Str::new(description)? })
}

/// Sends an RPC message.
pub(super) fn send(
    sender: &mut Sender,
    message: impl Into<ServerRpc<'static>>,
) -> Result<(), Error> {
    let message = message.into().encode()?;
    sender.send(&message).map_err(SendError::into_error)
}

/// The part of a chat message that others receive. Control characters are removed.
fn cut(line: &str) -> String {
    let is_shown =
        |one: &char| !one.is_control() && text::encode(one.encode_utf8(&mut [0; 4])).is_some();
    line.chars().filter(is_shown).take(MAX_CHAT).collect()
}

/// A player's message allowance: a token bucket.
#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Duration,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: BURST, since: Duration::ZERO }
    }
}

impl Allowance {
    fn take(&mut self, now: Duration) -> bool {
        let refills = now.saturating_sub(self.since).as_millis() / REFILL.as_millis();
        if refills > 0 {
            let refills = u32::try_from(refills).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(refills).min(BURST);
            self.since = now;
        }
        let has_some = self.left > 0;
        self.left -= u32::from(has_some);
        has_some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_is_limited_and_cleaned() {
        let mut allowance = Allowance::default();
        let second = Duration::from_secs(1);
        let sent = (0..20).filter(|_| allowance.take(second)).count();
        assert_eq!(sent, 10);
        assert!(!allowance.take(second + REFILL / 2) && allowance.take(second * 2));
        assert_eq!(cut("a\u{1}b\nc\u{fe0f}"), "abc");
        assert_eq!(cut(&"x".repeat(1_000)).len(), MAX_CHAT);
    }
}
