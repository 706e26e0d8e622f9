//! Shortened paths, names with dots, messages inside others, and `any`.

use worldwire_core::{Form, Names, Reader, Tree, Value};

use super::super::{Filter, Resolver, Subject};
use super::{check, with_subject};
use crate::Definitions;
use crate::item::Time;

/// A filter in which every path may be the end of a longer one.
fn tails(text: &str) -> Filter {
    let filter = Filter::parse(text).unwrap();
    Filter::of(filter.expression.map_paths(&|path| path.tail()))
}

static CLASSES: Names = Names::fixed(&[(5, "class Pet"), (6, "class FastPet"), (7, "struct Hat")]);

/// Calls `show` with a message that contains objects.
fn with_objects(show: impl FnOnce(&Subject<'_>)) {
    let mut r = Reader::traced("message", b"", Tree::new());
    let object = |r: &mut Reader<'_, _>, tag: i64| {
        let place = r.place();
        r.leaf_from("$class", place, Value::Enum(tag, &CLASSES));
        Ok(())
    };
    r.record("fields", |r| {
        r.record("object", |r| object(r, 6))?;
        r.list("hats", |r| {
            (7..9).try_for_each(|tag| {
                r.item(tag, |r| r.record("", |r| object(r, tag.try_into().unwrap())))
            })
        })?;
        let place = r.place();
        r.leaf_from("number", place, Value::Unsigned(6));
        Ok(())
    })
    .unwrap();
    let tree = r.finish();
    show(&Subject {
        name: "GAME.MSG_OBJECT",
        family: "ki",
        from: "client",
        stream: 0,
        packet: 12,
        time: 0.0,
        date: Time(0),
        ends: None,
        length: 8,
        tree: &tree,
        item: None,
    });
}

#[test]
fn objects_match_by_their_class_and_its_bases() {
    let derived = |name: &str| match name {
        "Pet" => Some(vec![6, 5]),
        _ => None,
    };
    with_objects(|subject| {
        let matches = |text: &str| {
            let filter = Filter::parse(text).unwrap();
            (filter.matches(subject), filter.derive_classes(derived).matches(subject))
        };
        // Without definitions, only objects of the class itself match.
        assert_eq!(matches("object is Pet"), (false, true));
        assert_eq!(matches("object.$class is Pet"), (false, true));
        assert_eq!(matches("object is FastPet"), (true, true));
        assert_eq!(matches("object is \"class FastPet\""), (true, true));
        assert_eq!(matches("hats is Hat"), (true, true));
        assert_eq!(matches("hats is Pet"), (false, false));
        assert_eq!(matches("not object is Pet"), (true, false));
        assert_eq!(matches("hats[1] is Hat or number is Pet or none is Pet"), (false, false));
    });
}

#[test]
fn classes_are_named() {
    let error = |text: &str| Filter::parse(text).unwrap_err().to_string();
    assert!(
        error("object is 00:ff").contains("wanted the name of a class"),
        "{}",
        error("object is 00:ff")
    );
    assert!(error("object is \"\"").contains("wanted the name of a class"));
    assert!(error("object is").contains("wanted a value"));
    let filter = Filter::parse("a is Pet and not (b is Hat or c == 1)").unwrap();
    assert_eq!(filter.class_names(), ["Pet", "Hat"]);
}

