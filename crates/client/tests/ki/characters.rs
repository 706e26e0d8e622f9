//! Character blobs: which fields the server sets and which it checks.

use std::path::{Path, PathBuf};

use worldwire_client::ki::Client;
use worldwire_core::value::parse_hex;
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_server::ki::ServerError;

use crate::sockets::Running;
use crate::stage::{Stage, refused, settings};

/// A blob that a game client created, and the type list with which it was read.
fn vector() -> (Vec<u8>, String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ki/character_blob.json");
    let vector: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    (parse_hex(vector["hex"].as_str().unwrap()).unwrap(), vector["types"].to_string())
}

/// The blob of the vector, with a different name.
fn named(blob: &[u8], name: &str) -> Vec<u8> {
    let count = u16::try_from(name.len()).unwrap().to_le_bytes();
    [&blob[..8], &count, name.as_bytes(), &blob[10..]].concat()
}

#[tokio::test(start_paused = true)]
async fn k_03_ids_are_set_in_an_opaque_blob() {
    let stage = Stage::new(|_| ()).await;
    let (mut client, pass) = stage.logged_in("merle").await;
    let (blob, _) = vector();
    for name in ["", "M", "Merle Ashthorn"] {
        let mut sent = named(&blob, name);
        let at = 11 + name.len();
        // The server overwrites whatever the client put there.
        sent[at..at + 16].fill(0xee);
        client.create(&sent).await.unwrap();
        let listed = client.characters().await.unwrap().list.remove(0);
        let stored = listed.as_bytes();
        assert_eq!(stored[at + 8..at + 16], pass.user.to_le_bytes());
        assert_eq!(listed.global_id().to_le_bytes(), stored[at..at + 8]);
        assert_eq!((&stored[..at], &stored[at + 16..]), (&sent[..at], &sent[at + 16..]));
        // The character can be selected and deleted by that ID.
        let (mut selecting, _) = stage.logged_in("merle").await;
        assert_eq!(
            selecting.select(listed.global_id()).await.unwrap().character,
            listed.global_id()
        );
        client.delete(listed.global_id()).await.unwrap();
    }
}

/// A directory whose `ki.toml` names type lists.
fn folder_with(lists: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("login");
    std::fs::create_dir(&server).unwrap();
    let names: Vec<_> = lists.iter().map(|(name, _)| format!("{name:?}")).collect();
    let settings = format!("types = [{}]\n", names.join(", "));
    std::fs::write(server.join("ki.toml"), settings).unwrap();
    for (name, text) in lists {
        std::fs::write(server.join(name), text).unwrap();
    }
    (folder, server)
}

#[tokio::test]
async fn with_a_type_list_a_new_character_must_be_a_valid_object() {
    let (blob, types) = vector();
    let other = include_str!("../../../../samples/ki-types.json");
    let (_folder, folder) = folder_with(&[("other.json", other), ("types.json", &types)]);
    // Only the middle is invalid: it is an object of an unknown class.
    let mut wrong = blob.clone();
    wrong[28..32].fill(0x77);
    let too_long = {
        let (front, ends) = blob.split_at(blob.len() - 8);
        [front, &[0; 5], ends].concat()
    };
    let merle = async |server: &Running| {
        let mut client = Client::connect(&server.address, &settings()).await.unwrap();
        client.log_in("merle", &password_hash("hunter2")).await.unwrap();
        client
    };
    let server = Running::start(&folder, |_| (), None).await;
    server.realm.add_account("merle", "hunter2", Default::default()).await.unwrap();
    let mut client = merle(&server).await;
    for blob in [&wrong, &too_long] {
        assert_eq!(refused(client.create(blob).await), "MalformedCharacter");
    }
    client.create(&blob).await.unwrap();
    client.create(Character::plain("Merle", "Fire", 1).as_bytes()).await.unwrap();
    assert_eq!(client.characters().await.unwrap().list.len(), 2);
    drop(client);
    server.end().await;

    // Without a type list, only the beginning and the end are checked.
    std::fs::write(folder.join("ki.toml"), "").unwrap();
    let server = Running::start(&folder, |_| (), None).await;
    let mut client = merle(&server).await;
    for blob in [&wrong, &too_long] {
        client.create(blob).await.unwrap();
    }
    drop(client);
    server.end().await;
}

#[tokio::test]
async fn an_invalid_type_list_is_reported_at_startup() {
    let fails = async |folder: &Path| Running::open(folder, |_| (), None).await.err().unwrap();
    let (_folder, folder) = folder_with(&[("types.json", "not a list")]);
    let error = fails(&folder).await;
    assert!(matches!(error, ServerError::Definitions(_)), "{error}");
    assert_eq!(error.to_string().matches("types.json").count(), 1, "{error}");
    std::fs::remove_file(folder.join("types.json")).unwrap();
    let error = fails(&folder).await;
    assert!(matches!(error, ServerError::Start(_)), "{error}");
    assert!(error.to_string().contains("types.json: "), "{error}");
}
