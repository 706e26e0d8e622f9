//! Reads conversations that begin in the middle of a capture.

use worldwire_capture::{Conversations, Timestamp};

use super::{Batch, Dissection, OpenConversation, Options};
use crate::conversation::Conversation;
use crate::counts::Counts;
use crate::knowledge::Facts;
use crate::overview::Overview;

/// The state of reassembly between two packets. Conversations that begin later can be read from
/// here, without the earlier packets.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    conversations: Conversations,
    start: Option<Timestamp>,
    last: u64,
}

impl Checkpoint {
    /// The number of the first conversation that begins after the checkpoint.
    #[must_use]
    pub fn next_conversation(&self) -> u64 {
        self.conversations.count()
    }

    /// The number of conversations that reassembly is following here. Each takes a few hundred
    /// bytes.
    #[must_use]
    pub fn open_conversations(&self) -> usize {
        self.conversations.open()
    }

    /// Continues with the packets after the checkpoint. Reads only conversations that begin there;
    /// `facts` are those of a reading that has progressed further.
    #[must_use]
    pub fn resume(&self, options: Options, facts: Facts) -> Dissection {
        let mut dissection = Dissection::knowing(options, facts);
        dissection.conversations.clone_from(&self.conversations);
        let Batch { start, last, .. } = &mut dissection.batch;
        (*start, *last) = (self.start, self.last);
        dissection
    }

    /// Continues with the packets after the checkpoint. Reads only the conversation of this fork,
    /// which must have been taken together with the checkpoint. `facts` are those of a reading that
    /// has progressed further. `None` if the session can no longer be copied.
    #[must_use]
    pub fn resume_fork(&self, fork: &Fork, options: Options, facts: Facts) -> Option<Dissection> {
        let stream = fork.overview.stream;
        let (mut conversation, _) = fork.conversation.fork()?;
        if options.wire == Some(stream) {
            conversation.report_wire_bytes();
        }
        let (conversation, overview) = (Some(conversation), fork.overview.clone());
        let mut dissection = self.resume(Options { only: Some(stream), ..options }, facts);
        let open = OpenConversation { conversation, overview, learned: None, closing: None };
        dissection.open.insert(stream, open);
        Some(dissection)
    }
}

/// The state of one conversation at a checkpoint, from which the rest of it can be read again.
#[derive(Debug)]
pub struct Fork {
    conversation: Conversation,
    overview: Overview,
    bytes: usize,
}

impl Fork {
    /// The number of the conversation.
    #[must_use]
    pub fn stream(&self) -> u64 {
        self.overview.stream
    }

    /// Its approximate memory use in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Dissection {
    /// The state of reassembly after all packets so far, whether or not they have been
    /// [`run`](Self::run) yet.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let Batch { start, last, .. } = self.batch;
        Checkpoint { conversations: self.conversations.clone(), start, last }
    }

    /// The state of the open conversations for which `is_wanted` returns true, given the payload
    /// bytes that each has transferred. They belong to the [checkpoint](Self::checkpoint) after the
    /// packets that have been run so far. Conversations that cannot be copied now are omitted:
    /// those that wait for a fact or for the rest of a long message, and families that cannot be
    /// copied.
    pub fn forks(&self, mut is_wanted: impl FnMut(u64, u64) -> bool) -> Vec<Fork> {
        let fork = |open: &OpenConversation| {
            let OpenConversation { conversation, overview, closing, .. } = open;
            let (stream, bytes) = (overview.stream, overview.bytes.iter().sum::<u64>());
            if closing.is_some() || !is_wanted(stream, bytes) {
                return None;
            }
            let (conversation, bytes) = conversation.as_ref()?.fork()?;
            // Counts are not needed to continue reading.
            let overview = Overview {
                messages: Counts::default(),
                inside: Counts::default(),
                ..overview.clone()
            };
            Some(Fork { conversation, overview, bytes })
        };
        self.open.values().filter_map(fork).collect()
    }
}

#[cfg(test)]
mod tests {
    use worldwire_capture::{CaptureReader, Mark, Record};
    use worldwire_core::Limits;

    use super::*;
    use crate::dissection::Scratch;
    use crate::item::Item;
    use crate::knowledge::Keys;

    /// An item as text.
    type Line = (u64, String);