/// Calls `show` with a message whose fields are nested.
fn with_nested(show: impl FnOnce(&Subject<'_>)) {
    let data = b"own goal";
    let mut r = Reader::traced("message", data, Tree::new());
    let number = |r: &mut Reader<'_, _>, name: &'static str, value: u64| {
        let place = r.place();
        r.leaf_from(name, place, Value::Unsigned(value));
        Ok(())
    };
    r.record("fields", |r| {
        number(r, "m_id.m_full", 9)?;
        number(r, "shallow", 1)?;
        r.record("buffer", |r| {
            r.record("message", |r| {
                number(r, "playerId", 1)?;
                number(r, "shallow", 2)?;
                r.record("position", |r| number(r, "x", 1))?;
                r.record("rotation", |r| number(r, "x", 2))?;
                r.record("payload", |r| {
                    number(r, "playerId", 2)?;
                    r.span("text", 8, Form::Utf8).map(|_| ())
                })
            })
        })?;
        r.list("members", |r| {
            (0..3).try_for_each(|index| {
                r.item(index, |r| {
                    r.record("", |r| r.record("client", |r| number(r, "id", 7 + index as u64)))
                })
            })
        })
    })
    .unwrap();
    let tree = r.finish();
    show(&Subject {
        name: "game.Nested",
        family: "uru",
        from: "client",
        stream: 0,
        packet: 12,
        time: 0.0,
        date: Time(0),
        ends: None,
        length: 8,
        tree: &tree,
        item: None,
    });
}

#[test]
fn the_end_of_a_path_is_enough() {
    with_nested(|subject| {
        for (text, wanted) in [
            // The field nearest to the top wins.
            ("playerId == 1", true),
            ("playerId == 2", false),
            ("shallow == 1", true),
            ("shallow == 2", false),
            ("message.shallow == 2", true),
            ("payload.playerId == 2", true),
            ("text contains \"own\" and position.x == 1 and exists(rotation)", true),
            ("not exists(nowhere) and not nowhere == 1", true),
            // Elements of a list are one field.
            ("client.id == 7 and id == 9 and id in {8}", true),
            ("id != 8", false),
            ("members[1].client.id == 8", true),
            // A path that starts at the top must be complete.
            ("fields.playerId == 1", false),
        ] {
            let filter = tails(text);
            assert_eq!(filter.matches(subject), wanted, "{text}");
            assert_eq!(filter.ambiguity(), None, "{text}");
        }
        assert!(!Filter::parse("playerId == 1").unwrap().matches(subject), "not resolved");
    });
}

#[test]
fn an_ambiguous_path_matches_nothing_and_lists_its_candidates() {
    with_nested(|subject| {
        let filter = tails("x == 1");
        assert!(!filter.matches(subject));
        let later = Subject { packet: 40, ..*subject };
        assert!(!filter.matches(&later));
        assert_eq!(
            filter.ambiguity().unwrap().to_string(),
            "`x` is ambiguous in game.Nested (packet 12): it can be `buffer.message.position.x` or \
             `buffer.message.rotation.x`; write more of the path"
        );
        let precise = tails("rotation.x == 2 and buffer.message.position.x == 1");
        assert!(precise.matches(subject) && precise.ambiguity().is_none());
    });
}

#[test]
fn names_with_dots_are_written_as_they_are_shown() {
    with_nested(|subject| {
        let filter = Filter::parse("m_id.m_full == 9").unwrap();
        assert!(!filter.matches(subject));
        let filter = filter.join_names(|name| name == "m_id.m_full");
        assert!(filter.matches(subject));
        assert_eq!(filter.to_string(), "[\"m_id.m_full\"] == 9");
        assert_eq!(filter.field_names(), [["m_id.m_full"]]);
    });
}

#[test]
fn case_can_be_ignored() {
    with_subject(|subject| {
        for (text, wanted) in [
            ("any contains gUILD", true),
            ("any contains DÜN and any contains SECRET", true),
            ("message.name contains acctLOGIN", true),
            ("any contains admin and any contains \"0XFF00\"", true),
            ("not any contains guild", false),
            ("any contains nowhere", false),
            // Bytes have no case.
            ("any contains 47:75 and not any contains 67:75", true),
        ] {
            let filter = Filter::parse(text).unwrap().ignore_case();
            assert_eq!(filter.matches(subject), wanted, "{text}");
            let both = Filter::parse("uru and from == server").unwrap().and(filter);
            assert_eq!(both.matches(subject), wanted, "{text}");
        }
        let found = Filter::parse("any contains guild").unwrap().ignore_case();
        let other = Filter::parse("from == client").unwrap().and(found);
        assert!(!other.matches(subject));
    });
}

#[test]
fn any_is_every_value() {
    check(
        &[
            "any contains \"Guild\"",
            "any contains Dün",
            "any contains secret and any contains PlayerAlready",
            "any contains 18446744073709551615 and any contains \"-5\"",
            "any contains Admin and any contains \"0xff00\" and any contains true",
            "any contains 98:53:f1 and any contains 9853f1 and any contains hex\"f1\"",
            "any contains 12345678-ab34 and any contains 127.0.0.1",
        ],
        &["any contains \"nowhere\"", "any contains guild", "any contains 53:98", "exists(any)"],
    );
    for (text, column, message) in [
        ("any == 5", 5, "wanted `contains`, found `==`; `any` stands for every value"),
        ("any matches x", 5, "wanted `contains`, found `matches`"),
        ("any contains", 13, "wanted a value, found the end"),
    ] {
        let error = Filter::parse(text).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.column(), column, "{error}");
    }
    let field = Filter::parse("fields.any == 5 or [\"any\"] contains x or any.x == 1").unwrap();
    assert_eq!(
        field.to_string(),
        "fields.any == 5 or [\"any\"] contains \"x\" or [\"any\"].x == 1"
    );
}

