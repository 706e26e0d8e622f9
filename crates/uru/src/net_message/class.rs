//! The classes of net messages, each declared once.

use worldwire_core::{Reader, Side, record, wire_flags};

use super::{
    ClonePayload, GamePayload, NetHeader, OpusPacket, SdlPayload, SharedPayload, SpeexFrames,
    Stream, VoiceCodec, VoiceFlags,
};
use crate::types::{
    BitVector, Bool8, Bytes16, ClientGuid, CountedString, FixedText, Float, List, Location,
    NetGroupId, UnifiedTime, Uoid,
};
use crate::walk::{
    Guard, Reason, Refusal, WalkClasses, WalkResult, walk_plain, walked_classes, walked_record,
};

/// What is known of the layout of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All of it.
    Known,
    /// It has none: only classes that derive from it are sent.
    Abstract,
    /// Nothing: clients list it, but none can read it. It is never sent.
    Unknown,
}

/// A row of the table of net messages.
#[derive(Clone, Copy, Debug)]
pub struct NetClassInfo {
    /// The index on the wire.
    pub class: u16,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The class it derives from.
    pub parent: &'static str,
    /// Who sends it; both, if neither side is named.
    pub sender: Option<Side>,
    /// Whether clients and servers of today send and handle it.
    pub is_used: bool,
    /// What is known of its layout.
    pub layout: Layout,
    /// What it is for.
    pub doc: &'static str,
}

/// The row of a class.
#[must_use]
pub fn class_info(class: u16) -> Option<&'static NetClassInfo> {
    CLASSES.iter().find(|row| row.class == class)
}

