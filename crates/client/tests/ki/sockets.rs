//! The whole flow over real sockets and a real database.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use worldwire_client::ki::{Client, Settings};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_net::Stop;
use worldwire_server::ki::admin::{Admin, Request};
use worldwire_server::ki::realm::{Privileges, Realm};
use worldwire_server::ki::{KiConfig, LoginServer, ServerError, Start};

use crate::database::Database;

/// A server with its own port.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) udp: Option<String>,
    pub(crate) realm: Realm,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
}

impl Running {
    pub(crate) async fn open(
        folder: &Path,
        change: impl FnOnce(&mut KiConfig) + Send + 'static,
        secrets: Option<&Path>,
    ) -> Result<LoginServer, ServerError> {
        let start = Start {
            change: Some(Box::new(|config| {
                config.listen = "127.0.0.1:0".parse().unwrap();
                config.status = String::new();
                change(config);
            })),
            secrets: secrets.map(Path::to_owned),
        };
        LoginServer::open(folder, start).await
    }

    pub(crate) async fn start(
        folder: &Path,
        change: impl FnOnce(&mut KiConfig) + Send + 'static,
        secrets: Option<&Path>,
    ) -> Self {
        let server = Self::open(folder, change, secrets).await.unwrap();
        let (stop, realm) = (Stop::new(), server.realm().clone());
        let address = server.address().unwrap().to_string();
        let udp = server.udp_address().map(|address| address.to_string());
        let serving = tokio::spawn(server.serve(stop.signal()));
        Self { address, udp, realm, stop, serving }
    }

    /// A server that uses this database.
    async fn over(database: &Database, secrets: Option<&Path>) -> Self {
        let url = database.url.clone().unwrap_or_default();
        Self::start(database.folder.path(), |config| config.database = url, secrets).await
    }

    pub(crate) async fn end(self) {
        self.stop.stop();
        self.serving.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn from_the_password_to_the_zone_and_back() {
    for database in Database::all() {
        there_and_back(&database).await;
    }
}

/// UDP carries the same frames. A client must say hello, because nothing else tells the server that
/// it is there.
#[tokio::test]
async fn from_the_password_to_the_zone_over_udp() {
    let folder = tempfile::tempdir().unwrap();
    let change = |config: &mut KiConfig| config.udp_listen = "127.0.0.1:0".to_owned();
    let server = Running::start(folder.path(), change, None).await;
    server.realm.add_account("merle", "hunter2", Privileges::default()).await.unwrap();
    let udp = server.udp.clone().unwrap();
    let settings = Settings { udp: true, ..Settings::default() };

    let mut first = Client::connect(&udp, &settings).await.unwrap();
    first.ping().await.unwrap();
    let pass = first.log_in("merle", &password_hash("hunter2")).await.unwrap();
    first.close().await;
    let mut game = Client::connect(&udp, &settings).await.unwrap();
    game.validate(&pass).await.unwrap();
    game.wait_until_admitted().await.unwrap();
    game.create(Character::plain("Merle", "Storm", 1).as_bytes()).await.unwrap();
    let made = game.characters().await.unwrap().list.remove(0);
    let to = game.select(made.global_id()).await.unwrap();
    assert_eq!(udp, format!("127.0.0.1:{}", to.udp_port));
    let (zone, _) = Client::enter(&to, &settings).await.unwrap();
    zone.close().await;

    // The server does not reply to a datagram that is not a hello, nor to one from later in the
    // conversation.
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut answer = [0; 100];
    let mut ask = async |bytes: &[u8]| {
        socket.send_to(bytes, &udp).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_millis(300), socket.recv(&mut answer));
        answer.await.ok().map(Result::unwrap)
    };
    let ping = b"\x0d\xf0\x09\0\0\0\0\0\x01\x01\x04\0\0";
    let cut = b"\x0d\xf0\x05\0\x01\x01\0";
    for other in [&b""[..], b"hello", ping, cut] {
        assert_eq!(ask(other).await, None, "{other:?}");
    }
    // The offer: header, ID, time, and the block "no encryption".
    assert_eq!(ask(b"\x0d\xf0\x05\0\x01\x01\0\0\0").await, Some(28));
    server.end().await;
}

/// A client talks to one server at a time; the others drop its sessions.
#[tokio::test]
async fn a_login_drops_the_sessions_at_other_servers() {
    let folders = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folders.path().join(name));
    let other = Running::start(&there, |_| {}, None).await;
    let change = |config: &mut KiConfig| {
        config.other_servers = vec!["../there".into(), "../missing".into()];
    };
    let server = Running::start(&here, change, None).await;
    // The two servers number the accounts differently, so only the name identifies an account.
    for (realm, names) in [(&server.realm, ["merle", "ann"]), (&other.realm, ["ann", "merle"])] {
        for name in names {
            realm.add_account(name, "hunter2", Privileges::default()).await.unwrap();
        }
    }
    let (settings, hash) = (Settings::default(), password_hash("hunter2"));
    let mut merle = Client::connect(&other.address, &settings).await.unwrap();
    merle.log_in("merle", &hash).await.unwrap();
    let mut ann = Client::connect(&other.address, &settings).await.unwrap();
    ann.log_in("ann", &hash).await.unwrap();
    let sessions = [merle.session_id(), ann.session_id()];
    let mut first = Client::connect(&server.address, &settings).await.unwrap();
    first.log_in("merle", &hash).await.unwrap();
    let mut tries = 0;
    while merle.session_id() == sessions[0] {
        merle.ping().await.unwrap();
        ann.ping().await.unwrap();
        assert!(tries < 200, "nothing was dropped");
        tries += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ann.session_id(), sessions[1]);
    // The login survives, and the server announces nothing in return.
    let session = first.session_id();
    first.ping().await.unwrap();
    assert_eq!(first.session_id(), session);

