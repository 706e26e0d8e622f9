//! The messages that the processes of a cluster send each other over the bus.
//!
//! | subject | from, to | content |
//! | --- | --- | --- |
//! | `ww.NAME.1.leader` | the leader, all nodes | [`Announcement`], every 250 ms |
//! | `ww.NAME.1.up.EPOCH.KIND.NODE` | nodes, the leader of this epoch | [`Frame`]s with [`UpItem`]s, or a [`Passport`](super::passport::Passport) to join |
//! | `ww.NAME.1.down.NODE.PROCESS` | the leader, one process | [`Frame`]s with [`DownItem`]s, or a [`Refusal`](super::passport::Refusal) |
//!
//! `NAME` is the name of the cluster, `1` the major version of this format, `KIND` a
//! [`NodeKind`](super::subjects::NodeKind), and `NODE` the name of the node. Everything that may be
//! extended has a length prefix: a newer minor version can append fields to heads and items, and
//! add items. Older versions skip both.
//!
//! A frame carries a section of a stream of items. An item consists of a `u32` length, a `u16`
//! number and fields. A long item continues in the next frame.

use worldwire_core::{Bytes32, Error, Field as _, Messages, Reader, Result, Writer};
use worldwire_core::{messages, record};
use worldwire_uru::types::NetError;

use super::passport::MAX_PASSPORT;

/// The minor version of the format.
const MINOR: u8 = 0;
/// The maximum number of payload bytes in a frame. A bus server accepts messages of up to 1 MiB.
pub(super) const MAX_PAYLOAD: usize = 512 << 10;
/// The maximum length of an item.
pub(super) const MAX_ITEM: usize = 16 << 20;
/// The maximum length of the body of a request or reply.
pub(super) const MAX_BODY: usize = MAX_ITEM - 64;
/// The maximum length of a notice or report.
const MAX_NOTICE: usize = 1_024;
/// The maximum length of an order or report about ages.
pub(super) const MAX_ORDER: usize = 8_192;
/// The maximum length of a head.
const MAX_HEAD: usize = 1_024;
/// The maximum length of the shared settings.
const MAX_SETTINGS: usize = 64 << 10;

record! {
    /// Announces which process leads the cluster.
    pub struct Announcement<'a> {
        /// The minor version of the format.
        minor "minor": u8,
        /// The epoch of the leader. Processes of earlier epochs are no longer leaders.
        epoch "epoch": u64,
        /// The random number of the leader's shard. Processes of other shards do not join it.
        shard "shard": u64,
        /// A description of the process for people.
        place "place": Bytes32<'a, MAX_HEAD>,
        /// 1 while its database rejects changes or fails to confirm that it leads.
        failing "failing": u8,
    }
}

record! {
    /// A message between a node and the leader.
    pub struct Frame<'a> {
        /// The minor version of the format.
        minor "minor": u8,
        /// An encoded [`Head`].
        head "head": Bytes32<'a, MAX_HEAD>,
        /// A section of the stream of items, the passport of a node that requests an incarnation,
        /// or a leader's refusal.
        payload "payload": Bytes32<'a, MAX_PAYLOAD>,
    }
}

record! {
    /// The state of a frame's sender and of its stream of items.
    pub struct Head {
        /// The epoch of the leader.
        epoch "epoch": u64,
        /// The random number of the leader's shard.
        shard "shard": u64,
        /// The random number of the node's process.
        process "process": u64,
        /// The random number of the node's attempt to join.
        attempt "attempt": u64,
        /// The number that the leader gave to this membership of the node; 0 while the node is
        /// requesting one.
        incarnation "incarnation": u64,
        /// The number of this frame, starting at 1; 0 if it has no payload.
        sequence "sequence": u64,
        /// The highest number among the frames sent so far.
        sent "sent": u64,
        /// The number up to which the sender has received all frames.
        received "received": u64,
        /// From a node: a counter, incremented at most every 50 ms. From the leader: the highest
        /// value received from the node.
        beat "beat": u64,
        /// 1 if frames after `received` are known to be lost and should be resent.
        lacks "lacks": u8,
        /// Why the leader no longer knows this incarnation: a [`Farewell`]; 0 if it does. Without
        /// an incarnation, 1 means that the leader refuses to give one.
        gone "gone": u8,
    }
}

