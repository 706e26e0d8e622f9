//! A client of the margin server.

use std::net::SocketAddr;
use std::sync::Arc;

use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_mxo::crypt::{KeyFile, KnownSession, Random};
use worldwire_mxo::login::{
    LoginConnection, LoginMessage, LoginSender, MarginAction, MarginServer,
};
use worldwire_net::{Application, End, Flow, Mailbox, Overflow, Peer};
use zeroize::Zeroizing;

use super::Logins;
use crate::mxo::realm::{MarginSession, Notice};

/// A client's connection to the margin server.
#[derive(Debug)]
pub(in crate::mxo) struct MarginClient {
    logins: Arc<Logins>,
    address: SocketAddr,
    server: MarginServer,
    session: MarginSession,
    notices: Mailbox<Notice>,
}

impl MarginClient {
    pub(super) fn new(logins: Arc<Logins>, peer: Peer, random: Random) -> Self {
        let server = MarginServer::new(Arc::clone(&logins.margin), random);
        let (number, notices) = logins.realm.arrive();
        let address = peer.address;
        let session = MarginSession { number, address: address.ip(), session: None, user: None };
        Self { logins, address, server, session, notices }
    }

    async fn work(&mut self, sender: &mut LoginSender) -> Flow {
        while let Some(action) = self.server.poll() {
            match action {
                MarginAction::Send(message) => {
                    if let Err(error) = sender.send(&LoginMessage::MarginServer(message)) {
                        tracing::debug!(address = %self.address, %error, "cannot send");
                        return Flow::Break(());
                    }
                }
                MarginAction::SetKey(key) => sender.set_key(key),
                MarginAction::Query(query) => {
                    self.session.user = self.server.user_id();
                    let answer = self.logins.realm.answer(&self.session, query).await;
                    self.logins.figures.answered(&answer);
                    self.server.answer(answer, sender.unix_time());
                }
                MarginAction::Opened { session_id, key } => {
                    if let Some(secrets) = &self.logins.secrets {
                        let session = KnownSession { id: Some(session_id), key: key.clone() };
                        let entry = KeyFile::format_session(&session);
                        secrets.append(Zeroizing::new(entry));
                    }
                    self.session.session = Some((session_id, key));
                }
                MarginAction::Close(refusal) => {
                    self.logins.figures.refused(self.address, "margin", refusal);
                    return Flow::Break(());
                }
            }
        }
        Flow::Continue(())
    }
}

impl Application<LoginConnection> for MarginClient {
    type Notice = Result<Notice, Overflow>;

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

    async fn notified(&mut self) -> Self::Notice {
        self.notices.next().await
    }

    async fn notice(&mut self, notice: Self::Notice, sender: &mut LoginSender) -> Flow {
        match notice {
            Ok(Notice::Established) => {
                self.server.established();
                // Clients send nothing here while the character is in the world.
                sender.set_idle_time(None);
            }
            Ok(Notice::Lost) => sender.set_idle_time(Some(self.logins.idle_time())),
            Ok(Notice::Left) | Err(Overflow) => return Flow::Break(()),
            Ok(Notice::Close(cause)) => {
                tracing::debug!(address = %self.address, ?cause, "margin connection closed");
                return Flow::Break(());
            }
        }
        self.work(sender).await
    }

    fn state(&self) -> String {
        "margin".to_owned()
    }

    async fn ended(&mut self, _: &End) {
        self.logins.realm.depart(self.session.number);
        self.logins.figures.ignored(self.server.ignored());
    }
}
