//! `worldwire ki wad`.

mod cat;
mod changes;
mod contents;
mod create;
pub(in crate::command) mod diff;
mod extract;
mod names;
mod patterns;
mod show;
mod update;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::ptr;

use worldwire_core::json::Style;
use worldwire_core::{Error, ErrorKind, Limits};
use worldwire_ki::file::wad::{Archive, Entry, LATEST_VERSION};
use worldwire_ki::schema::classes::Classes;

use self::names::brief;
pub(super) use self::names::taken;
use self::patterns::Patterns;
use super::inside::is_archive_file;
use super::lang;
use super::op::inputs::{is_pattern, matching};
use super::op::show::Show;
use super::op::stream::Choices;
use crate::cli::{Common, KiObjectForm, KiStream, KiWad, KiWadDecoding, KiWadNamed, KiWadReading};
use crate::input::map::{self, Bytes};
use crate::input::title;
use crate::output::{Failure, complain};
use crate::types;

pub(crate) fn run(command: &KiWad, common: &Common) -> Result<(), Failure> {
    match command {
        KiWad::List { named, json } => {
            let opened = Opened::open(named)?;
            let archives = opened.archives(&LIMITS, common)?;
            show::list(&archives, &chosen(&archives, &opened.patterns)?, *json)
        }
        KiWad::Test { named, json, refuse_overlaps, reading } => {
            let (opened, limits) = (Opened::open(named)?, limits(reading));
            let archives = opened.archives(&limits, common)?;
            let chosen = chosen(&archives, &opened.patterns)?;
            show::test(&archives, &chosen, *json, *refuse_overlaps, reading, common)
        }
        KiWad::Extract(arguments) => {
            // A user who means standard output would end up with a directory named `-`.
            if arguments.folder == Path::new("-") {
                let help = "to write to standard output, use `ki wad cat`; for a directory named -, write ./-";
                return Err(Failure::Run(format!("-C: - is not a directory; {help}")));
            }
            let (opened, limits) = (Opened::open(&arguments.named)?, limits(&arguments.reading));
            let archives = opened.archives(&limits, common)?;
            let chosen = chosen(&archives, &opened.patterns)?;
            with_show(&arguments.decoding, true, common, |show| {
                let how = extract::How {
                    folder: &arguments.folder,
                    force: arguments.force,
                    skip_existing: arguments.skip_existing,
                    allow_overlaps: arguments.allow_overlaps,
                    portable: arguments.portable,
                    show,
                };
                extract::run(&archives, &chosen, &how, &arguments.reading, common)
            })
        }
        KiWad::Cat { archive, names, decoding, target } => {
            let bytes = map::open(archive)?;
            let parsed = parse_any(archive, &bytes, &LIMITS, common)?;
            with_show(decoding, false, common, |show| {
                cat::run(archive, &parsed, names, show, target)
            })
        }
        KiWad::Create { folder, types, hints, archive_version, flags, packing, target } => {
            let from = changes::NewFiles { folder, types, hints };
            create::create(&from, *archive_version, *flags, packing, target, common)
        }
        KiWad::Update {
            archive,
            from,
            types,
            hints,
            remove,
            allow_overlaps,
            allow_damaged,
            packing,
            target,
        } => {
            let from = from.as_deref().map(|folder| changes::NewFiles { folder, types, hints });
            let (allow_overlaps, allow_damaged) = (*allow_overlaps, *allow_damaged);
            let how = update::How { remove, allow_overlaps, allow_damaged, packing, target };
            update::run(archive, from.as_ref(), &how, common)
        }
        KiWad::Diff { before, after, json, reading } => {
            let form = diff::Form { json: *json, colour: common.colour(None), objects: None };
            diff::run(before, after, &form, reading, common)
        }
    }
}

/// Open archives, and patterns for the names of their files.
struct Opened {
    archives: Vec<(PathBuf, Bytes)>,
    patterns: Vec<String>,
}

impl Opened {
    /// After the first archive, arguments that are archives are opened, too; all others are
    /// patterns.
    fn open(named: &KiWadNamed) -> Result<Self, Failure> {
        // Not every shell expands patterns.
        let mut paths = match is_pattern(&named.archive) {
            true => matching(&named.archive)?,
            false => vec![named.archive.clone()],
        };
        let mut patterns = Vec::new();
        for text in &named.more {
            match is_archive_file(Path::new(text)) {
                true => paths.push(PathBuf::from(text)),
                false => patterns.push(text.clone()),
            }
        }
        let open = |path: PathBuf| map::open(&path).map(|bytes| (path, bytes));
        let archives = paths.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { archives, patterns })
    }

    fn archives<'a>(
        &'a self,
        limits: &'a Limits,
        common: &Common,
    ) -> Result<Vec<Wad<'a>>, Failure> {
        let archives = self.archives.iter().map(|(path, bytes)| {
            parse_any(path, bytes, limits, common).map(|archive| Wad { path, archive })
        });
        archives.collect()
    }
}

/// An archive and its path.
struct Wad<'a> {
    path: &'a Path,
    archive: Archive<'a>,
}

