//! Metadata, and columns of tables.

use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Reader, Result, Side, Tree};

use super::super::{Column, ColumnCell, Filter, Resolver, Subject};
use super::{check, with_subject};
use crate::{Item, ItemBody, Message, Note, NoteKind, Stamp, Time};

/// A message that decodes with an error and a remark, or with neither.
#[derive(Debug)]
struct Broken(bool);

impl Message for Broken {
    fn push_name(&self, name: &mut String) {
        name.push_str("toy.Broken");
    }

    fn bytes(&self) -> &[u8] {
        &[]
    }

    fn is_message(&self) -> bool {
        true
    }

    fn is_whole(&self) -> bool {
        !self.0
    }

    fn tree_of<'t>(&'t self, _: &'t [u8], tree: Tree<'t>, _: &'t Limits) -> Tree<'t> {
        let mut reader = Reader::traced("message", &[], tree.recycle());
        if self.0 {
            reader.remark(Error::value("a state", "noise"));
        }
        let mut tree = reader.finish();
        if self.0 {
            tree.set_error(Error::value("a whole message", "half of one"));
        }
        tree
    }

    fn encode(&self, _: &Json) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

#[test]
fn what_cannot_be_decoded_is_found() {
    let definitions = crate::Definitions::built_in();
    let (broken, whole) = (Broken(true), Broken(false));
    let note = |kind| ItemBody::Note(Note::new(kind, "x".to_owned()));
    let bodies = [
        ItemBody::Message(&broken),
        ItemBody::Message(&whole),
        note(NoteKind::Problem),
        note(NoteKind::Warning),
    ];
    for (filter, wanted) in [
        ("problem", [true, false, true, false]),
        ("warning or problem", [true, false, true, true]),
        ("toy.* and not problem", [false, true, false, false]),
        ("exists(error)", [true, false, false, false]),
        ("exists(remarks)", [true, false, false, false]),
        ("error contains half and remarks matches \"state\"", [true, false, false, false]),
        ("error contains noise or remarks contains half", [false; 4]),
        ("not exists(error)", [false, true, true, true]),
    ] {
        let filter = Filter::parse(filter).unwrap().resolve(&Resolver::new(&definitions));
        assert_eq!(filter.unknown_fields(&Resolver::new(&definitions)), [], "{filter}");
        assert_eq!(filter.unknown_values(&Resolver::new(&definitions)), [], "{filter}");
        for (body, wanted) in bodies.iter().zip(wanted) {
            let item = Item::new(Stamp::default(), "toy", Side::Client, 0..0, body.clone());
            let mut name = String::new();
            item.push_name(&mut name);
            let tree = item.tree(Tree::new(), &Limits::DEFAULT);
            assert_eq!(
                filter.matches(&Subject::of(&item, &name, &tree)),
                wanted,
                "{filter} {name}"
            );
        }
    }
    let column = Column::parse("error", &Resolver::new(&definitions)).unwrap();
    let item = Item::new(Stamp::default(), "toy", Side::Client, 0..0, bodies[0].clone());
    let tree = item.tree(Tree::new(), &Limits::DEFAULT);
    let mut text = String::new();
    assert!(column.write(&Subject::of(&item, "toy.Broken", &tree), &mut text));
    assert!(text.contains("half of one"), "{text}");
}

#[test]
fn addresses_and_dates_are_metadata() {
    check(
        &[
            "src == \"2001:db8::1\" and dst == 192.0.2.10",
            "addr == 192.0.2.10 and addr == \"2001:db8:0::1\" and addr in {10.0.0.1, 192.0.2.10}",
            "srcport == 14617 and dstport in {49152..65535} and port == 14617 and port > 40000",
            "date == \"2026-01-01 00:00:00.631500\" and date == 1767225600.631500000",
            "date > \"2026-01-01\" and date < \"2026-01-01T01:00:00+00:59\"",
            "message.src startswith \"2001:\" and date in {1767225600..1767225601}",
        ],
        &[
            "src == 192.0.2.10",
            "port != 14617",
            "addr == 192.0.2.1",
            "date == \"2026-01-01\"",
            "date < 1767225600",
            "not exists(src)",
        ],
    );
    let definitions = crate::Definitions::built_in();
    for (filter, wanted) in [
        ("src == server", "`src` is an address, such as `192.0.2.1`, not `server`"),
        (
            "date > yesterday",
            "`date` is a date, such as `\"2026-01-01 00:00:00\"`, not `yesterday`",
        ),
        ("port == http", "`port` is a number, not `http`"),
    ] {
        let values = Filter::parse(filter).unwrap().unknown_values(&Resolver::new(&definitions));
        assert_eq!(values.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted]);
    }
    for filter in
        ["dst == \"2001:db8::1\"", "date >= 1767225600.5", "port in {1..3} and addr == 1.2.3.4"]
    {
        assert_eq!(
            Filter::parse(filter).unwrap().unknown_values(&Resolver::new(&definitions)),
            [],
            "{filter}"
        );
    }
}

