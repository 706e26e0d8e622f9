//! The steps of a client.

use worldwire_mxo::rpc::EmoteId;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Login,
    List,
    Create(String),
    Load(String),
    Delete(String),
    Enter,
    Say(String),
    Whisper(String, String),
    Emote(EmoteId),
    Travel(u32),
    Wait(f64),
    Leave,
}

impl Step {
    /// The step's name on the command line.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::List => "list",
            Self::Create(_) => "create",
            Self::Load(_) => "load",
            Self::Delete(_) => "delete",
            Self::Enter => "enter",
            Self::Say(_) => "say",
            Self::Whisper(..) => "whisper",
            Self::Emote(_) => "emote",
            Self::Travel(_) => "travel",
            Self::Wait(_) => "wait",
            Self::Leave => "leave",
        }
    }
}

/// The steps on a command line, separated by +.
///
/// # Errors
/// A readable description of the problem.
pub(super) fn sequence(words: &[String]) -> Result<Vec<Step>, String> {
    words.split(|word| word == "+").map(step).collect()
}

fn step(words: &[String]) -> Result<Step, String> {
    let Some((name, rest)) = words.split_first() else {
        return Err("a step is missing before or after +".to_owned());
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let misfit = |what: &str| match &rest[..] {
        [] => format!("{name}: needs {what}"),
        rest => format!("{name}: needs {what}, not {:?}", rest.join(" ")),
    };
    Ok(match (name.as_str(), &rest[..]) {
        ("login", []) => Step::Login,
        ("list", []) => Step::List,
        ("create", [handle]) => Step::Create((*handle).to_owned()),
        ("load", [handle]) => Step::Load((*handle).to_owned()),
        ("delete", [handle]) => Step::Delete((*handle).to_owned()),
        ("enter", []) => Step::Enter,
        ("say", [_, ..]) => Step::Say(rest.join(" ")),
        ("whisper", [handle, text @ ..]) if !text.is_empty() => {
            Step::Whisper((*handle).to_owned(), text.join(" "))
        }
        ("emote", [emote]) => {
            let is_meant = |(_, name): &(i64, &str)| name.eq_ignore_ascii_case(emote);
            let known = EmoteId::NAMES.iter().find(is_meant);
            let found = known.and_then(|(number, _)| u32::try_from(number).ok());
            Step::Emote(found.map(EmoteId).ok_or_else(|| misfit(&emote_wanted(emote)))?)
        }
        ("travel", [district]) => {
            let district = district.parse().ok();
            Step::Travel(district.ok_or_else(|| misfit("the number of a district"))?)
        }
        ("wait", [seconds]) => {
            let seconds: Option<f64> = seconds.parse().ok();
            let seconds = seconds.filter(|seconds| (0.0..=1e6).contains(seconds));
            Step::Wait(seconds.ok_or_else(|| misfit("a number of seconds"))?)
        }
        ("leave", []) => Step::Leave,
        ("create" | "load" | "delete", _) => return Err(misfit("a character name")),
        ("say", _) => return Err(misfit("a message")),
        ("whisper", _) => return Err(misfit("a character name and a message")),
        ("emote", _) => return Err(misfit("the name of an emote")),
        ("travel", _) => return Err(misfit("the number of a district")),
        ("wait", _) => return Err(misfit("a number of seconds")),
        ("login" | "list" | "enter" | "leave", _) => {
            return Err(format!("{name} takes no arguments; remove {:?}", rest.join(" ")));
        }
        (name, _) if name.contains(' ') => {
            return Err(format!("{name}: pass each word of a step as a separate argument"));
        }
        _ => {
            return Err(format!("unknown step `{name}`; `worldwire client mxo --help` lists them"));
        }
    })
}

/// Describes what the step `emote` needs, and suggests the emote whose name is closest to the
/// unknown one.
fn emote_wanted(unknown: &str) -> String {
    match EmoteId::NAMES.nearest(unknown) {
        Some(name) => format!("the name of an emote, such as {name}"),
        None => "the name of an emote".to_owned(),
    }
}

/// The names of all emotes, for the help.
pub(crate) fn emotes() -> String {
    let mut lines = vec![String::new()];
    for (_, name) in EmoteId::NAMES.iter() {
        let is_full = lines.last().is_some_and(|line| line.len() + name.len() > MAX_LINE);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "  " } else { ", " });
            line.push_str(name);
        }
    }
    lines.join(",\n")
}

/// The maximum length of a line of help.
const MAX_LINE: usize = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_parsed_and_mistakes_named() {
        let read = |text: &str| sequence(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let steps =
            read("login + create Neo + enter + say I know + emote wave + wait 0.5").unwrap();
        let [Step::Login, Step::Create(name), Step::Enter, Step::Say(text), Step::Emote(emote), _] =
            &steps[..]
        else {
            panic!("{steps:?}");
        };
        assert_eq!((name.as_str(), text.as_str(), *emote), ("Neo", "I know", EmoteId::Wave));
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("wait x"), "wait: needs a number of seconds, not \"x\"");
        assert_eq!(error("emote Fly"), "emote: needs the name of an emote, not \"Fly\"");
        assert_eq!(
            error("emote Wafe"),
            "emote: needs the name of an emote, such as Wave, not \"Wafe\""
        );
        assert_eq!(error("travel x"), "travel: needs the number of a district, not \"x\"");
        assert_eq!(error("create"), "create: needs a character name");
        assert_eq!(
            error("whisper Neo"),
            "whisper: needs a character name and a message, not \"Neo\""
        );
        assert_eq!(error("enter 1"), "enter takes no arguments; remove \"1\"");
        assert_eq!(error("login +"), "a step is missing before or after +");
        assert_eq!(error("fly"), "unknown step `fly`; `worldwire client mxo --help` lists them");
        let joined = sequence(&["login + list".to_owned()]).unwrap_err();
        assert_eq!(joined, "login + list: pass each word of a step as a separate argument");
    }
}
