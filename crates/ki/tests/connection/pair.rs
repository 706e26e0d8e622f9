//! The box: a client, a server, and what they tell.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_ki::connection::{ClientConfig, Connection, Event, ServerConfig, Unit};
use worldwire_ki::message::RawMessage;

pub(crate) const EPOCH: Duration = Duration::from_millis(1_700_000_000_321);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn message(service: u8, order: u8, payload: &[u8]) -> RawMessage<'static> {
    RawMessage { service, order, payload: payload.to_vec().into() }
}

/// One line for an event.
pub(crate) fn line(event: &Event<'_>) -> String {
    match event {
        Event::Received(received) => match received.unit {
            Unit::Message { service, order } => {
                format!("{} {service}/{order} {:02x?}", received.side, received.payload())
            }
            Unit::Control(_) => {
                format!("{} {:?}", received.side, received.control().unwrap().unwrap())
            }
            Unit::Empty => format!("{} empty", received.side),
        },
        Event::Ignored { message, why } => {
            format!("ignored {:02x?} because {why:?}", message.payload())
        }
        Event::Fault { side, error } => format!("fault of the {side}: {error}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn lines(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

/// Only the payloads of delivered messages.
pub(crate) fn payloads(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some(event) = connection.poll_event() {
        if let Event::Received(received) = event
            && matches!(received.unit, Unit::Message { .. })
        {
            payloads.push(received.payload().to_vec());
        }
    }
    payloads
}

/// A client, a server, and nothing between them.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) now: Duration,
    pub(crate) heard: [Vec<String>; 2],
}

impl Pair {
    pub(crate) fn new(client: ClientConfig, server: ServerConfig) -> Self {
        let now = Duration::ZERO;
        Self {
            client: Connection::client(client, now),
            server: Connection::server(server.into(), 4660, now),
            now,
            heard: Default::default(),
        }
    }

    pub(crate) fn established() -> Self {
        let mut pair = Self::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
        pair.pump();
        assert!(pair.client.is_established() && pair.server.is_established());
        pair.heard = Default::default();
        pair
    }

    /// Carries bytes to and fro until both are silent.
    pub(crate) fn pump(&mut self) {
        loop {
            self.heard[0].extend(lines(&mut self.client));
            self.heard[1].extend(lines(&mut self.server));
            let mut silent = true;
            while let Some(bytes) = self.server.poll_transmit() {
                self.client.receive(Side::Server, self.now, &bytes);
                silent = false;
            }
            while let Some(bytes) = self.client.poll_transmit() {
                self.server.receive(Side::Client, self.now, &bytes);
                silent = false;
            }
            if silent {
                return;
            }
        }
    }

    /// Lets time pass, deadline by deadline.
    pub(crate) fn wait(&mut self, until: Duration) -> usize {
        let mut deadlines = 0;
        loop {
            let next = [self.client.poll_timeout(), self.server.poll_timeout()];
            match next.into_iter().flatten().min() {
                Some(at) if at <= until => {
                    self.now = at;
                    deadlines += 1;
                }
                _ => return deadlines,
            }
            self.client.timeout(self.now);
            self.server.timeout(self.now);
            self.pump();
            if self.client.is_closed() || self.server.is_closed() {
                return deadlines;
            }
        }
    }
}
