//! An Uru player logs in: gatekeeper, files, auth, game.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use worldwire_capture::SyntheticTcp;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Field, Rest, Side};
use worldwire_uru::connection::{ClientConfig, Connection, ServerConfig};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::file::manifest::{FileList, FileListEntry, Manifest};
use worldwire_uru::file::secure::{Magic, SecureFile, SecureKey};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{
    AccountFlags, Caps, NetAgeInfo, NodeRef, Score, auth, file, game, gatekeeper,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::Blob;
use worldwire_uru::types::{
    ClassIndex, HiLo, Ipv4, Nested, NetError, TermStr, TransId, Uuid, ZStr,
};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::{Outcome, Tape, uru_age, uru_games, uru_walk};

/// Writes the Uru samples.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    let mut random = ChaCha8Rng::seed_from_u64(14_617);
    let keys = shard_keys(&mut random);
    std::fs::write(folder.join("uru-keys.toml"), keys.format(KeyFileFormat::Toml).as_bytes())?;
    let mut other = ChaCha8Rng::seed_from_u64(1);
    let wrong = shard_keys(&mut other);
    std::fs::write(
        folder.join("uru-wrong-keys.toml"),
        wrong.format(KeyFileFormat::Toml).as_bytes(),
    )?;

    let tape = Tape::new(&folder.join("uru-login.pcapng"), Duration::from_micros(350))?;
    let mut stage = Stage::new(tape, keys.clone(), random);
    stage.gatekeeper()?;
    stage.file()?;
    stage.auth()?;
    stage.game()?;

    std::fs::write(folder.join("uru-vault-node.bin"), player_node().to_vec()?)?;
    std::fs::write(folder.join("uru-manifest.mfs"), MANIFEST)?;
    let descriptors = include_str!("../../../../samples/sdl/Fernhollow.sdl");
    let descriptors = Descriptors::load([("Fernhollow.sdl", descriptors)]);
    for (name, json) in [("uru-state.bin", EARLIER_STATE), ("uru-state-later.bin", LATER_STATE)] {
        std::fs::write(folder.join(name), state(&descriptors, json)?)?;
    }
    uru_age::write(folder, keys.clone())?;
    uru_games::write(folder, keys.clone())?;
    uru_walk::write(folder, keys)
}

/// A state from its JSON, as a blob.
pub(super) fn state(descriptors: &Descriptors, json: &str) -> Outcome<Vec<u8>> {
    Ok(Blob::from_json(descriptors, &serde_json::from_str(json)?)?.to_bytes()?)
}

/// The state of an age as stored by a server under version 2 of its descriptor.
const EARLIER_STATE: &str = r#"{
    "flags": ["AddedVarLengthIO"], "descriptor": "Fernhollow", "version": 2, "variables": {
        "fhGateOpen": {"hint": "", "flags": ["HasTimeStamp", "Dirty"],
            "time": {"seconds": 1700000000, "microseconds": 250000}, "value": true},
        "fhTide": {"hint": "moon", "flags": ["Dirty"], "value": [1.5, -2.0]}
    }
}"#;

/// The state of the same age later, under version 3.
pub(super) const LATER_STATE: &str = r#"{
    "flags": ["AddedVarLengthIO"], "descriptor": "Fernhollow", "version": 3, "variables": {
        "fhGateOpen": {"hint": "", "flags": ["HasTimeStamp", "SameAsDefault", "Dirty"],
            "time": {"seconds": 1700000060, "microseconds": 0}},
        "fhTide": {"hint": "moon", "flags": ["Dirty"], "value": [1.5, -2.0, 0.25]},
        "fhMotto": {"hint": "", "flags": ["Dirty"], "value": "mind the ferns"},
        "fhDoors": {"hint": "", "flags": ["Dirty"], "value": [1, 0, 255]}
    }
}"#;

const MANIFEST: &str = "\
# The files of a made-up age.
dat\\Teledahn.age,Teledahn.age.gz,9e107d9d372bb6826bd81d3542a419d6,e4d909c290d0fb1ca068ffaddf22cbd0,1024,310,8
dat\\Teledahn_District_tldn.prp,Teledahn_District_tldn.prp,d41d8cd98f00b204e9800998ecf8427e,d41d8cd98f00b204e9800998ecf8427e,0,0,0
";

