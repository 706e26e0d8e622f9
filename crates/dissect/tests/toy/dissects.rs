//! Dissects captures of the toy, with any number of threads and any batch size. Also tests its
//! filters, codecs and keys.

use worldwire_core::json::{Json, Style, json};
use worldwire_core::text::TextStyle;
use worldwire_core::{Limits, Sampler, Side};
use worldwire_dissect::filter::{Filter, Resolver};
use worldwire_dissect::{
    CodecOptions, Definitions, Dissection, Format, Item, Keys, Options, Scratch, Summary, TextForm,
};

use crate::family::families;
use crate::message::{Channel, Message};
use crate::talk::{Order, packets, push};

/// All output for a capture: text and JSON lines.
fn shown(packets: &[Vec<u8>], batch: usize, threads: usize, keys: Keys) -> (String, Summary) {
    let definitions = Definitions::built_in_for(families());
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        scratch.name.clear();
        item.push_name(&mut scratch.name);
        let tree = item.tree(worldwire_core::Tree::new(), &limits);
        let style = TextStyle::default();
        Format::Text { form: TextForm::Fields, style, time: true }.write(
            item,
            &scratch.name,
            &tree,
            out,
        );
        Format::Json(Style::default()).write(item, &scratch.name, &tree, out);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut out = String::new();
    for (number, data) in (1..).zip(packets) {
        push(&mut dissection, number, data);
        if number % batch as u64 == 0 {
            pool.install(|| dissection.run(&show, &mut out, |_| ()));
        }
    }
    dissection.end();
    pool.install(|| dissection.run(&show, &mut out, |_| ()));
    (out, dissection.summary())
}

#[test]
fn threads_and_batches_do_not_change_the_output() {
    for order in [Order::StreamFirst, Order::DatagramsFirst] {
        let packets = packets(7, order);
        let (whole, summary) = shown(&packets, usize::MAX, 1, Keys::none());
        assert_eq!((summary.conversations, summary.recognised), (2, 2), "{whole}");
        assert_eq!((summary.messages, summary.problems), (11, 0), "{whole}");
        for part in ["step.Moved", "why: \"bored\"", "toy.77", "\"label\":\"a box\"", "Fragile"] {
            assert!(whole.contains(part), "{part}: {whole}");
        }
        for (batch, threads) in [(1, 1), (2, 2), (5, 1), (usize::MAX, 4)] {
            assert_eq!(shown(&packets, batch, threads, Keys::none()).0, whole, "{batch}");
        }
    }
}

#[test]
fn many_sessions_learn_their_keys_in_the_order_of_the_capture() {
    let orders = [Order::StreamFirst, Order::DatagramsFirst];
    let mut rest: Vec<_> = (0..60)
        .map(|session| packets(session, orders[usize::from(session) % 2]).into_iter())
        .collect();
    // Packets of all sessions, interleaved.
    let mut sampler = Sampler::new(5);
    let mut mixed = Vec::new();
    while !rest.is_empty() {
        let pick = usize::try_from(sampler.below(rest.len() as u64)).unwrap();
        match rest[pick].next() {
            Some(packet) => mixed.push(packet),
            None => drop(rest.swap_remove(pick)),
        }
    }
    let (whole, summary) = shown(&mixed, usize::MAX, 1, Keys::none());
    assert_eq!((summary.conversations, summary.recognised), (120, 120));
    assert_eq!((summary.messages, summary.problems), (60 * 11, 0));
    for (batch, threads) in [(1, 1), (3, 4), (100, 2), (usize::MAX, 4)] {
        assert!(shown(&mixed, batch, threads, Keys::none()).0 == whole, "{batch}");
    }
}

#[test]
fn a_missing_key_is_reported_and_a_key_file_helps() {
    let packets: Vec<Vec<u8>> = packets(7, Order::DatagramsFirst).drain(..3).collect();
    let (text, summary) = shown(&packets, usize::MAX, 1, Keys::none());
    assert_eq!((summary.messages, summary.problems), (0, 1));
    assert!(text.contains("wanted the key of session 7, found none for 3 datagrams"), "{text}");
    assert_eq!(shown(&packets, 1, 1, Keys::none()).0, text);
    let keys = Keys::parse_for(families(), "[toy.step]\n7 = \"0107a55a\"\n").unwrap();
    let (_, summary) = shown(&packets, usize::MAX, 1, keys);
    assert_eq!((summary.messages, summary.problems), (3, 0));
    let error = Keys::parse_for(families(), "[toy.step]\n7 = odd\n").unwrap_err().to_string();
    assert_eq!(error, "line 2, column 1: must have the form 7 = \"01020304\"");
}

