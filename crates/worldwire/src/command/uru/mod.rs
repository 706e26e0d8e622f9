//! `worldwire uru`.

pub(crate) mod account;
mod age;
mod cluster;
mod fields;
mod files;
mod keys;
mod manifest;
mod online;
mod player;
mod sdl;
mod states;
mod vault;

use crate::cli::{Common, Uru, UruCommand};
use crate::output::Failure;
pub(crate) use fields::fields_of;
pub(crate) use sdl::update as sdl_update;
pub(crate) use vault::drawn;

pub(crate) fn run(arguments: &Uru, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        UruCommand::Account { command, shard } => account::run(command, shard, common),
        UruCommand::Age { command, shard } => age::run(command, shard, common),
        UruCommand::Close { kick, shard } => online::restrict(true, *kick, shard, common),
        UruCommand::Message { text, age, from, shard } => {
            online::message(text, age.as_deref(), from, shard, common)
        }
        UruCommand::Open { shard } => online::restrict(false, false, shard, common),
        UruCommand::Welcome { text, shard } => online::welcome(text.as_deref(), shard, common),
        UruCommand::Games { shard } => online::games(shard),
        UruCommand::Who { shard } => online::who(shard, common),
        UruCommand::ClearStates { age, with_age, shard } => {
            states::clear(age, *with_age, shard, common)
        }
        UruCommand::Cluster(command) => cluster::run(command, common),
        UruCommand::Files(files) => files::run(files, common),
        UruCommand::Keys(keys) => keys::run(keys),
        UruCommand::Kick { who, shard } => account::kick(who, shard, common),
        UruCommand::Manifest(manifest) => manifest::run(manifest, common),
        UruCommand::Player(player) => player::run(player, common),
        UruCommand::Sdl(sdl) => sdl::run(sdl, common),
        UruCommand::Vault(vault) => vault::run(vault, common),
    }
}
