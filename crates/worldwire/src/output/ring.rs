//! A ring of capture files: packets are written to one file after another, and the oldest file is
//! deleted.
//!
//! Encrypted conversations can be read only from their beginning. So each file begins with copies
//! of the first packets of every conversation that is still open. With them, the file can be read
//! on its own; the packets in between appear as a gap. The copies are earlier than the file's other
//! packets, so the file is in time order.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use worldwire_capture::{
    CaptureError, Conversations, EventKind, LinkType, Owner, Packet, Timestamp,
};
use worldwire_core::Limits;

use super::{CaptureFile, CaptureFormat, Failure, Output, Place, occupied, reason, shown};
use crate::cli::Target;

/// When a file of a ring is full, and how many files there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLimits {
    pub(crate) files: u32,
    /// The maximum size in bytes.
    pub(crate) size: Option<u64>,
    /// The maximum time between the first and the last packet.
    pub(crate) time: Option<Duration>,
}

/// Where to save packets. The first file is created once the capture has begun, so that nothing
/// is left behind if it is refused.
#[derive(Clone, Debug)]
pub(crate) struct PacketsTarget {
    target: Target,
    format: CaptureFormat,
    ring: Option<(PathBuf, RingLimits)>,
}

impl PacketsTarget {
    /// One file, which must not exist unless it may be overwritten.
    pub(crate) fn file(target: Target, format: CaptureFormat) -> Result<Self, Failure> {
        Place::of(&target)?;
        Ok(Self { target, format, ring: None })
    }

    /// A ring of files. The number precedes the extension: `evening-00001.pcapng`.
    pub(crate) fn ring(
        path: &Path,
        format: CaptureFormat,
        force: bool,
        limits: RingLimits,
    ) -> Result<Self, Failure> {
        // A file with a conflicting name must not end the capture hours later.
        if !force && let Some(other) = existing(path) {
            return Err(Failure::Run(occupied(&other)));
        }
        let target = Target { output: Some(numbered(path, 1)), force };
        Ok(Self { target, format, ring: Some((path.to_owned(), limits)) })
    }

    /// Creates the file, or the first one.
    pub(crate) fn open(self) -> Result<SavedPackets, Failure> {
        let Self { target, format, ring } = self;
        let file = CaptureFile::new(Output::open_growing(&target)?, format)?;
        if target.force
            && let Some((path, _)) = &ring
        {
            remove_others(path, &numbered(path, 1))?;
        }
        Ok(match ring {
            None => SavedPackets::File(Box::new(file)),
            Some((path, limits)) => SavedPackets::Ring(Box::new(Ring::start(
                path,
                file,
                (format, target.force),
                limits,
            ))),
        })
    }
}

/// The files that packets are saved to: one, or a ring.
#[derive(Debug)]
pub(crate) enum SavedPackets {
    File(Box<CaptureFile>),
    Ring(Box<Ring>),
}

