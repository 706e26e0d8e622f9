//! Where ages run: their numbers, and the address of the game service.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::Instant;
use worldwire_uru::types::Uuid;

/// How long a resolved name is reused.
const FRESH: Duration = Duration::from_secs(60);
/// The maximum number of temporary ages to remember.
const MAX_TEMPORARY: usize = 4_096;
/// The first number of temporary ages, far above those of nodes.
const FIRST_TEMPORARY: u32 = 0x8000_0000;

/// The addresses and numbers of a shard's ages.
#[derive(Debug)]
pub(super) struct Hosts {
    name: String,
    resolved: tokio::sync::Mutex<Option<(Instant, Ipv4Addr)>>,
    temporary: Mutex<Temporary>,
}

#[derive(Debug, Default)]
struct Temporary {
    next: u32,
    /// Temporary ages and their numbers, the latest last.
    known: VecDeque<(Uuid, u32)>,
}

impl Hosts {
    pub(super) fn new(name: &str) -> Self {
        let (resolved, temporary) = Default::default();
        Self { name: name.to_owned(), resolved, temporary }
    }

    /// The address of the game service. A name is resolved at most once a minute.
    pub(super) async fn ipv4(&self) -> Option<Ipv4Addr> {
        if let Ok(address) = self.name.parse() {
            return Some(address);
        }
        let mut resolved = self.resolved.lock().await;
        if let Some((since, address)) = *resolved
            && since.elapsed() < FRESH
        {
            return Some(address);
        }
        let found = lookup_host((self.name.as_str(), 0)).await;
        let address = found.ok().into_iter().flatten().find_map(|found| match found.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        if address.is_none() {
            tracing::error!(name = self.name, "the name in public_address has no IPv4 address");
        }
        *resolved = address.map(|address| (Instant::now(), address));
        address
    }

    /// The number with which clients join an age: that of its Age node, or one chosen here for a
    /// temporary age.
    pub(super) fn number(&self, age: u32, instance: Uuid) -> u32 {
        if age != 0 {
            return age;
        }
        let mut temporary = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, number)) = temporary.known.iter().find(|(known, _)| *known == instance) {
            return *number;
        }
        if temporary.known.len() >= MAX_TEMPORARY {
            temporary.known.pop_front();
        }
        let number = FIRST_TEMPORARY | temporary.next;
        temporary.next = (temporary.next + 1) % FIRST_TEMPORARY;
        temporary.known.push_back((instance, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_have_addresses_and_numbers() {
        let hosts = Hosts::new("192.0.2.7");
        assert_eq!(hosts.ipv4().await, Some(Ipv4Addr::new(192, 0, 2, 7)));
        let name = Hosts::new("localhost");
        assert_eq!(name.ipv4().await, Some(Ipv4Addr::LOCALHOST));
        assert_eq!(name.ipv4().await, Some(Ipv4Addr::LOCALHOST));
        assert_eq!(hosts.number(10_001, Uuid::ZERO), 10_001);
        let [first, second] = [Uuid([1; 16]), Uuid([2; 16])];
        let number = hosts.number(0, first);
        assert!(number >= FIRST_TEMPORARY && hosts.number(0, second) != number);
        assert_eq!(hosts.number(0, first), number);
    }
}
