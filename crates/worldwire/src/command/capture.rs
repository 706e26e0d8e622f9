//! Reads a capture from beginning to end.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use worldwire_core::{Limits, nearest};
use worldwire_dissect::{
    Definitions, Dissection, Families, Family, Item, Options, Overview, Scratch, Sink, Unmerged,
};

use crate::cli::{Capture, Common, Knowledge, Target};
use crate::input::packets::{Filled, Meanwhile, Packets, Refusal};
use crate::input::{self, GrowingKeys};
use crate::output::{Failure, Output, complain, counted, say};

/// Reads a capture, passes every item to `show` and the result to `write`, in the order of the
/// capture and as soon as packets arrive. Returns true if the input itself had no problems; the
/// dissection counts the problems of conversations.
///
/// Ctrl-C ends a live capture normally. While a file is being read, it is an error
/// ([`Failure::Interrupted`]), because a summary of part of a capture would be wrong.
pub(crate) fn read<S: Sink>(
    arguments: &Capture,
    common: &Common,
    definitions: Definitions,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
    write: impl FnMut(&S) -> Result<(), Failure>,
) -> Result<(Dissection, bool), Failure> {
    read_with(arguments, common, definitions, Extras::default(), show, write)
}

/// What else to do while reading.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// The captured bytes of this conversation.
    pub(crate) wire: Option<u64>,
    /// The keys of all conversations.
    pub(crate) secrets: bool,
    /// What to do while the packets of a live capture arrive.
    pub(crate) meanwhile: Meanwhile,
    /// Whether the capture has been read before, so that its problems have already been reported.
    pub(crate) is_again: bool,
}

/// Starts the reader threads: the requested number or, for 0, one per core. This thread is one of
/// them, so with one thread, nothing waits for another and caches stay warm.
pub(crate) fn start_threads(count: usize) {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(count).use_current_thread();
    // Fails only if the threads are already running.
    let _ = threads.build_global();
}

/// Like [`read`], with additional options.
pub(crate) fn read_with<S: Sink>(
    arguments: &Capture,
    common: &Common,
    definitions: Definitions,
    extras: Extras,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
    write: impl FnMut(&S) -> Result<(), Failure>,
) -> Result<(Dissection, bool), Failure> {
    read_taking(arguments, common, definitions, extras, show, write, None)
}

/// Like [`read_with`]. If `closed` is given, it receives the overview of each conversation that
/// closes; the dissection keeps only the overviews of open ones.
pub(crate) fn read_taking<S: Sink>(
    arguments: &Capture,
    common: &Common,
    definitions: Definitions,
    extras: Extras,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
    mut write: impl FnMut(&S) -> Result<(), Failure>,
    mut closed: Option<&mut dyn FnMut(&Overview)>,
) -> Result<(Dissection, bool), Failure> {
    start_threads(0);
    let Extras { wire, secrets, mut meanwhile, is_again } = extras;
    let is_prompt = is_live(arguments);
    let mut growing_keys = match is_prompt {
        true => GrowingKeys::watch(&arguments.knowledge.keys, &arguments.file),
        false => None,
    };
    meanwhile.wait = growing_keys.as_ref().map_or_else(Duration::default, GrowingKeys::wait);
    let known = options(arguments.files(), &arguments.knowledge, definitions, common)?;
    let options = Options { wire, secrets, ..known };
    let subject = arguments.file.display().to_string();
    let progress = progress(arguments, common);
    let mut packets = match open(arguments, common, &options.limits, &progress, meanwhile) {
        Ok(packets) => packets,
        Err(Refusal::Failed(failure)) => return Err(failure),
        Err(Refusal::NoCapture(path, error)) => {
            let subject = path.map_or(subject, |path| path.display().to_string());
            complain(&subject, &error.to_string());
            return Err(Failure::Input);
        }
    };

    let mut dissection = Dissection::new(options);
    let mut doubts = Doubts::default();
    let mut out = S::default();
    // Output of a stored capture is merged and written while the next batch is read.
    let mut unwritten: Option<Unwritten<S>> = None;
    let mut filled = packets.fill(false, |packet| dissection.push(packet));
    let fault = loop {
        let last = matches!(filled, Filled::End(_));
        if let Some(keys) = growing_keys.as_mut().and_then(|keys| keys.changed(last)) {
            dissection.set_keys(keys);
        }
        if last {
            dissection.end();
        }
        let (mut next, mut written) = (Filled::End(None), Ok(()));
        let unmerged = dissection.run_beside(
            &show,
            |feed| {
                // While this batch is read, collects the packets of the next batch that have
                // already arrived.
                if !last {
                    next = packets.fill(true, |packet| feed.push(packet));
                }
            },
            || {
                if let Some(before) = unwritten.take() {
                    written = before.write(&mut out, &mut write, &mut closed);
                }
            },
        );
        written?;
        let mut overviews = Vec::new();
        if closed.is_some() {
            overviews = dissection.take_closed();
            overviews.iter().for_each(|overview| doubts.add(overview));
        }
        let current = Unwritten { unmerged, closed: overviews };
        if is_prompt || !matches!(filled, Filled::More) {
            current.write(&mut out, &mut write, &mut closed)?;
        } else {
            unwritten = Some(current);
        }
        match filled {
            Filled::More => {}
            Filled::End(fault) => break fault,
            Filled::Interrupted(code) => {
                progress.finish_and_clear();
                complain(&subject, "interrupted: the capture was not read to its end");
                return Err(Failure::Interrupted(code));
            }
            Filled::Unread => return Err(Failure::Pipe),
        }
        filled = match next {
            Filled::More if !dissection.is_pending() => {
                packets.fill(false, |packet| dissection.push(packet))
            }
            next => next,
        };
    };
    progress.finish_and_clear();
    tracing::debug!(packets = dissection.packets(), "capture read");
    if is_again {
        return Ok((dissection, fault.is_none()));
    }
    if let Some(error) = fault.as_ref().filter(|_| arguments.more.is_empty()) {
        complain(&subject, &error.to_string());
    }
    dissection.overviews().into_iter().for_each(|overview| doubts.add(overview));
    let copies = packets.copies();
    if copies > 0 {
        let copies = counted(copies, "packet");
        common.note("capture", &format!("{copies} skipped: duplicates of packets in other files"));
    }
    let blamed = account(&dissection, &doubts, &subject, common);
    Ok((dissection, fault.is_none() && !doubts.is_torn && !blamed))
}

