//! The memory that threads share for large files.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The memory that all threads share for large files. A thread waits until enough is released, so
/// twice as many threads do not use twice the memory.
#[derive(Debug)]
pub(crate) struct Memory {
    all: u64,
    free: Mutex<u64>,
    freed: Condvar,
}

/// A share of the memory, released on drop.
#[derive(Debug)]
pub(crate) struct Share<'m> {
    memory: &'m Memory,
    bytes: u64,
}

/// Smaller requests never wait, because there are too few threads for their total to matter.
const SMALL: u64 = 1 << 20;

impl Memory {
    /// The bytes that two archive files of the maximum size take.
    const ALL: u64 = 512 << 20;

    pub(crate) fn new() -> Self {
        Self::of(Self::ALL)
    }

    fn of(all: u64) -> Self {
        Self { all, free: Mutex::new(all), freed: Condvar::new() }
    }

    /// Waits for this many bytes. A request for more than the total is granted all of it.
    ///
    /// A thread must not still hold an earlier share: two threads waiting for each other would
    /// deadlock.
    pub(crate) fn take(&self, bytes: u64) -> Share<'_> {
        if bytes < SMALL {
            return Share { memory: self, bytes: 0 };
        }
        let bytes = bytes.min(self.all);
        let mut free = self.free();
        while *free < bytes {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= bytes;
        Share { memory: self, bytes }
    }

    fn free(&self) -> MutexGuard<'_, u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            *self.memory.free() += self.bytes;
            self.memory.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Memory, SMALL};

    #[test]
    fn threads_never_exceed_the_shared_memory() {
        let memory = Memory::of(10 * SMALL);
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (memory, held, most) = (&memory, &held, &most);
                scope.spawn(move || {
                    for step in 0..200 {
                        let wanted = (1 + (thread * 7 + step) % 12) * SMALL;
                        let share = memory.take(wanted);
                        let taken = wanted.min(10 * SMALL);
                        let now = held.fetch_add(taken, Ordering::SeqCst) + taken;
                        most.fetch_max(now, Ordering::SeqCst);
                        held.fetch_sub(taken, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10 * SMALL);
        assert_eq!(*memory.free(), 10 * SMALL, "all of it is back");
        assert_eq!(memory.take(SMALL - 1).bytes, 0, "small files are not counted");
    }
}
