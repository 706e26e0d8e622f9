//! Measures how much of a capture with lost segments can be read.

use std::collections::BTreeSet;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_core::{Bytes32, Sampler, Side};
use worldwire_uru::connection::Connection;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{NodeRef, auth, file, game};
use worldwire_uru::types::{ClassIndex, Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::ends::{KEYS, client_of, open_config, server_of};

/// A server's messages to a client that reads its vault, is in an age, or downloads.
fn talk(service: Service, random: &mut Sampler, number: u32) -> Message<'static> {
    use auth::server::ServerMessage as Auth;
    let (trans_id, result) = (TransId(number), NetError::Success);
    match (service, random.below(8)) {
        (Service::Auth, 0) => {
            let changed = auth::server::VaultNodeChanged {
                node_id: number,
                revision_id: Uuid([number.to_le_bytes()[0]; 16]),
            };
            Auth::from(changed).into()
        }
        (Service::Auth, 1) => {
            Auth::from(auth::server::VaultSaveNodeReply { trans_id, result }).into()
        }
        (Service::Auth, 2) => {
            let added = auth::server::VaultNodeAdded {
                parent_id: 10_000 + number,
                child_id: 10_001 + number,
                owner_id: 0,
            };
            Auth::from(added).into()
        }
        (Service::Auth, 3) => {
            let refs = (0..40).map(|index| NodeRef {
                parent_id: 10_000 + number,
                child_id: 10_001 + index,
                owner_id: 0,
                seen: 0,
            });
            let refs = refs.collect::<Vec<_>>().into();
            Auth::from(auth::server::VaultNodeRefsFetched { trans_id, result, refs }).into()
        }
        (Service::Auth, kind) => {
            let text = "and so on, ".repeat(random.length(8));
            let node = VaultNode {
                node_id: Some(10_000 + number),
                create_time: Some(1_767_200_000),
                modify_time: Some(1_767_200_000 + number),
                creator_acct: Some(Uuid([1; 16])),
                node_type: Some(NodeType::Chronicle),
                int32_1: Some(2),
                string64_1: Some(TermStr::from("CleftSolved")),
                text_1: Some(TermStr::from(&*text)),
                blob_1: (kind == 4).then(|| Bytes32::new([0, 1, 0, 0].repeat(90))),
                ..VaultNode::default()
            };
            let node = Nested::encode_from(&node).unwrap();
            Auth::from(auth::server::VaultNodeFetched { trans_id, result, node }).into()
        }
        (Service::Game, kind) => {
            let suite = include_str!("../../../../vectors/uru-game/netmsg.json");
            let ids =
                ["game-notify-dont", "sdl-small", "game-serverreply-deny", "loadclone-avatar"];
            let from =
                suite.find(&format!("\"{}\"", ids[usize::try_from(kind % 4).unwrap()])).unwrap();
            let hex = suite[from..].split("\"hex\": \"").nth(1).unwrap().split('"').next().unwrap();
            let buffer = worldwire_core::value::parse_hex(hex).unwrap();
            let type_ = ClassIndex(u16::from_le_bytes([buffer[0], buffer[1]]).into());
            let push = game::server::PropagateBuffer { type_, buffer: Bytes32::new(buffer) };
            game::server::ServerMessage::from(push).into()
        }
        (_, _) => {
            let length = random.length(3000);
            let data = random.bytes(length);
            let chunk = file::server::FileDownloadReply {
                trans_id,
                result,
                reader_id: 7,
                total_file_size: 1 << 20,
                data: Bytes32::new(data),
            };
            file::server::ServerMessage::from(chunk).into()
        }
    }
}

/// The share of completely captured messages that is reported.
fn share(service: Service, encrypted: bool, segment: usize, seed: u8) -> f64 {
    let now = Duration::ZERO;
    let mut random = Sampler::sized(seed.into(), 3000);
    let mut client = client_of(service, encrypted, now);
    let mut server = server_of(open_config(), now);
    let mut observer = Connection::observer(KEYS.clone().into());
    let mut skip = 0;
    loop {
        let mut quiet = true;
        while let Some(bytes) = client.poll_transmit(Side::Server) {
            server.input(now, Side::Client, Input::Bytes(&bytes));
            observer.input(now, Side::Client, Input::Bytes(&bytes));
            quiet = false;
        }
        while server.poll_event().is_some() {}
        while let Some(bytes) = server.poll_transmit(Side::Client) {
            client.input(now, Side::Server, Input::Bytes(&bytes));
            observer.input(now, Side::Server, Input::Bytes(&bytes));
            skip += bytes.len() as u64;
            quiet = false;
        }
        while client.poll_event().is_some() {}
        while observer.poll_event().is_some() {}
        if quiet {
            break;
        }
    }
    let (mut stream, mut borders) = (Vec::new(), BTreeSet::new());
    for number in 0..4000 {
        let from = skip + stream.len() as u64;
        server.send(&talk(service, &mut random, number)).unwrap();
        while let Some(bytes) = server.poll_transmit(Side::Client) {
            stream.extend(bytes);
        }
        borders.insert((from, skip + stream.len() as u64));
    }
    // One segment in a hundred is lost.
    let segments: Vec<(u64, &[u8])> = stream
        .chunks(segment)
        .scan(skip, |at, bytes| Some((core::mem::replace(at, *at + bytes.len() as u64), bytes)))
        .collect();
    let mut lost: Vec<(u64, u64)> = Vec::new();
    let mut read = 0;
    for (index, (at, bytes)) in segments.into_iter().enumerate() {
        if index % 100 == 30 + usize::from(seed) * 7 {
            lost.push((at, at + bytes.len() as u64));
            observer.input(now, Side::Server, Input::Gap(bytes.len() as u64));
        } else {
            observer.input(now, Side::Server, Input::Bytes(bytes));
        }
        while let Some(event) = observer.poll_event() {
            if let Event::Received(received) = event {
                let range = received.range();
                assert!(borders.contains(&(range.start, range.end)), "{range:?}: {received:?}");
                read += 1;
            }
        }
    }
    let is_whole = |(from, to): &&(u64, u64)| lost.iter().all(|(a, b)| to <= a || from >= b);
    let whole = borders.iter().filter(is_whole).count();
    assert!(!lost.is_empty());
    f64::from(read) / whole as f64
}

#[test]
fn nearly_all_messages_between_lost_segments_are_read_and_none_is_invented() {
    for service in [Service::Auth, Service::Game, Service::File] {
        for encrypted in [false, true] {
            for segment in [536, 1448, 4000] {
                if encrypted && (service == Service::File || segment != 1448) {
                    continue;
                }
                let shares: Vec<f64> =
                    (0..2).map(|seed| share(service, encrypted, segment, seed)).collect();
                println!("{} encrypted={encrypted} {segment}: {shares:.3?}", service.name());
                assert!(
                    shares.iter().all(|share| *share >= 0.95),
                    "{service:?} {segment} {shares:?}"
                );
            }
        }
    }
}
