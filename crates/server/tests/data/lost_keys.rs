//! A shard refuses to start without its secrets.

use std::fs;
use std::path::Path;

use worldwire_server::uru::Shard;
use worldwire_server::uru::admin::Admin;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::message::AccountFlags;

async fn open(folder: &Path) -> Result<Shard, String> {
    let shard = Shard::open_with(folder, PrimeKind::Plain, |config| {
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.status = String::new();
    });
    shard.await.map_err(|error| error.to_string())
}

/// Opens and closes a shard, or returns the error.
async fn start(folder: &Path) -> Result<(), String> {
    open(folder).await?.vault().close().await;
    Ok(())
}

#[tokio::test]
async fn a_lost_key_is_reported_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [server, keys] = ["server.key", "keys.toml"].map(|name| folder.join(name));
    start(folder).await.unwrap();

    // Without passwords, a new key is created.
    fs::remove_file(&server).unwrap();
    start(folder).await.unwrap();
    let shard = open(folder).await.unwrap();
    shard.vault().add_account("ann", "secret", AccountFlags(0)).await.unwrap();
    shard.vault().close().await;
    drop(shard);
    start(folder).await.unwrap();

    let kept = fs::read(&server).unwrap();
    fs::remove_file(&server).unwrap();
    let lost = start(folder).await.unwrap_err();
    assert!(lost.contains("server.key: file is missing") && lost.contains("restore it"), "{lost}");
    assert!(!server.exists());
    let lost = Admin::open(folder).await.unwrap_err().to_string();
    assert!(lost.contains("server.key: file is missing"), "{lost}");
    // The file contains another key.
    fs::write(&server, format!("{}\n", "5a".repeat(32))).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&server, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for _ in 0..2 {
        let other = start(folder).await.unwrap_err();
        assert!(other.starts_with("server.key is not the key"), "{other}");
    }
    fs::write(&server, kept).unwrap();
    start(folder).await.unwrap();

    let kept = fs::read(&keys).unwrap();
    fs::remove_file(&keys).unwrap();
    let lost = start(folder).await.unwrap_err();
    assert!(lost.contains("keys.toml: file is missing"), "{lost}");
    assert!(lost.contains("worldwire uru keys generate -o "), "{lost}");
    assert!(!keys.exists());
    fs::write(&keys, kept).unwrap();
    start(folder).await.unwrap();
}

#[tokio::test]
async fn a_lost_database_is_reported_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let database = folder.join("shard.sqlite");
    start(folder).await.unwrap();
    start(folder).await.unwrap();
    fs::remove_file(&database).unwrap();
    for lost in [
        start(folder).await.unwrap_err(),
        Admin::open(folder).await.map(drop).unwrap_err().to_string(),
    ] {
        assert!(lost.contains("shard.sqlite: the database is missing; restore it"), "{lost}");
        assert!(lost.contains("server.key"), "{lost}");
        assert!(!database.exists());
    }
    // Without the key, the shard starts with an empty database, as the error message says.
    fs::remove_file(folder.join("server.key")).unwrap();
    start(folder).await.unwrap();
    assert!(database.exists());
}

#[tokio::test]
async fn a_first_start_that_cannot_listen_leaves_no_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let shard = Shard::open_with(folder.path(), PrimeKind::Plain, |config| {
        config.listen = address;
        config.status = String::new();
    });
    assert!(shard.await.unwrap_err().to_string().contains("cannot listen"));
    assert!(!folder.path().join("shard.toml").exists());
    start(folder.path()).await.unwrap();
}
