//! The packets of chosen conversations, written as a capture.

use std::collections::{BTreeSet, HashMap};

use worldwire_capture::{CaptureReader, CaptureWriter, Conversations, Owner, Record, SecretsKind};
use worldwire_core::Limits;

use crate::cli::Capture;
use crate::input;
use crate::output::{Failure, Output, complain};

/// Writes all packets of these conversations, and all IP fragments, which do not reveal their
/// conversation, preceded by the secrets. Returns the number of packets.
pub(super) fn write(
    arguments: &Capture,
    streams: &BTreeSet<u64>,
    secrets: &str,
    mut output: Output,
) -> Result<u64, Failure> {
    let limits = Limits::DEFAULT;
    let mut capture = CaptureReader::new(input::open(&arguments.file)?, &limits).map_err(failed)?;
    let mut writer = CaptureWriter::new(&mut output, &[]).map_err(failed)?;
    if !secrets.is_empty() {
        writer.secrets(SecretsKind::WORLDWIRE, secrets.as_bytes()).map_err(failed)?;
    }
    let mut conversations = Conversations::new(&limits);
    let mut interfaces = HashMap::new();
    let mut count = 0;
    loop {
        let packet = match capture.next() {
            Ok(Some(Record::Packet(packet))) => packet,
            Ok(Some(_)) => continue,
            Ok(None) => break,
            Err(error) => {
                // This error in the file was already reported; everything before it is valid.
                complain(&arguments.file.display().to_string(), &error.to_string());
                break;
            }
        };
        conversations.push(&packet, &mut |_| {});
        let is_wanted = match conversations.owner() {
            Owner::Conversation(number) => streams.contains(&number),
            Owner::Fragment => true,
            Owner::Nobody => false,
        };
        if !is_wanted {
            continue;
        }
        let interface = match interfaces.get(&(packet.interface, packet.link)) {
            Some(interface) => *interface,
            None => {
                let interface = writer.interface(packet.link).map_err(failed)?;
                interfaces.insert((packet.interface, packet.link), interface);
                interface
            }
        };
        writer
            .packet(interface, packet.time, packet.data, packet.original_length)
            .map_err(failed)?;
        count += 1;
    }
    output.finish()?;
    Ok(count)
}

fn failed(error: worldwire_capture::CaptureError) -> Failure {
    Failure::Run(error.to_string())
}
