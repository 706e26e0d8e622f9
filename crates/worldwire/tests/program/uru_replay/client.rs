//! A client that sends the messages it is given and collects those it receives.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use worldwire_client::uru::Shard;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_net::{Application, Clock, Driver, Flow, tcp};
use worldwire_uru::connection::{ClientConfig, Connection, News, Sender};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::frame::{Message, Service};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) service: Service,
    to: mpsc::UnboundedSender<Message<'static>>,
    from: mpsc::UnboundedReceiver<Message<'static>>,
}

struct Messenger {
    outgoing: mpsc::UnboundedReceiver<Message<'static>>,
    incoming: mpsc::UnboundedSender<Message<'static>>,
    set_up: Option<oneshot::Sender<()>>,
}

impl Application<Connection> for Messenger {
    type Notice = Option<Message<'static>>;

    async fn event(&mut self, event: EventOf<'_, Connection>, _: &mut Sender) -> Flow {
        match event {
            Event::News(News::Established { .. }) => {
                self.set_up.take().unwrap().send(()).unwrap();
            }
            Event::Received(received) => {
                if let Some(message) = received.message() {
                    let _ = self.incoming.send(message.into_owned());
                }
            }
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Self::Notice {
        self.outgoing.recv().await
    }

    async fn notice(&mut self, notice: Self::Notice, sender: &mut Sender) -> Flow {
        let Some(message) = notice else { return Flow::Break(()) };
        sender.send(&message).unwrap();
        Flow::Continue(())
    }
}

impl Client {
    pub(crate) async fn connect(shard: &Shard, service: Service) -> Self {
        let kind = match service {
            Service::Gatekeeper => Some(ServerKind::Gatekeeper),
            Service::Auth => Some(ServerKind::Auth),
            _ => None,
        };
        let key = kind.and_then(|kind| shard.keys.public(kind).cloned());
        let (host, port) = shard.host(service).unwrap();
        let stream = tcp::dial((host, port), PATIENCE).await.unwrap();
        let driver = Driver::client(Clock::start());
        let mut config = ClientConfig::new(service, key);
        // The pings are those of the capture.
        config.ping_every = None;
        let connection = Connection::client(config.into(), [77; 64], driver.clock.now()).unwrap();
        let (to, outgoing) = mpsc::unbounded_channel();
        let (incoming, from) = mpsc::unbounded_channel();
        let (set_up, is_set_up) = oneshot::channel();
        let messenger = Messenger { outgoing, incoming, set_up: Some(set_up) };
        tokio::spawn(async move { driver.drive(stream, connection, messenger).await });
        timeout(PATIENCE, is_set_up).await.unwrap().unwrap();
        Self { service, to, from }
    }

    pub(crate) fn say(&self, message: Message<'static>) {
        self.to.send(message).unwrap();
    }

    /// The next message, if one arrives in time.
    pub(crate) async fn hear(&mut self, within: Duration) -> Option<Message<'static>> {
        timeout(within, self.from.recv()).await.ok().flatten()
    }
}
