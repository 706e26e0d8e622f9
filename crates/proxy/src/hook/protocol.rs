//! The lines that hooks and the proxy exchange: version 1 of the protocol, which `docs/hooks.md`
//! describes.

mod write;

use worldwire_core::json::{FieldsOf, Json, Parser, double, expected, unsigned};
use worldwire_core::value::parse_hex;
use worldwire_core::{Error, Result, Side};

pub(crate) use self::write::{closed, error, message_head, opened, synced, texts, welcome};

/// The version of the protocol.
pub(crate) const VERSION: u64 = 1;

/// The maximum length of a line from a hook, without its terminator.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;
/// The maximum number of messages that one line adds.
pub(crate) const MAX_ADDED: usize = 256;
/// The maximum number of subscriptions per hook.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 4_096;
/// The maximum size in bytes of a name that a hook chooses: its own, or that of a subscription or
/// query.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// A line from a hook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FromHook {
    /// The first line.
    Hello(Hello),
    /// Adds or replaces subscriptions.
    Subscribe(Vec<Wanted>),
    /// Removes subscriptions.
    Unsubscribe(Vec<String>),
    /// Answers a message.
    Answer(MessageId, Reply),
    /// Adds messages to a conversation.
    Add(u64, Vec<Addition>),
    /// Writes to the log.
    Log(LogLevel, String),
    /// Asks which messages and fields exist.
    Query(Query),
    /// Asks for a confirmation once a conversation has handled all earlier lines, with an id.
    Sync(u64, String),
}

/// A hook's first line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hello {
    /// A name for the log.
    pub(crate) name: Option<String>,
    /// Whether large integers are sent as text.
    pub(crate) json_safe: bool,
    pub(crate) form: Form,
    /// Whether new subscriptions also apply to messages that wait for it to answer earlier ones.
    pub(crate) catch_up: bool,
    pub(crate) subscriptions: Vec<Wanted>,
}

/// How lines are sent after the hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// As lines of JSON.
    #[default]
    Lines,
    /// As [frames](super::frames).
    Binary,
}

/// How important a line for the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogLevel {
    #[default]
    Info,
    Warning,
    Error,
}

/// A subscription as a hook requests it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) id: String,
    /// `None` for all messages.
    pub(crate) filter: Option<String>,
    /// The sender; `None` for both.
    pub(crate) from: Option<Side>,
    pub(crate) order: f64,
    pub(crate) bytes: bool,
    pub(crate) fields: bool,
    /// The value that each flag must have; `None` accepts both.
    pub(crate) flags: Flags<Option<bool>>,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags<T> {
    /// A hook or rule changed it.
    pub(crate) modified: T,
    /// A hook or rule dropped it.
    pub(crate) silenced: T,
    /// A hook added it.
    pub(crate) fake: T,
}

/// The id of a message: its conversation, and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageId {
    pub(crate) conversation: u64,
    pub(crate) number: u64,
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    /// Messages to add before it.
    pub(crate) add: Vec<Addition>,
    pub(crate) action: Action,
}

/// What to do with a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Leaves it unchanged, dropped or not.
    Pass,
    /// Forwards it, even if it was dropped.
    Forward,
    /// Drops it.
    Drop,
    /// Forwards it with other fields.
    Fields(Json),
    /// Forwards other bytes.
    Bytes(Vec<u8>),
    /// Answers later, without a time limit.
    Hold,
}

/// A message to add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Addition {
    pub(crate) to: Side,
    pub(crate) name: Option<String>,
    pub(crate) content: Content,
}

/// The content of a message to add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Fields, and the version of their definition.
    Fields(Json, Option<u64>),
    Bytes(Vec<u8>),
}

/// A query about definitions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    pub(crate) id: Option<String>,
    /// A filter that selects messages by name.
    pub(crate) messages: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineError {
    /// The id in the line.
    pub(crate) id: Option<String>,
    pub(crate) text: String,
}

