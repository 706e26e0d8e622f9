//! Errors in rules, as users see them.

use std::fmt::Write as _;
use std::sync::Arc;

use worldwire_core::{Diagnostic, Severity};
use worldwire_dissect::Definitions;

use super::{RuleFile, Rules};

/// Every diagnostic about a text, with the line it refers to.
fn shown(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let span = diagnostic.span_in_line();
        let line = diagnostic.line_text();
        let before = line.get(..span.start).unwrap_or_default().chars().count();
        let marks = line.get(span).unwrap_or_default().chars().count().max(1);
        let _ = writeln!(text, "{diagnostic}");
        let _ = writeln!(text, "    {line}\n    {:before$}{}", "", "^".repeat(marks));
    }
    text
}

fn definitions() -> Definitions {
    let mut definitions = Definitions::built_in();
    let def = "int32 channel\nint64 gameId\nstring authorName\nstring message\n";
    definitions.add([("S_CHAT.9.def", def), ("C_CHAT.9.def", "int32 channel\nstring message\n")]);
    definitions
}

#[test]
fn text_in_a_field_that_also_has_named_values_need_not_be_a_name() {
    assert_eq!(mistakes("when auth.PlayerCreateReply { set playerName = \"Yeesha\" }"), "");
}

fn mistakes(text: &str) -> String {
    match Rules::parse("my.rules", text, &definitions()) {
        Ok(rules) => shown(rules.warnings()),
        Err(mistakes) => {
            assert!(mistakes.iter().any(|mistake| mistake.severity() == Severity::Error));
            shown(&mistakes)
        }
    }
}

