//! Properties of all net messages and Plasma messages, for arbitrary values.

use crate::game_message;
use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_node};
use worldwire_core::{Classes, ErrorKind, Field, Limits, NodeRef, Reader, Sampler, Tree, Writer};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::{
    ClonePayload, Compression, GamePayload, NetFlags, NetMessage, Payload, SdlPayload,
    SharedPayload, SharedState, Stream, received,
};
use worldwire_uru::plasma_message::{AgeLink, AvatarObject, NotifyEvent, PlasmaMessage};
use worldwire_uru::safety::{Reason, Rules, check};
use worldwire_uru::types::{
    Bool8, Bool32, Bytes16, ClassIndex, ClientGuid, CountedString, Double, FixedText, Float,
    Floats, GenericType, List, Matrix44, NetGroupId, SafeString, SafeWString, UnifiedTime,
};

fn bytes_of<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).unwrap();
    writer.into_bytes()
}

fn json_of(tree: &Tree<'_>) -> Json {
    let mut text = String::new();
    write_node(tree.find("value").unwrap(), Style::default(), &mut text);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks all properties of bytes that encode exactly one value.
fn holds<'d, F: Field<'d>>(bytes: &'d [u8]) {
    let mut plain = Reader::new(bytes);
    let value = F::decode(&mut plain, "value").unwrap();
    plain.end().unwrap();
    assert_eq!(bytes_of(&value), bytes, "encodes to different bytes");
    let mut traced = Reader::traced("value", bytes, Tree::new());
    assert_eq!(F::decode(&mut traced, "value").unwrap(), value, "tracing changes the value");
    assert_eq!(traced.position(), bytes.len());
    let tree = traced.finish();
    assert_eq!(tree.error(), None);
    every_child_lies_inside(&tree);
    let json = json_of(&tree);
    let again = F::from_json((&json).into()).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(bytes_of(&again), bytes, "JSON encodes to different bytes: {json}");
}

/// A truncated value is incomplete, and the error does not ask for more bytes than are missing.
fn prefixes_are_incomplete<'d, F: Field<'d>>(bytes: &'d [u8]) {
    let step = 1 + bytes.len() / 200;
    for cut in (0..bytes.len()).step_by(step) {
        let error = F::decode(&mut Reader::new(&bytes[..cut]), "value").unwrap_err();
        let needed = error.needed().unwrap_or_else(|| panic!("{cut} of {}: {error}", bytes.len()));
        let missing = bytes.len() - cut;
        assert!((1..=missing).contains(&needed), "asks for {needed} of {missing}: {error}");
        let mut traced = Reader::traced("value", &bytes[..cut], Tree::new());
        assert_eq!(F::decode(&mut traced, "value").unwrap_err(), error);
    }
}

/// Within a layer, no child covers bytes outside its parent.
fn every_child_lies_inside(tree: &Tree<'_>) {
    fn walk(node: NodeRef<'_, '_>) {
        for child in node.children() {
            let (inner, outer) = (child.bytes(), node.bytes());
            let inside = outer.start <= inner.start && inner.end <= outer.end;
            let other = child.layer() != node.layer();
            assert!(
                inside || other,
                "{} {inner:?} outside {} {outer:?}",
                child.name(),
                node.name()
            );
            walk(child);
        }
    }
    tree.roots().for_each(walk);
}

macro_rules! formats {
    ($($test:ident: $type:ty $(, $whole_only:ident)?;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(100))]
            $(
                #[test]
                fn $test(seed: u64) {
                    let notes: &[&str] = &[$(stringify!($whole_only))?];
                    for seed in [seed, seed % 32] {
                        let bytes = bytes_of(&<$type>::sample(&mut Sampler::new(seed)));
                        holds::<$type>(&bytes);
                        if notes.is_empty() {
                            prefixes_are_incomplete::<$type>(&bytes);
                        }
                    }
                }
            )*
        }
    };
}

