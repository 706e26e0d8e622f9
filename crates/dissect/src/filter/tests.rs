//! The language as a whole: every rule on a tree that has a field of every kind.

use proptest::prelude::*;
use regex_lite::Regex;
use worldwire_core::{Form, Names, Reader, Tree, Value};

use super::expression::{Check, Comparison, Expression, Path, Pattern, Step};
use super::literal::{Literal, Member, Needle, Regular, Set, Text};
use super::number::Number;
use super::{Column, Filter, FilterError, FilterErrorKind, Subject};
use crate::item::{Ends, Time};

static RESULTS: Names =
    Names::fixed(&[(0, "Success"), (12, "PlayerAlreadyExists"), (12, "Again"), (-1, "Pending")]);
static FLAGS: Names = Names::fixed(&[(1, "Admin"), (8, "User"), (16, "Banned"), (0, "Nobody")]);
static MESSAGES: Names = Names::fixed(&[(4, "AcctLoginReply")]);

/// Shows a made-up message to somebody.
fn with_subject(show: impl FnOnce(&Subject<'_>)) {
    let mut data = Vec::new();
    data.extend(b"Guild");
    data.extend("Dün".encode_utf16().flat_map(u16::to_le_bytes));
    data.extend(b"secret".map(|byte| !byte));
    data.extend([0xe9, b'e']);
    data.extend([0x78, 0x56, 0x34, 0x12, 0x34, 0xab, 0x78, 0x56, 1, 2, 3, 4, 5, 6, 7, 8]);
    data.extend([1, 0, 0, 127]);
    data.extend([0x98, 0x53, 0xf1, b'd', b'e', 0xff]);
    data.extend([3, 4, 5]);
    data.extend(0.1_f32.to_le_bytes());
    data.extend(0.1_f64.to_le_bytes());
    data.extend(f32::NAN.to_le_bytes());
    data.extend(u64::MAX.to_le_bytes());
    data.extend((-5_i64).to_le_bytes());
    data.extend(b"007");
    data.extend([0x3d, 0xd8]);
    let mut r = Reader::traced("message", &data, Tree::new());
    let place = r.place();
    r.leaf_from("name", place, Value::Enum(4, &MESSAGES));
    let fields = |r: &mut Reader<'_, _>| -> worldwire_core::Result<()> {
        r.leaf_from("result", place, Value::Enum(12, &RESULTS));
        r.leaf_from("strange", place, Value::Enum(99, &RESULTS));
        r.leaf_from("flags", place, Value::Flags(9, &FLAGS));
        r.leaf_from("transId", place, Value::Unsigned(7));
        r.leaf_from("hash", place, Value::Hex(0xff00));
        r.leaf_from("on", place, Value::Bool(true));
        r.leaf_from("nothing", place, Value::Null);
        r.leaf_from("stream", place, Value::Unsigned(70));
        r.leaf_from("in", place, Value::Unsigned(71));
        r.leaf_from("odd \"name\"", place, Value::Unsigned(72));
        r.leaf_from("twice", place, Value::Unsigned(1));
        r.leaf_from("twice", place, Value::Unsigned(2));
        r.span("utf8", 5, Form::Utf8)?;
        r.span("utf16", 6, Form::Utf16)?;
        r.span("inverted", 6, Form::InvertedUtf8)?;
        r.span("latin1", 2, Form::Latin1)?;
        r.span("guid", 16, Form::Guid)?;
        r.span("ipv4", 4, Form::Ipv4)?;
        r.bytes("buffer", 6)?;
        r.list("numbers", |r| {
            (0..3).try_for_each(|index| r.item(index, |r| r.u8("")).map(|_| ()))
        })?;
        r.list("empty", |_| Ok(()))?;
        r.list("refs", |r| {
            for index in 0..2 {
                r.item(index, |r| {
                    r.record("", |r| {
                        let place = r.place();
                        r.leaf_from("parentId", place, Value::Unsigned(5 + index as u64));
                        Ok(())
                    })
                })?;
            }
            Ok(())
        })?;
        r.list("grid", |r| {
            for row in 0..2 {
                r.item(row, |r| {
                    r.list("", |r| {
                        let place = r.place();
                        r.leaf_from("", place, Value::Unsigned(10 * row as u64));
                        r.leaf_from("", place, Value::Unsigned(10 * row as u64 + 1));
                        Ok(())
                    })
                })?;
            }
            Ok(())
        })?;
        r.f32("single")?;
        r.f64("double")?;
        r.f32("nan")?;
        r.u64("most")?;
        r.i64("minus")?;
        r.span("digits", 3, Form::Utf8)?;
        r.span("broken", 2, Form::Utf16)?;
        Ok(())
    };
    r.record("fields", fields).unwrap();
    let tree = r.finish();
    let ends =
        Ends::new("192.0.2.10:49154".parse().unwrap(), "[2001:db8::1]:14617".parse().unwrap());
    show(&Subject {
        name: "auth.AcctLoginReply",
        family: "uru",
        from: "server",
        stream: 3,
        packet: 40,
        time: 1.5,
        date: Time(1_767_225_600_631_500_000),
        ends: Some(&ends),
        length: 74,
        tree: &tree,
    });
}

