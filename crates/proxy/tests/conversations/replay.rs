//! Replays of the sample conversations against each other, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::connection::Input;
use worldwire_core::testing::sample_file;
use worldwire_core::{Limits, Side};
use worldwire_dissect::filter::Filter;
use worldwire_dissect::{Dissection, Item, Keys, Options, Scratch};
use worldwire_proxy::replay::{
    Account, Carried, Divergence, NoScript, Outcome, Pace, ReadRecording, RecordedItem, Recording,
    Replay, ReplayEvent, ReplaySetup, ReplaySummary, Script,
};

use crate::samples::Sample;

/// The Unix time at which all replays start, on a different day from the recordings.
pub const EPOCH: Duration = Duration::from_secs(1_800_000_000);
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How to replay a script.
#[derive(Clone, Debug)]
pub struct Terms {
    pub rules: &'static str,
    pub account: Option<(&'static str, &'static str)>,
    pub pace: Pace,
    pub ignored: Option<&'static str>,
    /// Different numbers yield different keys.
    pub seed: u8,
    /// The side leaves when it has sent a message of this name.
    pub leaves_after: Option<&'static str>,
    /// The keys of the live connection, if they are not those of the recording.
    pub keys: Option<&'static str>,
    /// One byte in this many is damaged on the way to the peer.
    pub damage: Option<usize>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            rules: "",
            account: None,
            pace: Pace::Fast,
            ignored: None,
            seed: 3,
            leaves_after: None,
            keys: None,
            damage: None,
        }
    }
}

/// The script of a conversation.
pub fn try_script(
    sample: &Sample,
    capture: &str,
    stream: Option<u64>,
    ignored: Option<&str>,
) -> Result<Script, NoScript> {
    let ignored = ignored.map(|text| Arc::new(Filter::parse(text).unwrap()));
    let reading = ReadRecording {
        streams: stream.into_iter().collect(),
        definitions: Arc::clone(&sample.definitions),
        keys: Arc::clone(&sample.keys),
        ignored,
    };
    let (keys, definitions) = ((*sample.keys).clone(), (*sample.definitions).clone());
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    let bytes = sample_file(capture);
    let mut reader = CaptureReader::new(bytes.as_slice(), &Limits::DEFAULT).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<RecordedItem>| {
        out.extend(reading.read(item));
    };
    let mut items = Vec::new();
    dissection.run(&show, &mut items, |_| ());
    let mut recording = Recording::default();
    recording.add(items);
    recording.script(stream, &dissection.overviews())
}

/// Starts a replay at time zero.
pub fn replay(
    sample: &Sample,
    script: Script,
    own: Side,
    terms: &Terms,
    carried: Option<Carried>,
) -> Replay {
    let ignored = terms.ignored;
    let ignored = ignored.map(|text| Arc::new(Filter::parse(text).unwrap()));
    let setup = ReplaySetup {
        own,
        definitions: Arc::clone(&sample.definitions),
        keys: match terms.keys {
            Some(text) => Arc::new(Keys::parse(text).unwrap()),
            None => Arc::clone(&sample.keys),
        },
        handlers: vec![sample.rules(terms.rules).handler()],
        account: terms.account.map(|(name, password)| Account {
            name: name.to_owned(),
            password: password.to_owned(),
        }),
        token: None,
        carried,
        pace: terms.pace,
        patience: PATIENCE,
        ignored,
        epoch: EPOCH,
    };
    let mut next = terms.seed;
    let mut random = |bytes: &mut [u8]| {
        for byte in bytes {
            next = next.wrapping_mul(5).wrapping_add(17);
            *byte = next ^ (next >> 3);
        }
    };
    Replay::new(script, setup, &mut random, Duration::ZERO).unwrap()
}

/// A replay of both sides.
#[derive(Debug)]
pub struct Played {
    /// The outcome of each side.
    pub outcomes: [Option<Outcome>; 2],
    pub events: [Vec<ReplayEvent>; 2],
    pub time: Duration,
    /// What the client has learnt.
    pub carried: Option<Carried>,
}