/// The output of a batch and the conversations that closed in it.
struct Unwritten<S: Sink> {
    unmerged: Unmerged<S>,
    closed: Vec<Overview>,
}

impl<S: Sink> Unwritten<S> {
    /// Writes the output and then reports the conversations. `out` is reused between batches.
    fn write(
        self,
        out: &mut S,
        write: &mut impl FnMut(&S) -> Result<(), Failure>,
        closed: &mut Option<&mut dyn FnMut(&Overview)>,
    ) -> Result<(), Failure> {
        out.truncate(0);
        self.unmerged.merge(out);
        if !out.is_empty() {
            write(out)?;
        }
        if let Some(closed) = closed {
            self.closed.iter().for_each(closed);
        }
        Ok(())
    }
}

/// How to read a capture, given what the user knows about its conversations.
pub(crate) fn options<'p>(
    files: impl Iterator<Item = &'p Path>,
    knowledge: &Knowledge,
    definitions: Definitions,
    common: &Common,
) -> Result<Options, Failure> {
    let (mut family, mut ports) = (None, Vec::new());
    for given in &knowledge.families {
        match port_and_family(definitions.families(), given)? {
            (None, named) => family = Some(named),
            (Some(port), named) => ports.push((port, named)),
        }
    }
    let mut keys = input::keys(&knowledge.keys, common)?;
    input::add_keys_inside(&mut keys, files)?;
    Ok(Options { keys, definitions, family, ports, ..Options::default() })
}

fn open(
    arguments: &Capture,
    common: &Common,
    limits: &Limits,
    progress: &ProgressBar,
    meanwhile: Meanwhile,
) -> Result<Packets, Refusal> {
    let Capture { file, more, is_growing, tcpdump, .. } = arguments;
    if let Some(other) = arguments.files().find(|file| !more.is_empty() && !file.is_file()) {
        let problem = match other.exists() || other == Path::new("-") {
            true => "only files can be merged",
            false => "no such file",
        };
        let problem = format!("{}: {problem}", input::title(other));
        return Err(Refusal::Failed(Failure::Run(problem)));
    }
    match tcpdump {
        Some(tcpdump) => Packets::capture(tcpdump, common.quiet, limits, meanwhile),
        None if is_live(arguments) => Packets::live(file, *is_growing, limits, meanwhile),
        None => Packets::stored(arguments.files(), limits, progress),
    }
}

/// Whether packets may still arrive: from another program, or in a file that grows.
pub(crate) fn is_live(arguments: &Capture) -> bool {
    let path = arguments.file.as_path();
    // A missing file is refused when it is opened.
    let is_pipe = || std::fs::metadata(path).is_ok_and(|about| !about.is_file());
    let is_stream = || path == Path::new("-") || is_pipe();
    arguments.tcpdump.is_some() || arguments.is_growing || is_stream()
}

/// Opens the output of a command that reads a capture. During a live capture, a file is written as
/// packets are read.
pub(crate) fn output(arguments: &Capture, target: &Target) -> Result<Output, Failure> {
    if is_live(arguments) { Output::open_growing(target) } else { Output::open(target) }
}

