//! The connections to the auth and margin servers.

mod auth;
mod figures;
mod margin;

use std::sync::Arc;
use std::time::Duration;

use worldwire_mxo::crypt::Random;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{AuthServerConfig, LoginConfig, LoginConnection, MarginServerConfig};
use worldwire_net::{Accept, Clock, Peer};

pub(super) use figures::{LoginFigures, Page, router};

use self::auth::AuthClient;
use self::margin::MarginClient;
use super::config::MxoConfig;
use super::keys::{ServerKeys, random};
use super::realm::Realm;
use crate::secrets::Secrets;

/// The state that all connections to the auth and margin servers share.
#[derive(Debug)]
pub(super) struct Logins {
    pub(super) realm: Realm,
    pub(super) figures: LoginFigures,
    clock: Clock,
    auth: Arc<AuthServerConfig>,
    margin: Arc<MarginServerConfig>,
    auth_settings: Arc<LoginConfig>,
    margin_settings: Arc<LoginConfig>,
    secrets: Option<Arc<Secrets>>,
}

impl Logins {
    /// Creates the shared state. `epoch` is the clock's zero, in time since 1970. The listeners
    /// must use the same clock.
    pub(super) fn new(
        config: &MxoConfig,
        keys: ServerKeys,
        realm: Realm,
        clock: Clock,
        epoch: Duration,
        secrets: Option<Arc<Secrets>>,
    ) -> Self {
        let settings = |channel| {
            let mut settings = LoginConfig::server(channel, epoch);
            settings.max_message_bytes = config.limits.message_bytes;
            settings
        };
        let mut margin_settings = settings(Channel::Margin);
        margin_settings.idle_time = Duration::from_secs(config.login.idle_seconds.into());
        let margin = MarginServerConfig {
            key: keys.server.public().clone(),
            message_of_the_day: config.message_of_the_day().map(str::to_owned),
        };
        let mut auth = AuthServerConfig::new(keys.server, keys.public_key);
        auth.always_sends_key = config.keys.always_send;
        auth.certificate_seconds = config.login.certificate_seconds;
        Self {
            realm,
            figures: LoginFigures::default(),
            clock,
            auth: auth.into(),
            margin: margin.into(),
            auth_settings: settings(Channel::Auth).into(),
            margin_settings: margin_settings.into(),
            secrets,
        }
    }

    /// How long a client may send nothing on the margin channel while it has no character in the
    /// world.
    fn idle_time(&self) -> Duration {
        self.margin_settings.idle_time
    }
}

/// Accepts connections to the auth server.
#[derive(Debug)]
pub(super) struct AuthAcceptor(pub(super) Arc<Logins>);

impl Accept for AuthAcceptor {
    type Connection = LoginConnection;
    type Application = AuthClient;

    fn accept(&self, peer: Peer, now: Duration) -> (LoginConnection, AuthClient) {
        let (random, seed) = fresh();
        let settings = Arc::clone(&self.0.auth_settings);
        let client = AuthClient::new(Arc::clone(&self.0), peer, random);
        (LoginConnection::server(settings, &seed, now), client)
    }
}

/// Accepts connections to the margin server.
#[derive(Debug)]
pub(super) struct MarginAcceptor(pub(super) Arc<Logins>);

impl Accept for MarginAcceptor {
    type Connection = LoginConnection;
    type Application = MarginClient;

    fn accept(&self, peer: Peer, now: Duration) -> (LoginConnection, MarginClient) {
        let (random, seed) = fresh();
        let settings = Arc::clone(&self.0.margin_settings);
        let client = MarginClient::new(Arc::clone(&self.0), peer, random);
        (LoginConnection::server(settings, &seed, now), client)
    }
}

/// A new connection's random numbers, and the seed of its initialisation vectors.
fn fresh() -> (Random, [u8; 16]) {
    // This worked at startup. If it fails now, the panic ends only this connection.
    #[expect(clippy::expect_used, reason = "predictable keys would give away what is sent")]
    let mut random = random().expect("the system has random numbers");
    let seed = random.bytes();
    (random, seed)
}
