//! `worldwire ki poi`.

use worldwire_ki::file::poi::PoiFile;

use super::found::{Found, Kind, LIMITS, only};
use crate::cli::{Common, KiConversion, KiPoi};
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
        KiPoi::Check(files) => super::check(&files.paths, &POI, common, |found| {
            let (poi, mut said) = PoiFile::open(found.bytes, &LIMITS)?;
            said.extend(poi.check());
            Ok(said)
        }),
        KiPoi::Csv(KiConversion { path, target }) => {
            let only = only(path, &POI, common)?;
            let found = only.found();
            let csv = open(&found)?.to_csv().map_err(|error| {
                complain(&found.title, &error.to_string());
                Failure::Input
            })?;
            write_all(target, csv.as_bytes())
        }
        KiPoi::Graphml(KiConversion { path, target }) => {
            let only = only(path, &POI, common)?;
            write_all(target, open(&only.found())?.to_graphml().as_bytes())
        }
    }
}

fn open<'b>(found: &Found<'b>) -> Result<PoiFile<'b>, Failure> {
    super::opened(&POI, found, PoiFile::open(found.bytes, &LIMITS))
}
