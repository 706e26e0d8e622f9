//! `worldwire dissect`.

mod format;
mod table;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use worldwire_core::Side;
use worldwire_core::json::{self, Style};
use worldwire_dissect::filter::{Ambiguity, Column, Filter, Resolver};
use worldwire_dissect::{
    Definitions, Dissection, Families, Format, Item, Line, Overview, Scratch, Sink,
};

use super::capture::{self, Extras};
use super::lines::{Lines, ShownLine};
use super::packets;
use super::secrets::key_file;
use super::selection::{Selection, Shown};
use super::time::Times;
use crate::cli::{Capture, Common, Dissect, Follow, JsonForm, Knowledge, Target, TimeForm, View};
use crate::definitions;
use crate::input::packets::Meanwhile;
use crate::output::{
    CaptureFile, CaptureFormat, Failure, Output, OutputFormat, PacketsTarget, RingLimits, counted,
    printable, say, shown,
};
use format::{format, named_format, paints, plain};
use table::{cells, columns, row};

pub(crate) fn run(arguments: &Dissect, common: &Common) -> Result<(), Failure> {
    capture::start_threads(arguments.threads);
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let (wanted, view) = named_format(arguments, common)?;
    let filter = view.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let format = format(&view, &arguments.target, common);
    let paints = paints(&format, &definitions, common)?;
    arguments.target.spares(arguments.capture.files())?;
    let copy = Cell::new(saved_packets(arguments, wanted)?);
    let selection = Selection { stream: view.stream, filter };
    let (hidden, found) = (AtomicU64::new(0), AtomicBool::new(false));
    let needs_fields = !paints.is_empty();
    let reading =
        Reading { arguments, view, common, selection, format, copy, hidden, found, needs_fields };
    let view = &reading.view;
    if let OutputFormat::Capture(format) = wanted {
        return match capture::is_live(&arguments.capture) {
            true => write_arriving(&reading, definitions, format),
            false => write_packets(&reading, definitions, format),
        };
    }
    let mut output = capture::output(&arguments.capture, &arguments.target)?;
    // Options that would reveal more, each with the number of messages affected.
    let advice: Mutex<BTreeMap<Cow<'static, str>, u64>> = Mutex::default();
    // Messages without a definition. JSON output already marks each of them.
    let undefined = AtomicU64::new(0);
    let counts = !matches!(format, Format::Json(_));
    let advise = |item: &Item<'_>| {
        if counts && item.lacks_definition() {
            undefined.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(text) = item.advice()
            && let Ok(mut advice) = advice.lock()
        {
            // A hostile capture can name a different descriptor in every message.
            if advice.len() < MAX_ADVICE || advice.contains_key(&text) {
                *advice.entry(text).or_default() += 1;
            }
        }
    };
    let columns = columns(view, &definitions, common)?;
    if let Some(wanted) = view.message() {
        return cut(&reading, definitions, wanted, output);
    }
    if !columns.is_empty() {
        let names = columns.iter().map(Column::name);
        output.write(row(view.csv, names).as_bytes())?;
    }
    let times = Times::of(view.time)?;
    let write = |shown: &Shown<'_, '_>, out: &mut String| {
        if !columns.is_empty() {
            if let Some(cells) = cells(&columns, &times, shown) {
                out.push_str(&row(view.csv, cells.iter().map(String::as_str)));
            }
            return;
        }
        if shown.is_first {
            advise(shown.item);
        }
        match paints.iter().find(|rule| rule.matches(shown)) {
            None => {
                times.write(shown.item.stamp.time, out);
                format.write(shown.item, shown.name, shown.tree, out);
            }
            Some(rule) => {
                let mut lines = String::new();
                times.write(shown.item.stamp.time, &mut lines);
                plain(format).write(shown.item, shown.name, shown.tree, &mut lines);
                rule.color.write(&lines, out);
            }
        }
    };
    let check = || columns.iter().try_for_each(|column| refuse_ambiguity(column.ambiguity()));
    let is_prefixed = view.numbers || view.time == TimeForm::Delta;
    let needs_lines = view.limit.is_some() || view.last.is_some() || is_prefixed;
    let (dissection, clean) = if needs_lines {
        let show = |shown: &Shown<'_, '_>, out: &mut Vec<ShownLine>| {
            let mut text = String::new();
            write(shown, &mut text);
            if !text.is_empty() {
                out.push(ShownLine::of(shown.item, text));
            }
        };
        let is_timed = columns.is_empty() && matches!(format, Format::Text { .. });
        let mut lines = Lines::new(view, is_timed, output);
        let outcome = reading.read(definitions, show, |shown: &Vec<ShownLine>| {
            check()?;
            lines.add(shown)
        });
        if lines.is_complete() {
            return lines.finish();
        }
        let outcome = outcome?;
        output = lines.into_output()?;
        outcome
    } else {
        reading.read(definitions, write, |text: &String| {
            check()?;
            output.write(text.as_bytes())?;
            output.flush()
        })?
    };
    if let Some(stream) = view.stream {
        capture::check_stream(&dissection, stream)?;
    }
    output.finish()?;
    let summary = dissection.summary();
    if !common.quiet {
        say(summary);
        let hidden = reading.hidden.load(Ordering::Relaxed);
        if hidden > 0 {
            let problems = counted(hidden, "problem");
            say(format_args!("{problems} hidden by the filter; add `or problem` to show them"));
        }
        for (text, messages) in advice.into_inner().unwrap_or_default() {
            say(format_args!("{} {text}", counted(messages, "message")));
        }
        let undefined = undefined.into_inner();
        if undefined > 0 {
            let (count, command) = (counted(undefined, "message"), doctor(&arguments.capture));
            say(format_args!("{count} without a definition; for advice, run {command}"));
        }
    }
    if reading.selection.filter.is_some() && !reading.found.load(Ordering::Relaxed) {
        // Not a failure: in a capture without problems, `--filter problem` selects nothing.
        common.note("filter", "nothing matches");
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// Shows the messages of one conversation, for `follow`.
pub(super) fn run_one(arguments: &Follow, common: &Common) -> Result<(), Failure> {
    let Follow { capture, stream, filter, limit, time, fields, .. } = arguments;
    let Follow { json, json_safe, target, .. } = arguments;
    let view = View {
        filter: filter.clone(),
        stream: Some(*stream),
        limit: *limit,
        time: *time,
        fields: fields.clone(),
        json: JsonForm { json: *json, json_safe: *json_safe },
        ..View::default()
    };
    let target = Target { output: target.output.clone(), force: target.force };
    let capture = capture.clone();
    run(&Dissect { capture, view, secrets: false, threads: 0, target }, common)
}

/// The command that diagnoses missing definitions in the same capture.
fn doctor(capture: &Capture) -> String {
    // Input that is not a file can be read again only if it was saved.
    let file = match &capture.tcpdump {
        Some(tcpdump) => tcpdump.write.as_deref(),
        None => Some(&*capture.file).filter(|file| *file != Path::new("-")),
    };
    let file = file.map_or_else(|| "CAPTURE".to_owned(), definitions::shell);
    let mut command = format!("worldwire doctor {file}");
    for file in &capture.more {
        command += &format!(" {}", definitions::shell(file));
    }
    let Knowledge { keys, data, families } = &capture.knowledge;
    for file in keys {
        command += &format!(" --keys {}", definitions::shell(file));
    }
    for family in families {
        command += &format!(" --as {family}");
    }
    command + &definitions::options(data) + &definitions::pins(data)
}

/// The maximum number of different pieces of advice.
const MAX_ADVICE: usize = 40;

/// The user's selection.
struct Reading<'r> {
    arguments: &'r Dissect,
    /// The options, including those implied by the name of the output file.
    view: View,
    common: &'r Common,
    selection: Selection,
    format: Format,
    /// The file for all packets of a live capture.
    copy: Cell<Option<PacketsTarget>>,
    /// The number of problems that the filter hides.
    hidden: AtomicU64,
    /// Whether anything was selected.
    found: AtomicBool,
    /// Whether colour rules look at fields that the format does not show.
    needs_fields: bool,
}

impl Reading<'_> {
    /// Reads the capture and shows the selected items.
    fn read<S: Sink>(
        &self,
        definitions: Definitions,
        show: impl Fn(&Shown<'_, '_>, &mut S) + Sync,
        mut write: impl FnMut(&S) -> Result<(), Failure>,
    ) -> Result<(Dissection, bool), Failure> {
        let Self { arguments, common, selection, format, copy, hidden, found, .. } = self;
        let watches_stdout = arguments.target.is_stdout();
        let copy = copy.take();
        let meanwhile = Meanwhile { copy, watches_stdout, ..Meanwhile::default() };
        let extras = Extras { secrets: arguments.secrets, meanwhile, ..Extras::default() };
        let needs_fields = format.needs_fields() || self.needs_fields;
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut S| {
            let is_first = !scratch.is_repeated;
            let is_hidden = !selection.pass(item, scratch, needs_fields, |shown| {
                found.store(true, Ordering::Relaxed);
                show(shown, out);
            });
            if is_hidden && is_first && item.is_problem() {
                hidden.fetch_add(1, Ordering::Relaxed);
            }
        };
        let write = |found: &S| {
            selection.check()?;
            write(found)
        };
        // Keys are exported from the overviews of all conversations. Without an export, memory must
        // not grow with the number of conversations.
        let mut forget = |_: &Overview| {};
        let closed: Option<&mut dyn FnMut(&Overview)> =
            if arguments.secrets { None } else { Some(&mut forget) };
        let outcome = capture::read_taking(
            &arguments.capture,
            common,
            definitions,
            extras,
            show,
            write,
            closed,
        );
        selection.check()?;
        outcome
    }
}

