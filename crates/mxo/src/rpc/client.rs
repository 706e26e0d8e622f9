//! RPC messages from clients.

use worldwire_core::{Rest, messages, wire_enum};

use super::emote::EmoteId;
use super::point::{DoublePoint, FloatPoint};
use crate::offset::offset_record;
use crate::types::{BigU16, Str};

wire_enum! {
    /// Who receives a chat message, or how it is displayed.
    pub enum ChatScope(u16) {
        /// From the server, to everyone.
        System = 0x07,
        /// To everyone nearby.
        Area = 0x10,
        /// To one player.
        Whisper = 0x11,
        /// To the crew.
        Crew = 0x12,
        /// To the faction.
        Faction = 0x13,
        /// To the team.
        Team = 0x15,
        /// In a window that must be closed.
        Modal = 0x17,
        /// Across the screen.
        Broadcast = 0xc7,
        /// In a frame.
        Framed = 0xd7,
    }
}

wire_enum! {
    /// Where a character goes after leaving the world.
    pub enum WorldExit(u8) {
        /// To the loading area.
        LoadingArea = 1,
        /// Out of the game.
        JackOut = 2,
    }
}

offset_record! {
    /// Says something.
    pub struct Chat<'a> after 1 {
        /// Who receives it.
        scope "scope": ChatScope,
        @ u32 "textOffset" of text;
        /// 0.
        reserved "reserved": u8,
        /// The text.
        [at] text "text": Str<'a>,
    }
}

offset_record! {
    /// Says something to one player.
    pub struct Whisper<'a> after 1 {
        /// 0.
        reserved "reserved": u8,
        @ u16 "textOffset" of text;
        /// Counts whispers.
        counter "counter": BigU16,
        /// The other player, such as `SOE+MXO+World+Handle`.
        receiver "receiver": Str<'a>,
        /// The text.
        [at] text "text": Str<'a>,
    }
}

offset_record! {
    /// Changes the description of the client's own character.
    pub struct SetBackground<'a> after 2 {
        @ u16 "textOffset" of text;
        /// 0.
        reserved "reserved": u8,
        /// The new description.
        [at] text "text": Str<'a>,
    }
}

messages! {
    /// RPC messages from a client.
    pub enum ClientRpc<'a>: "rpc", Client;
    reserved {
        0x40 "CombatStart"
        0x44 "CombatEnd"
        0x6c "HardlineStatus"
        0x80ae "LoadAbilities"
        0x80b9 "UseAbility"
        0x8152 "Who"
        0x8192 "PlayerDetails"
        0x8194 "OwnBackground"
    }

    /// The client has loaded the world. The server then shows it its character.
    0x05 ReadyForSpawn {}

    /// Says something.
    0x28 Chat<'a>;

    /// Says something to one player.
    0x29 Whisper<'a>;

    /// Plays an emote.
    0x30 Emote {
        emote "emote": EmoteId,
        /// The other character; 0 for none. Unverified.
        target "target": u32,
    }

    /// Stops the animation. Unverified: one server swaps this name and the next.
    0x33 StopAnimation {}

    /// Starts an animation.
    0x34 StartAnimation {
        animation "animation": u8,
    }

    /// Changes the mood.
    0x35 Mood {
        mood "mood": u8,
    }

    /// Jumps.
    0x80c2 Jump {
        target "target": DoublePoint,
        /// Unverified: their meaning.
        unknown1 "unknown1": [u8; 11],
        /// Unverified: the client's clock in milliseconds.
        time "time": u32,
    }

    /// Ends a hyperjump.
    0x80c4 HyperjumpEnd {
        position "position": DoublePoint,
        /// Unverified: their meaning.
        unknown1 "unknown1": [u8; 6],
    }

    /// Uses an object that has a view.
    0x80c7 UseView {
        view "view": u16,
        spawn_seq "spawnSeq": u8,
        /// 0.
        reserved "reserved": u8,
        /// What it does.
        action "action": u16,
    }

    /// Uses an object of the world, such as a door.
    0x80c8 ObjectInteraction {
        /// The object's number in the world's files.
        object "object": u32,
        /// What it does; 3 opens a door.
        action "action": u16,
    }

    /// The client has loaded a region.
    0x80c9 RegionLoaded {
        object "object": u32,
        position "position": FloatPoint,
    }

    /// Leaves the world.
    0x80fc LeaveWorld {
        exit "exit": WorldExit,
        /// Unverified: usually nothing.
        rest "rest": Rest<u8>,
    }

    /// The client has left. The answer to the server's `JackOutDone`.
    0x80fe JackOutFinished {
        /// 0.
        reserved "reserved": u8,
    }

    /// Ready for the next world.
    0x8108 ReadyForNewWorld {
        /// 0.
        reserved "reserved": u32,
    }

    /// Selects a target.
    0x8151 Target {
        /// The view; 0 for none.
        view "view": u16,
        spawn_seq "spawnSeq": u8,
        /// 0.
        reserved "reserved": u8,
    }

    /// Asks where the character is. The server answers with `YouAreHere`.
    0x8154 WhereAmI {
        position "position": FloatPoint,
        /// Unverified: their meaning.
        unknown1 "unknown1": [u8; 3],
    }

    /// Goes from one hardline to another.
    0x818e HardlineTeleport {
        from_hardline "fromHardline": u32,
        from_district "fromDistrict": u32,
        to_hardline "toHardline": u32,
        to_district "toDistrict": u32,
    }

    /// Changes the description of the client's own character.
    0x8196 SetBackground<'a>;

    /// The client is leaving. Only this project's clients send it: the game's just stop sending.
    0xffff Leave {}
}
