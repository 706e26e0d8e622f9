//! Properties of all messages and formats, for arbitrary values: converting to bytes, trees and
//! JSON loses nothing, and no input is harmful.

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, json, write_children, write_node};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{
    Error, ErrorKind, Field, NodeRef, Reader, Result, Sampler, Side, Trace, Tree, Value, Writer,
};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::file::manifest::{FileList, Manifest};
use worldwire_uru::frame::{Message, Service, table};
use worldwire_uru::message::{AccountFlags, NetAgeInfo, NodeRef as Edge, Rank, Score};
use worldwire_uru::types::{
    BitVector, Creatable, HiLo, Ipv4, Key, LoadMask, Location, NetError, SafeString, SafeWString,
    SequenceNumber, Str, TermStr, UnifiedTime, Uoid, Uuid, WFix, ZStr,
};
use worldwire_uru::vault::VaultNode;

/// A format that can be decoded with and without a trace.
trait Format {
    fn decode<'d, 'n, T: Trace<'n>>(&self, reader: &mut Reader<'d, T>) -> Result<Vec<u8>>;
    fn encode_json(&self, json: &Json) -> Result<Vec<u8>>;
    /// The JSON of the whole tree.
    fn json(&self, tree: &Tree<'_>) -> String;
}

/// A message of one side of a service.
#[derive(Debug)]
struct Spoken(Service, Side);

impl Format for Spoken {
    fn decode<'d, 'n, T: Trace<'n>>(&self, reader: &mut Reader<'d, T>) -> Result<Vec<u8>> {
        Message::decode(self.0, self.1, reader)?.to_bytes()
    }

    fn encode_json(&self, json: &Json) -> Result<Vec<u8>> {
        Message::from_json(self.0, self.1, json)?.to_bytes()
    }

    fn json(&self, tree: &Tree<'_>) -> String {
        let mut text = String::new();
        write_children(Value::Record, tree.roots(), Style::default(), &mut text);
        text
    }
}

/// A stand-alone format.
struct Alone<F>(core::marker::PhantomData<F>);

/// Names a format independently of its lifetime.
trait Family {
    type At<'d>: Field<'d>;
}

fn bytes_of<'d>(value: &impl Field<'d>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

