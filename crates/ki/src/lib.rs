//! KI (Wizard101, Pirate101): the network protocol, game objects, archives, and the patch server's
//! tables.
//!
//! ```
//! use worldwire_core::Reader;
//! use worldwire_ki::frame::{Body, Frame};
//! use worldwire_ki::message::Values;
//! use worldwire_ki::schema::Protocols;
//!
//! let bytes = [0x0d, 0xf0, 0x11, 0, 0, 0, 0, 0, 7, 20, 12, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0];
//! let frame = Frame::decode(&mut Reader::new(&bytes), None)?;
//! let Body::Data(messages) = &frame.body else { panic!("not a data frame") };
//!
//! let protocols = Protocols::built_in();
//! let message = &messages[0];
//! let definition = protocols.message(message.service, message.order).expect("the definition is built in");
//! let mut values = Values::new();
//! definition.decode(&mut Reader::new(&message.payload), &mut values)?;
//! assert_eq!(protocols.name(definition), "LOGIN.MSG_USER_ADMIT_IND");
//! assert_eq!(values.fields()[1].to_text().as_deref(), Some("3"));
//! assert_eq!(frame.to_bytes()?, bytes);
//!
//! // To send a message, give its name and the fields that are not 0.
//! let fields = [("Status", 1_u32.into()), ("PositionInQueue", 3_u32.into())];
//! let composed = protocols.compose_named("LOGIN.MSG_USER_ADMIT_IND", &fields)?;
//! assert_eq!(Frame::message(composed).to_bytes()?, bytes);
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`types`] | field types |
//! | [`schema`] | message definitions: from message XML, or built in |
//! | [`message`] | DML messages, decoded and encoded according to their definitions |
//! | [`schema::classes`] | classes of game objects, from type lists |
//! | [`object`](mod@object) | ObjectProperty: game objects in binary, JSON and XML |
//! | [`control`], [`crypto_block`] | session offers, accepts and keep-alives |
//! | [`frame`](mod@frame) | framing of control and DML messages |
//! | [`connection`] | the state machine: client, server, observer, relay |
//! | [`crypt`] | the login's secrets, encrypted streams, the key file |
//! | [`file`](mod@file) | DML tables, KIWAD archives, and other client files |
//! | [`codegen`] | typed Rust from definitions |
//! | [`character`] | the fields of a character blob, readable without a type list |
//! | [`client_args`] | the command line of the graphical client |
//! | [`string_id`], [`djb2_31`], [`property_hash`], [`Dictionary`] | hashes and numbers that represent text |
//!
//! The features `file` (client files and archives) and `keys` (logins and encrypted connections) are
//! on by default. With neither, the crate needs far fewer dependencies and still decodes messages,
//! objects and unencrypted connections.
//!
//! For more, see the examples `login` (a client and a server without sockets) and `edit_object` (a
//! game object in an archive): `cargo run -p worldwire-ki --example login`.
//!
//! The protocol details come from the Kronos Grimoire and were checked against community servers,
//! community tools and public captures. Guesses are marked `Unverified:`.

pub mod character;
pub mod client_args;
pub mod codegen;
pub mod connection;
pub mod control;
pub mod crypt;
pub mod crypto_block;
#[cfg(feature = "file")]
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod message;
pub mod object;
pub mod schema;
mod settings;
mod string_id;
pub mod types;
mod xml;

pub use string_id::{
    Dictionary, LoginError, LoginErrorInt, SCHOOLS, djb2_31, property_hash, string_id,
};

/// Adds the most similar known name to an error about an unknown one.
fn suggest(
    error: worldwire_core::Error,
    near: Option<impl core::fmt::Display>,
) -> worldwire_core::Error {
    match near {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error,
    }
}

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
