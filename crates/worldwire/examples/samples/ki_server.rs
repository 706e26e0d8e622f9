//! A player logs in at `worldwire serve ki`, creates a character and enters a zone, with the
//! replies of the server's own state machine.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::SyntheticTcp;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Sampler, Side};
use worldwire_ki::character::Character;
use worldwire_ki::connection::{ClientConfig, Connection, News, ServerConfig, SessionIds, Unit};
use worldwire_ki::crypt::login::{Rec1, Secret, password_hash, pk3};
use worldwire_ki::message::{FileListAnswer, Put, Selected};
use worldwire_ki::schema::Protocols;
use worldwire_server::ki::KiConfig;
use worldwire_server::ki::login::{
    Account, Answer, Login, LoginEvent, Output, Query, QueuePosition, Rules, Zone,
};
use worldwire_server::ki::wire::{Decoded, Dialect};

use super::{DAY, Outcome, Tape};

const LOGIN: u8 = 7;
const GAME: u8 = 5;
const ACCOUNT: (&str, u64) = ("merle", 1);
const MACHINE: u64 = 4_919_131_752_989_213_764;
const CHARACTER: u64 = 0x0057_0000_0000_0001;

/// Writes the sample and the file that `serve ki --secrets` writes.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    let tape = Tape::new(&folder.join("ki-server.pcapng"), Duration::from_micros(310))?;
    let mut stage = Stage::new(tape);
    stage.patch_client()?;
    stage.game()?;
    stage.zone()?;
    Ok(std::fs::write(folder.join("ki-server-keys.toml"), stage.secrets)?)
}

/// The server's side and the capture.
struct Stage {
    tape: Tape,
    protocols: Arc<Protocols>,
    dialect: Dialect,
    config: Arc<ServerConfig>,
    rules: Arc<Rules>,
    ids: SessionIds,
    random: Sampler,
    password: Secret,
    ck2: Option<Secret>,
    characters: Vec<Vec<u8>>,
    secrets: String,
    port: u16,
}

/// A connection to the server's state machine.
struct Guest {
    ends: [Connection; 2],
    wire: SyntheticTcp,
    login: Login,
    is_over: bool,
}

/// What the server's end reports.
enum Told {
    Established,
    Heard(Decoded),
}

impl Stage {
    fn new(tape: Tape) -> Self {
        let protocols = Arc::new(Protocols::built_in());
        let mut config = ServerConfig::new(Duration::from_secs(DAY.unsigned_abs()));
        config.protocols = Some(Arc::clone(&protocols));
        let files = FileListAnswer {
            version: 1,
            name: "LatestFileList.bin".to_owned(),
            time: u32::try_from(DAY).unwrap_or_default(),
            size: 503,
            crc: 0x2c4f_1f0e,
            url: "http://192.0.2.1/patch/LatestFileList.bin".to_owned(),
            prefix: "http://192.0.2.1/patch".to_owned(),
        };
        let rules = Rules {
            files: Some(files.into()),
            // Clients count as idle earlier than usual.
            afk: Duration::from_secs(90),
            ..Rules::of(&KiConfig::default())
        };
        Self {
            tape,
            dialect: Dialect::new(Arc::clone(&protocols)),
            protocols,
            config: config.into(),
            rules: rules.into(),
            ids: SessionIds::new(),
            random: Sampler::new(12_000),
            password: password_hash("hunter2"),
            ck2: None,
            characters: Vec::new(),
            secrets: String::new(),
            port: 50_100,
        }
    }

