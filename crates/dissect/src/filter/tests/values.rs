//! Values of every kind, and combinations of tests.

use super::super::Filter;
use super::check;

#[test]
fn messages_match_by_name() {
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
            // Escapes as JSON writes them.
            "utf16 == \"D\\u00fcn\" and utf16 != \"D\\/n\"",
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
fn bytes_compare_with_stored_bytes() {
    check(
        &[
            "buffer == 98:53:f1:64:65:ff",
            "buffer == hex\"9853 F1 6465ff\"",
            "buffer contains 53:f1 and buffer startswith hex\"98\" and buffer endswith 65:ff",
            "buffer contains \"de\"",
            // Without quotes, in the form that output shows.
            "buffer == 9853f16465ff and buffer == 9853F16465FF and guid != 9853f16465ff",
            "buffer contains f164 and buffer startswith 9853 and buffer endswith 65ff",
            "buffer in {abcd, 9853f16465ff}",
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
            "buffer == 9853f1 or buffer contains 53f164ff or buffer in {9853, 9853f1}",
            "utf8 == 4775696c64 or utf8 contains 4775",
            "buffer == 123456789012e4567890123456789012",
            "utf16 == \"D\\0\"",
            "message.stream contains 03:00",
        ],
    );
}

#[test]
fn lists_match_by_element() {
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
fn value_lists_hold_ranges_and_other_values() {
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
fn missing_fields_fail_every_test() {
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
fn fields_take_precedence_over_metadata() {
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
