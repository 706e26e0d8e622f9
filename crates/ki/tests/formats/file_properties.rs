//! Properties of every NAV, BCD, POI and locale file.

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{Field as _, Limits, Reader, Result, Sampler, Tree, TreeBuilder, Value};
use worldwire_ki::file::bcd::BcdFile;
use worldwire_ki::file::lang::LangFile;
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::poi::PoiFile;

static LIMITS: Limits = Limits::DEFAULT;

fn json<'d>(
    bytes: &'d [u8],
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Json {
    let mut reader = Reader::traced("file", bytes, Tree::new());
    decode(&mut reader).and_then(|()| reader.end()).unwrap();
    let mut text = String::new();
    write_children(Value::Record, reader.finish().roots(), Style { safe: true }, &mut text);
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn files_round_trip(seed: u64) {
        let nav = NavFile::sample(&mut Sampler::new(seed));
        let bytes = nav.to_bytes().unwrap();
        prop_assert_eq!(&NavFile::decode(&mut Reader::new(&bytes)).unwrap(), &nav);
        let by_json = NavFile::from_json(&json(&bytes, |it| NavFile::decode(it).map(drop)));
        prop_assert_eq!(by_json.unwrap().to_bytes().unwrap(), bytes);

        let bcd = BcdFile::sample(&mut Sampler::new(seed));
        let bytes = bcd.to_bytes().unwrap();
        prop_assert_eq!(&BcdFile::decode(&mut Reader::new(&bytes)).unwrap(), &bcd);
        let by_json = BcdFile::from_json(&json(&bytes, |it| BcdFile::decode(it).map(drop)));
        prop_assert_eq!(by_json.unwrap().to_bytes().unwrap(), bytes);

        let poi = PoiFile::sample(&mut Sampler::sized(seed, 8));
        let bytes = poi.to_bytes().unwrap();
        prop_assert_eq!(&PoiFile::read(&mut Reader::new(&bytes)).unwrap(), &poi);
        let by_json = PoiFile::read_json(&json(&bytes, |it| PoiFile::read(it).map(drop)));
        prop_assert_eq!(by_json.unwrap().to_bytes().unwrap(), bytes);

        let lang = LangFile::sample(&mut Sampler::new(seed));
        let bytes = lang.to_bytes().unwrap();
        prop_assert_eq!(&LangFile::strict(&bytes, &LIMITS).unwrap(), &lang);
        let by_json = LangFile::from_json(&json(&bytes, |it| LangFile::decode(it).map(drop)));
        prop_assert_eq!(by_json.unwrap().to_bytes().unwrap(), bytes);
    }

    #[test]
    fn a_truncated_file_is_never_a_valid_one(seed: u64, cut: prop::sample::Index) {
        let nav = NavFile::sample(&mut Sampler::new(seed));
        let bytes = nav.to_bytes().unwrap();
        let part = &bytes[..cut.index(bytes.len())];
        // Without its names, the file is a zone's graph.
        let names = nav.zone_names.is_some()
            && NavFile { zone_names: None, ..nav }.to_bytes().unwrap() == part;
        prop_assert!(names || NavFile::strict(part, &LIMITS).is_err());
        for bytes in [
            BcdFile::sample(&mut Sampler::new(seed)).to_bytes().unwrap(),
            PoiFile::sample(&mut Sampler::sized(seed, 6)).to_bytes().unwrap(),
        ] {
            let part = &bytes[..cut.index(bytes.len())];
            // A count of 0 by itself is a file without collisions.
            prop_assert!(part == [0; 4] || BcdFile::strict(part, &LIMITS).is_err());
            prop_assert!(PoiFile::strict(part, &LIMITS).is_err());
        }
    }
}

#[test]
fn lists_are_bounded_before_they_are_allocated() {
    let few = Limits { elements: 3, string_bytes: 4, ..Limits::DEFAULT };
    let node = [0; 14];
    let mut bytes = vec![0, 0, 4, 0, 0, 0];
    bytes.extend(node.repeat(4));
    bytes.extend([0; 4]);
    let error = NavFile::open(&bytes, &few).unwrap_err().to_string();
    assert_eq!(error, "nodes at byte 6: wanted at most 3 (elements), found 4");
    let named = [&[0; 10][..], &[1, 0, 0, 0, 5, 0, 0, 0], b"abcde"].concat();
    let error = NavFile::open(&named, &few).unwrap_err().to_string();
    assert_eq!(error, "zone_names[0] at byte 14: wanted at most 4 (string bytes), found 5");
    let lines = "1:N\r\n".to_owned() + &"k\r\n\r\nt\r\n".repeat(4);
    let bytes: Vec<u8> =
        [0xfeff].into_iter().chain(lines.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let error = LangFile::open(&bytes, &few).unwrap_err().to_string();
    assert!(error.contains("wanted at most 3 (elements), found 4"), "{error}");
    assert!(LangFile::open(&bytes, &Limits::DEFAULT).is_ok());
}
