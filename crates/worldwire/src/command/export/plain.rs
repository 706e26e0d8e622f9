//! Writes decrypted conversations as packets that Wireshark can read: one packet per message, with
//! the addresses and times of the original, and with the message's name and values as a comment.
//!
//! TCP conversations remain TCP, so that Wireshark can follow streams. Data that could not be
//! decrypted is missing from the stream, like bytes that were not captured. Every family has an
//! interface with its name, and every packet states its direction, which dissectors can use.

use std::collections::HashMap;
use std::net::SocketAddr;

use worldwire_capture::{
    CaptureError, CaptureWriter, LinkType, SyntheticTcp, SyntheticUdp, Timestamp,
};
use worldwire_core::{Side, Tree};
use worldwire_dissect::{Item, NoteKind, Time};

use crate::input::DECRYPTED;
use crate::output::{Failure, Output};

/// A message or note to write.
#[derive(Debug)]
pub(super) struct Piece {
    stream: u64,
    time: Time,
    family: &'static str,
    from: Side,
    ends: [SocketAddr; 2],
    is_datagrams: bool,
    /// The range in the sender's stream.
    start: u64,
    end: u64,
    /// The plain bytes of a message; `None` for a note.
    bytes: Option<Vec<u8>>,
    comment: String,
}

impl Piece {
    /// `None` for items that packets cannot show.
    pub(super) fn of(item: &Item<'_>, name: &str, tree: &Tree<'_>) -> Option<Self> {
        let ends = item.ends?;
        let mut comment = String::new();
        let bytes = match (item.note(), item.message()) {
            (Some(note), _) if note.kind != NoteKind::Opened => {
                comment = format!("! {}: {}", note.kind.name(), note.text);
                None
            }
            (None, Some(_)) => {
                comment.push_str(name);
                item.push_inside(&mut comment);
                if !item.is_whole() {
                    comment.push_str("  ! cannot be decoded completely");
                }
                let length = comment.len();
                comment.push_str("  ");
                item.push_info(name, tree, &mut comment);
                if comment.len() == length + 2 {
                    comment.truncate(length);
                }
                Some(item.bytes().to_vec())
            }
            _ => return None,
        };
        Some(Self {
            stream: item.stamp.stream,
            time: item.stamp.time,
            family: item.family,
            from: item.from,
            ends: [Side::Client, Side::Server].map(|side| ends.of(side)),
            is_datagrams: ends.is_datagrams(),
            start: item.range.start,
            end: item.range.end,
            bytes,
            comment,
        })
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) messages: u64,
    pub(super) packets: u64,
}

/// Writes decrypted conversations as a pcapng capture.
pub(super) struct PlainWriter {
    writer: CaptureWriter<Output>,
    /// The interface of each family.
    interfaces: HashMap<&'static str, u32>,
    open: HashMap<u64, Talk>,
    written: Written,
}

/// A conversation that is being written.
struct Talk {
    packets: Packets,
    /// The position after the last message in the captured stream, by [`Side::index`].
    positions: [u64; 2],
    /// The number of each side's bytes that the other side has not acknowledged.
    unacknowledged: [usize; 2],
    /// Notes for the next packet.
    notes: Vec<String>,
}

enum Packets {
    Tcp(Box<SyntheticTcp>),
    Udp(SyntheticUdp),
}

/// The maximum number of notes on one packet.
const MAX_NOTES: usize = 8;
/// The maximum length of a comment in bytes. A note can quote a captured name.
const MAX_COMMENT: usize = 4096;
/// The maximum payload of a segment.
const SEGMENT: usize = 32_767;
/// The number of bytes after which the other side acknowledges, below half a window.
const ACKNOWLEDGED: usize = 32_000;
/// The maximum payload of a datagram.
const DATAGRAM: usize = 65_507;

impl PlainWriter {
    pub(super) fn new(output: Output) -> Result<Self, Failure> {
        let about = format!(
            "{DECRYPTED} one packet per message, its name and values as a comment. Headers, handshakes \
             and acknowledgements are generated."
        );
        let writer = CaptureWriter::new(output, &[&about]).map_err(|error| failed(&error))?;
        let (interfaces, open) = (HashMap::new(), HashMap::new());
        Ok(Self { writer, interfaces, open, written: Written::default() })
    }

