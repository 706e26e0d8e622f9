//! The safety check for clients' net messages. It finds those that a game server must not forward.
//!
//! Clients trust everything they receive from the network. A player could move another player's
//! avatar, run console commands on another client, or crash it with unreadable text. [`check`]
//! walks a message once, including the messages inside it, and returns the first problem found. It
//! allocates nothing for messages that pass.
//!
//! ```
//! use worldwire_core::Limits;
//! use worldwire_uru::inflate::Inflater;
//! use worldwire_uru::safety::{Rules, check};
//!
//! // A plNetMsgGameMessage with a pfBackdoorMsg.
//! let message = [
//!     0x6b, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x17, 0, 0, 0, 0x65, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
//!     0, 0x48, 8, 0, 0, 0, 0xf0, 0, 0xf0, 0,
//! ];
//! let limits = &Limits::DEFAULT;
//! let refusal = check(&message, &Rules::PLAYER, &mut Inflater::new(), limits).unwrap_err();
//! assert_eq!(
//!     refusal.to_string(),
//!     "stream.payload.class at byte 15: wanted a class that may be forwarded, \
//!      found pfBackdoorMsg (0x0465)"
//! );
//! assert!(check(&message, &Rules::ADMIN, &mut Inflater::new(), limits).is_ok());
//! ```

pub mod lint;

use core::ops::RangeInclusive;

use worldwire_core::{Classes, Limits, Reader};

use crate::inflate::Inflater;
use crate::net_message::{GamePayload, NetMessage, Payload, checked_class};
use crate::plasma_message::{AvatarObject, PlasmaMessage};
use crate::types::{ClassIndex, CountedString, SafeString, Uoid};
use crate::walk::{Guard, WalkResult};
pub use crate::walk::{Reason, Refusal};

/// The rules for forwarding. Servers that know of further classes can extend the lists.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// Classes that are refused at any depth; see [`REFUSED_CLASSES`].
    pub refused: &'r [u16],
    /// The console commands that a `plControlEventMsg` may run; any arguments are allowed. Commands
    /// are case-insensitive. Operators configure the commands that their shard's clients send:
    /// [`Config::console_commands`](crate::age::Config::console_commands).
    pub console_commands: &'r [String],
    /// Also refuse net messages whose payload has no known layout. Otherwise these are forwarded
    /// unless listed in `refused`. Unknown classes inside other messages are always refused.
    pub strict: bool,
    /// The sender is an administrator, who may send anything that can be decoded.
    pub is_admin: bool,
}

impl Rules<'_> {
    /// The rules for players: nothing in [`REFUSED_CLASSES`], no console commands.
    pub const PLAYER: Self =
        Rules { refused: REFUSED_CLASSES, console_commands: &[], strict: false, is_admin: false };

    /// The rules for administrators: anything that can be decoded and does not crash clients.
    pub const ADMIN: Self = Rules { is_admin: true, ..Self::PLAYER };

    fn refuses(&self, class: u16) -> bool {
        !self.is_admin && (self.refused.contains(&class) || self.strict && !has_layout(class))
    }
}

/// The classes that players must not send: warps, the back door, the linking manager, input events,
/// and references between objects.
///
/// A `plControlEventMsg` is an input event but has its own rule: it may run the commands in
/// [`Rules::console_commands`]. Console and audio system messages belong here too, but their
/// indices are unknown; `strict` refuses them.
///
/// Unverified: 0x0200, 0x0201, 0x0203, 0x0204, 0x0208 and 0x0209 as the indices of messages derived
/// from `plRefMsg`. They do not occur in any capture; a client's class list would settle it.
pub const REFUSED_CLASSES: &[u16] = &[
    0x0255, // plWarpMsg
    0x0465, // pfBackdoorMsg
    0x034b, // plLinkingMgrMsg
    0x020b, // plInputEventMsg
    0x020c, // plKeyEventMsg
    0x020d, // plMouseEventMsg
    0x024a, // plDebugKeyEventMsg
    0x0273, // plIMouseXEventMsg
    0x0274, // plIMouseYEventMsg
    0x0275, // plIMouseBEventMsg
    0x0203, // plRefMsg
    0x0204, // plGenRefMsg
    0x0200, // plObjRefMsg
    0x0201, // plNodeRefMsg
    0x0208, // plLayRefMsg
    0x0209, // plMatRefMsg
];

fn has_layout(class: u16) -> bool {
    let known =
        |info: Option<&worldwire_core::ClassInfo>| info.is_some_and(|info| info.fields.is_some());
    known(PlasmaMessage::info(class.into())) || known(AvatarObject::info(class.into()))
}

