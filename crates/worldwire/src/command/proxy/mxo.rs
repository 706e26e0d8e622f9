//! `worldwire proxy mxo`.

use std::net::SocketAddr;
use std::path::Path;

use worldwire_mxo::crypt::{KeyUse, PrivateKey};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::login::{LoginKeys, OwnLoginKeys};
use worldwire_proxy::{OneServer, Proxy};
use worldwire_server::mxo::config::KeySettings;
use worldwire_server::mxo::keys::{
    KeysError, PUBLIC_KEY_FILE, ServerKeys, read_private, read_public,
};

use super::Relaying;
use crate::cli::{Common, ProxyMxo};
use crate::output::{Failure, reason, shown};

pub(super) fn run(arguments: &ProxyMxo, common: &Common) -> Result<(), Failure> {
    let ProxyMxo { listen, to, margin, auth, auth_at, common: shared, .. } = arguments;
    let mut relaying = Relaying::new("mxo", shared, common)?;
    let keys = login_keys(arguments)?;
    let is_own = matches!(keys, Some(LoginKeys::Own(_)));
    let public_key = is_own.then(|| shown(&shared.folder.join(PUBLIC_KEY_FILE)));
    if let Some(keys) = keys {
        relaying.keys.set(keys);
    }
    relaying.logins = Some(LoginServers {
        margin: margin.clone().unwrap_or_else(|| to.clone()),
        auth: auth.clone().map(|auth| (*auth_at, auth)),
        public_key,
    });
    relaying.run(Box::new(OneServer(to.clone())), *listen, to)
}

/// The keys that decrypt logins, if any were given.
fn login_keys(arguments: &ProxyMxo) -> Result<Option<LoginKeys>, Failure> {
    let ProxyMxo { server_key, signing_key, server_pubkey, common, .. } = arguments;
    if let Some(file) = server_key {
        return Ok(Some(LoginKeys::Server(Box::new(private(KeyUse::Server, file)?))));
    }
    let Some(signing) = signing_key else { return Ok(None) };
    private(KeyUse::Signing, signing)?;
    let settings = KeySettings {
        signing: std::path::absolute(signing).map_err(|error| Failure::io(signing, &error))?,
        ..KeySettings::default()
    };
    let ServerKeys { server: key, public_key, .. } =
        ServerKeys::load_or_create(&common.folder, &settings).map_err(failed)?;
    let server = match server_pubkey {
        Some(file) => Some(public(file)?),
        None => None,
    };
    Ok(Some(LoginKeys::Own(Box::new(OwnLoginKeys { key, public_key, server }))))
}

fn private(purpose: KeyUse, file: &Path) -> Result<PrivateKey, Failure> {
    read_private(purpose, file).map_err(failed)?.ok_or_else(|| missing(file))
}

fn public(file: &Path) -> Result<PublicKeyFile, Failure> {
    read_public(file).map_err(failed)?.ok_or_else(|| missing(file))
}

fn missing(file: &Path) -> Failure {
    Failure::Run(format!("{}: no such file", shown(file)))
}

fn failed(error: KeysError) -> Failure {
    Failure::Run(error.to_string())
}

/// The servers that handle logins.
pub(super) struct LoginServers {
    /// The margin server.
    margin: String,
    /// Where to listen in place of the auth server, and that server's address.
    auth: Option<(SocketAddr, String)>,
    /// The public key that clients need.
    public_key: Option<String>,
}

impl LoginServers {
    /// Opens the servers' ports and returns lines about them. Clients find the margin server at the
    /// world's address, over TCP.
    pub(super) async fn listen(
        self,
        proxy: &Proxy,
        listen: SocketAddr,
    ) -> Result<Vec<String>, Failure> {
        let Self { margin, auth, public_key } = self;
        let failed = |at: SocketAddr| {
            move |error: std::io::Error| {
                Failure::Run(format!("cannot listen on {at}: {}", reason(&error)))
            }
        };
        let mut lines = Vec::new();
        let at = proxy.address();
        let bound = match proxy.listen_for(margin.clone(), at).await {
            // A port that the system chose for UDP may already be in use for TCP.
            Err(_) if listen.port() == 0 => proxy.listen_for(margin.clone(), listen).await,
            bound => bound,
        };
        let bound = bound.map_err(failed(at))?;
        lines.push(format!("margin connections to {bound} are relayed to {margin}"));
        if let Some((at, auth)) = auth {
            let bound = proxy.listen_for(auth.clone(), at).await.map_err(failed(at))?;
            lines.push(format!("auth connections to {bound} are relayed to {auth}"));
        }
        if let Some(file) = public_key {
            lines.push(format!("clients need the public key {file}"));
        }
        Ok(lines)
    }
}
