//! Plots as SVG. Their colours come from the page's style, so they follow its light or dark mode.

use std::fmt::Write as _;
use std::time::Duration;

use worldwire_dissect::Time;

use super::page::escaped;
use super::{duration, grouped, short};
use crate::command::stats::details::ConversationRow;

/// Counts with a name, and with a colour that a CSS class defines.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) counts: Vec<u64>,
}

/// The size of a plot and the space around its area.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// The height of a conversation on the timeline.
const LANE: f64 = 14.0;

/// Stacked bars over time.
pub(super) fn bars(series: &[Series], interval: Duration, label: &str, out: &mut String) {
    let count = series.iter().map(|one| one.counts.len()).max().unwrap_or(0).max(1);
    stacked(series, count, label, out, |index| duration(interval.saturating_mul(index)));
    let step = steps(count);
    let width = area_width() / count as f64;
    for index in (0..=count).step_by(step) {
        let at = LEFT + width * index as f64;
        let text = duration(interval.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX)));
        let anchor = match index {
            0 => "start",
            index if index + step > count && at > WIDTH - 60.0 => "end",
            _ => "middle",
        };
        let y = HEIGHT - 8.0;
        let _ =
            writeln!(out, "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
    }
    out.push_str("</svg>\n");
    legend(series, out);
}

/// Stacked columns, each with a label.
pub(super) fn columns(series: &[Series], labels: &[String], label: &str, out: &mut String) {
    let count = labels.len().max(1);
    stacked(series, count, label, out, |index| {
        labels.get(index as usize).map(|label| format!("{label} bytes")).unwrap_or_default()
    });
    let width = area_width() / count as f64;
    let step = count.div_ceil(14);
    for (index, text) in labels.iter().enumerate().step_by(step) {
        let at = LEFT + width * (index as f64 + 0.5);
        let y = HEIGHT - 8.0;
        let _ = writeln!(out, "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>");
    }
    out.push_str("</svg>\n");
    legend(series, out);
}

/// The grid and the bars; the caller adds the labels below and ends the plot.
fn stacked(
    series: &[Series],
    count: usize,
    label: &str,
    out: &mut String,
    title: impl Fn(u32) -> String,
) {
    let sum = |index: usize| -> u64 { series.iter().filter_map(|one| one.counts.get(index)).sum() };
    let most = ceiling((0..count).map(sum).max().unwrap_or(0));
    begin(HEIGHT, label, out);
    let height = HEIGHT - TOP - BOTTOM;
    for line in 0..=4_u64 {
        let y = TOP + height * (1.0 - line as f64 / 4.0);
        let (x, right) = (LEFT - 6.0, WIDTH - RIGHT);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y + 4.0,
            short(most / 4 * line),
        );
    }
    let width = area_width() / count as f64;
    let gap = (width * 0.12).min(2.0);
    for index in 0..count {
        let all = sum(index);
        if all == 0 {
            continue;
        }
        let what: Vec<String> = series
            .iter()
            .filter_map(|one| {
                let count = one.counts.get(index).filter(|count| **count > 0)?;
                Some(format!("{} {}", grouped(*count), escaped(&one.name)))
            })
            .collect();
        let place = title(u32::try_from(index).unwrap_or(u32::MAX));
        let _ = write!(out, "<g><title>{place}: {}</title>", what.join(", "));
        let (mut base, x) = (TOP + height, LEFT + width * index as f64 + gap / 2.0);
        for one in series {
            let count = one.counts.get(index).copied().unwrap_or(0);
            if count > 0 {
                let tall = height * count as f64 / most as f64;
                base -= tall;
                let (class, wide) = (one.class, width - gap);
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{base:.2}\" width=\"{wide:.2}\" \
                     height=\"{tall:.2}\"/>"
                );
            }
        }
        out.push_str("</g>\n");
    }
}

