//! Hostile peers are contained, and others do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use worldwire_core::Sampler;
use worldwire_core::connection::{Event, EventOf};
use worldwire_mxo::connection::{ClientConfig, Connection, News, Sender, Session};
use worldwire_mxo::crypt::SessionKey;
use worldwire_net::{Application, Capacity, Clock, Driver, End, Flow, udp};
use worldwire_server::mxo::{OPEN_KEY, OPEN_SESSION};

use crate::log::Log;
use crate::sockets::{Running, sees_all};

/// Checks that an honest client still sees everything.
async fn is_unaffected(world: &Running, uid: u64) {
    let visit = world.enter(uid).await;
    worldwire_client::mxo::query(world.status, "POST", "/hold").await.unwrap();
    visit.with_view(|view| view.set_walking(false));
    sees_all(world, &visit).await;
    visit.leave().await;
}

fn client(clock: Clock, uid: u64) -> Connection {
    let session = Session::new(OPEN_SESSION, SessionKey::new(&OPEN_KEY), &[3; 16]);
    Connection::client(ClientConfig::new(Duration::from_secs(1), uid), session, clock.now())
}

/// Sends forbidden object sections and counts resets.
struct Rogue(Vec<Vec<u8>>, Arc<AtomicU64>);

impl Rogue {
    fn of(sections: Vec<Vec<u8>>) -> Self {
        Self(sections, Arc::default())
    }
}

impl Application<Connection> for Rogue {
    type Notice = ();

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        if let Event::News(News::Reset) = event {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        // The client is in the world once it receives a section that is not empty.
        if let Event::Received(piece) = event
            && piece.bytes.len() > 20
        {
            for section in self.0.drain(..) {
                sender.send_objects(&section, None).unwrap();
            }
        }
        Flow::Continue(())
    }
}

/// Lets a rogue client send for a while.
async fn rogue(world: &Running, sections: Vec<Vec<u8>>) {
    let clock = Clock::start();
    let socket = udp::dial(world.address).await.unwrap();
    let driving = async {
        udp::drive(&Driver::client(clock), socket, client(clock, 666), Rogue::of(sections)).await
    };
    let end: Result<End, _> = timeout(Duration::from_secs(2), driving).await;
    assert!(end.is_err(), "{end:?}");
}

async fn open(world: &Running) -> u64 {
    world.status().await["connections"]["open"].as_u64().unwrap()
}

