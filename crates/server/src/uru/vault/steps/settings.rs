//! The settings of a shard in its database: what it is, and what standbys must know about it.

use worldwire_uru::types::Uuid;

use super::VaultState;
use super::undo::Undo;
use crate::uru::vault::follow::LiveSettings;

/// The setting with the instances that the shard created automatically, 16 bytes each.
pub(super) const OWN_AGES: &str = "uru.own-ages";
/// The setting with the random number of the shard, in 16 hexadecimal digits. Copies of the
/// database are the same shard.
pub(super) const IDENTITY: &str = "uru.identity";
/// The setting with the digest of the servers' keys, in 16 hexadecimal digits.
pub(super) const KEYS: &str = "uru.keys";
/// The setting that tells standbys whether the shard is closed to players: `true` or `false`.
pub(in crate::uru::vault) const RESTRICTED: &str = "uru.restricted";
/// The setting that tells standbys the welcome message.
pub(in crate::uru::vault) const WELCOME: &str = "uru.welcome";

impl VaultState {
    /// Marks an instance as one that the shard created automatically.
    pub(crate) fn put_own_age(&mut self, instance: Uuid) {
        if self.own_ages.contains(&instance) {
            return;
        }
        self.record(Undo::OwnAge(instance));
        self.own_ages.insert(instance);
        self.put_setting(OWN_AGES, self.own_ages.iter().flat_map(|age| age.0).collect());
    }

    /// Gives the shard a random number, unless it has one.
    pub(crate) fn identify(&mut self) {
        if self.identity != 0 {
            return;
        }
        self.record(Undo::Identity(self.identity));
        self.identity = u64::from_le_bytes(self.random_bytes()).max(1);
        self.put_setting(IDENTITY, format!("{:016x}", self.identity).into_bytes());
    }

    /// The shard's random number; 0 until it has one.
    pub(crate) fn shard_id(&self) -> u64 {
        self.identity
    }

    /// Records a digest of the keys with which the shard is served.
    pub(crate) fn put_keys(&mut self, keys: u64) {
        if keys != self.keys {
            self.record(Undo::Keys(self.keys));
            self.keys = keys;
            self.put_setting(KEYS, format!("{keys:016x}").into_bytes());
        }
    }

    /// The digest of the keys with which the shard was served last; 0 if that is not known.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// The settings that operators change, as they were loaded.
    pub(in crate::uru) fn live(&self) -> &LiveSettings {
        &self.live
    }

    /// Tells standbys about a setting that operators change, if there can be any standbys.
    pub(crate) fn tell_standbys(&mut self, name: &str, value: &str) {
        if self.keeps_sessions {
            self.put_setting(name, value.as_bytes().to_vec());
        }
    }
}
