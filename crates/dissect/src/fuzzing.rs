//! Fuzz targets of dissection.

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{Target, render, sample_file};
use worldwire_core::text::TextStyle;
use worldwire_core::{Limits, Side};

use crate::filter::fuzzing::filter;
use crate::registry::definitions;
use crate::{
    Codec, CodecOptions, Dissection, Families, Format, Item, Keys, Options, Scratch, TextForm,
};

/// Dissects any bytes as a capture, to text and JSON.
///
/// # Panics
/// If a line of JSON is invalid, a brief line is long or has control characters, a whole message has
/// no whole tree, or a panic was caught.
pub fn dissect(data: &[u8]) {
    let limits = worldwire_capture::fuzzing::SMALL;
    let Ok(mut capture) = CaptureReader::new(data, &limits) else { return };
    let families = Families::standard();
    let family = families.iter().nth(data.len() % (2 * families.iter().count()));
    let definitions = definitions().clone();
    let wire = Some(data.len() as u64 % 3);
    let options = Options { definitions, family, wire, limits, ..Options::default() };
    let mut dissection = Dissection::new(options);
    while let Ok(Some(record)) = capture.next() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        let tree = item.tree(worldwire_core::Tree::new(), &limits);
        render(&tree, Style::default());
        if let Some(message) = item.message() {
            assert_eq!(message.is_whole(), tree.error().is_none(), "{:?}", tree.error());
        }
        Format::Json(Style::default()).write(item, &scratch.name, &tree, out);
        let style = TextStyle { ranges: true, ..TextStyle::default() };
        for form in [TextForm::Fields, TextForm::Info { width: Some(data.len() % 200) }] {
            let text = Format::Text { form, style, time: true };
            text.write(item, &scratch.name, &tree, &mut String::new());
        }
        let mut info = String::new();
        item.push_info(&scratch.name, &tree, &mut info);
        assert!(info.len() < 4_096 && !info.contains(char::is_control), "{info:?}");
    };
    let mut out = String::new();
    dissection.run(&show, &mut out, |_| ());
    for line in out.lines() {
        assert!(!line.contains(crate::defect::REPORT), "{line}");
        if let Err(error) = serde_json::from_str::<Json>(line) {
            panic!("{error}: {line}");
        }
    }
}

/// Runs any bytes through a codec. The first byte selects it; the rest is decoded, shown and
/// encoded from its JSON.
///
/// # Panics
/// If decoded data does not encode to the same bytes.
pub fn codec(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let count = Codec::all().count();
    let Some(codec) = Codec::all().nth(usize::from(choice & 0x7f) % count) else { return };
    let from = if choice & 0x80 == 0 { Side::Client } else { Side::Server };
    let (keys, limits) = (Keys::none(), Limits::DEFAULT);
    let definitions = definitions();
    let options = CodecOptions { from, keys: &keys, definitions, limits: &limits };
    let tree = codec.decode(data, &options);
    render(&tree, Style::default());
    let mut text = String::new();
    codec.write_json(&tree, from, Style::default(), &mut text);
    let json: Json = match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(error) => panic!("{error}: {text}"),
    };
    if tree.error().is_some() {
        return;
    }
    let again = codec.encode(json.clone(), &options);
    let again = again.unwrap_or_else(|error| panic!("{}: {error}: {text}", codec.name));
    if codec.name == "ki.nav" && worldwire_ki::file::nav::NavFile::is_compressed(data, &limits) {
        // Compressed by another program, so only the content can be compared.
        let mut plain = String::new();
        codec.write_json(&codec.decode(&again, &options), from, Style::default(), &mut plain);
        assert_eq!(plain, text);
        return;
    }
    // Game messages lose uninitialised memory, so only the content can be compared.
    if codec.name.starts_with("uru.game-") {
        assert_eq!(again.len(), data.len(), "{}", codec.name);
        let mut plain = String::new();
        codec.write_json(&codec.decode(&again, &options), from, Style::default(), &mut plain);
        assert_eq!(plain, text);
        return;
    }
    // Empty lists have several encodings; everything else has one.
    let lists = matches!(codec.name, "uru.manifest" | "uru.file-list");
    assert!(again == data || (lists && data.len() <= 4), "{}: {text}", codec.name);
}

