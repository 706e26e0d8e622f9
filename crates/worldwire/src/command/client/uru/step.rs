//! The steps of a script and how they are written.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_core::{Field as _, nearest};
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::VaultNode;

use super::play_step::{PLAY_STEPS, PlayStep};
use crate::command::uru::fields_of;
use crate::output::Failure;

/// Declares the steps, each with the word that starts it, its arguments as shown in the help, and a
/// description. Words are parsed according to the types of the variant's fields.
macro_rules! steps {
    (
        $Steps:ident in $LIST:ident $(, or $Other:ident($More:ident))?;
        $($Step:ident $(($($Type:ty),+))? = $word:literal $form:literal, $help:literal;)*
    ) => {
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum $Steps {
            $($Step $(($($Type),+))?,)*
            $($Other($More),)?
        }

        pub(super) const $LIST: &[(&str, &str, &str)] = &[$(($word, $form, $help)),*];

        impl $Steps {
            /// The word that starts it.
            pub(super) fn name(&self) -> &'static str {
                match self {
                    $(Self::$Step { .. } => $word,)*
                    $(Self::$Other(step) => step.name(),)?
                }
            }

            /// The step with a name and arguments; `None` for an unknown name.
            pub(super) fn read(name: &str, words: &mut Words<'_>) -> Option<Result<Self, Misfit>> {
                match name {
                    $($word => {
                        let read = |_words: &mut Words<'_>| {
                            Ok(Self::$Step $(($(<$Type as Argument>::take(_words)?),+))?)
                        };
                        Some(read(words))
                    })*
                    $(_ if true => $More::read(name, words).map(|read| read.map(Self::$Other)),)?
                    _ => None,
                }
            }
        }
    };
}
pub(super) use steps;

