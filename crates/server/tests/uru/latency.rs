//! Attacks do not slow down other clients. The latency of honest clients is measured on a shard
//! under attack and, at the same time, on an idle one.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use worldwire_net::tcp;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client as auth;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::file::client as file;
use worldwire_uru::message::gatekeeper::client as gatekeeper;
use worldwire_uru::types::{Nested, NetError, TransId};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::attacks::{connect_packet, is_closed, ping, set_up};
use crate::client::{PATIENCE, Running};
use crate::player::{ANN, BOB, Player, result};

/// How often honest clients send requests during an attack.
const SAMPLES: usize = 200;
/// The maximum number of measurements. Other processes on the machine may disturb one.
const TRIES: usize = 5;
/// The number of connections that never complete their setup.
const HALF_OPEN: usize = 1000;

/// A running attack.
#[derive(Default)]
struct Attack {
    silent: Vec<TcpStream>,
    busy: JoinSet<()>,
}

impl Attack {
    /// Ends the attack, which must still be running.
    fn end(mut self) {
        if let Some(ended) = self.busy.try_join_next() {
            panic!("the attack has ended: {ended:?}");
        }
    }
}

/// An honest client, which also queries the gatekeeper over a new connection each time.
struct Honest {
    player: Player,
    id: u32,
}

impl Honest {
    async fn ask(&mut self, shard: &Running) -> Duration {
        let start = Instant::now();
        let fetch = auth::VaultNodeFetch { trans_id: self.player.next(), node_id: self.id };
        self.player.say(fetch).await;
        // Other players arrive and leave in the meantime.
        while !matches!(
            self.player.hear().await.message(),
            Message::AuthServer(Reply::VaultNodeFetched(_))
        ) {}
        let mut client = shard.client(Service::Gatekeeper, None).await;
        let request = gatekeeper::AuthSrvIpAddressRequest { trans_id: TransId(1) };
        client.ask(gatekeeper::ClientMessage::from(request)).await;
        start.elapsed()
    }
}

/// Each shard has a separate thread, so that they compete only for the processor.
fn thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn start(thread: &Runtime) -> Running {
    let files = |folder: &std::path::Path| {
        std::fs::create_dir_all(folder.join("data/files")).unwrap();
        std::fs::write(folder.join("data/files/big"), vec![1; 16 << 20]).unwrap();
    };
    thread.block_on(Running::start(files, |config| {
        config.limits.connections_per_address = 5000;
        config.auth.failed_logins = 50;
    }))
}

#[test]
fn attacks_do_not_slow_others_down() {
    let threads = [thread(), thread(), thread()];
    let [attacked, idle] = [start(&threads[0]), start(&threads[1])];
    threads[2].block_on(async {
        let mut clients = Vec::new();
        for shard in [&attacked, &idle] {
            let (player, id) = Player::enter(shard, ANN, "Ann").await;
            clients.push(Honest { player, id });
        }
        let half_open = half_open(&attacked).await;
        let begun = Instant::now();
        compare("half-open connections", [&attacked, &idle], &mut clients).await;
        let slow = slow_readers(&attacked).await;
        compare("slow readers and torn messages", [&attacked, &idle], &mut clients).await;
        slow.end();
        let broken = broken_rules(&attacked);
        compare("broken rules", [&attacked, &idle], &mut clients).await;
        broken.end();
        let vault = vault_abuse(&attacked).await;
        compare("abuse of the vault", [&attacked, &idle], &mut clients).await;
        vault.end();
        let logins = login_flood(&attacked).await;
        compare("a login flood", [&attacked, &idle], &mut clients).await;
        logins.end();
        // Setup may take 10 s.
        for mut stream in half_open.silent {
            assert!(is_closed(&mut stream).await);
        }
        assert!(begun.elapsed() < PATIENCE);
    });
    for (thread, shard) in threads.iter().zip([attacked, idle]) {
        thread.block_on(shard.stop());
    }
}

/// Honest clients of both shards make requests in turn; the shard under attack takes at most twice
/// as long.
async fn compare(attack: &str, shards: [&Running; 2], clients: &mut [Honest]) {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..SAMPLES {
            for ((shard, client), times) in shards.iter().zip(&mut *clients).zip(&mut times) {
                times.push(client.ask(shard).await);
            }
        }
        let [attacked, idle] = times.map(|mut times| {
            times.sort();
            times[SAMPLES * 99 / 100 - 1]
        });
        seen.push((attacked, idle));
        if attacked <= idle * 2 {
            return;
        }
    }
    panic!("{attack}: the 99th percentiles, attacked and idle, are {seen:?}");
}

