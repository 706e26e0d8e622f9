//! A running server with logins.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use worldwire_client::mxo::{
    Client, Happening, LoginError, Margin, Settings, log_in, plain_character, query,
};
use worldwire_core::json::Json;
use worldwire_core::testing::hex;
use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
use worldwire_mxo::file::{PublicKeyFile, format_private_key, parse_private_key};
use worldwire_mxo::login::{AuthClientConfig, LoginTicket};
use worldwire_net::Stop;
use worldwire_server::ServeError;
use worldwire_server::mxo::keys::{PUBLIC_KEY_FILE, ServerKeys, read_public};
use worldwire_server::mxo::realm::Realm;
use worldwire_server::mxo::{MxoConfig, MxoServer, Start};

pub(crate) const PASSWORD: &str = "white rabbit";
/// How long a client waits for each reply.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The test keys of the conformance vectors, so that no keys need to be generated.
static KEYS: LazyLock<[(&str, String); 2]> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mxo-login/keys.json");
    let json: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let key = |name: &str, purpose| {
        let number = |part| hex(&json[name], part).unwrap();
        let key = PrivateKey::from_exponent(purpose, &number("n"), &number("d")).unwrap();
        format_private_key(&key).unwrap().to_string()
    };
    [
        ("signing.pem", key("signing_2048", KeyUse::Signing)),
        ("auth.pem", key("server_1024", KeyUse::Server)),
    ]
});

/// The keys of a server that has no directory.
pub(crate) fn keys() -> ServerKeys {
    let parse = |purpose, name: &str| {
        let (_, text) = KEYS.iter().find(|(file, _)| *file == name).unwrap();
        parse_private_key(purpose, text.as_bytes()).unwrap()
    };
    let signing = parse(KeyUse::Signing, "signing.pem");
    let server = parse(KeyUse::Server, "auth.pem");
    let mut random = Random::new([9; 32]);
    let public_key = PublicKeyFile::sign(4, server.public(), &signing, &mut random).unwrap();
    ServerKeys { server, public_key, are_new: false }
}

/// Writes a key that only its owner can read.
pub(crate) fn write_key(folder: &Path, name: &str) {
    let (_, text) = KEYS.iter().find(|(file, _)| *file == name).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

pub(crate) struct Server {
    pub(crate) folder: TempDir,
    pub(crate) auth: SocketAddr,
    pub(crate) margin: SocketAddr,
    pub(crate) game: SocketAddr,
    pub(crate) status: SocketAddr,
    pub(crate) realm: Realm,
    pub(crate) public_key: PublicKeyFile,
    stop: Stop,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub(crate) async fn start(change: impl FnOnce(&mut MxoConfig) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_key(folder.path(), "signing.pem");
        write_key(folder.path(), "auth.pem");
        Self::start_in(folder, change).await
    }

    pub(crate) async fn start_in(
        folder: TempDir,
        change: impl FnOnce(&mut MxoConfig) + Send + 'static,
    ) -> Self {
        let change = Box::new(|config: &mut MxoConfig| {
            let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
            (config.auth_listen, config.margin_listen, config.game_listen) = (any, any, any);
            config.status = any.to_string();
            config.login.jack_out_seconds = 0;
            change(config);
        });
        let start = Start { change: Some(change), ..Start::default() };
        let server = MxoServer::open(folder.path(), start).await.unwrap();
        let stop = Stop::new();
        Self {
            auth: server.auth_address().unwrap(),
            margin: server.margin_address().unwrap(),
            game: server.game_address().unwrap(),
            status: server.status_address().unwrap(),
            realm: server.realm().clone(),
            public_key: read_public(&folder.path().join(PUBLIC_KEY_FILE)).unwrap().unwrap(),
            serving: tokio::spawn(server.serve(stop.signal())),
            stop,
            folder,
        }
    }

    pub(crate) async fn stop(self) -> TempDir {
        self.stop.stop();
        timeout(Duration::from_secs(30), self.serving).await.unwrap().unwrap().unwrap();
        self.folder
    }

    pub(crate) async fn add(&self, account: &str) {
        self.realm.add_account(account, PASSWORD, false).await.unwrap();
    }

    pub(crate) fn login(&self, account: &str, password: &str) -> AuthClientConfig {
        AuthClientConfig::new(account, password, Some(self.public_key.clone()))
    }

    pub(crate) async fn ticket(&self, account: &str) -> Result<LoginTicket, LoginError> {
        log_in(self.auth, self.login(account, PASSWORD), PATIENCE).await
    }

    pub(crate) async fn margin(&self, account: &str) -> Margin {
        let ticket = self.ticket(account).await.unwrap();
        Margin::connect(self.margin, ticket, PATIENCE).await.unwrap()
    }

    /// A session whose character is new.
    pub(crate) async fn newcomer(&self, account: &str, handle: &str) -> (Margin, u64) {
        self.add(account).await;
        let mut margin = self.margin(account).await;
        let character = plain_character("Thomas", "Anderson", "A hacker.").unwrap();
        let id = margin.create(handle, character).await.unwrap();
        (margin, id)
    }

    pub(crate) fn settings(margin: &Margin, id: u64) -> Settings {
        let (session, key) = margin.session().clone();
        Settings { session, key, ..Settings::new(id) }
    }

    /// Enters the world with a loaded character, which stands still.
    pub(crate) async fn enter(&self, margin: &mut Margin, id: u64) -> Client {
        let client = Client::connect(self.game, Self::settings(margin, id)).await.unwrap();
        client.with_view(|view| view.set_walking(false));
        margin.established().await.unwrap();
        client
    }

    /// The value of a metric.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = query(self.status, "GET", "/metrics").await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("worldwire_{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..2_400 {
        if is_true().await {
            return;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("{what}");
}

/// Waits until a client hears or sees something.
pub(crate) async fn notices(client: &Client, what: impl Fn(&Happening) -> bool) -> Happening {
    let mut all = Vec::new();
    for _ in 0..2_400 {
        all.extend(client.with_view(|view| view.take_happenings().collect::<Vec<_>>()));
        if let Some(found) = all.iter().find(|it| what(it)) {
            return found.clone();
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("it noticed only {all:?}");
}
