//! Reads conversations that begin in the middle of a capture.

use worldwire_capture::{Conversations, Timestamp};

use super::{Batch, Dissection, Options};
use crate::knowledge::Facts;

/// The state of reassembly between two packets. Conversations that begin later can be read from
/// here, without the packets before.
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

    /// How many conversations reassembly follows here. Each takes a few hundred bytes.
    #[must_use]
    pub fn open_conversations(&self) -> usize {
        self.conversations.open()
    }

    /// Continues with the packets after the checkpoint. Reads only conversations that begin there;
    /// `facts` are those of a reading that is further on.
    #[must_use]
    pub fn resume(&self, options: Options, facts: Facts) -> Dissection {
        let mut dissection = Dissection::knowing(options, facts);
        dissection.conversations.clone_from(&self.conversations);
        let Batch { start, last, .. } = &mut dissection.batch;
        (*start, *last) = (self.start, self.last);
        dissection
    }
}

impl Dissection {
    /// The state after all packets so far. `None` while packets [are pending](Self::is_pending).
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let Batch { start, last, .. } = self.batch;
        let conversations = || self.conversations.clone();
        (!self.is_pending()).then(|| Checkpoint { conversations: conversations(), start, last })
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

    /// Reads packets, and takes a checkpoint after every `distance`.
    fn read(
        mut capture: CaptureReader<&[u8]>,
        mut dissection: Dissection,
        distance: u64,
    ) -> (Vec<Line>, Vec<(Mark, Checkpoint)>, Facts) {
        let (mut lines, mut checkpoints, mut count) = (Vec::new(), Vec::new(), 0_u64);
        while let Some(record) = capture.next().unwrap() {
            let Record::Packet(packet) = record else { continue };
            dissection.push(&packet);
            count += 1;
            if count.is_multiple_of(distance) {
                dissection.run(&show, &mut lines, |_| ());
                checkpoints.push((capture.mark().unwrap(), dissection.checkpoint().unwrap()));
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
        for (mark, checkpoint) in &checkpoints {
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
}
