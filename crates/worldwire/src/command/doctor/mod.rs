//! `worldwire doctor`.

mod ki;
mod tera;
mod uru;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;

use serde_json::json;
use worldwire_core::{Error, Limits, Tree};
use worldwire_dissect::{
    Item, KiObjects, Note, NoteKind, Overview, Scratch, Stamp, TeraDefinitions,
};
use worldwire_ki::crypt::keys::KeyFile;
use worldwire_ki::schema::Protocols;

use super::capture;
use super::dissect::read_filter;
use super::selection::Selection;
use crate::cli::{Common, Doctor};
use crate::output::{Failure, counted, print, say};
use crate::{definitions, input};

/// The maximum number of names that a filter selects.
const MAX_SELECTED: usize = 4096;
/// The maximum number of findings of one kind that are listed.
const MAX_LISTED: usize = 50;
/// The maximum number of different findings of one kind that are kept and sorted. A hostile capture
/// can produce a new one in every packet.
const MAX_KEPT: usize = 16_384;

pub(crate) fn run(arguments: &Doctor, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let selection = Selection { stream: arguments.stream, filter };
    // The messages that a filter selects, by conversation and name.
    let selected: Mutex<BTreeSet<(u64, String)>> = Mutex::default();
    let limits = Limits::DEFAULT;
    let tera_definitions = definitions.part::<TeraDefinitions>();
    let objects = definitions.part::<KiObjects>();
    let protocols = definitions.part::<Protocols>();
    // Problems with the keys are reported when the capture is read.
    let quiet = Common { quiet: true, ..Common::default() };
    let keys = input::keys(&arguments.capture.knowledge.keys, &quiet)?;
    let has_logins = !keys.part::<KeyFile>().logins().is_empty();
    let tera = tera::Builds::default();
    let mut findings = Tally::default();
    // The options that would reveal more, each with the number of affected messages and the first
    // of them.
    let mut advice = Tally::default();
    // As in `dissect`, notes about possibly valid data do not count as problems of the capture.
    let mut is_harmed = false;
    let show = |item: &Item<'_>, scratch: &mut Scratch, found: &mut Vec<Finding>| {
        if !selection.has(item, scratch) {
            return;
        }
        if selection.filter.is_some()
            && item.message().is_some()
            && let Ok(mut selected) = selected.lock()
        {
            let key = (item.stamp.stream, scratch.name.clone());
            if selected.len() < MAX_SELECTED || selected.contains(&key) {
                selected.insert(key);
            }
        }
        if tera.look(item) {
            return;
        }
        // An unknown build is already among the findings for its messages.
        let is_reported = |note: &Note| item.family == "tera" && note.kind == NoteKind::Warning;
        if item.note().is_some_and(is_reported) {
            return;
        }
        let tree: Tree<'_> = core::mem::take(&mut scratch.tree).recycle();
        let tree = item.tree(tree, &limits);
        let kind = match item.note() {
            Some(note) if note.kind != NoteKind::Problem => Kind::Remark,
            _ => Kind::Harm,
        };
        let finding = match (item.note(), tree.error()) {
            (Some(note), _) => match note.kind {
                NoteKind::Warning | NoteKind::Problem | NoteKind::Gap => Some(note.text.clone()),
                _ => None,
            },
            (None, Some(error)) => {
                let mut text = String::new();
                item.push_name(&mut text);
                let _ = write!(text, ": {error}");
                Some(text)
            }
            (None, None) => None,
        };
        let mut findings: Vec<String> =
            finding.into_iter().chain(uru::remarks(item, &limits)).collect();
        // A remark about a message often explains why part of it was left undecoded. In MxO, the
        // packet's note explains it.
        if findings.is_empty() && item.family != "mxo" {
            findings.extend(tree.remarks().iter().map(|remark| closed(item, remark)));
        }
        findings.extend(ki::closed(item, &tree, has_logins));
        let findings = findings.into_iter();
        let stamp = item.stamp;
        let advice = item.advice();
        found.extend(findings.map(|text| Finding { text: text.into(), stamp, kind }));
        found.extend(advice.map(|text| Finding { text, stamp, kind: Kind::Advice }));
        scratch.tree = tree.recycle();
    };
    let is_selected = |stream: u64, name: &str| {
        selection.filter.is_none()
            || selected.lock().is_ok_and(|selected| selected.contains(&(stream, name.to_owned())))
    };
    let mut undefined = Undefined::default();
    // By the time a conversation closes, each of its messages has been selected or rejected.
    let mut count = |overview: &Overview| {
        if arguments.stream.is_some_and(|wanted| wanted != overview.stream) {
            return;
        }
        let Some(family) = overview.family else {
            // Filters select messages, and this conversation has none.
            undefined.strange += u64::from(selection.filter.is_none());
            return;
        };
        for (name, [client, server]) in overview.messages.iter() {
            if !is_selected(overview.stream, name) {
                continue;
            }
            if family.name() != "tera" && has_no_name(name) {
                let advice = family.vocabulary().advice();
                let key = (family.name(), advice, name.to_owned());
                *undefined.unknown.entry(key).or_default() += client + server;
            }
            if family.name() == "ki" && objects.classes().is_none() {
                let message = protocols.message_named(name);
                for field in message.into_iter().flat_map(|message| objects.fields(message)) {
                    let key = (name.to_owned(), field.to_owned());
                    *undefined.closed.entry(key).or_default() += client + server;
                }
            }
        }
    };
    let take = |found: &Vec<Finding>| {
        selection.check()?;
        for Finding { text, stamp, kind } in found {
            is_harmed |= *kind != Kind::Remark;
            let kinds = if *kind == Kind::Advice { &mut advice } else { &mut findings };
            kinds.add(text, stamp);
        }
        Ok(())
    };
    let (extras, closed) = (capture::Extras::default(), Some(&mut count as _));
    let (dissection, clean) =
        capture::read_taking(&arguments.capture, common, definitions, extras, show, take, closed)?;
    selection.check()?;
    if let Some(stream) = arguments.stream {
        capture::check_stream(&dissection, stream)?;
    }
    dissection.overviews().into_iter().for_each(&mut count);
    let mut out = Report { is_json: arguments.json, text: String::new() };
    let (other_findings, other_advice) = (findings.others, advice.others);
    let (mut findings, advice): (Vec<_>, _) = (findings.kept.into_iter().collect(), advice.kept);
    findings.sort_by(|(one, Seen { first, .. }), (other, Seen { first: second, .. })| {
        first.stream.cmp(&second.stream).then_with(|| in_order(one, other))
    });
    let mut well = clean && !is_harmed;
    for (finding, Seen { count, first, is_shared }) in findings.iter().take(MAX_LISTED) {
        let at = moment(first);
        let places = if *is_shared { " in several conversations" } else { "" };
        let times = if *count == 1 { at } else { format!("{count} times{places}, first {at}") };
        out.first("finding", finding, *count, first, &format!("{finding} ({times})"));
    }
    let more = findings.len().saturating_sub(MAX_LISTED) as u64 + other_findings;
    if more > 0 {
        out.more(&format!("{more} more findings"));
    }
    for (text, Seen { count, first, .. }) in advice.iter().take(MAX_LISTED) {
        let (messages, at) = (counted(*count, "message"), moment(first));
        out.first("advice", text, *count, first, &format!("{messages} {text} (first {at})"));
    }
    let more = advice.len().saturating_sub(MAX_LISTED) as u64 + other_advice;
    if more > 0 {
        out.more(&format!("{more} more definitions missing"));
    }
    let Undefined { unknown, closed, strange } = undefined;
    well &= unknown.is_empty();
    let mut of_tera = String::new();
    well &= tera.report(&arguments.capture, &tera_definitions, &mut of_tera);
    of_tera.lines().for_each(|line| out.other("tera", line));
    for ((family, advice, name), count) in unknown {
        let count = counted(count, "message");
        let help = advice.map_or(String::new(), |advice| format!("; {advice}"));
        out.other(family, &format!("     {family} {name}: {count} without a definition{help}"));
    }
    well &= closed.is_empty();
    for ((message, field), count) in closed {
        let count = counted(count, "message");
        let help = "with an object; supply a type list with --data";
        out.other("ki", &format!("     ki {message}.{field}: {count} {help}"));
    }
    if strange > 0 {
        let strange = counted(strange, "conversation");
        let help = "of an unknown family; use --as FAMILY to choose one";
        out.other("", &format!("     {strange} {help}"));
    }
    print(&out.text)?;
    if !common.quiet {
        say(dissection.summary());
    }
    if well { Ok(()) } else { Err(Failure::Input) }
}

