//! The steps of a script, and how they are written.

use std::path::PathBuf;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_core::{Field as _, nearest};
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::VaultNode;

use crate::command::uru::fields_of;
use crate::output::Failure;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Gatekeeper,
    Build,
    Manifest(String),
    Download(String, PathBuf),
    Login,
    Players,
    CreatePlayer(String, String),
    SetPlayer(String),
    DeletePlayer(String),
    Vault(Option<Node>),
    Node(Node),
    Find(Box<VaultNode<'static>>),
    CreateNode(Box<VaultNode<'static>>),
    SaveNode(Node, Box<VaultNode<'static>>),
    AddNode(Node, Node),
    RemoveNode(Node, Node),
    SendNode(Node, u32),
    Ages(String),
    Age(String, Uuid),
    InitAge(String, Uuid, Option<String>),
    SetPublic(Node, bool),
    Scores(Node, String),
    HighScores(Node, u32, String),
    CreateScore(Node, String, u32, i32),
    AddPoints(u32, i32),
    SetPoints(u32, i32),
    TransferPoints(u32, u32, i32),
    Secure(String, String, PathBuf),
    Enter(String, Option<Uuid>),
    Say(String),
    Walk(u64),
    Lock(Thing),
    Release(Thing),
    SetState(Thing, String, Vec<(String, Json)>),
    Leave,
    Logout,
    Ping,
    Wait(Duration),
    /// Under load, the steps before it run once, and those after it repeat.
    Again,
}

/// A node as named in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Number(u32),
    /// The player's node.
    Player,
    /// The node that was created last.
    Made,
}

/// The maximum delay before a waiting client prints an event.
const SLICE: Duration = Duration::from_millis(100);

/// An object as named in a step: `NAME@SEQUENCE`, with the sequence number in hexadecimal, and page
/// flags after a slash if there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) name: String,
    pub(super) sequence: u32,
    pub(super) flags: u16,
}

impl Thing {
    fn parse(word: &str) -> Option<Self> {
        let (name, page) = word.rsplit_once('@')?;
        let (sequence, flags) = page.split_once('/').unwrap_or((page, "0"));
        Some(Self {
            name: name.to_owned(),
            sequence: u32::from_str_radix(sequence, 16).ok()?,
            flags: flags.parse().ok()?,
        })
    }
}

const STEPS: &[(&str, &str)] = &[
    ("gatekeeper", ""),
    ("build", ""),
    ("manifest", "GROUP"),
    ("download", "GROUP FOLDER"),
    ("login", ""),
    ("players", ""),
    ("create-player", "NAME SHAPE"),
    ("set-player", "PLAYER"),
    ("delete-player", "PLAYER"),
    ("vault", "[NODE]"),
    ("node", "NODE"),
    ("find", "FIELD=VALUE..."),
    ("create-node", "FIELD=VALUE..."),
    ("save-node", "NODE FIELD=VALUE..."),
    ("add-node", "PARENT CHILD"),
    ("remove-node", "PARENT CHILD"),
    ("send-node", "NODE PLAYER"),
    ("ages", "FILENAME"),
    ("age", "FILENAME INSTANCE"),
    ("init-age", "FILENAME INSTANCE [NAME]"),
    ("set-public", "NODE yes|no"),
    ("scores", "OWNER NAME"),
    ("high-scores", "OWNER COUNT NAME"),
    ("create-score", "OWNER NAME TYPE POINTS"),
    ("add-points", "SCORE POINTS"),
    ("set-points", "SCORE POINTS"),
    ("transfer-points", "SCORE SCORE POINTS"),
    ("secure", "DIRECTORY EXTENSION FOLDER"),
    ("enter", "FILENAME [INSTANCE]"),
    ("say", "TEXT"),
    ("walk", "SECONDS"),
    ("lock", "OBJECT"),
    ("release", "OBJECT"),
    ("set-state", "OBJECT DESCRIPTOR VARIABLE=VALUE..."),
    ("leave", ""),
    ("logout", ""),
    ("ping", ""),
    ("wait", "SECONDS"),
    ("again", ""),
];

