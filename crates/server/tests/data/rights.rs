//! The vault's access rules, between players and for shared places.

use std::net::IpAddr;

use worldwire_server::uru::vault::InitAge;
use worldwire_server::uru::vault::Login;
use worldwire_server::uru::vault::{Connection, Vault, VaultConfig};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::support::{Database, child, encoded, log_in, login, note, play, read, text, titled};

const REFUSED: Result<(), NetError> = Err(NetError::VaultNodeAccessViolation);
const REVISION: Uuid = Uuid([1; 16]);

/// The nodes of an age.
struct Age {
    age: u32,
    info: u32,
    states: u32,
    owners: u32,
    visitors: u32,
    children: u32,
    instance: Uuid,
    filename: &'static str,
}

impl Age {
    async fn of(connection: &Connection, info: u32, filename: &'static str) -> Self {
        let node = read(connection, info).await;
        let list = async |kind, list| child(connection, info, kind, list).await;
        Self {
            age: node.uint32_1.unwrap(),
            info,
            states: list(NodeType::SDL, None).await,
            owners: list(NodeType::PlayerInfoList, Some(19)).await,
            visitors: list(NodeType::PlayerInfoList, Some(18)).await,
            children: list(NodeType::AgeInfoList, Some(31)).await,
            instance: node.uuid_1.unwrap(),
            filename,
        }
    }

    /// The first age with this filename.
    async fn named(connection: &Connection, filename: &'static str) -> Self {
        let template = VaultNode {
            node_type: Some(NodeType::AgeInfo),
            string64_2: Some(TermStr::from(filename)),
            ..VaultNode::default()
        };
        let info = connection.find(encoded(&template)).await.unwrap()[0];
        Self::of(connection, info, filename).await
    }

    async fn relto(connection: &Connection, player: u32) -> Self {
        let owned = child(connection, player, NodeType::AgeInfoList, Some(23)).await;
        let link = child(connection, owned, NodeType::AgeLink, None).await;
        let info = child(connection, link, NodeType::AgeInfo, None).await;
        Self::of(connection, info, "Personal").await
    }

    async fn enter(&self, connection: &Connection) -> Result<(), NetError> {
        let entered = connection.request_age(self.filename.to_owned(), self.instance).await;
        entered.map(|found| assert_eq!(found.age, self.age))
    }
}

async fn info_of(connection: &Connection, player: u32) -> u32 {
    child(connection, player, NodeType::PlayerInfo, None).await
}

async fn administrator(vault: &Vault) -> (Connection, u32) {
    vault.add_account("root", "root", AccountFlags::Admin).await.unwrap();
    let (root, _, player) = play(vault, "root").await;
    (root, player)
}

fn node(kind: NodeType) -> Vec<u8> {
    encoded(&VaultNode { node_type: Some(kind), ..VaultNode::default() })
}

fn list(kind: NodeType, list: i32) -> Vec<u8> {
    encoded(&VaultNode { node_type: Some(kind), int32_1: Some(list), ..VaultNode::default() })
}

/// Tries every change to an age that only its owner may make.
async fn destroy(connection: &Connection, player: u32, age: &Age) {
    for child in [age.states, age.owners, age.visitors, age.children] {
        assert_eq!(connection.remove(age.info, child).await, REFUSED, "{child}");
    }
    let fields = [
        VaultNode { text_1: Some(TermStr::from("x")), ..VaultNode::default() },
        VaultNode { uint32_2: Some(player), ..VaultNode::default() },
        VaultNode { int32_1: Some(7), ..VaultNode::default() },
        VaultNode { string64_4: Some(TermStr::from("x")), ..VaultNode::default() },
    ];
    for fields in fields {
        assert_eq!(connection.save(age.info, REVISION, encoded(&fields)).await, REFUSED);
    }
    for list in [age.owners, age.visitors, age.children] {
        assert_eq!(connection.save(list, REVISION, titled("x")).await, REFUSED);
    }
    let page = connection.create(note("page")).await.unwrap();
    assert_eq!(connection.add(age.info, page, player).await, REFUSED);
    assert_eq!(connection.add(age.age, page, player).await, REFUSED);
    assert_eq!(connection.set_public(age.info, false).await, REFUSED);
}

