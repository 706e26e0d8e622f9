//! An in-memory database that several processes share.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::store::lease::{LeaseRow, SeenStandby, SharedStore, Sighting};
use crate::store::{
    AccountRow, Change, Changes, CharacterRow, Key, Ledger, NodeRow, Pending, PlacementRow,
    Position, RefRow, ScoreRow, SessionRow, SettingRow, Store, StoreError,
};

/// The contents of the database.
#[derive(Debug)]
pub(super) struct Data {
    rows: Changes,
    /// The epochs in which the sessions were written.
    written: BTreeMap<u64, u64>,
    log: Vec<Arc<Changes>>,
    position: Position,
    lease: LeaseRow,
}

impl Default for Data {
    fn default() -> Self {
        Self {
            rows: Changes::new(),
            written: BTreeMap::new(),
            log: Vec::new(),
            position: Position { epoch: 0, batch: 0 },
            lease: LeaseRow { epoch: 0, beat: LeaseRow::RESIGNED },
        }
    }
}

/// A process's connection to the database.
#[derive(Debug)]
pub(super) struct Database {
    data: Arc<Mutex<Data>>,
    /// Whether the process was killed.
    is_dead: Arc<AtomicBool>,
}

impl Database {
    pub(super) fn new(data: Arc<Mutex<Data>>, is_dead: Arc<AtomicBool>) -> Self {
        Self { data, is_dead }
    }

    /// The data. If the process has been killed, this waits forever.
    async fn open(&self) -> MutexGuard<'_, Data> {
        if self.is_dead.load(Ordering::Relaxed) {
            return pending().await;
        }
        self.data.lock().unwrap()
    }

    async fn rows<T>(&self, pick: impl Fn(&Change) -> Option<T> + Send) -> Vec<T> {
        self.open().await.rows.values().filter_map(pick).collect()
    }
}

macro_rules! reads {
    ($($name:ident: $row:ty = $change:ident;)*) => {$(
        fn $name(&self) -> Pending<'_, Vec<$row>> {
            Box::pin(async move {
                Ok(self.rows(|change| match change {
                    Change::$change(row) => Some(row.clone()),
                    _ => None,
                }).await)
            })
        }
    )*};
}

impl Ledger for Database {
    fn claim(&self) -> Pending<'_, Position> {
        Box::pin(pending())
    }

    fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut data = self.open().await;
            if data.position != after {
                return Err(StoreError::overtaken(after, data.position, "another".to_owned()));
            }
            data.position = after.next();
            for (key, change) in &*changes {
                match change {
                    Change::PutSession(row) => {
                        data.written.insert(row.connection, after.epoch);
                        data.rows.insert(key.clone(), change.clone());
                    }
                    Change::DeleteNode(_)
                    | Change::DeleteAccount(_)
                    | Change::DeleteCharacter(_)
                    | Change::DeleteRef { .. }
                    | Change::DeleteScore(_)
                    | Change::DeleteSession(_) => drop(data.rows.remove(key)),
                    _ => drop(data.rows.insert(key.clone(), change.clone())),
                }
            }
            data.log.push(changes);
            Ok(())
        })
    }

    fn position(&self) -> Pending<'_, (Position, String)> {
        Box::pin(async move { Ok((self.open().await.position, "another".to_owned())) })
    }

    reads! {
        settings: SettingRow = PutSetting;
        accounts: AccountRow = PutAccount;
        characters: CharacterRow = PutCharacter;
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl Store for Database {
    reads! {
        refs: RefRow = PutRef;
        scores: ScoreRow = PutScore;
        placements: PlacementRow = PutPlacement;
    }

    fn nodes_behind(&self, id: u32, most: u32) -> Pending<'_, Vec<NodeRow>> {
        Box::pin(async move {
            let mut nodes = self
                .rows(|change| match change {
                    Change::PutNode(row) if row.id > id => Some(row.clone()),
                    _ => None,
                })
                .await;
            nodes.truncate(most as usize);
            Ok(nodes)
        })
    }

    fn nodes<'s>(&'s self, ids: &'s [u32]) -> Pending<'s, Vec<NodeRow>> {
        Box::pin(async move {
            let data = self.open().await;
            let row = |id: &u32| match data.rows.get(&Key::Node(*id)) {
                Some(Change::PutNode(row)) => Some(row.clone()),
                _ => None,
            };
            Ok(ids.iter().filter_map(row).collect())
        })
    }
}

impl SharedStore for Database {
    fn look(&self) -> Pending<'_, Sighting> {
        Box::pin(async move {
            let data = self.open().await;
            let (position, lease) = (data.position, data.lease);
            Ok(Sighting { position, writer: "another".to_owned(), lease })
        })
    }

    fn take_over<'s>(&'s self, seen: &'s Sighting, _: bool) -> Pending<'s, Option<Position>> {
        Box::pin(async move {
            let mut data = self.open().await;
            if data.lease != seen.lease || data.position.epoch != seen.position.epoch {
                return Ok(None);
            }
            data.position.epoch += 1;
            data.lease = LeaseRow { epoch: data.position.epoch, beat: 0 };
            Ok(Some(data.position))
        })
    }

    fn renew(&self, epoch: u64) -> Pending<'_, bool> {
        Box::pin(async move {
            let mut data = self.open().await;
            data.lease.beat += i64::from(data.lease.epoch == epoch);
            Ok(data.lease.epoch == epoch)
        })
    }

    fn resign(&self, _: u64) -> Pending<'_, ()> {
        Box::pin(pending())
    }

    fn changes_after(&self, batch: u64) -> Pending<'_, Option<(u64, Changes)>> {
        Box::pin(async move {
            let data = self.open().await;
            let missing = data.log.iter().skip(usize::try_from(batch).unwrap());
            let changes = missing.flat_map(|changes| (**changes).clone()).collect();
            Ok(Some((data.position.batch, changes)))
        })
    }

    fn standbys(&self) -> Pending<'_, Vec<SeenStandby>> {
        Box::pin(pending())
    }

    fn sessions(&self) -> Pending<'_, Vec<(u64, SessionRow)>> {
        Box::pin(async move {
            let data = self.open().await;
            let row = |change: &Change| match change {
                Change::PutSession(row) => Some((data.written[&row.connection], row.clone())),
                _ => None,
            };
            Ok(data.rows.values().filter_map(row).collect())
        })
    }
}
