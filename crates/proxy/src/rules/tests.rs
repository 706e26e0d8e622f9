//! Mistakes in rules, as people see them.

use std::fmt::Write as _;
use std::sync::Arc;

use worldwire_core::{Diagnostic, Severity};
use worldwire_dissect::Definitions;

use super::{RuleFile, Rules};

/// Every diagnostic about a text, with the line it is about.
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
    insta::assert_snapshot!(mistakes(include_str!("tests/grammar.rules")));
}

#[test]
fn unknown_names_and_values_get_suggestions() {
    insta::assert_snapshot!(mistakes(include_str!("tests/names.rules")));
}

#[test]
fn valid_rules_have_no_warnings() {
    let text = include_str!("tests/valid.rules");
    assert_eq!(mistakes(text), "");
}

#[test]
fn bounds_are_named() {
    let long = "#".repeat((1 << 20) + 1);
    assert!(mistakes(&long).contains("a rules file can have at most 1048576 bytes"));
    let many: String = (0..300).map(|number| format!("let v{number} = 0\n")).collect();
    assert!(mistakes(&many).contains("a file can have at most 256 variables"));
    let deep = format!("let x = {}", "[".repeat(100));
    assert!(mistakes(&deep).contains("values can be nested 64 levels deep"));
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