/// Messages without a definition, in the conversations that have closed.
#[derive(Default)]
struct Undefined {
    /// By family, advice and name: the number of messages for which only a number is known.
    unknown: BTreeMap<(&'static str, Option<&'static str>, String), u64>,
    /// By name and field: the number of KI messages that contain an object of an unknown class.
    closed: BTreeMap<(String, String), u64>,
    /// Conversations of an unknown family.
    strange: u64,
}

/// The number of occurrences of each finding.
#[derive(Default)]
struct Tally {
    /// The occurrences, by finding.
    kept: BTreeMap<String, Seen>,
    /// The number of occurrences of all other findings.
    others: u64,
}

/// The number of occurrences of a finding.
struct Seen {
    count: u64,
    first: Stamp,
    /// Whether it also occurred in a conversation other than the first.
    is_shared: bool,
}

impl Tally {
    fn add(&mut self, finding: &str, stamp: &Stamp) {
        if let Some(seen) = self.kept.get_mut(finding) {
            seen.count += 1;
            seen.is_shared |= seen.first.stream != stamp.stream;
        } else if self.kept.len() < MAX_KEPT {
            let seen = Seen { count: 1, first: *stamp, is_shared: false };
            self.kept.insert(finding.to_owned(), seen);
        } else {
            self.others += 1;
        }
    }
}

