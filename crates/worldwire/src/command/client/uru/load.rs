//! Load generation with many clients and the server's response times.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use worldwire_client::uru::ClientError;

use super::session::Session;
use super::shown::lines;
use super::step::Step;
use super::{Setup, Source};
use crate::cli::{ClientUru, Common};
use crate::output::{Failure, complain, print, printable, without_error_numbers};

/// The maximum number of clients that connect at the same time; with more, they would measure their
/// own congestion.
const MAX_CONNECTING: usize = 16;

/// The initial and the maximum pause of a client after a failed step.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The latency of messages from walking avatars to other clients.
const DELIVERY: &str = "delivery";

/// The number of clients that have tried to connect, and the number that succeeded.
#[derive(Clone, Copy, Debug, Default)]
struct Connected {
    tried: u32,
    succeeded: u32,
}

/// The measurements of one client or of all clients.
#[derive(Debug, Default)]
struct Measured {
    /// Per step: the duration of each run, in microseconds.
    times: BTreeMap<&'static str, Vec<u64>>,
    /// Per step: the number of failures, and the first error.
    failures: BTreeMap<&'static str, (u64, String)>,
}

impl Measured {
    async fn take(&mut self, session: &mut Session<'_>, step: &Step) -> bool {
        let begun = Instant::now();
        let outcome = session.take(step).await;
        self.times.entry(DELIVERY).or_default().append(&mut session.delays());
        let time = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        match outcome {
            // The duration of this step is an argument, so it is not measured.
            Ok(_) if matches!(step, Step::Walk(_)) => true,
            Ok(_) => {
                self.times.entry(step.name()).or_default().push(time);
                true
            }
            Err(error) => {
                self.fail(step.name(), &error);
                // A refusal is an answer, so the client continues; after a lost connection, it
                // cannot.
                matches!(error, ClientError::Refused { .. })
            }
        }
    }

    fn fail(&mut self, step: &'static str, error: &ClientError) {
        self.failures
            .entry(step)
            .or_insert_with(|| (0, without_error_numbers(&error.to_string())))
            .0 += 1;
    }

    /// The number of failed steps.
    fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    fn merge(&mut self, other: Self) {
        for (step, mut times) in other.times {
            self.times.entry(step).or_default().append(&mut times);
        }
        for (step, (count, said)) in other.failures {
            self.failures.entry(step).or_insert_with(|| (0, said)).0 += count;
        }
    }
}

