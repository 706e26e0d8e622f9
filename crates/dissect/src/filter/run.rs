//! Asking a filter about a message.

use worldwire_core::value::{Content, parse_hex};
use worldwire_core::{NodeRef, Value};

use super::{Expression, Literal, Operator, Path, Step, Subject};

pub(super) fn matches(expression: &Expression, subject: &Subject<'_>) -> bool {
    match expression {
        Expression::Message(pattern) => message(pattern, subject),
        Expression::Exists(path) => any(path, subject, &mut |_| true),
        Expression::Compare(path, operator, literal) => {
            any(path, subject, &mut |found| found.compare(*operator, literal))
        }
        Expression::In(path, values) => any(path, subject, &mut |found| {
            values.iter().any(|(low, high)| match high {
                None => found.compare(Operator::Equal, low),
                Some(high) => {
                    found.compare(Operator::GreaterOrEqual, low)
                        && found.compare(Operator::LessOrEqual, high)
                }
            })
        }),
        Expression::Not(inner) => !matches(inner, subject),
        Expression::All(parts) => parts.iter().all(|part| matches(part, subject)),
        Expression::Any(parts) => parts.iter().any(|part| matches(part, subject)),
    }
}

fn message(pattern: &str, subject: &Subject<'_>) -> bool {
    let short = subject.name.split_once('.').map_or(subject.name, |(_, name)| name);
    glob(pattern, subject.name)
        || pattern == subject.family
        || (!pattern.contains('.') && glob(pattern, short))
}

/// Whether a name is like a pattern in which `*` stands for anything. Linear but for the number of
/// stars, since going back to the last star is enough.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    n = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Found<'f> {
    Node(NodeRef<'f, 'f>),
    Text(&'f str),
    Integer(u64),
    Float(f64),
}

/// Whether anything that the path leads to passes the test: among the fields, at the top of the
/// tree, or among what is known about the message; the first place that has it counts.
fn any(path: &Path, subject: &Subject<'_>, test: &mut dyn FnMut(Found<'_>) -> bool) -> bool {
    let Some((Step::Name(first), rest)) = path.0.split_first() else {
        return false;
    };
    if let Some(fields) = subject.tree.find("fields")
        && let Some(node) = fields.child(first)
    {
        return walk(node, rest, test);
    }
    if let Some(node) = subject.tree.roots().find(|node| node.name() == &**first) {
        return walk(node, rest, test);
    }
    if !rest.is_empty() {
        return false;
    }
    test(match &**first {
        "name" => Found::Text(subject.name),
        "family" => Found::Text(subject.family),
        "from" => Found::Text(subject.from),
        "stream" => Found::Integer(subject.stream),
        "packet" => Found::Integer(subject.packet),
        "length" => Found::Integer(subject.length),
        "time" => Found::Float(subject.time),
        _ => return false,
    })
}

fn walk(node: NodeRef<'_, '_>, steps: &[Step], test: &mut dyn FnMut(Found<'_>) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return test(Found::Node(node));
    };
    let list = matches!(node.value(), Value::List);
    match step {
        Step::Index(index) => {
            list && node.children().nth(*index).is_some_and(|child| walk(child, rest, test))
        }
        Step::Each => list && node.children().any(|child| walk(child, rest, test)),
        // A name on a list means any of its elements.
        Step::Name(_) if list => node.children().any(|child| walk(child, steps, test)),
        Step::Name(name) => node.child(name).is_some_and(|child| walk(child, rest, test)),
    }
}

impl Found<'_> {
    fn compare(&self, operator: Operator, literal: &Literal) -> bool {
        match self {
            Self::Integer(value) => number(i128::from(*value), operator, literal),
            Self::Float(value) => float(*value, operator, literal, false),
            Self::Text(value) => text(value, operator, literal),
            Self::Node(node) => compare(*node, operator, literal),
        }
    }
}

