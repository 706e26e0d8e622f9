//! The steps that a client takes.

use worldwire_ki::SCHOOLS;
use worldwire_ki::crypt::login::Secret;

/// A step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Ping,
    Login,
    /// What another login yielded: the account's number and a CK2.
    Token(u64, Secret),
    Validate,
    List,
    /// A name and a school.
    Create(String, &'static str),
    /// The file of a blob.
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
    /// Its word.
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

/// The steps of a command line, with + between them.
///
/// # Errors
/// What is wrong, for people.
pub(super) fn sequence(words: &[String]) -> Result<Vec<Step>, String> {
    words.split(|word| word == "+").map(step).collect()
}

/// The words of the step may be secrets.
fn wanted_token() -> String {
    "token: wanted the number of an account and a CK2, as -U has them".to_owned()
}

fn step(words: &[String]) -> Result<Step, String> {
    let Some((name, rest)) = words.split_first() else {
        return Err("wanted a step on either side of +, found none".to_owned());
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let wanted = |what: &str| format!("{name}: wanted {what}, found {:?}", rest.join(" "));
    Ok(match (name.as_str(), &rest[..]) {
        ("ping", []) => Step::Ping,
        ("login", []) => Step::Login,
        ("validate", []) => Step::Validate,
        ("list", []) => Step::List,
        ("token", [user, ck2]) => {
            let user = user.trim_start_matches('.').parse();
            Step::Token(user.map_err(|_| wanted_token())?, Secret::new(*ck2))
        }
        ("create", [name, given]) => {
            let school = SCHOOLS.iter().find(|school| school.eq_ignore_ascii_case(given));
            let wanted = || format!("create: wanted {}, found {given:?}", SCHOOLS.join(", "));
            Step::Create((*name).to_owned(), school.ok_or_else(wanted)?)
        }
        ("create-from", [file]) => Step::CreateFrom((*file).to_owned()),
        ("delete", [character]) => Step::Delete((*character).to_owned()),
        ("select", [character]) => Step::Select((*character).to_owned()),
        ("enter", []) => Step::Enter,
        ("files", []) => Step::Files,
        ("args", []) => Step::Args,
        ("wait", [seconds]) => {
            Step::Wait(seconds.parse().map_err(|_| wanted("a number of seconds"))?)
        }
        ("logout", []) => Step::Logout,
        ("token", _) => return Err(wanted_token()),
        ("create", _) => return Err(wanted("a name and a school")),
        ("create-from", _) => return Err(wanted("a file")),
        ("delete" | "select", _) => return Err(wanted("a character")),
        ("wait", _) => return Err(wanted("a number of seconds")),
        ("ping" | "login" | "validate" | "list" | "enter" | "files" | "args" | "logout", _) => {
            return Err(wanted("nothing more"));
        }
        _ => return Err(format!("{name}: is not a step; see worldwire client ki --help")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_what_is_wrong_is_named() {
        let read = |text: &str| sequence(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let steps = read("token ..7 a+b= + create Merle fire + wait 3").unwrap();
        let [Step::Token(7, ck2), Step::Create(name, school), Step::Wait(3)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!((ck2.as_str(), name.as_str(), *school), ("a+b=", "Merle", "Fire"));
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("wait x"), "wait: wanted a number of seconds, found \"x\"");
        assert_eq!(error("create Merle"), "create: wanted a name and a school, found \"Merle\"");
        assert_eq!(
            error("create Merle Stone"),
            "create: wanted Fire, Ice, Storm, Myth, Life, Death, Balance, found \"Stone\""
        );
        assert!(!error("token x secret").contains("secret"));
        assert_eq!(error("ping 1"), "ping: wanted nothing more, found \"1\"");
        assert_eq!(error("login +"), "wanted a step on either side of +, found none");
        assert_eq!(error("sing"), "sing: is not a step; see worldwire client ki --help");
    }
}
