//! Tests what is decoded in the samples of all families.

use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::SyntheticTcp;
use worldwire_core::connection::Connection as _;
use worldwire_core::json::{Json, Style};
use worldwire_core::{Limits, NodeRef, Side};
use worldwire_dissect::filter::{Filter, Resolver};
use worldwire_dissect::{
    Definitions, Dissection, Format, Item, Keys, KiObjects, Options, Scratch, Summary,
};
use worldwire_ki::connection as ki;
use worldwire_ki::control::{Control, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::{Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::Frame;
use worldwire_ki::message::RawMessage;
use worldwire_ki::schema::classes::TypeLists;

use crate::samples::{
    ALL, Dissected, KI, Sample, TERA, URU_AGE, definitions, dissected, packets, push_all, taken_in,
};

#[test]
fn filters_for_existing_fields_are_accepted() {
    for sample in ALL {
        let limits = Limits::DEFAULT;
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
            let mut name = String::new();
            item.push_name(&mut name);
            if !name.starts_with(|first: char| first.is_alphabetic()) {
                return;
            }
            let tree = item.tree(worldwire_core::Tree::new(), &limits);
            let roots = tree.roots().map(|root| (String::new(), root));
            let mut rest: Vec<(String, NodeRef<'_, '_>)> = roots.collect();
            while let Some((above, node)) = rest.pop() {
                let path = match node.name() {
                    "" => format!("{above}[*]"),
                    name => format!("{above}[\"{name}\"]"),
                };
                rest.extend(node.children().map(|child| (path.clone(), child)));
                out.push(format!("{name} and exists({path})"));
                if let Some(field) = path.strip_prefix("[\"fields\"]").filter(|it| !it.is_empty()) {
                    out.push(format!("{name} and exists({field})"));
                }
            }
        };
        let mut filters: Vec<String> = Vec::new();
        taken_in(sample, &packets(sample)).run(&show, &mut filters, |_| ());
        filters.sort();
        filters.dedup();
        assert!(filters.len() > 40);
        let has_system = filters.iter().any(|filter| filter.contains("[\"system\"][\"name\"]"));
        let has_map = sample.data.iter().any(|(name, _)| name.starts_with("sysmsg"));
        assert_eq!(has_system, has_map);
        let definitions = definitions(sample);
        // Every check rereads the tables, so filters are checked in groups.
        for some in filters.chunks(100) {
            let filter = some.join(" or ");
            let unknown =
                Filter::parse(&filter).unwrap().unknown_fields(&Resolver::new(&definitions));
            assert!(unknown.iter().all(|field| !field.is_certain), "{unknown:?}");
        }
    }
}

#[test]
fn system_messages_have_known_fields_and_names() {
    let definitions = definitions(&TERA);
    for scope in ["", "tera.S_SYSTEM_MESSAGE and "] {
        for filter in
            ["message.system.name contains WELCOME", "exists(message.system.values[0].key)"]
        {
            let filter = Filter::parse(&format!("{scope}{filter}")).unwrap();
            assert_eq!(filter.unknown_fields(&Resolver::new(&definitions)), [], "{filter}");
        }
        let filter = format!("{scope}message.system.name == SMT_MADE_UP_WELCOM");
        let values = Filter::parse(&filter).unwrap().unknown_values(&Resolver::new(&definitions));
        assert_eq!(values[0].nearest.as_deref(), Some("SMT_MADE_UP_WELCOME"));
        assert!(!values[0].is_certain);
        let filter = format!("{scope}message.system.name == SMT_MADE_UP_WELCOME");
        assert_eq!(
            Filter::parse(&filter).unwrap().unknown_values(&Resolver::new(&definitions)),
            []
        );
    }
}

#[test]
fn filters_know_the_value_names_of_a_type_list() {
    let mut definitions = definitions(&KI);
    let mut lists = TypeLists::new();
    lists.add("ki-types.json", include_bytes!("../../../../samples/ki-types.json")).unwrap();
    let classes = Arc::new(lists.compile());
    definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
    for (field, wrong, right) in [("m_school", "Fir", "Fire"), ("m_rights", "trade", "TRADE")] {
        let unknown = |value: &str| {
            let filter = Filter::parse(&format!("CharacterInfo.object.{field} == {value}"));
            filter.unwrap().unknown_values(&Resolver::new(&definitions))
        };
        assert_eq!(unknown(wrong)[0].nearest.as_deref(), Some(right));
        assert!(!unknown(wrong)[0].is_certain);
        assert_eq!(unknown(right), []);
    }
    // Classes after `is`, with their bases.
    let filter = |text: &str| Filter::parse(text).unwrap();
    let unknown =
        filter("CharacterInfo.object is MadeUpPett").unknown_values(&Resolver::new(&definitions));
    assert_eq!(unknown[0].nearest.as_deref(), Some("MadeUpPet"));
    assert!(unknown[0].is_certain);
    for class in ["MadeUpPet", "PropertyClass", "\"class MadeUpPet\""] {
        let filter = filter(&format!("CharacterInfo.object is {class}"));
        assert_eq!(filter.unknown_values(&Resolver::new(&definitions)), [], "{class}");
    }
}

#[test]
fn the_samples_decode_completely() {
    for sample in ALL {
        let (dissected, summary) = dissected(sample, &packets(sample));
        assert_eq!(summary.conversations, sample.conversations);
        assert_eq!(summary.recognised, sample.conversations);
        assert_eq!((summary.problems, summary.gaps), (0, 0));
        assert_eq!(dissected.len() as u64, 2 * sample.conversations);
        assert_eq!(dissected.values().map(Vec::len).sum::<usize>() as u64, summary.messages);
    }
}

/// A game connection uses the names that the auth connection revealed, and reveals others itself.
/// Names never replace numbers.
#[test]
fn players_have_names() {
    let sample = &URU_AGE;
    let packets = packets(sample);
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
        let mut name = String::new();
        item.push_name(&mut name);
        let tree = item.tree(worldwire_core::Tree::new(), &limits);
        let mut line = String::new();
        Format::Json(Style::default()).write(item, &name, &tree, &mut line);
        let json: Json = serde_json::from_str(&line).unwrap();
        if json["players"].is_object() {
            out.push(format!("{name} {}", json["players"]));
            assert!(json["fields"].to_string().contains("10"), "{line}");
            let body = item.encode(&json["fields"]).unwrap();
            assert_eq!(body, item.bytes());
        }
    };
    let mut lines: Vec<String> = Vec::new();
    taken_in(sample, &packets).run(&show, &mut lines, |_| ());
    let first = r#"{"10190":"Yeesha"}"#;
    assert_eq!(lines[0], format!("auth.AcctPlayerInfo {first}"));
    assert_eq!(lines[1], format!("game.JoinAgeRequest {first}"));
    let both = r#"game.PropagateBuffer {"10190":"Yeesha","10200":"Atrus"}"#;
    assert!(lines.iter().any(|line| line == both), "{lines:?}");
}