impl<F: Family> Format for Alone<F> {
    fn decode<'d, 'n, T: Trace<'n>>(&self, reader: &mut Reader<'d, T>) -> Result<Vec<u8>> {
        bytes_of(&<F::At<'d>>::decode(reader, "value")?)
    }

    fn encode_json(&self, json: &Json) -> Result<Vec<u8>> {
        bytes_of(&<F::At<'_>>::from_json(json.into())?)
    }

    fn json(&self, tree: &Tree<'_>) -> String {
        let mut text = String::new();
        write_node(tree.find("value").expect("a root"), Style::default(), &mut text);
        text
    }
}

/// Checks all properties of bytes that encode exactly one value.
fn holds(format: &impl Format, bytes: &[u8]) {
    let mut plain = Reader::new(bytes);
    assert_eq!(format.decode(&mut plain).unwrap(), bytes, "encodes to different bytes");
    plain.end().unwrap();

    let mut traced = Reader::traced("value", bytes, Tree::new());
    assert_eq!(format.decode(&mut traced).unwrap(), bytes, "tracing changes the value");
    assert_eq!(traced.position(), bytes.len());
    let tree = traced.finish();
    assert_eq!(tree.error(), None);
    every_byte_is_shown(&tree, bytes.len());
    every_child_lies_inside(&tree);

    for safe in [false, true] {
        let text = if safe { safe_json(&tree) } else { format.json(&tree) };
        let json: Json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        if !safe {
            let again = format.encode_json(&json).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(again, bytes, "JSON encodes to different bytes: {text}");
        }
    }
}

fn safe_json(tree: &Tree<'_>) -> String {
    let mut text = String::new();
    write_children(Value::Record, tree.roots(), Style { safe: true }, &mut text);
    text
}

/// A truncated value is incomplete, and the error does not ask for more bytes than are missing.
fn prefixes_are_incomplete(format: &impl Format, bytes: &[u8]) {
    // Long values are repetitive; a few hundred cuts are enough.
    let step = 1 + bytes.len() / 400;
    let cuts = (0..bytes.len()).step_by(step).chain(bytes.len().saturating_sub(40)..bytes.len());
    for cut in cuts {
        let error = format.decode(&mut Reader::new(&bytes[..cut])).unwrap_err();
        let needed = error.needed().unwrap_or_else(|| panic!("{cut} of {}: {error}", bytes.len()));
        let missing = bytes.len() - cut;
        assert!((1..=missing).contains(&needed), "asks for {needed} of {missing}: {error}");
        let mut traced = Reader::traced("value", &bytes[..cut], Tree::new());
        let outcome = format.decode(&mut traced);
        let (tree, outcome) = traced.conclude(outcome);
        assert_eq!(outcome.unwrap_err(), error);
        assert_eq!(tree.error(), Some(&error));
    }
}

/// Every byte belongs to the root, and no container hides bytes.
fn every_byte_is_shown(tree: &Tree<'_>, length: usize) {
    let mut covered = vec![false; length];
    let mut mark = |node: NodeRef<'_, '_>| {
        node.bytes().for_each(|at| covered[at as usize] = true);
    };
    for root in tree.roots() {
        // The scope of the fields begins after the header, so its children must too.
        match root.name() {
            "fields" => root.children().for_each(&mut mark),
            _ => mark(root),
        }
    }
    let missing = covered.iter().position(|covered| !covered);
    assert_eq!(missing, None, "a byte not covered by any node");
}

fn every_child_lies_inside(tree: &Tree<'_>) {
    fn walk(node: NodeRef<'_, '_>) {
        for child in node.children() {
            let (inner, outer) = (child.bytes(), node.bytes());
            let inside = outer.start <= inner.start && inner.end <= outer.end;
            assert!(inside, "{} {inner:?} lies outside {} {outer:?}", child.name(), node.name());
            walk(child);
        }
    }
    tree.roots().for_each(walk);
}

/// Arbitrary bytes yield the same result with and without a trace, and everything that was decoded
/// can be displayed.
fn check_arbitrary(format: &impl Format, bytes: &[u8]) {
    let mut plain = Reader::new(bytes);
    let outcome = format.decode(&mut plain);
    let mut traced = Reader::traced("value", bytes, Tree::new());
    let traced_outcome = format.decode(&mut traced);
    assert_eq!(traced_outcome, outcome, "plain and traced decode differ");
    let used = plain.position();
    if outcome.is_ok() {
        assert_eq!(traced.position(), used);
    }
    let (tree, outcome) = traced.conclude(outcome);
    every_child_lies_inside(&tree);
    let mut text = String::new();
    let style = TextStyle { ranges: true, colour: true, longest: 9, indent: 2 };
    write_tree(&tree, style, &mut text);
    assert!(text.lines().count() >= tree.roots().count());
    let shown: Result<Json, _> = serde_json::from_str(&safe_json(&tree));
    assert!(shown.is_ok(), "{shown:?}");
    match outcome {
        Ok(encoded) => {
            assert_eq!(encoded, bytes[..used], "encodes to different bytes");
            let json: Json = serde_json::from_str(&format.json(&tree)).unwrap();
            assert_eq!(format.encode_json(&json).unwrap(), encoded, "{json}");
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(error.needed().is_some(), error.clone().closed() != error);
            assert!(error.offset().is_none_or(|at| at <= bytes.len() as u64), "{error}");
        }
    }
}

/// A mutation: the kind of change, its position, and the bytes to use.
#[derive(Clone, Debug)]
enum Change {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Delete(prop::sample::Index, u8),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let edge = prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff]);
    let noise = prop::collection::vec(any::<u8>(), 1..6);
    let change = prop_oneof![
        (any::<prop::sample::Index>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (any::<prop::sample::Index>(), edge).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<prop::sample::Index>(), noise).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<prop::sample::Index>(), 1..9_u8).prop_map(|(at, count)| Change::Delete(at, count)),
    ];
    prop::collection::vec(change, 1..5)
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        if bytes.is_empty() {
            bytes.push(0);
        }
        match change {
            Change::Flip(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Change::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Change::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Change::Delete(at, count) => {
                let at = at.index(bytes.len());
                let end = (at + usize::from(*count)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

fn sample(service: Service, side: Side, number: u32, seed: u64) -> Vec<u8> {
    let message = Message::sample(service, side, number, &mut Sampler::new(seed));
    message.expect("a message of the table").to_bytes().expect("a sample fits")
}

fn every_message(mut work: impl FnMut(&Spoken, u32)) {
    for service in Service::ALL {
        for side in Side::BOTH {
            for info in table(service, side).messages {
                work(&Spoken(service, side), info.number);
            }
        }
    }
}

#[test]
fn every_message_satisfies_the_properties_at_extreme_values() {
    // Small random numbers make the sampler choose zeros, ones and maximum lengths.
    every_message(|spoken, number| {
        for seed in 0..24 {
            let bytes = sample(spoken.0, spoken.1, number, seed);
            holds(spoken, &bytes);
            if seed < 3 {
                prefixes_are_incomplete(spoken, &bytes);
            }
        }
    });
}

/// An index into the list of all messages.
fn any_message() -> impl Strategy<Value = (Service, Side, u32)> {
    let mut all = Vec::new();
    every_message(|spoken, number| all.push((spoken.0, spoken.1, number)));
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_message_satisfies_the_properties(message in any_message(), seed: u64) {
        let (service, side, number) = message;
        holds(&Spoken(service, side), &sample(service, side, number, seed));
    }

    #[test]
    fn mutated_messages_are_harmless(
        message in any_message(),
        seed: u64,
        changes in changes(),
    ) {
        let (service, side, number) = message;
        let bytes = changed(sample(service, side, number, seed), &changes);
        check_arbitrary(&Spoken(service, side), &bytes);
    }

    #[test]
    fn arbitrary_bytes_are_harmless(service in 0..4_usize, client: bool, number in 0..70_u16, tail: Vec<u8>) {
        let service = Service::ALL[service];
        let side = if client { Side::Client } else { Side::Server };
        let head = match service {
            Service::File => {
                let count = u32::try_from(tail.len() + 8).unwrap();
                [count.to_le_bytes(), u32::from(number).to_le_bytes()].concat()
            }
            _ => number.to_le_bytes().to_vec(),
        };
        check_arbitrary(&Spoken(service, side), &[head, tail].concat());
    }

    /// Valid JSON can be encoded, and encoded messages can be decoded.
    #[test]
    fn an_invalid_json_field_is_only_an_error(
        message in any_message(),
        seed: u64,
        field: prop::sample::Index,
        value in prop::sample::select(odd_values()),
    ) {
        let (service, side, number) = message;
        let spoken = Spoken(service, side);
        let bytes = sample(service, side, number, seed);
        let mut reader = Reader::traced("value", &bytes, Tree::new());
        spoken.decode(&mut reader).unwrap();
        let mut json: Json = serde_json::from_str(&spoken.json(&reader.finish())).unwrap();
        let fields = json["fields"].as_object_mut().unwrap();
        let count = fields.len();
        let field = fields.values_mut().nth(field.index(count)).unwrap();
        *field = value;
        match spoken.encode_json(&json) {
            Ok(bytes) => holds(&spoken, &bytes),
            Err(error) => {
                let refused = matches!(error.kind(), ErrorKind::Value | ErrorKind::Limit { .. });
                prop_assert!(refused, "{error:?}");
                prop_assert!(error.path_text().starts_with("fields"), "{error}");
            }
        }
    }
}

/// JSON values that are valid for some fields and not for others.
fn odd_values() -> Vec<Json> {
    let texts = ["", "x", "0x10", "-1", "127.0.0.1", "Success", "shorah \u{1f600}"];
    let long = "x".repeat(70_000);
    let mut values: Vec<Json> = texts.into_iter().chain([&*long]).map(Json::from).collect();
    values.extend([Json::Null, Json::Bool(true), Json::from(0), Json::from(u64::MAX)]);
    values.extend([Json::from(-1), Json::from(1.5), Json::Array(Box::default())]);
    values.extend([
        json!({"$hex": "00ff00"}),
        json!({"$hex": "0g"}),
        json!([{"parentId": 1}]),
        json!({}),
    ]);
    values
}

/// Checks all properties of a stand-alone format.
fn format_holds<F: Family>(seed: u64, changes: &[Change], whole_only: bool) {
    let format = Alone::<F>(core::marker::PhantomData);
    for seed in [seed, seed % 32] {
        let value = <F::At<'_>>::sample(&mut Sampler::new(seed));
        let bytes = bytes_of(&value).expect("a sample fits");
        holds(&format, &bytes);
        if !whole_only {
            prefixes_are_incomplete(&format, &bytes);
        }
        check_arbitrary_format::<F>(&changed(bytes, changes));
    }
}

/// The same properties as for messages, except that decoded values need not be in canonical form.
fn check_arbitrary_format<F: Family>(bytes: &[u8]) {
    let format = Alone::<F>(core::marker::PhantomData);
    let mut plain = Reader::new(bytes);
    let outcome = format.decode(&mut plain);
    let mut traced = Reader::traced("value", bytes, Tree::new());
    let traced_outcome = format.decode(&mut traced);
    assert_eq!(traced_outcome, outcome, "plain and traced decode differ");
    let (tree, outcome) = traced.conclude(outcome);
    let mut text = String::new();
    write_tree(&tree, TextStyle::default(), &mut text);
    if let Ok(encoded) = outcome {
        let json: Json = serde_json::from_str(&format.json(&tree)).unwrap();
        assert_eq!(format.encode_json(&json).unwrap(), encoded, "{json}");
        let mut again = Reader::new(&encoded);
        assert_eq!(format.decode(&mut again).unwrap(), encoded, "is not stable");
    }
}

macro_rules! formats {
    ($($test:ident $family:ident: $type:ty $(, $whole_only:ident)?;)*) => {
        $(
            struct $family;

            impl Family for $family {
                type At<'d> = $type;
            }
        )*

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(150))]
            $(
                #[test]
                fn $test(seed: u64, changes in changes()) {
                    let notes: &[&str] = &[$(stringify!($whole_only))?];
                    format_holds::<$family>(seed, &changes, !notes.is_empty());
                }
            )*
        }
    };
}

// Manifests and lists extend to the end, so a prefix can be complete or malformed.
formats! {
    connect_packets ConnectPackets: ConnectPacket;
    setup_packets SetupPackets: SetupPacket<'d>;
    vault_nodes VaultNodes: VaultNode<'d>;
    manifests Manifests: Manifest<'d>;
    file_lists FileLists: FileList<'d>, whole_only;
    net_age_infos NetAgeInfos: NetAgeInfo<'d>;
    edges Edges: Edge;
    scores Scores: Score<'d>;
    ranks Ranks: Rank<'d>;
    account_flags AccountFlagSets: AccountFlags;
    uoids Uoids: Uoid<'d>;
    keys Keys: Key<'d>;
    locations Locations: Location;
    sequence_numbers SequenceNumbers: SequenceNumber;
    load_masks LoadMasks: LoadMask;
    safe_strings SafeStrings: SafeString<'d>;
    safe_wstrings SafeWStrings: SafeWString<'d>;
    bit_vectors BitVectors: BitVector;
    unified_times UnifiedTimes: UnifiedTime;
    creatables Creatables: Creatable;
    uuids Uuids: Uuid;
    addresses Addresses: Ipv4;
    net_errors NetErrors: NetError;
    strings Strings: Str<'d, 40>;
    fixed_strings FixedStrings: WFix<'d, 20>;
    terminated_strings TerminatedStrings: TermStr<'d>;
    zero_strings ZeroStrings: ZStr<'d>;
    high_low_numbers HighLowNumbers: HiLo;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any text that a safe string can hold survives, in every encoding.
    #[test]
    fn safe_strings_preserve_their_text(text in "\\PC{0,40}", head in 0..16_u16, skipped: u16) {
        let made = SafeString::from(&*text);
        prop_assert_eq!(made.to_text(), &*text);
        let bytes = bytes_of(&made).unwrap();
        let read = SafeString::decode(&mut Reader::new(&bytes), "name").unwrap();
        if !read.is_ambiguous() {
            prop_assert_eq!(read.to_text(), &*text);
        }
        prop_assert_eq!(bytes_of(&read).unwrap(), &bytes[..]);
        // The other encodings: the one with a marked count, and that of 2003 with two meaningless
        // bytes.
        let count = u16::from_le_bytes([bytes[0], bytes[1]]) & 0xfff;
        let mut other = (head << 12 | count).to_le_bytes().to_vec();
        if head == 0 {
            other.extend(skipped.to_le_bytes());
        }
        other.extend(&bytes[2..]);
        holds(&Alone::<SafeStrings>(core::marker::PhantomData), &other);
    }

    #[test]
    fn bit_vectors_contain_their_bits(bits in prop::collection::btree_set(0..3000_u32, 0..40)) {
        let bits: Vec<u32> = bits.into_iter().collect();
        let set = BitVector::from_bits(&bits);
        prop_assert!(set.bits().eq(bits.iter().copied()));
        prop_assert!(set.0.last() != Some(&0));
        prop_assert!((0..3000).all(|bit| set.contains(bit) == bits.contains(&bit)));
        let longer = BitVector([set.0, vec![0]].concat());
        let bytes = bytes_of(&longer).unwrap();
        holds(&Alone::<BitVectors>(core::marker::PhantomData), &bytes);
    }

    #[test]
    fn page_numbers_split_and_join(number: u32, age in -256..0xff00_i32, page: u16) {
        if let Some((age, page)) = SequenceNumber(number).page() {
            prop_assert_eq!(SequenceNumber::from_page(age, page), Some(SequenceNumber(number)));
        }
        if let Some(number) = SequenceNumber::from_page(age, page) {
            prop_assert_eq!(number.page(), Some((age, page)));
        } else {
            prop_assert!(!(-254..0xfefe).contains(&age), "age {age} page {page}");
        }
    }

    /// A manifest file has the same content as the binary manifest.
    #[test]
    fn manifest_files_match_binary_manifests(
        names in prop::collection::vec("[a-zA-Zä€_.\\\\]{1,40}", 0..8),
        size: u32,
        flags in 0..64_u32,
    ) {
        use std::fmt::Write as _;
        let mut text = String::new();
        for name in &names {
            let digest = "0123456789abcdefABCDEF0123456789";
            let _ = writeln!(text, "{name},{name}.gz,{digest},{digest},{size},7,{flags}");
        }
        let manifest = Manifest::parse(&text).unwrap();
        prop_assert_eq!(manifest.0.len(), names.len());
        prop_assert_eq!(manifest.format().unwrap(), &*text);
        let bytes = bytes_of(&manifest).unwrap();
        let format = Alone::<Manifests>(core::marker::PhantomData);
        holds(&format, &bytes);
        let read = Manifest::decode(&mut Reader::new(&bytes), "value").unwrap();
        prop_assert_eq!(read.format().unwrap(), text);
    }

    #[test]
    fn arbitrary_manifest_files_are_harmless(text in "[a-f0-9,#\\\\ \n\r\t.]{0,200}") {
        match Manifest::parse(&text) {
            Ok(manifest) => {
                let again = manifest.format().unwrap();
                prop_assert_eq!(Manifest::parse(&again).unwrap(), manifest);
            }
            Err(errors) => {
                let lines = text.lines().count();
                prop_assert!(!errors.is_empty());
                for error in errors {
                    prop_assert!((1..=lines).contains(&error.line), "{error}");
                }
            }
        }
    }
}

/// The full error message.
fn error_text(service: Service, side: Side, bytes: &[u8]) -> String {
    let outcome = Message::decode(service, side, &mut Reader::new(bytes));
    outcome.map(Message::into_owned).map_err(Error::closed).unwrap_err().to_string()
}

#[test]
fn announced_sizes_do_not_allocate() {
    // The largest possible counts, followed by hardly any bytes, are refused or merely incomplete.
    let refs = [&[29, 0], &[0; 8][..], &0x0010_0000_u32.to_le_bytes(), &[1; 40]].concat();
    let shown = error_text(Service::Auth, Side::Server, &refs);
    assert_eq!(
        shown,
        "auth.VaultNodeRefsFetched: fields.refs at byte 14: wanted 13631488 bytes, found 40"
    );
    let ages = [&[40, 0], &[0; 8][..], &[1, 2, 0, 0]].concat();
    let shown = error_text(Service::Auth, Side::Server, &ages);
    assert_eq!(
        shown,
        "auth.PublicAgeList: fields.ages at byte 10: \
         wanted at most 512 (elements of this field), found 513"
    );
}

#[test]
fn json_that_would_decode_differently_is_refused() {
    let safe = |form: &str, extra: u16| {
        let json = json!({"text": "a", "form": form, "extra": extra, "inverted": true});
        SafeString::from_json((&json).into()).and_then(|name| bytes_of(&name))
    };
    for extra in [0, 0xf000, 0xfff] {
        let error = safe("marked", extra).unwrap_err().to_string();
        let wanted =
            format!("extra: wanted some, but not all, of the high four bits, found 0x{extra:04x}");
        assert_eq!(error, wanted);
    }
    let good = safe("marked", 0x8abc).unwrap();
    assert_eq!(good, [1, 0x80, !b'a']);
    holds(&Alone::<SafeStrings>(core::marker::PhantomData), &good);

    // A file without a name would be read as the end of the list.
    let json = json!([{"name": "a", "size": 1}, {"name": "", "size": 2}]);
    let list = FileList::from_json((&json).into()).unwrap();
    assert_eq!(bytes_of(&list).unwrap_err().to_string(), "[1]: the name is missing");
}

#[test]
fn entries_that_manifest_files_cannot_express_are_refused() {
    let entry = "a,b,0123456789abcdef0123456789abcdef,0123456789abcdef0123456789abcdef,1,2,8";
    let good = Manifest::parse(entry).unwrap();
    assert_eq!(good.format().unwrap(), format!("{entry}\n"));
    for name in ["", "a,b", "a#", "a\nb", "a\r\nb", " a", "b\t", &"x".repeat(260)] {
        let mut bad = good.clone();
        bad.0[0].download_name = ZStr::from(name);
        let error = bad.format().unwrap_err();
        assert_eq!(error.path_text(), "[0]", "{error}");
    }
    let mut bad = good;
    bad.0[0].md5 = ZStr::from("0123");
    assert!(bad.format().is_err());
}