#[tokio::test]
async fn players_cannot_change_the_city() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (eve, _notices, e) = play(&vault, "Eve").await;
    let eve_info = info_of(&eve, e).await;
    for name in ["city", "Neighborhood"] {
        let age = Age::named(&eve, name).await;
        destroy(&eve, e, &age).await;
        if name == "city" {
            // She has a link to the age, but is not in it.
            assert_eq!(eve.save(age.states, REVISION, titled("x")).await, REFUSED);
            assert_eq!(eve.add(age.owners, eve_info, e).await, REFUSED);
        }
        // The same holds while she is in it.
        age.enter(&eve).await.unwrap();
        destroy(&eve, e, &age).await;
        eve.save(age.states, REVISION, titled("x")).await.unwrap();
        let devices = child(&eve, age.age, NodeType::Folder, Some(15)).await;
        let page = eve.create(note("page")).await.unwrap();
        eve.add(devices, page, e).await.unwrap();
        assert_eq!(eve.remove(age.age, devices).await, REFUSED);
        // A list of the same kind would replace the real one.
        for (parent, kind, number) in [
            (age.info, NodeType::PlayerInfoList, 19),
            (age.age, NodeType::Folder, 15),
            (e, NodeType::Folder, 1),
        ] {
            let second = eve.create(list(kind, number)).await.unwrap();
            assert_eq!(eve.add(parent, second, e).await, REFUSED);
        }
        // In child ages, everybody may add entries and remove their own.
        let link = eve.create(node(NodeType::AgeLink)).await.unwrap();
        eve.add(age.children, link, e).await.unwrap();
        let (bob, _to_bob, b) = play(&vault, &format!("Bob of {name}")).await;
        age.enter(&bob).await.unwrap();
        let mine = bob.create(node(NodeType::AgeLink)).await.unwrap();
        bob.add(age.children, mine, b).await.unwrap();
        assert_eq!(bob.remove(age.children, link).await, REFUSED);
        bob.remove(age.children, mine).await.unwrap();
    }
    // Being in a public age's CanVisit list does not let a player become an owner.
    let city = Age::named(&eve, "city").await;
    eve.add(city.visitors, eve_info, e).await.unwrap();
    assert_eq!(eve.add(city.owners, eve_info, e).await, REFUSED);
}

#[tokio::test]
async fn standard_lists_cannot_be_removed() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    let (_bob, _to_bob, b) = play(&vault, "Bob").await;
    let inbox = child(&ann, a, NodeType::Folder, Some(1)).await;
    let journals = child(&ann, a, NodeType::Folder, Some(14)).await;
    assert_eq!(ann.remove(a, inbox).await, REFUSED);
    assert_eq!(ann.add(journals, inbox, a).await, REFUSED);
    // With another kind, it would be a different list.
    let changed = encoded(&VaultNode { int32_1: Some(14), ..VaultNode::default() });
    assert_eq!(ann.save(inbox, REVISION, changed).await, REFUSED);
    ann.send(inbox, b).await.unwrap_err();
    ann.save(inbox, REVISION, titled("mail")).await.unwrap();
    let (root, _) = administrator(&vault).await;
    root.remove(a, inbox).await.unwrap();
    // Missing parts may be restored.
    let again = ann.create(list(NodeType::Folder, 1)).await.unwrap();
    ann.add(a, again, a).await.unwrap();
}

#[tokio::test]
async fn a_reference_gives_no_rights() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, e) = play(&vault, "Eve").await;
    let relto = Age::relto(&ann, a).await;
    let inbox = child(&eve, e, NodeType::Folder, Some(1)).await;
    eve.add(inbox, relto.info, e).await.unwrap();
    let link = eve.create(node(NodeType::AgeLink)).await.unwrap();
    eve.add(inbox, link, e).await.unwrap();
    eve.add(link, relto.info, e).await.unwrap();
    eve.fetch(relto.states).await.unwrap();
    destroy(&eve, e, &relto).await;
    assert_eq!(eve.save(relto.states, REVISION, titled("x")).await, REFUSED);
    let eve_info = info_of(&eve, e).await;
    for list in [relto.owners, relto.visitors] {
        assert_eq!(eve.add(list, eve_info, e).await, REFUSED);
    }
    // The same rules apply below her own Age node.
    let own = Age::relto(&eve, e).await;
    assert_eq!(eve.add(own.age, relto.info, e).await, REFUSED);
    // The owner may rename it.
    let renamed = VaultNode { string64_4: Some(TermStr::from("x")), ..VaultNode::default() };
    ann.save(relto.info, REVISION, encoded(&renamed)).await.unwrap();
    ann.save(relto.states, REVISION, titled("x")).await.unwrap();
    assert_eq!(ann.remove(relto.info, relto.owners).await, REFUSED);
}

