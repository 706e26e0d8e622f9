//! Targets for the client's own files: NAV, BCD, POI, locales.

use worldwire_core::json::Style;
use worldwire_core::testing::{Decoded, Target, decode};
use worldwire_core::{Field as _, Limits, NoTrace, Reader, Result, Sampler, TreeBuilder};

use crate::file::bcd::BcdFile;
use crate::file::lang::{LangFile, Locale, Translation, codes_in};
use crate::file::nav::{Directions, NavFile, NavGraph};
use crate::file::poi::PoiFile;

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_bcd", run: bcd, seeds: bcd_seeds },
    Target { name: "ki_lang", run: lang, seeds: lang_seeds },
    Target { name: "ki_nav", run: nav, seeds: nav_seeds },
    Target { name: "ki_poi", run: poi, seeds: poi_seeds },
];

const LIMITS: Limits = Limits { inflated_bytes: 1 << 20, ..Limits::DEFAULT };

/// Decodes a file with and without a trace. If all of it can be decoded, `open` must return the same
/// value.
fn both<'d, F: PartialEq + core::fmt::Debug>(
    data: &'d [u8],
    opened: Option<&F>,
    plain: impl FnOnce(&mut Reader<'d, NoTrace>) -> Result<F>,
    traced: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<F>,
) -> Option<Decoded<'d, F>> {
    let decoded = decode(data, &LIMITS, Style::default(), plain, traced);
    let is_whole = decoded.value.is_ok() && decoded.used == data;
    assert!(!is_whole || decoded.value.as_ref().ok() == opened, "decode and open disagree");
    is_whole.then_some(decoded)
}

fn nav(data: &[u8]) {
    let opened = NavFile::open(data, &LIMITS).map(|(file, _)| file);
    if let Some(decoded) = both(data, opened.as_ref().ok(), NavFile::decode, NavFile::decode) {
        let again = NavFile::from_json(&decoded.json).and_then(|file| file.to_bytes());
        match NavFile::is_compressed(data, &LIMITS) {
            // Another program may have compressed the file differently.
            true => assert_eq!(again, decoded.value.and_then(|file| file.to_bytes())),
            false => _ = decoded.encodes_back(NavFile::to_bytes, |_| again),
        }
    }
    let Ok(file) = opened else { return };
    file.check().for_each(drop);
    let _ = file.to_svg("");
    for directions in [Directions::One, Directions::Both] {
        let _ = file.to_graphml(directions);
        let graph = NavGraph::new(&file, directions);
        let route = graph.route(0, file.nodes.len() / 2);
        assert!(route.is_none_or(|it| it.lengths.is_sorted_by(|a, b| a <= b)), "shorter");
    }
}

fn bcd(data: &[u8]) {
    let opened = BcdFile::open(data, &LIMITS).map(|(file, _)| file);
    if let Some(decoded) = both(data, opened.as_ref().ok(), BcdFile::decode, BcdFile::decode) {
        decoded.encodes_back(BcdFile::to_bytes, |json| BcdFile::from_json(json)?.to_bytes());
    }
    let Ok(file) = opened else { return };
    file.check().for_each(drop);
    let _ = file.statistics();
    let _ = file.to_svg("");
    for exported in [file.to_obj(), file.to_gltf()].into_iter().flatten() {
        assert!(!exported.text.contains("NaN") && !exported.text.contains("inf "), "not finite");
    }
}

fn poi(data: &[u8]) {
    let opened = PoiFile::open(data, &LIMITS).map(|(file, _)| file);
    if let Some(decoded) = both(data, opened.as_ref().ok(), PoiFile::read, PoiFile::read) {
        decoded.encodes_back(PoiFile::to_bytes, |json| PoiFile::read_json(json)?.to_bytes());
    }
    let Ok(file) = opened else { return };
    file.check().for_each(drop);
    let csv = file.to_csv().unwrap_or_default();
    assert!(csv.lines().count() > file.goals.len());
    let _ = file.to_graphml();
}

fn lang(data: &[u8]) {
    let opened = LangFile::open(data, &LIMITS).map(|(file, _)| file);
    if let Some(decoded) = both(data, opened.as_ref().ok(), LangFile::decode, LangFile::decode) {
        decoded.encodes_back(LangFile::to_bytes, |json| LangFile::from_json(json)?.to_bytes());
    }
    let Ok(file) = opened else { return };
    file.check(None).for_each(drop);
    let bytes =
        file.to_bytes().unwrap_or_else(|error| panic!("a decoded file must encode: {error}"));
    assert_eq!(LangFile::decode(&mut Reader::new(&bytes)), Ok(file.clone()), "repaired");
    let mut locale = Locale::new();
    locale.add("A_b", &file);
    for entry in &file.entries {
        let code = format!("A_b_{}", entry.key.to_text());
        assert!(locale.text(&code).is_some(), "{code}");
        codes_in(&entry.text.to_text()).for_each(drop);
        let _ = locale.explain(&code);
    }
    assert!(file.to_csv("A", true).is_ok());
    let _ = file.to_po("A", &Translation::of(&file));
}

fn nav_seeds() -> Vec<Vec<u8>> {
    let files: Vec<NavFile<'_>> =
        (0..12).map(|seed| NavFile::sample(&mut Sampler::new(seed))).collect();
    let packed = files.iter().take(3).map(NavFile::to_zlib);
    files.iter().map(NavFile::to_bytes).chain(packed).flatten().collect()
}

fn bcd_seeds() -> Vec<Vec<u8>> {
    let file = |seed| BcdFile::sample(&mut Sampler::sized(seed, 6)).to_bytes();
    (0..16).map(file).filter_map(Result::ok).collect()
}

fn poi_seeds() -> Vec<Vec<u8>> {
    let file = |seed| PoiFile::sample(&mut Sampler::sized(seed, 6)).to_bytes();
    (0..16).map(file).filter_map(Result::ok).collect()
}

fn lang_seeds() -> Vec<Vec<u8>> {
    let file = |seed| LangFile::sample(&mut Sampler::new(seed)).to_bytes();
    (0..12).map(file).filter_map(Result::ok).collect()
}
