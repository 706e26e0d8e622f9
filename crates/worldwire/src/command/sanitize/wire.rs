//! The packets of the new capture.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddrV4;

use worldwire_capture::{
    CaptureError, CaptureWriter, LinkType, SecretsKind, SyntheticTcp, SyntheticUdp, Timestamp,
};
use worldwire_core::Side;
use worldwire_dissect::Time;

use super::readback::{Names, Route};
use crate::output::{Failure, Output};

/// A capture whose packets are generated. They share only their times and ports with the original
/// ones.
pub(super) struct Wire {
    writer: CaptureWriter<Output>,
    interface: u32,
    open: HashMap<u64, Talk>,
    /// The ends of open TCP conversations.
    ends: HashMap<[SocketAddrV4; 2], u64>,
    last: Timestamp,
    written: Written,
}

/// The contents of a capture.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) names: Names,
    /// The conversations with the same ends, by their numbers in the original.
    pub(super) routes: HashMap<Route, BTreeSet<u64>>,
}

impl Written {
    /// The number of conversations written.
    pub(super) fn conversations(&self) -> usize {
        self.routes.values().map(BTreeSet::len).sum()
    }
}

/// A part of a conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'p> {
    pub(super) stream: u64,
    pub(super) ends: [SocketAddrV4; 2],
    pub(super) is_udp: bool,
    pub(super) time: Time,
    pub(super) from: Side,
    /// The name of the message.
    pub(super) name: &'p str,
    pub(super) bytes: &'p [u8],
}

enum Talk {
    Tcp(Box<SyntheticTcp>),
    Udp(SyntheticUdp),
}

impl Wire {
    pub(super) fn new(output: Output, keys: &str) -> Result<Self, Failure> {
        let about = "Sanitized by worldwire: names, texts, secrets and addresses are replaced.";
        let mut writer = CaptureWriter::new(output, &[about]).map_err(|error| failed(&error))?;
        if !keys.is_empty() {
            let written = writer.secrets(SecretsKind::WORLDWIRE, keys.as_bytes());
            written.map_err(|error| failed(&error))?;
        }
        let interface = writer.interface(LinkType::ETHERNET).map_err(|error| failed(&error))?;
        Ok(Self {
            writer,
            interface,
            open: HashMap::new(),
            ends: HashMap::new(),
            last: Timestamp::from_parts(0, 0),
            written: Written::default(),
        })
    }

    /// Writes a message of a conversation between client and server, in several packets if needed.
    pub(super) fn write(&mut self, part: &Part<'_>) -> Result<(), Failure> {
        let Part { stream, ends, is_udp, time, from, name, bytes } = *part;
        // Times before 1970 cannot be written.
        self.last = Timestamp::from_parts(0, time.0.max(0));
        let [client, server] = ends;
        let route = Route::new(ends, is_udp);
        self.written.names.add(route, from, name);
        if !self.open.contains_key(&stream) {
            self.written.routes.entry(route).or_default().insert(stream);
            if is_udp {
                self.open.insert(stream, Talk::Udp(SyntheticUdp::new(client, server)));
            } else {
                if let Some(other) = self.ends.insert(ends, stream) {
                    self.close(other)?;
                }
                let mut talk = Box::new(SyntheticTcp::new(client, server));
                let packets = talk.open();
                self.open.insert(stream, Talk::Tcp(talk));
                self.packets(packets)?;
            }
        }
        let packets = match self.open.get_mut(&stream) {
            Some(Talk::Tcp(talk)) => talk.data(from, bytes),
            Some(Talk::Udp(talk)) => vec![talk.datagram(from, bytes)],
            None => Vec::new(),
        };
        self.packets(packets)
    }

    /// Ends all conversations and the file. Returns the contents of the file.
    pub(super) fn finish(mut self) -> Result<Written, Failure> {
        let mut streams: Vec<u64> = self.open.keys().copied().collect();
        streams.sort_unstable();
        streams.into_iter().try_for_each(|stream| self.close(stream))?;
        self.writer.into_inner().finish()?;
        Ok(self.written)
    }

    fn close(&mut self, stream: u64) -> Result<(), Failure> {
        match self.open.remove(&stream) {
            Some(Talk::Tcp(mut talk)) => self.packets(talk.close()),
            _ => Ok(()),
        }
    }

    fn packets(&mut self, packets: Vec<Vec<u8>>) -> Result<(), Failure> {
        for packet in packets {
            let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
            let written = self.writer.packet(self.interface, self.last, &packet, length);
            written.map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

fn failed(error: &CaptureError) -> Failure {
    Failure::Run(error.to_string())
}