impl SavedPackets {
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        match self {
            Self::File(file) => file.packet(packet),
            Self::Ring(ring) => ring.packet(packet),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.finish(),
            Self::Ring(ring) => ring.current.finish(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ring {
    path: PathBuf,
    format: CaptureFormat,
    force: bool,
    limits: RingLimits,
    current: CaptureFile,
    /// The number of the current file.
    number: u64,
    /// The size of the current file.
    size: u64,
    /// The time of its first packet that is not a copy.
    begun: Option<Timestamp>,
    /// The files, oldest first.
    files: VecDeque<PathBuf>,
    beginnings: Beginnings,
}

/// The number of bytes that a packet takes up in a pcapng file besides its own.
const OVERHEAD: u64 = 32;

impl Ring {
    /// A ring that has only its first file.
    fn start(
        path: PathBuf,
        first: CaptureFile,
        (format, force): (CaptureFormat, bool),
        limits: RingLimits,
    ) -> Self {
        Self {
            files: VecDeque::from([numbered(&path, 1)]),
            path,
            format,
            force,
            limits,
            current: first,
            number: 1,
            size: 0,
            begun: None,
            beginnings: Beginnings::new(),
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        let size = packet.data.len() as u64 + OVERHEAD;
        let RingLimits { size: most, time, .. } = self.limits;
        if let Some(begun) = self.begun
            && (most.is_some_and(|most| self.size + size > most)
                || time.is_some_and(|time| packet.time.since(begun) >= time))
        {
            self.next()?;
        }
        self.begun.get_or_insert(packet.time);
        self.size += size;
        self.current.packet(packet)?;
        self.beginnings.add(packet);
        Ok(())
    }

    /// Continues in the next file.
    fn next(&mut self) -> Result<(), CaptureError> {
        self.number += 1;
        let path = numbered(&self.path, self.number);
        let next = open(&path, self.format, self.force).map_err(failed)?;
        let full = std::mem::replace(&mut self.current, next);
        full.finish().map_err(failed)?;
        self.files.push_back(path);
        while self.files.len() > self.limits.files as usize
            && let Some(oldest) = self.files.pop_front()
        {
            match std::fs::remove_file(&oldest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let problem = format!("{}: {}", shown(&oldest), reason(&error));
                    return Err(CaptureError::Write(io::Error::other(problem)));
                }
                _ => {}
            }
        }
        (self.size, self.begun) = (0, None);
        let Self { beginnings, current, .. } = self;
        beginnings.write(current)
    }
}

fn open(path: &Path, format: CaptureFormat, force: bool) -> Result<CaptureFile, Failure> {
    let target = Target { output: Some(path.to_owned()), force };
    CaptureFile::new(Output::open_growing(&target)?, format)
}

fn failed(failure: Failure) -> CaptureError {
    let why = match failure {
        Failure::Run(why) => why,
        _ => "cannot be written".to_owned(),
    };
    CaptureError::Write(io::Error::other(why))
}

/// The name of one file.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number:05}"));
    if let Some(end) = path.extension() {
        name.push(".");
        name.push(end);
    }
    path.with_file_name(name)
}

/// Removes the files of an earlier ring, which would be mistaken for files of this one.
fn remove_others(path: &Path, first: &Path) -> Result<(), Failure> {
    let mut others = all_existing(path).into_iter().filter(|other| other != first);
    others.try_for_each(|other| {
        std::fs::remove_file(&other).map_err(|error| Failure::io(&other, &error))
    })
}

/// An existing file with a name that the ring would use.
fn existing(path: &Path) -> Option<PathBuf> {
    all_existing(path).into_iter().next()
}

/// All existing files with names that the ring would use.
fn all_existing(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or_else(|| Path::new(".")));
    let (Ok(entries), Some(stem)) = (entries, path.file_stem()) else { return Vec::new() };
    let stem = format!("{}-", stem.to_string_lossy());
    let end =
        path.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    let is_ours = |name: &str| {
        let number = name.strip_prefix(&*stem).and_then(|rest| rest.strip_suffix(&*end));
        number.is_some_and(|it| it.len() >= 5 && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let ours = names.filter(|name| is_ours(&name.to_string_lossy()));
    ours.map(|name| path.with_file_name(name)).collect()
}

/// The first packets of every open conversation.
struct Beginnings {
    conversations: Conversations,
    kept: BTreeMap<u64, Beginning>,
    /// The bytes of all packets.
    total: usize,
}

/// The first packets of a conversation.
#[derive(Default)]
struct Beginning {
    packets: Vec<KeptPacket>,
    size: usize,
    /// Whether a packet was not kept. In that case, later ones are not kept either, because they
    /// would only create a second gap.
    is_full: bool,
}

/// A packet without its number and position in the input.
struct KeptPacket {
    number: u64,
    time: Timestamp,
    interface: u32,
    link: LinkType,
    original_length: u32,
    data: Vec<u8>,
}

/// How much of each conversation is copied: enough for the longest handshake and its logins.
const MAX_PACKETS: usize = 48;
const MAX_BYTES: usize = 32 << 10;
/// The maximum number of bytes copied for all conversations together. Conversations beyond it are
/// not copied.
const MAX_TOTAL: usize = 64 << 20;

impl Beginnings {
    fn new() -> Self {
        let conversations = Conversations::new(&Limits::DEFAULT);
        Self { conversations, kept: BTreeMap::new(), total: 0 }
    }

    fn add(&mut self, packet: &Packet<'_>) {
        let Self { conversations, kept, total } = self;
        conversations.push(packet, &mut |event| match event.kind {
            // Copies from the middle of a conversation would not help.
            EventKind::Opened(opened) if opened.datagrams || !opened.midstream => {
                kept.insert(event.conversation, Beginning::default());
            }
            EventKind::Closed(_) => {
                if let Some(closed) = kept.remove(&event.conversation) {
                    *total -= closed.size;
                }
            }
            _ => {}
        });
        let Owner::Conversation(number) = conversations.owner() else { return };
        let Some(beginning) = kept.get_mut(&number) else { return };
        let size = packet.data.len();
        if !beginning.is_full
            && beginning.packets.len() < MAX_PACKETS
            && beginning.size + size <= MAX_BYTES
            && *total + size <= MAX_TOTAL
        {
            let Packet { number, time, interface, link, original_length, data, .. } = *packet;
            let data = data.to_vec();
            let kept = KeptPacket { number, time, interface, link, original_length, data };
            beginning.packets.push(kept);
            beginning.size += size;
            *total += size;
        } else {
            beginning.is_full = true;
        }
    }

    fn write(&self, file: &mut CaptureFile) -> Result<(), CaptureError> {
        let mut packets: Vec<&KeptPacket> =
            self.kept.values().flat_map(|beginning| &beginning.packets).collect();
        packets.sort_by_key(|packet| packet.number);
        for packet in packets {
            let KeptPacket { number, time, interface, link, original_length, ref data } = *packet;
            file.packet(&Packet {
                number,
                time,
                interface,
                link,
                data,
                original_length,
                unusable: None,
                offset: 0,
            })?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Beginnings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beginnings").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_before_the_extension() {
        let name = |path: &str| numbered(Path::new(path), 7).display().to_string();
        assert_eq!(name("a/evening.pcapng"), "a/evening-00007.pcapng");
        assert_eq!(name("a.b.pcap"), "a.b-00007.pcap");
        assert_eq!(name("x"), "x-00007");
    }

    #[test]
    fn files_in_the_way_are_found() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("evening.pcapng");
        for name in ["evening.pcapng", "evening-1.pcapng", "evening-00001.pcap", "x-00001.pcapng"] {
            std::fs::write(folder.path().join(name), "").expect("there is room");
        }
        assert_eq!(existing(&path), None);
        let other = folder.path().join("evening-00042.pcapng");
        std::fs::write(&other, "").expect("there is room");
        assert_eq!(existing(&path), Some(other.clone()));
        // The files of the ring are removed, but no others.
        let first = folder.path().join("evening-00001.pcapng");
        std::fs::write(&first, "").expect("there is room");
        remove_others(&path, &first).expect("they can be removed");
        assert!(first.exists() && !other.exists());
        assert_eq!(std::fs::read_dir(folder.path()).expect("it exists").count(), 5);
    }
}
