//! Every login status: how to provoke it, and that the client sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;
use worldwire_client::mxo::{LoginError, Margin, plain_character};
use worldwire_core::Side;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{LoginMessage, LoginRefusal, LoginStatus};

use crate::server::PASSWORD;
use crate::stage::{PATIENCE, Stage};

/// The reply in which a client sees a status.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SeenReply {
    Auth,
    ClaimName,
    Delete,
    Load,
}

use SeenReply::{Auth, ClaimName, Delete, Load};

/// All statuses: the code, how the test provokes it, and where the client sees it.
const STATUSES: [(u32, LoginStatus, &str, SeenReply); 16] = [
    (0x0b00_0025, LoginStatus::CharacterInUse, "another session has loaded it", Load),
    (0x1100_0000, LoginStatus::CharacterLimit, "the account is full", ClaimName),
    (0x1100_0001, LoginStatus::NameInUse, "another account has it", ClaimName),
    (0x1100_0002, LoginStatus::WrongPassword, "a wrong password", Auth),
    (0x1100_0002, LoginStatus::WrongPassword, "a name without an account", Auth),
    (0x1100_0003, LoginStatus::Banned, "an operator has banned the account", Auth),
    (0x1100_0005, LoginStatus::AccountInUse, "too many sessions", Auth),
    (0x1100_0006, LoginStatus::InvalidName, "a name with a space", ClaimName),
    (0x1100_0006, LoginStatus::InvalidName, "another account's character", Delete),
    (0x1100_0007, LoginStatus::Inactive, "the server is not open", Auth),
    (0x1100_000f, LoginStatus::NoDatabase, "the database fails", Load),
    (0x1100_000f, LoginStatus::NoDatabase, "another server has taken it over", Auth),
    (0x1100_0010, LoginStatus::UnknownKey, "another server's pubkey.dat", Auth),
    (0x1100_0011, LoginStatus::IncompatibleClient, "a proof before a name", Auth),
    (0x1100_0012, LoginStatus::NoAccount, "it is deleted in mid-creation", Load),
    (0x1100_0014, LoginStatus::InvalidWorld, "a character of another world", Load),
];

#[tokio::test(start_paused = true)]
async fn clients_see_every_status() {
    for (code, status, how, seen_in) in STATUSES {
        assert_eq!(LoginStatus(code), status);
        let seen = match seen_in {
            Auth => at_auth(how).await,
            _ => at_margin(how).await,
        };
        assert_eq!(seen, status, "{how}");
    }
    // The table contains all statuses that have a name.
    let named = LoginStatus::NAMES.iter().filter(|(code, _)| *code != 0);
    let mut known: Vec<i64> = STATUSES.iter().map(|(code, ..)| i64::from(*code)).collect();
    known.dedup();
    assert_eq!(named.map(|(code, _)| code).collect::<Vec<_>>(), known);
}

/// The status in an auth reply.
async fn at_auth(how: &str) -> LoginStatus {
    let stage = Stage::new(|config| {
        config.open = how != "the server is not open";
        config.limits.sessions_per_account = 1;
    })
    .await;
    stage.add("neo").await;
    let mut login = stage.login("neo", PASSWORD);
    let mut session = None;
    match how {
        "a wrong password" => login = stage.login("neo", "blue pill"),
        "a name without an account" => login = stage.login("cypher", PASSWORD),
        "an operator has banned the account" => stage.realm.ban("neo", true).await.unwrap(),
        "too many sessions" => session = Some(stage.margin("neo").await),
        "another server has taken it over" => {
            stage.memory.is_overtaken.store(true, Ordering::Relaxed);
            stage.realm.ban("neo", false).await.unwrap_err();
        }
        "another server's pubkey.dat" => {
            let mut key = stage.public_key.clone();
            key.modulus[5] ^= 1;
            login.public_key = Some(key);
        }
        "a proof before a name" => return to_a_proof(&stage).await,
        _ => assert_eq!(how, "the server is not open"),
    }
    let outcome = worldwire_client::mxo::log_in_over(stage.auth(), login, PATIENCE).await;
    drop(session);
    match outcome {
        Err(LoginError::Refused(LoginRefusal::Status(status))) => status,
        other => panic!("{how}: {other:?}"),
    }
}

/// The reply to an empty proof. This project's client never sends one at this point.
async fn to_a_proof(stage: &Stage) -> LoginStatus {
    let mut stream = stage.auth();
    stream.write_all(&[5, 10, 3, 0, 0, 0]).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    assert_eq!(reply.len(), 12, "one message, then the end: {reply:02x?}");
    match LoginMessage::decode_strictly(&reply[1..], Channel::Auth, Side::Server).unwrap() {
        LoginMessage::AuthServer(message) => match *message {
            worldwire_mxo::login::AuthServerMessage::AuthReply(reply) => reply.status,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// The status in a reply about a character.
async fn at_margin(how: &str) -> LoginStatus {
    let change = |config: &mut worldwire_server::mxo::MxoConfig| {
        config.limits.characters_per_account = 1;
        config.login.replace_after_seconds = 3_600;
    };
    let stage = Stage::new(change).await;
    let (mut neo, id) = stage.newcomer("neo", "Neo").await;
    stage.add("smith").await;
    let mut smith = stage.margin("smith").await;
    let plain = || plain_character("Agent", "Smith", "").unwrap();
    let refused: Result<(), LoginError> = match how {
        "another session has loaded it" => stage.margin("neo").await.load(id).await.map(drop),
        "the account is full" => neo.claim("Anderson").await.map(drop),
        "another account has it" => smith.claim("NEO").await.map(drop),
        "a name with a space" => smith.claim("Agent Smith").await.map(drop),
        "another account's character" => smith.delete(id).await,
        "the database fails" => {
            stage.memory.is_failing.store(true, Ordering::Relaxed);
            smith.create("Smith", plain()).await.map(drop)
        }
        "it is deleted in mid-creation" => {
            let ticket = stage.ticket("smith").await;
            stage.memory.is_locked.store(true, Ordering::Relaxed);
            let realm = stage.realm.clone();
            let deleting = tokio::spawn(async move { realm.delete_account("smith").await });
            sleep(Duration::from_millis(1)).await;
            // The deletion waits for the database, and the creation for the deletion.
            let mut again = Margin::over(stage.margin_stream(), ticket, PATIENCE).await.unwrap();
            let (memory, free) = (Arc::clone(&stage.memory), Duration::from_secs(2));
            tokio::spawn(async move {
                sleep(free).await;
                memory.is_locked.store(false, Ordering::Relaxed);
            });
            let created = again.create("Smith", plain()).await.map(drop);
            deleting.await.unwrap().unwrap();
            created
        }
        "a character of another world" => {
            let memory = Arc::clone(&stage.memory);
            drop((neo, smith, stage));
            let stage = Stage::on(memory, |config| config.world_id = 2).await;
            stage.margin("neo").await.load(id).await.map(drop)
        }
        other => panic!("{other}"),
    };
    match refused {
        Err(LoginError::Denied(status)) => status,
        other => panic!("{how}: {other:?}"),
    }
}