#[track_caller]
fn check(yes: &[&str], no: &[&str]) {
    with_subject(|subject| {
        for (wanted, filters) in [(true, yes), (false, no)] {
            for text in filters {
                let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(filter.matches(subject), wanted, "{text}");
                let printed = filter.to_string();
                assert_eq!(Filter::parse(&printed).as_ref(), Ok(&filter), "{text} -> {printed}");
                assert_eq!(filter.to_string(), Filter::parse(&printed).unwrap().to_string());
            }
        }
    });
}

#[test]
fn ends_and_moments_are_known() {
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
        ("src == server", "`src` is an address, such as `192.0.2.1`, never `server`"),
        (
            "date > yesterday",
            "`date` is a moment, such as `\"2026-01-01 00:00:00\"`, never `yesterday`",
        ),
        ("port == http", "`port` is a number, never `http`"),
    ] {
        let values = Filter::parse(filter).unwrap().unknown_values(&definitions);
        assert_eq!(values.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted]);
    }
    for filter in
        ["dst == \"2001:db8::1\"", "date >= 1767225600.5", "port in {1..3} and addr == 1.2.3.4"]
    {
        assert_eq!(Filter::parse(filter).unwrap().unknown_values(&definitions), [], "{filter}");
    }
}

#[test]
fn columns_are_fields_or_what_is_known() {
    let definitions = crate::Definitions::built_in();
    let column = |text: &str| Column::parse(text, &definitions);
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
                panic!("{name} is not there");
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
    assert!(misspelt.unknown_fields(&definitions)[0].is_certain);
    assert!(column("transId").unwrap().is_field() && !column("time").unwrap().is_field());
}

#[track_caller]
fn wrong(text: &str) -> FilterError {
    Filter::parse(text).expect_err(text)
}

#[test]
fn messages_are_named() {
    check(
        &["auth.AcctLoginReply", "AcctLoginReply", "*Reply", "auth.*", "uru", "*", "exists or uru"],
        &["auth.AcctLoginRequest", "acctloginreply", "game.*", "ki", "auth", "name", "stream"],
    );
}

