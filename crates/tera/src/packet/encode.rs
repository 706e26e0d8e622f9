//! Messages of JSON.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Result, Side, nearest};

use super::{Entry, Packets, find, subject};
use crate::file::library::sender;
use crate::frame::HEADER_BYTES;
use crate::message::{Fault, HeaderForm, Leniency};
use crate::schema::Definition;

impl Packets {
    /// Makes a message of JSON: `opcode` (a name or a number) with `fields`, and `version` for
    /// another definition than the build's; or `opcode` with `payload`. Fields with an `$integrity`
    /// get a header that has it, as it stands there: it takes the seed of the connection to make a
    /// checksum. Without one, messages of the build's list get two zeros, to be
    /// [filled in](crate::integrity); [`uncounted`](Self::uncounted) tells. The `length` is made
    /// anew, and a `revision`, by which packets are chosen, is passed over.
    ///
    /// # Errors
    /// Value, when the JSON is something else, or names what the build does not have. A version
    /// that is deprecated at the build's patch is only written if messages are read with it.
    pub fn encode_json(&self, json: &Json) -> Result<Vec<u8>> {
        self.encode_json_with(json, Leniency::Strict)
    }

    /// The same, as exact as wanted. What is lenient is also written with a deprecated version.
    ///
    /// # Errors
    /// As [`encode_json`](Self::encode_json).
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
        // A message that has counter and checksum shows them, whether a list names it or not.
        let sealed = fields.get("$integrity").is_some_and(|integrity| !integrity.is_null());
        if sealed && sender(definition.name()) == Some(Side::Server) {
            let found = "counter and checksum, which only clients send";
            let error = Error::value("a message of the server", found);
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

    /// The name of the message that JSON describes, if it is written with the counter 0, which no
    /// client sends: the build's list has it, and its fields have no `$integrity`.
    #[must_use]
    pub fn uncounted(&self, json: &Json) -> Option<&str> {
        let (_, entry) = self.named(json.get("opcode")?).ok()?;
        let entry = entry.filter(|entry| entry.form == HeaderForm::Integrity)?;
        let integrity = json.get("fields")?.get("$integrity");
        let counter = integrity.and_then(|integrity| integrity.get("counter"));
        counter.is_none_or(Json::is_null).then_some(&entry.name)
    }

    /// The definition to write a message with.
    fn to_write(
        &self,
        opcode: u16,
        entry: Option<&Entry>,
        version: Option<u32>,
        leniency: Leniency,
    ) -> Result<&Definition> {
        let wanted = "a definition of the message";
        let hint = "give the bytes as \"payload\", or the definition";
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
        let wanted = format!("a definition that may be written at patch {patch}");
        let found = format!("{}, deprecated there", refused.join(", "));
        Err(Error::value(wanted, found))
    }

    /// The opcode that JSON names.
    fn named(&self, json: &Json) -> Result<(u16, Option<&Entry>)> {
        let opcode = match json {
            Json::String(name) => self.opcode(name).ok_or_else(|| {
                let error = Error::value("a name of the map of opcodes", format!("\"{name}\""));
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
