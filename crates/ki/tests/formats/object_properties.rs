//! Properties of every type list and every object.

use proptest::prelude::*;
use worldwire_core::json::{Style, write_node};
use worldwire_core::{Reader, Sampler, Tree};
use worldwire_ki::fuzzing::object::{generated_classes, options};
use worldwire_ki::object::{Header, JsonWriter, Object, ObjectCodec, ObjectNote, xml};
use worldwire_ki::schema::classes::{Classes, Property, TypeLists};

/// A round trip of bytes through a codec: as a value, as JSON, and as a tree.
fn round(codec: &ObjectCodec<'_>, bytes: &[u8]) -> (Object, Header) {
    let classes = codec.classes();
    let mut object = Object::new();
    let decoded = codec.decode_all(bytes, &mut object).unwrap();
    // The sampler does not consider which class belongs where.
    assert!(decoded.notes.iter().all(|note| note.error().found().ends_with(" belongs")));

    let json = object.to_json(classes).unwrap();
    assert_eq!(Object::parse_json(classes, &json).unwrap(), object);
    let mut streamed = JsonWriter::new(Vec::new(), Style::default());
    codec.decode_all(bytes, &mut streamed).unwrap();
    assert_eq!(streamed.finish().unwrap(), json.as_bytes());

    let mut reader = Reader::traced("stream", bytes, Tree::new());
    let mut traced = Object::new();
    let outcome = codec.decode(&mut reader, &mut traced);
    let (tree, outcome) = reader.conclude(outcome);
    assert_eq!(outcome.unwrap(), decoded);
    assert_eq!(traced, object);
    let mut shown = String::new();
    write_node(tree.find("object").unwrap(), Style::default(), &mut shown);
    assert_eq!(shown, json);
    for node in tree.nodes() {
        let (start, end) = node.places();
        assert!(start <= end, "{}: {start:?} to {end:?}", node.name());
        for child in node.children().filter(|child| child.layer() == node.layer()) {
            assert!(child.places().0 >= start && child.places().1 <= end, "{}", child.name());
        }
    }
    (object, decoded.header)
}

