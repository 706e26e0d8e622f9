//! The performance of decoding, tracing and encoding: the same decoder with and without a trace, on
//! a mix of the most frequent messages.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::json::{Style, write_children};
use worldwire_core::{Bytes32, Field, Reader, Side, Tree, Value, Writer};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::connection::{Connection, Encryption, ServerConfig};
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::crypt::key::{Modulus, PrivateKey, ServerKind};
use worldwire_uru::crypt::rc4::Rc4;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{NodeRef, auth, game};
use worldwire_uru::types::{ClassIndex, Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

fn main() {
    divan::main();
}

/// An encoded message.
struct Sample {
    name: &'static str,
    service: Service,
    side: Side,
    bytes: Vec<u8>,
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let node = VaultNode {
        node_id: Some(10_190),
        create_time: Some(1_767_200_000),
        modify_time: Some(1_767_200_000),
        creator_acct: Some(Uuid([1; 16])),
        creator_id: Some(0),
        node_type: Some(NodeType::Player),
        int32_1: Some(0),
        int32_2: Some(1),
        uint32_1: Some(0),
        uuid_1: Some(Uuid([1; 16])),
        string64_1: Some(TermStr::from("female")),
        istring64_1: Some(TermStr::from("Yeesha")),
        ..VaultNode::default()
    };
    let edge = NodeRef { parent_id: 10_190, child_id: 10_191, owner_id: 0, seen: 0 };
    let login = auth::client::AcctLoginRequest {
        trans_id: TransId(5),
        client_challenge: 0x0bad_5eed,
        account_name: "shorah@example.org".into(),
        challenge_hash: [7; 20],
        auth_token: "".into(),
        os: "win".into(),
    };
    let fetched = auth::server::VaultNodeFetched {
        trans_id: TransId(8),
        result: NetError::Success,
        node: Nested::encode_from(&node).expect("the node fits"),
    };
    let refs = auth::server::VaultNodeRefsFetched {
        trans_id: TransId(7),
        result: NetError::Success,
        refs: vec![edge; 36].into(),
    };
    let say = game::client::PropagateBuffer {
        type_: ClassIndex::plNetMsgSDLState,
        buffer: Bytes32::new(vec![3; 200]),
    };
    let ping = auth::client::PingRequest {
        ping_time_ms: 1000,
        trans_id: TransId(0),
        payload: Bytes32::default(),
    };
    let messages: [(&'static str, Message<'static>); 5] = [
        ("login", auth::client::ClientMessage::from(login).into()),
        ("node", auth::server::ServerMessage::from(fetched).into()),
        ("refs", auth::server::ServerMessage::from(refs).into()),
        ("propagate", game::client::ClientMessage::from(say).into()),
        ("ping", auth::client::ClientMessage::from(ping).into()),
    ];
    let sample = |(name, message): (_, Message<'_>)| Sample {
        name,
        service: message.service(),
        side: message.sender(),
        bytes: message.to_bytes().expect("the message fits"),
    };
    messages.into_iter().map(sample).collect()
});

const NAMES: [&str; 6] = ["mix", "login", "node", "refs", "propagate", "ping"];

fn samples(name: &str) -> Vec<&'static Sample> {
    SAMPLES.iter().filter(|sample| name == "mix" || sample.name == name).collect()
}

fn count(bencher: Bencher<'_, '_>, name: &str, mut work: impl FnMut(&'static Sample)) {
    let samples = samples(name);
    let bytes: usize = samples.iter().map(|sample| sample.bytes.len()).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(samples.len()))
        .bench_local(|| samples.iter().for_each(|sample| work(sample)));
}

