//! Limits on open connections.

use core::fmt;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits on the number of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The maximum in total. Default 10,000.
    pub total: usize,
    /// The maximum from one address; a whole IPv6 /64 network counts as one address. Default 32.
    pub per_address: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { total: 10_000, per_address: 32 }
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too many are open in total.
    Full,
    /// Too many are open from this address.
    Address,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many connections",
            Self::Address => "too many connections from this address",
        })
    }
}

/// A listener's permits: one for each connection that may be open.
#[derive(Clone, Debug)]
pub struct Permits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    capacity: Capacity,
    in_use: Mutex<InUse>,
}

#[derive(Debug, Default)]
struct InUse {
    total: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// A permit for one connection. Dropping it frees it.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    /// `None` for a proxy that has not named its client yet.
    network: Option<IpAddr>,
}

impl Permits {
    /// Starts with all permits available.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self(Arc::new(Shared { capacity, in_use: Mutex::default() }))
    }

    /// Acquires a permit for a peer at this address, unless none is free in total or for the address.
    pub fn acquire(&self, address: IpAddr) -> Result<Permit, Refused> {
        let mut permit = self.acquire_for_proxy()?;
        permit.name(address)?;
        Ok(permit)
    }

    /// Acquires a permit for a proxy's client whose address is not known yet; see
    /// [`Permit::name`].
    pub(crate) fn acquire_for_proxy(&self) -> Result<Permit, Refused> {
        let mut in_use = self.0.lock();
        if in_use.total >= self.0.capacity.total {
            return Err(Refused::Full);
        }
        in_use.total += 1;
        Ok(Permit { shared: Arc::clone(&self.0), network: None })
    }

    /// The number of permits in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.0.lock().total
    }
}

impl Permit {
    /// Counts the connection for the address of its client, unless none is free for it.
    pub(crate) fn name(&mut self, address: IpAddr) -> Result<(), Refused> {
        let network = network(address);
        let mut in_use = self.shared.lock();
        let count = in_use.by_network.entry(network).or_default();
        if *count >= self.shared.capacity.per_address {
            // Entries of addresses without connections are not kept.
            if *count == 0 {
                in_use.by_network.remove(&network);
            }
            return Err(Refused::Address);
        }
        *count += 1;
        drop(in_use);
        self.network = Some(network);
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_use = self.shared.lock();
        in_use.total = in_use.total.saturating_sub(1);
        let Some(network) = self.network else { return };
        if let Some(count) = in_use.by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                in_use.by_network.remove(&network);
            }
        }
    }
}

/// The address to count: an IPv6 address counts as its whole /64 network, because a household
/// usually has a whole network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn permits_are_counted_by_network_and_returned() {
        let permits = Permits::new(Capacity { total: 4, per_address: 2 });
        let first = permits.acquire(at("2001:db8::1")).unwrap();
        let _second = permits.acquire(at("2001:db8::ffff:1")).unwrap();
        assert_eq!(permits.acquire(at("2001:db8::2")).unwrap_err(), Refused::Address);
        let _third = permits.acquire(at("2001:db8:0:1::1")).unwrap();
        let _fourth = permits.acquire(at("192.0.2.1")).unwrap();
        assert_eq!(permits.acquire(at("192.0.2.9")).unwrap_err(), Refused::Full);
        drop(first);
        let _mapped = permits.acquire(at("::ffff:192.0.2.1")).unwrap();
        drop(_second);
        assert_eq!(permits.acquire(at("192.0.2.1")).unwrap_err(), Refused::Address);
        assert_eq!(permits.in_use(), 3);
    }
}