#[test]
fn numbers_compare_exactly() {
    check(
        &[
            "transId == 7",
            "transId eq 7 and transId ne 8 and transId lt 8 and transId ge 7",
            "transId==0x7",
            "transId < 7.5 and transId > 6.5 and transId != 7.5",
            "most == 18446744073709551615",
            "most > 18446744073709551614",
            "most < 18446744073709551616.0",
            "minus == -5 and minus < 0 and minus > -5.5",
            "hash == 0xff00",
            "single == 0.1",
            "double == 0.1",
            "single < 0.2 and single >= 0.1",
            "nan == NaN and nan != 1",
            "digits == 7 and digits < 10 and digits == \"007\"",
            "on == 1 and on == true and transId != true",
        ],
        &[
            "transId == 8",
            "transId > 7",
            "most == -1",
            "minus == 18446744073709551611",
            "double == 0.100000001490116",
            "nan < 1 or nan >= 1 or nan == nan",
            "utf8 < 5 or utf8 == 5",
            "on == false",
        ],
    );
}

#[test]
fn enumerations_and_flags_have_names() {
    check(
        &[
            "result == PlayerAlreadyExists",
            "result == \"PlayerAlreadyExists\"",
            "result == Again",
            "result == 12",
            "result != 0 and result != Success",
            "result > Success and result > Pending",
            "result contains Already and result startswith Player and result endswith ists",
            "result ~ \"^Player\"",
            "result in {Success, Again}",
            "result in {1, 12}",
            "strange != Success and strange == 99",
            "flags has Admin and flags has User and flags has 9",
            "flags == 9",
            "flags != Admin",
            "not flags has Banned",
            "hash has 0x8000",
        ],
        &[
            "result == Success",
            "result < Success",
            "result == playeralreadyexists",
            "strange == 12 or strange contains P or strange ~ \"\"",
            "flags == Admin",
            "flags has Banned or flags has 24 or flags has Unknown or flags has Nobody",
            "flags in {Admin, Banned}",
            "utf8 has 1",
        ],
    );
}

#[test]
fn text_of_every_form_compares_as_text() {
    check(
        &[
            "utf8 == Guild and utf8 == \"Guild\"",
            "utf8 startswith Gu and utf8 endswith ild and utf8 contains uil",
            "utf8 > Guil and utf8 < Guilds",
            "utf16 == \"Dün\" and utf16 contains \"ü\" and utf16 in {Dün}",
            "inverted == secret and inverted endswith ret",
            "latin1 == \"ée\" and latin1 ~ \"^.e$\"",
            "guid == 12345678-ab34-5678-0102-030405060708",
            "guid == 12345678-AB34-5678-0102-030405060708",
            "guid == \"{12345678-AB34-5678-0102-030405060708}\"",
            "guid in {x, 12345678-AB34-5678-0102-030405060708}",
            "guid startswith 12345678-ab",
            "ipv4 == 127.0.0.1 and ipv4 == \"127.0.0.1\" and ipv4 in {127.0.0.1}",
            "utf8 ~ r\"^\\w+$\" and utf8 matches \"(?i)GUILD\" and utf8 ~ Gu",
            "utf8 != \"\" and utf8 contains \"\"",
            "digits contains 07 and digits startswith 0",
            "broken == hex\"3dd8\" and broken != \"x\"",
        ],
        &[
            "utf8 == guild",
            "utf16 == \"Dun\" or utf16 == \"Dü\" or utf16 == \"Düne\"",
            "guid == 12345678-ab34-5678-0102-030405060709",
            "ipv4 == 127.0.0.2 or ipv4 == 127",
            "transId contains 7 or transId ~ 7 or transId == \"7\"",
            "buffer ~ \"\"",
            "utf8 == true or utf8 == null",
        ],
    );
}

#[test]
fn bytes_are_held_against_what_stands_in_the_message() {
    check(
        &[
            "buffer == 98:53:f1:64:65:ff",
            "buffer == hex\"9853 F1 6465ff\"",
            "buffer contains 53:f1 and buffer startswith hex\"98\" and buffer endswith 65:ff",
            "buffer contains \"de\"",
            "buffer in {00:00, 98:53:f1:64:65:ff}",
            "buffer > 98:53 and buffer < hex\"99\"",
            "utf16 contains 44:00:fc:00",
            "utf8 == 47:75:69:6c:64",
            "numbers == 03:04:05 and numbers == hex\"04\"",
            "fields contains 53:f1:64",
            "name == \"auth.AcctLoginReply\" and message.name contains 61:75",
        ],
        &[
            // Digits in quotes are text.
            "buffer contains \"98\" or buffer contains \"9853f1\" or buffer == \"9853f16465ff\"",
            "buffer == 98:53",
            "utf16 == \"D\\0\"",
            "message.stream contains 03:00",
        ],
    );
}

