//! The traffic of a command, which selects profiles.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
use worldwire_core::Limits;
use worldwire_dissect::catch_defect;

use super::profile::Ends;
use crate::input;

/// How much of each capture is searched for conversations.
const MAX_BYTES: u64 = 64 << 20;
/// The maximum number of ends.
const MAX_ENDS: usize = 1 << 16;

/// The ends of the conversations that a command reads: from the first 64 MiB of its capture files,
/// or from the filter of a live capture. Nothing is known about standard input before it is read.
pub(crate) fn traffic(arguments: &ArgMatches) -> Vec<Ends> {
    if let Ok(Some(words)) = arguments.try_get_many::<String>("packets") {
        return of_words(&words.cloned().collect::<Vec<_>>());
    }
    let files = ["file", "more", "before", "after"].into_iter();
    let files = files.filter_map(|id| arguments.try_get_many::<PathBuf>(id).ok().flatten());
    of_files(files.flatten().map(PathBuf::as_path))
}

fn of_files<'p>(files: impl IntoIterator<Item = &'p Path>) -> Vec<Ends> {
    let mut ends = Vec::new();
    for file in files.into_iter().filter(|file| file.is_file()) {
        // Problems are reported when the file is read.
        let _ = catch_defect(|| of_file(file, &mut ends));
    }
    ends
}

fn of_file(file: &Path, ends: &mut Vec<Ends>) {
    let Ok(input) = input::open(file) else { return };
    let limits = Limits::DEFAULT;
    let Ok(mut capture) = CaptureReader::new(input.take(MAX_BYTES), &limits) else { return };
    let mut conversations = Conversations::new(&limits);
    while let Ok(Some(record)) = capture.next() {
        let Record::Packet(packet) = record else { continue };
        conversations.push(&packet, &mut |event| {
            if let EventKind::Opened(opened) = event.kind
                && ends.len() < MAX_ENDS
            {
                ends.extend([opened.client, opened.server].map(Ends::of));
            }
        });
    }
}

/// The hosts and ports in a tcpdump filter.
fn of_words(words: &[String]) -> Vec<Ends> {
    let mut words = words.iter().flat_map(|word| word.split_whitespace()).peekable();
    let mut ends = Vec::new();
    while let Some(word) = words.next() {
        let Some(value) = words.peek() else { break };
        match word {
            "port" => ends.extend(value.parse().map(Ends::of_port)),
            "host" => ends.extend(value.parse::<IpAddr>().map(Ends::of_host)),
            _ => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_reveals_its_ends() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/uru-login.pcapng");
        let ends = of_files([Path::new(path)]);
        let fits = |text: &str| text.parse::<Ends>().expect("it is valid").fits(&ends);
        assert!(fits(":14617") && fits("192.0.2.1") && fits("192.0.2.10:49154"));
        assert!(!fits(":7801"));
        assert!(of_files([Path::new("missing.pcapng")]).is_empty());
    }

    #[test]
    fn a_packet_filter_reveals_its_ends() {
        let words = ["tcp", "port", "14617", "and", "host 192.0.2.1"].map(str::to_owned);
        let ends = of_words(&words);
        let fits = |text: &str| text.parse::<Ends>().expect("it is valid").fits(&ends);
        assert!(fits(":14617") && fits("192.0.2.0/24") && !fits(":80"));
        assert!(of_words(&["port".to_owned()]).is_empty());
    }
}
