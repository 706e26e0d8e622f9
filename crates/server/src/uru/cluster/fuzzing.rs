//! Fuzz targets for messages on the bus.

use std::time::Duration;

use worldwire_core::testing::Target;
use worldwire_core::{Messages, Sampler};
use worldwire_uru::types::NetError;

use super::admin::{AdminAnswer, AdminPart};
use super::ages::{AgeOrder, AgeReport};
use super::frames::{
    Announcement, Cutter, DownItem, Head, UpItem, decode_frame, decode_item, encode_frame,
    encode_item,
};
use super::leader::machine::{LeaderEvent, LeaderMachine};
use super::link::machine::{LinkEvent, LinkMachine};
use super::members::Description;
use super::passport::{Passport, Refusal};
use super::routes;
use super::subjects::{NodeKind, Subjects};
use crate::uru::vault::ask::{Wire, decoded, encoded};

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "server_cluster_frame", run: frame, seeds: frames },
    Target { name: "server_cluster_ages", run: ages, seeds: orders },
    Target { name: "server_cluster_machines", run: machines, seeds: operations },
    Target { name: "server_cluster_routed", run: routes::fuzz, seeds: routes::seeds },
];

/// Decodes a frame and its items.
///
/// # Panics
/// If a decoded value is encoded differently.
fn frame(data: &[u8]) {
    let Ok((head, payload)) = decode_frame(data) else { return };
    let bytes = encode_frame(&head, &payload).expect("a decoded frame can be encoded");
    let (again, same) = decode_frame(&bytes).expect("an encoded frame can be decoded");
    assert_eq!((&again, &*same), (&head, &*payload));
    let mut cutter = Cutter::default();
    // An item that is too long ends the stream.
    let _ = cutter.feed(&payload, |item| {
        check::<UpItem<'_>>(item);
        check::<DownItem<'_>>(item);
    });
}

fn check<'a, M: Messages<'a>>(bytes: &'a [u8]) {
    let Ok(Some(item)) = decode_item::<M>(bytes) else { return };
    let mut stream = Vec::new();
    encode_item(&item, &mut stream).expect("a decoded item can be encoded");
    // Skips the length in front of it. Fields from newer versions are not kept.
    let encoded = stream.get(4..).unwrap_or_default();
    assert!(bytes.starts_with(encoded), "{item:?} is encoded differently");
}

fn frames() -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(1);
    let mut seeds = Vec::new();
    for info in UpItem::INFO {
        let mut payload = Vec::new();
        if let Some(item) = UpItem::sample(info.number, &mut sampler) {
            let _ = encode_item(&item, &mut payload);
        }
        seeds.extend(encode_frame(&Head { sequence: 1, ..head() }, &payload));
    }
    for info in DownItem::INFO {
        let mut payload = Vec::new();
        if let Some(item) = DownItem::sample(info.number, &mut sampler) {
            let _ = encode_item(&item, &mut payload);
        }
        seeds.extend(encode_frame(&Head { sequence: 1, ..head() }, &payload));
    }
    seeds
}

/// Decodes an order and a report about ages, and the data for operators.
///
/// # Panics
/// If a decoded value is encoded differently.
fn ages(data: &[u8]) {
    check_order::<AgeOrder>(data);
    check_order::<AgeReport>(data);
    check_order::<Description>(data);
    check_order::<AdminPart>(data);
    check_order::<AdminAnswer>(data);
    check_order::<Passport>(data);
    check_order::<Refusal>(data);
}

fn check_order<W: Wire>(data: &[u8]) {
    let Ok(order) = decoded::<W>(data) else { return };
    let bytes = encoded(&order).expect("a decoded order can be encoded");
    assert!(data.starts_with(&bytes), "{order:?} is encoded differently");
}

fn orders() -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(1);
    let mut seeds = Vec::new();
    for _ in 0..8 {
        seeds.extend(encoded(&AgeOrder::sample(&mut sampler)));
        seeds.extend(encoded(&AgeReport::sample(&mut sampler)));
        seeds.extend(encoded(&Description::sample(&mut sampler)));
        seeds.extend(encoded(&AdminPart::sample(&mut sampler)));
        seeds.extend(encoded(&Passport::sample(&mut sampler)));
        seeds.extend(encoded(&Refusal::sample(&mut sampler)));
    }
    seeds
}

fn head() -> Head {
    Head { process: 1, attempt: 1, incarnation: 1, ..Head::of(1) }
}

/// The subject that the node sends to.
const UP: &str = "ww.fuzz.1.up.1.front-age.a";

/// The maximum number of events and messages that one operation can cause: when a channel fails,
/// all sessions end.
const MOST: usize = 4_096;

/// A node, a leader, and the last frame that each sent.
struct Cluster {
    now: Duration,
    link: LinkMachine,
    leader: LeaderMachine,
    up: Vec<u8>,
    down: Vec<u8>,
    sessions: Vec<u64>,
    /// The node's latest incarnation.
    incarnation: u64,
}

