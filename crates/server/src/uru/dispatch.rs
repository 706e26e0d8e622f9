//! One port for all services: the connect packet says which one a client wants.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Event, EventOf};
use worldwire_net::{Accept, Application, End, Flow, Peer};
use worldwire_uru::connection::{Connection, News, Received, Sender};
use worldwire_uru::frame::{Message, Service};

use super::auth::AuthService;
use super::figures::Open;
use super::file::FileService;
use super::game::GameService;
use super::vault::Notice;
use super::{Shared, auth, gatekeeper};

/// Makes the connections of a shard.
#[derive(Debug)]
pub(super) struct Dispatcher(pub(super) Arc<Shared>);

impl Accept for Dispatcher {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, now: Duration) -> (Connection, Client) {
        let mut seed = [0; 7];
        if let Err(error) = getrandom::fill(&mut seed) {
            // It ends this connection: a key without chance in it would be none.
            panic!("the operating system has no random numbers: {error}");
        }
        let connection = Connection::server(Arc::clone(&self.0.server), seed, now);
        let shared = Arc::clone(&self.0);
        (connection, Client { shared, peer, serving: Serving::Setup, open: None })
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    peer: Peer,
    serving: Serving,
    open: Option<Open>,
}

/// What a connection is for.
#[derive(Debug)]
enum Serving {
    /// Nobody knows yet.
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
        self.open = Some(self.shared.figures.established(service));
        let shared = &self.shared;
        self.serving = match service {
            Service::Gatekeeper => Serving::Gatekeeper,
            Service::File => {
                Serving::File(FileService::new(Arc::clone(&shared.library), shared.config.build))
            }
            Service::Auth => match AuthService::open(Arc::clone(shared), self.peer).await {
                Ok(auth) => Serving::Auth(Box::new(auth)),
                Err(error) => {
                    tracing::warn!(%address, ?error, "connection closed: the vault is not there");
                    return Flow::Break(());
                }
            },
            Service::Game => Serving::Game(Box::new(GameService::new(Arc::clone(shared), address))),
        };
        Flow::Continue(())
    }

    async fn received(&mut self, received: Received<'_>, sender: &mut Sender) -> Flow {
        match (&mut self.serving, received.message()) {
            (Serving::Gatekeeper, Some(Message::GatekeeperClient(message))) => {
                gatekeeper::answer(&message, &self.shared.config.public_address, sender)
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
            // Packets of setup.
            _ => Flow::Continue(()),
        }
    }
}

impl Application<Connection> for Client {
    type Notice = Option<Notice>;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { service, encrypted }) => {
                self.established(service, encrypted).await
            }
            Event::Received(received) => self.received(received, sender).await,
            _ => Flow::Continue(()),
        }
    }

    async fn notified(&mut self) -> Option<Notice> {
        match &mut self.serving {
            Serving::Auth(auth) => auth.notified().await,
            Serving::Game(game) => {
                game.notified().await;
                None
            }
            _ => pending().await,
        }
    }

    async fn notice(&mut self, notice: Option<Notice>, sender: &mut Sender) -> Flow {
        match &self.serving {
            Serving::Auth(_) => auth::notice(notice, sender),
            Serving::Game(game) => game.notice(),
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
        if let Serving::Auth(_) = self.serving {
            auth::stopping(sender);
        }
    }

    async fn ended(&mut self, end: &End) {
        match &mut self.serving {
            Serving::Auth(auth) => self.shared.games.auth_ended(auth.number()),
            Serving::Game(game) => game.ended().await,
            _ => {}
        }
        // The end of an auth connection takes its player offline.
        self.serving = Serving::Setup;
        self.open = None;
        tracing::debug!(address = %self.peer.address, %end, "disconnected");
    }
}
