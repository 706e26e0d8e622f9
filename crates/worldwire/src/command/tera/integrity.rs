//! `worldwire tera integrity`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use worldwire_dissect::{Item, Scratch};
use worldwire_tera::diagnosis::Diagnosis;
use worldwire_tera::packet::Packets;

use super::carry::{Said, capture};
use crate::cli::{Common, Data, Target, TeraBuild};
use crate::definitions;
use crate::output::{Failure, complain, write_all};

pub(super) fn run(
    file: &Path,
    build: &TeraBuild,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let TeraBuild { data, revision, patch } = build;
    let data = Data { paths: data.clone(), revision: *revision, patch: *patch, pin: Vec::new() };
    let definitions = definitions::load(&data, common)?;
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
    if names.is_empty() {
        let perhaps: Vec<_> = builds.values().map(Diagnosis::perhaps).collect();
        let perhaps: BTreeSet<&str> = perhaps.iter().flat_map(|list| list.iter()).collect();
        let mut problem = "no message has counter and checksum".to_owned();
        if !perhaps.is_empty() {
            let perhaps: Vec<&str> = perhaps.into_iter().collect();
            problem += "; a single message of these may have them: ";
            problem += &perhaps.join(", ");
        }
        complain(&file.display().to_string(), &problem);
        return Err(Failure::Input);
    }
    write_all(target, format!("{:#}\n", json!(names)).as_bytes())?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}
