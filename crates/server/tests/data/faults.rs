//! Servers keep their promises when the database fails, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use worldwire_net::Clock;
use worldwire_server::ki::KiConfig;
use worldwire_server::ki::realm::{Privileges, Realm};
use worldwire_server::store::{Change, Changes, NodeRow, StoreError};
use worldwire_server::uru::ClearError;
use worldwire_server::uru::vault::{Notice, Notices, Vault, VaultConfig};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::support::{Fault, Memory, encoded, key, login, play};

async fn vault(config: VaultConfig) -> (Arc<Memory>, Vault) {
    let memory = Arc::new(Memory::default());
    let vault = Vault::open(Arc::<Memory>::clone(&memory), key(), config).await.unwrap();
    (memory, vault)
}

fn note(title: &str) -> Vec<u8> {
    encoded(&VaultNode {
        node_type: Some(NodeType::TextNote),
        string64_1: Some(TermStr::from(title)),
        ..VaultNode::default()
    })
}

async fn title(vault: &Vault, node: u32) -> String {
    vault.show(node).await.unwrap()["String64_1"].as_str().unwrap().to_owned()
}

/// Takes all notices and waits until no more arrive.
async fn all(notices: &mut Notices) -> Vec<Notice> {
    let mut told = Vec::new();
    while let Ok(Some(notice)) = timeout(Duration::from_millis(1), notices.recv()).await {
        told.push(notice);
    }
    told
}

#[tokio::test(start_paused = true)]
async fn refused_batches_are_undone_and_committed_ones_stay() {
    let (memory, vault) = vault(VaultConfig::default()).await;
    let (ann, mut to_ann, _) = play(&vault, "Ann").await;
    let node = ann.create(note("old")).await.unwrap();
    // Both are in the neighbourhood, so both watch its list.
    let hood = vault
        .find(VaultNode {
            node_type: Some(NodeType::PlayerInfoList),
            int32_1: Some(19),
            ..VaultNode::default()
        })
        .await
        .unwrap();
    assert!(!hood.is_empty());
    all(&mut to_ann).await;

    memory.next(Fault::Refused);
    let refused = ann.save(node, Uuid([1; 16]), note("lost")).await;
    assert_eq!(refused, Err(NetError::InternalError));
    assert_eq!(title(&vault, node).await, "old");
    memory.next(Fault::Refused);
    let (bob, mut to_bob, b) = {
        // Another player's login fails at the first change that it makes.
        vault.fail().await;
        play(&vault, "Bob").await
    };
    assert_eq!(vault.check().await.unwrap().iter().filter(|finding| finding.problem).count(), 0);

    // The batch took effect although its requests failed, so others see it.
    let page = bob.create(note("page")).await.unwrap();
    all(&mut to_ann).await;
    all(&mut to_bob).await;
    let info =
        vault.find(VaultNode { uint32_1: Some(b), ..VaultNode::default() }).await.unwrap()[0];
    memory.next(Fault::Lost);
    let rename = encoded(&VaultNode { int32_2: Some(1), ..VaultNode::default() });
    assert_eq!(bob.save(info, Uuid([2; 16]), rename).await, Err(NetError::InternalError));
    let changed = Notice::NodeChanged { node_id: info, revision_id: Uuid([2; 16]) };
    assert_eq!(all(&mut to_ann).await, [changed]);
    assert_eq!(all(&mut to_bob).await, [changed]);
    assert_eq!(vault.show(info).await.unwrap()["Int32_2"], 1);
    bob.save(page, Uuid([3; 16]), note("on")).await.unwrap();
    assert_eq!(title(&vault, page).await, "on");
}

