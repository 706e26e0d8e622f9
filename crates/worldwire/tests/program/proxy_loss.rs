//! `worldwire proxy mxo` on a network that loses datagrams on both sides of the proxy.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use worldwire_core::Sampler;
use worldwire_core::json::parse;

use crate::proxy::{Running, open_world, port, worldwire};

/// Starts a link to a server that loses this percentage of all datagrams in both directions, for
/// any number of clients. Returns the link's address. The link lasts as long as the process.
fn lossy(server: &str, loss: u64, seed: u64) -> String {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr().unwrap().to_string();
    let server = server.to_owned();
    let sampler = Arc::new(Mutex::new(Sampler::new(seed)));
    let is_lost = move |sampler: &Mutex<Sampler>| sampler.lock().unwrap().below(100) < loss;
    thread::spawn(move || {
        let mut far: HashMap<SocketAddr, UdpSocket> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        loop {
            // An error reports that an earlier datagram was refused.
            let Ok((length, client)) = near.recv_from(&mut buffer) else { continue };
            let far = far.entry(client).or_insert_with(|| {
                let far = UdpSocket::bind("127.0.0.1:0").unwrap();
                far.connect(&server).unwrap();
                let (back, near) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let sampler = Arc::clone(&sampler);
                thread::spawn(move || {
                    let mut buffer = vec![0; 65_536];
                    loop {
                        let Ok(length) = back.recv(&mut buffer) else { continue };
                        if !is_lost(&sampler) {
                            let _ = near.send_to(&buffer[..length], client);
                        }
                    }
                });
                far
            });
            if !is_lost(&sampler) {
                let _ = far.send(&buffer[..length]);
            }
        }
    });
    address
}

/// The messages in a recording, grouped by the port of their conversation: sender, name and fields,
/// sorted, because conversations overlap. The recording must be complete.
fn messages(folder: &Path, recording: &str, ports: [&str; 2]) -> [Vec<String>; 2] {
    let output = worldwire(folder, &["dissect", recording, "--json"]).output().unwrap();
    // Datagrams that were lost before they reached the proxy are gaps, and nothing else is missing.
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.trim_end().ends_with(" gaps"), "{said}");
    let mut all = [Vec::new(), Vec::new()];
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let json = parse(line).unwrap();
        let name = json["name"].as_str().unwrap();
        assert_ne!(name, "problem", "{line}");
        let has = |port: &&str| {
            let port: u64 = port.parse().unwrap();
            ["srcport", "dstport"].iter().any(|key| json[*key] == port)
        };
        // The names of notes have no dot.
        if name.contains('.') {
            let group = ports.iter().position(has).unwrap();
            all[group].push(["from", "name", "fields"].map(|key| json[key].to_string()).join(" "));
        }
    }
    all.iter_mut().for_each(|messages| messages.sort_unstable());
    all
}

/// Lets clients walk for a few seconds, and checks the recording of both sides.
fn play(clients: &str, seconds: &str, loss: u64, seed: u64) {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut world = open_world(home);
    world.ignore_log();
    let to = lossy(&world.address(), loss, seed);
    let relay = ["proxy", "mxo", "--to", &to, "--listen", "127.0.0.1:0", "--keys", "keys.toml"];
    let mut proxy = Running::start(home, &[&relay[..], &["--record", "evening.pcapng"]].concat());
    proxy.ignore_log();
    let at = lossy(&proxy.address(), loss, seed + 1);
    let visit = ["client", "mxo", &at, "--count", clients, "--seconds", seconds];
    let visited = worldwire(home, &visit).output().unwrap();
    let said = String::from_utf8(visited.stderr).unwrap();
    assert!(visited.status.success(), "{said}");
    let proxy_port = port(&proxy.address()).to_owned();
    proxy.stop();
    let [inside, outside] = messages(home, "evening.pcapng", [port(&to), &proxy_port]);
    assert!(inside.len() > 100, "{}", inside.len());
    assert!(inside == outside, "{} messages inside, {} outside", inside.len(), outside.len());
}

/// `WORLDWIRE_PROXY_LOSS` is the number of runs with twenty clients. By default, there is one run
/// with fewer clients.
#[test]
fn mxo_clients_see_the_same_world_through_a_proxy_despite_heavy_losses() {
    let runs = std::env::var("WORLDWIRE_PROXY_LOSS").ok().and_then(|runs| runs.parse().ok());
    for run in 0..runs.unwrap_or(0) {
        play("20", "4", 30, 1 + 2 * run);
    }
    if runs.is_none() {
        play("6", "2", 30, 1);
    }
}
