//! Settings files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use worldwire_core::{Diagnostic, Source, nearest};
use worldwire_dissect::filter::Filter;

use super::profile::{Ends, Profile};
use super::{ColorRule, Origin, Setting, Values};
use crate::output::{Failure, shown};

/// The name of settings files.
pub(crate) const FILE: &str = "worldwire.toml";

/// The maximum size of a settings file.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum number of mistakes reported.
const MAX_MISTAKES: usize = 100;
/// The key for profiles.
const PROFILES: &str = "profile";
/// The key for the traffic that a profile applies to.
const MATCH: &str = "match";
/// The key for colour rules.
const COLOR_RULES: &str = "color-rule";

/// The content of a settings file.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// Settings for all traffic.
    pub(super) values: BTreeMap<Setting, Values>,
    pub(super) colors: Vec<ColorRule>,
    /// The profiles, in the order of the file.
    pub(super) profiles: Vec<Profile>,
}

impl SettingsFile {
    /// Reads a settings file, if it exists.
    pub(super) fn read(path: &Path) -> Result<Option<Result<Self, Vec<Diagnostic>>>, Failure> {
        let fail = |error: &io::Error| Failure::io(path, error);
        let refuse = |why: &str| Err(Failure::Run(format!("{}: {why}", shown(path))));
        match std::fs::metadata(path) {
            Ok(about) if about.is_file() => {}
            // Opening a pipe would wait for its writer.
            Ok(_) => return refuse("settings must be in a file"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(&error)),
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| fail(&error))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return refuse("larger than 1 MiB, too large for settings");
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(Self::parse(path, &text))),
            Err(_) => refuse("not UTF-8 text"),
        }
    }

    /// Parses settings. Paths are relative to the file.
    ///
    /// # Errors
    /// All mistakes, with their positions.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let source = Source::new(&path.display().to_string(), text);
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut parser = Parser { path: path.into(), source, mistakes: Vec::new() };
        for error in &errors {
            parser.mistake(error.span().unwrap_or(0..0), error.message(), None);
        }
        let file = parser.file(root.get_ref());
        if parser.mistakes.is_empty() {
            return Ok(file);
        }
        parser.mistakes.sort_by_key(|it| (it.line(), it.column()));
        Err(parser.mistakes)
    }
}

type Value<'t> = Spanned<DeValue<'t>>;
type Key<'t> = Spanned<Cow<'t, str>>;

