//! The totals as readable text.

use std::fmt::Write as _;
use std::time::Duration;

use worldwire_dissect::stats::{Amount, NameRow, Totals};

use crate::output::{counted, printable};

/// The number of columns of the longest bar.
const BAR: u64 = 40;

/// A screenful: sums, the most frequent messages, messages over time, and the slowest replies. At
/// most `top` names and replies are listed, or all of them if it is 0.
pub(super) fn text(totals: &Totals, top: usize, out: &mut String) {
    let top = if top == 0 { usize::MAX } else { top };
    let all = totals.total();
    sums(totals, all, out);
    if all.messages > 0 {
        names(totals, all, top, out);
        rates(totals, out);
    }
    replies(totals, top, out);
}

fn sums(totals: &Totals, all: Amount, out: &mut String) {
    let recognised: u64 = totals.families.values().sum();
    let mut families: Vec<String> =
        totals.families.iter().map(|(family, count)| format!("{count} {family}")).collect();
    if recognised < totals.conversations {
        families.push(format!("{} unrecognised", totals.conversations - recognised));
    }
    let _ = write!(out, "conversations  {}", totals.conversations);
    if !families.is_empty() {
        let _ = write!(out, ": {}", families.join(", "));
    }
    out.push('\n');
    if let Some((first, last)) = totals.span {
        let [client, server] = totals.captured;
        let seconds = last.since(first).as_secs_f64();
        let _ = writeln!(
            out,
            "captured       {client} bytes from clients, {server} from servers, in {seconds:.3} s"
        );
    }
    let [client, server] = totals.sent;
    let what = if totals.is_filtered { "matching" } else { "messages" };
    let _ = writeln!(
        out,
        "{what:13}  {}: {} from clients, {} from servers; {} bytes",
        all.messages, client.messages, server.messages, all.bytes
    );
    let mut doubts = Vec::new();
    for (amount, what) in
        [(totals.undefined, "without a definition"), (totals.incomplete, "not decoded completely")]
    {
        if amount.messages > 0 {
            let share = percent(amount.bytes, all.bytes);
            doubts
                .push(format!("{} {what} ({share} of bytes)", counted(amount.messages, "message")));
        }
    }
    if totals.unrecognised_bytes > 0 && !totals.is_filtered {
        let captured = totals.captured.iter().sum();
        let share = percent(totals.unrecognised_bytes, captured);
        doubts.push(format!("{share} of captured bytes not recognised"));
    }
    for (count, what) in [(totals.gaps, "gap"), (totals.problems, "problem")] {
        if count > 0 {
            doubts.push(counted(count, what));
        }
    }
    let doubts = if doubts.is_empty() { "nothing".to_owned() } else { doubts.join("; ") };
    let _ = writeln!(out, "not decoded    {doubts}");
}

fn names(totals: &Totals, all: Amount, top: usize, out: &mut String) {
    let names = totals.names();
    let _ = writeln!(out, "\n   client    server   share       bytes  name");
    for (name, NameRow { sent: [client, server], bytes, .. }) in names.iter().take(top) {
        let share = percent(client + server, all.messages);
        let _ =
            writeln!(out, "{client:>9} {server:>9}  {share:>6}  {bytes:>10}  {}", printable(name));
    }
    let rest = names.iter().skip(top);
    let (mut count, mut more) = (0_u64, totals.others);
    for (_, row) in rest {
        count += 1;
        more.messages += row.sent.iter().sum::<u64>();
        more.bytes += row.bytes;
    }
    if more.messages > 0 {
        let share = percent(more.messages, all.messages);
        let which = match totals.others.messages {
            0 => counted(count, "more name"),
            _ => "further names".to_owned(),
        };
        let Amount { messages, bytes } = more;
        let _ = writeln!(out, "{messages:>19}  {share:>6}  {bytes:>10}  {which}");
    }
}

fn rates(totals: &Totals, out: &mut String) {
    let (interval, rows) = totals.rates.rows();
    let most = rows.iter().map(|row| row.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    let digits = decimals(interval);
    let _ = writeln!(out, "\n  seconds  messages        per s");
    for (index, row) in rows.iter().enumerate() {
        let count: u64 = row.iter().sum();
        let start = interval.as_secs_f64() * index as f64;
        let rate = count as f64 / interval.as_secs_f64();
        let columns = u128::from(count) * u128::from(BAR);
        let bar = usize::try_from(columns.div_ceil(u128::from(most))).unwrap_or(0);
        let bar = "#".repeat(bar);
        let line = format!("{start:>9.digits$} {count:>9} {rate:>12.1}  {bar}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn replies(totals: &Totals, top: usize, out: &mut String) {
    let rows = totals.replies.rows();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n  replies    median      95 %   longest  request");
    for (name, times) in rows.iter().take(top) {
        let [median, most] = [50, 95].map(|percent| millis(times.percentile(percent)));
        let longest = millis(times.longest());
        let (count, name) = (times.count(), printable(name));
        let _ = writeln!(out, "{count:>9} {median:>9} {most:>9} {longest:>9}  {name}");
    }
    if rows.len() > top {
        let rest: u64 = rows.iter().skip(top).map(|(_, times)| times.count()).sum();
        let more = counted(rows.len() - top, "more request");
        let _ = writeln!(out, "{rest:>9} {:>31}{more}", "");
    }
    let unanswered = totals.replies.unanswered();
    if unanswered > 0 {
        let _ = writeln!(out, "{unanswered:>9} {:>31}without a reply", "");
    }
}

/// A share with one decimal place.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{share:.1} %")
}

/// The number of decimal places that multiples of an interval need.
fn decimals(interval: Duration) -> usize {
    match interval.as_nanos() {
        0..10_000_000 => 3,
        10_000_000..100_000_000 => 2,
        100_000_000..1_000_000_000 => 1,
        _ => 0,
    }
}

/// A duration with three significant digits.
pub(super) fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1e3;
    match millis {
        0.0..10.0 => format!("{millis:.2} ms"),
        10.0..100.0 => format!("{millis:.1} ms"),
        100.0..1000.0 => format!("{millis:.0} ms"),
        1e3..1e4 => format!("{:.2} s", millis / 1e3),
        1e4..1e5 => format!("{:.1} s", millis / 1e3),
        _ => format!("{:.0} s", millis / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (micros, wanted) in [
            (0, "0.00 ms"),
            (1_234, "1.23 ms"),
            (12_345, "12.3 ms"),
            (123_456, "123 ms"),
            (1_234_567, "1.23 s"),
            (12_345_678, "12.3 s"),
            (1_234_567_890, "1235 s"),
        ] {
            assert_eq!(millis(Duration::from_micros(micros)), wanted);
        }
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3 %".to_owned(), "0.0 %".to_owned()));
    }
}
