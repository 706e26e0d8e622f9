//! Checks the messages that rules add.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, Object};
use worldwire_core::{Limits, Side, listed, nearest};
use worldwire_dissect::filter::{FieldPath, Filter};
use worldwire_dissect::{CodecOptions, Line};

use super::check::Checker;
use super::program::{Injection, Term};
use super::scan::shown;
use super::syntax::{Spanned, Target};

/// The family and the full name of messages, by their names with and without prefix.
pub(super) type Messages = BTreeMap<String, Vec<(&'static str, String)>>;

impl Checker<'_> {
    /// The family and the full name of a message to add.
    pub(super) fn message(&mut self, name: &Spanned) -> Option<(&'static str, String)> {
        let definitions = self.definitions;
        let messages = self.messages.get_or_insert_with(|| {
            let mut all = Messages::new();
            for family in definitions.families().iter() {
                for message in family.vocabulary().messages(definitions) {
                    let full = (family.name(), message.name.clone());
                    if let Some((_, short)) = message.name.split_once('.') {
                        let known = all.entry(short.to_owned()).or_default();
                        if !known.contains(&full) {
                            known.push(full.clone());
                        }
                    }
                    let known = all.entry(message.name).or_default();
                    if !known.contains(&full) {
                        known.push(full);
                    }
                }
            }
            all
        });
        let found = messages.get(&name.text).map_or(&[][..], |found| found);
        if let [one] = found {
            return Some(one.clone());
        }
        if !found.is_empty() {
            let names = listed(found.iter().map(|(_, name)| format!("`{name}`")));
            let message = format!("several messages are named `{}`", name.text);
            self.error(&name.span, message, Some(format!("write one of {names}")));
            return None;
        }
        // A message that only has a number.
        if let Some((prefix, number)) = name.text.rsplit_once('.')
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            let prefix = format!("{prefix}.");
            let mut same =
                messages.values().flatten().filter(|(_, name)| name.starts_with(&prefix));
            if let Some((family, _)) = same.next() {
                return Some((family, name.text.clone()));
            }
        }
        let near = nearest(&name.text, messages.keys().map(String::as_str)).map(str::to_owned);
        let advice = definitions.families().iter().find_map(|family| {
            family.vocabulary().advice_on(&name.text, definitions).map(str::to_owned)
        });
        let help = near.map(|near| format!("did you mean `{near}`?")).or(advice);
        self.error(&name.span, format!("there is no message named `{}`", shown(&name.text)), help);
        None
    }

    pub(super) fn inject(
        &mut self,
        to: Target,
        written: &Spanned,
        (family, name): (&'static str, String),
        fields: Term,
    ) -> Option<Injection> {
        let of = Filter::parse(&name).ok()?;
        if let Term::Object(entries) = &fields {
            for (key, _) in entries {
                let Ok(path) = FieldPath::parse(&format!("fields[{key:?}]"), &of, &self.resolver)
                else {
                    continue;
                };
                for field in path.filter().unknown_fields(&self.resolver) {
                    self.unknown_field(&field, &written.span, &format!("{name} has no field"));
                }
            }
        }
        let from = match to {
            Target::Client => Side::Server,
            Target::Server | Target::Back => Side::Client,
        };
        let constant = self.constant(&fields).ok();
        let line = |fields: Json| {
            let line: Json = [
                ("family", Json::from(family)),
                ("from", from.name().into()),
                ("name", name.as_str().into()),
                ("fields", fields),
            ]
            .into_iter()
            .collect();
            line
        };
        let empty = line(Json::Object(Object::new()));
        let codec = match Line::parse(&empty)
            .map(|line| line.map(|line| line.blob(self.definitions.families())))
        {
            Ok(Some(Ok(blob))) => blob.map(|(codec, _)| codec),
            Ok(Some(Err(error))) | Err(error) => {
                self.error(&written.span, error.to_string(), None);
                return None;
            }
            Ok(None) => {
                self.error(&written.span, format!("`{name}` is not a message"), None);
                return None;
            }
        };
        if let Some(constant) = constant.filter(|_| to != Target::Back) {
            let limits = Limits::DEFAULT;
            let (keys, definitions) = (&self.keys, self.definitions);
            let options = CodecOptions { from, keys, definitions, limits: &limits };
            let whole = line(constant);
            if let Ok(Some(line)) = Line::parse(&whole)
                && let Err(error) = line.encode(&options)
            {
                // A conversation may reveal what the definitions lack.
                let message = format!("{name} may not be encodable: {error}");
                self.warning(&written.span, message, None);
            }
        }
        let line = self.line(&written.span);
        let origin = format!("{}:{line}: `inject {}`", self.file(), shown(&written.text)).into();
        Some(Injection { to, name, family, codec, fields, origin })
    }
}
