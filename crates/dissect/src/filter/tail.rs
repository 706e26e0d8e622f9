//! Finds fields by the end of their path.

use core::cell::Cell;
use core::fmt;
use core::ops::ControlFlow::{self, Break, Continue};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use worldwire_core::{NodeRef, Value};

use super::Subject;
use super::expression::{Path, Step};
use super::run::{MAX_LISTS, Visit, follow};

/// A shortened path that can mean several fields of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ambiguity {
    /// The packet that completed the message.
    pub packet: u64,
    /// The conversation.
    pub stream: u64,
    /// The name of the message.
    pub message: String,
    /// The path as written.
    pub path: String,
    /// The paths it can mean.
    pub candidates: Vec<String>,
}

/// `` `x` in game.PropagateBuffer (packet 90) can be `a.x` or `b.x`; write more of the path ``
impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The maximum number of paths listed.
        const MAX: usize = 6;
        let Self { packet, message, path, candidates, .. } = self;
        write!(f, "`{path}` is ambiguous in {message} (packet {packet}): it can be ")?;
        let more = candidates.len().saturating_sub(MAX);
        let last = candidates.len().min(MAX).saturating_sub(1);
        for (index, candidate) in candidates.iter().take(MAX).enumerate() {
            f.write_str(match index {
                0 => "",
                _ if index == last && more == 0 => " or ",
                _ => ", ",
            })?;
            write!(f, "`{candidate}`")?;
        }
        if more > 0 {
            write!(f, " or {more} other{}", if more == 1 { "" } else { "s" })?;
        }
        f.write_str("; write more of the path")
    }
}

/// The earliest ambiguity found so far, shared by the clones of a filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Ambiguities(Arc<Mutex<Option<Ambiguity>>>);

impl Ambiguities {
    pub(super) fn earliest(&self) -> Option<Ambiguity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, new: Ambiguity) {
        let mut earliest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if earliest.as_ref().is_none_or(|known| new < *known) {
            *earliest = Some(new);
        }
    }
}

/// Filters are equal whatever ambiguities were found.
impl PartialEq for Ambiguities {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A record, with the path that leads to it.
type Container<'s> = (Trail, NodeRef<'s, 's>);

/// The index of a path in [`Trails`].
type Trail = u32;

/// The paths to records, without list indices. Every path is stored as the name of its last
/// field and the path before that field.
#[derive(Default)]
struct Trails<'s> {
    all: Vec<(Option<Trail>, &'s str)>,
    known: HashMap<(Option<Trail>, &'s str), Trail, RandomState>,
}

impl<'s> Trails<'s> {
    fn get(&mut self, parent: Option<Trail>, name: &'s str) -> Trail {
        *self.known.entry((parent, name)).or_insert_with(|| {
            self.all.push((parent, name));
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// The path as a filter has it, followed by `end`.
    fn text(&self, trail: Trail, end: &Path) -> String {
        let mut names = Vec::new();
        let mut next = Some(trail);
        while let Some((parent, name)) = next.and_then(|trail| self.all.get(trail as usize)) {
            names.push(Step::Name((*name).into()));
            next = *parent;
        }
        names.reverse();
        names.extend(end.steps().iter().cloned());
        Path::new(names).to_string()
    }

    /// Adds the records among `nodes`, and those in lists.
    fn add(
        &mut self,
        parent: Option<Trail>,
        nodes: impl Iterator<Item = NodeRef<'s, 's>>,
        out: &mut Vec<Container<'s>>,
    ) {
        for node in nodes {
            if node.value().is_container() {
                let trail = self.get(parent, node.name());
                add_records(trail, node, MAX_LISTS, out);
            }
        }
    }
}

fn add_records<'s>(trail: Trail, node: NodeRef<'s, 's>, lists: u32, out: &mut Vec<Container<'s>>) {
    match node.value() {
        Value::Record => out.push((trail, node)),
        Value::List if lists > 0 => {
            node.children().for_each(|child| add_records(trail, child, lists - 1, out));
        }
        _ => {}
    }
}

/// Follows a path that begins somewhere in the tree: in the records nearest to the top that have
/// it. If they are different fields, nothing is visited and the ambiguity is noted. Visits every
/// node at most once for each step of the path.
pub(super) fn search<'s>(
    path: &Path,
    subject: &Subject<'s>,
    found: &Ambiguities,
    visit: &mut Visit<'_, 's>,
) -> ControlFlow<()> {
    let mut names = path.steps().iter().filter_map(|step| match step {
        Step::Name(name) => Some(&**name),
        Step::Index(_) | Step::Each => None,
    });
    let tree = subject.tree;
    let (Some(last), Some((step, rest))) = (names.next_back(), path.steps().split_first()) else {
        return Continue(());
    };
    // Quick, and enough for most messages.
    if tree.nodes().all(|node| node.name() != last) {
        return Continue(());
    }
    let mut trails = Trails::default();
    let mut level = Vec::new();
    match tree.roots().find(|node| node.name() == "fields") {
        Some(fields) => trails.add(None, fields.children(), &mut level),
        None => trails.add(None, tree.roots(), &mut level),
    }
    while !level.is_empty() {
        let has = |(_, node): &&Container<'s>| {
            let exists = Cell::new(false);
            let mut see = |_| {
                exists.set(true);
                Break(())
            };
            let _ = follow(node.children(), step, rest, MAX_LISTS, &mut see);
            exists.get()
        };
        let here: Vec<Container<'s>> = level.iter().filter(has).copied().collect();
        if !here.is_empty() {
            let distinct: BTreeSet<Trail> = here.iter().map(|(trail, _)| *trail).collect();
            if distinct.len() > 1 {
                found.note(Ambiguity {
                    packet: subject.packet,
                    stream: subject.stream,
                    message: subject.name.to_owned(),
                    path: path.to_string(),
                    candidates: distinct.iter().map(|trail| trails.text(*trail, path)).collect(),
                });
                return Continue(());
            }
            return here
                .iter()
                .try_for_each(|(_, node)| follow(node.children(), step, rest, MAX_LISTS, visit));
        }
        let mut next = Vec::new();
        for (trail, node) in level {
            trails.add(Some(trail), node.children(), &mut next);
        }
        level = next;
    }
    Continue(())
}
