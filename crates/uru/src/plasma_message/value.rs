//! The values of Plasma messages that have names.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Writer, wire_enum, wire_flags};

use crate::types::CountedString;
use crate::walk::{Guard, Refusal, Walk, WalkResult, walk_plain};

wire_enum! {
    /// What a server says to a request for a lock.
    pub enum ReplyType(i32) {
        /// Nothing yet. A client takes it as a yes, so it is never sent.
        Uninit = -1,
        /// No.
        Deny = 0,
        /// Yes.
        Affirm = 1,
    }
}

wire_enum! {
    /// What a KI is told to do. The only command that may come from the network is chat.
    pub enum KiCommand(u8) {
        /// Show a chat text.
        HACKChatMsg = 0,
    }
}

wire_flags! {
    /// What kind of chat text it is. The bits 0xff00 are the number of a channel.
    pub struct ChatFlags(u32) {
        /// To one player.
        Private = 0x1,
        /// From an administrator: servers clear it for others.
        Admin = 0x2,
        /// To everybody.
        Global = 0x4,
        /// To a player in another age.
        InterAge = 0x8,
        /// Not chat, but what is going on.
        Status = 0x10,
        /// To the neighbours.
        Neighbors = 0x20,
        /// Also as a subtitle.
        Subtitle = 0x40,
        /// The text is the key of a translation.
        LocKey = 0x80,
    }
}

wire_enum! {
    /// What a message of customer service says.
    pub enum CcrCommType(u32) {
        /// Nothing.
        Unset = 0,
        /// A talk begins.
        BeginCommunication = 1,
        /// A text.
        Chat = 2,
        /// The talk ends.
        EndCommunication = 3,
        /// An answer.
        ReturnChatMsg = 4,
    }
}

wire_flags! {
    /// What an avatar is told to do by keys.
    pub struct InputState(u16) {
        /// Go forward.
        Forward = 0x1,
        /// Go back.
        Back = 0x2,
        /// Turn left.
        RotateLeft = 0x4,
        /// Turn right.
        RotateRight = 0x8,
        /// Go left.
        StrafeLeft = 0x10,
        /// Go right.
        StrafeRight = 0x20,
        /// Run unless told otherwise.
        AlwaysRun = 0x40,
        /// Jump.
        Jump = 0x80,
        /// Jump once.
        ConsumableJump = 0x100,
        /// Run.
        RunModifier = 0x200,
        /// Go sideways instead of turning.
        StrafeModifier = 0x400,
        /// Up is down.
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

/// How many bytes stand behind the text of a `pfKIMsg`: flags, delay and value.
pub const BYTES_AFTER_KI_TEXT: usize = 12;
