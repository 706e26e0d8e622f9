//! Two processes write to one database. No matter in which order they take their steps, no
//! acknowledged change is lost, and the process that lost the database ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::sync::{mpsc, oneshot};
use worldwire_net::Clock;
use worldwire_server::ki::KiConfig;
use worldwire_server::ki::realm::{Privileges, Realm};
use worldwire_server::store::StoreError;
use worldwire_server::uru::vault::{Connection, Vault, VaultConfig, VaultError};
use worldwire_uru::types::NetError;

use crate::support::{Database, Fault, Memory, Moment, key, log_in};

/// The moments at which the second process claims the database and commits its two batches: each at
/// one of these moments of the first process's commit, after the commit, or never.
type Steps = [When; 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    During(Moment),
    Afterwards,
    Never,
}

const TIMES: [When; 6] = [
    When::During(Moment::BeforeCommit),
    When::During(Moment::BeforeAnswer),
    When::During(Moment::FirstQuestion),
    When::During(Moment::SecondQuestion),
    When::Afterwards,
    When::Never,
];
const FAULTS: [Option<Fault>; 5] =
    [None, Some(Fault::Lost), Some(Fault::Refused), Some(Fault::Hangs), Some(Fault::HangsAfter)];

/// All ways to interleave the second process's steps with those of the first.
fn interleavings() -> Vec<(Steps, Option<Fault>, u32)> {
    let mut all = Vec::new();
    for claim in TIMES {
        for first in TIMES.into_iter().filter(|first| *first >= claim) {
            for second in TIMES.into_iter().filter(|second| *second >= first) {
                for fault in FAULTS {
                    for unreachable in [0, 1] {
                        all.push(([claim, first, second], fault, unreachable));
                    }
                }
            }
        }
    }
    all
}

/// A process with a server, in the form that these tests need.
trait Process: Sized {
    /// Opens the server, which claims the database.
    async fn open(memory: &Arc<Memory>, name: &'static str) -> Self;
    /// Creates an entry with this name. Returns its number if the creation was acknowledged.
    async fn make(&self, name: &str) -> Option<u32>;
    fn is_overtaken(&self) -> bool;
    /// All entries in the database, by number.
    async fn everything(memory: &Arc<Memory>) -> BTreeMap<u32, String>;
}

struct Shard {
    vault: Vault,
    connection: Connection,
}

impl Process for Shard {
    async fn open(memory: &Arc<Memory>, name: &'static str) -> Self {
        let vault = Vault::open(Arc::<Memory>::clone(memory), key(), VaultConfig::default());
        let vault = vault.await.unwrap();
        let (connection, mut notices) = log_in(&vault, name).await;
        tokio::spawn(async move { while notices.recv().await.is_some() {} });
        Self { vault, connection }
    }

    async fn make(&self, name: &str) -> Option<u32> {
        let made = self.connection.create_player(name.to_owned(), "male".to_owned()).await;
        made.ok().map(|player| player.id)
    }

    fn is_overtaken(&self) -> bool {
        self.vault.overtaken().is_some()
    }

    async fn everything(memory: &Arc<Memory>) -> BTreeMap<u32, String> {
        let vault = Vault::open(Arc::<Memory>::clone(memory), key(), VaultConfig::default());
        let vault = vault.await.unwrap();
        let problems = vault.check().await.unwrap();
        assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
        players(&vault).await
    }
}

async fn players(vault: &Vault) -> BTreeMap<u32, String> {
    let dump = vault.export().await.unwrap();
    let lines = dump.lines().map(|line| line.parse::<serde_json::Value>().unwrap());
    let player = |line: serde_json::Value| {
        let player = line.get("player")?;
        let id = u32::try_from(player["id"].as_u64()?).ok()?;
        Some((id, player["name"].as_str()?.to_owned()))
    };
    lines.filter_map(player).collect()
}

impl Process for Realm {
    async fn open(memory: &Arc<Memory>, _: &'static str) -> Self {
        let config = KiConfig::default();
        Self::open(Arc::<Memory>::clone(memory), key(), config, Clock::start()).await.unwrap()
    }

