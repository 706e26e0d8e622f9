//! Players in ages in different processes send each other messages, and an age node serves nothing
//! but ages. The bus is a real `nats-server`.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use worldwire_server::uru::config::Role;
use worldwire_server::uru::{GameRandom, Shard, ShardConfig};
use worldwire_uru::crypt::key::{PrimeKind, ServerKind};
use worldwire_uru::frame::Service;
use worldwire_uru::net_message::{
    GameMessage, GameMessageDirected, GameStateRequest, NetFlags, NetMessage, Stream,
};
use worldwire_uru::plasma_message::{ChatFlags, KiCommand, KiMsg, PlasmaMessage};
use worldwire_uru::sdl::Scalar;
use worldwire_uru::types::{NetError, Uuid};

use crate::client::{ACCOUNTS, Client, PATIENCE, Running};
use crate::cluster::{Bus, serves};
use crate::fern::{FERN, blob, blob_at, object, prepare, told};
use crate::services::http;
use crate::traveller::{Traveller, Visitor, bytes, message_header};

/// A directory with everything that an age node needs.
fn folder(leader: &Running) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let keys = leader.folder.path().join("keys.toml");
    std::fs::copy(keys, folder.path().join("keys.toml")).unwrap();
    folder
}

/// Starts an age node and waits until it serves players.
pub(crate) async fn age_node(
    bus: &Bus,
    leader: &Running,
    name: &str,
    change: impl FnOnce(&mut ShardConfig),
) -> Running {
    let settings = bus.settings(name);
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.cluster.roles = vec![Role::Age];
        change(config);
    };
    let node = Running::start_within(folder(leader), change, GameRandom::default()).await;
    serves(&node.vault).await;
    node
}

/// Joins the age on the node that expects the player. Returns the number of the node.
async fn join(nodes: &[Running], traveller: &Traveller) -> (usize, Visitor) {
    for (index, node) in nodes.iter().enumerate() {
        let mut visitor = Visitor::connect(node, traveller.player).await;
        let (number, player) = (traveller.number, traveller.player);
        if visitor.ask_in(number, traveller.account, player).await == NetError::Success {
            return (index, visitor);
        }
    }
    panic!("no node expects the player");
}

impl Visitor {
    async fn whispers(&self, text: &str, to: u32) {
        let chat = KiMsg {
            message: message_header(),
            command: KiCommand::HACKChatMsg,
            user: "Yeesha".into(),
            player_id: self.player,
            text: text.into(),
            flags: ChatFlags::Private,
            delay: 0.0.into(),
            value: 0,
        };
        let game = GameMessage {
            header: self.header(NetFlags(0)),
            stream: Stream::new(bytes(&PlasmaMessage::from(chat))),
            has_delivery_time: false.into(),
            delivery_time: None,
        };
        self.says(GameMessageDirected { game, receivers: vec![to].into() }).await;
    }

    /// Whispers until the other player hears it. Messages sent before the receiver's node has
    /// subscribed to the player's subject are lost.
    async fn reaches(&self, other: &mut Self) {
        for number in 0..100 {
            let text = format!("Can you hear me? {number}");
            self.whispers(&text, other.player).await;
            if let Ok(heard) = timeout(Duration::from_millis(100), other.hears_chat()).await {
                assert!(heard.starts_with("Can you hear me?"), "{heard}");
                return;
            }
        }
        panic!("nothing is heard");
    }

