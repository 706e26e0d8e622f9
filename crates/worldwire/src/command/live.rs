//! `worldwire capture`.

use std::path::PathBuf;

#[cfg(feature = "network")]
use super::capture_page::CapturePage;
use super::dissect;
use crate::cli::{Capture, Common, Dissect, LiveCapture, Target};
use crate::output::Failure;

/// Captures packets and dissects them.
pub(crate) fn run(arguments: &LiveCapture, common: &Common) -> Result<(), Failure> {
    let LiveCapture { tcpdump, knowledge, view, output, force, .. } = arguments;
    let tcpdump = tcpdump.clone();
    #[cfg(feature = "network")]
    let (page, tcpdump) = CapturePage::open(arguments, tcpdump, common)?;
    let capture = Capture {
        file: PathBuf::from(&tcpdump.interface),
        more: Vec::new(),
        knowledge: knowledge.clone(),
        is_growing: false,
        tcpdump: Some(tcpdump),
    };
    let (view, target) = (view.clone(), Target { output: output.clone(), force: *force });
    let arguments = Dissect { capture, view, secrets: false, threads: 0, target };
    let captured = dissect::run(&arguments, common);
    #[cfg(feature = "network")]
    let captured = {
        let shown = page.map_or(Ok(()), CapturePage::close);
        captured.and(shown)
    };
    captured
}
