//! Properties of age files and send queues.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::{Field, Writer};
use worldwire_uru::age::{Config, Importance, Instance, Packet, Player, SendQueue};
use worldwire_uru::file::age::{AgeFile, AgePage, AgePageFlags};
use worldwire_uru::net_message::{
    MembersListReq, NetFlags, NetHeader, NetMessage, OpusPacket, Voice, VoiceFlags,
};
use worldwire_uru::types::{Bytes16, ClassIndex, UnifiedTime};

fn pages() -> impl Strategy<Value = Vec<AgePage>> {
    let page = ("[A-Za-z][A-Za-z0-9_ ]{0,9}[a-z]", any::<u32>());
    prop::collection::btree_map(any::<u16>(), page, 0..6).prop_map(|pages| {
        let page = |(number, (name, flags))| AgePage { name, number, flags: AgePageFlags(flags) };
        pages.into_iter().map(page).collect()
    })
}

prop_compose! {
    fn age_file()(
        start_date_time in any::<u32>(),
        day_length in 0.01_f32..1000.0,
        max_capacity in any::<i32>(),
        linger_time in any::<i32>(),
        sequence_prefix in any::<i32>(),
        release_version in any::<u32>(),
        pages in pages(),
    ) -> AgeFile {
        AgeFile {
            start_date_time, day_length, max_capacity, linger_time, sequence_prefix,
            release_version, pages,
        }
    }
}

/// A voice packet with its number in the payload, or a lock reply that must be delivered.
fn packets(kinds: &[bool]) -> Vec<Packet> {
    let (now, unix) = (Duration::ZERO, Duration::from_secs(1));
    let (file, config) = (AgeFile::default(), Config::default());
    let mut instance = Instance::new(now, unix, "Lab", file, Arc::default(), config);
    for player in [1, 2] {
        instance.join(now, Player::new(player, "x")).unwrap();
    }
    while instance.poll_delivery().is_some() {}
    let time = UnifiedTime { seconds: 1, microseconds: 2 };
    let header = NetHeader::from_client(time, 1, NetFlags(0));
    for (number, is_voice) in kinds.iter().enumerate() {
        let message: NetMessage<'_> = match is_voice {
            false => MembersListReq { header: header.clone() }.into(),
            true => Voice {
                header: header.clone(),
                voice_flags: VoiceFlags(5),
                frame_count: 1,
                pcm: None,
                speex: None,
                opus: Some(OpusPacket(Bytes16::new(vec![0; 4 + number]))),
                receivers: vec![1].into(),
            }
            .into(),
        };
        let mut writer = Writer::new();
        message.encode(&mut writer).unwrap();
        let bytes = writer.into_bytes();
        let class = u16::from_le_bytes(*bytes.first_chunk().unwrap());
        instance.receive(now, 1, ClassIndex(class.into()), &bytes);
    }
    core::iter::from_fn(|| instance.poll_delivery()).map(|delivery| delivery.packet).collect()
}

proptest! {
    #[test]
    fn age_files_read_back_as_written(age in age_file()) {
        let (again, problems) = AgeFile::parse("age", &age.to_string());
        prop_assert!(problems.is_empty(), "{problems:?}");
        prop_assert_eq!(again, age);
    }

    #[test]
    fn age_files_never_panic(text in "(?s).{0,200}") {
        let (age, _) = AgeFile::parse("age", &text);
        prop_assert!(age.day_length > 0.0);
    }

    /// Messages leave the queue in order, with only voice messages missing, and the bound is never
    /// exceeded.
    #[test]
    fn queues_keep_order_and_bound(
        kinds in prop::collection::vec(any::<bool>(), 0..60),
        limit in 200_usize..6_000,
        reads in prop::collection::vec(0_usize..3, 60),
    ) {
        let packets = packets(&kinds);
        prop_assert_eq!(packets.len(), kinds.len());
        let mut queue = SendQueue::new(limit);
        let mut read = Vec::new();
        let mut pushed = 0;
        for (packet, count) in packets.iter().zip(&reads) {
            if queue.push(packet.clone()).is_err() {
                prop_assert!(queue.queued_bytes() > limit);
                break;
            }
            pushed += 1;
            prop_assert!(queue.queued_bytes() <= limit);
            read.extend((0..*count).map_while(|_| queue.pop()));
        }
        if pushed == packets.len() {
            read.extend(core::iter::from_fn(|| queue.pop()));
            prop_assert_eq!(queue.queued_bytes(), 0);
            prop_assert_eq!(packets.len() - read.len(), usize::try_from(queue.discarded()).unwrap());
            let mut rest = packets.iter();
            for packet in &read {
                // Every discarded message is a voice message.
                let skipped = rest.by_ref().take_while(|other| *other != packet);
                for other in skipped {
                    prop_assert_eq!(other.importance(), &Importance::Voice);
                }
            }
            for other in rest {
                prop_assert_eq!(other.importance(), &Importance::Voice);
            }
        }
    }
}
