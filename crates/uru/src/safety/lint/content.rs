//! Inspects the fields of each class.

use worldwire_core::{Error, Field, Limits, Reader, Writer};

use super::Lint;
use crate::inflate::Inflater;
use crate::net_message::{
    Compression, GameMessage, LoadClone, MemberFlags, MemberInfo, NetFlags, NetHeader, NetMessage,
    PageFlags, PagingRoom, Payload, RelevanceRegions, SdlState, SharedState, Stream, TestAndSet,
    Voice,
};
use crate::plasma_message::{
    ArmatureBrain, AvatarObject, BroadcastFlags, ChatFlags, Child, KiMsg, LoadCloneMsg,
    MessageHeader, NULL, PlasmaMessage, ReplyType, ServerReplyMsg,
};
use crate::sdl::{BlobHeader, RecordFlags, StreamFlags};
use crate::types::{ClientGuid, ClientGuidFlags, Float, Location, SequenceNumber, Uoid};

/// The broadcast flags that are repeated in the header flags.
const MIRRORED: [(BroadcastFlags, NetFlags, &str, &str); 3] = [
    (
        BroadcastFlags::NetUseRelevanceRegions,
        NetFlags::UseRelevanceRegions,
        "NetUseRelevanceRegions",
        "UseRelevanceRegions",
    ),
    (
        BroadcastFlags::NetAllowInterAge,
        NetFlags::InterAgeRouting,
        "NetAllowInterAge",
        "InterAgeRouting",
    ),
    (
        BroadcastFlags::CCRSendToAllPlayers,
        NetFlags::RouteToAllPlayers,
        "CCRSendToAllPlayers",
        "RouteToAllPlayers",
    ),
];
/// All broadcast flags that have a name.
const KNOWN_BROADCAST: u32 = 0x3_fffd;
/// All kinds of chat that have a name, and the channel number.
const KNOWN_CHAT: u32 = 0xffff;
/// The class of the objects that have locks: `plLogicModifier`.
const LOGIC_MODIFIER: u16 = 0x002d;
/// The fields of a client's identity that no server sends.
const UNUSED_IDENTITY: [(ClientGuidFlags, &str); 6] = [
    (ClientGuidFlags::TempPlayerID, "TempPlayerID"),
    (ClientGuidFlags::ProtectedLogin, "ProtectedLogin"),
    (ClientGuidFlags::BuildType, "BuildType"),
    (ClientGuidFlags::SrcAddr, "SrcAddr"),
    (ClientGuidFlags::SrcPort, "SrcPort"),
    (ClientGuidFlags::Reserved, "Reserved"),
];

impl Lint {
    pub(super) fn content(&mut self, message: &NetMessage<'_>, limits: &Limits) {
        match message {
            NetMessage::PagingRoom(paging) => self.paging(paging),
            NetMessage::GameStateRequest(request) => {
                self.remark_if(!request.rooms.is_empty(), "a list of rooms, which should be empty");
            }
            NetMessage::Voice(voice) => self.voice(voice),
            NetMessage::GameMessage(game) => {
                self.game(game, limits);
            }
            NetMessage::GameMessageDirected(directed) => {
                let payload = self.game(&directed.game, limits);
                self.remark_if(
                    directed.receivers.is_empty(),
                    "a directed message without receivers",
                );
                let odd = payload.is_some_and(|payload| !is_directed(&payload));
                self.remark_if(odd, "a payload that should not be directed to players");
            }
            NetMessage::LoadClone(clone) => self.load_clone(clone, limits),
            NetMessage::TestAndSet(test) => self.test_and_set(test, limits),
            NetMessage::SdlState(state) => self.state(state, limits),
            NetMessage::SdlStateBCast(broadcast) => self.state(&broadcast.state, limits),
            NetMessage::MembersList(list) => {
                list.members.iter().for_each(|member| self.member(member));
                let receiver = list.header.player_id.filter(|_| !self.is_client());
                let listed = list.members.iter().any(|member| {
                    receiver.is_some_and(|receiver| member.client.player_id == Some(receiver))
                });
                self.remark_if(listed, "a list of members that contains the receiver");
            }
            NetMessage::MemberUpdate(update) => self.member(&update.member),
            NetMessage::RelevanceRegions(regions) => self.regions(regions),
            NetMessage::PlayerPage(page) => {
                self.remark_if(page.unload.is_true(), "unloads an avatar, which clients never do");
                self.own_clone(&page.header, &page.object);
            }
            _ => {}
        }
    }

