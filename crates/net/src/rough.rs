//! Simulates a bad network: datagrams are lost, delayed, duplicated or reordered.
//!
//! It sits between a client and a server that are unaware of it, and shows how a protocol copes
//! with a bad network.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};
use worldwire_core::Sampler;

use crate::stop::Signal;
use crate::udp::dial;

/// How a stretch of network treats each datagram, in either direction. The default does nothing to
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// How long it is under way.
    pub delay: Duration,
    /// In a thousand: those that never arrive.
    pub loss: u64,
    /// In a thousand: those that arrive twice.
    pub duplication: u64,
    /// In a thousand: those that are under way for longer, up to five times the delay or 50 ms,
    /// whichever is more.
    pub reordering: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// The longest that reordering adds, at least.
const LEAST_LATENESS: Duration = Duration::from_millis(50);
/// Limit on datagrams in transit; beyond it, they are lost.
const MAX_FLYING: usize = 16_384;
/// The longest datagram there is.
const LONGEST: usize = 65_535;

/// A stretch between one client on this machine and a server.
#[derive(Debug)]
pub struct Stretch {
    near: UdpSocket,
    far: UdpSocket,
    conditions: Conditions,
    sampler: Sampler,
    counts: Arc<StretchCounts>,
}

/// What became of the datagrams of a [`Stretch`].
#[derive(Debug, Default)]
pub struct StretchCounts {
    arrived: AtomicU64,
    lost: AtomicU64,
    again: AtomicU64,
    late: AtomicU64,
}

impl StretchCounts {
    /// Datagrams that arrived, without their repetitions.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Those that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Those that arrived twice.
    #[must_use]
    pub fn again(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    /// Those that arrived late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }
}

/// A datagram in transit, ordered by arrival time and then by age.
type Flying = Reverse<(Instant, u64, bool, Vec<u8>)>;

impl Stretch {
    /// A stretch that leads to a server.
    pub async fn to(server: SocketAddr, conditions: Conditions) -> io::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let far = dial(server).await?;
        let sampler = Sampler::new(conditions.seed);
        Ok(Self { near, far, conditions, sampler, counts: Arc::default() })
    }

    /// Where the client connects to instead of the server.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.near.local_addr()
    }

    /// Its figures.
    #[must_use]
    pub fn counts(&self) -> Arc<StretchCounts> {
        Arc::clone(&self.counts)
    }

    /// Carries datagrams until the signal comes.
    pub async fn carry(mut self, mut signal: Signal) {
        let mut flying: BinaryHeap<Flying> = BinaryHeap::new();
        let (mut from_near, mut from_far) = (vec![0; LONGEST], vec![0; LONGEST]);
        let mut client = None;
        let mut number = 0;
        loop {
            let next = flying.peek().map(|Reverse((at, ..))| *at);
            // An error is about an earlier datagram that did not arrive somewhere.
            let (goes_far, bytes) = tokio::select! {
                () = signal.stopping() => return,
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    if let Some(Reverse((.., goes_far, bytes))) = flying.pop() {
                        self.deliver(goes_far, &bytes, client).await;
                    }
                    continue;
                }
                received = self.near.recv_from(&mut from_near) => match received {
                    Ok((length, from)) => {
                        client = Some(from);
                        (true, from_near.get(..length).unwrap_or_default())
                    }
                    Err(_) => continue,
                },
                received = self.far.recv(&mut from_far) => match received {
                    Ok(length) => (false, from_far.get(..length).unwrap_or_default()),
                    Err(_) => continue,
                },
            };
            let now = Instant::now();
            for delay in self.fate().into_iter().flatten() {
                if flying.len() < MAX_FLYING {
                    number += 1;
                    flying.push(Reverse((now + delay, number, goes_far, bytes.to_vec())));
                }
            }
        }
    }

    async fn deliver(&self, goes_far: bool, bytes: &[u8], client: Option<SocketAddr>) {
        let _ = match (goes_far, client) {
            (true, _) => self.far.send(bytes).await,
            (false, Some(client)) => self.near.send_to(bytes, client).await,
            (false, None) => return,
        };
    }

    /// After how long a datagram arrives, and when it does so again.
    fn fate(&mut self) -> [Option<Duration>; 2] {
        let Conditions { loss, duplication, .. } = self.conditions;
        if self.sampler.below(1000) < loss {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return [None, None];
        }
        self.counts.arrived.fetch_add(1, Ordering::Relaxed);
        let first = self.delay();
        let comes_again = self.sampler.below(1000) < duplication;
        let second = comes_again.then(|| {
            self.counts.again.fetch_add(1, Ordering::Relaxed);
            self.delay()
        });
        [Some(first), second]
    }

    fn delay(&mut self) -> Duration {
        let Conditions { delay, reordering, .. } = self.conditions;
        if self.sampler.below(1000) >= reordering {
            return delay;
        }
        self.counts.late.fetch_add(1, Ordering::Relaxed);
        let most = (delay * 4).max(LEAST_LATENESS);
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        delay + Duration::from_micros(self.sampler.below(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    /// What a server hears of a thousand datagrams.
    async fn heard(conditions: Conditions) -> (Vec<u16>, Arc<StretchCounts>) {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stretch = Stretch::to(server.local_addr().unwrap(), conditions).await.unwrap();
        let (counts, client) = (stretch.counts(), dial(stretch.address().unwrap()).await.unwrap());
        let stop = Stop::new();
        let carrying = tokio::spawn(stretch.carry(stop.signal()));
        let mut buffer = [0; 16];
        let mut heard = Vec::new();
        for number in 0..1000_u16 {
            client.send(&number.to_le_bytes()).await.unwrap();
            // The queue of the socket is short.
            while counts.arrived() + counts.lost() <= u64::from(number) {
                while let Ok(length) = server.try_recv(&mut buffer) {
                    heard.push(u16::from_le_bytes(buffer[..length].try_into().unwrap()));
                }
                tokio::task::yield_now().await;
            }
        }
        let wanted = usize::try_from(counts.arrived() + counts.again()).unwrap();
        while heard.len() < wanted {
            let length = server.recv(&mut buffer).await.unwrap();
            heard.push(u16::from_le_bytes(buffer[..length].try_into().unwrap()));
        }
        stop.stop();
        carrying.await.unwrap();
        (heard, counts)
    }

    #[tokio::test]
    async fn a_smooth_stretch_changes_nothing() {
        let (heard, _) = heard(Conditions::default()).await;
        assert_eq!(heard, (0..1000).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_rough_one_loses_repeats_and_reorders() {
        let rough =
            Conditions { loss: 300, duplication: 100, reordering: 300, ..Conditions::default() };
        let (heard, counts) = heard(rough).await;
        assert!((600..800).contains(&counts.arrived()), "{counts:?}");
        assert!(counts.again() > 30 && counts.late() > 100, "{counts:?}");
        assert!(heard.windows(2).any(|pair| pair[0] > pair[1]));
    }
}
