//! An in-memory bus.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use worldwire_core::Sampler;

use crate::uru::cluster::{Bus, BusError, BusMessage, matches};

type Pending<'b, T> = Pin<Box<dyn Future<Output = T> + Send + 'b>>;

/// An endpoint, a subject, and the destination of its messages.
type Subscriber = (usize, String, mpsc::Sender<BusMessage>);

/// A bus that loses and delays messages.
#[derive(Debug)]
pub(super) struct Hub {
    subscribers: Mutex<Vec<Subscriber>>,
    sampler: Mutex<Sampler>,
    /// The number of lost messages per thousand.
    pub(super) loss: AtomicU64,
    cut: Mutex<HashSet<usize>>,
    endpoints: AtomicU64,
}

/// An endpoint of the bus.
#[derive(Clone, Debug)]
pub(super) struct End(Arc<Hub>, usize);

impl Hub {
    pub(super) fn new(sampler: Sampler, loss: u64) -> Self {
        Self {
            subscribers: Mutex::default(),
            sampler: Mutex::new(sampler),
            loss: loss.into(),
            cut: Mutex::default(),
            endpoints: AtomicU64::default(),
        }
    }

    /// A random number.
    pub(super) fn bits(&self) -> u64 {
        self.sampler.lock().unwrap().bits()
    }

    /// A new endpoint.
    pub(super) fn end(self: &Arc<Self>) -> End {
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        End(Arc::clone(self), usize::try_from(number).unwrap())
    }
}

impl End {
    /// Sets whether this endpoint is cut off: whether nothing leaves or reaches it.
    pub(super) fn set_cut(&self, is_cut: bool) {
        let mut cut = self.0.cut.lock().unwrap();
        match is_cut {
            true => cut.insert(self.1),
            false => cut.remove(&self.1),
        };
    }
}

impl Bus for End {
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool> {
        let hub = &self.0;
        let (cut, mut sampler) = (hub.cut.lock().unwrap(), hub.sampler.lock().unwrap());
        let message = BusMessage { subject: subject.to_owned(), body: message };
        for (to, pattern, queue) in &*hub.subscribers.lock().unwrap() {
            let is_lost = sampler.below(1_000) < hub.loss.load(Ordering::Relaxed);
            if !matches(pattern, subject) || is_lost || cut.contains(&self.1) || cut.contains(to) {
                continue;
            }
            let delay = Duration::from_micros(sampler.below(5_000));
            let (queue, message) = (queue.clone(), message.clone());
            tokio::spawn(async move {
                sleep(delay).await;
                let _ = queue.try_send(message);
            });
        }
        Box::pin(async { true })
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn subscribe<'b>(
        &'b self,
        subject: &'b str,
    ) -> Pending<'b, Result<mpsc::Receiver<BusMessage>, BusError>> {
        let (queue, messages) = mpsc::channel(4_096);
        self.0.subscribers.lock().unwrap().push((self.1, subject.to_owned(), queue));
        Box::pin(async { Ok(messages) })
    }
}
