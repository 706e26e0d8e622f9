//! The section `[ages]` of `shard.toml`: which ages there are, and who may enter them.

use serde::{Deserialize, Serialize};
use worldwire_core::Field as _;
use worldwire_core::json::Json;
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::MAX_STRING_UNITS;

use crate::config::ConfigError;
use crate::uru::vault::{AgeNames, StaticAge, VaultConfig};

/// Which ages there are, and who may enter them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ages {
    /// Files of the ages that may be entered without being in the vault.
    pub temporary: Vec<String>,
    /// Files of the ages that their owners may make public.
    pub public: Vec<String>,
    /// Whether whoever knows an age may enter it, as on other servers.
    pub open: bool,
    /// The city to which new players have a link.
    pub city: FixedAge,
    /// The neighbourhoods that new players join. They have instances of their own.
    pub neighbourhood: FixedAge,
    /// Further public ages, made when the shard starts.
    pub fixed: Vec<FixedAge>,
}

/// An age that the shard makes by itself.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedAge {
    /// The age's name in files.
    pub filename: String,
    /// The instance's name.
    pub instance_name: String,
    /// What stands before that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// Its description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its instance, a UUID; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
}

impl Default for Ages {
    fn default() -> Self {
        let VaultConfig { temporary_ages, may_be_public, open_ages, city, neighbourhood, .. } =
            VaultConfig::default();
        let neighbourhood = StaticAge { names: neighbourhood, instance: None };
        Self {
            temporary: temporary_ages,
            public: may_be_public,
            open: open_ages,
            city: FixedAge::of(city),
            neighbourhood: FixedAge::of(neighbourhood),
            fixed: Vec::new(),
        }
    }
}

impl Ages {
    /// # Errors
    /// An age that cannot be made.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { city, neighbourhood, fixed, .. } = self;
        let named = [("city", city), ("neighbourhood", neighbourhood)].into_iter();
        for (name, age) in named.chain(fixed.iter().map(|age| ("fixed", age))) {
            age.check().map_err(|problem| ConfigError(format!("ages.{name}: {problem}")))?;
        }
        if !neighbourhood.instance.is_empty() {
            let problem = "wanted no instance: there may be several";
            return Err(ConfigError(format!("ages.neighbourhood: {problem}")));
        }
        Ok(())
    }

    /// Puts them into the rules of the vault.
    pub(super) fn tell(&self, vault: &mut VaultConfig) {
        let Self { temporary, public, open, city, neighbourhood, fixed } = self.clone();
        vault.temporary_ages = temporary;
        vault.may_be_public = public;
        vault.open_ages = open;
        vault.city = city.into_age();
        vault.neighbourhood = neighbourhood.into_age().names;
        vault.static_ages = fixed.into_iter().map(FixedAge::into_age).collect();
    }
}

impl FixedAge {
    fn of(StaticAge { names, instance }: StaticAge) -> Self {
        let AgeNames { filename, instance_name, user_name, description } = names;
        let instance = instance.map(|id| id.to_string()).unwrap_or_default();
        Self { filename, instance_name, user_name, description, instance }
    }

    fn into_age(self) -> StaticAge {
        let instance = self.uuid();
        let Self { filename, instance_name, user_name, description, .. } = self;
        let names = AgeNames { filename, instance_name, user_name, description };
        StaticAge { names, instance }
    }

    fn uuid(&self) -> Option<Uuid> {
        let json = Json::from(&*self.instance);
        Uuid::from_json((&json).into()).ok().filter(|id| !id.is_zero())
    }

    fn check(&self) -> Result<(), String> {
        if self.filename.is_empty() {
            return Err("wanted a filename, found none".to_owned());
        }
        for text in [&self.filename, &self.instance_name, &self.user_name, &self.description] {
            let units = text.encode_utf16().count();
            if units > MAX_STRING_UNITS || text.contains(char::is_control) {
                return Err(format!(
                    "wanted at most {MAX_STRING_UNITS} characters, found {text:?}"
                ));
            }
        }
        if !self.instance.is_empty() && self.uuid().is_none() {
            return Err(format!("wanted a UUID, found {:?}", self.instance));
        }
        Ok(())
    }

    /// As it stands in `shard.toml`.
    pub(super) fn shown(&self) -> String {
        // Texts can be written.
        toml::Value::try_from(self).map(|table| table.to_string()).unwrap_or_default()
    }
}