#[tokio::test]
async fn a_private_age_is_entered_by_invitation() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, e) = play(&vault, "Eve").await;
    let [ann_info, eve_info] = [info_of(&ann, a).await, info_of(&eve, e).await];
    let relto = Age::relto(&ann, a).await;
    let not_found = Err(NetError::AgeNotFound);
    relto.enter(&ann).await.unwrap();
    assert_eq!(relto.enter(&eve).await, not_found);
    // She did not enter it, so she has no rights.
    assert_eq!(eve.save(relto.states, REVISION, titled("x")).await, REFUSED);
    // Nor may she create a child age of this age and enter it.
    let cellar =
        InitAge { filename: "Cellar".to_owned(), parent: relto.instance, ..InitAge::default() };
    assert_eq!(eve.init_age(cellar.clone()).await.err(), REFUSED.err());
    let cellar = ann.init_age(cellar).await.unwrap();
    let cellar = Age::of(&ann, cellar.info, "Cellar").await;
    assert_eq!(cellar.enter(&eve).await, not_found);
    cellar.enter(&ann).await.unwrap();

    // An invitation names the age. An invitation from a player who is not an owner has no effect.
    let invitation = |kind, instance: Uuid| {
        encoded(&VaultNode {
            node_type: Some(NodeType::TextNote),
            int32_1: Some(kind),
            text_1: Some(TermStr::from(&*format!("Personal|Relto|{instance}|Ann's|"))),
            ..VaultNode::default()
        })
    };
    let false_one = eve.create(invitation(4, relto.instance)).await.unwrap();
    eve.send(false_one, e).await.unwrap();
    assert_eq!(relto.enter(&eve).await, not_found);
    let letter = ann.create(invitation(0, relto.instance)).await.unwrap();
    ann.send(letter, e).await.unwrap();
    assert_eq!(relto.enter(&eve).await, not_found);
    let letter = ann.create(invitation(4, relto.instance)).await.unwrap();
    ann.send(letter, e).await.unwrap();
    // Clients make this change when they find an invitation.
    eve.add(relto.visitors, eve_info, e).await.unwrap();
    relto.enter(&eve).await.unwrap();
    cellar.enter(&eve).await.unwrap();
    relto.enter(&eve).await.unwrap();
    // In the age, she has only the rights of a visitor.
    eve.save(relto.states, REVISION, titled("x")).await.unwrap();
    destroy(&eve, e, &relto).await;
    let owned = child(&ann, a, NodeType::AgeInfoList, Some(23)).await;
    let link = child(&ann, owned, NodeType::AgeLink, None).await;
    assert_eq!(eve.save(owned, REVISION, titled("x")).await, REFUSED);
    assert_eq!(eve.remove(owned, link).await, REFUSED);
    assert_eq!(eve.remove(link, relto.info).await, REFUSED);
    assert_eq!(eve.remove(relto.owners, ann_info).await, REFUSED);
    // The invitation is withdrawn.
    let letter = ann.create(invitation(5, relto.instance)).await.unwrap();
    ann.send(letter, e).await.unwrap();
    eve.leave_age().await.unwrap();
    assert_eq!(relto.enter(&eve).await, not_found);
    // An owner may edit the list directly.
    ann.add(relto.visitors, eve_info, a).await.unwrap();
    relto.enter(&eve).await.unwrap();
    let (root, _) = administrator(&vault).await;
    relto.enter(&root).await.unwrap();
}

