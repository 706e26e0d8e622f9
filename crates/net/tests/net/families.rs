//! Machines of real families over the same driver.

use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, duplex};
use tokio::time::timeout;
use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Connection, Event, EventOf, Piece as _, Timer};
use worldwire_net::{Application, Clock, Driver, End, Flow, Settings, Signal};
use worldwire_uru::connection::Encryption;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;
use worldwire_uru::message::gatekeeper::client::FileSrvIpAddressRequest;
use worldwire_uru::message::gatekeeper::server::FileSrvIpAddressReply;
use worldwire_uru::message::gatekeeper::{client, server};

/// Sends a request after setup, answers requests, and closes after its answer.
struct Gatekeeper;

impl Application<worldwire_uru::connection::Connection> for Gatekeeper {
    type Notice = std::convert::Infallible;

    async fn event(
        &mut self,
        event: EventOf<'_, worldwire_uru::connection::Connection>,
        sender: &mut worldwire_uru::connection::Sender,
    ) -> Flow {
        use worldwire_core::connection::Sender as _;
        use worldwire_uru::connection::News;
        use worldwire_uru::frame::Message;

        let answer = match event {
            Event::News(News::Established { .. }) => {
                let request = FileSrvIpAddressRequest { trans_id: 3.into(), is_patcher: 1 };
                // The server's half refuses to send a client's message.
                let _ = sender.send(&client::ClientMessage::from(request).into());
                return Flow::Continue(());
            }
            Event::Received(received) => match received.message() {
                Some(Message::GatekeeperClient(
                    client::ClientMessage::FileSrvIpAddressRequest(request),
                )) => FileSrvIpAddressReply {
                    trans_id: request.trans_id,
                    address: "files.example.org".into(),
                },
                Some(Message::GatekeeperServer(server::ServerMessage::FileSrvIpAddressReply(
                    _,
                ))) => return Flow::Break(()),
                _ => return Flow::Continue(()),
            },
            _ => return Flow::Continue(()),
        };
        sender.send(&server::ServerMessage::from(answer).into()).unwrap();
        Flow::Continue(())
    }
}

#[tokio::test(start_paused = true)]
async fn uru_requests_are_answered() {
    let clock = Clock::start();
    let mut config = worldwire_uru::connection::ServerConfig::new(KeyRing::new());
    config.encryption = Encryption::AllowPlain;
    let server = worldwire_uru::connection::Connection::server(config.into(), [7; 7], clock.now());
    let config = worldwire_uru::connection::ClientConfig::new(Service::Gatekeeper, None);
    let client =
        worldwire_uru::connection::Connection::client(config.into(), [1; 64], clock.now()).unwrap();
    let (left, right) = duplex(7);
    let settings = Settings::default();
    let served = tokio::spawn(async move {
        let driver = Driver { peer: Side::Client, clock, settings, signal: Signal::never() };
        driver.drive(left, server, Gatekeeper).await
    });
    let driver = Driver::client(clock);
    let end = timeout(Duration::from_secs(5), driver.drive(right, client, Gatekeeper));
    assert_eq!(end.await.unwrap(), End::Application);
    assert_eq!(served.await.unwrap(), End::Closed(CloseReason::Remote));
}

#[tokio::test(start_paused = true)]
async fn uru_gives_up_on_a_silent_client() {
    use worldwire_core::{Field as _, Writer};
    use worldwire_uru::connect::ConnectPacket;

    let packet = |service| {
        let mut writer = Writer::new();
        ConnectPacket::new(service).encode(&mut writer).unwrap();
        writer.into_bytes()
    };
    let [auth, game] = [Service::Auth, Service::Game].map(packet);
    let plain = |packet: &[u8], message: &[u8]| [packet, &[0, 2], message].concat();
    for (what, said, seconds, timer) in [
        ("nothing", Vec::new(), 10, Timer::Setup),
        ("half a connect packet", auth[..15].to_vec(), 10, Timer::Setup),
        ("no key", auth.clone(), 10, Timer::Setup),
        ("no message", plain(&auth, &[]), 45, Timer::Idle),
        ("no message on a game connection", plain(&game, &[]), 120, Timer::Idle),
        ("half a message", plain(&auth, &[27, 0, 1, 0]), 30, Timer::Message),
    ] {
        let clock = Clock::start();
        let mut config = worldwire_uru::connection::ServerConfig::new(KeyRing::new());
        config.encryption = Encryption::AllowPlain;
        let config = std::sync::Arc::new(config);
        let server = worldwire_uru::connection::Connection::server(config, [7; 7], clock.now());
        let (mut peer, io) = duplex(1024);
        peer.write_all(&said).await.unwrap();
        let (settings, signal) = (Settings::default(), Signal::never());
        let driver = Driver { peer: Side::Client, clock, settings, signal };
        let start = tokio::time::Instant::now();
        let (count, _) = tokio::sync::watch::channel(0);
        let end = driver.drive(io, server, Counting(count)).await;
        assert_eq!(end, End::Closed(CloseReason::Timeout(timer)), "{what}");
        assert_eq!(start.elapsed().as_secs(), seconds, "{what}");
    }
}

/// Counts what is received.
struct Counting(tokio::sync::watch::Sender<usize>);

impl<C> Application<C> for Counting
where
    C: Connection + 'static,
{
    type Notice = std::convert::Infallible;

    fn event(
        &mut self,
        event: EventOf<'_, C>,
        _: &mut C::Sender,
    ) -> impl Future<Output = Flow> + Send {
        if let Event::Received(received) = event {
            assert!(!received.bytes().is_empty());
            self.0.send_modify(|count| *count += 1);
        }
        std::future::ready(Flow::Continue(()))
    }
}

#[tokio::test(start_paused = true)]
async fn ki_sends_heartbeats_and_keeps_deadlines() {
    use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig};

    let clock = Clock::start();
    let epoch = Duration::from_secs(1_700_000_000);
    let server = || Connection::server(ServerConfig::new(epoch).into(), 77, clock.now());
    let client = Connection::client(ClientConfig::new(epoch).into(), clock.now());
    let (left, right) = duplex(1024);
    let [(at_server, server_count), (at_client, mut client_count)] =
        [(); 2].map(|()| tokio::sync::watch::channel(0));
    let serve = |io, connection| {
        let at_server = at_server.clone();
        tokio::spawn(async move {
            let (settings, signal) = (Settings::default(), Signal::never());
            let driver = Driver { peer: Side::Client, clock, settings, signal };
            driver.drive(io, connection, Counting(at_server)).await
        })
    };
    let served = serve(left, server());
    let calling = tokio::spawn(async move {
        Driver::client(clock).drive(right, client, Counting(at_client)).await
    });
    // An offer, then an hour of keep-alives.
    client_count.wait_for(|count| *count > 0).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!served.is_finished() && !calling.is_finished());
    assert!(*server_count.borrow() > 50 && *client_count.borrow() > 50);
    calling.abort();
    assert_eq!(served.await.unwrap(), End::Closed(CloseReason::Remote));

    // The session is never accepted.
    let (_silent, io) = duplex(1024);
    let served = serve(io, server());
    assert_eq!(served.await.unwrap(), End::Closed(CloseReason::Timeout(Timer::Setup)));
}
