//! Metrics for operators, which the status page shows at `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use worldwire_net::{Counts, LogLimiter};
use worldwire_uru::frame::Service;

use super::game::AgeFigures;
use crate::metrics::Metrics;
use crate::page::unix;

/// A shard's counters, apart from those of its connections.
#[derive(Debug)]
pub(super) struct Figures {
    started: Instant,
    /// The number of connections so far whose setup was completed, in the order of
    /// [`Service::ALL`].
    established: [AtomicU64; Service::ALL.len()],
    /// The number of connections that are open now, in the same order.
    open: [AtomicI64; Service::ALL.len()],
    /// Successful logins.
    pub(super) logins: AtomicU64,
    /// Refused logins.
    pub(super) logins_refused: AtomicU64,
    /// Sessions resumed after a lost connection.
    pub(super) returns: AtomicU64,
    /// Limits how often refused logins are logged.
    pub(super) refused_logins: LogLimiter,
    /// Limits how often refused clients and refused joins are logged.
    pub(super) turned_away: LogLimiter,
    /// Limits how often connections that ages close are logged.
    pub(super) sent_away: LogLimiter,
    /// Limits how often connections that are closed for lack of a vault are logged.
    pub(super) unserved: LogLimiter,
}

/// The minimum interval between log lines that clients can provoke at will.
const LOG_EVERY: Duration = Duration::from_secs(60);

impl Default for Figures {
    fn default() -> Self {
        let limiter = || LogLimiter::new(LOG_EVERY);
        let [logins, logins_refused, returns] = Default::default();
        Self {
            started: Instant::now(),
            established: Default::default(),
            open: Default::default(),
            logins,
            logins_refused,
            returns,
            refused_logins: limiter(),
            turned_away: limiter(),
            sent_away: limiter(),
            unserved: limiter(),
        }
    }
}

/// Counts a service's connection as open until it is dropped.
#[derive(Debug)]
pub(super) struct Open {
    figures: Arc<Figures>,
    service: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.figures.open[self.service].fetch_sub(1, Ordering::Relaxed);
    }
}

impl Figures {
    /// When the server started, in Unix seconds.
    pub(super) fn started(&self) -> u64 {
        unix(self.started.into())
    }

    /// The number of clients that are connected to the auth service.
    pub(super) fn clients(&self) -> u64 {
        let auth = Service::ALL.iter().position(|known| *known == Service::Auth).unwrap_or(0);
        u64::try_from(self.open[auth].load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Counts a connection whose setup is complete.
    pub(super) fn established(self: &Arc<Self>, service: Service) -> Open {
        let service = Service::ALL.iter().position(|known| *known == service).unwrap_or(0);
        self.established[service].fetch_add(1, Ordering::Relaxed);
        self.open[service].fetch_add(1, Ordering::Relaxed);
        Open { figures: Arc::clone(self), service }
    }

    /// All metrics. `state` contains further metrics of the shard: names, values, and help texts.
    pub(super) fn prometheus(
        &self,
        counts: &Counts,
        ages: &AgeFigures,
        state: [(&'static str, bool, &'static str); 3],
    ) -> Metrics {
        let mut metrics = Metrics::default();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let gauges = [
            ("uptime_seconds", self.started.elapsed().as_secs(), "Time since the server started."),
            ("connections", number(counts.open()), "Open connections, including those in setup."),
            ("ages", number(ages.ages), "Running ages."),
            ("players_in_ages", number(ages.players), "Players in ages."),
        ];
        let state = state.map(|(name, value, help)| (name, u64::from(value), help));
        for (name, value, help) in gauges.into_iter().chain(state) {
            metrics.add(name, "gauge", help, "", &[("", value.into())]);
        }
        let resumed = "Sessions resumed after a lost connection.";
        let (messages, deliveries) = (ages.work.messages, ages.work.deliveries);
        for (name, value, help) in crate::metrics::of_listener(counts).into_iter().chain([
            ("logins_total", count(&self.logins), "Logins."),
            ("logins_refused_total", count(&self.logins_refused), "Refused logins."),
            ("sessions_resumed_total", count(&self.returns), resumed),
            ("age_messages_total", messages, "Messages that ages received from clients."),
            ("age_deliveries_total", deliveries, "Messages that ages sent to clients."),
        ]) {
            metrics.add(name, "counter", help, "", &[("", value.into())]);
        }
        let by_service = |values: [i128; Service::ALL.len()]| {
            Service::ALL.map(Service::name).into_iter().zip(values).collect::<Vec<_>>()
        };
        let help = "Open connections by service.";
        let open = by_service(self.open.each_ref().map(|open| open.load(Ordering::Relaxed).into()));
        metrics.add("service_connections", "gauge", help, "service", &open);
        let help = "Connections whose setup was completed, by service.";
        let established = by_service(self.established.each_ref().map(|all| count(all).into()));
        metrics.add("service_connections_total", "counter", help, "service", &established);
        let wide = |counts: &[(&'static str, u64)]| {
            counts.iter().map(|(name, count)| (*name, i128::from(*count))).collect::<Vec<_>>()
        };
        let help = "Messages that ages dropped, by reason.";
        metrics.add("dropped_messages_total", "counter", help, "reason", &wide(&ages.dropped));
        let help = "Running games, by type.";
        metrics.add("games", "gauge", help, "game", &wide(&ages.games));
        let help = "Messages that games refused, by reason.";
        metrics.add("refused_game_messages_total", "counter", help, "reason", &wide(&ages.refused));
        metrics
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
