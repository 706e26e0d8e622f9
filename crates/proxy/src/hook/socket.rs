//! Sockets for hooks that the proxy does not start.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use worldwire_net::{Signal, reason};

use super::HookSocket;
use super::hub::Hub;
use super::serve::{Ended, serve};

/// The maximum number of hooks connected to a socket, including those that have sent no hello yet.
const MAX_CONNECTIONS: usize = 64;

/// A listener for hooks.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, std::path::PathBuf),
}

impl Listener {
    pub(crate) async fn bind(socket: &HookSocket) -> io::Result<Self> {
        match socket {
            HookSocket::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            #[cfg(unix)]
            HookSocket::Unix(path) => bind_unix(path),
            #[cfg(not(unix))]
            HookSocket::Unix(_) => {
                let why = "this system has no Unix sockets; use a TCP port";
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }

    /// The address of a TCP port.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Self::Unix(..) => None,
        }
    }
}

/// Creates a Unix socket and replaces a stale one on which nobody is listening.
#[cfg(unix)]
fn bind_unix(path: &std::path::Path) -> io::Result<Listener> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Listener::Unix(listener, path.to_owned()))
}

/// Serves every hook that connects.
pub(crate) async fn run(hub: Arc<Hub>, source: usize, listener: Listener, mut signal: Signal) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let of = hub.source(source);
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = signal.stopping() => break,
        };
        let streams = match accepted {
            Ok(streams) => streams,
            Err(error) => {
                tracing::warn!("hooks cannot connect to {of}: {}", reason(&error));
                tokio::time::sleep(core::time::Duration::from_secs(1)).await;
                continue;
            }
        };
        let (hub, mut signal, of) = (Arc::clone(&hub), signal.clone(), of.clone());
        tokio::spawn(async move {
            let ended = serve(&hub, source, streams, &mut signal).await;
            if !matches!(ended, Ended::Stopped) {
                tracing::warn!("a hook at {of} has ended: {ended}");
            }
            drop(permit);
        });
    }
    #[cfg(unix)]
    if let Listener::Unix(_, path) = &listener {
        let _ = std::fs::remove_file(path);
    }
}

type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

async fn accept(listener: &Listener) -> io::Result<Streams> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (reader, writer) = split(stream);
            Ok((Box::new(reader), Box::new(writer)))
        }
        #[cfg(unix)]
        Listener::Unix(listener, _) => {
            let (reader, writer) = split(listener.accept().await?.0);
            Ok((Box::new(reader), Box::new(writer)))
        }
    }
}