#[tokio::test]
async fn illegal_sections_disconnect_their_sender() {
    let log = Log::begin();
    let world = Running::start(|config| config.replicator.enter = 6_000.0).await;
    // Updates of other clients' views, create operations, deletes of 65,535 views, pending updates
    // of 64 KiB, and a truncated section.
    let sections = [
        &[3, 3, 0, 1, 2, 0, 0, 0][..],
        &[3, 1, 0, 0x0c, 0x9f, 1, 1, 0xcd, 0xab, 0, 0, 9, 0, 0, 0, 0],
        &[3, 1, 0, 1, 0xff, 0xff, 3, 0, 0, 0],
        &[3, 1, 0, 2, 0xff, 0xff, 3, 0, 0, 0],
        &[3, 2, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0],
        &[3, 2, 0, 1, 8, 0, 0, 0xc0, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let all = sections.iter().map(|section| section.to_vec());
    rogue(&world, all.cycle().take(30).collect()).await;
    assert_eq!(world.figures.broken_rules(), 16);
    // Flooding the server does not flood its log.
    let lines = log.with("protocol violations");
    assert!(lines.len() == 1 && lines[0].ends_with("count=1"), "{lines:?}");
    assert_eq!(open(&world).await, 0, "the rogue was disconnected");
    is_unaffected(&world, 1).await;
    world.stop().await;
}

#[tokio::test]
async fn datagrams_without_a_valid_hello_open_no_connection() {
    let world = Running::start(|config| config.replicator.enter = 6_000.0).await;
    let visit = world.enter(1).await;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut sampler = Sampler::new(5);
    let key = SessionKey::new(&OPEN_KEY);
    for length in 0..400 {
        let noise = sampler.bytes(length % 80);
        stranger.send_to(&noise, world.address).await.unwrap();
        // A packet encrypted with the right key, but without a hello before it.
        let sealed = key.seal_datagram(&[9; 16], &noise);
        stranger.send_to(&sealed, world.address).await.unwrap();
        // A truncated hello, and one encrypted with another key.
        let hello = [&[0, 0, 0, 0, 0, 0, 3, 8, 0, 0, 0][..], &sampler.bytes(32)].concat();
        let torn = &hello[..hello.len() - 1 - length % 30];
        stranger.send_to(torn, world.address).await.unwrap();
        stranger.send_to(&hello, world.address).await.unwrap();
        tokio::task::yield_now().await;
    }
    sleep(Duration::from_millis(300)).await;
    let status = world.status().await;
    assert_eq!(status["connections"]["accepted"], 1);
    assert!(!visit.is_over());
    visit.leave().await;
    is_unaffected(&world, 2).await;
    world.stop().await;
}

#[tokio::test]
async fn a_hello_alone_gets_no_world_and_uses_no_client_slot() {
    let log = Log::begin();
    let world = Running::start(|config| {
        config.capacity = Capacity { total: 2, per_address: 2 };
        config.replicator.enter = 6_000.0;
    });
    let world = world.await;
    let visit = world.enter(1).await;
    // Each client sends one hello and nothing more.
    let mut sockets = Vec::new();
    for uid in 0..120 {
        use worldwire_core::Side;
        use worldwire_core::connection::Connection as _;
        let socket = udp::dial(world.address).await.unwrap();
        let mut machine = client(Clock::start(), 1_000 + uid);
        let hello = machine.poll_transmit(Side::Server).unwrap();
        socket.send(&hello).await.unwrap();
        sockets.push(socket);
        tokio::task::yield_now().await;
    }
    sleep(Duration::from_millis(300)).await;
    let status = world.status().await;
    let connections = &status["connections"];
    assert_eq!((&connections["open"], &connections["waiting"]), (&1.into(), &120.into()));
    assert_eq!(status["objects"], 501, "none of them got a character");
    // There is still room for a real client.
    world.enter(2).await.leave().await;
    assert!(!visit.is_over());
    for _ in 0..100 {
        if world.status().await["connections"]["waiting"] == 0 {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        world.status().await["connections"]["waiting"],
        0,
        "pending hellos expire after five seconds"
    );
    for socket in &sockets {
        let (mut bytes, mut buffer) = (0, [0; 2_000]);
        while let Ok(length) = socket.try_recv(&mut buffer) {
            bytes += length;
        }
        assert!((35..400).contains(&bytes), "{bytes} bytes for one hello");
    }
    visit.leave().await;
    assert!(log.with("client entered").len() <= 2);
    is_unaffected(&world, 3).await;
    world.stop().await;
}

/// The number of characters in the world.
async fn characters(world: &Running) -> Vec<u64> {
    let status = world.status().await;
    let clients = status["clients"].as_array().unwrap();
    clients.iter().map(|client| client["character"].as_u64().unwrap()).collect()
}

/// Keeps a client connected from one port until it is dropped.
async fn stay(world: &Running, port: u16, uid: u64, accepted: u64) -> u16 {
    let clock = Clock::start();
    let socket = UdpSocket::bind(("127.0.0.1", port)).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    socket.connect(world.address).await.unwrap();
    let driver = Driver::client(clock);
    let driving = udp::drive(&driver, socket, client(clock, uid), Rogue::of(Vec::new()));
    let is_in = async {
        let count = async || world.status().await["connections"]["accepted"].as_u64();
        while count().await != Some(accepted) || characters(world).await != [uid] {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        end = driving => panic!("{end:?}"),
        in_time = timeout(Duration::from_secs(10), is_in) => in_time.unwrap(),
    }
    port
}

#[tokio::test]
async fn a_client_can_reconnect_from_the_same_port() {
    let world = Running::start(|_| ()).await;
    let port = stay(&world, 0, 501, 1).await;
    // Clients return, first with another character and then with the same one.
    for (uid, accepted) in [(502, 2), (502, 3), (501, 4)] {
        stay(&world, port, uid, accepted).await;
    }
    world.stop().await;
}

#[tokio::test]
async fn an_old_hello_does_not_disturb_a_client() {
    use worldwire_core::Side;
    use worldwire_core::connection::Connection as _;

    let world = Running::start(|_| ()).await;
    let clock = Clock::start();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(world.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let forger = socket.try_clone().unwrap();
    let socket = UdpSocket::from_std(socket).unwrap();
    let driver = Driver::client(clock);
    let driving = udp::drive(&driver, socket, client(clock, 7), Rogue::of(Vec::new()));
    let forging = async {
        for round in 0..60 {
            let hello = client(clock, 7 + round % 2).poll_transmit(Side::Server).unwrap();
            forger.send(&hello).unwrap();
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        end = driving => panic!("{end:?}"),
        () = forging => {}
    }
    let status = world.status().await;
    assert_eq!(
        (characters(&world).await, &status["connections"]["accepted"]),
        (vec![7], &1.into())
    );
    assert!(status["clients"][0]["sections"].as_u64() > Some(20), "{status}");
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_resets_its_sequence_gets_its_views_again() {
    use worldwire_mxo::frame::{Packet, RccFlags, SequenceNumber, SequenceWord};

    let log = Log::begin();
    let world = Running::start(|_| ()).await;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(world.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let hand = socket.try_clone().unwrap();
    let socket = UdpSocket::from_std(socket).unwrap();
    let clock = Clock::start();
    let driver = Driver::client(clock);
    let rogue = Rogue::of(Vec::new());
    let resets = Arc::clone(&rogue.1);
    let driving = udp::drive(&driver, socket, client(clock, 7), rogue);
    let resetting = async {
        while characters(&world).await != [7] {
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_secs(1)).await;
        let views = world.status().await["clients"][0]["views"].as_u64().unwrap();
        for number in 500..504 {
            let word = SequenceWord { local: SequenceNumber::new(number), ..Default::default() };
            let mut packet = Packet::new(1, word);
            packet.flags = RccFlags::Always | RccFlags::Reset;
            let sealed = SessionKey::new(&OPEN_KEY)
                .seal_datagram(&[number.to_le_bytes()[0]; 16], &packet.to_bytes().unwrap());
            hand.send(&sealed).unwrap();
            sleep(Duration::from_millis(300)).await;
        }
        sleep(Duration::from_secs(2)).await;
        let status = world.status().await;
        assert!(status["clients"][0]["views"].as_u64().unwrap() >= views / 2, "{status}");
    };
    tokio::select! {
        end = driving => panic!("{end:?}"),
        () = resetting => {}
    }
    assert_eq!(resets.load(Ordering::Relaxed), 1);
    assert_eq!(
        log.with("client is resetting its sequence").len(),
        1,
        "the log line is rate limited"
    );
    assert_eq!(world.figures.broken_rules(), 0);
    world.stop().await;
}
