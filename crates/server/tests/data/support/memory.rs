//! An in-memory database that injects faults.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use worldwire_server::store::{
    AccountRow, Change, Changes, CharacterRow, Ledger, NodeRow, Pending, PlacementRow, Position,
    RefRow, ScoreRow, SettingRow, Store, StoreError,
};

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The commit takes a second and takes effect.
    Slow,
    /// The commit is refused.
    Refused,
    /// The commit takes effect, but its answer is lost.
    Lost,
    /// The commit never ends and has no effect.
    Hangs,
    /// The commit never ends, but takes effect.
    HangsAfter,
}

/// Moments during a commit, and during the queries about it afterwards, at which another process
/// may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    BeforeCommit,
    BeforeAnswer,
    FirstQuestion,
    SecondQuestion,
}

type Stage = mpsc::UnboundedSender<(Moment, oneshot::Sender<()>)>;

/// See the module's documentation.
pub(crate) struct Memory {
    pub(crate) rows: Mutex<Changes>,
    position: Mutex<Position>,
    faults: Mutex<VecDeque<Fault>>,
    /// How many more times the position cannot be read.
    pub(crate) unreachable: Mutex<u32>,
    pub(crate) commits: Mutex<u32>,
    /// Whether nodes cannot be read.
    pub(crate) unreadable: Mutex<bool>,
    /// The epoch whose commits are watched, and the channel to which their moments are sent.
    stage: Mutex<Option<(u64, Stage)>>,
    questions: Mutex<u32>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            rows: Mutex::default(),
            position: Mutex::new(Position { epoch: 0, batch: 0 }),
            faults: Mutex::default(),
            unreachable: Mutex::default(),
            commits: Mutex::default(),
            unreadable: Mutex::default(),
            stage: Mutex::default(),
            questions: Mutex::default(),
        }
    }
}

impl Memory {
    /// Injects this fault into the next commit.
    pub(crate) fn next(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    pub(crate) fn position(&self) -> Position {
        *self.position.lock().unwrap()
    }

    /// Lets another process claim the database and commit this many batches.
    pub(crate) fn other_writer(&self, batches: u64) {
        let mut position = self.position.lock().unwrap();
        position.epoch += 1;
        position.batch += batches;
    }

    /// The moments of commits in the current epoch. A commit waits at each of them until the
    /// receiver answers.
    pub(crate) fn moments(&self) -> mpsc::UnboundedReceiver<(Moment, oneshot::Sender<()>)> {
        let (stage, moments) = mpsc::unbounded_channel();
        *self.stage.lock().unwrap() = Some((self.position().epoch, stage));
        moments
    }

    async fn pass(&self, moment: Moment, epoch: Option<u64>) {
        let stage = self.stage.lock().unwrap().clone();
        if let Some((watched, stage)) = stage
            && epoch.is_none_or(|epoch| epoch == watched)
        {
            let (done, passed) = oneshot::channel();
            if stage.send((moment, done)).is_ok() {
                let _ = passed.await;
            }
        }
    }

    /// Changes rows without any writer's knowledge.
    pub(crate) fn put(&self, changes: &Changes) {
        let mut rows = self.rows.lock().unwrap();
        for (key, change) in changes {
            if change.is_deletion() {
                rows.remove(key)
            } else {
                rows.insert(key.clone(), change.clone())
            };
        }
    }

    fn apply(&self, after: Position, changes: &Changes) -> Result<(), StoreError> {
        let mut position = self.position.lock().unwrap();
        if *position != after {
            let writer = format!("writer {}", position.epoch);
            return Err(StoreError::Overtaken { expected: after, found: *position, writer });
        }
        *position = position.next();
        self.put(changes);
        Ok(())
    }

    pub(crate) fn rows<T>(&self, pick: impl Fn(&Change) -> Option<T>) -> Vec<T> {
        self.rows.lock().unwrap().values().filter_map(pick).collect()
    }
}

fn failure<T>() -> Result<T, StoreError> {
    Err(StoreError::Damaged("on purpose".to_owned()))
}

macro_rules! reads {
    ($($name:ident: $row:ty = $change:ident;)*) => {$(
        fn $name(&self) -> Pending<'_, Vec<$row>> {
            Box::pin(async move {
                Ok(self.rows(|change| match change {
                    Change::$change(row) => Some(row.clone()),
                    _ => None,
                }))
            })
        }
    )*};
}

impl Ledger for Memory {
    fn claim(&self) -> Pending<'_, Position> {
        Box::pin(async move {
            let mut position = self.position.lock().unwrap();
            position.epoch += 1;
            Ok(*position)
        })
    }

    fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()> {
        Box::pin(async move {
            *self.commits.lock().unwrap() += 1;
            *self.questions.lock().unwrap() = 0;
            let fault = self.faults.lock().unwrap().pop_front();
            self.pass(Moment::BeforeCommit, Some(after.epoch)).await;
            if fault == Some(Fault::Slow) {
                sleep(Duration::from_secs(1)).await;
            }
            if !matches!(fault, Some(Fault::Refused | Fault::Hangs)) {
                self.apply(after, &changes)?;
            }
            self.pass(Moment::BeforeAnswer, Some(after.epoch)).await;
            match fault {
                None | Some(Fault::Slow) => Ok(()),
                Some(Fault::Refused | Fault::Lost) => failure(),
                Some(Fault::Hangs | Fault::HangsAfter) => std::future::pending().await,
            }
        })
    }

    fn position(&self) -> Pending<'_, (Position, String)> {
        Box::pin(async move {
            let question = {
                let mut questions = self.questions.lock().unwrap();
                *questions += 1;
                *questions
            };
            match question {
                1 => self.pass(Moment::FirstQuestion, None).await,
                2 => self.pass(Moment::SecondQuestion, None).await,
                _ => {}
            }
            let mut unreachable = self.unreachable.lock().unwrap();
            if *unreachable > 0 {
                *unreachable -= 1;
                return failure();
            }
            let position = Self::position(self);
            Ok((position, format!("writer {}", position.epoch)))
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

impl Store for Memory {
    reads! {
        refs: RefRow = PutRef;
        scores: ScoreRow = PutScore;
        placements: PlacementRow = PutPlacement;
    }

    fn nodes_behind(&self, id: u32, most: u32) -> Pending<'_, Vec<NodeRow>> {
        Box::pin(async move {
            let mut nodes = self.rows(|change| match change {
                Change::PutNode(row) if row.id > id => Some(row.clone()),
                _ => None,
            });
            nodes.truncate(most as usize);
            Ok(nodes)
        })
    }

    fn nodes<'s>(&'s self, ids: &'s [u32]) -> Pending<'s, Vec<NodeRow>> {
        Box::pin(async move {
            if *self.unreadable.lock().unwrap() {
                return failure();
            }
            Ok(self.rows(|change| match change {
                Change::PutNode(row) if ids.contains(&row.id) => Some(row.clone()),
                _ => None,
            }))
        })
    }
}