#[test]
fn mistakes_of_grammar_are_all_reported() {
    insta::assert_snapshot!(mistakes(include_str!("tests/grammar.rules")), @r##"
    my.rules:1:1: error: unknown rule `whne` (did you mean `when`?)
        whne auth.* { drop }
        ^^^^
    my.rules:4:3: error: unknown statement `sett` (did you mean `set`?)
          sett os = "mac"
          ^^^^
    my.rules:5:10: error: wanted `=`, found `==` (`=` sets a value; `==` is for comparisons in filters)
          set os == "mac"
                 ^^
    my.rules:6:10: error: wanted `=`, found text
          set os "mac"
                 ^
    my.rules:7:9: error: `200` is not a time (write a number and a unit: `200ms`, `30s`, `5m` or `1h`)
          delay 200
                ^^^
    my.rules:8:9: error: `48h` is out of range (use at least 1ms and at most 24h)
          delay 48h
                ^^^
    my.rules:9:9: error: `1sec` is not a time (write a number and a unit: `200ms`, `30s`, `5m` or `1h`)
          delay 1sec
                ^^^^
    my.rules:10:7: error: wanted text in double quotes, found `text`
          log text
              ^^^^
    my.rules:11:11: error: wanted `}` after the field, found text
          log "{os"
                  ^
    my.rules:12:10: error: a `}` without `{` (write `}}` for a brace in the text)
          log "a } b"
                 ^
    my.rules:13:7: error: no closing quote on this line (text ends with `"`)
          log "open
              ^
    my.rules:14:8: error: wanted a name in double quotes, found the end of the line
          count
               ^
    my.rules:15:10: error: wanted `client`, `server` or `back`, found `clinet` (after `inject`, write the receiver, then the message)
          inject clinet auth.PingReply
                 ^^^^^^
    my.rules:16:16: error: wanted the name of a message, found the end of the line
          inject client
                       ^
    my.rules:17:8: error: wanted `;` or a new line after the statement, found `drop`
          drop drop
               ^^^^
    my.rules:20:5: error: the filter is missing (`when * { ... }` applies to every message)
        when { drop }
            ^
    my.rules:21:9: error: wanted a comparison, found `=` (did you mean `==`?)
        when os = "mac" { drop }
                ^
    my.rules:22:16: error: no closing `}` (end the list with `}`)
        when result in {Success { drop }
                       ^
    my.rules:23:13: error: this block does nothing (write at least one statement, such as `drop`)
        when auth.* { }
                    ^^^
    my.rules:24:1: error: `drop` needs a block around it (write `when FILTER { drop ... }`)
        drop
        ^^^^
    my.rules:25:7: error: `1ms` is out of range (use at least 10ms and at most 24h)
        every 1ms { log "x" }
              ^^^
    my.rules:26:4: error: unknown event `disconnect` (the only event is `connect`)
        on disconnect { log "x" }
           ^^^^^^^^^^
    my.rules:27:5: error: `5x` cannot name a variable (use letters, digits and `_`, and begin with a letter)
        let 5x = 3
            ^^
    my.rules:28:9: error: wanted a value (put text in double quotes)
        let y = 'a'
                ^
    my.rules:29:17: error: `a` is given twice
        let z = { a: 1, a: 2 }
                        ^
    my.rules:30:13: error: no closing `}` (end the block with `}`)
        when auth.* {
                    ^
    "##);
}

#[test]
fn unknown_names_and_values_get_suggestions() {
    insta::assert_snapshot!(mistakes(include_str!("tests/names.rules")), @r##"
    my.rules:2:5: error: `muted` already has an initial value (remove one of them)
        let muted = "again"
            ^^^^^
    my.rules:3:13: error: `muted2` is not a variable (did you mean `muted`?)
        let other = muted2
                    ^^^^^^
    my.rules:4:5: error: `or` is a keyword of the filter language (choose another name)
        let or = 5
            ^^
    my.rules:6:6: error: there is no message named `auth.AcctLoginRequset` (did you mean `auth.AcctLoginRequest`?)
        when auth.AcctLoginRequset { drop }
             ^^^^^^^^^^^^^^^^^^^^^
    my.rules:7:27: error: no matching message has a field `accountNam` (did you mean `accountName`?)
        when AcctLoginRequest and accountNam == "x" { drop }
                                  ^^^^^^^^^^
    my.rules:8:35: error: `result` has no value named `Succes` (did you mean `Success`?)
        when AcctLoginReply and result == Succes { drop }
                                          ^^^^^^
    my.rules:9:6: error: `accountName` is a field (write `exists(accountName)` or `fields.accountName`)
        when accountName { drop }
             ^^^^^^^^^^^
    my.rules:10:6: warning: no known message matches `auth.*Foo`
        when auth.*Foo { drop }
             ^^^^^^^^^
    my.rules:12:16: error: `result` has no value named `Succes` (did you mean `Success`?)
          set result = Succes
                       ^^^^^^
    my.rules:13:7: error: `result` has no value named `Sucess` (did you mean `Success`?)
          set result = "Sucess"
              ^^^^^^
    my.rules:14:7: error: no matching message has a field `resultt` (did you mean `result`?)
          set resultt = Success
              ^^^^^^^
    my.rules:15:7: error: `billingType` is a number, not `"many"`
          set billingType = "many"
              ^^^^^^^^^^^
    my.rules:16:21: error: `transIdd` is neither a variable nor a field (did you mean `transId`?)
          set billingType = transIdd
                            ^^^^^^^^
    my.rules:17:23: error: `accountFlags` has no value named `Admn` (did you mean `Admin`?)
          set accountFlags = [Admn, User]
                              ^^^^
    my.rules:18:7: error: `message.from` is metadata and cannot be set
          set message.from = client
              ^^^^^^^^^^^^
    my.rules:19:7: error: `muted` is a variable (write `let muted = ...`, or `set fields.muted = ...`)
          set muted = 5
              ^^^^^
    my.rules:20:9: error: `resultt` is neither a variable nor a field (did you mean `result`?)
          log "{resultt} {mutde}"
                ^^^^^^^
    my.rules:20:19: error: `mutde` is neither a variable nor a field (did you mean `muted`?)
          log "{resultt} {mutde}"
                          ^^^^^
    my.rules:21:14: error: `transIdd` is neither a variable nor a field (did you mean `transId`?)
          let seen = transIdd
                     ^^^^^^^^
    my.rules:23:3: warning: `delay` has no effect after `drop`
          delay 5ms
          ^^^^^^^^^
    my.rules:26:20: error: `Elin` is neither a variable nor a field (put text in double quotes)
          set authorName = Elin
                           ^^^^
    my.rules:27:17: error: `channel-1` is neither a variable nor a field (put spaces around `-` to subtract)
          set channel = channel-1
                        ^^^^^^^^^
    my.rules:28:17: error: there is no message named `S_CHTA` (did you mean `S_CHAT`?)
          inject client S_CHTA { message: "x" }
                        ^^^^^^
    my.rules:29:17: error: several messages are named `PingRequest` (write one of `gatekeeper.PingRequest`, `auth.PingRequest`, `game.PingRequest`, `file.PingRequest`)
          inject server PingRequest
                        ^^^^^^^^^^^
    my.rules:30:15: error: tera.C_CHAT has no field `mesage` (did you mean `message`?)
          inject back tera.C_CHAT { channel: 1, mesage: "x" }
                      ^^^^^^^^^^^
    my.rules:33:3: error: `drop` needs a message, but `every` has none (move it to a `when`)
          drop
          ^^^^
    my.rules:34:3: error: `back` needs a message to reply to (write `client` or `server`)
          inject back S_CHAT
          ^^^^^^^^^^^^^^^^^^
    my.rules:35:9: error: `message` is not a variable (`every` has no message with fields; put text in double quotes)
          log "{message}"
                ^^^^^^^
    my.rules:36:14: error: `os` is not a variable (did you mean `or`?)
          let seen = os
                     ^^
    my.rules:38:14: error: `set` needs a message, but `on connect` has none (move it to a `when`)
        on connect { set os = "mac" }
                     ^^^^^^^^^^^^^^
    my.rules:39:44: warning: auth.PingReply may not be encodable: auth.PingReply: fields.pingTimeMs: is missing
        when auth.AcctLoginRequest { inject client auth.PingReply { transId: "x" } }
                                                   ^^^^^^^^^^^^^^
    "##);
}

#[test]
fn valid_rules_have_no_warnings() {
    let text = include_str!("tests/valid.rules");
    assert_eq!(mistakes(text), "");
}

#[test]
fn values_of_another_kind_are_refused() {
    let of = |value: &str| mistakes(&format!("when S_CHAT {{ set authorName = {value} }}"));
    assert!(of("5").contains("error: `authorName` is text, not `5` (write \"5\")"), "{}", of("5"));
    assert!(of("true").contains("error: `authorName` is text, not `true`"), "{}", of("true"));
    assert_eq!(of("channel + \"5\""), "");
    let of = |value: &str| mistakes(&format!("when S_CHAT {{ set channel = {value} }}"));
    assert!(of("true").contains("error: `channel` is a number, not `true`"), "{}", of("true"));
    assert_eq!(of("5"), "");
}

#[test]
fn bounds_are_named() {
    let long = "#".repeat((1 << 20) + 1);
    assert!(mistakes(&long).contains("a rules file can have at most 1048576 bytes"));
    let many: String = (0..300).map(|number| format!("let v{number} = 0\n")).collect();
    assert!(mistakes(&many).contains("a file can have at most 256 variables"));
    let deep = format!("let x = {}", "[".repeat(100));
    assert!(mistakes(&deep).contains("values can be nested at most 64 levels deep"));
    let sum = format!("let x = 0{}", " + 1".repeat(300));
    assert!(mistakes(&sum).contains("an expression can have at most 256 values"));
    let text = format!("let x = \"{}\"", "x".repeat(70_000));
    assert!(mistakes(&text).contains("a variable can hold at most 65536 bytes"));
    let wrong = "wrong\n".repeat(1000);
    assert!(mistakes(&wrong).lines().count() <= 3 * 100);
}

#[test]
fn a_file_with_mistakes_leaves_the_rules_as_they_are() {
    let text = "when auth.* { count \"a\" }";
    let file = RuleFile::new("my.rules", text, Arc::new(definitions())).unwrap();
    assert_eq!(file.counts(), [("a".to_owned(), 0)]);
    let mistakes = file.reload("when auth.* { cuont \"b\" }").unwrap_err();
    assert_eq!(mistakes.len(), 1);
    assert_eq!(file.counts(), [("a".to_owned(), 0)]);
    let warnings = file.reload("when auth.*Foo { drop; count \"b\" }").unwrap();
    assert_eq!((warnings.len(), file.warnings().len()), (1, 1));
    assert_eq!(file.counts(), [("b".to_owned(), 0)]);
}