    async fn make(&self, name: &str) -> Option<u32> {
        let user = self.add_account(name, "hunter2", Privileges::default()).await.ok()?;
        Some(u32::try_from(user).unwrap())
    }

    fn is_overtaken(&self) -> bool {
        self.overtaken().is_some()
    }

    async fn everything(memory: &Arc<Memory>) -> BTreeMap<u32, String> {
        let realm = <Self as Process>::open(memory, "").await;
        let accounts = realm.accounts().into_iter();
        accounts.map(|account| (u32::try_from(account.user).unwrap(), account.name)).collect()
    }
}

/// The second process: opens the database at its first step and creates an entry at each other
/// step.
struct Other<P> {
    memory: Arc<Memory>,
    steps: Steps,
    next: usize,
    process: Option<P>,
    made: Vec<(u32, String)>,
}

impl<P: Process> Other<P> {
    async fn act(&mut self, now: When) {
        while self.steps.get(self.next).is_some_and(|step| *step <= now && *step != When::Never) {
            match &self.process {
                None => self.process = Some(P::open(&self.memory, "Bob").await),
                Some(process) => {
                    let name = format!("Eduard{}", self.next);
                    let id = process.make(&name).await.expect("the new writer is not disturbed");
                    self.made.push((id, name));
                }
            }
            self.next += 1;
        }
    }

