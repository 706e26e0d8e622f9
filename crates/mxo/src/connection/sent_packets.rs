//! Sent packets, until each is acknowledged or counts as lost.

use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;

use super::config::Common;
use super::event::PacketNumber;
use crate::frame::{ACK_BITS, MAX_NEWER, SequenceNumber, SequenceWord};

/// The packets in flight that carry RPC messages or objects.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    /// In the order of their numbers, which is the order of sending.
    sent: VecDeque<Sent>,
    /// The newest acknowledged packet; initially, the last one that needs no acknowledgement.
    highest: u64,
    times: RoundTrips,
    /// The number of packets in flight that carry RPC messages.
    rpc_packets: usize,
    /// The number of packets sent since the driver's last input; they are the last ones in the
    /// list.
    fresh: usize,
    /// Object packets that count as lost, by number. Their acknowledgements may still arrive.
    lost: VecDeque<u64>,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    at: Duration,
    cargo: Cargo,
}

/// The contents of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cargo {
    /// RPC messages with these numbers.
    Rpc(Vec<Range<u64>>),
    /// Objects.
    Objects,
}

/// A packet whose outcome is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) number: PacketNumber,
    pub(super) cargo: Cargo,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Arrived,
    Lost,
    /// It counted as lost but arrived after all.
    Late,
}

/// The round-trip estimate of RFC 6298.
#[derive(Debug, Default)]
struct RoundTrips {
    smooth: Option<Duration>,
    variation: Duration,
    /// The number of consecutive times that no acknowledgement arrived in time.
    backoff: u32,
}

impl SentPackets {
    /// Tracks a sent packet. A driver does not pass the time when it sends, so the next
    /// [`set_now`](Self::set_now) sets the exact send time.
    pub(super) fn send(&mut self, number: u64, at: Duration, cargo: Cargo) {
        self.fresh += 1;
        self.rpc_packets += usize::from(cargo != Cargo::Objects);
        self.sent.push_back(Sent { number, at, cargo });
    }

    /// Takes the time from the driver.
    pub(super) fn set_now(&mut self, now: Duration) {
        for sent in self.sent.iter_mut().rev().take(core::mem::take(&mut self.fresh)) {
            sent.at = now;
        }
    }

    /// Whether the send time of a packet is unknown.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// Handles the other side's sequence word. `next` is the number of the next packet to send.
    pub(super) fn acknowledge(
        &mut self,
        now: Duration,
        word: SequenceWord,
        next: u64,
        fates: &mut Vec<Fate>,
    ) {
        let last = next.saturating_sub(1);
        for acked in word.acked() {
            // The newest packet with this number on the wire.
            let behind = SequenceNumber::of(last).ahead_of(acked);
            let Some(number) = last.checked_sub(behind.into()).filter(|number| *number > 0) else {
                continue;
            };
            self.highest = self.highest.max(number);
            let Ok(index) = self.sent.binary_search_by_key(&number, |sent| sent.number) else {
                self.find_late(number, fates);
                continue;
            };
            let Some(Sent { at, cargo, .. }) = self.sent.remove(index) else { continue };
            self.times.measure(now.saturating_sub(at));
            self.rpc_packets -= usize::from(cargo != Cargo::Objects);
            fates.push(Fate { number: PacketNumber(number), cargo, outcome: Outcome::Arrived });
        }
        // Numbers wrap: older packets could be confused with newer ones.
        while self.lost.front().is_some_and(|number| number + u64::from(MAX_NEWER) <= last) {
            self.lost.pop_front();
        }
        // Packets that no future word can acknowledge are lost.
        let reached = self.highest.saturating_sub(ACK_BITS.into());
        while self.sent.front().is_some_and(|sent| sent.number <= reached) {
            self.lose(fates);
        }
    }

    /// Gives up packets that were not acknowledged in time.
    pub(super) fn time_out(&mut self, now: Duration, config: &Common, fates: &mut Vec<Fate>) {
        let patience = self.times.patience(config);
        let is_late = |sent: &Sent| sent.at.saturating_add(patience) <= now;
        let before = fates.len();
        while self.sent.front().is_some_and(is_late) {
            self.lose(fates);
        }
        if fates.len() > before {
            self.times.backoff = self.times.backoff.saturating_add(1);
        }
    }

    /// Gives up all packets and ignores their later acknowledgements.
    pub(super) fn abandon(&mut self, fates: &mut Vec<Fate>) {
        while !self.sent.is_empty() {
            self.lose(fates);
        }
        self.lost.clear();
    }

    /// When the next packet will be given up.
    pub(super) fn deadline(&self, config: &Common) -> Option<Duration> {
        Some(self.sent.front()?.at.saturating_add(self.times.patience(config)))
    }

    /// How long to wait for an acknowledgement.
    pub(super) fn patience(&self, config: &Common) -> Duration {
        self.times.patience(config)
    }

