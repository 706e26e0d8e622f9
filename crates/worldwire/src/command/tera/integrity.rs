//! `worldwire tera integrity`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use worldwire_core::listed;
use worldwire_dissect::{Item, Scratch, TeraDefinitions};
use worldwire_tera::diagnosis::Diagnosis;
use worldwire_tera::packet::Packets;

use super::carry::{Said, capture};
use crate::cli::{Common, Target, TeraBuild};
use crate::definitions::{self, options, shell};
use crate::output::{Failure, complain, counted, shown, write_all};

pub(super) fn run(
    file: &Path,
    build: &TeraBuild,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let data = build.data();
    let definitions = definitions::load(&data, common)?;
    let known = definitions.part::<TeraDefinitions>();
    let given = options(&data);
    let mut builds: BTreeMap<Option<u32>, Diagnosis> = BTreeMap::new();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(Arc<Packets>, Said)>| {
        if let Some(packets) = item.knowledge::<Arc<Packets>>() {
            out.extend(Said::of(item).map(|said| (Arc::clone(packets), said)));
        }
    };
    let clean = capture(file, common, definitions, show, |said: &Vec<_>| {
        for (packets, Said { stream, from, bytes }) in said {
            let build = builds.entry(packets.known().revision);
            build
                .or_insert_with(|| Diagnosis::new(Arc::clone(packets)))
                .push(*stream, *from, bytes);
        }
        Ok(())
    })?;
    for (revision, build) in &builds {
        let library = known.library();
        if build.packets().patch().is_none() && !library.integrity.is_empty() {
            let of =
                revision.map_or("the client".to_owned(), |number| format!("revision {number}"));
            let patches = listed(library.integrity.keys());
            let text = format!(
                "the patch of {of} is unknown, so the lists of patch {patches} are not used; supply \
                 --patch, or a revisions.json that lists it"
            );
            common.note(&shown(file), &text);
        }
    }
    let lists: Vec<_> = builds.values().map(Diagnosis::integrity).collect();
    let names: BTreeSet<&str> = lists.iter().flat_map(|list| list.iter()).collect();
    let mut unnamed: BTreeMap<u16, u64> = BTreeMap::new();
    for (opcode, count) in builds.values().flat_map(Diagnosis::unnamed) {
        *unnamed.entry(opcode).or_default() += count;
    }
    if !unnamed.is_empty() {
        complain(&shown(file), &nameless(&unnamed, file, &given));
    }
    if names.is_empty() {
        let perhaps: Vec<_> = builds.values().map(Diagnosis::possible).collect();
        let perhaps: BTreeSet<&str> = perhaps.iter().flat_map(|list| list.iter()).collect();
        let mut problem = match unnamed.is_empty() {
            true => "no message has a counter and checksum".to_owned(),
            false => "no named message has a counter and checksum".to_owned(),
        };
        if !perhaps.is_empty() {
            problem += "; these occur only once and may have both: ";
            problem += &listed(perhaps);
        }
        complain(&shown(file), &problem);
        return Err(Failure::Input);
    }
    let target = in_folder(target, builds.values())?;
    write_all(&target, format!("{:#}\n", json!(names)).as_bytes())?;
    if clean && unnamed.is_empty() { Ok(()) } else { Err(Failure::Input) }
}

/// The target. In a directory, the list's file is named after the patch, so that later commands
/// find it.
fn in_folder<'d>(
    target: &Target,
    builds: impl Iterator<Item = &'d Diagnosis>,
) -> Result<Target, Failure> {
    let mut patches: Vec<Option<u16>> =
        builds.map(|build| build.packets().patch().map(|patch| patch.major)).collect();
    patches.dedup();
    let patch = match patches[..] {
        [patch] => patch,
        _ => None,
    };
    if let (Some(folder), None) = (target.folder(), patch) {
        let folder = shown(folder);
        let problem = "the list is named after the patch, which is unknown; use --patch";
        return Err(Failure::Run(format!("-o {folder}: {problem} or a file name")));
    }
    target.of_file(|| PathBuf::from(format!("{}.json", patch.unwrap_or_default())))
}

/// The message about opcodes that carry a counter and a checksum but have no name and so cannot be
/// listed.
fn nameless(unnamed: &BTreeMap<u16, u64>, file: &Path, given: &str) -> String {
    let opcodes =
        unnamed.iter().map(|(opcode, count)| format!("{opcode} ({})", counted(*count, "message")));
    let opcodes = listed(opcodes);
    let mut problem = match unnamed.len() {
        1 => format!("opcode {opcodes} has a counter and checksum, but no name for the list"),
        _ => format!("opcodes {opcodes} have a counter and checksum, but no names for the list"),
    };
    // Without an opcode, all unnamed ones are tried.
    let one = unnamed.keys().next().filter(|_| unnamed.len() == 1);
    let one = one.map_or(String::new(), |opcode| format!(" {opcode}"));
    let them = if unnamed.len() == 1 { "it" } else { "them" };
    let _ = write!(
        problem,
        "; to identify {them}, run worldwire tera def rank{one} --from {}{given}",
        shell(file)
    );
    problem
}