impl FromHook {
    /// Reads a line.
    pub(crate) fn parse(line: &str, parser: &mut Parser) -> core::result::Result<Self, LineError> {
        let fault = |id, text| LineError { id, text };
        let json = parser.parse(line).map_err(|error| fault(None, format!("not JSON: {error}")))?;
        Self::read(&json).map_err(|error| {
            let id = json.get("id").and_then(Json::as_str);
            let id = id.filter(|id| id.len() <= MAX_NAME_BYTES).map(str::to_owned);
            fault(id, error.to_string())
        })
    }

    fn read(json: &Json) -> Result<Self> {
        let mut members = FieldsOf::new(json)?;
        let kind = members.take("type")?;
        let line = match kind.as_str() {
            Some("hello") => Self::Hello(Hello::read(&mut members)?),
            Some("subscribe") => Self::Subscribe(subscriptions(members.take("subscriptions")?)?),
            Some("unsubscribe") => {
                let ids = list("ids", members.take("ids")?, MAX_SUBSCRIPTIONS, name)?;
                Self::Unsubscribe(ids)
            }
            Some("answer") => {
                let id = MessageId::read(members.take("id")?).map_err(|it| it.inside("id"))?;
                Self::Answer(id, Reply::read(&mut members)?)
            }
            Some("add") => {
                let conversation = members.take("conversation")?;
                let conversation =
                    unsigned(conversation).map_err(|error| error.inside("conversation"))?;
                Self::Add(conversation, additions("messages", members.take("messages")?)?)
            }
            Some("log") => {
                let level = members.take_optional("level").map(log_level).transpose()?;
                let text = text(members.take("text")?).map_err(|it| it.inside("text"))?;
                Self::Log(level.unwrap_or_default(), text)
            }
            Some("query") => {
                let id = members.take_optional("id").map(name).transpose();
                let messages =
                    members.take_optional("messages").map_or_else(|| Ok("*".to_owned()), text);
                Self::Query(Query {
                    id: id.map_err(|error| error.inside("id"))?,
                    messages: messages.map_err(|error| error.inside("messages"))?,
                })
            }
            Some("sync") => {
                let conversation = members.take("conversation")?;
                let conversation =
                    unsigned(conversation).map_err(|error| error.inside("conversation"))?;
                let id = name(members.take("id")?).map_err(|error| error.inside("id"))?;
                Self::Sync(conversation, id)
            }
            _ => {
                const KINDS: &str =
                    "hello, subscribe, unsubscribe, answer, add, log, query or sync";
                return Err(expected(KINDS, kind).inside("type"));
            }
        };
        members.end()?;
        Ok(line)
    }
}

impl Hello {
    fn read(members: &mut FieldsOf<'_>) -> Result<Self> {
        let version = unsigned(members.take("version")?).map_err(|it| it.inside("version"))?;
        if version != VERSION {
            let wanted = format!("version {VERSION} of the protocol");
            return Err(Error::value(wanted, version.to_string()).inside("version"));
        }
        Ok(Self {
            name: members
                .take_optional("name")
                .map(name)
                .transpose()
                .map_err(|error| error.inside("name"))?,
            json_safe: boolean("json_safe", members.take_optional("json_safe"), false)?,
            form: members.take_optional("form").map_or(Ok(Form::Lines), form)?,
            catch_up: boolean("catch_up", members.take_optional("catch_up"), false)?,
            subscriptions: members
                .take_optional("subscriptions")
                .map_or_else(|| Ok(Vec::new()), subscriptions)?,
        })
    }
}

