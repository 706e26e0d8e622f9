//! Forwards messages to other members.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::{Error, Field, Reader, Result};

use super::dropped::DropReason;
use super::event::Event;
use super::instance::Instance;
use super::packet::{Delivery, Importance, MAX_BYTES, Packet};
use crate::inflate::Inflater;
use crate::net_message::patch::{clear_chat_admin, clear_routing, restamp};
use crate::net_message::{GameMessage, GameMessageDirected, NetFlags, NetHeader, Voice};
use crate::plasma_message::{ChatFlags, PlasmaMessage};

/// The sender of a message, as far as forwarding is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) id: u32,
    pub(super) is_admin: bool,
    pub(super) joined: Duration,
}

/// The class of `pfKIMsg`, which carries chat.
const CHAT: u16 = 0x0364;

impl Instance {
    /// Sent to everyone else in the age; administrators can address all players.
    pub(super) fn game_message(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &GameMessage<'_>,
        buffer: &[u8],
    ) -> Result<(), DropReason> {
        let flags = message.header.flags;
        let is_for_all = sender.is_admin && flags.contains(NetFlags::RouteToAllPlayers);
        let packet = self.chat(now, sender, message, buffer, is_for_all)?;
        let packet = Packet::kept(packet);
        self.send_others(now, sender, flags, &packet);
        if is_for_all {
            self.report(Event::RouteToAll { packet });
        }
        Ok(())
    }

    /// Sent to the listed members. Listed players in other ages receive it if the message asks for
    /// that or is private chat.
    pub(super) fn directed(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &GameMessageDirected<'_>,
        buffer: &[u8],
    ) -> Result<(), DropReason> {
        let game = &message.game;
        let packet = Packet::kept(self.chat(now, sender, game, buffer, false)?);
        self.send_listed(sender, game.header.flags, &message.receivers, &packet);
        let is_here = |player_id: &u32| self.members.get(*player_id).is_some();
        let mut elsewhere: Vec<u32> =
            message.receivers.iter().copied().filter(|player_id| !is_here(player_id)).collect();
        if elsewhere.is_empty() {
            return Ok(());
        }
        let goes = self.config.directed_anywhere
            || game.header.flags.contains(NetFlags::InterAgeRouting)
            || self.is_private_chat(game)?;
        if goes {
            elsewhere.sort_unstable();
            elsewhere.dedup();
            self.report(Event::Route { packet, players: elsewhere });
        }
        Ok(())
    }

    /// Sent to the listed members.
    pub(super) fn voice(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &Voice<'_>,
        buffer: &[u8],
    ) -> Result<(), DropReason> {
        let bytes = self.stamped(now, sender, &message.header, buffer, |_, _| Ok(()))?;
        let packet = Packet::new(bytes, Importance::Voice);
        self.send_listed(sender, message.header.flags, &message.receivers, &packet);
        Ok(())
    }

    /// Adjusts a game message that carries chat.
    fn chat(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &GameMessage<'_>,
        buffer: &[u8],
        is_for_all: bool,
    ) -> Result<Arc<[u8]>, DropReason> {
        let is_chat = message.stream.class() == Some(CHAT);
        let config = Arc::clone(&self.config);
        self.stamp(now, sender, buffer, |bytes, inflater| {
            if message.header.flags.contains(NetFlags::RouteToAllPlayers) && !is_for_all {
                clear_routing(bytes, NetFlags::RouteToAllPlayers)?;
            }
            if is_chat && !sender.is_admin {
                clear_chat_admin(bytes, inflater, &config.limits)?;
            }
            Ok(())
        })
    }

    /// The bytes of a message as forwarded: stamped with the server's time and the actual sender,
    /// without routing to all players, and with the additional `change`.
    pub(super) fn stamped(
        &mut self,
        now: Duration,
        sender: Sender,
        header: &NetHeader,
        buffer: &[u8],
        change: impl FnOnce(&mut Vec<u8>, &mut Inflater) -> Result<()>,
    ) -> Result<Arc<[u8]>, DropReason> {
        self.stamp(now, sender, buffer, |bytes, inflater| {
            if header.flags.contains(NetFlags::RouteToAllPlayers) {
                clear_routing(bytes, NetFlags::RouteToAllPlayers)?;
            }
            change(bytes, inflater)
        })
    }

    fn stamp(
        &mut self,
        now: Duration,
        sender: Sender,
        buffer: &[u8],
        change: impl FnOnce(&mut Vec<u8>, &mut Inflater) -> Result<()>,
    ) -> Result<Arc<[u8]>, DropReason> {
        let time = self.time(now);
        let bytes = &mut self.scratch;
        bytes.clear();
        bytes.extend_from_slice(buffer);
        let stamped = restamp(bytes, time, sender.id);
        stamped.and_then(|()| change(bytes, &mut self.inflater)).map_err(DropReason::Malformed)?;
        // The header may now include a player, and recompressed data can be longer.
        if bytes.len() > MAX_BYTES {
            return Err(DropReason::Limit { what: "bytes of a net message", limit: MAX_BYTES });
        }
        Ok(Arc::from(bytes.as_slice()))
    }

    /// Sends to everyone but the sender, and to the sender too if an echo is requested.
    pub(super) fn send_others(
        &mut self,
        now: Duration,
        sender: Sender,
        flags: NetFlags,
        packet: &Packet,
    ) {
        self.counts.forwarded += 1;
        let is_echoed = flags.contains(NetFlags::EchoBackToSender);
        let is_settled = now.saturating_sub(sender.joined) > self.config.relevance_after;
        let is_filtered =
            self.config.relevance && is_settled && flags.contains(NetFlags::UseRelevanceRegions);
        let from = self.members.get(sender.id).filter(|_| is_filtered);
        let before = self.deliveries.len();
        let receivers = self.members.iter().filter(|member| match member.player.id == sender.id {
            true => is_echoed,
            false => from.is_none_or(|from| member.cares_about(from)),
        });
        // This takes half as long as a loop with `push_back`, which composes each delivery on the
        // stack.
        self.deliveries.extend(
            receivers.map(|member| Delivery { to: member.player.id, packet: packet.clone() }),
        );
        self.counts.delivered += (self.deliveries.len() - before) as u64;
    }

    /// Sends to the listed members who are here. The sender gets a copy if listed or if an echo is
    /// requested.
    fn send_listed(&mut self, sender: Sender, flags: NetFlags, listed: &[u32], packet: &Packet) {
        self.counts.forwarded += 1;
        let is_echoed = flags.contains(NetFlags::EchoBackToSender);
        let before = self.deliveries.len();
        let players = self.members.iter().map(|member| member.player.id);
        let receivers = players.filter(|id| listed.contains(id) || is_echoed && *id == sender.id);
        self.deliveries.extend(receivers.map(|to| Delivery { to, packet: packet.clone() }));
        self.counts.delivered += (self.deliveries.len() - before) as u64;
    }

    fn is_private_chat(&mut self, message: &GameMessage<'_>) -> Result<bool, DropReason> {
        if message.stream.class() != Some(CHAT) {
            return Ok(false);
        }
        let limits = &self.config.limits;
        let payload = message.stream.payload(&mut self.inflater, limits).and_then(|payload| {
            PlasmaMessage::decode(&mut Reader::within(payload, limits), "payload")
                .map_err(Error::closed)
        });
        match payload.map_err(DropReason::Malformed)? {
            PlasmaMessage::KiMsg(chat) => Ok(chat.flags.contains(ChatFlags::Private)),
            _ => Ok(false),
        }
    }
}
