//! Slow tests, and tests that depend on time.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use worldwire_client::ki::{Client, ClientError, ServerMessage};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_ki::message::Put;
use worldwire_net::{Accept as _, End, Peer};

use crate::stage::{Stage, refused, settings};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn plain(name: &str) -> Vec<u8> {
    Character::plain(name, "Fire", 0x01_0203).into_bytes()
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_alive_for_a_day() {
    let stage = Stage::new(|config| config.session.afk_seconds = 7 * 24 * 60 * 60).await;
    let mut client = stage.validated("merle").await;
    client.wait_until_admitted().await.unwrap();
    let began = Instant::now();
    assert_eq!(client.listen(DAY).await.unwrap(), None);
    assert_eq!(began.elapsed(), DAY);
    client.ping().await.unwrap();
    client.create(&plain("Merle")).await.unwrap();
    assert_eq!(stage.door.0.sessions(), 1);
}

#[tokio::test(start_paused = true)]
async fn k_22_keep_alives_do_not_prevent_the_idle_disconnect() {
    let stage = Stage::new(|_| ()).await;
    let mut client = stage.validated("merle").await;
    let began = Instant::now();
    sleep(Duration::from_secs(14 * 60)).await;
    client.ping().await.unwrap();
    let error = loop {
        match client.listen(DAY).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, ClientError::ThrownOut(why) if why.contains("away")), "{error}");
    let after = began.elapsed();
    assert!(after >= Duration::from_secs(29 * 60) && after < Duration::from_secs(29 * 60 + 5));
}