fn shard_keys(random: &mut ChaCha8Rng) -> KeyRing {
    let mut keys = KeyRing::new();
    for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
        keys.insert_private(PrivateKey::generate(kind, PrimeKind::Safe, random));
    }
    keys.set_droid(SecureKey::DIRTSAND_DROID);
    keys
}

/// Both ends, the wire between them, and the capture of its packets.
pub(super) struct Stage {
    tape: Tape,
    keys: KeyRing,
    config: Arc<ServerConfig>,
    random: ChaCha8Rng,
    port: u16,
}

/// A connection in the sample.
pub(super) struct Talk {
    ends: [Connection; 2],
    wire: SyntheticTcp,
}

impl Stage {
    pub(super) fn new(tape: Tape, keys: KeyRing, random: ChaCha8Rng) -> Self {
        let config = Arc::new(ServerConfig::new(keys.clone()));
        Self { tape, keys, config, random, port: 49_152 }
    }

    /// The time of the next packet.
    pub(super) fn clock(&self) -> Duration {
        self.tape.clock
    }

    /// Lets time pass.
    pub(super) fn pause(&mut self, time: Duration) {
        self.tape.clock += time;
    }

    pub(super) fn connect(&mut self, service: Service) -> Outcome<Talk> {
        self.port += 1;
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), self.port);
        let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 14_617);
        let kind = match service {
            Service::Gatekeeper => Some(ServerKind::Gatekeeper),
            Service::Auth => Some(ServerKind::Auth),
            Service::Game => Some(ServerKind::Game),
            Service::File => None,
        };
        let key = kind.and_then(|kind| self.keys.public(kind)).cloned();
        let mut secret = [0; 64];
        self.random.fill_bytes(&mut secret);
        let mut seed = [0; 7];
        self.random.fill_bytes(&mut seed);
        let ends = [
            Connection::client(ClientConfig::new(service, key).into(), secret, self.tape.clock)?,
            Connection::server(Arc::clone(&self.config), seed, self.tape.clock),
        ];
        let mut talk = Talk { ends, wire: SyntheticTcp::new(client, server) };
        let packets = talk.wire.open();
        self.tape.capture(packets)?;
        self.exchange(&mut talk)?;
        // The first ping is due immediately after setup.
        talk.ends[0].timeout(self.tape.clock);
        self.exchange(&mut talk)?;
        Ok(talk)
    }

    /// Carries everything that is queued to the other end until both queues are empty.
    fn exchange(&mut self, talk: &mut Talk) -> Outcome<()> {
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = talk.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    let packets = talk.wire.data(side, &bytes);
                    self.tape.capture(packets)?;
                    let other = &mut talk.ends[side.other().index()];
                    other.input(self.tape.clock, side, Input::Bytes(&bytes));
                    while let Some(event) = other.poll_event() {
                        if let Event::Fault { error, .. } = event {
                            return Err(error.into());
                        }
                    }
                }
            }
            if quiet {
                return Ok(());
            }
        }
    }

    pub(super) fn say<'d>(
        &mut self,
        talk: &mut Talk,
        message: impl Into<Message<'d>>,
    ) -> Outcome<()> {
        let message = message.into();
        self.tape.clock += Duration::from_millis(20);
        talk.ends[message.sender().index()].send(&message)?;
        self.exchange(talk)
    }

    pub(super) fn hang_up(&mut self, mut talk: Talk) -> Outcome<()> {
        self.tape.clock += Duration::from_millis(50);
        let packets = talk.wire.close();
        self.tape.capture(packets)
    }

    fn gatekeeper(&mut self) -> Outcome<()> {
        use gatekeeper::{client, client::ClientMessage, server, server::ServerMessage};
        let mut talk = self.connect(Service::Gatekeeper)?;
        let t = &mut talk;
        let ask = client::FileSrvIpAddressRequest { trans_id: TransId(1), is_patcher: 0 };
        self.say(t, ClientMessage::from(ask))?;
        let tell = server::FileSrvIpAddressReply {
            trans_id: TransId(1),
            address: "files.example.org".into(),
        };
        self.say(t, ServerMessage::from(tell))?;
        self.say(t, ClientMessage::from(client::AuthSrvIpAddressRequest { trans_id: TransId(2) }))?;
        let tell =
            server::AuthSrvIpAddressReply { trans_id: TransId(2), address: "192.0.2.1".into() };
        self.say(t, ServerMessage::from(tell))?;
        self.hang_up(talk)
    }

    fn file(&mut self) -> Outcome<()> {
        use file::{client, client::ClientMessage, server, server::ServerMessage};
        let mut talk = self.connect(Service::File)?;
        let t = &mut talk;
        self.say(t, ClientMessage::from(client::BuildIdRequest { trans_id: TransId(3) }))?;
        let tell =
            server::BuildIdReply { trans_id: TransId(3), result: NetError::Success, build_id: 918 };
        self.say(t, ServerMessage::from(tell))?;
        let ask =
            client::ManifestRequest { trans_id: TransId(4), group: "Teledahn".into(), build_id: 0 };
        self.say(t, ClientMessage::from(ask))?;
        let manifest = Manifest::parse(MANIFEST).map_err(|_| "the manifest is broken")?;
        let tell = server::ManifestReply {
            trans_id: TransId(4),
            result: NetError::Success,
            reader_id: 1,
            num_files: 2,
            manifest: Nested::encode_from(&manifest)?,
        };
        self.say(t, ServerMessage::from(tell))?;
        self.say(
            t,
            ClientMessage::from(client::ManifestEntryAck { trans_id: TransId(4), reader_id: 1 }),
        )?;
        self.hang_up(talk)
    }

    #[expect(clippy::too_many_lines, reason = "a script, one line after the other")]
    fn auth(&mut self) -> Outcome<()> {
        use auth::{client, client::ClientMessage, server, server::ServerMessage};
        let mut talk = self.connect(Service::Auth)?;
        let t = &mut talk;
        self.say(t, ClientMessage::from(client::ClientRegisterRequest { build_id: 918 }))?;
        let caps = Nested::encode_from(&Caps::compatible(&[Caps::SCORE_LEADER_BOARDS]))?;
        self.say(t, ServerMessage::from(server::ServerCaps { caps }))?;
        let server_challenge = 0x5eed_cafe;
        self.say(t, ServerMessage::from(server::ClientRegisterReply { server_challenge }))?;

        let name = "shorah@example.org";
        let fields = login_fields(name, "hunter2", 0x0bad_5eed, server_challenge);
        let login = client::AcctLoginRequest {
            trans_id: TransId(5),
            client_challenge: fields.client_challenge,
            account_name: name.into(),
            challenge_hash: fields.challenge_hash,
            auth_token: "".into(),
            os: "win".into(),
        };
        self.say(t, ClientMessage::from(login))?;
        let info = server::AcctPlayerInfo {
            trans_id: TransId(5),
            player_id: PLAYER,
            player_name: "Yeesha".into(),
            avatar_shape: "female".into(),
            explorer: 1,
        };
        self.say(t, ServerMessage::from(info))?;
        let welcome = server::AcctLoginReply {
            trans_id: TransId(5),
            result: NetError::Success,
            account_id: ACCOUNT,
            account_flags: AccountFlags::User,
            billing_type: 1,
            encryption_key: SecureKey::DIRTSAND_DROID.words(),
        };
        self.say(t, ServerMessage::from(welcome))?;
        let choose = client::AcctSetPlayerRequest { trans_id: TransId(6), player_id: PLAYER };
        self.say(t, ClientMessage::from(choose))?;
        let chosen = server::AcctSetPlayerReply { trans_id: TransId(6), result: NetError::Success };
        self.say(t, ServerMessage::from(chosen))?;

        let refs = client::VaultFetchNodeRefs { trans_id: TransId(7), node_id: PLAYER };
        self.say(t, ClientMessage::from(refs))?;
        let edge = |parent_id, child_id| NodeRef { parent_id, child_id, owner_id: 0, seen: 0 };
        let reply = server::VaultNodeRefsFetched {
            trans_id: TransId(7),
            result: NetError::Success,
            refs: vec![edge(PLAYER, PLAYER + 1), edge(PLAYER, PLAYER + 2)].into(),
        };
        self.say(t, ServerMessage::from(reply))?;
        for (trans_id, node) in
            (8..).map(TransId).zip([player_node(), info_node(), chronicle_node()])
        {
            let node_id = node.node_id.unwrap_or_default();
            self.say(t, ClientMessage::from(client::VaultNodeFetch { trans_id, node_id }))?;
            let node = Nested::encode_from(&node)?;
            let result = NetError::Success;
            self.say(t, ServerMessage::from(server::VaultNodeFetched { trans_id, result, node }))?;
        }

        let twin = client::PlayerCreateRequest {
            trans_id: TransId(11),
            player_name: "yeesha".into(),
            avatar_shape: "female".into(),
            friend_invite: "".into(),
        };
        self.say(t, ClientMessage::from(twin))?;
        let refused = server::PlayerCreateReply {
            trans_id: TransId(11),
            result: NetError::PlayerAlreadyExists,
            player_id: 0,
            explorer: 0,
            player_name: "".into(),
            avatar_shape: "".into(),
        };
        self.say(t, ServerMessage::from(refused))?;

        let list = client::FileListRequest {
            trans_id: TransId(12),
            directory: "SDL".into(),
            extension: "sdl".into(),
        };
        self.say(t, ClientMessage::from(list))?;
        let sealed = SecureFile::new(Magic::NotTheDroids, STATE.as_bytes().to_vec())
            .seal(&SecureKey::DIRTSAND_DROID)?;
        let size = u32::try_from(sealed.len())?;
        let entry = FileListEntry { name: ZStr::from("SDL\\Garden.sdl"), size: HiLo(size) };
        let reply = server::FileListReply {
            trans_id: TransId(12),
            result: NetError::Success,
            files: Nested::encode_from(&FileList(vec![entry]))?,
        };
        self.say(t, ServerMessage::from(reply))?;
        let fetch = client::FileDownloadRequest {
            trans_id: TransId(13),
            filename: "SDL\\Garden.sdl".into(),
        };
        self.say(t, ClientMessage::from(fetch))?;
        let chunk = server::FileDownloadChunk {
            trans_id: TransId(13),
            result: NetError::Success,
            total_file_size: size,
            chunk_offset: 0,
            chunk: worldwire_core::Bytes32::new(sealed),
        };
        self.say(t, ServerMessage::from(chunk))?;
        self.say(t, ClientMessage::from(client::FileDownloadChunkAck { trans_id: TransId(13) }))?;

        let public =
            client::GetPublicAgeList { trans_id: TransId(14), age_filename: "Neighborhood".into() };
        self.say(t, ClientMessage::from(public))?;
        let age = NetAgeInfo {
            instance_id: INSTANCE,
            filename: "Neighborhood".into(),
            instance_name: "Hood".into(),
            user_name: "DRC".into(),
            description: "DRC Hood".into(),
            sequence_number: 1,
            language: -1,
            owner_count: 3,
            current_population: 1,
        };
        let reply = server::PublicAgeList {
            trans_id: TransId(14),
            result: NetError::Success,
            ages: vec![age].into(),
        };
        self.say(t, ServerMessage::from(reply))?;
        let scores = client::ScoreGetScores {
            trans_id: TransId(15),
            owner_id: PLAYER,
            game_name: "HeekPoints".into(),
        };
        self.say(t, ClientMessage::from(scores))?;
        let score = Score {
            score_id: 1,
            owner_id: PLAYER,
            created_time: 1_767_225_000,
            game_type: 2,
            value: 42,
            game_name: TermStr::from("HeekPoints"),
        };
        let reply = server::ScoreGetScoresReply {
            trans_id: TransId(15),
            result: NetError::Success,
            score_count: 1,
            scores: Nested::encode_from(&Rest(vec![score]))?,
        };
        self.say(t, ServerMessage::from(reply))?;
        let travel = client::AgeRequest {
            trans_id: TransId(16),
            age_name: "Neighborhood".into(),
            age_instance_id: INSTANCE,
        };
        self.say(t, ClientMessage::from(travel))?;
        let host = server::AgeReply {
            trans_id: TransId(16),
            result: NetError::Success,
            age_mcp_id: 7,
            age_instance_id: INSTANCE,
            age_node_id: 20_001,
            game_server_address: Ipv4(Ipv4Addr::new(192, 0, 2, 1)),
        };
        self.say(t, ServerMessage::from(host))?;
        self.hang_up(talk)
    }

    fn game(&mut self) -> Outcome<()> {
        use game::{client, client::ClientMessage, server, server::ServerMessage};
        let mut talk = self.connect(Service::Game)?;
        let t = &mut talk;
        let join = client::JoinAgeRequest {
            trans_id: TransId(17),
            age_mcp_id: 7,
            account_id: ACCOUNT,
            player_id: PLAYER,
        };
        self.say(t, ClientMessage::from(join))?;
        let joined = server::JoinAgeReply { trans_id: TransId(17), result: NetError::Success };
        self.say(t, ServerMessage::from(joined))?;
        // A group owner message: its class, its flags and time, and one group.
        let mut buffer = vec![0x64, 0x02, 0x01, 0, 0x06, 0, 0x80, 0xb9, 0x55, 0x69, 0, 0, 0, 0];
        buffer.extend([1, 0, 0, 0, 1, 0, 0, 0xff, 4, 0, 0, 1]);
        let push = server::PropagateBuffer {
            type_: ClassIndex::plNetMsgGroupOwner,
            buffer: worldwire_core::Bytes32::new(buffer),
        };
        self.say(t, ServerMessage::from(push))?;
        self.hang_up(talk)
    }
}