/// Missing descriptors are named, even if others are known. The contents of messages are counted
/// without building trees.
#[test]
fn states_without_a_descriptor_are_reported() {
    let sample = &URU_AGE;
    let keys = Keys::parse(sample.keys).unwrap();
    let mut definitions = Definitions::built_in();
    definitions.add([("other.sdl", "STATEDESC Other { VERSION 1 VAR INT x[1] }")]);
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    push_all(&mut dissection, &packets(sample));
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
        let mut name = String::new();
        item.push_name(&mut name);
        item.push_inside(&mut name);
        out.push(name);
        out.extend(item.advice().map(String::from));
    };
    let mut lines: Vec<String> = Vec::new();
    dissection.run(&show, &mut lines, |_| ());
    let has = |line: &str| lines.iter().any(|it| it == line);
    assert!(has("game.PropagateBuffer plNetMsgGameMessageDirected pfKIMsg"), "{lines:?}");
    assert!(has("game.PropagateBuffer plNetMsgSDLStateBCast"), "{lines:?}");
    let advice = "with a state of Fernhollow 3 shown as bytes: supply its descriptor (.sdl files) with \
                  --data";
    assert!(has(advice), "{lines:?}");
}

#[test]
fn tera_messages_have_names_and_fields() {
    let (dissected, _) = dissected(&TERA, &packets(&TERA));
    let names = |side| -> Vec<&str> {
        let items: &Vec<(u64, String)> = &dissected[&(0, side)];
        items.iter().map(|item| item.1.as_str()).collect()
    };
    let expected = [
        "handshake.Key",
        "handshake.Key",
        "tera.C_CHECK_VERSION",
        "tera.C_LOGIN_ARBITER",
        "tera.C_CHAT",
        "tera.C_START_SKILL",
        "tera.C_START_SKILL",
    ];
    assert_eq!(names("client"), expected);
    assert_eq!(names("server")[0], "handshake.Hello");
    assert_eq!(names("server").iter().filter(|name| **name == "tera.51042").count(), 3);
    assert_eq!(names("server").last(), Some(&"tera.S_WEATHER_INFO"));
}

