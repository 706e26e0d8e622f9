//! RPC messages from servers.

use worldwire_core::{Float, messages};

use super::client::ChatScope;
use super::option::OptionValue;
use super::point::{DoublePoint, FloatPoint};
use crate::offset::offset_record;
use crate::types::Str;

offset_record! {
    /// Loads a world.
    pub struct LoadWorld<'a> after 1 {
        @ u16 "pathOffset" of path;
        /// The district's number.
        district "district": u32,
        /// The simulation time of the packet. The client gets the world's time only from here.
        sim_time "simTime": Float,
        /// Unverified: its meaning; 1.
        unknown1 "unknown1": u8,
        @ u16 "skyOffset" of sky;
        /// The world's file, such as
        /// `resource/worlds/final_world/slums_barrens_full.metr`.
        [at] path "path": Str<'a>,
        /// The weather: a set of effects, or several with commas.
        [at] sky "sky": Str<'a>,
    }
}

offset_record! {
    /// Shows a text or one of the client's own messages.
    pub struct ChatMessage<'a> after 1 {
        /// How it is shown.
        scope "scope": ChatScope,
        /// The character that is speaking; 0 for none.
        character_id "characterId": u32,
        @ u32 "handleOffset" of handle;
        @ u16 "textOffset" of text;
        /// The number of a message that the client has; 0 for none. Unverified: 23 while leaving,
        /// 64 after saving.
        message_id "messageId": u32,
        /// 0.
        reserved1 "reserved1": u8,
        @ u16 "parameterOffset" of parameter;
        /// Zeros.
        reserved2 "reserved2": [u8; 16],
        /// The name of the character.
        [opt] handle "handle": Str<'a>,
        /// The text.
        [opt] text "text": Str<'a>,
        /// Inserted into the client's message.
        [opt] parameter "parameter": Str<'a>,
    }
}

impl<'a> ChatMessage<'a> {
    /// A text from the server itself.
    #[must_use]
    pub const fn system(text: Str<'a>) -> Self {
        Self {
            scope: ChatScope::System,
            character_id: 0,
            message_id: 0,
            reserved1: 0,
            reserved2: [0; 16],
            handle: None,
            text: Some(text),
            parameter: None,
        }
    }
}

offset_record! {
    /// Sets an option of the client.
    pub struct ServerOption<'a> after 1 {
        @ u16 "nameOffset" of name;
        @ u16 "valueOffset" of value;
        /// The option: `PvPServer`, `PvPMaxSafeLevel`, `WR_RezEvents` and others.
        [at] name "name": Str<'a>,
        /// Its value.
        [at] value "value": OptionValue<'a>,
    }
}

offset_record! {
    /// A friend has come online or gone offline.
    pub struct Friend<'a> after 2 {
        @ u16 "nameOffset" of name;
        /// 0x3b online, 0x3c offline.
        status "status": u8,
        /// 0.
        reserved "reserved": u16,
        /// Unverified: its meaning; 0x8e.
        unknown1 "unknown1": u8,
        /// The friend.
        [at] name "name": Str<'a>,
    }
}

offset_record! {
    /// The description of the client's own character.
    pub struct Background<'a> after 2 {
        @ u16 "textOffset" of text;
        /// 0.
        reserved "reserved": u8,
        /// The description.
        [at] text "text": Str<'a>,
    }
}

offset_record! {
    /// Opens a page in the client.
    pub struct Page<'a> after 2 {
        /// 0.
        reserved "reserved": u16,
        @ u16 "addressOffset" of address;
        /// Unverified: its meaning; 5.
        unknown1 "unknown1": u8,
        /// The page.
        [at] address "address": Str<'a>,
    }
}

messages! {
    /// RPC messages from a server.
    pub enum ServerRpc<'a>: "rpc", Server;
    reserved {
        0x7c "Crew"
        0x80bc "Ability"
        0x8107 "LeaveWorld"
        0x8108 "NewWorld"
        0x8109 "LoadingArea"
    }

    /// Loads a world. The client answers with `ReadyForSpawn`.
    0x06 LoadWorld<'a>;

    /// Shows a text or one of the client's own messages.
    0x2e ChatMessage<'a>;

    /// Sets an option of the client.
    0x3a ServerOption<'a>;

    /// The value of an attribute.
    0x80b2 Attribute {
        /// 0x4e focus, 0x4f perception, 0x51 reason, 0x52 belief, 0x54 vitality. Unverified.
        attribute "attribute": u16,
        value "value": u16,
        /// Unverified: their meaning; `08 02`.
        unknown1 "unknown1": [u8; 2],
    }

    /// An attribute no longer applies.
    0x80b3 AttributeGone {
        attribute "attribute": u16,
    }

    /// A friend has come online or gone offline.
    0x80d7 Friend<'a>;

    /// The money that the character has.
    0x80e4 Info {
        information "information": u64,
    }

    /// The experience that the character has.
    0x80e5 Experience {
        experience "experience": u64,
    }

    /// The character has gained experience.
    0x80e6 ExperienceGained {
        experience "experience": u32,
        /// Unverified: their meaning; `01 00 00 00`.
        unknown1 "unknown1": [u8; 4],
    }

    /// The character has left. The client answers with `JackOutFinished`.
    0x80fd JackOutDone {
        /// Zeros.
        reserved "reserved": [u8; 6],
    }

    /// Moves the character by subway.
    0x813a Subway {
        target "target": DoublePoint,
    }

    /// The answer to `WhereAmI`.
    0x8154 YouAreHere {
        position "position": FloatPoint,
        /// Unverified: their meaning; `07 01 00`.
        unknown1 "unknown1": [u8; 3],
    }

    /// The description of the client's own character.
    0x8195 Background<'a>;

    /// Opens a page in the client.
    0x81a9 Page<'a>;
}