/// The conversations as lines over time.
pub(super) fn lanes(rows: &[&ConversationRow], (first, last): (Time, Time), out: &mut String) {
    let whole = last.since(first).as_secs_f64().max(1e-9);
    let height = TOP + LANE * rows.len() as f64 + BOTTOM;
    begin(height, "Conversations over time", out);
    let area = WIDTH - LEFT - RIGHT;
    for line in 0..=4_u32 {
        let x = LEFT + area * f64::from(line) / 4.0;
        let time = duration(last.since(first) * line / 4);
        let anchor = ["start", "middle", "middle", "middle", "end"][line as usize];
        let (bottom, y) = (height - BOTTOM, height - 8.0);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{time}</text>"
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let at = |time: Time| LEFT + area * (time.since(first).as_secs_f64() / whole);
        let (x, end) = (at(row.first), at(row.last));
        let y = TOP + LANE * index as f64;
        let class = if row.problems + row.gaps > 0 { "lane trouble" } else { "lane" };
        let [client, server] = row.ends;
        let _ = writeln!(
            out,
            "<g><title>#{} {} {client} to {server}: {}</title>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">#{}</text>\
             <rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"8\" rx=\"2\"/></g>",
            row.stream,
            row.family,
            duration(row.last.since(row.first)),
            LEFT - 6.0,
            y + 10.0,
            row.stream,
            y + 3.0,
            (end - x).max(2.0),
        );
    }
    out.push_str("</svg></div>\n");
}

/// A bar in a table. Each of its parts has a class and a count.
pub(super) fn bar(parts: &[(&str, u64)], most: u64) -> String {
    let mut svg = String::from("<svg class=\"cell\" viewBox=\"0 0 160 10\" aria-hidden=\"true\">");
    let mut x = 0.0;
    for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let width = 160.0 * *count as f64 / most.max(1) as f64;
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"1\" width=\"{:.1}\" height=\"8\"/>",
            width.max(0.5)
        );
        x += width;
    }
    svg.push_str("</svg>");
    svg
}

/// The median, the 95th percentile and the maximum on a logarithmic scale.
pub(super) fn range(three: [Duration; 3], (least, most): (Duration, Duration)) -> String {
    let log = |time: Duration| time.as_secs_f64().max(1e-6).log10();
    let (low, high) = (log(least) - 0.1, log(most) + 0.1);
    let [median, most_of, longest] =
        three.map(|time| ((log(time) - low) / (high - low) * 160.0).clamp(0.0, 160.0));
    format!(
        "<svg class=\"cell\" viewBox=\"0 0 160 10\" aria-hidden=\"true\">\
         <line class=\"times\" x1=\"{median:.1}\" x2=\"{longest:.1}\" y1=\"5\" y2=\"5\"/>\
         <circle class=\"client\" cx=\"{median:.1}\" cy=\"5\" r=\"3.5\"/>\
         <line class=\"times\" x1=\"{most_of:.1}\" x2=\"{most_of:.1}\" y1=\"1\" y2=\"9\"/></svg>"
    )
}

fn begin(height: f64, label: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}, plot\" tabindex=\"0\">\
         <svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">"
    );
}

fn legend(series: &[Series], out: &mut String) {
    out.push_str("</div>\n<ul class=\"legend\">");
    for one in series {
        let (class, name) = (one.class, escaped(&one.name));
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"{class}\" \
             width=\"10\" height=\"10\" rx=\"2\"/></svg>{name}</li>"
        );
    }
    out.push_str("</ul>\n");
}

fn area_width() -> f64 {
    WIDTH - LEFT - RIGHT
}

/// A round number, divisible by four, that is at least this large.
fn ceiling(most: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [4, 8, 12, 20, 32] {
            let round = power.saturating_mul(factor);
            if round >= most {
                return round;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The number of bars from one label to the next.
fn steps(count: usize) -> usize {
    let candidates = [1, 2, 5, 10, 20, 25, 50];
    candidates.into_iter().find(|step| count / step <= 8).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_every_count() {
        for most in [0, 1, 4, 5, 33, 41, 999, 123_456, u64::MAX / 1000] {
            let round = ceiling(most);
            assert!(round >= most && round.is_multiple_of(4), "{most} {round}");
        }
        assert_eq!([1, 8, 100].map(steps), [1, 1, 20]);
    }
}
