//! Characters, and the keys with which clients enter zones.

use std::time::Duration;

use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::Secret;
use worldwire_ki::message::Selected;

use super::accounts::{CharacterSummary, NEXT_CHARACTER};
use super::{Changing, Number, Realm, State, ZONE_KEY_LIFE};
use crate::ki::config::SLOTS;
use crate::ki::login::Zone;
use crate::ki::refusal::Refusal;
use crate::store::accounts::{AccountEntry, account_id, number_setting, unix_now, user_of};
use crate::store::{Change, CharacterRow};

/// The high bits of a character's `GlobalID`, which distinguish it from other kinds of IDs.
const GLOBAL: u64 = 0x0057_0000_0000_0000;

/// A character in memory.
#[derive(Debug)]
pub(super) struct CharacterEntry {
    user: u64,
    name: String,
    blob: Vec<u8>,
}

/// A key that lets a character into a zone.
#[derive(Debug)]
pub(super) struct ZoneKey {
    key: Secret,
    user: u64,
    expires: Duration,
}

/// The maximum number of unused keys.
const MAX_ZONE_KEYS: usize = 65_536;

/// The `GlobalID` of a character.
fn global(id: u32) -> u64 {
    GLOBAL | u64::from(id)
}

/// The number of the character with this `GlobalID`; `None` if it is not a character's.
fn number(global: u64) -> Option<u32> {
    u32::try_from(global ^ GLOBAL).ok()
}

/// A character's name for display: the name it was given, or the indices of the name's parts.
fn shown(character: &Character) -> String {
    match core::str::from_utf8(character.name()) {
        Ok(name) if !name.is_empty() => name.to_owned(),
        _ => {
            let [_, first, middle, last] = character.name_indices().to_be_bytes();
            format!("{first}/{middle}/{last}")
        }
    }
}

impl State {
    pub(super) fn put_character(&mut self, row: CharacterRow) {
        let Some(user) = user_of(row.account) else { return };
        self.next_character = self.next_character.max(row.id.saturating_add(1));
        self.of_user.entry(user).or_default().insert(row.id);
        self.characters.insert(row.id, CharacterEntry { user, name: row.name, blob: row.data });
    }

    pub(super) fn remove_character(&mut self, id: u32) {
        let Some(entry) = self.characters.remove(&id) else { return };
        if let Some(of_user) = self.of_user.get_mut(&entry.user) {
            of_user.remove(&id);
            if of_user.is_empty() {
                self.of_user.remove(&entry.user);
            }
        }
    }

    /// The blobs of an account's characters, oldest first.
    pub(super) fn blobs(&self, user: u64) -> Vec<Vec<u8>> {
        self.entries(user).map(|(_, entry)| entry.blob.clone()).collect()
    }

    pub(super) fn summaries(&self, user: u64) -> Vec<CharacterSummary> {
        let all = self.entries(user);
        all.map(|(id, entry)| CharacterSummary { id: global(id), name: entry.name.clone() })
            .collect()
    }

    fn entries(&self, user: u64) -> impl Iterator<Item = (u32, &CharacterEntry)> {
        let ids = self.of_user.get(&user).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.characters.get(id)?)))
    }

    /// A character of an account. Another account's character counts as unknown.
    fn own(&self, user: u64, character: u64) -> Result<u32, Refusal> {
        let id = number(character).ok_or(Refusal::UnknownCharacter)?;
        let entry = self.characters.get(&id).filter(|entry| entry.user == user);
        entry.map(|_| id).ok_or(Refusal::UnknownCharacter)
    }
}

impl Realm {
    /// Assigns IDs to a new character and stores it.
    pub(super) fn create_character(&self, user: u64, mut character: Character) -> Changing<()> {
        let created = unix_now();
        self.change(move |state| {
            let entry = state.accounts.get(user).ok_or(Refusal::NotAdmitted)?;
            let slots = SLOTS + entry.purchased();
            let has = state.of_user.get(&user).map_or(0, std::collections::BTreeSet::len);
            let id = state.next_character;
            if has >= usize::try_from(slots).unwrap_or(usize::MAX) || id == u32::MAX {
                return Err(Refusal::SlotLimit);
            }
            character.set_ids(global(id), user);
            let name = shown(&character);
            let data = character.into_bytes();
            let row = CharacterRow { id, account: account_id(user), name, created, data };
            let next = number_setting(NEXT_CHARACTER, u64::from(id) + 1);
            Ok((vec![Change::PutCharacter(row), next], ()))
        })
    }