/// Checks a net message, as found in a `PropagateBuffer`, including its payload and everything
/// nested in it.
///
/// Refuses
/// * classes that the rules refuse, even inside other messages,
/// * classes without a known layout inside other messages, because their end cannot be found,
/// * payloads in the wrong net message: those that load clones belong in a `plNetMsgLoadClone`, all
///   others do not,
/// * KI commands other than chat, and console commands that are not on the list,
/// * any [`SafeString`] that makes the client throw an uncaught exception, which crashes it,
/// * objects on pages that exist on one client only,
/// * messages that cannot be decoded or have bytes left over.
///
/// SDL states are not inspected; the code that decodes an object's state checks its texts.
///
/// # Errors
/// The first reason for refusal, with the path to it.
pub fn check<'d>(
    message: &'d [u8],
    rules: &Rules<'_>,
    inflater: &mut Inflater,
    limits: &'d Limits,
) -> WalkResult {
    let mut reader = Reader::within(message, limits);
    NetMessage::walk(&mut reader, &mut Check { rules, inflater })?;
    Ok(reader.end()?)
}

/// Like [`check`], but for a Plasma message: the payload of a net message that does not load a
/// clone.
pub(crate) fn check_payload<'d>(
    payload: &'d [u8],
    rules: &Rules<'_>,
    inflater: &mut Inflater,
    limits: &'d Limits,
) -> WalkResult {
    let mut reader = Reader::within(payload, limits);
    GamePayload::walk(&mut reader, &mut Check { rules, inflater })?;
    Ok(reader.end()?)
}

/// Checks that a net message is complete: its class can be sent, compressed data inflates, and the
/// payload decodes to its end. ([`NetMessage`] by itself keeps undecodable payloads as bytes.) SDL
/// states are not inspected, and payloads in the wrong net message are not decoded.
///
/// # Errors
/// `Malformed` with the path to the incomplete part, or a limit error.
pub fn check_whole<'d>(message: &'d [u8], limits: &'d Limits) -> worldwire_core::Result<()> {
    let class = message.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
    checked_class(ClassIndex(class.into()), message)?;
    let mut reader = Reader::within(message, limits);
    let mut whole = Whole { inflater: Inflater::new() };
    match NetMessage::walk(&mut reader, &mut whole) {
        Ok(()) => reader.end(),
        Err(refusal) => match refusal.reason {
            Reason::Malformed | Reason::UnknownInside(_) => Err(refusal.error().clone()),
            _ => Ok(()),
        },
    }
}

/// A guard that accepts everything.
struct Whole {
    inflater: Inflater,
}

impl Guard for Whole {
    fn inflater(&mut self) -> &mut Inflater {
        &mut self.inflater
    }
}

struct Check<'c> {
    rules: &'c Rules<'c>,
    inflater: &'c mut Inflater,
}

