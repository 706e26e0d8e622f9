//! The gatekeeper, which locates the other services.

use worldwire_uru::frame::Service;

use super::notification::Notifications;
use super::reply::ask;
use super::{Link, Result, Shard};

/// A connection to a gatekeeper.
#[derive(Clone, Debug)]
pub struct Gatekeeper(Link);

impl Gatekeeper {
    /// Connects to the shard's gatekeeper.
    pub async fn connect(shard: &Shard) -> Result<Self> {
        Ok(Self(Link::connect(shard, Service::Gatekeeper).await?.0))
    }

    /// The underlying link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.0
    }

    /// Asks for the file server. Returns a host with an optional `:port`; see
    /// [`Shard::host_and_port`].
    pub async fn file_server(&self) -> Result<String> {
        let reply = ask!(self.0, gatekeeper::FileSrvIpAddressRequest {
            is_patcher: 0
        } => FileSrvIpAddressReply)?;
        Ok(reply.address.to_text())
    }

    /// Asks for the auth server. Returns a host with an optional `:port`; see
    /// [`Shard::host_and_port`].
    pub async fn auth_server(&self) -> Result<String> {
        let reply = ask!(self.0, gatekeeper::AuthSrvIpAddressRequest {} => AuthSrvIpAddressReply)?;
        Ok(reply.address.to_text())
    }
}

/// Connects to a service. Asks the gatekeeper for its address if the configuration has none.
pub(super) async fn connect(shard: &Shard, service: Service) -> Result<(Link, Notifications)> {
    if shard.host(service).is_some() {
        return Link::connect(shard, service).await;
    }
    let gatekeeper = Gatekeeper::connect(shard).await?;
    let host = match service {
        Service::File => gatekeeper.file_server().await?,
        _ => gatekeeper.auth_server().await?,
    };
    let (host, port) = shard.host_and_port(&host);
    Link::connect_to(shard, service, host, port).await
}
