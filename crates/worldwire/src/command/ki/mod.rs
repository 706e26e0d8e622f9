//! `worldwire ki`.

mod client_args;
mod dml;
mod find;
pub(crate) mod op;
mod string_id;
mod table;
mod wad;

use crate::cli::{Common, Ki, KiCommand};
use crate::output::Failure;

pub(crate) fn run(arguments: &Ki, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        KiCommand::StringId(arguments) => string_id::run(arguments, common),
        KiCommand::ClientArgs(arguments) => client_args::run(arguments),
        KiCommand::Find(arguments) => find::run(arguments, common),
        KiCommand::Dml(arguments) => dml::run(arguments, common),
        KiCommand::Op(arguments) => op::run(arguments, common),
        KiCommand::Wad(arguments) => wad::run(arguments, common),
    }
}
