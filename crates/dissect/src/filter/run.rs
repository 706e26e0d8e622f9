//! Matches filters against messages.

use core::cell::Cell;
use core::cmp::Ordering;
use core::ops::ControlFlow::{self, Break, Continue};
use std::borrow::Cow;
use std::net::IpAddr;

use worldwire_core::text::write_value;
use worldwire_core::value::Content;
use worldwire_core::{Children, Error, Form, Names, NodeRef, Side, Tree, Value};

use super::Subject;
use super::class::ObjectClass;
use super::expression::{Check, Comparison, Expression, Metadata, Path, Pattern, Start, Step};
use super::literal::{Literal, Member, Needle, Set, Text};
use super::moment::{date, seconds};
use super::number::{Count, Number};
use super::tail::{self, Ambiguities};
use crate::item::{Item, NoteKind, Time};
use crate::render::names_in;

/// Whether a message matches.
pub(super) fn matches(expression: &Expression, subject: &Subject<'_>, found: &Ambiguities) -> bool {
    match expression {
        Expression::Message(pattern) => {
            pattern.fits(subject.family, subject.name)
                || is_problem(pattern) && subject.item.is_some_and(Item::is_problem)
        }
        Expression::Inside(pattern) => subject.has_inside(pattern),
        Expression::Anywhere(check) => {
            matches!(check, Check::Contains(needle) if is_anywhere(needle, subject))
        }
        Expression::Exists(path) => look(path, subject, found, &mut |_| true).is_some(),
        Expression::Test(path, check) => passes(path, check, subject, found),
        Expression::Not(inner) => !matches(inner, subject, found),
        Expression::All(parts) => parts.iter().all(|part| matches(part, subject, found)),
        Expression::Any(parts) => parts.iter().any(|part| matches(part, subject, found)),
    }
}

/// Whether a message matches; `None` if its name and family alone do not decide that.
pub(super) fn matches_name(expression: &Expression, family: &str, name: &str) -> Option<bool> {
    // The outcome of a list of parts: `deciding` if any part has that outcome.
    let joined = |parts: &[Expression], deciding: bool| {
        let mut outcome = Some(!deciding);
        for part in parts {
            match matches_name(part, family, name) {
                Some(decided) if decided == deciding => return Some(deciding),
                Some(_) => {}
                None => outcome = None,
            }
        }
        outcome
    };
    match expression {
        Expression::Message(pattern) => match pattern.fits(family, name) {
            // Any message can be a problem.
            false if is_problem(pattern) => None,
            fits => Some(fits),
        },
        Expression::Not(inner) => matches_name(inner, family, name).map(|matches| !matches),
        Expression::All(parts) => joined(parts, false),
        Expression::Any(parts) => joined(parts, true),
        Expression::Inside(_)
        | Expression::Anywhere(_)
        | Expression::Exists(_)
        | Expression::Test(..) => None,
    }
}

/// Whether a pattern also means messages that cannot be decoded completely.
fn is_problem(pattern: &Pattern) -> bool {
    *pattern.0 == *NoteKind::Problem.name()
}

/// Whether any value contains a text, as output shows it, or the message contains the bytes.
fn is_anywhere(needle: &Needle, subject: &Subject<'_>) -> bool {
    if !needle.is_text() {
        return subject.tree.layers().iter().any(|layer| needle.is_in(layer.data()));
    }
    let mut text = String::new();
    let mut is_shown = |node: NodeRef<'_, '_>| {
        text.clear();
        write_value(node, 0, &mut text);
        needle.is_in(text.as_bytes())
    };
    let has = |node: NodeRef<'_, '_>| match node.value() {
        Value::Record | Value::List | Value::Null => false,
        Value::Span(_) => PathValue::Node(node).contains(needle),
        _ => is_shown(node),
    };
    let is_beside = |item: &Item<'_>| {
        item.note().is_some_and(|note| needle.is_in(note.text.as_bytes()))
            || names_in(item, subject.tree).values().any(|name| needle.is_in(name.as_bytes()))
    };
    subject.tree.nodes().any(has) || subject.item.is_some_and(is_beside)
}