/// Reports packets that do not belong to any conversation, and conversations whose beginning is
/// missing. Returns true if the capture itself is to blame: an unknown link type, broken blocks, or
/// a late start.
fn account(dissection: &Dissection, doubts: &Doubts, subject: &str, common: &Common) -> bool {
    use worldwire_capture::Unusable::{Block, Interface, Link};
    let packets = |count: u64| counted(count, "packet");
    let (refused, others): (Vec<_>, Vec<_>) = dissection
        .unusable()
        .into_iter()
        .partition(|(why, _)| matches!(why, Link(_) | Interface | Block));
    for (why, count) in &refused {
        complain(subject, &format!("{} could not be used: {why}", packets(*count)));
    }
    let unused: u64 = others.iter().map(|(_, count)| count).sum();
    if unused > 0 {
        let reasons: Vec<_> = others.iter().map(|(why, count)| format!("{count} {why}")).collect();
        common.note("capture", &format!("{} not used: {}", packets(unused), reasons.join(", ")));
    }
    let (all, cut) = (dissection.packets(), dissection.cut());
    if cut > 0 {
        let hint = "capture with a snap length of 0";
        common.note("capture", &format!("{} cut short by the capture; {hint}", packets(cut)));
    }
    if dissection.summary().conversations == 0 && unused == 0 && refused.is_empty() {
        let why = match all {
            0 => "contains no packets".to_owned(),
            _ => format!("{}, none with data or the start of a conversation", packets(all)),
        };
        common.note("capture", &why);
    }
    !refused.is_empty() || account_late(dissection, doubts, common)
}

/// What is missing from conversations.
#[derive(Default)]
struct Doubts {
    /// Whether a recognised conversation has a gap.
    is_torn: bool,
    /// The number of unrecognised conversations whose beginning is missing.
    late: usize,
    /// Whether one of them has a gap.
    has_gap: bool,
    /// The lowest numbers among them.
    first: BTreeMap<u64, [SocketAddr; 2]>,
}

/// The maximum number of conversations without their beginning that are listed.
const MAX_LATE: usize = 3;

impl Doubts {
    fn add(&mut self, overview: &Overview) {
        let has_gap = overview.gaps > 0;
        if overview.family.is_some() {
            self.is_torn |= has_gap;
        } else if overview.midstream || has_gap {
            self.late += 1;
            self.has_gap |= has_gap;
            self.first.insert(overview.stream, [overview.client, overview.server]);
            if self.first.len() > MAX_LATE {
                self.first.pop_last();
            }
        }
    }
}

/// Reports unrecognised conversations whose beginning is missing. Returns true if there are any and
/// no other conversation was recognised.
fn account_late(dissection: &Dissection, doubts: &Doubts, common: &Common) -> bool {
    let is_recognised = dissection.summary().recognised > 0;
    if is_recognised && !doubts.has_gap {
        // The other connections were already open when the capture began.
        return false;
    }
    for (stream, [client, server]) in &doubts.first {
        let port = server.port();
        let text = format!(
            "conversation {stream}, {client} > {server}: the beginning is missing, and the rest \
             was not recognised; if you know its family, read it with --as {port}=FAMILY"
        );
        common.note("capture", &text);
    }
    if doubts.late > MAX_LATE {
        common.note("capture", &format!("and {} more such conversations", doubts.late - MAX_LATE));
    }
    doubts.late > 0 && !is_recognised
}

/// The conversation with this number.
///
/// # Errors
/// If the number is out of range. The error states how many conversations there are.
pub(crate) fn conversation(dissection: &Dissection, stream: u64) -> Result<&Overview, Failure> {
    let mut overviews = dissection.overviews().into_iter();
    overviews
        .find(|overview| overview.stream == stream)
        .ok_or_else(|| no_conversation(stream, dissection.summary().conversations))
}

/// Checks that the capture has a conversation with this number.
pub(crate) fn check_stream(dissection: &Dissection, stream: u64) -> Result<(), Failure> {
    let count = dissection.summary().conversations;
    if stream < count { Ok(()) } else { Err(no_conversation(stream, count)) }
}

/// The error for a conversation that is not in the capture.
pub(crate) fn no_conversation(stream: u64, count: u64) -> Failure {
    say(format_args!(
        "worldwire: there is no conversation {stream}; the capture has {count}, numbered from 0"
    ));
    Failure::Input
}

/// A progress bar for large files.
fn progress(arguments: &Capture, common: &Common) -> ProgressBar {
    /// Smaller captures are read before anyone would notice a bar.
    const WORTH_A_BAR: u64 = 64 << 20;
    let size = |file| std::fs::metadata(file).map_or(0, |file| file.len());
    let size = arguments.files().map(size).sum();
    let watched = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
    if common.quiet || size < WORTH_A_BAR || !watched {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(size);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Parses `ki` or `12000=ki`.
fn port_and_family(
    families: Families,
    given: &str,
) -> Result<(Option<u16>, &'static dyn Family), Failure> {
    let Some((port, name)) = given.split_once('=') else {
        return Ok((None, family(families, given)?));
    };
    let port = port
        .parse()
        .map_err(|_| Failure::Run(format!("--as: \"{port}\" is not a port from 0 to 65535")))?;
    Ok((Some(port), family(families, name)?))
}

fn family(families: Families, name: &str) -> Result<&'static dyn Family, Failure> {
    families.named(name).map_err(|_| {
        let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("use one of {}", names.join(", ")),
        };
        Failure::Run(format!("--as: unknown family \"{name}\"; {hint}"))
    })
}
