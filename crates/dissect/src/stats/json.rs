//! The totals as JSON.

use core::fmt::Write as _;

use worldwire_core::json::string;

use super::totals::{Amount, NameRow, Totals};

impl Totals {
    /// Appends the object that `worldwire stats --json` prints, without a line break.
    pub fn push_json(&self, out: &mut String) {
        write(self, out);
    }
}

fn write(totals: &Totals, out: &mut String) {
    let all = totals.total();
    let [client, server] = totals.captured;
    let recognised: u64 = totals.families.values().sum();
    let _ = write!(
        out,
        "{{\"conversations\":{},\"recognised\":{recognised},\"families\":{{",
        totals.conversations
    );
    for (index, (family, count)) in totals.families.iter().enumerate() {
        let _ = write!(out, "{}\"{family}\":{count}", comma(index));
    }
    let _ = write!(
        out,
        "}},\"captured\":{{\"client\":{client},\"server\":{server},\"unrecognised\":{}}}",
        totals.unrecognised_bytes
    );
    let (first, last) = match totals.span {
        Some((first, last)) => (first.to_string(), last.to_string()),
        None => ("null".to_owned(), "null".to_owned()),
    };
    let _ = write!(out, ",\"first\":{first},\"last\":{last},\"gaps\":{}", totals.gaps);
    let [client, server] = totals.sent;
    let _ = write!(
        out,
        ",\"messages\":{},\"bytes\":{},\"client\":{},\"server\":{},\"problems\":{}",
        all.messages,
        all.bytes,
        amount(client),
        amount(server),
        totals.problems
    );
    let _ = write!(
        out,
        ",\"undefined\":{},\"incomplete\":{},\"names\":[",
        amount(totals.undefined),
        amount(totals.incomplete)
    );
    for (index, (name, row)) in totals.names().into_iter().enumerate() {
        let NameRow { family, sent: [client, server], bytes } = row;
        let _ = write!(out, "{}{{\"family\":\"{family}\",\"name\":", comma(index));
        string(name, out);
        let _ = write!(out, ",\"client\":{client},\"server\":{server},\"bytes\":{bytes}}}");
    }
    let (interval, intervals) = totals.rates.intervals();
    let _ = write!(
        out,
        "],\"others\":{},\"interval\":{},\"intervals\":[",
        amount(totals.others),
        interval.as_secs_f64()
    );
    for (index, [client, server]) in intervals.iter().enumerate() {
        let _ = write!(out, "{}[{client},{server}]", comma(index));
    }
    out.push_str("],\"replies\":[");
    for (index, (name, times)) in totals.replies.rows().into_iter().enumerate() {
        let _ = write!(out, "{}{{\"request\":", comma(index));
        string(name, out);
        let [median, most] = [50, 95].map(|percent| times.percentile(percent).as_secs_f64());
        let (count, longest) = (times.count(), times.longest().as_secs_f64());
        let _ = write!(
            out,
            ",\"count\":{count},\"median\":{median},\"p95\":{most},\"longest\":{longest}}}"
        );
    }
    let _ = write!(out, "],\"unanswered\":{}}}", totals.replies.unanswered());
}

fn comma(index: usize) -> &'static str {
    if index > 0 { "," } else { "" }
}

fn amount(Amount { messages, bytes }: Amount) -> String {
    format!("{{\"messages\":{messages},\"bytes\":{bytes}}}")
}
