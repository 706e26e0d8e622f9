//! One client, step by step.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;
use worldwire_client::ki::{Client, ClientError, LoginToken, ServerMessage};
use worldwire_ki::Dictionary;
use worldwire_ki::character::Character;
use worldwire_ki::client_args::Argument;
use worldwire_ki::message::Selected;

use super::{Setup, numbered};
use crate::command::client::ki::step::Step;
use crate::output::{printable, reason, say};

/// Why a step failed.
#[derive(Debug)]
pub(super) enum Problem {
    Client(ClientError),
    /// A problem with earlier steps or with a file.
    Said(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Said(text) => f.write_str(text),
        }
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

pub(super) struct Session<'s> {
    setup: &'s Setup,
    number: Option<u32>,
    client: Option<Client>,
    pass: Option<LoginToken>,
    selected: Option<Selected>,
}

impl<'s> Session<'s> {
    pub(super) fn new(setup: &'s Setup, number: Option<u32>) -> Self {
        Self { setup, number, client: None, pass: None, selected: None }
    }

    /// Runs a step and returns its results.
    pub(super) async fn take(&mut self, step: &Step) -> Result<Vec<Json>, Problem> {
        match step {
            Step::Ping => self.client().await?.ping().await?,
            Step::Login => {
                let Some((account, hash)) = &self.setup.account else {
                    return Err(Problem::Said("needs --account NAME".to_owned()));
                };
                let account = numbered(account, self.number);
                let pass = self.client().await?.log_in(&account, hash).await?;
                let user = pass.user;
                self.pass = Some(pass);
                return Ok(vec![json!({ "user": user })]);
            }
            Step::Token(user, ck2) => {
                self.pass = Some(LoginToken { user: *user, ck2: ck2.clone() })
            }
            Step::Validate => {
                let pass = self.pass.clone().ok_or_else(|| said("needs `login` first"))?;
                self.close().await;
                // With many clients, the positions would flood the output.
                let tells = self.number.is_none() && !self.setup.quiet;
                let client = self.client().await?;
                client.validate(&pass).await?;
                while client.position() != Some(0) {
                    let position = client.next_queue_position().await?;
                    if position > 0 && tells {
                        say(format_args!(
                            "worldwire: waiting in the queue, at position {position}"
                        ));
                    }
                }
            }
            Step::List => {
                let list = self.client().await?.characters().await?.list;
                return Ok(list.iter().map(character_json).collect());
            }
            Step::Create(name, school) => {
                let indices = 0x01_0101;
                let blob = Character::plain(name, school, indices).into_bytes();
                self.client().await?.create(&blob).await?;
            }
            Step::CreateFrom(file) => {
                let blob = std::fs::read(Path::new(file));
                let blob =
                    blob.map_err(|error| Problem::Said(format!("{file}: {}", reason(&error))))?;
                self.client().await?.create(&blob).await?;
            }
            Step::Delete(character) => {
                let id = self.character(character).await?;
                self.client().await?.delete(id).await?;
            }
            Step::Select(character) => {
                let id = self.character(character).await?;
                let to = self.client().await?.select(id).await?;
                let shown = json!({
                    "ip": to.ip, "tcpPort": to.tcp_port, "udpPort": to.udp_port, "zone": to.zone,
                    "zoneId": to.zone_id, "location": to.location,
                });
                // The server closes the connection.
                self.client = None;
                self.selected = Some(to);
                return Ok(vec![shown]);
            }
            Step::Enter => {
                let to = self.selected.take().ok_or_else(|| said("needs `select` first"))?;
                let (client, zone) = Client::enter(&to, &self.setup.settings).await?;
                self.client = Some(client);
                return Ok(vec![json!({ "zone": zone.zone, "zoneId": zone.id })]);
            }
            Step::Files => {
                let list = self.client().await?.file_list().await.map_err(|error| match error {
                    ClientError::Timeout { .. } => {
                        Problem::Said(format!("{error}; the server may not have a patch service"))
                    }
                    error => error.into(),
                })?;
                return Ok(vec![json!({
                    "version": list.version, "url": list.url, "size": list.size, "crc": list.crc,
                    "prefix": list.prefix,
                })]);
            }
            Step::Args => return self.arguments().map(|line| vec![json!({ "args": line })]),
            Step::Wait(seconds) => return self.wait(Duration::from_secs(*seconds)).await,
            Step::Logout => self.close().await,
        }
        Ok(Vec::new())
    }

    /// Closes the connection in an orderly way.
    pub(super) async fn close(&mut self) {
        if let Some(client) = self.client.take() {
            client.close().await;
        }
    }

