//! Matches filters against messages.

use core::cell::Cell;
use core::ops::ControlFlow::{self, Break, Continue};

use worldwire_core::text::write_value;
use worldwire_core::{Children, NodeRef, Side, Tree, Value};

use super::Subject;
use super::expression::{Check, Comparison, Expression, Metadata, Path, Pattern, Start, Step};
use super::literal::Needle;
use super::path_value::PathValue;
use super::tail::{self, Ambiguities};
use crate::item::{Item, NoteKind};
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

/// Whether a pattern also covers messages that cannot be decoded completely.
fn is_problem(pattern: &Pattern) -> bool {
    *pattern.0 == *NoteKind::Problem.name()
}

/// Whether any value, as output shows it, contains a text, or the message contains the bytes.
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
/// nowhere, otherwise whether a value passed. Only the first place that has the path is used: the
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

/// The maximum depth of nested lists that are searched without an index.
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
            // There can be any number of remarks; see `search`.
            Metadata::Remarks => return [None, None],
        };
        [Some(value), None]
    }
}
