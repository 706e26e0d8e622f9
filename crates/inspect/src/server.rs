//! The listener, the thread that reads the capture, and the shutdown of both.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};
use worldwire_dissect::Options;
use worldwire_net::{Capacity, Permit, Permits, Signal};

use crate::error::InspectError;
use crate::guard::{Guard, admit};
use crate::index::Index;
use crate::live::Live;
use crate::recording::Recording;
use crate::state::State;
use crate::worlds::KiArchive;
use crate::{api, indexer};

/// How long open connections can delay the shutdown.
const GRACE: Duration = Duration::from_secs(1);
/// How long a connection may be silent. WebSockets send pings in between.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// The maximum number of connections. Nearly all are from this machine.
const CAPACITY: Capacity = Capacity { total: 512, per_address: 512 };

/// How to serve the page.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on. Default 127.0.0.1, with a port that the system chooses. On any
    /// other address, the token can be read on the network.
    pub listen: SocketAddr,
    /// Show what is appended to the capture. Default false: only the part that exists when the page
    /// is opened is shown.
    pub follow: bool,
    /// A running program to watch and control.
    pub live: Option<Arc<dyn Live>>,
    /// An archive to show. The capture is then an empty one.
    pub archive: Option<Arc<KiArchive>>,
    /// The options with which `worldwire encode` uses the definitions of the page, quoted for a shell:
    /// ` --data sdl`. The page adds them to the commands that it copies.
    pub options: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            follow: false,
            live: None,
            archive: None,
            options: String::new(),
        }
    }
}

/// A capture that is shown in the browser.
#[derive(Debug)]
pub struct Inspector {
    state: Arc<State>,
    guard: Arc<Guard>,
    listener: TcpListener,
}

impl Inspector {
    /// Opens a capture and starts reading it in the background. Only the part of the file that
    /// exists now is shown, even if the file grows, unless the settings say otherwise. The page
    /// reports any damage.
    ///
    /// # Errors
    /// The file cannot be opened or is not a capture in a regular file, the address is not
    /// available, or the system cannot supply random numbers, temporary files or threads.
    pub async fn open(
        capture: &Path,
        options: Options,
        settings: Settings,
    ) -> Result<Self, InspectError> {
        let Settings { listen: address, follow, live, archive, options: copied } = settings;
        let failed = |source| InspectError::Listen { address, source };
        let recording = Recording::open(capture, options, follow)?;
        let system = |what| move |source| InspectError::System { what, source };
        let index = Index::new().map_err(system("cannot create a temporary file for the index"))?;
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let guard = Arc::new(Guard::new(listener.local_addr().map_err(failed)?)?);
        let state = Arc::new(State::new(recording, index, live, archive, copied));
        let own = Arc::clone(&state);
        let thread = thread::Builder::new().name("indexer".to_owned());
        let thread = thread.spawn(move || indexer::run(&own));
        thread.map_err(system("cannot start a thread for the index"))?;
        Ok(Self { state, guard, listener })
    }

    /// The address of the page, with the token that admits its client.
    #[must_use]
    pub fn url(&self) -> String {
        self.guard.url()
    }

    /// Serves the page until the signal fires.
    ///
    /// # Errors
    /// Those of accepting connections.
    pub async fn serve(self, signal: Signal) -> Result<(), InspectError> {
        let Self { state, guard, listener } = self;
        let address = listener.local_addr().unwrap_or_else(|_| Settings::default().listen);
        let listener = Limited { tcp: listener, permits: Permits::new(CAPACITY) };
        let router = api::router(Arc::clone(&state)).layer(from_fn_with_state(guard, admit));
        let (mut stop, mut late) = (signal.clone(), signal);
        let own = Arc::clone(&state);
        let stopped = async move {
            stop.stopping().await;
            own.close();
        };
        let late = async move {
            late.stopping().await;
            sleep(GRACE).await;
        };
        let served = tokio::select! {
            served = axum::serve(listener, router).with_graceful_shutdown(stopped) => served,
            () = late => Ok(()),
        };
        state.close();
        served.map_err(|source| InspectError::Listen { address, source })
    }
}

/// Accepts connections while there are permits.
struct Limited {
    tcp: TcpListener,
    permits: Permits,
}

/// A connection with its permit. It ends when nothing was sent or received for a while.
struct Client {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _permit: Permit,
}

impl Client {
    fn new(stream: TcpStream, permit: Permit) -> Self {
        Self { stream, idle: Box::pin(sleep(IDLE_TIME)), _permit: permit }
    }

    /// Restarts the wait.
    fn restart(&mut self) {
        self.idle.as_mut().reset(Instant::now() + IDLE_TIME);
    }
}

impl axum::serve::Listener for Limited {
    type Io = Client;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Client, SocketAddr) {
        loop {
            match self.tcp.accept().await {
                Ok((stream, address)) => {
                    // Small responses must not wait for earlier ones to be acknowledged.
                    let _ = stream.set_nodelay(true);
                    if let Ok(permit) = self.permits.acquire(address.ip()) {
                        return (Client::new(stream, permit), address);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection to the page");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.restart();
        } else if self.idle.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.restart();
        } else if self.idle.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