/// Declares the classes, and the table of what `walked_classes!` does not know of them: who sends
/// them, and whether anybody does.
macro_rules! net_messages {
    (@sender Client) => { Some(Side::Client) };
    (@sender Server) => { Some(Side::Server) };
    (@sender Both) => { None };
    (@used used) => { true };
    (@used unused) => { false };
    (
        $(#[doc = $doc:expr])*
        pub enum NetMessage<$a:lifetime>: u16;
        named { $(
            $named:literal $named_name:literal in $named_parent:literal, $layout:ident;
        )* }
        $(
            $(#[doc = $cdoc:expr])*
            $class:literal $name:ident $(<$lt:lifetime>)? $wire:literal in $parent:literal,
            $sender:ident $used:ident
            { $($fields:tt)* }
        )*
    ) => {
        walked_classes! {
            $(#[doc = $doc])*
            pub enum NetMessage<$a>: u16;
            named { $($named $named_name in $named_parent)* }
            $(
                $(#[doc = $cdoc])*
                $class $name $(<$lt>)? $wire in $parent { $($fields)* }
            )*
        }

        /// All classes of net messages: those with a layout, then the others, each in the order of
        /// their indices.
        pub const CLASSES: &[NetClassInfo] = &[
            $(NetClassInfo {
                class: $class,
                name: $wire,
                parent: $parent,
                sender: net_messages!(@sender $sender),
                is_used: net_messages!(@used $used),
                layout: Layout::Known,
                doc: concat!($($cdoc),*),
            },)*
            $(NetClassInfo {
                class: $named,
                name: $named_name,
                parent: $named_parent,
                sender: None,
                is_used: false,
                layout: Layout::$layout,
                doc: "",
            },)*
        ];
    };
}

wire_flags! {
    /// What happens to the pages of a [`PagingRoom`].
    pub struct PageFlags(u8) {
        /// They are paged out, not in.
        PagingOut = 1,
        /// The list begins anew.
        ResetList = 2,
        /// Their state is wanted.
        RequestState = 4,
        /// They are the last ones.
        FinalRoomInAge = 8,
    }
}

wire_flags! {
    /// What is known of a member; today's servers write 0.
    pub struct MemberFlags(u32) {
        /// It has not answered whether others may link to it.
        WaitingForLinkQuery = 1,
        /// It is reached through the server.
        IndirectMember = 2,
        /// It is reached directly.
        RequestP2P = 4,
        /// It has not proved who it is.
        WaitingForChallengeResponse = 8,
        /// It is the server.
        IsServer = 16,
        /// It may be silent for long.
        AllowTimeOut = 32,
    }
}

record! {
    /// A page of an age.
    pub struct Room<'a> {
        /// The page.
        location "location": Location,
        /// Its name.
        name "name": CountedString<'a>,
    }
}

record! {
    /// A group of objects, and whether the receiver owns it.
    pub struct GroupOwnership {
        ..group: NetGroupId,
        /// Whether the receiver owns it.
        owned "owned": Bool8,
    }
}

walk_plain! {
    PageFlags;
    MemberFlags;
    Room<'d>;
    GroupOwnership;
}

walked_record! {
    /// A player in an age (`plNetMsgMemberInfoHelper`).
    pub struct MemberInfo<'a> {
        /// What is known of the player's connection.
        flags "flags": MemberFlags,
        /// The player.
        client "client": ClientGuid<'a>,
        /// The avatar; the invalid name if there is none yet: sequence number 0xffffffff, an empty
        /// name, and class 0 or 0x8000.
        avatar "avatar": Uoid<'a>,
    }
}

net_messages! {
    /// A net message.
    pub enum NetMessage<'a>: u16;
    named {
        0x025e "plNetMessage" in "plCreatable", Abstract;
        0x0263 "plNetMsgRoomsList" in "plNetMessage", Abstract;
        0x0268 "plNetMsgObject" in "plNetMessage", Abstract;
        0x026c "plNetMsgStream" in "plNetMessage", Abstract;
        0x027b "plNetMsgStreamedObject" in "plNetMsgObject", Abstract;
        0x027c "plNetMsgSharedState" in "plNetMsgStreamedObject", Abstract;
        0x02b2 "plNetMsgServerToClient" in "plNetMessage", Abstract;
        0x02cb "plNetMsgTerminated" in "plNetMsgServerToClient", Unknown;
    }

    /// Pages of the age were paged in or out. Servers note it and never forward it.
    0x0218 PagingRoom<'a> "plNetMsgPagingRoom" in "plNetMsgRoomsList", Client used {
        ..header: NetHeader,
        /// The pages.
        rooms "rooms": List<u32, Room<'a>>,
        /// What happens to them.
        page_flags "pageFlags": PageFlags,
    }

    /// Groups of objects that the client owns, or does not: the first thing that a game server
    /// sends. Clients read the first group unchecked, so there has to be one.
    0x0264 GroupOwner "plNetMsgGroupOwner" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The groups.
        groups "groups": List<i32, GroupOwnership, 1>,
    }

    /// Asks for the state of all objects. The server answers with the clones, the states, and how
    /// many there were (`plNetMsgInitialAgeStateSent`).
    0x0265 GameStateRequest<'a> "plNetMsgGameStateRequest" in "plNetMsgRoomsList", Client used {
        ..header: NetHeader,
        /// The pages whose objects are meant; none means all.
        rooms "rooms": List<u32, Room<'a>>,
    }

    /// A Plasma message for everybody in the age.
    0x026b GameMessage<'a> "plNetMsgGameMessage" in "plNetMsgStream", Both used {
        ..header: NetHeader,
        /// The message.
        stream "stream": Stream<'a, GamePayload>,
        /// Whether a time follows.
        has_delivery_time "hasDeliveryTime": Bool8,
        /// When the message is due.
        delivery_time "deliveryTime": UnifiedTime where has_delivery_time.is_true(),
    }

    /// What a player says.
    0x0279 Voice<'a> "plNetMsgVoice" in "plNetMessage", Both used {
        ..header: NetHeader,
        /// How it is encoded.
        voice_flags "voiceFlags": VoiceFlags,
        /// How many frames there are.
        frame_count "frameCount": u8,
        /// The samples, if it is not encoded.
        pcm "pcm": Bytes16<'a> where voice_flags.is(VoiceCodec::Pcm),
        /// The frames, if it is encoded with Speex.
        speex "speex": SpeexFrames<'a> where voice_flags.is(VoiceCodec::Speex),
        /// The packet, if it is encoded with Opus.
        opus "opus": OpusPacket<'a> where voice_flags.is(VoiceCodec::Opus),
        /// The players who hear it.
        receivers "receivers": List<u8, u32>,
    }

    /// Asks for the lock of an object, or releases it. The server answers a request with a
    /// `plServerReplyMsg`, and a release not at all.
    0x027d TestAndSet<'a> "plNetMsgTestAndSet" in "plNetMsgSharedState", Client used {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
        /// The state that the lock is.
        stream "stream": Stream<'a, SharedPayload>,
        /// Whether the lock is asked for, or released.
        lock_request "lockRequest": Bool8,
    }

    /// Asks for a shared state.
    0x027e GetSharedState<'a> "plNetMsgGetSharedState" in "plNetMsgObject", Client unused {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
        /// The name of the state.
        shared_state_name "sharedStateName": FixedText<'a, 32>,
    }

    /// Asks for the state of an object.
    0x0286 ObjStateRequest<'a> "plNetMsgObjStateRequest" in "plNetMsgObject", Client unused {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
    }

    /// Which objects' updates are wanted, and how often. No server handles it.
    0x029d ObjectUpdateFilter<'a> "plNetMsgObjectUpdateFilter" in "plNetMessage", Client unused {
        ..header: NetHeader,
        /// The objects.
        objects "objects": List<i16, Uoid<'a>>,
        /// How often in a second; below 0 is without a limit.
        max_update_frequency "maxUpdateFrequency": Float,
    }

    /// Asks who is in the age. The server answers with a `plNetMsgMembersList`.
    0x02ad MembersListReq "plNetMsgMembersListReq" in "plNetMessage", Client used {
        ..header: NetHeader,
    }

    /// Who is in the age. It takes the place of the receiver's list, and must not hold the receiver.
    0x02ae MembersList<'a> "plNetMsgMembersList" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The players.
        members "members": List<i16, MemberInfo<'a>>,
    }

    /// A player came or left.
    0x02b1 MemberUpdate<'a> "plNetMsgMemberUpdate" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The player.
        member "member": MemberInfo<'a>,
        /// Whether the player came, or left.
        was_added "wasAdded": Bool8,
    }

    /// All that a `plNetMsgGameStateRequest` asked for was sent. A client waits until it has so many
    /// initial messages.
    0x02b8 InitialAgeStateSent "plNetMsgInitialAgeStateSent" in "plNetMsgServerToClient",
    Server used {
        ..header: NetHeader,
        /// How many messages were sent as initial ones.
        state_count "stateCount": u32,
    }

    /// Whom to listen to.
    0x02c8 ListenListUpdate "plNetMsgListenListUpdate" in "plNetMessage", Both unused {
        ..header: NetHeader,
        /// Whether the players are added, or removed.
        adding "adding": Bool8,
        /// The players.
        receivers "receivers": List<u8, u32>,
    }

    /// The state of an object.
    0x02cd SdlState<'a> "plNetMsgSDLState" in "plNetMsgStreamedObject", Both used {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
        /// The state.
        stream "stream": Stream<'a, SdlPayload>,
        /// Whether it is part of what a joining client asked for: variables that are not set become
        /// their defaults.
        is_initial_state "isInitialState": Bool8,
        /// Whether the server keeps it when nobody is in the age.
        persist_on_server "persistOnServer": Bool8,
        /// Whether it is the state of an avatar.
        is_avatar_state "isAvatarState": Bool8,
    }

    /// The state of an object, which the server keeps and passes on.
    0x0329 SdlStateBCast<'a> "plNetMsgSDLStateBCast" in "plNetMsgSDLState", Both used {
        ..state: SdlState<'a>,
    }

    /// A Plasma message for certain players.
    0x032e GameMessageDirected<'a> "plNetMsgGameMessageDirected" in "plNetMsgGameMessage",
    Both used {
        ..game: GameMessage<'a>,
        /// The players.
        receivers "receivers": List<u8, u32>,
    }

    /// Which regions of the age the player is in, and which it cares about.
    0x03ac RelevanceRegions "plNetMsgRelevanceRegions" in "plNetMessage", Client used {
        ..header: NetHeader,
        /// The regions that the player cares about.
        care_about "careAbout": BitVector,
        /// The regions that the player is in.
        in_ "in": BitVector,
    }

    /// A clone is loaded or unloaded. Its payload is a `plLoadCloneMsg` or a `plLoadAvatarMsg`.
    0x03b3 LoadClone<'a> "plNetMsgLoadClone" in "plNetMsgGameMessage", Both used {
        ..header: NetHeader,
        /// The message.
        stream "stream": Stream<'a, ClonePayload>,
        /// Whether a time follows.
        has_delivery_time "hasDeliveryTime": Bool8,
        /// When the message is due.
        delivery_time "deliveryTime": UnifiedTime where has_delivery_time.is_true(),
        /// The clone.
        uoid "uoid": Uoid<'a>,
        /// Whether it is the avatar of a player.
        is_player "isPlayer": Bool8,
        /// Whether it is loaded, or unloaded.
        is_loading "isLoading": Bool8,
        /// Whether it is part of what a joining client asked for.
        is_initial_state "isInitialState": Bool8,
    }

    /// A player's avatar came into the age, or left it. Servers note it and never forward it.
    0x03b4 PlayerPage<'a> "plNetMsgPlayerPage" in "plNetMessage", Client used {
        ..header: NetHeader,
        /// Whether it left.
        unload "unload": Bool8,
        /// The avatar.
        object "object": Uoid<'a>,
    }
}

