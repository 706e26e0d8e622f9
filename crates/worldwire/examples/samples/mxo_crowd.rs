//! Two clients in the small world of `worldwire serve mxo`, with the packets that the server and
//! its clients send.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::SyntheticUdp;
use worldwire_client::mxo::ClientView;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Sampler, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, News, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::SequenceNumber;
use worldwire_mxo::message::MPM_ID;
use worldwire_mxo::replicator::{ClientId, Config};
use worldwire_mxo::schema::Objects;
use worldwire_server::mxo::{OPEN_KEY, OPEN_SESSION, Scene, World};

use super::{DAY, Outcome, Tape};

/// The contents of the file that `serve mxo --secrets` writes.
const KEYS: &str = "\
[[mxo.session]]
id = 0x1
key = \"000102030405060708090a0b0c0d0e0f\"
";

const SCENE: &str = "\
[[object]]
goobj = 414
at = [300.0, 0.0, 0.0]
values = { CurrentState = 0x838 }
cycle = { property = 'CurrentState', values = [0x834, 0x838], every = 2.0 }

[[object]]
goobj = 599
at = [0.0, 0.0, 200.0]
values = { CharacterName = 'Passer-by', Health = 100 }
path = [[0.0, 0.0, 0.0], [400.0, 0.0, 0.0]]
speed = 180.0
pause = 1.0
";

const TICK: Duration = Duration::from_millis(250);
/// The number of datagrams per thousand that never arrive, in each direction.
const LOSS: u64 = 150;

/// Writes the sample and its key.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    std::fs::write(folder.join("mxo-crowd-keys.toml"), KEYS)?;
    let mut tape = Tape::new(&folder.join("mxo-crowd.pcapng"), Duration::from_micros(90))?;
    let objects = Arc::new(Objects::built_in());
    let scene = Scene::parse(SCENE, &objects)?;
    let mut world = World::new(&objects, &scene, Config::default())?;
    let mut guests = [Guest::new(&objects, 0), Guest::new(&objects, 1)];
    for tick in 1..=24_u32 {
        tape.clock = tape.clock.max(TICK * tick);
        for guest in &mut guests {
            guest.exchange(&mut world, &mut tape)?;
        }
        world.tick(tape.clock);
        for guest in &mut guests {
            guest.speak(&mut world)?;
            guest.exchange(&mut world, &mut tape)?;
        }
    }
    Ok(())
}

/// A client, the server's connection to it, and the wire between them.
struct Guest {
    ends: [Connection; 2],
    wire: SyntheticUdp,
    view: ClientView,
    client: Option<ClientId>,
    sampler: Sampler,
}

/// What a connection reports to the world or to the client.
enum Told {
    Hello(u64),
    Section(SequenceNumber, Vec<u8>),
    News(News),
}

impl Guest {
    fn new(objects: &Arc<Objects>, number: u8) -> Self {
        let epoch = Duration::from_secs(DAY.unsigned_abs());
        // Real seeds are random.
        let session = |end: u8| {
            Session::new(OPEN_SESSION, SessionKey::new(&OPEN_KEY), &[10 * number + end; 16])
        };
        let uid = u64::from(number) + 191;
        let ends = [
            Connection::client(ClientConfig::new(epoch, uid), session(1), Duration::ZERO),
            Connection::server(ServerConfig::new(epoch), session(2), Duration::ZERO),
        ];
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 20 + number), 50_300);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 10_000);
        let (wire, sampler) = (SyntheticUdp::new(client, server), Sampler::new(uid));
        Self { ends, wire, view: ClientView::new(Arc::clone(objects), uid), client: None, sampler }
    }

    /// Carries everything that is queued, except datagrams that are lost after they were captured.
    fn exchange(&mut self, world: &mut World, tape: &mut Tape) -> Outcome<()> {
        self.ends.iter_mut().for_each(|end| end.timeout(tape.clock));
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    // The hello and its replies always arrive.
                    let is_lost = bytes.first() == Some(&1) && self.sampler.below(1000) < LOSS;
                    let packet = self.wire.datagram(side, &bytes);
                    tape.capture(vec![packet])?;
                    if !is_lost {
                        let other = &mut self.ends[side.other().index()];
                        other.input(tape.clock, side, Input::Datagram(&bytes));
                    }
                }
                self.listen(side, world)?;
            }
            if quiet {
                return Ok(());
            }
        }
    }

    /// Processes the reports of one side's end.
    fn listen(&mut self, side: Side, world: &mut World) -> Outcome<()> {
        let mut told = Vec::new();
        while let Some(event) = self.ends[side.index()].poll_event() {
            told.extend(match event {
                Event::Received(piece) => match piece.unit {
                    Unit::Hello(hello) => Some(Told::Hello(hello.character_uid)),
                    Unit::Section { id: MPM_ID, number } => {
                        Some(Told::Section(number, piece.bytes.to_vec()))
                    }
                    _ => None,
                },
                Event::News(news) => Some(Told::News(news)),
                _ => None,
            });
        }
        for told in told {
            match (side, told, self.client) {
                (Side::Client, Told::Section(_, bytes), _) => self.view.receive(&bytes)?,
                (Side::Client, Told::News(news), _) => self.view.handle_news(&news),
                (Side::Server, Told::Hello(uid), None) => self.client = Some(world.enter(uid)?),
                (Side::Server, Told::Section(number, bytes), Some(client)) => {
                    world.receive(client, number, &bytes)?;
                }
                (Side::Server, Told::News(news), Some(client)) => world.news(client, &news),
                _ => {}
            }
        }
        Ok(())
    }

    fn speak(&mut self, world: &mut World) -> Outcome<()> {
        let [client, server] = &mut self.ends;
        self.view.step(client.sender())?;
        if let Some(client) = self.client {
            world.send_updates(client, None, server.sender())?;
        }
        Ok(())
    }
}
