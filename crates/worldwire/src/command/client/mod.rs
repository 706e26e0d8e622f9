//! `worldwire client`.

mod ki;
mod mxo;
mod uru;

use crate::cli::{Client, ClientCommand, Common};
use crate::output::Failure;

pub(crate) fn run(arguments: &Client, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ClientCommand::Ki(ki) => ki::run(ki, common.quiet),
        ClientCommand::Uru(uru) => uru::run(uru, common),
        ClientCommand::Mxo(mxo) => mxo::run(mxo, common),
    }
}
