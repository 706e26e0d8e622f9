//! Selects the shard, by a client's `server.ini` or by the shard's own directory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;
use worldwire_client::uru::Shard;
use worldwire_core::Field as _;
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_server::uru::{CONFIG, ShardConfig, keys};
use worldwire_uru::frame::Service;
use worldwire_uru::types::Uuid;

use crate::cli::ClientUru;
use crate::command::system;
use crate::input;
use crate::output::{Failure, shown};

pub(super) fn shard(arguments: &ClientUru) -> Result<Shard, Failure> {
    let path = &arguments.shard;
    let (text, listen) = match path.is_dir() {
        true => of_folder(path)?,
        false => (input::read_text(path)?, None),
    };
    let parsed = Shard::parse(&text);
    let mut shard = parsed.map_err(|error| Failure::Run(format!("{}: {error}", shown(path))))?;
    // Clients on other machines need the public address. From this machine, that address could lead
    // to another shard.
    if let Some(listen) = listen {
        let host = Some(reachable(listen.ip()).to_string());
        (shard.gatekeeper, shard.auth, shard.file) = (host.clone(), host.clone(), host);
        shard.port = listen.port();
    }
    if let Some(at) = &arguments.at {
        let (host, port) = shard.host_and_port(at);
        let (host, port) = (Some(host.to_owned()), port);
        (shard.gatekeeper, shard.auth, shard.file) = (host.clone(), host.clone(), host);
        shard.port = port;
    }
    shard.build = arguments.build;
    shard.branch = arguments.branch;
    shard.patience = Duration::from_secs(arguments.patience.max(1));
    if let Some(product) = &arguments.product {
        let json = worldwire_core::json::Json::from(&**product);
        let parsed = Uuid::from_json((&json).into());
        shard.product = parsed.map_err(|error| Failure::Run(format!("--product: {error}")))?;
    }
    check_encryption(&shard, arguments)?;
    Ok(shard)
}

/// The `server.ini` lines for clients of the shard in a directory and, if the shard is running, the
/// address that it listens on. Options and the system can make that address differ from the
/// configured one.
fn of_folder(folder: &Path) -> Result<(String, Option<SocketAddr>), Failure> {
    let asked = Admin::ask_running(folder, Request::ServerIni);
    // A shard of an older version does not know this request.
    if let Ok(Some(answer)) = system::runtime()?.block_on(asked)
        && let Some(text) = answer.first().and_then(Json::as_str)
    {
        // A shard of an older version does not report its address.
        let listen = answer.get(1).and_then(Json::as_str).and_then(|text| text.parse().ok());
        return Ok((text.to_owned(), listen));
    }
    let file = folder.join(CONFIG);
    let text = input::read_text(&file)?;
    let config = ShardConfig::parse(&text)
        .map_err(|error| Failure::Run(format!("{}: {error}", shown(&file))))?;
    if config.public_port() == 0 {
        return Err(Failure::Run(format!(
            "{}: the shard is not running, and the system chooses its port when it starts",
            shown(folder)
        )));
    }
    let file = folder.join(&config.keys);
    let ring =
        keys::load(&file).map_err(|error| Failure::Run(format!("{}: {error}", shown(&file))))?;
    Ok((keys::server_ini(&ring, &config), None))
}

/// An address of this machine at which a server listens.
fn reachable(listen: IpAddr) -> IpAddr {
    match listen {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// An eavesdropper on an unencrypted connection could log in. Loopback connections have no
/// eavesdroppers.
fn check_encryption(shard: &Shard, arguments: &ClientUru) -> Result<(), Failure> {
    if arguments.plain {
        return Ok(());
    }
    for service in [Service::Gatekeeper, Service::Auth] {
        let place = shard.host(service);
        let is_here = place.is_none_or(|(host, _)| {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        });
        if !is_here && !shard.encrypts(service) {
            return Err(Failure::Run(format!(
                "{}: has no {} key; use --plain to continue without encryption",
                shown(&arguments.shard),
                service.name()
            )));
        }
    }
    Ok(())
}
