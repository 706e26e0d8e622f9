//! A player of The Matrix Online enters the world: the game channel.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use worldwire_capture::SyntheticUdp;
use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::{Float, Side, Writer};
use worldwire_mxo::connection::{ClientConfig, Connection, ServerConfig, Session};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::message::{
    Create, Delete, Movement, OWN_VIEW, Operation, PendingUpdate, Properties, SectionWriter, Update,
};
use worldwire_mxo::rpc::{
    Attribute, Chat, ChatMessage, ChatScope, ClientRpc, FloatPoint, LoadWorld, ReadyForSpawn,
    RegionLoaded, ServerRpc,
};
use worldwire_mxo::schema::{ClassId, Objects, Order};
use worldwire_mxo::types::Str;

use super::{DAY, Outcome, Tape};

const KEYS: &str = "\
# The session of the sample.
[[mxo.session]]
id = 0x1f2e3d4c
key = \"000102030405060708090a0b0c0d0e0f\"
";

/// The contents of the key file.
const SESSION: (u32, [u8; 16]) =
    (0x1f2e_3d4c, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

/// Goobjs that are built in: the player, an NPC, a door.
const PLAYER: u16 = 12;
const NPC: u16 = 599;
const DOOR: u16 = 414;
/// The views of the NPC and the door.
const NPC_VIEW: u16 = 4;
const DOOR_VIEW: u16 = 3;

/// Writes the MxO samples.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    std::fs::write(folder.join("mxo-keys.toml"), KEYS)?;
    let tape = Tape::new(&folder.join("mxo-world.pcapng"), Duration::from_micros(380))?;
    let mut stage = Stage::new(tape);
    stage.enter()?;
    stage.play()
}

/// Both ends, the wire between them, and the capture of its packets.
struct Stage {
    tape: Tape,
    ends: [Connection; 2],
    wire: SyntheticUdp,
    objects: Objects,
}

