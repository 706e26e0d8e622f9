//! The differences between two captures, as text and as JSON.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::json;
use worldwire_core::Side;
use worldwire_core::json::{Json, parse};

use super::align::Pair;
use super::captures::{Content, Contents, Conversation, Digest, Names};
use super::fields::FieldChanges;
use super::style::Style;
use crate::output::{counted, printable};

/// The differences between two captures.
pub(super) struct Changes<'c> {
    old: &'c Digest,
    new: &'c Digest,
    names: &'c Names,
    found: Vec<ConversationChange>,
}

/// Two conversations that differ, or one that has no counterpart.
struct ConversationChange {
    pair: Pair,
    /// The numbers of messages that differ.
    messages: Vec<(Option<u64>, Option<u64>)>,
    /// The names and senders of these messages.
    kinds: Vec<(Side, u32)>,
}

impl<'c> Changes<'c> {
    pub(super) fn new([old, new]: [&'c Digest; 2], names: &'c Names) -> Self {
        Self { old, new, names, found: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The numbers of the messages that differ, in both captures.
    pub(super) fn numbers(&self) -> [HashSet<u64>; 2] {
        let pairs = || self.found.iter().flat_map(|change| &change.messages);
        [pairs().filter_map(|pair| pair.0).collect(), pairs().filter_map(|pair| pair.1).collect()]
    }

    /// Adds the differences between two conversations whose messages are aligned.
    pub(super) fn add(&mut self, pair: Pair, aligned: &[Pair]) {
        let (old, new) = (self.old.of(pair.0), self.new.of(pair.1));
        let message = |conversation: Option<&Conversation>, at: Option<usize>| {
            conversation.zip(at).and_then(|(it, at)| it.messages.get(at)).copied()
        };
        let (mut messages, mut kinds) = (Vec::new(), Vec::new());
        for (first, second) in aligned {
            let (first, second) = (message(old, *first), message(new, *second));
            if let (Some(first), Some(second)) = (first, second)
                && first.content == second.content
            {
                continue;
            }
            kinds.extend(first.or(second).map(|message| message.kind()));
            messages.push((first.map(|it| it.number), second.map(|it| it.number)));
        }
        if !messages.is_empty() || old.is_none() || new.is_none() {
            self.found.push(ConversationChange { pair, messages, kinds });
        }
    }

    pub(super) fn write(
        &self,
        olds: &Contents,
        news: &Contents,
        json: bool,
        style: Style,
    ) -> String {
        let mut out = String::new();
        for change in &self.found {
            if json {
                self.lines(change, olds, news, &mut out);
            } else {
                self.text(change, olds, news, style, &mut out);
            }
        }
        out
    }

    fn text(
        &self,
        change: &ConversationChange,
        olds: &Contents,
        news: &Contents,
        style: Style,
        out: &mut String,
    ) {
        let (old, new) = (self.old.of(change.pair.0), self.new.of(change.pair.1));
        let Some(one) = old.or(new) else { return };
        let number = |it: Option<&Conversation>| it.map(|it| format!("#{}", it.stream));
        let title = match (number(old), number(new)) {
            (Some(old), Some(new)) if old == new => old,
            (Some(old), Some(new)) => format!("{old} {new}"),
            (Some(old), None) => format!("- {old}"),
            (None, new) => format!("+ {}", new.unwrap_or_default()),
        };
        let Conversation { family, client, server, .. } = one;
        let title = format!("{title}  {family}  {client} > {server}");
        let painted = match (old, new) {
            (Some(_), Some(_)) => style.heading(&title),
            (Some(_), None) => style.removed(&title),
            (None, _) => style.added(&title),
        };
        let _ = writeln!(out, "{painted}");
        if old.is_none() || new.is_none() {
            let _ = writeln!(out, "    {}", counted(change.messages.len(), "message"));
            return;
        }
        for ((first, second), (from, name)) in change.messages.iter().zip(&change.kinds) {
            let [old, new] = [(olds, first), (news, second)]
                .map(|(contents, number)| number.and_then(|number| contents.found.get(&number)));
            let mut line = format!("{}  {:<6}  ", numbers(*first, *second), from.name());
            line.push_str(&printable(self.names.name(*name)));
            if (first.is_none() || second.is_none())
                && let Some(content) = old.or(new).filter(|content| !content.info.is_empty())
            {
                line.push_str("  ");
                line.push_str(&content.info);
            }
            let painted = match (first, second) {
                (Some(_), Some(_)) => style.changed(&line),
                (Some(_), None) => style.removed(&line),
                (None, _) => style.added(&line),
            };
            let _ = writeln!(out, "{painted}");
            match (first, second, old, new) {
                (_, _, Some(old), Some(new)) => {
                    for changes in changes_between(&old.text, &new.text) {
                        changes.push_text("    ", style, out);
                    }
                }
                (Some(_), Some(_), ..) => {
                    out.push_str("    too many differences to list the fields\n")
                }
                _ => {}
            }
        }
    }

    fn lines(
        &self,
        change: &ConversationChange,
        olds: &Contents,
        news: &Contents,
        out: &mut String,
    ) {
        let (old, new) = (self.old.of(change.pair.0), self.new.of(change.pair.1));
        let streams = [old, new].map(|it| it.map(|it| it.stream));
        let Some((one, what)) = old.or(new).map(|one| (one, what(old.is_some(), new.is_some())))
        else {
            return;
        };
        if old.is_none() || new.is_none() {
            let line = json!({
                "change": what, "streams": streams, "family": one.family,
                "client": one.client, "server": one.server, "count": change.messages.len(),
            });
            let _ = writeln!(out, "{line}");
            return;
        }
        for ((first, second), (from, name)) in change.messages.iter().zip(&change.kinds) {
            let [old, new] = [(olds, first), (news, second)]
                .map(|(contents, number)| number.and_then(|number| contents.found.get(&number)));
            let changes = match (old, new) {
                (Some(old), Some(new)) => changes_between(&old.text, &new.text),
                _ => Vec::new(),
            };
            let what = self::what(first.is_some(), second.is_some());
            let mut line = line(what, [*first, *second], [old, new], &changes);
            line["streams"] = json!(streams);
            line["family"] = json!(one.family);
            line["from"] = json!(from.name());
            line["name"] = json!(self.names.name(*name));
            let _ = writeln!(out, "{line}");
        }
    }
}

/// The word for a difference, given which sides have the element.
fn what(is_old: bool, is_new: bool) -> &'static str {
    match (is_old, is_new) {
        (true, true) => "changed",
        (true, false) => "removed",
        (false, _) => "added",
    }
}

/// The sign and the numbers of messages.
pub(super) fn numbers(first: Option<u64>, second: Option<u64>) -> String {
    match (first, second) {
        (Some(first), Some(second)) if first == second => format!("~ {first}"),
        (Some(first), Some(second)) => format!("~ {first} {second}"),
        (Some(first), None) => format!("- {first}"),
        (None, second) => format!("+ {}", second.unwrap_or_default()),
    }
}

/// A difference between messages as JSON.
pub(super) fn line(
    what: &str,
    numbers: [Option<u64>; 2],
    contents: [Option<&Content>; 2],
    changes: &[FieldChanges],
) -> serde_json::Value {
    let mut line = json!({ "change": what, "messages": numbers });
    match contents {
        [Some(old), Some(new)] => {
            let parts: Vec<_> = changes.iter().map(FieldChanges::to_json).collect();
            let more: usize = parts.iter().map(|(_, more)| more).sum();
            let all: Vec<_> = parts
                .into_iter()
                .flat_map(|(listed, _)| listed.as_array().cloned().unwrap_or_default())
                .collect();
            line["fields"] = all.into();
            if more > 0 {
                line["more"] = json!(more);
            }
            line["from"] = json!(new.from.name());
            line["name"] = json!(new.name);
            if (&old.name, old.from) != (&new.name, new.from) {
                line["old"] = json!({ "from": old.from.name(), "name": old.name });
            }
        }
        [one, other] => {
            // The contents of a message that exists on only one side, as in `dissect --json`.
            if let Some(json) = one.or(other).and_then(|content| parse(&content.text).ok()) {
                line["message"] = json!(json);
            }
        }
    }
    line
}

/// The differences between two messages: those in their fields, and all others.
pub(super) fn changes_between(old: &str, new: &str) -> Vec<FieldChanges> {
    let (Ok(mut old), Ok(mut new)) = (parse(old), parse(new)) else { return Vec::new() };
    let fields = |json: &mut Json| json.as_object_mut().and_then(|it| it.remove("fields"));
    let fields = [fields(&mut old), fields(&mut new)].map(Option::unwrap_or_default);
    let [old_fields, new_fields] = &fields;
    let changes =
        [FieldChanges::between(old_fields, new_fields), FieldChanges::between(&old, &new)];
    changes.into_iter().filter(|changes| !changes.is_empty()).collect()
}
