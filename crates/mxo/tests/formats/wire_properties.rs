//! Property tests for every message and format.

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{Reader, Result, Sampler, Side, Tree, Value, Writer};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Channel, Datagram, MarginFrame, MarginText, Packet, TcpFrame};
use worldwire_mxo::login::LoginMessage;

fn written(encode: impl FnOnce(&mut Writer) -> Result<()>) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer).unwrap();
    writer.into_bytes()
}

fn json(tree: &Tree<'_>, style: Style) -> Json {
    let mut text = String::new();
    write_children(Value::Record, tree.roots(), style, &mut text);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks the round trip from bytes to a value, to JSON, to a value and back to bytes, with and
/// without a trace, and that no prefix decodes to a value.
macro_rules! round_trips {
    ($value:expr, |$reader:ident| $decode:expr, |$json:ident| $from_json:expr) => {{
        let value = $value;
        let bytes = written(|writer| value.encode(writer));
        let mut plain = Reader::new(&bytes);
        let $reader = &mut plain;
        prop_assert_eq!(&$decode.unwrap(), &value);
        prop_assert_eq!(plain.remaining(), 0);
        let mut traced = Reader::traced("data", &bytes, Tree::new());
        let $reader = &mut traced;
        prop_assert_eq!(&$decode.unwrap(), &value);
        let tree = traced.finish();
        for style in [Style::default(), Style { safe: true }] {
            let $json = json(&tree, style);
            prop_assert_eq!(&$from_json.unwrap(), &value, "{}", $json);
        }
        bytes
    }};
}

proptest! {
    #[test]
    fn datagrams(seed: u64) {
        round_trips!(
            Datagram::sample(&mut Sampler::new(seed)),
            |reader| Datagram::decode(reader),
            |json| Datagram::from_json(&json)
        );
    }

    #[test]
    fn packets(seed: u64, from in prop_oneof![Just(None), Just(Some(Side::Client)), Just(Some(Side::Server))]) {
        let bytes = round_trips!(
            Packet::sample(&mut Sampler::new(seed)),
            |reader| Packet::decode(reader, from),
            |json| Packet::from_json(&json, from)
        );
        for cut in 0..bytes.len() {
            prop_assert!(Packet::decode(&mut Reader::new(&bytes[..cut]), from).is_err());
        }
    }

    #[test]
    fn login_messages(seed: u64, margin: bool, server: bool) {
        let channel = if margin { Channel::Margin } else { Channel::Auth };
        let from = if server { Side::Server } else { Side::Client };
        round_trips!(
            LoginMessage::sample(&mut Sampler::new(seed), channel, from),
            |reader| LoginMessage::decode(reader, channel, from),
            |json| LoginMessage::from_json(&json, channel, from)
        );
    }

    #[test]
    fn tcp_frames(seed: u64) {
        let bytes = round_trips!(
            TcpFrame::sample(&mut Sampler::new(seed)),
            |reader| TcpFrame::decode(reader),
            |json| TcpFrame::from_json(&json)
        );
        for cut in 0..bytes.len() {
            let error = TcpFrame::decode(&mut Reader::new(&bytes[..cut])).unwrap_err();
            prop_assert!(error.needed().is_some(), "{}", error);
        }
        round_trips!(
            MarginFrame::sample(&mut Sampler::new(seed)),
            |reader| MarginFrame::decode(reader),
            |json| MarginFrame::from_json(&json)
        );
    }

    #[test]
    fn margin_messages_are_encrypted_and_decrypted(time: u32, body in prop::collection::vec(any::<u8>(), 1..300)) {
        let key = SessionKey::new(&[3; 16]);
        let text = MarginText { time, body: body.into() };
        let frame = text.seal(&key, &[9; 16]).unwrap();
        let sealed = MarginFrame::decode(&mut Reader::new(&frame.body)).unwrap();
        let MarginFrame::Sealed { iv, cipher } = sealed else { panic!("not encrypted") };
        let plain = key.open(&iv, &cipher).unwrap();
        round_trips!(
            MarginText::decode(&mut Reader::new(&plain)).unwrap(),
            |reader| MarginText::decode(reader),
            |json| MarginText::from_json(&json)
        );
        prop_assert_eq!(MarginText::decode(&mut Reader::new(&plain)).unwrap(), text);
    }
}
