//! The steps of a client.

use worldwire_ki::SCHOOLS;
use worldwire_ki::crypt::login::Secret;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Ping,
    Login,
    /// The result of another login: the account's number and a CK2.
    Token(u64, Secret),
    Validate,
    List,
    /// A name and a school.
    Create(String, &'static str),
    /// A file with a blob.
    CreateFrom(String),
    Delete(String),
    Select(String),
    Enter,
    Files,
    Args,
    Wait(u64),
    Logout,
}

impl Step {
    /// The step's name on the command line.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Login => "login",
            Self::Token(..) => "token",
            Self::Validate => "validate",
            Self::List => "list",
            Self::Create(..) => "create",
            Self::CreateFrom(_) => "create-from",
            Self::Delete(_) => "delete",
            Self::Select(_) => "select",
            Self::Enter => "enter",
            Self::Files => "files",
            Self::Args => "args",
            Self::Wait(_) => "wait",
            Self::Logout => "logout",
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

/// Do not repeat the step's words in the error, because they may be secret.
fn token_misfit() -> String {
    "token: needs a user number and a CK2, as in -U".to_owned()
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
        ("ping", []) => Step::Ping,
        ("login", []) => Step::Login,
        ("validate", []) => Step::Validate,
        ("list", []) => Step::List,
        ("token", [user, ck2]) => {
            let user = user.trim_start_matches('.').parse();
            Step::Token(user.map_err(|_| token_misfit())?, Secret::new(*ck2))
        }
        ("create", ["", _]) => return Err("create: the name is empty".to_owned()),
        ("create", [name, given]) => {
            let school = SCHOOLS.iter().find(|school| school.eq_ignore_ascii_case(given));
            let unknown =
                || format!("create: {given:?} is not a school; use {}", SCHOOLS.join(", "));
            Step::Create((*name).to_owned(), school.ok_or_else(unknown)?)
        }
        ("create-from", [file]) => Step::CreateFrom((*file).to_owned()),
        ("delete", [character]) => Step::Delete((*character).to_owned()),
        ("select", [character]) => Step::Select((*character).to_owned()),
        ("enter", []) => Step::Enter,
        ("files", []) => Step::Files,
        ("args", []) => Step::Args,
        ("wait", [seconds]) => {
            Step::Wait(seconds.parse().map_err(|_| misfit("a number of seconds"))?)
        }
        ("logout", []) => Step::Logout,
        ("token", _) => return Err(token_misfit()),
        ("create", _) => return Err(misfit("a name and a school")),
        ("create-from", _) => return Err(misfit("a file")),
        ("delete" | "select", _) => return Err(misfit("a character")),
        ("wait", _) => return Err(misfit("a number of seconds")),
        ("ping" | "login" | "validate" | "list" | "enter" | "files" | "args" | "logout", _) => {
            return Err(format!("{name} takes no arguments; remove {:?}", rest.join(" ")));
        }
        (name, _) if name.contains(' ') => {
            return Err(format!("{name}: pass each word of a step as a separate argument"));
        }
        _ => return Err(format!("unknown step `{name}`; `worldwire client ki --help` lists them")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_parsed_and_mistakes_named() {
        let read = |text: &str| sequence(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let steps = read("token ..7 a+b= + create Merle fire + wait 3").unwrap();
        let [Step::Token(7, ck2), Step::Create(name, school), Step::Wait(3)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!((ck2.as_str(), name.as_str(), *school), ("a+b=", "Merle", "Fire"));
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("wait x"), "wait: needs a number of seconds, not \"x\"");
        let nameless = ["create", "", "Fire"].map(str::to_owned);
        assert_eq!(sequence(&nameless).unwrap_err(), "create: the name is empty");
        assert_eq!(error("create Merle"), "create: needs a name and a school, not \"Merle\"");
        assert_eq!(
            error("create Merle Stone"),
            "create: \"Stone\" is not a school; use Fire, Ice, Storm, Myth, Life, Death, Balance"
        );
        assert!(!error("token x secret").contains("secret"));
        assert_eq!(error("ping 1"), "ping takes no arguments; remove \"1\"");
        assert_eq!(error("login +"), "a step is missing before or after +");
        let joined = sequence(&["login + validate".to_owned()]).unwrap_err();
        assert_eq!(joined, "login + validate: pass each word of a step as a separate argument");
        assert_eq!(error("sing"), "unknown step `sing`; `worldwire client ki --help` lists them");
    }
}
