//! `worldwire proxy mxo` on a network that loses datagrams on both sides of the proxy.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use worldwire_core::Sampler;
use worldwire_core::json::{Json, parse};

use crate::proxy::{Running, port, printed, worldwire};

/// A link to a server that loses datagrams in both directions, in percent, for any number of clients.
/// It lasts as long as the process.
fn lossy(server: &str, loss: u64, seed: u64) -> String {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr().unwrap().to_string();
    let server = server.to_owned();
    let sampler = Arc::new(Mutex::new(Sampler::new(seed)));
    let mut clients: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    thread::spawn(move || {
        let is_lost = move |sampler: &Mutex<Sampler>| sampler.lock().unwrap().below(100) < loss;
        // An error says that an earlier datagram was refused.
        loop {
            let Ok((length, client)) = near.recv_from(&mut buffer) else { continue };
            let far = clients.entry(client).or_insert_with(|| {
                let far = UdpSocket::bind("127.0.0.1:0").unwrap();
                far.connect(&server).unwrap();
                let (back, near) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let sampler = Arc::clone(&sampler);
                let mut buffer = vec![0; 65_536];
                thread::spawn(move || {
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

/// The messages of a recording on one side of the proxy, in alphabetical order.
fn messages(folder: &Path, recording: &str, port: &str) -> Vec<String> {
    let filter = format!("port == {port}");
    let lines = printed(folder, &["dissect", recording, "--json", "--filter", &filter]);
    let lines = lines.lines().map(|line| parse(line).unwrap());
    let members = |line: Json| ["from", "name", "fields"].map(|key| line[key].to_string());
    let mut all: Vec<String> = lines
        // Notes have no dot.
        .filter(|line| line["name"].as_str().is_some_and(|name| name.contains('.')))
        .map(|line| members(line).join(" "))
        .collect();
    all.sort_unstable();
    all
}

/// Clients move about for some seconds, and the recording of both sides shows the same messages.
/// Returns whether all clients could connect.
fn play(clients: &str, seconds: &str, loss: u64) -> bool {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let serve =
        ["serve", "mxo", "--listen", "127.0.0.1:0", "--no-status", "--secrets", "keys.toml"];
    let world = Running::start(home, &serve);
    let to = lossy(&world.address(), loss, 1);
    let relay = ["proxy", "mxo", "--to", &to, "--listen", "127.0.0.1:0", "--keys", "keys.toml"];
    let proxy = Running::start(home, &[&relay[..], &["--record", "evening.pcapng"]].concat());
    let at = lossy(&proxy.address(), loss, 2);
    let visit = ["client", "mxo", &at, "--count", clients, "--seconds", seconds];
    let visited = worldwire(home, &visit).output().unwrap();
    let proxy_port = port(&proxy.address()).to_owned();
    proxy.stop();
    assert!(fs::metadata(home.join("evening.pcapng")).unwrap().len() > 1000);
    let problems = ["dissect", "evening.pcapng", "--brief", "--filter", "problem"];
    let output = worldwire(home, &problems).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    let [inside, outside] =
        [port(&to), &proxy_port].map(|port| messages(home, "evening.pcapng", port));
    assert!(inside.len() > 100, "{}", inside.len());
    assert_eq!(inside, outside);
    visited.status.success()
}

#[test]
fn mxo_clients_see_the_same_world_through_a_proxy_in_spite_of_losses() {
    assert!(play("3", "2", 10));
}

#[test]
#[ignore = "takes half a minute"]
fn twenty_mxo_clients_see_the_same_world_through_a_proxy_in_spite_of_heavy_losses() {
    // The server gives up clients whose first acknowledgement takes too long.
    play("20", "20", 30);
}
