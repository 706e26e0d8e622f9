//! `worldwire ki wad list` and `test`, which only inspect an archive.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::json;
use worldwire_ki::file::wad::{Entry, FLAGS, Table};

use super::Wad;
use super::names::{PathCheck, judge};
use crate::cli::{Common, KiWadReading};
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::input::title;
use crate::output::{Failure, complain, counted, print, say, spent};

pub(super) fn list(
    archives: &[Wad<'_>],
    chosen: &[Vec<&Entry<'_>>],
    json: bool,
) -> Result<(), Failure> {
    let is_one = archives.len() == 1;
    archives.iter().zip(chosen).try_for_each(|(wad, chosen)| {
        let title = (!is_one).then(|| title(wad.path));
        print(&listed(wad.archive.table(), chosen, title.as_deref(), json))
    })
}

/// Lists the files of one archive, under its title if there are several.
fn listed(table: &Table<'_>, chosen: &[&Entry<'_>], title: Option<&str>, json: bool) -> String {
    let mut out = String::new();
    let (mut size, mut stored) = (0_u64, 0_u64);
    let (version, flags) = (table.version, flags(table));
    if json {
        let mut line = json!({"version": version, "flags": flags, "files": chosen.len()});
        if let (Some(title), Some(line)) = (title, line.as_object_mut()) {
            line.insert("archive".to_owned(), title.into());
        }
        let _ = writeln!(out, "{line}");
    } else if let Some(title) = title {
        let _ = writeln!(out, "{title}:");
    }
    for entry in chosen {
        size += u64::from(entry.size);
        stored += u64::from(entry.stored_size());
        let name = entry.name_lossy();
        if json {
            let line = json!({
                "name": name, "size": entry.size, "stored_size": entry.stored_size(),
                "compressed": entry.is_compressed(), "crc": entry.crc, "offset": entry.offset,
            });
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(
                out,
                "{:>12} {:>12} {:>6}  {:08x}  {}",
                entry.size,
                entry.stored_size(),
                ratio(u64::from(entry.size), u64::from(entry.stored_size())),
                entry.crc,
                name.escape_debug()
            );
        }
    }
    if !json {
        let flags = if flags.is_empty() { "none".to_owned() } else { flags.join(" ") };
        let _ = writeln!(
            out,
            "{size:>12} {stored:>12} {:>6}  {}, version {version}, flags {flags}",
            ratio(size, stored),
            counted(chosen.len(), "file"),
        );
    }
    out
}

/// The flags by name, and unnamed flags as a number.
fn flags(table: &Table<'_>) -> Vec<String> {
    let (names, rest) = FLAGS.flags(u64::from(table.flags));
    let rest = Some(rest).filter(|rest| *rest != 0).map(|rest| format!("0x{rest:x}"));
    names.into_iter().map(str::to_owned).chain(rest).collect()
}

fn ratio(size: u64, stored: u64) -> String {
    match (stored.saturating_mul(1000) + size / 2).checked_div(size) {
        None => "-".to_owned(),
        Some(tenths) => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

pub(super) fn test(
    archives: &[Wad<'_>],
    chosen: &[Vec<&Entry<'_>>],
    json: bool,
    refuse_overlaps: bool,
    reading: &KiWadReading,
    common: &Common,
) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for (wad, chosen) in archives.iter().zip(chosen) {
        match test_one(wad, chosen, json, refuse_overlaps, reading, common) {
            Err(Failure::Input) => outcome = Err(Failure::Input),
            other => other?,
        }
    }
    outcome
}

fn test_one(
    Wad { path, archive }: &Wad<'_>,
    chosen: &[&Entry<'_>],
    json: bool,
    refuse_overlaps: bool,
    reading: &KiWadReading,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    if refuse_overlaps {
        super::refuse_overlaps(path, archive, "")?;
    }
    super::check_total(path, archive, chosen.iter().copied())?;
    let bar = work::progress(chosen.len(), common);
    let memory = Memory::new();
    let look = |loader: &mut Loader<'_>, entry: &&Entry<'_>| {
        let outcome = loader.read(archive, entry).map(|file| file.is_some());
        bar.inc(1);
        match outcome {
            Ok(true) => None,
            Ok(false) => {
                Some((entry.name_lossy().into_owned(), "unpatched", "not downloaded yet".into()))
            }
            Err(error) => Some((entry.name_lossy().into_owned(), "error", super::explained(error))),
        }
    };
    let size = |entry: &&Entry<'_>| u64::from(entry.size);
    let need = || Loader::new(&memory, 1);
    let found = work::share(&work::pool(reading.threads)?, chosen, size, need, look);
    let found: Vec<_> = found.into_iter().flatten().collect();
    bar.finish_and_clear();
    let mut out = String::new();
    let mut errors = 0;
    let mut tell = |name: &str, kind: &str, text: &str| {
        errors += usize::from(kind != "unpatched");
        let _ = if json {
            writeln!(out, "{}", json!({"name": name, "problem": kind, "text": text}))
        } else if kind == "error" {
            writeln!(out, "{}", text.escape_debug())
        } else {
            writeln!(out, "{}: {kind}: {}", name.escape_debug(), text.escape_debug())
        };
    };
    found.iter().for_each(|(name, kind, text)| tell(name, kind, text));
    for (entry, judged) in chosen.iter().zip(judge(chosen, PathCheck::new(true).rules())) {
        if let Err(fault) = judged {
            tell(&entry.name_lossy(), fault.kind(), &fault.to_string());
        }
    }
    for (entry, text) in super::overlaps(archive, chosen) {
        tell(&entry.name_lossy(), "overlap", &text);
    }
    print(&out)?;
    if errors > 0 {
        complain(&title(path), &counted(errors, "problem"));
        return Err(Failure::Input);
    }
    if !common.quiet {
        let files = counted(chosen.len() - found.len(), "file");
        let bytes: u64 = chosen.iter().map(|entry| u64::from(entry.size)).sum();
        let (size, time) = (counted(bytes, "byte"), spent(start));
        say(format_args!("{files}, no problems; {size} in {time}"));
    }
    Ok(())
}
