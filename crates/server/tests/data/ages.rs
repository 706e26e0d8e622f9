//! Ages in the vault: who creates, enters and publishes them.

use worldwire_server::uru::vault::{Connection, InitAge, Notice};
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::support::{Database, all, child, encoded, note, play, read, text, titled};

#[tokio::test]
async fn ages_are_created_once_and_entered() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, mut notices, a) = play(&vault, "Ann").await;
    let (bob, _to_bob, b) = play(&vault, "Bob").await;
    let relto = InitAge { filename: "Garden".to_owned(), language: -1, ..InitAge::default() };
    let nameless = InitAge { filename: String::new(), ..relto.clone() };
    assert_eq!(ann.init_age(nameless).await, Err(NetError::InvalidParameter));
    for filename in ["../../etc", "a\0b", "a/b", "a\\b", "C:", ".."] {
        let path = InitAge { filename: filename.to_owned(), ..relto.clone() };
        assert_eq!(ann.init_age(path).await, Err(NetError::InvalidParameter), "{filename:?}");
    }
    let last = InitAge { sequence: i32::MAX, ..relto.clone() };
    assert_eq!(ann.init_age(last).await, Err(NetError::InvalidParameter));
    let [one, two] = [ann.init_age(relto.clone()).await, ann.init_age(relto.clone()).await];
    assert_ne!(one.unwrap(), two.unwrap());
    let known = InitAge { instance: Uuid([5; 16]), ..relto.clone() };
    let garden = ann.init_age(known.clone()).await.unwrap();
    assert_eq!(bob.init_age(known.clone()).await, Ok(garden));
    for parent in [Uuid::ZERO, Uuid([7; 16])] {
        let other = InitAge { filename: "Desert".to_owned(), parent, ..known.clone() };
        assert_eq!(bob.init_age(other).await, Err(NetError::InvalidParameter));
    }
    // A parent has one child age per filename; sequence numbers continue.
    let inside = InitAge { parent: Uuid([5; 16]), sequence: -1, ..relto.clone() };
    let first = ann.init_age(inside.clone()).await.unwrap();
    assert_eq!(ann.init_age(inside).await, Ok(first));
    let hood = InitAge {
        filename: "Neighborhood".to_owned(),
        user_name: "Ann's".to_owned(),
        ..InitAge::default()
    };
    for number in [1, 2] {
        let nodes = ann.init_age(hood.clone()).await.unwrap();
        let info = read(&ann, nodes.info).await;
        assert_eq!(info.int32_1, Some(number));
        assert_eq!((info.uint32_1, info.string64_3), (Some(nodes.age), None));
        assert_eq!(info.uuid_2, None);
    }

    // A session that has requested an age watches its nodes.
    let request = |connection: &Connection, name: &str, instance| {
        connection.request_age(name.to_owned(), instance)
    };
    assert_eq!(request(&ann, "Garden", Uuid([6; 16])).await, Err(NetError::AgeNotFound));
    assert_eq!(request(&ann, "Desert", Uuid([5; 16])).await, Err(NetError::AgeNotFound));
    assert_eq!(request(&ann, "StartUp", Uuid([6; 16])).await.unwrap().age, 0);
    assert_eq!(request(&ann, "Garden", Uuid([5; 16])).await.unwrap().age, garden.age);
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    let shown = read(&ann, info).await;
    assert_eq!((text(&shown.string64_1), shown.uuid_1), ("Garden".to_owned(), Some(Uuid([5; 16]))));
    let devices = child(&ann, garden.age, NodeType::Folder, Some(15)).await;
    all(&mut notices);
    let page = ann.create(note("sign")).await.unwrap();
    ann.add(devices, page, a).await.unwrap();
    assert_eq!(all(&mut notices).len(), 1);
    let sign = bob.create(note("sign")).await.unwrap();
    assert_eq!(bob.add(devices, sign, b).await, Err(NetError::VaultNodeAccessViolation));
    request(&bob, "Garden", Uuid([5; 16])).await.unwrap();
    bob.add(devices, sign, b).await.unwrap();
    ann.find(note("x")).await.unwrap();
    let told = all(&mut notices);
    let added = Notice::NodeAdded { parent_id: devices, child_id: sign, owner_id: b };
    assert_eq!(told.len(), 2, "a neighbour went there, too");
    assert_eq!(told[1], added);
    ann.leave_age().await.unwrap();
    bob.save(sign, Uuid([1; 16]), titled("x")).await.unwrap();
    ann.find(note("x")).await.unwrap();
    assert_eq!(all(&mut notices).len(), 1, "only that it has left itself");
    assert_eq!(ann.fetch(devices).await.err(), Some(NetError::VaultNodeAccessViolation));
}

#[tokio::test]
async fn public_ages_are_listed() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, mut notices, a) = play(&vault, "Ann").await;
    let (_bob, _to_bob, _) = play(&vault, "Bob").await;
    let list = |name: &str| ann.public_ages(name.to_owned());
    let hoods = list("Neighborhood").await.unwrap();
    assert_eq!((hoods.len(), hoods[0].owners, hoods[0].population), (1, 2, 0));
    assert_eq!((&*hoods[0].description, &*hoods[0].user_name), ("DRC Hood", "DRC"));
    ann.request_age("Neighborhood".to_owned(), hoods[0].instance).await.unwrap();
    assert_eq!(list("Neighborhood").await.unwrap()[0].population, 1);
    assert_eq!(list("city").await.unwrap().len(), 1);
    assert_eq!(list("nowhere").await.unwrap(), []);

    let hood = InitAge { filename: "Neighborhood".to_owned(), ..InitAge::default() };
    let own = ann.init_age(hood).await.unwrap().info;
    let refused = Err(NetError::VaultNodeAccessViolation);
    assert_eq!(ann.set_public(own, true).await, refused);
    // Clients add first their own link, then an entry in the list of owners.
    let owned = child(&ann, a, NodeType::AgeInfoList, Some(23)).await;
    let link = encoded(&VaultNode {
        node_type: Some(NodeType::AgeLink),
        blob_1: Some(NodeBlob::new(&b"Default:LinkInPointDefault:;"[..])),
        ..VaultNode::default()
    });
    let link = ann.create(link).await.unwrap();
    ann.add(owned, link, a).await.unwrap();
    ann.add(link, own, a).await.unwrap();
    let owners = child(&ann, own, NodeType::PlayerInfoList, Some(19)).await;
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    ann.add(owners, info, a).await.unwrap();
    all(&mut notices);
    ann.set_public(own, true).await.unwrap();
    assert!(
        matches!(all(&mut notices)[..], [Notice::NodeChanged { node_id, .. }] if node_id == own)
    );
    assert_eq!(list("Neighborhood").await.unwrap().len(), 2);
    let public = encoded(&VaultNode { int32_2: Some(0), ..VaultNode::default() });
    assert_eq!(ann.save(own, Uuid([1; 16]), public).await, refused);
    ann.set_public(own, false).await.unwrap();
    assert_eq!(list("Neighborhood").await.unwrap().len(), 1);
    assert_eq!(ann.set_public(a, true).await, Err(NetError::VaultNodeNotFound));
}
