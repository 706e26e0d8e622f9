//! `worldwire proxy uru`.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use worldwire_client::uru::Shard;
use worldwire_proxy::UruWorld;
use worldwire_server::uru::config::PORT;
use worldwire_server::uru::keys;
use worldwire_uru::connect::ConnectionType;
use worldwire_uru::connection::RelayKeys;
use worldwire_uru::crypt::key::{PrimeKind, ServerKind};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::frame::Service;

use super::Relaying;
use crate::cli::{Common, ProxyUru, Switch, Target};
use crate::output::{Failure, shown, write_all};

pub(super) fn run(arguments: &ProxyUru, common: &Common) -> Result<(), Failure> {
    let mut relaying = Relaying::new("uru", &arguments.common, common)?;
    let own = own_address(arguments)?;
    let ini = match &arguments.server_ini {
        Some(file) => Some(ServerIni::read(file)?),
        None => None,
    };
    let mut shard = match (&arguments.to, &ini) {
        (Some(to), _) => Shard::new(to),
        (None, Some(ini)) => ini.shard.clone(),
        (None, None) => return Err(Failure::Run("--to: needs a host".to_owned())),
    };
    if let Some(ini) = ini {
        let own_keys = own_keys(&arguments.common.folder.join("keys.toml"), common)?;
        if let Some(file) = &arguments.client_ini {
            let is_encrypted = arguments.client_encryption.map(|it| it == Switch::On);
            let address = (own, arguments.listen.port());
            let text = ini.for_client(address, &own_keys, is_encrypted);
            let target = Target { output: Some(file.clone()), force: arguments.force };
            write_all(&target, text.as_bytes())?;
            common.note(&shown(file), "this is the server.ini for the client");
        }
        shard.keys = ini.shard.keys;
        relaying.keys.set(RelayKeys::Separate { own: own_keys, server: shard.keys.clone() });
    }
    let (world, to) = world(&shard, own)?;
    relaying.run(Box::new(world), arguments.listen, &to)
}

/// The shard behind the proxy and its address.
fn world(shard: &Shard, own: Ipv4Addr) -> Result<(UruWorld, String), Failure> {
    let first = [Service::Gatekeeper, Service::Auth].into_iter().find_map(|it| shard.host(it));
    let (host, port) = first.ok_or_else(|| Failure::Run("--to: needs a host".to_owned()))?;
    let mut world = UruWorld::new(host.to_owned(), port, own);
    for (service, kind) in [
        (Service::Gatekeeper, ConnectionType::CliToGateKeeper),
        (Service::Auth, ConnectionType::CliToAuth),
        (Service::File, ConnectionType::CliToFile),
    ] {
        if let Some((host, port)) = shard.host(service) {
            world = world.with_server(kind, format!("{host}:{port}"));
        }
    }
    Ok((world, format!("{host}:{port}")))
}

/// The address that clients are told to connect to.
fn own_address(arguments: &ProxyUru) -> Result<Ipv4Addr, Failure> {
    let own = match (arguments.public_address, arguments.listen.ip().to_canonical()) {
        (Some(own), _) => own,
        (None, IpAddr::V4(own)) if !own.is_unspecified() => own,
        (None, IpAddr::V6(own)) if own.is_loopback() => Ipv4Addr::LOCALHOST,
        (None, own) => {
            let problem = format!("--listen: Uru clients cannot be told to connect to {own}");
            return Err(Failure::Run(format!("{problem}; add --public-address")));
        }
    };
    Ok(own)
}

/// The proxy's own keys, from a file that is created if it does not exist.
fn own_keys(file: &Path, common: &Common) -> Result<KeyRing, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(format!("{}: {error}", shown(file)));
    if file.exists() {
        return keys::load(file).map_err(|error| failed(&error));
    }
    let ring = keys::generate(PrimeKind::Safe);
    keys::save(&ring, file).map_err(|error| Failure::io(file, &error))?;
    common.note(&shown(file), "generated the proxy's keys");
    Ok(ring)
}

/// A shard's `server.ini`.
struct ServerIni {
    text: String,
    shard: Shard,
}

impl ServerIni {
    fn read(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file).map_err(|error| Failure::io(file, &error))?;
        let shard = Shard::parse(&text)
            .map_err(|error| Failure::Run(format!("{}: {error}", shown(file))))?;
        Ok(Self { text, shard })
    }

    /// The file for a client of the proxy: the same lines, but with the proxy's address and public
    /// keys. Clients do not encrypt connections to a service without keys in the file. By default,
    /// the file omits the keys of the services that have none in this `server.ini`.
    fn for_client(
        &self,
        (own, port): (Ipv4Addr, u16),
        own_keys: &KeyRing,
        is_encrypted: Option<bool>,
    ) -> String {
        let mut text = String::new();
        for line in self.text.lines().filter(|line| !is_replaced(line)) {
            let _ = writeln!(text, "{line}");
        }
        if port != PORT {
            let _ = writeln!(text, "Server.Port {port}");
        }
        for service in ["File", "Auth", "Gate"] {
            let _ = writeln!(text, "Server.{service}.Host \"{own}\"");
        }
        let mut needed = KeyRing::new();
        for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
            if is_encrypted.unwrap_or_else(|| self.shard.keys.public(kind).is_some())
                && let Some(key) = own_keys.private(kind)
            {
                needed.insert_private(key.clone());
            }
        }
        text.push_str(&needed.format(KeyFileFormat::ServerIni));
        text
    }
}

/// Whether a line names an address, a port or a key.
fn is_replaced(line: &str) -> bool {
    let name = line.trim().split([' ', '\t', '=']).next().unwrap_or_default().to_ascii_lowercase();
    name == "server.port"
        || name.strip_prefix("server.").is_some_and(|rest| {
            rest.split_once('.').is_some_and(|(_, last)| ["host", "n", "x", "g"].contains(&last))
        })
}
