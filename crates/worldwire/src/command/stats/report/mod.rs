//! The report: one HTML file without scripts. The plots are part of the file.

mod page;
mod plots;

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use worldwire_core::Side;
use worldwire_dissect::Time;
use worldwire_dissect::stats::{Rates, Totals};

use super::details::{ConversationRow, Details, MAX_CONVERSATIONS, MAX_PROBLEMS};
use super::summary::{millis, percent};
use crate::output::{counted, printable};
use page::{Page, escaped};
use plots::Series;

/// The maximum number of rows about names and reply times.
const MAX_ROWS: usize = 25;
/// The number of names that have their own colour.
const COLOURS: usize = 6;
/// The number of conversations on the timeline.
const LANES: usize = 40;

/// Writes the report. `files` are the names of the captures.
pub(super) fn html(totals: &Totals, details: &mut Details, files: &[String]) -> String {
    let mut page = Page::new(files);
    facts(totals, &mut page);
    rates(totals, details, &mut page);
    names(totals, &mut page);
    sizes(details, &mut page);
    replies(totals, &mut page);
    conversations(totals, details, &mut page);
    problems(totals, details, &mut page);
    page.finish()
}

fn facts(totals: &Totals, page: &mut Page) {
    let all = totals.total();
    let seconds = totals.span.map_or(Duration::ZERO, |(first, last)| last.since(first));
    let families: Vec<String> =
        totals.families.iter().map(|(family, count)| format!("{count} {family}")).collect();
    let recognised: u64 = totals.families.values().sum();
    let unknown = totals.conversations.saturating_sub(recognised);
    let mut kinds = families.join(", ");
    if unknown > 0 {
        let more = format!("{}{unknown} not recognised", if kinds.is_empty() { "" } else { ", " });
        kinds.push_str(&more);
    }
    let [client, server] = totals.sent;
    let what = if totals.is_filtered { "Matching messages" } else { "Messages" };
    let doubtful = totals.undefined.bytes + totals.incomplete.bytes;
    let doubts = totals.undefined.messages + totals.incomplete.messages;
    let sides = format!(
        "{} from clients, {} from servers",
        grouped(client.messages),
        grouped(server.messages)
    );
    let captured: u64 = totals.captured.iter().sum();
    let decoded = match all.bytes {
        0 => "none".to_owned(),
        bytes => percent(bytes.saturating_sub(doubtful), bytes),
    };
    let began = totals.span.map_or(String::new(), |(first, _)| utc(first));
    let trouble = totals.problems + totals.incomplete.messages;
    page.facts(&[
        ("Conversations", grouped(totals.conversations), kinds),
        (what, grouped(all.messages), sides),
        ("Captured", bytes(captured), format!("{} of messages", bytes(all.bytes))),
        ("Duration", duration(seconds), began),
        (
            "Decoded",
            decoded,
            format!("of message bytes; {} not fully decoded", counted(doubts, "message")),
        ),
        ("Problems", grouped(trouble), counted(totals.gaps, "gap")),
    ]);
}

fn rates(totals: &Totals, details: &Details, page: &mut Page) {
    if totals.total().messages == 0 {
        return;
    }
    let (interval, counts) = totals.rates.intervals();
    let column = |side: Side| counts.iter().map(|pair| pair[side.index()]).collect::<Vec<_>>();
    let series = [
        Series { name: "from clients".into(), class: "client", counts: column(Side::Client) },
        Series { name: "from servers".into(), class: "server", counts: column(Side::Server) },
    ];
    let note = format!("Each bar covers {}.", duration(interval));
    page.section("rates", "Messages over time", &note);
    plots::bars(&series, interval, "Messages over time by sender", page.out());

    let names = totals.names();
    let mut by_name = Vec::new();
    let mut rest: Vec<u64> = counts.iter().map(|pair| pair.iter().sum()).collect();
    for (index, (name, _)) in names.iter().take(COLOURS).enumerate() {
        let Some(counts) = details.rates.get(*name).map(|own| scaled(own, interval, rest.len()))
        else {
            continue;
        };
        for (rest, count) in rest.iter_mut().zip(&counts) {
            *rest = rest.saturating_sub(*count);
        }
        by_name.push(Series { name: printable(name), class: CLASSES[index], counts });
    }
    if rest.iter().any(|count| *count > 0) {
        by_name.push(Series { name: "others".into(), class: "others", counts: rest });
    }
    plots::bars(&by_name, interval, "Messages over time by name", page.out());
    page.end_section();
}

const CLASSES: [&str; COLOURS] = ["s0", "s1", "s2", "s3", "s4", "s5"];

