//! Uru (Myst Online: Uru Live): the protocol of its gatekeeper, auth, file and game servers, and
//! the data formats it carries.
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
//! | module | contents |
//! | --- | --- |
//! | [`types`] | UUIDs, addresses, strings, results, Plasma's common types |
//! | [`connect`] | packets before the first message: connect packet, key exchange |
//! | [`message`] | all messages, each declared once |
//! | [`vault`] | vault nodes |
//! | [`net_message`] | the contents of `PropagateBuffer`, and patches for forwarding |
//! | [`plasma_message`] | messages between game objects, inside net messages |
//! | [`walk`], [`safety`] | traversing messages; detecting those that a server must not forward |
//! | [`inflate`] | compressed data inside messages |
//! | [`schema`] | SDL descriptors |
//! | [`sdl`] | SDL states: encoding, and how updates change them |
//! | [`age`] | the state machine of an age on a game server |
//! | [`games`] | the game manager: messages of its games, and the state machine that runs them |
//! | [`connection`] | the connection state machine: client, server, observer, relay |
//! | [`file`](mod@file) | age files, key files, encrypted files, manifests |
//! | [`codegen`] | typed Python for the messages |
//!
//! The features `keys` (key generation), `login` (what clients send instead of a password), `simd`
//! (faster decryption of captured logins) and `toml` (key files in worldwire's own format) are on by
//! default. Without them, the crate still decrypts and decodes everything and runs all state machines.
//!
//! The example `register` connects a client to a server over an encrypted connection without using
//! sockets: `cargo run -p worldwire-uru --example register`.
//!
//! The protocol details come from the Uru community's protocol documentation and were checked
//! against the H'uru client and the dirtsand, moulars and NAGUS servers. Guesses are marked
//! `Unverified:`.

pub mod age;
pub mod codegen;
pub mod connect;
pub mod connection;
pub mod crypt;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod games;
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
