//! `worldwire stats`.

mod conversations;
mod details;
mod report;
mod summary;

use std::collections::BTreeMap;

use worldwire_dissect::stats::{Counted, Totals};
use worldwire_dissect::{Counts, Dissection, Item, Overview, Scratch};

use super::capture::{self, Extras};
use super::dissect::read_filter;
use super::selection::Selection;
use crate::cli::{Common, Stats, Target};
use crate::definitions;
use crate::output::{Failure, Output, print, say};
use details::Details;

pub(crate) fn run(arguments: &Stats, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let selection = Selection { stream: arguments.stream, filter };
    let is_report = arguments.report.is_some();
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Counted>| {
        // Only the tree shows what is wrong with a message.
        let needs_fields = is_report && item.is_problem();
        selection.pass(item, scratch, needs_fields, |shown| {
            let (item, tree) = (shown.item, shown.tree);
            let counted = Counted::of(item, shown.name);
            out.extend(counted.map(|it| if is_report { it.with_problem(item, tree) } else { it }));
        });
    };
    let capture = &arguments.capture;
    let report = match &arguments.report {
        Some(path) => {
            let target = Target { output: Some(path.clone()), force: arguments.force };
            target.ends_in("a report", &["html", "htm"])?;
            target.spares(capture.files())?;
            Some(Output::open(&target)?)
        }
        None => None,
    };
    let mut out = String::new();
    let (dissection, clean) = if arguments.conversations || arguments.each {
        let mut matching: BTreeMap<u64, Matching> = BTreeMap::new();
        let needs_counts = selection.filter.is_some();
        let (dissection, clean) =
            capture::read(capture, common, definitions, show, |items: &Vec<Counted>| {
                selection.check()?;
                for item in items.iter().filter(|_| needs_counts) {
                    matching.entry(item.stream).or_default().add(item);
                }
                Ok(())
            })?;
        selection.check()?;
        list(arguments, &dissection, needs_counts.then_some(&matching), &mut out)?;
        (dissection, clean)
    } else {
        let mut totals = Totals::new(selection.stream, selection.filter.is_some());
        let mut details = is_report.then(Details::default);
        // Both the callback for items and the one for closed conversations add to the totals.
        let cell = std::cell::RefCell::new((&mut totals, &mut details));
        let write = |items: &Vec<Counted>| {
            selection.check()?;
            let mut both = cell.borrow_mut();
            let (totals, details) = &mut *both;
            for item in items {
                totals.add(item);
                details.iter_mut().for_each(|details| details.add(item));
            }
            Ok(())
        };
        let add = |totals: &mut Totals, details: &mut Option<Details>, overview: &Overview| {
            if totals.add_conversation(overview) {
                details.iter_mut().for_each(|details| details.add_conversation(overview));
            }
        };
        let mut closed = |overview: &Overview| {
            let mut both = cell.borrow_mut();
            let (totals, details) = &mut *both;
            add(totals, details, overview);
        };
        let (extras, closed) = (Extras::default(), Some(&mut closed as _));
        let (dissection, clean) =
            capture::read_taking(capture, common, definitions, extras, show, write, closed)?;
        selection.check()?;
        for overview in dissection.overviews() {
            add(&mut totals, &mut details, overview);
        }
        if let Some(stream) = arguments.stream.filter(|_| totals.conversations == 0) {
            return Err(capture::no_conversation(stream, dissection.summary().conversations));
        }
        match (&mut details, arguments.json) {
            (Some(details), _) => {
                let files = capture.files().map(|file| file.display().to_string());
                out = report::html(&totals, details, &files.collect::<Vec<_>>());
            }
            (None, true) => {
                totals.push_json(&mut out);
                out.push('\n');
            }
            (None, false) => summary::text(&totals, arguments.top, &mut out),
        }
        (dissection, clean)
    };
    match report {
        Some(mut output) => {
            output.write(out.as_bytes())?;
            output.finish()?;
        }
        None => print(&out)?,
    }
    let summary = dissection.summary();
    if !common.quiet {
        say(summary);
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// The messages of a conversation that a filter selects.
#[derive(Debug, Default)]
struct Matching {
    messages: Counts,
    inside: Counts,
    problems: u64,
}

impl Matching {
    fn add(&mut self, item: &Counted) {
        self.problems += u64::from(item.is_problem);
        if item.is_message {
            let end = item.name.find(' ').unwrap_or(item.name.len());
            self.messages.add(item.from, item.name.get(..end).unwrap_or_default());
            if end < item.name.len() {
                self.inside.add(item.from, &item.name);
            }
        }
    }
}

/// Lists the selected conversations one by one, with the messages that match.
fn list(
    arguments: &Stats,
    dissection: &Dissection,
    matching: Option<&BTreeMap<u64, Matching>>,
    out: &mut String,
) -> Result<(), Failure> {
    let mut overviews = match arguments.stream {
        Some(stream) => vec![capture::conversation(dissection, stream)?],
        None => dissection.overviews(),
    };
    let mut counted: Vec<Overview> = Vec::new();
    if let Some(matching) = matching {
        for overview in overviews {
            if let Some(Matching { messages, inside, problems }) = matching.get(&overview.stream) {
                let mut overview = overview.clone();
                (overview.messages, overview.inside) = (messages.clone(), inside.clone());
                overview.problems = *problems;
                counted.push(overview);
            }
        }
        overviews = counted.iter().collect();
    }
    match (arguments.json, arguments.each) {
        (true, _) => overviews.iter().for_each(|overview| conversations::json(overview, out)),
        (false, true) => overviews.iter().for_each(|overview| conversations::text(overview, out)),
        (false, false) => conversations::table(overviews, arguments.sort, out),
    }
    Ok(())
}
