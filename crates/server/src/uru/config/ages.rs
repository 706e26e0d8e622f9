//! The shard's own ages, as named in the section `[ages]` of `shard.toml`.

use serde::{Deserialize, Serialize};
use worldwire_core::Field as _;
use worldwire_core::json::Json;
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::MAX_STRING_UNITS;

use super::edit::changed;
use super::{Ages, ShardConfig};
use crate::config::{ConfigError, ServerConfig as _, SettingError};
use crate::uru::migration::OwnAges;
use crate::uru::vault::{AgeNames, StaticAge, VaultConfig};

/// The ages to which the game's scripts link by a fixed instance: the filename, the name, and the
/// instance if it is known. If it is not known, the age is created when a client follows such a
/// link.
///
/// Unverified: the instances, which are quoted from memory from other shards' lists of static ages.
const LINKED: [(&str, &str, &str); 10] = [
    ("GuildPub-Cartographers", "The Cartographers' Pub", "35624301-841e-4a07-8db6-b735cf8f1f53"),
    ("GuildPub-Greeters", "The Greeters' Pub", "381fb1ba-20a0-45fd-9bcb-fd5922439d05"),
    ("GuildPub-Maintainers", "The Maintainers' Pub", "e8306311-56d3-4954-a32d-3da01712e9b5"),
    ("GuildPub-Messengers", "The Messengers' Pub", "9420324e-11f8-41f9-b30b-c896171a8712"),
    ("GuildPub-Writers", "The Writers' Pub", "5cf4f457-d546-47dc-80eb-a07cdfefa95d"),
    ("Kveer", "K'veer", "68e219e0-ee25-4df0-b855-0435584e29e2"),
    ("GoMePubNew", "The Messengers' New Pub", ""),
    ("ChisoPreniv", "Chiso Preniv", ""),
    ("Neighborhood02", "Kirel", ""),
    ("GreatTreePub", "The Watcher's Pub", ""),
];

/// An age that the shard creates automatically.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedAge {
    /// The age's filename.
    pub filename: String,
    /// The instance's name.
    pub instance_name: String,
    /// The prefix of that name, such as `Ann's`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// The instance's description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its instance, a UUID; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
}

impl Ages {
    /// Checks that all ages can be created.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { city, neighbourhood, fixed, .. } = self;
        let named = [("ages.city", city), ("ages.neighbourhood", neighbourhood)].into_iter();
        for (name, age) in named.chain(fixed.iter().map(|age| ("ages.fixed", age))) {
            age.check().map_err(|problem| problem.of(name))?;
        }
        if !neighbourhood.instance.is_empty() {
            return Err(SettingError::Instance.of("ages.neighbourhood"));
        }
        Ok(())
    }

    /// Replaces the shard's own ages with those of an imported shard. Ages that the imported shard
    /// lacks are kept.
    fn adopt(&mut self, own: &OwnAges) {
        if let Some(city) = &own.city {
            self.city = FixedAge::of(city.clone());
        }
        if let Some(names) = own.neighbourhood.clone() {
            self.neighbourhood = FixedAge::of(StaticAge { names, instance: None });
        }
        let own: Vec<_> = own.fixed.iter().cloned().map(FixedAge::of).collect();
        self.fixed.retain(|age| own.iter().all(|other| other.filename != age.filename));
        self.fixed.extend(own);
    }

    /// Copies these settings into the vault's rules.
    pub(super) fn apply_to(&self, vault: &mut VaultConfig) {
        let Self { temporary, public, open, sharing, standard, city, neighbourhood, fixed } =
            self.clone();
        vault.temporary_ages = temporary;
        vault.may_be_public = public;
        vault.open_ages = open;
        vault.sharing = sharing;
        vault.city = city.into_age();
        vault.neighbourhood = neighbourhood.into_age().names;
        vault.static_ages = fixed.into_iter().map(FixedAge::into_age).collect();
        if standard {
            let linked = LINKED.map(|(filename, instance_name, instance)| {
                let [filename, instance_name, instance] =
                    [filename, instance_name, instance].map(str::to_owned);
                FixedAge { filename, instance_name, instance, ..FixedAge::default() }.into_age()
            });
            vault.linked_ages = linked.iter().map(|age| age.names.clone()).collect();
            vault.static_ages.extend(linked.into_iter().filter(|age| age.instance.is_some()));
        }
    }
}