#[divan::bench(args = NAMES)]
fn decode_typed(bencher: Bencher<'_, '_>, name: &str) {
    count(bencher, name, |sample| {
        let mut reader = Reader::new(black_box(&sample.bytes));
        let message = Message::decode(sample.service, sample.side, &mut reader);
        // A trace shows the nested node, so the node has to be decoded here too.
        if let Ok(Message::AuthServer(auth::server::ServerMessage::VaultNodeFetched(fetched))) =
            &message
        {
            black_box(fetched.node.decode::<VaultNode<'_>>().is_ok());
        }
        black_box(message.is_ok());
    });
}

#[divan::bench(args = NAMES)]
fn decode_traced(bencher: Bencher<'_, '_>, name: &str) {
    let mut tree = Tree::new();
    count(bencher, name, |sample| {
        let old = std::mem::take(&mut tree);
        let mut reader = Reader::traced("message", black_box(&sample.bytes), old);
        black_box(Message::decode(sample.service, sample.side, &mut reader).is_ok());
        tree = black_box(reader.finish());
    });
}

#[divan::bench(args = NAMES)]
fn encode(bencher: Bencher<'_, '_>, name: &str) {
    let messages: Vec<Message<'_>> = samples(name)
        .into_iter()
        .map(|sample| {
            let mut reader = Reader::new(&sample.bytes);
            Message::decode(sample.service, sample.side, &mut reader).expect("a sample decodes")
        })
        .collect();
    let bytes: usize = samples(name).iter().map(|sample| sample.bytes.len()).sum();
    let mut out = Vec::new();
    bencher.counter(BytesCount::new(bytes)).counter(ItemsCount::new(messages.len())).bench_local(
        || {
            for message in &messages {
                out.clear();
                let mut writer = Writer::append_to(std::mem::take(&mut out));
                black_box(message.encode(&mut writer).is_ok());
                out = writer.into_bytes();
            }
        },
    );
}

#[divan::bench(args = NAMES)]
fn to_json(bencher: Bencher<'_, '_>, name: &str) {
    let mut text = String::new();
    let mut tree = Tree::new();
    count(bencher, name, |sample| {
        let old = std::mem::take(&mut tree);
        let mut reader = Reader::traced("message", black_box(&sample.bytes), old);
        black_box(Message::decode(sample.service, sample.side, &mut reader).is_ok());
        tree = reader.finish();
        text.clear();
        write_children(Value::Record, tree.roots(), Style::default(), &mut text);
        black_box(&text);
    });
}

/// A server's work on a client's bytes: RC4, framing, and copying the message for the caller.
#[divan::bench(args = ["plain", "encrypted"])]
fn server_receives(bencher: Bencher<'_, '_>, how: &str) {
    let (mut n, seed) = ([0xc5; 64], [7; 7]);
    n[63] = 0x8b;
    let n = Modulus::from_be_bytes(&n).expect("odd, and of 512 bits");
    let private = PrivateKey::new(ServerKind::Auth, n, &[0x36; 64]).expect("a good secret");
    let (y, secret) = private.public().client_begin(&[3; 64]).expect("a good number");
    let y = if how == "plain" { Vec::new() } else { y.as_bytes().to_vec() };
    let mut start = Writer::new();
    let connect = ConnectPacket::new(Service::Auth);
    let setup = SetupPacket::Connect(y.into());
    connect.encode(&mut start).and_then(|()| setup.encode(&mut start)).expect("both fit");
    let login = &samples("login")[0].bytes;
    let mut stream = login.repeat(1000);
    if how == "encrypted" {
        Rc4::new(&secret.session_key(seed)).apply(&mut stream);
    }
    let mut keys = KeyRing::new();
    keys.insert_private(private);
    let mut config = ServerConfig::new(keys);
    config.encryption = Encryption::AllowPlain;
    let config = Arc::new(config);
    bencher
        .counter(BytesCount::new(stream.len()))
        .counter(ItemsCount::new(1000_usize))
        .with_inputs(|| {
            let mut server = Connection::server(Arc::clone(&config), seed, Duration::ZERO);
            server.input(Duration::ZERO, Side::Client, Input::Bytes(start.as_bytes()));
            while server.poll_event().is_some() {}
            assert!(server.is_established());
            server
        })
        .bench_local_values(|mut server| {
            let mut messages = 0;
            for segment in stream.chunks(1460) {
                server.input(Duration::ZERO, Side::Client, Input::Bytes(segment));
                while let Some(event) = server.poll_event() {
                    if let Event::Received(received) = event {
                        messages += u32::from(black_box(received.message()).is_some());
                    }
                }
            }
            assert_eq!(messages, 1000);
            server
        });
}

/// The lower bound for every encrypted stream.
#[divan::bench]
fn rc4_of_the_same_bytes(bencher: Bencher<'_, '_>) {
    let mut stream = samples("login")[0].bytes.repeat(1000);
    let key = SessionKey::new([1, 2, 3, 4, 5, 6, 7]);
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        Rc4::new(&key).apply(black_box(&mut stream));
    });
}
