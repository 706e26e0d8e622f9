//! The subcommands.

#[cfg(feature = "network")]
mod administration;
pub(crate) mod capture;
#[cfg(feature = "network")]
mod capture_page;
#[cfg(feature = "network")]
pub(crate) mod client;
pub(crate) mod codecs;
pub(crate) mod codegen;
pub(crate) mod completions;
#[cfg(feature = "network")]
mod confirmation;
pub(crate) mod conformance;
pub(crate) mod decode;
mod dialogue;
pub(crate) mod diff;
pub(crate) mod dissect;
pub(crate) mod doctor;
pub(crate) mod encode;
pub(crate) mod export;
pub(crate) mod extcap;
pub(crate) mod filter;
pub(crate) mod follow;
#[cfg(feature = "network")]
pub(crate) mod inspect;
pub(crate) mod ki;
mod lines;
pub(crate) mod live;
pub(crate) mod man;
pub(crate) mod memory;
#[cfg(feature = "network")]
pub(crate) mod mods;
pub(crate) mod mxo;
mod packets;
#[cfg(feature = "network")]
mod password;
#[cfg(feature = "network")]
pub(crate) mod proxy;
#[cfg(feature = "network")]
pub(crate) mod replay;
pub(crate) mod sanitize;
pub(crate) mod secrets;
mod selection;
#[cfg(feature = "network")]
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod stats;
#[cfg(feature = "network")]
pub(crate) mod system;
pub(crate) mod tera;
pub(crate) mod time;
#[cfg(feature = "network")]
pub(crate) mod uru;
pub(crate) mod work;
