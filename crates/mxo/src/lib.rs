//! MxO (The Matrix Online): distributed objects, and the connections that carry them.
//!
//! ```
//! use worldwire_core::{Reader, Side};
//! use worldwire_mxo::crypt::SessionKey;
//! use worldwire_mxo::frame::{Datagram, Packet, RpcList, RpcMessage, Section, SequenceWord};
//!
//! let key = SessionKey::new(&[7; 16]);
//! let chat = RpcMessage::new(0x28, b"hello");
//! let packet = Packet {
//!     sections: vec![Section::Rpc(vec![RpcList { first: 0, messages: vec![chat] }])],
//!     ..Packet::new(1_248_965_312, SequenceWord::default())
//! };
//! // A server chooses a random initialisation vector for every datagram.
//! let wire = key.seal_datagram(&[1; 16], &packet.to_bytes()?);
//!
//! let datagram = Datagram::decode(&mut Reader::new(&wire))?;
//! let Datagram::Sealed(sealed) = datagram else { panic!("not encrypted") };
//! let plain = key.open(&sealed.iv, &sealed.cipher)?;
//! let opened = Packet::decode(&mut Reader::new(&plain), Some(Side::Client))?;
//! assert_eq!(opened, packet);
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`types`] | property types |
//! | [`schema`] | tables of game objects and their properties |
//! | [`message`] | object sections: creates, deletes and updates of views |
//! | [`replica`] | a client's views, kept up to date by sections |
//! | [`replicator`] | a server's world, and the views that many clients have of it |
//! | [`frame`](mod@frame) | datagrams of the game channel, and the framing of auth and margin |
//! | [`rpc`] | the contents of RPC messages |
//! | [`login`] | the messages of auth and margin, and both ends of a login |
//! | [`crypt`] | Twofish for datagrams, margin messages and the hello; RSA for logins; the key file |
//! | [`file`](mod@file) | `pubkey.dat`, and files with private keys |
//! | [`connection`] | the state machine: client, server, observer, relay |
//! | [`codegen`] | typed Python for the messages |
//!
//! The feature `login` (login clients and servers, with RSA) is on by default. Without it, the
//! crate needs less than half the dependencies and still encodes and decodes all messages.
//!
//! The example `world` combines a [`connection`] with a [`replicator`] and serves a world to one
//! client: `cargo run -p worldwire-mxo --example world`.
//!
//! The protocol details come from packets recorded on the live service and from emulators that the
//! game's client accepts. Guesses are marked `Unverified:`.

pub mod codegen;
pub mod connection;
pub mod crypt;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod login;
pub mod message;
mod offset;
pub mod replica;
pub mod replicator;
pub mod rpc;
pub mod schema;
pub mod types;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
