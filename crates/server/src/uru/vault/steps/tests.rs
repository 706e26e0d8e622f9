//! Panics in the middle of a request.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::TermStr;
use worldwire_uru::vault::NodeType;

use super::*;
use crate::store::{ScoreRow, SqliteStore};
use crate::uru::vault::config::VaultConfig;
use crate::uru::vault::dump::Dump;
use crate::uru::vault::placements::{FIRST_PLACED, Placement};
use crate::uru::vault::tables::accounts::Account;
use crate::uru::vault::{Vault, VaultError};

const CONNECTION: ConnectionId = ConnectionId(1);

/// All data that a request can change.
#[derive(Debug, PartialEq)]
struct Snapshot {
    lines: Vec<String>,
    staged: Changes,
    sessions: BTreeMap<ConnectionId, Arc<Session>>,
    online: BTreeMap<u32, ConnectionId>,
    own_ages: BTreeSet<Uuid>,
    placements: String,
    watched: BTreeSet<u32>,
    common: BTreeSet<u32>,
    notices: usize,
    undo: usize,
}

impl Snapshot {
    fn of(state: &mut VaultState) -> Self {
        let dump: Dump = state.dump(true).unwrap();
        Self {
            lines: dump.lines().collect(),
            staged: state.staged.clone(),
            sessions: state.sessions.clone(),
            online: state.online.iter().map(|(player, id)| (*player, *id)).collect(),
            own_ages: state.own_ages.clone(),
            placements: format!("{:?}", state.placements),
            watched: state.interests.of(CONNECTION),
            common: state.interests.common(),
            notices: state.outbox.len(),
            undo: state.undo.len(),
        }
    }
}

/// A shard with an account that is logged in, and a player who is online.
fn shard() -> VaultState {
    let mut number = 0_u8;
    let random = Box::new(move |bytes: &mut [u8]| {
        number = number.wrapping_add(1);
        bytes.fill(number);
    });
    let key = ServerKey::from_bytes(&[1; 32]);
    let mut state = VaultState::new(VaultConfig::default(), key, random);
    state.run(VaultState::found).unwrap();
    let account = state.run(|state| state.add_account("ann", "secret", AccountFlags(0))).unwrap();
    state.connect(CONNECTION);
    let session = Session { account: account.account, ..Session::default() };
    state.put_session(CONNECTION, Some(session));
    let player = state.run(|state| state.create_player(CONNECTION, "Ann", "female")).unwrap();
    state.run(|state| state.set_player(CONNECTION, player.id)).unwrap();
    state
}

/// A request with steps of all kinds.
fn request(state: &mut VaultState) -> Outcome<()> {
    let player = state.playing(CONNECTION)?.player;
    let name = Some(TermStr::from("note"));
    let note =
        VaultNode { node_type: Some(NodeType::TextNote), string64_1: name, ..VaultNode::default() };
    let note = state.make_node(note)?;
    state.link(player, note, player);
    state.change_node(note, None, VaultNode { int32_1: Some(7), ..VaultNode::default() })?;
    state.unlink(player, note);
    state.drop_node(note);
    let name = "points".to_owned();
    let score = ScoreRow { id: 0, owner: player, name, kind: 0, value: 1, created: 0 };
    let score = state.make_score(score)?;
    state.put_score(score, None);
    let instance = state.random_uuid();
    state.put_own_age(instance);
    let fence = state.make_fence()?;
    let (node, process, filename) = ("a".to_owned(), 1, "city".to_owned());
    let placement = Placement { fence, node, process, instance, filename, folder: 7 };
    state.put_placement(FIRST_PLACED, Some(placement));
    state.put_placement(FIRST_PLACED, None);
    state.put_system(state.system());
    state.set_password("ann", "other")?;
    state.leave_player(CONNECTION)?;
    state.create_player(CONNECTION, "Bea", "female")?;
    state.delete_player(CONNECTION, player)?;
    state.ban_account("ann", true)?;
    state.delete_account("ann")?;
    Ok(())
}

