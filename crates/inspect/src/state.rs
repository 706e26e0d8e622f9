//! The state that all requests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use tokio::sync::Semaphore;
use worldwire_dissect::{Dissection, Facts};

use crate::checkpoints::Checkpoints;
use crate::error::Refusal;
use crate::index::Index;
use crate::live::Live;
use crate::message::Recent;
use crate::notes::Notes;
use crate::recording::{Progress, Recording};
use crate::selection::Selections;
use crate::suggestions::Vocabulary;
use crate::worlds::{Board, KiArchive, Plane, UruWorld};

/// The open capture.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) recording: Recording,
    /// The indexer's progress.
    pub(crate) progress: Arc<Progress>,
    index: RwLock<Index>,
    facts: Mutex<Facts>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) selections: Selections,
    pub(crate) recent: Recent,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) notes: Notes,
    /// The options with which `worldwire encode` uses the same definitions, for a shell.
    pub(crate) options: String,
    pub(crate) tera: Board,
    pub(crate) mxo: Plane,
    /// The running program that is watched, if any.
    pub(crate) live: Option<Arc<dyn Live>>,
    /// The archive that is shown instead of a capture, if any.
    pub(crate) archive: Option<Arc<KiArchive>>,
    /// What the capture shows of an Uru shard, once that is requested.
    pub(crate) uru: OnceLock<Arc<UruWorld>>,
    /// Permits for requests that keep a thread busy. Others wait.
    pub(crate) work: Arc<Semaphore>,
    /// Permits for WebSockets.
    pub(crate) sockets: Arc<Semaphore>,
    is_closed: AtomicBool,
}

/// The maximum number of requests that keep a thread busy at the same time.
const MAX_BUSY: usize = 4;
/// The maximum number of WebSockets open at the same time.
const MAX_SOCKETS: usize = 128;

impl State {
    pub(crate) fn new(
        recording: Recording,
        index: Index,
        live: Option<Arc<dyn Live>>,
        archive: Option<Arc<KiArchive>>,
        options: String,
    ) -> Self {
        let notes = Notes::beside(recording.path());
        Self {
            recording,
            progress: Arc::default(),
            index: RwLock::new(index),
            facts: Mutex::default(),
            checkpoints: Checkpoints::default(),
            selections: Selections::default(),
            recent: Recent::default(),
            vocabulary: Vocabulary::default(),
            notes,
            options,
            tera: Board::default(),
            mxo: Plane::default(),
            live,
            archive,
            uru: OnceLock::new(),
            work: Arc::new(Semaphore::new(MAX_BUSY)),
            sockets: Arc::new(Semaphore::new(MAX_SOCKETS)),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that conversations have stated so far.
    pub(crate) fn facts(&self) -> Facts {
        self.lock_facts().clone()
    }

    /// Adopts the facts that conversations have stated.
    pub(crate) fn learn(&self, dissection: &Dissection) {
        let mut known = self.lock_facts();
        if known.stated() != dissection.facts().stated() {
            known.clone_from(dissection.facts());
        }
    }

    fn lock_facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the threads that read the capture.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.selections.cancel_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Runs work that keeps a thread busy, once a permit is free.
    pub(crate) async fn busy<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Arc<Self>) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, Refusal> {
        let ended = |_| Refusal::failed("the program is shutting down");
        let permit = Arc::clone(&self.work).acquire_owned().await.map_err(ended)?;
        let state = Arc::clone(self);
        let outcome = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            act(&state)
        });
        outcome
            .await
            .unwrap_or_else(|_| Err(Refusal::failed("this is a bug in worldwire; see its log")))
    }
}
