//! The source of a capture: a file, bytes, or a Python object with a `read` method.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// An open capture.
pub(crate) struct Source {
    pub(crate) input: Box<dyn Read + Send>,
    /// Whether packets may still arrive, so that messages must not wait for a full batch.
    pub(crate) is_live: bool,
}

impl Source {
    /// Opens a file. With `grows`, it may continue after its current end.
    pub(crate) fn file(path: &Path, grows: bool) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let file = File::open(path)?;
        let is_live = grows || !file.metadata()?.is_file();
        let input: Box<dyn Read + Send> =
            if grows { Box::new(Growing(file)) } else { Box::new(file) };
        Ok(Self { input, is_live })
    }

    /// The bytes of a whole capture.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        Self { input: Box::new(io::Cursor::new(bytes)), is_live: false }
    }

    /// A binary Python file, such as the standard output of a process.
    pub(crate) fn object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // `read1` returns what has arrived; `read` would wait for everything.
        let read = object.getattr("read1").or_else(|_| object.getattr("read"))?.unbind();
        Ok(Self { input: Box::new(Object { read, rest: Vec::new(), at: 0 }), is_live: true })
    }
}

/// A file that is still being written.
struct Growing(File);

/// How often the end of a growing file is checked.
const NAP: Duration = Duration::from_millis(100);

impl Read for Growing {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(room)? {
                0 if !room.is_empty() => std::thread::sleep(NAP),
                count => return Ok(count),
            }
        }
    }
}

/// A Python object with a method that returns bytes.
struct Object {
    read: Py<PyAny>,
    /// Bytes that it has returned; those from `at` are unread.
    rest: Vec<u8>,
    at: usize,
}

impl Read for Object {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        /// The number of bytes requested at once.
        const BLOCK: usize = 64 << 10;
        if self.at == self.rest.len() {
            self.at = 0;
            self.rest = Python::try_attach(|py| -> PyResult<Vec<u8>> {
                let bytes = self.read.bind(py).call1((BLOCK,))?;
                if bytes.is_none() {
                    // A non-blocking file has no data at the moment.
                    return Err(pyo3::exceptions::PyBlockingIOError::new_err("no data"));
                }
                match bytes.cast::<PyBytes>() {
                    Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
                    Err(_) => Ok(bytes.cast::<PyByteArray>()?.to_vec()),
                }
            })
            .ok_or_else(|| io::Error::other("the Python interpreter has shut down"))?
            .map_err(|error| io::Error::other(error.to_string()))?;
        }
        let rest = self.rest.get(self.at..).unwrap_or_default();
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