impl Step {
    /// The word that starts it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Gatekeeper => "gatekeeper",
            Self::Build => "build",
            Self::Manifest(..) => "manifest",
            Self::Download(..) => "download",
            Self::Login => "login",
            Self::Players => "players",
            Self::CreatePlayer(..) => "create-player",
            Self::SetPlayer(..) => "set-player",
            Self::DeletePlayer(..) => "delete-player",
            Self::Vault(..) => "vault",
            Self::Node(..) => "node",
            Self::Find(..) => "find",
            Self::CreateNode(..) => "create-node",
            Self::SaveNode(..) => "save-node",
            Self::AddNode(..) => "add-node",
            Self::RemoveNode(..) => "remove-node",
            Self::SendNode(..) => "send-node",
            Self::Ages(..) => "ages",
            Self::Age(..) => "age",
            Self::InitAge(..) => "init-age",
            Self::SetPublic(..) => "set-public",
            Self::Scores(..) => "scores",
            Self::HighScores(..) => "high-scores",
            Self::CreateScore(..) => "create-score",
            Self::AddPoints(..) => "add-points",
            Self::SetPoints(..) => "set-points",
            Self::TransferPoints(..) => "transfer-points",
            Self::Secure(..) => "secure",
            Self::Enter(..) => "enter",
            Self::Say(..) => "say",
            Self::Walk(..) => "walk",
            Self::Lock(..) => "lock",
            Self::Release(..) => "release",
            Self::SetState(..) => "set-state",
            Self::Leave => "leave",
            Self::Logout => "logout",
            Self::Ping => "ping",
            Self::Wait(..) => "wait",
            Self::Again => "again",
        }
    }

    /// Splits a long step into a start and the rest; other steps are returned whole.
    pub(super) fn split(&self) -> (Self, Option<Self>) {
        match self {
            Self::Wait(time) if *time > SLICE => {
                (Self::Wait(SLICE), Some(Self::Wait(*time - SLICE)))
            }
            Self::Walk(seconds @ 2..) => (Self::Walk(1), Some(Self::Walk(seconds - 1))),
            whole => (whole.clone(), None),
        }
    }

    fn parse(words: &[String]) -> Result<Self, String> {
        let Some((name, rest)) = words.split_first() else {
            return Err("a step is missing before or after +".to_owned());
        };
        let known = STEPS.iter().find(|(known, _)| known == name);
        let Some((name, form)) = known else {
            let near = nearest(name, STEPS.iter().map(|step| step.0));
            let hint = match near {
                Some(near) => format!("did you mean {near}?"),
                None => "`worldwire client uru --help` lists them".to_owned(),
            };
            return Err(format!("unknown step `{name}`; {hint}"));
        };
        let misfit = || match (form.is_empty(), rest.is_empty()) {
            (true, _) => format!("{name}: takes no arguments: {}", rest.join(" ")),
            (false, true) => format!("{name}: needs {form}"),
            (false, false) => format!("{name}: needs {form}, not {}", rest.join(" ")),
        };
        let number = |word: &String| {
            word.parse::<u32>().map_err(|_| format!("{name}: {word} is not a number"))
        };
        let points = |word: &String| {
            word.parse::<i32>().map_err(|_| format!("{name}: {word} is not a number of points"))
        };
        let place = |word: &String| match word.as_str() {
            "player" => Ok(Node::Player),
            "made" => Ok(Node::Made),
            _ => word
                .parse()
                .map(Node::Number)
                .map_err(|_| format!("{name}: {word} is not a node: use an ID, player or made")),
        };
        let uuid = |word: &String| {
            // A number selects the instance whose UUID ends with it.
            if let Ok(number) = word.parse::<u32>() {
                let mut bytes = [0; 16];
                bytes[12..].copy_from_slice(&number.to_be_bytes());
                return Ok(Uuid(bytes));
            }
            let json = Json::from(&**word);
            Uuid::from_json((&json).into()).map_err(|error| format!("{name}: {error}"))
        };
        let thing = |word: &String| {
            let wanted = || format!("{name}: {word} is not an object: use NAME@PAGE");
            Thing::parse(word).ok_or_else(wanted)
        };
        let variable = |word: &String| {
            let wanted = || format!("{name}: {word} does not have the form VARIABLE=VALUE");
            let (variable, value) = word.split_once('=').ok_or_else(wanted)?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok::<_, String>((variable.to_owned(), value))
        };
        let word = Clone::clone;
        Ok(match (*name, rest) {
            ("gatekeeper", []) => Self::Gatekeeper,
            ("build", []) => Self::Build,
            ("manifest", [group]) => Self::Manifest(word(group)),
            ("download", [group, folder]) => Self::Download(word(group), folder.into()),
            ("login", []) => Self::Login,
            ("players", []) => Self::Players,
            ("create-player", [player, shape]) => Self::CreatePlayer(word(player), word(shape)),
            ("set-player", [player]) => Self::SetPlayer(word(player)),
            ("delete-player", [player]) => Self::DeletePlayer(word(player)),
            ("vault", []) => Self::Vault(None),
            ("vault", [node]) => Self::Vault(Some(place(node)?)),
            ("node", [node]) => Self::Node(place(node)?),
            ("find", fields @ [_, ..]) => Self::Find(fields_in(name, fields)?),
            ("create-node", fields @ [_, ..]) => Self::CreateNode(fields_in(name, fields)?),
            ("save-node", [node, fields @ ..]) if !fields.is_empty() => {
                Self::SaveNode(place(node)?, fields_in(name, fields)?)
            }
            ("add-node", [parent, child]) => Self::AddNode(place(parent)?, place(child)?),
            ("remove-node", [parent, child]) => Self::RemoveNode(place(parent)?, place(child)?),
            ("send-node", [node, player]) => Self::SendNode(place(node)?, number(player)?),
            ("ages", [filename]) => Self::Ages(word(filename)),
            ("age", [filename, instance]) => Self::Age(word(filename), uuid(instance)?),
            ("init-age", [filename, instance]) => {
                Self::InitAge(word(filename), uuid(instance)?, None)
            }
            ("init-age", [filename, instance, name]) => {
                Self::InitAge(word(filename), uuid(instance)?, Some(word(name)))
            }
            ("set-public", [node, public]) => match public.as_str() {
                "yes" => Self::SetPublic(place(node)?, true),
                "no" => Self::SetPublic(place(node)?, false),
                _ => return Err(misfit()),
            },
            ("scores", [owner, score]) => Self::Scores(place(owner)?, word(score)),
            ("high-scores", [owner, most, score]) => {
                Self::HighScores(place(owner)?, number(most)?, word(score))
            }
            ("create-score", [owner, score, kind, value]) => {
                Self::CreateScore(place(owner)?, word(score), number(kind)?, points(value)?)
            }
            ("add-points", [score, value]) => Self::AddPoints(number(score)?, points(value)?),
            ("set-points", [score, value]) => Self::SetPoints(number(score)?, points(value)?),
            ("transfer-points", [from, to, value]) => {
                Self::TransferPoints(number(from)?, number(to)?, points(value)?)
            }
            ("secure", [directory, extension, folder]) => {
                Self::Secure(word(directory), word(extension), folder.into())
            }
            ("enter", [filename]) => Self::Enter(word(filename), None),
            ("enter", [filename, instance]) => Self::Enter(word(filename), Some(uuid(instance)?)),
            ("say", [text]) => Self::Say(word(text)),
            ("walk", [seconds]) => Self::Walk(u64::from(number(seconds)?)),
            ("lock", [object]) => Self::Lock(thing(object)?),
            ("release", [object]) => Self::Release(thing(object)?),
            ("set-state", [object, descriptor, variables @ ..]) if !variables.is_empty() => {
                let variables = variables.iter().map(variable).collect::<Result<_, _>>()?;
                Self::SetState(thing(object)?, word(descriptor), variables)
            }
            ("leave", []) => Self::Leave,
            ("logout", []) => Self::Logout,
            ("ping", []) => Self::Ping,
            ("wait", [seconds]) => Self::Wait(Duration::from_secs(number(seconds)?.into())),
            ("again", []) => Self::Again,
            _ => return Err(misfit()),
        })
    }
}

