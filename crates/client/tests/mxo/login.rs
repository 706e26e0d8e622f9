//! Players, from the login to the world and out again.

use std::time::Duration;

use tokio::time::timeout;
use worldwire_client::mxo::{
    Client, Happening, LoginError, Margin, log_in, plain_character, query,
};
use worldwire_mxo::login::{LoadData, LoginRefusal, LoginStatus};
use worldwire_mxo::message::{OWN_VIEW, Script};
use worldwire_mxo::rpc::{ChatScope, EmoteId};
use worldwire_mxo::types::Value;

use crate::server::{PASSWORD, PATIENCE, Server, notices, until};

/// The number of views that a client has.
fn views(client: &Client) -> usize {
    client.with_view(|view| view.replica().len())
}

/// The position at which a client's own character was created.
fn created_at(client: &Client) -> [f64; 3] {
    client.with_view(|view| view.replica().view(OWN_VIEW).unwrap().position().unwrap())
}

#[tokio::test]
async fn players_meet_in_the_world() {
    let server = Server::start(|_| ()).await;
    let (mut neo_margin, neo) = server.newcomer("neo", "Neo").await;
    let (mut trinity_margin, trinity) = server.newcomer("Trinity", "Trinity").await;
    let mut neo = server.enter(&mut neo_margin, neo).await;
    let trinity = server.enter(&mut trinity_margin, trinity).await;
    until("both have views", async || views(&neo) > 1 && views(&trinity) > 1).await;
    let has = |name: &str, wanted: &Value<'_>| {
        neo.with_view(|view| {
            let own = view.replica().view(OWN_VIEW);
            own.and_then(|own| own.value(name)).as_ref() == Some(wanted)
        })
    };
    let handle = Value::Text("Neo".into());
    until("the character is there", async || has("CharacterName", &handle)).await;
    assert!(has("RealFirstName", &Value::Text("Thomas".into())));
    assert!(has("Health", &Value::Unsigned(100)));

    neo.say("Whoa.").unwrap();
    let heard = notices(&trinity, |it| matches!(it, Happening::Said { .. })).await;
    let (scope, handle) = (ChatScope::Area, "Neo".to_owned());
    assert_eq!(heard, Happening::Said { scope, handle, text: "Whoa.".into(), message: 0 });
    trinity.whisper("SOE+MXO+Reality+neo", "Follow the white rabbit.").unwrap();
    let heard = notices(&neo, |it| matches!(it, Happening::Said { .. })).await;
    let (scope, handle, text) =
        (ChatScope::Whisper, "Trinity".to_owned(), "Follow the white rabbit.".to_owned());
    assert_eq!(heard, Happening::Said { scope, handle, text, message: 0 });
    trinity.whisper("Morpheus", "Hello?").unwrap();
    let is_system = |it: &Happening| {
        matches!(it, Happening::Said { scope: ChatScope::System, text, .. }
            if text.contains("Nobody with this name"))
    };
    notices(&trinity, is_system).await;

    // Emotes reach the clients that see the character, and its own player.
    neo.emote(EmoteId::Bow).unwrap();
    for client in [&neo, &trinity] {
        let seen = notices(client, |it| matches!(it, Happening::Played { .. })).await;
        let Happening::Played { view, script, .. } = seen else { unreachable!() };
        assert_eq!(script, Script::emote(3));
        assert_eq!(view == OWN_VIEW, std::ptr::eq(client, &neo));
    }
    assert_eq!(server.metric("players").await, 2);
    let index = query(server.status, "GET", "/").await.unwrap();
    assert!(index.lines().count() == 6 && index.contains("/metrics"), "{index}");
    let status = query(server.status, "GET", "/status").await.unwrap();
    assert!(status.contains("\"database\":\"ok\"") && status.contains("\"loaded\":2"), "{status}");

    // Jacking out takes a moment, ends the session, and frees the character.
    let ended = timeout(PATIENCE, neo.jack_out()).await.unwrap().unwrap();
    assert!(!ended.to_string().is_empty());
    timeout(PATIENCE, neo_margin.ended()).await.unwrap();
    until("Neo is gone", async || server.realm.census().loaded == 1).await;
    until("Trinity sees it", async || server.metric("players").await == 1).await;
    // If the margin connection ends, the character leaves at once.
    drop(trinity_margin);
    until("Trinity is gone", async || server.metric("players").await == 0).await;
    drop(trinity);
    server.stop().await;
}

