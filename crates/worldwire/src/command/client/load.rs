//! The results of many clients that run the same steps at the same time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::output::{Failure, complain, print, printable};

/// Waits for all clients and prints how long they took and what went wrong.
pub(super) async fn conclude(
    mut clients: JoinSet<Result<Duration, String>>,
    began: Instant,
    as_json: bool,
) -> Result<(), Failure> {
    let mut times = Vec::new();
    let mut problems = BTreeMap::<String, usize>::new();
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok(Ok(time)) => times.push(time),
            Ok(Err(problem)) => *problems.entry(problem).or_default() += 1,
            Err(error) => *problems.entry(error.to_string()).or_default() += 1,
        }
    }
    print(&report(&mut times, began.elapsed(), as_json))?;
    for (problem, count) in &problems {
        complain(&named(*count), &printable(problem));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Input) }
}

fn named(count: usize) -> String {
    if count == 1 { "1 client".to_owned() } else { format!("{count} clients") }
}

fn report(times: &mut [Duration], all: Duration, as_json: bool) -> String {
    times.sort_unstable();
    let at = |part: usize| {
        let index = times.len().saturating_sub(1) * part / 100;
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    let seconds = all.as_secs_f64();
    let rate = f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX)) / seconds.max(0.001);
    let [median, high, most] = [50, 99, 100].map(at);
    if as_json {
        let line = serde_json::json!({
            "clients": times.len(), "seconds": seconds, "perSecond": rate,
            "medianMillis": median, "p99Millis": high, "mostMillis": most,
        });
        return format!("{line}\n");
    }
    if times.is_empty() {
        return "no client completed all steps\n".to_owned();
    }
    let mut out = String::new();
    let count = named(times.len());
    let _ = writeln!(out, "{count} in {seconds:.1} s: {rate:.0} a second");
    let _ =
        writeln!(out, "per client: median {median:.0} ms, p99 {high:.0} ms, maximum {most:.0} ms");
    out
}