// Values that extend to the end of the input, and objects without a layout, are never incomplete.
formats! {
    bytes: Bytes16<'_>;
    counted_strings: CountedString<'_>;
    fixed_texts: FixedText<'_, 32>;
    floats: Float;
    doubles: Double;
    points: Floats<3>;
    booleans: Bool8;
    wide_booleans: Bool32;
    matrices: Matrix44;
    generic_values: GenericType<'_>;
    net_groups: NetGroupId;
    client_guids: ClientGuid<'_>;
    wide_texts: SafeWString<'_, 12>;
    lists_of_texts: List<i16, SafeString<'_>>;
    groups: List<i32, NetGroupId, 1>;
    age_links: AgeLink<'_>;
    shared_states: SharedState<'_>;
    game_streams: Stream<'_, GamePayload>;
    clone_streams: Stream<'_, ClonePayload>;
    sdl_streams: Stream<'_, SdlPayload>;
    shared_streams: Stream<'_, SharedPayload>;
    avatar_objects: AvatarObject<'_>, whole_only;
    events: NotifyEvent<'_>, whole_only;
    plasma_messages: PlasmaMessage<'_>, whole_only;
    net_messages: NetMessage<'_>, whole_only;
}

/// An object of every class in a table.
fn every_class<'d, C: Classes<'d> + Field<'d>>(mut work: impl FnMut(&'static str, &[u8])) {
    let known: Vec<_> = C::INFO.iter().filter(|info| info.fields.is_some()).collect();
    let mut missing: Vec<u32> = known.iter().map(|info| info.class).collect();
    for seed in 0..20_000 {
        let object = C::sample(&mut Sampler::new(seed));
        if let Some(at) = missing.iter().position(|class| *class == object.class()) {
            missing.swap_remove(at);
            work(C::info(object.class()).unwrap().name, &bytes_of(&object));
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("no sample of {missing:x?}");
}

#[test]
fn every_class_satisfies_the_properties() {
    every_class::<NetMessage<'_>>(|_, bytes| {
        holds::<NetMessage<'_>>(bytes);
        prefixes_are_incomplete::<NetMessage<'_>>(bytes);
    });
    // A linking manager's list extends to the end.
    every_class::<PlasmaMessage<'_>>(|name, bytes| {
        holds::<PlasmaMessage<'_>>(bytes);
        if !matches!(name, "plLinkingMgrMsg" | "plNotifyMsg" | "pfKIMsg") {
            prefixes_are_incomplete::<PlasmaMessage<'_>>(bytes);
        }
    });
    every_class::<AvatarObject<'_>>(|_, bytes| holds::<AvatarObject<'_>>(bytes));
    every_class::<NotifyEvent<'_>>(|_, bytes| holds::<NotifyEvent<'_>>(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The rules for writers: which payloads are compressed, and that all of them decode again.
    #[test]
    fn streams_return_their_payload(length in 0..2000_usize, noise: bool, seed: u64) {
        let mut sampler = Sampler::new(seed);
        let plain = if noise { sampler.bytes(length) } else { vec![7; length] };
        let stream = Stream::<SdlPayload>::new(plain.clone());
        let wanted = match (length, noise) {
            (..=255, _) => Compression::None,
            (_, false) => Compression::Zlib,
            (_, true) => Compression::Failed,
        };
        prop_assert_eq!(stream.compression(), wanted);
        let length = if length <= 255 { 0 } else { length };
        prop_assert_eq!(stream.uncompressed_length() as usize, length);
        let mut inflater = Inflater::new();
        prop_assert_eq!(stream.payload(&mut inflater, &Limits::DEFAULT).unwrap(), &plain[..]);
        let raw = plain.first_chunk().map(|class| u16::from_le_bytes(*class));
        prop_assert_eq!(stream.class(), raw);
    }

    /// Editing the JSON of a deflated payload changes the payload; unedited JSON yields the same
    /// bytes, whichever library compressed them.
    #[test]
    fn deflated_payloads_change_with_their_json(fill in 1..250_u8, level in 1..9_u32) {
        let plain = vec![fill; 700];
        let mut writer = Writer::new();
        writer.u32(700);
        writer.u8(2);
        let length = writer.reserve::<4>();
        writer.bytes(&plain[..2]);
        let mut deflated = Vec::with_capacity(700);
        flate2::Compress::new(flate2::Compression::new(level), true)
            .compress_vec(&plain[2..], &mut deflated, flate2::FlushCompress::Finish)
            .unwrap();
        writer.bytes(&deflated);
        writer.patch_length(length).unwrap();
        let bytes = writer.into_bytes();
        holds::<Stream<'_, SdlPayload>>(&bytes);
        let mut traced = Reader::traced("value", &bytes, Tree::new());
        Stream::<SdlPayload>::decode(&mut traced, "value").unwrap();
        let mut json = json_of(&traced.finish());
        json["sdl"]["$hex"] = "00".repeat(300).into();
        let changed = Stream::<SdlPayload>::from_json((&json).into()).unwrap();
        let mut inflater = Inflater::new();
        prop_assert_eq!(changed.payload(&mut inflater, &Limits::DEFAULT).unwrap(), [0; 300]);
    }

    /// The check never accepts undecodable messages and never reads beyond the message.
    #[test]
    fn the_check_covers_the_whole_message(seed: u64, cut: prop::sample::Index, more in 1..4_usize) {
        let message = NetMessage::sample(&mut Sampler::new(seed));
        prop_assume!(!matches!(message, NetMessage::Other(_)));
        let bytes = bytes_of(&message);
        let (mut inflater, limits) = (Inflater::new(), Limits::DEFAULT);
        let mut refused = |bytes: &[u8]| {
            check(bytes, &Rules::ADMIN, &mut inflater, &limits).err().map(|refusal| refusal.reason)
        };
        prop_assert!(refused(&bytes[..cut.index(bytes.len())]).is_some());
        prop_assert!(refused(&[&bytes, &vec![0; more][..]].concat()).is_some());
        if let Some(reason) = refused(&bytes) {
            prop_assert!(matches!(reason, Reason::Text | Reason::LocalObject), "{reason:?}");
        }
    }

    #[test]
    fn arbitrary_bytes_are_harmless(class in 0..20_usize, flags: u32, tail: Vec<u8>) {
        let class = worldwire_uru::net_message::CLASSES[class].class;
        let bytes = [&class.to_le_bytes()[..], &flags.to_le_bytes(), &tail].concat();
        let limits = Limits::DEFAULT;
        let outer = ClassIndex(class.into());
        match received(outer, &bytes, &limits) {
            Ok(message) => prop_assert_eq!(bytes_of(&message), bytes),
            Err(error) => {
                let refused = matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Limit { .. });
                prop_assert!(refused, "{error:?}");
            }
        }
    }

    /// Stamping changes only the time and the player, wherever they are.
    #[test]
    fn stamps_change_nothing_else(seed: u64, flags: u32, seconds: u32, player: u32) {
        use worldwire_uru::net_message::patch::restamp;
        let mut message = NetMessage::sample(&mut Sampler::new(seed));
        prop_assume!(!matches!(message, NetMessage::Other(_)));
        // Any combination of header fields.
        if let NetMessage::MembersListReq(request) = &mut message {
            let has = |flag: NetFlags| NetFlags(flags).contains(flag);
            request.header.flags = NetFlags(flags);
            request.header.version = has(NetFlags::HasVersion).then_some(worldwire_uru::net_message::NetVersion);
            let time = UnifiedTime { seconds: 1, microseconds: 2 };
            request.header.time_sent = has(NetFlags::HasTimeSent).then_some(time);
            request.header.context = has(NetFlags::HasContext).then_some(3);
            request.header.transaction_id = has(NetFlags::HasTransactionID).then_some(4);
            request.header.player_id = has(NetFlags::HasPlayerID).then_some(5);
            let account = worldwire_uru::types::Uuid([6; 16]);
            request.header.account_uuid = has(NetFlags::HasAcctUUID).then_some(account);
        }
        let mut bytes = bytes_of(&message);
        let time = UnifiedTime { seconds, microseconds: 9 };
        restamp(&mut bytes, time.clone(), player).unwrap();
        let after = NetMessage::decode(&mut Reader::new(&bytes), "").unwrap();
        let (before, header) = (message.header().unwrap(), after.header().unwrap());
        let mut wanted = before.clone();
        wanted.flags = wanted.flags | NetFlags::HasPlayerID;
        wanted.player_id = Some(player);
        wanted.time_sent = wanted.time_sent.map(|_| time.clone());
        prop_assert_eq!(header, &wanted);
        let (old, new) = (bytes_of(&message), bytes_of(&after));
        let rest = old.len() - 2 - bytes_of(before).len();
        prop_assert_eq!(&old[old.len() - rest..], &new[new.len() - rest..]);
        prop_assert_eq!(new, bytes);
    }
}

