//! Shared parts of the listeners.

use core::future::Future;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use worldwire_core::connection::Connection;

use crate::application::{Application, End};
use crate::capacity::{Capacity, Permit, Permits, Refused};
use crate::clock::Clock;
use crate::drive::Settings;
use crate::log_limiter::LogLimiter;
use crate::stop::{Signal, Stop};

/// Creates connections for new peers.
pub trait Accept: Send + Sync + 'static {
    /// The connection machine.
    type Connection: Connection<Sender: Send> + Send + 'static;
    /// The application that uses it.
    type Application: Application<Self::Connection> + 'static;

    /// Creates the connection for a new peer. Called in the connection's own task; must not block.
    /// `now` is the time on the listener's clock.
    fn accept(&self, peer: Peer, now: Duration) -> (Self::Connection, Self::Application);
}

/// The two addresses of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The peer's address.
    pub address: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
}

/// Settings of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Limits on open connections.
    pub capacity: Capacity,
    /// Queue limits and time limits of each connection.
    pub settings: Settings,
    /// The clock of all connections.
    pub clock: Clock,
    /// How long connections may take to end when the listener stops. Default 5 s.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            capacity: Capacity::default(),
            settings: Settings::default(),
            clock: Clock::start(),
            grace: Duration::from_secs(5),
        }
    }
}

/// Declares methods that return the counters of the same names.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self) -> u64 {
            self.$name.load(Ordering::Relaxed)
        }
    )*};
}
pub(crate) use counters;

/// A listener's counters, for operators. All except [`open`](Self::open) only grow.
#[derive(Debug)]
pub struct Counts {
    permits: Permits,
    accepted: AtomicU64,
    refused: AtomicU64,
    faults: AtomicU64,
    panics: AtomicU64,
    stalled: AtomicU64,
    /// When a connection could last not be accepted.
    failed: Mutex<Option<Instant>>,
}

impl Counts {
    pub(crate) fn new(permits: Permits) -> Self {
        let [accepted, refused, faults, panics, stalled] = Default::default();
        let failed = Mutex::default();
        Self { permits, accepted, refused, faults, panics, stalled, failed }
    }

    /// Whether connections could not be accepted a moment ago, for example because the process has
    /// too many open files.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|last| last.elapsed() < FAILING_FOR)
    }

    pub(crate) fn accept_failed(&self) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Connections that are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.permits.in_use()
    }

    counters! {
        /// Accepted connections.
        accepted
        /// Connections refused because too many were open.
        refused
        /// Connections that ended because the peer violated the protocol.
        faults
        /// Connections that ended because of a worldwire defect.
        panics
        /// Connections that ended because the peer stopped reading.
        stalled
    }
}

/// The minimum interval between log lines about frequent events.
pub(crate) const LOG_EVERY: Duration = Duration::from_secs(60);
/// How long after a failure the system counts as unable to accept connections.
const FAILING_FOR: Duration = Duration::from_secs(5);
/// How long applications may take to end after being cut.
const AFTER_THE_CUT: Duration = Duration::from_secs(1);

/// A listener's open connections.
#[derive(Debug)]
pub(crate) struct OpenConnections<T> {
    pub(crate) counts: Arc<Counts>,
    permits: Permits,
    stop: Stop,
    grace: Duration,
    pub(crate) tasks: JoinSet<T>,
    journal: Arc<Journal>,
}

/// Limits log lines about frequent events.
#[derive(Debug)]
struct Journal {
    refused: LogLimiter,
    faults: LogLimiter,
    stalled: LogLimiter,
}

impl<T: Send + 'static> OpenConnections<T> {
    pub(crate) fn new(options: &Options) -> Self {
        let permits = Permits::new(options.capacity);
        let [refused, faults, stalled] = [(); 3].map(|()| LogLimiter::new(LOG_EVERY));
        Self {
            counts: Arc::new(Counts::new(permits.clone())),
            permits,
            stop: Stop::new(),
            grace: options.grace,
            tasks: JoinSet::new(),
            journal: Arc::new(Journal { refused, faults, stalled }),
        }
    }

    /// Takes a permit for a peer, unless too many connections are open.
    pub(crate) fn admit(&self, address: SocketAddr, is_proxy: bool) -> Option<Permit> {
        let permit = match is_proxy {
            true => self.permits.acquire_for_proxy(),
            false => self.permits.acquire(address.ip()),
        };
        match permit {
            Ok(permit) => {
                self.counts.accepted.fetch_add(1, Ordering::Relaxed);
                Some(permit)
            }
            Err(why) => {
                self.refuse(address, why);
                None
            }
        }
    }

    fn refuse(&self, address: SocketAddr, why: Refused) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.journal.refused.count() {
            tracing::warn!(%address, %why, count, "connections refused");
        }
    }

    /// The stop signal for connections.
    pub(crate) fn signal(&self) -> Signal {
        self.stop.signal()
    }

    /// Runs a connection, which owns its permit, in its own task.
    pub(crate) fn spawn(
        &mut self,
        address: SocketAddr,
        key: T,
        run: impl Future<Output = End> + Send + 'static,
    ) {
        let (counts, journal) = (Arc::clone(&self.counts), Arc::clone(&self.journal));
        self.tasks.spawn(async move {
            let end = run.await;
            journal.log(address, &end, &counts);
            key
        });
    }

    pub(crate) fn log_due(&self) {
        if let Some(count) = self.journal.refused.due() {
            tracing::warn!(count, "connections refused");
        }
        if let Some(count) = self.journal.faults.due() {
            tracing::warn!(count, "connections closed because peers violated the protocol");
        }
        if let Some(count) = self.journal.stalled.due() {
            tracing::info!(count, "connections closed because peers stopped reading");
        }
    }

    /// Waits for all connections to end and cuts those that take too long.
    pub(crate) async fn shut_down(mut self) {
        self.stop.stop();
        if timeout(self.grace, all(&mut self.tasks)).await.is_err() {
            tracing::warn!(
                count = self.tasks.len(),
                "connections closed forcibly: they did not end in time"
            );
            self.stop.cut();
            let _ = timeout(AFTER_THE_CUT, all(&mut self.tasks)).await;
        }
    }
}

async fn all<T: 'static>(tasks: &mut JoinSet<T>) {
    while tasks.join_next().await.is_some() {}
}

impl Journal {
    fn log(&self, address: SocketAddr, end: &End, counts: &Counts) {
        match end {
            End::Fault { error, state } => {
                counts.faults.fetch_add(1, Ordering::Relaxed);
                if let Some(count) = self.faults.count() {
                    tracing::warn!(
                        %address, state, %error, count, "connection closed: the peer violated the protocol"
                    );
                }
            }
            End::Stalled => {
                counts.stalled.fetch_add(1, Ordering::Relaxed);
                if let Some(count) = self.stalled.count() {
                    tracing::info!(%address, count, "connection closed: the peer stopped reading");
                }
            }
            End::Panicked(text) => {
                counts.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%address, text, "connection closed: a defect in worldwire");
            }
            end => tracing::debug!(%address, %end, "connection ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_to_accept_counts_for_a_few_seconds() {
        let counts = Counts::new(Permits::new(Capacity { total: 1, per_address: 1 }));
        assert!(!counts.is_failing());
        counts.accept_failed();
        assert!(counts.is_failing());
        tokio::time::advance(FAILING_FOR).await;
        assert!(!counts.is_failing());
        counts.accept_failed();
        assert!(counts.is_failing());
    }
}
