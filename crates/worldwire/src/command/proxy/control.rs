//! The operators' socket of a proxy and `worldwire proxy ctl`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::{env, fmt, fs, io};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use worldwire_core::Side;
use worldwire_core::value::push_hex;
use worldwire_net::Stop;
use worldwire_proxy::{Choice, Control, ControlError, Counts};
use worldwire_server::operators::{self, Operated};

use super::paused::Paused;
use super::rules::{Reloaded, Watched};
use crate::cli::{CtlCommand, HeldArgument, ProxyCtl};
use crate::command::decode::side;
use crate::command::system;
use crate::output::{Failure, counted, print, printable, shown};

/// The parts of a proxy that its operators can control.
#[derive(Clone)]
pub(super) struct Operators {
    pub(super) control: Control,
    pub(super) rules: Option<Watched>,
    pub(super) paused: Paused,
    pub(super) stop: Stop,
}

/// The requests that operators can make.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub(super) enum Request {
    List,
    Held,
    Send {
        connection: u64,
        id: u64,
    },
    Drop {
        connection: u64,
        id: u64,
    },
    Edit {
        connection: u64,
        id: u64,
        fields: String,
    },
    Inject {
        connection: u64,
        to: String,
        name: String,
        fields: String,
    },
    /// Encodes a message without sending it: either a held message, given by its number, with new
    /// fields, or an additional one.
    Encode {
        connection: u64,
        id: Option<u64>,
        to: String,
        name: String,
        fields: String,
    },
    /// Replaces the filters of the messages to hold.
    Pause {
        filters: Vec<String>,
    },
    Reload,
    Counts,
    Close {
        connection: u64,
    },
    Stop,
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Control(#[from] ControlError),
    #[error("the fields are not JSON: {0}")]
    Fields(String),
    #[error("to: needs client or server, not {0}")]
    Side(String),
    #[error("{0}")]
    Filter(String),
    #[error("the proxy has no rules; start it with --rules")]
    NoRules,
    #[error("cannot reload the rules: {0}; the old ones stay in force")]
    Rules(io::Error),
}

impl Operated for Operators {
    type Request = Request;
    type Error = Refusal;

    async fn perform(&self, request: Request, _: &[String]) -> Result<Vec<Json>, Refusal> {
        match request {
            Request::List => Ok(list(&self.control)),
            Request::Held => Ok(self.held().await),
            Request::Send { connection, id } => self.decide(connection, id, Choice::Send).await,
            Request::Drop { connection, id } => self.decide(connection, id, Choice::Drop).await,
            Request::Edit { connection, id, fields } => {
                self.decide(connection, id, Choice::Edit(parsed(&fields)?)).await
            }
            Request::Inject { connection, to, name, fields } => {
                self.control.add(connection, side_of(to)?, name, parsed(&fields)?).await?;
                Ok(Vec::new())
            }
            Request::Encode { connection, id, to, name, fields } => {
                let (from, fields) = (side_of(to)?.other(), parsed(&fields)?);
                let bytes = self.control.encode(connection, id, from, name, fields).await?;
                let mut digits = String::new();
                push_hex(&mut digits, &bytes);
                Ok(vec![json!({ "bytes": digits })])
            }
            Request::Pause { filters } => {
                self.paused.set(&filters).map_err(Refusal::Filter)?;
                Ok(Vec::new())
            }
            Request::Reload => self.reload().await,
            Request::Counts => {
                let rules = self.rules.as_ref().ok_or(Refusal::NoRules)?;
                let counts = rules.file.counts().into_iter();
                Ok(counts.map(|(name, count)| json!({"counter": name, "count": count})).collect())
            }
            Request::Close { connection } => {
                self.control.close(connection).await?;
                Ok(Vec::new())
            }
            Request::Stop => {
                self.stop.stop();
                Ok(Vec::new())
            }
        }
    }
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operators").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Operators {
    async fn reload(&self) -> Result<Vec<Json>, Refusal> {
        let rules = self.rules.clone().ok_or(Refusal::NoRules)?;
        let outcome = tokio::task::spawn_blocking(move || rules.reload()).await;
        let outcome = outcome.map_err(io::Error::other).and_then(|outcome| outcome);
        let Reloaded { in_force, said } = outcome.map_err(Refusal::Rules)?;
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        Ok(vec![json!({"in_force": in_force, "said": said})])
    }