    fn paging(&mut self, paging: &PagingRoom<'_>) {
        self.remark_if(paging.rooms.is_empty(), "without a page");
        self.remark_if(paging.rooms.len() > 1, "several pages; clients send one at a time");
        self.unknown_bits("page flags", paging.page_flags.0.into(), PageFlags::PagingOut.0.into());
        paging.rooms.iter().for_each(|room| self.page(&room.location));
    }

    /// Inspects a page that a client loads.
    fn page(&mut self, location: &Location) {
        if location.sequence_number.page().is_none() {
            self.remark(format!("page {} does not exist", shown(location.sequence_number)));
        }
    }

    /// Reports unknown bits, which no sender sets.
    fn unknown_bits(&mut self, what: &str, bits: u32, known: u32) {
        let unknown = bits & !known;
        if unknown != 0 {
            self.remark(format!("unused {what} 0x{unknown:x}"));
        }
    }

    fn regions(&mut self, regions: &RelevanceRegions) {
        let cares = &regions.care_about;
        self.remark_if(!cares.contains(0), "`careAbout` lacks region 0, which always applies");
        let missing = regions.in_.bits().any(|bit| !cares.contains(bit));
        self.remark_if(missing, "`careAbout` lacks a region that the player is in");
        let nowhere = regions.in_.bits().next().is_none();
        self.remark_if(
            nowhere,
            "`in` is empty; for players outside all regions, clients send region 0",
        );
    }

    fn state(&mut self, state: &SdlState<'_>, limits: &Limits) {
        self.stream(&state.stream);
        let initial = state.is_initial_state.is_true();
        self.remark_if(self.is_client() && initial, "`isInitialState`, which only servers set");
        let both = state.is_avatar_state.is_true() && state.persist_on_server.is_true();
        self.remark_if(both, "an avatar's state that is marked to persist");
        let mut inflater = Inflater::new();
        let payload = state.stream.payload(&mut inflater, limits);
        let head = payload.and_then(|payload| {
            let mut reader = Reader::within(payload, limits);
            let head = BlobHeader::decode_fields(&mut reader)?;
            let flags = RecordFlags::decode(&mut reader, "recordFlags")?;
            let [version] = reader.take_array()?;
            Ok((head.flags, flags, version))
        });
        match head {
            Ok((stream, record, version)) => {
                let known = StreamFlags::HasUoid | StreamFlags::AddedVarLengthIO;
                self.unknown_bits("stream flags", stream.0.into(), known.0.into());
                self.unknown_bits("record flags", record.0.into(), RecordFlags::Volatile.0.into());
                if version != 6 {
                    self.remark(format!("record version {version}; all senders use 6"));
                }
            }
            Err(error) => self.remark(error.closed().inside("stream.sdl").to_string()),
        }
    }

    fn test_and_set(&mut self, test: &TestAndSet<'_>, limits: &Limits) {
        self.stream(&test.stream);
        let class = test.object.class_index;
        if class != LOGIC_MODIFIER {
            self.remark(format!(
                "a lock of an object of class 0x{class:04x}; only plLogicModifier (0x002d) has locks"
            ));
        }
        let lock = test.lock_request.is_true();
        let mut inflater = Inflater::new();
        let usual = test.stream.payload(&mut inflater, limits).and_then(|payload| {
            let state = SharedState::decode(&mut Reader::within(payload, limits), "sharedState")?;
            Ok(state == SharedState::trigger(lock))
        });
        let odd = usual.is_ok_and(|usual| !usual);
        let (request, state) = if lock { ("request", "true") } else { ("release", "false") };
        if odd {
            self.remark(format!(
                "a lock {request} whose state is not TrigState with Triggered {state}"
            ));
        }
    }

