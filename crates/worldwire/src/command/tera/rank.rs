//! `worldwire tera def rank`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde_json::json;
use worldwire_core::listed;
use worldwire_dissect::{Item, Scratch};
use worldwire_tera::file::CodeMap;
use worldwire_tera::frame::Header;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::packet::Packets;
use worldwire_tera::rank::{Candidate, Ranking, TIE};

use super::carry::Said;
use super::growing::GrowingMap;
use super::map;
use crate::cli::{Capture, Common, Target, TeraRank};
use crate::command::capture;
use crate::definitions;
use crate::output::{Failure, Place, complain, counted, occupied, print, shown, write_all};

/// The maximum number of messages tried per opcode; more would not help.
const MAX_MESSAGES: usize = 1000;

/// The number of opcodes tried if none is given.
const MAX_OPCODES: usize = 2_048;

/// The messages of an opcode, in capture order, and their build.
struct Found {
    packets: Arc<Packets>,
    messages: Vec<Said>,
    more: u64,
}

pub(super) fn run(arguments: &TeraRank, common: &Common) -> Result<(), Failure> {
    let TeraRank { opcode, from, build, write, add, force, top, json } = arguments;
    let target = write.clone().map(|file| Target { output: Some(file), force: *force });
    // Fail now rather than after the work is done and its results are shown.
    let growing = match &write {
        Some(file) if *add => Some(GrowingMap::open(file, common)?),
        _ => None,
    };
    if let (Some(target), None) = (&target, &growing) {
        Place::of(target).map_err(|failure| or_add(failure, target))?;
    }
    let kept = growing.as_ref().map(GrowingMap::map);
    let is_kept = |number: u16| kept.and_then(|map| map.name(number.into()));
    if let (Some(name), Some(file), Some(opcode)) = (opcode.and_then(is_kept), write, opcode) {
        complain(&shown(file), &format!("already has opcode {opcode}, as {name}"));
        return Err(Failure::Input);
    }
    let data = build.data();
    let definitions = definitions::load(&data, common)?;
    let mut found: BTreeMap<u16, Found> = BTreeMap::new();
    let holds_tera = AtomicBool::new(false);
    let take = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(u16, Arc<Packets>, Said)>| {
        let Some(packets) = item.knowledge::<Arc<Packets>>() else { return };
        holds_tera.store(true, Ordering::Relaxed);
        let header = Header::peek(item.bytes()).ok().flatten();
        let (Some(Header { opcode: number, .. }), Some(said)) = (header, Said::of(item)) else {
            return;
        };
        let is_wanted = match opcode {
            Some(opcode) => *opcode == number,
            None => packets.get(number).is_none() && is_kept(number).is_none(),
        };
        if is_wanted {
            out.push((number, Arc::clone(packets), said));
        }
    };
    let keep = |said: &Vec<(u16, Arc<Packets>, Said)>| {
        for (number, packets, said) in said {
            let of = found.entry(*number).or_insert_with(|| Found {
                packets: Arc::clone(packets),
                messages: Vec::new(),
                more: 0,
            });
            if of.messages.len() < MAX_MESSAGES {
                of.messages.push(said.clone());
            } else {
                of.more += 1;
            }
        }
        Ok(())
    };
    let capture = Capture::plain(from, data);
    let (_, clean) = capture::read(&capture, common, definitions, take, keep)?;
    if found.is_empty() {
        let message = match opcode {
            _ if !holds_tera.into_inner() => "contains no TERA messages".to_owned(),
            Some(opcode) => format!("no message has opcode {opcode}"),
            None => "all messages have a name".to_owned(),
        };
        complain(&from.display().to_string(), &message);
        return Err(Failure::Input);
    }
    let mut found: Vec<(u16, Found)> = found.into_iter().collect();
    let count = |found: &Found| found.messages.len() as u64 + found.more;
    if let more @ 1.. = keep_most(&mut found, MAX_OPCODES, count) {
        let message = format!(
            "only the {MAX_OPCODES} opcodes with the most messages are tried; pass the other {more} \
             one at a time"
        );
        complain(&shown(from), &message);
    }
    let (parts, lines): (Vec<String>, Vec<Line>) = found
        .par_iter()
        .map(|(opcode, found)| {
            let mut out = String::new();
            let line = one(*opcode, found, kept, top.get(), *json, &mut out);
            (out, line)
        })
        .unzip();
    let separator = if *json { "" } else { "\n" };
    print(&parts.join(separator))?;
    if let Some(target) = target {
        let lines = without_doubles(&lines);
        match growing {
            Some(growing) => growing.add(lines.iter().map(|line| &**line))?,
            None => write_all(&target, lines.concat().as_bytes())?,
        }
        let mut revisions = found.iter().map(|(_, found)| found.packets.known().revision);
        let first = revisions.next().flatten();
        // With several builds, the revision is ambiguous.
        map::tell_name(&target, first.filter(|_| revisions.all(|other| other == first)), common);
    }
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// Keeps only the `most` opcodes with the most messages, in the original order; returns the number
/// of others.
fn keep_most<F>(found: &mut Vec<(u16, F)>, most: usize, count: impl Fn(&F) -> u64) -> usize {
    let more = found.len().saturating_sub(most);
    if more > 0 {
        found.sort_by_key(|(_, found)| Reverse(count(found)));
        found.truncate(most);
        found.sort_by_key(|(opcode, _)| *opcode);
    }
    more
}

/// Adds a hint to the error for an existing file: names can be added to it.
fn or_add(failure: Failure, target: &Target) -> Failure {
    match (failure, &target.output) {
        (Failure::Run(problem), Some(file)) if problem == occupied(file) => {
            Failure::Run(format!("{problem}, or --add to extend it"))
        }
        (failure, _) => failure,
    }
}

/// The line of an opcode in a map.
struct Line {
    opcode: u16,
    text: String,
    /// The name and its score, unless the line is a comment.
    named: Option<(Box<str>, f64)>,
}

impl Line {
    fn comment(opcode: u16, text: String) -> Self {
        Self { opcode, text: format!("# {text}\n"), named: None }
    }
}

/// The lines of a map. If a name fits several opcodes, it is assigned to the one that it clearly
/// fits best.
fn without_doubles<'l>(lines: &'l [Line]) -> Vec<Cow<'l, str>> {
    let mut best: BTreeMap<&str, Vec<(f64, u16)>> = BTreeMap::new();
    for Line { opcode, named, .. } in lines {
        if let Some((name, score)) = named {
            best.entry(name).or_default().push((*score, *opcode));
        }
    }
    for scores in best.values_mut() {
        scores.sort_by(|one, other| other.0.total_cmp(&one.0));
    }
    let text = |line: &'l Line| {
        let Line { opcode, text, named } = line;
        let scores = named.as_ref().and_then(|(name, score)| Some((best.get(&**name)?, score)));
        let Some((scores, score)) = scores else { return Cow::from(text) };
        // The best of the other opcodes.
        match scores.iter().find(|(_, other)| other != opcode) {
            Some((other, rival)) if other + TIE > *score => {
                Cow::Owned(format!("# {}; also fits {rival}\n", text.trim_end()))
            }
            _ => Cow::from(text),
        }
    };
    lines.iter().map(text).collect()
}

