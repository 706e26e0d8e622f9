//! A TCP proxy through which one process reaches a PostgreSQL or NATS server. It can hold requests,
//! answers or both, like the worst network partitions: connections stay open, but nothing arrives.
//! It can also delay bytes, or close all connections and refuse new ones.
//!
//! The proxy does not know the protocol, but each answer on an idle connection arrives at once.

#![allow(dead_code, reason = "each test uses its part")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// How the bytes in one direction are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Held after the next bytes on each connection.
    HeldAfterOne,
    /// Open, but slow.
    Slow,
    /// Held on connections that have renewed the lease or committed a batch. Others, over which the
    /// process reads, are open.
    WritesHeld,
    Held,
    Cut,
}

/// Parts of statements that are sent only on connections for writing.
const WRITES: [&[u8]; 2] = [b"ww_commit", b"UPDATE lease"];

/// How long it takes to forward up to 64 KiB in a slow direction.
const SLOWNESS: Duration = Duration::from_millis(150);

/// The server that a proxy forwards to.
#[derive(Clone)]
enum Server {
    Socket(PathBuf),
    Port(SocketAddr),
}

/// The proxy, until it is dropped.
pub(crate) struct Gate {
    port: u16,
    requests: watch::Sender<Way>,
    answers: watch::Sender<Way>,
    _runtime: Runtime,
}

impl Gate {
    /// Forwards connections to a socket.
    pub(crate) fn new(socket: &Path) -> Self {
        Self::to(Server::Socket(socket.to_owned()))
    }

    /// Forwards connections to a port of this machine.
    pub(crate) fn to_port(port: u16) -> Self {
        Self::to(Server::Port((Ipv4Addr::LOCALHOST, port).into()))
    }

    fn to(server: Server) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, answers) = (watch::Sender::new(Way::Open), watch::Sender::new(Way::Open));
        let ways = [requests.subscribe(), answers.subscribe()];
        runtime.spawn(accept(listener, server, ways));
        Self { port, requests, answers, _runtime: runtime }
    }

    /// The URL of a database behind the proxy, for a process with this name.
    pub(crate) fn url(&self, database: &str, process: &str) -> String {
        let Self { port, .. } = self;
        format!(
            "postgres://shard@127.0.0.1:{port}/{database}?sslmode=disable&application_name={process}"
        )
    }

    /// The port of the proxy.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn requests(&self, way: Way) {
        self.requests.send_replace(way);
    }

    pub(crate) fn answers(&self, way: Way) {
        self.answers.send_replace(way);
    }

    pub(crate) fn both(&self, way: Way) {
        self.requests(way);
        self.answers(way);
    }
}

async fn accept(listener: TcpListener, server: Server, ways: [watch::Receiver<Way>; 2]) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, server.clone(), ways.clone()));
    }
}

async fn forward(
    client: TcpStream,
    server: Server,
    ways: [watch::Receiver<Way>; 2],
) -> io::Result<()> {
    client.set_nodelay(true)?;
    if *ways[0].borrow() == Way::Cut {
        return Ok(());
    }
    match server {
        Server::Socket(socket) => {
            let (answers, requests) = UnixStream::connect(socket).await?.into_split();
            join(client, (answers, requests), ways).await
        }
        Server::Port(address) => {
            let server = TcpStream::connect(address).await?;
            server.set_nodelay(true)?;
            join(client, server.into_split(), ways).await
        }
    }
}

async fn join(
    mut client: TcpStream,
    (from_server, to_server): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    [requests, answers]: [watch::Receiver<Way>; 2],
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    // When either direction ends, both connections end.
    tokio::select! {
        ended = pump(from_client, to_server, requests) => ended,
        ended = pump(from_server, to_client, answers) => ended,
    }
}

/// Forwards bytes while the direction is open.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut way: watch::Receiver<Way>,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let (mut has_passed, mut writes) = (false, false);
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read?,
            _ = way.wait_for(|way| *way == Way::Cut) => return Ok(()),
        };
        let says = |part: &[u8]| bytes[..read].windows(part.len()).any(|found| found == part);
        writes = writes || WRITES.iter().any(|part| says(part));
        let passes = |way: &Way| match way {
            Way::Open | Way::Slow => true,
            Way::WritesHeld => !writes,
            Way::HeldAfterOne => !has_passed,
            Way::Held | Way::Cut => false,
        };
        let found = way.wait_for(|way| passes(way) || *way == Way::Cut).await.map(|way| *way);
        match found {
            Ok(Way::Open | Way::WritesHeld) => has_passed = false,
            Ok(Way::Slow) => tokio::time::sleep(SLOWNESS).await,
            Ok(Way::HeldAfterOne) => has_passed = true,
            _ => return Ok(()),
        }
        if read == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
    }
}
