//! `worldwire serve`.

mod mxo;
mod uru;

use crate::cli::{Common, Serve, ServeCommand};
use crate::output::Failure;
pub(crate) use mxo::key_of;

pub(crate) fn run(arguments: &Serve, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ServeCommand::Uru(uru) => uru::run(uru, common),
        ServeCommand::Mxo(mxo) => mxo::run(mxo, common),
    }
}
