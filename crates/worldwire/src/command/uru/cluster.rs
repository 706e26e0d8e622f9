//! `worldwire uru cluster`.

use std::fmt::Write as _;

use serde_json::Value as Json;
use worldwire_core::listed;
use worldwire_server::uru::admin::Request;
use worldwire_server::uru::config::Role;
use worldwire_server::uru::{BusUser, nats_config, new_bus_key};

use super::account::ask;
use super::online::since;
use crate::cli::{Common, NodeKey, UruCluster};
use crate::command::administration::{print_lines, text};
use crate::output::{Failure, counted, print, reason, write_all};

pub(crate) fn run(command: &UruCluster, common: &Common) -> Result<(), Failure> {
    match command {
        UruCluster::List { shard } => {
            let nodes = ask(&shard.shard, Request::Nodes, Vec::new())?;
            if shard.json { print_lines(&nodes) } else { print(&table(&nodes)) }
        }
        UruCluster::Drain { node, undo, shard } => {
            let request = Request::Drain { node: node.clone(), undo: *undo };
            let done = ask(&shard.shard, request, Vec::new())?;
            let text = match undo {
                true => "serves clients again",
                false => {
                    "is being drained; `worldwire uru cluster list` shows its clients and players"
                }
            };
            common.note(node, text);
            if shard.json { print_lines(&done) } else { Ok(()) }
        }
        UruCluster::Lead { shard } => {
            let standbys = ask(&shard.shard, Request::HandOver, Vec::new())?;
            let names: Vec<_> = standbys.iter().map(|standby| text(&standby["process"])).collect();
            let next = match &names[..] {
                [one] => one.clone(),
                names => format!("one of {}", listed(names.iter().map(String::as_str))),
            };
            common.note(
                &shard.shard.to_string_lossy(),
                &format!(
                    "the active process is handing over the shard to {next} and will become a \
                     standby"
                ),
            );
            if shard.json { print_lines(&standbys) } else { Ok(()) }
        }
        UruCluster::NatsKey { file } => {
            let public = new_bus_key(file)
                .map_err(|error| Failure::Run(format!("{}: {}", file.display(), reason(&error))))?;
            print(&format!("{public}\n"))
        }
        UruCluster::NatsConfig { name, leader, front, age, target } => {
            let mut users = Vec::new();
            for (keys, role) in [(leader, Role::Vault), (front, Role::Front), (age, Role::Age)] {
                keys.iter().for_each(|key| add(&mut users, key, role));
            }
            let config = nats_config(name, &users);
            let config = config.map_err(|error| Failure::Run(error.to_string()))?;
            write_all(target, config.as_bytes())
        }
    }
}

/// Adds a role to the process that was named with this key, or adds another process.
fn add(users: &mut Vec<BusUser>, NodeKey { node, key }: &NodeKey, role: Role) {
    match users.iter_mut().find(|user| user.node == *node && user.key == *key) {
        Some(user) => user.roles.push(role),
        None => users.push(BusUser { node: node.clone(), key: key.clone(), roles: vec![role] }),
    }
}

fn table(nodes: &[Json]) -> String {
    let mut out = String::new();
    for one in nodes {
        let name = match &one["node"] {
            Json::Null => text(&one["process"]),
            _ => text(&one["node"]),
        };
        let mut roles: Vec<_> = one["roles"].as_array().into_iter().flatten().map(text).collect();
        if one["leader"] == true {
            roles.insert(0, "leader".to_owned());
        }
        if one["draining"] == true {
            roles.push("draining".to_owned());
        }
        let _ = write!(out, "{name}  {}", roles.join(", "));
        for key in ["version", "address"] {
            let value = text(&one[key]);
            if !value.is_empty() {
                let _ = write!(out, "  {value}");
            }
        }
        if let Some(behind) = one["behind"].as_u64() {
            let _ = write!(out, "  {behind} batches behind");
        } else if let [Some(clients), Some(ages), Some(players)] =
            ["clients", "ages", "players"].map(|key| one[key].as_u64())
        {
            let [clients, ages, players] =
                [(clients, "client"), (ages, "age"), (players, "player")]
                    .map(|(count, what)| counted(count, what));
            let _ = write!(out, "  {clients}, {ages} with {players}");
        }
        if let Some(start) = one["since"].as_u64() {
            let _ = write!(out, "  since {}", since(start));
        }
        if let Some(heard) = one["heardMs"].as_u64() {
            let _ = write!(out, "  last heard from {heard} ms ago");
        }
        out.push('\n');
    }
    out
}