impl Played {
    pub fn summary(&self, side: Side) -> ReplaySummary {
        match &self.outcomes[side.index()] {
            Some(Outcome::Complete(summary)) => *summary,
            other => panic!("{side}: {other:?}"),
        }
    }

    pub fn divergence(&self, side: Side) -> &Divergence {
        match &self.outcomes[side.index()] {
            Some(Outcome::Diverged(divergence)) => divergence,
            other => panic!("{side}: {other:?}"),
        }
    }

    /// What a side reported as wrong.
    pub fn problems(&self, side: Side) -> Vec<&str> {
        let problems = self.events[side.index()].iter().filter_map(|event| match event {
            ReplayEvent::Problem(text) => Some(text.as_str()),
            _ => None,
        });
        problems.collect()
    }

    /// The names of the adapted fields of a message that a side sent.
    pub fn adapted(&self, side: Side, wanted: &str) -> Vec<&'static str> {
        let sent = self.events[side.index()].iter().find_map(|event| match event {
            ReplayEvent::Sent { place, adapted } if place.name == wanted => Some(adapted.clone()),
            _ => None,
        });
        sent.unwrap_or_else(|| panic!("{side} did not send {wanted}"))
    }
}

/// Plays both sides of a conversation to each other.
pub fn play(sample: &Sample, capture: &str, stream: u64, terms: [&Terms; 2]) -> Played {
    play_after(sample, capture, stream, terms, None)
}

/// Like [`play`], after another conversation of the client.
pub fn play_after(
    sample: &Sample,
    capture: &str,
    stream: u64,
    terms: [&Terms; 2],
    before: Option<&Played>,
) -> Played {
    let mut sides = Side::BOTH.map(|side| {
        let terms = terms[side.index()];
        let script = try_script(sample, capture, Some(stream), terms.ignored).unwrap();
        let carried = before.and_then(|before| before.carried.clone());
        replay(sample, script, side, terms, carried.filter(|_| side == Side::Client))
    });
    let mut played = Played {
        outcomes: [None, None],
        events: [Vec::new(), Vec::new()],
        time: Duration::ZERO,
        carried: None,
    };
    let mut has_ended = [false; 2];
    let mut count = 0;
    for _ in 0..100_000 {
        let now = played.time;
        let mut is_quiet = true;
        for side in Side::BOTH {
            let (own, peer) = (side.index(), side.other().index());
            let Terms { leaves_after, damage, .. } = terms[own];
            while let Some(mut bytes) = sides[own].poll_transmit() {
                is_quiet = false;
                if let Some(every) = damage {
                    for byte in &mut bytes {
                        count += 1;
                        *byte ^= u8::from(count % every == 0) << (count % 8);
                    }
                }
                sides[peer].input(now, sample.input(&bytes));
            }
            sides[own].timeout(now);
            let mut leaves = false;
            while let Some(event) = sides[own].poll_event() {
                leaves |= matches!(&event, ReplayEvent::Sent { place, .. }
                    if Some(&*place.name) == *leaves_after);
                played.events[own].push(event);
                is_quiet = false;
            }
            if leaves {
                sides[own].stop();
                is_quiet = false;
            }
            let is_over = sides[own].outcome().is_some();
            if is_over && !has_ended[own] && is_quiet {
                has_ended[own] = true;
                is_quiet = false;
                sides[own].close(now);
                if !sample.is_udp {
                    sides[peer].input(now, Input::End);
                }
            }
        }
        if !is_quiet {
            continue;
        }
        let next = sides.iter_mut().filter(|it| it.outcome().is_none());
        let next = next.filter_map(|replay| replay.poll_timeout()).min();
        let Some(next) = next else {
            played.carried = Some(sides[Side::Client.index()].carried());
            played.outcomes = sides.map(|replay| replay.outcome().cloned());
            return played;
        };
        played.time = next.max(now + Duration::from_nanos(1));
    }
    panic!("the replays do not end: {played:?}");
}
