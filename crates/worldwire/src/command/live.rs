//! `worldwire capture`.

use std::path::PathBuf;

use super::dissect;
use crate::cli::{Capture, Common, Dissect, LiveCapture, Target, Tcpdump};
use crate::output::Failure;

/// Captures with tcpdump and dissects the packets.
pub(crate) fn run(arguments: &LiveCapture, common: &Common) -> Result<(), Failure> {
    let LiveCapture { interface, packets, write, force, .. } = arguments;
    let tcpdump = Tcpdump {
        interface: interface.clone(),
        filter: packets.clone(),
        write: write.clone(),
        force: *force,
    };
    let capture = Capture {
        file: PathBuf::from(interface),
        keys: arguments.keys.clone(),
        data: arguments.data.clone(),
        families: arguments.families.clone(),
        is_growing: false,
        tcpdump: Some(tcpdump),
    };
    let dissect = Dissect {
        capture,
        filter: arguments.filter.clone(),
        stream: None,
        time: arguments.time,
        message: None,
        first: false,
        fields: Vec::new(),
        csv: false,
        json: arguments.json,
        json_safe: false,
        brief: arguments.brief,
        bytes: false,
        full: false,
        secrets: false,
        threads: 0,
        target: Target { output: None, force: false },
    };
    dissect::run(&dissect, common)
}
