//! Records a proxy's conversations, on both sides, to a capture.

use core::fmt;
use core::hash::{BuildHasher as _, BuildHasherDefault};
use std::collections::hash_map::DefaultHasher;
use std::fs::OpenOptions;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use worldwire_capture::{
    CaptureError, CaptureWriter, LinkType, MORE_KEYS, SecretsKind, SyntheticTcp, SyntheticUdp,
    Timestamp,
};
use worldwire_core::Side;
use worldwire_dissect::Time;

/// Writes a pcapng capture of both sides of a proxy: the client's conversations with it, and its
/// conversations with the server.
///
/// The packets are generated, because a proxy sees streams. Their times are those at which it read
/// or wrote the bytes. Comments say what the proxy changed, dropped, held and added. The capture
/// contains the session keys that decrypt it. The capture is complete up to the last packet even
/// if the proxy is killed.
#[derive(Debug)]
pub struct Recorder {
    entries: mpsc::SyncSender<Entry>,
    thread: Mutex<Option<JoinHandle<Result<(), CaptureError>>>>,
    lost: Arc<AtomicU64>,
}

/// What the recording thread writes.
enum Entry {
    Packet { time: Timestamp, packet: Vec<u8>, comments: Vec<String> },
    Secrets(String),
    End,
}

/// The maximum number of packets waiting for a slow disk. Later ones are lost, so that the game
/// continues.
const MAX_WAITING: usize = 16_384;
/// The longest comment on a packet.
const MAX_COMMENT: usize = 1_024;

impl Recorder {
    /// Starts a recording. If the capture exists, a new section is appended to it.
    ///
    /// # Errors
    /// The file cannot be written, or is not a pcapng capture.
    pub fn append(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let complete = complete_bytes(&mut BufReader::new(&file), file.metadata()?.len())?;
        file.set_len(complete)?;
        let comments = [
            "recorded by worldwire proxy: the packets are generated from the streams",
            "addresses other than IPv4 are shown as addresses in 198.18.0.0/15",
        ];
        let mut writer = CaptureWriter::new(BufWriter::new(file), &comments).map_err(io_error)?;
        writer.secrets(SecretsKind::WORLDWIRE, MORE_KEYS.as_bytes()).map_err(io_error)?;
        let interface = writer.interface(LinkType::ETHERNET).map_err(io_error)?;
        writer.flush().map_err(io_error)?;
        let (entries, arriving) = mpsc::sync_channel(MAX_WAITING);
        let thread = thread::spawn(move || write_all(writer, interface, &arriving));
        Ok(Self { entries, thread: Mutex::new(Some(thread)), lost: Arc::default() })
    }

    /// Records one conversation. The addresses are those of client, proxy, proxy and server: the
    /// proxy has one on each side.
    pub(crate) fn conversation(&self, addresses: [SocketAddr; 4], datagrams: bool) -> Legs {
        let [client, toward_client, toward_server, server] = addresses.map(v4);
        let legs = [(client, toward_client), (toward_server, server)].map(|(client, server)| {
            match datagrams {
                true => Leg::Udp(SyntheticUdp::new(client, server)),
                false => Leg::Tcp(SyntheticTcp::new(client, server)),
            }
        });
        let (entries, lost) = (self.entries.clone(), Arc::clone(&self.lost));
        Legs { legs, entries, lost, secrets: None, is_open: false }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Conversations that did not end in time may still own a sender.
        let _ = self.entries.send(Entry::End);
        match thread.map(JoinHandle::join) {
            Some(Ok(written)) => written.map_err(io_error),
            Some(Err(_)) => Err(io::Error::other("the recording thread panicked")),
            None => Ok(()),
        }
    }
}

