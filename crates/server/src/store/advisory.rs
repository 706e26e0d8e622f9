//! The advisory lock on a PostgreSQL database, which shows which process uses the database.
//!
//! The lock lasts as long as one connection does. It only makes a second process fail early, with
//! an error that names the first process. The data is protected by the epoch in every commit.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use super::StoreError;
use super::connect::connect;
use super::outage::Outage;

/// How long to wait for the lock, because PostgreSQL may take a moment to notice that a process was
/// killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// How often to check the connection and, if it broke, reopen it.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The key of the lock: `wwdb` in the upper half, and the number of this schema's `shard` table in
/// the lower half. Shards in different schemas of one database do not conflict.
const TRY_LOCK: &str =
    "SELECT pg_try_advisory_lock((2004313186::bigint << 32) | 'shard'::regclass::oid::bigint)";
const HOLDER: &str = "SELECT a.pid, a.application_name, host(a.client_addr) \
    FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid \
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 2004313186::oid \
    AND l.objid = 'shard'::regclass::oid AND l.objsubid = 1 \
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
/// PostgreSQL ends this session soon after the client's machine is lost, but never because the
/// session is idle.
const KEEP_SESSION: &str = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; \
    SET tcp_keepalives_count = 3; SET idle_session_timeout = 0";

/// The lock, while it is held.
#[derive(Debug, Default)]
pub(super) struct AdvisoryLock(Arc<Mutex<Option<PgConnection>>>);

impl AdvisoryLock {
    /// Takes the lock and keeps it until [`release`](Self::release). Fails with
    /// [`StoreError::InUse`] if another process holds it and does not release it within
    /// `patience`. With `quiet`, outages are not logged, because the lease on the database reports
    /// them.
    pub(super) async fn take(
        &self,
        options: &PgConnectOptions,
        writer: &str,
        patience: Duration,
        quiet: bool,
    ) -> Result<(), StoreError> {
        let mut held = self.0.lock().await;
        if held.is_none() {
            let options = options.clone().application_name(&application_name(writer));
            *held = Some(locked(&options, patience).await?);
            tokio::spawn(keep(Arc::downgrade(&self.0), options, quiet));
        }
        Ok(())
    }

    /// Releases the lock. Another process can take it once this returns.
    pub(super) async fn release(&self) {
        if let Some(connection) = self.0.lock().await.take() {
            // A connection that broke has already released it.
            let _ = connection.close().await;
        }
    }
}

/// A connection that holds the lock.
async fn locked(
    options: &PgConnectOptions,
    patience: Duration,
) -> Result<PgConnection, StoreError> {
    let mut connection = connect(options).await?;
    // Older versions of PostgreSQL lack the last of these settings. The lock works without any of
    // them.
    let _ = sqlx::raw_sql(KEEP_SESSION).execute(&mut connection).await;
    let deadline = Instant::now() + patience;
    loop {
        if sqlx::query_scalar(TRY_LOCK).fetch_one(&mut connection).await? {
            return Ok(connection);
        }
        if Instant::now() >= deadline {
            let holder = sqlx::query_as(HOLDER).fetch_optional(&mut connection).await?;
            let _ = connection.close().await;
            return Err(StoreError::InUse { holder: named(holder) });
        }
        sleep(BETWEEN_TRIES).await;
    }
}

type Holder = (Option<i32>, Option<String>, Option<String>);

/// A description of the holder: its name, address and session.
fn named(holder: Option<Holder>) -> String {
    let Some((session, name, address)) = holder else { return "another process".to_owned() };
    let name = name.filter(|name| !name.is_empty());
    let mut text = name.unwrap_or_else(|| "a process of another database user".to_owned());
    if let Some(address) = address {
        text.push_str(&format!(", from {address}"));
    }
    if let Some(session) = session {
        text.push_str(&format!(" (session {session} of PostgreSQL)"));
    }
    text
}

/// The part that fits into PostgreSQL's `application_name`: 63 bytes of ASCII.
fn application_name(writer: &str) -> String {
    let ascii =
        |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
    format!("worldwire, {writer}").chars().map(ascii).take(63).collect()
}

/// Takes the lock again whenever its connection breaks, until the lock is released.
async fn keep(lock: Weak<Mutex<Option<PgConnection>>>, options: PgConnectOptions, quiet: bool) {
    let mut outage = Outage::default();
    loop {
        sleep(CHECK_EVERY).await;
        let Some(lock) = lock.upgrade() else { return };
        let mut held = lock.lock().await;
        let Some(connection) = held.as_mut() else { return };
        if connection.ping().await.is_ok() {
            continue;
        }
        match locked(&options, PATIENCE).await {
            Ok(connection) => {
                *held = Some(connection);
                if outage.end() && !quiet {
                    info!(
                        "the database is reachable again, and this process has regained its lock"
                    );
                }
            }
            Err(StoreError::InUse { holder }) => {
                // This process learns from its next commit whether another has taken over.
                error!(holder, "another process is using this database now");
                return;
            }
            Err(error) => {
                if outage.is_news(&error) && !quiet {
                    warn!(%error, "the database is not reachable, and its lock is not held");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_have_names() {
        let writer = "process 4242 on höst, folder /srv/worlds/uru/of/our/community/shard";
        let name = application_name(writer);
        assert_eq!(name, "worldwire, process 4242 on h?st, folder /srv/worlds/uru/of/our/");
        assert_eq!(
            named(Some((Some(7), Some("worldwire, process 1".to_owned()), Some("::1".to_owned())))),
            "worldwire, process 1, from ::1 (session 7 of PostgreSQL)"
        );
        assert_eq!(
            named(Some((Some(7), None, None))),
            "a process of another database user (session 7 of PostgreSQL)"
        );
        assert_eq!(named(None), "another process");
    }
}