/// Runs a node and a leader against each other, on a bus that also delivers arbitrary bytes. Each
/// operation starts with three bytes: an opcode, a value, and the number of bytes that follow.
///
/// # Panics
/// If an operation never ends, or a request has two outcomes.
fn machines(data: &[u8]) {
    let subjects = Subjects::of("fuzz");
    let mut cluster = Cluster {
        now: Duration::ZERO,
        link: LinkMachine::new(subjects.clone(), NodeKind::FrontAndAge, "a", 1),
        leader: LeaderMachine::new(subjects, 1, Duration::ZERO),
        up: Vec::new(),
        down: Vec::new(),
        sessions: Vec::new(),
        incarnation: 0,
    };
    cluster.exchange();
    let mut rest = data;
    while let [operation, value, length, more @ ..] = rest {
        let (bytes, later) = more.split_at(more.len().min(usize::from(*length)));
        rest = later;
        cluster.run(*operation, *value, bytes);
    }
}

impl Cluster {
    fn run(&mut self, operation: u8, value: u8, bytes: &[u8]) {
        let now = self.now;
        match operation % 11 {
            0 => self.link.received(now, bytes),
            1 => self.leader.received(now, UP, bytes),
            2 => self.link.announced(now, bytes),
            // Frames from the other end, with forged contents.
            3 => self.link.received(now, &forged(&self.down, value, bytes)),
            4 => self.leader.received(now, UP, &forged(&self.up, value, bytes)),
            5 => self.now += Duration::from_millis(u64::from(value) * 20),
            6 => self.sessions.extend(self.link.open_session()),
            7 => {
                if let Some(session) = self.sessions.get(usize::from(value)) {
                    self.link.request(*session, 1, bytes.to_vec());
                }
            }
            8 => {
                if let Some(session) = self.sessions.get(usize::from(value)) {
                    self.link.end_session(*session);
                }
            }
            9 => {
                self.link.report_ages(&AgeReport::Expecting { request: value.into() });
            }
            _ => {
                let order = AgeOrder::Revoke { number: value.into(), fence: 1 };
                self.leader.order(self.incarnation, &order);
            }
        }
        self.exchange();
    }

    /// Delivers everything that both ends have to send.
    fn exchange(&mut self) {
        let now = self.now;
        self.link.timeout(now);
        self.leader.timeout(now);
        let mut outcomes = std::collections::HashSet::new();
        for _ in 0..MOST {
            let mut is_idle = true;
            while let Some(event) = self.leader.poll_event() {
                is_idle = false;
                match event {
                    LeaderEvent::Requested { from, number, body, .. } => {
                        let outcome =
                            if body.is_empty() { Err(NetError::NotSupported) } else { Ok(body) };
                        self.leader.reply(from, number, 0, outcome);
                    }
                    LeaderEvent::Joined { incarnation, .. } => self.incarnation = incarnation,
                    _ => {}
                }
            }
            while let Some(event) = self.link.poll_event() {
                is_idle = false;
                match event {
                    LinkEvent::Answered { number, .. } | LinkEvent::Refused { number } => {
                        assert!(outcomes.insert(number), "request {number} has two outcomes");
                    }
                    LinkEvent::Left(_) => self.sessions.clear(),
                    _ => {}
                }
            }
            if let Some((subject, message)) = self.link.poll_transmit(now) {
                is_idle = false;
                self.leader.received(now, &subject, &message);
                self.up = message;
            }
            if let Some((subject, message)) = self.leader.poll_transmit(now) {
                is_idle = false;
                match subject.ends_with(".leader") {
                    true => {
                        if Announcement::parse(&message).is_ok() {
                            self.link.announced(now, &message);
                        }
                    }
                    false => {
                        self.link.received(now, &message);
                        self.down = message;
                    }
                }
            }
            if is_idle {
                return;
            }
        }
        panic!("an operation does not end");
    }
}

/// A copy of a frame with another payload, and a sequence number this much higher.
fn forged(frame: &[u8], ahead: u8, payload: &[u8]) -> Vec<u8> {
    let Ok((head, _)) = decode_frame(frame) else { return payload.to_vec() };
    let sequence = head.sent.saturating_add(u64::from(ahead));
    encode_frame(&Head { sequence, ..head }, payload).unwrap_or_default()
}

fn operations() -> Vec<Vec<u8>> {
    let mut end = Vec::new();
    let item = UpItem::from(super::frames::EndSession { session: 1 });
    let _ = encode_item(&item, &mut end);
    let length = u8::try_from(end.len()).unwrap_or_default();
    vec![
        // A session makes a request and ends.
        vec![6, 0, 0, 7, 0, 2, 1, 2, 8, 0, 0],
        // A period of silence.
        vec![6, 0, 0, 5, 100, 0, 7, 0, 1, 9, 5, 200, 0, 6, 0, 0],
        // A forged end of a session, which the node did not send.
        [&[6, 0, 0, 4, 1, length][..], &end, &[7, 0, 1, 3]].concat(),
        // A report and an order about ages.
        vec![9, 7, 0, 10, 7, 0],
        // A frame without any known item.
        vec![6, 0, 0, 3, 1, 6, 2, 0, 0, 0, 9, 9, 5, 20, 0],
    ]
}
