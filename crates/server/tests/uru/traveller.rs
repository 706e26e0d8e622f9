//! Travelling players, each with an auth connection, and with a game connection in an age.

use worldwire_core::{Bytes32, Field, Reader, Writer};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::game::client as game;
use worldwire_uru::message::game::server::ServerMessage as GameReply;
use worldwire_uru::net_message::{
    GameMessage, GameStateRequest, LoadClone, MembersListReq, NetFlags, NetHeader, NetMessage,
    SdlState, SdlStateBCast, SharedState, Stream, TestAndSet,
};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, Child, KiCommand, KiMsg, LoadCloneMsg, MessageHeader, PlasmaMessage,
};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, NetError, TransId, UnifiedTime, Uoid, Uuid,
};

use crate::client::{Client, Running};
use crate::fern::{FERN, object};

/// A player on an auth connection, and the age server to which it was sent.
pub(crate) struct Traveller {
    pub(crate) auth: Client,
    pub(crate) account: Uuid,
    pub(crate) player: u32,
    pub(crate) number: u32,
    /// The address of the age's server.
    pub(crate) host: [u8; 4],
    /// The token for resuming a lost auth connection.
    pub(crate) token: Uuid,
}

macro_rules! auth_reply {
    ($client:expr, $Reply:ident, $take:expr) => {
        loop {
            let heard = $client.hear().await.unwrap();
            match heard.message() {
                Message::AuthServer(Reply::$Reply(reply)) => break $take(&reply),
                Message::AuthServer(
                    Reply::VaultNodeChanged(_)
                    | Reply::VaultNodeAdded(_)
                    | Reply::VaultNodeRemoved(_)
                    | Reply::ServerAddr(_)
                    | Reply::ServerCaps(_),
                ) => {}
                other => panic!("{other:?}"),
            }
        }
    };
}
pub(crate) use auth_reply;

impl Traveller {
    /// Logs in, chooses a player with this name, and requests the age in the vault.
    pub(crate) async fn to_fern(shard: &Running, account: (&str, &str), name: &str) -> Self {
        Self::to(shard, account, name, FERN).await
    }

