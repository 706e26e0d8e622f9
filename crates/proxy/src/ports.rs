//! Additional ports, which a proxy opens when a server refers clients to other servers.

use core::fmt;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use worldwire_net::{Options, Signal, tcp, udp};

use crate::gate::{Gate, Shared};

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Opens ports for additional servers.
pub trait Ports: fmt::Debug + Send + Sync {
    /// The proxy's port for a server, given as host and port. The same server always has the same
    /// port.
    ///
    /// # Errors
    /// No port can be opened, or too many servers were named.
    fn port_for(&self, server: &str, transport: Transport) -> io::Result<u16>;
}

/// The maximum number of additional ports.
const MAX_PORTS: usize = 1_024;

/// The additional ports of a running proxy.
#[derive(Debug)]
pub(crate) struct OpenPorts {
    shared: Arc<Shared>,
    at: IpAddr,
    options: Options,
    signal: Signal,
    open: Mutex<HashMap<(String, Transport), u16>>,
}

impl OpenPorts {
    pub(crate) fn new(shared: Arc<Shared>, at: IpAddr, options: Options, signal: Signal) -> Self {
        Self { shared, at, options, signal, open: Mutex::default() }
    }

    /// Opens a port and relays its connections until the proxy stops.
    fn open(self: &Arc<Self>, server: &str, transport: Transport) -> io::Result<u16> {
        let any = SocketAddr::new(self.at, 0);
        let gate = Gate::to_server(Arc::clone(&self.shared), server.to_owned(), Arc::clone(self));
        let (options, signal) = (self.options, self.signal.clone());
        let address = match transport {
            Transport::Tcp => {
                let listener = tcp::Listener::from_std(std::net::TcpListener::bind(any)?, options)?;
                let address = listener.local_addr()?;
                tokio::spawn(listener.relay(Arc::new(gate), signal));
                address
            }
            Transport::Udp => {
                let listener = udp::Listener::from_std(std::net::UdpSocket::bind(any)?, options)?;
                let address = listener.local_addr()?;
                tokio::spawn(listener.relay(Arc::new(gate), signal));
                address
            }
        };
        tracing::debug!(server, port = address.port(), ?transport, "opened a port for a server");
        Ok(address.port())
    }
}

impl Ports for Arc<OpenPorts> {
    fn port_for(&self, server: &str, transport: Transport) -> io::Result<u16> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = open.get(&(server.to_owned(), transport)) {
            return Ok(*port);
        }
        if open.len() >= MAX_PORTS {
            return Err(io::Error::other(format!(
                "the limit of {MAX_PORTS} ports has been reached"
            )));
        }
        let port = self.open(server, transport)?;
        open.insert((server.to_owned(), transport), port);
        Ok(port)
    }
}
