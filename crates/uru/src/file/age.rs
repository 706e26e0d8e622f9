//! Age files (`.age`): the pages of an age, how many players it can hold, and how long an empty
//! instance keeps running.
//!
//! An age file is a text file with one setting per line. Clients store it encrypted (see
//! [`secure`](super::secure)), servers usually in plain text.
//!
//! ```
//! use worldwire_uru::file::age::AgeFile;
//!
//! let text = "StartDateTime=1262304000\nDayLength=30.5\nMaxCapacity=12\nLingerTime=180\n\
//!             SequencePrefix=120\nReleaseVersion=0\nPage=fbMeadow,0\nPage=fbMusicHut,5,1\n";
//! let (age, problems) = AgeFile::parse("Fernbrook.age", text);
//! assert!(problems.is_empty());
//! assert_eq!((age.max_capacity, age.linger_time, age.sequence_prefix), (12, 180, 120));
//! assert_eq!(age.pages[1].name, "fbMusicHut");
//! assert_eq!(AgeFile::parse("again", &age.to_string()).0, age);
//! ```

use core::fmt;
use core::ops::Range;
use core::str::FromStr;
use core::time::Duration;

use worldwire_core::{Diagnostic, Source, nearest, wire_flags};

wire_flags! {
    /// The flags of a page in an age.
    ///
    /// Unverified: the names, which are taken from the client's page flags. Loading pages with each
    /// flag in a client would settle it.
    pub struct AgePageFlags(u32) {
        /// Clients load the page only when a script asks for it.
        PreventAutoLoad = 1,
        /// Clients load the page if there is a state for it.
        LoadIfSDLPresent = 2,
        /// The page exists on one client only.
        IsLocalOnly = 4,
        /// The page's state is not kept.
        IsVolatile = 8,
    }
}

/// A page of an age: `Page=name,number` or `Page=name,number,flags`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgePage {
    /// The name, without the name of the age.
    pub name: String,
    /// The page number. Combined with the age's prefix, it gives the sequence number.
    pub number: u16,
    /// The page's flags.
    pub flags: AgePageFlags,
}

/// An age file. `Display` writes the text of the file.
///
/// | line | value | default |
/// | --- | --- | --- |
/// | `StartDateTime` | seconds since 1970 | 0 |
/// | `DayLength` | hours of a day in the age | 24 |
/// | `MaxCapacity` | players at the same time; 0 or less: unlimited | -1 |
/// | `LingerTime` | seconds that an empty instance keeps running; negative: forever | 180 |
/// | `SequencePrefix` | the age's part of sequence numbers; negative for ages shared by all others | 0 |
/// | `ReleaseVersion` | unused | 0 |
/// | `Page` | a page; any number of lines | |
#[derive(Clone, Debug, PartialEq)]
pub struct AgeFile {
    /// When the age began, in seconds since 1970.
    pub start_date_time: u32,
    /// The length of a day in the age, in hours.
    pub day_length: f32,
    /// The maximum number of players; 0 or less means unlimited.
    pub max_capacity: i32,
    /// How many seconds an empty instance keeps running; negative means forever.
    pub linger_time: i32,
    /// The age's part of the sequence numbers of its pages.
    pub sequence_prefix: i32,
    /// Unused; 0.
    pub release_version: u32,
    /// The pages, in the order of the file.
    pub pages: Vec<AgePage>,
}

impl Default for AgeFile {
    /// The settings of an empty file.
    fn default() -> Self {
        Self {
            start_date_time: 0,
            day_length: 24.0,
            max_capacity: -1,
            linger_time: 180,
            sequence_prefix: 0,
            release_version: 0,
            pages: Vec::new(),
        }
    }
}

/// The names of all settings.
const NAMES: [&str; 7] = [
    "StartDateTime",
    "DayLength",
    "MaxCapacity",
    "LingerTime",
    "SequencePrefix",
    "ReleaseVersion",
    "Page",
];

