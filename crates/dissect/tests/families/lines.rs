//! Every JSON line that a dissection writes encodes to the message it shows.

use worldwire_core::json::{Style, parse};
use worldwire_core::{Limits, Side, Tree};
use worldwire_dissect::{CodecOptions, Definitions, Format, Item, Keys, Line, Scratch};

use crate::samples::{KI, MXO, Sample, TERA, URU, definitions, packets, taken_in};

/// Samples, and their setup steps that are not messages.
const SAMPLES: [(Sample, &[&str]); 4] =
    [(URU, &[]), (KI, &["data.empty"]), (MXO, &[]), (TERA, &["handshake.Hello", "handshake.Key"])];

/// A JSON line, with the item's name, its body and all of its bytes.
type Shown = (String, String, Vec<u8>, Vec<u8>);

fn shown(sample: &Sample, style: Style) -> Vec<Shown> {
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Shown>| {
        let mut name = String::new();
        item.push_name(&mut name);
        let tree = item.tree(Tree::new(), &limits);
        let mut line = String::new();
        Format::Json(style).write(item, &name, &tree, &mut line);
        out.push((line, name, item.body().to_vec(), item.bytes().to_vec()));
    };
    let mut out = Vec::new();
    taken_in(sample, &packets(sample)).run(&show, &mut out, |_| ());
    out
}

#[test]
fn unchanged_lines_encode_to_the_original_bytes() {
    for (sample, no_messages) in &SAMPLES {
        let (keys, definitions) = (Keys::parse(sample.keys).unwrap(), definitions(sample));
        let limits = Limits::DEFAULT;
        let options = CodecOptions {
            from: Side::Client,
            keys: &keys,
            definitions: &definitions,
            limits: &limits,
        };
        let mut encoded = 0;
        for safe in [false, true] {
            for (text, name, body, whole) in shown(sample, Style { safe }) {
                let json = parse(&text).unwrap();
                let Some(line) = Line::parse(&json).unwrap() else {
                    assert!(whole.is_empty(), "{text}");
                    continue;
                };
                match line.encode(&options).unwrap() {
                    Some(bytes) => {
                        assert!(bytes == body || bytes == whole, "{text}: {bytes:02x?}");
                        encoded += 1;
                    }
                    None => assert!(no_messages.contains(&&*name), "{text}"),
                }
            }
        }
        assert!(encoded > 20, "{encoded}");
    }
}

/// No message fits this definition, so each line contains the bytes.
#[test]
fn undecodable_messages_encode_to_the_original_bytes() {
    let mut sample = TERA;
    let long = (0..500).map(|number| format!("int64 a{number}\n")).collect::<String>();
    let long: &'static str = Box::leak(long.into_boxed_str());
    sample.data = Box::leak(Box::new([sample.data[0], ("S_SPAWN_USER.9.def", long)]));
    let (keys, definitions, limits) = (Keys::none(), definitions(&sample), Limits::DEFAULT);
    let options = CodecOptions {
        from: Side::Client,
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let lines = shown(&sample, Style::default());
    let broken: Vec<_> = lines.iter().filter(|(text, ..)| text.contains(",\"error\":")).collect();
    assert!(!broken.is_empty());
    for (text, name, body, _) in broken {
        assert_eq!(name, "tera.S_SPAWN_USER");
        let json = parse(text).unwrap();
        let line = Line::parse(&json).unwrap().unwrap();
        assert_eq!(line.encode(&options).unwrap().as_deref(), Some(&body[..]));
    }
}

#[test]
fn lines_that_are_not_messages_are_refused() {
    let (keys, definitions, limits) = (Keys::none(), Definitions::built_in(), Limits::DEFAULT);
    let options = CodecOptions {
        from: Side::Client,
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let encode = |text: &str| {
        let json = parse(text).unwrap();
        Line::parse(&json)
            .and_then(|line| Ok(line.map(|line| line.encode(&options)).transpose()?.flatten()))
    };
    let wrong = |text: &str| encode(text).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            "[]",
            "{}",
            r#"{"name":"auth.PingRequest"}"#,
            r#"{"name":"auth.PingRequest","from":"both"}"#,
            r#"{"name":"auth.PingRequest","from":"client"}"#,
            r#"{"name":"auth.PingRequest","from":"client","fields":{}}"#,
            r#"{"name":"auth.PingRequest","from":"client","family":"urru","fields":{}}"#,
            r#"{"name":"auth.PingRequest","from":"client","family":"uru","fields":{}}"#,
            r#"{"name":"auth.PingRequest","from":"client","family":"uru","fields":{},"error":""}"#,
            r#"{"name":"vault.Ping","from":"client","family":"uru","fields":{}}"#,
            r#"{"name":"LOGIN.MSG_NONE","from":"client","family":"ki","fields":{}}"#,
            r#"{"name":"tera.S_NONE","from":"server","family":"tera","fields":{}}"#,
            r#"{"name":"game.Objects","from":"server","family":"mxo","fields":{}}"#,
        ]
        .map(wrong)
        .join("\n"),
        @r#"
    wanted a line of `dissect --json`, found []
    wanted a line of `dissect --json`, found a line without `name`
    wanted a line of `dissect --json`, found a line without `from`
    from: wanted "client" or "server", found "both"
    wanted a line of `dissect --json`, found a line without `fields`
    family: the line does not name a family
    family: unknown family "urru"; did you mean "uru"?
    auth.PingRequest: fields.pingTimeMs: is missing
    auth.PingRequest: error: the message could not be decoded, and without `payload` its bytes are lost
    vault.Ping: no codec can encode the message `vault.Ping`
    ki.dml: order: unknown message "LOGIN.MSG_NONE"; supply this revision's message XML with --data
    tera.packet: opcode: wanted a name in the opcode map, found "S_NONE"; supply definitions (.def) and the opcode map with --data
    mxo.packet: sections: is missing
    "#
    );
    let note = r#"{"name":"gap","from":"client","family":"uru","fields":{"what":"12 bytes"}}"#;
    assert_eq!(encode(note), Ok(None));
    // An edited line need not have a position.
    let ping = r#"{"family":"uru","from":"client","name":"gatekeeper.PingRequest",
        "fields":{"transId":3,"pingTimeMs":0,"payload":{"$hex":""}}}"#;
    assert_eq!(encode(ping).unwrap().unwrap().len(), 14);
}
