//! A shard in a temporary directory, and a client that sends one request after another.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_core::{Reader, Side};
use worldwire_net::{Application, Clock, Driver, End, Flow, Stop, tcp};
use worldwire_server::uru::admin::Control;
use worldwire_server::uru::vault::Vault;
use worldwire_server::uru::{GameRandom, Shard, ShardConfig};
use worldwire_uru::connection::{ClientConfig, Connection, News, Sender};
use worldwire_uru::crypt::key::{PrimeKind, PublicKey};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

/// The time limit of every step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running shard.
pub(crate) struct Running {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) status: SocketAddr,
    pub(crate) keys: KeyRing,
    pub(crate) vault: Vault,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
}

/// The accounts on every test's shard: names and passwords.
pub(crate) const ACCOUNTS: [(&str, &str); 2] =
    [("Ann@Example.org", "Tre3-deep"), ("bob", "linking book")];

fn local(config: &mut ShardConfig) {
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.status = "127.0.0.1:0".to_owned();
}

impl Running {
    /// Starts a shard in a new directory, which `prepare` can fill first.
    pub(crate) async fn start(
        prepare: impl FnOnce(&Path),
        change: impl FnOnce(&mut ShardConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        Self::start_in(folder, change).await
    }

    pub(crate) async fn start_in(folder: TempDir, change: impl FnOnce(&mut ShardConfig)) -> Self {
        let running = Self::start_within(folder, change, GameRandom::default()).await;
        for (name, password) in ACCOUNTS {
            // The accounts already exist when the shard restarts.
            let added = running.vault.add_account(name, password, AccountFlags(0)).await;
            assert!(matches!(added, Ok(_) | Err(NetError::AccountAlreadyExists)));
        }
        running
    }

    /// Starts a shard without accounts.
    pub(crate) async fn start_within(
        folder: TempDir,
        change: impl FnOnce(&mut ShardConfig),
        random: GameRandom,
    ) -> Self {
        let change = |config: &mut ShardConfig| {
            local(config);
            change(config);
        };
        let shard = Shard::open_within(folder.path(), PrimeKind::Plain, change, random);
        let shard = shard.await.unwrap();
        let address = shard.address().unwrap();
        let status = shard.status_address().unwrap();
        let (keys, vault) = (shard.keys().clone(), shard.vault().clone());
        let stop = Stop::new();
        let serving = tokio::spawn(shard.serve(stop.signal()));
        Self { folder, address, status, keys, vault, stop, serving }
    }

    /// Operators' control of the vault.
    pub(crate) fn control(&self) -> Control {
        Control::stopped(self.folder.path(), self.vault.clone())
    }

    /// Stops the shard and returns its directory.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.stop();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap().unwrap();
        self.folder
    }

    pub(crate) async fn client(&self, service: Service, key: Option<PublicKey>) -> Client {
        Client::connect(self.address, service, key).await
    }
}

/// A client of one service.
pub(crate) struct Client {
    task: JoinHandle<End>,
    service: Service,
    is_deaf: Arc<AtomicBool>,
    to: mpsc::Sender<Message<'static>>,
    from: mpsc::Receiver<Vec<u8>>,
}

/// A stream that can stop reading.
struct Ear {
    stream: TcpStream,
    is_deaf: Arc<AtomicBool>,
}

impl AsyncRead for Ear {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_deaf.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Ear {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The client's connection: sends the test's messages and passes received ones to it.
struct Messenger {
    outgoing: mpsc::Receiver<Message<'static>>,
    incoming: mpsc::Sender<Vec<u8>>,
    setup: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Application<Connection> for Messenger {
    type Notice = Option<Message<'static>>;

    async fn event(&mut self, event: EventOf<'_, Connection>, _: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { .. }) => {
                if let Some(setup) = self.setup.take() {
                    let _ = setup.send(());
                }
            }
            Event::Received(received) if received.message().is_some() => {
                let told = self.incoming.send(received.bytes.to_vec()).await;
                // The test has ended.
                return if told.is_ok() { Flow::Continue(()) } else { Flow::Break(()) };
            }
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Self::Notice {
        self.outgoing.recv().await
    }

    async fn notice(&mut self, notice: Self::Notice, sender: &mut Sender) -> Flow {
        match notice {
            Some(message) => {
                sender.send(&message).unwrap();
                Flow::Continue(())
            }
            None => Flow::Break(()),
        }
    }
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        service: Service,
        key: Option<PublicKey>,
    ) -> Self {
        let stream = tcp::dial(address, PATIENCE).await.unwrap();
        Self::connect_over(stream, ClientConfig::new(service, key)).await
    }

    pub(crate) async fn connect_over(stream: TcpStream, mut config: ClientConfig) -> Self {
        let service = config.connect.service().unwrap();
        stream.set_zero_linger().unwrap();
        let is_deaf = Arc::new(AtomicBool::new(false));
        let stream = Ear { stream, is_deaf: Arc::clone(&is_deaf) };
        let driver = Driver::client(Clock::start());
        config.ping_every = None;
        let connection = Connection::client(config.into(), [77; 64], driver.clock.now()).unwrap();
        let (to, outgoing) = mpsc::channel(100);
        let (incoming, from) = mpsc::channel(1000);
        let (setup, is_set_up) = tokio::sync::oneshot::channel();
        let messenger = Messenger { outgoing, incoming, setup: Some(setup) };
        let task = tokio::spawn(async move { driver.drive(stream, connection, messenger).await });
        let mut client = Self { task, service, is_deaf, to, from };
        let is_set_up = timeout(PATIENCE, is_set_up).await.unwrap();
        if is_set_up.is_err() {
            // The server refused the connection.
            client.from.close();
        }
        client
    }

    /// Breaks the connection: data in transit is lost, and the server gets an error.
    pub(crate) fn lose(self) {
        self.task.abort();
    }

    /// Stops reading.
    pub(crate) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    /// Sends a message.
    pub(crate) async fn say(&self, message: impl Into<Message<'static>>) {
        self.to.send(message.into()).await.unwrap();
    }

    /// Sends a message, even if the server no longer reads.
    pub(crate) async fn shout(&self, message: impl Into<Message<'static>>) {
        let _ = self.to.send(message.into()).await;
    }

    /// The bytes of the next message; `None` when the server has closed the connection.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        let bytes = timeout(PATIENCE, self.from.recv()).await.unwrap()?;
        Some(Heard { service: self.service, bytes })
    }

    /// Forgets the messages that have arrived.
    #[allow(dead_code, reason = "for tests of small games")]
    pub(crate) fn discard(&mut self) {
        while self.from.try_recv().is_ok() {}
    }

    /// Sends a message and returns the next one received.
    pub(crate) async fn ask(&mut self, message: impl Into<Message<'static>>) -> Heard {
        self.say(message).await;
        self.hear().await.unwrap()
    }
}

/// A message from the server.
pub(crate) struct Heard {
    service: Service,
    bytes: Vec<u8>,
}

impl Heard {
    pub(crate) fn message(&self) -> Message<'_> {
        let mut reader = Reader::new(&self.bytes);
        Message::decode(self.service, Side::Server, &mut reader).unwrap()
    }
}
