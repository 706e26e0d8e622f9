//! A shard in its own directory.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_client::uru::{Auth, Notifications, Shard};
use worldwire_net::Stop;
use worldwire_server::uru::{Shard as Server, ShardConfig};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

/// The accounts on every shard; one name is an e-mail address.
pub(crate) const ACCOUNTS: [(&str, &str); 2] =
    [("Ann@Example.org", "Tre3-deep"), ("bob", "linking book")];

/// A running shard.
pub(crate) struct Running {
    pub(crate) folder: TempDir,
    /// The shard, as its clients know it.
    pub(crate) shard: Shard,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
}

impl Running {
    pub(crate) async fn start(prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        Self::start_in(folder, |_| ()).await
    }

    pub(crate) async fn start_in(folder: TempDir, change: impl FnOnce(&mut ShardConfig)) -> Self {
        let server = open(folder.path(), change).await;
        let mut shard = Shard::parse(&server.server_ini()).unwrap();
        shard.patience = Duration::from_secs(30);
        let stop = Stop::new();
        let serving = tokio::spawn(server.serve(stop.signal()));
        Self { folder, shard, stop, serving }
    }

    /// Stops the shard and returns its directory.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.stop();
        timeout(Duration::from_secs(30), self.serving).await.unwrap().unwrap().unwrap();
        self.folder
    }

    /// A logged-in client that plays as a new player. Returns the player's number.
    pub(crate) async fn enter(&self, account: usize, name: &str) -> (Auth, Notifications, u32) {
        let (auth, notifications) = Auth::connect(&self.shard).await.unwrap();
        let (account, password) = ACCOUNTS[account];
        auth.log_in(account, password).await.unwrap();
        let player = auth.create_player(name, "female").await.unwrap();
        auth.set_player(player.id).await.unwrap();
        (auth, notifications, player.id)
    }
}

/// A shard in a directory, with its accounts, before it serves.
pub(crate) async fn open(folder: &Path, change: impl FnOnce(&mut ShardConfig)) -> Server {
    let server = Server::open_with(folder, PrimeKind::Plain, |config| {
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.status = String::new();
        config.public_address = "127.0.0.1".to_owned();
        change(config);
    });
    let server = server.await.unwrap();
    for (name, password) in ACCOUNTS {
        let added = server.vault().add_account(name, password, AccountFlags(0)).await;
        // The accounts already exist when the shard restarts.
        assert!(matches!(added, Ok(_) | Err(NetError::AccountAlreadyExists)));
    }
    server
}