    pub(super) fn delete_character(&self, user: u64, character: u64) -> Changing<()> {
        self.change(move |state| {
            let id = state.own(user, character)?;
            match state.playing.contains_key(&id) {
                true => Err(Refusal::ErrorNoLock),
                false => Ok((vec![Change::DeleteCharacter(id)], ())),
            }
        })
    }

    /// Creates a key with which a character can enter the configured zone.
    pub(super) fn select(&self, user: u64, character: u64) -> Result<Box<Selected>, Refusal> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|_| Refusal::Timeout)?;
        let key: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let (now, config) = (self.0.clock.now(), &self.0.config);
        let mut state = self.state();
        let id = state.own(user, character)?;
        if state.playing.contains_key(&id) {
            return Err(Refusal::ErrorNoLock);
        }
        if state.zone_keys.len() >= MAX_ZONE_KEYS {
            state.zone_keys.retain(|_, key| key.expires > now);
            if state.zone_keys.len() >= MAX_ZONE_KEYS {
                return Err(Refusal::Timeout);
            }
        }
        // A new key replaces the character's previous one.
        let expires = now.saturating_add(ZONE_KEY_LIFE);
        state.zone_keys.insert(id, ZoneKey { key: Secret::new(key.clone()), user, expires });
        let zone = &config.zone;
        Ok(Box::new(Selected {
            ip: if zone.address.is_empty() { config.host() } else { zone.address.clone() },
            tcp_port: zone.tcp_port,
            udp_port: zone.udp_port,
            key,
            user,
            character,
            zone_id: zone.id,
            zone: zone.name.clone(),
            location: zone.location.clone(),
            server: config.name.clone(),
        }))
    }

    /// Redeems a zone key. Each key can be used once.
    ///
    /// # Errors
    /// [`Refusal::WrongKey`]; [`Refusal::AccountBanned`]; [`Refusal::ErrorNoLock`] if the character
    /// is already in the zone.
    pub fn redeem(&self, key: &Secret, user: u64, character: u64) -> Result<(), Refusal> {
        self.take_key(key, user, character).map(drop)
    }

    fn take_key(&self, key: &Secret, user: u64, character: u64) -> Result<u32, Refusal> {
        let now = self.0.clock.now();
        let mut state = self.state();
        // An attempt by another account or for another character does not use up the key.
        let id = state.own(user, character).map_err(|_| Refusal::WrongKey)?;
        let is_valid = state
            .zone_keys
            .get(&id)
            .is_some_and(|known| known.key.is(key) && known.expires > now && known.user == user);
        if !is_valid {
            return Err(Refusal::WrongKey);
        }
        state.zone_keys.remove(&id);
        if state.accounts.get(user).is_none_or(AccountEntry::is_banned) {
            return Err(Refusal::AccountBanned);
        }
        if state.playing.contains_key(&id) {
            return Err(Refusal::ErrorNoLock);
        }
        Ok(id)
    }

    /// Lets a client into this server's waiting room.
    pub(super) fn attach(
        &self,
        who: Number,
        key: &Secret,
        user: u64,
        character: u64,
    ) -> Result<Zone, Refusal> {
        let id = self.take_key(key, user, character)?;
        let zone = &self.0.config.zone;
        if !zone.address.is_empty() {
            // The zone is on another server.
            return Err(Refusal::WrongKey);
        }
        let mut state = self.state();
        if state.playing.contains_key(&id) {
            return Err(Refusal::ErrorNoLock);
        }
        state.playing.insert(id, who);
        let kept = state.tickets.valid(user, self.0.clock.now());
        if let Some(entry) = state.connections.get_mut(&who) {
            entry.user = Some(user);
            entry.plays = Some((id, user, kept));
        }
        Ok(Zone { id: zone.id, name: zone.name.clone() })
    }
}