/// A node, or a part of one, by its fields.
fn fields_in(step: &str, fields: &[String]) -> Result<Box<VaultNode<'static>>, String> {
    let fields = fields_of(fields).map_err(|failure| match failure {
        Failure::Run(problem) => format!("{step}: {problem}"),
        _ => format!("{step}: needs FIELD=VALUE"),
    })?;
    let node = VaultNode::from_json((&Json::from(fields)).into());
    node.map(Box::new).map_err(|error| format!("{step}: {error}"))
}

/// The steps on a command line, separated by `+`.
pub(super) fn sequence(words: &[String]) -> Result<Vec<Step>, String> {
    words.split(|word| word == "+").map(Step::parse).collect()
}

/// The steps in a file, one per line. Words with spaces must be in double quotes.
pub(super) fn script(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |problem| format!("line {}: {problem}", index + 1);
        let words = words(line).map_err(at)?;
        if !words.is_empty() {
            steps.push(Step::parse(&words).map_err(at)?);
        }
    }
    Ok(steps)
}

fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut quoted) = (None::<String>, false);
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            '#' if !quoted && word.is_none() => break,
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return Err("missing closing quote".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use worldwire_uru::vault::NodeType;

    use super::*;

    fn one(line: &str) -> Result<Step, String> {
        script(line).map(|mut steps| steps.remove(0))
    }

    #[test]
    fn a_script_has_a_step_in_a_line() {
        let text = "# first\nlogin\n\n  create-player \"Ann of D'ni\" female # a player\n";
        let player = Step::CreatePlayer("Ann of D'ni".to_owned(), "female".to_owned());
        assert_eq!(script(text).unwrap(), [Step::Login, player]);
        let words = ["login", "+", "vault", "7"].map(str::to_owned);
        let node = Node::Number(7);
        assert_eq!(sequence(&words).unwrap(), [Step::Login, Step::Vault(Some(node))]);
        let age = one("enter Hut 258").unwrap();
        let mut hut = [0; 16];
        hut[14..].copy_from_slice(&[1, 2]);
        assert_eq!(age, Step::Enter("Hut".to_owned(), Some(Uuid(hut))));
        let save = one("save-node made Int32_1=1").unwrap();
        assert!(matches!(save, Step::SaveNode(Node::Made, _)), "{save:?}");
        let Step::Find(node) = one("find NodeType=PlayerInfo IString64_1=7").unwrap() else {
            panic!("a find")
        };
        assert_eq!(node.node_type, Some(NodeType::PlayerInfo));
        assert_eq!(node.istring64_1.unwrap().to_text(), "7");
    }

    #[test]
    fn what_takes_long_is_taken_in_parts() {
        assert_eq!(Step::Walk(3).split(), (Step::Walk(1), Some(Step::Walk(2))));
        assert_eq!(Step::Walk(1).split(), (Step::Walk(1), None));
        let (first, rest) = Step::Wait(Duration::from_millis(150)).split();
        assert_eq!(first, Step::Wait(SLICE));
        assert_eq!(rest, Some(Step::Wait(Duration::from_millis(50))));
    }

    #[test]
    fn every_step_is_parsed() {
        for (name, form) in STEPS {
            let words = form
                .replace("[INSTANCE]", "12345678-1234-5678-1234-567812345678")
                .replace("OBJECT", "Lever@00780022/8")
                .replace("INSTANCE", "12345678-1234-5678-1234-567812345678")
                .replace("FIELD=VALUE...", "Int32_1=1")
                .replace("[NODE]", "1")
                .replace("yes|no", "no");
            let numbers =
                ["PARENT", "CHILD", "OWNER", "SECONDS", "NODE", "SCORE", "POINTS", "TYPE", "COUNT"];
            let numbers = numbers.into_iter().chain((*name == "send-node").then_some("PLAYER"));
            let words = numbers.fold(words, |words, number| words.replace(number, "1"));
            assert_eq!(one(&format!("{name} {words}")).unwrap().name(), *name);
            assert!(one(&format!("{name} {words} more and more")).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("logn", "line 1: unknown step `logn`; did you mean login?"),
            ("login twice", "line 1: login: takes no arguments: twice"),
            ("set-player", "line 1: set-player: needs PLAYER"),
            ("vault x", "line 1: vault: x is not a node: use an ID, player or made"),
            ("lock Lever", "line 1: lock: Lever is not an object: use NAME@PAGE"),
            ("set-state L@1 lever x", "line 1: set-state: x does not have the form VARIABLE=VALUE"),
            ("set-public 1 maybe", "line 1: set-public: needs NODE yes|no, not 1 maybe"),
            ("find \"x", "line 1: missing closing quote"),
            ("find Int_1=2", "line 1: find: Int_1=2: no such field; did you mean Int32_1?"),
        ] {
            assert_eq!(script(line).unwrap_err(), said);
        }
    }
}
