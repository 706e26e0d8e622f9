//! One client, step by step.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until};
use worldwire_client::mxo::{
    Client, ConnectError, Happening, LoginError, Margin, Settings, Travel, log_in, plain_character,
};
use worldwire_mxo::login::{AuthClientConfig, Character};
use worldwire_mxo::message::Script;
use worldwire_mxo::rpc::EmoteId;
use worldwire_net::lossy::Conditions;

use super::{Setup, numbered};
use crate::command::client::mxo::step::Step;
use crate::output::printable;

/// How often a waiting client checks for events.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a client waits for the reason after the end of a session.
const GRACE: Duration = Duration::from_millis(500);

/// Why a step failed.
#[derive(Debug)]
pub(super) enum Problem {
    Login(LoginError),
    Connect(ConnectError),
    /// A problem with earlier steps or with a text.
    Said(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Login(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Said(text) => f.write_str(text),
        }
    }
}

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Self {
        Self::Login(error)
    }
}

impl From<worldwire_core::Error> for Problem {
    fn from(error: worldwire_core::Error) -> Self {
        Self::Said(error.to_string())
    }
}

fn said(text: &str) -> Problem {
    Problem::Said(text.to_owned())
}

pub(super) struct Session {
    setup: Arc<Setup>,
    number: Option<u32>,
    characters: Vec<Character<'static>>,
    margin: Option<Margin>,
    /// The character that is loaded.
    loaded: Option<u64>,
    client: Option<Client>,
}

impl Session {
    pub(super) const fn new(setup: Arc<Setup>, number: Option<u32>) -> Self {
        Self { setup, number, characters: Vec::new(), margin: None, loaded: None, client: None }
    }

    /// Runs a step and returns its results.
    pub(super) async fn take(&mut self, step: &Step) -> Result<Vec<Json>, Problem> {
        if !matches!(step, Step::Login) {
            self.check()?;
        }
        match step {
            Step::Login => return self.log_in().await,
            Step::List => {
                self.margin()?;
                return Ok(self.characters.iter().map(character_json).collect());
            }
            Step::Create(handle) => {
                let character = plain_character(handle, "", "")?;
                let id = self.margin()?.create(handle, character).await?;
                self.loaded = Some(id);
                return Ok(vec![json!({ "id": id.to_string(), "handle": handle })]);
            }
            Step::Load(handle) => {
                let id = self.character(handle)?;
                self.margin()?.load(id).await?;
                self.loaded = Some(id);
            }
            Step::Delete(handle) => {
                let id = self.character(handle)?;
                self.margin()?.delete(id).await?;
                self.characters.retain(|character| character.id != id);
            }
            Step::Enter => self.enter().await?,
            Step::Say(text) => self.client()?.say(text)?,
            Step::Whisper(handle, text) => self.client()?.whisper(handle, text)?,
            Step::Emote(emote) => self.client()?.emote(*emote)?,
            Step::Travel(district) => {
                let patience = self.setup.patience;
                match self.client()?.travel(*district, patience).await? {
                    Travel::Arrived => {}
                    Travel::Refused(text) => return Err(Problem::Said(refused(&text))),
                    Travel::Late => {
                        self.check()?;
                        return Err(said("the character did not arrive in time"));
                    }
                }
            }
            Step::Wait(seconds) => {
                let until = Instant::now() + Duration::from_secs_f64(*seconds);
                while self.happenings(until).await?.is_some() {}
            }
            Step::Leave => {
                let mut client = self.client.take().ok_or_else(|| said("needs `enter` first"))?;
                client.jack_out().await?;
                (self.margin, self.loaded) = (None, None);
            }
        }
        Ok(Vec::new())
    }

    /// The client in the world, if there is one. Keep the session while the client is in use.
    pub(super) const fn take_client(&mut self) -> Option<Client> {
        self.client.take()
    }

    /// Leaves the world, if the client is in it.
    pub(super) async fn close(mut self) {
        if let Some(client) = self.client.take() {
            client.leave().await;
        }
    }