    pub(super) async fn held(&self) -> Vec<Json> {
        let mut all = Vec::new();
        for open in self.control.conversations() {
            // The conversation may have ended in the meantime.
            let Ok(held) = self.control.held(open.connection).await else { continue };
            for (held, age) in held {
                all.push(json!({
                    "connection": open.connection,
                    "id": held.id,
                    "from": held.from.name(),
                    "name": held.name,
                    "seconds": age.as_secs_f64(),
                    "line": held.line,
                    "receiver_ended": held.has_receiver_ended,
                }));
            }
        }
        all
    }

    async fn decide(&self, connection: u64, id: u64, choice: Choice) -> Result<Vec<Json>, Refusal> {
        self.control.decide(connection, id, choice).await?;
        Ok(Vec::new())
    }
}

/// The open connections.
pub(super) fn list(control: &Control) -> Vec<Json> {
    let open = control.conversations().into_iter().map(|open| {
        let mut listed = json!({
            "connection": open.connection,
            "client": open.client.to_string(),
            "server": open.server.to_string(),
            "seconds": open.age.as_secs_f64(),
        });
        add_counts(&mut listed, open.counts);
        listed
    });
    open.collect()
}

/// Adds the numbers of messages to an object.
pub(super) fn add_counts(to: &mut Json, counts: Counts) {
    let Counts { messages, changed, dropped, held, added } = counts;
    for (key, count) in [
        ("messages", messages),
        ("changed", changed),
        ("dropped", dropped),
        ("held", held),
        ("added", added),
    ] {
        to[key] = count.into();
    }
}

fn side_of(name: String) -> Result<Side, Refusal> {
    Side::BOTH.into_iter().find(|side| side.name() == name).ok_or(Refusal::Side(name))
}

fn parsed(fields: &str) -> Result<worldwire_core::json::Json, Refusal> {
    worldwire_core::json::parse(fields).map_err(|error| Refusal::Fields(error.to_string()))
}

/// Runs `worldwire proxy ctl`.
pub(super) fn run(arguments: &ProxyCtl) -> Result<(), Failure> {
    let ProxyCtl { folder, json, command } = arguments;
    let request = match command {
        CtlCommand::List => Request::List,
        CtlCommand::Held => Request::Held,
        CtlCommand::Send(HeldArgument { connection, id }) => {
            Request::Send { connection: *connection, id: *id }
        }
        CtlCommand::Drop(HeldArgument { connection, id }) => {
            Request::Drop { connection: *connection, id: *id }
        }
        CtlCommand::Edit { held, fields } => {
            let fields = match fields.as_deref() {
                Some("-") => from_stdin()?,
                Some(fields) => fields.to_owned(),
                None => edited(folder, *held)?,
            };
            Request::Edit { connection: held.connection, id: held.id, fields }
        }
        CtlCommand::Inject { connection, to, name, fields } => Request::Inject {
            connection: *connection,
            to: side(*to).name().to_owned(),
            name: name.clone(),
            fields: fields.clone(),
        },
        CtlCommand::Reload => Request::Reload,
        CtlCommand::Counts => Request::Counts,
        CtlCommand::Close { connection } => Request::Close { connection: *connection },
        CtlCommand::Stop => Request::Stop,
    };
    let answers = ask(folder, &request)?;
    let is_refused = answers.iter().any(|answer| answer["in_force"] == false);
    for answer in answers {
        let line = match json {
            true => answer.to_string(),
            false => described(&answer),
        };
        print(&format!("{line}\n"))?;
    }
    match is_refused {
        true => Err(Failure::Input),
        false => Ok(()),
    }
}

