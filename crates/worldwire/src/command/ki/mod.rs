//! `worldwire ki`.

#[cfg(feature = "network")]
mod account;
mod bcd;
mod client_args;
pub(super) mod dml;
mod files;
mod find;
mod found;
pub(crate) mod inside;
mod lang;
pub(crate) mod loader;
mod nav;
pub(crate) mod op;
mod poi;
mod string_id;
mod table;
pub(super) mod type_lists;
pub(super) mod wad;

use std::path::PathBuf;

use worldwire_core::Error;

use self::found::{Found, Kind, each};
use crate::cli::{Common, Ki, KiCommand};
use crate::output::{Failure, complain, counted, say};

pub(crate) fn run(arguments: &Ki, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        #[cfg(feature = "network")]
        KiCommand::Server(command) => account::run(command, common),
        KiCommand::StringId(arguments) => string_id::run(arguments, common),
        KiCommand::ClientArgs(arguments) => client_args::run(arguments),
        KiCommand::Bcd(arguments) => bcd::run(arguments, common),
        KiCommand::Find(arguments) => find::run(arguments, common),
        KiCommand::Dml(arguments) => dml::run(arguments, common),
        KiCommand::Files(arguments) => files::run(arguments, common),
        KiCommand::Lang(arguments) => lang::run(arguments, common),
        KiCommand::Nav(arguments) => nav::run(arguments, common),
        KiCommand::Op(arguments) => op::run(arguments, common),
        KiCommand::Poi(arguments) => poi::run(arguments, common),
        KiCommand::Wad(arguments) => wad::run(arguments, common),
    }
}

/// The maximum number of irregularities per file that are listed individually.
const MAX_SAID: usize = 100;

/// Reports the first remarks individually and only counts the others. Returns the total number.
fn complain_first(subject: &str, max: usize, mut remarks: impl Iterator<Item = String>) -> usize {
    let first = remarks.by_ref().take(max).map(|remark| complain(subject, &remark)).count();
    let more = remarks.count();
    if more > 0 {
        complain(subject, &format!("{more} more like these"));
    }
    first + more
}

/// A remark about something that does not make the command fail.
fn warning(text: impl std::fmt::Display) -> String {
    format!("warning: {text}")
}

/// Reports the irregularities in each file of a format.
fn check(
    paths: &[PathBuf],
    kind: &Kind,
    common: &Common,
    say: impl FnMut(&Found<'_>) -> Result<Vec<String>, Error>,
) -> Result<(), Failure> {
    let mut counts = Counts::default();
    let outcome = counts.check(paths, kind, common, say);
    counts.conclude(kind, common, outcome)
}

/// The number of files checked and the number of those with problems.
#[derive(Debug, Default)]
struct Counts {
    files: usize,
    odd: usize,
}

impl Counts {
    fn check(
        &mut self,
        paths: &[PathBuf],
        kind: &Kind,
        common: &Common,
        mut say: impl FnMut(&Found<'_>) -> Result<Vec<String>, Error>,
    ) -> Result<(), Failure> {
        each(paths, kind, common, |found| {
            self.files += 1;
            let said = say(&found).unwrap_or_else(|error| vec![kind.fault(&found.name, &error)]);
            let count = complain_first(&found.title, MAX_SAID, said.into_iter());
            self.odd += usize::from(count > 0);
            Ok(())
        })
    }

    fn conclude(
        &self,
        kind: &Kind,
        common: &Common,
        outcome: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { files, odd } = self;
        if !common.quiet && *files > 0 {
            say(format_args!("{}, {odd} with problems", counted(*files, kind.what)));
        }
        outcome?;
        if *odd > 0 { Err(Failure::Input) } else { Ok(()) }
    }
}

/// Returns a file after reporting its irregularities.
fn opened<F>(
    kind: &Kind,
    found: &Found<'_>,
    outcome: Result<(F, Vec<String>), Error>,
) -> Result<F, Failure> {
    match outcome {
        Ok((file, said)) => {
            said.iter().for_each(|said| complain(&found.title, &format!("warning: {said}")));
            Ok(file)
        }
        Err(error) => {
            complain(&found.title, &kind.fault(&found.name, &error));
            Err(Failure::Input)
        }
    }
}
