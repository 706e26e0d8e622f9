//! A filter prints as the text it was parsed from.

use proptest::prelude::*;
use regex_lite::Regex;

use super::super::Filter;
use super::super::class::ObjectClass;
use super::super::expression::{Check, Comparison, Expression, Path, Pattern, RESERVED, Step};
use super::super::literal::{Literal, Member, Needle, Regular, Set, Text};
use super::super::number::Number;
use super::with_subject;

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
        1 => prop::sample::select(vec!["in", "and", "fields", "message", "name", "exists", "refs", "any"])
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
        any::<String>()
            .prop_filter("a name", |name| !name.is_empty())
            .prop_map(|name| Check::Is(ObjectClass::new(&name))),
        piece().prop_map(Check::StartsWith),
        piece().prop_map(Check::EndsWith),
        regular.prop_map(|text| Check::Matches(Regular::new(text, Regex::new(text).unwrap()))),
        prop::collection::vec(member, 1..6).prop_map(|members| Check::In(Set::new(members))),
    ]
}

fn an_expression() -> impl Strategy<Value = Expression> {
    let pattern = "[a-z*][a-z0-9*_-]{0,4}(\\.[a-z0-9*]{1,4}){0,2}"
        .prop_filter("reserved", |text| {
            !RESERVED.contains(&&**text) && !text.starts_with("fields.") && text != "fields"
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
        let filter = Filter::of(expression);
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
    fn no_sequence_of_words_makes_the_parser_panic(
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
        let filter = Filter::of(expression.clone());
        let opposite = Filter::of(Expression::Not(Box::new(expression)));
        with_subject(|subject| assert_ne!(filter.matches(subject), opposite.matches(subject)));
    }
}