pub(super) const PLAYER: u32 = 10_190;
pub(super) const ACCOUNT: Uuid = Uuid([0x11; 16]);
pub(super) const INSTANCE: Uuid = Uuid([0x22; 16]);
const STATE: &str = "STATEDESC Garden\n{\n    VERSION 1\n    VAR BOOL open[1] DEFAULT=0\n}\n";

pub(super) fn player_node() -> VaultNode<'static> {
    VaultNode {
        node_id: Some(PLAYER),
        create_time: Some(1_767_200_000),
        modify_time: Some(1_767_200_000),
        creator_acct: Some(ACCOUNT),
        creator_id: Some(0),
        node_type: Some(NodeType::Player),
        int32_1: Some(0),
        int32_2: Some(1),
        uint32_1: Some(0),
        uuid_1: Some(ACCOUNT),
        string64_1: Some(TermStr::from("female")),
        istring64_1: Some(TermStr::from("Yeesha")),
        ..VaultNode::default()
    }
}

pub(super) fn info_node() -> VaultNode<'static> {
    VaultNode {
        node_id: Some(PLAYER + 1),
        node_type: Some(NodeType::PlayerInfo),
        int32_1: Some(1),
        uint32_1: Some(PLAYER),
        string64_1: Some(TermStr::from("Lobby")),
        istring64_1: Some(TermStr::from("Yeesha")),
        ..VaultNode::default()
    }
}

pub(super) fn chronicle_node() -> VaultNode<'static> {
    VaultNode {
        node_id: Some(PLAYER + 2),
        node_type: Some(NodeType::Chronicle),
        int32_1: Some(2),
        string64_1: Some(TermStr::from("CleftSolved")),
        text_1: Some(TermStr::from("yes")),
        ..VaultNode::default()
    }
}

/// A node by itself, as bytes.
trait ToBytes {
    fn to_vec(&self) -> Outcome<Vec<u8>>;
}

impl ToBytes for VaultNode<'_> {
    fn to_vec(&self) -> Outcome<Vec<u8>> {
        let mut writer = worldwire_core::Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }
}
