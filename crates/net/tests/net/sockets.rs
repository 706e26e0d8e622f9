//! Listeners and dialers over loopback.

use std::sync::Arc;
use std::time::Duration;

use crate::toy::{Obedient, Seen, frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, EventOf};
use worldwire_net::udp::AcceptDatagrams;
use worldwire_net::{
    Accept, Application, Capacity, Clock, Driver, End, Flow, Options, Peer, Stop, tcp, udp,
};

const PATIENCE: Duration = Duration::from_secs(20);

struct Toys(Seen);

impl Accept for Toys {
    type Connection = crate::toy::Connection;
    type Application = Obedient;

    fn accept(&self, _: Peer, now: Duration) -> (crate::toy::Connection, Obedient) {
        (crate::toy::connection(Side::Client, now), Obedient::new(&self.0))
    }
}

impl AcceptDatagrams for Toys {
    fn probe(&self, _: Peer, now: Duration, _: &[u8]) -> Option<crate::toy::Connection> {
        Some(crate::toy::connection(Side::Client, now))
    }
}

fn options(total: usize, per_address: usize) -> Options {
    Options { capacity: Capacity { total, per_address }, ..Options::default() }
}

async fn hear(stream: &mut TcpStream) -> Vec<u8> {
    let read = async {
        let length = stream.read_u16_le().await?;
        let mut bytes = vec![0; length.into()];
        stream.read_exact(&mut bytes).await?;
        Ok::<_, std::io::Error>(bytes)
    };
    timeout(PATIENCE, read).await.unwrap().unwrap()
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_count_for_their_own_addresses() {
    let seen = Seen::default();
    let listener = tcp::Listener::bind("127.0.0.1:0", options(100, 1)).await.unwrap();
    let listener = listener.trusting(&["127.0.0.1".parse().unwrap()]);
    let (address, counts) = (listener.local_addr().unwrap(), listener.counts());
    let stop = Stop::new();
    let serving = tokio::spawn(listener.serve(Arc::new(Toys(seen.clone())), stop.signal()));

    let through = async |header: &[u8]| {
        let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
        stream.write_all(&[header, &frame(b"hello")].concat()).await.unwrap();
        stream
    };
    let first = b"PROXY TCP4 192.0.2.1 127.0.0.1 40000 12000\r\n";
    let mut second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    second.extend([192, 0, 2, 2, 127, 0, 0, 1, 0x9c, 0x40, 0x2e, 0xe0]);
    let mut open = Vec::new();
    for header in [&first[..], &second] {
        let mut stream = through(header).await;
        assert_eq!(hear(&mut stream).await, b"hello");
        open.push(stream);
    }
    assert_eq!(counts.open(), 2);
    // A second connection of the first client, and one without a header.
    for header in [&first[..], b"PROXX"] {
        let mut stream = through(header).await;
        let end = timeout(PATIENCE, stream.read(&mut [0; 8])).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    drop(open);
    stop.stop();
    serving.await.unwrap();
}

#[tokio::test]
async fn silent_peers_delay_no_others_and_excess_peers_are_refused() {
    let seen = Seen::default();
    let listener = tcp::Listener::bind("127.0.0.1:0", options(100, 4)).await.unwrap();
    let (address, counts) = (listener.local_addr().unwrap(), listener.counts());
    let stop = Stop::new();
    let serving = tokio::spawn(listener.serve(Arc::new(Toys(seen.clone())), stop.signal()));

    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(tcp::dial(address, PATIENCE).await.unwrap());
    }
    let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
    stream.write_all(&frame(b"hello")).await.unwrap();
    assert_eq!(hear(&mut stream).await, b"hello");
    assert_eq!((counts.open(), counts.accepted()), (4, 4));

    // One too many from this address: closed at once.
    let mut refused = tcp::dial(address, PATIENCE).await.unwrap();
    let end = timeout(PATIENCE, refused.read(&mut [0; 8])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    assert_eq!(counts.refused(), 1);

    // A panic ends one connection and frees its permit.
    stream.write_all(&frame(b"panic")).await.unwrap();
    seen.until("ended: a defect in worldwire: as asked", 1).await;
    while counts.open() > 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
    stream.write_all(&frame(b"again")).await.unwrap();
    assert_eq!(hear(&mut stream).await, b"again");
    assert_eq!(counts.panics(), 1);
    stream.write_all(&[0xff; 2]).await.unwrap();
    assert_eq!(timeout(PATIENCE, stream.read(&mut [0; 8])).await.unwrap().unwrap(), 0);
    seen.until("closed because of a fault", 1).await;

    stop.stop();
    timeout(PATIENCE, serving).await.unwrap().unwrap();
    for stream in &mut silent {
        assert_eq!(hear(stream).await, b"bye");
    }
    assert!(tcp::dial(address, PATIENCE).await.is_err());
    assert_eq!((counts.open(), counts.faults()), (0, 1));
}

#[tokio::test]
async fn a_connection_that_does_not_end_is_cut() {
    let seen = Seen::default();
    let options = Options { grace: Duration::from_millis(50), ..Options::default() };
    let listener = tcp::Listener::bind("127.0.0.1:0", options).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop::new();
    let serving = tokio::spawn(listener.serve(Arc::new(Toys(seen.clone())), stop.signal()));
    let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
    stream.write_all(&[frame(b"go"), frame(b"wait")].concat()).await.unwrap();
    assert_eq!(hear(&mut stream).await, b"go");
    stop.stop();
    timeout(PATIENCE, serving).await.unwrap().unwrap();
    assert_eq!(seen.count("ended: cut because the server is stopping"), 1);
}

#[tokio::test]
async fn a_udp_peer_gets_a_connection_if_its_first_datagram_is_valid() {
    let seen = Seen::default();
    let listener = udp::Listener::bind("127.0.0.1:0", options(100, 2)).await.unwrap();
    let (address, counts) = (listener.local_addr().unwrap(), listener.counts());
    let stop = Stop::new();
    let serving = tokio::spawn(listener.serve(Arc::new(Toys(seen.clone())), stop.signal()));

    let ask = async |socket: &UdpSocket, what: &[u8]| {
        socket.send(what).await.unwrap();
        let mut buffer = [0; 100];
        let length = timeout(PATIENCE, socket.recv(&mut buffer)).await.unwrap().unwrap();
        buffer[..length].to_vec()
    };
    let stray = udp::dial(address).await.unwrap();
    stray.send(&[0xff; 40]).await.unwrap();
    stray.send(b"\x05").await.unwrap();
    let [first, second] = [udp::dial(address).await.unwrap(), udp::dial(address).await.unwrap()];
    assert_eq!(ask(&first, &frame(b"one")).await, frame(b"one"));
    assert_eq!(ask(&second, &frame(b"two")).await, frame(b"two"));
    assert_eq!(ask(&first, &frame(b"three")).await, frame(b"three"));
    assert_eq!((counts.open(), counts.accepted()), (2, 2));
    stray.send(&frame(b"too many")).await.unwrap();
    assert_eq!(ask(&second, &frame(b"four")).await, frame(b"four"));
    assert_eq!((counts.refused(), seen.count("too many")), (1, 0));

    // After the first connection has ended, the same address can connect again.
    first.send(&frame(b"end")).await.unwrap();
    seen.until("ended: closed by the application", 1).await;
    let mut buffer = [0; 100];
    while counts.open() > 1 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(ask(&first, &frame(b"new")).await, frame(b"new"));

    stop.stop();
    timeout(PATIENCE, serving).await.unwrap().unwrap();
    let length = timeout(PATIENCE, second.recv(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(buffer[..length], frame(b"bye"));
    assert_eq!(seen.count("ended: closed because the server is stopping"), 2);
}

/// Sends a message and closes when it is echoed.
struct Caller(Seen);

impl Application<crate::toy::Connection> for Caller {
    type Notice = std::convert::Infallible;

    async fn event(
        &mut self,
        event: EventOf<'_, crate::toy::Connection>,
        _: &mut crate::toy::Sender,
    ) -> Flow {
        match event {
            Event::Received(received) => {
                self.0.say(String::from_utf8_lossy(received.bytes));
                Flow::Break(())
            }
            _ => Flow::Continue(()),
        }
    }
}

#[tokio::test]
async fn clients_are_driven_too() {
    let seen = Seen::default();
    let stop = Stop::new();
    let toys = Arc::new(Toys(Seen::default()));
    let over_tcp = tcp::Listener::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let over_udp = udp::Listener::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let (tcp_address, udp_address) =
        (over_tcp.local_addr().unwrap(), over_udp.local_addr().unwrap());
    tokio::spawn(over_tcp.serve(Arc::clone(&toys), stop.signal()));
    tokio::spawn(over_udp.serve(toys, stop.signal()));

    let driver = Driver::client(Clock::start());
    let caller = |what: &[u8]| {
        let mut connection = crate::toy::connection(Side::Server, driver.clock.now());
        connection.send(what).unwrap();
        (connection, Caller(seen.clone()))
    };
    let stream = tcp::dial(tcp_address, PATIENCE).await.unwrap();
    let (connection, application) = caller(b"over tcp");
    let end = timeout(PATIENCE, driver.drive(stream, connection, application)).await.unwrap();
    assert_eq!(end, End::Application);
    let socket = udp::dial(udp_address).await.unwrap();
    let (connection, application) = caller(b"over udp");
    let end = timeout(PATIENCE, udp::drive(&driver, socket, connection, application));
    assert_eq!(end.await.unwrap(), End::Application);
    assert_eq!(seen.all(), ["over tcp", "over udp"]);
}

#[tokio::test]
async fn a_peer_that_hangs_up_is_distinguished_from_a_lost_one() {
    let seen = Seen::default();
    let listener = tcp::Listener::bind("127.0.0.1:0", options(10, 10)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop::new();
    let serving = tokio::spawn(listener.serve(Arc::new(Toys(seen.clone())), stop.signal()));

    for (is_reset, end) in [(false, "ended: closed by the other side"), (true, "ended: lost")] {
        let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
        stream.write_all(&frame(b"hello")).await.unwrap();
        assert_eq!(hear(&mut stream).await, b"hello");
        if is_reset {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        timeout(PATIENCE, seen.until(end, 1)).await.unwrap();
    }
    stop.stop();
    serving.await.unwrap();
}

#[tokio::test]
async fn many_simultaneous_connections_are_queued() {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    let most = most.trim().parse().unwrap_or(128_usize).min(400);
    let listener = tcp::Listener::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = listener.local_addr().unwrap();
    // The listener has not accepted these connections yet.
    let mut crowd = Vec::new();
    for number in 0..most {
        let connected = timeout(Duration::from_millis(900), TcpStream::connect(address)).await;
        crowd.push(connected.unwrap_or_else(|_| panic!("{number} wait already")).unwrap());
    }
}
