//! Errors in filters, and their bounds.

use worldwire_core::{Reader, Tree};

use super::super::{Filter, FilterError, FilterErrorKind, Resolver, Subject};
use crate::item::Time;

#[track_caller]
fn wrong(text: &str) -> FilterError {
    Filter::parse(text).expect_err(text)
}

#[test]
fn errors_point_at_the_mistake() {
    assert_eq!(
        wrong("accountName == \"x").to_string(),
        "filter, column 16: wanted text in double quotes, found no closing quote\n  \
         accountName == \"x\n                 ^"
    );
    for (text, column, message) in [
        ("", 1, "wanted a field or a message name, found the end"),
        ("a and", 6, "wanted a field or a message name, found the end"),
        ("a and and b", 7, "wanted a test, found `and`"),
        ("a and && b", 7, "found `&&`; there is an extra operator"),
        ("a = 1", 3, "wanted a comparison, found `=`; did you mean `==`?"),
        ("a === 1", 3, "found `===`; did you mean `==`?"),
        ("a <> 1", 3, "found `<>`; did you mean `!=`?"),
        ("a => 1", 3, "did you mean `>=`?"),
        ("a & b", 3, "did you mean `and`"),
        ("a | b", 3, "did you mean `or`?"),
        ("a !~ b", 3, "write `not` before"),
        ("a AND b", 3, "wanted `and`, `or` or the end, found `AND`; write `and`"),
        ("a b", 3, "wanted `and`, `or` or the end, found `b`"),
        ("a not in {1}", 3, "write `not` before"),
        ("(a", 3, "wanted `and`, `or` or `)`, found the end"),
        ("a)", 2, "found `)`; there is no open `(`"),
        ("a == 'x'", 6, "put text in double quotes"),
        ("a == ", 6, "wanted a value, found the end"),
        ("a == auth.*", 11, "`*` works only in message names"),
        ("a* == 1", 1, "write `[*]` for any element"),
        ("5 == a", 1, "put the field on the left"),
        ("\"x\" == a", 1, "put values on the right of the operator"),
        ("a == fields.b", 6, "fields can only be compared with values"),
        ("a == 12x", 6, "wanted a number, found `12x`"),
        ("a == 1.2.3", 6, "wanted a number"),
        ("a == 0x", 6, "wanted a number of at most 64 bits, found `0x`"),
        ("a == 18446744073709551616", 6, "at most 64 bits"),
        ("a == 1e999", 6, "wanted a number"),
        ("a == 0:ff", 6, "wanted bytes such as `00:ff:1a`, found `0:ff`"),
        ("a == hex\"\n\u{202e}\"", 6, "found `\\n\\u{202e}`"),
        ("a == hex\"0\"", 6, "an even number of hexadecimal digits"),
        ("a == \"\\d\"", 7, "found `\\d`; write `\\\\` for a backslash, or put `r` before"),
        ("a ~ \"(\"", 5, "wanted a regular expression, found open group"),
        ("a ~ 00:ff", 5, "wanted a regular expression, found bytes"),
        ("a < true", 3, "wanted `==` or `!=`, found `<` with true"),
        ("a has 0", 7, "wanted a flag name or a positive number"),
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
fn errors_name_the_exceeded_bound() {
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
fn a_hostile_search_is_fast() {
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
        item: None,
    };
    let needle = "a".repeat(60_000);
    assert!(Filter::parse(&format!("buffer contains \"{needle}\"")).unwrap().matches(&subject));
    assert!(!Filter::parse(&format!("buffer contains \"{needle}b\"")).unwrap().matches(&subject));
    assert!(!Filter::parse(&format!("buffer contains \"b{needle}\"")).unwrap().matches(&subject));
}

#[test]
fn misspelled_messages_are_reported() {
    let filter = Filter::parse("AcctLoginReqest or auth.* and not (uru or gap)").unwrap();
    let definitions = crate::Definitions::built_in();
    let near = Some("AcctLoginRequest".to_owned());
    assert_eq!(filter.unknown_names(&Resolver::new(&definitions)), [("AcctLoginReqest", near)]);
    let known = "LOGIN.MSG_USER_AUTHEN_V3 or MSG_PING or control.SessionOffer or LOGIN.*";
    assert!(Filter::parse(known).unwrap().unknown_names(&Resolver::new(&definitions)).is_empty());
}

#[test]
fn patterns_without_a_match_are_reported() {
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
        let unknown = filter.unknown_patterns(&Resolver::new(&definitions));
        assert_eq!(unknown, [(pattern, near.map(str::to_owned))], "{filter}");
    }
    let known = "auth.* or *Reply or *.* or * or tera.51* or LOGIN.MSG_*AUTHEN* or auht";
    let known = Filter::parse(known).unwrap();
    assert_eq!(known.unknown_patterns(&Resolver::new(&definitions)), []);
}

#[test]
fn lone_fields_are_distinguished_from_messages() {
    let definitions = crate::Definitions::built_in();
    for field in ["result", "node.NodeType", "accountName", "from"] {
        assert!(Filter::is_field(field, &Resolver::new(&definitions)), "{field}");
    }
    for other in ["resultt", "auth.AcctLoginReply", "PingReply", "NodeType.node"] {
        assert!(!Filter::is_field(other, &Resolver::new(&definitions)), "{other}");
    }
}

#[test]
fn a_filter_with_very_many_values_parses() {
    // Scanning the rest of the text for every value would take minutes.
    let values = "1,".repeat(30_000);
    assert!(Filter::parse(&format!("a in {{{values}1}}")).is_ok());
    let ranges = Filter::parse("a in {1..3, 0.5..2, 7}").map(|filter| filter.to_string());
    assert_eq!(ranges.as_deref(), Ok("a in {1..3, 0.5..2, 7}"));
}
