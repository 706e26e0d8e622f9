//! `worldwire ki wad`.

mod create;
mod extract;
mod show;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use indicatif::{ProgressBar, ProgressDrawTarget};
use worldwire_core::{Error, Limits};
use worldwire_ki::file::wad::{Archive, Entry};

use super::op::show::Show;
use super::op::stream::Choices;
use crate::cli::{Common, KiStream, KiWad};
use crate::output::{Failure, complain};

pub(crate) fn run(command: &KiWad, common: &Common) -> Result<(), Failure> {
    match command {
        KiWad::List { archive, globs, json } => show::list(archive, globs, *json),
        KiWad::Test { archive, globs, json, threads } => {
            show::test(archive, globs, *json, *threads, common)
        }
        KiWad::Extract { archive, globs, folder, force, decode, types, threads } => {
            let stream = KiStream::default();
            let choices = Choices::new(&stream)?;
            let classes = match decode {
                Some(_) => Some(crate::types::load(types, common)?),
                None => None,
            };
            let show = decode.zip(classes.as_deref()).map(|(form, classes)| Show {
                classes,
                choices: &choices,
                form,
                ranges: false,
                colour: false,
                quiet: common.quiet,
            });
            extract::run(archive, globs, folder, *force, *threads, show.as_ref(), common)
        }
        KiWad::Create { folder, archive_version, flags, packing, target } => {
            create::create(folder, *archive_version, *flags, packing, target, common)
        }
        KiWad::Update { archive, from, remove, packing, target } => {
            create::update(archive, from.as_deref(), remove, packing, target, common)
        }
        KiWad::Diff { before, after, json } => show::diff(before, after, *json),
    }
}

/// The bounds of everything here, which outlive all archives.
static LIMITS: Limits = Limits::DEFAULT;

fn parse<'d>(path: &Path, bytes: &'d [u8]) -> Result<Archive<'d>, Failure> {
    Archive::parse(bytes, &LIMITS).map_err(|error| bad(path, &error))
}

fn bad(path: &Path, error: &Error) -> Failure {
    complain(&path.display().to_string(), &error.to_string());
    Failure::Input
}

/// Patterns over the names of entries. Of the crates for that, this one compiles all patterns to
/// one automaton, so that a hundred patterns over a hundred thousand names stay quick.
fn globs(patterns: &[String]) -> Result<GlobSet, Failure> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).build();
        set.add(glob.map_err(|error| Failure::Run(error.to_string()))?);
    }
    set.build().map_err(|error| Failure::Run(error.to_string()))
}

/// The entries that were asked for, all when there is no pattern.
fn chosen<'a, 'd>(
    archive: &'a Archive<'d>,
    patterns: &[String],
) -> Result<Vec<&'a Entry<'d>>, Failure> {
    let set = globs(patterns)?;
    let entries = archive.entries().iter();
    let found: Vec<_> =
        entries.filter(|e| patterns.is_empty() || set.is_match(&*e.name_lossy())).collect();
    if found.is_empty() && !patterns.is_empty() {
        complain(&patterns.join(" "), "matches no file of the archive");
        return Err(Failure::Input);
    }
    Ok(found)
}

/// A bar for people who wait: only on a terminal, and only after a second.
fn progress(count: usize, common: &Common) -> ProgressBar {
    let bar = ProgressBar::hidden();
    if common.quiet || !std::io::stderr().is_terminal() {
        return bar;
    }
    bar.set_length(count as u64);
    let late = bar.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        if !late.is_finished() {
            late.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar
}