    fn load_clone(&mut self, load: &LoadClone<'_>, limits: &Limits) {
        let initial = load.is_initial_state.is_true();
        self.remark_if(self.is_client() && initial, "`isInitialState`, which only servers set");
        let Some(payload) = self.wrapped(&load.header, &load.stream, limits) else { return };
        let (inner, is_player) = match &payload {
            PlasmaMessage::LoadCloneMsg(clone) => (clone, false),
            PlasmaMessage::LoadAvatarMsg(avatar) => (&avatar.clone_msg, avatar.is_player.is_true()),
            _ => return,
        };
        self.clone(&load.header, inner);
        let loading = inner.loading.is_true() == load.is_loading.is_true();
        self.remark_if(!loading, "message and payload disagree about loading");
        let same = is_player == load.is_player.is_true();
        self.remark_if(
            !same && self.is_client(),
            "message and payload disagree about whether the clone is a player",
        );
        let named = inner.clone.uoid().is_none_or(|uoid| *uoid == load.uoid);
        // When servers create clones for joining clients, they name the clones only in the payload.
        let nameless = !self.is_client() && load.uoid.name.stored().is_empty();
        self.remark_if(!named && !nameless, "message and payload name different clones");
        self.remark_if(
            !nameless && load.uoid.clone.is_none(),
            "an object that is not a clone: it has no clone ID",
        );
    }

    /// Reports an object that is not a clone created by the sender.
    fn own_clone(&mut self, header: &NetHeader, object: &Uoid<'_>) {
        let made_by = object.clone.map(|ids| ids.player_id);
        let own = header.player_id.is_none_or(|player| made_by == Some(player));
        self.remark_if(self.is_client() && !own, "an avatar that the sender did not create");
    }

    fn stream<K>(&mut self, stream: &Stream<'_, K>) {
        let (length, count) = (stream.uncompressed_length() as usize, stream.as_bytes().len());
        match stream.compression() {
            Compression::None | Compression::Dont => {
                // Servers compress less often, and write the size where clients write 0.
                let long = stream.compression() == Compression::None && count > 255;
                self.remark_if(self.is_client() && long, "more than 255 bytes without compression");
                let odd = length != 0 && (length != count || self.is_client());
                self.remark_if(odd, "an uncompressed length although nothing is compressed");
            }
            Compression::Failed => {
                self.remark_if(length != count, "two different lengths for the same bytes");
                let short = "compression marked as failed, although clients do not compress 255 \
                             bytes or fewer";
                self.remark_if(count <= 255, short);
            }
            Compression::Zlib => {
                self.remark_if(count >= length, "compressed without saving space");
                self.remark_if(
                    self.is_client() && length <= 255,
                    "compressed, although it has at most 255 bytes",
                );
            }
            Compression(other) => self.remark(format!("unknown compression {other}")),
        }
    }

    fn game(&mut self, game: &GameMessage<'_>, limits: &Limits) -> Option<PlasmaMessage<'static>> {
        let payload = self.wrapped(&game.header, &game.stream, limits)?;
        let timestamp = payload.header().map(|inner| inner.timestamp.0);
        let odd = timestamp.is_some_and(|time| time != 0.0) && !game.has_delivery_time.is_true();
        self.remark_if(odd, "a timestamp without a delivery time");
        Some(payload)
    }

    /// Inspects a net message and returns the Plasma message in it.
    fn wrapped<K: Payload>(
        &mut self,
        header: &NetHeader,
        stream: &Stream<'_, K>,
        limits: &Limits,
    ) -> Option<PlasmaMessage<'static>> {
        self.stream(stream);
        let real = header.flags.contains(NetFlags::HasGameMsgRcvrs);
        let dont = stream.compression() == Compression::Dont;
        self.remark_if(
            real && !dont,
            "the flag HasGameMsgRcvrs without compression Dont; clients send both",
        );
        self.remark_if(
            !real && dont,
            "compression Dont without the flag HasGameMsgRcvrs; clients send both",
        );
        let mut inflater = Inflater::new();
        let read = |payload: &[u8]| {
            let mut reader = Reader::within(payload, limits);
            let message = PlasmaMessage::decode(&mut reader, "payload").map_err(Error::closed)?;
            reader.end()?;
            Ok(message.into_owned())
        };
        // Undecodable payloads have already been refused by the safety check.
        let message = stream.payload(&mut inflater, limits).and_then(read).ok()?;
        self.payload(header, &message);
        Some(message)
    }

