//! Characters: names, creation, deletion, and what clients and the world receive about them.

use serde::{Deserialize, Serialize};
use worldwire_mxo::login::{
    Ability, Background, BackgroundText, CharacterData, CreateCharacterRequest, InventoryItem,
    LoginStatus,
};
use worldwire_mxo::replicator::Point;
use worldwire_mxo::types::{Array, List8, Padded, text};

use super::accounts::{AccountError, CharacterSummary, NEXT_CHARACTER};
use super::{Number, Realm, State};
use crate::store::accounts::{account_id, folded, number_setting, unix_now, user_of};
use crate::store::committed::NotStored;
use crate::store::{Change, CharacterRow};

/// The ability "Awakened", to which the level is added.
const AWAKENED: u32 = 0x8000_0800;
/// The level of a new character.
const FIRST_LEVEL: u8 = 1;
/// The size of a name's field in a background.
const NAME_BYTES: usize = 32;
/// The size of the description's field in a background.
const DESCRIPTION_BYTES: usize = 1_024;

/// Why a client's request about a character was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) LoginStatus);

impl From<NotStored> for Refused {
    fn from(_: NotStored) -> Self {
        Self(LoginStatus::NoDatabase)
    }
}

/// A character in memory.
#[derive(Clone, Debug)]
pub(super) struct CharacterEntry {
    pub(super) user: u32,
    pub(super) handle: String,
    created: u32,
    pub(super) record: CharacterRecord,
}

/// A character as it is stored, in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CharacterRecord {
    /// The number of the character's world.
    pub(super) world: u16,
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) description: String,
    pub(super) level: u8,
    pub(super) experience: u32,
    /// Money.
    pub(super) information: u32,
    /// The player's choices: skin tone, body, an unknown value, hair, hair color, tattoo, head,
    /// facial detail.
    looks: [u32; 8],
    profession: u32,
    /// Clothes by inventory slot, from hat to shoes.
    clothes: Vec<(u8, u32)>,
    /// The position at which it left the world.
    pub(super) place: Option<Place>,
}

/// A position in the world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The number of the district.
    pub(crate) district: u32,
    /// x, y (height), z.
    pub(crate) position: Point,
    /// The direction; 256 is a full turn.
    pub(crate) yaw: u8,
}

impl CharacterRecord {
    /// A new character, as its player specified it. Texts that are too long are truncated.
    fn new(request: &CreateCharacterRequest<'_>, world: u16) -> Self {
        let looks = [
            request.skin_tone,
            request.body,
            request.unknown1,
            request.hair,
            request.hair_color,
            request.tattoo,
            request.head,
            request.facial_detail,
        ];
        // Unverified: that each slot holds this kind of clothes.
        let clothes = [
            (0x61, request.hat),
            (0x62, request.eyewear),
            (0x63, request.shirt),
            (0x64, request.gloves),
            (0x65, request.outerwear),
            (0x66, request.pants),
            (0x68, request.footwear),
        ];
        Self {
            world,
            first_name: cut(&request.first_name.text(), NAME_BYTES - 1),
            last_name: cut(&request.last_name.text(), NAME_BYTES - 1),
            description: cut(&request.description.text(), DESCRIPTION_BYTES - 1),
            level: FIRST_LEVEL,
            experience: 0,
            information: 0,
            looks,
            profession: request.profession,
            clothes: clothes.into_iter().filter(|(_, goobj)| *goobj != 0).collect(),
            place: None,
        }
    }

    /// The parts that a client receives when it loads the character.
    fn data(&self, created: u32) -> CharacterData {
        let padded = |text: &str| Padded::new(text).unwrap_or_default();
        // Unverified: the order; it matches the values of the only recorded background.
        let [skin, body, unknown, hair, hair_color, tattoo, head, detail] = self.looks;
        let appearance =
            [skin, body, unknown, hair, hair_color, tattoo, head, detail, self.profession];
        let text = BackgroundText {
            first_name: padded(&self.first_name),
            last_name: padded(&self.last_name),
            description: Padded::new(&self.description).unwrap_or_default(),
            experience: self.experience,
            information: self.information,
            unknown1: 1,
            conquest_points: 0,
            time: created,
            reputation: Array([0; 7]),
            unknown2: 3,
            in_world: 1,
            values: List8(Vec::new()),
            attributes: List8(Vec::new()),
        };
        let item = |(slot, goobj): &(u8, u32)| InventoryItem {
            slot: *slot,
            goobj: *goobj,
            // Unverified: one server sends this value.
            unknown1: [0, 0, 0, 0x0c],
        };
        let awakened = Ability { slot: 0, ability: AWAKENED + u32::from(self.level) };
        CharacterData {
            background: Background { appearance: Some(appearance), text: Box::new(text) },
            inventory: self.clothes.iter().map(item).collect(),
            loaded_abilities: vec![awakened.clone()],
            known_abilities: vec![awakened],
            hardlines: Vec::new(),
            access_nodes: Vec::new(),
            code_recipes: Vec::new(),
            contacts: Vec::new(),
        }
    }
}

