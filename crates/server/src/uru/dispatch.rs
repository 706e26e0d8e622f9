//! One port for all services. The connect packet selects the service.

use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Event, EventOf};
use worldwire_net::{Accept, Application, End, Flow, Peer};
use worldwire_uru::connect::ConnectData;
use worldwire_uru::connection::{Connection, Content, News, Received, Sender};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::types::Uuid;

use super::auth::{AuthEvent, AuthService};
use super::config::Role;
use super::figures::Open;
use super::file::FileService;
use super::game::GameService;
use super::{Shared, auth, gatekeeper};

/// Accepts a shard's connections.
#[derive(Debug)]
pub(super) struct Dispatcher(pub(super) Arc<Shared>);

impl Accept for Dispatcher {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, now: Duration) -> (Connection, Client) {
        let mut seed = [0; 7];
        if let Err(error) = getrandom::fill(&mut seed) {
            // The panic ends only this connection. Without random numbers, its key would be
            // predictable.
            panic!("cannot get random numbers: {error}");
        }
        let connection = Connection::server(self.0.server(), seed, now);
        let shared = Arc::clone(&self.0);
        let token = Uuid::ZERO;
        (connection, Client { shared, peer, token, serving: Serving::Setup, open: None })
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    peer: Peer,
    /// The token in an auth client's connect packet.
    token: Uuid,
    serving: Serving,
    open: Option<Open>,
}

/// The service of a connection.
#[derive(Debug)]
enum Serving {
    /// The service is not known yet.
    Setup,
    Gatekeeper,
    File(FileService),
    Auth(Box<AuthService>),
    Game(Box<GameService>),
}

impl Client {
    async fn established(&mut self, service: Service, encrypted: bool) -> Flow {
        let address = self.peer.address;
        tracing::debug!(%address, service = service.name(), encrypted, "connected");
        let shared = &self.shared;
        let role = role(service);
        if !shared.config().cluster.has(role) {
            if let Some(count) = shared.figures.turned_away.count() {
                let service = service.name();
                tracing::warn!(%address, service, count, "connection closed: this process does not have the role that serves this service");
            }
            return Flow::Break(());
        }
        // Players may still come to the ages that run here.
        if service != Service::Game && shared.is_draining() {
            tracing::debug!(%address, "connection closed: this node is being drained");
            return Flow::Break(());
        }
        self.open = Some(shared.figures.established(service));
        self.serving = match service {
            Service::Gatekeeper => Serving::Gatekeeper,
            Service::File => {
                Serving::File(FileService::new(Arc::clone(&shared.library), shared.config().build))
            }
            Service::Auth => {
                match AuthService::open(Arc::clone(shared), self.peer, self.token).await {
                    Ok(auth) => Serving::Auth(Box::new(auth)),
                    Err(error) => {
                        if let Some(count) = shared.figures.unserved.count() {
                            tracing::warn!(%address, ?error, count, "connections closed: the vault is not available; earlier log lines say whether the database or the leader cannot be reached");
                        }
                        return Flow::Break(());
                    }
                }
            }
            Service::Game => Serving::Game(Box::new(GameService::new(Arc::clone(shared), address))),
        };
        Flow::Continue(())
    }

    async fn received(&mut self, received: Received<'_>, sender: &mut Sender) -> Flow {
        let message = match received.content() {
            Ok(Content::Message(message)) => Some(message),
            Ok(Content::Connect(packet)) => {
                if let ConnectData::Auth(data) = packet.data {
                    self.token = data.token;
                }
                None
            }
            _ => None,
        };
        match (&mut self.serving, message) {
            (Serving::Gatekeeper, Some(Message::GatekeeperClient(message))) => {
                gatekeeper::answer(&message, &self.shared.config().public_address, sender)
            }
            (Serving::File(file), Some(Message::FileClient(message))) => {
                file.message(message, sender).await
            }
            (Serving::Auth(auth), Some(Message::AuthClient(message))) => {
                auth.message(message, sender).await
            }
            (Serving::Game(game), Some(Message::GameClient(message))) => {
                game.message(message, sender).await
            }
            // Packets that set up the connection.
            _ => Flow::Continue(()),
        }
    }
}