#[tokio::test]
async fn a_neighbourhood_belongs_to_its_members() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, e) = play(&vault, "Eve").await;
    let [ann_info, eve_info] = [info_of(&ann, a).await, info_of(&eve, e).await];
    let hood = InitAge {
        filename: "Neighborhood".to_owned(),
        user_name: "Ann's".to_owned(),
        ..InitAge::default()
    };
    let hood = ann.init_age(hood).await.unwrap();
    let hood = Age::of(&ann, hood.info, "Neighborhood").await;
    // Only the age's creator becomes an owner.
    assert_eq!(eve.add(hood.owners, eve_info, e).await, REFUSED);
    assert_eq!(eve.add(hood.visitors, eve_info, e).await, REFUSED);
    ann.add(hood.owners, ann_info, a).await.unwrap();
    assert_eq!(hood.enter(&eve).await, Err(NetError::AgeNotFound));
    assert_eq!(eve.add(hood.owners, eve_info, e).await, REFUSED);
    assert_eq!(eve.set_public(hood.info, true).await, REFUSED);
    // After an invitation she may enter.
    ann.add(hood.visitors, eve_info, a).await.unwrap();
    hood.enter(&eve).await.unwrap();
    eve.add(hood.owners, eve_info, e).await.unwrap();
    assert_eq!(eve.remove(hood.owners, ann_info).await, REFUSED);
    eve.remove(hood.owners, eve_info).await.unwrap();
    eve.remove(hood.visitors, eve_info).await.unwrap();
    eve.leave_age().await.unwrap();
    assert_eq!(hood.enter(&eve).await, Err(NetError::AgeNotFound));
    // A public age is open to all.
    ann.set_public(hood.info, true).await.unwrap();
    hood.enter(&eve).await.unwrap();
    eve.add(hood.owners, eve_info, e).await.unwrap();
}

#[tokio::test]
async fn the_first_neighbourhood_belongs_to_the_operator() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let hood = Age::named(&ann, "Neighborhood").await;
    let named = |name: &'static str| VaultNode {
        string64_4: Some(TermStr::from(name)),
        ..VaultNode::default()
    };
    for _ in 0..2 {
        assert_eq!(ann.save(hood.info, REVISION, encoded(&named("Mine"))).await, REFUSED);
        assert_eq!(ann.set_public(hood.info, false).await, REFUSED);
        vault.set(hood.info, named("The quiet")).await.unwrap();
    }
    drop(ann);
    vault.close().await;
    let vault = database.vault().await;
    let (ann, _to_ann) = log_in(&vault, "Ann").await;
    ann.set_player(a).await.unwrap();
    assert_eq!(ann.save(hood.info, REVISION, encoded(&named("Mine"))).await, REFUSED);
    assert_eq!(ann.set_public(hood.info, false).await, REFUSED);
}

#[tokio::test]
async fn accounts_are_shown_to_their_owners() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, _) = play(&vault, "Eve").await;
    let (root, _) = administrator(&vault).await;
    let info = info_of(&ann, a).await;
    let own = read(&ann, info).await.creator_acct.unwrap();
    assert!(!own.is_zero());
    assert_eq!(read(&root, info).await.creator_acct, Some(own));
    let seen = read(&eve, info).await;
    assert_eq!((seen.creator_acct, seen.creator_id), (Some(Uuid::ZERO), Some(a)));
    // The nodes of ages contain instances, which are not secret.
    let city = Age::named(&eve, "city").await;
    assert_eq!(read(&eve, city.info).await.creator_acct, Some(city.instance));
}

#[tokio::test]
async fn only_administrators_can_change_the_global_inbox() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (eve, _notices, e) = play(&vault, "Eve").await;
    let (root, r) = administrator(&vault).await;
    let system = child(&eve, e, NodeType::System, None).await;
    let inbox = child(&eve, system, NodeType::Folder, Some(30)).await;
    let news = root.create(note("news")).await.unwrap();
    root.add(inbox, news, r).await.unwrap();
    eve.fetch(news).await.unwrap();
    for node in [system, inbox, news] {
        assert_eq!(eve.save(node, REVISION, titled("x")).await, REFUSED);
    }
    assert_eq!(eve.remove(inbox, news).await, REFUSED);
    assert_eq!(eve.remove(system, inbox).await, REFUSED);
    let page = eve.create(note("page")).await.unwrap();
    assert_eq!(eve.add(inbox, page, e).await, REFUSED);
    let journals = child(&eve, e, NodeType::Folder, Some(14)).await;
    assert_eq!(eve.add(journals, news, e).await, REFUSED);
}

