//! A toy family and its application. A frame is a `u16` length and that many bytes, or a whole
//! datagram.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Connection as Machine, Event, EventOf, Incoming, Input, Located,
    Outgoing, Piece, SendError, Sender as Sends, Timer, Timers,
};
use worldwire_core::{Error, Reader, Result, Side};
use worldwire_net::{Application, End, Flow, Mailbox, Overflow};

/// How long the toy's peers may be silent.
pub(crate) const IDLE: Duration = Duration::from_secs(45);

/// A toy connection.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    incoming: Incoming,
    events: VecDeque<Event<Located, ()>>,
    is_ended: bool,
}

/// The half that sends.
#[derive(Debug)]
pub(crate) struct Sender {
    peer: Side,
    out: Outgoing,
    timers: Timers,
    closing: Closing,
}

/// A frame.
#[derive(Debug)]
pub(crate) struct Received<'c> {
    side: Side,
    pub(crate) bytes: &'c [u8],
    offset: u64,
}

impl<'c> Piece<'c> for Received<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }

    fn is_message(&self) -> bool {
        true
    }
}

pub(crate) fn connection(peer: Side, now: Duration) -> Connection {
    bounded(peer, now, Bounds::default())
}

pub(crate) fn bounded(peer: Side, now: Duration, bounds: Bounds) -> Connection {
    let mut timers = Timers::new(now);
    timers.start(Timer::Idle, IDLE);
    let sender = Sender { peer, out: Outgoing::new(bounds), timers, closing: Closing::default() };
    Connection { sender, incoming: Incoming::default(), events: VecDeque::new(), is_ended: false }
}

/// A frame as it goes onto the wire.
pub(crate) fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    [&length.to_le_bytes(), bytes].concat()
}

fn read(bytes: &[u8]) -> Result<((), usize)> {
    let mut reader = Reader::new(bytes);
    let length = reader.u16("length")?;
    if length == u16::MAX {
        return Err(Error::malformed("a shorter frame", "the longest"));
    }
    reader.take(length.into())?;
    Ok(((), reader.position()))
}

impl Machine for Connection {
    type News = ();
    type Received<'c> = Received<'c>;
    type Sender = Sender;

    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.sender.timers.set_now(now);
        if self.is_closed() || from != self.sender.peer {
            return;
        }
        match input {
            Input::Bytes(bytes) | Input::Datagram(bytes) => {
                self.incoming.forget();
                self.incoming.push(bytes);
            }
            Input::Gap(_) => unreachable!("sockets have no gaps"),
            Input::End => self.is_ended = true,
        }
    }

    fn timeout(&mut self, now: Duration) {
        self.sender.timers.set_now(now);
        if let Some(timer) = self.sender.timers.passed() {
            self.sender.end(CloseReason::Timeout(timer));
        }
    }

    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Sender)> {
        if self.events.is_empty() && !self.is_closed() {
            let side = self.sender.peer;
            match self.incoming.attempt(read) {
                Ok(Some(((), located))) => {
                    self.sender.timers.start(Timer::Idle, IDLE);
                    self.events.push_back(Event::Received(located));
                }
                Ok(None) if self.is_ended => self.sender.end(CloseReason::Remote),
                Ok(None) => {}
                Err(error) => {
                    self.events.push_back(Event::Fault { side, error });
                    self.sender.end(CloseReason::Fault);
                }
            }
        }
        let Some(event) = self.events.pop_front() else {
            return Some((Event::Closed(self.sender.closing.report()?), &mut self.sender));
        };
        let event = event.map(|Located { range, offset }| Received {
            side: self.sender.peer,
            bytes: self.incoming.bytes(range).get(2..).unwrap(),
            offset,
        });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        assert_eq!(to, self.sender.peer);
        self.sender.out.pop()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.sender.timers.next()
    }

    fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    fn is_established(&self) -> bool {
        true
    }

    fn is_closed(&self) -> bool {
        self.sender.closing.is_closed()
    }

    fn queued_bytes(&self, _: Side) -> usize {
        self.sender.out.bytes()
    }
}

impl Sender {
    fn end(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }
}

impl Sends for Sender {
    type Message<'m> = [u8];

    fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let bytes = frame(message);
        self.out.check_room(bytes.len()).map_err(SendError::QueueFull)?;
        self.out.push(bytes);
        Ok(())
    }

    fn close(&mut self) {
        self.end(CloseReason::Local);
    }
}

/// The events that a test's applications recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|seen| *seen == what).count()
    }

    /// Waits until an event was recorded this many times.
    pub(crate) async fn until(&self, what: &str, count: usize) {
        let wait = async {
            while self.count(what) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let patience = tokio::time::timeout(Duration::from_secs(20), wait);
        patience.await.unwrap_or_else(|_| panic!("wanted {what}, found {:?}", self.all()));
    }
}

/// Executes the commands in frames and records events.
pub(crate) struct Obedient {
    pub(crate) seen: Seen,
    pub(crate) mailbox: Option<Mailbox<&'static str>>,
    /// The event that `wait` waits for.
    pub(crate) gate: Arc<Notify>,
    /// The remaining parts of a download.
    pub(crate) parts: u32,
}

/// A part of a download.
pub(crate) const PART: usize = 32 << 10;

impl Obedient {
    pub(crate) fn new(seen: &Seen) -> Self {
        Self { seen: seen.clone(), mailbox: None, gate: Arc::default(), parts: 0 }
    }
}

impl Application<Connection> for Obedient {
    type Notice = std::result::Result<&'static str, Overflow>;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        let received = match event {
            Event::Received(received) => received,
            Event::Closed(reason) => {
                self.seen.say(reason.to_string());
                return Flow::Continue(());
            }
            event => {
                self.seen.say(format!("{event:?}").split([' ', '(']).next().unwrap().to_owned());
                return Flow::Continue(());
            }
        };
        match received.bytes {
            b"wait" => self.gate.notified().await,
            b"sleep" => tokio::time::sleep(IDLE * 2).await,
            b"panic" => panic!("as asked"),
            b"end" => return Flow::Break(()),
            b"close" => {
                sender.close();
                return Flow::Continue(());
            }
            b"download" => self.parts = 100,
            b"flood" => {
                while sender.send(&[7; PART]).is_ok() {}
                self.seen.say("full");
                return Flow::Break(());
            }
            _ => {}
        }
        self.seen.say(String::from_utf8_lossy(received.bytes));
        match sender.send(received.bytes) {
            Ok(()) => Flow::Continue(()),
            Err(_) => Flow::Break(()),
        }
    }

    async fn notified(&mut self) -> Self::Notice {
        match &mut self.mailbox {
            Some(mailbox) => mailbox.next().await,
            None => std::future::pending().await,
        }
    }

    async fn notice(&mut self, notice: Self::Notice, sender: &mut Sender) -> Flow {
        match notice.map(|notice| sender.send(notice.as_bytes())) {
            Ok(Ok(())) => Flow::Continue(()),
            _ => Flow::Break(()),
        }
    }

    fn wants_room(&self) -> bool {
        self.parts > 0
    }

    async fn room(&mut self, sender: &mut Sender) -> Flow {
        self.parts -= 1;
        sender.send(&[1; PART]).unwrap();
        Flow::Continue(())
    }

    async fn stopping(&mut self, sender: &mut Sender) {
        sender.send(b"bye").unwrap();
    }

    fn state(&self) -> String {
        format!("{} events", self.seen.all().len())
    }

    async fn ended(&mut self, end: &End) {
        self.seen.say(format!("ended: {end}"));
    }
}
