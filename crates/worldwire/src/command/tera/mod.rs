//! `worldwire tera`.

mod check;
mod diff;
mod fmt;
pub(super) mod folder;
mod map;
mod rank;
mod show;

use crate::cli::{Common, Tera, TeraCommand, TeraDef, TeraMap};
use crate::output::Failure;

pub(crate) fn run(arguments: &Tera, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        TeraCommand::Def(TeraDef::Check { paths, reading, json, watch }) => {
            check::run(paths, reading.options(), *json, *watch, common)
        }
        TeraCommand::Def(TeraDef::Show { definition, data, reading, header, json }) => {
            show::run(definition, data, reading.options(), *header, *json)
        }
        TeraCommand::Def(TeraDef::Diff { old, new, data, reading, json }) => {
            diff::run([old, new], data, reading.options(), *json)
        }
        TeraCommand::Def(TeraDef::Fmt { paths, check }) => fmt::run(paths, *check),
        TeraCommand::Def(TeraDef::Rank(arguments)) => rank::run(arguments, common),
        TeraCommand::Map(TeraMap::Show { file, entries, revision, json }) => {
            map::show(file, entries, *revision, *json)
        }
        TeraCommand::Map(TeraMap::Convert { file, to, revision, target }) => {
            map::convert(file, *to, *revision, target)
        }
    }
}
