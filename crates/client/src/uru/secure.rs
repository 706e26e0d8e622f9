//! Secure files: scripts and state descriptors that a client downloads after login.

use worldwire_uru::file::manifest::FileList;
use worldwire_uru::message::auth::client::{
    ClientMessage, FileDownloadChunkAck, FileDownloadRequest,
};

use super::auth::owned;
use super::reply::{ask, reply};
use super::{Auth, ClientError, Result};

/// A file that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureEntry {
    /// The name, including its directory: `SDL\x.sdl`.
    pub name: String,
    /// The number of bytes that the server sends. Some servers state the size before encryption
    /// instead.
    pub size: u32,
}

impl Auth {
    /// Lists the files of a directory: `Python` and `pak`, or `SDL` and `sdl`. Refusals include
    /// `FileNotFound`. An unreadable list is [`Malformed`](ClientError::Malformed).
    pub async fn secure_files(&self, directory: &str, extension: &str) -> Result<Vec<SecureEntry>> {
        let reply = ask!(self.link(), auth::FileListRequest {
            directory: directory.into(), extension: extension.into()
        } => FileListReply)?;
        let files = reply.files.decode::<FileList<'_>>();
        let files = files.map_err(ClientError::malformed("FileListRequest"))?;
        let entry = |entry: worldwire_uru::file::manifest::FileListEntry<'_>| SecureEntry {
            name: entry.name.to_text(),
            size: entry.size.0,
        };
        Ok(files.0.into_iter().map(entry).collect())
    }

    /// Downloads a secure file of at most `most` bytes, as sent: usually encrypted, see
    /// [`worldwire_uru::file::secure`].
    ///
    /// The protocol cannot cancel a download. After an error, or when the future is dropped, the
    /// server may keep waiting for acknowledgements and send no other file on this connection.
    ///
    /// # Errors
    /// Refusals include `FileNotFound`. [`Malformed`](ClientError::Malformed) if a chunk does not
    /// start where the previous one ended.
    pub async fn secure_file(&self, name: &str, most: u32) -> Result<Vec<u8>> {
        let request = |trans_id| owned(FileDownloadRequest { trans_id, filename: name.into() });
        let wrong = ClientError::download(name);
        let mut transaction = self.link().begin(request).await?;
        let mut bytes = Vec::new();
        loop {
            let reply = transaction.granted().await?;
            let chunk = reply!(transaction.request(), reply, AuthServer, auth::FileDownloadChunk)?;
            let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let total = chunk.total_file_size;
            if total > most {
                return Err(wrong(format!("at most {most} bytes"), total.to_string()));
            }
            if chunk.chunk_offset != taken {
                let found = format!("one at {}", chunk.chunk_offset);
                return Err(wrong(format!("a chunk at {taken}"), found));
            }
            let end = bytes.len().saturating_add(chunk.chunk.len());
            if end > total as usize || (chunk.chunk.is_empty() && taken < total) {
                return Err(wrong(format!("{total} bytes"), end.to_string()));
            }
            bytes.extend_from_slice(&chunk.chunk);
            let ack = FileDownloadChunkAck { trans_id: chunk.trans_id };
            self.link().send(ClientMessage::from(ack)).await?;
            if bytes.len() == total as usize {
                return Ok(bytes);
            }
        }
    }
}