fn passes(path: &Path, check: &Check, subject: &Subject<'_>, found: &Ambiguities) -> bool {
    let look = |test: &mut dyn FnMut(PathValue<'_>) -> bool| look(path, subject, found, test);
    let any = |test: &mut dyn FnMut(PathValue<'_>) -> bool| look(test) == Some(true);
    match check {
        // True if the field exists and none of its values is equal.
        Check::Compare(Comparison::NotEqual, literal) => {
            look(&mut |value| value.equals(literal)) == Some(false)
        }
        Check::Compare(Comparison::Equal, literal) => any(&mut |value| value.equals(literal)),
        Check::Compare(comparison, literal) => any(&mut |value| {
            value.order(literal).is_some_and(|order| match comparison {
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                Comparison::GreaterOrEqual => order.is_ge(),
                Comparison::Equal => order.is_eq(),
                Comparison::NotEqual => order.is_ne(),
            })
        }),
        Check::Has(literal) => any(&mut |value| value.has(literal)),
        Check::Contains(needle) => any(&mut |value| value.contains(needle)),
        Check::StartsWith(literal) => {
            any(&mut |value| value.part(literal, |whole, part| whole.starts_with(part)))
        }
        Check::EndsWith(literal) => {
            any(&mut |value| value.part(literal, |whole, part| whole.ends_with(part)))
        }
        Check::Matches(regular) => {
            any(&mut |value| value.text().is_some_and(|text| regular.is_in(&text)))
        }
        Check::In(set) => any(&mut |value| value.is_in(set)),
        Check::Is(class) => any(&mut |value| value.is_of(class)),
    }
}

/// Calls `test` with each value at a path until one passes. Returns `None` if the path leads
/// nowhere, otherwise whether a value passed. Only the first place that has the path counts: the
/// fields, then the top of the tree, then the metadata, then nested fields.
pub(super) fn look<'s>(
    path: &Path,
    subject: &Subject<'s>,
    found: &Ambiguities,
    test: &mut dyn FnMut(PathValue<'s>) -> bool,
) -> Option<bool> {
    let exists = Cell::new(false);
    let mut visit = |value: PathValue<'s>| {
        exists.set(true);
        if test(value) { Break(()) } else { Continue(()) }
    };
    let mut outcome = search(path, subject, &mut visit);
    if !exists.get() && path.is_tail() {
        outcome = tail::search(path, subject, found, &mut visit);
    }
    exists.get().then_some(outcome.is_break())
}

/// A visitor for values, which can stop the search.
pub(super) type Visit<'v, 's> = dyn FnMut(PathValue<'s>) -> ControlFlow<()> + 'v;

fn search<'s>(path: &Path, subject: &Subject<'s>, visit: &mut Visit<'_, 's>) -> ControlFlow<()> {
    let exists = Cell::new(false);
    let mut visit_existing = |value| {
        exists.set(true);
        visit(value)
    };
    let metadata = match path.start() {
        Start::Message(metadata) => Some(metadata),
        Start::Top => return top(subject.tree, path.steps(), &mut visit_existing),
        Start::Anywhere(metadata) => {
            if let Some(fields) = subject.tree.roots().find(|node| node.name() == "fields") {
                walk(fields, path.steps(), MAX_LISTS, &mut visit_existing)?;
                if exists.get() {
                    return Continue(());
                }
            }
            top(subject.tree, path.steps(), &mut visit_existing)?;
            // The name at the top of the tree is the short one. The dotted name is valid too.
            if exists.get() && metadata != Some(Metadata::Name) {
                return Continue(());
            }
            metadata
        }
    };
    match metadata {
        Some(Metadata::Remarks) => {
            subject.tree.remarks().iter().try_for_each(|remark| visit(PathValue::Error(remark)))
        }
        Some(metadata) => subject.metadata(metadata).into_iter().flatten().try_for_each(visit),
        None => Continue(()),
    }
}

/// Follows a path from the top of a tree. If the tree has only fields, as for a message without a
/// definition, `fields` means the top itself, as in JSON lines.
fn top<'s>(tree: &'s Tree<'s>, steps: &[Step], visit: &mut Visit<'_, 's>) -> ControlFlow<()> {
    let steps = match steps.split_first() {
        Some((Step::Name(name), rest @ [_, ..]))
            if &**name == "fields" && tree.roots().all(|node| node.name() != "fields") =>
        {
            rest
        }
        _ => steps,
    };
    let Some((step, rest)) = steps.split_first() else { return Continue(()) };
    follow(tree.roots(), step, rest, MAX_LISTS, visit)
}

