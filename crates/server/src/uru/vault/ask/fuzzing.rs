//! The fuzz targets for requests and replies that arrive from other processes.

use worldwire_core::testing::Target;
use worldwire_core::{Result, Sampler};

use super::{Ask, ForKind, KINDS, Wire, decoded, encoded, for_kind};

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "server_vault_ask",
        run: |data| run(data, Part::Ask),
        seeds: || seeds(Part::Ask),
    },
    Target {
        name: "server_vault_reply",
        run: |data| run(data, Part::Reply),
        seeds: || seeds(Part::Reply),
    },
];

/// A request or its reply.
#[derive(Clone, Copy)]
enum Part {
    Ask,
    Reply,
}

/// The number of seeds of each kind.
const SEEDS: u64 = 3;

/// Decodes the number of a request, and the request or its reply.
///
/// # Panics
/// If encoding and decoding the decoded value again changes it.
fn run(data: &[u8], part: Part) {
    let Some((kind, body)) = data.split_first_chunk() else { return };
    let _ = for_kind(u16::from_le_bytes(*kind), Decode { body, part });
}

struct Decode<'b> {
    body: &'b [u8],
    part: Part,
}

impl ForKind for Decode<'_> {
    type Output = ();

    fn run<A: Ask>(self) {
        match self.part {
            Part::Ask => check::<A>(self.body),
            Part::Reply => check::<A::Reply>(self.body),
        }
    }
}

fn check<W: Wire>(body: &[u8]) {
    match decoded::<W>(body) {
        Ok(value) => {
            let bytes = encoded(&value).expect("a decoded value can be encoded");
            assert!(bytes.len() >= W::LEAST && bytes.len() <= body.len(), "{} bytes", bytes.len());
            let again: Result<W> = decoded(&bytes);
            assert!(again.is_ok_and(|again| again == value), "{value:?} is decoded differently");
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "more than one line: {error}"),
    }
}

fn seeds(part: Part) -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(SEEDS);
    let mut seeds = Vec::new();
    for kind in KINDS {
        for _ in 0..SEEDS {
            seeds.extend(for_kind(*kind, Sample { sampler: &mut sampler, part }));
        }
    }
    seeds
}

struct Sample<'s> {
    sampler: &'s mut Sampler,
    part: Part,
}

impl ForKind for Sample<'_> {
    type Output = Vec<u8>;

    fn run<A: Ask>(self) -> Vec<u8> {
        let body = match self.part {
            Part::Ask => encoded(&A::sample(self.sampler)),
            Part::Reply => encoded(&A::Reply::sample(self.sampler)),
        };
        [&A::KIND.to_le_bytes()[..], &body.expect("a sample can be encoded")].concat()
    }
}
