//! A server with logins, apart from its sockets: an acceptor for each channel, and the worlds that
//! they share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use worldwire_mxo::connection::{Connection, ServerConfig as ChannelConfig, Session};
use worldwire_mxo::login::LoginConnection;
use worldwire_net::udp::AcceptDatagrams;
use worldwire_net::{Accept, Clock, Peer};

use super::client::Client;
use super::config::MxoConfig;
use super::keys::ServerKeys;
use super::login::{AuthAcceptor, Logins, MarginAcceptor};
use super::realm::{GameSession, Realm};
use super::worlds::Worlds;
use super::{Shared, hello_of, run, vector_seed};
use crate::secrets::Secrets;

/// A server with logins, apart from its sockets. Its connections can be driven over sockets, as in
/// [`MxoServer`](super::MxoServer), or over anything else.
#[derive(Debug)]
pub struct Services {
    pub(super) shared: Arc<Shared>,
    pub(super) logins: Arc<Logins>,
    ticks: watch::Sender<u64>,
    tick: Duration,
    epoch: Duration,
}

impl Services {
    /// Creates the parts. `epoch` is the clock's zero, in time since 1970. All connections must be
    /// driven with this clock.
    #[must_use]
    pub fn new(
        config: &MxoConfig,
        worlds: Worlds,
        keys: ServerKeys,
        realm: Realm,
        clock: Clock,
        epoch: Duration,
    ) -> Self {
        Self::with_secrets(config, worlds, keys, realm, clock, epoch, None)
    }

    /// Creates the parts like [`new`](Self::new), and appends clients' session keys to a key file.
    pub(super) fn with_secrets(
        config: &MxoConfig,
        worlds: Worlds,
        keys: ServerKeys,
        realm: Realm,
        clock: Clock,
        epoch: Duration,
        secrets: Option<Arc<Secrets>>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(worlds, config.players(), clock)),
            logins: Arc::new(Logins::new(config, keys, realm, clock, epoch, secrets)),
            ticks: watch::Sender::new(0),
            tick: Duration::from_millis(config.world.tick_milliseconds.into()),
            epoch,
        }
    }

    /// Accepts connections to the auth server.
    #[must_use]
    pub fn auth(&self) -> impl Accept<Connection = LoginConnection> + use<> {
        AuthAcceptor(Arc::clone(&self.logins))
    }

    /// Accepts connections to the margin server.
    #[must_use]
    pub fn margin(&self) -> impl Accept<Connection = LoginConnection> + use<> {
        MarginAcceptor(Arc::clone(&self.logins))
    }

    /// Accepts players on the game channel, after they have loaded a character on the margin channel.
    #[must_use]
    pub fn game(&self) -> impl AcceptDatagrams<Connection = Connection> + use<> {
        PlayerAcceptor {
            shared: Arc::clone(&self.shared),
            logins: Arc::clone(&self.logins),
            ticked: self.ticks.subscribe(),
            epoch: self.epoch,
        }
    }

    /// The state that all connections share.
    #[must_use]
    pub fn realm(&self) -> &Realm {
        &self.logins.realm
    }

    /// The worlds.
    #[must_use]
    pub fn worlds(&self) -> &Worlds {
        &self.shared.worlds
    }

    /// Advances the worlds at every tick, forever. Players see changes only while it runs.
    pub async fn run(&self) -> core::convert::Infallible {
        run(&self.shared, &self.ticks, self.tick).await
    }
}

/// Accepts players who have loaded a character on the margin channel.
#[derive(Debug)]
struct PlayerAcceptor {
    shared: Arc<Shared>,
    logins: Arc<Logins>,
    ticked: watch::Receiver<u64>,
    epoch: Duration,
}

impl PlayerAcceptor {
    /// The session to which the first datagram belongs.
    fn session(&self, peer: Peer, opening: &[u8]) -> Option<Arc<GameSession>> {
        let hello = hello_of(opening)?;
        let session = self.logins.realm.session_of(&hello, peer.address.ip());
        match session {
            Ok(session) => Some(session),
            Err(refusal) => {
                self.logins.figures.refused_hello(peer.address, refusal);
                None
            }
        }
    }

    fn connection(&self, session: &GameSession, seed: &[u8; 16], now: Duration) -> Connection {
        let mut config = ChannelConfig::new(self.epoch);
        // The address is the margin connection's, so it is not forged.
        config.trusts_hellos = true;
        Connection::server(config, Session::new(session.id, session.key.clone(), seed), now)
    }
}

impl Accept for PlayerAcceptor {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, _: Duration) -> (Connection, Client) {
        // Without a hello, there is no session. A connection that only observes sends nothing.
        let mut connection = Connection::observer(Arc::default());
        worldwire_core::connection::Connection::close(&mut connection);
        (connection, Client::new(Arc::clone(&self.shared), peer, self.ticked.clone()))
    }
}

impl AcceptDatagrams for PlayerAcceptor {
    fn probe(&self, peer: Peer, now: Duration, opening: &[u8]) -> Option<Connection> {
        // A probe never sends anything.
        self.session(peer, opening).map(|session| self.connection(&session, &[0; 16], now))
    }

    fn accept_opening(&self, peer: Peer, now: Duration, opening: &[u8]) -> (Connection, Client) {
        // The session may have ended since the probe.
        let Some(session) = self.session(peer, opening) else { return self.accept(peer, now) };
        let connection = self.connection(&session, &vector_seed(), now);
        let client = Client::new(Arc::clone(&self.shared), peer, self.ticked.clone());
        (connection, client.of_player(session, self.logins.realm.clone()))
    }

    fn begins_with(&self, datagram: &[u8]) -> bool {
        hello_of(datagram).is_some()
    }
}
