//! `worldwire ki wad list` and `test`: what only looks at an archive.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_ki::file::wad::{Entry, FLAGS, Inflater, Table};

use super::names::judge;
use crate::cli::{Common, KiWadReading};
use crate::command::work;
use crate::input::{map, title};
use crate::output::{Failure, complain, print, say};

pub(super) fn list(path: &Path, patterns: &[String], json: bool) -> Result<(), Failure> {
    let bytes = map::open(path)?;
    let archive = super::parse(path, &bytes, &super::LIMITS)?;
    let chosen = super::chosen(&archive, patterns)?;
    let mut out = String::new();
    let (mut size, mut stored) = (0_u64, 0_u64);
    let (version, flags) = (archive.table().version, flags(archive.table()));
    if json {
        let line = json!({"version": version, "flags": flags, "files": chosen.len()});
        let _ = writeln!(out, "{line}");
    }
    for entry in &chosen {
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
            "{size:>12} {stored:>12} {:>6}  {} files, version {version}, flags {flags}",
            ratio(size, stored),
            chosen.len(),
        );
    }
    print(&out)
}

/// The flags by their names, and those without one as a number.
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
    path: &Path,
    patterns: &[String],
    json: bool,
    refuse_overlaps: bool,
    reading: &KiWadReading,
    common: &Common,
) -> Result<(), Failure> {
    let (bytes, limits) = (map::open(path)?, super::limits(reading));
    let archive = super::parse(path, &bytes, &limits)?;
    let chosen = super::chosen(&archive, patterns)?;
    if refuse_overlaps {
        super::refuse_overlaps(path, &archive)?;
    }
    super::check_total(path, &archive, chosen.iter().copied())?;
    let bar = super::progress(chosen.len(), common);
    let look = |inflater: &mut Inflater, entry: &&Entry<'_>| {
        let outcome = archive.read(entry, inflater);
        bar.inc(1);
        match outcome {
            Ok(Some(_)) => None,
            Ok(None) => {
                Some((entry.name_lossy().into_owned(), "unpatched", "not downloaded yet".into()))
            }
            Err(error) => Some((entry.name_lossy().into_owned(), "error", super::explained(error))),
        }
    };
    let size = |entry: &&Entry<'_>| u64::from(entry.size);
    let found = work::share(&work::pool(reading.threads)?, &chosen, size, Inflater::new, look);
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
    for (entry, judged) in chosen.iter().zip(judge(&chosen)) {
        if let Err(fault) = judged {
            tell(&entry.name_lossy(), fault.kind(), &fault.to_string());
        }
    }
    for (entry, text) in super::overlaps(&archive, &chosen) {
        tell(&entry.name_lossy(), "overlap", &text);
    }
    print(&out)?;
    if errors > 0 {
        let plural = if errors == 1 { "" } else { "s" };
        complain(&title(path), &format!("{errors} problem{plural}"));
        return Err(Failure::Input);
    }
    if !common.quiet {
        say(format_args!("{} files, no problems", chosen.len() - found.len()));
    }
    Ok(())
}