impl Wanted {
    fn read(json: &Json) -> Result<Self> {
        let mut members = FieldsOf::new(json)?;
        let wanted = Self {
            id: name(members.take("id")?).map_err(|error| error.inside("id"))?,
            filter: members
                .take_optional("filter")
                .map(text)
                .transpose()
                .map_err(|error| error.inside("filter"))?,
            from: members
                .take_optional("from")
                .map(side)
                .transpose()
                .map_err(|error| error.inside("from"))?,
            order: order(members.take_optional("order")).map_err(|it| it.inside("order"))?,
            bytes: boolean("bytes", members.take_optional("bytes"), false)?,
            fields: boolean("fields", members.take_optional("fields"), true)?,
            flags: Flags {
                modified: flag("modified", members.take_optional("modified"), None)?,
                silenced: flag("silenced", members.take_optional("silenced"), Some(false))?,
                fake: flag("fake", members.take_optional("fake"), Some(false))?,
            },
        };
        members.end()?;
        Ok(wanted)
    }
}

impl MessageId {
    fn read(json: &Json) -> Result<Self> {
        let parse = |text: &str| {
            let (conversation, number) = text.split_once('.')?;
            Some(Self { conversation: conversation.parse().ok()?, number: number.parse().ok()? })
        };
        json.as_str().and_then(parse).ok_or_else(|| expected("the id of a message", json))
    }
}

impl core::fmt::Display for MessageId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.conversation, self.number)
    }
}

impl Reply {
    fn read(members: &mut FieldsOf<'_>) -> Result<Self> {
        let wanted = members.take("do")?;
        let action = match wanted.as_str() {
            Some("pass") => Action::Pass,
            Some("forward") => Action::Forward,
            Some("drop") => Action::Drop,
            Some("hold") => Action::Hold,
            Some("replace") => {
                let (fields, bytes) =
                    (members.take_optional("fields"), members.take_optional("bytes"));
                match (fields, bytes) {
                    (Some(fields), None) => Action::Fields(object("fields", fields)?),
                    (None, Some(bytes)) => Action::Bytes(hex("bytes", bytes)?),
                    _ => return Err(either("`fields` or `bytes`", fields.is_some())),
                }
            }
            _ => {
                let wanted_words = "forward, pass, drop, replace or hold";
                return Err(expected(wanted_words, wanted).inside("do"));
            }
        };
        let add = members.take_optional("add").map_or(Ok(Vec::new()), |it| additions("add", it))?;
        Ok(Self { add, action })
    }
}

impl Addition {
    fn read(json: &Json) -> Result<Self> {
        let mut members = FieldsOf::new(json)?;
        let to = side(members.take("to")?).map_err(|error| error.inside("to"))?;
        let fields = members.take_optional("fields");
        let bytes = members.take_optional("bytes");
        let name = match fields {
            Some(_) => Some(members.take("name")?),
            None => members.take_optional("name"),
        };
        let name = name.map(text).transpose().map_err(|error| error.inside("name"))?;
        let content = match (fields, bytes) {
            (Some(fields), None) => {
                let version = members.take_optional("version").map(unsigned).transpose();
                let version = version.map_err(|error| error.inside("version"))?;
                Content::Fields(object("fields", fields)?, version)
            }
            (None, Some(bytes)) => Content::Bytes(hex("bytes", bytes)?),
            _ => return Err(either("`name` with `fields`, or `bytes`", fields.is_some())),
        };
        members.end()?;
        Ok(Self { to, name, content })
    }
}

fn either(wanted: &'static str, both: bool) -> Error {
    Error::value(wanted, if both { "both" } else { "neither" })
}

fn subscriptions(json: &Json) -> Result<Vec<Wanted>> {
    list("subscriptions", json, MAX_SUBSCRIPTIONS, Wanted::read)
}

fn additions(key: &'static str, json: &Json) -> Result<Vec<Addition>> {
    list(key, json, MAX_ADDED, Addition::read)
}

fn list<T>(
    key: &'static str,
    json: &Json,
    max: usize,
    read: impl Fn(&Json) -> Result<T>,
) -> Result<Vec<T>> {
    let items = json.as_array().ok_or_else(|| expected("a list", json).inside(key))?;
    if items.len() > max {
        return Err(Error::limit(key, max as u64, items.len() as u64));
    }
    let read = |(index, item)| read(item).map_err(|it: Error| it.inside_item(index).inside(key));
    items.iter().enumerate().map(read).collect()
}