    /// Logs in, chooses a player with this name, and requests an instance of the age. Instances
    /// other than [`FERN`] are not in the vault.
    pub(crate) async fn to(
        shard: &Running,
        (account, password): (&str, &str),
        name: &str,
        instance: Uuid,
    ) -> Self {
        let key = shard.keys.public(ServerKind::Auth).cloned();
        let mut auth = shard.client(Service::Auth, key).await;
        auth.say(Message::from(ask::ClientMessage::from(ask::ClientRegisterRequest {
            build_id: 918,
        })))
        .await;
        let challenge =
            auth_reply!(auth, ClientRegisterReply, |it: &reply::ClientRegisterReply| it
                .server_challenge);
        let fields = login_fields(account, password, 5, challenge);
        say(
            &auth,
            ask::AcctLoginRequest {
                trans_id: TransId(1),
                client_challenge: fields.client_challenge,
                account_name: account.into(),
                challenge_hash: fields.challenge_hash,
                auth_token: "".into(),
                os: "win".into(),
            },
        )
        .await;
        let (mut player, mut account, mut token) = (0, Uuid::ZERO, Uuid::ZERO);
        while account.is_zero() {
            match auth.hear().await.unwrap().message() {
                Message::AuthServer(Reply::AcctPlayerInfo(info)) => player = info.player_id,
                Message::AuthServer(Reply::AcctLoginReply(reply)) => {
                    assert_eq!(reply.result, NetError::Success);
                    account = reply.account_id;
                }
                Message::AuthServer(Reply::ServerAddr(told)) => token = told.token,
                Message::AuthServer(Reply::ServerCaps(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        if player == 0 {
            say(
                &auth,
                ask::PlayerCreateRequest {
                    trans_id: TransId(2),
                    player_name: name.into(),
                    avatar_shape: "female".into(),
                    friend_invite: "".into(),
                },
            )
            .await;
            player = auth_reply!(auth, PlayerCreateReply, |it: &reply::PlayerCreateReply<'_>| it
                .player_id);
        }
        say(&auth, ask::AcctSetPlayerRequest { trans_id: TransId(3), player_id: player }).await;
        assert_eq!(
            auth_reply!(auth, AcctSetPlayerReply, |it: &reply::AcctSetPlayerReply| it.result),
            NetError::Success
        );
        let mut traveller = Self { auth, account, player, number: 0, host: [0; 4], token };
        traveller.makes_the_age(FERN, "").await;
        traveller.asks_for_the_age(instance).await;
        traveller
    }

    /// Creates the instance if it does not exist.
    pub(crate) async fn makes_the_age(&mut self, instance: Uuid, user: &'static str) {
        say(
            &self.auth,
            ask::VaultInitAgeRequest {
                trans_id: TransId(4),
                age_instance_id: instance,
                parent_age_instance_id: Uuid::ZERO,
                age_filename: "Fern".into(),
                age_instance_name: "Fern".into(),
                age_user_name: user.into(),
                age_description: "".into(),
                age_sequence_number: 0,
                age_language: -1,
            },
        )
        .await;
        assert_eq!(
            auth_reply!(self.auth, VaultInitAgeReply, |it: &reply::VaultInitAgeReply| it.result),
            NetError::Success
        );
    }

    /// Requests the age, as a player who is about to join does.
    pub(crate) async fn asks_for_the_age(&mut self, instance: Uuid) {
        assert_eq!(self.tries_the_age(instance).await, NetError::Success);
    }

    /// Requests the age and returns the result.
    pub(crate) async fn tries_the_age(&mut self, instance: Uuid) -> NetError {
        let (trans_id, age_name) = (TransId(5), "Fern".into());
        say(&self.auth, ask::AgeRequest { trans_id, age_name, age_instance_id: instance }).await;
        let (result, number, host) = auth_reply!(self.auth, AgeReply, |it: &reply::AgeReply| (
            it.result,
            it.age_mcp_id,
            it.game_server_address.0
        ));
        (self.number, self.host) = (number, host.octets());
        result
    }

    /// Joins on a new connection.
    pub(crate) async fn join(&self, shard: &Running) -> Visitor {
        let mut visitor = Visitor::connect(shard, self.player).await;
        let result = visitor.ask_in(self.number, self.account, self.player).await;
        assert_eq!(result, NetError::Success);
        visitor
    }
}

pub(crate) async fn say(client: &Client, message: impl Into<ask::ClientMessage<'static>>) {
    client.say(Message::from(message.into())).await;
}

/// A game connection.
pub(crate) struct Visitor {
    pub(crate) game: Client,
    pub(crate) player: u32,
}

impl Visitor {
    pub(crate) async fn connect(shard: &Running, player: u32) -> Self {
        let key = shard.keys.public(ServerKind::Game).cloned();
        Self { game: shard.client(Service::Game, key).await, player }
    }

    pub(crate) async fn ask_in(
        &mut self,
        age_mcp_id: u32,
        account_id: Uuid,
        player_id: u32,
    ) -> NetError {
        let trans_id = TransId(9);
        let request = game::JoinAgeRequest { trans_id, age_mcp_id, account_id, player_id };
        self.game.say(Message::from(game::ClientMessage::from(request))).await;
        match self.game.hear().await.unwrap().message() {
            Message::GameServer(GameReply::JoinAgeReply(reply)) => reply.result,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn says<'m>(&self, message: impl Into<NetMessage<'m>>) {
        let message: NetMessage<'m> = message.into();
        let buffer = bytes(&message);
        let class = u16::from_le_bytes(*buffer.first_chunk().unwrap());
        let (type_, buffer) = (ClassIndex(class.into()), Bytes32::new(buffer));
        let message = game::PropagateBuffer { type_, buffer };
        self.game.say(Message::from(game::ClientMessage::from(message))).await;
    }

    /// The next net message.
    pub(crate) async fn hears(&mut self) -> NetMessage<'static> {
        let heard = self.game.hear().await.expect("the connection is open");
        match heard.message() {
            Message::GameServer(GameReply::PropagateBuffer(message)) => {
                let mut reader = Reader::new(&message.buffer);
                NetMessage::decode(&mut reader, "").unwrap().into_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn header(&self, flags: NetFlags) -> NetHeader {
        let time = UnifiedTime { seconds: 5, microseconds: 6 };
        NetHeader::from_client(time, self.player, flags)
    }

    pub(crate) async fn asks_for_members(&mut self) -> Vec<String> {
        self.says(MembersListReq { header: self.header(NetFlags::IsSystemMessage) }).await;
        match self.hears().await {
            NetMessage::MembersList(list) => {
                let name = |client: &worldwire_uru::types::ClientGuid<'_>| {
                    client.player_name.as_ref().unwrap().to_text()
                };
                list.members.iter().map(|member| name(&member.client)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Requests the age's state and returns the announced number of initial messages.
    pub(crate) async fn asks_for_state(&mut self) -> Vec<NetMessage<'static>> {
        let flags = NetFlags::IsSystemMessage | NetFlags::InitialAgeStateRequest;
        let rooms = Vec::new().into();
        self.says(GameStateRequest { header: self.header(flags), rooms }).await;
        let mut initial = Vec::new();
        loop {
            match self.hears().await {
                NetMessage::InitialAgeStateSent(sent) => {
                    assert_eq!(sent.state_count as usize, initial.len());
                    return initial;
                }
                message => initial.push(message),
            }
        }
    }

    pub(crate) async fn asks_for_lock(&mut self) -> i32 {
        let shared = bytes(&SharedState::trigger(true));
        self.says(TestAndSet {
            header: self.header(NetFlags(0)),
            object: object(0x2d, "Lever"),
            stream: Stream::new(shared),
            lock_request: true.into(),
        })
        .await;
        let NetMessage::GameMessage(reply) = self.hears().await else { panic!("no reply") };
        let payload = reply.stream.as_bytes().to_vec();
        match PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap() {
            PlasmaMessage::ServerReplyMsg(reply) => reply.reply_type.0,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn changes(&self, object: Uoid<'static>, blob: Vec<u8>) {
        self.says(self.state(object, blob)).await;
    }

    pub(crate) fn state(&self, object: Uoid<'static>, blob: Vec<u8>) -> SdlStateBCast<'static> {
        SdlStateBCast {
            state: SdlState {
                header: self.header(NetFlags(0)),
                object,
                stream: Stream::new(blob),
                is_initial_state: false.into(),
                persist_on_server: true.into(),
                is_avatar_state: false.into(),
            },
        }
    }

    pub(crate) async fn loads_its_avatar(&self) {
        let clone = Some(CloneIds { id: 1, filler: 0, player_id: self.player });
        let uoid = Uoid { clone, ..object(1, "Male") };
        let payload = LoadCloneMsg {
            message: message_header(),
            clone: Key::from(uoid.clone()),
            requestor: Key::NONE,
            originating_player_id: self.player,
            user_data: 0,
            valid: true.into(),
            loading: true.into(),
            trigger: Child::NONE,
        };
        self.says(LoadClone {
            header: self.header(NetFlags(0)),
            stream: Stream::new(bytes(&PlasmaMessage::from(payload))),
            has_delivery_time: false.into(),
            delivery_time: None,
            uoid,
            is_player: true.into(),
            is_loading: true.into(),
            is_initial_state: false.into(),
        })
        .await;
    }

    pub(crate) async fn chats(&self, user: &str) {
        let chat = KiMsg {
            message: message_header(),
            command: KiCommand(0),
            user: user.to_owned().as_str().into(),
            player_id: self.player,
            text: "Shorah".into(),
            flags: ChatFlags(0),
            delay: 0.0.into(),
            value: 0,
        };
        self.says(GameMessage {
            header: self.header(NetFlags(0)),
            stream: Stream::new(bytes(&PlasmaMessage::from(chat))),
            has_delivery_time: false.into(),
            delivery_time: None,
        })
        .await;
    }
}

pub(crate) fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).unwrap();
    writer.into_bytes()
}

pub(crate) fn message_header() -> MessageHeader<'static> {
    let bcast_flags = BroadcastFlags::NetPropagate;
    MessageHeader {
        sender: Key::NONE,
        receivers: Vec::new().into(),
        timestamp: Double(0.0),
        bcast_flags,
    }
}
