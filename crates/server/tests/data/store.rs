//! The store keeps its promises on both kinds of database.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use worldwire_server::store::{
    AccountRow, Change, Changes, CharacterRow, NodeRow, PlacementRow, Position, RefRow, ScoreRow,
    SettingRow, StoreError,
};

use crate::support::Database;

fn batch(changes: impl IntoIterator<Item = Change>) -> Arc<Changes> {
    Arc::new(changes.into_iter().map(|change| (change.key(), change)).collect())
}

fn node(id: u32, byte: u8) -> NodeRow {
    NodeRow { id, kind: 22, data: vec![byte; 5].into() }
}

fn account(number: u8, name: &str) -> AccountRow {
    AccountRow {
        id: [number; 16],
        name: name.to_owned(),
        folded: name.to_lowercase(),
        flags: u32::MAX,
        created: u32::MAX,
        secret: vec![0, 1, 255],
    }
}

#[tokio::test]
async fn rows_are_read_as_written() {
    for database in Database::all() {
        let store = database.store().await;
        let start = store.claim().await.unwrap();
        let setting = SettingRow { name: "test.a".to_owned(), value: vec![0, 255] };
        let accounts = [account(1, "Ann"), account(2, "Bob")];
        let character = CharacterRow {
            id: u32::MAX,
            account: [2; 16],
            name: "Bøb".to_owned(),
            created: 5,
            data: vec![1, 0],
        };
        let nodes: Vec<_> = (1..=200).map(|id| node(id, 7)).chain([node(u32::MAX, 8)]).collect();
        let refs = [
            RefRow { parent: 1, child: 2, owner: 0 },
            RefRow { parent: 1, child: u32::MAX, owner: u32::MAX },
        ];
        let score = ScoreRow {
            id: 9,
            owner: u32::MAX,
            name: "s".to_owned(),
            kind: 2,
            value: i32::MIN,
            created: 3,
        };
        let mut changes = vec![
            Change::PutSetting(setting.clone()),
            Change::PutCharacter(character.clone()),
            Change::PutScore(score.clone()),
        ];
        changes.extend(accounts.iter().cloned().map(Change::PutAccount));
        changes.extend(nodes.iter().cloned().map(Change::PutNode));
        changes.extend(refs.map(Change::PutRef));
        store.commit(start, batch(changes)).await.unwrap();
        store.close().await.unwrap();

        let store = database.store().await;
        let (position, writer) = store.position().await.unwrap();
        assert_eq!(position, start.next());
        assert!(writer.starts_with(&format!("process {} on ", std::process::id())), "{writer}");
        assert_eq!(store.settings().await.unwrap(), [setting]);
        assert_eq!(store.accounts().await.unwrap(), accounts);
        assert_eq!(store.characters().await.unwrap(), [character]);
        assert_eq!(store.refs().await.unwrap(), refs);
        assert_eq!(store.scores().await.unwrap(), [score]);
        assert_eq!(store.nodes_behind(0, 3).await.unwrap(), nodes[..3]);
        assert_eq!(store.nodes_behind(199, 9).await.unwrap(), nodes[199..]);
        for wanted in [0, 1, 2, 8, 9, 64, 65, 129] {
            let ids: Vec<_> = (1..=wanted).chain([300]).collect();
            let mut found = store.nodes(&ids).await.unwrap();
            found.sort_by_key(|row| row.id);
            assert_eq!(found, nodes[..wanted as usize]);
        }
        assert_eq!(store.nodes(&[]).await.unwrap(), []);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn batches_are_atomic() {
    for database in Database::all() {
        let store = database.store().await;
        let mut at = store.claim().await.unwrap();
        let rows = [Change::PutNode(node(1, 1)), Change::PutAccount(account(1, "Ann"))];
        store.commit(at, batch(rows)).await.unwrap();
        at = at.next();

        // A dangling reference, and an account with the same name.
        let nowhere = Change::PutRef(RefRow { parent: 1, child: 2, owner: 0 });
        let twin = Change::PutAccount(account(2, "ANN"));
        for bad in [nowhere.clone(), twin.clone()] {
            let changes = [Change::PutNode(node(1, 2)), Change::PutNode(node(3, 3)), bad];
            let error = store.commit(at, batch(changes)).await.unwrap_err();
            assert!(matches!(error, StoreError::Database(_)), "{error}");
            assert_eq!(store.position().await.unwrap().0, at);
            assert_eq!(store.nodes_behind(0, 9).await.unwrap(), [node(1, 1)]);
        }

        // Rows created and deleted in one batch may refer to each other in any order.
        let changes = [nowhere, Change::PutNode(node(2, 2)), Change::DeleteAccount([1; 16]), twin];
        store.commit(at, batch(changes)).await.unwrap();
        let gone = [Change::DeleteNode(2), Change::DeleteRef { parent: 1, child: 2 }];
        store.commit(at.next(), batch(gone)).await.unwrap();
        assert_eq!(store.refs().await.unwrap(), []);
        assert_eq!(store.accounts().await.unwrap(), [account(2, "ANN")]);
    }
}

/// PostgreSQL receives a small batch as one statement and a large one row by row.
#[tokio::test]
async fn rows_of_every_kind_are_replaced_and_deleted() {
    for database in Database::all() {
        let store = database.store().await;
        let mut at = store.claim().await.unwrap();
        let filler = |count: u32| (100..100 + count).map(|id| Change::PutNode(node(id, 9)));
        for rows in [0, 5_000] {
            let all = |text: &str, number: i32| {
                let name = format!("test.{text}");
                let character = CharacterRow {
                    id: 5,
                    account: [1; 16],
                    name: text.to_owned(),
                    created: 7,
                    data: text.as_bytes().to_vec(),
                };
                let score = ScoreRow {
                    id: 9,
                    owner: 1,
                    name: text.to_owned(),
                    kind: 2,
                    value: number,
                    created: 3,
                };
                [
                    Change::PutAccount(account(1, text)),
                    Change::PutSetting(SettingRow { name, value: vec![1] }),
                    Change::PutCharacter(character),
                    Change::PutNode(node(1, text.as_bytes()[0])),
                    Change::PutNode(node(2, 2)),
                    Change::PutRef(RefRow { parent: 1, child: 2, owner: number.unsigned_abs() }),
                    Change::PutScore(score),
                    Change::PutPlacement(PlacementRow { number: 0xc000_0000, data: text.into() }),
                ]
            };
            for (text, number) in [("Ann", -1), ("Bob", 2)] {
                let changes = all(text, number);
                let [
                    _,
                    _,
                    Change::PutCharacter(character),
                    first,
                    second,
                    reference,
                    score,
                    Change::PutPlacement(placement),
                ] = &changes
                else {
                    unreachable!()
                };
                let batch = batch(changes.iter().cloned().chain(filler(rows)));
                store.commit(at, batch).await.unwrap();
                at = at.next();
                assert_eq!(store.accounts().await.unwrap(), [account(1, text)]);
                assert_eq!(store.characters().await.unwrap(), std::slice::from_ref(character));
                let nodes = store.nodes(&[1, 2]).await.unwrap().into_iter();
                assert_eq!(
                    nodes.map(Change::PutNode).collect::<Vec<_>>(),
                    [first, second].map(Clone::clone)
                );
                assert_eq!(store.placements().await.unwrap(), std::slice::from_ref(placement));
                let refs = store.refs().await.unwrap().into_iter();
                assert_eq!(
                    refs.map(Change::PutRef).collect::<Vec<_>>(),
                    std::slice::from_ref(reference)
                );
                let scores = store.scores().await.unwrap().into_iter();
                assert_eq!(
                    scores.map(Change::PutScore).collect::<Vec<_>>(),
                    std::slice::from_ref(score)
                );
            }
            let gone = [
                Change::DeleteAccount([1; 16]),
                Change::DeleteCharacter(5),
                Change::DeleteNode(1),
                Change::DeleteNode(2),
                Change::DeleteRef { parent: 1, child: 2 },
                Change::DeleteScore(9),
                Change::DeletePlacement(0xc000_0000),
            ];
            let filler = filler(rows).map(|change| match change {
                Change::PutNode(row) => Change::DeleteNode(row.id),
                other => other,
            });
            store.commit(at, batch(gone.into_iter().chain(filler))).await.unwrap();
            at = at.next();
            assert_eq!(store.accounts().await.unwrap(), []);
            assert_eq!(store.characters().await.unwrap(), []);
            assert_eq!(store.nodes_behind(0, 9).await.unwrap(), []);
            assert_eq!(store.refs().await.unwrap(), []);
            assert_eq!(store.scores().await.unwrap(), []);
            assert_eq!(store.placements().await.unwrap(), []);
            assert_eq!(store.settings().await.unwrap().len(), 2);
        }
        assert_eq!(store.position().await.unwrap().0, at);
    }
}

/// The time since 1970, in seconds.
pub(crate) fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn a_claim_shuts_out_earlier_writers() {
    for database in Database::all() {
        let (one, two) = (database.store().await, database.store().await);
        let first = one.claim().await.unwrap();
        assert!(first.epoch.abs_diff(unix()) < 600 && first.batch == 0, "{first}");
        one.commit(first, batch([])).await.unwrap();
        if let Some(url) = &database.url {
            let error = two.claim().await.unwrap_err();
            assert!(matches!(error, StoreError::InUse { .. }), "{error}");
            crate::two_writers::lose_lock(url).await;
        }
        let second = two.claim().await.unwrap();
        assert!(second.epoch > first.epoch && second.batch == 1, "{second}");
        let row = |byte| batch([Change::PutNode(node(1, byte))]);
        // The other writer has committed no batches, one, or two.
        for committed in 0..3 {
            let found = Position { batch: second.batch + committed, ..second };
            for expected in [first, first.next(), first.next().next()] {
                let error = one.commit(expected, row(1)).await.unwrap_err();
                let StoreError::Overtaken { expected: said, found: at, .. } = error else {
                    panic!("{error}")
                };
                assert_eq!((said, at), (expected, found));
            }
            assert_eq!(one.position().await.unwrap().0, found);
            two.commit(found, row(2)).await.unwrap();
        }
        assert_eq!(one.nodes_behind(0, 9).await.unwrap(), [node(1, 2)]);
        // A batch cannot be committed twice, either.
        assert!(two.commit(second, row(3)).await.is_err());
    }
}

#[tokio::test]
async fn no_secret_shows() {
    assert!(!format!("{:?}", account(1, "Ann")).contains("255"));
    let url = "mysql://ann:hunter2@host/shard";
    let folder = tempfile::tempdir().unwrap();
    let error =
        worldwire_server::store::open(folder.path().join("x"), Some(url)).await.err().unwrap();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
