//! A TERA player logs in, chats and fights. The definitions and the map needed to decode the
//! capture are also written.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::SyntheticTcp;
use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::json::{Json, json};
use worldwire_core::{Sampler, Side};
use worldwire_dissect::{Definitions, TeraDefinitions};
use worldwire_tera::connection::{Config, Connection};
use worldwire_tera::crypt::exchange::Key;
use worldwire_tera::integrity::Signer;
use worldwire_tera::message::HeaderForm;

use super::{Outcome, Tape};

/// The client's build number. No real build has this number.
const REVISION: u32 = 999_001;

/// Everything that `--data samples/tera` finds. The layouts and opcodes are generated; the names
/// are in the style that the community uses.
const FILES: [(&str, &str); 16] = [
    (
        "definitions/C_CHECK_VERSION.1.def",
        "# the same in every build\narray version\n- int32 index\n- int32 value\n",
    ),
    ("definitions/S_CHECK_VERSION.1.def", "bool ok\n"),
    ("definitions/C_LOGIN_ARBITER.1.def", "uint32 language\nstring name\nbytes ticket\n"),
    ("definitions/S_LOGIN_ARBITER.1.def", "bool success\nuint32 status\n"),
    ("definitions/S_LOGIN_ACCOUNT_INFO.1.def", "uint64 accountId\nuint32 integrityIv\n"),
    ("definitions/C_CHAT.1.def", "uint32 channel\nstring message\n"),
    (
        "definitions/S_CHAT.1.def",
        "uint32 channel\nuint64 gameId\nstring authorName\nstring message\n",
    ),
    (
        "definitions/S_CHAT.2.def",
        "# majorPatchVersion >= 90\n\
         uint32 channel\nuint64 gameId\nbool isWorldEventTarget\nbool gm\nstring authorName\n\
         string message\n",
    ),
    (
        "definitions/C_START_SKILL.1.def",
        "skillid skill\nangle w\nvec3 loc\nvec3 dest\nbool moving\n",
    ),
    (
        "definitions/S_SPAWN_USER.1.def",
        "uint64 gameId\nvec3 loc\nangle w\ncustomize appearance\nbool alive\nstring name\n\
         string guildName\narray equipment\n- int32 slot\n- int32 id\n- array<int32> crystals\n",
    ),
    (
        "definitions/S_PARTY_MEMBER_LIST.1.def",
        "bool raid\nuint32 leaderPlayerId\narray members\n- uint32 serverId\n- uint32 playerId\n\
         - int32 level\n- bool online\n- string name\n",
    ),
    ("definitions/S_SYSTEM_MESSAGE.1.def", "string message\n"),
    (
        "map/protocol.999001.map",
        "# Made by this project: no build of the game has these numbers.\n\
         C_CHECK_VERSION = 19900\nS_CHECK_VERSION = 19901\nC_LOGIN_ARBITER = 24510\n\
         S_LOGIN_ARBITER = 61022\nS_LOGIN_ACCOUNT_INFO = 30112\nC_CHAT = 40801\nS_CHAT = 22087\n\
         C_START_SKILL = 57394\nS_SPAWN_USER = 35760\nS_SYSTEM_MESSAGE = 47219\n\
         S_WEATHER_INFO = 60211\n",
    ),
    ("map/sysmsg.98.map", "SMT_MADE_UP_WELCOME = 0\nSMT_MADE_UP_TOO_FAR = 1\n"),
    ("revisions.json", "{\n    \"999001\": \"eu-98.02\"\n}\n"),
    ("integrity/98.json", "[\n    \"C_START_SKILL\"\n]\n"),
];

/// Writes the TERA samples.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    let home = folder.join("tera");
    let mut definitions = Definitions::built_in();
    for (name, text) in FILES {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        std::fs::write(path, text)?;
    }
    let said = definitions.add(FILES).ok_or("definitions")?;
    assert!(said.is_empty(), "{said:?}");
    let mut stage = Stage::new(&folder.join("tera-login.pcapng"), definitions)?;
    stage.log_in()?;
    stage.play()?;
    let packets = stage.wire.close();
    stage.tape.capture(packets)
}

/// Both ends, the wire between them, and the capture of its packets.
struct Stage {
    tape: Tape,
    definitions: Definitions,
    ends: [Connection; 2],
    wire: SyntheticTcp,
    signer: Signer,
}