#[test]
fn columns_are_fields_or_metadata() {
    let definitions = crate::Definitions::built_in();
    let column = |text: &str| Column::parse(text, &Resolver::new(&definitions));
    with_subject(|subject| {
        for (name, wanted) in [
            ("time", "1.5"),
            ("date", "1767225600.631500000"),
            ("src", "2001:db8::1"),
            ("port", "14617;49154"),
            ("name", "auth.AcctLoginReply"),
            ("result", "PlayerAlreadyExists"),
            ("auth.AcctLoginReply.result", "PlayerAlreadyExists"),
            ("AcctLoginReply.result", "PlayerAlreadyExists"),
            ("utf8", "Guild"),
            ("refs.parentId", "5;6"),
            ("numbers", "[3,4,5]"),
        ] {
            let mut out = "|".to_owned();
            if column(name).unwrap().write(subject, &mut out) {
                assert_eq!(out, format!("|{wanted}"), "{name}");
            } else {
                panic!("{name} is missing");
            }
        }
        for missing in ["auth.AcctLoginRequest.result", "missing", "refs.missing"] {
            let mut out = String::new();
            assert!(!column(missing).unwrap().write(subject, &mut out) && out.is_empty());
        }
    });
    for wrong in ["", "a b", "result == 3", "auth.AcctLoginReply.", "a) or (b"] {
        assert!(column(wrong).is_err(), "{wrong}");
    }
    let misspelt = column("auth.AcctLoginReply.resultt").unwrap().filter();
    assert!(misspelt.unknown_fields(&Resolver::new(&definitions))[0].is_certain);
    assert!(column("transId").unwrap().is_field() && !column("time").unwrap().is_field());
}

#[test]
fn cells_are_values_or_the_text_of_tables() {
    use ColumnCell::{Bool, Bytes, Moment, Null, Real, Signed, Text, Unsigned};
    let definitions = crate::Definitions::built_in();
    let text = |text: &str| Text(text.to_owned());
    with_subject(|subject| {
        for (name, wanted) in [
            ("elapsed", Some(Real(1.5))),
            ("date", Some(Moment(Time(1_767_225_600_631_500_000)))),
            ("src", Some(text("2001:db8::1"))),
            ("port", Some(text("14617;49154"))),
            ("name", Some(text("auth.AcctLoginReply"))),
            ("transId", Some(Unsigned(7))),
            ("AcctLoginReply.transId", Some(Unsigned(7))),
            ("AcctLoginRequest.transId", None),
            ("result", Some(text("PlayerAlreadyExists"))),
            ("strange", Some(Signed(99))),
            ("flags", Some(text(r#"["Admin","User"]"#))),
            ("on", Some(Bool(true))),
            ("nothing", Some(Null)),
            ("utf16", Some(text("D\u{fc}n"))),
            ("buffer", Some(Bytes(b"\x98\x53\xf1de\xff".to_vec()))),
            ("numbers", Some(text("[3,4,5]"))),
            ("refs.parentId", Some(text("5;6"))),
            ("refs[1].parentId", Some(Unsigned(6))),
            ("single", Some(Real(0.1_f32.into()))),
            ("double", Some(Real(0.1))),
            ("missing", None),
        ] {
            let column = Column::parse(name, &Resolver::new(&definitions)).unwrap();
            assert_eq!(column.cell(subject), wanted, "{name}");
        }
    });
}

#[test]
fn the_names_in_a_filter_are_listed() {
    let filter =
        "class.A and (fields.m_list[3].m_id == 1 or not m_b > 2) and exists(m_c) and time < 1";
    let filter = Filter::parse(filter).expect("a valid filter");
    assert_eq!(filter.message_names(), ["class.A"]);
    assert_eq!(filter.field_names(), [vec!["m_list", "m_id"], vec!["m_b"], vec!["m_c"]]);
    assert_eq!(filter.metadata_names(), ["time"]);
    let filter = Filter::parse("message.port == 1 or fields.stream == 2").expect("a valid filter");
    assert_eq!(filter.metadata_names(), ["port"]);
}
