//! Codecs for the client's own files.

use worldwire_ki::file::bcd::BcdFile;
use worldwire_ki::file::lang::LangFile;
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::poi::PoiFile;
use worldwire_ki::file::table::TableFile;
use worldwire_ki::file::wad::ArchiveFile;

use crate::codec::{Codec, Remark, read};

/// A codec: its name, what it is for, and how a file is decoded and encoded.
macro_rules! codec {
    ($name:literal, $about:literal, $decode:expr, $encode:expr) => {
        Codec::new(
            $name,
            $about,
            |data, options, tree| {
                read($name, data, options, tree, |reader| $decode(reader).map(drop))
            },
            |json, _| $encode(json),
        )
    };
}

pub(super) const BCD: Codec = codec!(
    "ki.bcd",
    "the collisions of a zone (collision.bcd); see also `ki bcd`",
    BcdFile::decode,
    |json| BcdFile::from_json(json)?.to_bytes()
);

pub(super) const LANG: Codec = codec!(
    "ki.lang",
    "the texts of a locale file (.lang); see also `ki lang`",
    LangFile::decode,
    |json| LangFile::from_json(json)?.to_bytes()
);

pub(super) const NAV: Codec = Codec {
    remarks: |data, options| {
        let is_compressed = NavFile::is_compressed(data, options.limits);
        let text = "is a zlib stream; encoding its JSON gives an uncompressed file";
        is_compressed.then(|| Remark::note(text.to_owned())).into_iter().collect()
    },
    ..codec!(
        "ki.nav",
        "a navigation graph (zone.nav, zonemap.nav); see also `ki nav`",
        NavFile::decode,
        |json| NavFile::from_json(json)?.to_bytes()
    )
};

pub(super) const POI: Codec = codec!(
    "ki.poi",
    "points of interest of all zones (poi.dat); see also `ki poi`",
    PoiFile::read,
    |json| PoiFile::read_json(json)?.to_bytes()
);

pub(super) const TABLE: Codec = codec!(
    "ki.dml-table",
    "DML tables, such as LatestFileList.bin",
    TableFile::decode,
    TableFile::json_to_bytes
);

pub(super) const WAD: Codec = codec!(
    "ki.wad",
    "a KIWAD archive: its table, and the data as bytes",
    ArchiveFile::decode,
    |json| ArchiveFile::from_json(json)?.to_bytes()
);