    async fn log_in(&mut self) -> Result<Vec<Json>, Problem> {
        let setup = &self.setup;
        let account = numbered(&setup.account, self.number);
        let config = AuthClientConfig::new(&account, &setup.password, setup.public_key.clone());
        let ticket = log_in(setup.auth, config, setup.patience).await?;
        let user = ticket.certificate.certificate.user_id;
        let worlds: Vec<_> = ticket.worlds.iter().map(|world| world.name.text()).collect();
        self.characters.clone_from(&ticket.characters);
        let margin = Margin::connect(setup.margin, ticket, setup.patience).await?;
        let session = margin.session().0;
        (self.margin, self.loaded) = (Some(margin), None);
        Ok(vec![json!({ "user": user, "worlds": worlds, "session": session })])
    }

    async fn enter(&mut self) -> Result<(), Problem> {
        let id = self.loaded.ok_or_else(|| said("needs `create` or `load` first"))?;
        let setup = Arc::clone(&self.setup);
        let seed = u64::from(self.number.unwrap_or(0));
        let margin = self.margin()?;
        let mut settings = Settings::new(id);
        (settings.session, settings.key) = margin.session().clone();
        settings.objects = Arc::clone(&setup.objects);
        settings.walks = setup.walks;
        settings.setup_time = setup.patience;
        settings.conditions = setup.conditions.map(|all| Conditions { seed, ..all });
        let client = Client::connect(setup.game, settings).await.map_err(Problem::Connect)?;
        margin.established().await?;
        self.client = Some(client);
        Ok(())
    }

    /// Waits until somebody says or does something and returns the events, or `None` if nothing
    /// happens until the given time.
    pub(super) async fn happenings(&self, until: Instant) -> Result<Option<Vec<Json>>, Problem> {
        let mut grace = None;
        loop {
            let happened: Vec<Json> = self.client.as_ref().map_or_else(Vec::new, |client| {
                client.with_view(|view| {
                    view.take_happenings().map(|it| happening_json(&it)).collect()
                })
            });
            if !happened.is_empty() {
                return Ok(Some(happened));
            }
            let now = Instant::now();
            let deadline = match self.check() {
                // The world may still report the reason.
                Err(problem) if now >= *grace.get_or_insert(now + GRACE) => return Err(problem),
                Err(_) => now + LOOK_EVERY,
                Ok(()) if now >= until => return Ok(None),
                Ok(()) => until.min(now + LOOK_EVERY),
            };
            sleep_until(deadline).await;
        }
    }

    /// Whether the server still has the session and the character in its world.
    fn check(&self) -> Result<(), Problem> {
        if self.margin.as_ref().is_some_and(Margin::is_over) {
            return Err(said("the server ended the session"));
        }
        if self.client.as_ref().is_some_and(Client::is_over) {
            return Err(said("the connection to the world ended"));
        }
        Ok(())
    }

    fn margin(&mut self) -> Result<&mut Margin, Problem> {
        self.margin.as_mut().ok_or_else(|| said("needs `login` first"))
    }

    fn client(&self) -> Result<&Client, Problem> {
        self.client.as_ref().ok_or_else(|| said("needs `enter` first"))
    }

    /// The ID of one of the account's characters, as listed at login.
    fn character(&self, handle: &str) -> Result<u64, Problem> {
        let is_meant =
            |character: &&Character<'static>| character.handle.text().eq_ignore_ascii_case(handle);
        let found = self.characters.iter().find(is_meant);
        let unknown = || Problem::Said(format!("the account has no character {handle:?}"));
        found.map(|character| character.id).ok_or_else(unknown)
    }
}

/// The error for a district that the server does not allow the character to enter.
fn refused(text: &str) -> String {
    let advice = "`serve mxo` offers the districts listed under `other_districts` in its mxo.toml";
    format!("the server replied {text:?}; {advice}")
}

