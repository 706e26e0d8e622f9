//! The arguments of the graphical client, as a typed list.
//!
//! The list comes from the Kronos Grimoire. Arguments that only the Imlight documents or Project
//! Ambrose mention are marked.

use core::fmt;

/// An argument of the graphical client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The flag, such as `-L`. Case-sensitive.
    pub flag: &'static str,
    /// A long name, chosen by worldwire.
    pub name: &'static str,
    /// The words after the flag, by name; empty for a switch.
    pub values: &'static [Word],
    /// What the argument does.
    pub about: &'static str,
    /// Whether the Grimoire documents the argument; otherwise only other documents do.
    pub documented: bool,
}

/// A word that follows an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word's name in the help text.
    pub name: &'static str,
    /// What is expected.
    pub kind: WordKind,
}

/// The form that a word must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// Any text without quotes or control characters.
    Text,
    /// A whole number.
    Number,
    /// A port, 1 to 65535.
    Port,
    /// 0 or 1.
    Switch,
    /// A user ID after two dots: `..123`.
    DottedId,
}

const fn text(name: &'static str) -> Word {
    Word { name, kind: WordKind::Text }
}

const fn number(name: &'static str) -> Word {
    Word { name, kind: WordKind::Number }
}

const ON: Word = Word { name: "0|1", kind: WordKind::Switch };

macro_rules! arguments {
    ($($flag:literal $name:literal [$($word:expr),*] $about:literal $documented:literal;)*) => {
        &[$(Argument {
            flag: $flag,
            name: $name,
            values: &[$($word),*],
            about: $about,
            documented: $documented,
        }),*]
    };
}

/// All known arguments, in the client's alphabetical order.
pub const ARGUMENTS: &[Argument] = arguments! {
    "-?" "client-help" [] "shows outdated help" true;
    "-A" "locale" [text("LOCALE")] "the locale" true;
    "-C" "character" [text("NAME|ID")] "the character to play, by name or ID" true;
    "-CS" "dump-signature" [] "prints the client's signature" true;
    "-D" "data-root" [text("FOLDER")] "the root of the game's data" true;
    "-E" "gid" [number("GID")] "a global ID" false;
    "-EF_OVERFLOW" "trap-overflow" [] "concerns overflows; its effect is not documented" true;
    "-EF_UNDERFLOW" "trap-underflow" [] "concerns underflows; its effect is not documented" true;
    "-G" "log" [text("FILE")] "where to write the log" true;
    "-HD" "heap-debug" [] "heap debugging" true;
    "-HS" "heap-server" [] "heap server" true;
    "-IgnoreMissingParams" "ignore-missing-params" [] "ignores missing parameters" true;
    "-K" "k" [ON] "unknown" false;
    "-L" "login" [text("HOST"), Word { name: "PORT", kind: WordKind::Port }] "the login server" true;
    "-M" "m" [ON] "unknown" false;
    "-O" "log-resources" [] "logs requested resources" true;
    "-P" "patch" [ON] "whether to patch" false;
    "-PT" "patch-time" [number("TIME")] "the patch time; its unit is not documented" true;
    "-R" "zone" [text("ZONE")] "a zone" false;
    "-R2" "zone-server-gid" [text("IP"), number("GID")] "a zone server and a global ID" false;
    "-S" "script" [text("SCRIPT")] "a script to run" false;
    "-SR" "resolution" [text("RESOLUTION")] "the screen's resolution" false;
    "-ST" "steam" [] "requires Steam" true;
    "-T" "local-zone" [text("ZONE")] "the local zone" true;
    "-U" "user" [Word { name: "..UID", kind: WordKind::DottedId }, text("CK2"), text("USER")]
        "a logged-in user: ID, login secret, account name" true;
    "-UN" "un" [ON] "0 or 1; its effect is not documented" true;
    "-V" "choose-server" [] "lets the user choose a server" true;
    "-X" "dump-classes" [text("FILE")] "dumps the classes to a file" true;
    "-Z" "zone-server" [text("IP")] "a zone server" false;
    "-c" "check-compression" [] "checks the compression of the volume's archives" true;
    "-u" "unpack" [text("WILDCARDS")] "wildcards; their use is not documented" true;
};

/// An argument as given, with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenArgument {
    /// The argument.
    pub argument: &'static Argument,
    /// The argument's words, complete and validated.
    pub words: Vec<String>,
}