impl Guard for Check<'_> {
    #[inline]
    fn class(&mut self, class: u16) -> Result<(), Reason> {
        if self.rules.refuses(class) { Err(Reason::Class(class)) } else { Ok(()) }
    }

    #[inline]
    fn text(&mut self, text: &SafeString<'_>) -> Result<(), Reason> {
        if text.crashes_client() { Err(Reason::Text) } else { Ok(()) }
    }

    #[inline]
    fn object(&mut self, uoid: &Uoid<'_>) -> Result<(), Reason> {
        const LOCAL: RangeInclusive<u32> = 1..=0x20;
        if LOCAL.contains(&uoid.location.sequence_number.0) {
            return Err(Reason::LocalObject);
        }
        self.text(&uoid.name)
    }

    fn ki_command(&mut self, command: u8) -> Result<(), Reason> {
        if command != 0 && !self.rules.is_admin {
            return Err(Reason::KiCommand(command));
        }
        Ok(())
    }

    fn console_command(&mut self, command: &CountedString<'_>) -> Result<(), Reason> {
        let listed = |known: &String| known.as_bytes().eq_ignore_ascii_case(command.as_bytes());
        if self.rules.is_admin || self.rules.console_commands.iter().any(listed) {
            return Ok(());
        }
        Err(Reason::ConsoleCommand)
    }

    fn inflater(&mut self) -> &mut Inflater {
        self.inflater
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a class is refused, so are all classes derived from it, except the one with its own rule.
    #[test]
    fn refused_classes_include_derived_classes() {
        for info in PlasmaMessage::INFO {
            let parent = PlasmaMessage::NAMES.number(info.parent);
            let parent = parent.and_then(|parent| u16::try_from(parent).ok());
            if parent.is_some_and(|parent| REFUSED_CLASSES.contains(&parent)) {
                let class = u16::try_from(info.class).unwrap();
                let own_rule = info.name == "plControlEventMsg";
                assert!(REFUSED_CLASSES.contains(&class) || own_rule, "{}", info.name);
            }
        }
        for class in REFUSED_CLASSES {
            // Error messages need the name.
            assert!(PlasmaMessage::info((*class).into()).is_some(), "{class:#06x}");
        }
    }

    /// The reason for refusing a payload given in hex, if any; spaces are ignored.
    fn refusal(hex: &str, rules: &Rules<'_>) -> Option<Refusal> {
        let bytes = worldwire_core::value::parse_hex(hex).unwrap();
        check_payload(&bytes, rules, &mut Inflater::new(), &Limits::DEFAULT).err()
    }

    fn refused(hex: &str, rules: &Rules<'_>) -> Option<(Reason, String)> {
        refusal(hex, rules).map(|refusal| (refusal.reason, refusal.error().path_text()))
    }

    const HEADER: &str = "00 00000000 0000000000000000 48080000";

    #[test]
    fn nested_messages_are_checked() {
        // An animation message with a warp, or an unknown message, as its callback.
        let animation = |callback: &str| {
            format!(
                "0602 {HEADER} 01000000 {callback} 00000000 \
                 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00f0 00f0"
            )
        };
        let warp = animation(&format!("5502 {HEADER} 00 00000000"));
        let place = "callbacks[0].class".to_owned();
        let reason = Reason::Class(0x0255);
        assert_eq!(refused(&warp, &Rules::PLAYER), Some((reason, place.clone())));
        assert_eq!(refused(&warp, &Rules::ADMIN), None);
        let unknown = animation("0202 01");
        let reason = Reason::UnknownInside(0x0202);
        assert_eq!(refused(&unknown, &Rules::ADMIN), Some((reason, place)));
        assert_eq!(refused(&animation("0080"), &Rules::PLAYER), None);
    }

    #[test]
    fn unknown_classes_pass_unless_strict() {
        let strict = Rules { strict: true, ..Rules::PLAYER };
        for rules in [&Rules::PLAYER, &Rules::ADMIN] {
            assert_eq!(refused("fe7f 0102", rules), None);
        }
        let reason = Reason::Class(0x7ffe);
        assert_eq!(refused("fe7f 0102", &strict), Some((reason, "class".into())));
        let reply = format!("6f02 {HEADER} 01000000");
        assert_eq!(refused(&reply, &strict), None);
        // A custom list.
        let own = Rules { refused: &[0x026f], ..Rules::PLAYER };
        let reason = Reason::Class(0x026f);
        assert_eq!(refused(&reply, &own), Some((reason, "class".into())));
    }

    #[test]
    fn texts_commands_and_objects_are_checked() {
        let chat = |user: &str, command: &str| {
            format!("6403 {HEADER} {command} {user} 05000000 00f0 00000000 00000000 00000000")
        };
        assert_eq!(refused(&chat("00f0", "00"), &Rules::PLAYER), None);
        let reason = Reason::KiCommand(9);
        let refusal = refused(&chat("00f0", "09"), &Rules::PLAYER);
        assert_eq!(refusal, Some((reason, "command".into())));
        assert_eq!(refused(&chat("00f0", "09"), &Rules::ADMIN), None);
        // An umlaut comes first: its inverted byte is taken as plain text, which is then not UTF-8.
        // That crashes clients, even if an administrator sends it.
        for rules in [&Rules::PLAYER, &Rules::ADMIN] {
            let refusal = refused(&chat("06f0 3c7b8b8d8a8c", "00"), rules);
            assert_eq!(refusal, Some((Reason::Text, "user".into())));
        }
        // Plain ASCII without inversion is harmless.
        assert_eq!(refused(&chat("02f0 6162", "00"), &Rules::PLAYER), None);
        let object = |page: &str| format!("bf03 {HEADER} 01 00 {page} 0000 0100 00000000 00f0");
        assert_eq!(refused(&object("21000000"), &Rules::PLAYER), None);
        assert_eq!(refused(&object("00000000"), &Rules::PLAYER), None);
        let refusal = refused(&object("20000000"), &Rules::PLAYER);
        assert_eq!(refusal, Some((Reason::LocalObject, "world".into())));
    }

    #[test]
    fn console_commands_must_be_listed() {
        let event = format!(
            "1002 {HEADER} ffffffff 23000000 01000000 00000000 \
             00000000 00000000 00000000 0300 466f6f"
        );
        let reason = Reason::ConsoleCommand;
        let text = refusal(&event, &Rules::PLAYER).unwrap().to_string();
        assert!(text.ends_with("wanted a console command on the list, found \"Foo\""), "{text}");
        assert_eq!(refused(&event, &Rules::PLAYER), Some((reason, "command".into())));
        let listed = Rules { console_commands: &["foo".into()], ..Rules::PLAYER };
        assert_eq!(refused(&event, &listed), None);
        assert_eq!(refused(&event, &Rules::ADMIN), None);
    }
}
