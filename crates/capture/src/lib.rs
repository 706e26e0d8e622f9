//! Captures of traffic: read, taken apart, put together again, and written.
//!
//! ```
//! use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
//! use worldwire_core::Limits;
//!
//! # fn read(file: &[u8]) -> Result<usize, worldwire_capture::CaptureError> {
//! let mut capture = CaptureReader::new(file, &Limits::DEFAULT)?;
//! let mut conversations = Conversations::new(&Limits::DEFAULT);
//! let mut bytes_said = 0;
//! while let Some(record) = capture.next()? {
//!     if let Record::Packet(packet) = record {
//!         conversations.push(&packet, &mut |event| {
//!             if let EventKind::Data { bytes, .. } = event.kind {
//!                 bytes_said += bytes.len();
//!             }
//!         });
//!     }
//! }
//! # Ok(bytes_said) }
//! ```
//!
//! | type | what it is |
//! | --- | --- |
//! | [`CaptureReader`] | pcap and pcapng, plain or packed with gzip, record by record |
//! | [`CaptureWriter`], [`ClassicWriter`] | the same, written |
//! | [`Conversations`] | packets in; streams and datagrams out, in order |
//! | [`SyntheticTcp`] | packets that were never sent |
//!
//! No IO but the [`Read`](std::io::Read) and [`Write`](std::io::Write) that are handed in, no
//! threads, no clock: time is what the capture says.

mod conversations;
mod cursor;
mod error;
mod fragments;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod link;
mod network;
mod reader;
mod source;
mod stream;
mod synthesis;
mod time;
mod writer;

pub use conversations::{Closed, Conversations, Event, EventKind, Opened};
pub use error::{CaptureError, FirstBytes};
pub use link::LinkType;
pub use network::{Segment, TcpFlags, Transport, Unusable};
pub use reader::{CaptureReader, Format, Packet, Record, SecretsKind, Subject};
pub use synthesis::SyntheticTcp;
pub use time::Timestamp;
pub use writer::{CaptureWriter, ClassicWriter};
