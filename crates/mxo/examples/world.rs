//! Serves a world with a door to one client: combines a [`Connection`] with a [`Replicator`] over a
//! UDP socket.
//!
//! Run it with `cargo run -p worldwire-mxo --example world`. Then run a client in another terminal:
//! `worldwire client mxo 127.0.0.1:10000`.
//!
//! The connection handles packets and acknowledgements. The replicator keeps the world and works
//! out what to send to the client. The loop below passes the output of each to the other.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_mxo::connection::{Connection, News, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::message::{MPM_ID, Movement, Operation};
use worldwire_mxo::replicator::{ClientId, Config, Replicator, Spawn};
use worldwire_mxo::schema::Objects;

/// The game object types of a door and a player.
const DOOR: u16 = 415;
const PLAYER: u16 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:10000")?;
    println!("listening on {}", socket.local_addr()?);
    // The world advances at least every 50 ms.
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let start = Instant::now();
    let config = ServerConfig::new(SystemTime::UNIX_EPOCH.elapsed()?);
    // The client uses the same key by default. A real server gets a session's key from the margin
    // server, and the seed from the operating system.
    let key = SessionKey::new(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let mut connection = Connection::server(config, Session::new(1, key, &[7; 16]), Duration::ZERO);

    let mut world = Replicator::new(Arc::new(Objects::built_in()), Config::default())?;
    world.spawn(Spawn { position: [500.0, 0.0, 0.0], ..Spawn::new(DOOR) })?;
    let (mut address, mut client, mut section) = (None, None, Vec::new());
    let mut buffer = [0; 2048];
    while !connection.is_closed() {
        if let Ok((length, from)) = socket.recv_from(&mut buffer)
            && *address.get_or_insert(from) == from
        {
            connection.input(start.elapsed(), Side::Client, Input::Datagram(&buffer[..length]));
        }
        connection.timeout(start.elapsed());
        while let Some(event) = connection.poll_event() {
            match (event, client) {
                // Anyone can send a hello with a forged address. So this event is reported only
                // after the client has acknowledged a packet; until then, `send_objects` returns an
                // error.
                (Event::News(News::Established), None) => {
                    println!("a client enters");
                    client = Some(enter(&mut world)?);
                }
                (Event::News(News::Delivered(number) | News::Late(number)), Some(client)) => {
                    world.delivered(client, number.0)?;
                }
                (Event::News(News::Lost(number)), Some(client)) => world.lost(client, number.0)?,
                (Event::News(News::Reset), Some(client)) => world.reset(client)?,
                (Event::Received(piece), Some(client)) => {
                    if let Unit::Section { id: MPM_ID, .. } = piece.unit
                        && let Err(error) = walk(&mut world, client, piece.bytes)
                    {
                        eprintln!("ignored: {error}");
                    }
                }
                (Event::Fault { error, .. }, _) => eprintln!("{error}"),
                (Event::Closed(reason), _) => println!("{reason}"),
                _ => {}
            }
        }
        world.tick(start.elapsed());
        if let Some(client) = client {
            while world.poll(client, &mut section)? {
                // If the queue is full, the section is polled again later.
                let Ok(number) = connection.sender().send_objects(&section, None) else {
                    break;
                };
                world.sent(client, number.0)?;
                section.clear();
            }
            section.clear();
        }
        while let (Some(address), Some(bytes)) = (address, connection.poll_transmit(Side::Client)) {
            socket.send_to(&bytes, address)?;
        }
    }
    Ok(())
}

/// Gives the client a character at the origin.
fn enter(world: &mut Replicator) -> Result<ClientId, Box<dyn Error>> {
    let client = world.join()?;
    let position = Some([0.0; 3]);
    let movement = Movement { position, ..Movement::default() };
    let character = world.spawn(Spawn { movement, ..Spawn::new(PLAYER) })?;
    world.possess(client, character)?;
    Ok(client)
}

/// Applies the movements that a client reports.
fn walk(world: &mut Replicator, client: ClientId, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let (section, _) = world.read(client, bytes)?;
    let movements: Vec<_> = section
        .operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Update(update) => update.movement,
            _ => None,
        })
        .collect();
    for movement in movements {
        world.follow(client, &movement)?;
    }
    Ok(())
}