    fn connect(&mut self) -> Outcome<Guest> {
        self.port += 1;
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), self.port);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 12_000);
        let epoch = Duration::from_secs(DAY.unsigned_abs());
        let now = self.tape.clock;
        let ends = [
            Connection::client(Arc::new(ClientConfig::new(epoch)), now),
            Connection::server(Arc::clone(&self.config), self.ids.allocate()?, now),
        ];
        let login = Login::new(Arc::clone(&self.rules), epoch);
        let wire = SyntheticTcp::new(client, server);
        let mut guest = Guest { ends, wire, login, is_over: false };
        let packets = guest.wire.open();
        self.tape.capture(packets)?;
        self.exchange(&mut guest)?;
        Ok(guest)
    }

    /// Carries everything that is queued to the other end until both queues are empty.
    fn exchange(&mut self, guest: &mut Guest) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in [Side::Server, Side::Client] {
                while let Some(bytes) = guest.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    let packets = guest.wire.data(side, &bytes);
                    self.tape.capture(packets)?;
                    let other = &mut guest.ends[side.other().index()];
                    other.input(self.tape.clock, side, Input::Bytes(&bytes));
                }
            }
            while guest.ends[Side::Client.index()].poll_event().is_some() {}
            self.listen(guest)?;
            if quiet {
                return Ok(());
            }
        }
    }

    /// Passes the reports of the server's end to its machine.
    fn listen(&mut self, guest: &mut Guest) -> Outcome<()> {
        let mut told = Vec::new();
        while let Some(event) = guest.ends[Side::Server.index()].poll_event() {
            told.extend(match event {
                Event::News(News::Established { .. }) => Some(Told::Established),
                Event::Received(piece) => match piece.unit {
                    Unit::Message { service, order } => {
                        Some(Told::Heard(self.dialect.decode(service, order, piece.payload())))
                    }
                    _ => None,
                },
                _ => None,
            });
        }
        for told in told {
            match told {
                Told::Established => {
                    let salt = guest.ends[Side::Server.index()].salt().ok_or("no session")?;
                    guest.login.established(self.tape.clock, salt);
                }
                Told::Heard(Decoded::Request(said)) => guest.login.handle(self.tape.clock, said),
                Told::Heard(other) => return Err(format!("{other:?}").into()),
            }
            self.work(guest)?;
        }
        Ok(())
    }

    /// Carries out the machine's outputs.
    fn work(&mut self, guest: &mut Guest) -> Outcome<()> {
        while let Some(output) = guest.login.poll() {
            match output {
                Output::Send(reply) => {
                    guest.ends[Side::Server.index()].send(&self.dialect.write(&reply)?)?;
                }
                Output::Ask(query) => {
                    let answer = self.answer(query)?;
                    guest.login.answer(self.tape.clock, answer);
                }
                Output::Tell(LoginEvent::Issued { name, ck2, .. }) => {
                    self.secrets =
                        format!("[[ki.login]]\nuser = \"{name}\"\nck2 = \"{}\"\n\n", ck2.as_str());
                    self.ck2 = Some(ck2);
                }
                Output::Tell(_) | Output::Pause(_) => {}
                Output::Close => guest.is_over = true,
            }
        }
        Ok(())
    }

    /// Answers queries about accounts, characters and the queue.
    fn answer(&mut self, query: Query) -> Outcome<Answer> {
        let account = || Account {
            user: ACCOUNT.1,
            password: Some(self.password.clone()),
            banned: false,
            paying: true,
            capped: false,
        };
        Ok(match query {
            Query::Account(name) => Answer::Account {
                found: (name == ACCOUNT.0).then(account),
                pause: Duration::ZERO,
                fresh: Some(self.random.bytes(64).try_into().map_err(|_| "64 bytes")?),
            },
            Query::Tickets { .. } => Answer::Tickets {
                found: Some(account()),
                tickets: self.ck2.iter().cloned().collect(),
            },
            Query::Enter => Answer::QueuePosition(QueuePosition::Waiting(1)),
            Query::Characters(_) => {
                Answer::Characters { blobs: self.characters.clone(), purchased: 0 }
            }
            Query::Create { user, mut character } => {
                character.set_ids(CHARACTER, user);
                self.characters.push(character.into_bytes());
                Answer::Done(Ok(()))
            }
            Query::Delete { .. } => Answer::Done(Ok(())),
            Query::Select { user, character } => {
                let zone = KiConfig::default().zone;
                Answer::Selected(Ok(Box::new(Selected {
                    ip: "192.0.2.1".to_owned(),
                    tcp_port: 12_000,
                    udp_port: 0,
                    key: "3f6c9b0d5e7a41c28b1f0e6d9a4c7b52".to_owned(),
                    user,
                    character,
                    zone_id: zone.id,
                    zone: zone.name,
                    location: zone.location,
                    server: self.rules.server.clone(),
                })))
            }
            Query::Attach { .. } => {
                let zone = KiConfig::default().zone;
                Answer::Attached(Ok(Zone { id: zone.id, name: zone.name }))
            }
        })
    }

    fn say(
        &mut self,
        guest: &mut Guest,
        service: u8,
        tag: &str,
        fields: &[(&str, Put)],
    ) -> Outcome<()> {
        let message = self.protocols.compose(service, tag, fields)?;
        guest.ends[Side::Client.index()].send(&message)?;
        self.exchange(guest)
    }

    /// Lets time pass, during which either side may check whether the other is alive.
    fn wait(&mut self, guest: &mut Guest, time: Duration) -> Outcome<()> {
        self.tape.clock += time;
        for end in &mut guest.ends {
            end.timeout(self.tape.clock);
        }
        self.exchange(guest)
    }

    fn hang_up(&mut self, mut guest: Guest) -> Outcome<()> {
        if !guest.is_over {
            return Err("the server has not closed".into());
        }
        let packets = guest.wire.close();
        self.tape.capture(packets)
    }

    fn authenticate(&mut self, guest: &mut Guest, password: &Secret) -> Outcome<()> {
        let salt = guest.ends[Side::Client.index()].salt().ok_or("no session")?;
        let rec1 = Rec1::new(ACCOUNT.0, password, salt).seal(salt);
        let fields = [
            ("Rec1", Put::Bytes(rec1)),
            ("MachineID", Put::from(MACHINE)),
            ("Locale", Put::text("English")),
        ];
        self.say(guest, LOGIN, "MSG_USER_AUTHEN_V3", &fields)
    }

    /// The patch client asks for the files and logs in on the second attempt.
    fn patch_client(&mut self) -> Outcome<()> {
        let mut guest = self.connect()?;
        self.say(&mut guest, 1, "MSG_PING", &[])?;
        let locale = [("Locale", Put::text("English"))];
        self.say(&mut guest, 8, "MSG_LATEST_FILE_LIST_V2", &locale)?;
        self.authenticate(&mut guest, &password_hash("hunter"))?;
        self.authenticate(&mut guest, &self.password.clone())?;
        self.wait(&mut guest, Duration::from_secs(10))?;
        self.say(&mut guest, GAME, "MSG_CLIENT_DISCONNECT", &[])?;
        self.hang_up(guest)
    }

    /// The game client waits in the queue, creates a character and selects it. Meanwhile, its
    /// session becomes stale.
    fn game(&mut self) -> Outcome<()> {
        let mut guest = self.connect()?;
        let salt = guest.ends[Side::Client.index()].salt().ok_or("no session")?;
        let ck2 = self.ck2.clone().ok_or("no login yet")?;
        let fields = [
            ("UserID", Put::from(ACCOUNT.1)),
            ("PassKey3", Put::text(pk3(&ck2, salt).as_str())),
            ("MachineID", Put::from(MACHINE)),
            ("Locale", Put::text("English")),
        ];
        self.say(&mut guest, LOGIN, "MSG_USER_VALIDATE", &fields)?;
        self.say(&mut guest, LOGIN, "MSG_REQUESTCHARACTERLIST", &[])?;
        self.tape.clock += Duration::from_secs(2);
        guest.login.placed(self.tape.clock, QueuePosition::In);
        self.work(&mut guest)?;
        self.exchange(&mut guest)?;
        self.say(&mut guest, LOGIN, "MSG_REQUESTCHARACTERLIST", &[])?;
        let chosen = [("Stage", Put::from(2_u32)), ("Parameter", Put::from(0_u32))];
        self.say(&mut guest, LOGIN, "MSG_LOGINLOGCHARACTERCREATION", &chosen)?;
        guest.ends[Side::Server.index()].refresh(self.ids.allocate()?)?;
        let blob = Character::plain("", "Fire", 0x8a_4448).into_bytes();
        let fields = [("CreationInfo", Put::Bytes(blob))];
        self.say(&mut guest, LOGIN, "MSG_CREATECHARACTER", &fields)?;
        self.say(&mut guest, LOGIN, "MSG_REQUESTCHARACTERLIST", &[])?;
        self.say(&mut guest, LOGIN, "MSG_SELECTCHARACTER", &[("CharID", Put::from(CHARACTER))])?;
        self.hang_up(guest)
    }

    /// The game client enters the zone, where the player leaves it idle.
    fn zone(&mut self) -> Outcome<()> {
        let mut guest = self.connect()?;
        let zone = KiConfig::default().zone;
        let fields = [
            ("LoginKey", Put::text("3f6c9b0d5e7a41c28b1f0e6d9a4c7b52")),
            ("UserID", Put::from(ACCOUNT.1)),
            ("CharID", Put::from(CHARACTER)),
            ("ZoneName", Put::text(&zone.name)),
            ("Location", Put::text(&zone.location)),
            ("ZoneID", Put::from(zone.id)),
            ("Locale", Put::text("English")),
        ];
        self.say(&mut guest, GAME, "MSG_ATTACH", &fields)?;
        self.wait(&mut guest, Duration::from_secs(60))?;
        let afk = guest.login.poll_timeout().ok_or("no deadline")?;
        guest.login.timeout(afk);
        self.tape.clock = self.tape.clock.max(afk);
        self.work(&mut guest)?;
        self.exchange(&mut guest)?;
        self.hang_up(guest)
    }
}
