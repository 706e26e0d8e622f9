//! What a game server must not forward: the check of a net message that a client sent.
//!
//! A client trusts what comes from the network. One player could move another one's avatar, run
//! commands on another one's console, or end another one's client with a text that it cannot read.
//! [`check`] goes through a message once, with the messages inside it, and says what is wrong with
//! it; a good message needs no memory.
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

use worldwire_core::{Classes, Limits, Reader};

use crate::inflate::Inflater;
use crate::net_message::{GamePayload, NetMessage, Payload};
use crate::plasma_message::{AvatarObject, PlasmaMessage};
use crate::types::{CountedString, SafeString};
use crate::walk::{Guard, Walked};
pub use crate::walk::{Reason, Refusal};

/// What may be forwarded. The lists are data: a server that knows of more classes adds them.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// Classes that are refused, wherever they stand; see [`REFUSED`].
    pub refused: &'r [u16],
    /// The console commands that a `plControlEventMsg` may run. Commands compare without case.
    pub console_commands: &'r [&'r str],
    /// Refuse classes without a known layout, too. Without it they are forwarded unless they are on
    /// the list; inside other messages they are refused in any case.
    pub strict: bool,
    /// The sender is an administrator, who may send everything that can be read.
    pub is_admin: bool,
}

impl Rules<'_> {
    /// What players may send: no class of [`REFUSED`], no console commands.
    pub const PLAYER: Self =
        Rules { refused: REFUSED, console_commands: &[], strict: false, is_admin: false };

    /// What administrators may send: everything that can be read, and that does not end clients.
    pub const ADMIN: Self = Rules { is_admin: true, ..Self::PLAYER };

    fn refuses(&self, class: u16) -> bool {
        !self.is_admin && (self.refused.contains(&class) || self.strict && !has_layout(class))
    }
}

/// The classes that players must not send: warps, the back door, the linking manager, input events,
/// and references between objects.
///
/// A `plControlEventMsg` is an input event, but has a rule of its own: it may run the console commands
/// of [`Rules::console_commands`]. Console and audio system messages belong here as well, but their
/// indices are not known; `strict` refuses them.
///
/// Unverified: 0x0200, 0x0201, 0x0203, 0x0204, 0x0208 and 0x0209 are the indices of the messages that
/// derive from `plRefMsg`. No capture has one; a client's class list would settle it.
pub const REFUSED: &[u16] = &[
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

/// Goes through a net message, as `PropagateBuffer` holds it, with its payload and what stands inside
/// that.
///
/// Refused are
/// * classes that the rules refuse, also inside other messages,
/// * a class without a known layout inside another message, since nobody can find its end,
/// * a payload in the wrong net message: one that loads a clone belongs into a `plNetMsgLoadClone`,
///   and no other does,
/// * commands to the KI other than chat, and console commands that are not on the list,
/// * a [`SafeString`] on which the client throws an exception that nobody catches: it ends the
///   client,
/// * what cannot be read, or has bytes left.
///
/// SDL is not looked into: whoever reads the state of an object checks the texts in it.
///
/// # Errors
/// The first reason to refuse it, with the path to it.
pub fn check<'d>(
    message: &'d [u8],
    rules: &Rules<'_>,
    inflater: &mut Inflater,
    limits: &'d Limits,
) -> Walked {
    let mut reader = Reader::within(message, limits);
    NetMessage::walk(&mut reader, &mut Check { rules, inflater })?;
    Ok(reader.end()?)
}

/// Goes through a Plasma message as [`check`] does: the payload of a net message that is no clone.
///
/// # Errors
/// The first reason to refuse it, with the path to it.
pub fn check_payload<'d>(
    payload: &'d [u8],
    rules: &Rules<'_>,
    inflater: &mut Inflater,
    limits: &'d Limits,
) -> Walked {
    let mut reader = Reader::within(payload, limits);
    GamePayload::walk(&mut reader, &mut Check { rules, inflater })?;
    Ok(reader.end()?)
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
        if text.ends_client() { Err(Reason::Text) } else { Ok(()) }
    }

    fn ki_command(&mut self, command: u8) -> Result<(), Reason> {
        if command != 0 && !self.rules.is_admin {
            return Err(Reason::KiCommand(command));
        }
        Ok(())
    }

    fn console_command(&mut self, command: &CountedString<'_>) -> Result<(), Reason> {
        let listed = |known: &&str| known.as_bytes().eq_ignore_ascii_case(command.as_bytes());
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

    /// A class is refused with all that derive from it, but for the one with a rule of its own.
    #[test]
    fn the_list_is_closed() {
        for info in PlasmaMessage::INFO {
            let parent = PlasmaMessage::NAMES.number(info.parent);
            let parent = parent.and_then(|parent| u16::try_from(parent).ok());
            if parent.is_some_and(|parent| REFUSED.contains(&parent)) {
                let class = u16::try_from(info.class).unwrap();
                let own_rule = info.name == "plControlEventMsg";
                assert!(REFUSED.contains(&class) || own_rule, "{}", info.name);
            }
        }
        for class in REFUSED {
            assert!(PlasmaMessage::info((*class).into()).is_some(), "{class:#06x}");
        }
    }
}