    /// Acts at each moment of a request until the request is answered.
    async fn beside<T>(
        &mut self,
        request: impl Future<Output = T>,
        moments: &mut mpsc::UnboundedReceiver<(Moment, oneshot::Sender<()>)>,
    ) -> T {
        let mut request = std::pin::pin!(request);
        loop {
            tokio::select! {
                answer = &mut request => return answer,
                Some((moment, passed)) = moments.recv() => {
                    self.act(When::During(moment)).await;
                    let _ = passed.send(());
                }
            }
        }
    }
}

async fn two_writers<P: Process>() -> usize {
    let all = interleavings();
    for (steps, fault, unreachable) in &all {
        let case = format!("{steps:?}, {fault:?}, {unreachable} unreachable");
        let memory = Arc::<Memory>::default();
        // Both accounts exist, so that a login changes nothing.
        drop(P::open(&memory, "Bob").await);
        let one = P::open(&memory, "Ann").await;
        let mut moments = memory.moments();
        let mut other: Other<P> = Other {
            memory: Arc::clone(&memory),
            steps: *steps,
            next: 0,
            process: None,
            made: vec![],
        };
        if let Some(fault) = fault {
            memory.next(*fault);
        }
        *memory.unreachable.lock().unwrap() = *unreachable;
        let mut acknowledged = Vec::new();
        let made = other.beside(one.make("Fredegar"), &mut moments).await;
        acknowledged.extend(made.map(|id| (id, "Fredegar".to_owned())));
        // The request may be refused before the outcome of its batch is known. Another request
        // waits for that.
        let resolved = async {
            for number in 0..4 {
                let name = format!("Folco{number}");
                if let Some(id) = one.make(&name).await {
                    return Some((id, name));
                }
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
            None
        };
        let later = other.beside(resolved, &mut moments).await;
        other.act(When::Afterwards).await;
        let last = other.beside(one.make("Gundabald"), &mut moments).await;
        if steps[0] == When::Never {
            assert!(later.is_some() && last.is_some() && !one.is_overtaken(), "{case}");
        } else {
            assert!(last.is_none() && one.is_overtaken(), "{case}");
            let process = other.process.as_ref().unwrap();
            let id = process.make("Hamfast").await.expect("the new writer is not disturbed");
            acknowledged.push((id, "Hamfast".to_owned()));
        }
        acknowledged.extend(later);
        acknowledged.extend(last.map(|id| (id, "Gundabald".to_owned())));
        acknowledged.append(&mut other.made);
        drop((one, other));
        let everything = P::everything(&memory).await;
        for (id, name) in &acknowledged {
            assert_eq!(everything.get(id), Some(name), "{case}");
        }
    }
    all.len()
}

#[tokio::test(start_paused = true)]
async fn shards_in_every_order() {
    assert_eq!(two_writers::<Shard>().await, 560);
}

#[tokio::test(start_paused = true)]
async fn login_servers_in_every_order() {
    assert_eq!(two_writers::<Realm>().await, 560);
}

/// Ends the session that holds the lock on a database, as the loss of the machine would.
pub(crate) async fn lose_lock(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let ended: Vec<bool> = sqlx::query_scalar(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(ended, [true]);
    connection.close().await.unwrap();
}

/// Runs a statement on a database directly.
pub(crate) async fn run(url: &str, sql: &'static str) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(sql).execute(&mut connection).await?;
    connection.close().await
}

/// A process that was suspended in the middle of a commit.
#[tokio::test]
async fn a_start_does_not_wait_forever_for_a_frozen_process() {
    let Some(database) = Database::postgres() else { return };
    let store = database.store().await;
    let mut frozen = PgConnection::connect(database.url.as_deref().unwrap()).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT * FROM shard FOR UPDATE").execute(&mut frozen).await.unwrap();
    let error = store.claim().await.unwrap_err();
    assert!(matches!(error, StoreError::Timeout), "{error}");
    frozen.close().await.unwrap();
    // The lock was released, so a later start succeeds.
    store.claim().await.unwrap();
}

/// Commits of the previous version do not check the epoch.
#[tokio::test]
async fn a_process_of_the_previous_version_cannot_commit() {
    let Some(database) = Database::postgres() else { return };
    let vault = database.vault().await;
    let url = database.url.as_deref().unwrap();
    let error = run(url, "UPDATE shard SET batch = 8 WHERE batch = 7").await.unwrap_err();
    assert!(error.to_string().contains("\"batch\""), "{error}");
    vault.close().await;
}

#[tokio::test]
async fn a_change_without_a_claim_blames_no_process() {
    let Some(database) = Database::postgres() else { return };
    let vault = database.vault().await;
    let (ann, _notices) = log_in(&vault, "Ann").await;
    let url = database.url.as_deref().unwrap();
    run(url, "UPDATE shard SET last_batch = last_batch + 1").await.unwrap();
    let lost = ann.create_player("Fredegar".to_owned(), "male".to_owned()).await;
    assert_eq!(lost, Err(NetError::InternalError));
    let error = vault.overtaken().unwrap().to_string();
    assert!(error.contains("taken over by something other than a worldwire server"), "{error}");
}

#[tokio::test]
async fn a_second_shard_on_postgres_learns_the_holder() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let one = database.vault().await;
    let (ann, _notices) = log_in(&one, "Ann").await;
    let refused = Vault::open(database.store().await, key(), VaultConfig::default()).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, VaultError::Store(StoreError::InUse { .. })), "{error}");
    let process = format!("worldwire, process {}", std::process::id());
    assert!(error.to_string().contains(&process), "{error}");

    // Without the lock, the epoch still keeps the first process from destroying anything.
    lose_lock(url).await;
    let two = database.vault().await;
    let (bob, _notices) = log_in(&two, "Bob").await;
    let eduard = bob.create_player("Eduard".to_owned(), "male".to_owned()).await.unwrap();
    let lost = ann.create_player("Fredegar".to_owned(), "male".to_owned()).await;
    assert_eq!(lost, Err(NetError::InternalError));
    let error = one.overtaken().unwrap();
    let text = error.to_string();
    assert!(matches!(*error, StoreError::Overtaken { .. }), "{text}");
    assert!(text.contains(&format!("process {} on ", std::process::id())), "{text}");
    assert_eq!(players(&two).await, BTreeMap::from([(eduard.id, "Eduard".to_owned())]));
    // After a clean close, the next process can open the database.
    two.close().await;
    database.vault().await.close().await;
}
