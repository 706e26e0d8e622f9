//! `worldwire extcap`: interfaces in Wireshark's list that deliver decrypted messages.
//!
//! Wireshark runs each program in its extcap directory with fixed options and reads sentences such
//! as `interface {value=..}{display=..}` from standard output.

use std::path::{Path, PathBuf};

use super::export::pcapng;
use super::selection::Selection;
use crate::cli::{Capture, Common, Extcap, Knowledge, Target, Tcpdump};
use crate::definitions;
use crate::output::{Failure, Output, print};

/// Packets from a network interface.
const LIVE: &str = "worldwire-live";
/// Packets from a file that another program is still writing, such as a proxy's recording.
const RECORDING: &str = "worldwire-recording";

pub(crate) fn run(arguments: &Extcap, common: &Common) -> Result<(), Failure> {
    if arguments.lists_interfaces {
        return print(&interfaces());
    }
    let interface = match arguments.interface.as_deref() {
        Some(name @ (LIVE | RECORDING)) => name,
        other => {
            let name = other.unwrap_or_default();
            let problem = format!("unknown interface \"{name}\"; use {LIVE} or {RECORDING}");
            return Err(Failure::Run(format!("extcap: {problem}")));
        }
    };
    if arguments.lists_dlts {
        return print("dlt {number=1}{name=EN10MB}{display=Ethernet}\n");
    }
    if arguments.lists_options {
        return print(&options(interface));
    }
    match arguments.captures {
        true => capture(arguments, interface, common),
        false => Ok(()),
    }
}

fn interfaces() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "extcap {{version={version}}}{{display=worldwire}}\n\
         interface {{value={LIVE}}}{{display=worldwire: decrypted messages, live}}\n\
         interface {{value={RECORDING}}}{{display=worldwire: decrypted messages, from a recording}}\n"
    )
}

/// The options that Wireshark shows in the interface's dialog.
fn options(interface: &str) -> String {
    let source = match interface {
        LIVE => {
            "arg {number=0}{call=--network}{display=Network interface}{type=string}{required=true}\
             {tooltip=As tcpdump names it: eth0, or any}\n"
        }
        _ => {
            "arg {number=0}{call=--file}{display=Recording}{type=fileselect}{mustexist=true}\
             {required=true}{tooltip=A capture, which may still be growing}\n"
        }
    };
    format!(
        "{source}\
         arg {{number=1}}{{call=--keys}}{{display=Key file}}{{type=fileselect}}{{mustexist=true}}\n\
         arg {{number=2}}{{call=--data}}{{display=Definitions}}{{type=string}}\
         {{tooltip=A file or directory of message definitions}}\n\
         arg {{number=3}}{{call=--revision}}{{display=TERA revision}}{{type=unsigned}}\n"
    )
}

fn capture(arguments: &Extcap, interface: &str, common: &Common) -> Result<(), Failure> {
    let needs = |option: &str| Failure::Run(format!("extcap: {interface} needs {option}"));
    let Extcap { network, file, keys, data, packets, fifo, .. } = arguments;
    let (file, tcpdump) = match interface {
        LIVE => {
            let interface = network.clone().ok_or_else(|| needs("--network"))?;
            let packets = packets.iter().filter(|packets| !packets.is_empty()).cloned().collect();
            let tcpdump = Tcpdump {
                interface: interface.clone(),
                packets,
                write: None,
                ring: None,
                ring_size: None,
                ring_time: None,
                stop_after: Vec::new(),
            };
            (PathBuf::from(interface), Some(tcpdump))
        }
        _ => (file.clone().ok_or_else(|| needs("--file"))?, None),
    };
    // An empty text in Wireshark's dialog is passed on as an empty option.
    let is_given = |path: &&PathBuf| !path.as_os_str().is_empty();
    let data = crate::cli::Data {
        paths: data.paths.iter().filter(is_given).cloned().collect(),
        ..data.clone()
    };
    let keys = keys.iter().filter(is_given).cloned().collect();
    let definitions = definitions::load(&data, common)?;
    let capture = Capture {
        is_growing: tcpdump.is_none(),
        file,
        more: Vec::new(),
        knowledge: Knowledge { keys, data, families: Vec::new() },
        tcpdump,
    };
    let fifo = fifo.as_deref().unwrap_or_else(|| Path::new("-"));
    let output = Output::open_growing(&Target { output: Some(fifo.to_owned()), force: true })?;
    let selection = Selection { stream: None, filter: None };
    // Wireshark shows whatever is on standard error as an error.
    let common = &Common { quiet: true, settings: common.settings.clone(), ..Common::default() };
    // Comments in the packets report unreadable data; the capture itself has not failed.
    pcapng::write(&capture, common, definitions, &selection, output, false).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_has_the_fields_that_wireshark_needs() {
        for line in interfaces().lines().filter(|line| line.starts_with("interface")) {
            assert!(line.contains("{value=worldwire-") && line.contains("{display="), "{line}");
        }
        for interface in [LIVE, RECORDING] {
            let options = options(interface);
            for (number, line) in options.lines().enumerate() {
                assert!(line.starts_with(&format!("arg {{number={number}}}{{call=--")), "{line}");
                assert!(line.contains("{display=") && line.contains("{type="), "{line}");
            }
        }
    }
}