/// The role that a process needs for this service.
fn role(service: Service) -> Role {
    match service {
        Service::Game => Role::Age,
        Service::Gatekeeper | Service::File | Service::Auth => Role::Front,
    }
}

/// An event from another task.
#[derive(Debug)]
pub(super) enum Notice {
    /// An event for an auth connection.
    Auth(AuthEvent),
    /// The age that a game connection belongs to has messages for the client, or closes the
    /// connection.
    Age,
    /// An operator is draining this process of clients.
    Draining,
}

impl Application<Connection> for Client {
    type Notice = Notice;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { service, encrypted }) => {
                self.established(service, encrypted).await
            }
            Event::Received(received) => self.received(received, sender).await,
            _ => Flow::Continue(()),
        }
    }

    async fn notified(&mut self) -> Notice {
        match &mut self.serving {
            Serving::Auth(auth) => tokio::select! {
                event = auth.notified() => Notice::Auth(event),
                () = self.shared.until_draining() => Notice::Draining,
            },
            Serving::Gatekeeper | Serving::File(_) => {
                self.shared.until_draining().await;
                Notice::Draining
            }
            Serving::Game(game) => {
                game.notified().await;
                Notice::Age
            }
            _ => pending().await,
        }
    }

    async fn notice(&mut self, notice: Notice, sender: &mut Sender) -> Flow {
        match (notice, &mut self.serving) {
            (Notice::Auth(AuthEvent::Notice(notice)), Serving::Auth(auth)) => {
                auth.notice(notice, sender)
            }
            (Notice::Auth(AuthEvent::Claim(claim)), serving) => {
                if let Serving::Auth(auth) = mem::replace(serving, Serving::Setup) {
                    auth.hand_over(claim);
                }
                Flow::Break(())
            }
            (Notice::Age, Serving::Game(game)) => game.notice(),
            (Notice::Draining, serving) => {
                // The client continues its session at another front.
                if let Serving::Auth(auth) = mem::replace(serving, Serving::Setup) {
                    auth.lost();
                }
                Flow::Break(())
            }
            _ => Flow::Continue(()),
        }
    }

    fn wants_room(&self) -> bool {
        match &self.serving {
            Serving::Auth(auth) => auth.wants_room(),
            Serving::File(file) => file.wants_room(),
            Serving::Game(game) => game.wants_room(),
            _ => false,
        }
    }

    async fn room(&mut self, sender: &mut Sender) -> Flow {
        match &mut self.serving {
            Serving::File(file) => file.room(sender).await,
            Serving::Auth(auth) => auth.room(sender).await,
            Serving::Game(game) => game.room(sender),
            _ => Flow::Continue(()),
        }
    }

    async fn stopping(&mut self, sender: &mut Sender) {
        // Otherwise, clients would not try to continue their sessions at the next process.
        if let Serving::Auth(_) = self.serving
            && !self.shared.vault.keeps_sessions()
        {
            auth::stopping(sender);
        }
    }

    fn state(&self) -> String {
        match &self.serving {
            Serving::Setup => "setup".to_owned(),
            Serving::Gatekeeper => "gatekeeper".to_owned(),
            Serving::File(_) => "file".to_owned(),
            Serving::Auth(auth) => format!("auth, {}", auth.state()),
            Serving::Game(game) => format!("game, {}", game.state()),
        }
    }

    async fn ended(&mut self, end: &End) {
        // A lost auth connection's player stays online for a while, so that the client can
        // reconnect.
        match (mem::replace(&mut self.serving, Serving::Setup), end) {
            (Serving::Auth(auth), End::Lost) => auth.lost(),
            (Serving::Game(mut game), _) => game.ended().await,
            _ => {}
        }
        self.open = None;
        tracing::debug!(address = %self.peer.address, %end, "disconnected");
    }
}