#[tokio::test(start_paused = true)]
async fn a_database_that_does_not_answer_is_asked_again() {
    let (memory, vault) = vault(VaultConfig::default()).await;
    let (ann, _notices, _) = play(&vault, "Ann").await;
    let node = ann.create(note("old")).await.unwrap();
    memory.next(Fault::Hangs);
    *memory.unreachable.lock().unwrap() = 4;
    let start = Instant::now();
    let lost = ann.save(node, Uuid([1; 16]), note("lost")).await;
    assert_eq!(lost, Err(NetError::TimeoutOdbc));
    assert_eq!(start.elapsed(), Duration::from_millis(10_001));
    // In the meantime, requests fail immediately.
    let asked = Instant::now();
    assert_eq!(ann.fetch(node).await, Err(NetError::TimeoutOdbc));
    // New connections get errors, too, and stay open.
    let (late, mut to_late) = vault.connect().await.unwrap();
    for _ in 0..100 {
        vault.connect().await.unwrap();
    }
    assert_eq!(late.log_in(login("Ann", "Ann")).await, Err(NetError::TimeoutOdbc));
    assert!(asked.elapsed() < Duration::from_millis(10));
    // The pauses between tests are 50, 100, 200 and 400 ms.
    sleep(Duration::from_millis(700)).await;
    assert_eq!(ann.fetch(node).await, Err(NetError::TimeoutOdbc));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(title(&vault, node).await, "old");
    // `/health` reports this state.
    assert!(vault.is_failing());
    ann.save(node, Uuid([1; 16]), note("new")).await.unwrap();
    assert_eq!(title(&vault, node).await, "new");
    assert!(!vault.is_failing());
    late.log_in(login("Ann", "Ann")).await.unwrap();
    vault.ban_account("Ann", true).await.unwrap();
    assert!(matches!(all(&mut to_late).await[..], [Notice::KickedOff { .. }]));
}

/// A server whose database can fail.
trait Server {
    /// Makes a change that cannot be saved.
    async fn fail(&self);
    fn is_failing(&self) -> bool;
    fn is_overtaken(&self) -> bool;
}

impl Server for Vault {
    async fn fail(&self) {
        assert!(self.add_account("Bob", "Bob", AccountFlags(0)).await.is_err());
    }

    fn is_failing(&self) -> bool {
        self.is_failing()
    }

    fn is_overtaken(&self) -> bool {
        self.overtaken().is_some()
    }
}

impl Server for Realm {
    async fn fail(&self) {
        assert!(self.add_account("bob", "hunter2", Privileges::default()).await.is_err());
    }

    fn is_failing(&self) -> bool {
        self.is_failing()
    }

    fn is_overtaken(&self) -> bool {
        self.overtaken().is_some()
    }
}

async fn realm() -> (Arc<Memory>, Realm) {
    let memory = Arc::new(Memory::default());
    let ledger = Arc::<Memory>::clone(&memory);
    let realm = Realm::open(ledger, key(), KiConfig::default(), Clock::start()).await.unwrap();
    (memory, realm)
}

