//! Encodes messages from JSON.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Result, Side, nearest};

use super::{Entry, Packets, find, subject};
use crate::file::library::sender;
use crate::frame::HEADER_BYTES;
use crate::message::{Fault, HeaderForm, Leniency};
use crate::schema::Definition;

impl Packets {
    /// Encodes a message from JSON: `opcode` (a name or a number) with `fields`, and optionally
    /// `version` to select a definition; or `opcode` with `payload`. Missing fields are 0 or empty.
    /// If the fields include `$integrity`, the message is given a header with exactly those values:
    /// computing a checksum needs the connection's seed. Otherwise messages on the build's
    /// integrity list are given the counter 1 and the checksum 0, to be [filled
    /// in](crate::integrity); [`uncounted`](Self::uncounted) reports them. `length` is recomputed,
    /// and `revision`, which selects the packets, is ignored.
    ///
    /// # Errors
    /// `Value` if the JSON has a different form or names something the build does not have. A
    /// version that is deprecated at the build's patch is refused unless it is the one used for
    /// reading.
    pub fn encode_json(&self, json: &Json) -> Result<Vec<u8>> {
        self.encode_json_with(json, Leniency::Strict)
    }

    /// Like [`encode_json`](Self::encode_json), with the given strictness. Lenient encoding also
    /// uses deprecated versions.
    pub fn encode_json_with(&self, json: &Json, leniency: Leniency) -> Result<Vec<u8>> {
        let mut parts = FieldsOf::new(json)?;
        parts.take_optional("length");
        parts.take_optional("revision");
        let (opcode, entry) =
            self.named(parts.take("opcode")?).map_err(|error| error.inside("opcode"))?;
        let version = match parts.take_optional("version") {
            None | Some(Json::Null) => None,
            Some(version) => {
                let number: u32 = json::integer(version, "the version of a definition")
                    .map_err(|error| error.inside("version"))?;
                Some(number)
            }
        };
        let mut out = Vec::new();
        if parts.has("payload") {
            let payload = parts.take("payload")?;
            let payload = json::bytes(payload).map_err(|error| error.inside("payload"))?;
            parts.end()?;
            let length = HEADER_BYTES + payload.len();
            let word = u16::try_from(length)
                .map_err(|_| Fault::MessageTooLong.value(format!("{length} bytes")))?;
            out.extend_from_slice(&word.to_le_bytes());
            out.extend_from_slice(&opcode.to_le_bytes());
            out.extend_from_slice(&payload);
            return Ok(out);
        }
        let fields = parts.take("fields")?;
        parts.end()?;
        let definition = self.to_write(opcode, entry, version, leniency)?;
        // `$integrity` selects the long header even if no list names the message.
        let sealed = fields.get("$integrity").is_some_and(|integrity| !integrity.is_null());
        if sealed && sender(definition.name()) == Some(Side::Server) {
            let found = "a counter and checksum, which only clients send";
            let error = Error::value("a server message", found);
            return Err(error.inside("$integrity").inside("fields"));
        }
        let listed = entry.map_or(HeaderForm::Plain, |entry| entry.form);
        let form = if sealed { HeaderForm::Integrity } else { listed };
        definition
            .plan()
            .encode_json(
                opcode,
                form,
                Given::closing(fields, self).of(subject(opcode, definition.name())),
                leniency,
                &mut out,
            )
            .map_err(|error| error.inside("fields"))?;
        Ok(out)
    }

    /// The name of the message described by JSON, if it has a counter that is not stated: the
    /// build's list names it, but its fields have no `$integrity`.
    #[must_use]
    pub fn uncounted(&self, json: &Json) -> Option<&str> {
        let (_, entry) = self.named(json.get("opcode")?).ok()?;
        let entry = entry.filter(|entry| entry.form == HeaderForm::Integrity)?;
        let integrity = json.get("fields")?.get("$integrity");
        let counter = integrity.and_then(|integrity| integrity.get("counter"));
        counter.is_none_or(Json::is_null).then_some(&entry.name)
    }

    /// The definition for encoding a message.
    fn to_write(
        &self,
        opcode: u16,
        entry: Option<&Entry>,
        version: Option<u32>,
        leniency: Leniency,
    ) -> Result<&Definition> {
        let wanted = "a definition of the message";
        let hint = "supply the bytes as \"payload\", or the definition";
        let Some(entry) = entry else {
            let found = format!("opcode {opcode}, which has no name");
            return Err(Error::value(wanted, found).hint(hint));
        };
        let name = &*entry.name;
        let chosen = match version {
            Some(version) => find(&self.definitions, name, version),
            None if leniency == Leniency::Lenient => entry.write.or(entry.read),
            None => entry.write,
        };
        let is_refused = |index: &usize| {
            let used = [entry.read, entry.write].contains(&Some(*index));
            leniency == Leniency::Strict && self.rules_out(*index) && !used
        };
        let good = chosen.filter(|index| !is_refused(index));
        if let Some(definition) = good.and_then(|index| self.definitions.get(index)) {
            return Ok(definition);
        }
        let versions = self.versions(name).iter().map(Definition::version);
        let refused: Vec<String> = versions
            .filter(|one| version.is_none_or(|version| version == *one))
            .filter(|one| self.is_deprecated(name, *one))
            .map(|version| format!("{name}.{version}"))
            .collect();
        let (Some(patch), false) = (self.patch, refused.is_empty()) else {
            let version = version.map_or(String::new(), |version| format!(".{version}"));
            let found = format!("none for {name}{version} ({opcode})");
            return Err(Error::value(wanted, found).hint(hint));
        };
        let wanted = format!("a definition that is valid at patch {patch}");
        let found = format!("only deprecated ones: {}", refused.join(", "));
        Err(Error::value(wanted, found))
    }

    /// The opcode given in JSON by name or number.
    fn named(&self, json: &Json) -> Result<(u16, Option<&Entry>)> {
        let opcode = match json {
            Json::String(name) => self.opcode(name).ok_or_else(|| {
                let error = Error::value("a name in the opcode map", format!("\"{name}\""));
                match nearest(name, self.names.iter().map(|(_, name)| name)) {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => error,
                }
            })?,
            number => json::integer(number, "a name, or a number from 0 to 65535")?,
        };
        Ok((opcode, self.by_opcode.get(&opcode)))
    }
}
