//! `worldwire ki wad`.

mod contents;
mod create;
mod diff;
mod extract;
mod names;
mod patterns;
mod show;

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use worldwire_core::{Error, ErrorKind, Limits};
use worldwire_ki::file::wad::{Archive, Entry};

use self::names::brief;
use self::patterns::Patterns;
use super::op::show::Show;
use super::op::stream::Choices;
use crate::cli::{Common, KiStream, KiWad, KiWadReading};
use crate::input::title;
use crate::output::{Failure, complain};

pub(crate) fn run(command: &KiWad, common: &Common) -> Result<(), Failure> {
    match command {
        KiWad::List { archive, globs, json } => show::list(archive, globs, *json),
        KiWad::Test { archive, globs, json, refuse_overlaps, reading } => {
            show::test(archive, globs, *json, *refuse_overlaps, reading, common)
        }
        KiWad::Extract {
            archive,
            globs,
            folder,
            force,
            decode,
            types,
            values_per_byte,
            refuse_overlaps,
            reading,
        } => {
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
                limits: Limits { values_per_byte: *values_per_byte, ..LIMITS },
            });
            let how = extract::How {
                folder,
                force: *force,
                refuse_overlaps: *refuse_overlaps,
                show: show.as_ref(),
            };
            extract::run(archive, globs, &how, reading, common)
        }
        KiWad::Create { folder, archive_version, flags, packing, target } => {
            create::create(folder, *archive_version, *flags, packing, target, common)
        }
        KiWad::Update { archive, from, remove, packing, target } => {
            create::update(archive, from.as_deref(), remove, packing, target, common)
        }
        KiWad::Diff { before, after, json, reading } => {
            diff::run(before, after, *json, reading, common)
        }
    }
}

/// The bounds of reading tables.
static LIMITS: Limits = Limits::DEFAULT;

/// The bounds of reading files.
fn limits(reading: &KiWadReading) -> Limits {
    Limits { inflated_bytes: reading.most_inflated, archive_bytes: reading.most_total, ..LIMITS }
}

fn parse<'d>(path: &Path, bytes: &'d [u8], limits: &'d Limits) -> Result<Archive<'d>, Failure> {
    Archive::parse(bytes, limits).map_err(|error| bad(path, &error))
}

fn bad(path: &Path, error: &Error) -> Failure {
    complain(&title(path), &error.to_string());
    Failure::Input
}

/// What is wrong with an entry, and what may help.
fn explained(error: Error) -> String {
    match error.kind() {
        ErrorKind::Limit { name: "inflated bytes", .. } => {
            error.hint("--most-inflated allows more").to_string()
        }
        ErrorKind::Limit { name: "archive bytes", .. } => {
            error.hint("--most-total allows more").to_string()
        }
        _ => error.to_string(),
    }
}

/// The entries that were asked for, all when there is no pattern.
fn chosen<'a, 'd>(
    archive: &'a Archive<'d>,
    patterns: &[String],
) -> Result<Vec<&'a Entry<'d>>, Failure> {
    let entries = archive.entries().iter();
    if patterns.is_empty() {
        return Ok(entries.collect());
    }
    Patterns::new(patterns)?.choose(entries, |entry| entry.name_lossy(), "of the archive")
}

/// Refuses files that are too much together, before any of them is read.
fn check_total<'e, 'd: 'e>(
    path: &Path,
    archive: &'e Archive<'d>,
    entries: impl IntoIterator<Item = &'e Entry<'d>>,
) -> Result<(), Failure> {
    archive.check_total(entries).map_err(|error| {
        complain(&title(path), &explained(error));
        Failure::Input
    })
}

/// What is to be said of overlaps about the chosen entries, by entry.
fn overlaps<'a, 'd>(
    archive: &'a Archive<'d>,
    chosen: &[&'a Entry<'d>],
) -> Vec<(&'a Entry<'d>, String)> {
    let chosen: HashSet<*const Entry<'d>> =
        chosen.iter().map(|entry| ptr::from_ref(*entry)).collect();
    let is_chosen = |entry: &&Entry<'d>| chosen.contains(&ptr::from_ref(*entry));
    let entry = |index: usize| archive.entries().get(index);
    let told = archive.overlaps().into_iter().filter_map(|(before, after)| {
        let (before, after) = (entry(before)?, entry(after)?);
        if is_chosen(&after) {
            let before = before.name_lossy();
            return Some((after, format!("begins inside the data of {}", brief(&before))));
        }
        let after = after.name_lossy();
        let text = || format!("the data of {} begins inside its own", brief(&after));
        is_chosen(&before).then(|| (before, text()))
    });
    told.collect()
}

/// Refuses an archive with overlaps.
fn refuse_overlaps(path: &Path, archive: &Archive<'_>) -> Result<(), Failure> {
    let overlaps = archive.overlaps();
    let Some((_, first)) = overlaps.first() else { return Ok(()) };
    let name = archive.entries().get(*first).map(Entry::name_lossy).unwrap_or_default();
    let others = match overlaps.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let what = "inside the data of others";
    complain(&title(path), &format!("refused: the data of {name}{others} begins {what}"));
    Err(Failure::Input)
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