/// Why a command line was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// An unknown argument.
    #[error("\"{found}\" is not an argument of the client{}", near(.nearest))]
    Unknown {
        /// The argument that was given.
        found: String,
        /// The most similar known argument.
        nearest: Option<&'static str>,
    },
    /// A word is missing.
    #[error("{flag}: needs {wanted}")]
    Missing {
        /// The argument.
        flag: &'static str,
        /// The missing word.
        wanted: &'static str,
    },
    /// A word is invalid.
    #[error("{flag}: wanted {wanted}, found \"{found}\"")]
    Word {
        /// The argument.
        flag: &'static str,
        /// What is expected.
        wanted: String,
        /// The word that was given.
        found: String,
    },
}

fn near(nearest: &Option<&str>) -> String {
    nearest.map_or(String::new(), |near| format!("; did you mean {near}?"))
}

impl Argument {
    /// The argument with this flag.
    #[must_use]
    pub fn named(flag: &str) -> Option<&'static Self> {
        ARGUMENTS.iter().find(|argument| argument.flag == flag)
    }

    /// Parses the words of this argument from one text, separated by colons: `127.0.0.1:12000`,
    /// `5:SECRET:Merle`. The dots before a user ID may be omitted. If there are two words, they are
    /// split at the last colon, so that the first may be an IPv6 address.
    pub fn with_joined(&'static self, text: &str) -> Result<GivenArgument, ArgumentError> {
        let mut words: Vec<String> = match self.values.len() {
            0 => Vec::new(),
            1 => vec![text.to_owned()],
            2 => {
                let mut words: Vec<String> = text.rsplitn(2, ':').map(str::to_owned).collect();
                words.reverse();
                words
            }
            count => text.splitn(count, ':').map(str::to_owned).collect(),
        };
        let first = self.values.first().map(|word| word.kind);
        if let (Some(WordKind::DottedId), Some(id)) = (first, words.first_mut())
            && !id.starts_with("..")
        {
            id.insert_str(0, "..");
        }
        self.with(words)
    }

    /// Combines this argument with its words.
    ///
    /// # Errors
    /// Fails if there are too few words or one is invalid. Surplus words are ignored.
    pub fn with<W: AsRef<str>>(
        &'static self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<GivenArgument, ArgumentError> {
        let mut words = words.into_iter();
        let mut checked = Vec::with_capacity(self.values.len());
        for word in self.values {
            let missing = ArgumentError::Missing { flag: self.flag, wanted: word.name };
            let given = words.next().ok_or(missing)?;
            checked.push(word.check(self.flag, given.as_ref())?);
        }
        Ok(GivenArgument { argument: self, words: checked })
    }
}

impl Word {
    fn check(self, flag: &'static str, found: &str) -> Result<String, ArgumentError> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (good, what) = match self.kind {
            WordKind::Text => {
                let is_forbidden = |c: char| c.is_control() || c == '"';
                let plain = !found.is_empty() && !found.contains(is_forbidden);
                (plain, "text without quotes or control characters")
            }
            WordKind::Number => (digits(found), "a number"),
            WordKind::Port => (found.parse::<u16>().is_ok_and(|port| port > 0), "a port"),
            WordKind::Switch => (matches!(found, "0" | "1"), "0 or 1"),
            WordKind::DottedId => {
                let id = found.strip_prefix("..").and_then(|id| id.parse::<u64>().ok());
                (id.is_some(), "two dots and a number")
            }
        };
        if good {
            return Ok(found.to_owned());
        }
        let wanted = format!("{} ({what})", self.name);
        Err(ArgumentError::Word { flag, wanted, found: found.to_owned() })
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flag)?;
        self.values.iter().try_for_each(|word| write!(f, " {}", word.name))
    }
}

/// Displays as on a Windows command line, with words in quotes if they contain spaces.
impl fmt::Display for GivenArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.argument.flag)?;
        self.words.iter().try_for_each(|word| {
            if !word.contains(char::is_whitespace) {
                return write!(f, " {word}");
            }
            // A backslash before the closing quote would escape it.
            let ends = word.len() - word.trim_end_matches('\\').len();
            write!(f, " \"{word}{}\"", "\\".repeat(ends))
        })
    }
}

/// Parses the command line of a client, without the program's name.
///
/// # Errors
/// The first argument that is unknown or lacks valid words; see also [`parse_each`].
///
/// ```
/// use worldwire_ki::client_args::parse;
/// let given = parse(["-L", "127.0.0.1", "12000", "-V"])?;
/// assert_eq!(given[0].argument.flag, "-L");
/// assert_eq!(given[0].words, ["127.0.0.1", "12000"]);
/// assert_eq!(given[1].to_string(), "-V");
/// # Ok::<(), worldwire_ki::client_args::ArgumentError>(())
/// ```
pub fn parse<W: AsRef<str>>(
    words: impl IntoIterator<Item = W>,
) -> Result<Vec<GivenArgument>, ArgumentError> {
    parse_each(words).into_iter().collect()
}