    /// The text of the next chat message.
    async fn hears_chat(&mut self) -> String {
        loop {
            let stream = match self.hears().await {
                NetMessage::GameMessage(message) => message.stream,
                NetMessage::GameMessageDirected(message) => message.game.stream,
                _ => continue,
            };
            let payload = stream.as_bytes().to_vec();
            let mut reader = worldwire_core::Reader::new(&payload);
            let decoded = worldwire_core::Field::decode(&mut reader, "").unwrap();
            if let PlasmaMessage::KiMsg(chat) = decoded {
                return chat.text.to_text();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_in_ages_of_different_nodes_chat() {
    let Some(bus) = Bus::start() else { return };
    let shard = tempfile::tempdir().unwrap();
    prepare(shard.path());
    let temporary = |config: &mut ShardConfig| config.auth.temporary_ages = true;
    let leader = bus.leader_with(shard, temporary).await;
    let nodes = [
        age_node(&bus, &leader, "age-1", |_| ()).await,
        age_node(&bus, &leader, "age-2", |_| ()).await,
    ];

    let ann = Traveller::to_fern(&leader, ACCOUNTS[0], "Yeesha").await;
    let (first, mut yeesha) = join(&nodes, &ann).await;
    // Bob's age is not in the vault.
    let bob = Traveller::to(&leader, ACCOUNTS[1], "Atrus", Uuid([8; 16])).await;
    let (second, mut atrus) = join(&nodes, &bob).await;
    assert_ne!(first, second, "the other node has more room");
    yeesha.reaches(&mut atrus).await;
    atrus.reaches(&mut yeesha).await;

    // Players in one age hear each other without whispering.
    drop(atrus);
    let mut bob = bob;
    bob.asks_for_the_age(FERN).await;
    let (same, mut atrus) = join(&nodes, &bob).await;
    assert_eq!(same, first);
    yeesha.chats("Yeesha").await;
    assert_eq!(atrus.hears_chat().await, "Shorah");

    // A node that is stopping is not chosen again.
    let mut nodes = Vec::from(nodes);
    nodes.remove(first).stop().await;
    while yeesha.game.hear().await.is_some() {}
    bob.asks_for_the_age(FERN).await;
    join(&nodes, &bob).await;
    nodes.remove(0).stop().await;
    leader.stop().await;
}

/// An age continues while its leader restarts, and learns of later changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_age_follows_the_next_leader() {
    let Some(bus) = Bus::start() else { return };
    let shard = tempfile::tempdir().unwrap();
    prepare(shard.path());
    let leader = bus.leader(shard).await;
    let nodes = [age_node(&bus, &leader, "age-1", |_| ()).await];
    let ann = Traveller::to_fern(&leader, ACCOUNTS[0], "Yeesha").await;
    let (_, mut yeesha) = join(&nodes, &ann).await;
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    // The age has handled the change.
    yeesha.asks_for_members().await;

    let folder = leader.stop().await;
    let leader = bus.leader(folder).await;
    serves(&nodes[0].vault).await;
    let open = blob_at("Fern", "open", Scalar::Bool(true), 4_000_000_000);
    leader.vault.set_age_settings("Fern", open).await.unwrap();
    let bob = Traveller::to_fern(&leader, ACCOUNTS[1], "Atrus").await;
    let (_, mut atrus) = join(&nodes, &bob).await;
    // The player learns of the change either from the initial states or later.
    let flags = NetFlags::IsSystemMessage | NetFlags::InitialAgeStateRequest;
    let rooms = Vec::new().into();
    atrus.says(GameStateRequest { header: atrus.header(flags), rooms }).await;
    let knows = async {
        let (mut place, mut open) = (None, None);
        while place.as_deref() != Some("Int(5)") || open.as_deref() != Some("Bool(true)") {
            let message = atrus.hears().await;
            if let NetMessage::SdlState(_) | NetMessage::SdlStateBCast(_) = message {
                place = told(&message, "place").1.or(place);
                open = told(&message, "open").1.or(open);
            }
        }
    };
    timeout(PATIENCE, knows).await.unwrap();
    let [node] = nodes;
    node.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn an_age_node_serves_only_ages() {
    let Some(bus) = Bus::start() else { return };
    let shard = tempfile::tempdir().unwrap();
    prepare(shard.path());
    let leader = bus.leader(shard).await;
    let node = age_node(&bus, &leader, "age-1", |_| ()).await;
    for (service, server) in [
        (Service::Auth, Some(ServerKind::Auth)),
        (Service::Gatekeeper, Some(ServerKind::Gatekeeper)),
        (Service::File, None),
    ] {
        let key = server.and_then(|server| node.keys.public(server).cloned());
        let mut client: Client = node.client(service, key).await;
        assert!(client.hear().await.is_none(), "{service:?}");
    }
    let status = http(&node, "GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert!(status.contains("\"role\":\"age\""), "{status}");
    node.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn an_age_node_names_the_files_that_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let node = |config: &mut ShardConfig| {
        config.cluster.roles = vec![Role::Age];
        config.cluster.bus = vec!["nats://127.0.0.1:4222".to_owned()];
    };
    let refusal = async |folder: &TempDir| {
        let opened = Shard::open_with(folder.path(), PrimeKind::Plain, node).await;
        opened.unwrap_err().to_string()
    };
    assert!(refusal(&folder).await.contains("keys.toml: file is missing"));
    std::fs::write(folder.path().join("keys.toml"), "").unwrap();
    let lacking = refusal(&folder).await;
    assert!(
        lacking.contains("data/ages and ") && lacking.contains("data/secure/SDL; copy"),
        "{lacking}"
    );
}
