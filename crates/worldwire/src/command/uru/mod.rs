//! `worldwire uru`.

pub(crate) mod account;
mod keys;
mod manifest;
mod player;
mod sdl;
mod states;
mod vault;

use crate::cli::{Common, Uru, UruCommand};
use crate::output::Failure;
pub(crate) use sdl::update as sdl_update;
pub(crate) use vault::{drawn, fields_of};

pub(crate) fn run(arguments: &Uru, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        UruCommand::Account { command, shard } => account::run(command, shard, common),
        UruCommand::ClearStates { age, with_age, shard } => {
            states::clear(age, *with_age, shard, common)
        }
        UruCommand::Keys(keys) => keys::run(keys),
        UruCommand::Kick { who, shard } => account::kick(who, shard, common),
        UruCommand::Manifest(manifest) => manifest::run(manifest, common),
        UruCommand::Player(player) => player::run(player, common),
        UruCommand::Sdl(sdl) => sdl::run(sdl, common),
        UruCommand::Vault(vault) => vault::run(vault, common),
    }
}
