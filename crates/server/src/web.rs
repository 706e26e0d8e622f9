//! Small web servers for programs other than this crate's servers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;
use worldwire_net::Signal;

use crate::metrics::Metrics;
use crate::page::{self, Role};

/// The content of a status page.
pub trait Reported: Send + Sync + 'static {
    /// The response to `/status`.
    fn status(&self) -> Value;

    /// The response to `/metrics`.
    fn metrics(&self) -> Metrics;
}

/// A web server on one port. It has no password, so it should listen on a loopback address.
#[derive(Debug)]
pub struct WebServer(TcpListener);

impl WebServer {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self)
    }

    /// The address on which it listens. If the requested port was 0, the system chose one.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves a status page until the signal fires: `/status` in JSON, `/metrics` in the Prometheus
    /// text format, and `/health`.
    ///
    /// # Errors
    /// Those of accepting connections.
    pub async fn serve_status<R: Reported>(
        self,
        reported: Arc<R>,
        signal: Signal,
    ) -> io::Result<()> {
        let router = Router::new()
            .route("/status", get(status::<R>))
            .route("/metrics", get(metrics::<R>))
            .route("/health", get(async || page::health(Role::Active, false)))
            .with_state(reported);
        page::serve(self.0, router, page::Hosts::Own, signal).await
    }

    /// Responds to every request with the same document, of this media type, until the signal
    /// fires.
    ///
    /// # Errors
    /// Those of accepting connections.
    pub async fn serve_document(
        self,
        (media_type, text): (&'static str, String),
        signal: Signal,
    ) -> io::Result<()> {
        let text: Arc<str> = text.into();
        let answer = async move || ([(CONTENT_TYPE, media_type)], text.to_string());
        let router = Router::new().fallback(get(answer));
        page::serve(self.0, router, page::Hosts::Any, signal).await
    }
}

async fn status<R: Reported>(State(reported): State<Arc<R>>) -> Response {
    Json(reported.status()).into_response()
}

async fn metrics<R: Reported>(State(reported): State<Arc<R>>) -> Response {
    page::metrics(reported.metrics().into_text())
}
