//! `worldwire tera integrity`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use worldwire_dissect::{Item, Scratch};
use worldwire_tera::diagnosis::Diagnosis;
use worldwire_tera::packet::Packets;

use super::carry::{Said, capture};
use crate::cli::{Common, Data, Target, TeraBuild};
use crate::definitions::{self, options, shell};
use crate::output::{Failure, complain, counted, shown, write_all};

pub(super) fn run(
    file: &Path,
    build: &TeraBuild,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let TeraBuild { data, revision, patch } = build;
    let data = Data { paths: data.clone(), revision: *revision, patch: *patch, pin: Vec::new() };
    let definitions = definitions::load(&data, common)?;
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
                .look(*stream, *from, bytes);
        }
        Ok(())
    })?;
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
        let perhaps: Vec<_> = builds.values().map(Diagnosis::perhaps).collect();
        let perhaps: BTreeSet<&str> = perhaps.iter().flat_map(|list| list.iter()).collect();
        let mut problem = match unnamed.is_empty() {
            true => "no message has counter and checksum".to_owned(),
            false => "no message with a name has counter and checksum".to_owned(),
        };
        if !perhaps.is_empty() {
            let perhaps: Vec<&str> = perhaps.into_iter().collect();
            problem += "; a single message of these may have them: ";
            problem += &perhaps.join(", ");
        }
        complain(&shown(file), &problem);
        return Err(Failure::Input);
    }
    write_all(target, format!("{:#}\n", json!(names)).as_bytes())?;
    if clean && unnamed.is_empty() { Ok(()) } else { Err(Failure::Input) }
}

/// What to say of opcodes that have counter and checksum, and no name to stand in a list with.
fn nameless(unnamed: &BTreeMap<u16, u64>, file: &Path, given: &str) -> String {
    let listed =
        unnamed.iter().map(|(opcode, count)| format!("{opcode} ({})", counted(*count, "message")));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let mut problem = match unnamed.len() {
        1 => format!("opcode {listed} has counter and checksum, but no name for the list"),
        _ => format!("opcodes {listed} have counter and checksum, but no names for the list"),
    };
    // Without an opcode, all that have no name are tried.
    let one = unnamed.keys().next().filter(|_| unnamed.len() == 1);
    let one = one.map_or(String::new(), |opcode| format!(" {opcode}"));
    let _ = write!(problem, "; worldwire tera def rank{one} --from {}{given}", shell(file));
    problem
}
