//! Errors, for the program and for clients of the API.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use worldwire_capture::CaptureError;

/// Why a capture cannot be shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum InspectError {
    /// The file cannot be opened or is not a regular file.
    File {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a capture or is empty.
    NoCapture {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: CaptureError,
    },
    /// The server cannot listen on the address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The system cannot supply random numbers, temporary files or threads.
    System {
        /// What the system could not do.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl std::fmt::Display for InspectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NoCapture { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::System { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for InspectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. }
            | Self::Listen { source, .. }
            | Self::System { source, .. } => Some(source),
            Self::NoCapture { source, .. } => Some(source),
        }
    }
}

/// Why the API refuses a request: a status, and a sentence for the user.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// The position of a mistake in a filter, counted in characters from 1.
    pub(crate) column: Option<usize>,
    /// The path of the wrong field, if a field is at fault: `m_items[3].m_slot`.
    pub(crate) field: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), column: None, field: None }
    }

    /// The request itself is wrong.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// The request names something that does not exist.
    pub(crate) fn missing(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// There are too many requests at the same time.
    pub(crate) fn busy(text: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, text)
    }

    /// The program or the system is at fault.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { status, text, column, field } = self;
        let mut body = json!({ "error": text });
        if let Some(column) = column {
            body["column"] = column.into();
        }
        if let Some(field) = field {
            body["field"] = field.into();
        }
        (status, Json(body)).into_response()
    }
}