messages! {
    /// What a node sends.
    pub enum UpItem<'a>: "cluster", Client;

    /// Opens a session for a client. Answered by [`SessionEnded`] if that is not possible.
    1 OpenSession {
        /// Its number, never reused in this incarnation.
        session "session": u64,
    }

    /// Ends a session.
    2 EndSession {
        /// Its number.
        session "session": u64,
    }

    /// A request from a session, answered by [`Reply`].
    3 Request<'a> {
        /// Its number, never reused in this incarnation.
        number "number": u64,
        /// The session.
        session "session": u64,
        /// The kind of request.
        kind "kind": u16,
        /// Its encoded arguments.
        body "body": Bytes32<'a, MAX_BODY>,
    }

    /// Reports something that happened to a session's client. There is no answer.
    4 Report<'a> {
        /// The session.
        session "session": u64,
        /// An encoded [`ClientReport`](super::requests::ClientReport).
        report "report": Bytes32<'a, MAX_NOTICE>,
    }

    /// Reports something about the node or its ages. There is no answer.
    5 AgesReport<'a> {
        /// An encoded [`AgeReport`](super::ages::AgeReport). Unknown reports are skipped.
        report "report": Bytes32<'a, MAX_ORDER>,
    }

    /// The node is stopping. Its sessions and ages have ended. The leader answers with a farewell.
    6 Stopping {
        /// 0.
        reserved "reserved": u8,
    }

    /// The node's current passport, sent because the passport has changed. There is no answer.
    7 Introduced<'a> {
        /// An encoded [`Passport`](super::passport::Passport).
        passport "passport": Bytes32<'a, MAX_PASSPORT>,
    }

    /// The process's description of itself, for operators. There is no answer.
    40 Described<'a> {
        /// An encoded [`Description`](super::members::Description). Unknown ones are skipped.
        description "description": Bytes32<'a, MAX_NOTICE>,
    }
}

messages! {
    /// What the leader sends. The items of each session are in chronological order.
    pub enum DownItem<'a>: "cluster", Server;

    /// The answer to a [`Request`].
    1 Reply<'a> {
        /// The number of the request.
        number "number": u64,
        /// The number of notices sent to the session before this reply.
        notices "notices": u64,
        /// The result.
        result "result": NetError,
        /// The encoded reply; empty unless the result is `Success`.
        body "body": Bytes32<'a, MAX_BODY>,
    }

    /// The leader has ended a session.
    2 SessionEnded {
        /// Its number.
        session "session": u64,
    }

    /// A notice to a session.
    3 Notified<'a> {
        /// The session.
        session "session": u64,
        /// An encoded [`Notice`](crate::uru::vault::Notice).
        notice "notice": Bytes32<'a, MAX_NOTICE>,
    }

    /// An order to a node that runs ages.
    4 AgesOrder<'a> {
        /// An encoded [`AgeOrder`](super::ages::AgeOrder). Unknown orders are skipped.
        order "order": Bytes32<'a, MAX_ORDER>,
    }

    /// The leader has admitted the node. This is the first item.
    5 Admitted<'a> {
        /// The settings shared by all processes of a shard, as JSON.
        settings "settings": Bytes32<'a, MAX_SETTINGS>,
    }

    /// An operator has changed the settings shared by all processes of a shard.
    6 SettingsChanged<'a> {
        /// The complete settings, as JSON.
        settings "settings": Bytes32<'a, MAX_SETTINGS>,
    }

    /// Whether the node should be free of clients and new ages, so that it can be stopped.
    40 Drain {
        /// 1 to drain the node; 0 if it should serve clients again.
        is_draining "isDraining": u8,
    }
}

/// Why a membership has ended, as reported in a [`Head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// The leader has given the node up, or never knew it.
    GivenUp,
    /// The sender no longer leads.
    LeaderStops,
    /// Another process has joined under the node's name.
    Replaced,
    /// The node has announced that it is stopping.
    Stopped,
}

impl Farewell {
    /// The code for a head.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::GivenUp => 1,
            Self::LeaderStops => 2,
            Self::Replaced => 3,
            Self::Stopped => 4,
        }
    }

    /// Decodes a code from a head.
    pub(super) fn of(code: u8) -> Option<Self> {
        match code {
            0 => None,
            2 => Some(Self::LeaderStops),
            3 => Some(Self::Replaced),
            4 => Some(Self::Stopped),
            // Newer versions may have more reasons.
            _ => Some(Self::GivenUp),
        }
    }
}

