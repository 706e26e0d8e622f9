//! The server and clients over real sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use worldwire_client::mxo::{Truth, Visit, VisitConfig, ask, compare};
use worldwire_core::json::Style;
use worldwire_net::Stop;
use worldwire_net::rough::Conditions;
use worldwire_server::mxo::{Figures, OpenWorld, Scene, WorldConfig};

/// A world that runs.
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

    pub(crate) async fn enter(&self, uid: u64) -> Visit {
        Visit::to(self.address, VisitConfig::new(uid)).await.unwrap()
    }

    /// What the status page says of a field.
    pub(crate) async fn status(&self) -> serde_json::Value {
        serde_json::from_str(&ask(self.status, "GET", "/status").await.unwrap()).unwrap()
    }

    pub(crate) async fn stop(self) {
        self.stop.stop();
        timeout(Duration::from_secs(30), self.serving).await.unwrap().unwrap().unwrap();
    }
}

/// Waits until a client sees what it should see.
pub(crate) async fn sees_all(world: &Running, visit: &Visit) {
    let mut last = Vec::new();
    for _ in 0..300 {
        let truth = Truth::of(world.status, visit.uid()).await.unwrap();
        let mut text = String::new();
        visit.seen(|eyes| eyes.replica().write_json(Style::default(), &mut text));
        last = compare(&truth.views, &serde_json::from_str(&text).unwrap(), 3);
        let (is_told, count) = visit.seen(|eyes| (eyes.is_told(), eyes.replica().len()));
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
        let config = VisitConfig { conditions: Some(rough), ..VisitConfig::new(uid) };
        visits.push(Visit::to(world.address, config).await.unwrap());
    }
    sleep(Duration::from_secs(1)).await;
    ask(world.status, "POST", "/hold").await.unwrap();
    visits.iter().for_each(|visit| visit.seen(|eyes| eyes.walk(false)));
    for visit in &visits {
        sees_all(&world, visit).await;
        assert!(visit.counts().unwrap().lost() > 0 && !visit.is_over());
    }
    assert_eq!(world.status().await["clients"].as_array().unwrap().len(), 4);
    ask(world.status, "POST", "/go").await.unwrap();
    for visit in visits {
        visit.leave().await;
    }
    world.stop().await;
}

#[tokio::test]
async fn everybody_gets_in_on_a_bad_network() {
    let world = Running::start(|config| config.replicator.enter = 1_000.0).await;
    let enter = |uid: u64| {
        let conditions = Some(Conditions { loss: 300, seed: uid, ..Conditions::default() });
        Visit::to(world.address, VisitConfig { conditions, ..VisitConfig::new(uid) })
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
    let visit = Visit::to(world.address, VisitConfig::new(1));
    // Nothing is said to who does not know the key: not even that it is wrong.
    assert!(timeout(Duration::from_millis(1_500), visit).await.is_err());
    let visit = Visit::to(world.address, VisitConfig { session: 9, ..VisitConfig::new(1) });
    visit.await.unwrap().leave().await;
    let unknown = Truth::of(world.status, 77).await.unwrap_err().to_string();
    assert!(unknown.ends_with("there is no client with the character 77"), "{unknown}");
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
        assert!(began.elapsed() < Duration::from_secs(5), "the first one is still there");
        sleep(Duration::from_millis(20)).await;
    }
    ask(world.status, "POST", "/hold").await.unwrap();
    second.seen(|eyes| eyes.walk(false));
    sees_all(&world, &second).await;
    assert_eq!(world.figures.broken_rules(), 0);
    world.stop().await;
}

#[tokio::test]
async fn there_may_be_no_room_from_an_address() {
    let world = Running::start(|config| config.capacity.per_address = 1).await;
    let only = world.enter(1).await;
    let patience = Duration::from_millis(300);
    let config = VisitConfig { setup_time: patience, ..VisitConfig::new(2) };
    let refused = Visit::to(world.address, config).await.unwrap_err().to_string();
    assert!(refused.contains("room for one more client from this address"), "{refused}");
    only.leave().await;
    world.stop().await;
}

#[tokio::test]
async fn whoever_says_that_it_leaves_is_gone_at_once() {
    let world = Running::start(|_| ()).await;
    let rough = Conditions { duplication: 500, reordering: 300, ..Conditions::default() };
    for conditions in [None, Some(rough)] {
        let stays = world.enter(1).await;
        let goes = VisitConfig { conditions, ..VisitConfig::new(2) };
        let goes = Visit::to(world.address, goes).await.unwrap();
        assert_eq!(world.status().await["objects"], 502);
        let began = Instant::now();
        goes.leave().await;
        while world.status().await["objects"] != 501 {
            assert!(began.elapsed() < Duration::from_secs(5), "it is still there");
            sleep(Duration::from_millis(20)).await;
        }
        assert!(!stays.is_over());
        stays.leave().await;
        assert_eq!(world.status().await["objects"], 500);
    }
    // Their connections go, too.
    let began = Instant::now();
    while world.status().await["connections"]["open"] != 0 {
        assert!(began.elapsed() < Duration::from_secs(5), "a connection is still there");
        sleep(Duration::from_millis(20)).await;
    }
    world.stop().await;
}