/// The messages of one name, recounted in the intervals that are used for all messages. These are
/// at least as long as the name's own intervals.
fn scaled(own: &Rates, interval: Duration, count: usize) -> Vec<u64> {
    let (own_interval, own) = own.intervals();
    let factor = interval.as_nanos() / own_interval.as_nanos().max(1);
    let factor = usize::try_from(factor).unwrap_or(usize::MAX).max(1);
    let mut counts = vec![0; count];
    for (index, pair) in own.iter().enumerate() {
        if let Some(sum) = counts.get_mut(index / factor) {
            *sum += pair.iter().sum::<u64>();
        }
    }
    counts
}

fn names(totals: &Totals, page: &mut Page) {
    let names = totals.names();
    if names.is_empty() {
        return;
    }
    let all = totals.total();
    let most = names.first().map_or(1, |(_, row)| row.sent.iter().sum::<u64>()).max(1);
    let more = names.len().saturating_sub(MAX_ROWS);
    let note = match (more, totals.others.messages) {
        (0, 0) => String::new(),
        (more, 0) => format!("Not listed: {}.", counted(more, "more name")),
        (more, others) => format!(
            "Not listed: {}, and {} with other names.",
            counted(more, "more name"),
            counted(others, "message")
        ),
    };
    page.section("names", "Most frequent messages", &note);
    let heads = ["Name", "", "Clients", "Servers", "Share", "Bytes"];
    page.table("Most frequent messages", &heads, 1);
    for (name, row) in names.iter().take(MAX_ROWS) {
        let [client, server] = row.sent;
        let bar = plots::bar(&[("client", client), ("server", server)], most);
        let cells = [
            format!("<td class=\"name\">{}</td>", escaped(name)),
            format!("<td class=\"bar\">{bar}</td>"),
            number(client),
            number(server),
            text(&percent(client + server, all.messages)),
            text(&bytes(row.bytes)),
        ];
        page.row(&cells);
    }
    page.end_table();
    page.end_section();
}

fn sizes(details: &Details, page: &mut Page) {
    let used = |sizes: &[u64; 2]| sizes.iter().any(|count| *count > 0);
    let first = details.sizes.iter().position(used);
    let last = details.sizes.iter().rposition(used);
    let (Some(first), Some(last)) = (first, last) else { return };
    let part = details.sizes.get(first..=last).unwrap_or_default();
    let column = |side: Side| part.iter().map(|pair| pair[side.index()]).collect::<Vec<_>>();
    let series = [
        Series { name: "from clients".into(), class: "client", counts: column(Side::Client) },
        Series { name: "from servers".into(), class: "server", counts: column(Side::Server) },
    ];
    let labels: Vec<String> = (first..=last).map(size_label).collect();
    page.section("sizes", "Message sizes", "Decrypted messages with their headers, in bytes.");
    plots::columns(&series, &labels, "Messages by size and sender", page.out());
    page.end_section();
}

/// The sizes of a class.
fn size_label(class: usize) -> String {
    match class {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        class => {
            let least = 1_u64 << (class - 1).min(62);
            format!("{}\u{2013}{}", short(least), short(least * 2 - 1))
        }
    }
}

fn replies(totals: &Totals, page: &mut Page) {
    let rows = totals.replies.rows();
    if rows.is_empty() {
        return;
    }
    let slowest = rows.iter().map(|(_, times)| times.longest()).max().unwrap_or_default();
    let fastest = rows.iter().map(|(_, times)| times.percentile(50)).min().unwrap_or_default();
    let mut note = "Times run from a client's request to the first reply with its number. The \
                    line runs from the median to the longest time, and the mark is at 95 %; the \
                    scale is logarithmic."
        .to_owned();
    if totals.replies.unanswered() > 0 {
        let count = grouped(totals.replies.unanswered());
        let _ = write!(note, " Requests without a reply: {count}.");
    }
    page.section("replies", "Reply times", &note);
    let heads = ["Request", "", "Replies", "Median", "95 %", "Longest"];
    page.table("Reply times", &heads, 1);
    for (name, times) in rows.iter().take(MAX_ROWS) {
        let three = [times.percentile(50), times.percentile(95), times.longest()];
        let cells = [
            format!("<td class=\"name\">{}</td>", escaped(name)),
            format!("<td class=\"bar\">{}</td>", plots::range(three, (fastest, slowest))),
            number(times.count()),
            text(&millis(three[0])),
            text(&millis(three[1])),
            text(&millis(three[2])),
        ];
        page.row(&cells);
    }
    page.end_table();
    page.end_section();
}