    // Other projects' zone servers know only the number.
    let admin = Admin::open(&there).await.unwrap();
    let drop = async |user, account: Option<&str>| {
        let account = account.map(str::to_owned);
        admin.ask(Request::DropSessions { user, account }).await.unwrap()[0]["connections"].clone()
    };
    assert_eq!(drop(2, None).await, 1);
    assert_eq!(drop(2, Some("ann")).await, 1);
    assert_eq!(drop(9, None).await, 0);
    assert_eq!(drop(2, Some("nobody")).await, 0);
    admin.close().await;
    server.end().await;
    other.end().await;
}

async fn there_and_back(database: &Database) {
    let folder = &database.folder;
    std::fs::create_dir(folder.path().join("patch")).unwrap();
    std::fs::write(folder.path().join("patch/readme.txt"), "hello").unwrap();
    let secrets = folder.path().join("secrets.toml");
    let server = Running::over(database, Some(&secrets)).await;
    let privileges = Privileges { paying: true, slots: 2 };
    server.realm.add_account("Merle", "hunter2", privileges).await.unwrap();
    let settings = Settings { machine: 5, ..Settings::default() };

    let mut first = Client::connect(&server.address, &settings).await.unwrap();
    first.ping().await.unwrap();
    first.servers().await.unwrap();
    let list = first.file_list().await.unwrap();
    assert_eq!(list.url, "http://127.0.0.1/patch/LatestFileList.bin");
    let pass = first.log_in("mERLE", &password_hash("hunter2")).await.unwrap();
    first.close().await;

    let mut game = Client::connect(&server.address, &settings).await.unwrap();
    game.validate(&pass).await.unwrap();
    game.wait_until_admitted().await.unwrap();
    let characters = game.characters().await.unwrap();
    assert_eq!((characters.server.as_str(), characters.purchased), ("worldwire", 2));
    assert!(characters.list.is_empty());
    game.create(Character::plain("", "Storm", 0x8a_4448).as_bytes()).await.unwrap();
    let made = game.characters().await.unwrap().list.remove(0);
    assert_eq!((made.user_id(), made.name_indices()), (pass.user, 0x8a_4448));
    let to = game.select(made.global_id()).await.unwrap();
    let (zone, place) = Client::enter(&to, &settings).await.unwrap();
    assert_eq!(place.id, 191_965_934_121_493_239);
    zone.close().await;

    let mut back = Client::connect(&server.address, &settings).await.unwrap();
    back.validate(&pass).await.unwrap();
    back.wait_until_admitted().await.unwrap();
    // The zone may not have noticed yet that the client is gone.
    let mut tries = 0;
    while let Err(error) = back.delete(made.global_id()).await {
        assert!(tries < 100, "{error}");
        tries += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(back.characters().await.unwrap().list.is_empty());
    back.create(Character::plain("Kept", "Ice", 1).as_bytes()).await.unwrap();
    server.end().await;
    let said = std::fs::read_to_string(&secrets).unwrap();
    assert!(said.contains("user = \"Merle\"") || said.contains("user = \"mERLE\""), "{said}");
    assert!(said.contains(pass.ck2.as_str()));

    // All data is still there after a restart.
    let server = Running::over(database, None).await;
    let mut again = Client::connect(&server.address, &settings).await.unwrap();
    let pass = again.log_in("Merle", &password_hash("hunter2")).await.unwrap();
    let kept = again.characters().await.unwrap().list.remove(0);
    assert_eq!((kept.name(), kept.user_id()), (&b"Kept"[..], pass.user));
    assert_ne!(kept.global_id(), made.global_id());
    server.end().await;
}

#[tokio::test]
async fn operators_can_act_with_and_without_a_running_server() {
    for database in Database::all() {
        operate(&database).await;
    }
}

async fn operate(database: &Database) {
    let folder = &database.folder;
    assert!(Admin::open(folder.path()).await.is_err(), "no server is running");
    let server = Running::over(database, None).await;
    let add = |name: &str| Request::AddAccount {
        name: name.to_owned(),
        password: "hunter2".to_owned(),
        paying: false,
        slots: 0,
    };
    let admin = Admin::open(folder.path()).await.unwrap();
    admin.ask(add("merle")).await.unwrap();
    let again = admin.ask(add("Merle")).await.unwrap_err().to_string();
    assert_eq!(again, "account \"Merle\" already exists");
    let blank = admin.ask(add("a b")).await.unwrap_err().to_string();
    assert!(blank.contains("no spaces"), "K-20: {blank}");
    let mut client = Client::connect(&server.address, &Settings::default()).await.unwrap();
    let before = client.session_id();
    let refreshed = admin.ask(Request::Refresh { name: None }).await.unwrap();
    assert_eq!(refreshed[0]["connections"], 1);
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.ping().await.unwrap();
    assert_ne!(client.session_id(), before);
    let token = admin.ask(Request::Token { name: "merle".to_owned() }).await.unwrap();
    assert_eq!(token[0]["user"], 1);
    admin.close().await;
    server.end().await;

    let admin = Admin::open(folder.path()).await.unwrap();
    admin.ask(add("other")).await.unwrap();
    admin.ask(Request::Ban { name: "other".to_owned(), banned: true }).await.unwrap();
    let accounts = admin.ask(Request::Accounts).await.unwrap();
    let names: Vec<_> = accounts.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["merle", "other"]);
    assert_eq!((&accounts[0]["banned"], &accounts[1]["banned"]), (&false.into(), &true.into()));
    assert!(admin.ask(Request::Refresh { name: None }).await.is_err());
    admin.ask(Request::DeleteAccount { name: "other".to_owned() }).await.unwrap();
    admin.ask(add("third")).await.unwrap();
    let accounts = admin.ask(Request::Accounts).await.unwrap();
    assert_eq!(accounts[1]["user"], 3, "no number is reused");
    admin.close().await;
}