#[test]
fn lists_stand_for_their_elements() {
    check(
        &[
            "refs[1].parentId == 6",
            "refs[*].parentId == 6",
            "refs.parentId == 5",
            "refs.parentId != 7",
            "refs.parentId in {6..9}",
            "numbers == 4 and numbers[1] == 4 and numbers[*] == 4",
            "numbers > 4 and numbers < 4",
            "grid == 11 and grid[1] == 11 and grid[1][1] == 11 and grid[*][1] == 11",
            "twice == 1 and twice == 2",
            "exists(empty) and empty != 5 and empty != null",
        ],
        &[
            "refs[0].parentId == 6",
            "refs[2].parentId == 6",
            "refs.parentId != 5",
            "refs == 5 or refs.other == 5",
            "numbers != 4",
            "grid[0] == 11",
            "empty == null or empty[0] == 1",
            "exists(refs[2]) or exists(transId[0]) or exists(refs.x)",
        ],
    );
}

#[test]
fn lists_of_values_hold_ranges_and_everything_else() {
    check(
        &[
            "transId in {1, 5..9}",
            "transId in {7}",
            "transId in {7..7}",
            "minus in {-9..-1}",
            "single in {0.1}",
            "single in {0.1..0.2}",
            "double in {-1..1}",
            "digits in {6..8}",
            "on in {true} and nothing in {1, null}",
            "time in {1..2}",
        ],
        &[
            "transId in {1, 2, 8..9}",
            "double in {0, 1}",
            "transId in {7.5, x, \"7\", 07:07}",
            "missing in {1..9, null}",
        ],
    );
    let many: Vec<String> = (0..9_000).map(|value| (2 * value).to_string()).collect();
    let many = many.join(",");
    check(&[&format!("hash in {{{many}, 65280}}")], &[&format!("transId in {{{many}}}")]);
}

#[test]
fn what_is_missing_fails_every_test() {
    check(
        &[
            "not missing == 1",
            "!(missing != 1)",
            "nothing == null and nothing != 1",
            "exists(nothing) and fields.nothing",
            "fields and fields.refs[1].parentId",
            "exists(transId) and exists(stream) and exists(message.time)",
        ],
        &[
            "missing == 1",
            "missing != 1",
            "missing == null or missing != null",
            "missing contains \"\" or missing ~ \"\" or missing has 1",
            "fields.missing",
            "transId == null",
            "transId.x == 7",
        ],
    );
}

#[test]
fn the_first_place_that_has_a_field_counts() {
    check(
        &[
            "stream == 70 and fields.stream == 70 and message.stream == 3",
            "packet == 40 and time == 1.5 and time < 2 and length == 74",
            "from == server and family == uru and from != client",
            "name == AcctLoginReply and name == 4 and name == \"auth.AcctLoginReply\"",
            "name ~ \"^auth\" and name startswith Acct and message.name != AcctLoginReply",
            "fields.in == 71 and [\"in\"] == 71 and [\"odd \\\"name\\\"\"] == 72",
            "fields[\"transId\"] == 7",
        ],
        &["stream == 3", "fields.packet == 40", "message.transId == 7", "name != 4"],
    );
}

