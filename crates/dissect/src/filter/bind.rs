//! Replaces words in filters with values that are known only later, such as variables.

use worldwire_core::json::{Json, bytes};

use super::Filter;
use super::expression::{Check, Expression};
use super::literal::{Literal, Member, Needle, Set, Text};
use super::number::Number;

/// What a word stands for.
enum Bound {
    /// Itself.
    Word,
    /// These values. There can be none or several only in a list.
    Values(Vec<Literal>),
}

impl Filter {
    /// The unquoted words that can occur in values of any kind except regular expressions.
    #[must_use]
    pub fn value_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        let mut rest = vec![&self.expression];
        while let Some(expression) = rest.pop() {
            match expression {
                Expression::Test(_, check) | Expression::Anywhere(check) => {
                    words.extend(check.literals().filter_map(word));
                }
                Expression::Not(inner) => rest.push(inner),
                Expression::All(parts) | Expression::Any(parts) => rest.extend(parts),
                Expression::Message(_) | Expression::Inside(_) | Expression::Exists(_) => {}
            }
        }
        words
    }

    /// The filter with some words replaced by values. `value` returns `None` for a word to keep,
    /// and `Some(None)` for one without a value: a comparison with it is false, even with `!=`. In
    /// a list after `in`, a list of values adds all of them.
    #[must_use]
    pub fn bind<'v>(&self, value: &dyn Fn(&str) -> Option<Option<&'v Json>>) -> Self {
        let literals = |literal: &Literal| match word(literal).map(value) {
            None | Some(None) => Bound::Word,
            Some(Some(None)) => Bound::Values(Vec::new()),
            Some(Some(Some(Json::Array(items)))) => {
                Bound::Values(items.iter().filter_map(of_json).collect())
            }
            Some(Some(Some(json))) => Bound::Values(of_json(json).into_iter().collect()),
        };
        Self { expression: bound(&self.expression, &literals), found: self.found.clone() }
    }
}

/// A word without quotes.
fn word(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::Text(text) if text.is_word() => Some(text.as_str()),
        _ => None,
    }
}

fn of_json(json: &Json) -> Option<Literal> {
    Some(match json {
        Json::Null => Literal::Null,
        Json::Bool(value) => Literal::Bool(*value),
        Json::Number(number) => {
            let text = number.to_string();
            let number = Number::parse_whole(&text).or_else(|| Number::parse_real(&text))?;
            Literal::Number(number)
        }
        Json::String(text) => Literal::Text(Text::new(text)),
        Json::Array(_) => return None,
        Json::Object(_) => Literal::Bytes(bytes(json).ok()?.into()),
    })
}

type Lookup<'l> = dyn Fn(&Literal) -> Bound + 'l;

fn bound(expression: &Expression, literals: &Lookup<'_>) -> Expression {
    let all = |parts: &[Expression]| parts.iter().map(|part| bound(part, literals)).collect();
    // Nothing passes.
    let never = || Expression::Any(Vec::new());
    match expression {
        Expression::Test(path, check) => match bound_check(check, literals) {
            Some(check) => Expression::Test(path.clone(), check),
            None => never(),
        },
        Expression::Anywhere(check) => {
            bound_check(check, literals).map_or_else(never, Expression::Anywhere)
        }
        Expression::Not(inner) => Expression::Not(Box::new(bound(inner, literals))),
        Expression::All(parts) => Expression::All(all(parts)),
        Expression::Any(parts) => Expression::Any(all(parts)),
        Expression::Message(_) | Expression::Inside(_) | Expression::Exists(_) => {
            expression.clone()
        }
    }
}

/// The same check with other values. `None` if nothing can pass it.
fn bound_check(check: &Check, literals: &Lookup<'_>) -> Option<Check> {
    let one = |literal: &Literal| match literals(literal) {
        Bound::Word => Some(literal.clone()),
        Bound::Values(values) => <[Literal; 1]>::try_from(values).ok().map(|[only]| only),
    };
    let piece = |literal: &Literal| match one(literal)? {
        text @ (Literal::Text(_) | Literal::Bytes(_)) => Some(text),
        // As in a filter, where `contains 7` looks for text.
        number @ Literal::Number(_) => Some(Literal::Text(Text::new(&number.to_string()))),
        Literal::Null | Literal::Bool(_) => None,
    };
    Some(match check {
        Check::Compare(comparison, literal) => Check::Compare(*comparison, one(literal)?),
        Check::Has(literal) => Check::Has(one(literal)?),
        Check::Contains(needle) => Check::Contains(Box::new(match literals(needle.literal()) {
            Bound::Word => (**needle).clone(),
            Bound::Values(_) => Needle::new(piece(needle.literal())?),
        })),
        Check::StartsWith(literal) => Check::StartsWith(piece(literal)?),
        Check::EndsWith(literal) => Check::EndsWith(piece(literal)?),
        Check::Matches(_) | Check::Is(_) => check.clone(),
        Check::In(set) => {
            let mut members = Vec::new();
            for member in set.members() {
                match member {
                    Member::One(literal) => match literals(literal) {
                        Bound::Word => members.push(member.clone()),
                        Bound::Values(values) => {
                            members.extend(values.into_iter().map(Member::One))
                        }
                    },
                    Member::Range(..) => members.push(member.clone()),
                }
            }
            Check::In(Set::new(members))
        }
    })
}