    fn show(item: &Item<'_>, scratch: &mut Scratch, lines: &mut Vec<Line>) {
        let range = &item.range;
        lines.push((item.stamp.stream, format!("{:?} {} {range:?}", item.stamp, scratch.name)));
    }

    /// A place to resume from, with the number of lines before it.
    type Place = (Mark, Checkpoint, Vec<Fork>, usize);

    /// Reads packets and takes a checkpoint after every `distance` of them.
    fn read(
        mut capture: CaptureReader<&[u8]>,
        mut dissection: Dissection,
        distance: u64,
    ) -> (Vec<Line>, Vec<Place>, Facts) {
        let (mut lines, mut checkpoints, mut count) = (Vec::new(), Vec::new(), 0_u64);
        while let Some(record) = capture.next().unwrap() {
            let Record::Packet(packet) = record else { continue };
            dissection.push(&packet);
            count += 1;
            if count.is_multiple_of(distance) {
                dissection.run(&show, &mut lines, |_| ());
                let (mark, checkpoint) = (capture.mark().unwrap(), dissection.checkpoint());
                checkpoints.push((mark, checkpoint, dissection.forks(|_, _| true), lines.len()));
            }
        }
        dissection.end();
        dissection.run(&show, &mut lines, |_| ());
        let facts = dissection.facts().clone();
        (lines, checkpoints, facts)
    }

    #[test]
    fn later_conversations_are_read_the_same_from_every_checkpoint() {
        let file: &[u8] = include_bytes!("../../../../samples/uru-login.pcapng");
        let keys = Keys::parse(include_str!("../../../../samples/uru-keys.toml")).unwrap();
        let options = Options { keys, ..Options::default() };
        let capture = CaptureReader::new(file, &Limits::DEFAULT).unwrap();
        let (all, checkpoints, facts) = read(capture, Dissection::new(options.clone()), 7);
        assert!(checkpoints.len() > 10);
        let mut found = 0;
        for (mark, checkpoint, ..) in &checkpoints {
            let from = usize::try_from(mark.offset()).unwrap();
            for stream in checkpoint.next_conversation()..4 {
                let options = Options { only: Some(stream), ..options.clone() };
                let rest = CaptureReader::resume(&file[from..], mark, &Limits::DEFAULT);
                let dissection = checkpoint.resume(options, facts.clone());
                let (lines, _, _) = read(rest, dissection, u64::MAX);
                let wanted: Vec<_> = all.iter().filter(|line| line.0 == stream).cloned().collect();
                assert_eq!(lines, wanted);
                found += lines.len();
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn open_conversations_are_read_the_same_from_every_fork() {
        let samples: [(&[u8], &str); 4] = [
            (
                include_bytes!("../../../../samples/uru-login.pcapng"),
                include_str!("../../../../samples/uru-keys.toml"),
            ),
            (include_bytes!("../../../../samples/ki-login.pcapng"), ""),
            (include_bytes!("../../../../samples/tera-login.pcapng"), ""),
            (
                include_bytes!("../../../../samples/mxo-world.pcapng"),
                include_str!("../../../../samples/mxo-keys.toml"),
            ),
        ];
        for (file, keys) in samples {
            let keys = if keys.is_empty() { Keys::none() } else { Keys::parse(keys).unwrap() };
            let options = Options { keys, ..Options::default() };
            let capture = CaptureReader::new(file, &Limits::DEFAULT).unwrap();
            let (all, places, facts) = read(capture, Dissection::new(options.clone()), 3);
            let mut found = 0;
            for (mark, checkpoint, forks, before) in &places {
                let from = usize::try_from(mark.offset()).unwrap();
                for fork in forks {
                    let rest = CaptureReader::resume(&file[from..], mark, &Limits::DEFAULT);
                    let dissection = checkpoint.resume_fork(fork, options.clone(), facts.clone());
                    let (lines, _, _) = read(rest, dissection.unwrap(), u64::MAX);
                    let rest = all.iter().skip(*before);
                    let wanted: Vec<_> =
                        rest.filter(|line| line.0 == fork.stream()).cloned().collect();
                    assert_eq!(lines, wanted, "{fork:?}");
                    found += lines.len();
                }
            }
            assert!(found > 20, "{found}");
        }
    }
}