#[test]
fn not_binds_tightest_and_or_loosest() {
    let canonical = |text: &str| Filter::parse(text).unwrap().to_string();
    assert_eq!(canonical("a || b && !c"), "a or b and not c");
    assert_eq!(canonical("(a or b) and c"), "(a or b) and c");
    assert_eq!(canonical("a and (b and c) or (d or e)"), "a and b and c or d or e");
    assert_eq!(canonical("not a == 1 and b"), "not a == 1 and b");
    assert_eq!(canonical("not (a and b) or ! ! c"), "not (a and b) or not not c");
    assert_eq!(canonical("fields.a"), "exists(fields.a)");
    assert_eq!(canonical(" a ~\n\"\\\\.\" "), "a matches \"\\\\.\"");
    assert_eq!(canonical("a==-0x10&&b!=1e3"), "a == -16 and b != 1000.0");
    assert_eq!(canonical("x in {1..2,hex\"\",\"\\u{1b}\"}"), "x in {1..2, hex\"\", \"\\u{1b}\"}");
    check(&["uru or ki and ki", "not ki and uru", "!ki&&uru"], &["(uru or ki) and ki", "not uru"]);
}

#[test]
fn mistakes_are_shown_in_place() {
    assert_eq!(
        wrong("accountName == \"x").to_string(),
        "filter, column 16: wanted text in double quotes, found no closing quote\n  \
         accountName == \"x\n                 ^"
    );
    for (text, column, message) in [
        ("", 1, "wanted a field or the name of a message, found the end"),
        ("a and", 6, "wanted a field or the name of a message, found the end"),
        ("a and and b", 7, "wanted a test, found `and`"),
        ("a and && b", 7, "found `&&`; there is one operator too many"),
        ("a = 1", 3, "wanted a comparison, found `=`; did you mean `==`?"),
        ("a === 1", 3, "found `===`; did you mean `==`?"),
        ("a <> 1", 3, "found `<>`; did you mean `!=`?"),
        ("a => 1", 3, "did you mean `>=`?"),
        ("a & b", 3, "did you mean `and`"),
        ("a | b", 3, "did you mean `or`?"),
        ("a !~ b", 3, "write `not` in front"),
        ("a AND b", 3, "wanted `and`, `or` or the end, found `AND`; write `and`"),
        ("a b", 3, "wanted `and`, `or` or the end, found `b`"),
        ("a not in {1}", 3, "write `not` in front"),
        ("(a", 3, "wanted `and`, `or` or `)`, found the end"),
        ("a)", 2, "found `)`; no `(` is open"),
        ("a == 'x'", 6, "put text in double quotes"),
        ("a == ", 6, "wanted a value, found the end"),
        ("a == auth.*", 11, "`*` works only in names of messages"),
        ("a* == 1", 1, "any element is `[*]`"),
        ("5 == a", 1, "put the field on the left"),
        ("\"x\" == a", 1, "values stand right of the operator"),
        ("a == fields.b", 6, "fields can only be compared with values"),
        ("a == 12x", 6, "wanted a number, found `12x`"),
        ("a == 1.2.3", 6, "wanted a number"),
        ("a == 0x", 6, "wanted a number of at most 64 bits, found `0x`"),
        ("a == 18446744073709551616", 6, "at most 64 bits"),
        ("a == 1e999", 6, "wanted a number"),
        ("a == 0:ff", 6, "wanted bytes such as `00:ff:1a`, found `0:ff`"),
        ("a == hex\"\n\u{202e}\"", 6, "found `\\n\\u{202e}`"),
        ("a == hex\"0\"", 6, "an even number of hexadecimal digits"),
        ("a == \"\\d\"", 7, "found `\\d`; backslashes are literal in text that begins with"),
        ("a ~ \"(\"", 5, "wanted a regular expression, found "),
        ("a ~ 00:ff", 5, "wanted a regular expression, found bytes"),
        ("a < true", 3, "wanted `==` or `!=`, found `<` with true"),
        ("a has 0", 7, "wanted the name of a flag or a number with bits in it"),
        ("a in 5", 6, "wanted `{` and values, found `5`"),
        ("a in {}", 7, "wanted a value, found `}`"),
        ("a in {1 2}", 9, "wanted `,` or `}`, found `2`"),
        ("a in {1,}", 9, "wanted a value, found `}`"),
        ("a in {5..1}", 7, "wanted the smaller number first"),
        ("a in {x..y}", 7, "wanted a range of numbers"),
        ("a..b", 3, "wanted a name on both sides of the dot"),
        ("a.", 3, "wanted a name on both sides of the dot, found none"),
        ("a[x] == 1", 3, "wanted a number, `*` or a name in quotes, found `x`"),
        ("a[1 == 1", 5, "wanted `]`, found `==`"),
        ("exists(a", 9, "wanted `)`, found the end"),
        ("ä = 1", 3, "did you mean `==`?"),
    ] {
        let error = wrong(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert_eq!(error.column(), column, "{text}: {error}");
        assert_eq!(error.to_string().lines().count(), 3, "{text}: {error}");
    }
    assert_eq!(wrong("a ~ \"(\"").kind(), FilterErrorKind::Regex);
}

#[test]
fn bounds_are_named() {
    let limit = |text: &str| match wrong(text).kind() {
        FilterErrorKind::Limit { name, .. } => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(&"(".repeat(1_000)), "depth");
    assert_eq!(limit(&"!".repeat(65_536)), "depth");
    assert_eq!(limit(&"a ".repeat(32_769)), "bytes");
    assert_eq!(limit(&format!("a{} == 1", "[*]".repeat(64))), "steps");
    assert_eq!(limit(&vec!["a ~ b"; 33].join(" or ")), "regexes");
    assert_eq!(wrong("a ~ \"(x{9999}){9999}\"").kind(), FilterErrorKind::Regex);
    assert!(Filter::parse(&format!("{}a{}", "(".repeat(64), ")".repeat(64))).is_ok());
    assert!(Filter::parse(&vec!["a"; 10_000].join(" or ")).is_ok());
}

#[test]
fn errors_stay_short() {
    for filter in ["1".repeat(60_000), format!("a == {}", "1".repeat(60_000))] {
        assert!(wrong(&filter).to_string().len() < 500);
    }
}

#[test]
fn a_hostile_search_takes_no_time() {
    let data = vec![b'a'; 1 << 20];
    let mut r = Reader::traced("message", &data, Tree::new());
    r.bytes("buffer", data.len()).unwrap();
    let tree = r.finish();
    let (name, family, from) = ("x", "y", "client");
    let subject = Subject {
        name,
        family,
        from,
        stream: 0,
        packet: 0,
        time: 0.0,
        date: Time(0),
        ends: None,
        length: 0,
        tree: &tree,
    };
    let needle = "a".repeat(60_000);
    assert!(Filter::parse(&format!("buffer contains \"{needle}\"")).unwrap().matches(&subject));
    assert!(!Filter::parse(&format!("buffer contains \"{needle}b\"")).unwrap().matches(&subject));
    assert!(!Filter::parse(&format!("buffer contains \"b{needle}\"")).unwrap().matches(&subject));
}

#[test]
fn misspelled_messages_are_noticed() {
    let filter = Filter::parse("AcctLoginReqest or auth.* and not (uru or gap)").unwrap();
    let definitions = crate::Definitions::built_in();
    let near = Some("AcctLoginRequest".to_owned());
    assert_eq!(filter.unknown_names(&definitions), [("AcctLoginReqest", near)]);
    let known = "LOGIN.MSG_USER_AUTHEN_V3 or MSG_PING or control.SessionOffer or LOGIN.*";
    assert!(Filter::parse(known).unwrap().unknown_names(&definitions).is_empty());
}

#[test]
fn patterns_that_nothing_fits_are_noticed() {
    let definitions = crate::Definitions::built_in();
    for (filter, pattern, near) in [
        ("auht.*", "auht.*", Some("auth.*")),
        ("auth.*Repyl", "auth.*Repyl", None),
        (
            "uru and not (auth.* or gaem.*Request or result == 3)",
            "gaem.*Request",
            Some("game.*Request"),
        ),
        ("game.* or auht.*Reply", "auht.*Reply", Some("auth.*Reply")),
    ] {
        let filter = Filter::parse(filter).unwrap();
        let unknown = filter.unknown_patterns(&definitions);
        assert_eq!(unknown, [(pattern, near.map(str::to_owned))], "{filter}");
    }
    let known = "auth.* or *Reply or *.* or * or tera.51* or LOGIN.MSG_*AUTHEN* or auht";
    let known = Filter::parse(known).unwrap();
    assert_eq!(known.unknown_patterns(&definitions), []);
}

#[test]
fn fields_alone_are_told_from_messages() {
    let definitions = crate::Definitions::built_in();
    for field in ["result", "node.NodeType", "accountName", "from"] {
        assert!(Filter::is_field(field, &definitions), "{field}");
    }
    for other in ["resultt", "auth.AcctLoginReply", "PingReply", "NodeType.node"] {
        assert!(!Filter::is_field(other, &definitions), "{other}");
    }
}

fn a_number() -> impl Strategy<Value = Number> {
    let real = any::<f64>().prop_filter("finite", |value| value.is_finite());
    prop_oneof![
        any::<u64>().prop_map(|value| Number::Whole(value.into())),
        any::<i64>().prop_map(|value| Number::Whole(value.into())),
        real.prop_map(|value| Number::parse_real(&format!("{value:?}")).unwrap()),
    ]
}

fn a_text() -> impl Strategy<Value = Literal> {
    prop_oneof![any::<String>(), "[a-z0-9.\\\\\"]{0,6}".boxed()]
        .prop_map(|text| Literal::Text(Text::new(&text)))
}

fn some_bytes() -> impl Strategy<Value = Literal> {
    any::<Vec<u8>>().prop_map(|bytes| Literal::Bytes(bytes.into()))
}

fn a_literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        a_number().prop_map(Literal::Number),
        a_text(),
        some_bytes(),
        any::<bool>().prop_map(Literal::Bool),
        Just(Literal::Null),
    ]
}

