//! `worldwire ki poi`.

use worldwire_ki::file::poi::PoiFile;

use super::found::{Kind, LIMITS, only};
use crate::cli::{Common, KiPoi};
use crate::output::{Failure, complain, write_all};

static POI: Kind = Kind {
    what: "POI file",
    is_named: |name| {
        name.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case("poi.dat"))
    },
    is: |bytes| PoiFile::strict(bytes, &LIMITS).is_ok_and(|file| !file.zone_names.is_empty()),
};

pub(super) fn run(command: &KiPoi, common: &Common) -> Result<(), Failure> {
    match command {
        KiPoi::Check { paths } => super::check(paths, &POI, common, |found| {
            let (poi, mut said) = PoiFile::open(found.bytes, &LIMITS)?;
            said.extend(poi.check());
            Ok(said)
        }),
        KiPoi::Csv { path, target } => {
            let (title, bytes) = only(path, &POI, common)?;
            let poi = super::opened(&title, PoiFile::open(&bytes, &LIMITS))?;
            let csv = poi.to_csv().map_err(|error| {
                complain(&title, &error.to_string());
                Failure::Input
            })?;
            write_all(target, csv.as_bytes())
        }
        KiPoi::Graphml { path, target } => {
            let (title, bytes) = only(path, &POI, common)?;
            let poi = super::opened(&title, PoiFile::open(&bytes, &LIMITS))?;
            write_all(target, poi.to_graphml().as_bytes())
        }
    }
}
