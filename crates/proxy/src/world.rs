//! How the connections of each family find their servers.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use worldwire_net::Peer;

use crate::handler::Handler;
use crate::ports::Ports;

/// What a proxy needs to know about a family's connections.
pub trait World: fmt::Debug + Send + Sync + 'static {
    /// The number of bytes of a client's stream that [`server`](Self::server) needs to see; 0 where
    /// servers send first.
    fn opening(&self) -> usize {
        0
    }

    /// The server for a new client's connection: a host and a port. `opening` has at most as many
    /// bytes as requested.
    fn server(&self, peer: Peer, opening: &[u8]) -> String;

    /// A handler that replaces the server addresses in messages to this client, so that its later
    /// connections also pass through the proxy.
    fn rewriter(&self, peer: Peer, ports: &Arc<dyn Ports>) -> Option<Box<dyn Handler>> {
        let _ = (peer, ports);
        None
    }
}

/// A world with a single server, which never sends clients elsewhere.
#[derive(Clone, Debug)]
pub struct OneServer(pub String);

impl World for OneServer {
    fn server(&self, _: Peer, _: &[u8]) -> String {
        self.0.clone()
    }
}

/// How long a server may take to accept a connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