#[tokio::test]
async fn searches_find_readable_nodes_only() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, _) = play(&vault, "Eve").await;
    let journals = child(&ann, a, NodeType::Folder, Some(14)).await;
    let diary = ann.create(note("diary")).await.unwrap();
    ann.add(journals, diary, a).await.unwrap();
    assert_eq!(ann.find(note("diary")).await.unwrap(), [diary]);
    for connection in [eve, log_in(&vault, "Mallory").await.0] {
        assert_eq!(connection.fetch(diary).await.err(), REFUSED.err());
        assert_eq!(connection.find(note("diary")).await.unwrap(), [0; 0]);
        assert_eq!(connection.find(node(NodeType::TextNote)).await.unwrap(), [0; 0]);
    }
}

#[tokio::test]
async fn scores_belong_to_their_owners() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, e) = play(&vault, "Eve").await;
    let name = || "pellets".to_owned();
    for owner in [0, 999_999, u32::MAX] {
        let made = eve.create_score(owner, name(), 1, 5).await;
        assert_eq!(made.err(), Some(NetError::VaultNodeNotFound));
    }
    let relto = Age::relto(&ann, a).await;
    let city = Age::named(&eve, "city").await;
    for owner in [a, info_of(&ann, a).await, relto.info, relto.age, city.info] {
        assert_eq!(eve.create_score(owner, name(), 1, 5).await.err(), REFUSED.err());
    }
    let (anns, _) = ann.create_score(a, name(), 1, 50).await.unwrap();
    let (fixed, _) = ann.create_score(relto.info, "best".to_owned(), 0, 50).await.unwrap();
    let (own, _) = eve.create_score(e, name(), 1, i32::MAX - 3).await.unwrap();
    assert_eq!(eve.add_points(anns, 1).await, REFUSED);
    assert_eq!(eve.set_points(fixed, 1).await, REFUSED);
    assert_eq!(eve.transfer_points(anns, own, 1).await, REFUSED);
    assert_eq!(eve.transfer_points(own, anns, 1).await, REFUSED);
    city.enter(&eve).await.unwrap();
    let (shared, _) = eve.create_score(city.info, name(), 1, -5).await.unwrap();
    let points = async |owner| eve.get_scores(owner, name()).await.unwrap()[0].value;
    assert_eq!(points(city.info).await, 0);
    eve.add_points(shared, 5).await.unwrap();
    // If a node does not fit into the inbox, it stays where it is.
    let moved = eve.transfer_points(shared, own, 5).await;
    assert_eq!(moved, Err(NetError::InvalidParameter));
    assert_eq!((points(city.info).await, points(e).await), (5, i32::MAX - 3));
    eve.transfer_points(shared, own, 3).await.unwrap();
    assert_eq!((points(city.info).await, points(e).await), (2, i32::MAX));
}

#[tokio::test]
async fn players_cannot_fill_the_vault() {
    let database = Database::sqlite();
    let config = VaultConfig { max_nodes: 30, max_in_inbox: 3, ..VaultConfig::default() };
    let vault = database.vault_with(config).await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, e) = play(&vault, "Eve").await;
    let (root, _) = administrator(&vault).await;
    let mut notes = Vec::new();
    let refused = loop {
        match eve.create(note("page")).await {
            Ok(page) => notes.push(page),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, NetError::VaultNodeAccessViolation);
    // Nodes that have not been placed yet have a separate limit.
    assert_eq!(notes.len(), 30);
    let age = InitAge { filename: "Garden".to_owned(), ..InitAge::default() };
    assert_eq!(eve.init_age(age.clone()).await.err(), Some(refused));
    for page in &notes[..3] {
        eve.send(*page, a).await.unwrap();
    }
    assert_eq!(eve.send(notes[3], a).await, Err(NetError::InvalidParameter));
    // Other inboxes have room.
    ann.create(note("page")).await.unwrap();
    let page = root.create(note("page")).await.unwrap();
    root.send(page, a).await.unwrap();
    // Each node of an age counts towards the limit.
    ann.init_age(age.clone()).await.unwrap();
    assert_eq!(ann.init_age(age).await.err(), Some(refused));
    assert_ne!((a, e), (0, 0));
}

