//! All classes of net messages, each declared once.

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

/// How much is known about a class's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetClassLayout {
    /// Fully known.
    Known,
    /// The class is abstract: only classes derived from it are sent.
    Abstract,
    /// Unknown: clients list the class, but no client implements it. It is never sent.
    Unknown,
}

/// An entry in the table of net message classes.
#[derive(Clone, Copy, Debug)]
pub struct NetClassInfo {
    /// The class index in messages.
    pub class: u16,
    /// The name, as spelled by the protocol.
    pub name: &'static str,
    /// The class it derives from.
    pub parent: &'static str,
    /// The sending side; `None` if both send it.
    pub sender: Option<Side>,
    /// Whether current clients or servers send it.
    pub is_used: bool,
    /// How much is known about its layout.
    pub layout: NetClassLayout,
    /// A short description.
    pub doc: &'static str,
}

/// The table entry of a class.
#[must_use]
pub fn class_info(class: u16) -> Option<&'static NetClassInfo> {
    CLASSES.iter().find(|row| row.class == class)
}

/// Declares the classes, and a table of the facts that `walked_classes!` does not cover: who sends
/// each class, and whether it is used.
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
            pub enum NetMessage<$a>: u16, header NetHeader;
            named { $($named $named_name in $named_parent)* }
            $(
                $(#[doc = $cdoc])*
                $class $name $(<$lt>)? $wire in $parent { $($fields)* }
            )*
        }

        /// All classes of net messages: first those with a layout, then the others, each sorted by
        /// index.
        pub const CLASSES: &[NetClassInfo] = &[
            $(NetClassInfo {
                class: $class,
                name: $wire,
                parent: $parent,
                sender: net_messages!(@sender $sender),
                is_used: net_messages!(@used $used),
                layout: NetClassLayout::Known,
                doc: concat!($($cdoc),*),
            },)*
            $(NetClassInfo {
                class: $named,
                name: $named_name,
                parent: $named_parent,
                sender: None,
                is_used: false,
                layout: NetClassLayout::$layout,
                doc: "",
            },)*
        ];
    };
}

wire_flags! {
    /// What happens to the pages of a [`PagingRoom`].
    pub struct PageFlags(u8) {
        /// The pages are paged out, not in.
        PagingOut = 1,
        /// The list of pages starts over.
        ResetList = 2,
        /// The sender requests the state of the pages.
        RequestState = 4,
        /// These are the last pages of the age.
        FinalRoomInAge = 8,
    }
}

wire_flags! {
    /// Flags of a member; current servers write 0.
    pub struct MemberFlags(u32) {
        /// The member has not answered whether others may link to them.
        WaitingForLinkQuery = 1,
        /// The member is reached through the server.
        IndirectMember = 2,
        /// The member is reached directly.
        RequestP2P = 4,
        /// The member has not been authenticated yet.
        WaitingForChallengeResponse = 8,
        /// The member is the server.
        IsServer = 16,
        /// The member may be silent for a long time.
        AllowTimeOut = 32,
    }
}

record! {
    /// A page of an age.
    pub struct Room<'a> {
        /// The page.
        location "location": Location,
        /// The name of the page.
        name "name": CountedString<'a>,
    }
}

record! {
    /// A group of objects and its ownership.
    pub struct GroupOwnership {
        ..group: NetGroupId,
        /// Whether the receiver owns the group.
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
        /// Flags of the player's connection.
        flags "flags": MemberFlags,
        /// The player.
        client "client": ClientGuid<'a>,
        /// The avatar, or an invalid uoid if there is none yet: sequence number 0xffffffff, empty
        /// name, class 0 or 0x8000.
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

    /// Pages were paged in or out. Servers record this and never forward it.
    0x0218 PagingRoom<'a> "plNetMsgPagingRoom" in "plNetMsgRoomsList", Client used {
        ..header: NetHeader,
        /// The pages.
        rooms "rooms": List<u32, Room<'a>>,
        /// What happens to the pages.
        page_flags "pageFlags": PageFlags,
    }

