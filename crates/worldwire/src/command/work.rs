//! Distributes work on many files among threads.

use std::cmp::Reverse;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cli::Common;
use crate::output::Failure;

/// A progress bar, shown only on a terminal and only after a second.
pub(crate) fn progress(count: usize, common: &Common) -> ProgressBar {
    let bar = ProgressBar::hidden();
    if common.quiet || !std::io::stderr().is_terminal() {
        return bar;
    }
    bar.set_length(count as u64);
    let late = bar.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        if !late.is_finished() {
            late.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar
}

/// The worker threads: the requested number or, for 0, one per core.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Failure::Run(error.to_string()))
}

/// Processes all items and returns the results in order. Every thread creates its own working
/// state, then takes one batch of items after another.
///
/// Large items go first, one by one, so that all threads finish at about the same time. The others
/// follow in order, many at a time, because neighbouring items have adjacent data and share an
/// output directory, where two threads would block each other.
pub(crate) fn share<'i, T: Sync, N, R: Send>(
    pool: &ThreadPool,
    items: &'i [T],
    size: impl Fn(&T) -> u64,
    need: impl Fn() -> N + Sync,
    act: impl Fn(&mut N, &'i T) -> R + Sync,
) -> Vec<R> {
    let loads = loads(items, size);
    let next = AtomicUsize::new(0);
    let of_threads = pool.broadcast(|_| {
        let mut need = need();
        let mut results = Vec::new();
        while let Some(load) = loads.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.extend(load.iter().map(|(index, item)| (*index, act(&mut need, *item))));
        }
        results
    });
    let mut results: Vec<(usize, R)> = of_threads.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Items with their indices, in the batches that threads take.
fn loads<T>(items: &[T], size: impl Fn(&T) -> u64) -> Vec<Vec<(usize, &T)>> {
    /// The amount of work that takes a thread about a millisecond.
    const LOAD_BYTES: u64 = 256 << 10;
    const LOAD_ITEMS: usize = 64;
    let (mut large, mut small) = (Vec::new(), Vec::new());
    let (mut load, mut bytes) = (Vec::new(), 0);
    for (index, item) in items.iter().enumerate() {
        let size = size(item);
        if size >= LOAD_BYTES {
            large.push((size, vec![(index, item)]));
            continue;
        }
        load.push((index, item));
        bytes += size;
        if bytes >= LOAD_BYTES || load.len() == LOAD_ITEMS {
            small.push(std::mem::take(&mut load));
            bytes = 0;
        }
    }
    small.push(load);
    large.sort_by_key(|(size, _)| Reverse(*size));
    large.into_iter().map(|(_, load)| load).chain(small).collect()
}

#[cfg(test)]
mod tests {
    use super::{pool, share};

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).map(|number| number * 7919 % 1_000_003).collect();
        for threads in [1, 3] {
            let pool = pool(threads).expect("threads");
            let done = share(&pool, &items, |size| *size, || 1, |one, item| *item + *one);
            let wanted: Vec<u64> = items.iter().map(|item| item + 1).collect();
            assert_eq!(done, wanted);
        }
    }
}