/// The file named by `--write`.
fn saved_packets(
    arguments: &Dissect,
    wanted: OutputFormat,
) -> Result<Option<PacketsTarget>, Failure> {
    let tcpdump = arguments.capture.tcpdump.as_ref();
    let Some(path) = tcpdump.and_then(|tcpdump| tcpdump.write.as_deref()) else {
        return Ok(None);
    };
    let refuse = |why: &str| Err(Failure::Run(format!("--write {}: {why}", shown(path))));
    let format = match OutputFormat::of(path) {
        _ if matches!(wanted, OutputFormat::Capture(_)) => {
            return refuse("-o already saves all packets");
        }
        Ok(OutputFormat::Any) if path.extension().is_none() => {
            CaptureFormat { is_pcapng: true, is_gzip: false }
        }
        Ok(OutputFormat::Capture(format)) if !format.is_gzip => format,
        _ => return refuse("saves packets; use the extension .pcapng or .pcap"),
    };
    let (tcpdump, force) = (arguments.capture.tcpdump.as_ref(), arguments.target.force);
    if let Some((files, tcpdump)) = tcpdump.and_then(|it| Some((it.ring?, it))) {
        let limits = RingLimits { files, size: tcpdump.ring_size, time: tcpdump.ring_time };
        return PacketsTarget::ring(path, format, force, limits).map(Some);
    }
    let target = Target { output: Some(path.to_owned()), force };
    PacketsTarget::file(target, format).map(Some)
}

