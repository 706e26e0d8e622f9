//! Writes the packets of selected conversations as a capture.

use std::collections::BTreeSet;

use worldwire_capture::{CaptureError, Conversations, Owner, Record};
use worldwire_core::Limits;

use crate::cli::Capture;
use crate::input::merged::Merged;
use crate::input::packets::Refusal;
use crate::output::{CaptureFile, Failure};

/// Writes all packets of these conversations, and all IP fragments, which do not reveal their
/// conversation. Returns the number of packets.
pub(super) fn write(
    arguments: &Capture,
    streams: &BTreeSet<u64>,
    mut output: CaptureFile,
) -> Result<u64, Failure> {
    let failed = |error: CaptureError| Failure::Run(error.to_string());
    let limits = Limits::DEFAULT;
    let mut capture = match Merged::open(arguments.files(), &limits, |input| input) {
        Ok(capture) => capture,
        Err(Refusal::Failed(failure)) => return Err(failure),
        Err(Refusal::NoCapture(_, error)) => return Err(failed(error)),
    };
    let mut conversations = Conversations::new(&limits);
    let mut count = 0;
    loop {
        let packet = match capture.next() {
            Ok(Some(Record::Packet(packet))) => packet,
            Ok(Some(_)) => continue,
            Ok(None) => break,
            // The first pass has reported the error; everything before it is valid.
            Err(_) => break,
        };
        conversations.push(&packet, &mut |_| {});
        let is_wanted = match conversations.owner() {
            Owner::Conversation(number) => streams.contains(&number),
            Owner::Fragment => true,
            Owner::Nobody => false,
        };
        if is_wanted {
            output.packet(&packet).map_err(failed)?;
            count += 1;
        }
    }
    output.finish()?;
    Ok(count)
}
