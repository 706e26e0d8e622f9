//! `worldwire ki bcd`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use worldwire_ki::file::bcd::BcdFile;

use super::found::{Kind, LIMITS, each, has_ending, only};
use crate::cli::{Common, KiBcd, KiMeshForm};
use crate::output::{Failure, complain, print, printable, write_all};

static BCD: Kind = Kind {
    what: "BCD file",
    is_named: |name| has_ending(name, "bcd"),
    is: |bytes| BcdFile::strict(bytes, &LIMITS).is_ok_and(|file| !file.collisions.is_empty()),
};

pub(super) fn run(command: &KiBcd, common: &Common) -> Result<(), Failure> {
    match command {
        KiBcd::Check { paths } => super::check(paths, &BCD, common, |found| {
            let (file, mut said) = BcdFile::open(found.bytes, &LIMITS)?;
            said.extend(file.check());
            Ok(said)
        }),
        KiBcd::Stats { paths, json } => each(paths, &BCD, common, |found| {
            let file = super::opened(&found.title, BcdFile::open(found.bytes, &LIMITS))?;
            statistics(&found.title, &file, *json)
        }),
        KiBcd::Draw { path, target } => {
            let (title, bytes) = only(path, &BCD, common)?;
            let file = super::opened(&title, BcdFile::open(&bytes, &LIMITS))?;
            write_all(target, file.to_svg(&title).as_bytes())
        }
        KiBcd::Export { path, to, target } => {
            let (title, bytes) = only(path, &BCD, common)?;
            let file = super::opened(&title, BcdFile::open(&bytes, &LIMITS))?;
            let exported = match to {
                KiMeshForm::Gltf => file.to_gltf(),
                KiMeshForm::Obj => file.to_obj(),
            };
            let exported = exported.map_err(|error| {
                complain(&title, &error.to_string());
                Failure::Input
            })?;
            if exported.left_out > 0 {
                let count = exported.left_out;
                common.note(&title, &format!("{count} rays and planes are left out"));
            }
            if exported.skipped_faces > 0 {
                let count = exported.skipped_faces;
                let text = "faces with missing or infinite vertices are left out";
                common.note(&title, &format!("{count} {text}"));
            }
            write_all(target, exported.text.as_bytes())
        }
    }
}

fn statistics(title: &str, file: &BcdFile<'_>, json: bool) -> Result<(), Failure> {
    let sums = file.statistics();
    if json {
        let line = json!({
            "file": title, "collisions": file.collisions.len(), "types": sums.types,
            "categories": sums.categories, "materials": sums.materials,
            "vertices": sums.vertices, "faces": sums.faces,
        });
        return print(&format!("{line}\n"));
    }
    let mut out = String::new();
    let (count, vertices, faces) = (file.collisions.len(), sums.vertices, sums.faces);
    let _ = writeln!(out, "{title}: {count} collisions, {vertices} vertices, {faces} faces");
    let materials: BTreeMap<&str, usize> =
        sums.materials.iter().map(|(name, count)| (&**name, *count)).collect();
    for (what, counts) in
        [("type", &sums.types), ("category", &sums.categories), ("material", &materials)]
    {
        for (name, count) in counts {
            let name = if name.is_empty() { "none" } else { name };
            let _ = writeln!(out, "{count:>8}  {what:<9} {}", printable(name));
        }
    }
    print(&out)
}