impl Head {
    /// A head without a sender or a frame number.
    pub(super) fn of(epoch: u64) -> Self {
        let [process, attempt, incarnation] = [0; 3];
        let [shard, sequence, sent, received, beat] = [0; 5];
        let [lacks, gone] = [0; 2];
        Self {
            epoch,
            shard,
            process,
            attempt,
            incarnation,
            sequence,
            sent,
            received,
            beat,
            lacks,
            gone,
        }
    }
}

impl<'a> Announcement<'a> {
    pub(super) fn of(epoch: u64, shard: u64, place: &'a str, is_failing: bool) -> Self {
        let place = Bytes32::new(place.as_bytes());
        Self { minor: MINOR, epoch, shard, place, failing: is_failing.into() }
    }

    /// Whether the database rejects changes or fails to confirm that the process leads.
    pub(super) fn is_failing(&self) -> bool {
        self.failing != 0
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::decode(&mut Reader::new(bytes), "announcement")
    }
}

/// Encodes a frame.
pub(super) fn encode_frame(head: &Head, payload: &[u8]) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    head.encode(&mut writer)?;
    let head = Bytes32::new(writer.into_bytes());
    let mut writer = Writer::new();
    Frame { minor: MINOR, head, payload: Bytes32::new(payload) }.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

/// Decodes a frame. Returns its head and payload.
pub(super) fn decode_frame(bytes: &[u8]) -> Result<(Head, Bytes32<'_, MAX_PAYLOAD>)> {
    let frame = Frame::decode(&mut Reader::new(bytes), "frame")?;
    let head = Head::decode(&mut Reader::new(&frame.head), "head");
    let head = head.map_err(|error| error.inside("frame"))?.into_owned();
    if head.sequence == 0 && head.incarnation != 0 && !frame.payload.is_empty() {
        return Err(Error::malformed("no payload in a frame without a number", "a payload"));
    }
    Ok((head, frame.payload))
}

/// Appends an item to a stream.
pub(super) fn encode_item<'a>(item: &impl Messages<'a>, stream: &mut Vec<u8>) -> Result<()> {
    let number = u16::try_from(item.number());
    let number = number.map_err(|_| Error::value("an item's number", item.name()))?;
    let mut writer = Writer::new();
    writer.u16(number);
    item.encode_body(&mut writer)?;
    let bytes = writer.into_bytes();
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MAX_ITEM);
    let Some(length) = length else {
        return Err(Error::limit("bytes of an item", MAX_ITEM as u64, bytes.len() as u64));
    };
    stream.extend(length.to_le_bytes());
    stream.extend(bytes);
    Ok(())
}

/// Decodes an item without its length. Returns `None` for an item that only newer versions define.
pub(super) fn decode_item<'a, M: Messages<'a>>(bytes: &'a [u8]) -> Result<Option<M>> {
    let mut reader = Reader::new(bytes);
    let number = u32::from(reader.u16("number")?);
    match M::info(number) {
        Some(_) => M::decode_body(number, &mut reader).map(Some),
        None => Ok(None),
    }
}

/// Cuts a stream of items, which arrives in sections, back into items.
#[derive(Debug, Default)]
pub(super) struct Cutter(Vec<u8>);

