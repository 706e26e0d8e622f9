//! Operators' requests in the directory of a process that does not have the vault. The leader
//! handles these requests.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Control, Request, RequestError};
use crate::operators::Operated;
use crate::standby::View;
use crate::uru::cluster::forward;
use crate::uru::vault::Vault;

/// Passes operators' requests to the leader and its replies back. Cheap to clone.
#[derive(Clone)]
pub(in crate::uru) struct Relay(Arc<Place>);

/// The process to which the directory belongs.
enum Place {
    /// A front: it serves clients with the leader's vault. It replies to [`Request::ServerIni`]
    /// itself.
    Node { vault: Vault, server_ini: [Json; 2] },
    /// A standby: it waits to take over the shard. It can reach a vault only if there is a bus.
    Standby { vault: Option<Vault>, view: Arc<View> },
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

impl Relay {
    /// The relay for a process that uses the leader's vault, given the text for a client's
    /// `server.ini` and the address for clients.
    pub(in crate::uru) fn node(vault: Vault, (ini, listen): (String, SocketAddr)) -> Self {
        Self(Arc::new(Place::Node { vault, server_ini: [json!(ini), json!(listen)] }))
    }

    /// A standby's relay. `vault` is the leader's vault.
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
            // A standby serves no clients, and the leader's reply would direct clients to another
            // machine.
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