/// Messages that once violated a property.
#[test]
fn past_failures_stay_fixed() {
    // A linking manager's message, which extends to the end, inside another message.
    let bytes = bytes_of(&PlasmaMessage::sample(&mut Sampler::new(9_500_229_291_803_052_768)));
    holds::<PlasmaMessage<'_>>(&bytes);
}

/// A stream block with deflated bytes, as sent.
fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(plain.len() + 64);
    flate2::Compress::new(flate2::Compression::best(), true)
        .compress_vec(&plain[2..], &mut packed, flate2::FlushCompress::Finish)
        .unwrap();
    let count = u32::try_from(packed.len() + 2).unwrap().to_le_bytes();
    let length = u32::try_from(plain.len()).unwrap().to_le_bytes();
    [&length[..], &[2], &count, &plain[..2], &packed].concat()
}

/// How much of a deflated payload is shown depends on its size in the message.
#[test]
fn traces_of_deflated_payloads_are_bounded() {
    fn shown<K: Payload>(block: &[u8], limits: &Limits) -> (usize, Vec<String>, Json) {
        let mut reader = Reader::traced_within("value", block, Tree::new(), limits);
        Stream::<K>::decode(&mut reader, "value").unwrap();
        let tree = reader.finish();
        assert_eq!(tree.error(), None);
        let remarks = tree.remarks().iter().map(ToString::to_string).collect();
        (tree.len(), remarks, json_of(&tree))
    }
    // A plEnableMsg with 4096 words of set bits.
    let mut bits = vec![0x54, 2, 0, 0, 0, 0, 0];
    bits.extend([0; 12]);
    bits.extend([0, 0x10, 0, 0]);
    bits.extend([0xff; 0x4000]);
    bits.extend([0; 4]);
    let block = deflated(&bits);
    let (nodes, remarks, json) = shown::<GamePayload>(&block, &Limits::DEFAULT);
    assert!(nodes < 10, "{nodes}");
    assert!(remarks[0].contains("(values of a deflated payload)"), "{remarks:?}");
    let again = Stream::<GamePayload>::from_json((&json).into()).unwrap();
    assert_eq!(bytes_of(&again), block);
    let wide = Limits { values_per_byte: 1 << 20, ..Limits::DEFAULT };
    let (nodes, remarks, _) = shown::<GamePayload>(&block, &wide);
    assert!(nodes > 131_072 && remarks.is_empty(), "{nodes} {remarks:?}");
    // A state of zeros only.
    let block = deflated(&vec![0; 1 << 20]);
    let (_, remarks, json) = shown::<SdlPayload>(&block, &Limits::DEFAULT);
    assert!(remarks[0].contains("(inflated bytes that are shown)"), "{remarks:?}");
    assert!(json.to_string().len() < 3 * block.len());
    let wide = Limits { text_ratio: 1_100, ..Limits::DEFAULT };
    assert_eq!(shown::<SdlPayload>(&block, &wide).1, [""; 0]);
}

