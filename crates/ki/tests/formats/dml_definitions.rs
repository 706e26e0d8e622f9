//! Diagnostics about definitions, and about payloads that do not match them.

use worldwire_core::json::{Given, Json, json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Reader, Result, Tree, TreeBuilder};
use worldwire_ki::message::Values;
use worldwire_ki::schema::{Mode, Protocols, load};

fn reported(xml: &str) -> Vec<String> {
    let loaded = load("Game.xml", xml.as_bytes(), Mode::Lenient);
    loaded.diagnostics.iter().map(ToString::to_string).collect()
}

const HEAD: &str = "<A>\n<_ProtocolInfo><RECORD><ServiceID>9</ServiceID><ProtocolType>T</ProtocolType>\
<ProtocolVersion>1</ProtocolVersion><ProtocolDescription/></RECORD></_ProtocolInfo>\n";

#[test]
fn irregularities_are_reported_at_their_position() {
    let xml = format!(
        "{HEAD}<M>\n<RECORD>\n<F TPYE=\"FLT\"/>\n  <K TYPE=\"USHORT\">x</K>\n<GlobalID/>\n\
         <Q TYPE=\"STRR\"/>\n<N></N>\n</RECORD></M>\n astray\n<E></E>\n</A>"
    );
    assert_eq!(
        reported(&xml),
        [
            "Game.xml:5:4: warning: attribute TPYE is read as TYPE (write TYPE)",
            "Game.xml:6:4: warning: \"x\" is not a valid USHRT; the default is 0",
            "Game.xml:6:6: warning: alias USHORT (write USHRT)",
            "Game.xml:7:2: warning: untyped GlobalID is read as GID (write TYPE=\"GID\")",
            "Game.xml:8:4: warning: unknown type \"STRR\"; Q is dropped (did you mean STR?)",
            "Game.xml:9:2: warning: field without type: N dropped",
            "Game.xml:11:2: warning: stray text between elements",
            "Game.xml:12:2: warning: message without RECORD: E is skipped (it is not assigned an \
             order number)",
        ]
    );
}

#[test]
fn names_with_an_underscore_need_noxfer() {
    let field = |attributes: &str| {
        reported(&format!(
            "{HEAD}<M>\n<RECORD>\n<_Lead TYPE=\"INT\"{attributes}>1</_Lead>\n\
             <_MsgHandler TYPE=\"STR\"{attributes}>h</_MsgHandler>\n</RECORD></M></A>"
        ))
    };
    assert_eq!(field(" NOXFER=\"TRUE\""), [""; 0]);
    for attributes in ["", " NOXFER=\"FALSE\""] {
        assert_eq!(
            field(attributes),
            [
                "Game.xml:5:2: warning: _Lead is sent although its name begins with _ (add \
                 NOXFER=\"TRUE\" if it must not be sent)",
                "Game.xml:6:2: warning: _MsgHandler lacks NOXFER=\"TRUE\", but is never sent (add \
                 NOXFER=\"TRUE\")",
            ]
        );
    }
}

#[test]
fn errors_name_what_is_invalid() {
    assert_eq!(
        reported("<A><M/></A>"),
        ["Game.xml:1:1: error: no _ProtocolInfo (a message definition contains _ProtocolInfo \
             with a ServiceID)"]
    );
    let two = |a: &str, b: &str| {
        format!("{HEAD}<X><RECORD>{a}</RECORD></X>\n<Y><RECORD>{b}</RECORD></Y></A>")
    };
    let one = "<_MsgOrder NOXFER=\"TRUE\">1</_MsgOrder>";
    assert_eq!(
        reported(&two(one, one)),
        ["Game.xml:4:2: error: Y and X both have order 1 (give one of them a different number)"]
    );
    // A stray number causes a warning; the service still loads.
    for (mode, level) in [(Mode::Lenient, "warning"), (Mode::Strict, "error")] {
        let loaded = load("Game.xml", two("", one).as_bytes(), mode);
        assert_eq!(
            loaded.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [format!(
                "Game.xml:4:2: {level}: Y states order 1, but the order of the tags assigns 2 to \
                 it, and 1 to X (the order of tags is used; number all messages or none)"
            )]
        );
        let orders = loaded.protocol.map(|protocol| {
            let messages = protocol.messages().iter();
            messages.map(|message| (message.tag.to_string(), message.order)).collect::<Vec<_>>()
        });
        let sorted = vec![("X".to_owned(), 1), ("Y".to_owned(), 2)];
        assert_eq!(orders, (mode == Mode::Lenient).then_some(sorted));
    }
    let zero = reported(&two("<_MsgOrder>0</_MsgOrder>", ""));
    assert_eq!(zero.len(), 1, "{zero:?}");
    assert!(
        zero[0].ends_with(": error: _MsgOrder \"0\" of X is not a number from 1 to 255"),
        "{zero:?}"
    );
    let refused = load("a.xml", b"BINd\x07\0\0\0", Mode::Lenient);
    assert!(refused.diagnostics[0].message().contains("BINd"));
    let deep = "<A>".repeat(100_000);
    assert!(load("a.xml", deep.as_bytes(), Mode::Lenient).protocol.is_none());
}