/// How many nested lists are searched without an index.
pub(super) const MAX_LISTS: u32 = 128;

/// Follows a path from a node. Visits every node at most once.
fn walk<'s>(
    node: NodeRef<'s, 's>,
    steps: &[Step],
    lists: u32,
    visit: &mut Visit<'_, 's>,
) -> ControlFlow<()> {
    let list = matches!(node.value(), Value::List);
    let elements = || node.children().take(if lists == 0 { 0 } else { usize::MAX });
    match steps.split_first() {
        None => {
            visit(PathValue::Node(node))?;
            if list {
                elements().try_for_each(|child| walk(child, steps, lists - 1, visit))?;
            }
            plain(node).map_or(Continue(()), |bytes| visit(PathValue::Node(bytes)))
        }
        // A name applied to a list means any of its elements.
        Some((Step::Name(_), _)) if list => {
            elements().try_for_each(|child| walk(child, steps, lists - 1, visit))
        }
        Some((step, rest)) => follow(node.children(), step, rest, lists, visit),
    }
}

/// Follows a path from the nodes that its first step selects among these.
pub(super) fn follow<'s>(
    mut nodes: Children<'s, 's>,
    step: &Step,
    rest: &[Step],
    lists: u32,
    visit: &mut Visit<'_, 's>,
) -> ControlFlow<()> {
    match step {
        Step::Name(name) => nodes
            .filter(|node| node.name() == &**name)
            .try_for_each(|node| walk(node, rest, lists, visit)),
        Step::Index(index) => {
            nodes.nth(*index).map_or(Continue(()), |node| walk(node, rest, lists, visit))
        }
        Step::Each => nodes.try_for_each(|node| walk(node, rest, lists, visit)),
    }
}

/// The bytes of a field that also shows what was decoded from them. Filters treat such a field as
/// plain bytes.
fn plain<'s>(node: NodeRef<'s, 's>) -> Option<NodeRef<'s, 's>> {
    let first = node.children().next().filter(|_| matches!(node.value(), Value::Record))?;
    (first.name() == "bytes" && matches!(first.value(), Value::Span(_))).then_some(first)
}