/// Passes an object decoder to `act`, if decoding was requested. With `seals`, the source of each
/// object is recorded.
fn with_show<R>(
    decoding: &KiWadDecoding,
    seals: bool,
    common: &Common,
    act: impl FnOnce(Option<&Show<'_>>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let Some(form) = decoding.decode else {
        if decoding.stream != KiStream::default() {
            let wanted = "options for object streams need --decode";
            return Err(Failure::Run(wanted.to_owned()));
        }
        return act(None);
    };
    if !decoding.lang.is_empty() && form != KiObjectForm::Text {
        let message = "--lang needs --decode text; for JSON, use ki lang explain";
        return Err(Failure::Run(message.to_owned()));
    }
    let locale = lang::load(&decoding.lang, common)?;
    let choices = Choices::new(&decoding.stream)?;
    let classes = types::load(&decoding.types, common)?;
    choices.check(&classes, common);
    act(Some(&Show {
        classes: &classes,
        choices: &choices,
        form,
        ranges: decoding.bytes,
        colour: false,
        quiet: common.quiet,
        limits: Limits { values_per_byte: decoding.values_per_byte, ..LIMITS },
        style: Style { safe: decoding.json_safe },
        seals,
        locale: &locale,
    }))
}

/// Classes of type lists, if any were given.
fn classes(lists: &[PathBuf], common: &Common) -> Result<Option<std::sync::Arc<Classes>>, Failure> {
    if lists.is_empty() { Ok(None) } else { types::load(lists, common).map(Some) }
}

/// The limits for reading tables.
static LIMITS: Limits = Limits::DEFAULT;

/// The limits for reading files.
fn limits(reading: &KiWadReading) -> Limits {
    Limits { inflated_bytes: reading.max_inflated, archive_bytes: reading.max_total, ..LIMITS }
}

pub(super) fn parse<'d>(
    path: &Path,
    bytes: &'d [u8],
    limits: &'d Limits,
) -> Result<Archive<'d>, Failure> {
    Archive::parse(bytes, limits).map_err(|error| bad(path, &error))
}

/// Parses an archive. An unknown version is read like the latest known one, with a warning.
fn parse_any<'d>(
    path: &Path,
    bytes: &'d [u8],
    limits: &'d Limits,
    common: &Common,
) -> Result<Archive<'d>, Failure> {
    let archive = parse(path, bytes, limits)?;
    let version = archive.table().version;
    if version > LATEST_VERSION {
        let warning = format!(
            "warning: archive version {version} is unknown and is read like version \
             {LATEST_VERSION}; the known versions are 1 and 2. Verify the files with `ki wad test`"
        );
        common.note(&title(path), &warning);
    }
    Ok(archive)
}

fn bad(path: &Path, error: &Error) -> Failure {
    complain(&title(path), &error.to_string());
    Failure::Input
}

/// Describes the problem with an entry, and what may help.
pub(super) fn explained(error: Error) -> String {
    match error.kind() {
        ErrorKind::Limit { name: "inflated bytes", .. } => {
            error.hint("--max-inflated allows more").to_string()
        }
        ErrorKind::Limit { name: "archive bytes", .. } => {
            error.hint("--max-total allows more").to_string()
        }
        _ => error.to_string(),
    }
}

/// The requested entries of each archive; all of them if there is no pattern.
fn chosen<'a, 'd>(
    archives: &'a [Wad<'d>],
    patterns: &[String],
) -> Result<Vec<Vec<&'a Entry<'d>>>, Failure> {
    if patterns.is_empty() {
        return Ok(archives.iter().map(|wad| wad.archive.entries().iter().collect()).collect());
    }
    let of_wad = |(index, wad): (usize, &'a Wad<'d>)| {
        wad.archive.entries().iter().map(move |entry| (index, entry))
    };
    let entries = archives.iter().enumerate().flat_map(of_wad);
    let whole = if archives.len() == 1 { "in the archive" } else { "in the archives" };
    let mut chosen = vec![Vec::new(); archives.len()];
    let names = entries.clone().map(|(_, entry)| entry.name_lossy());
    let patterns = Patterns::new(patterns, names)?;
    for (index, entry) in patterns.choose(entries, |(_, entry)| entry.name_lossy(), whole)? {
        if let Some(chosen) = chosen.get_mut(index) {
            chosen.push(entry);
        }
    }
    Ok(chosen)
}

/// Refuses files whose total size is too large, before any of them is read.
pub(super) fn check_total<'e, 'd: 'e>(
    path: &Path,
    archive: &'e Archive<'d>,
    entries: impl IntoIterator<Item = &'e Entry<'d>>,
) -> Result<(), Failure> {
    archive.check_total(entries).map_err(|error| {
        complain(&title(path), &explained(error));
        Failure::Input
    })
}

/// The messages about overlaps of the selected entries, by entry.
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
        let text = || format!("the data of {} begins inside the data of this one", brief(&after));
        is_chosen(&before).then(|| (before, text()))
    });
    told.collect()
}

/// Refuses an archive with overlaps, and names the alternatives.
fn refuse_overlaps(path: &Path, archive: &Archive<'_>, hint: &str) -> Result<(), Failure> {
    let overlaps = archive.overlaps();
    let Some((_, first)) = overlaps.first() else { return Ok(()) };
    let name = archive.entries().get(*first).map(Entry::name_lossy).unwrap_or_default();
    let others = match overlaps.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let what = "inside the data of other files";
    complain(&title(path), &format!("refused: the data of {name}{others} begins {what}{hint}"));
    Err(Failure::Input)
}
