//! Measures how fast a whole capture is read, compared with tshark counting the protocols in the
//! same file.
//!
//! The capture is generated: `WORLDWIRE_BENCH_MB` megabytes (200 unless set) of encrypted auth and
//! game connections, 32 at a time. tshark runs only where it is installed.
//!
//! `WORLDWIRE_BENCH_LOGINS` names a directory with a capture of real logins over IPv4 and a key
//! file (`.toml` or `.ini`). The largest capture there is repeated to 50 MB, each time with
//! different client addresses.

use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use divan::Bencher;
use divan::counter::BytesCount;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use worldwire_capture::{CaptureReader, ClassicWriter, LinkType, Record, SyntheticTcp, Timestamp};
use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::{Bytes32, Limits, Side};
use worldwire_uru::connection::{ClientConfig, Connection, ServerConfig};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{auth, game};
use worldwire_uru::types::{ClassIndex, Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

fn main() {
    LazyLock::force(&FILES);
    LazyLock::force(&LOGINS);
    divan::main();
    for files in [Some(&*FILES), LOGINS.as_ref()].into_iter().flatten() {
        let _ = std::fs::remove_dir_all(&files.folder);
    }
}

static FILES: LazyLock<Files> =
    LazyLock::new(|| Files::generate().expect("the capture is written"));

static LOGINS: LazyLock<Option<Files>> = LazyLock::new(|| {
    let folder = std::env::var_os("WORLDWIRE_BENCH_LOGINS")?;
    Some(Files::repeat(Path::new(&folder)).expect("logins and keys are read"))
});

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn dissect_json(bencher: Bencher<'_, '_>, threads: usize) {
    ours(bencher, &FILES, &["--json", "-q", "--threads", &threads.to_string()]);
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn dissect_names(bencher: Bencher<'_, '_>, threads: usize) {
    ours(bencher, &FILES, &["--names", "-q", "--threads", &threads.to_string()]);
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn dissect_brief(bencher: Bencher<'_, '_>, threads: usize) {
    ours(bencher, &FILES, &["--brief", "-q", "--threads", &threads.to_string()]);
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn logins_names(bencher: Bencher<'_, '_>, threads: usize) {
    if let Some(logins) = &*LOGINS {
        ours(bencher, logins, &["--names", "-q", "--threads", &threads.to_string()]);
    }
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn logins_json(bencher: Bencher<'_, '_>, threads: usize) {
    if let Some(logins) = &*LOGINS {
        ours(bencher, logins, &["--json", "-q", "--threads", &threads.to_string()]);
    }
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn logins_tshark_io_phs(bencher: Bencher<'_, '_>) {
    if let Some(logins) = &*LOGINS {
        tshark(bencher, logins);
    }
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn tshark_io_phs(bencher: Bencher<'_, '_>) {
    tshark(bencher, &FILES);
}

fn tshark(bencher: Bencher<'_, '_>, files: &Files) {
    if Command::new("tshark").arg("-v").stdout(Stdio::null()).status().is_err() {
        eprintln!("tshark is not installed: no comparison");
        return;
    }
    bencher.counter(BytesCount::new(files.size)).bench_local(|| {
        run(Command::new("tshark").arg("-r").arg(&files.capture).args(["-q", "-z", "io,phs"]));
    });
}

fn ours(bencher: Bencher<'_, '_>, files: &Files, arguments: &[&str]) {
    bencher.counter(BytesCount::new(files.size)).bench_local(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.arg("dissect").arg(&files.capture).arg("--keys").arg(&files.keys).args(arguments);
        run(&mut command);
    });
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
}

struct Files {
    folder: PathBuf,
    capture: PathBuf,
    keys: PathBuf,
    size: u64,
}

/// A connection whose packets are being written to the capture.
struct Talk {
    ends: [Connection; 2],
    wire: SyntheticTcp,
}

impl Files {
    fn generate() -> Result<Self, Box<dyn std::error::Error>> {
        let megabytes: u64 =
            std::env::var("WORLDWIRE_BENCH_MB").ok().and_then(|mb| mb.parse().ok()).unwrap_or(200);
        let folder = tempfile::tempdir()?.keep();
        let (capture, keys) = (folder.join("bench.pcap"), folder.join("keys.toml"));
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut ring = KeyRing::new();
        for kind in [ServerKind::Auth, ServerKind::Game] {
            ring.insert_private(PrivateKey::generate(kind, PrimeKind::Plain, &mut random));
        }
        std::fs::write(&keys, ring.format(KeyFileFormat::Toml).as_bytes())?;
        write_capture(&capture, megabytes << 20, ring, random)?;
        let size = std::fs::metadata(&capture)?.len();
        Ok(Self { folder, capture, keys, size })
    }

    /// Repeats a capture's packets until the result is large.
    fn repeat(from: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        const SIZE: u64 = 50_000_000;
        let entries = std::fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
        files.sort_by_key(|path| std::fs::metadata(path).map_or(0, |about| about.len()));
        let last = |kinds: [&str; 2]| {
            let is =
                |path: &&PathBuf| kinds.iter().any(|kind| path.extension() == Some(kind.as_ref()));
            files.iter().rfind(is).cloned()
        };
        let source = std::fs::read(last(["pcap", "pcapng"]).ok_or("no capture")?)?;
        let keys = last(["toml", "ini"]).ok_or("no keys")?;
        let folder = tempfile::tempdir()?.keep();
        let capture = folder.join("logins.pcap");
        let file = BufWriter::with_capacity(1 << 20, std::fs::File::create(&capture)?);
        let mut writer = ClassicWriter::new(file, LinkType::ETHERNET)?;
        let (mut size, mut seconds) = (0, 1_767_225_600);
        for round in 0_u16.. {
            let mut reader = CaptureReader::new(&source[..], &Limits::DEFAULT)?;
            let mut server = None;
            while let Some(record) = reader.next()? {
                let Record::Packet(packet) = record else { continue };
                let mut data = packet.data.to_vec();
                // Ethernet, and IPv4 without options: the client is the side that opens the
                // connection.
                let ports: [[u8; 2]; 2] = [34, 36].map(|at| [data[at], data[at + 1]]);
                let server = *server.get_or_insert(ports[1]);
                let client = if ports[1] == server { 26 } else { 30 };
                let [high, low] = round.to_be_bytes();
                data[client..client + 4].copy_from_slice(&[10, 0, high, low]);
                let length = u32::try_from(data.len())?;
                writer.packet(Timestamp::from_parts(seconds, 0), &data, length)?;
                size += data.len() as u64 + 16;
            }
            seconds += 60;
            if size >= SIZE {
                break;
            }
        }
        writer.into_inner().flush()?;
        Ok(Self { folder, capture, keys, size })
    }
}

fn write_capture(
    path: &Path,
    size: u64,
    keys: KeyRing,
    mut random: ChaCha8Rng,
) -> Result<(), Box<dyn std::error::Error>> {
    let file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut writer = ClassicWriter::new(file, LinkType::ETHERNET)?;
    let config = Arc::new(ServerConfig::new(keys.clone()));
    let (mut written, mut time) = (0_u64, 0_i64);
    let mut put = |packets: Vec<Vec<u8>>| -> Result<u64, Box<dyn std::error::Error>> {
        let mut bytes = 0;
        for packet in packets {
            time += 50_000;
            let length = u32::try_from(packet.len())?;
            writer.packet(Timestamp::from_parts(1_767_225_600, time), &packet, length)?;
            bytes += packet.len() as u64 + 16;
        }
        Ok(bytes)
    };
    let mut port = 1024;
    while written < size {
        let mut talks = Vec::new();
        for index in 0..32 {
            let service = if index % 2 == 0 { Service::Auth } else { Service::Game };
            let kind = if index % 2 == 0 { ServerKind::Auth } else { ServerKind::Game };
            port = if port == u16::MAX { 1024 } else { port + 1 };
            let mut secret = [0; 64];
            random.fill_bytes(&mut secret);
            let key = keys.public(kind).cloned();
            let mut client = ClientConfig::new(service, key);
            client.ping_every = None;
            let ends = [
                Connection::client(client.into(), secret, Duration::ZERO)?,
                Connection::server(Arc::clone(&config), [7; 7], Duration::ZERO),
            ];
            let address = |last, port| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, last), port);
            let mut wire = SyntheticTcp::new(address(10, port), address(1, 14_617));
            written += put(wire.open())?;
            let mut talk = Talk { ends, wire };
            written += talk.exchange(&mut put)?;
            talks.push(talk);
        }
        for round in 0..2000_u32 {
            for talk in &mut talks {
                for message in script(talk.ends[0].service(), round)? {
                    talk.ends[message.sender().index()].send(&message)?;
                }
                written += talk.exchange(&mut put)?;
            }
            if written >= size {
                break;
            }
        }
        for mut talk in talks {
            written += put(talk.wire.close())?;
        }
    }
    writer.into_inner().flush()?;
    Ok(())
}

impl Talk {
    fn exchange(
        &mut self,
        put: &mut impl FnMut(Vec<Vec<u8>>) -> Result<u64, Box<dyn std::error::Error>>,
    ) -> Result<u64, Box<dyn std::error::Error>> {
        let mut written = 0;
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit(side.other()) {
                    quiet = false;
                    let other = &mut self.ends[side.other().index()];
                    other.input(Duration::ZERO, side, Input::Bytes(&bytes));
                    while other.poll_event().is_some() {}
                    written += put(self.wire.data(side, &bytes))?;
                }
            }
            if quiet {
                return Ok(written);
            }
        }
    }
}

/// Messages of players in an age, from the conformance vectors: notices, chat, states, a clone, a
/// lock.
static GAME_MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    const IDS: [&str; 8] = [
        "game-notify-dont",
        "game-serverreply-affirm",
        "game-ki-len-255",
        "directed-ki",
        "sdl-small",
        "sdl-zlib",
        "loadclone-avatar",
        "tas-lock",
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/uru-game/netmsg.json");
    let text = std::fs::read(path).expect("the vectors are there");
    let suite: serde_json::Value = serde_json::from_slice(&text).expect("the vectors are JSON");
    let vectors = suite["vectors"].as_array().expect("a list of vectors");
    let bytes = |id: &str| {
        let vector = vectors.iter().find(|vector| vector["id"] == *id).expect("the vector");
        let hex = vector["hex"].as_str().expect("its bytes");
        let digits = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("digits"));
        digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
    };
    IDS.into_iter().map(bytes).collect()
});