steps! {
    Step in STEPS, or Play(PlayStep);
    Gatekeeper = "gatekeeper" "", "show the addresses of the auth and file servers";
    Build = "build" "", "show the newest build on the file server";
    Manifest(String) = "manifest" "GROUP", "list the files of a group, such as External";
    Download(String, PathBuf) = "download" "GROUP FOLDER",
        "download missing or changed files, verified by size and MD5";
    Login = "login" "", "log in with --account";
    Players = "players" "", "list the account's players";
    CreatePlayer(String, String) = "create-player" "NAME SHAPE", "create a player, male or female";
    SetPlayer(String) = "set-player" "PLAYER",
        "select a player by name or ID; 0 selects none";
    DeletePlayer(String) = "delete-player" "PLAYER", "delete a player";
    Vault(Option<Node>) = "vault" "[NODE]",
        "show the tree below a node [default: the player's]";
    Node(Node) = "node" "NODE", "show all fields of a node";
    Find(Box<VaultNode<'static>>) = "find" "FIELD=VALUE...",
        "find nodes with these values, such as NodeType=PlayerInfo";
    CreateNode(Box<VaultNode<'static>>) = "create-node" "FIELD=VALUE...", "create a node";
    SaveNode(Node, Box<VaultNode<'static>>) = "save-node" "NODE FIELD=VALUE...",
        "change fields of a node";
    AddNode(Node, Node) = "add-node" "PARENT CHILD", "link a node below another node";
    RemoveNode(Node, Node) = "remove-node" "PARENT CHILD", "remove the link between two nodes";
    SendNode(Node, u32) = "send-node" "NODE PLAYER",
        "send a node to a player's inbox, by player ID";
    Ages(String) = "ages" "FILENAME", "list the public instances of an age";
    Age(String, Uuid) = "age" "FILENAME INSTANCE", "show which game server hosts an instance";
    InitAge(String, Uuid, Option<String>) = "init-age" "FILENAME INSTANCE [NAME]",
        "find or create an instance; for 0, the server chooses one";
    SetPublic(Node, bool) = "set-public" "NODE yes|no",
        "make the age with this AgeInfo node public or private";
    Scores(Node, String) = "scores" "OWNER NAME", "show the scores of a node";
    HighScores(Node, u32, String) = "high-scores" "OWNER COUNT NAME",
        "show the best scores with this name; owner 0 means all owners";
    CreateScore(Node, String, u32, i32) = "create-score" "OWNER NAME TYPE POINTS",
        "create a score; type 0 is fixed, 1 accumulates, 2 may be negative";
    AddPoints(u32, i32) = "add-points" "SCORE POINTS", "add points to a score";
    SetPoints(u32, i32) = "set-points" "SCORE POINTS", "set a fixed score";
    TransferPoints(u32, u32, i32) = "transfer-points" "SCORE SCORE POINTS",
        "move points from one score to another";
    Secure(String, String, PathBuf) = "secure" "DIRECTORY EXTENSION FOLDER",
        "download and decrypt secure files, such as SDL sdl";
    Enter(String, Option<Uuid>) = "enter" "FILENAME [INSTANCE]",
        "enter an age [default instance: the first public one]";
    Say(String) = "say" "TEXT", "say something to everyone in the age";
    Walk(u64) = "walk" "SECONDS", "walk in a circle and print what happens";
    Lock(Thing) = "lock" "OBJECT",
        "request the lock on an object, named as printed: NAME@PAGE [default class: the one seen, or 2d]";
    Release(Thing) = "release" "OBJECT", "release the lock";
    SetState(Thing, String, Vec<(String, Json)>) =
        "set-state" "OBJECT DESCRIPTOR VARIABLE=VALUE...", "change the state of an object";
    Leave = "leave" "", "leave the age";
    Logout = "logout" "", "disconnect; the next login reconnects";
    Ping = "ping" "", "wait for an echo from the auth server";
    Wait(Duration) = "wait" "SECONDS", "print what happens in the age and in the vault";
    Again = "again" "", "with --count: repeat the following steps";
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

/// An object as named in a step: `NAME@SEQUENCE`, with the sequence number in hexadecimal, then a
/// slash and the page flags if there are any, then a colon and the class in hexadecimal if it is
/// not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) name: String,
    pub(super) sequence: u32,
    pub(super) flags: u16,
    pub(super) class: Option<u16>,
}

/// The maximum delay before a waiting client prints an event.
const SLICE: Duration = Duration::from_millis(100);

/// All steps: words, arguments as shown in the help, and descriptions.
fn all() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    STEPS.iter().chain(PLAY_STEPS)
}

/// The steps, for help.
pub(crate) fn help() -> String {
    const WIDTH: usize = 36;
    let mut text = String::new();
    for (heading, steps) in [("", STEPS), ("\nSteps in the games of an age:\n", PLAY_STEPS)] {
        text.push_str(heading);
        for (name, form, help) in steps {
            let step = format!("{name} {form}");
            let is_long = step.len() > WIDTH;
            let gap = if is_long { format!("\n{:WIDTH$}  ", "") } else { String::new() };
            let _ = writeln!(text, "  {step:WIDTH$}{gap}{help}");
        }
    }
    text
}

impl Step {
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
        let mut words = Words(rest);
        let known = all().find(|(known, ..)| known == name);
        let (Some((_, form, _)), Some(step)) = (known, Self::read(name, &mut words)) else {
            let hint = match nearest(name, all().map(|step| step.0)) {
                Some(near) => format!("did you mean {near}?"),
                None => "`worldwire client uru --help` lists them".to_owned(),
            };
            return Err(format!("unknown step `{name}`; {hint}"));
        };
        match step {
            Ok(step) if words.0.is_empty() => Ok(step),
            Err(Misfit::Word(problem)) => Err(format!("{name}: {problem}")),
            _ if form.is_empty() => {
                Err(format!("{name} takes no arguments; remove {:?}", rest.join(" ")))
            }
            _ if rest.is_empty() => Err(format!("{name}: needs {form}")),
            _ => Err(format!("{name}: needs {form}, not {}", rest.join(" "))),
        }
    }
}

/// The words of a step that have not been parsed yet.
pub(super) struct Words<'w>(&'w [String]);

/// Why words cannot be a step's arguments.
pub(super) enum Misfit {
    /// There are too many or too few words, or one is not among those listed in the help.
    Form,
    /// One word is invalid, for this reason.
    Word(String),
}

impl Words<'_> {
    pub(super) fn next<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Misfit> {
        let (first, rest) = self.0.split_first().ok_or(Misfit::Form)?;
        self.0 = rest;
        parse(first).map_err(Misfit::Word)
    }

    /// All words; there must be at least one.
    fn rest(&mut self) -> Result<&[String], Misfit> {
        let all = std::mem::take(&mut self.0);
        if all.is_empty() { Err(Misfit::Form) } else { Ok(all) }
    }
}

/// An argument of a step.
pub(super) trait Argument: Sized {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit>;
}

/// Arguments of one word.
macro_rules! arguments {
    ($($Type:ty: |$word:ident| $parsed:expr;)*) => {
        $(impl Argument for $Type {
            fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
                words.next(|$word| $parsed)
            }
        })*
    };
}
pub(super) use arguments;

