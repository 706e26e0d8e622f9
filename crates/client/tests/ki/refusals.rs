//! Every refusal, by name, and what a client can do afterwards.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use worldwire_client::ki::{Client, LoginToken};
use worldwire_ki::character::{Character, MAX_NAME_INDICES};
use worldwire_ki::crypt::login::{Secret, password_hash};
use worldwire_server::ki::Refusal;

use crate::log::Log;
use crate::stage::{Stage, refused, settings};

fn plain(name: &str) -> Character {
    Character::plain(name, "Fire", 1)
}

/// Sends wrong passwords from one address, many at a time, until the server delays its replies.
async fn flood(stage: &Stage) -> JoinSet<()> {
    let wrong = password_hash("x");
    let mut failing = stage.client().await;
    for _ in 0..4 {
        assert_eq!(refused(failing.log_in("nobody", &wrong).await), "AuthenFailed");
    }
    let mut waiting = JoinSet::new();
    for _ in 0..30 {
        let (mut client, wrong) = (stage.client().await, wrong.clone());
        waiting.spawn(async move {
            assert_eq!(refused(client.log_in("nobody", &wrong).await), "AuthenFailed");
        });
    }
    sleep(Duration::from_millis(10)).await;
    waiting
}

/// Provokes a refusal; returns the error's name and the client.
async fn provoke(refusal: Refusal) -> (&'static str, Client, Stage) {
    let stage = Stage::new(|config| match refusal {
        Refusal::MachineBanned => config.login.banned_machines = vec![1, settings().machine],
        Refusal::AISNoLogin => config.open = false,
        Refusal::FtpCapped => config.limits.free_players = 1,
        _ => {}
    });
    let stage = stage.await;
    let hash = password_hash("hunter2");
    let mut client = stage.client().await;
    if matches!(
        refusal,
        Refusal::ErrorNoLock
            | Refusal::FailedUpload
            | Refusal::InvalidName
            | Refusal::MalformedCharacter
            | Refusal::SlotLimit
            | Refusal::UnknownCharacter
            | Refusal::WrongKey
    ) {
        client.log_in("merle", &hash).await.unwrap();
    }
    let heard = match refusal {
        Refusal::AuthenFailed => refused(client.log_in("merle", &password_hash("x")).await),
        Refusal::AccountBanned => {
            stage.realm.ban("merle", true).await.unwrap();
            refused(client.log_in("merle", &hash).await)
        }
        Refusal::MachineBanned | Refusal::AISNoLogin => {
            refused(client.log_in("merle", &hash).await)
        }
        Refusal::Timeout => unreachable!("only a system without random numbers causes it"),
        Refusal::FtpCapped => {
            let _other = stage.logged_in("other").await;
            refused(client.log_in("merle", &hash).await)
        }
        Refusal::ErrorNoLock | Refusal::WrongKey => {
            client.create(plain("Merle").as_bytes()).await.unwrap();
            let character = client.characters().await.unwrap().list[0].global_id();
            let mut selecting = stage.logged_in("merle").await.0;
            let to = selecting.select(character).await.unwrap();
            let mut zone = stage.client().await;
            zone.attach(&to).await.unwrap();
            let heard = match refusal {
                Refusal::ErrorNoLock => refused(client.delete(character).await),
                _ => refused(client.attach(&to).await),
            };
            assert_eq!(stage.realm.census().playing, 1);
            heard
        }
        Refusal::FailedUpload => {
            stage.memory.is_failing.store(true, Ordering::Relaxed);
            refused(client.create(plain("Merle").as_bytes()).await)
        }
        Refusal::ValidateFailed => {
            let invented = LoginToken { user: 1, ck2: Secret::new("made up") };
            refused(client.validate(&invented).await)
        }
        Refusal::InvalidName => {
            let character = Character::plain("", "Fire", MAX_NAME_INDICES + 1);
            refused(client.create(character.as_bytes()).await)
        }
        Refusal::NotAdmitted => refused(client.characters().await),
        Refusal::MalformedCharacter => refused(client.create(&plain("").as_bytes()[..30]).await),
        Refusal::SlotLimit => {
            for _ in 0..6 {
                client.create(plain("").as_bytes()).await.unwrap();
            }
            refused(client.create(plain("").as_bytes()).await)
        }
        Refusal::UnknownCharacter => refused(client.select(5).await),
    };
    (heard, client, stage)
}