/// The value that a path leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathValue<'s> {
    Node(NodeRef<'s, 's>),
    Text(&'s str),
    Whole(u64),
    Real(f64),
    Address(IpAddr),
    Moment(Time),
    Error(&'s Error),
}

impl<'s> Subject<'s> {
    /// Whether a message of this name is inside.
    fn has_inside(&self, pattern: &Pattern) -> bool {
        let Some(item) = self.item else { return false };
        let mut inside = String::new();
        item.push_inside(&mut inside);
        inside.split_ascii_whitespace().any(|name| pattern.fits("", name))
    }

    /// The metadata, for one or both ends.
    pub(super) fn metadata(&self, metadata: Metadata) -> [Option<PathValue<'s>>; 2] {
        let is_client = self.from == Side::Client.name();
        let [from, to] = match is_client {
            true => Side::BOTH,
            false => [Side::Server, Side::Client],
        };
        let address = |side| self.ends.map(|ends| PathValue::Address(ends.of(side).ip()));
        let port = |side| self.ends.map(|ends| PathValue::Whole(ends.of(side).port().into()));
        let value = match metadata {
            Metadata::Name => PathValue::Text(self.name),
            Metadata::Family => PathValue::Text(self.family),
            Metadata::From => PathValue::Text(self.from),
            Metadata::Stream => PathValue::Whole(self.stream),
            Metadata::Packet => PathValue::Whole(self.packet),
            Metadata::Elapsed => PathValue::Real(self.time),
            Metadata::Length => PathValue::Whole(self.length),
            Metadata::Date => PathValue::Moment(self.date),
            Metadata::Source => return [address(from), None],
            Metadata::Target => return [address(to), None],
            Metadata::Address => return [address(from), address(to)],
            Metadata::SourcePort => return [port(from), None],
            Metadata::TargetPort => return [port(to), None],
            Metadata::Port => return [port(from), port(to)],
            Metadata::Error => return [self.tree.error().map(PathValue::Error), None],
            // There can be any number of them; see `search`.
            Metadata::Remarks => return [None, None],
        };
        [Some(value), None]
    }
}

impl<'s> PathValue<'s> {
    /// Its number, or the number that its text parses to.
    fn count(self) -> Option<Count> {
        let node = match self {
            Self::Node(node) => node,
            Self::Text(text) => return whole(text),
            Self::Whole(value) => return Some(Count::Whole(value.into())),
            Self::Real(value) => return Some(Count::Double(value)),
            Self::Moment(time) => return Some(Count::Double(seconds(time))),
            Self::Address(_) | Self::Error(_) => return None,
        };
        Some(match node.value() {
            Value::Bool(value) => Count::Whole(value.into()),
            Value::Unsigned(value) | Value::Hex(value) | Value::Flags(value, _) => {
                Count::Whole(value.into())
            }
            Value::Signed(value) | Value::Enum(value, _) => Count::Whole(value.into()),
            Value::F32(value) => Count::Single(value),
            Value::F64(value) => Count::Double(value),
            Value::Span(_) => return self.text().and_then(|text| whole(&text)),
            Value::Record | Value::List | Value::Null => return None,
        })
    }

    /// Its text, or its bytes if it is not text. This is what text in a filter is compared with.
    fn logical(self) -> Option<Cow<'s, [u8]>> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => names.name(number).map(|name| name.as_bytes().into()),
                Value::Span(_) => node.content().map(|content| match content {
                    Content::Text(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
                    Content::Text(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
                    Content::Bytes(bytes) => bytes,
                }),
                _ => None,
            },
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Address(address) => Some(address.to_string().into_bytes().into()),
            Self::Error(error) => Some(error.to_string().into_bytes().into()),
            Self::Whole(_) | Self::Real(_) | Self::Moment(_) => None,
        }
    }

    /// Its bytes as stored in their layer. This is what bytes in a filter are compared with.
    fn stored(self) -> Option<Cow<'s, [u8]>> {
        match self {
            Self::Node(node) => Some(Cow::Borrowed(match node.value() {
                Value::Span(span) => node.span(span),
                _ => node.raw(),
            })),
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Whole(_)
            | Self::Real(_)
            | Self::Address(_)
            | Self::Moment(_)
            | Self::Error(_) => None,
        }
    }

    /// Its bytes, unless it is text.
    fn bytes(self) -> Option<&'s [u8]> {
        let Self::Node(node) = self else { return None };
        match node.value() {
            Value::Span(span) if span.form == Form::Bytes => Some(node.span(span)),
            _ => None,
        }
    }

    /// Its text, if any.
    fn text(self) -> Option<Cow<'s, str>> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => names.name(number).map(Cow::Borrowed),
                _ => node.text(),
            },
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Address(address) => Some(address.to_string().into()),
            Self::Error(error) => Some(error.to_string().into()),
            Self::Whole(_) | Self::Real(_) | Self::Moment(_) => None,
        }
    }

    /// The number of an enumeration or of flags, with the names.
    fn named(self) -> Option<(i64, &'s Names)> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => Some((number, names)),
                Value::Flags(bits, names) => Some((bits.cast_signed(), names)),
                _ => None,
            },
            _ => None,
        }
    }

    fn equals(self, literal: &Literal) -> bool {
        match literal {
            Literal::Null => {
                matches!(self, Self::Node(node) if matches!(node.value(), Value::Null))
            }
            Literal::Bool(wanted) => match self {
                Self::Node(node) => match node.value() {
                    Value::Bool(value) => value == *wanted,
                    Value::Unsigned(value) | Value::Hex(value) => value == u64::from(*wanted),
                    Value::Signed(value) => value == i64::from(*wanted),
                    _ => false,
                },
                _ => false,
            },
            Literal::Number(_) => self.order(literal) == Some(Ordering::Equal),
            Literal::Bytes(wanted) => self.stored().is_some_and(|bytes| *bytes == **wanted),
            Literal::Text(wanted) => self.equals_text(wanted),
        }
    }

    fn equals_text(self, wanted: &Text) -> bool {
        let text = wanted.as_str();
        if let Some((number, names)) = self.named() {
            return names.iter().any(|(other, name)| other == number && name == text);
        }
        match self {
            Self::Node(node) => match node.value() {
                Value::Span(span) => span_equals(span.form, node.span(span), wanted),
                Value::F32(value) => is_odd_float(value.into(), text),
                Value::F64(value) => is_odd_float(value, text),
                _ => false,
            },
            Self::Text(value) => value == text,
            Self::Whole(_) => false,
            Self::Real(value) => is_odd_float(value, text),
            Self::Address(address) => text.parse() == Ok(address),
            Self::Moment(time) => date(text) == Some(time),
            Self::Error(error) => error.to_string() == text,
        }
    }

    fn contains(self, needle: &Needle) -> bool {
        let hay = if needle.is_text() { self.logical() } else { self.stored() };
        hay.is_some_and(|hay| needle.is_in(&hay))
            || self.bytes().is_some_and(|bytes| needle.is_shown_in(bytes))
    }

    /// Its order relative to a value in the filter; `None` if the two cannot be compared.
    fn order(self, literal: &Literal) -> Option<Ordering> {
        match literal {
            Literal::Null | Literal::Bool(_) => None,
            Literal::Number(number) => self.count()?.compare(number),
            Literal::Bytes(bytes) => Some((*self.stored()?).cmp(bytes)),
            Literal::Text(text) if let Self::Moment(time) = self => {
                date(text.as_str()).map(|date| time.cmp(&date))
            }
            Literal::Text(text) => match self.named() {
                Some((number, names)) => Some(number.cmp(&names.number(text.as_str())?)),
                None => Some((*self.logical()?).cmp(text.as_str().as_bytes())),
            },
        }
    }

    /// Whether all bits of a mask are set.
    fn has(self, mask: &Literal) -> bool {
        let bits = match self {
            Self::Node(node) => match node.value() {
                Value::Unsigned(value) | Value::Hex(value) | Value::Flags(value, _) => value,
                Value::Signed(value) | Value::Enum(value, _) => value.cast_unsigned(),
                Value::Bool(value) => value.into(),
                _ => return false,
            },
            Self::Whole(value) => value,
            Self::Text(_) | Self::Real(_) | Self::Address(_) | Self::Moment(_) | Self::Error(_) => {
                return false;
            }
        };
        let mask = match mask {
            Literal::Number(Number::Whole(mask)) => u64::try_from(*mask).ok(),
            Literal::Text(name) => self
                .named()
                .and_then(|(_, names)| names.number(name.as_str()))
                .map(i64::cast_unsigned),
            _ => None,
        };
        mask.is_some_and(|mask| mask != 0 && bits & mask == mask)
    }

    /// Whether it starts or ends with a value in the filter.
    fn part(self, literal: &Literal, is_part: fn(&[u8], &[u8]) -> bool) -> bool {
        match literal {
            Literal::Text(text) => {
                self.logical().is_some_and(|whole| is_part(&whole, text.as_str().as_bytes()))
                    || self
                        .bytes()
                        .zip(text.hex())
                        .is_some_and(|(whole, part)| is_part(whole, part))
            }
            Literal::Bytes(bytes) => self.stored().is_some_and(|whole| is_part(&whole, bytes)),
            Literal::Null | Literal::Bool(_) | Literal::Number(_) => false,
        }
    }

    /// Whether this is an object, or the tag of one, whose class is `class` or derived from it.
    fn is_of(self, class: &ObjectClass) -> bool {
        let Self::Node(node) = self else { return false };
        let tag = match node.value() {
            Value::Record => node.child("$class").map(|tag| tag.value()),
            value => Some(value),
        };
        matches!(tag, Some(Value::Enum(tag, names)) if class.has(tag, names))
    }

    fn is_in(self, set: &Set) -> bool {
        set.has_any_whole() && self.count().is_some_and(|count| set.has_whole(count))
            || !set.texts.is_empty() && self.is_in_texts(set)
            || !set.bytes.is_empty() && self.stored().is_some_and(|bytes| set.bytes.has(&bytes))
            || set.others().any(|member| match member {
                Member::One(literal) => self.equals(literal),
                Member::Range(low, high) => self.count().is_some_and(|count| {
                    count.compare(low).is_some_and(Ordering::is_ge)
                        && count.compare(high).is_some_and(Ordering::is_le)
                }),
            })
    }

    fn is_in_texts(self, set: &Set) -> bool {
        if matches!(self, Self::Address(_) | Self::Moment(_)) {
            let mut members = set.members().iter();
            return members.any(|it| matches!(it, Member::One(literal) if self.equals(literal)));
        }
        if let Some((number, names)) = self.named() {
            return names
                .iter()
                .any(|(other, name)| other == number && set.texts.has(name.as_bytes()));
        }
        if let Self::Node(node) = self
            && let Value::Span(span) = node.value()
            && span.form == Form::Guid
            && set.guids.has(node.span(span))
        {
            return true;
        }
        self.logical().is_some_and(|text| set.texts.has(&text))
            || self.bytes().is_some_and(|bytes| set.hexes.has(bytes))
    }
}