/// The number of bytes of complete blocks in an existing capture. A killed program may have left an
/// incomplete block.
fn complete_bytes(file: &mut (impl Read + Seek), length: u64) -> io::Result<u64> {
    const SECTION: u32 = 0x0A0D_0D0A;
    const LITTLE_ENDIAN: [u8; 4] = [0x4D, 0x3C, 0x2B, 0x1A];
    let mut complete = 0;
    loop {
        let left = length.saturating_sub(complete);
        let mut head = [0; 12];
        if left < head.len() as u64 {
            break;
        }
        file.read_exact(&mut head)?;
        let [kind, bytes] = [0, 4].map(|at| {
            let field = head.get(at..).and_then(<[u8]>::first_chunk).copied();
            u32::from_le_bytes(field.unwrap_or_default())
        });
        let is_ours = kind == SECTION && head.ends_with(&LITTLE_ENDIAN);
        if (complete == 0 || kind == SECTION) && !is_ours {
            let problem = "the file exists, but is not a little-endian pcapng capture";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let bytes = u64::from(bytes);
        if bytes < head.len() as u64 || bytes > left {
            break;
        }
        complete += bytes;
        file.seek(SeekFrom::Start(complete))?;
    }
    if complete == 0 && length > 0 {
        let problem = "the file exists, but is not a pcapng capture";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(complete)
}

fn write_all<W: Write>(
    writer: CaptureWriter<W>,
    interface: u32,
    arriving: &mpsc::Receiver<Entry>,
) -> Result<(), CaptureError> {
    let mut writer = writer;
    while let Ok(entry) = arriving.recv() {
        let mut next = Some(entry);
        while let Some(entry) = next {
            match entry {
                Entry::Packet { time, packet, comments } => {
                    let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
                    writer.packet_with_comments(interface, time, &packet, length, &comments)?;
                }
                Entry::Secrets(keys) => {
                    writer.secrets(SecretsKind::WORLDWIRE, keys.as_bytes())?;
                }
                Entry::End => return writer.flush(),
            }
            next = arriving.try_recv().ok();
        }
        writer.flush()?;
    }
    Ok(())
}

/// One side of a proxy.
enum Leg {
    Tcp(SyntheticTcp),
    Udp(SyntheticUdp),
}

/// Both sides of a conversation that is recorded.
pub(crate) struct Legs {
    /// The two legs, by the side that the proxy talks to.
    legs: [Leg; 2],
    entries: mpsc::SyncSender<Entry>,
    lost: Arc<AtomicU64>,
    /// The keys that the capture already has.
    secrets: Option<String>,
    is_open: bool,
}

impl Legs {
    /// Records bytes between the proxy and the side `with`.
    pub(crate) fn bytes(
        &mut self,
        time: Time,
        (with, from): (Side, Side),
        bytes: &[u8],
        comments: Vec<String>,
    ) {
        if !core::mem::replace(&mut self.is_open, true) {
            for leg in 0..self.legs.len() {
                if let Leg::Tcp(tcp) = &mut self.legs[leg] {
                    let packets = tcp.open();
                    self.packets(time, packets, Vec::new());
                }
            }
        }
        let packets = match &mut self.legs[with.index()] {
            Leg::Tcp(tcp) => tcp.data(from, bytes),
            Leg::Udp(udp) => vec![udp.datagram(from, bytes)],
        };
        self.packets(time, packets, comments);
    }

    /// Adds the keys of the conversation to the capture, if it lacks them.
    pub(crate) fn secrets(&mut self, keys: Option<String>) {
        if keys.is_some() && keys != self.secrets {
            self.secrets.clone_from(&keys);
            keys.into_iter().for_each(|keys| self.send(Entry::Secrets(keys)));
        }
    }

    /// Records the end of the conversation.
    pub(crate) fn close(&mut self, time: Time) {
        if !self.is_open {
            return;
        }
        for leg in 0..self.legs.len() {
            if let Leg::Tcp(tcp) = &mut self.legs[leg] {
                let packets = tcp.close();
                self.packets(time, packets, Vec::new());
            }
        }
    }

    fn packets(&self, time: Time, packets: Vec<Vec<u8>>, comments: Vec<String>) {
        let time = Timestamp::from_nanos(time.0);
        let mut comments = Some(comments);
        for packet in packets {
            let comments = comments.take().unwrap_or_default();
            let comments = comments.into_iter().map(shortened).collect();
            self.send(Entry::Packet { time, packet, comments });
        }
    }

    fn send(&self, entry: Entry) {
        if self.entries.try_send(entry).is_err() && self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("the recording is incomplete: the disk is full or too slow");
        }
    }
}

impl fmt::Debug for Legs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Legs(..)")
    }
}

fn shortened(mut comment: String) -> String {
    let end = (0..=MAX_COMMENT).rev().find(|end| comment.is_char_boundary(*end));
    comment.truncate(end.unwrap_or_default());
    comment
}

/// An address as IPv4. An address without an IPv4 form is replaced by one reserved for benchmarks,
/// always by the same one.
fn v4(address: SocketAddr) -> SocketAddrV4 {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(ip) => {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(ip).to_le_bytes();
            Ipv4Addr::new(198, 18 | (hash[0] & 1), hash[1], hash[2])
        }
    };
    SocketAddrV4::new(ip, address.port())
}

fn io_error(error: CaptureError) -> io::Error {
    match error {
        CaptureError::Write(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn capture() -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, &["a test"]).unwrap();
        let interface = writer.interface(LinkType::ETHERNET).unwrap();
        writer.packet(interface, Timestamp::from_nanos(1), &[7; 60], 60).unwrap();
        file
    }

    #[test]
    fn a_torn_block_at_the_end_is_cut_off() {
        let whole = capture();
        let length = whole.len() as u64;
        let complete = |bytes: &[u8]| complete_bytes(&mut Cursor::new(bytes), bytes.len() as u64);
        assert_eq!(complete(&whole).unwrap(), length);
        let two = [whole.clone(), whole.clone()].concat();
        assert_eq!(complete(&two).unwrap(), 2 * length);
        for torn in whole.len() + 1..two.len() {
            let kept = complete(&two[..torn]).unwrap();
            // A cut between two blocks loses nothing.
            assert!((length..=torn as u64).contains(&kept), "{torn}: {kept}");
            assert_eq!(complete(&two[..usize::try_from(kept).unwrap()]).unwrap(), kept);
        }
        assert_eq!(complete(&[]).unwrap(), 0);
        for other in [&b"text"[..], &[0; 40], &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0]]
        {
            assert!(complete(other).is_err());
        }
    }

    #[test]
    fn addresses_of_ipv6_stay_apart() {
        let of = |text: &str| v4(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.1:5"), "192.0.2.1:5");
        assert_eq!(of("[::ffff:192.0.2.1]:5"), "192.0.2.1:5");
        assert!(of("[2001:db8::1]:5").starts_with("198.1"));
        assert_ne!(of("[2001:db8::1]:5"), of("[2001:db8::2]:5"));
    }
}
