//! Named values in Plasma messages.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Writer, wire_enum, wire_flags};

use crate::types::CountedString;
use crate::walk::{Guard, Refusal, Walk, WalkResult, walk_plain};

wire_enum! {
    /// A server's reply to a lock request.
    pub enum ReplyType(i32) {
        /// Uninitialised. Never sent, because clients treat it as a grant.
        Uninit = -1,
        /// Denied.
        Deny = 0,
        /// Granted.
        Affirm = 1,
    }
}

wire_enum! {
    /// A KI command. Only chat may come from the network.
    pub enum KiCommand(u8) {
        /// Shows a chat text.
        HACKChatMsg = 0,
    }
}

wire_flags! {
    /// The kind of chat. The bits 0xff00 hold a channel number.
    pub struct ChatFlags(u32) {
        /// To one player.
        Private = 0x1,
        /// From an administrator; servers clear it for everyone else.
        Admin = 0x2,
        /// To all players.
        Global = 0x4,
        /// To a player in another age.
        InterAge = 0x8,
        /// A status message rather than chat.
        Status = 0x10,
        /// To neighbours.
        Neighbors = 0x20,
        /// Also shown as a subtitle.
        Subtitle = 0x40,
        /// The text is a localisation key.
        LocKey = 0x80,
    }
}

wire_enum! {
    /// The kind of a customer service message.
    pub enum CcrCommType(u32) {
        /// Not set.
        Unset = 0,
        /// A conversation begins.
        BeginCommunication = 1,
        /// A text.
        Chat = 2,
        /// The conversation ends.
        EndCommunication = 3,
        /// A reply.
        ReturnChatMsg = 4,
    }
}

wire_flags! {
    /// The inputs that move an avatar.
    pub struct InputState(u16) {
        /// Move forward.
        Forward = 0x1,
        /// Move back.
        Back = 0x2,
        /// Turn left.
        RotateLeft = 0x4,
        /// Turn right.
        RotateRight = 0x8,
        /// Step left.
        StrafeLeft = 0x10,
        /// Step right.
        StrafeRight = 0x20,
        /// Run by default.
        AlwaysRun = 0x40,
        /// Jump.
        Jump = 0x80,
        /// Jump once.
        ConsumableJump = 0x100,
        /// Run.
        RunModifier = 0x200,
        /// Step sideways instead of turning.
        StrafeModifier = 0x400,
        /// Up and down are swapped on ladders.
        LadderInverted = 0x800,
    }
}

walk_plain! {
    ReplyType;
    ChatFlags;
    CcrCommType;
    InputState;
}

impl<'d> Walk<'d> for KiCommand {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let [command] = reader.take_array()?;
        guard.ki_command(command).map_err(|reason| Refusal::at(reason, None, at))
    }
}

/// The console command of a control event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConsoleCommand<'d>(pub CountedString<'d>);

impl<'d> Field<'d> for ConsoleCommand<'d> {
    type Owned = ConsoleCommand<'static>;
    const LEAST: usize = CountedString::LEAST;

    fn layout() -> Cow<'static, str> {
        CountedString::layout()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        CountedString::decode(reader, name).map(Self)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        CountedString::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(CountedString::sample(sampler))
    }

    fn into_owned(self) -> Self::Owned {
        ConsoleCommand(self.0.into_owned())
    }
}

impl<'d> Walk<'d> for ConsoleCommand<'d> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let command = CountedString::decode(reader, "")?;
        let refuse = |reason| Refusal::at(reason, Some(&command.to_text()), at);
        guard.console_command(&command).map_err(refuse)
    }
}

/// The size of the fields after the text of a `pfKIMsg`: flags, delay and value.
pub const BYTES_AFTER_KI_TEXT: usize = 12;
