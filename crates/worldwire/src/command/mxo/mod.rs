//! `worldwire mxo`.

#[cfg(feature = "network")]
mod account;
mod objects;
mod views;

use crate::cli::{Common, Mxo, MxoCommand, MxoObjectsCommand};
use crate::output::Failure;

pub(crate) fn run(arguments: &Mxo, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        #[cfg(feature = "network")]
        MxoCommand::Server(command) => account::run(command, common),
        MxoCommand::Objects(MxoObjectsCommand::Check { paths }) => objects::check(paths, common),
        MxoCommand::Objects(MxoObjectsCommand::Show { object, data, json }) => {
            objects::show(object, data, *json, common)
        }
        MxoCommand::Objects(MxoObjectsCommand::Convert { paths, built_in, target }) => {
            objects::convert(paths, *built_in, target, common)
        }
        MxoCommand::Views(arguments) => views::run(arguments, common),
    }
}