#[test]
fn a_message_is_found_by_its_display_name_unless_that_is_ambiguous() {
    let mut protocols = Protocols::new();
    let named = |tag: &str, name: &str| {
        format!(
            "<{tag}><RECORD><_MsgName TYPE=\"STR\" NOXFER=\"TRUE\">{name}</_MsgName></RECORD></{tag}>"
        )
    };
    let xml = [
        HEAD,
        &named("A", "One"),
        &named("B", "Two"),
        &named("C", "Two"),
        &named("D", "A"),
        "</A>",
    ];
    assert!(protocols.add("a.xml", xml.concat().as_bytes(), Mode::Lenient).is_empty());
    let tag = |name: &str| protocols.message_named(name).map(|message| &*message.tag);
    assert_eq!([tag("T.One"), tag("T.Two"), tag("T.A")], [Some("A"), None, Some("A")]);
    assert!(protocols.words().any(|word| word == "One"));
}

#[test]
fn a_later_file_replaces_an_earlier_one() {
    let mut protocols = Protocols::built_in();
    let xml = format!("{HEAD}<M><RECORD/></M></A>");
    assert!(protocols.add("a.xml", xml.as_bytes(), Mode::Lenient).is_empty());
    let reported = protocols.add("b.xml", xml.as_bytes(), Mode::Lenient);
    assert_eq!(reported[0].message(), "service 9 replaces the one in a.xml");
    assert_eq!(protocols.message_named("T.M").map(|m| (m.service, m.order)), Some((9, 1)));
}

#[test]
fn a_payload_of_another_revision_is_recognized() {
    let protocols = Protocols::built_in();
    let message = protocols.message_named("LOGIN.MSG_USER_VALIDATE_RSP").unwrap();
    let mut payload = message.payload(&message.defaults()).unwrap();
    assert_eq!(message.fit(&payload).to_string(), "fits exactly");
    payload.extend([2, 0, b'i', b'd']);
    assert_eq!(
        message.fit(&payload).to_string(),
        "4 bytes too many: fits revision r806919, which appends SupportID"
    );
    payload.push(0);
    assert_eq!(
        message.fit(&payload).to_string(),
        "5 bytes too many: the sender's revision has more fields at the end"
    );
    payload.truncate(20);
    assert_eq!(
        message.fit(&payload).to_string(),
        "the last fields are missing: Flags; the sender probably uses an earlier revision"
    );
    let error = message.decode(&mut Reader::new(&payload), &mut Values::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "Flags at byte 20: wanted 4 bytes, found 0; senders of an earlier revision omit the \
         last fields: Flags"
    );
    payload.truncate(18);
    assert_eq!(
        message.fit(&payload).to_string(),
        "ends in the middle of PayingUser: it is truncated or has a different layout"
    );
}

#[test]
fn json_of_a_message_is_checked() {
    let protocols = Protocols::built_in();
    let message = protocols.message_named("LOGIN.MSG_USER_ADMIT_IND").unwrap();
    let error = |json| message.from_json(&json).unwrap_err().to_string();
    assert_eq!(
        error(json!({"Statu": 1})),
        "wanted a field of MSG_USER_ADMIT_IND, found \"Statu\"; did you mean \"Status\"?"
    );
    assert!(error(json!({"Status": 1u64 << 40})).starts_with("Status: wanted"));
}

/// An opener that reads every byte except the first, backwards.
struct Toy;

impl<'n> Opener<'n> for Toy {
    fn opens(&self, site: Site<'_>, _: &[u8]) -> bool {
        site.message.name == "MSG_USER_AUTHEN_RSP" && site.field == "Rec1"
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        let start = reader.place();
        let plain = reader.take(reader.remaining())?.iter().rev().copied().collect();
        reader.layer("reversed", start, plain, |reader| reader.u16("first").map(drop))
    }
}

impl Closer for Toy {
    fn close(&self, _: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let first = json.get("first").and_then(Json::as_u64).unwrap_or(0).to_le_bytes();
        Ok(Some(vec![b'a', first[1], first[0]]))
    }
}

#[test]
fn an_opener_shows_and_encodes_the_format_inside_a_string() {
    let protocols = Protocols::built_in();
    let message = protocols.message_named("LOGIN.MSG_USER_AUTHEN_RSP").unwrap();
    for (rec1, seen) in [("abc", Some(u64::from(u16::from_le_bytes(*b"cb")))), ("a", None)] {
        let json = json!({"Rec1": rec1});
        let values = message.from_json(&json).unwrap();
        let payload = message.payload(&values).unwrap();
        let mut reader = Reader::traced("payload", &payload, Tree::new()).opening(&Toy);
        let mut read = Values::new();
        message.decode(&mut reader, &mut read).unwrap();
        assert_eq!(read, values);
        let tree = reader.finish();
        assert_eq!(tree.find("Rec1.bytes").unwrap().text().as_deref(), Some(rec1));
        let first = tree.nodes().find(|node| node.name() == "first");
        assert_eq!(first.and_then(|node| node.unsigned()), seen);
        assert_eq!(tree.remarks().len(), usize::from(seen.is_none()));
        if let Some(seen) = seen {
            let json = json!({"Rec1": {"bytes": "", "first": seen}});
            let made = message.from_json(Given::closing(&json, &Toy)).unwrap();
            assert_eq!(made, values);
            let error = message.from_json(&json).unwrap_err().to_string();
            assert!(error.contains("only \"bytes\" for this field"), "{error}");
        }
    }
}
