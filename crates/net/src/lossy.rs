//! Simulates a bad network between a client and a server that are unaware of it: datagrams are lost,
//! delayed, duplicated or reordered.

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

use crate::accept::counters;
use crate::stop::Signal;
use crate::udp::dial;

/// What happens to each datagram, in either direction. By default, nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The time it takes to arrive.
    pub delay: Duration,
    /// Lost datagrams per thousand.
    pub loss: u64,
    /// Datagrams per thousand that arrive twice.
    pub duplication: u64,
    /// Datagrams per thousand that arrive late, by up to four times the delay or 50 ms, whichever
    /// is more.
    pub reordering: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Reordering adds up to this much time even if four times the delay is less.
const MIN_LATENESS: Duration = Duration::from_millis(50);
/// Limit on datagrams in transit; beyond it, they are lost.
const MAX_IN_FLIGHT: usize = 16_384;
/// The maximum length of a datagram.
const MAX_DATAGRAM: usize = 65_535;

/// A bad link between one client on this machine and a server.
#[derive(Debug)]
pub struct LossyLink {
    near: UdpSocket,
    far: UdpSocket,
    conditions: Conditions,
    sampler: Sampler,
    counts: Arc<LinkCounts>,
}

/// Counts the datagrams of a [`LossyLink`].
#[derive(Debug, Default)]
pub struct LinkCounts {
    arrived: AtomicU64,
    lost: AtomicU64,
    duplicated: AtomicU64,
    late: AtomicU64,
}

impl LinkCounts {
    counters! {
        /// Datagrams that arrived, not counting duplicates.
        arrived
        /// Lost datagrams.
        lost
        /// Datagrams that arrived twice.
        duplicated
        /// Datagrams that arrived late.
        late
    }
}

/// A datagram in transit, ordered by arrival time and then by age.
type InFlight = Reverse<(Instant, u64, bool, Vec<u8>)>;

impl LossyLink {
    /// A link to a server.
    pub async fn to(server: SocketAddr, conditions: Conditions) -> io::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let far = dial(server).await?;
        let sampler = Sampler::new(conditions.seed);
        Ok(Self { near, far, conditions, sampler, counts: Arc::default() })
    }

    /// The address that the client connects to instead of the server.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.near.local_addr()
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> Arc<LinkCounts> {
        Arc::clone(&self.counts)
    }

    /// Forwards datagrams until the signal fires.
    pub async fn run(mut self, mut signal: Signal) {
        let mut in_flight: BinaryHeap<InFlight> = BinaryHeap::new();
        let (mut from_near, mut from_far) = (vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM]);
        let mut client = None;
        let mut number = 0;
        loop {
            let next = in_flight.peek().map(|Reverse((at, ..))| *at);
            // Errors report that an earlier datagram could not be delivered.
            let (to_server, bytes) = tokio::select! {
                () = signal.stopping() => return,
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    if let Some(Reverse((.., to_server, bytes))) = in_flight.pop() {
                        self.deliver(to_server, &bytes, client).await;
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
                if in_flight.len() < MAX_IN_FLIGHT {
                    number += 1;
                    in_flight.push(Reverse((now + delay, number, to_server, bytes.to_vec())));
                }
            }
        }
    }

    async fn deliver(&self, to_server: bool, bytes: &[u8], client: Option<SocketAddr>) {
        let _ = match (to_server, client) {
            (true, _) => self.far.send(bytes).await,
            (false, Some(client)) => self.near.send_to(bytes, client).await,
            (false, None) => return,
        };
    }

    /// The delays after which a datagram arrives and, if duplicated, arrives again.
    fn fate(&mut self) -> [Option<Duration>; 2] {
        let Conditions { loss, duplication, .. } = self.conditions;
        if self.sampler.below(1000) < loss {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return [None, None];
        }
        self.counts.arrived.fetch_add(1, Ordering::Relaxed);
        let first = self.delay();
        let is_duplicated = self.sampler.below(1000) < duplication;
        let second = is_duplicated.then(|| {
            self.counts.duplicated.fetch_add(1, Ordering::Relaxed);
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
        let most = (delay * 4).max(MIN_LATENESS);
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        delay + Duration::from_micros(self.sampler.below(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    /// The datagrams that arrive at a server, out of a thousand.
    async fn received(conditions: Conditions) -> (Vec<u16>, Arc<LinkCounts>) {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let link = LossyLink::to(server.local_addr().unwrap(), conditions).await.unwrap();
        let (counts, client) = (link.counts(), dial(link.address().unwrap()).await.unwrap());
        let stop = Stop::new();
        let running = tokio::spawn(link.run(stop.signal()));
        let mut buffer = [0; 16];
        let mut received = Vec::new();
        for number in 0..1000_u16 {
            client.send(&number.to_le_bytes()).await.unwrap();
            // The socket's queue is short.
            while counts.arrived() + counts.lost() <= u64::from(number) {
                while let Ok(length) = server.try_recv(&mut buffer) {
                    received.push(u16::from_le_bytes(buffer[..length].try_into().unwrap()));
                }
                tokio::task::yield_now().await;
            }
        }
        let wanted = usize::try_from(counts.arrived() + counts.duplicated()).unwrap();
        while received.len() < wanted {
            let length = server.recv(&mut buffer).await.unwrap();
            received.push(u16::from_le_bytes(buffer[..length].try_into().unwrap()));
        }
        stop.stop();
        running.await.unwrap();
        (received, counts)
    }

    #[tokio::test]
    async fn a_perfect_link_changes_nothing() {
        let (received, _) = received(Conditions::default()).await;
        assert_eq!(received, (0..1000).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_bad_link_loses_duplicates_and_reorders() {
        let bad =
            Conditions { loss: 300, duplication: 100, reordering: 300, ..Conditions::default() };
        let (received, counts) = received(bad).await;
        assert!((600..800).contains(&counts.arrived()), "{counts:?}");
        assert!(counts.duplicated() > 30 && counts.late() > 100, "{counts:?}");
        assert!(received.windows(2).any(|pair| pair[0] > pair[1]));
    }
}
