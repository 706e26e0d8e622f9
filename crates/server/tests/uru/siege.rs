//! Ages under attack, over sockets: misbehaving clients do not affect others.

use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::timeout;
use worldwire_core::{Bytes32, Field as _, Limits, Reader};
use worldwire_server::operators::Operated as _;
use worldwire_server::uru::admin::Request;
use worldwire_uru::connection::ClientConfig;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::message::game::client as game;
use worldwire_uru::net_message::{
    GameMessage, LoadClone, MembersListReq, NetFlags, NetMessage, Stream,
};
use worldwire_uru::plasma_message::{
    ChatFlags, Child, KiCommand, KiMsg, LoadCloneMsg, PlasmaMessage, WarpMsg,
};
use worldwire_uru::sdl::Scalar;
use worldwire_uru::types::{ClassIndex, CloneIds, Key, Matrix44, NetError, SequenceNumber, Uoid};

use crate::client::{ACCOUNTS, Client, PATIENCE, Running};
use crate::fern::{blob, object, prepare};
use crate::log::{self, Log};
use crate::player::Player;
use crate::traveller::{Traveller, Visitor, bytes, message_header};

/// Two players in one age who have seen each other arrive.
async fn two(shard: &Running) -> [(Traveller, Visitor); 2] {
    let ann = Traveller::to_fern(shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(shard, ACCOUNTS[1], "Atrus").await;
    let mut yeesha = ann.join(shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let mut atrus = bob.join(shard).await;
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    assert!(matches!(yeesha.hears().await, NetMessage::MemberUpdate(_)));
    [(ann, yeesha), (bob, atrus)]
}

impl Visitor {
    /// Sends chat, even if the connection is closed in the meantime.
    async fn says_bytes(&self, buffer: Vec<u8>) {
        let class = u16::from_le_bytes(*buffer.first_chunk().unwrap());
        let (type_, buffer) = (ClassIndex(class.into()), Bytes32::new(buffer));
        let message = game::PropagateBuffer { type_, buffer };
        self.game.shout(Message::from(game::ClientMessage::from(message))).await;
    }

    fn game_message(&self, payload: impl Into<PlasmaMessage<'static>>) -> GameMessage<'static> {
        GameMessage {
            header: self.header(NetFlags(0)),
            stream: Stream::new(bytes(&payload.into())),
            has_delivery_time: false.into(),
            delivery_time: None,
        }
    }

    fn chat(&self, text: &str) -> GameMessage<'static> {
        let text = text.to_owned();
        let chat = KiMsg {
            message: message_header(),
            command: KiCommand(0),
            user: "x".into(),
            player_id: self.player,
            text: text.as_str().into(),
            flags: ChatFlags(0),
            delay: 0.0.into(),
            value: 0,
        };
        self.game_message(PlasmaMessage::from(chat).into_owned())
    }

    /// Waits until the age has handled everything that this player sent.
    async fn settles(&mut self) {
        self.says(MembersListReq { header: self.header(NetFlags::IsSystemMessage) }).await;
        while !matches!(self.hears().await, NetMessage::MembersList(_)) {}
    }

    async fn hears_of_the_end_of(&mut self, player: u32) {
        loop {
            if let NetMessage::MemberUpdate(update) = self.hears().await
                && update.member.client.player_id == Some(player)
            {
                assert!(!update.was_added.is_true());
                return;
            }
        }
    }
}

fn chat_bytes(chat: &GameMessage<'_>) -> Vec<u8> {
    let mut inflater = Inflater::new();
    chat.stream.payload(&mut inflater, &Limits::DEFAULT).unwrap().to_vec()
}

/// D-34: a client that does not read is disconnected when its queue is full, and it does not delay
/// others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn game_clients_that_do_not_read_are_disconnected() {
    // Otherwise she would have to wait.
    let shard = Running::start(prepare, |config| config.game.bytes_per_second = u32::MAX).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let mut yeesha = ann.join(&shard).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let stream = socket.connect(shard.address).await.unwrap();
    let key = shard.keys.public(ServerKind::Game).cloned();
    let game = Client::connect_over(stream, ClientConfig::new(Service::Game, key)).await;
    let mut atrus = Visitor { game, player: bob.player };
    assert_eq!(atrus.ask_in(bob.number, bob.account, bob.player).await, NetError::Success);
    atrus.game.deafen();
    let long = "round the mill ".repeat(200);
    let mut sent = 0_u32;
    let told = async {
        loop {
            for _ in 0..50 {
                let mut chat = yeesha.chat(&format!("{sent} {long}"));
                // The chat must not compress well.
                chat.stream = Stream::uncompressed(chat_bytes(&chat));
                yeesha.says(chat).await;
                sent += 1;
            }
            yeesha.says(MembersListReq { header: yeesha.header(NetFlags(0)) }).await;
            // She gets replies immediately, no matter what is queued for him.
            loop {
                match yeesha.hears().await {
                    NetMessage::MembersList(list) if list.members.is_empty() => return,
                    NetMessage::MembersList(_) => break,
                    _ => {}
                }
            }
        }
    };
    timeout(2 * PATIENCE, told).await.unwrap();
    assert!(sent > 100, "{sent}");
    shard.stop().await;
}

/// D-42: objects created by a player who has left continue to exist under the name of a player who
/// is present.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_departed_players_get_a_new_owner() {
    let shard = Running::start(prepare, |_| ()).await;
    let [(ann, mut yeesha), (bob, atrus)] = two(&shard).await;
    let clone = Some(CloneIds { id: 2, filler: 0, player_id: atrus.player });
    let uoid = Uoid { clone, ..object(1, "Crab") };
    let payload = LoadCloneMsg {
        message: message_header(),
        clone: Key::from(uoid.clone()),
        requestor: Key::NONE,
        originating_player_id: atrus.player,
        user_data: 0,
        valid: true.into(),
        loading: true.into(),
        trigger: Child::NONE,
    };
    atrus.loads_its_avatar().await;
    atrus
        .says(LoadClone {
            header: atrus.header(NetFlags(0)),
            stream: Stream::new(bytes(&PlasmaMessage::from(payload))),
            has_delivery_time: false.into(),
            delivery_time: None,
            uoid,
            is_player: false.into(),
            is_loading: true.into(),
            is_initial_state: false.into(),
        })
        .await;
    for _ in 0..2 {
        assert!(matches!(yeesha.hears().await, NetMessage::LoadClone(_)));
    }
    atrus.game.lose();
    let NetMessage::LoadClone(gone) = yeesha.hears().await else { panic!("his avatar") };
    assert!(gone.is_player.is_true() && !gone.is_loading.is_true());
    assert!(matches!(yeesha.hears().await, NetMessage::MemberUpdate(_)));
    let mut again = bob.join(&shard).await;
    assert!(matches!(again.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(again.asks_for_members().await, ["Yeesha"]);
    let initial = again.asks_for_state().await;
    let NetMessage::LoadClone(crab) = &initial[0] else { panic!("{initial:?}") };
    let payload = crab.stream.as_bytes().to_vec();
    let payload = PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap();
    let PlasmaMessage::LoadCloneMsg(clone) = payload else { panic!("{payload:?}") };
    let owner = (crab.header.player_id, clone.originating_player_id);
    assert_eq!(owner, (Some(ann.player), ann.player));
    shard.stop().await;
}

/// A lost auth connection keeps its player in the age for as long as its session waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_stay_for_a_while_after_losing_their_auth_connection() {
    let shard = Running::start(prepare, |config| config.auth.reconnect_seconds = 1).await;
    let [(ann, mut yeesha), (bob, mut atrus)] = two(&shard).await;
    let (token, player) = (bob.token, bob.player);
    bob.auth.lose();
    let stream = worldwire_net::tcp::dial(shard.address, PATIENCE).await.unwrap();
    let mut back = Player::connect_over(stream, &shard, token).await;
    back.register().await;
    // The session and the player in the age outlast the time limit for reconnecting.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert_eq!(atrus.asks_for_members().await, ["Yeesha"]);
    assert_eq!(yeesha.asks_for_members().await, ["Atrus"]);
    // This time, the client does not reconnect.
    back.client.lose();
    assert_eq!(atrus.asks_for_members().await, ["Yeesha"]);
    yeesha.hears_of_the_end_of(player).await;
    assert!(atrus.game.hear().await.is_none());
    assert_eq!(yeesha.asks_for_members().await, [""; 0]);
    drop((ann, yeesha));
    shard.stop().await;
}

/// Only a client at the address of a player's auth connection can join as that player, no matter
/// what else an attacker knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_join_from_their_own_address_only() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(shard.address).await.unwrap();
    let key = shard.keys.public(ServerKind::Game).cloned();
    let game = Client::connect_over(stream, ClientConfig::new(Service::Game, key)).await;
    let mut eve = Visitor { game, player: ann.player };
    let refused = eve.ask_in(ann.number, ann.account, ann.player).await;
    assert_eq!(refused, NetError::PlayerNotFound);
    let refused = eve.ask_in(ann.number + 9, ann.account, ann.player).await;
    assert_eq!(refused, NetError::AgeNotFound);
    ann.join(&shard).await;
    shard.stop().await;
}