#[tokio::test]
async fn k_23_the_last_message_arrives_while_the_client_keeps_sending() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(folder.path(), |_| (), None).await;
    server.realm.add_account("merle", "hunter2", Privileges::default()).await.unwrap();
    // A wire between client and server that holds back the server's bytes until the client has sent
    // everything.
    let wire = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = wire.local_addr().unwrap().to_string();
    let settings = Settings::default();
    let client = async {
        let mut client = Client::connect(&address, &settings).await.unwrap();
        client.log_in("merle", &password_hash("hunter2")).await.unwrap();
        client.create(Character::plain("Merle", "Fire", 1).as_bytes()).await.unwrap();
        let character = client.characters().await.unwrap().list[0].global_id();
        client.select(character).await.unwrap()
    };
    let carrying = async {
        let (near, _) = wire.accept().await.unwrap();
        let far = TcpStream::connect(&server.address).await.unwrap();
        let (mut from_client, mut to_client) = near.into_split();
        let (mut from_server, mut to_server) = far.into_split();
        let mut asked = tokio::spawn(async move {
            let mut piece = [0; 4096];
            loop {
                let count = from_client.read(&mut piece).await.unwrap();
                to_server.write_all(&piece[..count]).await.unwrap();
                if piece[..count].windows(2).any(|order| order == [7, 10]) {
                    return to_server;
                }
            }
        });
        let mut piece = [0; 4096];
        let mut to_server = loop {
            tokio::select! {
                count = from_server.read(&mut piece) => {
                    to_client.write_all(&piece[..count.unwrap()]).await.unwrap();
                }
                to_server = &mut asked => break to_server.unwrap(),
            }
        };
        // The server has replied and ended its stream; it no longer reads.
        tokio::time::sleep(Duration::from_millis(200)).await;
        for _ in 0..5 {
            let alive = [0x0d, 0xf0, 10, 0, 1, 3, 0, 0, 1, 2, 3, 4, 5, 6];
            to_server.write_all(&alive).await.expect("the server still listens");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut rest = Vec::new();
        from_server.read_to_end(&mut rest).await.expect("an end, and no reset");
        to_client.write_all(&rest).await.unwrap();
    };
    let (to, ()) = tokio::join!(client, carrying);
    assert_eq!(to.zone, "WizardCity/Tutorial_Exterior");
    server.end().await;
}