/// The messages of one round: game messages of 75 to 280 bytes, and vault nodes.
fn script(
    service: Option<Service>,
    round: u32,
) -> Result<Vec<Message<'static>>, Box<dyn std::error::Error>> {
    if service == Some(Service::Game) {
        let buffer = GAME_MESSAGES[round as usize % GAME_MESSAGES.len()].clone();
        let (class, _) = buffer.split_first_chunk().ok_or("a class")?;
        let say = game::client::PropagateBuffer {
            type_: ClassIndex(u16::from_le_bytes(*class).into()),
            buffer: Bytes32::new(buffer),
        };
        let echo = game::server::PropagateBuffer { type_: say.type_, buffer: say.buffer.clone() };
        return Ok(vec![
            game::client::ClientMessage::from(say).into(),
            game::server::ServerMessage::from(echo).into(),
        ]);
    }
    let node = VaultNode {
        node_id: Some(round),
        create_time: Some(1_767_200_000),
        modify_time: Some(1_767_200_000),
        creator_acct: Some(Uuid([1; 16])),
        node_type: Some(NodeType::Chronicle),
        int32_1: Some(2),
        string64_1: Some(TermStr::from("CleftSolved")),
        text_1: Some(TermStr::from("yes, and much more was found there")),
        ..VaultNode::default()
    };
    let ask = auth::client::VaultNodeFetch { trans_id: TransId(round), node_id: round };
    let tell = auth::server::VaultNodeFetched {
        trans_id: TransId(round),
        result: NetError::Success,
        node: Nested::encode_from(&node)?,
    };
    Ok(vec![
        auth::client::ClientMessage::from(ask).into(),
        auth::server::ServerMessage::from(tell).into(),
    ])
}
