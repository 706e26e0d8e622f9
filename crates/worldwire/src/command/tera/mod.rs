//! `worldwire tera`.

mod carry;
mod check;
pub(super) mod diff;
mod find;
mod fmt;
pub(crate) mod folder;
mod growing;
mod integrity;
pub(super) mod map;
mod rank;
mod show;

use super::decode::side;
use crate::cli::{Common, Tera, TeraCommand, TeraDef, TeraMap};
use crate::output::Failure;

pub(crate) fn run(arguments: &Tera, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        TeraCommand::Def(TeraDef::Check { paths, reading, json, watch }) => {
            check::run(paths, reading.options(), *json, *watch, common)
        }
        TeraCommand::Def(TeraDef::Show { definition, data, reading, header, json }) => {
            show::run(definition, data, reading.options(), *header, *json, common)
        }
        TeraCommand::Def(TeraDef::List { data, reading, json }) => {
            find::run(data, reading.options(), &find::Wanted::default(), *json, common)
        }
        TeraCommand::Def(TeraDef::Find { data, field, length, from, reading, json }) => {
            let wanted = find::Wanted {
                field: field.as_ref().map(|field| field.to_lowercase()),
                length: length.map(usize::from),
                from: from.map(side),
            };
            find::run(data, reading.options(), &wanted, *json, common)
        }
        TeraCommand::Def(TeraDef::Diff { old, new, data, reading, json }) => {
            diff::run([old, new], data, reading.options(), *json, common).map(drop)
        }
        TeraCommand::Def(TeraDef::Fmt { paths, check }) => fmt::run(paths, *check, common),
        TeraCommand::Def(TeraDef::Rank(arguments)) => rank::run(arguments, common),
        TeraCommand::Map(TeraMap::Show { file, entries, revision, json }) => {
            map::show(file, entries, *revision, *json, common)
        }
        TeraCommand::Map(TeraMap::Diff { old, new, json }) => {
            map::diff(old, new, *json, common).map(drop)
        }
        TeraCommand::Map(TeraMap::Carry { old, old_map, new, data, patch, target }) => {
            let of = carry::Of { old, old_map, new, data, patch: *patch };
            carry::run(&of, target, common)
        }
        TeraCommand::Integrity { capture, build, target } => {
            integrity::run(capture, build, target, common)
        }
        TeraCommand::Map(TeraMap::Convert { file, to, revision, target }) => {
            map::convert(file, *to, *revision, target, common)
        }
    }
}
