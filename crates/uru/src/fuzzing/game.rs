//! Fuzz targets for game connections.

use worldwire_core::testing::Target;
use worldwire_core::{Error, Limits, Reader, Result, Side};

use crate::inflate::Inflater;
use crate::net_message::patch::{HeaderLayout, clear_chat_admin, clear_routing, restamp};
use crate::net_message::{NetFlags, NetMessage, Payload, Stream, class_info, received};
use crate::safety::{Rules, check, check_payload, lint};
use crate::types::{ClassIndex, UnifiedTime};

/// The outer class index of a net message.
fn class(data: &[u8]) -> u16 {
    data.first_chunk().map_or(0, |class| u16::from_le_bytes(*class))
}

/// Runs the safety check: messages that pass must be completely decodable, including their payload,
/// and stricter rules must never allow more than lenient ones.
fn safety(data: &[u8]) {
    let limits = &Limits::DEFAULT;
    let mut inflater = Inflater::new();
    let strict = Rules { strict: true, ..Rules::PLAYER };
    let [strict, player, admin] = [strict, Rules::PLAYER, Rules::ADMIN]
        .map(|rules| check(data, &rules, &mut inflater, limits));
    assert!(strict.is_err() || player.is_ok(), "{player:?}");
    assert!(player.is_err() || admin.is_ok(), "{admin:?}");
    if let Err(refusal) = &admin {
        assert!(!refusal.to_string().is_empty());
    }
    let outer = ClassIndex(class(data).into());
    let message = received(outer, data, limits);
    if admin.is_ok() {
        let message = message.unwrap_or_else(|error| panic!("{error}"));
        payload(&message, &mut inflater).unwrap_or_else(|error| panic!("{error}"));
    }
    for sender in Side::BOTH {
        let remarks = lint::lint(outer, data, sender, limits);
        assert!(remarks.iter().all(|remark| !remark.is_empty()));
    }
    let _ = check_payload(data, &Rules::ADMIN, &mut inflater, limits);
}

/// Decodes the payload of a message.
fn payload(message: &NetMessage<'_>, inflater: &mut Inflater) -> Result<()> {
    fn read<K: Payload>(stream: &Stream<'_, K>, inflater: &mut Inflater) -> Result<()> {
        let limits = Limits::DEFAULT;
        let payload = stream.payload(inflater, &limits)?;
        let mut reader = Reader::within(payload, &limits);
        K::decode(&mut reader).and_then(|()| reader.end()).map_err(Error::closed)
    }
    match message {
        NetMessage::GameMessage(game) => read(&game.stream, inflater),
        NetMessage::GameMessageDirected(directed) => read(&directed.game.stream, inflater),
        NetMessage::LoadClone(clone) => read(&clone.stream, inflater),
        NetMessage::TestAndSet(test) => read(&test.stream, inflater),
        _ => Ok(()),
    }
}

/// Checks patches of forwarded messages: nothing but the patched fields may change, and decodable
/// messages must stay decodable.
fn patch(data: &[u8]) {
    const TIME: UnifiedTime = UnifiedTime { seconds: 5, microseconds: 6 };
    const PLAYER: u32 = 7;
    let limits = &Limits::DEFAULT;
    let outer = ClassIndex(class(data).into());
    let mut stamped = data.to_vec();
    let layout = HeaderLayout::of(data);
    assert_eq!(restamp(&mut stamped, TIME, PLAYER).is_ok(), layout.is_ok());
    let Ok(layout) = layout else {
        assert_eq!(stamped, data);
        return;
    };
    assert_eq!(stamped.len() == data.len(), layout.player_id.is_some());
    assert_eq!(stamped[stamped.len() - (data.len() - layout.end)..], data[layout.end..]);
    let mut cleared = data.to_vec();
    let cleared_routing = clear_routing(&mut cleared, NetFlags(u32::MAX));
    assert!(cleared_routing.is_ok() && cleared.len() == data.len());
    if let Ok(before) = received(outer, data, limits) {
        let again = received(outer, &stamped, limits);
        let after = again.unwrap_or_else(|error| panic!("{error}"));
        let (before, after) = (before.header(), after.header());
        let time = before.and_then(|header| header.time_sent.as_ref()).map(|_| TIME);
        assert_eq!(after.map(|header| header.time_sent.clone()), Some(time));
        assert_eq!(after.and_then(|header| header.player_id), Some(PLAYER));
        assert!(received(outer, &cleared, limits).is_ok());
        let mut inflater = Inflater::new();
        let mut chat = data.to_vec();
        if matches!(class(data), 0x026b | 0x032e)
            && clear_chat_admin(&mut chat, &mut inflater, limits) == Ok(true)
        {
            assert_ne!(chat, data);
            assert_eq!(clear_chat_admin(&mut chat, &mut inflater, limits), Ok(false));
            assert!(received(outer, &chat, limits).is_ok());
        }
    }
}

/// Every net message, in several generated variants.
fn net_messages() -> Vec<Vec<u8>> {
    let mut seeds = super::samples::<NetMessage<'_>>(400);
    seeds.retain(|bytes| class_info(class(bytes)).is_some());
    seeds
}

pub(super) static TARGETS: &[Target] = &[
    Target { name: "uru_safety", run: safety, seeds: net_messages },
    Target { name: "uru_patch", run: patch, seeds: net_messages },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::Reason;

    /// Generated messages pass the check, except those with text that crashes clients, pages that
    /// exist on one client only, or classes without a layout.
    #[test]
    fn seeds_pass() {
        let mut inflater = Inflater::new();
        let mut passed = 0;
        for seed in net_messages() {
            match check(&seed, &Rules::ADMIN, &mut inflater, &Limits::DEFAULT) {
                Ok(()) => passed += 1,
                Err(refusal) => {
                    let reason = refusal.reason;
                    let no_layout = reason == Reason::Class(class(&seed));
                    let good = matches!(reason, Reason::Text | Reason::LocalObject);
                    assert!(good || no_layout, "{refusal:?}");
                }
            }
        }
        assert!(passed > 100, "{passed}");
    }
}
