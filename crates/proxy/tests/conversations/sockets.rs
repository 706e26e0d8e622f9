//! Relays the sample conversations between real sockets.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use worldwire_core::Side;
use worldwire_dissect::{Decision, Facts, Families, Item, Stamp};
use worldwire_net::{Options, Stop};
use worldwire_proxy::{OneServer, Proxy, Setup};

use crate::samples::{Conversation, Sample, ki, tera, uru};

/// Plays both sides of all conversations. What one side writes, the other must read.
async fn play(sample: &Sample, rules: &str, options: Options) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rules = sample.rules(rules);
    let setup = Setup {
        family: Families::standard().named(sample.family).unwrap(),
        world: Box::new(OneServer(server.local_addr().unwrap().to_string())),
        definitions: Arc::clone(&sample.definitions),
        keys: Arc::clone(&sample.keys),
        handlers: Box::new(move |_| vec![rules.handler()]),
        hooks: None,
        recorder: None,
        options,
    };
    let (listen, stop) = ("127.0.0.1:0".parse().unwrap(), Stop::new());
    let proxy = Proxy::bind(setup, listen, false, stop.signal()).await.unwrap();
    let address = proxy.address();
    let running = tokio::spawn(proxy.run());
    for segments in &sample.conversations {
        let mut lengths = forwarded(sample, segments).into_iter();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = server.accept().await.unwrap();
        let mut sent = [Vec::new(), Vec::new()];
        for (from, bytes) in segments {
            let (writer, reader) = match from {
                Side::Client => (&mut client, &mut server),
                Side::Server => (&mut server, &mut client),
            };
            writer.write_all(bytes).await.unwrap();
            let sent = &mut sent[from.index()];
            sent.extend_from_slice(bytes);
            // A part of a message waits for the rest.
            let mut read = vec![0; lengths.next().unwrap()];
            reader.read_exact(&mut read).await.unwrap();
            assert!(sent.starts_with(&read), "{}", sample.family);
            sent.drain(..read.len());
        }
        client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).await.unwrap();
        server.shutdown().await.unwrap();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, [0; 0], "{}", sample.family);
    }
    stop.stop();
    running.await.unwrap().unwrap();
}

/// The number of bytes that leave a relay after each segment.
fn forwarded(sample: &Sample, segments: &Conversation) -> Vec<usize> {
    let mut session = sample.relay(&Facts::default());
    let mut decider = |_: &Item<'_>| Decision::AsIs;
    let lengths = segments.iter().map(|(from, bytes)| {
        let (now, stamp) = (Duration::ZERO, Stamp::default());
        session.input(now, stamp, *from, sample.input(bytes), &mut decider);
        session.resume(stamp, &mut decider);
        let to = from.other();
        core::iter::from_fn(|| session.poll_transmit(to)).map(|bytes| bytes.len()).sum()
    });
    lengths.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_conversations_are_the_same_bytes_on_both_sides() {
    for sample in [tera(), ki(), uru()] {
        play(&sample, "when * { count \"messages\" }", Options::default()).await;
    }
}

/// The time limit for setup is not counted from the start of the proxy.
#[tokio::test]
async fn conversations_can_begin_long_after_the_proxy() {
    for sample in [tera(), ki(), uru()] {
        tokio::time::pause();
        let options = Options::default();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        tokio::time::resume();
        play(&sample, "when * { count \"messages\" }", options).await;
    }
}
