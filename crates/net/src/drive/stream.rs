//! The two halves of a byte stream.

use core::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use worldwire_core::connection::Input;

/// The receiving half of a connection.
pub(crate) trait Receive: Send {
    /// Whether a closed connection should wait briefly for the peer to close. If a socket is closed
    /// with unread bytes, the system discards data that the peer has not read yet.
    const LINGERS: bool;

    /// Waits for the next input. Dropping the future loses nothing.
    fn receive(&mut self) -> impl Future<Output = io::Result<Input<'_>>> + Send;
}

/// The sending half of a connection.
pub(crate) trait Transmit: Send {
    /// Takes units from `next`, up to the amount written at a time.
    fn load(&mut self, next: impl FnMut() -> Option<Vec<u8>>);

    /// The number of bytes taken but not yet written.
    fn pending(&self) -> usize;

    /// The total number of bytes written.
    fn written(&self) -> u64;

    /// Writes part of the pending output. Dropping the future loses nothing. After an error, the
    /// half is [broken](Self::is_broken).
    fn write(&mut self) -> impl Future<Output = ()> + Send;

    /// Whether writing has failed for good. Later output is dropped.
    fn is_broken(&self) -> bool;

    /// Ends the stream.
    fn finish(&mut self) -> impl Future<Output = ()> + Send;
}

/// The initial size of buffers, small enough for thousands of idle connections.
const LEAST: usize = 2 << 10;
/// The size to which buffers grow under load.
const MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct StreamReader<R> {
    io: R,
    buffer: Vec<u8>,
}

impl<R> StreamReader<R> {
    pub(crate) fn new(io: R) -> Self {
        Self { io, buffer: vec![0; LEAST] }
    }
}

impl<R: AsyncRead + Unpin + Send> Receive for StreamReader<R> {
    const LINGERS: bool = true;

    async fn receive(&mut self) -> io::Result<Input<'_>> {
        let length = self.io.read(&mut self.buffer).await?;
        if length == 0 {
            return Ok(Input::End);
        }
        if length == self.buffer.len() && length < MAX {
            // The next read uses a longer buffer.
            self.buffer.resize(length * 2, 0);
        } else if length < LEAST && self.buffer.len() > LEAST {
            self.buffer.truncate(LEAST);
            self.buffer.shrink_to_fit();
        }
        Ok(Input::Bytes(self.buffer.get(..length).unwrap_or_default()))
    }
}

/// Writes a stream. Small units that are available at the same time are joined.
#[derive(Debug)]
pub(crate) struct StreamWriter<W> {
    io: W,
    buffer: Vec<u8>,
    written: usize,
    total: u64,
    needs_flush: bool,
    is_broken: bool,
}

impl<W> StreamWriter<W> {
    pub(crate) fn new(io: W) -> Self {
        Self { io, buffer: Vec::new(), written: 0, total: 0, needs_flush: false, is_broken: false }
    }
}

impl<W: AsyncWrite + Unpin + Send> StreamWriter<W> {
    async fn try_write(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            let unwritten = self.buffer.get(self.written..).unwrap_or_default();
            let length = self.io.write(unwritten).await?;
            if length == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += length;
            self.total += length as u64;
            self.needs_flush = true;
            if self.written < self.buffer.len() {
                return Ok(());
            }
        }
        // An idle connection keeps no memory for writing.
        self.buffer = Vec::new();
        self.written = 0;
        self.io.flush().await?;
        self.needs_flush = false;
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin + Send> Transmit for StreamWriter<W> {
    fn load(&mut self, mut next: impl FnMut() -> Option<Vec<u8>>) {
        while self.is_broken || self.pending() < MAX {
            match next() {
                None => break,
                Some(_) if self.is_broken => {}
                Some(bytes) if self.buffer.is_empty() => self.buffer = bytes,
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
            }
        }
    }

    fn pending(&self) -> usize {
        // An interrupted flush is repeated, so it counts as a byte.
        (self.buffer.len() - self.written).max(usize::from(self.needs_flush))
    }

    fn written(&self) -> u64 {
        self.total
    }

    async fn write(&mut self) {
        if let Err(error) = self.try_write().await {
            tracing::debug!(%error, "the peer no longer accepts data");
            self.is_broken = true;
            self.buffer = Vec::new();
            self.written = 0;
            self.needs_flush = false;
        }
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    async fn finish(&mut self) {
        // If the peer is already gone, there is nothing to shut down.
        let _ = self.io.shutdown().await;
    }
}
