//! Reading a capture from beginning to end.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use worldwire_capture::{CaptureError, CaptureReader, Record};
use worldwire_core::{Limits, nearest};
use worldwire_dissect::{Definitions, Dissection, Family, Item, Options, Scratch};

use crate::cli::{Capture, Common};
use crate::input;
use crate::output::{Failure, complain};

/// Reads a capture, hands every item to `show` and the text that it makes to `write`, in the order
/// of the capture. True when the input had no problems of its own (those of conversations are
/// counted in the dissection).
pub(crate) fn read(
    arguments: &Capture,
    common: &Common,
    definitions: Definitions,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut String) + Sync,
    mut write: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(Dissection, bool), Failure> {
    let family = match &arguments.family {
        None => None,
        Some(name) => Some(Family::from_name(name).ok_or_else(|| unknown_family(name))?),
    };
    let keys = input::keys(arguments.keys.as_deref())?;
    let options = Options { keys, definitions, family, limits: Limits::DEFAULT };
    let subject = arguments.file.display().to_string();
    let source = input::open(&arguments.file)?;
    let progress = progress(arguments, common);
    let source = progress.wrap_read(source);
    let mut capture = match CaptureReader::new(source, &options.limits) {
        Ok(capture) => capture,
        Err(error) => {
            complain(&subject, &error.to_string());
            return Err(Failure::Input);
        }
    };

    let mut dissection = Dissection::new(options);
    let mut text = String::new();
    let mut fault: Option<CaptureError> = None;
    let mut more = fill(&mut capture, &mut fault, |packet| dissection.push(packet));
    loop {
        if !more {
            dissection.end();
        }
        let last = !more;
        text.clear();
        more = dissection.run(&show, &mut text, |feed| {
            // The next batch is taken in while this one is read.
            !last && fill(&mut capture, &mut fault, |packet| feed.push(packet))
        });
        write(&text)?;
        if last {
            break;
        }
    }
    progress.finish_and_clear();
    if let Some(error) = &fault {
        complain(&subject, &error.to_string());
    }
    for (why, count) in dissection.unusable() {
        if matches!(why, worldwire_capture::Unusable::Link(_)) {
            let plural = if count == 1 { "" } else { "s" };
            complain(&subject, &format!("{count} packet{plural} could not be used: {why}"));
        }
    }
    Ok((dissection, fault.is_none()))
}

/// Takes in packets until a batch is full; false at the end of the capture.
fn fill<R: std::io::Read>(
    capture: &mut CaptureReader<R>,
    fault: &mut Option<CaptureError>,
    mut push: impl FnMut(&worldwire_capture::Packet<'_>) -> bool,
) -> bool {
    loop {
        match capture.next() {
            Ok(Some(Record::Packet(packet))) => {
                if push(&packet) {
                    return true;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => {
                *fault = Some(error);
                return false;
            }
        }
    }
}

/// A bar for people who wait for a large file.
fn progress(arguments: &Capture, common: &Common) -> ProgressBar {
    /// Smaller captures are read before anybody could look.
    const WORTH_A_BAR: u64 = 64 << 20;
    let size = std::fs::metadata(&arguments.file).map_or(0, |file| file.len());
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

fn unknown_family(name: &str) -> Failure {
    let names = Family::ALL.map(Family::name);
    let hint = match nearest(name, names) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    };
    Failure::Run(format!("--as: wanted one of {}, found \"{name}\"{hint}", names.join(", ")))
}
