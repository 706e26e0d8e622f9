//! The settings that all processes of a shard share. Nodes take them from their leader, so that the
//! settings cannot differ.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value as Json};

use super::ShardConfig;
use crate::config::{ConfigError, ServerConfig as _, toml_value};

/// The shared settings and sections. All others concern one process or only the leader.
const COMMON: [&str; 7] = ["encryption", "build", "any_build", "welcome", "auth", "game", "games"];
/// The setting that closes the shard to players: its section and name.
pub(in crate::uru) const RESTRICTED: (&str, &str) = ("auth", "restricted");
/// The setting with the welcome message.
pub(in crate::uru) const WELCOME: (&str, &str) = ("", "welcome");
/// The shared settings that operators change while the shard runs. Standbys follow such changes.
const LIVE: [(&str, &str); 2] = [RESTRICTED, WELCOME];
/// The maximum number of differences to describe.
const MAX_SHOWN: usize = 8;

/// The settings in force in this process. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Settings(Arc<Mutex<Arc<ShardConfig>>>);

/// Why a leader's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::uru) enum SettingsError {
    /// The settings cannot be read, or they have values that this version does not know.
    #[error(transparent)]
    Unreadable(#[from] serde_json::Error),
    /// A setting's value is invalid.
    #[error(transparent)]
    Refused(#[from] ConfigError),
}

/// Settings that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::uru) struct Differences(Vec<Difference>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    /// The setting's name, with its section.
    name: String,
    here: String,
    leaders: String,
}

impl Settings {
    /// The settings in a process's own configuration.
    pub(in crate::uru) fn new(config: ShardConfig) -> Self {
        Self(Arc::new(Mutex::new(config.into())))
    }

    /// The current settings.
    pub(in crate::uru) fn current(&self) -> Arc<ShardConfig> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes settings.
    pub(in crate::uru) fn change(&self, change: impl FnOnce(&mut ShardConfig)) {
        change(Arc::make_mut(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    /// Takes over a leader's settings. Existing connections and ages keep the old settings.
    pub(in crate::uru) fn take(&self, leaders: &str) -> Result<Differences, SettingsError> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (config, differences) = current.with_common(leaders)?;
        if !differences.is_empty() {
            *current = config.into();
        }
        Ok(differences)
    }
}

impl ShardConfig {
    /// The settings that all processes of the shard share, as JSON.
    pub(in crate::uru) fn common(&self) -> String {
        // This cannot fail: these settings have string keys and can all be serialised.
        let mut all = serde_json::to_value(self).unwrap_or_default();
        let common = COMMON.map(|name| (name.to_owned(), all[name].take()));
        Json::Object(common.into_iter().collect()).to_string()
    }

    /// This configuration with a leader's shared settings, and the settings that differ. Settings
    /// that only other versions know are left out.
    pub(in crate::uru) fn with_common(
        &self,
        leaders: &str,
    ) -> Result<(Self, Differences), SettingsError> {
        let leaders: Map<String, Json> = serde_json::from_str(leaders)?;
        let mut config = serde_json::to_value(self)?;
        let mut differences = Differences::default();
        for (name, value) in leaders {
            let Some(own) = config.get_mut(&name).filter(|_| COMMON.contains(&&*name)) else {
                continue;
            };
            match (own, value) {
                (Json::Object(own), Json::Object(leaders)) => {
                    for (setting, value) in leaders {
                        if let Some(own) = own.get_mut(&setting) {
                            differences.replace(format!("{name}.{setting}"), own, value);
                        }
                    }
                }
                (own, value) => differences.replace(name, own, value),
            }
        }
        let config: Self = serde_json::from_value(config)?;
        config.validate()?;
        Ok((config, differences))
    }
}

impl Differences {
    /// Whether nothing differs.
    pub(in crate::uru) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that will still differ when this process takes over from the leader.
    pub(in crate::uru) fn lasting(self) -> Self {
        let is_lasting = |it: &Difference| {
            !LIVE.contains(&it.name.split_once('.').unwrap_or(("", it.name.as_str())))
        };
        Self(self.0.into_iter().filter(is_lasting).collect())
    }

    fn replace(&mut self, name: String, own: &mut Json, leaders: Json) {
        if *own != leaders {
            let (here, there) = (toml_value(own), toml_value(&leaders));
            self.0.push(Difference { name, here, leaders: there });
            *own = leaders;
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Difference { name, here, leaders }) in self.0.iter().take(MAX_SHOWN).enumerate()
        {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{name} = {leaders} on the leader, {here} here")?;
        }
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_uru::connection::Encryption;

    use super::*;

    #[test]
    fn nodes_take_the_leaders_settings() {
        let leader = ShardConfig::parse(
            "build = 7\nencryption = \"openuru_plain\"\nwelcome = \"x\"\n[auth]\ncaps = \"never\"\n\
             reconnect_seconds = 4\n[game]\nconsole_commands = [\"a.b\"]\n[games]\nheek = true\n\
             [limits]\nconnections = 9\n[cluster]\nnode = \"b\"",
        );
        let leaders = leader.unwrap().common();
        let settings = Settings::new(ShardConfig::parse("[cluster]\nnode = \"a\"").unwrap());
        let taken = settings.take(&leaders).unwrap();
        assert_eq!(
            taken.to_string(),
            "auth.caps = \"never\" on the leader, \"compatible\" here; \
             auth.reconnect_seconds = 4 on the leader, 30 here; build = 7 on the leader, 918 here; \
             encryption = \"openuru_plain\" on the leader, \"auto\" here; \
             game.console_commands = [\"a.b\"] on the leader, [] here; \
             games.heek = true on the leader, false here; \
             welcome = \"x\" on the leader, \"Welcome to this shard.\" here"
        );
        assert!(!taken.lasting().to_string().contains("welcome"));
        let now = settings.current();
        assert_eq!((now.build, now.encryption()), (7, Encryption::OpenUruPlain));
        assert_eq!((now.patience().as_secs(), now.games.heek), (4, true));
        // The settings that concern one process are not changed.
        let default = ShardConfig::default();
        assert_eq!(now.limits, default.limits);
        assert_eq!(now.cluster.node, "a");
        assert!(settings.take(&leaders).unwrap().is_empty());
        // What an operator changes here as well.
        let leader = Settings::new(ShardConfig::parse("build = 7").unwrap());
        leader.change(|config| config.auth.restricted = true);
        let changed = settings.take(&leader.current().common()).unwrap();
        assert!(changed.to_string().contains("auth.restricted = true on the leader, false here"));
        assert!(settings.current().auth.restricted);
    }

    #[test]
    fn settings_of_other_versions_are_left_out() {
        let settings = Settings::new(ShardConfig::default());
        let newer = r#"{"build": 7, "new": 1, "auth": {"new": {"x": []}, "strict_chunks": true}}"#;
        assert_eq!(settings.take(newer).unwrap().0.len(), 2);
        assert!(settings.current().auth.strict_chunks);
        // If any value cannot be used, none is taken over.
        for wrong in [
            "",
            "[]",
            r#"{"build": 8, "auth": 7}"#,
            r#"{"build": 8, "auth": {"caps": "sometimes"}}"#,
            r#"{"build": 8, "game": {"bytes_per_second": 0}}"#,
        ] {
            assert!(settings.take(wrong).is_err(), "{wrong}");
            assert_eq!(settings.current().build, 7);
        }
    }
}
