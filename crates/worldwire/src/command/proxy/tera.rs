//! `worldwire proxy tera`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use worldwire_net::Signal;
use worldwire_proxy::{HookCommand, OneServer, Proxy, ServerList};
use worldwire_server::WebServer;

use super::Relaying;
use crate::cli::{Common, ProxyTera};
use crate::command::mods;
use crate::output::{Failure, complain, reason, shown};

/// How many times in a row the mods' process can end within a minute of its start. A mod that ends
/// the process while it starts does so only once, because it is then skipped.
const MAX_MOD_FAILURES: u32 = 8;
/// The maximum size of a list of servers, in bytes.
const MAX_LIST: u64 = 16 << 20;

pub(super) fn run(arguments: &ProxyTera, common: &Common) -> Result<(), Failure> {
    let mut relaying = Relaying::new("tera", &arguments.common, common)?;
    if let Some(folder) = &arguments.mods {
        let shared = &arguments.common;
        let command = mods::hook(folder, &shared.data, &shared.folder)?;
        let max_failures = Some(MAX_MOD_FAILURES);
        relaying.hooks.push(HookCommand { command, name: "mods".to_owned(), max_failures });
    }
    let list = match &arguments.server_list {
        Some(file) => Some(read(file)?),
        None => None,
    };
    let first = list.iter().flat_map(|list| list.servers()).next();
    let to = arguments.to.clone().or(first);
    let to = to.ok_or_else(|| Failure::Run("--to: needs a host and a port".to_owned()))?;
    if let Some(list) = list {
        let own = arguments.public_address.unwrap_or_else(|| arguments.listen.ip());
        if own.is_unspecified() {
            let problem = "--listen: the list would name an address that no client can reach";
            return Err(Failure::Run(format!("{problem}; add --public-address")));
        }
        relaying.list = Some(ListToServe { list, own, at: arguments.list_at });
    }
    relaying.run(Box::new(OneServer(to.clone())), arguments.listen, &to)
}

fn read(file: &Path) -> Result<ServerList, Failure> {
    let failed = |error| Failure::io(file, &error);
    let problem = |what: String| {
        complain(&shown(file), &what);
        Failure::Input
    };
    if fs::metadata(file).map_err(failed)?.len() > MAX_LIST {
        return Err(problem(format!("a list of servers can have at most {MAX_LIST} bytes")));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    ServerList::parse(text).map_err(|error| problem(error.to_string()))
}

/// A launcher's list of servers.
pub(super) struct ListToServe {
    list: ServerList,
    /// The proxy's address in the list.
    own: IpAddr,
    /// The address at which the list is served.
    at: SocketAddr,
}

impl ListToServe {
    /// Opens a port for each server except `to`, which uses the main port, and serves the list
    /// until the signal fires. Returns the address at which it is served.
    pub(super) async fn serve(
        self,
        proxy: &Proxy,
        to: &str,
        signal: Signal,
    ) -> Result<SocketAddr, Failure> {
        let Self { list, own, at } = self;
        let text = list.with_addresses(own, |server| match server == to {
            true => Ok(proxy.address().port()),
            false => proxy.port_for(server),
        });
        let text =
            text.map_err(|error| Failure::Run(format!("cannot open a port: {}", reason(&error))))?;
        let failed = |error| Failure::Run(format!("--list-at {at}: {}", reason(&error)));
        let web = WebServer::bind(at).await.map_err(failed)?;
        let at = web.address().map_err(failed)?;
        tokio::spawn(web.serve_document(("text/xml; charset=utf-8", text), signal));
        Ok(at)
    }
}