/// At every step of a request, a panic leaves the state as it was, and the vault continues to serve
/// requests.
#[test]
fn a_panic_at_any_step_changes_nothing() {
    let mut state = shard();
    let before = Snapshot::of(&mut state);
    let mut steps = 0;
    loop {
        state.panic_after = Some(steps);
        let outcome = state.run(request);
        if state.panic_after.take().is_some() {
            // The request has fewer steps than this.
            outcome.unwrap();
            break;
        }
        assert_eq!(outcome, Err(NetError::InternalError.into()), "step {steps}");
        assert_eq!(Snapshot::of(&mut state), before, "step {steps}");
        steps += 1;
    }
    assert!(steps > 400, "{steps} steps");
    assert_ne!(Snapshot::of(&mut state), before);
    state.undo();
    assert!(state.graph.ids().is_empty() && state.staged.is_empty());
}

/// A copy that follows every batch has the same data.
#[test]
fn a_copy_follows_all_changes() {
    let mut state = shard();
    let key = ServerKey::from_bytes(&[1; 32]);
    let mut copy = VaultState::new(VaultConfig::default(), key, Box::new(|bytes| bytes.fill(1)));
    let mut all = Changes::new();
    let mut follow = |state: &mut VaultState, copy: &mut VaultState| {
        let changes = state.staged.clone();
        all.extend(changes.clone());
        state.settle();
        copy.follow(&changes).unwrap();
        copy.finish_loading().unwrap();
        for change in all.values() {
            if let Change::PutNode(row) = change {
                copy.load_content(row.id, Arc::clone(&row.data));
            }
        }
        let lines = |state: &mut VaultState| state.dump(true).unwrap().lines().collect::<Vec<_>>();
        assert_eq!(lines(copy), lines(state));
        assert_eq!(copy.next_numbers(), state.next_numbers());
        assert_eq!((copy.system, &copy.own_ages), (state.system, &state.own_ages));
        assert_eq!(copy.interests.common(), state.interests.common());
        for name in ["ann", "bob"] {
            let id = |state: &VaultState| state.accounts.named(name).map(|(id, _)| id);
            assert_eq!(id(copy), id(state), "{name}");
        }
        all.clone()
    };
    follow(&mut state, &mut copy);
    state.run(|state| state.add_account("bob", "secret", AccountFlags(0))).unwrap();
    follow(&mut state, &mut copy);
    // Two accounts swap their names, in either order of their numbers.
    for _ in 0..2 {
        let [ann, bob] = ["ann", "bob"].map(|name| {
            let (id, account) = state.accounts.named(name).unwrap();
            (id, account.clone())
        });
        state.put_account(ann.0, None);
        state.put_account(bob.0, Some(Account { name: ann.1.name.clone(), ..bob.1.clone() }));
        state.put_account(ann.0, Some(Account { name: bob.1.name, ..ann.1 }));
        follow(&mut state, &mut copy);
    }
    state.run(request).unwrap();
    let all = follow(&mut state, &mut copy);
    // Afterwards, everything is read again.
    copy.forget();
    assert_eq!(copy.graph.len(), 0);
    copy.follow(&all).unwrap();
    assert_eq!(copy.graph.ids(), state.graph.ids());
    assert_eq!(copy.graph.refs().collect::<Vec<_>>(), state.graph.refs().collect::<Vec<_>>());
}

/// With a database, too, the request fails, none of its changes are stored, and the next request
/// succeeds.
#[tokio::test]
async fn a_vault_serves_on_after_a_panic() -> Result<(), VaultError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shard.sqlite");
    let open = async || {
        let store = Arc::new(SqliteStore::open(&file, String::new()).await?);
        Vault::open(store, ServerKey::from_bytes(&[1; 32]), VaultConfig::default()).await
    };
    let vault = open().await?;
    vault.add_account("ann", "secret", AccountFlags(0)).await.unwrap();
    let before = vault.export().await.unwrap();
    let panics = |state: &mut VaultState| -> Outcome<()> {
        state.delete_account("ann")?;
        state.make_node(VaultNode::default())?;
        panic!("a defect")
    };
    let outcome = vault.call(None, None, panics).await;
    assert_eq!(outcome, Err(NetError::InternalError));
    assert_eq!(vault.export().await.unwrap(), before);
    assert!(!vault.is_failing());
    vault.add_account("bob", "secret", AccountFlags(0)).await.unwrap();
    vault.close().await;
    let vault = open().await?;
    let names = vault.accounts().await.unwrap().into_iter().map(|account| account.name);
    assert_eq!(names.collect::<Vec<_>>(), ["ann", "bob"]);
    vault.close().await;
    Ok(())
}