#[tokio::test(start_paused = true)]
async fn k_17_every_refusal_has_a_name_and_keeps_the_connection() {
    for refusal in Refusal::ALL.iter().filter(|refusal| **refusal != Refusal::Timeout) {
        let (heard, mut client, stage) = provoke(*refusal).await;
        assert_eq!(heard, refusal.name());
        client.ping().await.unwrap();
        let created = if *refusal == Refusal::SlotLimit { 6 } else { 0 };
        let of_zone = matches!(refusal, Refusal::ErrorNoLock | Refusal::WrongKey);
        assert_eq!(stage.realm.census().characters, created + usize::from(of_zone), "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn k_17_invalid_names_and_characters_are_not_stored() {
    let stage = Stage::new(|_| ()).await;
    let (mut client, _) = stage.logged_in("merle").await;
    let long = "x".repeat(65);
    for name in ["Mer\nle", " Merle", "Mer\u{202e}le", "\u{feff}Merle", "Mer\u{200b}le", &long] {
        assert_eq!(refused(client.create(plain(name).as_bytes()).await), "InvalidName", "{name:?}");
    }
    let whole = plain("Merle").into_bytes();
    let mut of_another_class = whole.clone();
    of_another_class[0] += 1;
    let mut long_name = whole.clone();
    long_name[9] = 0xff;
    for blob in [&[][..], &whole[..49], &of_another_class, &long_name, &[0; 20_000]] {
        assert_eq!(refused(client.create(blob).await), "MalformedCharacter", "{}", blob.len());
    }
    assert!(client.characters().await.unwrap().list.is_empty());
    client.create(&whole).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn k_18_a_correct_password_is_delayed_and_never_refused() {
    let stage = Stage::new(|_| ()).await;
    let mut wrong = flood(&stage).await;
    // This login comes from the same address, in the middle of the flood.
    let began = Instant::now();
    stage.logged_in("merle").await;
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(3) && waited < Duration::from_millis(4_100),
        "{waited:?}"
    );
    while let Some(answered) = wrong.join_next().await {
        answered.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn k_18_a_client_that_leaves_during_a_delay_frees_its_connection() {
    let stage = Stage::new(|_| ()).await;
    let before = stage.door.0.sessions();
    let wrong = flood(&stage).await;
    assert!(stage.door.0.sessions() >= before + 30);
    drop(wrong);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.door.0.sessions(), before);
    // The failed logins of these clients still count.
    let began = Instant::now();
    stage.logged_in("merle").await;
    assert_eq!(began.elapsed().as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn k_18_the_delay_can_be_turned_off() {
    let stage = Stage::new(|config| config.login.delay_after_failures = false).await;
    flood(&stage).await;
    let began = Instant::now();
    stage.logged_in("merle").await;
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn an_account_counts_once_and_leaving_makes_room() {
    let stage = Stage::new(|config| config.limits.free_players = 1).await;
    let hash = password_hash("hunter2");
    let (patch_client, pass) = stage.logged_in("merle").await;
    // The game connects while the patch client is still connected.
    let mut game = stage.client().await;
    game.validate(&pass).await.unwrap();
    let mut other = stage.client().await;
    assert_eq!(refused(other.log_in("other", &hash).await), "FtpCapped");
    let paying = worldwire_server::ki::realm::Privileges { paying: true, slots: 0 };
    stage.realm.add_account("payer", "hunter2", paying).await.unwrap();
    stage.logged_in("payer").await;
    patch_client.close().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(refused(other.log_in("other", &hash).await), "FtpCapped");
    game.close().await;
    sleep(Duration::from_secs(1)).await;
    other.log_in("other", &hash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refusals_are_logged_once_a_minute_without_secrets() {
    let log = Log::begin();
    let stage = Stage::new(|_| ()).await;
    let [right, wrong] = ["hunter2", "x"].map(password_hash);
    let flood = async || {
        for _ in 0..8 {
            let mut client = stage.client().await;
            for _ in 0..5 {
                assert_eq!(refused(client.log_in("nobody", &wrong).await), "AuthenFailed");
            }
        }
    };
    let began = Instant::now();
    flood().await;
    // The later logins were delayed.
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap();
    let lines = log.with("refused logins");
    assert!((1..=minutes + 1).contains(&lines.len()), "{minutes} minutes: {lines:?}");
    assert!(lines[0].contains("why=AuthenFailed count=1"), "{lines:?}");
    // A later log line states how many there were.
    sleep(Duration::from_secs(120)).await;
    flood().await;
    let counts = log.with("refused logins").into_iter().map(|line| {
        line.split(" count=").nth(1).unwrap().split(' ').next().unwrap().parse::<u32>().unwrap()
    });
    let counted: u32 = counts.sum();
    assert!((41..=80).contains(&counted), "{counted}");

    // K-01: no log line contains credentials, at any level.
    let mut client = stage.client().await;
    let pass = client.log_in("merle", &right).await.unwrap();
    let (_, ck2) = stage.realm.token("merle").unwrap();
    client.create(plain("Merle").as_bytes()).await.unwrap();
    let character = client.characters().await.unwrap().list[0].global_id();
    let to = client.select(character).await.unwrap();
    stage.client().await.attach(&to).await.unwrap();
    assert!(!log.with("logged in").is_empty());
    for secret in [pass.ck2.as_str(), ck2.as_str(), right.as_str(), &to.key, "hunter2"] {
        assert_eq!(log.with(secret), Vec::<String>::new());
    }
}
