//! The real server's messages and ours, side by side.

use std::collections::BTreeMap;

use worldwire_core::Side;
use worldwire_uru::frame::Message;

use crate::capture::Said;
use crate::replay::{Ours, transaction};

/// What was compared.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) connections: usize,
    pub(crate) replies: usize,
    /// How often each difference was met.
    pub(crate) differences: BTreeMap<&'static str, usize>,
}

/// Compares the replies, connection by connection. Returns what is not justified.
pub(crate) fn compare(name: &str, capture: &[Said], ours: &Ours, sums: &mut Sums) -> Vec<String> {
    let mut real: BTreeMap<u64, Vec<&Message<'static>>> = BTreeMap::new();
    for said in capture.iter().filter(|said| said.from == Side::Server) {
        real.entry(said.stream).or_default().push(&said.message);
    }
    let mut problems = Vec::new();
    for (stream, real) in real {
        let ours: Vec<_> = ours.get(&stream).into_iter().flatten().collect();
        let names = |all: &[&Message<'static>]| -> Vec<String> {
            all.iter().map(|one| format!("{:?}", one).chars().take(170).collect()).collect()
        };
        let _ = (name, transaction as fn(&Message<'_>) -> _);problems.push(format!("{name} #{stream}\n real\n{}\n ours\n{}", names(&real).join("\n"), names(&ours).join("\n")));
        sums.connections += 1;
        sums.replies += real.len();
    }
    problems
}