fn character_json(character: &Character<'_>) -> Json {
    json!({
        "id": character.id.to_string(), "handle": character.handle.text(),
        "world": character.world_id,
    })
}

fn happening_json(happening: &Happening) -> Json {
    match happening {
        Happening::Said { scope, handle, text, message } => json!({
            "scope": scope.to_string(), "from": handle, "text": text, "message": message,
        }),
        Happening::Played { view, name, script } => match script {
            Script::Emote { id } => {
                let number = script.emote_number();
                let emote = number.and_then(EmoteId::of_script_number).and_then(EmoteId::name);
                let number = number.map_or(*id, u32::from);
                json!({ "view": view, "emote": number, "name": emote, "character": name })
            }
            _ => json!({ "view": view, "script": format!("{script:?}"), "character": name }),
        },
        Happening::Appeared { view, name } => {
            json!({ "view": view, "appeared": true, "character": name })
        }
        Happening::Disappeared { view, name } => {
            json!({ "view": view, "appeared": false, "character": name })
        }
        Happening::LoadsWorld { district, sky } => json!({ "district": district, "sky": sky }),
        Happening::Option { name, value } => json!({ "option": name, "value": value }),
        other => json!({ "other": format!("{other:?}") }),
    }
}

/// The results of a step.
pub(super) fn shown(step: &Step, values: &[Json], as_json: bool) -> String {
    let mut out = String::new();
    for value in values {
        let text = |key: &str| printable(value[key].as_str().unwrap_or_default());
        let _ = match step {
            _ if as_json => writeln!(out, "{value}"),
            Step::Login => writeln!(out, "logged in as user {}", value["user"]),
            Step::List => writeln!(out, "{}  {}", text("id"), text("handle")),
            Step::Create(_) => writeln!(out, "created {} with ID {}", text("handle"), text("id")),
            Step::Wait(_) if value["emote"].is_u64() => {
                let number = format!("emote {}", value["emote"]);
                let emote = value["name"].as_str().unwrap_or(&number);
                writeln!(out, "{} plays {}", character_of(value), printable(emote))
            }
            Step::Wait(_) if value["appeared"].is_boolean() => {
                let what = if value["appeared"] == true { "appears" } else { "disappears" };
                writeln!(out, "{} {what}", character_of(value))
            }
            Step::Wait(_) if value["district"].is_u64() => {
                writeln!(out, "loading district {}; weather: {}", value["district"], text("sky"))
            }
            Step::Wait(_) if value["option"].is_string() => {
                writeln!(out, "option {}: {}", text("option"), text("value"))
            }
            Step::Wait(_) if !value["scope"].is_null() => {
                let from = Some(text("from")).filter(|from| !from.is_empty());
                let from = from.unwrap_or_else(|| "the server".to_owned());
                // If the scope has a name, its number is left out.
                let scope = text("scope");
                let says = match scope.split_once(" (").map_or(&*scope, |(name, _)| name) {
                    "Area" => "says".to_owned(),
                    "Whisper" => "whispers".to_owned(),
                    "Crew" => "says to the crew".to_owned(),
                    "Faction" => "says to the faction".to_owned(),
                    "Team" => "says to the team".to_owned(),
                    "System" | "Modal" | "Broadcast" | "Framed" => "announces".to_owned(),
                    other => format!("says (scope {other})"),
                };
                writeln!(out, "{from} {says}: {}", text("text"))
            }
            _ => writeln!(out, "{value}"),
        };
    }
    // The server does not answer these steps.
    if !as_json && matches!(step, Step::Say(_) | Step::Whisper(..)) {
        let _ = writeln!(out, "{}: sent", step.name());
    }
    out
}

/// The name of the acting character or, if it is unknown, the number of its view.
fn character_of(value: &Json) -> String {
    match value["character"].as_str() {
        Some(name) if !name.is_empty() => printable(name),
        _ => format!("view {}", value["view"]),
    }
}
