//! Answers hooks that ask which messages and fields exist.

use worldwire_core::json::string;
use worldwire_dissect::Definitions;
use worldwire_dissect::filter::Filter;

use super::protocol::{Query, texts};
use super::subscription::names;

/// The maximum number of messages in one answer.
const MAX_DEFINITIONS: usize = 2_000;

/// All messages of all families.
#[derive(Debug)]
pub(crate) struct Catalogue(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    family: &'static str,
    name: String,
    /// The definition as JSON.
    line: String,
}

impl Catalogue {
    pub(crate) fn new(definitions: &Definitions) -> Self {
        let mut entries = Vec::new();
        for family in definitions.families().iter() {
            let messages = family.vocabulary().messages(definitions);
            let family = family.name();
            entries.extend(messages.into_iter().map(|message| {
                let mut line = format!("{{\"family\":\"{family}\",\"name\":");
                string(&message.name, &mut line);
                line.push_str(",\"fields\":[");
                texts(message.fields.iter().copied(), &mut line);
                line.push_str("],\"inner\":[");
                texts(message.inner.iter().copied(), &mut line);
                line.push_str("]}");
                Entry { family, name: message.name, line }
            }));
        }
        Self(entries)
    }

    /// The line that answers a query. The error is a text for the hook.
    pub(crate) fn answer(&self, query: &Query) -> Result<String, String> {
        let filter = Filter::parse(&query.messages).map_err(|error| error.to_string())?;
        let mut found = self.0.iter().filter(|entry| names(&filter, entry.family, &entry.name));
        let mut line = "{\"type\":\"definitions\"".to_owned();
        if let Some(id) = &query.id {
            line.push_str(",\"id\":");
            string(id, &mut line);
        }
        line.push_str(",\"messages\":[");
        for (index, entry) in found.by_ref().take(MAX_DEFINITIONS).enumerate() {
            if index > 0 {
                line.push(',');
            }
            line.push_str(&entry.line);
        }
        let is_complete = found.next().is_none();
        line.push_str(if is_complete {
            "],\"complete\":true}\n"
        } else {
            "],\"complete\":false}\n"
        });
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::parse;

    use super::*;

    #[test]
    fn definitions_are_selected_by_name() {
        let catalogue = Catalogue::new(&Definitions::built_in());
        let ask = |messages: &str| {
            let query = Query { id: Some("q".to_owned()), messages: messages.to_owned() };
            catalogue.answer(&query)
        };
        let json = parse(&ask("auth.Ping*").unwrap()).unwrap();
        assert_eq!(json["id"].as_str(), Some("q"));
        let messages = json["messages"].as_array().unwrap();
        let names: Vec<_> = messages.iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, ["auth.PingRequest", "auth.PingReply"]);
        assert_eq!(messages[0]["family"].as_str(), Some("uru"));
        let fields = messages[0]["fields"].as_array().unwrap();
        assert!(fields.iter().any(|field| field.as_str() == Some("transId")), "{fields:?}");
        assert!(ask("auth.(").is_err());
    }
}
