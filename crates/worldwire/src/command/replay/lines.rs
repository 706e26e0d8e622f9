//! The output of `worldwire replay`.

use serde_json::{Map, Value as Json, json};
use worldwire_core::Side;
use worldwire_proxy::replay::{Cause, Divergence, Place, ReplayEvent, ReplaySummary};

use crate::cli::{Common, Replay};
use crate::output::{Failure, print, printable, say, shown};

/// Prints the events of a replay and its outcome.
pub(super) struct Lines {
    file: String,
    is_json: bool,
    is_verbose: bool,
    is_quiet: bool,
    /// Why the output cannot be written.
    failure: Option<Failure>,
}

impl Lines {
    pub(super) fn new(arguments: &Replay, common: &Common) -> Self {
        Self {
            file: shown(&arguments.file),
            is_json: arguments.json,
            is_verbose: arguments.verbose,
            is_quiet: common.quiet,
            failure: None,
        }
    }

    pub(super) fn event(&mut self, event: &ReplayEvent) {
        if let ReplayEvent::Problem(text) | ReplayEvent::Log(text) = event
            && !self.is_quiet
        {
            say(format_args!("worldwire: {}", printable(text)));
        } else if self.is_verbose
            && let Some(text) = text(event)
        {
            say(format_args!("worldwire: {}", printable(&text)));
        }
        if self.is_json
            && let Some(line) = line(event)
        {
            let outcome = print(&format!("{line}\n"));
            self.failure = self.failure.take().or_else(|| outcome.err());
        }
    }

    /// Returns an error if the output could not be written.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn complete(
        &self,
        stream: u64,
        own: Side,
        summary: &ReplaySummary,
    ) -> Result<(), Failure> {
        if !self.is_json {
            return print(&format!("conversation {stream} replayed as {own}: {summary}\n"));
        }
        let line = json!({
            "event": "complete",
            "stream": stream,
            "as": own.name(),
            "recorded": summary.recorded,
            "sent": summary.sent,
            "adapted": summary.adapted,
            "received": summary.received,
            "ignored": summary.ignored,
            "changed": summary.changed,
            "skipped": summary.skipped,
            "seconds": summary.time.as_secs_f64(),
        });
        print(&format!("{line}\n"))
    }

    pub(super) fn diverged(
        &self,
        stream: u64,
        own: Side,
        divergence: &Divergence,
    ) -> Result<(), Failure> {
        let text = divergence.to_string();
        let lines: Vec<String> = text.lines().map(printable).collect();
        say(format_args!("worldwire: {}: {}", self.file, lines.join("\n")));
        if !self.is_json {
            return Ok(());
        }
        let Divergence { place, from, expected, total, cause, problems, advice, .. } = divergence;
        let mut line = with_place("diverged", place);
        let came = match cause {
            Cause::Other { name, fields } => json!({ "name": name, "fields": fields }),
            _ => cause
                .fields()
                .map_or(Json::Null, |fields| json!({ "name": place.name, "fields": fields })),
        };
        for (key, value) in [
            ("stream", stream.into()),
            ("as", own.name().into()),
            ("of", (*total).into()),
            ("from", from.name().into()),
            ("cause", cause.name().into()),
            ("text", cause.to_string().into()),
            ("expected", json!(expected)),
            ("came", came),
            ("before", json!(problems)),
            ("advice", (*advice).into()),
        ] {
            line.insert(key.to_owned(), value);
        }
        print(&format!("{}\n", Json::Object(line)))
    }
}

/// An event as a readable line. `None` for events that are always printed.
fn text(event: &ReplayEvent) -> Option<String> {
    Some(match event {
        ReplayEvent::Established => "the connection is established".to_owned(),
        ReplayEvent::Sent { place, adapted } if adapted.is_empty() => format!("sent {place}"),
        ReplayEvent::Sent { place, adapted } => {
            format!("sent {place}, with new {}", adapted.join(", "))
        }
        ReplayEvent::Received { place } => format!("received {place}"),
        ReplayEvent::Ignored { name } => format!("ignored {name}"),
        ReplayEvent::Changed { name, is_dropped: false } => format!("rules changed {name}"),
        ReplayEvent::Changed { name, is_dropped: true } => format!("rules dropped {name}"),
        _ => return None,
    })
}

fn line(event: &ReplayEvent) -> Option<Json> {
    Some(match event {
        ReplayEvent::Established => json!({ "event": "established" }),
        ReplayEvent::Sent { place, adapted } => {
            let mut line = with_place("sent", place);
            line.insert("adapted".to_owned(), json!(adapted));
            line.into()
        }
        ReplayEvent::Received { place } => with_place("received", place).into(),
        ReplayEvent::Ignored { name } => json!({ "event": "ignored", "name": name }),
        ReplayEvent::Changed { name, is_dropped } => {
            json!({ "event": "changed", "name": name, "dropped": is_dropped })
        }
        ReplayEvent::Log(text) => json!({ "event": "log", "text": text }),
        ReplayEvent::Problem(text) => json!({ "event": "problem", "text": text }),
        _ => return None,
    })
}

/// An event about a recorded message: its number, time, packet and name.
fn with_place(event: &str, place: &Place) -> Map<String, Json> {
    let Place { number, since, packet, name } = place;
    let members = [
        ("event", event.into()),
        ("number", (*number).into()),
        ("time", since.as_secs_f64().into()),
        ("packet", json!(packet)),
        ("name", name.as_str().into()),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
