//! Captures that are written packet by packet.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use worldwire_capture::{
    CaptureError, CaptureWriter, ClassicWriter, LinkType, Packet, SecretsKind,
};

use super::{CaptureFormat, Failure, Output};

/// A capture file in either format. Dropping it without [`finish`](Self::finish) discards a file
/// that is written atomically.
#[derive(Debug)]
pub(crate) struct CaptureFile(Writer);

#[derive(Debug)]
enum Writer {
    Pcapng {
        writer: CaptureWriter<Sink>,
        /// The numbers of interfaces in the output, by their number and link type in the input.
        interfaces: HashMap<(u32, LinkType), u32>,
    },
    Pcap {
        /// The output, until the first packet states the link type.
        empty: Option<Sink>,
        writer: Option<(ClassicWriter<Sink>, LinkType)>,
    },
}

impl CaptureFile {
    /// Starts a file in this format.
    pub(crate) fn new(output: Output, format: CaptureFormat) -> Result<Self, Failure> {
        let sink = match format.is_gzip {
            true => Sink::Gzip(Box::new(GzEncoder::new(output, Compression::default()))),
            false => Sink::Plain(output),
        };
        Ok(Self(match format.is_pcapng {
            true => Writer::Pcapng {
                writer: CaptureWriter::new(sink, &[]).map_err(|error| failed(&error))?,
                interfaces: HashMap::new(),
            },
            false => Writer::Pcap { empty: Some(sink), writer: None },
        }))
    }

    /// Writes keys, for which pcap has no place.
    pub(crate) fn secrets(&mut self, keys: &str) -> Result<(), CaptureError> {
        match &mut self.0 {
            Writer::Pcapng { writer, .. } => {
                writer.secrets(SecretsKind::WORLDWIRE, keys.as_bytes())
            }
            Writer::Pcap { .. } => Err(refused("pcap cannot hold keys; use .pcapng")),
        }
    }

    pub(crate) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        let Packet { interface, time, link, data, original_length, .. } = *packet;
        match &mut self.0 {
            Writer::Pcapng { writer, interfaces } => {
                let number = match interfaces.get(&(interface, link)) {
                    Some(number) => *number,
                    None => {
                        let number = writer.interface(link)?;
                        interfaces.insert((interface, link), number);
                        number
                    }
                };
                writer.packet(number, time, data, original_length)
            }
            Writer::Pcap { empty, writer } => {
                if let Some(sink) = empty.take() {
                    *writer = Some((ClassicWriter::new(sink, link)?, link));
                }
                match writer {
                    Some((writer, first)) if *first == link => {
                        writer.packet(time, data, original_length)
                    }
                    _ => Err(refused("pcap holds packets of one link type only; use .pcapng")),
                }
            }
        }
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let sink = match self.0 {
            Writer::Pcapng { writer, .. } => writer.into_inner(),
            Writer::Pcap { writer: Some((writer, _)), .. } => writer.into_inner(),
            Writer::Pcap { empty: Some(sink), .. } => {
                let writer = ClassicWriter::new(sink, LinkType::ETHERNET);
                writer.map_err(|error| failed(&error))?.into_inner()
            }
            // The header could not be written, which has been reported.
            Writer::Pcap { .. } => return Ok(()),
        };
        match sink {
            Sink::Plain(output) => output.finish(),
            Sink::Gzip(encoder) => {
                let output = encoder.finish();
                output.map_err(|error| failed(&CaptureError::Write(error)))?.finish()
            }
        }
    }
}

#[cold]
fn refused(why: &str) -> CaptureError {
    CaptureError::Write(io::Error::other(why))
}

fn failed(error: &CaptureError) -> Failure {
    Failure::Run(error.to_string())
}

/// The output, plain or through a compressor.
#[derive(Debug)]
enum Sink {
    Plain(Output),
    Gzip(Box<GzEncoder<Output>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(output) => Write::write(output, bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(output) => Write::flush(output),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