fn codec_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (index, codec) in (0_u8..).zip(Codec::all()) {
        seeds.push(vec![index, 1, 0, 0x96, 3, 0, 0]);
        seeds.extend(mxo_seeds(codec.name).into_iter().map(|(from, bytes)| {
            let side = if from == Side::Server { 0x80 } else { 0 };
            [&[index | side][..], &bytes].concat()
        }));
        if codec.name == "tera.packet" {
            let text = "@1\u{b}key\u{b}value\u{b}odd\0".encode_utf16();
            let text: Vec<u8> = text.flat_map(u16::to_le_bytes).collect();
            let head = [u8::try_from(text.len() + 6).unwrap_or(0), 0, 7, 0, 6, 0];
            seeds.push([&[index][..], &head, &text].concat());
            seeds.push(vec![index, 12, 0, 5, 0, 1, 0, 0, 0, 8, 0, 0, 0]);
            seeds.push(vec![index, 18, 0, 6, 0, 1, 0, 12, 0, 2, 0, 0, 0, 0, 0, b'x', 0, 0, 0]);
        }
        let targets = worldwire_ki::fuzzing::targets()
            .chain(worldwire_mxo::fuzzing::targets())
            .chain(worldwire_uru::fuzzing::targets());
        for target in targets {
            let wanted = codec.name.replace(['.', '-'], "_");
            if target.name.starts_with(&wanted) {
                let side = if target.name.ends_with("_server") { 0x80 } else { 0 };
                let seed = |bytes: Vec<u8>| [&[index | side][..], &bytes].concat();
                seeds.extend((target.seeds)().into_iter().map(seed));
            }
        }
    }
    seeds
}

/// MxO blobs. The family's own fuzz targets read only their content.
fn mxo_seeds(codec: &str) -> Vec<(Side, Vec<u8>)> {
    use worldwire_core::Field as _;
    use worldwire_mxo::file::PublicKeyFile;
    use worldwire_mxo::frame::{Channel, Datagram, Packet, RpcMessage, Section, TcpFrame};
    use worldwire_mxo::login::{AuthProof, AuthSecret, LoginMessage, MarginSecret};

    let door = [
        1, 0, 0x0c, 0x9f, 1, 1, 0xcd, 0xab, 1, 0x80, 0x40, 0x34, 8, 0, 0, 3, 0, 0, 3, 0, 1, 0x80,
        2, 0x38, 8, 0, 0, 0, 0,
    ];
    let mut seeds = Vec::new();
    for (seed, from) in (0..24).zip(Side::BOTH.into_iter().cycle()) {
        let mut sampler = worldwire_core::Sampler::new(seed);
        let mut writer = worldwire_core::Writer::new();
        let login = |channel, sampler: &mut _| LoginMessage::sample(sampler, channel, from);
        let written = match codec {
            "mxo.auth" => login(Channel::Auth, &mut sampler).encode(&mut writer),
            "mxo.auth-proof" => AuthProof::sample(&mut sampler).encode(&mut writer),
            "mxo.auth-secret" => AuthSecret::sample(&mut sampler).encode(&mut writer),
            "mxo.datagram" => Datagram::sample(&mut sampler).encode(&mut writer),
            "mxo.margin" => login(Channel::Margin, &mut sampler).encode(&mut writer),
            "mxo.margin-secret" => MarginSecret::sample(&mut sampler).encode(&mut writer),
            "mxo.public-key" => PublicKeyFile::sample(&mut sampler).encode(&mut writer),
            "mxo.objects" => {
                writer.bytes(&[3]);
                writer.bytes(&door);
                Ok(())
            }
            "mxo.packet" => {
                let mut packet = Packet::sample(&mut sampler);
                if seed % 3 == 0 {
                    packet.sections.insert(0, Section::Objects(door[..].into()));
                }
                packet.encode(&mut writer)
            }
            "mxo.rpc" => RpcMessage::sample(&mut sampler).encode(&mut writer),
            "mxo.tcp-frame" => TcpFrame::sample(&mut sampler).encode(&mut writer),
            _ => return seeds,
        };
        if written.is_ok() {
            seeds.push((from, writer.into_bytes()));
        }
    }
    seeds
}

fn captures() -> Vec<Vec<u8>> {
    let samples = [
        "ki-login.pcapng",
        "ki-server.pcapng",
        "mxo-crowd.pcapng",
        "mxo-world.pcapng",
        "tera-login.pcapng",
        "uru-age.pcapng",
        "uru-games.pcapng",
        "uru-login.pcapng",
    ];
    let generated = worldwire_capture::fuzzing::TARGETS[0].seeds;
    samples.into_iter().map(sample_file).chain(generated()).collect()
}

fn filters() -> Vec<Vec<u8>> {
    let texts = [
        "auth.* and result != 0",
        "fields.accountName == \"x\" or not transId in {1, 5..9}",
        "refs[3].parentId == 5 && !(name ~ \"^a.c$\")",
        "challengeHash contains 98:53:f1 or payload == hex\"00ff\"",
        "time < 1.5e3 and accountFlags has Admin and x == null",
        "any contains \"x\" and not any contains 00:ff and elapsed > 1 and plNetMsgVoice",
        "message.playerId == 5 or playerId in {1, 2} or stream.payload[0].text != x",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// All targets of this crate.
pub static TARGETS: &[Target] = &[
    Target { name: "dissect_capture", run: dissect, seeds: captures },
    Target { name: "dissect_codec", run: codec, seeds: codec_seeds },
    Target { name: "dissect_filter", run: filter, seeds: filters },
];
