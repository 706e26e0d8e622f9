//! One client's connection.

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
use worldwire_mxo::message::MPM_ID;
use worldwire_mxo::replicator::ClientId;
use worldwire_net::{Application, End, Flow, Peer, Permit, Waiting};

use super::Shared;
use super::admission::ALIVE_TIME;

/// The number of protocol violations after which a connection is closed. Undecodable datagrams do
/// not count, because anybody can send them with a forged address.
const MAX_BROKEN_RULES: u32 = 16;

/// How long the connection of a client that has left is kept, to acknowledge that.
const FAREWELL: Duration = Duration::from_secs(1);

/// The shortest interval between a client's sequence resets.
const BETWEEN_RESETS: Duration = Duration::from_secs(10);

/// One client's connection.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// The character named in the hello, until the client acknowledges something.
    waiting: Option<(u64, Waiting)>,
    /// The slot of an admitted client.
    slot: Option<Permit>,
    client: Option<ClientId>,
    ticked: watch::Receiver<u64>,
    broken_rules: u32,
    /// When its address sent another hello, if the client has not acknowledged anything since.
    doubted: Option<Instant>,
    /// When the client last asked for a reset.
    reset: Option<Instant>,
    /// When the client announced that it is leaving.
    left: Option<Instant>,
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, peer: Peer, ticked: watch::Receiver<u64>) -> Self {
        Self {
            shared,
            address: peer.address,
            waiting: None,
            slot: None,
            client: None,
            ticked,
            broken_rules: 0,
            doubted: None,
            reset: None,
            left: None,
        }
    }

    /// Handles a hello. A hello from an admitted client's address can come from a new client there,
    /// or be a replay, so the client must acknowledge something to stay.
    fn greet(&mut self, uid: u64, sender: &mut Sender) {
        let is_known = self.waiting.is_some() || self.client.is_some() || self.left.is_some();
        if !is_known {
            self.waiting = Some((uid, self.shared.admission.wait()));
        } else if self.client.is_some() && self.doubted.is_none() {
            self.doubted = Some(Instant::now());
            challenge(sender);
        }
    }

    /// Admits the client, which has acknowledged something.
    fn enter(&mut self, uid: u64) -> Flow {
        match self.shared.admission.admit(self.address.ip()) {
            Ok(slot) => self.slot = Some(slot),
            Err(refused) => return self.refuse_entry(&refused),
        }
        let entered = self.shared.world().enter(uid);
        match entered {
            Ok(client) => {
                self.client = Some(client);
                if let Some(count) = self.shared.entered.count() {
                    tracing::info!(address = %self.address, uid, count, "client entered");
                }
                Flow::Continue(())
            }
            Err(error) => self.refuse_entry(&error),
        }
    }

    fn refuse_entry(&self, error: &dyn fmt::Display) -> Flow {
        self.shared.figures.turned_away();
        if let Some(count) = self.shared.full.count() {
            tracing::warn!(address = %self.address, %error, count, "refused clients");
        }
        Flow::Break(())
    }

    /// Handles the fate of packets.
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
        match news {
            // It has acknowledged something.
            News::Established => match self.waiting.take() {
                Some((uid, _)) => self.enter(uid),
                None => Flow::Continue(()),
            },
            _ => Flow::Continue(()),
        }
    }

    /// Handles a request to reset the sequence: asks the client to do so, after which it gets all
    /// its views again. The client's answer looks the same as a request, and may arrive twice.
    fn reset(&mut self, sender: &mut Sender) {
        let is_answer = self.reset.is_some_and(|asked| asked.elapsed() < BETWEEN_RESETS);
        if self.client.is_none() || is_answer {
            return;
        }
        self.reset = Some(Instant::now());
        // This fails while a reset is in progress.
        if sender.reset().is_ok() {
            tracing::info!(address = %self.address, "client is resetting its sequence");
        }
    }

    /// Removes the client and its character.
    fn leave(&mut self, end: &dyn fmt::Display) {
        if let Some(client) = self.client.take() {
            self.shared.world().leave(client);
            tracing::debug!(address = %self.address, %end, "client left");
        }
    }

    /// Counts a protocol violation, or a datagram that cannot be decoded.
    fn refuse(&mut self, error: &Error, is_its_own: bool) -> Flow {
        self.shared.figures.refused();
        if let Some(count) = self.shared.refused.count() {
            tracing::warn!(address = %self.address, %error, count, "protocol violations");
        }
        self.broken_rules += u32::from(is_its_own);
        if self.broken_rules >= MAX_BROKEN_RULES { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

/// Sends an empty section for the client to acknowledge. If that fails, the connection ends soon.
fn challenge(sender: &mut Sender) {
    let _ = sender.send_objects(&[MPM_ID, 0, 0], None);
}

/// Why the application wakes up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    /// The world has advanced.
    Tick,
    /// The client waited for admission, and was dropped for a newer one.
    Dropped,
}

impl Application<Connection> for Client {
    type Notice = Wake;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        match event {
            Event::Received(piece) => match piece.unit {
                Unit::Hello(hello) => self.greet(hello.character_uid, sender),
                Unit::Section { id: MPM_ID, number } => {
                    let Some(client) = self.client else { return Flow::Continue(()) };
                    let received = self.shared.world().receive(client, number, piece.bytes);
                    if let Err(error) = received {
                        return self.refuse(&error, true);
                    }
                }
                Unit::Rpc { .. } if RpcMessage::of(piece.bytes).opcode() == LEAVE => {
                    self.left.get_or_insert_with(Instant::now);
                    self.leave(&"the client left");
                }
                Unit::Upkeep { flags, .. } if flags.contains(RccFlags::Reset) => self.reset(sender),
                // The world does not support other RPC messages.
                _ => {}
            },
            Event::News(news) => return self.news(&news, sender),
            // A datagram that cannot be decrypted may come from anybody.
            Event::Fault { error, .. } => return self.refuse(&error, false),
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Wake {
        if let Some((_, waiting)) = &mut self.waiting {
            waiting.dropped().await;
            return Wake::Dropped;
        }
        if self.ticked.changed().await.is_err() {
            // The world has stopped with the server.
            core::future::pending::<()>().await;
        }
        Wake::Tick
    }

    async fn notice(&mut self, wake: Wake, sender: &mut Sender) -> Flow {
        if matches!(wake, Wake::Dropped) {
            return Flow::Break(());
        }
        if self.left.is_some_and(|left| left.elapsed() >= FAREWELL) {
            return Flow::Break(());
        }
        if self.doubted.is_some_and(|since| since.elapsed() >= ALIVE_TIME) {
            return Flow::Break(());
        }
        let Some(client) = self.client else { return Flow::Continue(()) };
        let sent = self.shared.world().send_updates(client, sender);
        match sent {
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