#[test]
fn filters_are_resolved_by_the_names_of_messages() {
    let definitions = Definitions::built_in();
    for text in [
        "PropagateBuffer and playerId == 5",
        "text contains \"own\"",
        "plNetMsgVoice and flags has 1 or plNetMsg*",
        "message.playerId == 5 and result == Success",
    ] {
        let filter = Filter::parse(text).unwrap().resolve(&Resolver::new(&definitions));
        assert_eq!(filter.unknown_fields(&Resolver::new(&definitions)), [], "{text}");
        assert_eq!(filter.unknown_names(&Resolver::new(&definitions)), [], "{text}");
        assert_eq!(filter.unknown_patterns(&Resolver::new(&definitions)), [], "{text}");
        assert_eq!(filter.to_string(), Filter::parse(text).unwrap().to_string());
    }
    for (text, name, nearest) in [
        ("tcp.port == 14617", "tcp.port", Some("port")),
        ("frame.time_relative < 3", "frame.time_relative", Some("elapsed")),
        ("PingRequest and resultt == 3", "resultt", None),
    ] {
        let filter = Filter::parse(text).unwrap().resolve(&Resolver::new(&definitions));
        let unknown = filter.unknown_fields(&Resolver::new(&definitions));
        assert_eq!(unknown[0].name, name, "{text}");
        assert!(unknown[0].is_certain, "{text}");
        if nearest.is_some() {
            assert_eq!(unknown[0].nearest.as_deref(), nearest, "{text}");
        }
    }
}

#[test]
fn operators_and_values_of_the_wrong_kind_are_mistakes() {
    let definitions = Definitions::built_in();
    let problems = |text: &str| -> Vec<String> {
        let filter = Filter::parse(text).unwrap().resolve(&Resolver::new(&definitions));
        let unknown = filter.unknown_values(&Resolver::new(&definitions));
        assert!(unknown.iter().all(|value| value.is_certain), "{text}: {unknown:?}");
        unknown.iter().map(ToString::to_string).collect()
    };
    for (text, problem) in [
        ("transId contains \"5\"", "`transId` is a number; `contains` works on text and bytes"),
        ("fields.transId ~ \"5\"", "`fields.transId` is a number; `matches` works on text"),
        ("auth.* and transId == abc", "`transId` is a number, not `\"abc\"`"),
        ("stream startswith 5", "`stream` is a number; `startswith` works on text and bytes"),
        ("from has 4", "`from` is text; `has` works on numbers and flags"),
        ("PropagateBuffer and playerId == Yeesha", "`playerId` is a number, not `\"Yeesha\"`"),
    ] {
        assert_eq!(problems(text), [problem], "{text}");
    }
    for text in [
        "transId == \"5\" and transId contains 00:05 and transId in {1, 5..9} and transId != null",
        "from contains cl and stream has 4 and name matches \"^auth\"",
        "result contains Succ and accountFlags has Admin",
    ] {
        assert_eq!(problems(text), [""; 0], "{text}");
    }
    let filter = Filter::parse("elapsed > 1767225600").unwrap();
    let unknown = filter.unknown_values(&Resolver::new(&definitions));
    assert!(!unknown[0].is_certain);
    assert_eq!(
        unknown[0].to_string(),
        "`elapsed` is the number of seconds since the first packet, not `1767225600`; did you \
         mean `date`?"
    );
}
