//! What is done with a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use worldwire_core::Error;
use worldwire_core::connection::{Event, EventOf};
use worldwire_mxo::connection::{Connection, News, Sender, Unit};
use worldwire_mxo::frame::{LEAVE, RpcMessage};
use worldwire_mxo::message::{END, MPM_ID};
use worldwire_mxo::replicator::ClientId;
use worldwire_net::{Application, End, Flow, Peer, Seat};

use super::Shared;
use super::door::Waiting;

/// So many broken rules close a connection. Datagrams that somebody else sends in its name are
/// damaged ones at the most: they are counted, and close nothing.
const MOST_BROKEN_RULES: u32 = 16;

/// How long the connection of a client that has left is kept, so that it hears that this is known.
const FAREWELL: Duration = Duration::from_secs(1);

/// One client.
#[derive(Debug)]
pub(super) struct Visitor {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// The character that a hello named, as long as nothing shows that the client hears.
    waiting: Option<(u64, Waiting)>,
    /// Its place.
    seat: Option<Seat>,
    client: Option<ClientId>,
    ticked: watch::Receiver<u64>,
    broken_rules: u32,
    /// When the client said that it leaves.
    left: Option<Instant>,
}

impl Visitor {
    pub(super) fn new(shared: Arc<Shared>, peer: Peer, ticked: watch::Receiver<u64>) -> Self {
        let address = peer.address;
        let (waiting, seat, client) = (None, None, None);
        Self { shared, address, waiting, seat, client, ticked, broken_rules: 0, left: None }
    }

    /// The client said hello. One that says it again is the same.
    fn greet(&mut self, uid: u64, sender: &mut Sender) {
        let is_known = self.waiting.is_some() || self.client.is_some() || self.left.is_some();
        if !is_known {
            self.waiting = Some((uid, self.shared.door.wait()));
            challenge(sender);
        }
    }

    /// The client hears what it is sent.
    fn enter(&mut self, uid: u64) -> Flow {
        match self.shared.door.let_in(self.address.ip()) {
            Ok(seat) => self.seat = Some(seat),
            Err(refused) => return self.turn_away(&refused),
        }
        let entered = self.shared.world().enter(uid);
        match entered {
            Ok(client) => {
                self.client = Some(client);
                if let Some(count) = self.shared.come.count() {
                    tracing::info!(address = %self.address, uid, count, "a client has come");
                }
                Flow::Continue(())
            }
            Err(error) => self.turn_away(&error),
        }
    }

    fn turn_away(&self, error: &dyn fmt::Display) -> Flow {
        self.shared.figures.turned_away();
        if let Some(count) = self.shared.full.count() {
            tracing::warn!(address = %self.address, %error, count, "clients not let in");
        }
        Flow::Break(())
    }

    /// What the connection reports of packets.
    fn news(&mut self, news: &News, sender: &mut Sender) -> Flow {
        if let Some(client) = self.client {
            self.shared.world().news(client, news);
            return Flow::Continue(());
        }
        match (news, self.waiting.take()) {
            (News::Delivered(_) | News::Late(_), Some((uid, _))) => return self.enter(uid),
            (_, waiting) => self.waiting = waiting,
        }
        if matches!(news, News::Lost(_)) && self.waiting.is_some() {
            challenge(sender);
        }
        Flow::Continue(())
    }

    /// The client is gone, and its character with it.
    fn leave(&mut self, end: &dyn fmt::Display) {
        if let Some(client) = self.client.take() {
            self.shared.world().leave(client);
            tracing::debug!(address = %self.address, %end, "a client has gone");
        }
    }

    /// The client broke a rule.
    fn refuse(&mut self, error: &Error, is_its_own: bool) -> Flow {
        self.shared.figures.refused();
        if let Some(count) = self.shared.refused.count() {
            tracing::warn!(address = %self.address, %error, count, "refused");
        }
        self.broken_rules += u32::from(is_its_own);
        if self.broken_rules >= MOST_BROKEN_RULES { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

/// Sends something for the client to acknowledge: a section without anything in it. What cannot be
/// sent is over soon.
fn challenge(sender: &mut Sender) {
    let _ = sender.send_objects(&END.to_le_bytes(), None);
}

impl Application<Connection> for Visitor {
    type Notice = ();

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::Received(piece) => match piece.unit {
                Unit::Hello(hello) => self.greet(hello.character_uid, sender),
                Unit::Section { id: MPM_ID, number } => {
                    let Some(client) = self.client else { return Flow::Continue(()) };
                    let heard = self.shared.world().hear(client, number, piece.bytes);
                    if let Err(error) = heard {
                        return self.refuse(&error, true);
                    }
                }
                Unit::Rpc { .. } if RpcMessage::of(piece.bytes).opcode() == LEAVE => {
                    self.left.get_or_insert_with(Instant::now);
                    self.leave(&"it has left");
                }
                // The world has nothing that other RPC messages could be about.
                _ => {}
            },
            Event::News(news) => return self.news(&news, sender),
            // A datagram that opens with no key may be anybody's.
            Event::Fault { error, .. } => return self.refuse(&error, false),
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) {
        if self.ticked.changed().await.is_err() {
            // Time has ended: the server stops.
            core::future::pending::<()>().await;
        }
    }

    async fn notice(&mut self, (): (), sender: &mut Sender) -> Flow {
        if self.left.is_some_and(|left| left.elapsed() >= FAREWELL) {
            return Flow::Break(());
        }
        if self.waiting.as_ref().is_some_and(|(_, waiting)| waiting.is_over()) {
            return Flow::Break(());
        }
        let Some(client) = self.client else { return Flow::Continue(()) };
        let spoken = self.shared.world().speak(client, sender);
        match spoken {
            Ok(bytes) => {
                self.shared.figures.sent(bytes);
                Flow::Continue(())
            }
            Err(_) => Flow::Break(()),
        }
    }

    async fn ended(&mut self, end: &End) {
        self.leave(end);
    }
}
