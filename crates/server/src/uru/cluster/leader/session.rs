//! The session at the leader for a client that is connected to a node.
//!
//! Each session has a task that handles requests one after another, like a client's connection to
//! this process, so notices and replies keep their order. If its node is given up, or its client
//! returns through another process, the task hands the session over: see `returning`.

mod returning;

use std::future::ready;
use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::{Instrument as _, info_span};
use worldwire_uru::types::NetError;

use super::super::admin::{ADMIN, Dialogue, NodeOperators};
use super::super::bus::Pending;
use super::super::requests::{
    ClientReport, ENTER_AGE, OF_AGES, OF_CLIENTS, RENEW_TICKET, RESUME_SESSION, RenewTicket,
    ResumeSession, address,
};
use super::machine::RemoteSession;
use crate::uru::Shared;
use crate::uru::game::Presence;
use crate::uru::vault::ask::{Ask, ForKind, decoded, encoded, for_kind};
use crate::uru::vault::{Connection, Notice, Notices, named_player};
use returning::Returning;

/// An input of a session's task.
pub(super) enum Input {
    Request {
        number: u64,
        kind: u16,
        body: Vec<u8>,
    },
    Report(ClientReport),
    /// Its node was given up.
    Abandoned,
}

/// An output of a session's task, to be sent to its node.
pub(super) enum Output {
    Notice(Notice),
    Reply {
        number: u64,
        notices: u64,
        outcome: Result<Vec<u8>, NetError>,
    },
    /// The vault has ended the session.
    Ended,
}

/// Serves a session until its client or the vault ends it.
pub(super) async fn serve(
    shared: Arc<Shared>,
    operators: Option<NodeOperators>,
    (remote, front): (RemoteSession, Option<Arc<str>>),
    mut inbox: mpsc::UnboundedReceiver<Input>,
    outputs: mpsc::UnboundedSender<(RemoteSession, Output)>,
) {
    // Sending fails once this process no longer leads.
    let send = |output| outputs.send((remote, output)).is_ok();
    let Ok((session, notices)) = shared.vault.connect().await else {
        send(Output::Ended);
        return;
    };
    let node = front.clone();
    let presence = shared.games.presence(session.number()).through(front);
    let (dialogue, notified, returning) = (Dialogue::default(), 0, Returning::default());
    let mut client = RemoteClient {
        shared: &shared,
        remote,
        node,
        operators,
        dialogue,
        session,
        presence,
        notices,
        notified,
        returning,
    };
    loop {
        let input = tokio::select! {
            // A client that has presented its ticket elsewhere must not have to wait for this
            // node's farewell.
            biased;
            claim = client.returning.claimed() => {
                client.hand_over(claim);
                send(Output::Ended);
                return;
            }
            input = inbox.recv() => input,
            notice = client.notices.recv() => {
                let Some(notice) = notice else {
                    send(Output::Ended);
                    return;
                };
                if !send(client.notify(notice)) {
                    return;
                }
                continue;
            }
        };
        match input {
            // The session has ended, and nobody waits for the reply.
            Some(Input::Request { .. }) if inbox.is_closed() => {}
            Some(Input::Request { number, kind, body }) => {
                let outcome = client.request(kind, &body).await;
                for notice in client.returning.take_missed() {
                    send(client.notify(notice));
                }
                while let Some(notice) = client.notices.due() {
                    send(client.notify(notice));
                }
                send(Output::Reply { number, notices: client.notified, outcome });
            }
            Some(Input::Report(report)) => client.report(report),
            Some(Input::Abandoned) => {
                client.wait();
                return;
            }
            None => return,
        }
    }
}

/// A client that is connected to a node.
struct RemoteClient<'s> {
    shared: &'s Shared,
    remote: RemoteSession,
    /// The name of the node.
    node: Option<Arc<str>>,
    operators: Option<NodeOperators>,
    /// The exchange with an operator.
    dialogue: Dialogue,
    session: Connection,
    presence: Presence,
    notices: Notices,
    /// The number of notices sent.
    notified: u64,
    /// Declared last, so that it is dropped last: by the time its ticket becomes invalid, the
    /// session has ended.
    returning: Returning,
}

