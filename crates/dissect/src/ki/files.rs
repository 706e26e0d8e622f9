//! Codecs for the client's own files.

use worldwire_ki::file::bcd::BcdFile;
use worldwire_ki::file::lang::LangFile;
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::poi::PoiFile;
use worldwire_ki::file::table::TableFile;
use worldwire_ki::file::wad::ArchiveFile;

use crate::codec::{Codec, Remark, read};

pub(super) const BCD: Codec = Codec::new(
    "ki.bcd",
    "the collisions of a zone (collision.bcd); see also `ki bcd`",
    |data, options, tree| {
        read("ki.bcd", data, options, tree, |reader| BcdFile::decode(reader).map(drop))
    },
    |json, _| BcdFile::from_json(json)?.to_bytes(),
);

pub(super) const LANG: Codec = Codec::new(
    "ki.lang",
    "the texts of a locale file (.lang); see also `ki lang`",
    |data, options, tree| {
        read("ki.lang", data, options, tree, |reader| LangFile::decode(reader).map(drop))
    },
    |json, _| LangFile::from_json(json)?.to_bytes(),
);

pub(super) const NAV: Codec = Codec {
    remarks: |data, options| {
        let is_compressed = NavFile::is_compressed(data, options.limits);
        let text = "is a zlib stream; encoding its JSON gives an uncompressed file";
        is_compressed.then(|| Remark::note(text.to_owned())).into_iter().collect()
    },
    ..Codec::new(
        "ki.nav",
        "a navigation graph (zone.nav, zonemap.nav); see also `ki nav`",
        |data, options, tree| {
            read("ki.nav", data, options, tree, |reader| NavFile::decode(reader).map(drop))
        },
        |json, _| NavFile::from_json(json)?.to_bytes(),
    )
};

pub(super) const POI: Codec = Codec::new(
    "ki.poi",
    "points of interest of all zones (poi.dat); see also `ki poi`",
    |data, options, tree| {
        read("ki.poi", data, options, tree, |reader| PoiFile::read(reader).map(drop))
    },
    |json, _| PoiFile::read_json(json)?.to_bytes(),
);

pub(super) const TABLE: Codec = Codec::new(
    "ki.dml-table",
    "DML tables, such as LatestFileList.bin",
    |data, options, tree| {
        read("ki.dml-table", data, options, tree, |reader| TableFile::decode(reader).map(drop))
    },
    |json, _| TableFile::json_to_bytes(json),
);

pub(super) const WAD: Codec = Codec::new(
    "ki.wad",
    "a KIWAD archive: its table, and the data as bytes",
    |data, options, tree| {
        read("ki.wad", data, options, tree, |reader| ArchiveFile::decode(reader).map(drop))
    },
    |json, _| ArchiveFile::from_json(json)?.to_bytes(),
);
