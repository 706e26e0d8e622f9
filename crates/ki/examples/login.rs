//! A client logs in to a Wizard101 login server, in memory.
//!
//! Run it with `cargo run -p worldwire-ki --example login`.
//!
//! A [`Connection`] does no I/O: feed it what a socket receives, and send what it asks you to
//! transmit. With two connections and no sockets, each one's output is the other's input.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_ki::LoginError;
use worldwire_ki::connection::{
    ClientConfig, Connection, News, Received, ServerConfig, SessionIds, Unit,
};
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, apply_rec1, ck2, password_hash};
use worldwire_ki::message::{Fields, Put, RawMessage};
use worldwire_ki::schema::Protocols;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The number of the protocol `LOGIN`, to which all messages in this example belong.
const LOGIN: u8 = 7;
const NAME: &str = "merle";
const PASSWORD: &str = "secret";

/// The fields of a message by name; returns `None` for anything but a message that matches its
/// definition.
fn fields<'m>(protocols: &'m Protocols, received: &Received<'m>) -> Option<Fields<'m>> {
    // Session offers, session accepts and keep-alives are reported as well.
    let Unit::Message { service, order } = received.unit else { return None };
    // Senders of earlier revisions leave out later fields. Only the first field is required.
    Fields::read(protocols.message(service, order)?, received.payload(), 1)
}

/// Replies to everything that the server has received.
fn run_server(server: &mut Connection, protocols: &Protocols) -> Outcome {
    while let Some((event, sender)) = server.poll() {
        match event {
            Event::News(News::Established { session_id, .. }) => {
                println!("server: session {session_id} is accepted");
            }
            Event::Received(received) => {
                let Some(fields) = fields(protocols, &received) else { continue };
                println!("server: received {}", fields.tag());
                // The salt is the session's ID and time, on which all proofs depend.
                if let ("MSG_USER_AUTHEN_V3", Some(salt)) = (fields.tag(), received.salt) {
                    sender.send(&check_login(protocols, &fields, salt)?)?;
                }
            }
            Event::Fault { error, .. } => println!("server: {error}"),
            Event::Closed(reason) => println!("server: {reason}"),
            _ => {}
        }
    }
    Ok(())
}

/// Checks the proof of a login and builds the reply.
fn check_login(
    protocols: &Protocols,
    fields: &Fields<'_>,
    salt: Salt,
) -> Outcome<RawMessage<'static>> {
    let rec1 = Rec1::open(&fields.bytes("Rec1"), salt)?;
    let is_proven = rec1.proves(&password_hash(PASSWORD), salt) && rec1.username == NAME;
    let answer = if is_proven {
        // With this secret, the client proves on its next connection that it has logged in. A real
        // server draws it at random for every login.
        let mut secret = ck2(&[7; 64]).as_str().as_bytes().to_vec();
        apply_rec1(salt, &mut secret);
        vec![("UserID", Put::Number(1001)), ("Rec1", Put::Bytes(secret))]
    } else {
        vec![("Error", Put::Number(LoginError::AuthenFailed.0.into()))]
    };
    // Fields that are left out have their defaults: 0 or empty.
    Ok(protocols.compose(LOGIN, "MSG_USER_AUTHEN_RSP", &answer)?)
}

/// Replies to everything that the client has received.
fn run_client(client: &mut Connection, protocols: &Protocols) -> Outcome {
    while let Some((event, sender)) = client.poll() {
        match event {
            Event::News(News::Established { session_id, .. }) => {
                println!("client: session {session_id} is offered and accepted");
                let salt = sender.salt().ok_or("a session without an offer")?;
                let rec1 = Rec1::new(NAME, &password_hash(PASSWORD), salt).seal(salt);
                let login = [("Rec1", Put::Bytes(rec1)), ("Locale", Put::text("English"))];
                sender.send(&protocols.compose(LOGIN, "MSG_USER_AUTHEN_V3", &login)?)?;
            }
            Event::Received(received) => {
                let Some(fields) = fields(protocols, &received) else { continue };
                match LoginError(fields.word("Error")) {
                    LoginError::Success => {
                        println!("client: logged in as user {}", fields.number("UserID"));
                    }
                    error => println!("client: refused: {error}"),
                }
                sender.close();
            }
            Event::Fault { error, .. } => println!("client: {error}"),
            Event::Closed(reason) => println!("client: {reason}"),
            _ => {}
        }
    }
    Ok(())
}

fn main() -> Outcome {
    // The messages of a login are built in. `Protocols` reads all others from the game's XML.
    let protocols = Protocols::built_in();
    // A connection's clock can start at any moment; the configuration gives the time of that
    // moment, relative to 1970.
    let (now, epoch) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
    let id = SessionIds::new().allocate()?;
    let mut server = Connection::server(ServerConfig::new(epoch).into(), id, now);
    let mut client = Connection::client(ClientConfig::new(epoch).into(), now);

    while !client.is_closed() {
        while let Some(bytes) = server.poll_transmit(Side::Client) {
            client.input(now, Side::Server, Input::Bytes(&bytes));
        }
        run_client(&mut client, &protocols)?;
        while let Some(bytes) = client.poll_transmit(Side::Server) {
            server.input(now, Side::Client, Input::Bytes(&bytes));
        }
        run_server(&mut server, &protocols)?;
    }
    server.input(now, Side::Client, Input::End);
    run_server(&mut server, &protocols)
}