impl RemoteClient<'_> {
    fn notify(&mut self, notice: Notice) -> Output {
        self.notified += 1;
        self.returning.notified(notice);
        Output::Notice(notice)
    }

    async fn request(&mut self, kind: u16, body: &[u8]) -> Result<Vec<u8>, NetError> {
        match kind {
            ENTER_AGE => {
                let wanted = decoded(body).map_err(|_| NetError::InvalidParameter)?;
                let entered = self.shared.enter_age(&self.session, wanted);
                return encoded(&entered.await?).map_err(|_| NetError::InternalError);
            }
            RENEW_TICKET => {
                let RenewTicket { used, new } =
                    decoded(body).map_err(|_| NetError::InvalidParameter)?;
                self.renew(used, new).await?;
                return encoded(&()).map_err(|_| NetError::InternalError);
            }
            RESUME_SESSION => {
                let ResumeSession { presented, new } =
                    decoded(body).map_err(|_| NetError::InvalidParameter)?;
                let resumed = self.resume(presented, new).await?;
                return encoded(&resumed).map_err(|_| NetError::InternalError);
            }
            _ => {}
        }
        if let (ADMIN, Some(operators)) = (kind, &self.operators) {
            let part = decoded(body).map_err(|_| NetError::InvalidParameter)?;
            // The log then shows which node a command came from.
            let span = info_span!("command", node = self.node.as_deref().unwrap_or_default());
            let answer = self.dialogue.take(operators, part).instrument(span).await?;
            return encoded(&answer).map_err(|_| NetError::InternalError);
        }
        let named = named_player(kind, body);
        if let Some((player, _)) = named {
            self.give_up(player).await;
        }
        // All nodes may make clients' requests; nodes that run ages may also make ages' requests.
        let runs_ages = || self.shared.games.nodes().runs_ages(self.remote.incarnation);
        let is_allowed = OF_CLIENTS.contains(&kind) || OF_AGES.contains(&kind) && runs_ages();
        let carried = is_allowed.then(|| {
            let session = &self.session;
            for_kind(kind, CarryOut { session, body })
        });
        let outcome = match carried.flatten() {
            Some(outcome) => outcome.await,
            None => Err(NetError::NotSupported),
        };
        if let Some((player, true)) = named
            && outcome.is_ok()
        {
            self.returning.chose(player);
        }
        outcome
    }

    fn report(&mut self, report: ClientReport) {
        match report {
            ClientReport::LoggedIn { ip, port } => self.presence.logged_in(address(ip, port)),
            ClientReport::Lost => {
                self.presence.lost();
                self.returning.lost();
            }
            ClientReport::Resumed { ip, port } => {
                self.presence.resumed(address(ip, port));
                self.returning.came_back();
            }
            ClientReport::PlayerChanged => self.presence.changed(),
        }
    }
}

/// Carries out an encoded request of a session, and encodes its reply.
struct CarryOut<'s> {
    session: &'s Connection,
    body: &'s [u8],
}

impl<'s> ForKind for CarryOut<'s> {
    type Output = Pending<'s, Result<Vec<u8>, NetError>>;

    fn run<A: Ask>(self) -> Self::Output {
        let Ok(ask) = decoded::<A>(self.body) else {
            return Box::pin(ready(Err(NetError::InvalidParameter)));
        };
        // Only ages in this process need no placement.
        if ask.owner().is_some_and(|owner| owner.fence == 0) {
            return Box::pin(ready(Err(NetError::InvalidParameter)));
        }
        let reply = self.session.ask(ask);
        Box::pin(async move { encoded(&reply.await?).map_err(|_| NetError::InternalError) })
    }
}
