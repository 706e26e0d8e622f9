//! Connections that a proxy forwards unread.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_dissect::Time;
use worldwire_net::{Dial, Intermediary, Peer, tcp};

use crate::gate::Shared;
use crate::record::Legs;
use crate::world::PATIENCE;

/// Connects the clients on a port to one server.
#[derive(Debug)]
pub(crate) struct UnreadGate {
    shared: Arc<Shared>,
    /// The server, as host and port.
    server: String,
}

impl UnreadGate {
    pub(crate) fn new(shared: Arc<Shared>, server: String) -> Self {
        Self { shared, server }
    }
}

impl Dial<TcpStream> for UnreadGate {
    type Relay = Unread;

    async fn dial(&self, peer: Peer, _: &[u8]) -> io::Result<(TcpStream, Unread)> {
        let stream = tcp::dial(self.server.clone(), PATIENCE).await?;
        let (own, server): (SocketAddr, _) = (stream.local_addr()?, stream.peer_addr()?);
        let Shared { recorder, epoch, .. } = &*self.shared;
        let addresses = [peer.address, peer.local, own, server];
        let legs = recorder.as_ref().map(|recorder| recorder.conversation(addresses, false));
        tracing::info!(client = %peer.address, %server, "opened; forwarded unread");
        Ok((stream, Unread::new(legs, *epoch)))
    }
}

/// A connection that is forwarded unread.
#[derive(Debug)]
pub(crate) struct Unread {
    /// The bytes that wait for each side.
    queues: [VecDeque<Vec<u8>>; 2],
    /// Which sides have ended their streams.
    ended: [bool; 2],
    is_closed: bool,
    legs: Option<Legs>,
    /// The wall-clock time at zero on the proxy's clock.
    epoch: Time,
    now: Duration,
}

impl Unread {
    fn new(legs: Option<Legs>, epoch: Time) -> Self {
        let (queues, ended, is_closed) = Default::default();
        Self { queues, ended, is_closed, legs, epoch, now: Duration::ZERO }
    }

    fn time(&self) -> Time {
        let nanos = i64::try_from(self.now.as_nanos()).unwrap_or(i64::MAX);
        Time(self.epoch.0.saturating_add(nanos))
    }

    fn record(&mut self, ends: (Side, Side), bytes: &[u8]) {
        let time = self.time();
        if let Some(legs) = &mut self.legs {
            legs.bytes(time, ends, bytes, Vec::new());
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let time = self.time();
        if let Some(legs) = &mut self.legs {
            legs.close(time);
        }
    }
}

impl Intermediary for Unread {
    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Bytes(bytes) if !self.is_closed => {
                self.record((from, from), bytes);
                self.queues[from.other().index()].push_back(bytes.to_vec());
            }
            Input::End => self.ended[from.index()] = true,
            _ => {}
        }
    }

    fn timeout(&mut self, _: Duration) {}

    fn resume(&mut self, now: Duration) {
        self.now = now;
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        let bytes = self.queues[to.index()].pop_front()?;
        self.record((to, to.other()), &bytes);
        Some(bytes)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    fn is_paused(&self, _: Side) -> bool {
        false
    }

    fn kept_bytes(&self, _: Side) -> usize {
        0
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.queues[to.index()].iter().map(Vec::len).sum()
    }

    fn is_closed(&self) -> bool {
        self.is_closed || self.ended == [true; 2] && self.queues.iter().all(VecDeque::is_empty)
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    async fn woken(&mut self) {
        core::future::pending().await
    }
}