fn text(json: &Json) -> Result<String> {
    json.as_str().map(str::to_owned).ok_or_else(|| expected("a string", json))
}

fn name(json: &Json) -> Result<String> {
    let name = text(json)?;
    match name.len() {
        1..=MAX_NAME_BYTES => Ok(name),
        0 => Err(Error::value("a name", "an empty string")),
        bytes => Err(Error::limit("bytes of a name", MAX_NAME_BYTES as u64, bytes as u64)),
    }
}

fn log_level(json: &Json) -> Result<LogLevel> {
    match json.as_str() {
        Some("info") => Ok(LogLevel::Info),
        Some("warning") => Ok(LogLevel::Warning),
        Some("error") => Ok(LogLevel::Error),
        _ => Err(expected("\"info\", \"warning\" or \"error\"", json).inside("level")),
    }
}

fn form(json: &Json) -> Result<Form> {
    match json.as_str() {
        Some("lines") => Ok(Form::Lines),
        Some("binary") => Ok(Form::Binary),
        _ => Err(expected("\"lines\" or \"binary\"", json).inside("form")),
    }
}

fn side(json: &Json) -> Result<Side> {
    match json.as_str() {
        Some("client") => Ok(Side::Client),
        Some("server") => Ok(Side::Server),
        _ => Err(expected("\"client\" or \"server\"", json)),
    }
}

fn order(json: Option<&Json>) -> Result<f64> {
    let order = json.map_or(Ok(0.0), double)?;
    if order.is_nan() { Err(Error::value("a number", "NaN")) } else { Ok(order) }
}

fn boolean(key: &'static str, json: Option<&Json>, default: bool) -> Result<bool> {
    match json {
        None => Ok(default),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(expected("true or false", other).inside(key)),
    }
}

/// The value that a flag must have. `null` accepts both.
fn flag(key: &'static str, json: Option<&Json>, default: Option<bool>) -> Result<Option<bool>> {
    match json {
        None => Ok(default),
        Some(Json::Null) => Ok(None),
        Some(Json::Bool(value)) => Ok(Some(*value)),
        Some(other) => Err(expected("true, false or null", other).inside(key)),
    }
}

fn object(key: &'static str, json: &Json) -> Result<Json> {
    match json {
        Json::Object(_) => Ok(json.clone()),
        other => Err(expected("an object", other).inside(key)),
    }
}

