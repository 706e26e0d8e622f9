//! A player of Wizard101 logs in: patch client, graphical client, game.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::SyntheticTcp;
use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::json::{Json, json};
use worldwire_core::{Sampler, Side};
use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig, SessionIds};
use worldwire_ki::crypt::login::{Rec1, Secret, apply_rec1, ck2, password_hash, pk3};
use worldwire_ki::file::table::TableFile;
use worldwire_ki::message::RawMessage;
use worldwire_ki::schema::{Mode, Protocols};

use super::{DAY, Outcome, Tape, ki_objects};

/// Messages that do not exist in any game, so that `--data` has something to add.
const MADE_UP: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by this project. -->
<MadeUpMessages>
  <_ProtocolInfo>
    <RECORD>
      <ServiceID TYPE="UBYT">200</ServiceID>
      <ProtocolType TYPE="STR">MADEUP</ProtocolType>
      <ProtocolVersion TYPE="INT">1</ProtocolVersion>
      <ProtocolDescription TYPE="STR">Messages that no game has</ProtocolDescription>
    </RECORD>
  </_ProtocolInfo>
  <MSG_WEATHER>
    <RECORD>
      <_MsgName TYPE="STR" NOXFER="TRUE">MSG_WEATHER</_MsgName>
      <_MsgDescription TYPE="STR" NOXFER="TRUE">Tells everybody in a zone what the sky does.</_MsgDescription>
      <_MsgHandler TYPE="STR" NOXFER="TRUE">MSG_Weather</_MsgHandler>
      <_MsgAccessLvl TYPE="UBYT" NOXFER="TRUE">1</_MsgAccessLvl>
      <ZoneID TYPE="GID"></ZoneID>
      <Sky TYPE="STR">clear</Sky>
      <Wind TYPE="FLT"></Wind>
    </RECORD>
  </MSG_WEATHER>
</MadeUpMessages>
"#;

const KEYS: &str = "\
# The account of the sample: its owner may read its secrets.
[[ki.login]]
user = \"Merle\"
password = \"hunter2\"
";

/// The generated files that a patch server lists.
const FILES: &str = "\
[_TableList]\r\nName:STR\r\nAbout\r\nBase\r\n\
[About]\r\nVersion:UINT\r\n1\r\n\
[Base]\r\nSrcFileName:STR,TarFileName:STR,FileType:UINT,Size:UINT,HeaderSize:UINT,\
CompressedHeaderSize:UINT,CRC:UINT,HeaderCRC:UINT\r\n\
Data/GameData/Root.wad,,3,295000000,9000000,2900000,3735879680,3203334144\r\n\
Bin/game.exe,,1,21000000,0,0,3735879681,0\r\n";

/// Writes the KI samples.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder.join("ki-messages"))?;
    std::fs::write(folder.join("ki-messages/MadeUpMessages.xml"), MADE_UP)?;
    std::fs::write(folder.join("ki-keys.toml"), KEYS)?;
    std::fs::write(folder.join("ki-files.bin"), TableFile::from_csv(FILES, "")?.to_bytes()?)?;
    let tape = Tape::new(&folder.join("ki-login.pcapng"), Duration::from_micros(420))?;
    let mut stage = Stage::new(tape)?;
    let ck2 = stage.patch_client()?;
    stage.graphical_client(&ck2)?;
    stage.game()
}

/// Both ends, the wire between them, and the capture of its packets.
struct Stage {
    tape: Tape,
    protocols: Protocols,
    config: Arc<ServerConfig>,
    ids: SessionIds,
    random: Sampler,
    port: u16,
}

/// A connection in the sample.
struct Talk {
    ends: [Connection; 2],
    wire: SyntheticTcp,
}

impl Stage {
    fn new(tape: Tape) -> Outcome<Self> {
        let mut protocols = Protocols::built_in();
        protocols.add("MadeUpMessages.xml", MADE_UP.as_bytes(), Mode::Strict);
        let epoch = Duration::from_secs(DAY.unsigned_abs());
        Ok(Self {
            tape,
            protocols,
            config: Arc::new(ServerConfig::new(epoch)),
            ids: SessionIds::new(),
            random: Sampler::new(12_000),
            port: 50_000,
        })
    }

