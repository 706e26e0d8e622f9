//! KI: login, patch and zone servers, each at its own address.
//!
//! To pass a client on, a server names the next server's host and ports in a message. The proxy
//! opens a port for each such address and replaces the address with its own.

use std::net::IpAddr;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_core::json::Json;
use worldwire_net::Peer;

use crate::handler::{Effects, Handler, Next, Passing};
use crate::ports::{Ports, Transport};
use crate::world::World;

/// A KI server, as a proxy's clients reach it.
#[derive(Debug)]
pub struct KiWorld {
    server: String,
    own: IpAddr,
}

impl KiWorld {
    /// The first server that clients connect to, as host and port. Clients reach the proxy at
    /// `own`.
    #[must_use]
    pub fn new(server: String, own: IpAddr) -> Self {
        Self { server, own }
    }
}

impl World for KiWorld {
    fn server(&self, _: Peer, _: &[u8]) -> String {
        self.server.clone()
    }

    fn rewriter(&self, _: Peer, ports: &Arc<dyn Ports>) -> Option<Box<dyn Handler>> {
        Some(Box::new(Rewriter { own: self.own, ports: Arc::clone(ports) }))
    }
}

/// The fields of an address: host, TCP port, UDP port.
const ADDRESSES: [[&str; 3]; 2] =
    [["IP", "TCPPort", "UDPPort"], ["FallbackIP", "FallbackTCPPort", "FallbackUDPPort"]];

/// Replaces the addresses in messages to one client.
#[derive(Debug)]
struct Rewriter {
    own: IpAddr,
    ports: Arc<dyn Ports>,
}

impl Handler for Rewriter {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        let is_address = passing.name.ends_with("MSG_CHARACTERSELECTED")
            || passing.name.ends_with("MSG_SERVERTRANSFER");
        if !is_address || passing.item.from != Side::Server {
            return Next::Done;
        }
        let Some(mut fields) = passing.fields() else { return Next::Done };
        let mut is_changed = false;
        for address in ADDRESSES {
            match self.replace(address, &mut fields) {
                Ok(replaced) => is_changed |= replaced,
                Err(error) => {
                    let name = passing.name;
                    effects
                        .problem(format!("{name}: cannot open a port for {}: {error}", address[0]));
                }
            }
        }
        if is_changed {
            match passing.item.encode(&fields) {
                Ok(body) => effects.change(body),
                Err(error) => {
                    effects.problem(format!(
                        "{}: its address was not replaced: {error}",
                        passing.name
                    ));
                }
            }
        }
        Next::Done
    }
}

impl Rewriter {
    /// Replaces one address, if the message has it. Returns whether it does.
    fn replace(&self, [host, tcp, udp]: [&str; 3], fields: &mut Json) -> std::io::Result<bool> {
        let Some(Json::String(server)) = fields.get(host) else { return Ok(false) };
        // While a zone is being prepared, its address is empty.
        if server.is_empty() {
            return Ok(false);
        }
        let server = server.to_string();
        for (field, transport) in [(tcp, Transport::Tcp), (udp, Transport::Udp)] {
            let port =
                fields.get(field).and_then(Json::as_u64).and_then(|it| u16::try_from(it).ok());
            let Some(port) = port.filter(|port| *port != 0) else { continue };
            let own = self.ports.port_for(&format!("{server}:{port}"), transport)?;
            if let Some(value) = fields.get_mut(field) {
                *value = u64::from(own).into();
            }
        }
        if let Some(value) = fields.get_mut(host) {
            *value = self.own.to_string().as_str().into();
        }
        Ok(true)
    }
}
