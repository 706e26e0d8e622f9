//! Compares the new capture with the messages that were written to it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{SocketAddr, SocketAddrV4};

use worldwire_core::Side;

/// The names of the messages in each conversation. Conversations between the same ends count as
/// one.
#[derive(Debug, Default)]
pub(super) struct Names {
    of: HashMap<Route, [Sequence; 2]>,
}

/// The ends of a conversation, client first, and whether it is UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Route {
    pub(super) ends: [SocketAddr; 2],
    pub(super) is_udp: bool,
}

/// The names that one side has sent, in order.
#[derive(Clone, Debug, Default)]
struct Sequence {
    count: u64,
    digest: DefaultHasher,
}

impl Route {
    pub(super) fn new(ends: [SocketAddrV4; 2], is_udp: bool) -> Self {
        Self { ends: ends.map(SocketAddr::V4), is_udp }
    }
}

impl Names {
    pub(super) fn add(&mut self, route: Route, from: Side, name: &str) {
        let Sequence { count, digest } = &mut self.of.entry(route).or_default()[from.index()];
        *count += 1;
        name.hash(digest);
    }

    /// The conversations that differ between two captures, or exist in only one of them.
    pub(super) fn differing(&self, other: &Self) -> Vec<Route> {
        let is_same = |route: &Route| {
            let pair = self.of.get(route).zip(other.of.get(route));
            pair.is_some_and(|(one, other)| {
                one.iter().zip(other).all(|(one, other)| one.is_same(other))
            })
        };
        let all =
            self.of.keys().chain(other.of.keys().filter(|route| !self.of.contains_key(route)));
        let mut differing: Vec<Route> = all.filter(|route| !is_same(route)).copied().collect();
        differing.sort_unstable();
        differing
    }
}

impl Sequence {
    fn is_same(&self, other: &Self) -> bool {
        (self.count, self.digest.finish()) == (other.count, other.digest.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(routes: &[(u16, Side, &str)]) -> Names {
        let mut names = Names::default();
        for (port, from, name) in routes {
            names.add(route(*port), *from, name);
        }
        names
    }

    fn route(port: u16) -> Route {
        let end = |port| SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port);
        Route::new([end(port), end(1)], false)
    }

    #[test]
    fn names_are_compared_in_order_by_sender_and_conversation() {
        use Side::{Client, Server};
        let written =
            names(&[(2, Client, "a"), (2, Server, "b"), (2, Client, "c"), (3, Client, "a")]);
        // Only the order within a side matters.
        let same = names(&[(3, Client, "a"), (2, Server, "b"), (2, Client, "a"), (2, Client, "c")]);
        assert_eq!(written.differing(&same), []);
        for other in [
            &[(2, Client, "c"), (2, Server, "b"), (2, Client, "a"), (3, Client, "a")][..],
            &[(2, Client, "a"), (2, Server, "b"), (3, Client, "a")],
            &[(2, Client, "a"), (2, Server, "x"), (2, Client, "c"), (3, Client, "a")],
            &[(2, Server, "a"), (2, Client, "b"), (2, Client, "c"), (3, Client, "a")],
        ] {
            assert_eq!(written.differing(&names(other)), [route(2)], "{other:?}");
            assert_eq!(names(other).differing(&written), [route(2)], "{other:?}");
        }
        assert_eq!(written.differing(&names(&[(4, Client, "a")])), [2, 3, 4].map(route));
    }
}
