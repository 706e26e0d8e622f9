//! `worldwire export files`.

use std::collections::HashMap;

use md5::{Digest as _, Md5};
use worldwire_core::path::{PathRules, SafePath};
use worldwire_core::{Limits, Reader};
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Item, Scratch};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{auth, file};
use worldwire_uru::types::{NetError, TransId};

use crate::cli::{Common, ExportFiles};
use crate::command::capture;
use crate::command::dissect::{read_filter, refuse_ambiguity};
use crate::definitions;
use crate::output::{Failure, LastFolder, NewFolder, complain, counted, say};

/// The maximum total size of incomplete files.
const MAX_BYTES: usize = 1 << 30;
/// The maximum number of incomplete downloads.
const MAX_DOWNLOADS: usize = 65_536;

pub(super) fn run(arguments: &ExportFiles, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Part>| {
        if arguments.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return;
        }
        let Some(mut part) = Part::of(item) else { return };
        if let Some(filter) = &filter {
            let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
            part.fits = filter.matches(&Subject::of(item, &scratch.name, &tree));
            scratch.tree = tree.recycle();
        }
        out.push(part);
    };
    let mut downloads = Downloads {
        folder: NewFolder::new(&arguments.output, arguments.force),
        last: LastFolder::default(),
        open: HashMap::new(),
        bytes: 0,
        stored: HashMap::new(),
        files: 0,
        faults: 0,
    };
    let (dissection, clean) =
        capture::read(&arguments.capture, common, definitions, show, |parts: &Vec<Part>| {
            parts.iter().try_for_each(|part| downloads.take(part))
        })?;
    refuse_ambiguity(filter.as_ref().and_then(Filter::ambiguity))?;
    if let Some(stream) = arguments.stream {
        capture::conversation(&dissection, stream)?;
    }
    downloads.end();
    downloads.folder.finish()?;
    let Downloads { files, faults, .. } = downloads;
    let summary = dissection.summary();
    if !common.quiet {
        say(format_args!("{} written, {faults} skipped; {summary}", counted(files, "file")));
    }
    if files == 0 && faults == 0 {
        common.note(
            "export",
            "no downloads selected; only Uru's file and auth connections have them",
        );
    }
    if clean && faults == 0 && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// A step of a download.
struct Part {
    /// The conversation and the transaction.
    key: (u64, u32),
    /// Whether it was selected.
    fits: bool,
    what: What,
}

enum What {
    /// A client requests the file with this name.
    Request(String),
    /// A part of a file with this total size, and its offset if the message states one.
    Piece { total: u32, offset: Option<u32>, bytes: Vec<u8> },
    /// The server has no such file.
    Refused(NetError),
}

impl Part {
    /// The step that an item represents, if any.
    fn of(item: &Item<'_>) -> Option<Self> {
        let said = item.message().filter(|_| item.family == "uru")?;
        if !said.is_message() {
            return None;
        }
        let mut name = String::new();
        said.push_name(&mut name);
        let service = match &*name {
            "file.FileDownloadRequest" | "file.FileDownloadReply" => Service::File,
            "auth.FileDownloadRequest" | "auth.FileDownloadChunk" => Service::Auth,
            _ => return None,
        };
        let message = Message::decode(service, item.from, &mut Reader::new(item.bytes())).ok()?;
        let (TransId(number), what) = match message {
            Message::FileClient(file::client::ClientMessage::FileDownloadRequest(request)) => {
                (request.trans_id, What::Request(request.filename.to_text()))
            }
            Message::AuthClient(auth::client::ClientMessage::FileDownloadRequest(request)) => {
                (request.trans_id, What::Request(request.filename.to_text()))
            }
            Message::FileServer(file::server::ServerMessage::FileDownloadReply(reply)) => {
                let (total, bytes) = (reply.total_file_size, reply.data.to_vec());
                let piece = What::Piece { total, offset: None, bytes };
                (reply.trans_id, of_result(reply.result, piece))
            }
            Message::AuthServer(auth::server::ServerMessage::FileDownloadChunk(chunk)) => {
                let (total, offset) = (chunk.total_file_size, Some(chunk.chunk_offset));
                let piece = What::Piece { total, offset, bytes: chunk.chunk.to_vec() };
                (chunk.trans_id, of_result(chunk.result, piece))
            }
            _ => return None,
        };
        Some(Self { key: (item.stamp.stream, number), fits: true, what })
    }
}

fn of_result(result: NetError, piece: What) -> What {
    if result == NetError::Success { piece } else { What::Refused(result) }
}

