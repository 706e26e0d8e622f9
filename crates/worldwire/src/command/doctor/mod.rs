//! `worldwire doctor`.

mod ki;
mod tera;
mod uru;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use worldwire_core::{Error, Limits, Tree};
use worldwire_dissect::{Item, KiObjects, Note, NoteKind, Scratch, TeraDefinitions};
use worldwire_ki::crypt::keys::KeyFile;
use worldwire_ki::schema::Protocols;

use super::capture;
use crate::cli::{Common, Doctor};
use crate::output::{Failure, print, say};
use crate::{definitions, input};

/// The most findings of one kind that are listed.
const MOST_LISTED: usize = 50;

pub(crate) fn run(arguments: &Doctor, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.data, common)?;
    let limits = Limits::DEFAULT;
    let tera_definitions = definitions.part::<TeraDefinitions>();
    let objects = definitions.part::<KiObjects>();
    let protocols = definitions.part::<Protocols>();
    let has_logins =
        !input::keys(arguments.capture.keys.as_deref())?.part::<KeyFile>().logins().is_empty();
    let tera = tera::Builds::default();
    // What was said, how often, and in which conversation first.
    let mut findings: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let show = |item: &Item<'_>, scratch: &mut Scratch, found: &mut Vec<(String, u64)>| {
        if tera.look(item) {
            return;
        }
        // That a build is not known is among the findings of its messages.
        let told = |note: &Note| item.family == "tera" && note.kind == NoteKind::Warning;
        if item.note().is_some_and(told) {
            return;
        }
        let tree: Tree<'_> = core::mem::take(&mut scratch.tree).recycle();
        let tree = item.tree(tree, &limits);
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
        // What is odd about a message often says why something in it stays bytes.
        if findings.is_empty() {
            findings.extend(tree.remarks().iter().map(|remark| closed(item, remark)));
        }
        findings.extend(ki::closed(item, &tree, has_logins));
        let findings = findings.into_iter();
        found.extend(findings.map(|finding| (finding, item.stamp.stream)));
        scratch.tree = tree.recycle();
    };
    let (dissection, clean) =
        capture::read(&arguments.capture, common, definitions, show, |found: &Vec<_>| {
            for (finding, stream) in found {
                match findings.get_mut(finding) {
                    Some((count, _)) => *count += 1,
                    None => drop(findings.insert(String::clone(finding), (1, *stream))),
                }
            }
            Ok(())
        })?;

    let mut out = String::new();
    let mut findings: Vec<_> = findings.into_iter().collect();
    findings.sort_by_key(|(_, (_, stream))| *stream);
    let mut well = clean && findings.is_empty();
    for (finding, (count, stream)) in findings.iter().take(MOST_LISTED) {
        let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
        let _ = writeln!(out, "#{stream:<3} {finding}{times}");
    }
    if findings.len() > MOST_LISTED {
        let _ = writeln!(out, "     {} more findings", findings.len() - MOST_LISTED);
    }
    let mut unknown: BTreeMap<(&str, Option<&str>, &str), u64> = BTreeMap::new();
    let mut strange = 0;
    let mut closed: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for overview in dissection.overviews() {
        let Some(family) = overview.family else {
            strange += 1;
            continue;
        };
        for (name, [client, server]) in &overview.messages {
            if family.name() != "tera" && has_no_name(name) {
                let advice = family.advice();
                *unknown.entry((family.name(), advice, name)).or_default() += client + server;
            }
            if family.name() == "ki" && objects.classes().is_none() {
                let message = protocols.message_named(name);
                for field in message.into_iter().flat_map(|message| objects.fields(message)) {
                    *closed.entry((name, field)).or_default() += client + server;
                }
            }
        }
    }
    well &= unknown.is_empty();
    well &= tera.report(&arguments.capture, &tera_definitions, &mut out);
    for ((family, advice, name), count) in unknown {
        let plural = if count == 1 { "" } else { "s" };
        let help = advice.map_or(String::new(), |advice| format!("; {advice}"));
        let _ = writeln!(
            out,
            "     {family} {name}: {count} message{plural} without a definition{help}"
        );
    }
    well &= closed.is_empty();
    for ((message, field), count) in closed {
        let plural = if count == 1 { "" } else { "s" };
        let _ = writeln!(
            out,
            "     ki {message}.{field}: {count} message{plural} with an object; give a type list \
             with --data"
        );
    }
    if strange > 0 {
        let plural = if strange == 1 { "" } else { "s" };
        let _ = writeln!(
            out,
            "     {strange} conversation{plural} of an unknown family; --as FAMILY forces one"
        );
    }
    print(&out)?;
    if !common.quiet {
        say(dissection.summary());
    }
    if well { Ok(()) } else { Err(Failure::Input) }
}

/// Why a field of a message stays bytes.
fn closed(item: &Item<'_>, remark: &Error) -> String {
    let mut text = String::new();
    item.push_name(&mut text);
    let _ = write!(text, ": shown as bytes: {remark}");
    text
}

/// Whether a message is known by its number only.
fn has_no_name(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}