    /// The number of packets with RPC messages in flight.
    pub(super) fn rpc_packets(&self) -> usize {
        self.rpc_packets
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The newest acknowledged packet.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Resets the sequence: packets up to this one need no acknowledgement.
    pub(super) fn restart(&mut self, number: u64) {
        self.highest = self.highest.max(number);
    }

    fn find_late(&mut self, number: u64, fates: &mut Vec<Fate>) {
        if let Ok(index) = self.lost.binary_search(&number) {
            self.lost.remove(index);
            let (number, cargo) = (PacketNumber(number), Cargo::Objects);
            fates.push(Fate { number, cargo, outcome: Outcome::Late });
        }
    }

    fn lose(&mut self, fates: &mut Vec<Fate>) {
        if let Some(Sent { number, cargo, .. }) = self.sent.pop_front() {
            match cargo {
                Cargo::Objects => self.lost.push_back(number),
                Cargo::Rpc(_) => self.rpc_packets -= 1,
            }
            fates.push(Fate { number: PacketNumber(number), cargo, outcome: Outcome::Lost });
        }
    }
}

impl RoundTrips {
    fn measure(&mut self, time: Duration) {
        self.backoff = 0;
        match &mut self.smooth {
            None => {
                self.smooth = Some(time);
                self.variation = time / 2;
            }
            Some(smooth) => {
                self.variation = (self.variation * 3 + smooth.abs_diff(time)) / 4;
                *smooth = (*smooth * 7 + time) / 8;
            }
        }
    }

    fn patience(&self, config: &Common) -> Duration {
        let known = self.smooth.map(|smooth| smooth.saturating_add(self.variation * 4));
        let once = known.unwrap_or(config.first_resend).max(config.least_resend);
        let doubled = once.saturating_mul(1 << self.backoff.min(10));
        doubled.min(config.max_resend.max(config.least_resend))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::ServerConfig;
    use super::*;
    use crate::frame::AckBits;

    fn word(remote: u64, acks: u8) -> SequenceWord {
        let remote = SequenceNumber::of(remote);
        SequenceWord { acks: AckBits(acks), remote, local: SequenceNumber::new(1) }
    }

    #[test]
    fn each_packet_has_one_fate_across_the_wrap() {
        let mut sent_packets = SentPackets::default();
        let mut fates = Vec::new();
        for number in 4090..4110 {
            sent_packets.send(number, Duration::ZERO, Cargo::Objects);
        }
        let now = Duration::from_millis(80);
        sent_packets.acknowledge(now, word(4098, 0b101), 4110, &mut fates);
        sent_packets.acknowledge(now, word(4098, 0b111), 4110, &mut fates);
        let seen: Vec<_> = fates.drain(..).map(|fate| (fate.number.0, fate.outcome)).collect();
        let (yes, no) = (Outcome::Arrived, Outcome::Lost);
        assert_eq!(seen, [(4098, yes), (4096, yes), (4090, no), (4091, no), (4097, yes)]);
        let config = ServerConfig::new(Duration::ZERO).common;
        assert_eq!(sent_packets.deadline(&config), Some(Duration::from_millis(200)));
        sent_packets.time_out(Duration::from_millis(200), &config, &mut fates);
        assert_eq!(fates.len(), 15);
        assert!(sent_packets.is_empty() && fates.iter().all(|fate| fate.outcome == Outcome::Lost));
        sent_packets.send(4110, now, Cargo::Objects);
        sent_packets.set_now(now);
        // After a timeout, the next packet is allowed twice the time.
        assert_eq!(sent_packets.deadline(&config), Some(now + Duration::from_millis(400)));
    }

    #[test]
    fn a_late_packet_is_reported_once() {
        let mut sent_packets = SentPackets::default();
        let mut fates = Vec::new();
        for number in 1..=20 {
            sent_packets.send(number, Duration::ZERO, Cargo::Objects);
        }
        sent_packets.acknowledge(Duration::ZERO, word(20, 1), 21, &mut fates);
        fates.clear();
        for _ in 0..2 {
            sent_packets.acknowledge(Duration::ZERO, word(9, 0b101), 21, &mut fates);
        }
        let seen: Vec<_> = fates.drain(..).map(|fate| (fate.number.0, fate.outcome)).collect();
        assert_eq!(seen, [(9, Outcome::Late), (7, Outcome::Late)]);
        // By then, another packet may have the same number.
        sent_packets.acknowledge(Duration::ZERO, word(2_052, 1), 2_053, &mut fates);
        sent_packets.acknowledge(Duration::ZERO, word(4, 1), 2_053, &mut fates);
        sent_packets.acknowledge(Duration::ZERO, word(5, 1), 2_053, &mut fates);
        let late: Vec<_> = fates.iter().filter(|it| it.outcome == Outcome::Late).collect();
        assert!(late.len() == 1 && late[0].number.0 == 5, "{late:?}");
        // Abandoned packets are not reported again.
        sent_packets.abandon(&mut fates);
        fates.clear();
        sent_packets.acknowledge(Duration::ZERO, word(6, 1), 2_053, &mut fates);
        assert_eq!(fates, []);
    }

    #[test]
    fn acknowledgements_of_unsent_packets_are_ignored() {
        let mut sent_packets = SentPackets::default();
        sent_packets.send(1, Duration::ZERO, Cargo::Objects);
        let mut fates = Vec::new();
        sent_packets.acknowledge(Duration::ZERO, word(0, 0x7f), 2, &mut fates);
        sent_packets.acknowledge(Duration::ZERO, word(9, 0x03), 2, &mut fates);
        assert_eq!(fates, []);
    }
}
