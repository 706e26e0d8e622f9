//! The two halves of a byte stream.

use core::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use worldwire_core::connection::Input;

/// Where input comes from.
pub(crate) trait Receive: Send {
    /// Whether a closed connection should wait a moment for the peer's end. A socket that is closed
    /// with bytes unread makes the system discard what the peer has not read yet.
    const LINGERS: bool;

    /// Waits for the next input. Nothing is lost when the future is dropped.
    fn receive(&mut self) -> impl Future<Output = io::Result<Input<'_>>> + Send;
}

/// Where output goes.
pub(crate) trait Transmit: Send {
    /// Takes units from `next`, up to what is written at a time.
    fn load(&mut self, next: impl FnMut() -> Option<Vec<u8>>);

    /// How many bytes were taken and are not written yet.
    fn pending(&self) -> usize;

    /// How many bytes were written in all.
    fn written(&self) -> u64;

    /// Writes some of it. Nothing is lost when the future is dropped. An error leaves the half
    /// [broken](Self::is_broken).
    fn write(&mut self) -> impl Future<Output = ()> + Send;

    /// Whether writing has failed for good. Later output is dropped.
    fn is_broken(&self) -> bool;

    /// Says that nothing more will come.
    fn finish(&mut self) -> impl Future<Output = ()> + Send;
}

/// Buffers begin with this size: thousands of idle connections cost little.
const LEAST: usize = 2 << 10;
/// And grow to this one, when there is much to read.
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
            // The next read gets a longer buffer; this one is handed out as it is.
            self.buffer.resize(length * 2, 0);
        } else if length < LEAST && self.buffer.len() > LEAST {
            self.buffer.truncate(LEAST);
            self.buffer.shrink_to_fit();
        }
        Ok(Input::Bytes(self.buffer.get(..length).unwrap_or_default()))
    }
}

/// Writes a stream. Small units are joined, as far as they are there at the same time.
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
        // A flush that was interrupted is repeated: it counts as a byte.
        (self.buffer.len() - self.written).max(usize::from(self.needs_flush))
    }

    fn written(&self) -> u64 {
        self.total
    }

    async fn write(&mut self) {
        if let Err(error) = self.try_write().await {
            tracing::debug!(%error, "the peer takes nothing more");
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
        // The peer may be gone, which is as good.
        let _ = self.io.shutdown().await;
    }
}
