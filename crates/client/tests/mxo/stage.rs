//! A server with logins but without sockets or disk, for tests in virtual time.

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinSet;
use worldwire_client::mxo::{Client, LoginError, Margin, Settings, log_in_over, plain_character};
use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::login::{AuthClientConfig, LoginConnection, LoginTicket};
use worldwire_mxo::schema::Objects;
use worldwire_net::lossy::Conditions;
use worldwire_net::udp::{self, AcceptDatagrams, Datagrams as _};
use worldwire_net::{Accept, Clock, Driver, Peer, Stop};
use worldwire_server::mxo::realm::Realm;
use worldwire_server::mxo::{MxoConfig, Scene, Services, World, Worlds};
use worldwire_server::store::Ledger;
use worldwire_server::store::seal::ServerKey;

use crate::link::{LinkEnd, link};
use crate::memory::Memory;
use crate::server::{PASSWORD, keys};

/// How long a client waits for each reply: longer than the server waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// The address of a client.
const NEAR: &str = "192.0.2.1:5000";

/// A running server.
pub(crate) struct Stage {
    pub(crate) services: Arc<Services>,
    pub(crate) realm: Realm,
    pub(crate) memory: Arc<Memory>,
    pub(crate) public_key: PublicKeyFile,
    /// The network conditions of all links.
    pub(crate) conditions: Conditions,
    /// The client's end of the newest link.
    pub(crate) link: Option<LinkEnd>,
    clock: Clock,
    stop: Stop,
    running: JoinSet<()>,
}

impl Stage {
    /// A server without accounts. Its built-in objects are far from where characters appear.
    pub(crate) async fn new(change: impl FnOnce(&mut MxoConfig)) -> Self {
        Self::on(Arc::default(), change).await
    }

    /// A server with a database.
    pub(crate) async fn on(memory: Arc<Memory>, change: impl FnOnce(&mut MxoConfig)) -> Self {
        let mut config = MxoConfig::default();
        change(&mut config);
        let (clock, keys) = (Clock::start(), keys());
        let key = ServerKey::from_bytes(&[7; 32]);
        let ledger: Arc<dyn Ledger> = Arc::clone(&memory) as _;
        let realm = Realm::open(ledger, key, config.clone(), clock).await.unwrap();
        let objects = Arc::new(Objects::built_in());
        let scene = Scene::built_in(&objects).unwrap();
        let worlds = Worlds::new(&config, &objects, &scene).unwrap();
        let public_key = keys.public_key.clone();
        let epoch = Duration::from_secs(1_700_000_000);
        let services = Services::new(&config, worlds, keys, realm.clone(), clock, epoch);
        let services = Arc::new(services);
        let world = Arc::clone(&services);
        let mut running = JoinSet::new();
        running.spawn(async move {
            world.run().await;
        });
        let (conditions, stop) = (Conditions::default(), Stop::new());
        Self { services, realm, memory, public_key, conditions, link: None, clock, stop, running }
    }

    /// The world of the district in which characters start.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.services.worlds().of(1)
    }

    pub(crate) async fn add(&self, account: &str) {
        self.realm.add_account(account, PASSWORD, false).await.unwrap();
    }

    /// A stream to a server of the given kind.
    fn stream(
        &self,
        accept: impl Accept<Connection = LoginConnection>,
        address: SocketAddr,
    ) -> DuplexStream {
        let (near, far) = duplex(64 << 10);
        let (connection, client) =
            accept.accept(Peer { address, local: address }, self.clock.now());
        let driver = self.driver();
        tokio::spawn(async move { driver.drive(far, connection, client).await });
        near
    }

    pub(crate) fn auth(&self) -> DuplexStream {
        self.auth_from(NEAR)
    }

    pub(crate) fn auth_from(&self, address: &str) -> DuplexStream {
        self.stream(self.services.auth(), address.parse().unwrap())
    }

    pub(crate) fn margin_stream(&self) -> DuplexStream {
        self.stream(self.services.margin(), NEAR.parse().unwrap())
    }

    /// A link to the world, with a listener at the server's end.
    pub(crate) fn game(&mut self) -> LinkEnd {
        self.conditions.seed += 1;
        let (near, far) = link(self.conditions);
        self.link = Some(near.clone());
        let address = NEAR.parse().unwrap();
        let (accept, driver) = (self.services.game(), self.driver());
        self.running.spawn(async move {
            let peer = Peer { address, local: address };
            let mut buffer = vec![0; 65_535];
            loop {
                let length = far.receive(&mut buffer).await.unwrap();
                let (opening, now) = (&buffer[..length], driver.clock.now());
                if !accept.begins_with(opening) {
                    continue;
                }
                let Some(mut probe) = accept.probe(peer, now, opening) else { continue };
                probe.input(now, Side::Client, Input::Datagram(opening));
                if !matches!(probe.poll_event(), Some(Event::Received(_))) {
                    continue;
                }
                let (connection, client) = accept.accept_opening(peer, now, opening);
                far.put_back(opening);
                udp::drive(&driver, far.clone(), connection, client).await;
            }
        });
        near
    }

    fn driver(&self) -> Driver {
        let (clock, signal) = (self.clock, self.stop.signal());
        Driver { peer: Side::Client, clock, settings: Default::default(), signal }
    }

    pub(crate) fn login(&self, account: &str, password: &str) -> AuthClientConfig {
        AuthClientConfig::new(account, password, Some(self.public_key.clone()))
    }

    pub(crate) async fn ticket(&self, account: &str) -> LoginTicket {
        self.try_ticket(account, PASSWORD).await.unwrap()
    }

    pub(crate) async fn try_ticket(
        &self,
        account: &str,
        password: &str,
    ) -> Result<LoginTicket, LoginError> {
        log_in_over(self.auth(), self.login(account, password), PATIENCE).await
    }

    pub(crate) async fn margin(&self, account: &str) -> Margin {
        let ticket = self.ticket(account).await;
        Margin::over(self.margin_stream(), ticket, PATIENCE).await.unwrap()
    }

    /// A session of a new account with a new character.
    pub(crate) async fn newcomer(&self, account: &str, handle: &str) -> (Margin, u64) {
        self.add(account).await;
        let mut margin = self.margin(account).await;
        let character = plain_character("Thomas", "Anderson", "").unwrap();
        let id = margin.create(handle, character).await.unwrap();
        (margin, id)
    }

    /// Enters the world with a loaded character, which stands still. On a bad network, that can
    /// take several attempts.
    pub(crate) async fn enter(&mut self, margin: &mut Margin, id: u64) -> Client {
        let (session, key) = margin.session().clone();
        let setup_time = Duration::from_secs(10);
        let walks = false;
        let settings = Settings { session, key, walks, setup_time, ..Settings::new(id) };
        for _ in 0..20 {
            if let Ok(client) = Client::over(self.game(), &settings).await {
                margin.established().await.unwrap();
                return client;
            }
        }
        panic!("it never entered");
    }

    /// Ends the server's connections.
    pub(crate) fn stop(&self) {
        self.stop.stop();
    }
}
