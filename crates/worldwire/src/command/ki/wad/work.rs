//! Work on many files, shared between threads.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::output::Failure;

/// The threads that work, as many as wanted or, for 0, as there are cores.
pub(super) fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Failure::Run(error.to_string()))
}

/// Does the same to all items, and gives the results in their order. Every thread makes itself
/// what it needs, and takes one item after the other.
///
/// Large ones go first, so that all threads end together; the others follow in their order,
/// because that is the order of their data too.
pub(super) fn share<'i, T: Sync, N, R: Send>(
    pool: &ThreadPool,
    items: &'i [T],
    size: impl Fn(&T) -> u64,
    need: impl Fn() -> N + Sync,
    act: impl Fn(&mut N, &'i T) -> R + Sync,
) -> Vec<R> {
    /// Smaller ones take a thread a millisecond at most.
    const LARGE: u64 = 256 << 10;
    let mut order: Vec<(usize, &'i T)> = items.iter().enumerate().collect();
    let rank = |item| Some(size(item)).filter(|size| *size >= LARGE);
    order.sort_by_cached_key(|(_, item)| Reverse(rank(item)));
    let next = AtomicUsize::new(0);
    let of_threads = pool.broadcast(|_| {
        let mut need = need();
        let mut results = Vec::new();
        while let Some((index, item)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((*index, act(&mut need, item)));
        }
        results
    });
    let mut results: Vec<(usize, R)> = of_threads.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::{pool, share};

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).map(|number| number * 7919 % 1_000_003).collect();
        for threads in [1, 3] {
            let pool = pool(threads).expect("threads");
            let done = share(&pool, &items, |size| *size, || 1, |one, item| *item + *one);
            let wanted: Vec<u64> = items.iter().map(|item| item + 1).collect();
            assert_eq!(done, wanted);
        }
    }
}
