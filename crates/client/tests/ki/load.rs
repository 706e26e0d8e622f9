//! A load test. `WORLDWIRE_KI_LOAD=1 cargo test --release -p worldwire-client --test ki load`
//! measures; without the variable, a few clients run the same steps.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;
use worldwire_client::ki::{Client, Settings};
use worldwire_ki::crypt::login::password_hash;
use worldwire_net::Stop;
use worldwire_server::ki::realm::Privileges;
use worldwire_server::ki::{LoginServer, Start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_log_in_and_stay() {
    let measures = std::env::var_os("WORLDWIRE_KI_LOAD").is_some();
    let (sessions, logins) = if measures { (2_000, 3_000) } else { (20, 40) };
    let folder = tempfile::tempdir().unwrap();
    let start = Start {
        change: Some(Box::new(|config| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status = String::new();
            config.limits.connections_per_address = 10_000;
        })),
        secrets: None,
    };
    let server = LoginServer::open(folder.path(), start).await.unwrap();
    let (address, realm) = (server.address().unwrap().to_string(), server.realm().clone());
    let stop = Stop::new();
    let serving = tokio::spawn(server.serve(stop.signal()));
    realm.add_account("merle", "hunter2", Privileges::default()).await.unwrap();

    // A password login, then a CK2 login on another connection.
    let (address, hash) = (Arc::<str>::from(address), password_hash("hunter2"));
    let began = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..20 {
        let (address, hash) = (Arc::clone(&address), hash.clone());
        workers.spawn(async move {
            let settings = Settings::default();
            for _ in 0..logins / 20 {
                let mut first = Client::connect(&address, &settings).await.unwrap();
                let pass = first.log_in("merle", &hash).await.unwrap();
                let mut game = Client::connect(&address, &settings).await.unwrap();
                game.validate(&pass).await.unwrap();
                game.wait_until_admitted().await.unwrap();
                assert!(game.characters().await.unwrap().list.is_empty());
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    let rate = f64::from(logins) / began.elapsed().as_secs_f64();
    let before = memory();
    let mut idle = Vec::new();
    for _ in 0..sessions {
        idle.push(Client::connect(&address, &Settings::default()).await.unwrap());
    }
    let used = memory();
    println!(
        "{rate:.0} full logins/s; {sessions} sessions and their clients: {used} kB, {before} kB before"
    );
    if measures {
        assert!(rate >= 300.0, "{rate} full logins a second");
        assert!(used < 200 << 10, "{used} kB with {sessions} idle sessions");
    }
    for client in idle.iter_mut().step_by(7) {
        client.ping().await.unwrap();
    }
    drop(idle);
    stop.stop();
    serving.await.unwrap().unwrap();
}

/// The resident memory of this process in kB; 0 where this figure is not available.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
