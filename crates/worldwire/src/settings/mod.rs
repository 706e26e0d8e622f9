//! Settings: defaults of options, from variables and settings files.
//!
//! An option on the command line takes precedence, then its variable, then `worldwire.toml` in the
//! current folder, then the user's. Settings become default values of clap's options, so commands
//! see no difference, and the check for mutually exclusive options covers only options that the
//! user gave.
//!
//! A settings file in the current folder may come from anybody, so no setting runs a program or
//! names a file to write.

mod color_rule;
mod file;
mod profile;
mod setting;
mod sources;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use worldwire_core::nearest;

pub(crate) use color_rule::{ColorRule, Paint};
pub(crate) use file::{FILE, SettingsFile};
pub(crate) use setting::{Setting, log_filter};
pub(crate) use sources::traffic;

use crate::output::{Failure, printable, reason, shown};
use crate::report;
use profile::{Ends, Profile};

/// The variable that selects a profile.
pub(crate) const PROFILE: &str = "WORLDWIRE_PROFILE";

/// The name of this program's directory among the user's.
const FOLDER: &str = "worldwire";

/// The user's settings file.
pub(crate) fn user_file() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join(FOLDER).join(FILE))
}

/// The directory for files that can be deleted at any time.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.cache_dir().join(FOLDER))
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable(String),
    /// A line of a settings file, and the profile that it belongs to, if any.
    File {
        file: Arc<Path>,
        line: usize,
        profile: Option<String>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::File { file, line, profile } => {
                write!(f, "{}:{line}", shown(file))?;
                match profile {
                    Some(profile) => write!(f, ", profile {}", printable(profile)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The values of a setting, with their sources.
pub(crate) type Values = Vec<(OsString, Origin)>;

/// The values that apply to a command, before options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<Setting, Values>,
    /// The colour rules, in the order in which they are tried.
    pub(crate) colors: Vec<ColorRule>,
    /// The names of the profiles in use.
    pub(crate) profiles: Vec<String>,
    /// The options that take their values from here.
    used: Vec<Setting>,
}

impl Settings {
    /// Whether no setting has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of a setting, if it has any.
    pub(crate) fn of(&self, setting: Setting) -> Option<&Values> {
        self.values.get(&setting)
    }

    /// The values of a setting as texts.
    pub(crate) fn texts(&self, setting: Setting) -> Vec<String> {
        let values = self.of(setting).into_iter().flatten();
        values.map(|(value, _)| value.to_string_lossy().into_owned()).collect()
    }

    /// Refuses paths that do not exist. The command's own error would not state where they come
    /// from.
    pub(crate) fn check_paths(&self, setting: Setting) -> Result<(), Failure> {
        let values = self.of(setting).into_iter().flatten().filter(|_| setting.is_path());
        for (value, origin) in values {
            let path = Path::new(value);
            if let Err(error) = std::fs::metadata(path) {
                let problem = reason(&error);
                let problem = format!("{origin}: {}: {}: {problem}", setting.name(), shown(path));
                return Err(Failure::Run(problem));
            }
        }
        Ok(())
    }

    /// Records that a command's option took its values from here.
    pub(crate) fn set_used(&mut self, setting: Setting) {
        self.used.push(setting);
    }

    /// Whether the command's option took its values from here.
    pub(crate) fn is_used(&self, setting: Setting) -> bool {
        self.used.contains(&setting)
    }
}

/// All settings from variables and settings files.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    variables: BTreeMap<Setting, Values>,
    /// The current folder's settings file, then the user's.
    files: Vec<SettingsFile>,
    /// The profile that the user has requested.
    asked: Option<String>,
}

impl Sources {
    /// Reads the variables and both files. `asked` is the profile on the command line.
    pub(crate) fn read(asked: Option<&str>) -> Result<Self, Failure> {
        let mut variables = BTreeMap::new();
        for setting in Setting::ALL {
            if let Some(values) = setting.of_environment()? {
                variables.insert(setting, values);
            }
        }
        let mut files = Vec::new();
        for path in [Some(PathBuf::from(FILE)), user_file()].into_iter().flatten() {
            match SettingsFile::read(&path)? {
                Some(Ok(file)) => files.push(file),
                Some(Err(diagnostics)) => {
                    report::diagnostics(&diagnostics);
                    let path = shown(&path);
                    let hint = "correct them, or ignore all settings with --no-settings";
                    return Err(Failure::Run(format!(
                        "{path}: the settings contain errors; {hint}"
                    )));
                }
                None => {}
            }
        }
        let variable = || std::env::var(PROFILE).ok().filter(|name| !name.is_empty());
        let asked = asked.map(str::to_owned).or_else(variable);
        Ok(Self { variables, files, asked })
    }

    /// Whether the profile depends on the traffic.
    pub(crate) fn needs_traffic(&self) -> bool {
        let profiles = || self.files.iter().flat_map(|file| &file.profiles);
        self.asked.is_none() && profiles().any(|profile| !profile.ends.is_empty())
    }

    /// The settings that apply to traffic between these ends.
    pub(crate) fn select(&self, traffic: &[Ends]) -> Result<Settings, Failure> {
        let names = self.profiles(traffic)?;
        let mut settings = Settings::default();
        for file in &self.files {
            let chosen: Vec<&Profile> =
                file.profiles.iter().filter(|profile| names.contains(&profile.name)).collect();
            for setting in Setting::ALL {
                let of_profiles = of_profiles(setting, &chosen)?;
                let values = of_profiles.or_else(|| file.values.get(&setting).cloned());
                if let Some(values) = values {
                    // The current folder's file comes first and takes precedence.
                    settings.values.entry(setting).or_insert(values);
                }
            }
            let of_profiles = chosen.iter().flat_map(|profile| &profile.colors);
            settings.colors.extend(of_profiles.chain(&file.colors).cloned());
        }
        settings.values.extend(self.variables.clone());
        settings.profiles = names;
        Ok(settings)
    }

    /// The names of the profiles to use.
    fn profiles(&self, traffic: &[Ends]) -> Result<Vec<String>, Failure> {
        let all = || self.files.iter().flat_map(|file| &file.profiles);
        let Some(asked) = &self.asked else {
            let mut names = Vec::new();
            for profile in all() {
                if profile.ends.iter().any(|ends| ends.fits(traffic))
                    && !names.contains(&profile.name)
                {
                    names.push(profile.name.clone());
                }
            }
            return Ok(names);
        };
        if all().any(|profile| profile.name == *asked) {
            return Ok(vec![asked.clone()]);
        }
        let names = || all().map(|profile| profile.name.as_str());
        let hint = match (nearest(asked, names()), names().next()) {
            (Some(near), _) => format!("did you mean \"{near}\"?"),
            (None, Some(_)) => {
                format!("the profiles are {}", names().collect::<Vec<_>>().join(", "))
            }
            (None, None) => format!("write [profile.{asked}] in {FILE}"),
        };
        Err(Failure::Run(format!("--profile: no profile \"{asked}\"; {hint}")))
    }
}

/// The values of a setting in the profiles of one file: lists are joined, and other values must be
/// equal.
fn of_profiles(setting: Setting, profiles: &[&Profile]) -> Result<Option<Values>, Failure> {
    let mut found: Option<(&str, Values)> = None;
    for profile in profiles {
        let Some(values) = profile.values.get(&setting) else { continue };
        match &mut found {
            None => found = Some((&profile.name, values.clone())),
            Some((_, all)) if setting.is_list() => all.extend(values.iter().cloned()),
            Some((first, all)) => {
                let text = |values: &Values| values.first().map(|(value, _)| value.clone());
                if text(&*all) != text(values) {
                    return Err(Failure::Run(format!(
                        "the profiles {first} and {} both match and have different values for \
                         `{}`; choose one with --profile",
                        profile.name,
                        setting.name()
                    )));
                }
            }
        }
    }
    Ok(found.map(|(_, values)| values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(folder: &str, user: &str, asked: Option<&str>) -> Sources {
        let parse = |name: &str, text: &str| {
            SettingsFile::parse(Path::new(name), text).expect("the settings are valid")
        };
        let files = vec![parse("worldwire.toml", folder), parse("/user/worldwire.toml", user)];
        Sources { variables: BTreeMap::new(), files, asked: asked.map(str::to_owned) }
    }

    const USER: &str = "\
time = 'local'
revision = 5
keys = 'all.toml'

[profile.uru]
match = [':14617', '192.0.2.0/24']
keys = ['uru.toml']

[profile.tera]
match = '203.0.113.5:7801'
keys = 'tera.toml'
revision = 7
";

    fn ends(address: &str) -> Ends {
        address.parse().expect("it is valid")
    }

    #[test]
    fn the_folder_wins_over_the_user_and_profiles_win_inside_a_file() {
        let all = sources("time = 'utc'", USER, None);
        let chosen = all.select(&[]).expect("there is no conflict");
        assert_eq!(chosen.texts(Setting::Time), ["utc"]);
        assert_eq!(chosen.texts(Setting::Revision), ["5"]);
        assert_eq!(chosen.texts(Setting::Keys), ["/user/all.toml"]);
        assert!(chosen.texts(Setting::Data).is_empty());
        let chosen = all.select(&[ends("203.0.113.5:7801")]).expect("there is no conflict");
        assert_eq!(chosen.profiles, ["tera"]);
        assert_eq!(chosen.texts(Setting::Revision), ["7"]);
        let origin = &chosen.of(Setting::Keys).expect("it is set")[0].1;
        assert_eq!(origin.to_string(), "/user/worldwire.toml:11, profile tera");
    }

    #[test]
    fn matching_profiles_are_joined_unless_they_contradict_each_other() {
        let both = [ends("203.0.113.5:7801"), ends("192.0.2.9:80")];
        let all = sources("", USER, None);
        let chosen = all.select(&both).expect("only one has a revision");
        assert_eq!(chosen.profiles, ["uru", "tera"]);
        assert_eq!(chosen.texts(Setting::Keys), ["/user/uru.toml", "/user/tera.toml"]);
        let user = USER.replace("['uru.toml']", "'uru.toml'\nrevision = 8");
        let Err(Failure::Run(why)) = sources("", &user, None).select(&both) else {
            panic!("two revisions")
        };
        assert!(why.contains("uru and tera both match"), "{why}");
        let chosen = sources("", &user, Some("uru")).select(&both).expect("it is chosen");
        assert_eq!(chosen.texts(Setting::Revision), ["8"]);
    }

    #[test]
    fn an_unknown_profile_is_refused() {
        for (asked, hint) in
            [("ter", "did you mean \"tera\"?"), ("zzzzzz", "the profiles are uru, tera")]
        {
            let Err(Failure::Run(why)) = sources("", USER, Some(asked)).select(&[]) else {
                panic!("{asked}")
            };
            assert!(why.contains(hint), "{why}");
        }
    }
}