/// The part of a text that fits into this many bytes of Windows-1252, which uses one byte per
/// character.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

impl State {
    pub(super) fn put_character(&mut self, row: CharacterRow) {
        let Some(user) = user_of(row.account) else { return };
        // An unreadable character is kept in the database and loaded with default values.
        let record = serde_json::from_slice(&row.data).unwrap_or_else(|error| {
            tracing::warn!(character = row.id, %error, "a character cannot be read");
            CharacterRecord::default()
        });
        let CharacterRow { id, name: handle, created, .. } = row;
        self.next_character = self.next_character.max(id.saturating_add(1));
        self.of_user.entry(user).or_default().insert(id);
        self.by_handle.insert(folded(&handle), id);
        self.characters.insert(id, CharacterEntry { user, handle, created, record });
    }

    pub(super) fn remove_character(&mut self, id: u32) {
        let Some(entry) = self.characters.remove(&id) else { return };
        self.by_handle.remove(&folded(&entry.handle));
        if let Some(of_user) = self.of_user.get_mut(&entry.user) {
            of_user.remove(&id);
            if of_user.is_empty() {
                self.of_user.remove(&entry.user);
            }
        }
    }

    pub(super) fn summaries(&self, user: u32) -> Vec<CharacterSummary> {
        let summary = |(id, entry): (u32, &CharacterEntry)| CharacterSummary {
            id: id.into(),
            name: entry.handle.clone(),
            loaded: self.loaded.contains_key(&id),
        };
        self.entries(user).map(summary).collect()
    }

    /// An account's characters, oldest first.
    pub(super) fn entries(&self, user: u32) -> impl Iterator<Item = (u32, &CharacterEntry)> {
        let ids = self.of_user.get(&user).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.characters.get(id)?)))
    }

    /// A character of an account. Another account's character counts as unknown.
    pub(super) fn own(&self, user: u32, id: u64) -> Result<(u32, &CharacterEntry), Refused> {
        let id = u32::try_from(id).map_err(|_| UNKNOWN)?;
        let entry = self.characters.get(&id).filter(|entry| entry.user == user);
        entry.map(|entry| (id, entry)).ok_or(UNKNOWN)
    }

    /// Whether an account has room for another character.
    fn has_room(&self, user: u32, most: usize) -> bool {
        self.of_user.get(&user).map_or(0, std::collections::BTreeSet::len) < most
    }
}

/// The refusal for a character that does not exist or belongs to another account.
const UNKNOWN: Refused = Refused(LoginStatus::InvalidName);

fn row(id: u32, entry: &CharacterEntry) -> CharacterRow {
    CharacterRow {
        id,
        account: account_id(entry.user),
        name: entry.handle.clone(),
        created: entry.created,
        // This cannot fail: there are only numbers and texts, and every map key is a string.
        data: serde_json::to_vec(&entry.record).unwrap_or_default(),
    }
}

impl Realm {
    /// Reserves a name for a connection and returns the future character's ID. A name that the
    /// connection reserved earlier is released.
    pub(super) fn claim(&self, who: Number, user: u32, handle: &str) -> Result<u64, LoginStatus> {
        let most = self.0.config.limits.characters_per_account;
        let mut state = self.state();
        let state = &mut *state;
        if !state.has_room(user, most) {
            return Err(LoginStatus::CharacterLimit);
        }
        let name = folded(handle);
        let is_taken = state.by_handle.contains_key(&name)
            || state.claims.get(&name).is_some_and(|(claimant, _)| *claimant != who);
        if is_taken {
            return Err(LoginStatus::NameInUse);
        }
        state.claims.retain(|_, (claimant, _)| *claimant != who);
        let id = state.next_character;
        state.next_character = id.checked_add(1).ok_or(LoginStatus::CharacterLimit)?;
        state.claims.insert(name, (who, id));
        Ok(id.into())
    }

