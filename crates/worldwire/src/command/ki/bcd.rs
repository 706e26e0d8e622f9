//! `worldwire ki bcd`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_ki::file::bcd::BcdFile;

use super::found::{Found, Kind, LIMITS, each, has_ending, only};
use crate::cli::{Common, KiBcd, KiConversion, KiMeshForm, Target};
use crate::output::{Failure, complain, print, printable, write_all};

static BCD: Kind = Kind {
    what: "BCD file",
    is_named: |name| has_ending(name, "bcd"),
    is: |bytes| BcdFile::strict(bytes, &LIMITS).is_ok_and(|file| !file.collisions.is_empty()),
};

pub(super) fn run(command: &KiBcd, common: &Common) -> Result<(), Failure> {
    match command {
        KiBcd::Check(files) => super::check(&files.paths, &BCD, common, |found| {
            let (file, mut said) = BcdFile::open(found.bytes, &LIMITS)?;
            said.extend(file.check());
            Ok(said)
        }),
        KiBcd::Stats { paths, json } => {
            each(paths, &BCD, common, |found| statistics(&found.title, &open(&found)?, *json))
        }
        KiBcd::Draw(KiConversion { path, target }) => {
            target.ends_in("SVG", &["svg"])?;
            let only = only(path, &BCD, common)?;
            let found = only.found();
            write_all(target, open(&found)?.to_svg(&found.title).as_bytes())
        }
        KiBcd::Export { path, to, target } => {
            if to.is_none() {
                target.ends_in("glTF or OBJ", &["gltf", "obj"])?;
            }
            let only = only(path, &BCD, common)?;
            let found = only.found();
            let file = open(&found)?;
            let exported = match to.unwrap_or_else(|| form_of(target)) {
                KiMeshForm::Gltf => file.to_gltf(),
                KiMeshForm::Obj => file.to_obj(),
            };
            let exported = exported.map_err(|error| {
                complain(&found.title, &error.to_string());
                Failure::Input
            })?;
            let left_out = [
                (exported.left_out, "ray or plane", "rays and planes", ""),
                (exported.skipped_faces, "face", "faces", " with missing or infinite vertices"),
            ];
            for (count, one, several, which) in left_out {
                match count {
                    0 => {}
                    1 => common.note(&found.title, &format!("1 {one}{which} was skipped")),
                    _ => {
                        common.note(&found.title, &format!("{count} {several}{which} were skipped"))
                    }
                }
            }
            write_all(target, exported.text.as_bytes())
        }
    }
}

fn open<'b>(found: &Found<'b>) -> Result<BcdFile<'b>, Failure> {
    super::opened(&BCD, found, BcdFile::open(found.bytes, &LIMITS))
}

/// The output format implied by the name of the output file.
fn form_of(target: &Target) -> KiMeshForm {
    match target.output.as_deref().and_then(Path::extension) {
        Some(end) if end.eq_ignore_ascii_case("obj") => KiMeshForm::Obj,
        _ => KiMeshForm::Gltf,
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
    let title = printable(title);
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