impl ShardConfig {
    /// The text of a configuration, changed to contain an imported shard's own ages. All other
    /// settings and their comments are kept.
    pub fn adopt_ages(text: &str, own: &OwnAges) -> Result<String, ConfigError> {
        let mut config = Self::from_text(text)?;
        config.ages.adopt(own);
        config.validate()?;
        let ages = serde_json::to_value(config.ages).unwrap_or_default();
        let changes =
            ["city", "neighbourhood", "fixed"].map(|name| ("ages", name, ages[name].clone()));
        changed(text, &changes)
    }
}

impl FixedAge {
    /// The default: the neighbourhoods.
    pub(super) fn neighbourhood() -> Self {
        Self::of(StaticAge { names: VaultConfig::default().neighbourhood, instance: None })
    }

    pub(super) fn of(StaticAge { names, instance }: StaticAge) -> Self {
        let AgeNames { filename, instance_name, user_name, description } = names;
        let instance = instance.map(|id| id.to_string()).unwrap_or_default();
        Self { filename, instance_name, user_name, description, instance }
    }

    pub(in crate::uru) fn into_age(self) -> StaticAge {
        let instance = self.uuid();
        let Self { filename, instance_name, user_name, description, .. } = self;
        let names = AgeNames { filename, instance_name, user_name, description };
        StaticAge { names, instance }
    }

    fn uuid(&self) -> Option<Uuid> {
        let json = Json::from(&*self.instance);
        Uuid::from_json((&json).into()).ok().filter(|id| !id.is_zero())
    }

    pub(in crate::uru) fn check(&self) -> Result<(), SettingError> {
        if self.filename.is_empty() {
            return Err(SettingError::NoFilename);
        }
        // Windows, which clients run on, does not allow these characters in filenames.
        if self.filename.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|']) {
            return Err(SettingError::NotAFilename(self.filename.clone()));
        }
        for text in [&self.filename, &self.instance_name, &self.user_name, &self.description] {
            let units = text.encode_utf16().count();
            if units > MAX_STRING_UNITS || text.contains(char::is_control) {
                return Err(SettingError::Text { max: MAX_STRING_UNITS, found: text.clone() });
            }
        }
        if !self.instance.is_empty() && self.uuid().is_none() {
            return Err(SettingError::NotAUuid(self.instance.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filenames_are_those_of_files() {
        let age =
            |filename: &str| FixedAge { filename: filename.to_owned(), ..FixedAge::default() };
        assert!(age("Ahnonay_02 Test'").check().is_ok());
        for filename in ["bad/../name", "..\\x", "a:b", "a*"] {
            let error = age(filename).check().unwrap_err();
            assert!(matches!(error, SettingError::NotAFilename(_)), "{filename}");
        }
    }

    #[test]
    fn imported_ages_replace_their_section_only() {
        let names = |filename: &str, instance_name: &str| AgeNames {
            filename: filename.to_owned(),
            instance_name: instance_name.to_owned(),
            ..AgeNames::default()
        };
        let age = |filename: &str, number: u8| StaticAge {
            names: names(filename, "Town"),
            instance: Some(Uuid([number; 16])),
        };
        let own = OwnAges {
            city: Some(age("city", 1)),
            neighbourhood: Some(names("Neighborhood", "DS")),
            fixed: vec![age("Fern", 2)],
        };
        let first = ShardConfig { welcome: "Shorah".to_owned(), ..ShardConfig::default() };
        for (text, kept) in [
            (first.to_text(), "# Paths are relative to the folder of this file."),
            ("# mine\nwelcome = \"Shorah\"".to_owned(), "# mine\n"),
            ("welcome = \"Shorah\"\n\n[ages]\nopen = false\n# my city\n[ages.city]\nfilename = \"x\"\n\
              [game]\n# my game\nrefuse_full = false\n".to_owned(), "# my game\n"),
        ] {
            let old = ShardConfig::from_text(&text).unwrap();
            let new = ShardConfig::adopt_ages(&text, &own).unwrap();
            assert!(new.contains(kept) && !new.contains("my city"), "{new}");
            let mut wanted = old;
            wanted.ages.city = FixedAge::of(age("city", 1));
            wanted.ages.neighbourhood.instance_name = "DS".to_owned();
            wanted.ages.neighbourhood.user_name.clear();
            wanted.ages.neighbourhood.description.clear();
            wanted.ages.fixed = vec![FixedAge::of(age("Fern", 2))];
            assert_eq!(ShardConfig::from_text(&new).unwrap(), wanted);
            assert_eq!(ShardConfig::adopt_ages(&new, &own).unwrap(), new);
        }
        let broken = ShardConfig::adopt_ages("ages = 5", &own);
        assert!(broken.is_err());
    }
}