/// Writes all packets of a live capture as they arrive.
fn write_arriving(
    reading: &Reading<'_>,
    definitions: Definitions,
    format: CaptureFormat,
) -> Result<(), Failure> {
    let Reading { arguments, view, common, copy, .. } = reading;
    if view.filter.is_some() || view.stream.is_some() || arguments.secrets || format.is_gzip {
        return Err(Failure::Run(
            "-o saves the packets of a live capture before their messages are known; use \
             --filter, --stream, --secrets and .gz on the complete file"
                .to_owned(),
        ));
    }
    copy.set(Some(PacketsTarget::file(arguments.target.clone(), format)?));
    let nothing = |_: &Shown<'_, '_>, (): &mut ()| {};
    let (dissection, clean) = reading.read(definitions, nothing, |()| Ok(()))?;
    let summary = dissection.summary();
    if !common.quiet {
        say(summary);
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// Writes the packets of all conversations with matching messages.
fn write_packets(
    reading: &Reading<'_>,
    definitions: Definitions,
    format: CaptureFormat,
) -> Result<(), Failure> {
    let Reading { arguments, view, common, .. } = reading;
    let output = Output::open(&arguments.target)?;
    let mut streams = BTreeSet::new();
    let show = |shown: &Shown<'_, '_>, out: &mut Vec<u64>| {
        let stream = shown.item.stamp.stream;
        if out.last() != Some(&stream) {
            out.push(stream);
        }
    };
    let (dissection, clean) = reading.read(definitions, show, |found: &Vec<u64>| {
        streams.extend(found);
        Ok(())
    })?;
    // An unrecognised conversation has no messages, but can be selected by number.
    if let Some(stream) = view.stream.filter(|_| reading.selection.filter.is_none()) {
        capture::check_stream(&dissection, stream)?;
        streams.insert(stream);
    }
    if streams.is_empty() {
        say("worldwire: no conversation has a message that matches");
        return Err(Failure::Input);
    }
    let overviews = dissection.overviews().into_iter();
    let secrets = key_file(overviews.filter(|overview| streams.contains(&overview.stream)));
    let mut file = CaptureFile::new(output, format)?;
    if !secrets.is_empty() {
        file.secrets(&secrets).map_err(|error| Failure::Run(error.to_string()))?;
    }
    let count = packets::write(&arguments.capture, &streams, file)?;
    let summary = dissection.summary();
    if !common.quiet {
        let (count, of) = (counted(count, "packet"), counted(streams.len(), "conversation"));
        say(format_args!("{count} of {of} written; {summary}"));
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// Writes one matching message and stops reading the capture.
fn cut(
    reading: &Reading<'_>,
    definitions: Definitions,
    wanted: u64,
    mut output: Output,
) -> Result<(), Failure> {
    let format = reading.format;
    let is_json = matches!(format, Format::Json(_));
    let families = definitions.families();
    let show = |shown: &Shown<'_, '_>, out: &mut Vec<(String, Vec<u8>)>| {
        if shown.item.message().is_some() {
            let mut line = String::new();
            let format = if is_json { format } else { Format::Json(Style::default()) };
            format.write(shown.item, shown.name, shown.tree, &mut line);
            let bytes = if is_json { Vec::new() } else { shown.item.body().to_vec() };
            out.push((line, bytes));
        }
    };
    let (mut count, mut found) = (0, false);
    let outcome = reading.read(definitions, show, |messages: &Vec<(String, Vec<u8>)>| {
        for (line, bytes) in messages {
            count += 1;
            if count == wanted {
                output.write(if is_json { line.as_bytes() } else { bytes })?;
                if let Some(decode) = codec(line, families).filter(|_| !is_json) {
                    let data = &reading.arguments.capture.knowledge.data;
                    let decode = decode + &definitions::options(data) + &definitions::pins(data);
                    reading
                        .common
                        .note("dissect", &format!("`worldwire {decode}` decodes these bytes"));
                }
                found = true;
                // The message was found.
                return Err(Failure::Pipe);
            }
        }
        Ok(())
    });
    if found {
        return output.finish();
    }
    let (dissection, _) = outcome?;
    if let Some(stream) = reading.view.stream {
        capture::check_stream(&dissection, stream)?;
    }
    let plural = if count == 1 { "message matches" } else { "messages match" };
    say(format_args!("worldwire: there is no message {wanted}: only {count} {plural}"));
    Err(Failure::Input)
}

/// The command that decodes the bytes of the message on a line, if there is a codec for it.
fn codec(line: &str, families: Families) -> Option<String> {
    let json = json::parse(line).ok()?;
    let line = Line::parse(&json).ok()??;
    let (codec, _) = line.blob(families).ok()??;
    Some(match line.from {
        Side::Client => format!("decode {codec}"),
        Side::Server => format!("decode {codec} --from server"),
    })
}

pub(super) fn read_filter(
    text: &str,
    definitions: &Definitions,
    common: &Common,
) -> Result<Filter, Failure> {
    let filter = Filter::parse(text).map_err(|error| Failure::Run(error.to_string()))?;
    let resolver = Resolver::new(definitions);
    let filter = filter.resolve(&resolver);
    check_filter(&filter, &resolver, common)?;
    Ok(filter)
}

/// Refuses a filter or column whose path can mean several fields of a message.
pub(super) fn refuse_ambiguity(ambiguity: Option<Ambiguity>) -> Result<(), Failure> {
    ambiguity.map_or(Ok(()), |it| Err(Failure::Run(printable(&format!("filter: {it}")))))
}

/// Reports unknown names of messages and fields.
fn check_filter(filter: &Filter, resolver: &Resolver<'_>, common: &Common) -> Result<(), Failure> {
    filter
        .check(resolver, &mut |remark| common.note("filter", remark))
        .map_err(|problem| Failure::Run(format!("filter: {problem}")))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::doctor;
    use crate::cli::{Capture, Data, Knowledge, Tcpdump};

    #[test]
    fn the_suggested_doctor_command_reads_the_saved_capture() {
        let data =
            Data { paths: vec!["my data".into()], revision: Some(7), patch: None, pin: Vec::new() };
        let mut capture = Capture::plain(Path::new("a.pcap"), data.clone());
        let (keys, families) = (vec!["keys.toml".into()], vec!["7801=tera".to_owned()]);
        capture.knowledge = Knowledge { keys, data, families };
        let rest = " --keys keys.toml --as 7801=tera --data 'my data' --revision 7";
        assert_eq!(doctor(&capture), format!("worldwire doctor a.pcap{rest}"));
        capture.file = PathBuf::from("-");
        assert_eq!(doctor(&capture), format!("worldwire doctor CAPTURE{rest}"));
        for (write, wanted) in [(None, "CAPTURE"), (Some("b.pcapng".into()), "b.pcapng")] {
            let packets = Vec::new();
            let tcpdump = Tcpdump {
                interface: "eth0".into(),
                packets,
                write,
                ring: None,
                ring_size: None,
                ring_time: None,
                stop_after: Vec::new(),
            };
            capture.tcpdump = Some(tcpdump);
            assert_eq!(doctor(&capture), format!("worldwire doctor {wanted}{rest}"));
        }
    }
}
