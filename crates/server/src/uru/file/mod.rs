//! The file service: manifests and downloads.
//!
//! A client requests a group's manifest, compares it with its own files, and downloads those that
//! differ. There is no encryption and no login. Files come from a [`Library`].

mod library;
mod manifest;
mod packed;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use worldwire_core::Bytes32;
use worldwire_core::connection::Sender as _;
use worldwire_net::Flow;
use worldwire_uru::connection::Sender;
use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::message::file::client::{ClientMessage, FileDownloadRequest, ManifestRequest};
use worldwire_uru::message::file::server::{
    BuildIdReply, FileDownloadReply, ManifestReply, ServerMessage,
};
use worldwire_uru::types::{Nested, NetError, TransId};

pub(super) use library::within;
pub use library::{Library, LibraryError};

use super::sent;

/// The number of bytes of a file in one reply.
const CHUNK: usize = 32 << 10;
/// The number of chunks that are read and queued at a time.
const CHUNKS: usize = 4;
/// The maximum number of queued downloads on a connection. Clients request one at a time.
const MAX_WAITING: usize = 64;

/// A file connection.
#[derive(Debug)]
pub(super) struct FileService {
    library: Arc<Library>,
    build: u32,
    /// The number of the last manifest or download.
    reader_id: u32,
    /// Downloads that have not started.
    waiting: VecDeque<Wanted>,
    /// The download in progress.
    current: Option<Download>,
}

#[derive(Debug)]
struct Wanted {
    trans_id: TransId,
    reader_id: u32,
    name: String,
}

#[derive(Debug)]
struct Download {
    trans_id: TransId,
    reader_id: u32,
    file: File,
    total: u32,
    left: u64,
}

impl FileService {
    pub(super) fn new(library: Arc<Library>, build: u32) -> Self {
        Self { library, build, reader_id: 0, waiting: VecDeque::new(), current: None }
    }

    /// Whether a download is in progress or queued.
    pub(super) fn wants_room(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    pub(super) async fn message(
        &mut self,
        message: ClientMessage<'_>,
        sender: &mut Sender,
    ) -> Flow {
        match message {
            ClientMessage::PingRequest(_)
            | ClientMessage::ManifestEntryAck(_)
            | ClientMessage::FileDownloadChunkAck(_) => Flow::Continue(()),
            ClientMessage::BuildIdRequest(request) => {
                let (trans_id, result) = (request.trans_id, NetError::Success);
                let reply = BuildIdReply { trans_id, result, build_id: self.build };
                send(sender, reply)
            }
            ClientMessage::ManifestRequest(request) => self.manifest(request, sender).await,
            ClientMessage::FileDownloadRequest(request) => self.download(&request, sender),
        }
    }

    /// Sends the next part of the download.
    pub(super) async fn room(&mut self, sender: &mut Sender) -> Flow {
        if self.current.is_none() {
            let Some(wanted) = self.waiting.pop_front() else { return Flow::Continue(()) };
            let library = Arc::clone(&self.library);
            let Wanted { trans_id, reader_id, name } = wanted;
            let opened = blocking(move || open(&library, &name)).await;
            match opened {
                Ok((file, total)) => {
                    let left = u64::from(total);
                    self.current = Some(Download { trans_id, reader_id, file, total, left });
                }
                Err(error) => {
                    tracing::debug!(%error, "download refused");
                    return refuse_download(trans_id, NetError::FileNotFound, sender);
                }
            }
        }
        let Some(mut download) = self.current.take() else { return Flow::Continue(()) };
        let read = blocking(move || {
            let bytes = read_up_to(&mut download.file, download.left.min((CHUNK * CHUNKS) as u64))?;
            Ok((download, bytes))
        });
        let (mut download, bytes) = match read.await {
            Ok(read) => read,
            // The protocol cannot report an error in the middle of a file.
            Err(error) => {
                tracing::warn!(%error, "download aborted");
                return Flow::Break(());
            }
        };
        let Download { trans_id, reader_id, total: total_file_size, .. } = download;
        let result = NetError::Success;
        // An empty file is sent as one empty chunk.
        let empty: [&[u8]; 1] = [&[]];
        let chunks =
            bytes.chunks(CHUNK).chain(empty.into_iter().take(usize::from(bytes.is_empty())));
        for chunk in chunks {
            let data = Bytes32::new(chunk);
            let reply = FileDownloadReply { trans_id, result, reader_id, total_file_size, data };
            send(sender, reply)?;
        }
        download.left -= bytes.len() as u64;
        if download.left > 0 {
            self.current = Some(download);
        }
        Flow::Continue(())
    }

    async fn manifest(&mut self, request: ManifestRequest<'_>, sender: &mut Sender) -> Flow {
        let trans_id = request.trans_id;
        let manifest = if !self.admits(request.build_id) {
            Err(NetError::OldBuildId)
        } else {
            let made = self.library.manifest(&request.group.to_text()).await;
            made.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => NetError::FileNotFound,
                _ => {
                    tracing::error!(%error, group = %request.group.to_text(), "cannot create a manifest");
                    NetError::InternalError
                }
            })
        };
        let reply = manifest.and_then(|manifest| {
            let num_files = u32::try_from(manifest.0.len()).map_err(|_| NetError::InternalError)?;
            let manifest = Nested::encode_from(&*manifest).map_err(|_| NetError::InternalError)?;
            self.reader_id = self.reader_id.wrapping_add(1);
            let (result, reader_id) = (NetError::Success, self.reader_id);
            Ok(ManifestReply { trans_id, result, reader_id, num_files, manifest })
        });
        match reply {
            Ok(reply) => send(sender, reply),
            Err(result) => match Nested::encode_from(&Manifest::default()) {
                Ok(manifest) => {
                    let (reader_id, num_files) = (0, 0);
                    send(sender, ManifestReply { trans_id, result, reader_id, num_files, manifest })
                }
                Err(_) => Flow::Break(()),
            },
        }
    }

    fn download(&mut self, request: &FileDownloadRequest<'_>, sender: &mut Sender) -> Flow {
        let trans_id = request.trans_id;
        if !self.admits(request.build_id) {
            return refuse_download(trans_id, NetError::OldBuildId, sender);
        }
        if self.waiting.len() >= MAX_WAITING {
            return refuse_download(trans_id, NetError::ServerBusy, sender);
        }
        self.reader_id = self.reader_id.wrapping_add(1);
        let (reader_id, name) = (self.reader_id, request.filename.to_text());
        self.waiting.push_back(Wanted { trans_id, reader_id, name });
        Flow::Continue(())
    }

    /// Whether clients of this build are served; 0 means the newest build.
    fn admits(&self, build: u32) -> bool {
        build == 0 || build == self.build
    }
}

fn send<'m>(sender: &mut Sender, message: impl Into<ServerMessage<'m>>) -> Flow {
    sent(sender.send(&message.into().into()))
}

fn refuse_download(trans_id: TransId, result: NetError, sender: &mut Sender) -> Flow {
    let data = Default::default();
    let (reader_id, total_file_size) = (0, 0);
    send(sender, FileDownloadReply { trans_id, result, reader_id, total_file_size, data })
}

/// Opens a file that a client requests.
fn open(library: &Library, name: &str) -> io::Result<(File, u32)> {
    let file = File::open(library.find(name)?)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let total = u32::try_from(metadata.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    Ok((file, total))
}

/// Reads exactly this many bytes.
fn read_up_to(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Runs file I/O on a thread for blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
