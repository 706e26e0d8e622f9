//! The program, run as a user would run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

#[cfg(unix)]
mod archive_page;
mod captures;
#[cfg(unix)]
mod client;
mod codegen;
mod conformance;
mod counted;
mod diff;
mod evening;
mod folders;
mod follow;
mod formats;
#[cfg(unix)]
mod help;
mod info;
#[cfg(target_os = "linux")]
mod interrupted;
mod ki_archives;
mod ki_bounds;
mod ki_edit;
mod ki_files;
mod ki_home;
#[cfg(unix)]
mod ki_login;
mod ki_lookups;
mod ki_paths;
mod ki_traffic;
mod limits;
mod lines;
mod live;
mod lost;
mod mxo;
#[cfg(unix)]
mod mxo_login;
#[cfg(unix)]
mod mxo_proxy;
#[cfg(unix)]
mod mxo_world;
mod objects;
#[cfg(target_os = "linux")]
mod one_database;
mod output_as_input;
#[cfg(unix)]
mod proxy;
mod proxy_loss;
#[cfg(unix)]
mod proxy_page;
mod replay;
mod samples;
mod sanitize;
mod schemas;
#[cfg(unix)]
mod serve;
#[cfg(target_os = "linux")]
mod standby;
mod stats;
mod tables;
mod tera_maps;
#[cfg(unix)]
mod tera_mods;
#[cfg(unix)]
mod tera_scenarios;
mod torn;
mod tshark;
mod uru_ages;
#[cfg(unix)]
mod uru_files;
#[cfg(unix)]
mod uru_games;
mod uru_replay;
mod uru_shard;
mod wad;
mod watch;
mod wireshark;
