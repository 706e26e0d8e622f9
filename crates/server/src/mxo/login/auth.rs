//! A client of the auth server.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_mxo::crypt::Random;
use worldwire_mxo::login::{
    AuthAccount, AuthAction, AuthServer, LoginConnection, LoginMessage, LoginSender, LoginStatus,
};
use worldwire_net::{Application, End, Flow, Peer};

use super::Logins;
use crate::mxo::realm::Verdict;

/// A client's connection to the auth server.
#[derive(Debug)]
pub(in crate::mxo) struct AuthClient {
    logins: Arc<Logins>,
    address: SocketAddr,
    server: AuthServer,
    /// A reply that is held back, and when to send it.
    paused: Option<(Duration, Box<Result<AuthAccount, LoginStatus>>)>,
}

/// It is time to send the reply that was held back.
#[derive(Debug)]
pub(in crate::mxo) struct Due;

impl AuthClient {
    pub(super) fn new(logins: Arc<Logins>, peer: Peer, random: Random) -> Self {
        let server = AuthServer::new(Arc::clone(&logins.auth), random);
        Self { logins, address: peer.address, server, paused: None }
    }

    async fn work(&mut self, sender: &mut LoginSender) -> Flow {
        while let Some(action) = self.server.poll() {
            match action {
                AuthAction::Send(message) => {
                    if let Err(error) = sender.send(&LoginMessage::AuthServer(message)) {
                        tracing::debug!(address = %self.address, %error, "cannot send");
                        return Flow::Break(());
                    }
                }
                AuthAction::Query(query) => {
                    let address = self.address.ip();
                    let version = self.server.client_version();
                    let verdict = self.logins.realm.check(address, &query, version).await;
                    let Verdict { answer, pause } = verdict;
                    if pause.is_zero() {
                        self.answer(answer, sender);
                    } else {
                        // If this waited, the connection would stay open after its client has left.
                        let until = self.logins.clock.now().saturating_add(pause);
                        self.paused = Some((until, Box::new(answer)));
                    }
                }
                AuthAction::Close(Some(refusal)) => {
                    self.logins.figures.refused(self.address, "auth", refusal);
                    return Flow::Break(());
                }
                // The client may stay connected, because it closes the connection itself.
                AuthAction::Close(None) => self.logins.figures.logged_in(),
            }
        }
        Flow::Continue(())
    }

    fn answer(&mut self, answer: Result<AuthAccount, LoginStatus>, sender: &LoginSender) {
        self.server.answer(answer, sender.unix_time());
    }
}

impl Application<LoginConnection> for AuthClient {
    type Notice = Due;

    async fn event(
        &mut self,
        event: EventOf<'_, LoginConnection>,
        sender: &mut LoginSender,
    ) -> Flow {
        if let Event::Received(received) = event {
            self.server.receive(&received, sender.unix_time());
        }
        self.work(sender).await
    }

    async fn notified(&mut self) -> Due {
        match &self.paused {
            Some((until, _)) => sleep(until.saturating_sub(self.logins.clock.now())).await,
            None => pending().await,
        }
        Due
    }

    async fn notice(&mut self, _: Due, sender: &mut LoginSender) -> Flow {
        if let Some((_, answer)) = self.paused.take() {
            self.answer(*answer, sender);
        }
        self.work(sender).await
    }

    fn state(&self) -> String {
        "auth".to_owned()
    }

    async fn ended(&mut self, _: &End) {
        self.logins.figures.ignored(self.server.ignored());
    }
}