#[tokio::test(start_paused = true)]
async fn k_16_the_queue_moves_up() {
    let stage = Stage::new(|config| config.limits.players = 1).await;
    let mut first = stage.validated("merle").await;
    first.wait_until_admitted().await.unwrap();
    let mut second = stage.validated("other").await;
    let mut third = stage.validated("other").await;
    for (client, position) in [(&mut second, 1), (&mut third, 2)] {
        while client.position().is_none() {
            client.listen(DAY).await.unwrap();
        }
        assert_eq!(client.position(), Some(position));
        assert_eq!(refused(client.characters().await), "NotAdmitted");
    }
    let error = second.wait_until_admitted().await.unwrap_err();
    assert_eq!(error.to_string(), "still waiting in the queue, at position 1");
    // A client that leaves the queue also frees a place.
    let fourth = stage.validated("merle").await;
    drop(second);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(third.listen(DAY).await.unwrap(), Some(ServerMessage::Admit(1)));
    first.close().await;
    third.wait_until_admitted().await.unwrap();
    assert!(third.characters().await.unwrap().list.is_empty());
    drop(fourth);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((stage.realm.census().admitted, stage.realm.census().waiting), (1, 0));
    drop(third);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((stage.realm.census().admitted, stage.door.0.sessions()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_renewal_during_a_creation_loses_and_repeats_nothing() {
    let stage = Stage::new(|_| ()).await;
    let mut client = stage.validated("merle").await;
    client.wait_until_admitted().await.unwrap();
    for number in 0..5 {
        let before = client.session_id();
        assert_eq!(stage.realm.refresh(Some("merle")), Ok(1));
        // The server learns of the refresh before the next message arrives.
        sleep(Duration::from_millis(10)).await;
        client.create(&plain(&format!("Merle{number}"))).await.unwrap();
        assert_ne!(client.session_id(), before);
        assert_eq!(client.characters().await.unwrap().list.len(), number + 1);
        assert_eq!(stage.door.0.sessions(), 1, "the stale session's id is free again");
    }
    assert_eq!(stage.realm.census().characters, 5);
    assert!(stage.realm.refresh(Some("nobody")).is_err());
}

#[tokio::test(start_paused = true)]
async fn k_10_a_session_renewal_during_a_login_changes_nothing() {
    let stage = Stage::new(|_| ()).await;
    let mut client = stage.client().await;
    assert_eq!(stage.realm.refresh(None), Ok(1));
    sleep(Duration::from_millis(10)).await;
    let pass = client.log_in("merle", &password_hash("hunter2")).await.unwrap();
    assert_eq!(stage.realm.refresh(None), Ok(1));
    sleep(Duration::from_millis(10)).await;
    client.validate(&pass).await.unwrap();
    assert_eq!(stage.realm.refresh(None), Ok(1));
    sleep(Duration::from_millis(10)).await;
    assert!(client.characters().await.unwrap().list.is_empty());
}

#[tokio::test(start_paused = true)]
async fn k_01_a_ck2_can_be_reused_until_it_expires() {
    let stage = Stage::new(|_| ()).await;
    let (_first, pass) = stage.logged_in("merle").await;
    for _ in 0..2 {
        stage.client().await.validate(&pass).await.unwrap();
    }
    sleep(Duration::from_secs(299)).await;
    stage.client().await.validate(&pass).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(refused(stage.client().await.validate(&pass).await), "ValidateFailed");
}

#[tokio::test(start_paused = true)]
async fn a_client_can_return_from_a_zone_after_any_time() {
    let stage = Stage::new(|config| config.session.afk_seconds = 3 * 24 * 60 * 60).await;
    let (mut client, pass) = stage.logged_in("merle").await;
    client.create(&plain("Merle")).await.unwrap();
    let character = client.characters().await.unwrap().list[0].global_id();
    let to = client.select(character).await.unwrap();
    assert!(client.ping().await.is_err(), "the login is over");
    let mut zone = stage.client().await;
    let place = zone.attach(&to).await.unwrap();
    assert_eq!(place.zone, "WizardCity/Tutorial_Exterior");
    assert_eq!(stage.realm.census().playing, 1);
    sleep(DAY).await;
    // In the meantime, nobody else can select the character.
    let (mut other, _) = stage.logged_in("merle").await;
    assert_eq!(refused(other.select(character).await), "ErrorNoLock");
    assert_eq!(refused(other.delete(character).await), "ErrorNoLock");
    zone.close().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.realm.census().playing, 0);
    let mut back = stage.client().await;
    back.validate(&pass).await.unwrap();
    back.wait_until_admitted().await.unwrap();
    assert_eq!(back.characters().await.unwrap().list.len(), 1);
    sleep(Duration::from_secs(301)).await;
    assert_eq!(refused(stage.client().await.validate(&pass).await), "ValidateFailed");
}

#[tokio::test(start_paused = true)]
async fn k_18_failures_delay_answers_but_never_lock_out() {
    let stage = Stage::new(|_| ()).await;
    let (right, wrong) = (password_hash("hunter2"), password_hash("x"));
    for _ in 0..4 {
        let mut client = stage.client().await;
        for _ in 0..4 {
            assert_eq!(refused(client.log_in("merle", &wrong).await), "AuthenFailed");
        }
    }
    let began = Instant::now();
    stage.client().await.log_in("merle", &right).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 4);
    // Another player logs in from another address.
    let began = Instant::now();
    let (stream, _) = stage.stream_from("198.51.100.1:1");
    let mut other = Client::over(stream, &settings()).await.unwrap();
    other.log_in("other", &right).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_failing_database_neither_loses_nor_invents_characters() {
    let stage = Stage::new(|_| ()).await;
    let (mut client, _) = stage.logged_in("merle").await;
    stage.memory.is_failing.store(true, Ordering::Relaxed);
    assert_eq!(refused(client.create(&plain("Lost")).await), "FailedUpload");
    assert!(stage.realm.is_failing());
    assert!(client.characters().await.unwrap().list.is_empty());
    stage.memory.is_failing.store(false, Ordering::Relaxed);
    stage.memory.loses_answers.store(true, Ordering::Relaxed);
    client.create(&plain("Kept")).await.unwrap();
    assert!(!stage.realm.is_failing());
    let list = client.characters().await.unwrap().list;
    assert_eq!(list.iter().map(Character::name).collect::<Vec<_>>(), [b"Kept"]);
}

/// Waits until the database works again. Returns how long that took.
async fn recovery(stage: &Stage) -> Duration {
    let began = Instant::now();
    while stage.realm.is_failing() {
        assert!(began.elapsed() < DAY, "it never recovered");
        sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_locked_database_holds_up_nobody() {
    const SOON: Duration = Duration::from_millis(100);
    let stage = Stage::new(|_| ()).await;
    let (mut client, _) = stage.logged_in("merle").await;
    let (mut second, _) = stage.logged_in("other").await;
    client.create(&plain("First")).await.unwrap();
    stage.memory.is_locked.store(true, Ordering::Relaxed);
    let began = Instant::now();
    // The next request waits for the reply to this one. A ping does not wait, and other clients are
    // served.
    let blob = [("CreationInfo", Put::Bytes(plain("Lost")))];
    client.send(7, "MSG_CREATECHARACTER", &blob).await.unwrap();
    client.send(7, "MSG_REQUESTCHARACTERLIST", &[]).await.unwrap();
    client.ping().await.unwrap();
    let mut third = stage.validated("other").await;
    assert!(third.characters().await.unwrap().list.is_empty());
    assert!(began.elapsed() < SOON);
    assert_eq!(refused(second.create(&plain("Late")).await), "FailedUpload");
    let took = began.elapsed();
    assert!(took <= Duration::from_secs(7) + SOON, "{took:?}");
    assert!(stage.realm.is_failing());
    assert!(matches!(client.listen(SOON).await, Ok(Some(ServerMessage::Created(Some(_))))));
    assert!(matches!(client.listen(SOON).await, Ok(Some(ServerMessage::StartList { .. }))));
    // From now on, changes are refused at once, and operators are told the reason.
    let again = Instant::now();
    assert_eq!(refused(second.create(&plain("Late")).await), "FailedUpload");
    let problem = stage.realm.ban("merle", true).await.unwrap_err().to_string();
    assert!(problem.ends_with(": the database is damaged: locked by another program"), "{problem}");
    assert!(again.elapsed() < SOON);

    sleep(Duration::from_secs(50)).await;
    stage.memory.is_locked.store(false, Ordering::Relaxed);
    let took = recovery(&stage).await;
    assert!(took <= Duration::from_secs(6), "{took:?}");
    client.create(&plain("Second")).await.unwrap();
    let list = client.characters().await.unwrap().list;
    assert_eq!(
        list.iter().map(Character::name).collect::<Vec<_>>(),
        [b"First".as_slice(), b"Second"]
    );
}

/// A client that waits for a character to be created, while the database is locked.
async fn waiting_client(stage: &Stage) -> Client {
    let (mut client, _) = stage.logged_in("merle").await;
    client.wait_until_admitted().await.unwrap();
    stage.memory.is_locked.store(true, Ordering::Relaxed);
    let blob = [("CreationInfo", Put::Bytes(plain("Lost")))];
    client.send(7, "MSG_CREATECHARACTER", &blob).await.unwrap();
    client
}

/// A client cannot make the server store an unlimited number of requests.
#[tokio::test(start_paused = true)]
async fn few_requests_wait_for_a_locked_database() {
    let stage = Stage::new(|_| ()).await;
    let mut client = waiting_client(&stage).await;
    for _ in 0..100 {
        client.send(7, "MSG_REQUESTCHARACTERLIST", &[]).await.unwrap();
    }
    let mut lists = 0;
    while let Some(message) = client.listen(Duration::from_secs(30)).await.unwrap() {
        lists += usize::from(matches!(message, ServerMessage::EndList(None)));
    }
    assert_eq!(lists, 16);
    client.characters().await.unwrap();
}

/// A stopping server does not wait long for its database.
#[tokio::test(start_paused = true)]
async fn a_client_of_a_locked_database_is_told_of_the_servers_end() {
    let stage = Stage::new(|_| ()).await;
    let mut client = waiting_client(&stage).await;
    client.ping().await.unwrap();
    let began = Instant::now();
    stage.stop();
    let error = client.listen(DAY).await.unwrap_err();
    assert!(matches!(&error, ClientError::ThrownOut(why) if why.contains("shutting down")));
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
    // The commit may be about to fail. Shutdown waits only for that.
    stage.realm.close().await;
    assert!(began.elapsed() <= Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_server_announces_its_end() {
    let stage = Stage::new(|_| ()).await;
    let mut client = stage.client().await;
    let mut in_zone = {
        let (mut first, _) = stage.logged_in("merle").await;
        first.create(&plain("Merle")).await.unwrap();
        let character = first.characters().await.unwrap().list[0].global_id();
        let to = first.select(character).await.unwrap();
        let mut zone = stage.client().await;
        zone.attach(&to).await.unwrap();
        zone
    };
    stage.stop();
    for client in [&mut client, &mut in_zone] {
        let error = client.listen(DAY).await.unwrap_err();
        assert!(
            matches!(&error, ClientError::ThrownOut(why) if why == "the server is shutting down")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn kicked_and_banned_players_are_notified_and_disconnected() {
    let stage = Stage::new(|_| ()).await;
    for banned in [false, true] {
        let (mut client, pass) = stage.logged_in("merle").await;
        let (mut other, _) = stage.logged_in("other").await;
        if banned {
            stage.realm.ban("merle", true).await.unwrap();
        } else {
            assert_eq!(stage.realm.kick("merle", "Go."), Ok(1));
        }
        let error = loop {
            match client.listen(DAY).await {
                Ok(told) => assert!(matches!(told, Some(ServerMessage::Admit(0))), "{told:?}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ClientError::ThrownOut(_)), "{error}");
        let again = stage.client().await.validate(&pass).await;
        if banned {
            assert_eq!(refused(again), "ValidateFailed", "its CK2s are revoked");
            let mut client = stage.client().await;
            let hash = password_hash("hunter2");
            assert_eq!(refused(client.log_in("merle", &hash).await), "AccountBanned");
        } else {
            again.unwrap();
        }
        other.ping().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_beyond_the_limit_is_refused() {
    const MAX: u32 = 65_535;
    let stage = Stage::new(|_| ()).await;
    let address: SocketAddr = "192.0.2.1:1".parse().unwrap();
    let peer = Peer { address, local: address };
    let mut held = Vec::new();
    for _ in 0..MAX {
        held.push(stage.door.accept(peer, Duration::ZERO));
    }
    assert_eq!(stage.door.0.sessions(), MAX);
    let (stream, end) = stage.stream();
    assert!(matches!(Client::over(stream, &settings()).await, Err(ClientError::NoSession { .. })));
    assert!(matches!(end.await.unwrap(), End::Closed(_)));
    assert_eq!(stage.door.0.sessions(), MAX);
    let (connection, mut client) = held.pop().unwrap();
    drop(connection);
    worldwire_net::Application::ended(&mut client, &End::Stopped).await;
    assert_eq!(stage.door.0.sessions(), MAX - 1);
    stage.client().await.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_or_full_server_is_distinguished_from_a_refusal() {
    let error = |ended: Result<Client, ClientError>| ended.unwrap_err().to_string();
    let (near, silent) = tokio::io::duplex(64);
    let patient = Client::over(near, &settings()).await;
    assert_eq!(error(patient), "the server sent no session offer in time; is it a login server?");
    drop(silent);
    let (near, _) = tokio::io::duplex(64);
    let hung_up = error(Client::over(near, &settings()).await);
    assert!(
        hung_up.starts_with("the server closed the connection before a session began: "),
        "{hung_up}"
    );
    assert!(hung_up.ends_with("; the server may be full"), "{hung_up}");
}