/// The command's output: text, or lines of JSON.
struct Report {
    is_json: bool,
    text: String,
}

impl Report {
    /// Writes a finding, with the packet in which it first occurred.
    fn first(&mut self, kind: &str, what: &str, count: u64, first: &Stamp, text: &str) {
        let line = match self.is_json {
            true => json!({
                "kind": kind,
                "what": what,
                "count": count,
                "stream": first.stream,
                "packet": first.packet,
                "elapsed": first.since.as_secs_f64(),
            })
            .to_string(),
            false => format!("#{:<3} {text}", first.stream),
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// Writes a finding about messages of a family, or of all families if the name is empty.
    fn other(&mut self, family: &str, text: &str) {
        let line = match self.is_json {
            true => {
                let family = Some(family).filter(|family| !family.is_empty());
                json!({ "kind": "definitions", "what": text.trim(), "family": family }).to_string()
            }
            false => text.to_owned(),
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// Writes the number of omitted lines.
    fn more(&mut self, text: &str) {
        let line = match self.is_json {
            true => json!({ "kind": "more", "what": text }).to_string(),
            false => format!("     {text}"),
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

struct Finding {
    text: Cow<'static, str>,
    stamp: Stamp,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Something that may be valid.
    Remark,
    /// Something that could not be decoded.
    Harm,
    /// How to decode a part that is shown as bytes.
    Advice,
}

/// Where an item is in the capture: its packet, and the seconds since the first packet.
fn moment(stamp: &Stamp) -> String {
    let elapsed = stamp.since;
    let seconds = format!("{}.{:06} s", elapsed.as_secs(), elapsed.subsec_micros());
    match stamp.packet {
        Some(packet) => format!("in packet {packet} at {seconds}"),
        None => format!("at {seconds}"),
    }
}

/// Natural order for texts with numbers: packet 7 sorts before packet 10.
fn in_order(one: &str, other: &str) -> Ordering {
    fn number(text: &str) -> (&str, &str) {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        (digits.trim_start_matches('0'), rest)
    }
    let alike = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let is_digit = |at: usize| one.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    // If the common prefix of the texts ends within a number, the whole number is compared.
    let start = (0..alike).rev().take_while(|at| is_digit(*at)).last().unwrap_or(alike);
    let (Some(left), Some(right)) = (one.get(start..), other.get(start..)) else {
        return one.cmp(other);
    };
    let ((left_digits, _), (right_digits, _)) = (number(left), number(right));
    let by_number = match (left_digits.is_empty(), right_digits.is_empty()) {
        (false, false) => {
            left_digits.len().cmp(&right_digits.len()).then(left_digits.cmp(right_digits))
        }
        _ => Ordering::Equal,
    };
    by_number.then_with(|| one.cmp(other))
}

/// Why a field of a message was left undecoded.
fn closed(item: &Item<'_>, remark: &Error) -> String {
    let mut text = String::new();
    item.push_name(&mut text);
    let _ = write!(text, ": shown as bytes: {remark}");
    text
}

/// Whether only a message's number is known.
fn has_no_name(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_bounded() {
        let mut tally = Tally::default();
        for number in 0..MAX_KEPT + 5 {
            tally.add(&format!("packet {number}"), &Stamp::default());
        }
        tally.add("packet 0", &Stamp::default());
        assert_eq!(
            (tally.kept.len(), tally.others, tally.kept["packet 0"].count),
            (MAX_KEPT, 5, 2)
        );
        assert!(!tally.kept["packet 0"].is_shared);
        tally.add("packet 0", &Stamp { stream: 3, ..Stamp::default() });
        assert!(tally.kept["packet 0"].is_shared);
    }

    #[test]
    fn findings_are_sorted_by_their_numbers() {
        let sorted = ["a", "packet 7: x", "packet 10: a", "packet 10: b", "packet 70", "packet x"];
        for (index, one) in sorted.iter().enumerate() {
            for (other_index, other) in sorted.iter().enumerate() {
                assert_eq!(in_order(one, other), index.cmp(&other_index), "{one} {other}");
            }
        }
    }
}