/// Prints the definitions that fit an opcode; returns its map line. Reserved names are not
/// candidates.
fn one(
    opcode: u16,
    found: &Found,
    kept: Option<&CodeMap>,
    top: usize,
    json: bool,
    out: &mut String,
) -> Line {
    let Found { packets, messages, more } = found;
    let mut ranking = Ranking::of(packets);
    for Said { stream, from, bytes } in messages {
        ranking.push(*stream, *from, bytes);
    }
    let (shortest, longest) = ranking.lengths().unwrap_or_default();
    let tried = messages.len();
    let mut candidates = ranking.finish();
    candidates.retain(|one| kept.and_then(|map| map.code(one.definition.name())).is_none());
    if !json {
        let from = messages.first().map_or("", |said| said.from.name());
        let plural = if tried == 1 { "" } else { "s" };
        let all = if *more > 0 { format!(" of {}", tried as u64 + more) } else { String::new() };
        let lengths = match shortest == longest {
            true => counted(shortest, "byte"),
            false => format!("{shortest} to {longest} bytes"),
        };
        let _ = writeln!(out, "{opcode}: {tried}{all} message{plural} from the {from}, {lengths}");
        if candidates.is_empty() {
            let other = if kept.is_some() { "other " } else { "" };
            let _ = writeln!(out, "  no {other}definition fits");
        } else {
            let _ = writeln!(out, "   score      fits     clean  header  definition");
        }
    }
    let best = candidates.first();
    let ties: Vec<&str> = candidates
        .iter()
        .filter(|one| best.is_some_and(|best| one.ties_with(best)))
        .map(|one| one.definition.name())
        .collect();
    let tied = ties.iter().any(|name| Some(name) != ties.first());
    for candidate in candidates.iter().take(top) {
        let Candidate { definition, form, fits, clean, notes, .. } = candidate;
        let taken = packets.opcode(definition.name()).filter(|other| *other != opcode);
        let score = candidate.shown_score();
        if json {
            let notes: BTreeMap<&str, u64> =
                notes.iter().map(|(kind, count)| (kind.name(), *count)).collect();
            let line = json!({
                "opcode": opcode, "name": definition.name(), "version": definition.version(),
                "score": score, "messages": tried, "fits": fits,
                "clean": clean, "header": form.bytes(), "integrity": *form == HeaderForm::Integrity,
                "mapped": taken, "notes": notes,
            });
            let _ = writeln!(out, "{line}");
            continue;
        }
        let (fits, clean) = (format!("{fits}/{tried}"), format!("{clean}/{tried}"));
        let (header, title) = (form.bytes(), definition.title());
        let _ = write!(out, "{score:>8.1} {fits:>9} {clean:>9}  {header:>6}  {title}");
        if let Some(taken) = taken {
            let _ = write!(out, " ({taken} in the map)");
        }
        for (kind, _) in notes {
            let _ = write!(out, " {kind}");
        }
        out.push('\n');
    }
    if tied && !json {
        let _ = writeln!(out, "  a tie: nothing in the messages distinguishes {}", listed(&ties));
    }
    match best {
        Some(best) if tied => {
            let text = format!("{} = {opcode} # a tie: {}", best.definition.name(), listed(&ties));
            Line::comment(opcode, text)
        }
        Some(best @ Candidate { definition, form, .. }) => {
            let (name, score) = (definition.name(), best.shown_score());
            if score <= 0.0 {
                let text = format!("{name} = {opcode} # score {score:.1}: nothing fits well");
                return Line::comment(opcode, text);
            }
            let sealed = match form {
                HeaderForm::Plain => "",
                HeaderForm::Integrity => ", with counter and checksum",
            };
            let messages = counted(tried, "message");
            let text = format!("{name} = {opcode} # score {score:.1}, {messages}{sealed}\n");
            Line { opcode, text, named: Some((name.into(), score)) }
        }
        None => Line::comment(opcode, format!("{opcode}: no definition fits")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, keep_most, without_doubles};

    #[test]
    fn of_very_many_opcodes_those_with_the_most_messages_are_tried() {
        let mut found = vec![(1, 5), (2, 9), (3, 5), (4, 1)];
        assert_eq!(keep_most(&mut found, 4, |count| *count), 0);
        assert_eq!(keep_most(&mut found, 2, |count| *count), 2);
        assert_eq!(found, [(1, 5), (2, 9)]);
    }

    #[test]
    fn a_name_stands_for_one_opcode() {
        let line = |opcode: u16, name: &str, score: f64| Line {
            opcode,
            text: format!("{name} = {opcode} # score {score:.1}\n"),
            named: Some((name.into(), score)),
        };
        let tie = Line::comment(9, "S_A = 9 # a tie: S_A, S_B".to_owned());
        let lines = [line(5, "S_A", 1.0), line(6, "S_B", 2.0), line(7, "S_A", 3.0), tie];
        let wanted = [
            "# S_A = 5 # score 1.0; also fits 7\n",
            "S_B = 6 # score 2.0\n",
            "S_A = 7 # score 3.0\n",
            "# S_A = 9 # a tie: S_A, S_B\n",
        ];
        assert_eq!(without_doubles(&lines), wanted);
        let wanted =
            ["# S_A = 5 # score 1.0; also fits 6\n", "# S_A = 6 # score 1.0; also fits 5\n"];
        assert_eq!(without_doubles(&[line(5, "S_A", 1.0), line(6, "S_A", 1.0)]), wanted);
    }
}
