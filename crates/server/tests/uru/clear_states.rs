//! An operator clears the stored states of an age.

use serde_json::{Value as Json, json};
use worldwire_server::operators::Operated as _;
use worldwire_server::uru::admin::Request;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::sdl::{Scalar, hook};
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::{ACCOUNTS, PATIENCE, Running};
use crate::fern::{FERN, PREFIX, blob, object, prepare, told};
use crate::traveller::{Traveller, Visitor};

const OTHER: Uuid = Uuid([8; 16]);
/// The type of nodes that contain an object's state.
const OBJECT_STATE: NodeType = NodeType(0x7577_0001);

async fn clear(shard: &Running, age: &str, own_state: bool) -> Result<Json, String> {
    let request = Request::ClearStates { age: age.to_owned(), own_state };
    let cleared = shard.control().perform(request, &[]).await.map_err(|error| error.to_string())?;
    assert_eq!(cleared.len(), 1);
    Ok(cleared.into_iter().next().unwrap())
}

/// The number of objects' states that the vault has for an instance.
async fn stored(shard: &Running, instance: Uuid) -> usize {
    let node_type = Some(OBJECT_STATE);
    let template = VaultNode { node_type, uuid_1: Some(instance), ..VaultNode::default() };
    shard.vault.find(template).await.unwrap().len()
}

/// The names of the states that a player receives on joining, and whether the gate is open.
async fn found(visitor: &mut Visitor) -> Vec<(String, Option<String>)> {
    assert!(matches!(visitor.hears().await, NetMessage::GroupOwner(_)));
    let state = visitor.asks_for_state().await;
    let value = |message: &NetMessage<'_>| {
        let (name, open) = told(message, "open");
        let place = told(message, "place").1;
        (name, open.or(place))
    };
    state.iter().map(value).collect()
}

/// Pulls the lever, opens the gate, and waits until the age has handled that.
async fn plays(visitor: &mut Visitor) {
    visitor.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    let open = blob("Fern", "open", Scalar::Bool(true));
    visitor.changes(hook::object(PREFIX).unwrap(), open).await;
    let open = ("AgeSDLHook".to_owned(), Some("Bool(true)".to_owned()));
    let pulled = ("Lever".to_owned(), Some("Int(5)".to_owned()));
    assert_eq!(found(visitor).await, [open, pulled]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_clears_the_states_of_an_age() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    bob.makes_the_age(OTHER, "Atrus's").await;
    bob.asks_for_the_age(OTHER).await;
    assert_ne!(ann.number, bob.number);
    let (mut yeesha, mut atrus) = (ann.join(&shard).await, bob.join(&shard).await);
    plays(&mut yeesha).await;
    plays(&mut atrus).await;

    // The name must be unique, and the age must be empty.
    let ambiguous = clear(&shard, "fern", false).await.unwrap_err();
    assert!(
        ambiguous.starts_with("2 nodes are named \"fern\"; specify one by its number: "),
        "{ambiguous}"
    );
    assert!(ambiguous.contains(" (age Fern, Atrus's Fern)"), "{ambiguous}");
    let unknown = clear(&shard, "Gehn", false).await;
    assert_eq!(unknown, Err("there is no age named \"Gehn\"".to_owned()));
    let player = shard.vault.nodes_called("Yeesha").await.unwrap()[0].id;
    let no_age = clear(&shard, &player.to_string(), false).await;
    assert_eq!(no_age, Err(format!("{player} is a player (Yeesha), not an age")));
    let fern = FERN.to_string();
    let refused = clear(&shard, &fern, true).await;
    assert_eq!(refused, Err(format!("age {fern:?} is not empty: Yeesha is there")));

    // The age is still running after she has left. Its pending states are removed as well.
    let throw_out = async || {
        let who = "Yeesha".to_owned();
        shard.control().perform(Request::Kick { who }, &[]).await.unwrap();
    };
    throw_out().await;
    let cleared = clear(&shard, &fern, false).await.unwrap();
    let age = cleared["age"].as_u64().unwrap();
    let wanted = json!({
        "age": age, "instance": fern, "filename": "Fern", "name": "Fern", "states": 1,
        "ownState": false,
    });
    assert_eq!(cleared, wanted);
    assert_eq!(stored(&shard, FERN).await, 0);
    // The other age writes its states a moment later.
    let written = async { while stored(&shard, OTHER).await != 1 {} };
    tokio::time::timeout(PATIENCE, written).await.unwrap();
    let problems = shard.vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");

    // The gate is part of the age's own state. It stays as she left it until that state is cleared,
    // too.
    for (open, own_state) in [("Bool(true)", true), ("Bool(false)", false)] {
        let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
        let mut yeesha = ann.join(&shard).await;
        let found = found(&mut yeesha).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "AgeSDLHook");
        let is_open = found[0].1.as_deref() == Some("Bool(true)");
        assert_eq!(is_open, open == "Bool(true)", "{found:?}");
        throw_out().await;
        let cleared = clear(&shard, &age.to_string(), own_state).await.unwrap();
        assert_eq!((&cleared["states"], &cleared["ownState"]), (&json!(0), &json!(own_state)));
    }

    // Another instance is not affected, and its states are kept.
    drop((yeesha, atrus, ann, bob));
    let shard = Running::start_in(shard.stop().await, |_| ()).await;
    assert_eq!((stored(&shard, FERN).await, stored(&shard, OTHER).await), (0, 1));
    let mut bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    bob.asks_for_the_age(OTHER).await;
    let state = found(&mut bob.join(&shard).await).await;
    assert_eq!(state.len(), 2, "{state:?}");
    assert_eq!(state[1], ("Lever".to_owned(), Some("Int(5)".to_owned())));
    shard.stop().await;
}