/// Parses the command line of a client. After an error, continues at the next word that begins
/// with a hyphen.
pub fn parse_each<W: AsRef<str>>(
    words: impl IntoIterator<Item = W>,
) -> Vec<Result<GivenArgument, ArgumentError>> {
    let mut words = words.into_iter().peekable();
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let flag = word.as_ref();
        let given = match Argument::named(flag) {
            Some(argument) => argument.with(words.by_ref().take(argument.values.len())),
            None => Err(ArgumentError::Unknown {
                found: flag.to_owned(),
                nearest: worldwire_core::nearest(flag, ARGUMENTS.iter().map(|known| known.flag)),
            }),
        };
        if given.is_err() {
            while words.next_if(|word| !word.as_ref().starts_with('-')).is_some() {}
        }
        all.push(given);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_round_trips() {
        for argument in ARGUMENTS {
            let words = argument.values.iter().map(|word| match word.kind {
                WordKind::Text => "a",
                WordKind::Number => "18446744073709551615",
                WordKind::Port => "12000",
                WordKind::Switch => "1",
                WordKind::DottedId => "..7",
            });
            let given = argument.with(words).expect("the words are valid");
            let line = given.to_string();
            assert_eq!(parse(line.split(' ')), Ok(vec![given]), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error =
            |line: &str| parse(line.split(' ')).expect_err("the arguments are invalid").to_string();
        assert_eq!(
            error("-ignoremissingparams"),
            "\"-ignoremissingparams\" is not an argument of the client; \
             did you mean -IgnoreMissingParams?"
        );
        assert_eq!(error("-V -L 127.0.0.1"), "-L: needs PORT");
        assert_eq!(error("-L 127.0.0.1 0"), "-L: wanted PORT (a port), found \"0\"");
        assert_eq!(
            error("-U 5 ck2 Merle"),
            "-U: wanted ..UID (two dots and a number), found \"5\""
        );
        assert_eq!(error("-P 2"), "-P: wanted 0|1 (0 or 1), found \"2\"");
    }

    #[test]
    fn one_mistake_does_not_hide_the_rest() {
        let each = parse_each("-V -Q a b -U 5 ck2 Merle -X types.json".split(' '));
        let lines = each.iter().map(|each| match each {
            Ok(given) => given.to_string(),
            Err(error) => error.to_string(),
        });
        let [first, unknown, invalid, last] = &lines.collect::<Vec<_>>()[..] else {
            panic!("two are right and two are wrong");
        };
        assert_eq!((first.as_str(), last.as_str()), ("-V", "-X types.json"));
        assert!(unknown.starts_with("\"-Q\" is not an argument"), "{unknown}");
        assert!(invalid.starts_with("-U: wanted ..UID"), "{invalid}");
    }

    #[test]
    fn joined_words_are_split() {
        let joined = |flag: &str, text: &str| {
            let argument = Argument::named(flag).expect("the flag is known");
            argument.with_joined(text).map(|given| given.to_string())
        };
        assert_eq!(joined("-L", "::1:12000").as_deref(), Ok("-L ::1 12000"));
        assert_eq!(joined("-U", "5:Y2sy==:Merle").as_deref(), Ok("-U ..5 Y2sy== Merle"));
        assert_eq!(joined("-U", "..5:Y2sy==:Merle").as_deref(), Ok("-U ..5 Y2sy== Merle"));
        assert!(joined("-L", "127.0.0.1").is_err());
        let folder = "C:\\Program Files\\Wizard101";
        let quoted = Ok("-D \"C:\\Program Files\\Wizard101\"".to_owned());
        assert_eq!(joined("-D", folder), quoted);
        let ending = Ok("-D \"C:\\Program Files\\\\\"".to_owned());
        assert_eq!(joined("-D", "C:\\Program Files\\"), ending);
        assert_eq!(joined("-D", "C:\\Games\\").as_deref(), Ok("-D C:\\Games\\"));
        assert!(joined("-D", "C:\\\"x").is_err());
    }

    #[test]
    fn flags_differ() {
        for (index, argument) in ARGUMENTS.iter().enumerate() {
            assert_eq!(ARGUMENTS.iter().position(|a| a.flag == argument.flag), Some(index));
            assert_eq!(ARGUMENTS.iter().position(|a| a.name == argument.name), Some(index));
        }
    }
}
