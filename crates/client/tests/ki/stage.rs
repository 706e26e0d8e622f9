//! A login server without sockets or disk, for tests in virtual time.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;
use worldwire_client::ki::{Client, ClientError, LoginToken, Settings};
use worldwire_core::Side;
use worldwire_ki::crypt::login::password_hash;
use worldwire_ki::schema::Protocols;
use worldwire_net::{Accept as _, Clock, Driver, End, Peer, Signal, Stop};
use worldwire_server::ki::KiConfig;
use worldwire_server::ki::connections::{Acceptor, Connections};
use worldwire_server::ki::login::Rules;
use worldwire_server::ki::realm::{Privileges, Realm};
use worldwire_server::store::Ledger;
use worldwire_server::store::seal::ServerKey;

use crate::memory::Memory;

/// A running server.
pub(crate) struct Stage {
    pub(crate) door: Acceptor,
    pub(crate) realm: Realm,
    pub(crate) memory: Arc<Memory>,
    clock: Clock,
    stop: Stop,
}

impl Stage {
    /// A server with the accounts `merle` and `other`, both with the password `hunter2`.
    pub(crate) async fn new(change: impl FnOnce(&mut KiConfig)) -> Self {
        let mut config = KiConfig::default();
        change(&mut config);
        let rules = Rules::of(&config);
        Self::with(config, rules).await
    }

    pub(crate) async fn with(config: KiConfig, rules: Rules) -> Self {
        let memory = Arc::<Memory>::default();
        let clock = Clock::start();
        let key = ServerKey::from_bytes(&[7; 32]);
        let ledger: Arc<dyn Ledger> = Arc::clone(&memory) as _;
        let realm = Realm::open(ledger, key, config.clone(), clock).await.unwrap();
        for name in ["merle", "other"] {
            realm.add_account(name, "hunter2", Privileges::default()).await.unwrap();
        }
        let protocols = Arc::new(Protocols::built_in());
        let epoch = Duration::from_secs(1_700_000_000);
        let reception = Connections::new(&config, rules, protocols, realm.clone(), clock, epoch);
        Self { door: Acceptor(Arc::new(reception)), realm, memory, clock, stop: Stop::new() }
    }

    /// A stream to the server, and the task that returns how the connection ended.
    pub(crate) fn stream(&self) -> (DuplexStream, JoinHandle<End>) {
        self.stream_from("192.0.2.1:1")
    }

    pub(crate) fn stream_from(&self, address: &str) -> (DuplexStream, JoinHandle<End>) {
        let (near, far) = duplex(64 << 10);
        let address = address.parse().unwrap();
        let peer = Peer { address, local: address };
        let (connection, client) = self.door.accept(peer, self.clock.now());
        let signal: Signal = self.stop.signal();
        let driver =
            Driver { peer: Side::Client, clock: self.clock, settings: Default::default(), signal };
        (near, tokio::spawn(async move { driver.drive(far, connection, client).await }))
    }

    pub(crate) async fn client(&self) -> Client {
        Client::over(self.stream().0, &settings()).await.unwrap()
    }

    /// A client that has logged in with a password.
    pub(crate) async fn logged_in(&self, name: &str) -> (Client, LoginToken) {
        let mut client = self.client().await;
        let pass = client.log_in(name, &password_hash("hunter2")).await.unwrap();
        (client, pass)
    }

    /// A client that has validated its login on a second connection and may be in the queue.
    pub(crate) async fn validated(&self, name: &str) -> Client {
        let (first, pass) = self.logged_in(name).await;
        first.close().await;
        let mut client = self.client().await;
        client.validate(&pass).await.unwrap();
        client
    }

    pub(crate) fn stop(&self) {
        self.stop.stop();
    }
}

pub(crate) fn settings() -> Settings {
    Settings { machine: 77, ..Settings::default() }
}

/// The name of the error that the server sent.
pub(crate) fn refused<T: core::fmt::Debug>(outcome: Result<T, ClientError>) -> &'static str {
    let error = outcome.expect_err("it is refused");
    error.code().unwrap_or_else(|| panic!("{error}")).name().unwrap()
}
