//! The settings and the values they accept.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr as _;

use tracing_subscriber::filter::Targets;
use worldwire_dissect::Families;
use worldwire_tera::schema::Patch;

use super::{Origin, Values};
use crate::cli::{Color, TimeForm};
use crate::output::Failure;

/// A setting. Most are defaults of the options of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    Keys,
    Data,
    Revision,
    Patch,
    As,
    Time,
    /// The default of `--fields`, used only with `--table` or if the output file's name selects a
    /// table.
    Columns,
    Color,
    Log,
}

impl Setting {
    pub(crate) const ALL: [Self; 9] = [
        Self::Keys,
        Self::Data,
        Self::Revision,
        Self::Patch,
        Self::As,
        Self::Time,
        Self::Columns,
        Self::Color,
        Self::Log,
    ];

    /// The setting's key in settings files. The options have the same names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Data => "data",
            Self::Revision => "revision",
            Self::Patch => "patch",
            Self::As => "as",
            Self::Time => "time",
            Self::Columns => "columns",
            Self::Color => "color",
            Self::Log => "log",
        }
    }

    /// The setting's variable.
    pub(crate) fn variable(self) -> String {
        format!("WORLDWIRE_{}", self.name().to_uppercase())
    }

    /// Whether it can have several values.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::Keys | Self::Data | Self::As | Self::Columns)
    }

    /// Whether its values are paths.
    pub(crate) fn is_path(self) -> bool {
        matches!(self, Self::Keys | Self::Data)
    }

    /// Whether the setting concerns how captures and messages are read, rather than the program
    /// itself.
    pub(crate) fn is_of_reading(self) -> bool {
        !matches!(self, Self::Color | Self::Log)
    }

    /// Checks a value. The error states what is expected.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        let choices = |names: &[String]| format!("must be one of {}", names.join(", "));
        match self {
            Self::Keys | Self::Data if text.is_empty() => Err("must be a path".to_owned()),
            Self::Columns if text.is_empty() => Err("must be the name of a field".to_owned()),
            Self::Columns if text.contains(',') => {
                Err("must be the name of one field; write several as [\"date\", \"name\"]"
                    .to_owned())
            }
            Self::Keys | Self::Data | Self::Columns => Ok(()),
            Self::Revision => text
                .parse::<u32>()
                .map(drop)
                .map_err(|_| "must be a whole number, the revision of a TERA client".to_owned()),
            Self::Patch => Patch::from_str(text)
                .map(drop)
                .map_err(|_| "must be the version of a TERA game, such as \"92.04\"".to_owned()),
            Self::As => {
                let (port, family) = text.split_once('=').unwrap_or(("0", text));
                let families = Families::standard().iter();
                let names: Vec<String> = families.map(|family| family.name().to_owned()).collect();
                match port.parse::<u16>() {
                    Ok(_) if names.iter().any(|name| name == family) => Ok(()),
                    Ok(_) => Err(choices(&names)),
                    Err(_) => Err("must have the form PORT=FAMILY or FAMILY".to_owned()),
                }
            }
            Self::Time => named::<TimeForm>(text).map_err(|names| choices(&names)),
            Self::Color => named::<Color>(text).map_err(|names| choices(&names)),
            Self::Log => log_filter(text).map(drop),
        }
    }

    /// The values of its variable. An empty variable counts as unset.
    pub(super) fn of_environment(self) -> Result<Option<Values>, Failure> {
        let mut name = self.variable();
        let mut value = std::env::var_os(&name).filter(|value| !value.is_empty());
        if self == Self::Log && value.is_none() {
            "RUST_LOG".clone_into(&mut name);
            value = std::env::var_os(&name).filter(|value| !value.is_empty());
        }
        let Some(value) = value else { return Ok(None) };
        let mut values = Values::new();
        for value in self.parts(&value) {
            self.check(&value.to_string_lossy())
                .map_err(|problem| Failure::Run(format!("variable {name}: {problem}")))?;
            values.push((value, Origin::Variable(name.clone())));
        }
        Ok(Some(values).filter(|values| !values.is_empty()))
    }

    /// The parts of a variable: paths are separated as in PATH, other lists by commas.
    fn parts(self, value: &OsStr) -> Vec<OsString> {
        if self.is_path() {
            let paths = std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty());
            paths.map(PathBuf::into_os_string).collect()
        } else if self.is_list() {
            let text = value.to_string_lossy();
            text.split(',').map(|part| part.trim().into()).collect()
        } else {
            vec![value.to_owned()]
        }
    }
}

/// What a log shows: one level, or a level for each part of the program, such as
/// `warn,worldwire_net=debug`.
pub(crate) fn log_filter(text: &str) -> Result<Targets, String> {
    let expected = "must be error, warn, info, debug, trace or off, or a list such as \
                    warn,worldwire_net=debug";
    let is_level = |part: &str| {
        let level = part.rsplit('=').next().unwrap_or_default().trim();
        let levels = ["error", "warn", "info", "debug", "trace", "off"];
        levels.iter().any(|known| level.eq_ignore_ascii_case(known))
    };
    // A word that is not a level would select a part with that name and show everything in it.
    match Targets::from_str(text) {
        Ok(targets) if text.split(',').all(is_level) => Ok(targets),
        _ => Err(expected.to_owned()),
    }
}

/// Checks a value of an enumeration; the error is the list of names.
fn named<T: clap::ValueEnum>(text: &str) -> Result<(), Vec<String>> {
    T::from_str(text, false).map(drop).map_err(|_| {
        let values = T::value_variants().iter().filter_map(T::to_possible_value);
        values.map(|value| value.get_name().to_owned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        for (setting, good, bad) in [
            (Setting::Time, "utc", "UTC"),
            (Setting::Color, "never", "on"),
            (Setting::Revision, "387486", "-1"),
            (Setting::Patch, "92.04", "new"),
            (Setting::As, "ki", "wow"),
            (Setting::As, "12000=ki", "120000=ki"),
            (Setting::Log, "warn,worldwire_net=debug", "loud"),
            (Setting::Log, "off", "worldwire_net"),
            (Setting::Keys, "a", ""),
            (Setting::Columns, "playerName", "elapsed,name"),
        ] {
            assert_eq!(setting.check(good), Ok(()), "{setting:?}");
            let why = setting.check(bad).expect_err("it is invalid");
            assert!(why.starts_with("must "), "{why}");
        }
    }

    #[test]
    fn variables_hold_lists() {
        let joined = std::env::join_paths(["a", "b c"]).expect("they have no separators");
        assert_eq!(Setting::Keys.parts(&joined), ["a", "b c"]);
        assert_eq!(Setting::Columns.parts(OsStr::new("time, name")), ["time", "name"]);
        assert_eq!(Setting::Time.parts(OsStr::new("a,b")), ["a,b"]);
        assert_eq!(Setting::Keys.variable(), "WORLDWIRE_KEYS");
    }
}