    async fn client(&mut self) -> Result<&mut Client, Problem> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let Setup { host, port, settings, .. } = self.setup;
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                Client::connect(&format!("{host}:{port}"), settings).await?
            }
        };
        Ok(self.client.insert(client))
    }

    /// Finds a character by number or name.
    async fn character(&mut self, text: &str) -> Result<u64, Problem> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let list = self.client().await?.characters().await?.list;
        let found = list.iter().filter(|character| character.name() == text.as_bytes());
        let found: Vec<u64> = found.map(Character::global_id).collect();
        match found[..] {
            [id] => Ok(id),
            [] => Err(Problem::Said(format!("the account has no character {text:?}"))),
            _ => {
                let ids: Vec<String> = found.iter().map(u64::to_string).collect();
                let (count, ids) = (found.len(), ids.join(", "));
                Err(Problem::Said(format!(
                    "{count} characters are named {text:?}; use a number: {ids}"
                )))
            }
        }
    }

    /// The command line of the graphical client.
    fn arguments(&self) -> Result<String, Problem> {
        let Setup { host, port, account, .. } = self.setup;
        let (Some(pass), Some((account, _))) = (&self.pass, account) else {
            return Err(said("needs `login` first"));
        };
        let with = |flag: &str, words: &[&str]| {
            let argument = Argument::named(flag).ok_or_else(|| said("an unknown argument"))?;
            let given = argument.with(words).map_err(|error| Problem::Said(error.to_string()))?;
            Ok::<_, Problem>(given.to_string())
        };
        let account = numbered(account, self.number);
        let user = format!("..{}", pass.user);
        let login = with("-L", &[host, &port.to_string()])?;
        Ok(format!("{login} {}", with("-U", &[&user, pass.ck2.as_str(), &account])?))
    }

    /// Waits and returns the server's notifications.
    async fn wait(&mut self, time: Duration) -> Result<Vec<Json>, Problem> {
        let end = Instant::now() + time;
        let client = self.client().await?;
        let mut all = Vec::new();
        while let Some(told) = client.listen(end.saturating_duration_since(Instant::now())).await? {
            all.push(told_json(&told));
        }
        Ok(all)
    }
}

fn said(text: &str) -> Problem {
    Problem::Said(text.to_owned())
}

fn told_json(told: &ServerMessage) -> Json {
    match told {
        ServerMessage::Admit(0) => json!({ "told": "let in" }),
        ServerMessage::Admit(position) => json!({ "told": "in the queue", "position": position }),
        ServerMessage::Message(text) => json!({ "told": "a message", "text": text }),
        ServerMessage::Other { service, order } => {
            json!({ "told": "something else", "service": service, "order": order })
        }
        answer => {
            let text = format!("{answer:?}");
            let kind = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            json!({ "told": "an answer", "to": kind })
        }
    }
}

fn character_json(character: &Character) -> Json {
    let dictionary = Dictionary::new();
    let school = dictionary.find(character.school()).first();
    json!({
        "id": character.global_id().to_string(),
        "name": String::from_utf8_lossy(character.name()),
        "nameIndices": character.name_indices(),
        "school": school.cloned().unwrap_or_else(|| character.school().to_string()),
    })
}

/// The results of a step, as text or JSON.
pub(super) fn shown(step: &Step, values: &[Json], as_json: bool) -> String {
    let mut out = String::new();
    for value in values {
        let fields = value.as_object().into_iter().flatten();
        if as_json {
            let mut line = serde_json::Map::new();
            line.insert("step".to_owned(), step.name().into());
            line.extend(fields.map(|(key, value)| (key.clone(), value.clone())));
            let _ = writeln!(out, "{}", Json::Object(line));
            continue;
        }
        let pairs = fields.map(|(key, value)| match value {
            Json::String(text) if matches!(step, Step::Args) => printable(text),
            Json::String(text) => format!("{key} {}", printable(text)),
            other => format!("{key} {other}"),
        });
        let label = match step {
            Step::Select(_) | Step::Enter => format!("{}: ", step.name()),
            _ => String::new(),
        };
        let _ = writeln!(out, "{label}{}", pairs.collect::<Vec<_>>().join("  "));
    }
    // In JSON, an empty list prints no lines. A step that never has results prints a line with its
    // name.
    match (matches!(step, Step::List | Step::Wait(_)), as_json) {
        _ if !values.is_empty() => {}
        (true, true) => {}
        (false, true) => {
            let _ = writeln!(out, "{}", json!({ "step": step.name() }));
        }
        (is_list, false) => {
            let _ = writeln!(out, "{}: {}", step.name(), if is_list { "none" } else { "ok" });
        }
    }
    out
}
