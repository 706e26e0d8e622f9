//! Lists and downloads of secure files.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use worldwire_core::Bytes32;
use worldwire_net::Flow;
use worldwire_uru::connection::Sender;
use worldwire_uru::message::auth::client::{FileDownloadRequest, FileListRequest};
use worldwire_uru::message::auth::server::{FileDownloadChunk, FileListReply};
use worldwire_uru::types::{Nested, NetError, TransId};

use super::secure::SecureFiles;
use super::send;
use crate::uru::file::blocking;

/// The number of bytes in one chunk of a file, for H'uru clients and for original clients.
const CHUNK: usize = 32 << 10;
const STRICT_CHUNK: usize = 1460;
/// The maximum number of unacknowledged chunks.
const WINDOW: usize = 4;
/// The maximum number of queued downloads. Clients request one at a time.
const MAX_WAITING: usize = 64;

/// A connection's downloads, sent one after another.
#[derive(Debug)]
pub(super) struct Downloads {
    files: Arc<SecureFiles>,
    chunk: usize,
    waiting: VecDeque<(TransId, String)>,
    current: Option<Download>,
}

#[derive(Debug)]
struct Download {
    trans_id: TransId,
    bytes: Arc<Vec<u8>>,
    sent: usize,
    /// The number of unacknowledged chunks.
    open: usize,
}

impl Downloads {
    pub(super) fn new(files: Arc<SecureFiles>, is_strict: bool) -> Self {
        let chunk = if is_strict { STRICT_CHUNK } else { CHUNK };
        Self { files, chunk, waiting: VecDeque::new(), current: None }
    }

    /// Whether another chunk can be sent.
    pub(super) fn wants_room(&self) -> bool {
        match &self.current {
            Some(download) => download.open < WINDOW,
            None => !self.waiting.is_empty(),
        }
    }

    /// `FileListRequest`.
    pub(super) async fn list(&self, request: &FileListRequest<'_>, sender: &mut Sender) -> Flow {
        let files = Arc::clone(&self.files);
        let (directory, extension) = (request.directory.to_text(), request.extension.to_text());
        match blocking(move || files.list(&directory, &extension)).await {
            Ok(list) => match Nested::encode_from(&list) {
                Ok(files) => {
                    let (trans_id, result) = (request.trans_id, NetError::Success);
                    send(sender, FileListReply { trans_id, result, files })
                }
                Err(_) => no_list(request.trans_id, NetError::InternalError, sender),
            },
            Err(error) => no_list(request.trans_id, result_of(&error), sender),
        }
    }

    /// `FileDownloadRequest`.
    pub(super) fn request(
        &mut self,
        request: &FileDownloadRequest<'_>,
        sender: &mut Sender,
    ) -> Flow {
        if self.waiting.len() >= MAX_WAITING {
            return no_file(request.trans_id, NetError::ServerBusy, sender);
        }
        self.waiting.push_back((request.trans_id, request.filename.to_text()));
        Flow::Continue(())
    }

    /// `FileDownloadChunkAck`.
    pub(super) fn acknowledged(&mut self, trans_id: TransId) {
        if let Some(download) = &mut self.current
            && download.trans_id == trans_id
        {
            download.open = download.open.saturating_sub(1);
        }
    }

    /// Sends the next chunk.
    pub(super) async fn room(&mut self, sender: &mut Sender) -> Flow {
        if self.current.is_none() {
            let Some((trans_id, name)) = self.waiting.pop_front() else {
                return Flow::Continue(());
            };
            let files = Arc::clone(&self.files);
            match blocking(move || files.file(&name)).await {
                Ok(bytes) => {
                    self.current = Some(Download { trans_id, bytes, sent: 0, open: 0 });
                }
                Err(error) => return no_file(trans_id, result_of(&error), sender),
            }
        }
        let Some(download) = &mut self.current else { return Flow::Continue(()) };
        let end = download.bytes.len().min(download.sent + self.chunk);
        let chunk = download.bytes.get(download.sent..end).unwrap_or_default();
        // Secure files are shorter than 4 GiB.
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let message = FileDownloadChunk {
            trans_id: download.trans_id,
            result: NetError::Success,
            total_file_size: number(download.bytes.len()),
            chunk_offset: number(download.sent),
            chunk: Bytes32::new(chunk),
        };
        send(sender, message)?;
        download.sent = end;
        download.open += 1;
        if end == download.bytes.len() {
            self.current = None;
        }
        Flow::Continue(())
    }
}

/// Refuses a request for a list.
pub(super) fn no_list(trans_id: TransId, result: NetError, sender: &mut Sender) -> Flow {
    send(sender, FileListReply { trans_id, result, files: Nested::new(Vec::new()) })
}

/// Refuses a request for a file.
pub(super) fn no_file(trans_id: TransId, result: NetError, sender: &mut Sender) -> Flow {
    let (total_file_size, chunk_offset, chunk) = (0, 0, Bytes32::new(Vec::new()));
    send(sender, FileDownloadChunk { trans_id, result, total_file_size, chunk_offset, chunk })
}

fn result_of(error: &io::Error) -> NetError {
    match error.kind() {
        io::ErrorKind::NotFound => NetError::FileNotFound,
        _ => {
            tracing::error!(%error, "cannot read a secure file");
            NetError::InternalError
        }
    }
}
