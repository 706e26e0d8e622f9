//! `worldwire secrets`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use worldwire_dissect::{Item, Overview, Scratch};
use zeroize::Zeroizing;

use super::capture::{self, Extras};
use super::dissect::read_filter;
use super::selection::Selection;
use crate::cli::{Common, Secrets, SecretsExport};
use crate::definitions;
use crate::output::{Failure, counted, say, write_secret};

pub(crate) fn run(command: &Secrets, common: &Common) -> Result<(), Failure> {
    match command {
        Secrets::Export(arguments) => export(arguments, common),
    }
}

/// Writes the keys of the decrypted conversations as a key file that decrypts nothing else.
fn export(arguments: &SecretsExport, common: &Common) -> Result<(), Failure> {
    arguments.target.is_no_capture("a key file")?;
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let selection = Selection { stream: arguments.stream, filter };
    let mut matching: BTreeSet<u64> = BTreeSet::new();
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<u64>| {
        let stream = item.stamp.stream;
        if selection.filter.is_some() && out.last() != Some(&stream) {
            selection.pass(item, scratch, false, |_| out.push(stream));
        }
    };
    let extras = Extras { secrets: true, ..Extras::default() };
    let write = |found: &Vec<u64>| {
        selection.check()?;
        matching.extend(found);
        Ok(())
    };
    let (dissection, clean) =
        capture::read_with(&arguments.capture, common, definitions, extras, show, write)?;
    if let Some(stream) = arguments.stream {
        capture::conversation(&dissection, stream)?;
    }
    let wanted = |overview: &Overview| {
        arguments.stream.is_none_or(|it| it == overview.stream)
            && (selection.filter.is_none() || matching.contains(&overview.stream))
    };
    let overviews = dissection.overviews().into_iter().filter(|overview| wanted(overview));
    let text = key_file(overviews);
    if text.is_empty() {
        let problem = "no selected conversation was decrypted, so there are no keys to export";
        return Err(Failure::Run(problem.to_owned()));
    }
    write_secret(&arguments.target, text.as_bytes())?;
    let summary = dissection.summary();
    if !common.quiet {
        let count = text.lines().filter(|line| line.starts_with("# conversation ")).count();
        say(format_args!("{} with keys; {summary}", counted(count, "conversation")));
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// The keys of conversations, each below a line that names it. Cleared on drop.
pub(crate) fn key_file<'o>(overviews: impl Iterator<Item = &'o Overview>) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    for overview in overviews {
        let Some(secrets) = &overview.secrets else { continue };
        if !text.is_empty() {
            text.push('\n');
        }
        let Overview { stream, client, server, .. } = overview;
        let _ = writeln!(text, "# conversation {stream}, {client} > {server}");
        text.push_str(secrets);
    }
    text
}
