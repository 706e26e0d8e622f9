//! Database sessions: their settings, and how they are handled after a failure.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Database, Pool};

use super::StoreError;

/// How long to wait for a connection or for another transaction.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// PostgreSQL ends transactions that this process does not continue because it is suspended or
/// unreachable. Otherwise, the next writer would have to wait for it.
pub(super) const SESSION_LIMITS: &str =
    "SET idle_in_transaction_session_timeout = '5s'; SET tcp_user_timeout = '5s'";
/// How long PostgreSQL may take for a batch that is sent at once. This is somewhat longer than the
/// vault waits for the result.
pub(super) const COMMIT_LIMITS: &str = "SET statement_timeout = '15s'; SET tcp_user_timeout = '5s'";
/// It does no harm if a beat is lost together with the database's last transactions, so a beat does
/// not need to wait for the disk.
pub(super) const BEAT_SETTINGS: &str = "SET statement_timeout = '2s'; SET tcp_user_timeout = '5s'; \
    SET synchronous_commit = off";

/// A pool whose sessions have these settings.
pub(super) fn sessions(most: u32, settings: &'static str) -> PgPoolOptions {
    let pool = PgPoolOptions::new().max_connections(most).acquire_timeout(PATIENCE);
    pool.after_connect(move |connection, _| {
        Box::pin(async move {
            // Older versions of PostgreSQL lack some of these settings. The settings only matter
            // when something fails.
            let _ = sqlx::raw_sql(settings).execute(connection).await;
            Ok(())
        })
    })
}

/// A pooled connection that returns to the pool only after a successful transaction. Otherwise, its
/// state is uncertain: it is closed, and the pool opens another one.
pub(super) struct Lent<D: Database>(Option<PoolConnection<D>>);

impl<D: Database> Lent<D> {
    pub(super) async fn from(pool: &Pool<D>) -> Result<Self, StoreError> {
        Ok(Self(Some(pool.acquire().await?)))
    }

    pub(super) fn connection(&mut self) -> Result<&mut D::Connection, StoreError> {
        self.0.as_deref_mut().ok_or(StoreError::Timeout)
    }

    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl<D: Database> Drop for Lent<D> {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
