//! A database in memory, for login servers in virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use worldwire_server::store::{
    AccountRow, Change, Changes, CharacterRow, Key, Ledger, Pending, Position, SettingRow,
    StoreError,
};

/// An in-memory database.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    rows: Mutex<BTreeMap<Key, Change>>,
    position: Mutex<Option<Position>>,
    /// Whether commits fail.
    pub(crate) is_failing: AtomicBool,
    /// Whether commits succeed but report a failure.
    pub(crate) loses_answers: AtomicBool,
    /// Whether another program has locked the database.
    pub(crate) is_locked: AtomicBool,
    /// Whether another server has taken over the database.
    pub(crate) is_overtaken: AtomicBool,
}

impl Memory {
    /// Waits for the other program's lock, up to 5 s as SQLite does.
    async fn unlocked(&self) -> Result<(), StoreError> {
        for _ in 0..50 {
            if !self.is_locked.load(Ordering::Relaxed) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(StoreError::Damaged("locked by another program".to_owned()))
    }
}

macro_rules! reads {
    ($($name:ident: $row:ty = $change:ident;)*) => {$(
        fn $name(&self) -> Pending<'_, Vec<$row>> {
            Box::pin(async move {
                let rows = self.rows.lock().unwrap();
                Ok(rows.values().filter_map(|change| match change {
                    Change::$change(row) => Some(row.clone()),
                    _ => None,
                }).collect())
            })
        }
    )*};
}

impl Ledger for Memory {
    fn claim(&self) -> Pending<'_, Position> {
        Box::pin(async move {
            Ok(*self.position.lock().unwrap().insert(Position { epoch: 1, batch: 0 }))
        })
    }

    fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()> {
        Box::pin(async move {
            self.unlocked().await?;
            if self.is_overtaken.load(Ordering::Relaxed) {
                let found = Position { epoch: after.epoch + 1, batch: 0 };
                let writer = "another server".to_owned();
                return Err(StoreError::Overtaken { expected: after, found, writer });
            }
            let failure = || Err(StoreError::Damaged("on purpose".to_owned()));
            if self.is_failing.load(Ordering::Relaxed) {
                return failure();
            }
            assert_eq!(self.position.lock().unwrap().replace(after.next()), Some(after));
            let mut rows = self.rows.lock().unwrap();
            for (key, change) in &*changes {
                match change.is_deletion() {
                    true => rows.remove(key),
                    false => rows.insert(key.clone(), change.clone()),
                };
            }
            if self.loses_answers.load(Ordering::Relaxed) { failure() } else { Ok(()) }
        })
    }

    fn position(&self) -> Pending<'_, (Position, String)> {
        Box::pin(async move {
            self.unlocked().await?;
            Ok((self.position.lock().unwrap().unwrap(), String::new()))
        })
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
