//! Processes that do not belong to a shard cannot join it. The bus is a real `nats-server`.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use worldwire_net::Stop;
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_server::uru::config::Role;
use worldwire_server::uru::{GameRandom, Shard, ShardConfig, Standby, keys};
use worldwire_uru::crypt::key::PrimeKind;

use crate::client::{PATIENCE, Running};
use crate::cluster::{Bus, serves};
use crate::fern::prepare;
use crate::operators::refusal;
use crate::player::{ANN, Player};
use crate::postgres::Database;
use crate::reconnect::is_online;
use crate::services::{get, http};
use crate::takeover::folder as standby_folder;

/// Starts a node, without waiting until it has joined.
async fn node(bus: &Bus, folder: TempDir, name: &str, role: Role) -> Running {
    let settings = bus.settings(name);
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.cluster.roles = vec![role];
    };
    Running::start_within(folder, change, GameRandom::default()).await
}

/// A directory with a shard's keys.
fn with_keys_of(leader: &Running) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    keys::save(&leader.keys, &folder.path().join("keys.toml")).unwrap();
    folder
}

/// Waits until a process has been refused. Returns its message.
async fn refused(node: &Running) -> String {
    let health = "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
    let said = async {
        loop {
            let said = http(node, health).await;
            if let Some((_, reason)) = said.split_once("the leader does not admit this process: ") {
                assert!(said.starts_with("HTTP/1.0 503"), "{said}");
                return reason.to_owned();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, said).await.unwrap()
}

#[tokio::test]
async fn a_front_with_other_keys_is_refused() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let folder = tempfile::tempdir().unwrap();
    keys::save(&keys::generate(PrimeKind::Plain), &folder.path().join("keys.toml")).unwrap();
    let front = node(&bus, folder, "front", Role::Front).await;
    let reason = refused(&front).await;
    assert!(
        reason.starts_with("the keys in keys.toml differ (gatekeeper, auth, game, droid); copy"),
        "{reason}"
    );
    assert!(front.vault.is_failing());
    front.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn an_age_node_joins_when_it_has_the_leaders_files() {
    let Some(bus) = Bus::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let leader = bus.leader(folder).await;
    let folder = with_keys_of(&leader);
    for part in ["ages", "secure/SDL"] {
        std::fs::create_dir_all(folder.path().join("data").join(part)).unwrap();
    }
    let age = node(&bus, folder, "age-1", Role::Age).await;
    let reason = refused(&age).await;
    for file in ["ages/Fern.age", "secure/SDL/Fern.sdl"] {
        assert!(reason.contains(&format!("{file} (missing at the node)")), "{reason}");
    }
    prepare(age.folder.path());
    serves(&age.vault).await;
    age.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn a_name_belongs_to_one_process() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let first = bus.front(&leader).await;
    let second = node(&bus, with_keys_of(&leader), "front", Role::Front).await;
    let reason = refused(&second).await;
    let place = first.folder.path();
    assert!(reason.starts_with("another process with the name `front` (process "), "{reason}");
    assert!(reason.contains(&format!("folder {})", place.display())), "{reason}");
    let third = node(&bus, with_keys_of(&leader), "leader", Role::Front).await;
    let reason = refused(&third).await;
    assert!(reason.starts_with("`leader` is also the name of the leader (process "), "{reason}");
    assert!(!first.vault.is_failing());

    first.stop().await;
    serves(&second.vault).await;
    third.stop().await;
    second.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn a_front_uses_the_leaders_settings() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front_with(&leader, |config| config.build = 1).await;
    // The client's build differs from the one configured here.
    let (_, ann) = Player::enter(&front, ANN, "Ann").await;
    assert!(is_online(&leader, ann).await);
    front.stop().await;
    leader.stop().await;
}

/// This process opens its own shard on the bus.
async fn opens(bus: &Bus, folder: &Path) -> Result<Shard, String> {
    let settings = bus.settings("b");
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.status.clear();
    };
    let opened = Shard::open_with(folder, PrimeKind::Plain, change).await;
    opened.map_err(|error| error.to_string())
}

#[tokio::test]
async fn two_shards_cannot_have_one_name_on_the_bus() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let other = tempfile::tempdir().unwrap();
    let problem = opens(&bus, other.path()).await.unwrap_err();
    let place = leader.folder.path();
    let wanted = format!("folder {} leads another shard under the name `shard`", place.display());
    assert!(problem.contains(&wanted), "{problem}");
    assert!(!leader.vault.is_failing());
    // The same shard starts again.
    let folder = leader.stop().await;
    opens(&bus, folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_standby_of_another_database_does_not_lead() {
    let Some(bus) = Bus::start() else { return };
    let Some(database) = Database::postgres() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let folder = standby_folder(database.url.as_deref().unwrap(), &leader.keys);
    let stop = Stop::new();
    let standby = Standby::open(folder.path(), bus.settings("b")).await.unwrap();
    let led = timeout(Duration::from_secs(2), standby.lead(stop.signal())).await;
    assert!(led.is_err(), "it waits");
    leader.stop().await;
}

#[tokio::test]
async fn a_refused_standby_says_so_and_gets_no_shard() {
    let Some(bus) = Bus::start() else { return };
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let [first, second] = [(); 2].map(|()| standby_folder(url, &keys::generate(PrimeKind::Plain)));
    let stop = Stop::new();
    let active = Standby::open(first.path(), bus.settings("a")).await.unwrap();
    let shard = timeout(PATIENCE, active.lead(stop.signal())).await.unwrap().unwrap().unwrap();
    let active = tokio::spawn(shard.serve(stop.signal()));

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let status = free.local_addr().unwrap();
    drop(free);
    let settings = bus.settings("b");
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.status = status.to_string();
    };
    let standby = Standby::open(second.path(), change).await.unwrap();
    let said = async {
        loop {
            let said = get(status, "/health").await;
            if said.contains("standby; the leader does not admit this process: the keys") {
                return said;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let checks = async {
        let said = timeout(PATIENCE, said).await.unwrap();
        assert!(said.starts_with("HTTP/1.0 503"), "{said}");
        assert!(get(status, "/status").await.contains("\"refused\":\"the keys"));
        assert!(get(status, "/metrics").await.contains("worldwire_standby_refused 1"));
        let refused = refusal(first.path(), Request::HandOver).await;
        assert!(refused.contains("has not joined this process"), "{refused}");
        // A command in the directory of a process that is not running, such as a failed leader,
        // would keep the standby from taking over.
        let third = standby_folder(url, &keys::generate(PrimeKind::Plain));
        let refused = Admin::open(third.path()).await.unwrap_err().to_string();
        assert!(refused.contains("others use its database"), "{refused}");
        assert!(refused.contains(&first.path().display().to_string()), "{refused}");
        stop.stop();
    };
    let (led, ()) = tokio::join!(standby.lead(stop.signal()), checks);
    assert!(led.unwrap().is_none());
    active.await.unwrap().unwrap();
}
