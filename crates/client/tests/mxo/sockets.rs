//! A server and its clients over real sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use worldwire_client::mxo::{Client, ExpectedViews, Settings, compare, query};
use worldwire_core::json::Style;
use worldwire_net::Stop;
use worldwire_net::lossy::Conditions;
use worldwire_server::mxo::{Figures, OpenWorld, Scene, WorldConfig};

/// A running world.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) status: SocketAddr,
    pub(crate) figures: Figures,
    stop: Stop,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub(crate) async fn start(change: impl FnOnce(&mut WorldConfig)) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut config = WorldConfig { listen: any, status: Some(any), ..WorldConfig::default() };
        change(&mut config);
        let scene = Scene::built_in(&config.objects).unwrap();
        let world = OpenWorld::open(config, &scene).await.unwrap();
        let stop = Stop::new();
        Self {
            address: world.address().unwrap(),
            status: world.status_address().unwrap(),
            figures: world.figures(),
            serving: tokio::spawn(world.serve(stop.signal())),
            stop,
        }
    }

    pub(crate) async fn enter(&self, uid: u64) -> Client {
        Client::connect(self.address, Settings::new(uid)).await.unwrap()
    }

    /// The JSON of the status page.
    pub(crate) async fn status(&self) -> serde_json::Value {
        serde_json::from_str(&query(self.status, "GET", "/status").await.unwrap()).unwrap()
    }

    pub(crate) async fn stop(self) {
        self.stop.stop();
        timeout(Duration::from_secs(30), self.serving).await.unwrap().unwrap().unwrap();
    }
}

/// Waits until a client sees everything that it should see.
pub(crate) async fn sees_all(world: &Running, visit: &Client) {
    let mut last = Vec::new();
    for _ in 0..300 {
        let truth = ExpectedViews::fetch(world.status, visit.uid()).await.unwrap();
        let mut text = String::new();
        visit.with_view(|view| view.replica().write_json(Style::default(), &mut text));
        last = compare(&truth.views, &serde_json::from_str(&text).unwrap(), 3);
        let (is_told, count) =
            visit.with_view(|view| (view.is_acknowledged(), view.replica().len()));
        if truth.is_settled && last.is_empty() && is_told && count > 300 {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("still not at rest: {last:?}");
}

#[tokio::test]
async fn clients_on_a_bad_network_see_the_world() {
    let world = Running::start(|config| config.replicator.enter = 6_000.0).await;
    let mut visits = Vec::new();
    for uid in 0..4 {
        let rough = Conditions {
            loss: 200,
            duplication: 100,
            reordering: 200,
            seed: uid,
            ..Conditions::default()
        };
        let config = Settings { conditions: Some(rough), ..Settings::new(uid) };
        visits.push(Client::connect(world.address, config).await.unwrap());
    }
    sleep(Duration::from_secs(1)).await;
    query(world.status, "POST", "/hold").await.unwrap();
    visits.iter().for_each(|visit| visit.with_view(|view| view.set_walking(false)));
    for visit in &visits {
        sees_all(&world, visit).await;
        assert!(visit.counts().unwrap().lost() > 0 && !visit.is_over());
    }
    assert_eq!(world.status().await["clients"].as_array().unwrap().len(), 4);
    query(world.status, "POST", "/go").await.unwrap();
    for visit in visits {
        visit.leave().await;
    }
    world.stop().await;
}

#[tokio::test]
async fn every_client_gets_in_on_a_bad_network() {
    let world = Running::start(|config| config.replicator.enter = 1_000.0).await;
    let enter = |uid: u64| {
        let conditions = Some(Conditions { loss: 300, seed: uid, ..Conditions::default() });
        Client::connect(world.address, Settings { conditions, ..Settings::new(uid) })
    };
    let mut coming: JoinSet<_> = (1..=24).map(enter).collect();
    let mut visits = Vec::new();
    while let Some(visit) = coming.join_next().await {
        visits.push(visit.unwrap().unwrap());
    }
    assert_eq!(world.status().await["connections"]["open"], 24);
    drop(visits);
    world.stop().await;
}

#[tokio::test]
async fn another_key_or_session_is_not_answered() {
    let world = Running::start(|config| config.session = 9).await;
    let visit = Client::connect(world.address, Settings::new(1));
    // A client without the key gets no reply, not even one that says that its key is wrong.
    assert!(timeout(Duration::from_millis(1_500), visit).await.is_err());
    let visit = Client::connect(world.address, Settings { session: 9, ..Settings::new(1) });
    visit.await.unwrap().leave().await;
    let unknown = ExpectedViews::fetch(world.status, 77).await.unwrap_err().to_string();
    assert!(unknown.ends_with("no client plays character 77"), "{unknown}");
    world.stop().await;
}

#[tokio::test]
async fn a_character_is_in_the_world_once() {
    let world = Running::start(|config| config.replicator.enter = 6_000.0).await;
    let first = world.enter(7).await;
    let second = world.enter(7).await;
    assert_eq!(world.status().await["objects"], 501);
    let began = Instant::now();
    while !first.is_over() && world.status().await["connections"]["open"] != 1 {
        assert!(began.elapsed() < Duration::from_secs(5), "the first one is still in");
        sleep(Duration::from_millis(20)).await;
    }
    query(world.status, "POST", "/hold").await.unwrap();
    second.with_view(|view| view.set_walking(false));
    sees_all(&world, &second).await;
    assert_eq!(world.figures.broken_rules(), 0);
    world.stop().await;
}

#[tokio::test]
async fn the_clients_of_an_address_are_limited() {
    let world = Running::start(|config| config.capacity.per_address = 1).await;
    let only = world.enter(1).await;
    let patience = Duration::from_millis(300);
    let config = Settings { setup_time: patience, ..Settings::new(2) };
    let refused = Client::connect(world.address, config).await.unwrap_err().to_string();
    assert!(refused.contains("room for one more client from this address"), "{refused}");
    only.leave().await;
    world.stop().await;
}

#[tokio::test]
async fn a_leaving_client_disappears_immediately() {
    let world = Running::start(|_| ()).await;
    let rough = Conditions { duplication: 500, reordering: 300, ..Conditions::default() };
    for conditions in [None, Some(rough)] {
        let stays = world.enter(1).await;
        let goes = Settings { conditions, ..Settings::new(2) };
        let goes = Client::connect(world.address, goes).await.unwrap();
        assert_eq!(world.status().await["objects"], 502);
        let began = Instant::now();
        goes.leave().await;
        while world.status().await["objects"] != 501 {
            assert!(began.elapsed() < Duration::from_secs(5), "it is still in");
            sleep(Duration::from_millis(20)).await;
        }
        assert!(!stays.is_over());
        stays.leave().await;
        assert_eq!(world.status().await["objects"], 500);
    }
    // The clients' connections close as well.
    let began = Instant::now();
    while world.status().await["connections"]["open"] != 0 {
        assert!(began.elapsed() < Duration::from_secs(5), "a connection is still open");
        sleep(Duration::from_millis(20)).await;
    }
    world.stop().await;
}

#[tokio::test]
async fn a_client_learns_why_its_connection_ended() {
    let world = Running::start(|_| ()).await;
    let mut visit = world.enter(3).await;
    world.stop().await;
    let end = timeout(Duration::from_secs(10), visit.ended()).await.unwrap();
    assert_eq!(end, worldwire_net::End::Lost);
    assert!(visit.is_over());
}