    fn connect(&mut self, port: u16) -> Outcome<Talk> {
        self.port += 1;
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), self.port);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), port);
        let id = self.ids.allocate()?;
        let config = Arc::new(ClientConfig::new(Duration::from_secs(DAY.unsigned_abs())));
        let ends = [
            Connection::client(config, self.tape.clock),
            Connection::server(Arc::clone(&self.config), id, self.tape.clock),
        ];
        let mut talk = Talk { ends, wire: SyntheticTcp::new(client, server) };
        let packets = talk.wire.open();
        self.tape.capture(packets)?;
        self.exchange(&mut talk)?;
        Ok(talk)
    }

    /// Carries everything that is queued to the other end until both queues are empty.
    fn exchange(&mut self, talk: &mut Talk) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in [Side::Server, Side::Client] {
                while let Some(bytes) = talk.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    let packets = talk.wire.data(side, &bytes);
                    self.tape.capture(packets)?;
                    let other = &mut talk.ends[side.other().index()];
                    other.input(self.tape.clock, side, Input::Bytes(&bytes));
                    while other.poll_event().is_some() {}
                }
            }
            if quiet {
                return Ok(());
            }
        }
    }

    fn say(&mut self, talk: &mut Talk, from: Side, name: &str, fields: &Json) -> Outcome<()> {
        let message = self.protocols.message_named(name).ok_or("no such message")?;
        let payload = message.payload(&message.from_json(fields)?)?;
        let (service, order) = (message.service, message.order);
        let raw = RawMessage { service, order, payload: payload.into() };
        talk.ends[from.index()].send(&raw)?;
        self.exchange(talk)
    }

    /// Lets both sides check whether the other is alive.
    fn wait(&mut self, talk: &mut Talk, time: Duration) -> Outcome<()> {
        self.tape.clock += time;
        for end in &mut talk.ends {
            end.timeout(self.tape.clock);
        }
        self.exchange(talk)
    }

    fn hang_up(&mut self, mut talk: Talk) -> Outcome<()> {
        let packets = talk.wire.close();
        self.tape.capture(packets)
    }

    /// The patch client logs in; returns the secret that the server gave it.
    fn patch_client(&mut self) -> Outcome<Secret> {
        let mut talk = self.connect(12_000)?;
        self.say(&mut talk, Side::Client, "SYSTEM.MSG_PING", &json!({}))?;
        self.say(&mut talk, Side::Server, "SYSTEM.MSG_PING_RSP", &json!({}))?;
        let salt = talk.ends[0].salt().ok_or("no session")?;
        let hash = password_hash("hunter2");
        let rec1 = Rec1::new("Merle", &hash, salt).seal(salt);
        self.say(
            &mut talk,
            Side::Client,
            "LOGIN.MSG_USER_AUTHEN_V3",
            &json!({
                "Rec1": hex(&rec1), "Version": "V_r000001.Made_Up", "Revision": "r000001",
                "DataRevision": "1", "MachineID": 4_919_131_752_989_213_764_u64,
                "Locale": "English", "PatchClientID": "1",
            }),
        )?;
        let secret = self.random.bytes(64).try_into().map_err(|_| "64 bytes")?;
        let ck2 = ck2(&secret);
        let mut sealed = ck2.as_str().as_bytes().to_vec();
        apply_rec1(salt, &mut sealed);
        self.say(
            &mut talk,
            Side::Server,
            "LOGIN.MSG_USER_AUTHEN_RSP",
            &json!({ "UserID": 42, "Rec1": hex(&sealed), "PayingUser": 1 }),
        )?;
        self.wait(&mut talk, Duration::from_secs(10))?;
        self.hang_up(talk)?;
        Ok(ck2)
    }

    /// The graphical client proves that it is the same user and selects a character. Meanwhile,
    /// the server offers a new session.
    fn graphical_client(&mut self, ck2: &Secret) -> Outcome<()> {
        let mut talk = self.connect(12_000)?;
        let salt = talk.ends[0].salt().ok_or("no session")?;
        self.say(
            &mut talk,
            Side::Client,
            "LOGIN.MSG_USER_VALIDATE",
            &json!({
                "UserID": 42, "PassKey3": pk3(ck2, salt).as_str(), "Locale": "English",
                "MachineID": 4_919_131_752_989_213_764_u64, "PatchClientID": "1",
            }),
        )?;
        let validated = json!({ "UserID": 42, "PayingUser": 1 });
        self.say(&mut talk, Side::Server, "LOGIN.MSG_USER_VALIDATE_RSP", &validated)?;
        for place in [1, 0] {
            let queue = json!({ "Status": 1, "PositionInQueue": place });
            self.say(&mut talk, Side::Server, "LOGIN.MSG_USER_ADMIT_IND", &queue)?;
        }
        let next = self.ids.allocate()?;
        talk.ends[1].refresh(next)?;
        self.say(&mut talk, Side::Client, "LOGIN.MSG_REQUESTCHARACTERLIST", &json!({}))?;
        let slots = json!({ "LoginServer": "Login1", "PurchasedCharacterSlots": 1 });
        self.say(&mut talk, Side::Server, "LOGIN.MSG_STARTCHARACTERLIST", &slots)?;
        let character = ki_objects::character(&ki_objects::classes()?)?;
        let blob = json!({ "CharacterInfo": hex(&character) });
        self.say(&mut talk, Side::Server, "LOGIN.MSG_CHARACTERINFO", &blob)?;
        self.say(&mut talk, Side::Server, "LOGIN.MSG_CHARACTERLIST", &json!({ "Error": 0 }))?;
        let chosen = json!({ "CharID": 191_965_934_121_493_001_u64, "ServerName": "Login1" });
        self.say(&mut talk, Side::Client, "LOGIN.MSG_SELECTCHARACTER", &chosen)?;
        self.say(
            &mut talk,
            Side::Server,
            "LOGIN.MSG_CHARACTERSELECTED",
            &json!({
                "IP": "192.0.2.1", "TCPPort": 12_900, "UDPPort": 12_900, "Key": "a made-up key",
                "UserID": 42, "CharID": 191_965_934_121_493_001_u64,
                "ZoneID": 191_965_934_121_493_239_u64,
                "ZoneName": "WizardCity/Tutorial_Exterior", "Location": "START",
            }),
        )?;
        self.hang_up(talk)
    }

    fn game(&mut self) -> Outcome<()> {
        let mut talk = self.connect(12_900)?;
        let attach = json!({
            "LoginKey": "a made-up key", "UserID": 42, "CharID": 191_965_934_121_493_001_u64,
            "ZoneName": "WizardCity/Tutorial_Exterior", "Location": "START", "Locale": "English",
        });
        self.say(&mut talk, Side::Client, "GAME.MSG_ATTACH", &attach)?;
        let weather = json!({ "ZoneID": 191_965_934_121_493_239_u64, "Sky": "rain", "Wind": 3.5 });
        self.say(&mut talk, Side::Server, "MADEUP.MSG_WEATHER", &weather)?;
        for step in 0..3 {
            let place = json!({ "LocationX": 100 + step, "LocationY": 200, "Direction": 64 });
            self.say(&mut talk, Side::Client, "GAME.MSG_CLIENTMOVE", &place)?;
        }
        self.wait(&mut talk, Duration::from_secs(60))?;
        self.say(&mut talk, Side::Client, "GAME.MSG_CLIENT_DISCONNECT", &json!({}))?;
        self.hang_up(talk)
    }
}

fn hex(bytes: &[u8]) -> Json {
    let mut digits = String::new();
    worldwire_core::value::push_hex(&mut digits, bytes);
    json!({ "$hex": digits })
}
