//! Tests every rule of the language on a tree with a field of every kind.

mod metadata;
mod mistakes;
mod nested;
mod printing;
mod values;

use worldwire_core::{Form, Names, Reader, Tree, Value};

use super::{Filter, Subject};
use crate::item::{Ends, Time};

static RESULTS: Names =
    Names::fixed(&[(0, "Success"), (12, "PlayerAlreadyExists"), (12, "Again"), (-1, "Pending")]);
static FLAGS: Names = Names::fixed(&[(1, "Admin"), (8, "User"), (16, "Banned"), (0, "Nobody")]);
static MESSAGES: Names = Names::fixed(&[(4, "AcctLoginReply")]);

/// Calls `show` with a sample message.
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
        item: None,
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
