//! The clones of an age: avatars, creatures, and objects dropped by players.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use worldwire_core::{Error, Field, Limits, Reader, Result};

use super::config::AgeBounds;
use super::dropped::DropReason;
use super::packet::MAX_BYTES;
use crate::inflate::Inflater;
use crate::net_message::{Compression, LoadClone, NetMessage, Stream};
use crate::plasma_message::{LoadCloneMsg, PlasmaMessage};
use crate::sdl::ObjectKey;
use crate::types::{CloneIds, Location, Uoid, encoded};

/// The loaded clones, in the order of loading.
#[derive(Clone, Debug, Default)]
pub(super) struct Clones {
    loaded: BTreeMap<u64, LoadedClone>,
    places: HashMap<ObjectKey, u64>,
    next: u64,
    bytes: usize,
}

/// A clone and the message that loaded it.
#[derive(Clone, Debug)]
pub(super) struct LoadedClone {
    pub(super) object: Uoid<'static>,
    /// The message as last forwarded.
    pub(super) bytes: Arc<[u8]>,
    pub(super) owner: u32,
    pub(super) is_player: bool,
}

/// A payload's claims about a clone.
pub(super) struct CloneClaim {
    pub(super) originator: u32,
    pub(super) is_loading: bool,
    pub(super) object: Option<Uoid<'static>>,
    /// Whether the clone is a player's avatar; `None` if the payload does not tell.
    pub(super) is_player: Option<bool>,
}

/// Whether an object with this page and these clone IDs belongs to a clone. All parts of a clone
/// share its page and its IDs.
pub(super) fn is_part(page: &Location, ids: Option<CloneIds>, clone: &Uoid<'_>) -> bool {
    let (Some(ids), Some(of)) = (ids, clone.clone) else { return false };
    of.id != 0
        && (ids.id, ids.player_id) == (of.id, of.player_id)
        && page.same_page(&clone.location)
}

impl Clones {
    /// Stores a clone, replacing any older message about it.
    pub(super) fn insert(
        &mut self,
        loaded: LoadedClone,
        bounds: &AgeBounds,
    ) -> Result<(), DropReason> {
        let (max_clones, max_bytes) = (bounds.clones, bounds.clone_bytes);
        let key = ObjectKey::of(&loaded.object);
        let place = self.places.get(&key).copied();
        let older = place.and_then(|place| self.loaded.get(&place));
        let old = older.map_or(0, |older| older.bytes.len());
        let bytes = self.bytes - old + loaded.bytes.len();
        if bytes > max_bytes {
            return Err(DropReason::Limit { what: "bytes of clones", limit: max_bytes });
        }
        if place.is_none() && self.loaded.len() >= max_clones {
            return Err(DropReason::Limit { what: "clones", limit: max_clones });
        }
        // Clones count towards their creator's quota even after being handed over, so leaving and
        // coming back does not free any room.
        let maker = |object: &Uoid<'_>| object.clone.map(|ids| ids.player_id);
        let of = maker(&loaded.object);
        let is_own = |it: &&LoadedClone| maker(&it.object) == of;
        let own = self.loaded.values().filter(is_own);
        let (count, own) =
            own.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it.bytes.len()));
        let (share, share_of_bytes) = (bounds.share_of(max_clones), bounds.share_of(max_bytes));
        if place.is_none() && count >= share {
            return Err(DropReason::Limit { what: "clones of a member", limit: share });
        }
        if loaded.bytes.len() > old && own.saturating_sub(old) + loaded.bytes.len() > share_of_bytes
        {
            return Err(DropReason::Limit {
                what: "bytes of a member's clones",
                limit: share_of_bytes,
            });
        }
        self.bytes = bytes;
        let place = place.unwrap_or_else(|| {
            let place = self.next;
            self.next += 1;
            self.places.insert(key, place);
            place
        });
        self.loaded.insert(place, loaded);
        Ok(())
    }

    pub(super) fn get(&self, object: &Uoid<'_>) -> Option<&LoadedClone> {
        self.loaded.get(self.places.get(&ObjectKey::of(object))?)
    }

    pub(super) fn remove(&mut self, object: &Uoid<'_>) -> Option<LoadedClone> {
        let place = self.places.remove(&ObjectKey::of(object))?;
        let removed = self.loaded.remove(&place)?;
        self.bytes -= removed.bytes.len();
        Some(removed)
    }

    /// First the clones that are not avatars, then the avatars, each in the order of loading.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &LoadedClone> {
        let things = self.loaded.values().filter(|clone| !clone.is_player);
        things.chain(self.loaded.values().filter(|clone| clone.is_player))
    }

    /// The clones that a player owns.
    pub(super) fn owned_by(&self, player_id: u32) -> Vec<(Uoid<'static>, bool)> {
        let owned = self.loaded.values().filter(|clone| clone.owner == player_id);
        owned.map(|clone| (clone.object.clone(), clone.is_player)).collect()
    }

    /// Whether a player may set a state of an object. If a clone of another player is an avatar or
    /// is not loaded, its states and those of its parts must not be set.
    pub(super) fn may_set_state(&self, object: &Uoid<'_>, player_id: u32) -> bool {
        let Some(ids) = object.clone.filter(|ids| ids.id != 0 && ids.player_id != player_id) else {
            return true;
        };
        let mut wholes = self
            .loaded
            .values()
            .filter(|clone| is_part(&object.location, Some(ids), &clone.object))
            .peekable();
        wholes.peek().is_some() && wholes.all(|clone| !clone.is_player)
    }

    /// Makes another player the owner of a clone and patches the message that loads it, because
    /// clients ignore clones of players who are not in their member list.
    pub(super) fn hand_over(
        &mut self,
        object: &Uoid<'_>,
        owner: u32,
        inflater: &mut Inflater,
        limits: &Limits,
    ) -> Result<()> {
        let place = self.places.get(&ObjectKey::of(object));
        let Some(clone) = place.and_then(|place| self.loaded.get_mut(place)) else { return Ok(()) };
        let bytes = with_originator(&clone.bytes, owner, inflater, limits)?;
        self.bytes = self.bytes - clone.bytes.len() + bytes.len();
        (clone.bytes, clone.owner) = (bytes.into(), owner);
        Ok(())
    }
}