fn compare(node: NodeRef<'_, '_>, operator: Operator, literal: &Literal) -> bool {
    match node.value() {
        Value::Record | Value::List => false,
        Value::Null => {
            let null = matches!(literal, Literal::Null);
            match operator {
                Operator::Equal => null,
                Operator::NotEqual => !null,
                _ => false,
            }
        }
        Value::Bool(value) => match literal {
            Literal::Bool(wanted) => order(&value, operator, wanted),
            _ => number(i128::from(value), operator, literal),
        },
        Value::Unsigned(value) | Value::Hex(value) => number(i128::from(value), operator, literal),
        Value::Signed(value) => number(i128::from(value), operator, literal),
        Value::F32(value) => float(f64::from(value), operator, literal, true),
        Value::F64(value) => float(value, operator, literal, false),
        Value::Enum(value, names) => match literal {
            Literal::Text(_) | Literal::Pattern(..) => match names.name(value) {
                Some(name) => text(name, operator, literal),
                None => operator == Operator::NotEqual,
            },
            _ => number(i128::from(value), operator, literal),
        },
        Value::Flags(bits, names) => {
            let mask = match literal {
                Literal::Text(name) => names.number(name).map(i64::cast_unsigned),
                Literal::Integer(mask) => u64::try_from(*mask).ok(),
                _ => None,
            };
            match (operator, mask) {
                (Operator::Has, Some(mask)) => bits & mask == mask,
                (Operator::Has, None) => false,
                (_, Some(mask)) => order(&bits, operator, &mask),
                (_, None) => operator == Operator::NotEqual,
            }
        }
        Value::Span(_) => match (node.content(), literal) {
            (Some(Content::Text(value)), _) => text(&value, operator, literal),
            (Some(Content::Bytes(value)), Literal::Bytes(wanted)) => {
                bytes(&value, operator, wanted)
            }
            // Digits in a row are bytes as well as text.
            (Some(Content::Bytes(value)), Literal::Text(wanted)) => match parse_hex(wanted) {
                Some(wanted) => bytes(&value, operator, &wanted),
                None => bytes(&value, operator, wanted.as_bytes()),
            },
            (Some(Content::Bytes(_)), _) => operator == Operator::NotEqual,
            (None, _) => false,
        },
    }
}

fn order<T: PartialOrd + ?Sized>(value: &T, operator: Operator, wanted: &T) -> bool {
    match operator {
        Operator::Equal => value == wanted,
        Operator::NotEqual => value != wanted,
        Operator::Less => value < wanted,
        Operator::LessOrEqual => value <= wanted,
        Operator::Greater => value > wanted,
        Operator::GreaterOrEqual => value >= wanted,
        _ => false,
    }
}

fn number(value: i128, operator: Operator, literal: &Literal) -> bool {
    match literal {
        Literal::Integer(wanted) if operator == Operator::Has => {
            *wanted >= 0 && value & wanted == *wanted
        }
        Literal::Integer(wanted) => order(&value, operator, wanted),
        Literal::Float(wanted) => against_float(value, operator, *wanted),
        Literal::Bool(wanted) => order(&value, operator, &i128::from(*wanted)),
        _ => operator == Operator::NotEqual,
    }
}

/// An integer against a fraction, without rounding the integer.
fn against_float(value: i128, operator: Operator, wanted: f64) -> bool {
    // Numbers of the wire have 64 bits, so a saturated bound is beyond all of them.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let whole = wanted.floor() as i128;
    let exact = wanted.fract() == 0.0;
    match operator {
        Operator::Equal => exact && value == whole,
        Operator::NotEqual => !exact || value != whole,
        Operator::Less => {
            if exact {
                value < whole
            } else {
                value <= whole
            }
        }
        Operator::LessOrEqual => value <= whole,
        Operator::Greater => value > whole,
        Operator::GreaterOrEqual => {
            if exact {
                value >= whole
            } else {
                value > whole
            }
        }
        _ => false,
    }
}

/// A fraction; `single` for one of single precision, which `0.1` has to be rounded to first.
fn float(value: f64, operator: Operator, literal: &Literal, single: bool) -> bool {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "meant")]
    let wanted = match literal {
        Literal::Float(wanted) if single => f64::from(*wanted as f32),
        Literal::Float(wanted) => *wanted,
        Literal::Integer(wanted) => *wanted as f64,
        _ => return operator == Operator::NotEqual,
    };
    order(&value, operator, &wanted)
}

