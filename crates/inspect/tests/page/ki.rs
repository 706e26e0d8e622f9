//! Captures of plain KI connections.

use std::fs::File;
use std::path::Path;

use worldwire_capture::{CaptureWriter, LinkType, SyntheticTcp, Timestamp};
use worldwire_core::Side;
use worldwire_core::value::parse_hex;

/// A capture that is being written.
pub(crate) struct KiCapture {
    writer: CaptureWriter<File>,
    interface: u32,
    nanos: i64,
}

impl KiCapture {
    pub(crate) fn new(path: &Path) -> Self {
        let mut writer = CaptureWriter::new(File::create(path).unwrap(), &[]).unwrap();
        let interface = writer.interface(LinkType::ETHERNET).unwrap();
        Self { writer, interface, nanos: 1_767_225_600_000_000_000 }
    }

    pub(crate) fn write(&mut self, packets: Vec<Vec<u8>>) {
        for packet in packets {
            self.nanos += 1000;
            let (length, time) = (packet.len().try_into().unwrap(), self.nanos);
            let time = Timestamp::from_nanos(time);
            self.writer.packet(self.interface, time, &packet, length).unwrap();
        }
    }

    /// Opens a connection from this port, with an offer and an accept.
    pub(crate) fn open(&mut self, port: u16) -> SyntheticTcp {
        let client = format!("192.0.2.1:{port}").parse().unwrap();
        let mut talk = SyntheticTcp::new(client, "192.0.2.2:12000".parse().unwrap());
        self.write(talk.open());
        let bytes = |digits: &str| parse_hex(digits).unwrap();
        let offer = bytes("0df018000100000001000000000000b9556900000000010000000000");
        let accept = bytes("0df01a000105000000000000000000b95569020000000100010000000000");
        self.write(talk.data(Side::Server, &offer));
        self.write(talk.data(Side::Client, &accept));
        talk
    }
}

/// A message that has no definition. Its fields have this length and begin with a number.
pub(crate) fn message(length: u16, number: u32) -> Vec<u8> {
    let mut message = parse_hex("0df0000000000000c801").unwrap();
    message.extend_from_slice(&length.to_le_bytes());
    message.extend_from_slice(&number.to_le_bytes());
    message.resize(8 + usize::from(length) + 1, 7);
    let rest = u16::try_from(message.len() - 4).unwrap().to_le_bytes();
    message[2..4].copy_from_slice(&rest);
    message
}
