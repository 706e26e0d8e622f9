//! Ages on several nodes: a leader, a front and two nodes that run ages. The bus is a real
//! `nats-server`.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};
use worldwire_server::uru::ShardConfig;
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::sdl::Scalar;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::between_ages::age_node;
use crate::client::{ACCOUNTS, PATIENCE, Running};
use crate::cluster::Bus;
use crate::fern::{FERN, blob, object, prepare, told};
use crate::traveller::Traveller;

/// How long players may be without their ages after a process is killed.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A node in its own runtime, so that everything in the node ends with it.
struct Node {
    running: Running,
    runtime: Option<Runtime>,
    host: [u8; 4],
}

impl Node {
    fn start(bus: &Bus, leader: &Running, number: u8) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let public = |config: &mut ShardConfig| config.public_address = format!("127.0.0.{number}");
        let name = format!("age-{number}");
        let running = block_in_place(|| runtime.block_on(age_node(bus, leader, &name, public)));
        let host = [127, 0, 0, number];
        Self { running, runtime: Some(runtime), host }
    }

    /// Ends the node without notifying anyone.
    fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The node to which a traveller was sent.
fn node_of<'n>(nodes: &'n mut [Node], traveller: &Traveller) -> &'n mut Node {
    nodes.iter_mut().find(|node| node.host == traveller.host).expect("an age node's address")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_age_moves_to_another_node_with_its_state() {
    let Some(bus) = Bus::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let leader = bus.leader(folder).await;
    let front = bus.front(&leader).await;
    let mut nodes = [2, 3].map(|number| Node::start(&bus, &leader, number));

    // A player of the leader and a player of a front meet on a node.
    let mut ann = Traveller::to_fern(&front, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&leader, ACCOUNTS[1], "Atrus").await;
    assert_eq!((ann.number, ann.host), (bob.number, bob.host));
    let node = node_of(&mut nodes, &ann);
    let mut yeesha = ann.join(&node.running).await;
    let mut atrus = bob.join(&node.running).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    assert_eq!(told(&atrus.hears().await, "place"), ("Lever".into(), Some("Int(5)".into())));
    // The leader has stored the change.
    let template = VaultNode {
        node_type: Some(NodeType(0x7577_0001)),
        uuid_1: Some(FERN),
        ..VaultNode::default()
    };
    let stored = async {
        while leader.vault.find(template.clone()).await.unwrap().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, stored).await.unwrap();

    // An operator sees which players are there, and removes one.
    let admin = Admin::open(leader.folder.path()).await.unwrap();
    let ages = admin.ask(Request::Ages { all: false, running: true }).await.unwrap();
    assert_eq!(ages[0]["running"]["players"].as_array().unwrap().len(), 2, "{ages:?}");
    let online = admin.ask(Request::Online).await.unwrap();
    let of = |key: &str| online.iter().map(|one| one[key].as_str().unwrap()).collect::<Vec<_>>();
    let (at, through) = (of("node"), of("front"));
    assert!(at[0] == at[1] && through[0] != through[1] && !through.contains(&at[0]), "{online:?}");
    leader.vault.kick("Atrus").await.unwrap();
    while atrus.game.hear().await.is_some() {}

    node.kill();
    let killed = Instant::now();
    let old = ann.host;
    while ann.tries_the_age(FERN).await != NetError::Success {
        sleep(Duration::from_millis(500)).await;
    }
    assert_ne!(ann.host, old);
    let mut yeesha = ann.join(&node_of(&mut nodes, &ann).running).await;
    assert!(killed.elapsed() < BACK_WITHIN, "{:?}", killed.elapsed());
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let states = yeesha.asks_for_state().await;
    let lever = ("Lever".to_owned(), Some("Int(5)".to_owned()));
    assert!(states.iter().any(|state| told(state, "place") == lever), "{states:?}");
    front.stop().await;
    leader.stop().await;
}
