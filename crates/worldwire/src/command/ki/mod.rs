//! `worldwire ki`.

mod bcd;
mod client_args;
mod dml;
mod files;
mod found;
mod lang;
mod nav;
mod op;
mod poi;
mod string_id;
mod table;
mod type_lists;
mod wad;

use std::path::PathBuf;

use worldwire_core::Error;

use self::found::{Kind, each};
use crate::cli::{Common, Ki, KiCommand};
use crate::output::{Failure, complain};

pub(crate) fn run(arguments: &Ki, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        KiCommand::StringId(arguments) => string_id::run(arguments, common),
        KiCommand::ClientArgs(arguments) => client_args::run(arguments),
        KiCommand::Bcd(arguments) => bcd::run(arguments, common),
        KiCommand::Dml(arguments) => dml::run(arguments, common),
        KiCommand::Files(arguments) => files::run(arguments, common),
        KiCommand::Lang(arguments) => lang::run(arguments, common),
        KiCommand::Nav(arguments) => nav::run(arguments, common),
        KiCommand::Op(arguments) => op::run(arguments, common),
        KiCommand::Poi(arguments) => poi::run(arguments, common),
        KiCommand::Wad(arguments) => wad::run(arguments, common),
    }
}

/// The most oddities of one file that are shown one by one.
const MOST_SAID: usize = 100;

/// Reports what is odd about each file of a format: what `say` says of its bytes and its name.
fn check(
    paths: &[PathBuf],
    kind: &Kind,
    common: &Common,
    mut say: impl FnMut(&[u8], &str) -> Result<Vec<String>, Error>,
) -> Result<(), Failure> {
    let (mut files, mut odd) = (0_usize, 0_usize);
    let outcome = each(paths, kind, common, |found| {
        files += 1;
        match say(found.bytes, &found.name) {
            Ok(said) => {
                odd += usize::from(!said.is_empty());
                said.iter().take(MOST_SAID).for_each(|said| complain(&found.title, said));
                let more = said.len().saturating_sub(MOST_SAID);
                if more > 0 {
                    complain(&found.title, &format!("{more} more like these"));
                }
            }
            Err(error) => {
                odd += 1;
                complain(&found.title, &error.to_string());
            }
        }
        Ok(())
    });
    if !common.quiet {
        let s = if files == 1 { "" } else { "s" };
        crate::output::say(format_args!("{files} {}{s}, {odd} with problems", kind.what));
    }
    outcome?;
    if odd > 0 { Err(Failure::Input) } else { Ok(()) }
}

/// A file that was read, once what is odd about it is told.
fn opened<F>(title: &str, outcome: Result<(F, Vec<String>), Error>) -> Result<F, Failure> {
    match outcome {
        Ok((file, said)) => {
            said.iter().for_each(|said| complain(title, &format!("warning: {said}")));
            Ok(file)
        }
        Err(error) => {
            complain(title, &error.to_string());
            Err(Failure::Input)
        }
    }
}
