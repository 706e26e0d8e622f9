//! `worldwire mxo`.

mod account;
mod objects;
mod views;

use crate::cli::{Common, Mxo, MxoCommand, MxoObjectsCommand};
use crate::output::Failure;

pub(crate) fn run(arguments: &Mxo, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        MxoCommand::Account(command) => account::run(command, common),
        MxoCommand::Character(command) => account::characters(command, common),
        MxoCommand::Sky { sky, server } => account::sky(sky, server, common),
        MxoCommand::Keys(command) => account::keys(command),
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
