//! Players in ages, over sockets: they see each other, one wins a lock, their changes survive a
//! restart, and only expected players can join.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use worldwire_core::{Bytes32, Field, Reader, Writer};
use worldwire_server::operators::Operated as _;
use worldwire_server::uru::admin::Request;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::AccountFlags;
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
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectState, Scalar, hook};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, Location, LocationFlags, NetError, SequenceNumber, TermStr,
    TransId, UnifiedTime, Uoid, Uuid,
};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::client::{ACCOUNTS, Client, Running};

pub(crate) const PREFIX: i32 = 120;
pub(crate) const FERN: Uuid = Uuid([7; 16]);
const SDL: &str = "
STATEDESC Fern { VERSION 1 VAR BOOL open[1] }
STATEDESC lever { VERSION 1 VAR INT place[1] }
";

pub(crate) fn prepare(folder: &Path) {
    let data = folder.join("data");
    std::fs::create_dir_all(data.join("ages")).unwrap();
    std::fs::create_dir_all(data.join("secure/SDL")).unwrap();
    let age = format!("MaxCapacity=5\nLingerTime=60\nSequencePrefix={PREFIX}\n");
    std::fs::write(data.join("ages/Fern.age"), age).unwrap();
    std::fs::write(data.join("secure/SDL/Fern.sdl"), SDL).unwrap();
}

pub(crate) fn descriptors() -> Arc<Descriptors> {
    Arc::new(Descriptors::load([("Fern.sdl", SDL)]))
}

/// A player on an auth connection, and the age server it was sent to.
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

impl Traveller {
    /// Logs in with a player of this name and requests the age in the vault.
    pub(crate) async fn to_fern(shard: &Running, account: (&str, &str), name: &str) -> Self {
        Self::to(shard, account, name, FERN).await
    }

    /// Logs in with a player of this name and requests an instance of the age. Instances other
    /// than [`FERN`] are not in the vault.
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

