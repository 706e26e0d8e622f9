//! A server's status page: plain HTTP for launchers, operators and monitoring.
//!
//! Every connection is closed after ten seconds. If only this machine can reach the page, requests
//! that name another host are refused: another site's name can resolve to this machine.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep};
use worldwire_net::{Capacity, Permit, Permits, Signal};

use crate::boot_clock::BootInstant;

/// How long open connections may delay the server's shutdown.
const GRACE: Duration = Duration::from_secs(1);
/// How long a connection may last.
const LIFE: Duration = Duration::from_secs(10);
/// The maximum number of open connections.
const CAPACITY: Capacity = Capacity { total: 256, per_address: 16 };

/// A time in Unix seconds.
pub(crate) fn unix(moment: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(moment.elapsed()).as_secs()
}

/// The host names that requests may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// All names, for content that clients request under another server's name.
    Any,
    /// On a loopback address, only IP addresses and `localhost`.
    Own,
}

/// Serves the page until the signal, and then serves open connections for a short time.
pub(crate) async fn serve(
    tcp: TcpListener,
    router: Router,
    hosts: Hosts,
    signal: Signal,
) -> io::Result<()> {
    let listener = Listener { tcp, permits: Permits::new(CAPACITY) };
    let (mut stop, mut late) = (signal.clone(), signal);
    let stopped = async move { stop.stopping().await };
    let late = async move {
        late.stopping().await;
        sleep(GRACE).await;
    };
    let mut router = router.layer(from_fn(refuse_foreign));
    let is_local = listener.tcp.local_addr().is_ok_and(|own| own.ip().is_loopback());
    if is_local && hosts == Hosts::Own {
        router = router.layer(from_fn(refuse_other_hosts));
    }
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(stopped) => served,
        () = late => Ok(()),
    }
}

/// Refuses unsafe requests that another site's page makes in a visitor's browser, with 403.
async fn refuse_foreign(request: Request, next: Next) -> Response {
    if !request.method().is_safe() && is_foreign(request.headers()) {
        let text = "requests from other sites are refused\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    next.run(request).await
}

/// Refuses requests for other host names, with 421.
async fn refuse_other_hosts(request: Request, next: Next) -> Response {
    if request.headers().contains_key(HOST) && !is_own(host(request.headers())) {
        let text = "unknown host: use localhost or an IP address; a reverse proxy must pass one of \
                    them as `Host`\n";
        return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    next.run(request).await
}

/// Whether a browser made the request on behalf of another host's page.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = host(headers);
    !is_own(host) || origin.as_bytes() != format!("http://{host}").as_bytes()
}

/// The host that a request names.
fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Whether a host can only be the one that a visitor asked for. Any name other than `localhost`
/// counts as foreign, because another site's name can resolve to this address.
fn is_own(host: &str) -> bool {
    host.parse::<Authority>().is_ok_and(|host| {
        let name = host.host();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || address.parse::<IpAddr>().is_ok()
    })
}

/// The task that serves a page, if there is one.
pub(crate) struct Serving(Option<JoinHandle<io::Result<()>>>);

impl Serving {
    /// Starts serving.
    pub(crate) fn start(tcp: Option<TcpListener>, router: Router, signal: Signal) -> Self {
        Self(tcp.map(|tcp| tokio::spawn(serve(tcp, router, Hosts::Own, signal))))
    }

    /// Waits for the task, which ends after the signal.
    pub(crate) async fn ended(self) -> io::Result<()> {
        let Some(task) = self.0 else { return Ok(()) };
        task.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

/// The response to `/metrics`.
pub(crate) fn metrics(text: String) -> Response {
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text).into_response()
}

/// The help text of a metric.
pub(crate) const DATABASE_UP: &str = "Whether the database accepted the last change: 1 or 0.";

/// The help text of a metric.
pub(crate) const JOINED: &str = "Whether this process has a leader: 1 or 0.";

/// The help text of a metric.
pub(crate) const ACTIVE: &str = "1 if this process serves the vault; 0 for a standby or front, and \
    while another process may have taken over.";

/// The role of a process in `/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It serves clients.
    Active,
    /// It served clients, but another process may have taken over since this moment.
    Inactive(BootInstant),
    /// It waits to take over.
    Standby,
    /// It serves logins and files for the process with the vault.
    Front,
    /// It runs ages for the process with the vault and does nothing else.
    AgeNode,
}

impl Role {
    /// The role of a process that serves clients. `inactive` is the time since which another
    /// process may have taken over.
    pub(crate) fn serving(inactive: Option<BootInstant>) -> Self {
        inactive.map_or(Self::Active, Self::Inactive)
    }

    pub(crate) fn is_active(self) -> bool {
        self == Self::Active
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive(_) => "inactive",
            Self::Standby => "standby",
            Self::Front => "front",
            Self::AgeNode => "age",
        }
    }
}

/// The database's state in `/status`.
pub(crate) fn database(is_failing: bool) -> &'static str {
    if is_failing { "failing" } else { "ok" }
}