/// A third of them send nothing, a third send half a header, and a third everything except the key
/// exchange.
async fn half_open(shard: &Running) -> Attack {
    let mut attack = Attack::default();
    let packet = connect_packet(Service::Auth);
    for number in 0..HALF_OPEN {
        let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
        let said = packet.get(..[0, 15, packet.len()][number % 3]).unwrap();
        stream.write_all(said).await.unwrap();
        attack.silent.push(stream);
    }
    attack
}

/// Downloads and replies that are never read, and endless messages.
async fn slow_readers(shard: &Running) -> Attack {
    let mut attack = Attack::default();
    let (trans_id, build_id) = (TransId(1), 0);
    let request = file::FileDownloadRequest { trans_id, filename: "big".into(), build_id };
    let download = Message::from(file::ClientMessage::from(request)).to_bytes().unwrap();
    let fetch = auth::VaultNodeFetch { trans_id, node_id: 1 };
    let torn = Message::from(auth::ClientMessage::from(fetch)).to_bytes().unwrap();
    let ping = ping();
    for _ in 0..20 {
        let mut stream = set_up(shard, Service::File).await;
        stream.write_all(&download).await.unwrap();
        attack.silent.push(stream);
        let mut stream = set_up(shard, Service::Gatekeeper).await;
        let flood = async { while stream.write_all(&ping).await.is_ok() {} };
        assert!(timeout(Duration::from_millis(20), flood).await.is_err());
        attack.silent.push(stream);
        let mut stream = set_up(shard, Service::Auth).await;
        stream.write_all(torn.split_last().unwrap().1).await.unwrap();
        attack.silent.push(stream);
    }
    attack
}

/// Invalid numbers, and forbidden keys.
fn broken_rules(shard: &Running) -> Attack {
    let mut attack = Attack::default();
    let address = shard.address;
    attack.busy.spawn(async move {
        loop {
            let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
            let wrong = [&connect_packet(Service::Auth)[..], &[0, 2, 0x77, 0x77]].concat();
            stream.write_all(&wrong).await.unwrap();
            assert!(is_closed(&mut stream).await);
            let mut stream = tcp::dial(address, PATIENCE).await.unwrap();
            let y_is_1 = [&connect_packet(Service::Auth)[..], &[0, 3, 1]].concat();
            stream.write_all(&y_is_1).await.unwrap();
            assert!(is_closed(&mut stream).await);
            sleep(Duration::from_millis(1)).await;
        }
    });
    attack
}

/// Wrong passwords, continuously.
async fn login_flood(shard: &Running) -> Attack {
    let mut attack = Attack::default();
    for _ in 0..4 {
        let mut player = Player::connect(shard).await;
        attack.busy.spawn(async move {
            loop {
                let (_, reply) = player.log_in(BOB.0, "wrong").await;
                assert!(reply.result.is_error());
                sleep(Duration::from_millis(1)).await;
            }
        });
    }
    attack
}

/// Cycles, other players' nodes, broad searches.
async fn vault_abuse(shard: &Running) -> Attack {
    let mut attack = Attack::default();
    let (mut carl, id) = Player::enter(shard, BOB, "Carl").await;
    let folder = VaultNode { node_type: Some(NodeType::Folder), ..VaultNode::default() };
    let above = carl.make(folder.clone()).await;
    let below = carl.make(folder).await;
    assert_eq!(
        result!(
            carl,
            VaultNodeAdd { parent_id: above, child_id: below, owner_id: id },
            VaultAddNodeReply
        ),
        NetError::Success
    );
    attack.busy.spawn(async move {
        loop {
            let cycle = result!(
                carl,
                VaultNodeAdd { parent_id: below, child_id: above, owner_id: id },
                VaultAddNodeReply
            );
            assert_eq!(cycle, NetError::CircularReference);
            let anything = Nested::encode_from(&VaultNode::default()).unwrap();
            let found = result!(carl, VaultNodeFind { node: anything }, VaultNodeFindReply);
            assert_eq!(found, NetError::InvalidParameter);
            for node_id in 10_000..10_050 {
                let fetched = result!(carl, VaultNodeFetch { node_id: node_id }, VaultNodeFetched);
                assert!(fetched != NetError::InternalError);
            }
            sleep(Duration::from_millis(1)).await;
        }
    });
    attack
}