impl Stage {
    fn new(tape: Tape) -> Self {
        let epoch = Duration::from_secs(DAY.unsigned_abs());
        let (id, key) = SESSION;
        // Real seeds are random.
        let session = |seed| Session::new(id, SessionKey::new(&key), &[seed; 16]);
        let ends = [
            Connection::client(ClientConfig::new(epoch, 191), session(1), tape.clock),
            Connection::server(ServerConfig::new(epoch), session(2), tape.clock),
        ];
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), 50_210);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 10_000);
        let wire = SyntheticUdp::new(client, server);
        Self { tape, ends, wire, objects: Objects::built_in() }
    }

    /// Carries everything that is queued to the other end until both queues are empty.
    fn exchange(&mut self) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    let packet = self.wire.datagram(side, &bytes);
                    self.tape.capture(vec![packet])?;
                    let other = &mut self.ends[side.other().index()];
                    other.input(self.tape.clock, side, Input::Datagram(&bytes));
                    while other.poll_event().is_some() {}
                }
            }
            if quiet {
                return Ok(());
            }
        }
    }

    /// Lets time pass and sends acknowledgements and pings that are due.
    fn wait(&mut self, time: Duration) -> Outcome<()> {
        let end = self.tape.clock + time;
        self.exchange()?;
        loop {
            let due = self.ends.iter().filter_map(|end| end.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.tape.clock = self.tape.clock.max(due);
            for end in &mut self.ends {
                end.timeout(self.tape.clock);
            }
            self.exchange()?;
        }
        self.tape.clock = self.tape.clock.max(end);
        Ok(())
    }

    fn say_as_client<'m>(&mut self, message: impl Into<ClientRpc<'m>>) -> Outcome<()> {
        self.ends[Side::Client.index()].send(&message.into().encode()?)?;
        Ok(())
    }

    fn say_as_server<'m>(&mut self, message: impl Into<ServerRpc<'m>>) -> Outcome<()> {
        self.ends[Side::Server.index()].send(&message.into().encode()?)?;
        Ok(())
    }

    fn show(
        &mut self,
        from: Side,
        operations: &[Operation<'_>],
        time: Option<Float>,
    ) -> Outcome<()> {
        let mut writer = Writer::new();
        let mut section = SectionWriter::begin(&self.objects, from, &mut writer);
        for operation in operations {
            section.operation(operation)?;
        }
        section.end();
        self.ends[from.index()].sender().send_objects(writer.as_bytes(), time)?;
        Ok(())
    }

    fn class(&self, goid: u16) -> Outcome<ClassId> {
        Ok(self.objects.class_of(goid).ok_or("no such goobj")?.0)
    }

    /// The properties in a create, given by name.
    fn created(&self, goid: u16, values: &[(&str, Vec<u8>)]) -> Outcome<Properties<'static>> {
        let (_, class) = self.objects.class_of(goid).ok_or("no such goobj")?;
        named(class.create(), values)
    }

    /// The properties in an update, given by name.
    fn updated(
        &self,
        goid: u16,
        view: u16,
        values: &[(&str, Vec<u8>)],
    ) -> Outcome<Properties<'static>> {
        let (_, class) = self.objects.class_of(goid).ok_or("no such goobj")?;
        named(class.updates().order(view).ok_or("it has no updates")?, values)
    }

    /// The client sends its hello and is shown the world and its own character.
    fn enter(&mut self) -> Outcome<()> {
        self.exchange()?;
        self.wait(Duration::from_millis(20))?;
        self.say_as_server(LoadWorld {
            district: 1,
            sim_time: Float(602_219.8),
            unknown1: 1,
            path: Str::new("resource/worlds/final_world/made_up.metr")?,
            sky: Str::new("Massive")?,
        })?;
        self.say_as_server(Attribute { attribute: 0x4e, value: 2, unknown1: [8, 2] })?;
        let place = position([1713.5, 495.0, 2386.25]);
        let values = [
            ("RealFirstName", text("Merle")),
            ("RealLastName", text("Ambrose")),
            ("Position", place),
        ];
        let mut player = Create::dynamic(PLAYER, self.class(PLAYER)?, 0x2f, OWN_VIEW);
        player = player.with(self.created(PLAYER, &values)?);
        self.show(Side::Server, &[Operation::Create(player)], Some(Float(602_219.8)))?;
        self.wait(Duration::from_millis(200))?;
        self.say_as_client(ReadyForSpawn {})?;
        let position = FloatPoint { x: Float(33_000.0), y: Float(-590.0), z: Float(47_000.0) };
        self.say_as_client(RegionLoaded { object: 0x0500_0007, position })?;
        self.wait(Duration::from_millis(200))
    }

    /// Objects come and go, and the player walks.
    fn play(&mut self) -> Outcome<()> {
        let door = self.created(
            DOOR,
            &[
                ("Position", position([1800.0, 495.0, 2400.0])),
                ("CurrentState", 0x838_u32.to_le_bytes().to_vec()),
            ],
        )?;
        let door =
            Create::of_world(DOOR, 0x34f0_089a, self.class(DOOR)?, 0xf8, DOOR_VIEW).with(door);
        let npc = self.created(NPC, &[("Position", position([1750.0, 495.0, 2390.0]))])?;
        let npc = Create::dynamic(NPC, self.class(NPC)?, 0x98, NPC_VIEW).with(npc);
        let opened =
            self.updated(DOOR, DOOR_VIEW, &[("CurrentState", 0x834_u32.to_le_bytes().to_vec())])?;
        let opened = Update::of(DOOR_VIEW, self.class(DOOR)?, opened);
        let pending = PendingUpdate::wrap(&opened, &self.objects)?;
        let burst =
            [Operation::Create(door), Operation::Create(npc), Operation::PendingUpdate(pending)];
        self.show(Side::Server, &burst, None)?;
        self.wait(Duration::from_millis(300))?;
        for step in 0..4_u8 {
            let at = 1713.5 + f32::from(step) * 40.0;
            let movement = Movement {
                action: Some(2),
                yaw: Some(64 + step),
                position: Some([at, 495.0, 2386.25]),
                ..Movement::default()
            };
            let class = self.class(PLAYER)?;
            let walk = Update {
                view: OWN_VIEW,
                class,
                guess: false,
                block1: None,
                movement: Some(movement),
                properties: None,
            };
            self.show(Side::Client, &[Operation::Update(walk)], None)?;
            self.wait(Duration::from_millis(150))?;
        }
        let text = Str::new("hello there")?;
        let said = Chat { scope: ChatScope::Area, reserved: 0, text: text.clone() };
        self.say_as_client(said)?;
        let heard = ChatMessage {
            scope: ChatScope::Area,
            character_id: 191,
            handle: Some(Str::new("Merle")?),
            ..ChatMessage::system(text)
        };
        self.say_as_server(heard)?;
        let closed =
            self.updated(DOOR, DOOR_VIEW, &[("CurrentState", 0x838_u32.to_le_bytes().to_vec())])?;
        let closed = Update::of(DOOR_VIEW, self.class(DOOR)?, closed);
        self.show(Side::Server, &[Operation::Update(closed)], Some(Float(602_221.5)))?;
        self.wait(Duration::from_millis(200))?;
        self.show(Side::Server, &[Operation::Delete(Delete::of(vec![NPC_VIEW]))], None)?;
        // Silence, during which the client checks whether the server is alive.
        self.wait(Duration::from_secs(12))
    }
}

fn named(order: &Order, values: &[(&str, Vec<u8>)]) -> Outcome<Properties<'static>> {
    let mut properties = Properties::new();
    for (name, bytes) in values {
        let index = order.index_of(name).ok_or_else(|| format!("no property {name}"))?;
        properties.set(u16::try_from(index)?, bytes.clone());
    }
    Ok(properties)
}

fn position(place: [f64; 3]) -> Vec<u8> {
    place.into_iter().flat_map(f64::to_le_bytes).collect()
}

/// Text of 32 bytes, padded with zeros.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(32, 0);
    bytes
}
