//! A relay between two streams in memory, in virtual time.

use core::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Input};
use worldwire_net::{Between, Clock, End, Intermediary, Settings, Stop};

/// Forwards everything, and answers the server's bytes with one of its own.
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
