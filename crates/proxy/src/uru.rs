//! Uru: one address for the gatekeeper, the auth server, the file servers and all game servers.
//!
//! Clients learn the addresses of servers from replies. The proxy replaces each address with its
//! own and remembers the original: the client's next connection of that kind goes there, and a
//! connection to an age goes to the server that was named for that age. All servers of a shard
//! share one port.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use worldwire_core::json::Json;
use worldwire_core::{Reader, Side};
use worldwire_net::Peer;
use worldwire_uru::connect::{ConnectData, ConnectPacket, ConnectionType};

use crate::handler::{Effects, Handler, Next, Passing};
use crate::ports::Ports;
use crate::world::World;

/// A shard, as a proxy's clients reach it.
#[derive(Debug)]
pub struct UruWorld {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The shard's host, for servers that neither a reply nor the configuration names.
    host: String,
    port: u16,
    /// The address at which clients reach the proxy.
    own: Ipv4Addr,
    /// The configured servers.
    servers: HashMap<ConnectionType, String>,
    /// The servers to which replies have referred each client.
    named: Mutex<HashMap<(IpAddr, Purpose), String>>,
}

/// The purpose of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    /// A kind of server.
    Kind(ConnectionType),
    /// An age instance, by its UUID as text.
    Age(String),
}

/// The length of the longest connect packet: one for a game server.
const CONNECT_BYTES: usize = 67;
/// The maximum number of remembered addresses. When it is reached, all are forgotten: clients ask
/// again before each connection.
const MAX_NAMED: usize = 65_536;

impl UruWorld {
    /// The shard at a host and port. Clients reach the proxy at `own`.
    #[must_use]
    pub fn new(host: String, port: u16, own: Ipv4Addr) -> Self {
        let (servers, named) = (HashMap::new(), Mutex::default());
        Self { shared: Arc::new(Shared { host, port, own, servers, named }) }
    }

    /// Sets the host and port of one kind of server, for clients that do not ask for it.
    #[must_use]
    pub fn with_server(mut self, kind: ConnectionType, server: String) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.servers.insert(kind, server);
        }
        self
    }
}

impl World for UruWorld {
    fn opening(&self) -> usize {
        CONNECT_BYTES
    }

    fn server(&self, peer: Peer, opening: &[u8]) -> String {
        let Shared { host, port, servers, named, .. } = &*self.shared;
        let client = peer.address.ip().to_canonical();
        let named = named.lock().unwrap_or_else(PoisonError::into_inner);
        let address = purposes(opening).find_map(|purpose| named.get(&(client, purpose)));
        let kind = || opening.first().map(|kind| ConnectionType(*kind));
        match address.or_else(|| servers.get(&kind()?)) {
            Some(address) if address.contains(':') => address.clone(),
            Some(address) => format!("{address}:{port}"),
            None => format!("{host}:{port}"),
        }
    }

    fn rewriter(&self, peer: Peer, _: &Arc<dyn Ports>) -> Option<Box<dyn Handler>> {
        let client = peer.address.ip().to_canonical();
        Some(Box::new(Rewriter { shared: Arc::clone(&self.shared), client }))
    }
}

/// The possible purposes of a connection, judging by its first bytes, most specific first.
fn purposes(opening: &[u8]) -> impl Iterator<Item = Purpose> {
    let packet = ConnectPacket::decode_fields(&mut Reader::new(opening)).ok();
    let age = packet.and_then(|packet| match packet.data {
        ConnectData::Game(game) => Some(Purpose::Age(game.age_instance_id.to_string())),
        _ => None,
    });
    let kind = opening.first().map(|kind| Purpose::Kind(ConnectionType(*kind)));
    age.into_iter().chain(kind)
}

/// Replaces the addresses in replies to one client.
#[derive(Debug)]
struct Rewriter {
    shared: Arc<Shared>,
    client: IpAddr,
}

impl Handler for Rewriter {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        if passing.item.from != Side::Server {
            return Next::Done;
        }
        let (field, kind) = match passing.name {
            "gatekeeper.FileSrvIpAddressReply" => ("address", ConnectionType::CliToFile),
            "gatekeeper.AuthSrvIpAddressReply" => ("address", ConnectionType::CliToAuth),
            "auth.ServerAddr" => ("serverAddress", ConnectionType::CliToAuth),
            "auth.AgeReply" | "auth.AgeReplyEx" => ("gameServerAddress", ConnectionType::CliToGame),
            _ => return Next::Done,
        };
        let Some(mut fields) = passing.fields() else { return Next::Done };
        let Some(Json::String(address)) = fields.get(field) else { return Next::Done };
        // A refused request has no address.
        if address.is_empty() || &**address == "0.0.0.0" {
            return Next::Done;
        }
        let address = address.to_string();
        if let Some(Json::String(age)) = fields.get("ageInstanceId") {
            self.remember(Purpose::Age(age.to_string()), &address);
        }
        self.remember(Purpose::Kind(kind), &address);
        if let Some(address) = fields.get_mut(field) {
            *address = self.shared.own.to_string().as_str().into();
        }
        match passing.item.encode(&fields) {
            Ok(body) => effects.change(body),
            Err(error) => {
                effects.problem(format!("{}: its address was not replaced: {error}", passing.name))
            }
        }
        Next::Done
    }
}

impl Rewriter {
    fn remember(&self, purpose: Purpose, address: &str) {
        let mut named = self.shared.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= MAX_NAMED {
            named.clear();
        }
        named.insert((self.client, purpose), address.to_owned());
    }
}