/// The compression given in JSON is used; contradictions are refused.
#[test]
fn the_compression_of_a_stream_follows_its_json() {
    type Block = Stream<'static, SdlPayload>;
    let block = deflated(&[7; 700]);
    let mut traced = Reader::traced("value", &block, Tree::new());
    Stream::<SdlPayload>::decode(&mut traced, "value").unwrap();
    let came = json_of(&traced.finish());
    let made = |json: &Json| Block::from_json(json.into());
    let refused = |json: &Json| made(json).unwrap_err().to_string();
    assert_eq!(bytes_of(&made(&came).unwrap()), block);
    // This one is deflated, although that makes it longer.
    let mut json = came.clone();
    json["sdl"]["$hex"] = "0102030405".into();
    let short = made(&json).unwrap();
    assert_eq!((short.compression(), short.uncompressed_length()), (Compression::Zlib, 5));
    let mut inflater = Inflater::new();
    assert_eq!(short.payload(&mut inflater, &Limits::DEFAULT).unwrap(), [1, 2, 3, 4, 5]);
    json["sdl"]["$hex"] = "01".into();
    assert_eq!(refused(&json), "wanted at least 2 bytes to compress, found 1");
    // This one is no longer deflated, so the deflated data cannot be kept.
    for other in [Compression::None, Compression::Failed, Compression::Dont] {
        let mut json = came.clone();
        json["compression"] = other.0.into();
        let wanted = format!("data: wanted no deflated data with this compression, found {other}");
        assert_eq!(refused(&json), wanted);
        json.as_object_mut().unwrap().remove("data");
        let plain = made(&json).unwrap();
        assert_eq!(plain.compression(), other);
        assert_eq!((plain.as_bytes(), plain.uncompressed_length()), (&[7; 700][..], 700));
        // Conversely, plain data can be deflated again.
        json["compression"] = "Zlib".into();
        let again = made(&json).unwrap();
        assert_eq!((again.compression(), again.uncompressed_length()), (Compression::Zlib, 700));
    }
    // A length that matches neither data nor payload, and data that does not inflate.
    let mut json = came.clone();
    json["uncompressedLength"] = 699.into();
    assert_eq!(refused(&json), "uncompressedLength: wanted 700, found 699");
    let mut json = came;
    json["data"]["$hex"] = "070700".into();
    assert!(refused(&json).starts_with("data: wanted zlib data"), "{}", refused(&json));
}

#[test]
fn nesting_is_bounded() {
    // A message with a callback that has a callback, and so on.
    let mut bytes = Vec::new();
    for _ in 0..200 {
        bytes.extend([0x06, 2, 0, 0, 0, 0, 0]);
        bytes.extend([0; 12]);
        bytes.extend([1, 0, 0, 0]);
    }
    let error = PlasmaMessage::decode(&mut Reader::new(&bytes), "message").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "depth", .. }), "{error}");
    let (mut inflater, limits) = (Inflater::new(), Limits::DEFAULT);
    let message = game_message(&bytes);
    let error = check(&message, &Rules::ADMIN, &mut inflater, &limits).unwrap_err();
    assert!(matches!(error.error().kind(), ErrorKind::Limit { name: "depth", .. }), "{error}");
}

#[test]
fn names_of_classes_agree() {
    for info in worldwire_uru::net_message::CLASSES {
        let known = ClassIndex(info.class.into()).name();
        let layout = info.layout == worldwire_uru::net_message::NetClassLayout::Known;
        assert_eq!(known, layout.then_some(info.name), "{}", info.name);
    }
    assert_eq!(SdlPayload::NAME, "SDL");
}