/// The response to `/health`, except a standby's.
pub(crate) fn health(role: Role, is_failing: bool) -> Response {
    let problem = match role {
        Role::Inactive(since) => format!(
            "inactive for {:.1} s: the database does not confirm that this process is active, and \
             a standby may have taken over; see the log\n",
            since.elapsed().as_secs_f64()
        ),
        Role::Front | Role::AgeNode if is_failing => {
            "the process that has the vault cannot be reached; see the log\n".to_owned()
        }
        _ if is_failing => "the database does not accept changes; see the log\n".to_owned(),
        _ => return "ok\n".into_response(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
}

/// The response to `/health` while the system does not let the process accept connections.
pub(crate) fn cannot_accept() -> Response {
    let problem =
        "connections from clients cannot be accepted; see the log, and the limit on open files\n";
    (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
}

/// Accepts connections within the limits.
struct Listener {
    tcp: TcpListener,
    permits: Permits,
}

/// A connection with a deadline.
struct Visitor {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _permit: Permit,
}

impl axum::serve::Listener for Listener {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            match self.tcp.accept().await {
                Ok((stream, address)) => {
                    if let Ok(permit) = self.permits.acquire(address.ip()) {
                        let end = Box::pin(sleep(LIFE));
                        return (Visitor { stream, end, _permit: permit }, address);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection to the status page");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

impl Visitor {
    /// Fails if the deadline has passed.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use worldwire_net::Stop;

    use super::*;

    #[tokio::test]
    async fn health_says_what_is_wrong() {
        let of = async |role, is_failing| {
            let response = health(role, is_failing);
            let status = response.status().as_u16();
            let body = axum::body::to_bytes(response.into_body(), 1_024).await.unwrap();
            (status, String::from_utf8(body.to_vec()).unwrap())
        };
        for role in [Role::Active, Role::Front, Role::AgeNode] {
            assert_eq!(of(role, false).await, (200, "ok\n".to_owned()));
        }
        let wrong = [
            (Role::Active, "the database does not accept changes"),
            (Role::Front, "the process that has the vault cannot be reached"),
            (Role::AgeNode, "the process that has the vault cannot be reached"),
            (Role::Inactive(BootInstant::now()), "inactive for 0.0 s"),
        ];
        for (role, reason) in wrong {
            let (status, text) = of(role, true).await;
            assert!(status == 503 && text.starts_with(reason), "{text}");
        }
    }

    /// The status of the response to a request.
    async fn answer(hosts: Hosts, method: &str, host: &str, origin: Option<&str>) -> String {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let hold = post(|| async { StatusCode::NO_CONTENT }).get(|| async { "held" });
        let stop = Stop::new();
        let router = Router::new().route("/hold", hold);
        let serving = tokio::spawn(serve(tcp, router, hosts, stop.signal()));
        let with_port = |text: &str| text.replace("PORT", &address.port().to_string());
        let line = origin.map(|origin| format!("Origin: {}\r\n", with_port(origin)));
        let request = format!(
            "{method} /hold HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\
             Content-Length: 0\r\n\r\n",
            with_port(host),
            line.unwrap_or_default()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        stop.stop();
        serving.await.unwrap().unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    #[tokio::test]
    async fn posts_from_other_sites_are_refused() {
        let own = "127.0.0.1:PORT";
        for (host, origin, wanted) in [
            (own, None, "204"),
            ("evil.example", None, "204"),
            (own, Some("http://127.0.0.1:PORT"), "204"),
            ("localhost:PORT", Some("http://localhost:PORT"), "204"),
            ("[::1]:80", Some("http://[::1]:80"), "204"),
            (own, Some("http://evil.example"), "403"),
            (own, Some("https://127.0.0.1:PORT"), "403"),
            (own, Some("http://127.0.0.1:1"), "403"),
            (own, Some("null"), "403"),
            // Another site's name that resolves to this address.
            ("evil.example", Some("http://evil.example"), "403"),
        ] {
            assert_eq!(answer(Hosts::Any, "POST", host, origin).await, wanted, "{host} {origin:?}");
        }
    }

    /// Another site's name can resolve to a loopback address.
    #[tokio::test]
    async fn a_local_page_has_no_other_name() {
        for (hosts, host, wanted) in [
            (Hosts::Own, "127.0.0.1:PORT", "200"),
            (Hosts::Own, "localhost:PORT", "200"),
            (Hosts::Own, "localhost", "200"),
            (Hosts::Own, "[::1]:PORT", "200"),
            (Hosts::Own, "evil.example:PORT", "421"),
            (Hosts::Own, "localhost.evil.example", "421"),
            (Hosts::Own, "x@127.0.0.1 y", "421"),
            (Hosts::Own, "", "421"),
            (Hosts::Any, "evil.example:PORT", "200"),
        ] {
            assert_eq!(answer(hosts, "GET", host, None).await, wanted, "{host}");
        }
    }
}
