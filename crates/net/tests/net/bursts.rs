//! Many clients at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use worldwire_core::connection::EventOf;
use worldwire_core::{Field as _, Side, Writer};
use worldwire_net::{Application, Clock, Driver, Flow, Settings, Signal};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{Connection, ServerConfig};
use worldwire_uru::crypt::key::{Modulus, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;

const CLIENTS: usize = 400;

struct Silent;

impl Application<Connection> for Silent {
    type Notice = std::convert::Infallible;

    async fn event(
        &mut self,
        _: EventOf<'_, Connection>,
        _: &mut worldwire_uru::connection::Sender,
    ) -> Flow {
        Flow::Continue(())
    }
}

fn keys() -> KeyRing {
    let (mut n, mut a) = ([0xc5; 64], [0x36; 64]);
    (n[0], n[63], a[0]) = (0xd1, 0x8b, 0x5f);
    let n = Modulus::from_be_bytes(&n).unwrap();
    let mut keys = KeyRing::new();
    keys.insert_private(PrivateKey::new(ServerKind::Gatekeeper, n, &a).unwrap());
    keys
}

/// A task that has to do something every few milliseconds, such as renewing a lease, can do it even
/// while key exchanges could take all the time of all threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_key_exchanges_leaves_time_for_others() {
    let (clock, config) = (Clock::start(), Arc::new(ServerConfig::new(keys())));
    let mut opening = Writer::new();
    ConnectPacket::new(Service::Gatekeeper).encode(&mut opening).unwrap();
    let opening = [&opening.into_bytes()[..], &[0, 66], &[0x77; 64]].concat();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut peer, io) = duplex(1_024);
        peer.write_all(&opening).await.unwrap();
        let server = Connection::server(Arc::clone(&config), [7; 7], clock.now());
        clients.spawn(async move {
            let (settings, signal) = (Settings::default(), Signal::never());
            let driver = Driver { peer: Side::Client, clock, settings, signal };
            let answered = async {
                peer.read_exact(&mut [0; 9]).await.unwrap();
            };
            tokio::select! {
                end = driver.drive(io, server, Silent) => panic!("{end:?}"),
                () = answered => {}
            }
        });
    }
    let start = Instant::now();
    let (mut last, mut longest) = (start, Duration::ZERO);
    while !clients.is_empty() {
        sleep(Duration::from_millis(1)).await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
        while let Some(client) = clients.try_join_next() {
            client.unwrap();
        }
    }
    // Without the limit, the task would wait for half or all of the key exchanges.
    assert!(longest < start.elapsed() / 4, "{longest:?} of {:?}", start.elapsed());
}
