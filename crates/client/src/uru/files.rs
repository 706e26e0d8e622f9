//! The file service: manifests and downloads.

use worldwire_core::{Field as _, Messages as _};
use worldwire_uru::file::manifest::{Manifest, ManifestEntry};
use worldwire_uru::frame::Service;
use worldwire_uru::message::file::client::{
    ClientMessage, FileDownloadChunkAck, FileDownloadRequest, ManifestEntryAck,
};

use super::reply::{ask, reply};
use super::{ClientError, Link, Result, Shard, gatekeeper};

/// A connection to a file server.
#[derive(Clone, Debug)]
pub struct Files {
    link: Link,
    build: u32,
}

impl Files {
    /// Connects. Asks the gatekeeper for the address if the shard's configuration has none.
    pub async fn connect(shard: &Shard) -> Result<Self> {
        let (link, _) = gatekeeper::connect(shard, Service::File).await?;
        Ok(Self { link, build: shard.build })
    }

    /// The underlying link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Asks for the newest build.
    pub async fn build_id(&self) -> Result<u32> {
        Ok(ask!(self.link, file::BuildIdRequest {} => BuildIdReply)?.build_id)
    }

    /// Lists the files of a group: `External`, `ThinExternal`, ..., or the name of an age.
    ///
    /// # Errors
    /// Refusals include `FileNotFound` and `OldBuildId`. [`Malformed`](ClientError::Malformed) if
    /// the list is unreadable or does not contain as many files as the reply states.
    pub async fn manifest(&self, group: &str) -> Result<Vec<ManifestEntry<'static>>> {
        let reply = ask!(self.link, file::ManifestRequest {
            group: group.into(), build_id: self.build
        } => ManifestReply)?;
        let malformed = ClientError::malformed("ManifestRequest");
        let manifest = reply.manifest.decode::<Manifest<'_>>().map_err(&malformed)?.into_owned();
        let (promised, found) = (reply.num_files, manifest.0.len());
        if u32::try_from(found) != Ok(promised) {
            let error =
                worldwire_core::Error::malformed(format!("{promised} files"), found.to_string());
            return Err(malformed(error));
        }
        let (trans_id, reader_id) = (reply.trans_id, reply.reader_id);
        let ack = ManifestEntryAck { trans_id, reader_id };
        self.link.send(ClientMessage::from(ack)).await?;
        Ok(manifest.0)
    }

    /// Downloads a file by its name on the server. Passes each piece to `take`, together with the
    /// sink that `take` returned for the piece before. Every piece states the total size, which
    /// must not change. Returns the total size and the sink.
    ///
    /// # Errors
    /// Refusals, time-outs, errors from `take`, and files longer than stated or than `most`.
    pub async fn download<S, F: Future<Output = Result<S>>>(
        &self,
        name: &str,
        most: u32,
        mut sink: S,
        take: impl Fn(S, Vec<u8>) -> F,
    ) -> Result<(u32, S)> {
        let build_id = self.build;
        let request = |trans_id| {
            ClientMessage::from(FileDownloadRequest { trans_id, filename: name.into(), build_id })
                .into_owned()
        };
        let wrong = ClientError::download(name);
        let mut transaction = self.link.begin(request).await?;
        let (mut total, mut taken) = (None, 0u32);
        loop {
            let reply = transaction.granted().await?;
            let reply = reply!(transaction.request(), reply, FileServer, file::FileDownloadReply)?;
            let stated = reply.total_file_size;
            if stated > most {
                return Err(wrong(format!("at most {most} bytes"), stated.to_string()));
            }
            let first = *total.get_or_insert(stated);
            if first != stated {
                return Err(wrong(format!("{first} bytes in all"), stated.to_string()));
            }
            let length = u32::try_from(reply.data.len()).unwrap_or(u32::MAX);
            taken = taken.saturating_add(length);
            if taken > stated {
                return Err(wrong(format!("{stated} bytes"), format!("at least {taken}")));
            }
            if length == 0 && taken < stated {
                return Err(wrong(format!("{stated} bytes"), format!("only {taken}")));
            }
            sink = take(sink, reply.data.to_vec()).await?;
            let (trans_id, reader_id) = (reply.trans_id, reply.reader_id);
            let ack = FileDownloadChunkAck { trans_id, reader_id };
            self.link.send(ClientMessage::from(ack)).await?;
            if taken == stated {
                return Ok((stated, sink));
            }
        }
    }
}
