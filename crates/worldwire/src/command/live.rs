//! `worldwire capture`.

use std::path::PathBuf;

use super::dissect;
use crate::cli::{Capture, Common, Dissect, LiveCapture, Target};
use crate::output::Failure;

/// Captures packets and dissects them.
pub(crate) fn run(arguments: &LiveCapture, common: &Common) -> Result<(), Failure> {
    let LiveCapture { tcpdump, knowledge, view, output, force } = arguments;
    let capture = Capture {
        file: PathBuf::from(&tcpdump.interface),
        more: Vec::new(),
        knowledge: knowledge.clone(),
        is_growing: false,
        tcpdump: Some(tcpdump.clone()),
    };
    let (view, target) = (view.clone(), Target { output: output.clone(), force: *force });
    dissect::run(&Dissect { capture, view, secrets: false, threads: 0, target }, common)
}
