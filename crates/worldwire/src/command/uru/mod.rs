//! `worldwire uru`.

mod keys;
mod manifest;
mod sdl;

use crate::cli::{Common, Uru, UruCommand};
use crate::output::Failure;

pub(crate) fn run(arguments: &Uru, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        UruCommand::Keys(keys) => keys::run(keys),
        UruCommand::Manifest(manifest) => manifest::run(manifest, common),
        UruCommand::Sdl(sdl) => sdl::run(sdl, common),
    }
}
