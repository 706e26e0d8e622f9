//! The samples, packets from them, and the program run on both.

use std::path::{Path, PathBuf};
use std::process::Command;

use worldwire_capture::{CaptureReader, ClassicWriter, LinkType, Record, SyntheticTcp, Timestamp};
use worldwire_core::{Limits, Side};

/// The directory of the samples.
pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples")
}

/// Runs the program in the samples' directory: standard output, standard error, exit code.
pub(crate) fn worldwire(arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(arguments).current_dir(samples());
    texts(command)
}

/// Decrypts and shows the messages of Uru samples.
pub(crate) const BRIEF: &[&str] = &["dissect", "--brief", "--keys", "uru-keys.toml"];

/// Runs the program on packets: standard output, standard error, exit code.
pub(crate) fn run(packets: &[Vec<u8>], arguments: &[&str]) -> (String, String, i32) {
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for (number, data) in (0..).zip(packets) {
        let length = u32::try_from(data.len()).unwrap();
        writer.packet(Timestamp::from_parts(1_700_000_000 + number, 0), data, length).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("torn.pcap");
    std::fs::write(&file, writer.into_inner()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg(arguments[0]).arg(&file).args(&arguments[1..]).current_dir(samples());
    texts(command)
}

/// Runs the program on a capture: standard output as bytes, standard error, exit code.
pub(crate) fn bytes(file: &Path, arguments: &[&str]) -> (Vec<u8>, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg(arguments[0]).arg(file).args(&arguments[1..]).current_dir(samples());
    let output = command.output().unwrap();
    (output.stdout, String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

/// The packets of a sample.
pub(crate) fn packets(name: &str) -> Vec<Vec<u8>> {
    packets_in(&std::fs::read(samples().join(name)).unwrap())
}

/// The packets of a capture.
pub(crate) fn packets_in(file: &[u8]) -> Vec<Vec<u8>> {
    let mut capture = CaptureReader::new(file, &Limits::DEFAULT).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

/// The ports of sender and receiver, and the TCP payload.
pub(crate) fn tcp(packet: &[u8]) -> ([u16; 2], &[u8]) {
    (
        [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]])),
        packet.get(54..).unwrap_or_default(),
    )
}

/// The plain file connection of a sample, message by message.
pub(crate) fn downloads() -> Vec<(Side, Vec<u8>)> {
    let of_server = |port: u16| port == 14_617;
    let of_file = packets("uru-login.pcapng").into_iter().filter(|packet| {
        let (ports, bytes) = tcp(packet);
        ports.contains(&49_154) && !bytes.is_empty()
    });
    let said = of_file.map(|packet| {
        let (ports, bytes) = tcp(&packet);
        let side = if of_server(ports[0]) { Side::Server } else { Side::Client };
        (side, bytes.to_vec())
    });
    said.collect()
}

/// A conversation between invented addresses.
pub(crate) fn talk() -> SyntheticTcp {
    SyntheticTcp::new("192.0.2.7:40000".parse().unwrap(), "192.0.2.1:14617".parse().unwrap())
}

fn texts(mut command: Command) -> (String, String, i32) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}