    pub(super) fn piece(&mut self, piece: &Piece) -> Result<(), Failure> {
        let Piece { stream, time, from, ends, .. } = piece;
        // Times before 1970 cannot be written.
        let time = Timestamp::from_parts(0, time.0.max(0));
        let interface = self.interface(piece.family)?;
        if !self.open.contains_key(stream) {
            let (talk, handshake) = Talk::new(*stream, *ends, piece.is_datagrams);
            self.open.insert(*stream, talk);
            for (side, packet) in handshake {
                self.packet(side, interface, time, &packet, &[])?;
            }
        }
        let Some(talk) = self.open.get_mut(stream) else { return Ok(()) };
        let Some(bytes) = &piece.bytes else {
            if talk.notes.len() < MAX_NOTES {
                talk.notes.push(bounded(&piece.comment));
            }
            return Ok(());
        };
        talk.skip(piece);
        let mut comments = core::mem::take(&mut talk.notes);
        comments.push(bounded(&piece.comment));
        let packets = talk.message(*from, bytes);
        self.written.messages += 1;
        for (index, (side, packet)) in packets.iter().enumerate() {
            let comments = if index == 0 { &comments[..] } else { &[] };
            self.packet(*side, interface, time, packet, comments)?;
        }
        Ok(())
    }

    /// Forgets a conversation that has ended.
    pub(super) fn forget(&mut self, stream: u64) {
        self.open.remove(&stream);
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| failed(&error))
    }

    pub(super) fn finish(self) -> Result<Written, Failure> {
        self.writer.into_inner().finish()?;
        Ok(self.written)
    }

    fn interface(&mut self, family: &'static str) -> Result<u32, Failure> {
        if let Some(interface) = self.interfaces.get(family) {
            return Ok(*interface);
        }
        let name = format!("worldwire-{family}");
        let number = self.writer.named_interface(LinkType::ETHERNET, &name);
        let number = number.map_err(|error| failed(&error))?;
        self.interfaces.insert(family, number);
        Ok(number)
    }

    fn packet(
        &mut self,
        from: Side,
        interface: u32,
        time: Timestamp,
        packet: &[u8],
        comments: &[String],
    ) -> Result<(), Failure> {
        self.written.packets += 1;
        let written = self.writer.packet_from(from, interface, time, packet, comments);
        written.map_err(|error| failed(&error))
    }
}

impl Talk {
    /// A conversation and the packets that open it.
    fn new(stream: u64, ends: [SocketAddr; 2], is_datagrams: bool) -> (Self, Vec<(Side, Vec<u8>)>) {
        let mut opening = Vec::new();
        let packets = if is_datagrams {
            Packets::Udp(SyntheticUdp::between(ends))
        } else {
            let mut talk = Box::new(SyntheticTcp::between(ends));
            // Otherwise, a later conversation between the same endpoints would look like a
            // retransmission.
            let first = u32::try_from(stream & 0xffff).unwrap_or(0) << 16;
            Side::BOTH.into_iter().for_each(|side| talk.skip(side, first));
            opening.extend([Side::Client, Side::Server, Side::Client].into_iter().zip(talk.open()));
            Packets::Tcp(talk)
        };
        let (positions, unacknowledged, notes) = ([0; 2], [0; 2], Vec::new());
        (Self { packets, positions, unacknowledged, notes }, opening)
    }

    /// Skips whatever lies between a side's last message and this one.
    fn skip(&mut self, piece: &Piece) {
        let position = &mut self.positions[piece.from.index()];
        let missing = piece.start.saturating_sub(*position);
        *position = piece.end.max(*position);
        if let Packets::Tcp(talk) = &mut self.packets {
            talk.skip(piece.from, u32::try_from(missing).unwrap_or(u32::MAX));
        }
    }

    /// The packets of a message, with the side that sends each of them.
    fn message(&mut self, from: Side, bytes: &[u8]) -> Vec<(Side, Vec<u8>)> {
        let talk = match &mut self.packets {
            Packets::Tcp(talk) => talk,
            Packets::Udp(talk) => {
                let chunks = bytes.chunks(DATAGRAM);
                return chunks.map(|chunk| (from, talk.datagram(from, chunk))).collect();
            }
        };
        let mut packets = Vec::new();
        for chunk in bytes.chunks(SEGMENT) {
            packets.extend(talk.segments(from, chunk).into_iter().map(|packet| (from, packet)));
            let waiting = &mut self.unacknowledged[from.index()];
            *waiting += chunk.len();
            if *waiting >= ACKNOWLEDGED {
                *waiting = 0;
                packets.push((from.other(), talk.acknowledgement(from.other())));
            }
            // A packet with data also acknowledges what the other side has sent.
            self.unacknowledged[from.other().index()] = 0;
        }
        packets
    }
}

/// A comment of bounded length.
fn bounded(comment: &str) -> String {
    let end = (0..=comment.len().min(MAX_COMMENT)).rev().find(|end| comment.is_char_boundary(*end));
    comment.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

fn failed(error: &CaptureError) -> Failure {
    match error {
        CaptureError::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Failure::Pipe
        }
        error => Failure::Run(error.to_string()),
    }
}