impl AgeFile {
    /// Parses the text of a file; `name` is the file name for diagnostics. Setting names are
    /// case-insensitive; empty lines and lines that begin with `#` are ignored. A line that cannot
    /// be parsed is reported as an error and has no effect.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        let source = Source::new(name, text);
        let mut age = Self::default();
        let mut problems = Vec::new();
        let mut seen = [false; NAMES.len()];
        let mut at = 0;
        for whole in text.split_inclusive('\n') {
            let start = at + (whole.len() - whole.trim_start().len());
            at += whole.len();
            let line = whole.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let span = start..start + line.len();
            match age.line(line, &mut seen) {
                Ok(None) => {}
                Ok(Some(remark)) => problems.push(source.warning(span, remark)),
                Err(fault) => {
                    let place = start + fault.span.start..start + fault.span.end;
                    let error = source.error(place, fault.message);
                    problems.push(match fault.help {
                        Some(help) => error.help(help),
                        None => error,
                    });
                }
            }
        }
        (age, problems)
    }

    /// The maximum number of players, if limited.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        usize::try_from(self.max_capacity).ok().filter(|capacity| *capacity > 0)
    }

    /// How long an empty instance keeps running; `None` means forever.
    #[must_use]
    pub fn linger(&self) -> Option<Duration> {
        u64::try_from(self.linger_time).ok().map(Duration::from_secs)
    }

    fn line(
        &mut self,
        line: &str,
        seen: &mut [bool; NAMES.len()],
    ) -> Result<Option<String>, Fault> {
        let Some((name, value)) = line.split_once('=') else {
            return Err(Fault::new(0..line.len(), "not a setting; write NAME=VALUE"));
        };
        let name = name.trim_end();
        let behind = line.len() - value.trim_start().len();
        let value = value.trim();
        let span = behind..behind + value.len();
        let known = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
        let Some(known) = known else {
            let fault = Fault::new(0..name.len(), format!("unknown setting {name}"));
            let near = nearest(name, NAMES.iter().copied());
            return Err(Fault { help: near.map(|near| format!("did you mean {near}?")), ..fault });
        };
        match known {
            0 => self.start_date_time = number(value, span, "seconds since 1970")?,
            1 => {
                let wanted = "a positive number of hours";
                let hours: f32 = number(value, span.clone(), wanted)?;
                if !(hours.is_finite() && hours > 0.0) {
                    return Err(Fault::wanted(span, wanted, value));
                }
                self.day_length = hours;
            }
            2 => self.max_capacity = number(value, span, "a number of players")?,
            3 => self.linger_time = number(value, span, "seconds, or -1")?,
            4 => self.sequence_prefix = number(value, span, "a sequence prefix")?,
            5 => self.release_version = number(value, span, "a version number")?,
            _ => {
                let page = page(value, span.clone())?;
                if let Some(other) = self.pages.iter().find(|other| other.number == page.number) {
                    let message = format!("page {} is already used by {}", page.number, other.name);
                    return Err(Fault::new(span, message));
                }
                self.pages.push(page);
                return Ok(None);
            }
        }
        let again = seen.get_mut(known).is_some_and(|seen| core::mem::replace(seen, true));
        let name = NAMES.get(known).copied().unwrap_or_default();
        Ok(again.then(|| format!("{name} is set twice; the last value applies")))
    }
}

fn page(value: &str, span: Range<usize>) -> Result<AgePage, Fault> {
    let mut parts = value.split(',').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty());
    let (Some(name), Some(suffix)) = (name, parts.next()) else {
        return Err(Fault::wanted(span, "NAME,NUMBER or NAME,NUMBER,FLAGS", value));
    };
    let page = AgePage {
        name: name.to_owned(),
        number: number(suffix, span.clone(), "a page number up to 65535")?,
        flags: match parts.next() {
            Some(flags) => AgePageFlags(number(flags, span.clone(), "flags as a number")?),
            None => AgePageFlags(0),
        },
    };
    match parts.next() {
        None => Ok(page),
        Some(_) => Err(Fault::wanted(span, "NAME,NUMBER or NAME,NUMBER,FLAGS", value)),
    }
}

fn number<N: FromStr>(value: &str, span: Range<usize>, wanted: &str) -> Result<N, Fault> {
    value.parse().map_err(|_| Fault::wanted(span, wanted, value))
}

/// The problem with a line, and its position.
struct Fault {
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

impl Fault {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    fn wanted(span: Range<usize>, wanted: &str, found: &str) -> Self {
        Self::new(span, format!("wanted {wanted}, found {found:?}"))
    }
}

impl fmt::Display for AgeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "StartDateTime={}", self.start_date_time)?;
        writeln!(f, "DayLength={}", self.day_length)?;
        writeln!(f, "MaxCapacity={}", self.max_capacity)?;
        writeln!(f, "LingerTime={}", self.linger_time)?;
        writeln!(f, "SequencePrefix={}", self.sequence_prefix)?;
        writeln!(f, "ReleaseVersion={}", self.release_version)?;
        for AgePage { name, number, flags } in &self.pages {
            match flags.0 {
                0 => writeln!(f, "Page={name},{number}")?,
                flags => writeln!(f, "Page={name},{number},{flags}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_point_at_the_value() {
        let text = "# made up\r\nStartDateTime=soon\nmaxcapacity = 12\nLingrTime=3\nDayLength=0\n\
                    nonsense\nPage=a,1\nPage=b,1\nPage=c\nPage=d,70000\nMaxCapacity=13\n\
                    Page=e,2,4,9\n";
        let (age, problems) = AgeFile::parse("x.age", text);
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        x.age:2:15: error: wanted seconds since 1970, found "soon"
        x.age:4:1: error: unknown setting LingrTime (did you mean LingerTime?)
        x.age:5:11: error: wanted a positive number of hours, found "0"
        x.age:6:1: error: not a setting; write NAME=VALUE
        x.age:8:6: error: page 1 is already used by a
        x.age:9:6: error: wanted NAME,NUMBER or NAME,NUMBER,FLAGS, found "c"
        x.age:10:6: error: wanted a page number up to 65535, found "70000"
        x.age:11:1: warning: MaxCapacity is set twice; the last value applies
        x.age:12:6: error: wanted NAME,NUMBER or NAME,NUMBER,FLAGS, found "e,2,4,9"
        "#);
        assert_eq!(age.capacity(), Some(13));
        assert_eq!(age.linger(), Some(Duration::from_secs(180)));
        assert_eq!(age.pages.len(), 1);
    }

    #[test]
    fn zero_or_negative_limits_mean_unlimited() {
        let (age, problems) = AgeFile::parse("x.age", "LingerTime=-1\nMaxCapacity=0\n");
        assert!(problems.is_empty());
        assert_eq!((age.linger(), age.capacity()), (None, None));
    }
}
