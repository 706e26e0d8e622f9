//! The subcommands.

pub(crate) mod capture;
pub(crate) mod client;
pub(crate) mod codecs;
pub(crate) mod codegen;
pub(crate) mod completions;
pub(crate) mod decode;
pub(crate) mod dissect;
pub(crate) mod doctor;
pub(crate) mod encode;
pub(crate) mod export;
pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod ki;
pub(crate) mod live;
pub(crate) mod memory;
pub(crate) mod mxo;
mod packets;
mod password;
pub(crate) mod proxy;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod system;
pub(crate) mod tera;
pub(crate) mod time;
pub(crate) mod uru;
pub(crate) mod work;