/// Changes the sender and the originator of a `plNetMsgLoadClone`.
fn with_originator(
    bytes: &[u8],
    player_id: u32,
    inflater: &mut Inflater,
    limits: &Limits,
) -> Result<Vec<u8>> {
    let message =
        NetMessage::decode(&mut Reader::within(bytes, limits), "").map_err(Error::closed)?;
    let NetMessage::LoadClone(mut load) = message else {
        return Err(Error::value("a plNetMsgLoadClone", "a different message"));
    };
    let payload = load.stream.payload(inflater, limits)?;
    let mut payload =
        PlasmaMessage::decode(&mut Reader::within(payload, limits), "").map_err(Error::closed)?;
    if let Some(clone) = clone_msg_mut(&mut payload) {
        clone.originating_player_id = player_id;
    }
    let payload = encoded(&payload)?;
    load.stream = match load.stream.compression() {
        Compression::Dont => Stream::uncompressed(payload),
        _ => Stream::new(payload),
    };
    if load.header.player_id.is_some() {
        load.header.player_id = Some(player_id);
    }
    let bytes = encoded(&NetMessage::from(load))?;
    if bytes.len() > MAX_BYTES {
        let (max, found) = (MAX_BYTES as u64, bytes.len() as u64);
        return Err(Error::limit("bytes of a net message", max, found));
    }
    Ok(bytes)
}

fn clone_msg_mut<'m, 'd>(payload: &'m mut PlasmaMessage<'d>) -> Option<&'m mut LoadCloneMsg<'d>> {
    match payload {
        PlasmaMessage::LoadCloneMsg(clone) => Some(clone),
        PlasmaMessage::LoadAvatarMsg(avatar) => Some(&mut avatar.clone_msg),
        _ => None,
    }
}

/// The claims that a message's payload makes about its clone.
pub(super) fn claim(
    load: &LoadClone<'_>,
    inflater: &mut Inflater,
    limits: &Limits,
) -> Result<CloneClaim, DropReason> {
    let read = |inflater| {
        let payload = load.stream.payload(inflater, limits)?;
        let payload = PlasmaMessage::decode(&mut Reader::within(payload, limits), "payload")
            .map_err(Error::closed)?;
        let (clone, is_player) = match payload {
            PlasmaMessage::LoadCloneMsg(clone) => (clone, None),
            PlasmaMessage::LoadAvatarMsg(avatar) => {
                (avatar.clone_msg, Some(avatar.is_player.is_true()))
            }
            _ => return Err(Error::malformed("a clone", "a different payload")),
        };
        Ok(CloneClaim {
            originator: clone.originating_player_id,
            is_loading: clone.loading.is_true(),
            object: clone.clone.into_uoid().map(Field::into_owned),
            is_player,
        })
    };
    read(inflater).map_err(DropReason::Malformed)
}
