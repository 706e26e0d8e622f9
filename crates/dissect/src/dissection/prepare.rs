//! Lets families compute in advance what the conversations of a batch need.

use rayon::prelude::*;
use worldwire_core::Side;

use super::task::Task;
use super::{Batch, Content, Options};
use crate::defect::catch_defect;
use crate::family::{BEGINNING, Family, Prepared};
use crate::sink::Sink;

/// The number of conversations prepared together. Threads share the work in portions of this size.
const PORTION: usize = 64;
/// The maximum number of a conversation's events searched for its client's first bytes.
const MAX_EVENTS: usize = 16;

/// Lets the families prepare the conversations that begin in this batch. Recognition decides later
/// which result is used.
pub(super) fn prepare<S: Sink>(batch: &Batch, tasks: &mut [Task<S>], options: &Options) {
    let mut bytes = Vec::new();
    let mut indices = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let start = bytes.len();
        if begins(task, batch, &mut bytes) {
            indices.push((index, start..bytes.len()));
        }
    }
    if indices.len() < 2 {
        return;
    }
    let beginnings: Vec<&[u8]> = indices.iter().map(|(_, range)| &bytes[range.clone()]).collect();
    let of = |family: &dyn Family| -> Vec<Option<Prepared>> {
        let portions = beginnings.par_chunks(PORTION);
        let prepared = portions.flat_map_iter(|portion| {
            // After a panic, only the preparation is lost.
            let prepared = catch_defect(|| family.prepare(&options.keys, portion));
            let prepared = prepared.unwrap_or_default().into_iter().map(Some);
            prepared.chain(core::iter::repeat(None)).take(portion.len()).map(Option::flatten)
        });
        prepared.collect()
    };
    for family in options.definitions.families().iter() {
        for ((index, _), prepared) in indices.iter().zip(of(family)) {
            if prepared.is_some() {
                tasks[*index].prepared = prepared;
            }
        }
    }
}

/// Appends the first bytes of the client. Returns false if the conversation did not begin in this
/// batch.
fn begins<S: Sink>(task: &Task<S>, batch: &Batch, bytes: &mut Vec<u8>) -> bool {
    let mut events = task.events.iter().map(|event| &batch.events[*event].content);
    match events.next() {
        Some(Content::Opened(overview)) if !overview.midstream && !overview.datagrams => {}
        _ => return false,
    }
    let start = bytes.len();
    for content in events.take(MAX_EVENTS) {
        let room = BEGINNING - (bytes.len() - start);
        match content {
            Content::Data { side: Side::Client, .. } => {
                let data = content.bytes(batch);
                bytes.extend_from_slice(data.get(..room).unwrap_or(data));
            }
            Content::Gap { side: Side::Client, .. } => break,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use worldwire_capture::SyntheticTcp;
    use worldwire_core::connection::Input;

    use super::super::tests::dissect_frames;
    use super::*;
    use crate::Scratch;
    use crate::families::Families;
    use crate::family::{Opening, Start, Verdict};
    use crate::item::{Item, ItemBody, Note, Stamp};
    use crate::knowledge::Keys;
    use crate::session::Session;
    use crate::vocabulary::Vocabulary;

    /// A family that prepares conversations by noting the bytes it was given. It returns nothing
    /// for conversations that send `-`, and panics for those that send `!`.
    #[derive(Debug)]
    struct Notes;

    impl Family for Notes {
        fn name(&self) -> &'static str {
            "notes"
        }

        fn vocabulary(&self) -> &dyn Vocabulary {
            self
        }

        fn recognize(&self, _: &Opening<'_>) -> Verdict {
            Verdict::Yes
        }

        fn prepare(&self, _: &Keys, beginnings: &[&[u8]]) -> Vec<Option<Prepared>> {
            assert!(beginnings.len() <= PORTION && !beginnings.contains(&&b"!"[..]), "on purpose");
            let note = |bytes: &&[u8]| -> Option<Prepared> {
                let text = String::from_utf8_lossy(bytes).into_owned();
                (text != "-").then(|| Arc::new(text) as Prepared)
            };
            // The last conversation is given nothing, because the list is too short.
            beginnings[..beginnings.len() - 1].iter().map(note).collect()
        }

        fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
            Box::new(Noted(start.prepared.and_then(|text| text.downcast_ref().cloned())))
        }
    }

    impl Vocabulary for Notes {}

    #[derive(Debug)]
    struct Noted(Option<String>);

    impl Session for Noted {
        fn input(
            &mut self,
            stamp: Stamp,
            from: Side,
            input: Input<'_>,
            out: &mut dyn FnMut(Item<'_>),
        ) {
            let (Input::Bytes(_), Some(text)) = (input, self.0.take()) else { return };
            let body = ItemBody::Note(Note::warning(format!("saw {text}")));
            out(Item::new(stamp, "notes", from, 0..0, body));
        }
    }

    /// The notes of conversations that send these pieces, either all in one batch or one packet per
    /// batch.
    fn saw(talks: &[&[(Side, &str)]], at_once: bool) -> Vec<(u64, String)> {
        let mut packets = Vec::new();
        for (number, pieces) in (1_u16..).zip(talks) {
            let client = format!("192.0.2.1:{number}").parse().unwrap();
            let mut talk = SyntheticTcp::new(client, "192.0.2.2:9".parse().unwrap());
            packets.extend(talk.open());
            for (side, text) in *pieces {
                packets.extend(talk.data(*side, text.as_bytes()));
            }
        }
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(u64, String)>| {
            if let Some(note) = item.note().filter(|note| note.text.starts_with("saw")) {
                out.push((item.stamp.stream, note.text.clone()));
            }
        };
        let batch = if at_once { usize::MAX } else { 1 };
        dissect_frames(Families::new(&[&Notes]), &packets, batch, &show).0
    }

    #[test]
    fn sessions_get_what_was_prepared_for_them() {
        use Side::{Client, Server};
        let long = "x".repeat(BEGINNING + 1);
        let talks: &[&[(Side, &str)]] = &[
            &[(Client, "a"), (Server, "s"), (Client, "b")],
            &[(Client, "-")],
            &[(Server, "s"), (Client, &long)],
            &[(Server, "s")],
            &[(Client, "the last")],
        ];
        let cut = format!("saw {}", &long[..BEGINNING]);
        let wanted = [(0, "saw ab"), (2, cut.as_str()), (3, "saw ")];
        let wanted = wanted.map(|(stream, text)| (stream, text.to_owned()));
        assert_eq!(saw(talks, true), wanted);
        assert_eq!(saw(talks, false), [], "a single conversation is not prepared");
    }

    #[test]
    fn a_panic_loses_only_its_portion() {
        crate::quiet_defects();
        let mut talks: Vec<&[(Side, &str)]> = vec![&[(Side::Client, "a")]; PORTION + 3];
        talks[5] = &[(Side::Client, "!")];
        let left = [PORTION as u64, PORTION as u64 + 1].map(|stream| (stream, "saw a".to_owned()));
        assert_eq!(saw(&talks, true), left);
    }
}
