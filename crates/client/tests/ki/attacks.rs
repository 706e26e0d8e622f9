//! Hostile clients are refused with a named error, and others do not notice.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use worldwire_client::ki::{Client, LoginToken};
use worldwire_core::connection::CloseReason;
use worldwire_ki::character::Character;
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, Secret, password_hash};
use worldwire_ki::message::Put;
use worldwire_net::End;

use crate::stage::{Stage, refused, settings};

#[tokio::test(start_paused = true)]
async fn an_overheard_login_is_useless_on_another_connection() {
    let stage = Stage::new(|_| ()).await;
    let mut victim = stage.client().await;
    let id = victim.session_id();
    let pass = victim.log_in("merle", &password_hash("hunter2")).await.unwrap();
    // The thief has overheard every byte and has its own session.
    let salt = Salt { session_id: id, seconds: 1_700_000_000, millis: 0 };
    let rec1 = Rec1::new("merle", &password_hash("hunter2"), salt).seal(salt);
    let mut thief = stage.client().await;
    assert_ne!(thief.session_id(), id);
    let fields = [("Rec1", Put::Bytes(rec1)), ("MachineID", Put::from(77_u32))];
    thief.send(7, "MSG_USER_AUTHEN_V3", &fields).await.unwrap();
    assert_eq!(refused(thief.characters().await), "NotAdmitted");
    victim.validate(&pass).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_only_for_its_account_and_machine() {
    let stage = Stage::new(|_| ()).await;
    let (_merle, pass) = stage.logged_in("merle").await;
    let (_other, others) = stage.logged_in("other").await;
    let stolen = LoginToken { user: others.user, ck2: pass.ck2.clone() };
    assert_eq!(refused(stage.client().await.validate(&stolen).await), "ValidateFailed");
    let invented = LoginToken { user: pass.user, ck2: Secret::new("") };
    assert_eq!(refused(stage.client().await.validate(&invented).await), "ValidateFailed");
    let nobody = LoginToken { user: 999, ck2: pass.ck2.clone() };
    assert_eq!(refused(stage.client().await.validate(&nobody).await), "ValidateFailed");
    let mut elsewhere = settings();
    elsewhere.machine += 1;
    let mut client = Client::over(stage.stream().0, &elsewhere).await.unwrap();
    assert_eq!(refused(client.validate(&pass).await), "ValidateFailed");
    // A token from the web page is valid on any machine.
    let (user, ck2) = stage.realm.token("merle").unwrap();
    client.validate(&LoginToken { user, ck2 }).await.unwrap();
    stage.client().await.validate(&pass).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_character_of_another_account_is_unknown() {
    let stage = Stage::new(|_| ()).await;
    let (mut merle, _) = stage.logged_in("merle").await;
    merle.create(Character::plain("Merle", "Fire", 1).as_bytes()).await.unwrap();
    let character = merle.characters().await.unwrap().list[0].global_id();
    let (mut other, _) = stage.logged_in("other").await;
    for wrong in [character, 0, u64::MAX, character + 1] {
        assert_eq!(refused(other.select(wrong).await), "UnknownCharacter");
        assert_eq!(refused(other.delete(wrong).await), "UnknownCharacter");
    }
    // The server corrects a blob that names another account.
    let mut forged = Character::plain("Other", "Ice", 2);
    forged.set_ids(character, 1);
    other.create(forged.as_bytes()).await.unwrap();
    let own = other.characters().await.unwrap().list;
    assert_eq!(own.len(), 1);
    assert_ne!((own[0].global_id(), own[0].user_id()), (character, 1));
    let to = merle.select(character).await.unwrap();
    // A zone key is valid once, for its account and character.
    let mut zone = stage.client().await;
    for (user, of) in [(to.user + 1, character), (to.user, own[0].global_id())] {
        let mut forged = to.clone();
        (forged.user, forged.character) = (user, of);
        assert_eq!(refused(zone.attach(&forged).await), "WrongKey");
    }
    let mut guessed = to.clone();
    guessed.key = "0".repeat(32);
    assert_eq!(refused(zone.attach(&guessed).await), "WrongKey");
    zone.attach(&to).await.unwrap();
    assert_eq!(refused(stage.client().await.attach(&to).await), "WrongKey");
}

#[tokio::test(start_paused = true)]
async fn every_slot_is_counted() {
    let stage = Stage::new(|_| ()).await;
    let (mut merle, _) = stage.logged_in("merle").await;
    let blob = Character::plain("Merle", "Fire", 1).into_bytes();
    for _ in 0..6 {
        merle.create(&blob).await.unwrap();
    }
    assert_eq!(refused(merle.create(&blob).await), "SlotLimit");
    let list = merle.characters().await.unwrap().list;
    merle.delete(list[2].global_id()).await.unwrap();
    merle.create(&blob).await.unwrap();
    let after = merle.characters().await.unwrap().list;
    assert_eq!(after.len(), 6);
    assert!(list.iter().all(|old| old.global_id() != after[5].global_id()), "no id is reused");
}

#[tokio::test(start_paused = true)]
async fn malformed_bytes_close_only_their_own_connection() {
    let stage = Stage::new(|_| ()).await;
    let (mut watcher, _) = stage.logged_in("other").await;
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x0d, 0xf0, 0, 0x80, 0xff, 0xff, 0xff, 0xff],
        &[0x0d, 0xf0, 3, 0, 0, 0, 0],
        &[0x0d, 0xf0, 8, 0, 0, 0, 0, 0, 7, 27, 3, 0],
        &[0x0d, 0xf0, 8, 0, 0, 0, 0, 0, 7, 27, 0xff, 0x7f],
    ] {
        let (mut stream, end) = stage.stream();
        stream.write_all(bytes).await.unwrap();
        let end = timeout(Duration::from_secs(1), end).await;
        assert!(matches!(end, Ok(Ok(End::Fault { .. }))), "{bytes:02x?}: {end:?}");
        watcher.ping().await.unwrap();
    }
    // A client sends half a frame and then nothing more.
    let (mut stream, end) = stage.stream();
    stream.write_all(&[0x0d, 0xf0, 8]).await.unwrap();
    stream.shutdown().await.unwrap();
    let end = end.await.unwrap();
    assert!(matches!(end, End::Closed(CloseReason::Remote)), "{end}");
    // Many connections that never send anything.
    let silent: Vec<_> = (0..500).map(|_| stage.stream()).collect();
    assert_eq!(stage.door.0.sessions(), 501);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(stage.door.0.sessions(), 1);
    drop(silent);
    watcher.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_requests_without_reading_is_disconnected() {
    let stage = Stage::new(|_| ()).await;
    let (mut watcher, _) = stage.logged_in("other").await;
    let (mut stream, end) = stage.stream();
    let mut offer = [0; 28];
    stream.read_exact(&mut offer).await.unwrap();
    let mut accept = vec![0x0d, 0xf0, 20, 0, 1, 5, 0, 0, 0, 0];
    accept.extend([0; 12]);
    accept.extend(&offer[8..10]);
    stream.write_all(&accept).await.unwrap();
    let flood = [0x0d, 0xf0, 8, 0, 0, 0, 0, 0, 1, 1, 4, 0].repeat(1000);
    let flooding = async { while stream.write_all(&flood).await.is_ok() {} };
    assert!(timeout(Duration::from_secs(300), flooding).await.is_ok(), "it is closed");
    // Either too many replies were queued, or the client read nothing for a minute.
    let end = end.await.unwrap();
    assert!(matches!(end, End::Stalled | End::Application), "{end}");
    watcher.ping().await.unwrap();
}