pub(super) async fn run(
    setup: Setup,
    source: &Source,
    count: u32,
    arguments: &ClientUru,
    common: &Common,
) -> Result<(), Failure> {
    let connecting = Arc::new(Semaphore::new(MAX_CONNECTING));
    // When to stop; unknown until all clients are connected.
    let (stop, _) = watch::channel(None);
    let (connected, mut news) = watch::channel(Connected::default());
    let connected = Arc::new(connected);
    let steps = source.steps(Some(1))?;
    let mut clients = JoinSet::new();
    for number in 1..=count {
        let account = setup.account.clone();
        let account =
            account.map(|(name, password)| (name.replace("{}", &number.to_string()), password));
        let setup = Setup { shard: setup.shard.clone(), account };
        let (connecting, connected) = (Arc::clone(&connecting), Arc::clone(&connected));
        let steps = source.steps(Some(number))?;
        let stop = stop.subscribe();
        clients.spawn(async move { client(&setup, &steps, &connecting, &connected, stop).await });
    }
    // This cannot fail: this function holds the other end.
    let _ = news.wait_for(|connected| connected.tried == count).await;
    let begun = Instant::now();
    let succeeded = news.borrow().succeeded;
    let seconds = if succeeded == 0 { 0 } else { arguments.seconds };
    let of = if succeeded == count { String::new() } else { format!(" of {count}") };
    common.note("load", &format!("{succeeded}{of} clients connected; running for {seconds} s"));
    stop.send_replace(Some(begun + Duration::from_secs(seconds)));
    let mut all = Measured::default();
    while let Some(done) = clients.join_next().await {
        match done {
            Ok(measured) => all.merge(measured),
            Err(error) => return Err(Failure::Run(format!("a client: {error}"))),
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rows = rows(&mut all, &steps, seconds);
    print(&if arguments.json { lines("load", &rows) } else { table(&rows) })?;
    for (step, (failed, said)) in &all.failures {
        complain(step, &format!("{failed} failed; the first one: {}", printable(said)));
    }
    if all.failures.is_empty() { Ok(()) } else { Err(Failure::Input) }
}

/// Runs one client: connects, then repeats its steps until it is time to stop.
async fn client(
    setup: &Setup,
    steps: &[Step],
    connecting: &Semaphore,
    connected: &watch::Sender<Connected>,
    mut stop: watch::Receiver<Option<Instant>>,
) -> Measured {
    let mut measured = Measured::default();
    let mut session = Session::measuring(setup);
    let (once, again) = parts(steps);
    let mut is_alive = true;
    {
        // The semaphore is never closed.
        let _turn = connecting.acquire().await;
        for step in once {
            is_alive = is_alive && measured.take(&mut session, step).await;
            // There is nothing to measure for requests from a client that is not logged in.
            is_alive &= *step != Step::Login || !measured.failures.contains_key(step.name());
        }
    }
    connected.send_modify(|connected| {
        connected.tried += 1;
        connected.succeeded += u32::from(is_alive);
    });
    session.delays();
    let Ok(Some(end)) = stop.wait_for(Option::is_some).await.map(|end| *end) else {
        return measured;
    };
    if again.is_empty() && is_alive {
        sleep_until(end).await;
        // Detects that the client was kicked in the meantime.
        measured.take(&mut session, &Step::Ping).await;
    }
    let mut pause = Pause::default();
    while is_alive && !again.is_empty() && Instant::now() < end {
        let failed = measured.failed();
        for step in again {
            is_alive = is_alive && measured.take(&mut session, step).await;
        }
        let pause = pause.after(measured.failed() > failed);
        if !pause.is_zero() {
            sleep_until(end.min(Instant::now() + pause)).await;
        }
    }
    session.close().await;
    measured
}

/// The pause before a client repeats its steps. Otherwise, steps that fail immediately would
/// measure only how fast they fail.
#[derive(Debug, Default)]
struct Pause(Duration);

impl Pause {
    /// Zero if no step failed; otherwise twice the previous pause.
    fn after(&mut self, failed: bool) -> Duration {
        self.0 = match failed {
            false => Duration::ZERO,
            true => (self.0 * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE),
        };
        self.0
    }
}

/// The steps that run once and those that repeat.
fn parts(steps: &[Step]) -> (&[Step], &[Step]) {
    let at = |wanted: &Step| steps.iter().position(|step| step == wanted);
    match at(&Step::Again) {
        Some(at) => (&steps[..at], &steps[at + 1..]),
        None => steps.split_at(at(&Step::Login).map_or(0, |at| at + 1)),
    }
}

/// A row for each step, in the order of the script.
fn rows(all: &mut Measured, steps: &[Step], seconds: f64) -> Vec<Json> {
    let mut rows = Vec::new();
    let mut names: Vec<_> = steps.iter().map(Step::name).collect();
    let again: Vec<_> = parts(steps).1.iter().map(Step::name).collect();
    names.extend(["ping", DELIVERY]);
    for name in names {
        let times = all.times.remove(name).filter(|times| !times.is_empty());
        let Some(mut times) = times else { continue };
        times.sort_unstable();
        // The percentile: the shortest time that this share of runs did not exceed.
        let percentile = |hundredths: usize| {
            let rank = (times.len() * hundredths).div_ceil(100).max(1) - 1;
            times.get(rank).map_or(0.0, |micros| *micros as f64 / 1000.0)
        };
        let failed = all.failures.get(name).map_or(0, |failures| failures.0);
        let is_again = matches!(name, "ping" | DELIVERY) || again.contains(&name);
        let rate = is_again.then(|| times.len() as f64 / seconds);
        rows.push(json!({
            "of": name,
            "count": times.len(),
            "failed": failed,
            "perSecond": rate.map(|rate| (rate * 10.0).round() / 10.0),
            "p50": percentile(50),
            "p90": percentile(90),
            "p99": percentile(99),
            "most": percentile(100),
        }));
    }
    rows
}

fn table(rows: &[Json]) -> String {
    let mut out = format!(
        "{:14}{:>9}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        "step", "count", "failed", "per s", "p50 ms", "p90 ms", "p99 ms", "max ms"
    );
    for row in rows {
        let rate =
            row["perSecond"].as_f64().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        let name = row["of"].as_str().unwrap_or_default();
        let whole = |key: &str| row[key].as_u64().unwrap_or_default();
        let (count, failed) = (whole("count"), whole("failed"));
        let _ = write!(out, "{name:14}{count:>9}{failed:>8}{rate:>10}");
        for key in ["p50", "p90", "p99", "most"] {
            let _ = write!(out, "{:>10.2}", row[key].as_f64().unwrap_or_default());
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_steps_are_told_apart() {
        let (login, ping, again) = (Step::Login, Step::Ping, Step::Again);
        let all = [ping.clone(), login.clone(), ping.clone()];
        assert_eq!(parts(&all), (&all[..2], &all[2..]));
        assert_eq!(parts(&all[..1]), (&[][..], &all[..1]));
        let all = [ping.clone(), again, login, ping];
        assert_eq!(parts(&all), (&all[..1], &all[2..]));
    }

    #[test]
    fn who_fails_waits_longer_each_time() {
        let mut pause = Pause::default();
        assert!(pause.after(false).is_zero());
        let waited: Vec<_> = (0..9).map(|_| pause.after(true).as_millis()).collect();
        assert_eq!(waited, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert!(pause.after(false).is_zero());
        assert_eq!(pause.after(true), FIRST_PAUSE);
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = (1..=200).map(|milli| milli * 1000).collect();
        let mut all = Measured::default();
        all.times.insert("ping", times);
        all.fail("ping", &ClientError::Overflow);
        let rows = rows(&mut all, &[Step::Ping], 10.0);
        assert_eq!(rows.len(), 1);
        for (key, wanted) in
            [("p50", 100.0), ("p90", 180.0), ("p99", 198.0), ("most", 200.0), ("perSecond", 20.0)]
        {
            assert_eq!(rows[0][key].as_f64(), Some(wanted), "{key}");
        }
        assert_eq!((&rows[0]["count"], &rows[0]["failed"]), (&json!(200), &json!(1)));
        let table = table(&rows);
        let [head, row] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
        assert_eq!((head.len(), row.len()), (81, 81), "{table}");
        assert!(row.starts_with("ping                200       1      20.0    100.00"), "{row}");
    }
}
