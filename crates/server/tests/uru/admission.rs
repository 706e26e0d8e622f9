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
use worldwire_uru::file::keys::KeyRing;

use crate::client::{PATIENCE, Running};
use crate::cluster::{Bus, serves};
use crate::fern::prepare;
use crate::operators::{ask, refusal};
use crate::player::{ANN, Player};
use crate::postgres::Database;
use crate::reconnect::is_online;
use crate::services::{get, http};
use crate::takeover::folder as standby_folder;

/// Starts a node without waiting for it to join.
async fn node(bus: &Bus, folder: TempDir, name: &str, role: Role) -> Running {
    let settings = bus.settings(name);
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.cluster.roles = vec![role];
    };
    Running::start_within(folder, change, GameRandom::default()).await
}

/// A new directory with the leader's keys.
fn with_keys_of(leader: &Running) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    keys::save(&leader.keys, &folder.path().join("keys.toml")).unwrap();
    folder
}

/// Waits until a process has been refused. Returns the reason.
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
        assert!(reason.contains(&format!("{file} (missing on the node)")), "{reason}");
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
    assert!(reason.starts_with("another process named `front` (process "), "{reason}");
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
    // The client's build differs from the one in the front's own configuration.
    let (_, ann) = Player::enter(&front, ANN, "Ann").await;
    assert!(is_online(&leader, ann).await);
    front.stop().await;
    leader.stop().await;
}

/// Opens a shard on the bus in this process.
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
    // The same shard can start again.
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
    assert!(led.is_err(), "the standby keeps waiting");
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
        // would keep the standby from taking over, so it is refused.
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

/// Waits until this page of a front contains the text.
async fn says(node: &Running, path: &str, wanted: &str) {
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let said = async {
        while !http(node, &request).await.contains(wanted) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, said).await.expect(wanted);
}

#[tokio::test]
async fn fronts_show_what_operators_change() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let front = bus.front(&leader).await;
    says(&front, "/status", "\"open\":true").await;
    let folder = leader.folder.path();
    let text = Some("Shorah b'shemtee".to_owned());
    ask(folder, Request::Welcome { text }, &[]).await.unwrap();
    ask(folder, Request::Restrict { closed: true, kick: false }, &[]).await.unwrap();
    says(&front, "/welcome", "Shorah b'shemtee").await;
    says(&front, "/status", "\"open\":false").await;
    // A front that joins later shows the same.
    let late = node(&bus, with_keys_of(&leader), "front-2", Role::Front).await;
    says(&late, "/status", "\"open\":false").await;
    says(&late, "/welcome", "Shorah b'shemtee").await;
    ask(folder, Request::Restrict { closed: false, kick: false }, &[]).await.unwrap();
    says(&front, "/status", "\"open\":true").await;
    late.stop().await;
    front.stop().await;
    leader.stop().await;
}

/// Waits until a configuration has these settings.
async fn configured(folder: &Path, restricted: bool, welcome: &str) {
    let file = folder.join("shard.toml");
    let written = async {
        loop {
            let config = ShardConfig::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
            if config.auth.restricted == restricted && config.welcome == welcome {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, written).await.expect(welcome);
}

/// Serves a shard whose processes have these keys. Returns a standby's folder.
async fn hand_over(keys_of_active: &KeyRing, url: &str, is_standby_first: bool) -> TempDir {
    let [first, second] = [(); 2].map(|()| standby_folder(url, keys_of_active));
    let stop = Stop::new();
    let active = Standby::open(first.path(), |_| ()).await.unwrap();
    let shard = timeout(PATIENCE, active.lead(stop.signal())).await.unwrap().unwrap().unwrap();
    let active = tokio::spawn(shard.serve(stop.signal()));
    let change = async || {
        let closed = Request::Restrict { closed: true, kick: false };
        ask(first.path(), closed, &[]).await.unwrap();
        let text = Some("Closed for repairs".to_owned());
        ask(first.path(), Request::Welcome { text }, &[]).await.unwrap();
    };
    if !is_standby_first {
        change().await;
    }
    let end = Stop::new();
    let standby = Standby::open(second.path(), |_| ()).await.unwrap();
    let checks = async {
        if is_standby_first {
            change().await;
        }
        configured(second.path(), true, "Closed for repairs").await;
        stop.stop();
    };
    let (led, ()) = tokio::join!(standby.lead(end.signal()), checks);
    active.await.unwrap().unwrap();
    let shard = led.unwrap().unwrap();
    assert!(shard.vault().is_restricted());
    end.stop();
    shard.serve(end.signal()).await.unwrap();
    second
}

#[tokio::test]
async fn a_standby_follows_what_operators_change() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    hand_over(&keys::generate(PrimeKind::Plain), url, true).await;
}

#[tokio::test]
async fn a_standby_adopts_what_operators_have_changed() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let ring = keys::generate(PrimeKind::Plain);
    let folder = hand_over(&ring, url, false).await;

    // The first process of a shard uses its own configuration.
    let own = standby_folder(url, &ring);
    let end = Stop::new();
    let first = Standby::open(own.path(), |_| ()).await.unwrap();
    let shard = timeout(PATIENCE, first.lead(end.signal())).await.unwrap().unwrap().unwrap();
    assert!(!shard.vault().is_restricted());
    let serving = tokio::spawn(shard.serve(end.signal()));
    let (stop, standby) = (Stop::new(), Standby::open(folder.path(), |_| ()).await.unwrap());
    let stop = (stop.signal(), stop);
    let adopted = async {
        configured(folder.path(), false, &ShardConfig::default().welcome).await;
        stop.1.stop();
    };
    let (led, ()) = tokio::join!(standby.lead(stop.0.clone()), adopted);
    assert!(led.unwrap().is_none());
    end.stop();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_standby_with_other_keys_waits_even_without_a_leader() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    hand_over(&keys::generate(PrimeKind::Plain), url, true).await;
    let other = standby_folder(url, &keys::generate(PrimeKind::Plain));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let status = free.local_addr().unwrap();
    drop(free);
    let change = |config: &mut ShardConfig| config.status = status.to_string();
    let (end, standby) = (Stop::new(), Standby::open(other.path(), change).await.unwrap());
    let checks = async {
        let said = async {
            let wanted = "this process cannot take over: clients could not connect";
            while !get(status, "/health").await.contains(wanted) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, said).await.unwrap();
        assert!(get(status, "/metrics").await.contains("worldwire_standby_refused 1"));
        // Long enough to take over.
        sleep(Duration::from_secs(3)).await;
        end.stop();
    };
    let (led, ()) = tokio::join!(standby.lead(end.signal()), checks);
    assert!(led.unwrap().is_none(), "it waits");
}