/// A session in which the client encrypts after the accept and sends one message of service 5.
fn encrypted() -> Vec<Vec<u8>> {
    let (client, server) = ("192.0.2.10:50009", "192.0.2.1:12000");
    let mut wire = SyntheticTcp::new(client.parse().unwrap(), server.parse().unwrap());
    let offer = ki::Connection::server(
        ki::ServerConfig::new(Duration::from_secs(1_700_000_000)).into(),
        77,
        Duration::ZERO,
    );
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(CryptoBlock(vec![1; 257].into())),
    }));
    let disconnect = RawMessage { service: 5, order: 40, payload: Vec::new().into() };
    let key = StreamKey { key: [3; 16], nonce: [4; 16] };
    let mut sealed = Vec::new();
    let frame = Frame::message(disconnect).to_bytes().unwrap();
    Sealer::new(&key, Side::Client).seal(&frame, &mut sealed, || [9; 16]);
    let mut packets = wire.open();
    packets.extend(wire.data(Side::Server, &{ offer }.poll_transmit(Side::Client).unwrap()));
    packets.extend(wire.data(Side::Client, &accept.to_bytes().unwrap()));
    packets.extend(wire.data(Side::Client, &sealed));
    packets.extend(wire.close());
    packets
}

#[test]
fn an_encrypted_ki_session_opens_with_its_key() {
    let packets = encrypted();
    let sample = |keys| Sample { capture: &[], keys, conversations: 1, busy: (0, 0), data: &[] };
    let names = |keys| -> (Vec<String>, Summary) {
        let (dissected, summary) = dissected(&sample(keys), &packets);
        (dissected[&(0, "client")].iter().map(|item| item.1.clone()).collect(), summary)
    };
    let (shown, summary) = names(
        "[[ki.stream]]\nsession = 77\nkey = \"03030303030303030303030303030303\"\n\
         nonce = \"04040404040404040404040404040404\"\n",
    );
    assert_eq!(shown, ["control.SessionAccept", "GAME.MSG_CLIENT_DISCONNECT"]);
    assert_eq!(summary.problems, 0);
    let (shown, summary) = names("[[ki.login]]\nuser = \"Merle\"\npassword = \"hunter2\"\n");
    assert_eq!(shown, ["control.SessionAccept", "problem"]);
    assert_eq!(summary.problems, 1);
}

/// The same frames, one per datagram.
fn datagrams(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let with_data = packets.iter().filter(|packet| packet.len() > 54);
    let datagram = |packet: &Vec<u8>| {
        let (mut head, payload) = (packet[..34].to_vec(), &packet[54..]);
        let length = u16::try_from(payload.len()).unwrap();
        head[16..18].copy_from_slice(&(length + 28).to_be_bytes());
        head[23] = 17;
        let ports = &packet[34..38];
        [&head, ports, &(length + 8).to_be_bytes(), &[0, 0], payload].concat()
    };
    with_data.map(datagram).collect()
}

#[test]
fn ki_frames_are_also_read_from_datagrams() {
    let names = |dissected: &Dissected| -> Vec<Vec<String>> {
        dissected.values().map(|items| items.iter().map(|item| item.1.clone()).collect()).collect()
    };
    let (stream, _) = dissected(&KI, &packets(&KI));
    let (datagrams, summary) = dissected(&KI, &datagrams(&packets(&KI)));
    assert_eq!((summary.recognised, summary.problems), (3, 0));
    // In a UDP conversation the first sender is taken for the client. Here it is the server, as its
    // offer shows.
    assert_eq!(names(&stream), names(&datagrams));
}