    fn payload(&mut self, header: &NetHeader, message: &PlasmaMessage<'_>) {
        if let PlasmaMessage::Other(other) = message {
            self.remark(format!(
                "a payload of class 0x{:04x}, whose layout is unknown",
                other.class
            ));
            return;
        }
        if let Some(inner) = message.header() {
            self.payload_header(header, inner);
        }
        match message {
            PlasmaMessage::KiMsg(chat) => self.chat(header, chat),
            PlasmaMessage::ServerReplyMsg(reply) => self.reply(reply),
            PlasmaMessage::AvPushBrainMsg(push) => {
                if let Some(object) = push.brain.0.as_deref() {
                    brain(object).into_iter().for_each(|brain| self.brain(brain));
                    self.has_bare_nulls = has_bare_nulls(object);
                    self.remark_if(
                        self.has_bare_nulls,
                        "a brain whose messages are null, without the booleans before them; \
                         clients read it only by chance",
                    );
                }
            }
            _ => {}
        }
    }

    fn payload_header(&mut self, header: &NetHeader, inner: &MessageHeader<'_>) {
        let flags = inner.bcast_flags;
        for (bit, flag, name, mirror) in MIRRORED {
            match (flags.contains(bit), header.flags.contains(flag)) {
                (true, false) => self.remark(format!("{name} without {mirror}")),
                (false, true) => self.remark(format!("{mirror} without {name}")),
                _ => {}
            }
        }
        self.unknown_bits("broadcast flags", flags.0, KNOWN_BROADCAST);
        let delivered = BroadcastFlags::NetPropagate.0 | BroadcastFlags::LocalPropagate.0;
        self.remark_if(
            flags.0 & delivered == 0,
            "neither NetPropagate nor LocalPropagate; clients drop the message",
        );
        if self.is_client() {
            let propagated = flags.contains(BroadcastFlags::NetPropagate);
            self.remark_if(
                !propagated && flags.0 & delivered != 0,
                "without NetPropagate; clients do not send such messages",
            );
            let real = inner.receivers.iter().filter_map(|key| key.uoid()).any(|uoid| {
                let number = uoid.location.sequence_number.0;
                number != 0 && number < 0xff00_0000
            });
            let is_lossy = flags.contains(BroadcastFlags::NetSendUnreliable);
            let is_reliable = header.flags.contains(NetFlags::NeedsReliableSend);
            self.remark_if(!is_lossy && !is_reliable, "without the flag NeedsReliableSend");
            let marked = header.flags.contains(NetFlags::HasGameMsgRcvrs);
            self.remark_if(marked && !real, "the flag HasGameMsgRcvrs, but no actual receivers");
            self.remark_if(!marked && real, "actual receivers without the flag HasGameMsgRcvrs");
        }
    }

    fn reply(&mut self, reply: &ServerReplyMsg<'_>) {
        self.remark_if(self.is_client(), "a server reply sent by a client");
        let odd = reply.reply_type == ReplyType::Uninit;
        self.remark_if(odd, "an uninitialised reply, which clients interpret as a grant");
        let known =
            matches!(reply.reply_type, ReplyType::Uninit | ReplyType::Deny | ReplyType::Affirm);
        self.remark_if(!known, "an unknown reply, which clients interpret as a grant");
        self.remark_if(!reply.message.sender.is_none(), "a server reply with a sender");
        let one = reply.message.receivers.len() == 1;
        self.remark_if(!one, "a server reply without exactly one receiver");
    }

    /// Inspects the reserved fields of a brain.
    fn brain(&mut self, brain: &ArmatureBrain<'_>) {
        let is_zero = brain.reserved1 == 0
            && brain.key.is_none()
            && brain.reserved2 == 0
            && brain.reserved3 == Float::default()
            && brain.reserved4.0.to_bits() == 0;
        self.remark_if(!is_zero, "reserved fields of a brain that are not zero");
    }

    fn chat(&mut self, header: &NetHeader, chat: &KiMsg<'_>) {
        self.remark_if(!chat.text.is_canonical(), "text that is not encoded as clients encode it");
        self.remark_if(chat.text.to_text().contains('\0'), "text with a NUL character");
        self.unknown_bits("chat flags", chat.flags.0, KNOWN_CHAT);
        let admin = chat.flags.contains(ChatFlags::Admin) && self.is_client();
        self.remark_if(admin, "chat marked as an administrator's");
        let other = header.player_id.is_some_and(|player| player != chat.player_id);
        self.remark_if(other, "chat in the name of another player");
    }

    fn clone(&mut self, header: &NetHeader, clone: &LoadCloneMsg<'_>) {
        let other = header.player_id.is_some_and(|player| player != clone.originating_player_id);
        self.remark_if(other && self.is_client(), "a clone of a player other than the sender");
        self.remark_if(!clone.valid.is_true(), "an invalid clone");
    }