fn a_path() -> impl Strategy<Value = Path> {
    let step = prop_oneof![
        4 => "[a-z_][a-z0-9_]{0,5}".prop_map(|name| Step::Name(name.into())),
        1 => any::<String>().prop_map(|name| Step::Name(name.into())),
        1 => prop::sample::select(vec!["in", "and", "fields", "message", "name", "exists", "refs"])
            .prop_map(|name| Step::Name(name.into())),
        1 => any::<usize>().prop_map(Step::Index),
        1 => Just(Step::Each),
    ];
    prop::collection::vec(step, 1..5).prop_map(Path::new)
}

fn a_check() -> impl Strategy<Value = Check> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let equality = prop::sample::select(vec![Equal, NotEqual]);
    let order = prop::sample::select(vec![Less, LessOrEqual, Greater, GreaterOrEqual]);
    let ordered = prop_oneof![a_number().prop_map(Literal::Number), a_text(), some_bytes()];
    let range = (a_number(), a_number()).prop_map(|(a, b)| {
        if a.compare(&b).is_some_and(core::cmp::Ordering::is_gt) {
            Member::Range(b, a)
        } else {
            Member::Range(a, b)
        }
    });
    let member = prop_oneof![a_literal().prop_map(Member::One), range];
    let bits = (1..=u64::MAX).prop_map(|bits| Literal::Number(Number::Whole(bits.into())));
    let piece = || prop_oneof![a_text(), some_bytes()];
    let regular = prop::sample::select(vec!["", "^a\\.b$", "\"", "\\u{1b}|\u{1b}"]);
    prop_oneof![
        (equality, a_literal()).prop_map(|(sign, literal)| Check::Compare(sign, literal)),
        (order, ordered).prop_map(|(sign, literal)| Check::Compare(sign, literal)),
        prop_oneof![bits, a_text()].prop_map(Check::Has),
        piece().prop_map(|literal| Check::Contains(Box::new(Needle::new(literal)))),
        piece().prop_map(Check::StartsWith),
        piece().prop_map(Check::EndsWith),
        regular.prop_map(|text| Check::Matches(Regular::new(text, Regex::new(text).unwrap()))),
        prop::collection::vec(member, 1..6).prop_map(|members| Check::In(Set::new(members))),
    ]
}

