//! `worldwire export pcapng`.

use std::cell::RefCell;
use std::io::IsTerminal as _;

use worldwire_dissect::{Definitions, Item, Overview, Scratch};

use super::plain::{Piece, PlainWriter};
use crate::cli::{Capture, Common, ExportPcapng};
use crate::command::capture::{self, Extras};
use crate::command::dissect::read_filter;
use crate::command::selection::Selection;
use crate::definitions;
use crate::input::packets::Meanwhile;
use crate::output::{Failure, Output, counted, say};

pub(super) fn run(arguments: &ExportPcapng, common: &Common) -> Result<(), Failure> {
    arguments.target.ends_in("a decrypted capture", &["pcapng"])?;
    arguments.target.spares(arguments.capture.files())?;
    if arguments.target.is_stdout() && std::io::stdout().is_terminal() {
        let problem = "writes a capture, not text; give a file with -o NAME.pcapng";
        return Err(Failure::Run(format!("export pcapng: {problem}")));
    }
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let selection = Selection { stream: arguments.stream, filter };
    let output = capture::output(&arguments.capture, &arguments.target)?;
    // The output contains passwords and session keys.
    output.hide()?;
    let watches_stdout = arguments.target.is_stdout();
    let clean = write(&arguments.capture, common, definitions, &selection, output, watches_stdout)?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// Writes the selected messages of a capture, decrypted, as they arrive. Returns whether the whole
/// capture could be read.
///
/// # Errors
/// If the capture cannot be read at all, or the output cannot be written.
pub(in crate::command) fn write(
    arguments: &Capture,
    common: &Common,
    definitions: Definitions,
    selection: &Selection,
    output: Output,
    watches_stdout: bool,
) -> Result<bool, Failure> {
    let mut writer = PlainWriter::new(output)?;
    writer.flush()?;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Piece>| {
        selection.pass(item, scratch, true, |shown| {
            out.extend(Piece::of(shown.item, shown.name, shown.tree));
        });
    };
    // Shared by the callbacks for items and for closed conversations.
    let writer = RefCell::new(writer);
    let meanwhile = Meanwhile { watches_stdout, ..Meanwhile::default() };
    let extras = Extras { meanwhile, ..Extras::default() };
    let take = |pieces: &Vec<Piece>| {
        selection.check()?;
        let mut writer = writer.borrow_mut();
        pieces.iter().try_for_each(|piece| writer.piece(piece))?;
        writer.flush()
    };
    let mut unread = 0_u64;
    let mut closed = |overview: &Overview| {
        unread += u64::from(overview.family.is_none());
        writer.borrow_mut().forget(overview.stream);
    };
    let (dissection, clean) = capture::read_taking(
        arguments,
        common,
        definitions,
        extras,
        show,
        take,
        Some(&mut closed as _),
    )?;
    selection.check()?;
    let open = dissection.overviews();
    unread += open.iter().filter(|overview| overview.family.is_none()).count() as u64;
    let summary = dissection.summary();
    if let Some(stream) = selection.stream.filter(|stream| *stream >= summary.conversations) {
        return Err(capture::no_conversation(stream, summary.conversations));
    }
    let written = writer.into_inner().finish()?;
    if !common.quiet {
        let (messages, packets) = (counted(written.messages, "message"), written.packets);
        say(format_args!("{messages} written, in {}", counted(packets, "packet")));
        if unread > 0 && selection.stream.is_none() {
            say(format_args!("{} omitted: not recognised", counted(unread, "conversation")));
        }
    }
    if selection.filter.is_some() && written.messages == 0 {
        common.note("filter", "no message matches");
    }
    Ok(clean && summary.problems == 0)
}