#[tokio::test]
async fn characters_return_to_where_they_left() {
    let server = Server::start(|_| ()).await;
    let (mut margin, id) = server.newcomer("neo", "Neo").await;
    let neo = server.enter(&mut margin, id).await;
    let start = created_at(&neo);
    neo.with_view(|view| view.set_walking(true));
    let walked = || {
        neo.with_view(|view| {
            let own = view.replica().view(OWN_VIEW).unwrap();
            own.movement().position.unwrap().map(f64::from)
        })
    };
    until("it has walked", async || {
        let now = walked();
        (now[0] - start[0]).hypot(now[2] - start[2]) > 20.0
    })
    .await;
    neo.with_view(|view| view.set_walking(false));
    until("the server knows", async || neo.with_view(|view| view.is_acknowledged())).await;
    let left = walked();
    neo.leave().await;
    timeout(PATIENCE, margin.ended()).await.unwrap();
    until("it is gone", async || server.realm.census().loaded == 0).await;

    // After a restart, too, the character returns to where it left.
    let folder = server.stop().await;
    let server = Server::start_in(folder, |_| ()).await;
    let mut margin = server.margin("neo").await;
    let parts = margin.load(id).await.unwrap();
    let background = parts.iter().find_map(|part| match &part.data {
        Some(LoadData::Background(background)) => Some(background.clone()),
        _ => None,
    });
    let text = background.unwrap().text;
    assert_eq!(text.last_name.text(), "Anderson");
    assert_eq!(text.description.text(), "A hacker.");
    let neo = server.enter(&mut margin, id).await;
    let back = created_at(&neo);
    for (left, back) in left.iter().zip(back) {
        assert!((left - back).abs() < 0.01, "{left:?} {back:?}");
    }
    server.stop().await;
}

/// The status with which the server refuses a login.
async fn refused(server: &Server, account: &str, password: &str) -> LoginStatus {
    match log_in(server.auth, server.login(account, password), PATIENCE).await {
        Err(LoginError::Refused(LoginRefusal::Status(status))) => status,
        other => panic!("{account}: {other:?}"),
    }
}