/// Sends a request to the proxy in a directory.
fn ask(folder: &Path, request: &Request) -> Result<Vec<Json>, Failure> {
    let asked = system::runtime()?.block_on(operators::ask::<Operators>(folder, request, &[]));
    match asked {
        Ok(Ok(answers)) => Ok(answers),
        Ok(Err(refused)) => {
            crate::output::complain(&shown(folder), &refused.problem);
            Err(Failure::Input)
        }
        Err(error) if is_absent(&error) => {
            let problem = "no proxy is running here; specify its directory with --folder";
            Err(Failure::Run(format!("{}: {problem}", shown(folder))))
        }
        Err(error) => Err(Failure::io(folder, &error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// An answer as readable lines.
fn described(answer: &Json) -> String {
    if let Some(said) = answer["said"].as_array() {
        let outcome = match answer["in_force"].as_bool() {
            Some(true) => "the new rules are in force",
            _ => "the rules have errors; the old ones stay in force",
        };
        let said = said.iter().filter_map(Json::as_str).chain([outcome]).map(printable);
        return said.collect::<Vec<_>>().join("\n");
    }
    if let (Some(name), Some(count)) = (answer["counter"].as_str(), answer["count"].as_u64()) {
        return printable(&format!("{count:>9}  {name}"));
    }
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| answer[key].as_u64().unwrap_or_default();
    let seconds = answer["seconds"].as_f64().unwrap_or_default();
    let line = match answer.get("id") {
        None => {
            let (connection, client, server) =
                (number("connection"), text("client"), text("server"));
            let mut line = format!("{connection}  {client} > {server}  {seconds:.0} s");
            let messages = number("messages");
            let _ = write!(line, "  {}", counted(messages, "message"));
            for key in ["changed", "dropped", "held", "added"] {
                if number(key) > 0 {
                    let _ = write!(line, ", {} {key}", number(key));
                }
            }
            line
        }
        Some(_) => {
            let line: Json = serde_json::from_str(&text("line")).unwrap_or_default();
            let (connection, id) = (number("connection"), number("id"));
            let (from, name, fields) = (text("from"), text("name"), &line["fields"]);
            format!("{connection} {id}  {from}  {name}  {seconds:.0} s  {fields}")
        }
    };
    printable(&line)
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| Failure::Run(format!("standard input: {error}")))?;
    Ok(text)
}

/// The fields of a held message after the user has edited them.
fn edited(folder: &Path, held: HeldArgument) -> Result<String, Failure> {
    let all = ask(folder, &Request::Held)?;
    let is_wanted = |answer: &&Json| {
        answer["connection"].as_u64() == Some(held.connection)
            && answer["id"].as_u64() == Some(held.id)
    };
    let Some(answer) = all.iter().find(is_wanted) else {
        let HeldArgument { connection, id } = held;
        crate::output::complain(
            &shown(folder),
            &format!("message {id} of connection {connection} is not held"),
        );
        return Err(Failure::Input);
    };
    let line = worldwire_core::json::parse(answer["line"].as_str().unwrap_or("{}"));
    let line = line.map_err(|error| Failure::Run(error.to_string()))?;
    let fields = line.get("fields").cloned().unwrap_or_default();
    let editor = env::var_os("VISUAL").or_else(|| env::var_os("EDITOR"));
    let Some(editor) = editor else {
        return Err(Failure::Run(
            "set the variable VISUAL or EDITOR, or give the fields as JSON".to_owned(),
        ));
    };
    let scratch = tempfile::Builder::new().prefix("worldwire-").suffix(".json").tempfile();
    let failed = |error: io::Error| Failure::Run(format!("cannot use a temporary file: {error}"));
    let scratch = scratch.map_err(failed)?;
    let text = serde_json::to_string_pretty(&fields).unwrap_or_default();
    fs::write(scratch.path(), text + "\n").map_err(failed)?;
    let status = editing(&editor, scratch.path()).status();
    let status = status.map_err(|error| Failure::Run(format!("{}: {error}", editor.display())))?;
    if !status.success() {
        return Err(Failure::Run(format!("{}: {status}", editor.display())));
    }
    fs::read_to_string(scratch.path()).map_err(failed)
}

/// Opens a file in the editor. As in other programs, a shell splits a command such as
/// `code --wait`.
#[cfg(unix)]
fn editing(editor: &OsStr, file: &Path) -> Command {
    let mut command = Command::new("sh");
    let mut line = editor.to_owned();
    line.push(" \"$1\"");
    command.arg("-c").arg(line).arg("sh").arg(file);
    command
}

#[cfg(not(unix))]
fn editing(editor: &OsStr, file: &Path) -> Command {
    let mut command = Command::new(editor);
    command.arg(file);
    command
}
