//! Reads the file through one buffer, decompressing if necessary.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use crate::error::CaptureError;

/// A window that moves over the input. It grows only as bytes arrive, so a file with a large stated
/// length and little content costs little.
#[derive(Debug)]
pub(crate) struct Source<R> {
    input: Input<R>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The position of `start` in the unpacked file.
    offset: u64,
    ended: bool,
    /// The compressed data ended before its end marker.
    cut: bool,
}

/// The input, plain or through the decompressor.
#[derive(Debug)]
enum Input<R> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<io::Chain<Cursor<Vec<u8>>, R>>>),
    /// A placeholder while the variant is replaced.
    Nothing,
}

impl<R: Read> Source<R> {
    /// Detects gzip from the first two bytes.
    pub(crate) fn new(input: R) -> Result<Self, CaptureError> {
        let mut source = Self {
            input: Input::Plain(input),
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            cut: false,
        };
        source.fill(2)?;
        if source.bytes().starts_with(&[0x1F, 0x8B]) {
            source.unpack();
        }
        Ok(source)
    }

    /// Continues in a plain file, at this offset.
    pub(crate) fn resumed(input: R, offset: u64) -> Self {
        let (input, buffer) = (Input::Plain(input), vec![0; BUFFER]);
        Self { input, buffer, start: 0, end: 0, offset, ended: false, cut: false }
    }

    /// Tries to fill the window with `wanted` bytes and returns the number that it then holds:
    /// fewer only at the end of the input.
    pub(crate) fn fill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        if self.end - self.start >= wanted {
            return Ok(self.end - self.start);
        }
        self.refill(wanted)
    }

    /// Consumes `count` bytes of the window.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips `count` bytes and returns the number actually skipped.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64, CaptureError> {
        let mut left = count;
        while left > 0 {
            let found = self.fill(1)?;
            if found == 0 {
                break;
            }
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(found);
            self.consume(step);
            left -= step as u64;
        }
        Ok(count - left)
    }

    /// The bytes in the window.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Where the window begins in the unpacked file.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) const fn is_gzip(&self) -> bool {
        matches!(self.input, Input::Gzip(_))
    }

    /// Whether the compressed data ended too early. Known once the window is empty.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    #[cold]
    fn unpack(&mut self) {
        let seen = self.bytes().to_vec();
        if let Input::Plain(input) = std::mem::replace(&mut self.input, Input::Nothing) {
            let whole = Cursor::new(seen).chain(input);
            self.input = Input::Gzip(Box::new(MultiGzDecoder::new(whole)));
        }
        (self.start, self.end, self.ended) = (0, 0, false);
    }

    #[inline(never)]
    fn refill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted && !self.ended {
            if self.end == self.buffer.len() {
                let double = self.buffer.len().saturating_mul(2);
                self.buffer.resize(double, 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failed(error)?,
            }
        }
        Ok(self.end)
    }

    #[cold]
    fn failed(&mut self, source: io::Error) -> Result<(), CaptureError> {
        let offset = self.offset + self.end as u64;
        self.ended = true;
        match self.input {
            Input::Gzip(_) if source.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut = true;
                Ok(())
            }
            Input::Gzip(_)
                if matches!(
                    source.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                Err(CaptureError::Gzip { offset, source })
            }
            _ => Err(CaptureError::Read { offset, source }),
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(room),
            Self::Gzip(input) => input.read(room),
            Self::Nothing => Ok(0),
        }
    }
}

/// Large enough to amortise reads, small enough for the second-level cache.
const BUFFER: usize = 128 << 10;