    /// Which groups of objects the client owns: the first message a game server sends. Clients
    /// access the first group without checking, so there must be at least one.
    0x0264 GroupOwner "plNetMsgGroupOwner" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The groups.
        groups "groups": List<i32, GroupOwnership, 1>,
    }

    /// Requests the state of all objects. The server sends the clones, the states, and the number
    /// of both (`plNetMsgInitialAgeStateSent`).
    0x0265 GameStateRequest<'a> "plNetMsgGameStateRequest" in "plNetMsgRoomsList", Client used {
        ..header: NetHeader,
        /// The pages whose objects are requested; empty for all pages.
        rooms "rooms": List<u32, Room<'a>>,
    }

    /// A Plasma message for everyone in the age.
    0x026b GameMessage<'a> "plNetMsgGameMessage" in "plNetMsgStream", Both used {
        ..header: NetHeader,
        /// The message.
        stream "stream": Stream<'a, GamePayload>,
        /// Whether a delivery time follows.
        has_delivery_time "hasDeliveryTime": Bool8,
        /// When to deliver the message.
        delivery_time "deliveryTime": UnifiedTime where has_delivery_time.is_true(),
    }

    /// Voice chat.
    0x0279 Voice<'a> "plNetMsgVoice" in "plNetMessage", Both used {
        ..header: NetHeader,
        /// How the audio is encoded.
        voice_flags "voiceFlags": VoiceFlags,
        /// The number of frames.
        frame_count "frameCount": u8,
        /// The samples, if the audio is not encoded.
        pcm "pcm": Bytes16<'a> where voice_flags.is(VoiceCodec::Pcm),
        /// The frames, if the audio is encoded with Speex.
        speex "speex": SpeexFrames<'a> where voice_flags.is(VoiceCodec::Speex),
        /// The packet, if the audio is encoded with Opus.
        opus "opus": OpusPacket<'a> where voice_flags.is(VoiceCodec::Opus),
        /// The players who hear the sender.
        receivers "receivers": List<u8, u32>,
    }

    /// Requests or releases the lock of an object. The server replies to a request with a
    /// `plServerReplyMsg`; a release gets no reply.
    0x027d TestAndSet<'a> "plNetMsgTestAndSet" in "plNetMsgSharedState", Client used {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
        /// The state that represents the lock.
        stream "stream": Stream<'a, SharedPayload>,
        /// True to request the lock, false to release it.
        lock_request "lockRequest": Bool8,
    }

    /// Requests a shared state.
    0x027e GetSharedState<'a> "plNetMsgGetSharedState" in "plNetMsgObject", Client unused {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
        /// The name of the state.
        shared_state_name "sharedStateName": FixedText<'a, 32>,
    }

    /// Requests the state of an object.
    0x0286 ObjStateRequest<'a> "plNetMsgObjStateRequest" in "plNetMsgObject", Client unused {
        ..header: NetHeader,
        /// The object.
        object "object": Uoid<'a>,
    }

    /// Restricts the objects whose updates the client wants, and their rate. No server handles it.
    0x029d ObjectUpdateFilter<'a> "plNetMsgObjectUpdateFilter" in "plNetMessage", Client used {
        ..header: NetHeader,
        /// The objects.
        objects "objects": List<i16, Uoid<'a>>,
        /// The maximum updates per second; negative for no limit.
        max_update_frequency "maxUpdateFrequency": Float,
    }

    /// Requests the list of members. The server replies with a `plNetMsgMembersList`.
    0x02ad MembersListReq "plNetMsgMembersListReq" in "plNetMessage", Client used {
        ..header: NetHeader,
    }

    /// The members of the age. The list replaces the receiver's own and must not contain the
    /// receiver.
    0x02ae MembersList<'a> "plNetMsgMembersList" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The players.
        members "members": List<i16, MemberInfo<'a>>,
    }

    /// A player joined or left the age.
    0x02b1 MemberUpdate<'a> "plNetMsgMemberUpdate" in "plNetMsgServerToClient", Server used {
        ..header: NetHeader,
        /// The player.
        member "member": MemberInfo<'a>,
        /// True if the player joined, false if the player left.
        was_added "wasAdded": Bool8,
    }

    /// Everything requested by a `plNetMsgGameStateRequest` has been sent. Clients wait until they
    /// have received this many initial messages.
    0x02b8 InitialAgeStateSent "plNetMsgInitialAgeStateSent" in "plNetMsgServerToClient",
    Server used {
        ..header: NetHeader,
        /// The number of messages sent as initial state.
        state_count "stateCount": u32,
    }

    /// Changes the players that a client listens to.
    0x02c8 ListenListUpdate "plNetMsgListenListUpdate" in "plNetMessage", Both unused {
        ..header: NetHeader,
        /// True to add the players, false to remove them.
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
        /// Whether this is part of the initial state for a joining client. Variables that are not
        /// set take their default values.
        is_initial_state "isInitialState": Bool8,
        /// Whether the server keeps the state when the age is empty.
        persist_on_server "persistOnServer": Bool8,
        /// Whether this is the state of an avatar.
        is_avatar_state "isAvatarState": Bool8,
    }

    /// The state of an object, which the server keeps and broadcasts.
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

    /// The regions of the age that the player is in, and those the player cares about.
    0x03ac RelevanceRegions "plNetMsgRelevanceRegions" in "plNetMessage", Client used {
        ..header: NetHeader,
        /// The regions that the player cares about.
        care_about "careAbout": BitVector,
        /// The regions that the player is in.
        in_ "in": BitVector,
    }

    /// Loads or unloads a clone. The payload is a `plLoadCloneMsg` or a `plLoadAvatarMsg`.
    0x03b3 LoadClone<'a> "plNetMsgLoadClone" in "plNetMsgGameMessage", Both used {
        ..header: NetHeader,
        /// The message.
        stream "stream": Stream<'a, ClonePayload>,
        /// Whether a delivery time follows.
        has_delivery_time "hasDeliveryTime": Bool8,
        /// When to deliver the message.
        delivery_time "deliveryTime": UnifiedTime where has_delivery_time.is_true(),
        /// The clone.
        uoid "uoid": Uoid<'a>,
        /// Whether the clone is a player's avatar.
        is_player "isPlayer": Bool8,
        /// True to load the clone, false to unload it.
        is_loading "isLoading": Bool8,
        /// Whether this is part of the initial state for a joining client.
        is_initial_state "isInitialState": Bool8,
    }

    /// A player's avatar entered or left the age. Servers record this and never forward it.
    0x03b4 PlayerPage<'a> "plNetMsgPlayerPage" in "plNetMessage", Client used {
        ..header: NetHeader,
        /// True if the avatar left.
        unload "unload": Bool8,
        /// The avatar.
        object "object": Uoid<'a>,
    }
}

impl<'d> NetMessage<'d> {
    /// Walks a net message, including its class index, to the end of the enclosing part.
    pub(crate) fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let at = reader.position();
        let class = u16::from_le_bytes(reader.take_array()?);
        let info = class_info(class);
        if info.is_none_or(|info| info.layout != NetClassLayout::Known) {
            let name = info.map(|info| info.name);
            return Err(Refusal::at(Reason::Class(class), name, at).inside("class"));
        }
        Self::walk_class(class.into(), reader, guard)
    }
}
