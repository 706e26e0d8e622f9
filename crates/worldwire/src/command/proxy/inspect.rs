//! `worldwire proxy --inspect`: the page of a running proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use worldwire_core::connection::SendError;
use worldwire_dissect::{Definitions, Keys, Options};
use worldwire_inspect::{Answering, Inspector, Live, LiveRefusal, Settings};
use worldwire_proxy::ControlError;
use worldwire_server::operators::Operated as _;

use super::control::{self, Operators, Refusal, Request};
use crate::command::inspect::failed;
use crate::input;
use crate::output::{Failure, Scratch};

/// The capture that the page shows.
pub(super) struct Recording {
    pub(super) path: PathBuf,
    /// Removed when the proxy stops, unless the user named a file.
    _folder: Option<Scratch>,
}

impl Recording {
    /// The file that the user named or a temporary one.
    pub(super) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = named {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let folder = Scratch::create()?;
        Ok(Self { path: folder.path().join("proxy.pcapng"), _folder: Some(folder) })
    }
}

/// Opens the page. `copied` holds the options that the page adds to copied commands.
pub(super) async fn open(
    recording: &Recording,
    listen: SocketAddr,
    (keys, definitions): (&Keys, &Definitions),
    copied: String,
    operators: Operators,
) -> Result<Inspector, Failure> {
    let mut keys = keys.clone();
    // An earlier recording in the same file has its own keys.
    if let Err(error) = keys.add(&input::text_inside(&recording.path)) {
        tracing::debug!(%error, "cannot use the keys in the recording");
    }
    let options = Options { keys, definitions: definitions.clone(), ..Options::default() };
    let live: Arc<dyn Live> = Arc::new(Watched(operators));
    let settings =
        Settings { listen, follow: true, live: Some(live), options: copied, ..Settings::default() };
    Inspector::open(&recording.path, options, settings).await.map_err(|error| failed(&error))
}

/// A proxy that the page watches and controls, through the requests of its operators.
#[derive(Debug)]
struct Watched(Operators);

impl Live for Watched {
    fn kind(&self) -> &'static str {
        "proxy"
    }

    fn state(&self) -> Answering<'_, Json> {
        Box::pin(async {
            json!({
                "connections": control::list(&self.0.control),
                "held": self.0.held().await,
                "filters": self.0.paused.texts(),
            })
        })
    }

    fn perform(&self, request: Json) -> Answering<'_, Result<Vec<Json>, LiveRefusal>> {
        Box::pin(async {
            let request: Request = serde_json::from_value(request).map_err(|error| {
                LiveRefusal { problem: format!("the request: {error}"), field: None }
            })?;
            self.0.perform(request, &[]).await.map_err(|refusal| {
                let field = match &refusal {
                    Refusal::Control(ControlError::Send(SendError::Encode(error))) => {
                        Some(error.path_text()).filter(|path| !path.is_empty())
                    }
                    _ => None,
                };
                LiveRefusal { problem: refusal.to_string(), field }
            })
        })
    }
}