    /// Requests the age, as a player about to join.
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

async fn say(client: &Client, message: impl Into<ask::ClientMessage<'static>>) {
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

pub(crate) fn object(class_index: u16, name: &'static str) -> Uoid<'static> {
    let sequence_number = SequenceNumber::from_page(PREFIX, 0).unwrap();
    let location = Location { sequence_number, flags: LocationFlags(0) };
    let name = name.into();
    Uoid { location, load_mask: None, class_index, object_id: 7, name, clone: None }
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

pub(crate) fn blob(descriptor: &str, variable: &str, value: Scalar<'_>) -> Vec<u8> {
    blob_at(descriptor, variable, value, 1_700_000_000)
}

/// A state with a variable that was changed at this time.
pub(crate) fn blob_at(
    descriptor: &str,
    variable: &str,
    value: Scalar<'_>,
    seconds: u32,
) -> Vec<u8> {
    let descriptors = descriptors();
    let mut state = ObjectState::new(descriptors.newest(descriptor).unwrap());
    let now = UnifiedTime { seconds, microseconds: 0 };
    state.set(variable, &[value], &now).unwrap();
    state.to_blob().to_bytes().unwrap()
}

/// The object and the value of a received state.
pub(crate) fn told(message: &NetMessage<'_>, variable: &str) -> (String, Option<String>) {
    let state = match message {
        NetMessage::SdlState(state) => state,
        NetMessage::SdlStateBCast(broadcast) => &broadcast.state,
        other => panic!("{other:?}"),
    };
    let descriptors = descriptors();
    let payload = state.stream.as_bytes().to_vec();
    let blob = Blob::decode(&descriptors, &mut Reader::new(&payload)).unwrap();
    let value = ObjectState::of(&blob).scalar(variable).map(|value| format!("{value:?}"));
    (state.object.name.to_text(), value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_players_meet_and_find_the_age_as_they_left_it() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    assert_eq!(ann.number, bob.number);

    // They see each other arrive.
    let mut yeesha = ann.join(&shard).await;
    let NetMessage::GroupOwner(owner) = yeesha.hears().await else { panic!() };
    assert!(owner.groups[0].owned.is_true());
    let mut atrus = bob.join(&shard).await;
    let NetMessage::GroupOwner(owner) = atrus.hears().await else { panic!() };
    assert!(!owner.groups[0].owned.is_true());
    let NetMessage::MemberUpdate(update) = yeesha.hears().await else { panic!() };
    assert_eq!(update.member.client.player_id, Some(bob.player));
    assert_eq!(atrus.asks_for_members().await, ["Yeesha"]);
    assert_eq!(yeesha.asks_for_members().await, ["Atrus"]);
    yeesha.loads_its_avatar().await;
    assert!(matches!(atrus.hears().await, NetMessage::LoadClone(_)));

    // They talk. A name that would crash clients is not forwarded (D-41); the next message is.
    yeesha.chats("\u{c9}owyn").await;
    yeesha.chats("Yeesha").await;
    let NetMessage::GameMessage(chat) = atrus.hears().await else { panic!() };
    assert_eq!(chat.header.player_id, Some(ann.player));
    let PlasmaMessage::KiMsg(said) =
        PlasmaMessage::decode(&mut Reader::new(chat.stream.as_bytes()), "").unwrap()
    else {
        panic!()
    };
    assert_eq!(said.user.to_text(), "Yeesha");

    // One wins the lock.
    assert_eq!(atrus.asks_for_lock().await, 1);
    assert_eq!(yeesha.asks_for_lock().await, 0);

    // They change things.
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    assert_eq!(told(&atrus.hears().await, "place"), ("Lever".into(), Some("Int(5)".into())));
    let gate = hook::object(PREFIX).unwrap();
    yeesha.changes(gate.clone(), blob("Fern", "open", Scalar::Bool(true))).await;
    let (name, open) = told(&atrus.hears().await, "open");
    assert_eq!((&*name, open.is_some()), ("AgeSDLHook", true));

    // A change of the age's state in the vault reaches the players in the age.
    let template = VaultNode {
        node_type: Some(NodeType::SDL),
        string64_1: Some(TermStr::from("Fern")),
        ..VaultNode::default()
    };
    let nodes = shard.vault.find(template).await.unwrap();
    let closed = blob("Fern", "open", Scalar::Bool(false));
    let fields = VaultNode { blob_1: Some(NodeBlob::new(closed)), ..VaultNode::default() };
    shard.vault.set(nodes[0], fields).await.unwrap();
    for visitor in [&mut yeesha, &mut atrus] {
        let (name, now) = told(&visitor.hears().await, "open");
        assert_eq!(name, "AgeSDLHook");
        assert_ne!(now, open);
    }

    // The others see a player leave, and its lock is free again.
    drop(atrus);
    assert!(matches!(yeesha.hears().await, NetMessage::MemberUpdate(_)));
    assert_eq!(yeesha.asks_for_lock().await, 1);

    // After a restart everything is unchanged.
    drop((yeesha, ann, bob));
    let folder = shard.stop().await;
    let shard = Running::start_in(folder, |_| ()).await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let mut atrus = bob.join(&shard).await;
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(atrus.asks_for_members().await, [""; 0]);
    let state = atrus.asks_for_state().await;
    assert_eq!(state.len(), 2);
    let (name, now) = told(&state[0], "open");
    assert_eq!(name, "AgeSDLHook");
    assert!(now.is_some() && now != open);
    assert_eq!(told(&state[1], "place"), ("Lever".into(), Some("Int(5)".into())));

    // Later settings for all instances apply, and reach the players in the age.
    let earlier = blob("Fern", "open", Scalar::Bool(true));
    shard.vault.set_age_settings("Fern", earlier).await.unwrap();
    let later = blob_at("Fern", "open", Scalar::Bool(true), 4_000_000_000);
    shard.vault.set_age_settings("Fern", later.clone()).await.unwrap();
    assert_eq!(told(&atrus.hears().await, "open"), ("AgeSDLHook".into(), open));
    assert_eq!(shard.vault.age_settings("Fern").await.unwrap(), Some(later));
    // A running age would write into the new vault.
    drop((atrus, bob));
    let dump = shard.vault.export().await.unwrap();
    assert_eq!(shard.vault.import(dump, true).await, Err(NetError::LoggedInElsewhere));
    // Nodes with states are no problem for the check of the vault.
    let findings = shard.vault.check().await.unwrap();
    assert!(findings.iter().all(|finding| !finding.problem), "{findings:?}");
    shard.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_expected_players_can_join() {
    let shard = Running::start(prepare, |_| ()).await;
    let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut visitor = Visitor::connect(&shard, ann.player).await;
    for (number, account, player, result) in [
        (ann.number, ann.account, 0, NetError::InvalidParameter),
        (ann.number, ann.account, ann.player + 1, NetError::PlayerNotFound),
        (ann.number, Uuid([9; 16]), ann.player, NetError::PlayerNotFound),
        (ann.number + 1, ann.account, ann.player, NetError::AgeNotFound),
        (ann.number, ann.account, ann.player, NetError::Success),
    ] {
        assert_eq!(visitor.ask_in(number, account, player).await, result);
    }
    assert!(matches!(visitor.hears().await, NetMessage::GroupOwner(_)));

    // Knowing a player's account and number is not enough to take its place.
    let mut other = Visitor::connect(&shard, ann.player).await;
    let refused = other.ask_in(ann.number, ann.account, ann.player).await;
    assert_eq!(refused, NetError::LoggedInElsewhere);
    assert_eq!(visitor.asks_for_members().await, [""; 0]);

    // Another connection of the same player, after another request, replaces the first one.
    ann.asks_for_the_age(FERN).await;
    let mut again = ann.join(&shard).await;
    assert!(visitor.game.hear().await.is_none());
    assert!(matches!(again.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(again.asks_for_members().await, [""; 0]);

    // A net message before the join ends the connection.
    let mut early = Visitor::connect(&shard, ann.player).await;
    early.chats("Yeesha").await;
    assert!(early.game.hear().await.is_none());

    // A player who leaves the shard also leaves the age.
    drop(ann);
    assert!(again.game.hear().await.is_none());
    shard.stop().await;
}

/// A player who returns to the choice of players leaves its age.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_a_player_are_in_no_age() {
    let shard = Running::start(prepare, |_| ()).await;
    let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let (mut atrus, mut yeesha) = (bob.join(&shard).await, ann.join(&shard).await);
    say(&ann.auth, ask::AcctSetPlayerRequest { trans_id: TransId(8), player_id: 0 }).await;
    let result =
        auth_reply!(ann.auth, AcctSetPlayerReply, |it: &reply::AcctSetPlayerReply| it.result);
    assert_eq!(result, NetError::Success);
    while yeesha.game.hear().await.is_some() {}
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    for added in [true, false] {
        let NetMessage::MemberUpdate(update) = atrus.hears().await else { panic!() };
        assert_eq!(update.was_added.is_true(), added);
    }
    shard.stop().await;
}

/// A state that the age cannot use does not replace its state in the vault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_state_in_the_vault_does_not_replace_the_state_of_an_age() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let gate = hook::object(PREFIX).unwrap();
    yeesha.changes(gate, blob("Fern", "open", Scalar::Bool(true))).await;
    assert_eq!(yeesha.asks_for_members().await, [""; 0]);
    let template = VaultNode {
        node_type: Some(NodeType::SDL),
        string64_1: Some(TermStr::from("Fern")),
        ..VaultNode::default()
    };
    let node = shard.vault.find(template).await.unwrap()[0];
    let rubbish = VaultNode { blob_1: Some(NodeBlob::new(vec![0xff; 50])), ..VaultNode::default() };
    shard.vault.set(node, rubbish).await.unwrap();
    let written = async {
        loop {
            let blob = shard.vault.show(node).await.unwrap()["Blob_1"].to_string();
            if !blob.contains("ffff") && blob.len() > 10 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::PATIENCE, written).await.unwrap();
    drop((yeesha, ann));
    let shard = Running::start_in(shard.stop().await, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let state = yeesha.asks_for_state().await;
    assert!(told(&state[0], "open").1.is_some_and(|open| open.contains("true")), "{state:?}");
    drop((yeesha, ann));
    shard.stop().await;
}

/// An operator kicks a player or an account: the client is notified, leaves its age, and can log in
/// again immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_can_kick_players() {
    let shard = Running::start(prepare, |_| ()).await;
    let kick = async |who: &str| {
        let request = Request::Kick { who: who.to_owned() };
        let answer = shard.control().perform(request, &[]).await;
        answer.map(|lines| Json::from(lines).to_string()).map_err(|error| error.to_string())
    };
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let mut atrus = bob.join(&shard).await;
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    for by_account in [false, true] {
        let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
        let mut yeesha = ann.join(&shard).await;
        let who = if by_account { ACCOUNTS[0].0 } else { "yeesha" };
        let thrown_out = kick(who).await.unwrap();
        let named = [format!("{:?}", ACCOUNTS[0].0), ann.player.to_string(), "Yeesha".to_owned()];
        assert!(named.iter().all(|name| thrown_out.contains(name)), "{thrown_out}");
        let reason = auth_reply!(ann.auth, KickedOff, |it: &reply::KickedOff| it.reason);
        assert_eq!(reason, NetError::KickedByCCR);
        assert!(ann.auth.hear().await.is_none());
        while yeesha.game.hear().await.is_some() {}
        for added in [true, false] {
            let NetMessage::MemberUpdate(update) = atrus.hears().await else { panic!() };
            assert_eq!(update.was_added.is_true(), added);
        }
        let again = kick(&ann.player.to_string()).await;
        assert_eq!(again, Err(format!("\"{}\" is not logged in", ann.player)));
    }
    assert_eq!(kick("Gehn").await, Err("no account or player is called \"Gehn\"".to_owned()));
    // An account has the name of another account's player.
    shard.vault.add_account("atrus", "secret", AccountFlags(0)).await.unwrap();
    assert!(kick("Atrus").await.unwrap_err().contains("give the player's number"));
    kick(&bob.player.to_string()).await.unwrap();
    while atrus.game.hear().await.is_some() {}
    shard.stop().await;
}

/// Changes reach the database a moment later, so a crash of the shard cannot lose them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_written_while_the_age_runs() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let yeesha = ann.join(&shard).await;
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    yeesha.changes(object(1, "Gate"), blob("lever", "place", Scalar::Int(6))).await;
    // The states of objects are nodes of a type that no client can create.
    let node_type = Some(NodeType(0x7577_0001));
    let template = VaultNode { node_type, uuid_1: Some(FERN), ..VaultNode::default() };
    let written = async {
        while shard.vault.find(template.clone()).await.unwrap().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::PATIENCE, written).await.unwrap();
    drop((yeesha, ann));
    shard.stop().await;
}

/// In an age without a vault, players meet but nothing persists. A full age refuses more players.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_ages_persist_nothing_and_full_ages_refuse_players() {
    let small = |folder: &Path| {
        prepare(folder);
        std::fs::write(folder.join("data/ages/Fern.age"), "MaxCapacity=1\n").unwrap();
    };
    let shard = Running::start(small, |config| {
        config.auth.temporary_ages = true;
        config.game.refuse_full = true;
    })
    .await;
    let ann = Traveller::to(&shard, ACCOUNTS[0], "Yeesha", Uuid([8; 16])).await;
    let bob = Traveller::to(&shard, ACCOUNTS[1], "Atrus", Uuid([8; 16])).await;
    assert_eq!(ann.number, bob.number);
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    let mut atrus = Visitor::connect(&shard, bob.player).await;
    let result = atrus.ask_in(bob.number, bob.account, bob.player).await;
    assert_eq!(result, NetError::ServerBusy);
    drop((yeesha, ann));
    // The player's slot is free soon.
    while atrus.ask_in(bob.number, bob.account, bob.player).await != NetError::Success {}
    shard.stop().await;
}