fn hex(key: &'static str, json: &Json) -> Result<Vec<u8>> {
    let bytes = json.as_str().and_then(parse_hex);
    bytes.ok_or_else(|| expected("bytes in hexadecimal", json).inside(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> core::result::Result<FromHook, LineError> {
        FromHook::parse(line, &mut Parser::default())
    }

    #[test]
    fn a_hello_has_subscriptions_with_defaults() {
        let line = r#"{"type":"hello","version":1,"json_safe":true,"subscriptions":[
            {"id":"a"},
            {"id":"b","filter":"auth.*","from":"server","order":"-Infinity","bytes":true,
             "fields":false,"modified":true,"silenced":null,"fake":null}]}"#;
        let Ok(FromHook::Hello(hello)) = parse(line) else { panic!("{:?}", parse(line)) };
        assert!(hello.json_safe && hello.name.is_none() && !hello.catch_up);
        assert_eq!(hello.form, Form::Lines);
        let [a, b] = &hello.subscriptions[..] else { panic!() };
        let flags = Flags { modified: None, silenced: Some(false), fake: Some(false) };
        assert_eq!((a.flags, a.order, a.fields, a.bytes), (flags, 0.0, true, false));
        let flags = Flags { modified: Some(true), silenced: None, fake: None };
        assert_eq!((b.flags, b.order, b.fields, b.bytes), (flags, f64::NEG_INFINITY, false, true));
        assert_eq!((b.from, b.filter.as_deref()), (Some(Side::Server), Some("auth.*")));
    }

    #[test]
    fn answers_have_ids_and_additions() {
        let line = r#"{"type":"answer","id":"2.17","do":"replace","bytes":"00ff","add":[
            {"to":"client","name":"x","fields":{},"version":3},{"to":"server","bytes":""}]}"#;
        let Ok(FromHook::Answer(id, reply)) = parse(line) else { panic!("{:?}", parse(line)) };
        assert_eq!(id.to_string(), "2.17");
        assert_eq!(reply.action, Action::Bytes(vec![0, 255]));
        let [named, bytes] = &reply.add[..] else { panic!() };
        let fields = Json::Object([("", Json::Null); 0].into_iter().collect());
        assert_eq!(named.content, Content::Fields(fields, Some(3)));
        assert_eq!((bytes.to, &bytes.content), (Side::Server, &Content::Bytes(Vec::new())));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, id, text) in [
            ("nonsense", None, "not JSON: expected ident"),
            ("{}", None, "type: is missing"),
            (r#"{"type":"hallo"}"#, None, "type: wanted hello, subscribe,"),
            (r#"{"type":"hello","version":2}"#, None, "version: wanted version 1 of the protocol"),
            (r#"{"type":"answer","id":7,"do":"pass"}"#, None, "id: wanted the id of a message"),
            (r#"{"type":"answer","id":"1.2","do":"x"}"#, Some("1.2"), "do: wanted forward, pass"),
            (
                r#"{"type":"answer","id":"1.2","do":"replace"}"#,
                Some("1.2"),
                "wanted `fields` or `bytes`, found neither",
            ),
            (
                r#"{"type":"answer","id":"1.2","do":"pass","fields":{}}"#,
                Some("1.2"),
                "wanted a known field, found \"fields\"",
            ),
            (
                r#"{"type":"add","conversation":1,"messages":[{"to":"client","fields":{}}]}"#,
                None,
                "messages[0].name: is missing",
            ),
            (
                r#"{"type":"subscribe","subscriptions":[{"id":"a","order":"NaN"}]}"#,
                None,
                "subscriptions[0].order: wanted a number, found NaN",
            ),
            (r#"{"type":"subscribe","subscriptions":[{"id":""}]}"#, None, "subscriptions[0].id"),
            (r#"{"type":"hello","version":1,"form":"x"}"#, None, "form: wanted \"lines\" or"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.id.as_deref(), id, "{line}");
            assert!(error.text.starts_with(text), "{line}: {}", error.text);
        }
        let many = vec![r#"{"to":"client","bytes":""}"#; MAX_ADDED + 1].join(",");
        let line = format!(r#"{{"type":"add","conversation":1,"messages":[{many}]}}"#);
        let error = parse(&line).unwrap_err().text;
        assert!(error.contains("messages") && error.contains("256"), "{error}");
    }

    #[test]
    fn lines_to_hooks_are_json() {
        let id = MessageId { conversation: 1, number: 2 };
        let flags = Flags { modified: true, silenced: false, fake: true };
        let mut head = String::new();
        message_head(id, ["a", "\""].into_iter(), flags, Some(&[0, 0xff]), &mut head);
        head.push_str(",\"fields\":{}}");
        let json = worldwire_core::json::parse(&head).unwrap();
        assert_eq!(json["flags"], worldwire_core::json::json!(["modified", "fake"]));
        assert_eq!(json["bytes"].as_str(), Some("00ff"));
        let ends = Some(["a", "b"].map(str::to_owned));
        let lines = [
            welcome(&["ki", "uru"]),
            opened(1, "uru", ends),
            opened(1, "uru", None),
            closed(3),
            synced(3, "a\"b"),
            error(None, "\n"),
            error(Some("x"), ""),
        ];
        for line in lines {
            assert!(line.ends_with("}\n") && line.matches('\n').count() == 1, "{line}");
            worldwire_core::json::parse(&line).unwrap();
        }
    }
}
