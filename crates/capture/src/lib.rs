//! Reads captures of network traffic, reassembles their streams, and writes captures.
//!
//! ```
//! use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
//! use worldwire_core::Limits;
//!
//! # fn read(file: &[u8]) -> Result<usize, worldwire_capture::CaptureError> {
//! let mut capture = CaptureReader::new(file, &Limits::DEFAULT)?;
//! let mut conversations = Conversations::new(&Limits::DEFAULT);
//! let mut total = 0;
//! while let Some(record) = capture.next()? {
//!     if let Record::Packet(packet) = record {
//!         conversations.push(&packet, &mut |event| {
//!             if let EventKind::Data { bytes, .. } = event.kind {
//!                 total += bytes.len();
//!             }
//!         });
//!     }
//! }
//! # Ok(total) }
//! ```
//!
//! | type | what it is |
//! | --- | --- |
//! | [`CaptureReader`] | reads pcap and pcapng, plain or gzipped, record by record |
//! | [`CaptureWriter`], [`ClassicWriter`] | write pcapng and pcap |
//! | [`Conversations`] | turns packets into ordered streams and datagrams |
//! | [`SyntheticTcp`], [`SyntheticUdp`] | generate packets for samples and tests |
//!
//! The crate does no I/O except through the [`Read`](std::io::Read) and [`Write`](std::io::Write)
//! implementations that you pass in. It uses no threads and no clock: time comes from the capture.

mod conversations;
mod cursor;
mod error;
mod event;
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
mod tunnel;
mod unusable;
mod writer;

pub use conversations::Conversations;
pub use error::CaptureError;
pub use event::{Closed, Event, EventKind, Opened, Owner};
pub use link::LinkType;
pub use reader::{CaptureReader, MORE_KEYS, Mark, Packet, Record, SecretsKind};
pub use synthesis::{SyntheticTcp, SyntheticUdp};
pub use time::Timestamp;
pub use unusable::Unusable;
pub use writer::{CaptureWriter, ClassicWriter};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