#[test]
fn items_can_be_collected_as_values() {
    let definitions = Definitions::built_in_for(families());
    let mut dissection = Dissection::new(Options { definitions, ..Options::default() });
    for (number, data) in (1..).zip(&packets(7, Order::DatagramsFirst)) {
        push(&mut dissection, number, data);
    }
    dissection.end();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(u64, Side, String)>| {
        let mut name = String::new();
        item.push_name(&mut name);
        out.push((item.stamp.stream, item.from, name));
    };
    let mut items = Vec::new();
    dissection.run(&show, &mut items, |_| ());
    let of_udp = items.iter().filter(|(stream, ..)| *stream == 0);
    let names: Vec<&str> = of_udp.map(|(_, _, name)| name.as_str()).collect();
    assert_eq!(names, ["opened", "step.Step", "step.Moved", "step.Step"]);
    let door = items.iter().position(|(.., name)| name == "toy.DatagramKey").unwrap();
    assert_eq!(items[door + 1].2, "step.Step", "it is read right after its key");
}

#[test]
fn filters_know_the_names_of_the_toy() {
    let definitions = Definitions::built_in_for(families());
    for good in ["toy.Say and text == \"x\"", "Step and x < 0", "Parcel and content.label == \"b\""]
    {
        let filter = Filter::parse(good).unwrap();
        assert!(filter.unknown_names(&Resolver::new(&definitions)).is_empty(), "{good}");
        let unknown = filter.unknown_fields(&Resolver::new(&definitions));
        assert!(unknown.is_empty(), "{good}: {unknown:?}");
    }
    let filter = Filter::parse("toy.Sai and txet == \"x\"").unwrap();
    assert_eq!(
        filter.unknown_names(&Resolver::new(&definitions)),
        [("toy.Sai", Some("toy.Say".to_owned()))]
    );
    let filter = Filter::parse("toy.Say and txet == \"x\"").unwrap();
    let unknown = filter.unknown_fields(&Resolver::new(&definitions));
    assert!(unknown.iter().any(|field| field.is_certain), "{unknown:?}");
}

#[test]
fn codecs_decode_and_encode_by_name() {
    let mut definitions = Definitions::built_in_for(families());
    let diagnostics = definitions.add([("more.toy", "flag 4 Heavy")]);
    assert_eq!(diagnostics, Some(Vec::new()));
    assert!(definitions.may_be_in("more.toy"));
    assert_eq!(definitions.add([("bad.toy", "flog")]).unwrap().len(), 1);
    let (keys, limits) = (Keys::none(), Limits::DEFAULT);
    let mut sampler = Sampler::new(3);
    for (name, channel) in [("toy.stream", Channel::Stream), ("toy.step", Channel::Steps)] {
        let codec = families().codec(name).unwrap();
        for round in 0..200 {
            let from = Side::BOTH[round % 2];
            let bytes = Message::sample(channel, from, &mut sampler).to_bytes().unwrap();
            let options =
                CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
            let tree = codec.decode(&bytes, &options);
            assert!(tree.error().is_none(), "{:?} {bytes:?}", tree.error());
            let mut json = String::new();
            codec.write_json(&tree, from, Style::default(), &mut json);
            let parsed: Json = serde_json::from_str(&json).unwrap();
            assert_eq!(codec.encode(parsed, &options).unwrap(), bytes, "{json}");
        }
    }
    let codec = families().codec("toy.stream").unwrap();
    let json = json!({
        "from": "server", "number": 3,
        "fields": {"content": {"flags": ["Heavy"], "label": "x"}},
    });
    let options = CodecOptions {
        from: Side::Client,
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    assert_eq!(codec.encode(json, &options).unwrap(), [3, 2, 0, 0, 0, 4, b'x']);
    let error = families().codec("toy.strem").unwrap_err().to_string();
    assert!(error.contains("did you mean \"toy.stream\"?"), "{error}");
}