    fn member(&mut self, member: &MemberInfo<'_>) {
        self.remark_if(member.flags != MemberFlags(0), "member flags, which should be 0");
        self.client(&member.client);
    }

    fn client(&mut self, client: &ClientGuid<'_>) {
        let secret = ClientGuidFlags::AccountUUID | ClientGuidFlags::ClientKey;
        let shown = client.flags.has(secret);
        self.remark_if(shown, "a player's account or key, which must not be shared");
        let both = ClientGuidFlags::PlayerID | ClientGuidFlags::TempPlayerID;
        let both = client.flags.contains(both);
        self.remark_if(both, "a player number that is both permanent and temporary");
        for (flag, name) in UNUSED_IDENTITY {
            if client.flags.contains(flag) {
                self.remark(format!("the unused field {name} of a player"));
            }
        }
        self.unknown_bits("player fields", client.flags.0.into(), 0x7ff);
    }

    fn voice(&mut self, voice: &Voice<'_>) {
        let known = matches!(voice.voice_flags.0, 0 | 1 | 3 | 5);
        if !known {
            self.remark(format!("unknown voice flags {}", voice.voice_flags.0));
        }
        self.remark_if(voice.header.player_id.is_none(), "voice without a sender; clients drop it");
        if voice.pcm.is_some() {
            let counted = voice.frame_count == 0;
            self.remark_if(!counted, "a frame count although the audio is not encoded");
        }
        if let Some(speex) = &voice.speex {
            let counted = speex.frames().count() == usize::from(voice.frame_count);
            self.remark_if(!counted, "a frame count that does not match the frames");
            self.remark_if(!speex.trailing().is_empty(), "bytes after the last frame");
        }
        if let Some(opus) = &voice.opus {
            let zero = opus.split().is_some_and(|(head, _)| head == 0);
            self.remark_if(!zero, "an Opus packet that does not begin with four zeros");
        }
        // Some clients do not mark echoed audio if it is not encoded.
        if self.is_client() && voice.pcm.is_none() {
            let echo = voice.header.flags.contains(NetFlags::EchoBackToSender);
            let listed = voice.header.player_id.is_some_and(|own| voice.receivers.contains(&own));
            self.remark_if(
                echo && !listed,
                "the flag EchoBackToSender, but the sender is not listed",
            );
            self.remark_if(
                !echo && listed,
                "the sender is listed without the flag EchoBackToSender",
            );
        }
    }
}

/// Whether clients send this payload to selected players.
fn is_directed(payload: &PlasmaMessage<'_>) -> bool {
    matches!(
        payload,
        PlasmaMessage::KiMsg(_)
            | PlasmaMessage::CcrCommunicationMsg(_)
            | PlasmaMessage::AvatarInputStateMsg(_)
            | PlasmaMessage::InputIfaceMgrMsg(_)
            | PlasmaMessage::NotifyMsg(_)
    )
}

fn brain<'b, 'd>(object: &'b AvatarObject<'d>) -> Option<&'b ArmatureBrain<'d>> {
    match object {
        AvatarObject::AvBrainHuman(human) => Some(&human.brain),
        AvatarObject::AvBrainGeneric(generic) => Some(&generic.brain),
        AvatarObject::AvBrainCoop(coop) => Some(&coop.generic.brain),
        _ => None,
    }
}

/// Whether both messages of a brain are encoded as a bare null class index, without the boolean that
/// should come first.
/// Readers mistake the first index for two booleans.
fn has_bare_nulls(object: &AvatarObject<'_>) -> bool {
    let generic = match object {
        AvatarObject::AvBrainGeneric(generic) => generic,
        AvatarObject::AvBrainCoop(coop) => &coop.generic,
        _ => return false,
    };
    let mut writer = Writer::new();
    let both = [generic.has_start_msg, generic.has_end_msg];
    let written = both.iter().try_for_each(|it| it.encode(&mut writer));
    let is_null = matches!(generic.end_msg, Some(Child(None)));
    written.is_ok() && is_null && writer.as_bytes() == NULL.to_le_bytes()
}

/// A page number in hex.
pub(super) fn shown(number: SequenceNumber) -> String {
    format!("0x{:x}", number.0)
}
