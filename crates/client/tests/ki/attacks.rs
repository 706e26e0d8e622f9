//! What hostile clients try: it is refused by name, and others do not notice.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use worldwire_client::ki::{Client, Pass};
use worldwire_core::connection::CloseReason;
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::{Rec1, Salt, Secret, password_hash};
use worldwire_ki::message::Put;
use worldwire_net::End;

use crate::stage::{Stage, refused, settings};

#[tokio::test(start_paused = true)]
async fn a_login_that_was_listened_to_is_worth_nothing_on_another_connection() {
    let stage = Stage::new(|_| ()).await;
    let mut victim = stage.client().await;
    let id = victim.session_id();
    let pass = victim.log_in("merle", &password_hash("hunter2")).await.unwrap();
    // The thief has all bytes that went by, and a session of its own.
    let salt = Salt { session_id: id, seconds: 1_700_000_000, millis: 0 };
    let rec1 = Rec1::new("merle", &password_hash("hunter2"), salt).seal(salt);
    let mut thief = stage.client().await;
    assert_ne!(thief.session_id(), id);
    let fields = [("Rec1", Put::Bytes(rec1)), ("MachineID", Put::from(77_u32))];
    thief.say(7, "MSG_USER_AUTHEN_V3", &fields).await.unwrap();
    assert_eq!(refused(thief.characters().await), "NotAdmitted");
    victim.validate(&pass).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_its_own_account_and_machine() {
    let stage = Stage::new(|_| ()).await;
    let (_merle, pass) = stage.logged_in("merle").await;
    let (_other, others) = stage.logged_in("other").await;
    let stolen = Pass { user: others.user, ck2: pass.ck2.clone() };
    assert_eq!(refused(stage.client().await.validate(&stolen).await), "ValidateFailed");
    let made_up = Pass { user: pass.user, ck2: Secret::new("") };
    assert_eq!(refused(stage.client().await.validate(&made_up).await), "ValidateFailed");
    let nobody = Pass { user: 999, ck2: pass.ck2.clone() };
    assert_eq!(refused(stage.client().await.validate(&nobody).await), "ValidateFailed");
    let mut elsewhere = settings();
    elsewhere.machine += 1;
    let mut client = Client::over(stage.stream().0, &elsewhere).await.unwrap();
    assert_eq!(refused(client.validate(&pass).await), "ValidateFailed");
    // That of a web page is good on any.
    let (user, ck2) = stage.realm.token("merle").unwrap();
    client.validate(&Pass { user, ck2 }).await.unwrap();
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
    // Whoever says in the blob that it is another's is corrected.
    let mut forged = Character::plain("Other", "Ice", 2);
    forged.set_ids(character, 1);
    other.create(forged.as_bytes()).await.unwrap();
    let own = other.characters().await.unwrap().list;
    assert_eq!(own.len(), 1);
    assert_ne!((own[0].global_id(), own[0].user_id()), (character, 1));
    let to = merle.select(character).await.unwrap();
    // The key of a zone: not for another account or character, and once.
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
    assert!(list.iter().all(|old| old.global_id() != after[5].global_id()), "no id comes again");
}

#[tokio::test(start_paused = true)]
async fn torn_and_foreign_bytes_cost_their_own_connection() {
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
    // Half a frame, and then nothing.
    let (mut stream, end) = stage.stream();
    stream.write_all(&[0x0d, 0xf0, 8]).await.unwrap();
    stream.shutdown().await.unwrap();
    let end = end.await.unwrap();
    assert!(matches!(end, End::Closed(CloseReason::Remote)), "{end}");
    // Nothing at all, from many.
    let silent: Vec<_> = (0..500).map(|_| stage.stream()).collect();
    assert_eq!(stage.door.0.sessions(), 501);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(stage.door.0.sessions(), 1);
    drop(silent);
    watcher.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_and_does_not_read_is_bounded() {
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
    // With too many answers queued, or after a minute in which it took none.
    let end = end.await.unwrap();
    assert!(matches!(end, End::Stalled | End::Application), "{end}");
    watcher.ping().await.unwrap();
}
