//! Fifty clients and five hundred objects on a bad network, in virtual time.
//! `WORLDWIRE_CROWD_SECONDS` sets the duration; 300 take a minute without optimisation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use worldwire_client::mxo::{ClientView, compare};
use worldwire_core::connection::{Connection as _, Event};
use worldwire_core::json::Style;
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_mxo::connection::{ClientConfig, Connection, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::message::MPM_ID;
use worldwire_mxo::replicator::{ClientId, Config};
use worldwire_mxo::schema::Objects;
use worldwire_server::mxo::{OPEN_KEY, OPEN_SESSION, Scene, World};

const TICK: Duration = Duration::from_millis(200);
const CLIENTS: u64 = 50;

struct Guest {
    pair: Pair<Connection>,
    view: ClientView,
    client: Option<ClientId>,
    /// The largest number of section bytes sent to the client in one tick.
    most: usize,
}

impl Guest {
    fn new(objects: &Arc<Objects>, uid: u64) -> Self {
        let epoch = Duration::from_secs(1_248_965_312);
        let session = |seed| Session::new(OPEN_SESSION, SessionKey::new(&OPEN_KEY), &seed);
        let client = ClientConfig::new(epoch, uid);
        let client = Connection::client(client, session([2; 16]), Duration::ZERO);
        // These clients do not reconnect if the first acknowledgements are lost.
        let confirm_time = Duration::from_secs(60);
        let server = ServerConfig { confirm_time, ..ServerConfig::new(epoch) };
        let server = Connection::server(server, session([1; 16]), Duration::ZERO);
        let conditions = Conditions {
            latency: Duration::from_millis(60),
            datagrams: true,
            loss: 300,
            duplication: 100,
            reordering: 300,
            seed: uid,
            ..Conditions::default()
        };
        let pair = Pair::new(client, server, conditions);
        Self { pair, view: ClientView::new(Arc::clone(objects), uid), client: None, most: 0 }
    }

    fn run(&mut self, world: &mut World, now: Duration) {
        let Self { pair, view, client, .. } = self;
        pair.run_until(now, |member, event, _| match (member, event) {
            (Member::Client, Event::Received(piece)) => {
                if let Unit::Section { id: MPM_ID, .. } = piece.unit {
                    view.receive(piece.bytes).unwrap();
                }
            }
            (Member::Client, Event::News(news)) => view.handle_news(&news),
            (Member::Server, Event::Received(piece)) => match piece.unit {
                Unit::Hello(hello) if client.is_none() => {
                    *client = Some(world.enter(hello.character_uid).unwrap());
                }
                Unit::Section { id: MPM_ID, number } => {
                    world.receive(client.unwrap(), number, piece.bytes).unwrap();
                }
                _ => {}
            },
            (Member::Server, Event::News(news)) => {
                if let Some(client) = *client {
                    world.news(client, &news);
                }
            }
            (_, Event::Fault { error, .. }) => panic!("{error}"),
            _ => {}
        });
    }

    fn speak(&mut self, world: &mut World) {
        if self.pair.client.is_established() {
            let _ = self.view.step(self.pair.client.sender());
        }
        if let Some(client) = self.client
            && self.pair.server.is_established()
        {
            let bytes = world.send_updates(client, None, self.pair.server.sender()).unwrap();
            self.most = self.most.max(bytes);
        }
    }

    fn check(&self, world: &World) {
        let client = self.client.unwrap();
        let json = |replica: &worldwire_mxo::replica::Replica| {
            let mut text = String::new();
            replica.write_json(Style::default(), &mut text);
            serde_json::from_str(&text).unwrap()
        };
        let truth = world.truth(client).unwrap();
        assert_eq!(compare(&json(&truth), &json(self.view.replica()), 5), []);
        // Neither side has any views left.
        assert_eq!((truth.len(), self.view.replica().len()), (world.views(client), truth.len()));
        assert!(truth.len() > 100, "{}", truth.len());
        assert_eq!(self.view.notices(), 0);
    }
}

#[test]
fn at_rest_every_client_sees_the_whole_world() {
    let objects = Arc::new(Objects::built_in());
    let scene = Scene::built_in(&objects).unwrap();
    let config = Config { enter: 3_000.0, leave: 3_500.0, tick_bytes: 3_000, ..Config::default() };
    let mut world = World::new(&objects, &scene, config.clone()).unwrap();
    let mut crowd: Vec<Guest> = (0..CLIENTS).map(|uid| Guest::new(&objects, uid)).collect();
    let mut now = Duration::ZERO;
    let mut ticks = Vec::new();
    let mut step = |world: &mut World, crowd: &mut [Guest]| {
        now += TICK;
        for member in crowd.iter_mut() {
            member.run(world, now);
        }
        let start = Instant::now();
        world.tick(now);
        ticks.push(start.elapsed());
        for member in crowd {
            member.speak(world);
        }
        now
    };
    let mut now = Duration::ZERO;
    let asked = std::env::var("WORLDWIRE_CROWD_SECONDS").ok();
    let seconds = asked.as_ref().map_or(12, |seconds| seconds.parse().unwrap());
    while now < Duration::from_secs(seconds) {
        now = step(&mut world, &mut crowd);
    }
    world.hold(now + Duration::from_secs(60));
    crowd.iter_mut().for_each(|member| member.view.set_walking(false));
    let is_at_rest = |world: &World, crowd: &[Guest]| {
        crowd.iter().all(|it| it.view.is_acknowledged() && world.is_settled(it.client.unwrap()))
    };
    let mut rounds = 0;
    // The last packet can take a long time to arrive when half of the packets or acknowledgements
    // are lost.
    while rounds < 20 || !is_at_rest(&world, &crowd) {
        let now = step(&mut world, &mut crowd);
        world.hold(now + Duration::from_secs(60));
        rounds += 1;
        assert!(rounds < 1_500, "still not at rest");
    }
    crowd.iter().for_each(|member| member.check(&world));
    // The budget of a tick includes retransmissions.
    let most = crowd.iter().map(|member| member.most).max().unwrap();
    assert!(most <= config.tick_bytes, "{most}");
    // Little more than the lost packets is resent.
    let mut crowd_traffic = (0, 0);
    for member in &crowd {
        let traffic = world.traffic(member.client.unwrap()).unwrap();
        assert!(traffic.again < traffic.first, "{traffic:?}");
        crowd_traffic.0 += traffic.first / CLIENTS;
        crowd_traffic.1 += traffic.again / CLIENTS;
    }
    // All clients leave: their characters disappear, and nothing else.
    for member in &mut crowd {
        world.leave(member.client.take().unwrap());
    }
    assert_eq!((world.players(), world.objects()), (0, scene.len()));
    ticks.sort_unstable();
    if asked.is_some() {
        let at = |percent: usize| ticks[ticks.len() * percent / 100];
        let traffic = crowd_traffic;
        println!("ticks: p50 {:?}, p99 {:?}; most bytes in a tick: {most}", at(50), at(99));
        println!("bytes of a client: {} first, {} again", traffic.0, traffic.1);
    }
}