impl Check {
    /// The values that it compares with, except ranges and regular expressions.
    fn literals(&self) -> impl Iterator<Item = &Literal> {
        let (one, set) = match self {
            Self::Compare(_, literal)
            | Self::Has(literal)
            | Self::StartsWith(literal)
            | Self::EndsWith(literal) => (Some(literal), None),
            Self::Contains(needle) => (Some(needle.literal()), None),
            Self::In(set) => (None, Some(set.members())),
            Self::Matches(_) | Self::Is(_) => (None, None),
        };
        let members = set.into_iter().flatten().filter_map(|member| match member {
            Member::One(literal) => Some(literal),
            Member::Range(..) => None,
        });
        one.into_iter().chain(members)
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::Json;
    use worldwire_core::{Reader, Tree};

    use super::super::{Filter, Subject};
    use crate::item::Time;

    /// Whether a filter with `seen` replaced matches a message with two numbers.
    fn matches(filter: &str, seen: Option<&Json>) -> bool {
        let mut reader = Reader::traced("message", &[7, 200, b'7', b'x'], Tree::new());
        let read = reader.record("fields", |reader| {
            reader.u8("id")?;
            reader.u8("big")?;
            reader.span("text", 2, worldwire_core::Form::Utf8).map(drop)
        });
        read.unwrap();
        let tree = reader.finish();
        let subject = Subject {
            name: "auth.PingRequest",
            family: "uru",
            from: "client",
            stream: 0,
            packet: 0,
            time: 0.0,
            date: Time(0),
            ends: None,
            length: 2,
            tree: &tree,
            item: None,
        };
        let filter = Filter::parse(filter).unwrap();
        filter.bind(&|word| (word == "seen").then_some(seen)).matches(&subject)
    }

    #[test]
    fn words_become_values() {
        let seven = Json::from(7);
        let list: Json = [1, 7].into_iter().collect();
        for (filter, seen) in [
            ("id == seen", &seven),
            ("id <= seen and big > seen", &seven),
            ("id in {1, seen}", &seven),
            ("id in {seen}", &list),
            ("text startswith seen and text contains seen", &seven),
            ("text contains \"7x\" and any contains seen", &Json::from("7x")),
            ("not big == seen and id != 6", &seven),
        ] {
            assert!(matches(filter, Some(seen)), "{filter}");
            assert!(!matches(filter, None) || filter.starts_with("not "), "{filter}");
        }
        // A quoted word is text, and a list equals nothing.
        assert!(!matches("text contains \"seen\"", Some(&seven)));
        assert!(!matches("id == seen", Some(&list)));
        assert!(!matches("id != seen", None));
    }

    #[test]
    fn all_words_without_quotes_are_listed() {
        let filter = "a == b or c contains d and not e in {f, \"g\", 3} and h startswith i";
        let filter = Filter::parse(filter).unwrap();
        let mut words = filter.value_words();
        words.sort_unstable();
        assert_eq!(words, ["b", "d", "f", "i"]);
    }

    #[test]
    fn a_name_can_decide() {
        let decide =
            |filter: &str| Filter::parse(filter).unwrap().matches_name("uru", "auth.PingRequest");
        assert_eq!(decide("PingRequest or x == 3"), Some(true));
        assert_eq!(decide("PingReply and x == 3"), Some(false));
        assert_eq!(decide("auth.* and x == 3"), None);
        assert_eq!(decide("not (tera or PingReply)"), Some(true));
        assert_eq!(decide("x == 3 or PingReply"), None);
        // Any message can be a problem, whatever its name.
        assert_eq!(
            (decide("problem"), decide("not problem"), decide("warning")),
            (None, None, Some(false))
        );
    }
}