fn an_expression() -> impl Strategy<Value = Expression> {
    let pattern = "[a-z*][a-z0-9*_-]{0,4}(\\.[a-z0-9*]{1,4}){0,2}"
        .prop_filter("reserved", |text| {
            !super::expression::RESERVED.contains(&&**text)
                && !text.starts_with("fields.")
                && text != "fields"
        })
        .prop_map(|text| Expression::Message(Pattern(text.into())));
    let leaf = prop_oneof![
        1 => pattern,
        1 => a_path().prop_map(Expression::Exists),
        4 => (a_path(), a_check()).prop_map(|(path, check)| Expression::Test(path, check)),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            several().prop_map(Expression::all),
            several().prop_map(Expression::any),
        ]
    })
}

proptest! {
    #[test]
    fn every_filter_prints_as_itself(expression in an_expression()) {
        let filter = Filter(expression);
        let printed = filter.to_string();
        let again = Filter::parse(&printed)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&again, &filter);
        prop_assert_eq!(again.to_string(), printed);
        with_subject(|subject| assert_eq!(again.matches(subject), filter.matches(subject)));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.column() <= text.chars().count() + 1);
            prop_assert_eq!(error.to_string().lines().count(), 3);
        }
    }

    #[test]
    fn no_row_of_words_makes_the_parser_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "a", "and", "or", "not", "(", ")", "{", "}", "[", "]", "*", ".", "..", ",", "==", "!=",
            "<", "~", "&", "in", "has", "contains", "\"", "\\", "r\"", "hex\"", "0x", "1", "-", "e",
            "00:ff", "true", "null", "fields.", "exists", " ", "transId", "refs", "7", "\u{1b}",
        ]), 0..24),
    ) {
        let text: String = words.concat();
        match Filter::parse(&text) {
            Ok(filter) => {
                with_subject(|subject| { let _ = filter.matches(subject); });
                prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
            }
            Err(error) => {
                prop_assert!(!error.wanted().is_empty(), "{}", error);
                prop_assert_eq!(error.to_string().lines().count(), 3);
            }
        }
    }

    #[test]
    fn negation_is_the_opposite(expression in an_expression()) {
        let filter = Filter(expression.clone());
        let opposite = Filter(Expression::Not(Box::new(expression)));
        with_subject(|subject| assert_ne!(filter.matches(subject), opposite.matches(subject)));
    }
}

#[test]
fn a_filter_of_very_many_values_is_read() {
    // To look through the rest of the text for every value would take minutes.
    let values = "1,".repeat(30_000);
    assert!(Filter::parse(&format!("a in {{{values}1}}")).is_ok());
    let ranges = Filter::parse("a in {1..3, 0.5..2, 7}").map(|filter| filter.to_string());
    assert_eq!(ranges.as_deref(), Ok("a in {1..3, 0.5..2, 7}"));
}

#[test]
fn the_names_in_a_filter_are_told() {
    let filter =
        "class.A and (fields.m_list[3].m_id == 1 or not m_b > 2) and exists(m_c) and time < 1";
    let filter = Filter::parse(filter).expect("it is right");
    assert_eq!(filter.message_names(), ["class.A"]);
    assert_eq!(filter.field_names(), [vec!["m_list", "m_id"], vec!["m_b"], vec!["m_c"]]);
}