impl<'d> NetMessage<'d> {
    /// What the message begins with; `None` for a class without a known layout.
    #[must_use]
    pub fn header(&self) -> Option<&NetHeader> {
        Some(match self {
            Self::PagingRoom(message) => &message.header,
            Self::GroupOwner(message) => &message.header,
            Self::GameStateRequest(message) => &message.header,
            Self::GameMessage(message) => &message.header,
            Self::Voice(message) => &message.header,
            Self::TestAndSet(message) => &message.header,
            Self::GetSharedState(message) => &message.header,
            Self::ObjStateRequest(message) => &message.header,
            Self::ObjectUpdateFilter(message) => &message.header,
            Self::MembersListReq(message) => &message.header,
            Self::MembersList(message) => &message.header,
            Self::MemberUpdate(message) => &message.header,
            Self::InitialAgeStateSent(message) => &message.header,
            Self::ListenListUpdate(message) => &message.header,
            Self::SdlState(message) => &message.header,
            Self::SdlStateBCast(message) => &message.state.header,
            Self::GameMessageDirected(message) => &message.game.header,
            Self::RelevanceRegions(message) => &message.header,
            Self::LoadClone(message) => &message.header,
            Self::PlayerPage(message) => &message.header,
            Self::Other(_) => return None,
        })
    }

    /// Goes through a net message, with its class index, to the end of the part.
    pub(crate) fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let class = u16::from_le_bytes(reader.take_array()?);
        let info = class_info(class);
        if info.is_none_or(|info| info.layout != Layout::Known) {
            let name = info.map(|info| info.name);
            return Err(Refusal::at(Reason::Class(class), name, at).inside("class"));
        }
        Self::walk_class(class.into(), reader, guard)
    }
}
