//! Uru (Myst Online: Uru Live): the transport protocol of its gatekeeper, auth, file and game
//! servers, and the data formats that go over it.
//!
//! ```
//! use worldwire_core::{Reader, Side};
//! use worldwire_uru::frame::{Message, Service};
//! use worldwire_uru::message::auth;
//! use worldwire_uru::types::TransId;
//!
//! let bytes = [6, 0, 1, 0, 0, 0, 0xce, 0x27, 0, 0];
//! let message = Message::decode(Service::Auth, Side::Client, &mut Reader::new(&bytes))?;
//! let choose = auth::client::AcctSetPlayerRequest { trans_id: TransId(1), player_id: 10_190 };
//! assert_eq!(message, auth::client::ClientMessage::from(choose).into());
//! assert_eq!(message.to_bytes()?, bytes);
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`types`] | UUIDs, addresses, strings, results, Plasma's common types |
//! | [`connect`] | what precedes all messages: connect packet, key exchange |
//! | [`frame`] | framing |
//! | [`message`] | all messages, each declared once |
//! | [`vault`] | the nodes of the vault |
//! | [`net_message`] | what `PropagateBuffer` carries, and changes to what is forwarded |
//! | [`plasma_message`] | what objects say to each other, inside net messages |
//! | [`walk`], [`safety`] | going through messages; what a server must not forward |
//! | [`inflate`] | deflated data inside messages |
//! | [`schema`] | SDL: the descriptors of states |
//! | [`sdl`] | SDL: states as blobs, and how updates change them |
//! | [`age`] | the state machine of an age that a game server runs |
//! | [`connection`] | the state machine: client, server, observer, relay |
//! | [`crypt`] | key agreement, RC4, login hashes; for compatibility only |
//! | [`file`](mod@file) | age files, key files, encrypted files, manifests |
//!
//! The facts come from the network protocol documentation of the Uru community and were checked
//! against the H'uru client and the dirtsand, moulars and NAGUS servers. Guesses are marked
//! `Unverified:`.

pub mod age;
pub mod connect;
pub mod connection;
pub mod crypt;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod inflate;
pub mod message;
pub mod net_message;
pub mod plasma_message;
pub mod safety;
pub mod schema;
pub mod sdl;
pub mod types;
pub mod vault;
pub mod walk;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