struct Parser<'t> {
    path: Arc<Path>,
    source: Source<'t>,
    mistakes: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn mistake(&mut self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        if self.mistakes.len() < MAX_MISTAKES {
            let mistake = self.source.error(span, message);
            self.mistakes.push(match help {
                Some(help) => mistake.help(help),
                None => mistake,
            });
        }
    }

    fn file(&mut self, root: &DeTable<'_>) -> SettingsFile {
        let mut file =
            SettingsFile { values: BTreeMap::new(), colors: Vec::new(), profiles: Vec::new() };
        for (key, value) in root {
            match &**key.get_ref() {
                PROFILES => file.profiles = self.profiles(value),
                COLOR_RULES => file.colors = self.color_rules(value),
                _ => self.setting(key, value, None, &[PROFILES, COLOR_RULES], &mut file.values),
            }
        }
        // Tables are sorted by name, but the first matching profile is the first in the file.
        file
    }

    fn profiles(&mut self, value: &Value<'_>) -> Vec<Profile> {
        let Some(table) = value.get_ref().as_table() else {
            let message = "write each profile as a table with its name, [profile.NAME]";
            self.mistake(value.span(), message, None);
            return Vec::new();
        };
        let mut profiles = Vec::new();
        for (name, value) in table {
            let Some(table) = value.get_ref().as_table() else {
                self.mistake(value.span(), "must be a table, [profile.NAME]", None);
                continue;
            };
            let mut profile = Profile {
                name: name.get_ref().to_string(),
                ends: Vec::new(),
                values: BTreeMap::new(),
                colors: Vec::new(),
            };
            for (key, value) in table {
                match &**key.get_ref() {
                    MATCH => profile.ends = self.ends(value),
                    COLOR_RULES => profile.colors = self.color_rules(value),
                    _ => {
                        let known = [MATCH, COLOR_RULES];
                        self.setting(key, value, Some(&profile.name), &known, &mut profile.values);
                    }
                }
            }
            profiles.push((name.span().start, profile));
        }
        profiles.sort_by_key(|(start, _)| *start);
        profiles.into_iter().map(|(_, profile)| profile).collect()
    }

    fn ends(&mut self, value: &Value<'_>) -> Vec<Ends> {
        let mut ends = Vec::new();
        for (text, span) in self.texts(value, true) {
            match text.parse() {
                Ok(one) => ends.push(one),
                Err(error @ super::profile::NotEnds) => {
                    self.mistake(span, error.to_string(), None);
                }
            }
        }
        ends
    }

    fn color_rules(&mut self, value: &Value<'_>) -> Vec<ColorRule> {
        let Some(items) = value.get_ref().as_array() else {
            let message = "write each rule as a table in double brackets, [[color-rule]]";
            self.mistake(value.span(), message, None);
            return Vec::new();
        };
        let mut rules = Vec::new();
        for item in items {
            let (mut filter, mut color) = (None, None);
            for (key, value) in item.get_ref().as_table().into_iter().flatten() {
                match &**key.get_ref() {
                    "filter" => filter = self.text(value),
                    "color" => color = self.text(value),
                    _ => self.unknown(key, &["filter", "color"]),
                }
            }
            let (Some((filter, at)), Some((color, of))) = (filter, color) else {
                self.mistake(item.span(), "a rule needs `filter` and `color`", None);
                continue;
            };
            if let Err(error) = Filter::parse(&filter) {
                let help = "`worldwire filter` explains filters".to_owned();
                // The error's other lines would only show the filter again, as this diagnostic
                // does.
                let text = error.to_string();
                self.mistake(at, text.lines().next().unwrap_or_default(), Some(help));
                continue;
            }
            match color.parse() {
                Ok(color) => rules.push(ColorRule { filter, color }),
                Err(error) => {
                    let error: super::color_rule::NotAColor = error;
                    self.mistake(of, error.to_string(), None);
                }
            }
        }
        rules
    }

    /// Reads one setting. `others` are the other keys that can be here.
    fn setting(
        &mut self,
        key: &Key<'_>,
        value: &Value<'_>,
        profile: Option<&str>,
        others: &[&str],
        into: &mut BTreeMap<Setting, Values>,
    ) {
        let name = key.get_ref();
        let Some(setting) = Setting::ALL.into_iter().find(|it| it.name() == name) else {
            let own = Setting::ALL.map(Setting::name);
            let known: Vec<&str> = own.iter().chain(others).copied().collect();
            return self.unknown(key, &known);
        };
        let mut values = Values::new();
        let texts = match setting {
            Setting::Revision => self.number(value),
            _ => self.texts(value, setting.is_list()),
        };
        for (text, span) in texts {
            let line = self.source.line(span.start);
            if let Err(message) = setting.check(&text) {
                self.mistake(span, message, None);
                continue;
            }
            let folder = self.path.parent().unwrap_or_else(|| Path::new(""));
            let value = match setting.is_path() {
                true => folder.join(text).into_os_string(),
                false => text.into(),
            };
            // A pipe or device would block or never end.
            let is_special = |about: std::fs::Metadata| !about.is_file() && !about.is_dir();
            if setting.is_path() && std::fs::metadata(&value).is_ok_and(is_special) {
                self.mistake(span, "must be a file or a directory", None);
                continue;
            }
            let (file, profile) = (Arc::clone(&self.path), profile.map(str::to_owned));
            values.push((value, Origin::File { file, line, profile }));
        }
        into.insert(setting, values);
    }

    fn unknown(&mut self, key: &Key<'_>, known: &[&str]) {
        let name = key.get_ref();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("valid keys here: {}", known.join(", ")),
        };
        self.mistake(key.span(), format!("unknown key `{name}`"), Some(help));
    }

    /// A text, or a list of texts if that is allowed.
    fn texts(&mut self, value: &Value<'_>, is_list: bool) -> Vec<(String, Range<usize>)> {
        match value.get_ref().as_array() {
            Some(items) if is_list => items.iter().filter_map(|item| self.text(item)).collect(),
            _ => self.text(value).into_iter().collect(),
        }
    }

    fn text(&mut self, value: &Value<'_>) -> Option<(String, Range<usize>)> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.mistake(value.span(), "must be text in quotes", None);
        }
        text.map(|text| (text.to_owned(), value.span()))
    }

    fn number(&mut self, value: &Value<'_>) -> Vec<(String, Range<usize>)> {
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
        if number.is_none() {
            self.mistake(value.span(), "must be a whole number", None);
        }
        number.map(|number| (number.to_string(), value.span())).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_reported_with_its_position() {
        let text = "\
keys = ['a.toml', 5]
kyes = 'b'
time = 'now'
revision = '7'

[profile.uru]
mach = ':1'
match = 'everywhere'

[[color-rule]]
filter = 'result !='
color = 'red'

[[color-rule]]
filter = 'result != 0'
color = 'crimson'
";
        let mistakes = SettingsFile::parse(Path::new("x/worldwire.toml"), text);
        let mistakes = mistakes.expect_err("it has mistakes");
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let begins = [
            "x/worldwire.toml:1:19: error: must be text in quotes",
            "x/worldwire.toml:2:1: error: unknown key `kyes` (did you mean `keys`?)",
            "x/worldwire.toml:3:8: error: must be one of relative, utc, local, delta",
            "x/worldwire.toml:4:12: error: must be a whole number",
            "x/worldwire.toml:7:1: error: unknown key `mach` (did you mean `match`?)",
            "x/worldwire.toml:8:9: error: must be an address, a network or a port",
            "x/worldwire.toml:11:10: error: ",
            "x/worldwire.toml:16:9: error: must be one of red, green",
        ];
        assert_eq!(lines.len(), begins.len(), "{lines:#?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
    }

    #[test]
    fn text_that_is_not_toml_is_reported() {
        for text in ["keys = ", "[profile", "keys = 'a'\nkeys = 'b'", "profile = 5", "\u{0}"] {
            let mistakes = SettingsFile::parse(Path::new("s"), text).expect_err("it is invalid");
            assert!(!mistakes.is_empty(), "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_refused() {
        let file = SettingsFile::parse(Path::new("s"), "keys = '/dev/zero'\n");
        let mistakes = file.expect_err("it never ends");
        assert!(mistakes[0].to_string().contains("must be a file or a directory"));
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let read = |path: &str| {
            let file = SettingsFile::parse(Path::new(path), "data = ['defs', '/all']\n");
            let values = file.expect("it is valid").values;
            let paths: Vec<String> =
                values[&Setting::Data].iter().map(|it| it.0.to_string_lossy().into()).collect();
            paths
        };
        assert_eq!(read("worldwire.toml"), ["defs", "/all"]);
        assert_eq!(read("/etc/w/worldwire.toml"), ["/etc/w/defs", "/all"]);
    }
}