/// Whether an object from a shallow stream still has everything that the stream's mask covers.
fn has_all(classes: &Classes, kept: &Object, mask: u32) -> bool {
    let root = kept.root(classes).unwrap();
    let is_there = |property: &Property| {
        !property.has(mask)
            || property.has(Property::DELTA_ENCODE)
            || root.property(&property.name).is_some()
    };
    root.class().unwrap().properties().iter().all(is_there)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn objects_round_trip(seed: u64, bits in 0_u16..0x100) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        // Delta encoding can be forbidden only if nothing is omitted.
        let bits = if bits & 0x20 == 0 { bits & !0x10 } else { bits };
        let options = options(&classes, bits);
        let (deep, mask) = (options.deep, options.mask);
        let codec = ObjectCodec::new(&classes, options);
        for class in classes.all() {
            let made = Object::sample(&classes, class, !deep, sampler).unwrap();
            let bytes = codec.encode(&made, codec.header()).unwrap();
            let (object, header) = round(&codec, &bytes);
            if deep {
                prop_assert_eq!(&object, &made);
            } else {
                prop_assert!(has_all(&classes, &object, mask));
            }
            let plain = !header.is_packed && !header.is_compressed;
            let again = codec.encode(&object, header).unwrap();
            if plain {
                prop_assert_eq!(&again, &bytes);
            }
            let mut other = Object::new();
            codec.decode_all(&again, &mut other).unwrap();
            prop_assert_eq!(&other, &object);

            for end in (0..bytes.len()).rev().take(300) {
                let cut = codec.decode_all(&bytes[..end], &mut Object::new());
                prop_assert!(cut.is_err(), "the first {} of {} bytes", end, bytes.len());
            }
            let longer = [&bytes[..], b"\0"].concat();
            prop_assert!(codec.decode_all(&longer, &mut Object::new()).is_err());
        }
    }

    #[test]
    fn objects_of_other_lists_survive_lenient_decoding(seed: u64, hr in any::<bool>()) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        let bits = if hr { 0x126 } else { 0x120 };
        let codec = ObjectCodec::new(&classes, options(&classes, bits));
        let others = generated_classes(sampler, 5);
        let foreign = ObjectCodec::new(&others, options(&others, bits));
        for class in classes.all() {
            let made = Object::sample(&classes, class, false, sampler).unwrap();
            let bytes = codec.encode(&made, codec.header()).unwrap();
            let mut object = Object::new();
            let Ok(decoded) = foreign.decode_all(&bytes, &mut object) else { continue };
            if others.by_hash(class.hash).is_none() {
                prop_assert!(!decoded.notes.is_empty());
            }
            let json = object.to_json(&others).unwrap();
            let parsed = Object::parse_json(&others, &json).unwrap();
            prop_assert_eq!(&parsed, &object);
            prop_assert_eq!(&foreign.encode(&parsed, decoded.header).unwrap(), &bytes, "{}", json);
            // With all options known, the result is the same. (Names that happen to look like a
            // number are excluded.)
            if !hr && let Ok(known) = Object::parse_json(&classes, &json) {
                prop_assert_eq!(&codec.encode(&known, decoded.header).unwrap(), &bytes, "{}", json);
            }
            let strict = ObjectCodec::new(&others, options(&others, bits & 0xff));
            let strictly = strict.decode_all(&bytes, &mut Object::new());
            // Objects of an unrelated class are reported, but are not errors.
            let is_mistake = |note: &ObjectNote| !note.error().found().contains(" belongs");
            prop_assert_eq!(strictly.is_err(), decoded.notes.iter().any(is_mistake));
        }
    }

    #[test]
    fn xml_round_trips_what_it_can_represent(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        for class in classes.all() {
            let made = Object::sample(&classes, class, false, sampler).unwrap();
            let written = xml::to_xml(&classes, core::slice::from_ref(&made)).unwrap();
            let loaded = xml::load(&classes, "generated.xml", written.as_bytes());
            prop_assert!(loaded.diagnostics.is_empty(), "{:?}\n{}", loaded.diagnostics, written);
            prop_assert_eq!(loaded.objects, Some(vec![made]));
        }
    }

    /// Keys determine the order of elements, whatever their order in the text.
    #[test]
    fn xml_keys_determine_the_order(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        let list = r#"{"class A": {"bases": [], "hash": 7, "properties": {
            "m_i": {"type": "int", "id": 0, "container": "List"}}}}"#;
        let mut lists = TypeLists::new();
        lists.add("list.json", list.as_bytes()).unwrap();
        let classes = lists.compile();
        let mut keys: Vec<u64> = (0..sampler.below(40)).collect();
        for at in (1..keys.len()).rev() {
            let other = usize::try_from(sampler.below(at as u64 + 1)).unwrap();
            keys.swap(at, other);
        }
        let elements: String =
            keys.iter().map(|key| format!("<m_i key=\"{key}\">{key}</m_i>")).collect();
        let text = format!("<Objects><Class Name=\"A\">{elements}</Class></Objects>");
        let loaded = xml::load(&classes, "keys.xml", text.as_bytes());
        prop_assert!(loaded.diagnostics.is_empty());
        let object = &loaded.objects.unwrap()[0];
        keys.sort_unstable();
        let root = object.root(&classes).unwrap();
        let read: Vec<u64> = root
            .property("m_i")
            .map(|list| list.children().map(|value| value.unsigned().unwrap()).collect())
            .unwrap_or_default();
        prop_assert_eq!(read, keys);
    }

    /// Lenient decoding keeps the contents of an object whose size is known, whatever they are.
    #[test]
    fn any_bits_survive_lenient_decoding(seed: u64, count in 0_u32..900, bits in 0_u16..4) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        let codec = ObjectCodec::new(&classes, options(&classes, 0x120 | bits << 1));
        for class in classes.all() {
            let mut bytes = class.hash.to_le_bytes().to_vec();
            bytes.extend((count + 32).to_le_bytes());
            bytes.extend(sampler.bytes(count.div_ceil(8) as usize));
            // In some cases, use a known property of a plausible size.
            if let Some(property) = class.properties().first()
                && let Some(place) = bytes.get_mut(8..16)
            {
                let size = u32::try_from(sampler.below(u64::from(count) + 1)).unwrap();
                place.copy_from_slice(&[size.to_le_bytes(), property.hash.to_le_bytes()].concat());
            }
            let mut object = Object::new();
            let decoded = codec.decode_all(&bytes, &mut object).unwrap();
            let json = object.to_json(&classes).unwrap();
            let parsed = Object::parse_json(&classes, &json).unwrap();
            prop_assert_eq!(&parsed, &object);
            let again = codec.encode(&parsed, decoded.header).unwrap();
            let mut second = Object::new();
            codec.decode_all(&again, &mut second).unwrap();
            prop_assert_eq!(&second, &object, "{}", json);
        }
    }

    /// However the bytes are modified, lenient decoding does not lose any data that it accepts.
    #[test]
    fn broken_streams_survive_lenient_decoding(seed: u64, bits in 0_u16..4, core: bool) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        let bits = 0x120 | bits << 1 | if core { 0x80 } else { 0 };
        let codec = ObjectCodec::new(&classes, options(&classes, bits));
        for class in classes.all() {
            let made = Object::sample(&classes, class, false, sampler).unwrap();
            let whole = codec.encode(&made, codec.header()).unwrap();
            for _ in 0..20 {
                let mut bytes = whole.clone();
                for _ in 0..=sampler.below(3) {
                    let at = usize::try_from(sampler.below(bytes.len() as u64)).unwrap();
                    bytes[at] = bytes[at].wrapping_add(u8::try_from(sampler.below(9)).unwrap());
                }
                let mut object = Object::new();
                let Ok(decoded) = codec.decode_all(&bytes, &mut object) else { continue };
                let json = object.to_json(&classes).unwrap();
                let mut streamed = JsonWriter::new(Vec::new(), Style::default());
                codec.decode_all(&bytes, &mut streamed).unwrap();
                prop_assert_eq!(streamed.finish().unwrap(), json.as_bytes());
                let parsed = Object::parse_json(&classes, &json).unwrap();
                prop_assert_eq!(&parsed, &object);
                let again = codec.encode(&parsed, decoded.header).unwrap();
                let mut second = Object::new();
                codec.decode_all(&again, &mut second).unwrap();
                prop_assert_eq!(&second, &object, "{}", json);
                if bits & 6 == 0 {
                    // Lengths and names have a single form, so only padding may change.
                    prop_assert_eq!(again.len(), bytes.len(), "{}", json);
                }
            }
        }
    }

    #[test]
    fn values_are_changed_by_path(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        let classes = generated_classes(sampler, 6);
        for class in classes.all() {
            let made = Object::sample(&classes, class, true, sampler).unwrap();
            let other = Object::sample(&classes, class, true, sampler).unwrap();
            let mut changed = made.clone();
            let json: worldwire_core::json::Json =
                serde_json::from_str(&other.to_json(&classes).unwrap()).unwrap();
            for property in class.properties() {
                match json.get(&*property.name) {
                    Some(value) => changed.set(&classes, &property.name, value).unwrap(),
                    None if changed.root(&classes).unwrap().property(&property.name).is_some() => {
                        changed.remove(&classes, &property.name).unwrap();
                    }
                    None => {}
                }
            }
            prop_assert_eq!(changed, other);
        }
    }
}