arguments! {
    String: |word| Ok(word.to_owned());
    PathBuf: |word| Ok(word.into());
    u32: |word| word.parse().map_err(|_| format!("{word} is not a number"));
    i32: |word| word.parse().map_err(|_| format!("{word} is not a number of points"));
    Node: |word| match word {
        "player" => Ok(Self::Player),
        "made" => Ok(Self::Made),
        _ => word
            .parse()
            .map(Self::Number)
            .map_err(|_| format!("{word} is not a node: use an ID, player or made")),
    };
    Uuid: |word| {
        // A number selects the instance whose UUID ends with it.
        if let Ok(number) = word.parse::<u32>() {
            return Ok(Self(u128::from(number).to_be_bytes()));
        }
        Self::from_json((&Json::from(word)).into()).map_err(|error| error.to_string())
    };
    Thing: |word| {
        let parsed = word.rsplit_once('@').and_then(|(name, page)| {
            let (page, class) = match page.split_once(':') {
                Some((page, class)) => (page, Some(u16::from_str_radix(class, 16).ok()?)),
                None => (page, None),
            };
            let (sequence, flags) = page.split_once('/').unwrap_or((page, "0"));
            let sequence = u32::from_str_radix(sequence, 16).ok()?;
            Some(Self { name: name.to_owned(), sequence, flags: flags.parse().ok()?, class })
        });
        parsed.ok_or_else(|| format!("{word} is not an object: use NAME@PAGE"))
    };
}

impl Argument for u64 {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        u32::take(words).map(Self::from)
    }
}

impl Argument for Duration {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        u64::take(words).map(Self::from_secs)
    }
}

impl Argument for bool {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        match String::take(words)?.as_str() {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(Misfit::Form),
        }
    }
}

impl<T: Argument> Argument for Option<T> {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        if words.0.is_empty() { Ok(None) } else { T::take(words).map(Some) }
    }
}

/// A node, or part of one, given by its fields.
impl Argument for Box<VaultNode<'static>> {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        let fields = fields_of(words.rest()?).map_err(|failure| match failure {
            Failure::Run(problem) => Misfit::Word(problem),
            _ => Misfit::Form,
        })?;
        let node = VaultNode::from_json((&Json::from(fields)).into());
        node.map(Self::new).map_err(|error| Misfit::Word(error.to_string()))
    }
}

/// Variables of a state, with values in JSON.
impl Argument for Vec<(String, Json)> {
    fn take(words: &mut Words<'_>) -> Result<Self, Misfit> {
        let variable = |word: &String| {
            let misfit = || Misfit::Word(format!("{word} does not have the form VARIABLE=VALUE"));
            let (variable, value) = word.split_once('=').ok_or_else(misfit)?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok((variable.to_owned(), value))
        };
        words.rest()?.iter().map(variable).collect()
    }
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
    fn objects_can_have_a_class() {
        let thing = |class| Thing { name: "Lever".to_owned(), sequence: 0x22, flags: 8, class };
        assert_eq!(one("lock Lever@00000022/8").unwrap(), Step::Lock(thing(None)));
        assert_eq!(one("lock Lever@22/8:2d").unwrap(), Step::Lock(thing(Some(0x2d))));
        assert!(one("lock Lever@22/8:x").is_err());
    }

    #[test]
    fn every_step_is_parsed() {
        for (name, form, _) in all() {
            let words = form
                .replace("GAME [TABLE]", "heek 1")
                .replace("GAME", "heek")
                .replace("SEAT [POINTS]", "1 1")
                .replace("CHOICE", "rock")
                .replace("[TYPE]", "quest")
                .replace("X Y Z", "-1 2.5 1e3")
                .replace("[INSTANCE]", "12345678-1234-5678-1234-567812345678")
                .replace("OBJECT", "Lever@00780022/8:2d")
                .replace("INSTANCE", "12345678-1234-5678-1234-567812345678")
                .replace("FIELD=VALUE...", "Int32_1=1")
                .replace("[NODE]", "1")
                .replace("yes|no", "no");
            let numbers = [
                "PARENT",
                "CHILD",
                "OWNER",
                "MILLISECONDS",
                "SECONDS",
                "NODE",
                "SCORE",
                "POINTS",
                "TYPE",
                "COUNT",
                "CLOTH",
                "MARKER",
            ];
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
            ("login twice", "line 1: login takes no arguments; remove \"twice\""),
            ("set-player", "line 1: set-player: needs PLAYER"),
            ("vault x", "line 1: vault: x is not a node: use an ID, player or made"),
            ("lock Lever", "line 1: lock: Lever is not an object: use NAME@PAGE"),
            ("set-state L@1 lever x", "line 1: set-state: x does not have the form VARIABLE=VALUE"),
            ("join-game heck", "line 1: join-game: heck is not a game; did you mean heek?"),
            (
                "choose lizard",
                "line 1: choose: lizard is not a choice: use one of rock, paper, scissors",
            ),
            ("press-cloth 300", "line 1: press-cloth: 300 is not a number from 0 to 255"),
            ("add-marker 1 NaN 3 x", "line 1: add-marker: NaN is not a coordinate"),
            ("set-public 1 maybe", "line 1: set-public: needs NODE yes|no, not 1 maybe"),
            ("find \"x", "line 1: missing closing quote"),
            ("find Int_1=2", "line 1: find: Int_1=2: no such field; did you mean Int32_1?"),
        ] {
            assert_eq!(script(line).unwrap_err(), said);
        }
    }
}
