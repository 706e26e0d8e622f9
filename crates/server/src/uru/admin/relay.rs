//! Operators' requests in the directory of a process that does not have the vault: the leader answers
//! them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Control, Request, RequestError};
use crate::operators::Operated;
use crate::standby::View;
use crate::uru::cluster::forward;
use crate::uru::vault::Vault;

/// Answers operators with the leader's answers. Cheap to clone.
#[derive(Clone)]
pub(in crate::uru) struct Relay(Arc<Place>);

/// The process in the directory.
enum Place {
    /// Serves clients with the leader's vault. The answer to [`Request::ServerIni`] is its own.
    Node { vault: Vault, server_ini: [Json; 2] },
    /// Waits to take over the shard. It has a vault only if there is a bus.
    Standby { vault: Option<Vault>, view: Arc<View> },
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

impl Relay {
    /// The relay of a process that uses the leader's vault, given the text for a client's
    /// `server.ini` and the address for clients.
    pub(in crate::uru) fn node(vault: Vault, (ini, listen): (String, SocketAddr)) -> Self {
        Self(Arc::new(Place::Node { vault, server_ini: [json!(ini), json!(listen)] }))
    }

    /// A standby's relay. `vault` is the leader's.
    pub(in crate::uru) fn standby(vault: Option<Vault>, view: Arc<View>) -> Self {
        Self(Arc::new(Place::Standby { vault, view }))
    }
}

impl Operated for Relay {
    type Request = Request;
    type Error = RequestError;

    fn is_failure(error: &RequestError) -> bool {
        error.is_failure()
    }

    fn has_lines(request: &Request) -> bool {
        Control::has_lines(request)
    }

    async fn perform(&self, request: Request, lines: &[String]) -> Result<Vec<Json>, RequestError> {
        match (&*self.0, &request) {
            (Place::Node { server_ini, .. }, Request::ServerIni) => Ok(server_ini.to_vec()),
            // A standby serves no clients, and the leader's answer would lead to another machine.
            (Place::Standby { .. }, Request::ServerIni) => Ok(Vec::new()),
            (Place::Node { vault, .. } | Place::Standby { vault: Some(vault), .. }, _) => {
                forward(vault, &request, lines).await
            }
            (Place::Standby { view, .. }, _) => {
                Err(RequestError::Standby { active: view.active() })
            }
        }
    }
}
