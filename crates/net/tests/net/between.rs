//! A relay between two streams in memory, in virtual time.

use core::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep};
use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Input};
use worldwire_net::{Between, Clock, End, Intermediary, Settings, Stop};

/// Forwards everything and answers the server's bytes with one of its own.
#[derive(Debug, Default)]
struct Answering {
    out: [Vec<u8>; 2],
    ended: [bool; 2],
    is_closed: bool,
}

impl Intermediary for Answering {
    fn input(&mut self, _: Duration, from: Side, input: Input<'_>) {
        match input {
            Input::Bytes(bytes) => {
                self.out[from.other().index()].extend_from_slice(bytes);
                if from == Side::Server {
                    self.out[Side::Server.index()].push(b'!');
                }
            }
            Input::End => self.ended[from.index()] = true,
            other => panic!("{other:?}"),
        }
    }

    fn timeout(&mut self, _: Duration) {}

    fn resume(&mut self, _: Duration) {}

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        Some(core::mem::take(&mut self.out[to.index()])).filter(|bytes| !bytes.is_empty())
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
        self.out[to.index()].len()
    }

    fn is_closed(&self) -> bool {
        self.is_closed || self.ended == [true; 2]
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    async fn woken(&mut self) {
        core::future::pending().await
    }
}

/// Keeps what the client sends and forwards one byte of it every 50 s for 100 s.
#[derive(Debug, Default)]
struct Holding {
    kept: Vec<u8>,
    out: Vec<u8>,
    sent: u64,
    is_closed: bool,
}

impl Intermediary for Holding {
    fn input(&mut self, _: Duration, from: Side, input: Input<'_>) {
        match (from, input) {
            (Side::Client, Input::Bytes(bytes)) => self.kept.extend_from_slice(bytes),
            (Side::Client, Input::End) => {}
            other => panic!("{other:?}"),
        }
    }

    fn timeout(&mut self, _: Duration) {
        self.out.push(self.kept.remove(0));
        self.sent += 1;
    }

    fn resume(&mut self, _: Duration) {}

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        let bytes = (to == Side::Server).then(|| core::mem::take(&mut self.out));
        bytes.filter(|bytes| !bytes.is_empty())
    }

    fn poll_timeout(&self) -> Option<Duration> {
        (self.sent < 2).then(|| Duration::from_secs(50 * (self.sent + 1)))
    }

    fn is_paused(&self, _: Side) -> bool {
        false
    }

    fn kept_bytes(&self, from: Side) -> usize {
        if from == Side::Client { self.kept.len() } else { 0 }
    }

    fn queued_bytes(&self, to: Side) -> usize {
        if to == Side::Server { self.out.len() } else { 0 }
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    async fn woken(&mut self) {
        core::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_of_an_ended_stream_is_abandoned_a_minute_after_the_last_progress() {
    let ((mut client, client_io), (mut server, server_io)) = (duplex(64), duplex(64));
    let stop = Stop::new();
    let began = Instant::now();
    let between =
        Between { clock: Clock::start(), settings: Settings::default(), signal: stop.signal() };
    let relaying = tokio::spawn(async move {
        let mut relay = Holding::default();
        let end = between.streams(client_io, server_io, &mut relay).await;
        (end, relay)
    });
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = Vec::new();
    server.read_to_end(&mut text).await.unwrap();
    assert_eq!(text, b"la");
    let (end, relay) = relaying.await.unwrap();
    assert_eq!((end, relay.is_closed), (End::Abandoned, true));
    assert_eq!(began.elapsed().as_secs(), 100 + 60);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_does_not_end_a_conversation_whose_streams_are_open() {
    let ((mut client, client_io), (_server, server_io)) = (duplex(64), duplex(64));
    let stop = Stop::new();
    let between =
        Between { clock: Clock::start(), settings: Settings::default(), signal: stop.signal() };
    let relaying = tokio::spawn(async move {
        between.streams(client_io, server_io, &mut Holding::default()).await
    });
    client.write_all(b"last").await.unwrap();
    sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(!relaying.is_finished());
    stop.stop();
    assert_eq!(relaying.await.unwrap(), End::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_to_an_ended_stream_does_not_break_the_other_one() {
    let ((mut client, client_io), (mut server, server_io)) = (duplex(64), duplex(64));
    let stop = Stop::new();
    let between =
        Between { clock: Clock::start(), settings: Settings::default(), signal: stop.signal() };
    let relaying = tokio::spawn(async move {
        between.streams(client_io, server_io, &mut Answering::default()).await
    });
    let mut text = [0; 4];
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    server.read_exact(&mut text).await.unwrap();
    assert_eq!(server.read(&mut text).await.unwrap(), 0, "the client's stream has ended");
    for part in [b"more", b"text"] {
        server.write_all(part).await.unwrap();
        client.read_exact(&mut text).await.unwrap();
        assert_eq!(text, *part);
    }
    server.shutdown().await.unwrap();
    assert_eq!(client.read(&mut text).await.unwrap(), 0);
    assert!(matches!(relaying.await.unwrap(), End::Closed(CloseReason::Remote)));
}