#[tokio::test]
async fn guessing_does_not_lock_out_the_owner() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    vault.add_account("ann", "right", AccountFlags::User).await.unwrap();
    let (connection, _notices) = vault.connect().await.unwrap();
    let from = |password: &str, host: u8| {
        let address = Some(IpAddr::from([10, 0, 0, host]));
        connection.log_in(Login { address, ..login("ann", password) })
    };
    from("right", 1).await.unwrap();
    let refused = Some(NetError::TooManyFailedLogins);
    for _ in 0..5 {
        assert_eq!(from("wrong", 2).await.err(), Some(NetError::AuthenticationFailed));
    }
    assert_eq!(from("right", 2).await.err(), refused);
    from("right", 1).await.unwrap();
    from("right", 3).await.unwrap();
    // After failures from many addresses, unknown addresses are refused, but known ones are not.
    for host in 4..7 {
        for _ in 0..5 {
            assert_eq!(from("wrong", host).await.err(), Some(NetError::AuthenticationFailed));
        }
    }
    assert_eq!(from("right", 7).await.err(), refused);
    from("right", 1).await.unwrap();
    from("right", 3).await.unwrap();
}

/// These owners are stored as sent: the sender, 0, or a node that is not a player.
#[tokio::test]
async fn the_sent_owner_of_a_reference_is_stored_or_refused() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    let (_bob, _to_bob, b) = play(&vault, "Bob").await;
    let journals = child(&ann, a, NodeType::Folder, Some(14)).await;
    for (owner, wanted) in [
        (0, Ok(())),
        (a, Ok(())),
        (journals, Ok(())),
        (b, REFUSED),
        // The number could become a player's.
        (u32::MAX, REFUSED),
    ] {
        let page = ann.create(note("page")).await.unwrap();
        assert_eq!(ann.add(journals, page, owner).await, wanted);
        let stored = async || {
            let refs = ann.refs(journals).await.unwrap().into_iter();
            refs.filter(|it| it.child_id == page).map(|it| it.owner_id).next()
        };
        assert_eq!(stored().await, wanted.ok().map(|()| owner));
        if wanted.is_ok() {
            // Repeating the request changes nothing.
            assert_eq!(ann.add(journals, page, a).await, Ok(()));
            assert_eq!(stored().await, Some(owner));
        }
    }
}

#[tokio::test]
async fn texts_must_not_contain_zeros() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, _) = play(&vault, "Ann").await;
    let refused = NetError::InvalidParameter;
    assert_eq!(ann.create(note("left\0right")).await, Err(refused));
    let node = ann.create(note("fine")).await.unwrap();
    assert_eq!(ann.save(node, REVISION, titled("\0")).await, Err(refused));
    let string64_1 = Some(TermStr::from("x\0"));
    let set = vault.set(node, VaultNode { string64_1, ..VaultNode::default() }).await;
    assert_eq!(set, Err(refused));
    assert_eq!(text(&read(&ann, node).await.string64_1), "fine");
    let filename = "Personal".to_owned();
    let new = InitAge { filename, user_name: "x\0".to_owned(), ..InitAge::default() };
    assert_eq!(ann.init_age(new).await.unwrap_err(), refused);
}

#[tokio::test]
async fn an_operator_may_open_all_ages() {
    let database = Database::sqlite();
    let config = VaultConfig { open_ages: true, ..VaultConfig::default() };
    let vault = database.vault_with(config).await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (eve, _to_eve, _) = play(&vault, "Eve").await;
    let relto = Age::relto(&ann, a).await;
    relto.enter(&eve).await.unwrap();
    // Visitors are not owners.
    let renamed = VaultNode { string64_4: Some(TermStr::from("x")), ..VaultNode::default() };
    assert_eq!(eve.save(relto.info, REVISION, encoded(&renamed)).await, REFUSED);
}
