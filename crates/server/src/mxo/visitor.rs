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
use worldwire_mxo::frame::{LEAVE, RccFlags, RpcMessage};
use worldwire_mxo::message::{END, MPM_ID};
use worldwire_mxo::replicator::ClientId;
use worldwire_net::{Application, End, Flow, Peer, Seat};

use super::Shared;
use super::door::{ALIVE_TIME, Waiting};

/// So many broken rules close a connection. Datagrams that somebody else sends in its name are
/// damaged ones at the most: they are counted, and close nothing.
const MAX_BROKEN_RULES: u32 = 16;

/// How long the connection of a client that has left is kept, so that it hears that this is known.
const FAREWELL: Duration = Duration::from_secs(1);

/// A client may reset its sequence once in so long.
const BETWEEN_RESETS: Duration = Duration::from_secs(10);

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
    /// Since when it is not known whether the client is still there: its address said hello again.
    doubted: Option<Instant>,
    /// When the client last asked for a reset.
    reset: Option<Instant>,
    /// When the client said that it leaves.
    left: Option<Instant>,
}

impl Visitor {
    pub(super) fn new(shared: Arc<Shared>, peer: Peer, ticked: watch::Receiver<u64>) -> Self {
        let address = peer.address;
        let (waiting, seat, client) = (None, None, None);
        Self {
            shared,
            address,
            waiting,
            seat,
            client,
            ticked,
            broken_rules: 0,
            doubted: None,
            reset: None,
            left: None,
        }
    }

    /// The client said hello. When it is in, another one may have begun at its address, or somebody
    /// sends an old hello: the client shows whether it is still there.
    fn greet(&mut self, uid: u64, sender: &mut Sender) {
        let is_known = self.waiting.is_some() || self.client.is_some() || self.left.is_some();
        if !is_known {
            self.waiting = Some((uid, self.shared.door.wait()));
            challenge(sender);
        } else if self.client.is_some() && self.doubted.is_none() {
            self.doubted = Some(Instant::now());
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
            if matches!(news, News::Delivered(_) | News::Late(_) | News::Reset) {
                self.doubted = None;
            } else if self.doubted.is_some() && matches!(news, News::Lost(_)) {
                challenge(sender);
            }
            return Flow::Continue(());
        }
        match (news, self.waiting.take()) {
            (News::Delivered(_) | News::Late(_), Some((uid, _))) => return self.enter(uid),
            (_, waiting) => self.waiting = waiting,
        }
        Flow::Continue(())
    }

    /// The client has reset its sequence, or wants to: it is asked to do so, and then gets its views
    /// anew. Its answer looks the same, and may come twice.
    fn reset(&mut self, sender: &mut Sender) {
        let is_answer = self.reset.is_some_and(|asked| asked.elapsed() < BETWEEN_RESETS);
        if self.client.is_none() || is_answer {
            return;
        }
        self.reset = Some(Instant::now());
        // In the middle of a reset, there is none to begin.
        if sender.reset().is_ok() {
            tracing::info!(address = %self.address, "a client resets its sequence");
        }
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
        if self.broken_rules >= MAX_BROKEN_RULES { Flow::Break(()) } else { Flow::Continue(()) }
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
                Unit::Upkeep { flags, .. } if flags.contains(RccFlags::Reset) => self.reset(sender),
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
        if self.doubted.is_some_and(|since| since.elapsed() >= ALIVE_TIME) {
            return Flow::Break(());
        }
        if self.waiting.as_ref().is_some_and(|(_, waiting)| waiting.is_over()) {
            return Flow::Break(());
        }
        if self.waiting.as_mut().is_some_and(|(_, waiting)| waiting.is_due()) {
            challenge(sender);
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