/// Special pages belong to no age, so messages to them are dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_to_special_pages_are_dropped() {
    let shard = Running::start(prepare, |_| ()).await;
    let [(ann, mut yeesha), (bob, atrus)] = two(&shard).await;
    for page in [1, 0x20, 0xff00_0000, 0xffff_ffff, 0] {
        let mut lever = object(1, "Lever");
        lever.location.sequence_number = SequenceNumber(page);
        atrus.changes(lever, blob("lever", "place", Scalar::Int(1))).await;
    }
    let NetMessage::SdlStateBCast(one) = yeesha.hears().await else { panic!("a state") };
    assert_eq!(one.state.object.location.sequence_number.0, 0);
    drop((ann, bob));
    shard.stop().await;
}

/// Eve's actions in the age.
async fn attack(eve: &Visitor, ann: u32) {
    // A forged sender, unsafe messages, and messages that announce more than they contain.
    let mut forged = eve.chat("I am Yeesha");
    forged.header.player_id = Some(ann);
    eve.says(forged).await;
    let matrix = Matrix44 { has_data: false.into(), rows: None };
    let warp = WarpMsg { message: message_header(), matrix, warp_flags: 0 };
    for _ in 0..50 {
        eve.says(eve.game_message(PlasmaMessage::from(warp.clone()))).await;
    }
    for number in 0..2000 {
        let name: &'static str = format!("Thing {number}").leak();
        eve.changes(object(1, name), blob("lever", "place", Scalar::Int(number))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_do_not_affect_others() {
    let shard = Running::start(prepare, |_| ()).await;
    let [(ann, mut yeesha), (bob, mut eve)] = two(&shard).await;
    let attacks = async {
        attack(&eve, ann.player).await;
        eve.settles().await;
    };
    let hears = async {
        // The forged message arrives with its real sender. The states arrive, but the warps do not.
        let NetMessage::GameMessage(chat) = yeesha.hears().await else { panic!("a chat") };
        assert_eq!(chat.header.player_id, Some(bob.player));
        for number in 0..2000 {
            let NetMessage::SdlStateBCast(one) = yeesha.hears().await else { panic!("a state") };
            assert_eq!(one.state.object.name.to_text(), format!("Thing {number}"));
        }
        assert_eq!(yeesha.asks_for_lock().await, 1);
    };
    tokio::join!(attacks, hears);
    // Wrong counts of variables, and of bytes in a stream. Too many such messages end the
    // connection.
    let good = blob("lever", "place", Scalar::Int(1));
    for at in 0..200 {
        let mut lie = good.clone();
        // The counts follow the header of the blob.
        let place = good.len() - 1 - at % 12;
        lie[place] = lie[place].wrapping_add(0x7f);
        eve.says_bytes(bytes(&NetMessage::from(eve.state(object(1, "Lever"), lie)))).await;
        let mut torn = bytes(&NetMessage::from(eve.chat("x")));
        torn.truncate(torn.len() - 1 - at % 20);
        eve.says_bytes(torn).await;
    }
    yeesha.hears_of_the_end_of(bob.player).await;
    while eve.game.hear().await.is_some() {}
    // The age still works: she changes something, and he returns and sees it.
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(7))).await;
    yeesha.settles().await;
    let mut again = bob.join(&shard).await;
    assert!(matches!(again.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(again.asks_for_members().await, ["Yeesha"]);
    assert_eq!(again.asks_for_state().await.len(), 2002);
    drop((ann, bob));
    shard.stop().await;
}

/// A player joins and leaves a thousand times. Another player is notified each time, in order, and
/// still gets replies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frequent_reconnects_do_not_disturb_others() {
    const TIMES: usize = 1000;
    let shard = Running::start(prepare, |_| ()).await;
    let [(ann, mut yeesha), (bob, atrus)] = two(&shard).await;
    drop(atrus);
    yeesha.hears_of_the_end_of(bob.player).await;
    for round in 0..TIMES {
        let game = shard.client(Service::Game, None).await;
        let mut atrus = Visitor { game, player: bob.player };
        let result = atrus.ask_in(bob.number, bob.account, bob.player).await;
        assert_eq!(result, NetError::Success, "{round}");
        drop(atrus);
        for added in [true, false] {
            let NetMessage::MemberUpdate(update) = yeesha.hears().await else { panic!("{round}") };
            assert_eq!(update.was_added.is_true(), added, "{round}");
        }
    }
    assert_eq!(yeesha.asks_for_members().await, [""; 0]);
    drop((ann, bob));
    shard.stop().await;
}

#[test]
fn drops_and_kicks_are_logged_once() {
    log::run_alone("siege::log_of_drops");
}

#[tokio::test]
async fn log_of_drops() {
    let Some(log) = Log::alone() else { return };
    let shard = Running::start(prepare, |_| ()).await;
    let [(ann, mut yeesha), (bob, mut eve)] = two(&shard).await;
    let matrix = Matrix44 { has_data: false.into(), rows: None };
    let warp = WarpMsg { message: message_header(), matrix, warp_flags: 0 };
    for _ in 0..50 {
        eve.says(eve.game_message(PlasmaMessage::from(warp.clone()))).await;
    }
    eve.settles().await;
    assert_eq!(log.count("message dropped"), 1, "{}", log.text());
    assert_eq!(log.count("plWarpMsg"), 1, "{}", log.text());
    // An unexpected player is refused, and logged once.
    let mut stranger = Visitor::connect(&shard, 1).await;
    for _ in 0..20 {
        assert_eq!(stranger.ask_in(ann.number, ann.account, 1).await, NetError::PlayerNotFound);
    }
    assert_eq!(log.count("refused joins"), 1, "{}", log.text());
    yeesha.settles().await;
    // A kicked player is refused and logged, too.
    let kick = Request::Kick { who: "Atrus".to_owned() };
    shard.control().perform(kick, &[]).await.unwrap();
    assert_eq!(log.count("operator kicked a player"), 1, "{}", log.text());
    drop((ann, bob));
    shard.stop().await;
}
