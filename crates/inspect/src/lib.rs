//! Shows a capture in the browser: conversations, messages, a timeline, and each message's fields
//! next to its bytes.
//!
//! [`Inspector`] opens a capture and serves a page, along with the JSON API and WebSocket that the
//! page uses. It reads the capture once, in the background, and keeps a row of 32 bytes for each
//! message. Everything else is decoded from the file again when a client requests it. Instead of a
//! capture, a page can show a [`KiArchive`].
//!
//! | module | contents |
//! | --- | --- |
//! | `recording` | the reader of the capture; every pass sees the same bytes |
//! | `index`, `texts`, `indexer` | the rows, and the thread that collects them |
//! | `selection` | filters and searches, as sets of rows |
//! | `checkpoints`, `message`, `detail` | decoding of single messages on demand |
//! | `conversations`, `timeline` | summaries of rows |
//! | `suggestions` | completion of filters |
//! | `export`, `notes` | exported files, and notes stored next to the capture |
//! | `live` | the view and control of a running program, such as a proxy |
//! | `worlds` | views of a world as a whole |
//! | `guard` | access control: only clients with the token, and only the page's own requests |
//! | `page`, `api`, `events`, `server` | the page, the routes, the WebSocket, the listener |

mod api;
mod checkpoints;
mod conversations;
mod detail;
mod error;
mod events;
mod export;
mod guard;
mod index;
mod indexer;
mod live;
mod message;
mod notes;
mod page;
mod recording;
mod selection;
mod server;
mod state;
mod suggestions;
mod texts;
mod timeline;
mod worlds;

pub use error::InspectError;
pub use live::{Answering, Live, LiveRefusal};
pub use server::{Inspector, Settings};
pub use worlds::KiArchive;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
