//! Rates over time: the number of messages by name and sender.

use serde::Serialize;
use worldwire_core::Side;

use crate::index::{Index, Row, RowKind};

/// Rates between two times.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline {
    /// Nanoseconds since 1970, as text.
    from: String,
    to: String,
    /// The most frequent names with their senders, then one without a name for the others.
    series: Vec<Series>,
    /// The intervals with gaps and those with problems or warnings.
    gaps: Vec<Mark>,
    problems: Vec<Mark>,
}

/// Messages with the same name and sender.
#[derive(Debug, Serialize)]
struct Series {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    total: u64,
    counts: Vec<u32>,
}

/// A row to mark.
#[derive(Clone, Copy, Debug, Serialize)]
struct Mark {
    /// The row's interval.
    bucket: usize,
    row: usize,
}

/// The maximum number of intervals.
pub(crate) const MAX_BUCKETS: usize = 2000;
/// The number of names that are shown separately.
const MAX_SERIES: usize = 8;
/// The maximum number of marks of each kind: one per interval.
const MAX_MARKS: usize = MAX_BUCKETS;

/// The period and resolution of a timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) buckets: usize,
}

/// Counts rows, or only those in `chosen` if given.
pub(crate) fn timeline(index: &Index, chosen: Option<&[u32]>, period: Period) -> Timeline {
    let buckets = period.buckets.clamp(1, MAX_BUCKETS);
    let (first, last) = index.span().unwrap_or((0, 0));
    let from = period.from.unwrap_or(first);
    let to = period.to.unwrap_or(last).max(from);
    let scale = Scale { from, to, buckets };
    // The most frequent names, by number and sender.
    let mut totals = vec![0_u64; 2 * index.names().len()];
    let slot = |row: &Row| 2 * usize::from(row.name) + row.from().index();
    each_row(index, chosen, |_, row| {
        if let (Some(total), Some(_)) = (totals.get_mut(slot(row)), scale.bucket(row.time)) {
            *total += 1;
        }
    });
    let mut order: Vec<usize> = (0..totals.len()).filter(|it| totals[*it] > 0).collect();
    order.sort_by_key(|it| (core::cmp::Reverse(totals[*it]), *it));
    order.truncate(MAX_SERIES);
    let mut ranks = vec![order.len(); totals.len()];
    order.iter().enumerate().for_each(|(rank, it)| ranks[*it] = rank);
    let mut counts = vec![vec![0_u32; buckets]; order.len() + 1];
    let (mut gaps, mut problems) = (Vec::new(), Vec::new());
    each_row(index, chosen, |number, row| {
        let Some(bucket) = scale.bucket(row.time) else { return };
        let rank = ranks.get(slot(row)).copied().unwrap_or(order.len());
        if let Some(count) = counts.get_mut(rank).and_then(|it| it.get_mut(bucket)) {
            *count += 1;
        }
        let marks = match row.kind {
            RowKind::Gap => &mut gaps,
            RowKind::Warning | RowKind::Problem => &mut problems,
            _ if row.is_problem() => &mut problems,
            _ => return,
        };
        let is_new = marks.last().is_none_or(|mark: &Mark| mark.bucket != bucket);
        if is_new && marks.len() < MAX_MARKS {
            marks.push(Mark { bucket, row: number });
        }
    });
    let series = counts.into_iter().enumerate().map(|(rank, counts)| {
        let own = order.get(rank);
        let name = own.and_then(|it| index.names().get(it / 2)).map(|it| it.name.clone());
        let from = own.map(|it| Side::BOTH[it % 2].name());
        let total = counts.iter().copied().map(u64::from).sum();
        Series { name, from, total, counts }
    });
    let series = series.collect();
    Timeline { from: from.to_string(), to: to.to_string(), series, gaps, problems }
}

fn each_row(index: &Index, chosen: Option<&[u32]>, mut visit: impl FnMut(usize, &Row)) {
    match chosen {
        None => index.rows_from(0).enumerate().for_each(|(number, row)| visit(number, row)),
        Some(rows) => {
            for number in rows.iter().map(|row| *row as usize) {
                if let Some(row) = index.row(number) {
                    visit(number, row);
                }
            }
        }
    }
}

/// Assigns times to intervals.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: i64,
    to: i64,
    buckets: usize,
}

impl Scale {
    fn bucket(self, time: i64) -> Option<usize> {
        if time < self.from || time > self.to {
            return None;
        }
        let duration = i128::from(self.to) - i128::from(self.from) + 1;
        let since = i128::from(time) - i128::from(self.from);
        usize::try_from(since * self.buckets as i128 / duration).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::NewRow;

    fn index() -> Index {
        let mut index = Index::new().unwrap();
        for number in 0..100_i64 {
            let kind = if number == 50 { RowKind::Gap } else { RowKind::Message };
            let from = if number % 4 == 0 { Side::Client } else { Side::Server };
            let new = NewRow {
                time: number * 10,
                since: 0,
                packet: 1,
                stream: 0,
                from,
                family: "uru",
                kind,
                is_problem: number == 99,
                length: 1,
            };
            index.push(&new, &format!("name{}", number % 20), "").unwrap();
        }
        index
    }

    #[test]
    fn every_row_is_counted_once() {
        let period = Period { from: None, to: None, buckets: 10 };
        let timeline = timeline(&index(), None, period);
        assert_eq!(timeline.series.len(), MAX_SERIES + 1);
        let total: u64 = timeline.series.iter().map(|series| series.total).sum();
        assert_eq!(total, 100);
        assert!(timeline.series.iter().all(|series| series.counts.len() == 10));
        assert_eq!((timeline.gaps[0].bucket, timeline.gaps[0].row), (5, 50));
        assert_eq!((timeline.problems[0].bucket, timeline.problems[0].row), (9, 99));
    }

    #[test]
    fn a_period_and_a_selection_limit_it() {
        let period = Period { from: Some(100), to: Some(199), buckets: usize::MAX };
        let total = |timeline: &Timeline| timeline.series.iter().map(|it| it.total).sum::<u64>();
        let all = timeline(&index(), None, period);
        assert_eq!((total(&all), all.series[0].counts.len()), (10, MAX_BUCKETS));
        let some = timeline(&index(), Some(&[0, 10, 11, 99, 1000]), period);
        assert_eq!(total(&some), 2);
        let extreme = Period { from: Some(i64::MIN), to: Some(i64::MAX), buckets: 3 };
        assert_eq!(total(&timeline(&index(), None, extreme)), 100);
    }
}
