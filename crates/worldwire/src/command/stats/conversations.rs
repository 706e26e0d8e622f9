//! Conversations one by one: as a table, with their messages, and as JSON lines.

use std::fmt::Write as _;

use worldwire_core::json::string;
use worldwire_dissect::{Counts, Overview};

use crate::cli::Order;

/// One line per conversation, in columns.
pub(super) fn table(mut overviews: Vec<&Overview>, order: Order, out: &mut String) {
    let bytes = |overview: &Overview| overview.bytes.iter().sum::<u64>();
    let sent = |overview: &Overview| overview.messages.total();
    let seconds = |overview: &Overview| overview.last.since(overview.first).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "it is shown with few digits")]
    let rate = |overview: &Overview| match seconds(overview) {
        0.0 => 0.0,
        seconds => bytes(overview) as f64 / seconds,
    };
    match order {
        Order::Number => {}
        Order::Duration => overviews.sort_by(|a, b| seconds(b).total_cmp(&seconds(a))),
        Order::Bytes => overviews.sort_by_key(|it| core::cmp::Reverse(bytes(it))),
        Order::Rate => overviews.sort_by(|a, b| rate(b).total_cmp(&rate(a))),
        Order::Messages => overviews.sort_by_key(|it| core::cmp::Reverse(sent(it))),
    }
    let ends: Vec<String> =
        overviews.iter().map(|it| format!("{} > {}", it.client, it.server)).collect();
    let width = ends.iter().map(String::len).max().unwrap_or(0).max("client > server".len());
    let _ = writeln!(
        out,
        "   #  family   {:width$}  {:>12}  {:>12}  {:>10}  {:>12}  {:>9}  gaps  problems",
        "client > server", "from client", "from server", "seconds", "bytes/s", "messages"
    );
    for (overview, ends) in overviews.into_iter().zip(ends) {
        let family = overview.family.map_or("unknown", |family| family.name());
        let [client, server] = overview.bytes;
        let _ = writeln!(
            out,
            "{:>4}  {family:7}  {ends:width$}  {client:>12}  {server:>12}  {:>10.3}  {:>12.0}  {:>9}  \
             {:>4}  {:>8}",
            overview.stream,
            seconds(overview),
            rate(overview),
            sent(overview),
            overview.gaps,
            overview.problems,
        );
    }
}

/// Messages by name, with the number sent by each side.
fn sorted(counts: &Counts) -> Vec<(&str, [u64; 2])> {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_unstable();
    all
}

/// The contents of messages with one name.
fn inside<'c>(
    counts: &'c [(&str, [u64; 2])],
    name: &str,
) -> impl Iterator<Item = (&'c str, [u64; 2])> {
    counts.iter().filter_map(move |(whole, counts)| {
        let inside = whole.strip_prefix(name)?.strip_prefix(' ')?;
        Some((inside, *counts))
    })
}

/// A conversation with its messages.
pub(super) fn text(overview: &Overview, out: &mut String) {
    let seconds = overview.last.since(overview.first).as_secs_f64();
    let protocol = if overview.datagrams { "udp" } else { "tcp" };
    let family = overview.family.map_or("unknown", |family| family.name());
    let [client, server] = overview.bytes;
    let _ = writeln!(
        out,
        "#{:<3} {family} {protocol} {} > {}  {seconds:.3} s, {client} bytes from the client, \
         {server} from the server",
        overview.stream, overview.client, overview.server,
    );
    let carried = sorted(&overview.inside);
    for (name, [client, server]) in sorted(&overview.messages) {
        let _ = writeln!(out, "     {client:>6} {server:>6}  {name}");
        for (inside, [client, server]) in inside(&carried, name) {
            let _ = writeln!(out, "     {client:>6} {server:>6}    {inside}");
        }
    }
    for (count, what) in [(overview.gaps, "gaps"), (overview.problems, "problems")] {
        if count > 0 {
            let _ = writeln!(out, "     {count:>13}  {what}");
        }
    }
}

/// A conversation as a line of JSON.
pub(super) fn json(overview: &Overview, out: &mut String) {
    let [client, server] = overview.bytes;
    let _ = write!(
        out,
        "{{\"stream\":{},\"family\":{},\"protocol\":\"{}\",\"client\":\"{}\",\"server\":\"{}\",\
         \"first\":{},\"last\":{},\"bytes\":{{\"client\":{client},\"server\":{server}}},\
         \"midstream\":{},\"gaps\":{},\"problems\":{},\"messages\":[",
        overview.stream,
        overview
            .family
            .map_or_else(|| "null".to_owned(), |family| format!("\"{}\"", family.name())),
        if overview.datagrams { "udp" } else { "tcp" },
        overview.client,
        overview.server,
        overview.first,
        overview.last,
        overview.midstream,
        overview.gaps,
        overview.problems,
    );
    let carried = sorted(&overview.inside);
    for (index, (name, counts)) in sorted(&overview.messages).into_iter().enumerate() {
        member(index, name, counts, out);
        let mut is_first = true;
        for (inside, counts) in inside(&carried, name) {
            out.push_str(if is_first { ",\"inside\":[" } else { "" });
            member(usize::from(!is_first), inside, counts, out);
            out.push('}');
            is_first = false;
        }
        out.push_str(if is_first { "}" } else { "]}" });
    }
    out.push_str("]}\n");
}

/// Writes one item of a JSON list, without its closing brace.
fn member(index: usize, name: &str, [client, server]: [u64; 2], out: &mut String) {
    out.push_str(if index > 0 { ",{\"name\":" } else { "{\"name\":" });
    string(name, out);
    let _ = write!(out, ",\"client\":{client},\"server\":{server}");
}
