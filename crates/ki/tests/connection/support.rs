//! Code shared by the tests: pairs of machines, and events as lines.

use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, EventOf};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_ki::connection::{ClientConfig, Connection, News, ServerConfig, Unit};
use worldwire_ki::message::RawMessage;

pub(crate) const EPOCH: Duration = Duration::from_millis(1_700_000_000_321);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn message(service: u8, order: u8, payload: &[u8]) -> RawMessage<'static> {
    RawMessage { service, order, payload: payload.to_vec().into() }
}

pub(crate) fn client() -> Connection {
    Connection::client(ClientConfig::new(EPOCH).into(), Duration::ZERO)
}

pub(crate) fn server() -> Connection {
    Connection::server(ServerConfig::new(EPOCH).into(), 4660, Duration::ZERO)
}

/// Formats an event as one line.
pub(crate) fn line(event: &EventOf<'_, Connection>) -> String {
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
        Event::News(News::Ignored { why, bytes, .. }) => {
            format!("ignored {:02x?} because {why:?}", &bytes[4..])
        }
        Event::News(news) => format!("{news:?}"),
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

/// The payloads of delivered messages.
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

/// A directly connected client and server, and the events that each reports.
pub(crate) struct Talk {
    pub(crate) pair: Pair<Connection>,
    pub(crate) events: [Vec<String>; 2],
}

impl Talk {
    pub(crate) fn new(client: ClientConfig, server: ServerConfig) -> Self {
        let client = Connection::client(client.into(), Duration::ZERO);
        let server = Connection::server(server.into(), 4660, Duration::ZERO);
        let pair = Pair::new(client, server, Conditions::default());
        Self { pair, events: Default::default() }
    }

    pub(crate) fn established() -> Self {
        let mut talk = Self::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
        talk.settle();
        assert!(talk.pair.client.is_established() && talk.pair.server.is_established());
        talk.events = Default::default();
        talk
    }

    pub(crate) fn client(&mut self) -> &mut Connection {
        &mut self.pair.client
    }

    pub(crate) fn server(&mut self) -> &mut Connection {
        &mut self.pair.server
    }

    /// Carries bytes in both directions until both sides are silent.
    pub(crate) fn settle(&mut self) {
        let events = &mut self.events;
        self.pair.settle(|member, event, _| events[index(member)].push(line(&event)));
    }

    /// Advances time from deadline to deadline, until this time or until one side is closed.
    /// Returns the number of deadlines that passed.
    pub(crate) fn wait(&mut self, until: Duration) -> usize {
        let mut deadlines = 0;
        loop {
            let next = [self.pair.client.poll_timeout(), self.pair.server.poll_timeout()];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else {
                return deadlines;
            };
            deadlines += 1;
            let events = &mut self.events;
            self.pair.run_until(at, |member, event, _| events[index(member)].push(line(&event)));
        }
    }
}

fn index(member: Member) -> usize {
    match member {
        Member::Client => 0,
        Member::Server => 1,
        Member::Relay | Member::Observer => unreachable!("there is none"),
    }
}