fn text(value: &str, operator: Operator, literal: &Literal) -> bool {
    let owned;
    let wanted = match literal {
        Literal::Pattern(_, pattern) => return pattern.is_match(value),
        Literal::Text(wanted) => &**wanted,
        // A name that looks like a number is still a name.
        Literal::Integer(wanted) => {
            owned = wanted.to_string();
            &owned
        }
        _ => return operator == Operator::NotEqual,
    };
    match operator {
        Operator::Contains => value.contains(wanted),
        Operator::StartsWith => value.starts_with(wanted),
        Operator::EndsWith => value.ends_with(wanted),
        _ => order(value, operator, wanted),
    }
}

fn bytes(value: &[u8], operator: Operator, wanted: &[u8]) -> bool {
    match operator {
        Operator::Contains => contains(value, wanted),
        Operator::StartsWith => value.starts_with(wanted),
        Operator::EndsWith => value.ends_with(wanted),
        _ => order(value, operator, wanted),
    }
}

/// Whether bytes hold others. Long needles in long hay would be quadratic, so runs of the first
/// byte are all that is tried, and only so often.
fn contains(hay: &[u8], needle: &[u8]) -> bool {
    let Some(first) = needle.first() else {
        return true;
    };
    /// More work than this is no honest search.
    const MOST: usize = 1 << 26;
    let mut work = 0;
    for (at, byte) in hay.iter().enumerate() {
        if byte != first {
            continue;
        }
        let same = hay[at..].iter().zip(needle).take_while(|(a, b)| a == b).count();
        if same == needle.len() {
            return true;
        }
        work += same;
        if work > MOST {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::{Filter, Subject};
    use crate::{Codec, CodecOptions, Keys};
    use worldwire_core::{Limits, Side};

    fn ask(filter: &str) -> bool {
        let json = serde_json::json!({
            "name": "AcctLoginReply",
            "fields": {
                "transId": 7, "result": "PlayerAlreadyExists",
                "accountId": "12345678-1234-5678-1234-567812345678",
                "accountFlags": ["Admin", "User"], "billingType": 1,
                "encryptionKey": [1, 2, 3, 4]
            }
        });
        let (keys, limits) = (Keys::none(), Limits::DEFAULT);
        let options = CodecOptions { from: Side::Server, keys: &keys, limits: &limits };
        let codec = Codec::named("uru.auth").unwrap();
        let bytes = codec.encode(&json, &options).unwrap();
        let tree = codec.decode(&bytes, &options);
        let subject = Subject {
            name: "auth.AcctLoginReply",
            family: "uru",
            from: "server",
            stream: 3,
            packet: 40,
            time: 1.5,
            length: bytes.len() as u64,
            tree: &tree,
        };
        Filter::parse(filter).unwrap().matches(&subject)
    }

    #[test]
    fn messages_match_by_name() {
        for yes in ["auth.AcctLoginReply", "AcctLoginReply", "*Reply", "auth.*", "uru", "*"] {
            assert!(ask(yes), "{yes}");
        }
        for no in ["auth.AcctLoginRequest", "acctloginreply", "game.*", "ki", "auth"] {
            assert!(!ask(no), "{no}");
        }
    }

    #[test]
    fn fields_compare() {
        for yes in [
            "transId == 7",
            "fields.transId == 7",
            "transId in {1, 5..9}",
            "transId < 7.5 and transId > 6.5 and transId != 7.5",
            "result != 0",
            "result == 12",
            "result == PlayerAlreadyExists",
            "result startswith Player",
            "accountId == 12345678-1234-5678-1234-567812345678",
            "accountFlags has Admin and accountFlags == 9",
            "not accountFlags has Banned",
            "encryptionKey[2] == 3",
            "encryptionKey[*] == 4",
            "fields.encryptionKey[3]",
            "name ~ \"^Acct.*Reply$\"",
            "from == server and stream == 3 and time < 2 and packet >= 40",
            "!(nothing == 1)",
        ] {
            assert!(ask(yes), "{yes}");
        }
        for no in [
            "transId == 8",
            "nothing == 1",
            "nothing != 1",
            "fields.nothing",
            "encryptionKey[4] == 0",
            "result == Success",
            "accountFlags has Nothing",
            "transId contains 7",
        ] {
            assert!(!ask(no), "{no}");
        }
    }
}