fn conversations(totals: &Totals, details: &mut Details, page: &mut Page) {
    let Some((first, last)) = totals.span else { return };
    let rows = details.conversations();
    let note = match totals.conversations.saturating_sub(rows.len() as u64) {
        0 => "Largest first.".to_owned(),
        _ => format!(
            "The {MAX_CONVERSATIONS} largest of {}, largest first.",
            grouped(totals.conversations)
        ),
    };
    page.section("conversations", "Conversations", &note);
    let mut lanes: Vec<&ConversationRow> = rows.iter().take(LANES).collect();
    lanes.sort_by_key(|row| (row.first, row.stream));
    plots::lanes(&lanes, (first, last), page.out());
    let heads = [
        "#",
        "Family",
        "Client",
        "Server",
        "Duration",
        "Messages",
        "Client bytes",
        "Server bytes",
        "Gaps",
        "Problems",
    ];
    page.table("Conversations", &heads, 4);
    for row in rows {
        let [client, server] = row.ends;
        let trouble = |count: u64| match count {
            0 => "<td class=\"number dim\">0</td>".to_owned(),
            count => format!("<td class=\"number trouble\">{}</td>", grouped(count)),
        };
        let cells = [
            format!("<td>{}</td>", row.stream),
            format!("<td>{}</td>", row.family),
            format!("<td class=\"name\">{client}</td>"),
            format!("<td class=\"name\">{server}</td>"),
            text(&duration(row.last.since(row.first))),
            number(row.messages),
            number(row.bytes[0]),
            number(row.bytes[1]),
            trouble(row.gaps),
            trouble(row.problems),
        ];
        page.row(&cells);
    }
    page.end_table();
    page.end_section();
}

fn problems(totals: &Totals, details: &Details, page: &mut Page) {
    let all = totals.problems + totals.incomplete.messages;
    if details.problems.is_empty() {
        let note = match totals.undefined.messages {
            0 => "None.".to_owned(),
            count => format!("None, but {} without a definition.", counted(count, "message")),
        };
        page.section("problems", "Problems", &note);
        page.end_section();
        return;
    }
    let note = match all > MAX_PROBLEMS as u64 {
        true => format!("The first {MAX_PROBLEMS} of {}.", grouped(all)),
        false => "To see what to do about them, run <code>worldwire doctor</code>.".to_owned(),
    };
    page.section("problems", "Problems", &note);
    page.table("Problems", &["Time", "#", "Sender", "What"], 4);
    for problem in &details.problems {
        let cells = [
            format!("<td class=\"number\">{:.6}</td>", problem.since.as_secs_f64()),
            format!("<td>{}</td>", problem.stream),
            format!("<td>{}</td>", problem.from.name()),
            format!("<td class=\"text\">{}</td>", escaped(&problem.text)),
        ];
        page.row(&cells);
    }
    page.end_table();
    page.end_section();
}

fn number(number: u64) -> String {
    format!("<td class=\"number\">{}</td>", grouped(number))
}

fn text(text: &str) -> String {
    format!("<td class=\"number\">{text}</td>")
}

/// A number with a comma after every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number, shortened to a few characters.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

/// A number of bytes with a unit.
fn bytes(count: u64) -> String {
    let count_f = count as f64;
    match count {
        0..10_000 => format!("{} B", grouped(count)),
        10_000..1_000_000 => format!("{:.1} kB", count_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count_f / 1e6),
        _ => format!("{:.1} GB", count_f / 1e9),
    }
}

/// A duration in the largest units that fit.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..100 if duration < Duration::from_secs(1) => {
            let millis = duration.as_secs_f64() * 1e3;
            let digits = if millis < 10.0 && millis.fract() > 0.0 { 1 } else { 0 };
            format!("{millis:.digits$} ms")
        }
        0..100 => {
            let text = format!("{:.1}", duration.as_secs_f64());
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        100..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The date and time, to the second.
fn utc(time: Time) -> String {
    // Every time in a capture is representable.
    let moment = Timestamp::from_nanosecond(time.0.into()).unwrap_or_default();
    moment.to_zoned(TimeZone::UTC).strftime("from %Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([9_999, 12_345, 2_500_000].map(bytes), ["9,999 B", "12.3 kB", "2.5 MB"]);
        let texts = [1, 500, 1500, 20_000, 150_000, 9_000_000]
            .map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(texts, ["1 ms", "500 ms", "1.5 s", "20 s", "2 min 30 s", "2 h 30 min"]);
        assert_eq!([0, 1, 2, 9].map(size_label), ["0", "1", "2\u{2013}3", "256\u{2013}511"]);
    }

    #[test]
    fn intervals_of_a_name_fit_those_of_all() {
        let mut own = Rates::default();
        for tenths in [0, 5, 11, 11] {
            own.add(Duration::from_millis(tenths * 100), Side::Client);
        }
        assert_eq!(scaled(&own, Duration::from_secs(1), 3), [2, 2, 0]);
    }
}
