//! Metrics for operators, which the status page shows at `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use worldwire_net::{Counts, LogLimiter};
use worldwire_uru::frame::Service;

use super::game::AgeFigures;
use crate::metrics::Metrics;

/// A shard's counters, apart from those of its connections.
#[derive(Debug)]
pub(super) struct Figures {
    started: Instant,
    /// In the order of [`Service::ALL`].
    established: [AtomicU64; Service::ALL.len()],
    /// Connections that are open now, in the same order.
    open: [AtomicI64; Service::ALL.len()],
    /// Successful logins.
    pub(super) logins: AtomicU64,
    /// Refused logins.
    pub(super) logins_refused: AtomicU64,
    /// Sessions resumed after a lost connection.
    pub(super) returns: AtomicU64,
    /// Limits on how often refused logins are logged.
    pub(super) refused_logins: LogLimiter,
    /// Limits on how often refused clients and refused joins are logged.
    pub(super) turned_away: LogLimiter,
    /// Limits on how often connections closed by ages are logged.
    pub(super) sent_away: LogLimiter,
}

/// The shortest interval between log lines that clients can cause at will.
const LOG_EVERY: Duration = Duration::from_secs(60);

impl Default for Figures {
    fn default() -> Self {
        let (established, open) = (Default::default(), Default::default());
        let [logins, logins_refused, returns] = Default::default();
        let [refused_logins, turned_away, sent_away] = [(); 3].map(|()| LogLimiter::new(LOG_EVERY));
        let started = Instant::now();
        Self {
            started,
            established,
            open,
            logins,
            logins_refused,
            returns,
            refused_logins,
            turned_away,
            sent_away,
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
    /// Counts a connection whose setup is complete.
    pub(super) fn established(self: &Arc<Self>, service: Service) -> Open {
        let service = Service::ALL.iter().position(|known| *known == service).unwrap_or(0);
        self.established[service].fetch_add(1, Ordering::Relaxed);
        self.open[service].fetch_add(1, Ordering::Relaxed);
        Open { figures: Arc::clone(self), service }
    }

    /// All metrics in Prometheus' text format.
    pub(super) fn prometheus(&self, counts: &Counts, ages: &AgeFigures) -> String {
        let mut metrics = Metrics::default();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(&str, i128)]| {
            metrics.add(name, kind, help, "service", values);
        };
        let single = |value: u64| [("", i128::from(value))];
        let seconds = self.started.elapsed().as_secs();
        metric("uptime_seconds", "gauge", "Time since the server started.", &single(seconds));
        let open = u64::try_from(counts.open()).unwrap_or(u64::MAX);
        metric(
            "connections",
            "gauge",
            "Open connections, including those in setup.",
            &single(open),
        );
        for (name, value, help) in crate::metrics::of_listener(counts).into_iter().chain([
            ("logins_total", self.logins.load(Ordering::Relaxed), "Logins."),
            (
                "logins_refused_total",
                self.logins_refused.load(Ordering::Relaxed),
                "Refused logins.",
            ),
            (
                "sessions_resumed_total",
                self.returns.load(Ordering::Relaxed),
                "Sessions resumed after a lost connection.",
            ),
        ]) {
            metric(name, "counter", help, &single(value));
        }
        let established = self.established.each_ref().map(|count| count.load(Ordering::Relaxed));
        let open = self.open.each_ref().map(|count| count.load(Ordering::Relaxed));
        let by_service = |values: [i128; Service::ALL.len()]| {
            Service::ALL.map(Service::name).into_iter().zip(values).collect::<Vec<_>>()
        };
        let help = "Open connections by service.";
        metric("service_connections", "gauge", help, &by_service(open.map(i128::from)));
        let help = "Connections whose setup was completed, by service.";
        let values = by_service(established.map(i128::from));
        metric("service_connections_total", "counter", help, &values);
        let gauge = |value: usize| [("", i128::try_from(value).unwrap_or_default())];
        metric("ages", "gauge", "Running ages.", &gauge(ages.ages));
        metric("players_in_ages", "gauge", "Players in ages.", &gauge(ages.players));
        let dropped = ages.dropped.iter().map(|(why, count)| (*why, i128::from(*count)));
        let help = "Messages that ages dropped, by reason.";
        let dropped: Vec<_> = dropped.collect();
        metrics.add("dropped_messages_total", "counter", help, "reason", &dropped);
        metrics.into_text()
    }
}