impl Stage {
    fn new(path: &Path, definitions: Definitions) -> Outcome<Self> {
        let mut tape = Tape::new(path, Duration::from_micros(650))?;
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), 50_123);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 7801);
        let mut wire = SyntheticTcp::new(client, server);
        tape.capture(wire.open())?;
        let mut random = Sampler::new(9_900);
        let mut keys = || -> Outcome<[Key; 2]> {
            let mut key = || random.bytes(128).try_into().map_err(|_| "128 bytes");
            Ok([key()?, key()?])
        };
        let config = Arc::new(Config::default());
        let ends = [
            Connection::client(Arc::clone(&config), keys()?, Duration::ZERO),
            Connection::server(config, keys()?, Duration::ZERO),
        ];
        let signer = Signer::new(Some(0x0051_7a11));
        let mut stage = Self { tape, definitions, ends, wire, signer };
        stage.exchange()?;
        Ok(stage)
    }

    /// Delivers queued bytes to the other end until none are left. Bytes queued together travel
    /// together.
    fn exchange(&mut self) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in [Side::Server, Side::Client] {
                let mut bytes = Vec::new();
                while let Some(more) = self.ends[side.index()].poll_transmit(side.other()) {
                    bytes.extend_from_slice(&more);
                }
                if bytes.is_empty() {
                    continue;
                }
                quiet = false;
                let packets = self.wire.data(side, &bytes);
                self.tape.capture(packets)?;
                let other = &mut self.ends[side.other().index()];
                other.input(self.tape.clock, side, Input::Bytes(&bytes));
                while other.poll_event().is_some() {}
            }
            if quiet {
                return Ok(());
            }
        }
    }

    /// Queues a message.
    fn queue(&mut self, from: Side, opcode: &Json, fields: &Json) -> Outcome<()> {
        let packets = self.definitions.part::<TeraDefinitions>().packets(Some(REVISION));
        let message = json!({ "opcode": opcode, "fields": fields });
        let mut bytes = packets.encode_json(&message)?;
        let form = opcode
            .as_str()
            .and_then(|name| packets.get(packets.opcode(name)?))
            .map(|packet| packet.form);
        if form == Some(HeaderForm::Integrity) {
            assert!(self.signer.sign(&mut bytes));
        }
        Ok(self.ends[from.index()].send(&bytes)?)
    }

    fn say(&mut self, from: Side, name: &str, fields: &Json) -> Outcome<()> {
        self.queue(from, &json!(name), fields)?;
        self.exchange()
    }

    fn log_in(&mut self) -> Outcome<()> {
        let versions = json!({ "version": [
            { "index": 0, "value": REVISION }, { "index": 1, "value": REVISION },
        ] });
        self.queue(Side::Client, &json!("C_CHECK_VERSION"), &versions)?;
        let ticket = json!({ "$hex": "61206d6164652d7570207469636b6574" });
        let arbiter = json!({ "name": "Elin", "ticket": ticket, "language": 2 });
        self.say(Side::Client, "C_LOGIN_ARBITER", &arbiter)?;
        self.say(Side::Server, "S_CHECK_VERSION", &json!({ "ok": true }))?;
        self.queue(
            Side::Server,
            &json!("S_LOGIN_ARBITER"),
            &json!({ "success": true, "status": 65_538 }),
        )?;
        let account = json!({ "accountId": 4_711, "integrityIv": 0x0051_7a11 });
        self.say(Side::Server, "S_LOGIN_ACCOUNT_INFO", &account)
    }

    fn play(&mut self) -> Outcome<()> {
        let welcome = json!({ "message": "@0\u{b}user\u{b}Elin\u{b}world\u{b}Velika" });
        self.queue(Side::Server, &json!("S_SYSTEM_MESSAGE"), &welcome)?;
        self.say(
            Side::Server,
            "S_SPAWN_USER",
            &json!({
                "name": "Baraka", "guildName": "Wächter", "gameId": 1_152_921_504_606_846_977_u64,
                "loc": { "x": 12_345.5, "y": -6_789.25, "z": 512.0 },
                "w": -std::f64::consts::FRAC_PI_2,
                "appearance": { "unk": 101, "skinColor": 4, "hairStyle": 12, "voice": 3 },
                "alive": true,
                "equipment": [
                    { "slot": 1, "id": 88_725, "crystals": [8_371, 8_372] },
                    { "slot": 3, "id": 88_726 },
                ],
            }),
        )?;
        self.say(Side::Client, "C_CHAT", &json!({ "message": "Hello!", "channel": 0 }))?;
        let chat = json!({ "authorName": "Elin", "message": "Hello!", "gameId": 77, "gm": false });
        self.say(Side::Server, "S_CHAT", &chat)?;
        for step in 0..2 {
            let skill = json!({
                "skill": "A1101", "w": 0.5, "moving": step == 1,
                "loc": { "x": 12_340.0 + f64::from(step), "y": -6_780.0, "z": 512.0 },
            });
            self.say(Side::Client, "C_START_SKILL", &skill)?;
        }
        // An opcode that the map does not contain but that can be identified.
        for count in 1..=3 {
            let member = |index: u32| {
                let name = ["Elin", "Baraka", "Popori"][index as usize];
                json!({ "name": name, "serverId": 2_800, "playerId": 1_000 + index,
                        "level": 65 + index, "online": index != 1 })
            };
            let members: Vec<Json> = (0..count).map(member).collect();
            let list = json!({ "members": members, "leaderPlayerId": 1_000 });
            self.unnamed(51_042, "S_PARTY_MEMBER_LIST", &list)?;
        }
        // A name without a definition.
        let opcode = 60_211_u16;
        let mut weather = vec![8, 0];
        weather.extend_from_slice(&opcode.to_le_bytes());
        weather.extend_from_slice(&[3, 0, 0, 0]);
        self.ends[1].send(&weather)?;
        self.exchange()
    }

    /// Sends a message with an opcode that no map contains.
    fn unnamed(&mut self, opcode: u16, name: &str, fields: &Json) -> Outcome<()> {
        let packets = self.definitions.part::<TeraDefinitions>().packets(Some(REVISION));
        let definition = packets.versions(name).last().ok_or("no such definition")?;
        let mut bytes = Vec::new();
        definition.plan().encode_json(
            opcode,
            HeaderForm::Plain,
            fields,
            worldwire_tera::message::Leniency::Strict,
            &mut bytes,
        )?;
        self.ends[1].send(&bytes)?;
        self.exchange()
    }
}