impl Cutter {
    /// Accepts the next section and passes each completed item to `item`.
    ///
    /// # Errors
    /// If an item exceeds the length limit. The stream is then unusable.
    pub(super) fn feed(&mut self, section: &[u8], mut item: impl FnMut(&[u8])) -> Result<()> {
        self.0.extend(section);
        let mut start = 0;
        while let Some((length, rest)) = self.0.get(start..).and_then(<[u8]>::split_first_chunk) {
            let length = u32::from_le_bytes(*length) as usize;
            if length > MAX_ITEM {
                return Err(Error::limit("bytes of an item", MAX_ITEM as u64, length as u64));
            }
            let Some(bytes) = rest.get(..length) else { break };
            item(bytes);
            start += 4 + length;
        }
        self.0.drain(..start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use worldwire_core::Sampler;

    use super::*;

    fn head(seed: u64) -> Head {
        Head::sample(&mut Sampler::new(seed)).into_owned()
    }

    fn item<'a, M: Messages<'a>>(seed: u64) -> M {
        let mut sampler = Sampler::new(seed);
        let index = usize::try_from(sampler.below(M::INFO.len() as u64)).unwrap();
        M::sample(M::INFO[index].number, &mut sampler).unwrap()
    }

    /// Checks that an item is decoded unchanged, whatever a newer version appends to it.
    fn survives<'a, M: Messages<'a>>(item: M, stream: &'a mut Vec<u8>) {
        encode_item(&item, stream).unwrap();
        stream.extend([7; 3]);
        assert_eq!(decode_item::<M>(&stream[4..]).unwrap(), Some(item));
    }

    proptest! {
        #[test]
        fn items_survive_with_appended_fields(seed in any::<u64>()) {
            survives(item::<UpItem<'_>>(seed), &mut Vec::new());
            survives(item::<DownItem<'_>>(seed), &mut Vec::new());
        }

        #[test]
        fn frames_survive(seed in any::<u64>(), payload in prop::collection::vec(0_u8.., 0..64)) {
            let head = Head { sequence: 1, ..head(seed) };
            let mut bytes = encode_frame(&head, &payload).unwrap();
            bytes.extend([9; 3]);
            let (found, found_payload) = decode_frame(&bytes).unwrap();
            prop_assert_eq!(found, head);
            prop_assert_eq!(&*found_payload, &*payload);
        }

        /// The resulting items do not depend on where frames begin.
        #[test]
        fn streams_are_cut_into_items(seeds in prop::collection::vec(any::<u64>(), 0..8), size in 1_usize..40) {
            let (mut stream, mut items, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for seed in seeds {
                let start = stream.len() + 4;
                encode_item(&item::<UpItem<'_>>(seed), &mut stream).unwrap();
                items.push(stream[start..].to_vec());
            }
            let mut cutter = Cutter::default();
            for section in stream.chunks(size) {
                cutter.feed(section, |item| found.push(item.to_vec())).unwrap();
            }
            prop_assert_eq!(found, items);
            prop_assert!(cutter.0.is_empty());
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(0_u8.., 0..80)) {
            let _ = decode_frame(&bytes);
            let _ = Announcement::parse(&bytes);
            let _ = decode_item::<UpItem<'_>>(&bytes);
            let _ = decode_item::<DownItem<'_>>(&bytes);
            let _ = Cutter::default().feed(&bytes, |_| ());
        }
    }

    #[test]
    fn farewells_survive() {
        let (given_up, stops) = (Farewell::GivenUp, Farewell::LeaderStops);
        for farewell in [given_up, stops, Farewell::Replaced, Farewell::Stopped] {
            assert_eq!(Farewell::of(farewell.code()), Some(farewell));
        }
        assert_eq!((Farewell::of(0), Farewell::of(99)), (None, Some(Farewell::GivenUp)));
    }

    #[test]
    fn announcements_may_grow() {
        let announcement = Announcement::of(7, 8, "process 9", true);
        let bytes = announcement.to_bytes().unwrap();
        let longer = [&bytes[..], &[1, 2, 3]].concat();
        assert_eq!(Announcement::parse(&longer).unwrap(), announcement);
        let parsed = Announcement::parse(&bytes).unwrap();
        assert_eq!((parsed.epoch, parsed.shard, parsed.is_failing()), (7, 8, true));
        assert!(Announcement::parse(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn heads_may_grow() {
        let head = head(1);
        let mut writer = Writer::new();
        head.encode(&mut writer).unwrap();
        writer.u32(7);
        let frame = Frame {
            minor: MINOR + 1,
            head: Bytes32::new(writer.into_bytes()),
            payload: Bytes32::default(),
        };
        let mut writer = Writer::new();
        frame.encode(&mut writer).unwrap();
        assert_eq!(decode_frame(writer.as_bytes()).unwrap().0, head);
    }

    #[test]
    fn items_of_newer_versions_are_skipped() {
        assert_eq!(decode_item::<UpItem<'_>>(&[0xff, 0xff, 1, 2]).unwrap(), None);
        assert!(decode_item::<UpItem<'_>>(&[1]).is_err());
    }

    #[test]
    fn limits_are_named() {
        let long = u32::try_from(MAX_ITEM + 1).unwrap().to_le_bytes();
        let error = Cutter::default().feed(&long, |_| ()).unwrap_err();
        assert!(error.to_string().contains("bytes of an item"), "{error}");
        let error = encode_frame(&head(1), &vec![0; MAX_PAYLOAD + 1]).unwrap_err();
        assert!(error.to_string().contains("bytes of this field"), "{error}");
        let bytes = encode_frame(&Head { sequence: 0, incarnation: 1, ..head(1) }, &[1]).unwrap();
        assert!(decode_frame(&bytes).is_err());
    }
}
