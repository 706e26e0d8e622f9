//! Totals over whole captures, as `worldwire stats` prints them: messages by name, messages over
//! time, and reply times.
//!
//! The memory is bounded, whatever the capture contains: [`Totals`] counts at most [`MAX_NAMES`]
//! names separately, [`Rates`] lengthens its intervals, [`Histogram`] has a fixed number of buckets,
//! and [`Replies`] forgets the oldest requests.
//!
//! ```
//! use worldwire_capture::{CaptureReader, Record};
//! use worldwire_core::Limits;
//! use worldwire_dissect::stats::{Counted, Totals};
//! use worldwire_dissect::{Dissection, Item, Options, Scratch};
//!
//! let file = include_bytes!("../../../../samples/tera-login.pcapng");
//! let mut capture = CaptureReader::new(&file[..], &Limits::DEFAULT)?;
//! let mut dissection = Dissection::new(Options::default());
//! while let Some(record) = capture.next()? {
//!     if let Record::Packet(packet) = record {
//!         dissection.push(&packet);
//!     }
//! }
//! dissection.end();
//! let count = |item: &Item<'_>, scratch: &mut Scratch, counted: &mut Vec<Counted>| {
//!     counted.extend(Counted::of(item, &scratch.name));
//! };
//! let mut counted = Vec::new();
//! dissection.run(&count, &mut counted, |_| ());
//!
//! let mut totals = Totals::new(None, false);
//! counted.iter().for_each(|item| totals.add(item));
//! for overview in dissection.overviews() {
//!     totals.add_conversation(overview);
//! }
//! assert_eq!(totals.families["tera"], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod histogram;
mod json;
mod rates;
mod replies;
mod totals;

pub use histogram::Histogram;
pub use rates::Rates;
pub use replies::Replies;
pub use totals::{Amount, Counted, MAX_NAMES, NameRow, Totals};