    /// Stores a new character whose name the connection has reserved.
    pub(super) async fn create(
        &self,
        who: Number,
        user: u32,
        id: u64,
        handle: String,
        request: &CreateCharacterRequest<'_>,
    ) -> Result<(), Refused> {
        let most = self.0.config.limits.characters_per_account;
        let record = CharacterRecord::new(request, self.0.config.world_id);
        let created = unix_now();
        let claimed = folded(&handle);
        let made = self.0.state.change(move |state| {
            let claim = (who, u32::try_from(id).map_err(|_| UNKNOWN)?);
            let name = folded(&handle);
            if state.claims.get(&name) != Some(&claim) || state.by_handle.contains_key(&name) {
                return Err(Refused(LoginStatus::NameInUse));
            }
            if state.accounts.get(user).is_none() {
                return Err(Refused(LoginStatus::NoAccount));
            }
            if !state.has_room(user, most) {
                return Err(Refused(LoginStatus::CharacterLimit));
            }
            let (_, id) = claim;
            let entry = CharacterEntry { user, handle, created, record };
            let next = number_setting(NEXT_CHARACTER, u64::from(id) + 1);
            Ok((vec![Change::PutCharacter(row(id, &entry)), next], ()))
        });
        made.await?;
        self.state().claims.remove(&claimed);
        Ok(())
    }

    /// Deletes a character that nobody has loaded.
    pub(super) async fn delete(&self, user: u32, id: u64) -> Result<(), Refused> {
        let id = {
            let mut state = self.state();
            let (id, _) = state.own(user, id)?;
            if state.loaded.contains_key(&id) || !state.deleting.insert(id) {
                return Err(Refused(LoginStatus::CharacterInUse));
            }
            id
        };
        let gone = self.0.state.change(move |state| {
            state.own(user, id.into())?;
            Ok::<_, Refused>((vec![Change::DeleteCharacter(id)], ()))
        });
        let gone = gone.await;
        self.state().deleting.remove(&id);
        gone
    }

    /// Deletes a character that nobody has loaded, for an operator.
    pub async fn delete_character(&self, handle: &str) -> Result<(), AccountError> {
        let unknown = || AccountError::UnknownCharacter(handle.to_owned());
        let (user, id) = {
            let state = self.state();
            let id = state.by_handle.get(&folded(handle)).copied().ok_or_else(unknown)?;
            (state.characters.get(&id).ok_or_else(unknown)?.user, id)
        };
        self.delete(user, id.into()).await.map_err(|Refused(status)| match status {
            LoginStatus::CharacterInUse => AccountError::InUse(handle.to_owned()),
            LoginStatus::NoDatabase => self.0.state.not_stored().into(),
            _ => unknown(),
        })
    }

    /// The parts that a client receives about a character.
    pub(super) fn character_data(&self, id: u32) -> Option<CharacterData> {
        let state = self.state();
        let entry = state.characters.get(&id)?;
        Some(entry.record.data(entry.created))
    }

    /// Changes a character and stores it.
    async fn edit_character(
        &self,
        id: u32,
        edit: impl FnOnce(&mut CharacterRecord) + Send + 'static,
    ) -> Result<(), Refused> {
        self.0
            .state
            .change(move |state| {
                let mut entry = state.characters.get(&id).cloned().ok_or(UNKNOWN)?;
                edit(&mut entry.record);
                Ok((vec![Change::PutCharacter(row(id, &entry))], ()))
            })
            .await
    }

    /// Stores the position at which a character left the world.
    pub(crate) async fn save_place(&self, id: u32, place: Place) {
        // A failure is logged. The character then returns to its previously stored position.
        let _ = self.edit_character(id, move |record| record.place = Some(place)).await;
    }

    /// Stores a description that a player wrote. Returns whether it was stored.
    pub(crate) async fn save_description(&self, id: u32, description: &str) -> bool {
        let description = cut(description, DESCRIPTION_BYTES - 1);
        if text::encode(&description).is_none() {
            return false;
        }
        self.edit_character(id, move |record| record.description = description).await.is_ok()
    }
}