struct Downloads {
    folder: NewFolder,
    last: LastFolder,
    open: HashMap<(u64, u32), Download>,
    /// The number of bytes in incomplete files.
    bytes: usize,
    /// The files written: the lower-case name, with a hash of the content.
    stored: HashMap<String, [u8; 16]>,
    files: u64,
    faults: u64,
}

/// An incomplete file.
struct Download {
    name: String,
    fits: bool,
    bytes: Vec<u8>,
    total: Option<u32>,
    /// Whether a piece is missing.
    is_torn: bool,
}

impl Downloads {
    fn take(&mut self, part: &Part) -> Result<(), Failure> {
        match &part.what {
            What::Request(name) => {
                let (bytes, total, is_torn) = (Vec::new(), None, false);
                let new = Download { name: name.clone(), fits: part.fits, bytes, total, is_torn };
                if self.open.len() < MAX_DOWNLOADS
                    && let Some(old) = self.open.insert(part.key, new)
                {
                    self.bytes -= old.bytes.len();
                    self.give_up(part.key, &old);
                }
                Ok(())
            }
            What::Refused(why) => {
                if let Some(download) = self.open.remove(&part.key) {
                    self.bytes -= download.bytes.len();
                    if download.fits || part.fits {
                        self.fault(part.key, &download.name, &format!("refused: {why}"));
                    }
                }
                Ok(())
            }
            What::Piece { total, offset, bytes } => self.piece(part, *total, *offset, bytes),
        }
    }

    fn piece(
        &mut self,
        part: &Part,
        total: u32,
        offset: Option<u32>,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        // The name is unknown for requests made before the capture began.
        let Some(download) = self.open.get_mut(&part.key) else { return Ok(()) };
        download.fits |= part.fits;
        let have = download.bytes.len();
        let is_next = offset.is_none_or(|offset| usize::try_from(offset) == Ok(have));
        let same = download.total.is_none_or(|known| known == total);
        download.is_torn |= !is_next || !same || self.bytes + bytes.len() > MAX_BYTES;
        download.total = Some(total);
        if download.is_torn {
            self.bytes -= core::mem::take(&mut download.bytes).len();
            return Ok(());
        }
        download.bytes.extend_from_slice(bytes);
        self.bytes += bytes.len();
        match u32::try_from(download.bytes.len()) {
            Ok(have) if have < total => Ok(()),
            Ok(have) if have == total => {
                let Some(download) = self.open.remove(&part.key) else { return Ok(()) };
                self.bytes -= download.bytes.len();
                if download.fits { self.store(part.key, &download) } else { Ok(()) }
            }
            _ => {
                download.is_torn = true;
                Ok(())
            }
        }
    }

    /// Writes a complete file.
    fn store(&mut self, key: (u64, u32), download: &Download) -> Result<(), Failure> {
        let path = match SafePath::parse_str(&download.name, PathRules::DOWNLOAD) {
            Ok(path) => path.to_path_buf(),
            Err(error) => {
                self.fault(key, &download.name, &format!("its name {error}"));
                return Ok(());
            }
        };
        let sum: [u8; 16] = Md5::digest(&download.bytes).into();
        let spelling = path.to_string_lossy().to_lowercase();
        match self.stored.get(&spelling) {
            Some(before) if *before == sum => return Ok(()),
            Some(_) => {
                let text = "an earlier file has the same name but different contents";
                self.fault(key, &download.name, text);
                return Ok(());
            }
            None => {}
        }
        self.folder.store(&mut self.last, &path, &download.bytes)?;
        self.stored.insert(spelling, sum);
        self.files += 1;
        Ok(())
    }

    /// Handles the end of the capture.
    fn end(&mut self) {
        let mut open: Vec<_> = core::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable_by_key(|(key, _)| *key);
        for (key, download) in open {
            self.give_up(key, &download);
        }
    }

    fn give_up(&mut self, key: (u64, u32), download: &Download) {
        if download.fits {
            let text = match (download.is_torn, download.total) {
                (true, _) => "part of it is missing from the capture".to_owned(),
                (false, Some(total)) => {
                    let were = if total == 1 { "was" } else { "were" };
                    let total = counted(total, "byte");
                    format!("only {} of {total} {were} received", download.bytes.len())
                }
                (false, None) => "it was never sent".to_owned(),
            };
            self.fault(key, &download.name, &text);
        }
    }

    fn fault(&mut self, (stream, _): (u64, u32), name: &str, why: &str) {
        self.faults += 1;
        complain(&format!("conversation {stream}, {name}"), why);
    }
}
