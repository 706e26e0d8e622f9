//! Targets for the client's own files: NAV, BCD, POI, locales.

use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{Target, render};
use worldwire_core::{Limits, NoTrace, Reader, Result, Sampler, Tree, TreeBuilder};

use crate::file::bcd::BcdFile;
use crate::file::lang::{LangFile, Locale, Translation, codes_in};
use crate::file::nav::{Directions, NavFile, NavGraph};
use crate::file::poi::PoiFile;

/// The targets of this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_bcd", run: bcd, seeds: bcd_seeds },
    Target { name: "ki_lang", run: lang, seeds: lang_seeds },
    Target { name: "ki_nav", run: nav, seeds: nav_seeds },
    Target { name: "ki_poi", run: poi, seeds: poi_seeds },
];

const LIMITS: Limits = Limits { inflated_bytes: 1 << 20, ..Limits::DEFAULT };

/// Decodes all of the data with and without a trace.
fn both<'d, F: PartialEq + core::fmt::Debug>(
    data: &'d [u8],
    plain: impl FnOnce(&mut Reader<'d, NoTrace>) -> Result<F>,
    traced: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<F>,
) -> Option<(F, Json)> {
    let mut reader = Reader::within(data, &LIMITS);
    let plain = plain(&mut reader).and_then(|file| reader.end().map(|()| file));
    let mut reader = Reader::traced_within("file", data, Tree::new(), &LIMITS);
    let traced = traced(&mut reader).and_then(|file| reader.end().map(|()| file));
    assert_eq!(plain, traced, "a trace changed the outcome");
    let (tree, outcome) = reader.conclude(traced);
    let json = render(&tree, Style::default());
    Some((outcome.ok()?, json))
}

/// Checks that the decoded value and its JSON encode to the same bytes.
fn same(data: &[u8], direct: Result<Vec<u8>>, by_json: Result<Vec<u8>>) {
    assert_eq!(direct.as_deref(), Ok(data), "encoded to other bytes");
    assert_eq!(by_json.as_deref(), Ok(data), "JSON encoded to other bytes");
}

fn nav(data: &[u8]) {
    let opened = NavFile::open(data, &LIMITS);
    let decoded = both(data, NavFile::decode, NavFile::decode);
    if let Some((file, json)) = decoded {
        let bytes = match NavFile::is_compressed(data, &LIMITS) {
            true => file.to_bytes().unwrap_or_default(),
            false => data.to_vec(),
        };
        let again = NavFile::from_json(&json).and_then(|file| file.to_bytes());
        same(&bytes, file.to_bytes(), again);
        assert_eq!(
            opened.as_ref().map(|(opened, _)| opened),
            Ok(&file),
            "decode and open disagree"
        );
    }
    let Ok((file, _)) = opened else { return };
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
    let opened = BcdFile::open(data, &LIMITS);
    let decoded = both(data, BcdFile::decode, BcdFile::decode);
    if let Some((file, json)) = decoded {
        same(data, file.to_bytes(), BcdFile::from_json(&json).and_then(|file| file.to_bytes()));
        assert_eq!(
            opened.as_ref().map(|(opened, _)| opened),
            Ok(&file),
            "decode and open disagree"
        );
    }
    let Ok((file, _)) = opened else { return };
    file.check().for_each(drop);
    let _ = file.statistics();
    let _ = file.to_svg("");
    for exported in [file.to_obj(), file.to_gltf()].into_iter().flatten() {
        assert!(!exported.text.contains("NaN") && !exported.text.contains("inf "), "not finite");
    }
}

fn poi(data: &[u8]) {
    let opened = PoiFile::open(data, &LIMITS);
    let decoded = both(data, PoiFile::read, PoiFile::read);
    if let Some((file, json)) = decoded {
        same(data, file.to_bytes(), PoiFile::read_json(&json).and_then(|file| file.to_bytes()));
        assert_eq!(
            opened.as_ref().map(|(opened, _)| opened),
            Ok(&file),
            "decode and open disagree"
        );
    }
    let Ok((file, _)) = opened else { return };
    file.check().for_each(drop);
    let csv = file.to_csv().unwrap_or_default();
    assert!(csv.lines().count() > file.goals.len());
    let _ = file.to_graphml();
}

fn lang(data: &[u8]) {
    let opened = LangFile::open(data, &LIMITS);
    let decoded = both(data, LangFile::decode, LangFile::decode);
    if let Some((file, json)) = decoded {
        same(data, file.to_bytes(), LangFile::from_json(&json).and_then(|file| file.to_bytes()));
        assert_eq!(
            opened.as_ref().map(|(opened, _)| opened),
            Ok(&file),
            "decode and open disagree"
        );
    }
    let Ok((file, _)) = opened else { return };
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
    use worldwire_core::Field as _;

    let file = |seed| PoiFile::sample(&mut Sampler::sized(seed, 6)).to_bytes();
    (0..16).map(file).filter_map(Result::ok).collect()
}

fn lang_seeds() -> Vec<Vec<u8>> {
    let file = |seed| LangFile::sample(&mut Sampler::new(seed)).to_bytes();
    (0..12).map(file).filter_map(Result::ok).collect()
}