/// The whole number that a text parses to.
fn whole(text: &str) -> Option<Count> {
    let unsigned = text.parse::<u64>().map(i128::from);
    unsigned.or_else(|_| text.parse::<i64>().map(i128::from)).ok().map(Count::Whole)
}

/// Whether a float that has a name instead of digits has this one.
fn is_odd_float(value: f64, text: &str) -> bool {
    match text {
        "NaN" => value.is_nan(),
        "Infinity" => value == f64::INFINITY,
        "-Infinity" => value == f64::NEG_INFINITY,
        _ => false,
    }
}

/// Whether stored bytes equal a text, without decoding them. Invalid text is compared as bytes.
fn span_equals(form: Form, stored: &[u8], wanted: &Text) -> bool {
    let text = wanted.as_str();
    match form {
        Form::Bytes => stored == text.as_bytes() || wanted.hex().is_some_and(|hex| hex == stored),
        Form::Utf8 => stored == text.as_bytes(),
        Form::InvertedUtf8 => stored.iter().map(|byte| !byte).eq(text.bytes()),
        Form::Latin1 => stored.iter().copied().map(char::from).eq(text.chars()),
        Form::Utf16 => units(stored, 0, text) || no_text(form, stored, text),
        Form::InvertedUtf16 => units(stored, u16::MAX, text) || no_text(form, stored, text),
        Form::Guid if stored.len() == 16 => wanted.guid().is_some_and(|id| id == stored),
        Form::Ipv4 if stored.len() == 4 => wanted.ipv4().is_some_and(|id| id == stored),
        _ => match form.read(stored) {
            Content::Text(value) => value == text,
            Content::Bytes(bytes) => *bytes == *text.as_bytes(),
        },
    }
}

/// Whether little-endian UTF-16 units, with the bits in `turned` inverted, equal a text.
fn units(stored: &[u8], turned: u16, text: &str) -> bool {
    let (units, rest) = stored.as_chunks::<2>();
    rest.is_empty()
        && units.iter().map(|unit| u16::from_le_bytes(*unit) ^ turned).eq(text.encode_utf16())
}

/// Whether bytes are invalid text and equal the bytes of `text`.
fn no_text(form: Form, stored: &[u8], text: &str) -> bool {
    stored.len() == text.len()
        && matches!(form.read(stored), Content::Bytes(bytes) if *bytes == *text.as_bytes())
}