fn denied<T: std::fmt::Debug>(outcome: Result<T, LoginError>) -> LoginStatus {
    match outcome {
        Err(LoginError::Denied(status)) => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_login_is_refused_by_its_status() {
    let server = Server::start(|config| {
        config.limits.sessions_per_account = 1;
        config.login.delay_after_failures = false;
    })
    .await;
    server.add("neo").await;
    server.realm.add_account("smith", PASSWORD, false).await.unwrap();
    server.realm.add_account("switch", PASSWORD, true).await.unwrap();
    assert_eq!(refused(&server, "neo", "red pill").await, LoginStatus::WrongPassword);
    assert_eq!(refused(&server, "cypher", PASSWORD).await, LoginStatus::WrongPassword);
    assert_eq!(refused(&server, "switch", PASSWORD).await, LoginStatus::Inactive);
    server.realm.deactivate("switch", false).await.unwrap();
    server.ticket("switch").await.unwrap();
    server.realm.ban("smith", true).await.unwrap();
    assert_eq!(refused(&server, "smith", PASSWORD).await, LoginStatus::Banned);
    // Only those who know the password learn of a ban.
    assert_eq!(refused(&server, "smith", "x").await, LoginStatus::WrongPassword);

    // A session in use, a ban during that session, and a deleted account.
    let ticket = server.ticket("NEO").await.unwrap();
    let margin = Margin::connect(server.margin, ticket.clone(), PATIENCE).await.unwrap();
    assert_eq!(refused(&server, "neo", PASSWORD).await, LoginStatus::AccountInUse);
    let second = Margin::connect(server.margin, ticket, PATIENCE).await;
    assert!(matches!(second, Err(LoginError::Ended(_))), "{second:?}");
    server.realm.ban("neo", true).await.unwrap();
    timeout(PATIENCE, margin.ended()).await.unwrap();
    server.realm.ban("neo", false).await.unwrap();
    until("the session has ended", async || server.realm.census().sessions == 0).await;
    let ticket = server.ticket("neo").await.unwrap();
    server.realm.delete_account("neo").await.unwrap();
    let gone = Margin::connect(server.margin, ticket, PATIENCE).await;
    assert!(matches!(gone, Err(LoginError::Ended(_))), "{gone:?}");
    assert_eq!(server.metric("refused_total{reason=\"no-account\"}").await, 2);

    // One client has another server's key, and one asks for this server's key.
    let mut other = server.login("switch", PASSWORD);
    let mut key = server.public_key.clone();
    key.modulus[5] ^= 1;
    other.public_key = Some(key);
    let outcome = log_in(server.auth, other, PATIENCE).await;
    assert!(
        matches!(&outcome, Err(LoginError::Refused(LoginRefusal::Status(LoginStatus::UnknownKey)))),
        "{outcome:?}"
    );
    let mut asks = server.login("switch", PASSWORD);
    asks.public_key = None;
    log_in(server.auth, asks, PATIENCE).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn every_request_about_characters_is_refused_by_its_status() {
    let server = Server::start(|config| {
        config.limits.characters_per_account = 2;
        config.login.replace_after_seconds = 3_600;
    })
    .await;
    let plain = || plain_character("A", "B", "").unwrap();
    let (mut neo, first) = server.newcomer("neo", "Neo").await;
    let (mut smith, other) = server.newcomer("smith", "Smith").await;
    // Names: rules, other characters regardless of case, and reservations.
    for name in ["9lives", "Mr. Anderson", "", "x234567890123456789012345678901x"] {
        assert_eq!(denied(neo.claim(name).await), LoginStatus::InvalidName, "{name}");
    }
    assert_eq!(denied(smith.claim("NEO").await), LoginStatus::NameInUse);
    let reserved = neo.claim("TheOne").await.unwrap();
    assert_eq!(denied(smith.claim("theone").await), LoginStatus::NameInUse);
    // Another account's character looks like one that does not exist.
    assert_eq!(denied(smith.load(first).await), LoginStatus::InvalidName);
    assert_eq!(denied(smith.delete(first).await), LoginStatus::InvalidName);
    assert_eq!(denied(smith.load(u64::MAX).await), LoginStatus::InvalidName);
    // A character in use, even by the same account.
    let mut again = server.margin("neo").await;
    assert_eq!(denied(again.load(first).await), LoginStatus::CharacterInUse);
    assert_eq!(denied(again.delete(first).await), LoginStatus::CharacterInUse);
    // The limit is reached, and a name is free again because its connection has ended.
    let second = neo.create("Anderson", plain()).await.unwrap();
    assert!(second > reserved);
    smith.create("TheOne", plain()).await.unwrap();
    assert_eq!(denied(neo.claim("Third").await), LoginStatus::CharacterLimit);
    // The first character is free now, because the second one replaced it in the session.
    neo.delete(first).await.unwrap();
    assert_eq!(denied(neo.load(first).await), LoginStatus::InvalidName);
    assert_eq!(
        server.metric("character_requests_refused_total{status=\"character-in-use\"}").await,
        2
    );
    drop((neo, smith, again));
    let folder = server.stop().await;

    // Characters belong to the world in which they were created, and stored characters remain.
    let server = Server::start_in(folder, |config| config.world_id = 2).await;
    let ticket = server.ticket("smith").await.unwrap();
    let names: Vec<_> =
        ticket.characters.iter().map(|it| (it.handle.text(), it.world_id)).collect();
    assert_eq!(names, [("Smith".to_owned(), 1), ("TheOne".to_owned(), 1)]);
    let mut margin = Margin::connect(server.margin, ticket, PATIENCE).await.unwrap();
    assert_eq!(denied(margin.load(other).await), LoginStatus::InvalidWorld);
    // Without a database, nothing is acknowledged.
    server.realm.close().await;
    server.realm.delete_character("Smith").await.unwrap_err();
    assert_eq!(denied(margin.delete(other).await), LoginStatus::NoDatabase);
    assert!(server.realm.is_failing());
    let health = query(server.status, "GET", "/health").await;
    assert!(health.is_err_and(|error| error.to_string().contains("does not accept changes")));
    server.stop().await;
}

#[tokio::test]
async fn a_silent_character_is_replaced() {
    let server = Server::start(|config| config.login.replace_after_seconds = 0).await;
    let (margin, id) = server.newcomer("neo", "Neo").await;
    let mut again = server.margin("neo").await;
    again.load(id).await.unwrap();
    timeout(PATIENCE, margin.ended()).await.unwrap();
    let neo = server.enter(&mut again, id).await;
    assert_eq!(server.realm.census().loaded, 1);
    neo.leave().await;
    server.stop().await;
}

#[tokio::test]
async fn wrong_passwords_delay_answers() {
    let server = Server::start(|_| ()).await;
    server.add("neo").await;
    for _ in 0..4 {
        refused(&server, "neo", "guess").await;
    }
    let start = std::time::Instant::now();
    assert_eq!(refused(&server, "neo", "guess").await, LoginStatus::WrongPassword);
    assert!(start.elapsed() >= Duration::from_millis(250), "{:?}", start.elapsed());
    // The right password is delayed as well, but accepted.
    server.ticket("neo").await.unwrap();
    server.stop().await;
}