/// Waits until the server reports that its database works. Returns how long that took.
async fn recovery(server: &impl Server) -> Duration {
    let start = Instant::now();
    while server.is_failing() {
        assert!(start.elapsed() < Duration::from_secs(3_600), "it never recovered");
        sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

/// Checks when the status page shows `ok` again, after outages with this many failed tests.
async fn notices_the_end_of_an_outage(memory: &Memory, server: &impl Server) {
    for (failed, seconds) in [(0, 1), (1, 3), (2, 7), (6, 91)] {
        for _ in 0..=failed {
            memory.next(Fault::Refused);
        }
        server.fail().await;
        assert!(server.is_failing());
        let before = memory.position();
        let took = recovery(server).await;
        assert!(took.as_secs().abs_diff(seconds) <= 1, "{failed} failed tests: {took:?}");
        // The server made exactly one empty commit.
        assert_eq!(memory.position(), before.next());
        sleep(Duration::from_secs(100)).await;
        assert_eq!(memory.position(), before.next());
    }
    // The first test takes effect although its answer is lost.
    memory.next(Fault::Refused);
    memory.next(Fault::Lost);
    server.fail().await;
    recovery(server).await;
    // Another process has the database now and has not committed anything yet.
    memory.next(Fault::Refused);
    server.fail().await;
    memory.other_writer(0);
    sleep(Duration::from_secs(2)).await;
    assert!(server.is_failing() && server.is_overtaken());
    let commits = *memory.commits.lock().unwrap();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(*memory.commits.lock().unwrap(), commits);
}

#[tokio::test(start_paused = true)]
async fn a_shard_notices_the_end_of_an_outage_by_itself() {
    let (memory, vault) = vault(VaultConfig::default()).await;
    notices_the_end_of_an_outage(&memory, &vault).await;
}

#[tokio::test(start_paused = true)]
async fn a_login_server_notices_the_end_of_an_outage_by_itself() {
    let (memory, realm) = realm().await;
    notices_the_end_of_an_outage(&memory, &realm).await;
}

#[tokio::test(start_paused = true)]
async fn a_login_server_stops_although_its_database_does_not_answer() {
    let (memory, realm) = realm().await;
    memory.next(Fault::Refused);
    memory.next(Fault::Hangs);
    realm.fail().await;
    // The server has begun a test.
    sleep(Duration::from_secs(2)).await;
    let start = Instant::now();
    realm.close().await;
    assert!(start.elapsed() < Duration::from_millis(10), "{:?}", start.elapsed());
}

async fn add(realm: &Realm, name: &str) -> bool {
    realm.add_account(name, "hunter2", Privileges::default()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_login_server_whose_database_does_not_answer_refuses_changes_at_once() {
    for (fault, took_effect) in [(Fault::Hangs, false), (Fault::HangsAfter, true)] {
        let (memory, realm) = realm().await;
        memory.next(fault);
        *memory.unreachable.lock().unwrap() = 4;
        let start = Instant::now();
        // The changes that wait for the first one do not wait for each other.
        let mut waiting = tokio::task::JoinSet::new();
        for name in ["ann", "bob", "cora", "dan"] {
            let realm = realm.clone();
            waiting.spawn(async move { add(&realm, name).await });
        }
        assert!(waiting.join_all().await.into_iter().all(|done| !done));
        assert!(start.elapsed() < Duration::from_millis(10_100), "{:?}", start.elapsed());
        assert!(realm.is_failing());
        let asked = Instant::now();
        assert!(!add(&realm, "erin").await);
        assert!(asked.elapsed() < Duration::from_millis(10));
        // The database is queried immediately, and again after 50, 100 and 200 ms.
        sleep(Duration::from_millis(400)).await;
        let names = || realm.accounts().into_iter().map(|one| one.name).collect::<Vec<_>>();
        if took_effect {
            assert!(!realm.is_failing());
            assert_eq!(names(), ["ann"]);
        }
        assert!(add(&realm, "erin").await);
        assert!(!realm.is_failing());
        assert_eq!(names().len(), 1 + usize::from(took_effect));
        sleep(Duration::from_secs(100)).await;
        assert!(!realm.is_failing());
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_server_asks_at_once_after_each_failure() {
    let (memory, realm) = realm().await;
    // Tests fail until the next one is due in 30 s.
    for _ in 0..6 {
        memory.next(Fault::Refused);
    }
    realm.fail().await;
    sleep(Duration::from_secs(40)).await;
    assert!(realm.is_failing());
    // A change in the meantime makes the state uncertain again.
    memory.next(Fault::Lost);
    *memory.unreachable.lock().unwrap() = 2;
    assert!(!add(&realm, "ann").await);
    assert!(!add(&realm, "bob").await);
    sleep(Duration::from_millis(100)).await;
    assert!(!realm.is_failing());
    assert_eq!(realm.accounts().len(), 1);
    assert!(add(&realm, "bob").await);
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_share_a_commit() {
    let (memory, vault) = vault(VaultConfig::default()).await;
    let (ann, mut notices, _) = play(&vault, "Ann").await;
    let mut nodes = Vec::new();
    for _ in 0..100 {
        nodes.push(ann.create(note("old")).await.unwrap());
    }
    all(&mut notices).await;
    memory.next(Fault::Slow);
    let before = *memory.commits.lock().unwrap();
    let mut saves = tokio::task::JoinSet::new();
    for node in &nodes {
        saves.spawn(ann.save(*node, Uuid([1; 16]), note("new")));
    }
    while let Some(saved) = saves.join_next().await {
        saved.unwrap().unwrap();
    }
    let commits = *memory.commits.lock().unwrap() - before;
    assert!(commits <= 2, "{commits} commits for 100 saves");
}

#[tokio::test(start_paused = true)]
async fn players_who_leave_during_an_outage_go_offline_later() {
    let (memory, vault) = vault(VaultConfig::default()).await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    let info = VaultNode {
        node_type: Some(NodeType::PlayerInfo),
        uint32_1: Some(a),
        ..VaultNode::default()
    };
    let info = vault.find(info).await.unwrap()[0];
    assert_eq!(vault.show(info).await.unwrap()["Int32_1"], 1);
    memory.next(Fault::Refused);
    drop(ann);
    sleep(Duration::from_secs(1)).await;
    // Ann goes offline with the next batch.
    let (_bob, _to_bob, _) = play(&vault, "Bob").await;
    assert_eq!(vault.show(info).await.unwrap()["Int32_1"], 0);
}

#[tokio::test(start_paused = true)]
async fn another_writer_ends_this_vault_however_many_batches_it_committed() {
    for batches in 0..=3 {
        let (memory, vault) = vault(VaultConfig::default()).await;
        let (ann, mut notices, _) = play(&vault, "Ann").await;
        all(&mut notices).await;
        let before = memory.position();
        memory.other_writer(batches);
        assert!(vault.overtaken().is_none());
        assert_eq!(ann.create(note("x")).await, Err(NetError::InternalError));
        assert_eq!(notices.recv().await, None);
        assert_eq!(ann.create(note("x")).await, Err(NetError::RemoteShutdown));
        let error = vault.overtaken().unwrap();
        let StoreError::Overtaken { expected, found, writer } = &*error else { panic!("{error}") };
        assert_eq!((*expected, *found), (before, memory.position()));
        assert_eq!(writer, "writer 2");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_ignore_notices_are_ended() {
    let (memory, vault) =
        vault(VaultConfig { max_notices: 4, cache_bytes: 1, ..VaultConfig::default() }).await;
    let (ann, mut to_ann, _) = play(&vault, "Ann").await;
    let (_bob, mut to_bob, b) = play(&vault, "Bob").await;
    let info = VaultNode {
        node_type: Some(NodeType::PlayerInfo),
        uint32_1: Some(b),
        ..VaultNode::default()
    };
    let info = vault.find(info).await.unwrap()[0];
    all(&mut to_ann).await;
    all(&mut to_bob).await;
    for _ in 0..9 {
        vault.set(info, VaultNode { int32_2: Some(1), ..VaultNode::default() }).await.unwrap();
        all(&mut to_ann).await;
    }
    for _ in 0..4 {
        assert!(to_bob.recv().await.is_some());
    }
    assert_eq!(to_bob.recv().await, None);
    // Nothing is cached here, so nothing can be read without the database.
    assert!(ann.fetch(info).await.is_ok());
    *memory.unreadable.lock().unwrap() = true;
    assert_eq!(ann.fetch(info).await, Err(NetError::InternalError));
    *memory.unreadable.lock().unwrap() = false;
    assert!(ann.fetch(info).await.is_ok());
}

/// Either one commit removes all states of an age, including its own, or no state is removed.
#[tokio::test(start_paused = true)]
async fn the_states_of_an_age_are_cleared_in_one_commit() {
    const KIND: NodeType = NodeType(0x7577_0001);
    let config = || VaultConfig { cache_bytes: 1, ..VaultConfig::default() };
    let (memory, before) = vault(config()).await;
    let city = before.ages_called("city").await.unwrap()[0].id;
    let hood = before.ages_called("Neighborhood").await.unwrap()[0].id;
    let mut ids = 50_000..;
    for (age, count) in [(city, 700), (hood, 3)] {
        let instance = before.clear_states(age, false).await.unwrap().instance;
        let mut states = Changes::new();
        for id in ids.by_ref().take(count) {
            let node = VaultNode {
                node_id: Some(id),
                node_type: Some(KIND),
                uuid_1: Some(instance),
                ..VaultNode::default()
            };
            let row = NodeRow { id, kind: KIND.0, data: encoded(&node).into() };
            states.insert(Change::PutNode(row.clone()).key(), Change::PutNode(row));
        }
        memory.put(&states);
    }
    before.close().await;
    let vault = Vault::open(Arc::<Memory>::clone(&memory), key(), config()).await.unwrap();
    let below = vault.tree(Some(city), 3).await.unwrap();
    let own = below.iter().find(|line| line.kind == "SDL").unwrap().id;
    let blob_1 = Some(NodeBlob::new(vec![1, 2, 3]));
    vault.set(own, VaultNode { blob_1, ..VaultNode::default() }).await.unwrap();
    let left =
        || memory.rows(|it| matches!(it, Change::PutNode(row) if row.kind == KIND.0).then_some(()));
    let stored = memory.rows.lock().unwrap().clone();
    memory.next(Fault::Refused);
    let refused = vault.clear_states(city, true).await;
    assert_eq!(refused, Err(ClearError::Vault(NetError::InternalError)));
    assert!(*memory.rows.lock().unwrap() == stored, "a commit that failed changed something");
    assert_eq!(left().len(), 703);
    // The next process that opens the database finds it intact.
    drop(vault);
    let vault = Vault::open(Arc::<Memory>::clone(&memory), key(), config()).await.unwrap();
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    let commits = *memory.commits.lock().unwrap();
    let cleared = vault.clear_states(city, true).await.unwrap();
    assert_eq!((cleared.states, cleared.own_state), (700, true));
    assert_eq!((left().len(), *memory.commits.lock().unwrap()), (3, commits + 1));
    let again = vault.clear_states(city, true).await.unwrap();
    assert_eq!((again.states, again.own_state), (0, false));
    let unknown = vault.clear_states(5, true).await;
    assert_eq!(unknown, Err(ClearError::Vault(NetError::VaultNodeNotFound)));
    vault.close().await;
}
