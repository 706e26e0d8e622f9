//! A client registers with an auth server over an encrypted connection, in memory.
//!
//! Run it with `cargo run -p worldwire-uru --example register`.
//!
//! A [`Connection`] does no I/O: feed it what a socket receives, and send what it asks you to
//! transmit. With two connections and no sockets, each one's output is the other's input.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_uru::connect::BUILD_ID;
use worldwire_uru::connection::{ClientConfig, Connection, News, ServerConfig};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client::{ClientMessage, ClientRegisterRequest};
use worldwire_uru::message::auth::server::{ClientRegisterReply, ServerMessage};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Handles everything that the server has received.
fn run_server(server: &mut Connection) -> Outcome {
    while let Some((event, sender)) = server.poll() {
        match event {
            Event::News(News::Established { service, encrypted }) => {
                println!("server: {} connection, encrypted: {encrypted}", service.name());
            }
            // Connection setup is reported as well, but only messages matter here.
            Event::Received(received) => {
                if let Some(Message::AuthClient(message)) = received.message() {
                    println!("server: received {message:?}");
                    if let ClientMessage::ClientRegisterRequest(_) = message {
                        // A real server draws a random number for every connection.
                        let reply = ClientRegisterReply { server_challenge: 483_309_697 };
                        sender.send(&ServerMessage::from(reply).into())?;
                    }
                }
            }
            Event::Fault { error, .. } => println!("server: {error}"),
            Event::Closed(reason) => println!("server: {reason}"),
            _ => {}
        }
    }
    Ok(())
}

/// Handles everything that the client has received.
fn run_client(client: &mut Connection) -> Outcome {
    while let Some((event, sender)) = client.poll() {
        match event {
            Event::News(News::Established { .. }) => {
                let request = ClientRegisterRequest { build_id: BUILD_ID };
                sender.send(&ClientMessage::from(request).into())?;
            }
            Event::Received(received) => {
                if let Some(Message::AuthServer(message)) = received.message() {
                    println!("client: received {message:?}");
                    if let ServerMessage::ClientRegisterReply(_) = message {
                        // `crypt::login::login_fields` computes the next request from this reply.
                        sender.close();
                    }
                }
            }
            Event::Fault { error, .. } => println!("client: {error}"),
            Event::Closed(reason) => println!("client: {reason}"),
            _ => {}
        }
    }
    Ok(())
}

fn main() -> Outcome {
    // Servers keep the private key; clients have the public one in their `server.ini`. The seed is
    // fixed here so that every run prints the same. Use the operating system's random numbers.
    let mut random = ChaCha20Rng::from_seed([7; 32]);
    let key = PrivateKey::generate(ServerKind::Auth, PrimeKind::Plain, &mut random);
    let public = key.public().clone();
    let mut keys = KeyRing::new();
    keys.insert_private(key);

    // Time comes from any clock that the program uses, as a duration since an arbitrary moment.
    let now = Duration::ZERO;
    let mut server = Connection::server(ServerConfig::new(keys).into(), [1; 7], now);
    let config = ClientConfig::new(Service::Auth, Some(public));
    let mut client = Connection::client(config.into(), [2; 64], now)?;

    while !client.is_closed() {
        while let Some(bytes) = client.poll_transmit(Side::Server) {
            println!("client -> server: {} bytes", bytes.len());
            server.input(now, Side::Client, Input::Bytes(&bytes));
        }
        run_server(&mut server)?;
        while let Some(bytes) = server.poll_transmit(Side::Client) {
            println!("server -> client: {} bytes", bytes.len());
            client.input(now, Side::Server, Input::Bytes(&bytes));
        }
        run_client(&mut client)?;
    }
    server.input(now, Side::Client, Input::End);
    run_server(&mut server)
}
