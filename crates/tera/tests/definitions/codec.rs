//! Checks messages against their definitions.

use worldwire_core::json::{Json, Style, json, write_children};
use worldwire_core::testing::hex;
use worldwire_core::value::parse_hex;
use worldwire_core::{Reader, Tree, Value};
use worldwire_tera::message::{
    Datum, Fault, Head, HeaderForm, Integrity, Item, Leniency, NoteKind, Tape, Value as Fields,
    View,
};
use worldwire_tera::schema::plan::{Field, FieldKind};
use worldwire_tera::schema::{Definition, Dialect, FileName, ParseOptions, Plan};

use super::{Outcome, check, error_of, expect, number, text};

fn shown(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A message's plan and header.
pub(crate) struct Message<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) opcode: u16,
    pub(crate) form: HeaderForm,
}

impl Message<'_> {
    fn head(&self) -> Head {
        let integrity = match self.form {
            HeaderForm::Plain => None,
            HeaderForm::Integrity => Some(Integrity::default()),
        };
        Head { opcode: self.opcode, integrity }
    }

    /// Encodes a value, in the spelling of the vectors.
    pub(crate) fn encode(
        &self,
        value: &Json,
        leniency: Leniency,
    ) -> worldwire_core::Result<Vec<u8>> {
        let value =
            self.plan.value_from_json(&convert(self.plan.fields(), self.plan, value), leniency)?;
        let mut out = Vec::new();
        self.plan.encode_with(self.head(), &value, leniency, &mut out)?;
        Ok(out)
    }

    /// The JSON of a message's tree.
    fn json(&self, bytes: &[u8]) -> worldwire_core::Result<Json> {
        let mut reader = Reader::traced("message", bytes, Tree::new());
        let outcome = self.plan.decode(&mut reader, self.form);
        let (tree, outcome) = reader.conclude(outcome);
        outcome?;
        let mut json = String::new();
        write_children(Value::Record, tree.roots(), Style::default(), &mut json);
        Ok(serde_json::from_str(&json).expect("JSON that was written can be read"))
    }

    /// Decodes bytes in every way and compares the results; encodes them again from the message and
    /// from JSON.
    pub(crate) fn decode(&self, bytes: &[u8], wanted: &Json) -> Outcome {
        let message = self.plan.read(bytes, self.form).map_err(shown)?;
        let wanted = convert(self.plan.fields(), self.plan, wanted);
        let value = self.plan.value_from_json(&wanted, Leniency::Strict).map_err(shown)?;
        // Copies of a field have one value in the vectors, so they are compared by their encoding.
        if self.plan.fields().iter().any(|field| field.name().contains('#')) {
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            self.plan.encode(message.head(), message.fields(), &mut found).map_err(shown)?;
            self.plan.encode(message.head(), &value, &mut wanted).map_err(shown)?;
            check(found == wanted, "different values")?;
        } else {
            let (found, value) = (format!("{:?}", message.fields()), format!("{value:?}"));
            check(found == value, format!("wanted {value}\n found {found}"))?;
        }
        let mut again = Vec::new();
        message.encode(self.plan, &mut again).map_err(shown)?;
        check(again == bytes, "encodes to different bytes")?;
        if message.notes().is_empty() {
            again.clear();
            self.plan.encode(message.head(), message.fields(), &mut again).map_err(shown)?;
            check(again == bytes, "canonical, but its values encode to different bytes")?;
        }
        let json = self.json(bytes).map_err(shown)?;
        again.clear();
        let (plan, form) = (self.plan, self.form);
        plan.encode_json(self.opcode, form, &json, Leniency::Strict, &mut again).map_err(shown)?;
        check(again == bytes, format!("JSON encodes to different bytes: {json}"))?;
        self.view(bytes)
    }

    /// Encodes values, decodes them in every way, and tries every truncation.
    pub(crate) fn round_trip(&self, value: &Fields<'_>) -> Outcome {
        let (plan, form) = (self.plan, self.form);
        let mut bytes = Vec::new();
        plan.encode(self.head(), value, &mut bytes).map_err(shown)?;
        let message = plan.read(&bytes, form).map_err(shown)?;
        check(message.notes().is_empty(), format!("{:?}", message.notes()))?;
        let (found, wanted) = (format!("{:?}", message.fields()), format!("{value:?}"));
        check(found == wanted, format!("wanted {wanted}\n found {found}"))?;
        let json = self.json(&bytes).map_err(shown)?;
        let mut again = Vec::new();
        plan.encode_json(self.opcode, form, &json, Leniency::Strict, &mut again).map_err(shown)?;
        check(again == bytes, format!("JSON encodes to different bytes: {json}"))?;
        for length in 0..bytes.len() {
            let mut piece = bytes[..length].to_vec();
            check(plan.check(&piece, form).is_err(), format!("{length} bytes are enough"))?;
            if let Some(word) = piece.get_mut(..2) {
                word.copy_from_slice(&u16::try_from(length).map_err(shown)?.to_le_bytes());
            }
            check(plan.check(&piece, form).is_err(), format!("{length} bytes pass as a message"))?;
        }
        self.view(&bytes)
    }

    /// Checks that non-canonical bytes survive JSON, and that viewed fields have the right values.
    pub(crate) fn stays(&self, bytes: &[u8]) -> Outcome {
        let json = self.json(bytes).map_err(shown)?;
        let (plan, form, mut again) = (self.plan, self.form, Vec::new());
        plan.encode_json(self.opcode, form, &json, Leniency::Strict, &mut again).map_err(shown)?;
        check(again == bytes, format!("JSON encodes to different bytes: {json}"))?;
        self.view(bytes)
    }

    /// Checks that every viewed field has the value that the message has.
    fn view(&self, bytes: &[u8]) -> Outcome {
        let view = View::new(self.plan, bytes, self.form).map_err(shown)?;
        let message = self.plan.read(bytes, self.form).map_err(shown)?;
        let worldwire_tera::message::Value::Record(values) = message.fields() else {
            return Err("no record".into());
        };
        for ((name, item), value) in view.fields().iter().zip(values) {
            let found = item.map(render).map_err(shown)?;
            let wanted = Some(format!("{value:?}"));
            check(
                wanted.as_ref() == Some(&found),
                format!("{name}: wanted {wanted:?}, viewed {found}"),
            )?;
        }
        self.tape(bytes)
    }

    /// Checks that a tape holds the same values as a message and encodes to the same bytes, even if
    /// all values are set on it one by one.
    fn tape(&self, bytes: &[u8]) -> Outcome {
        self.checked(bytes)?;
        let plan = self.plan;
        let mut message = plan.read(bytes, self.form).map_err(shown)?;
        let mut tape = Tape::new();
        plan.read_into(bytes, self.form, &mut tape).map_err(shown)?;
        let found = Datum::Record(tape.fields(plan)).to_value();
        let (found, wanted) = (format!("{found:?}"), format!("{:?}", message.fields()));
        check(found == wanted, format!("wanted {wanted}, on the tape {found}"))?;
        let same = tape.head() == message.head() && tape.notes() == message.notes();
        check(
            same && tape.trailing() == message.trailing(),
            "heads, notes or trailing bytes differ",
        )?;
        let (mut of_tape, mut of_message) = (Vec::new(), Vec::new());
        tape.encode(plan, &mut of_tape).map_err(shown)?;
        check(of_tape == bytes, "the tape encodes to different bytes")?;
        // From here on, both are re-encoded. A message with shared bodies may then become too long.
        tape.head_mut();
        message.head_mut();
        of_tape.clear();
        let outcomes = (
            tape.encode(plan, &mut of_tape).is_ok(),
            message.encode(plan, &mut of_message).is_ok(),
        );
        check(outcomes.0 == outcomes.1 && of_tape == of_message, "re-encoded, they differ")?;
        if !outcomes.0 {
            return Ok(());
        }
        let (mut zeros, mut canonical) = (Vec::new(), Vec::new());
        plan.encode(message.head(), &Fields::Absent, &mut zeros).map_err(shown)?;
        plan.encode(message.head(), message.fields(), &mut canonical).map_err(shown)?;
        plan.read_into(&zeros, self.form, &mut tape).map_err(shown)?;
        let Fields::Record(values) = message.fields() else { return Err("no record".to_owned()) };
        for (field, value) in plan.fields().iter().zip(values) {
            tape.set(plan, field.name(), value).map_err(shown)?;
        }
        of_tape.clear();
        tape.encode(plan, &mut of_tape).map_err(shown)?;
        check(of_tape == canonical, "a tape with all values set encodes to different bytes")
    }
}

/// Formats a viewed item like a value.
fn render(item: Item<'_, '_, '_>) -> String {
    match item {
        Item::Scalar(value) => format!("{value:?}"),
        Item::Text(text) => format!("Text({text:?})"),
        Item::Bytes(bytes) => format!("Bytes({bytes:?})"),
        Item::List(list) => {
            let items: Vec<_> = list.iter().map(|item| render(item.expect("an element"))).collect();
            format!("List([{}])", items.join(", "))
        }
        Item::Record(record) => {
            let fields: Vec<_> =
                record.iter().map(|(_, item)| render(item.expect("a field"))).collect();
            format!("Record([{}])", fields.join(", "))
        }
    }
}

/// Converts a value from the spelling of the vectors to ours, which differs for bytes and UTF-16
/// units.
pub(crate) fn convert(fields: &[Field], plan: &Plan, json: &Json) -> Json {
    let Json::Object(object) = json else { return json.clone() };
    let field = |(name, value): (&str, &Json)| {
        let field = fields.iter().find(|field| field.name() == name);
        let value = field.map_or_else(|| value.clone(), |field| one(field, plan, value));
        (name.to_owned(), value)
    };
    Json::Object(object.iter().map(field).collect())
}

fn one(field: &Field, plan: &Plan, json: &Json) -> Json {
    match (field.kind(), json) {
        (FieldKind::Bytes { .. }, Json::String(hex)) => json!({ "$hex": hex }),
        (FieldKind::Text { .. }, Json::Object(units)) => {
            let units = units["utf16"].as_array().expect("units").iter();
            let units =
                units.map(|unit| u16::try_from(unit.as_u64().expect("a unit")).expect("a unit"));
            let bytes: Vec<String> =
                units.flat_map(u16::to_le_bytes).map(|byte| format!("{byte:02x}")).collect();
            json!({ "$hex": bytes.concat() })
        }
        (FieldKind::Array { scope, .. }, Json::Array(items)) => {
            let (fields, single) = plan.element(*scope);
            let item = |item: &Json| match fields {
                [field] if single => one(field, plan, item),
                fields if item.is_null() => convert(fields, plan, &json!({})),
                fields => convert(fields, plan, item),
            };
            items.iter().map(item).collect()
        }
        (FieldKind::Row(range), Json::Array(items)) => {
            let fields = plan.fields_of(range).iter().zip(items);
            fields.map(|(field, item)| one(field, plan, item)).collect()
        }
        (FieldKind::Object(range), json) => convert(plan.fields_of(range), plan, json),
        _ => json.clone(),
    }
}

/// Runs a case from one of the codec files.
pub(crate) fn codec(file: &str, case: &Json) -> Outcome {
    let expect = expect(case)?;
    let dialect = match file {
        "codec_legacy_meta" => Some(Dialect::Legacy),
        "codec_ref" | "codec_subtype" => Some(Dialect::Toolbox),
        "codec_proto_dialect" => Some(Dialect::Proto),
        _ => None,
    };
    let patch = case.get("patch").map(|patch| patch.to_string().parse());
    let options = ParseOptions {
        dialect,
        patch: patch.transpose().map_err(|_| "no patch")?,
        ..ParseOptions::default()
    };
    let name = FileName::parse("S_CASE.1.def").map_err(|_| "no file name")?;
    let definition = match Definition::parse(&name, text(case, "def")?, &options) {
        Ok(definition) => definition,
        Err(problems) => {
            let wanted = error_of(expect).unwrap_or("none");
            return check(wanted.starts_with("definition error"), format!("{problems:?}"));
        }
    };
    let opcode = u16::try_from(number(case, "opcode")?).map_err(|_| "no opcode")?;
    let integrity = case.get("integrity") == Some(&Json::Bool(true));
    let form = if integrity { HeaderForm::Integrity } else { HeaderForm::Plain };
    let message = Message { plan: definition.plan(), opcode, form };
    let value = case.get("value").ok_or("no value")?;
    if let Some(wanted) = error_of(expect) {
        let error = match message.encode(value, Leniency::Strict) {
            Ok(bytes) => {
                return Err(format!("encoded to {bytes:02x?}, though {wanted} was wanted"));
            }
            Err(error) => Fault::of(&error).ok_or_else(|| error.to_string())?,
        };
        let lenient = message.encode(value, Leniency::Lenient).map_err(shown)?;
        check(lenient == hex(expect, "lenient_bytes")?, "lenient bytes")?;
        return match (wanted, error) {
            ("value out of range", Fault::ValueOutOfRange)
            | ("string contains NUL", Fault::StringContainsNul) => Ok(()),
            _ => Err(format!("wanted {wanted}, found {error}")),
        };
    }
    let bytes = hex(expect, "bytes")?;
    // Values include fields that do not exist at the patch.
    let leniency = if patch.is_some() { Leniency::Lenient } else { Leniency::Strict };
    let encoded = message.encode(value, leniency).map_err(shown)?;
    check(encoded == bytes, format!("encoded to {encoded:02x?}"))?;
    message.decode(&bytes, expect.get("decoded").ok_or("no decoded")?)
}

/// Runs a case with malformed bytes.
pub(crate) fn malformed(case: &Json) -> Outcome {
    let expect = expect(case)?;
    let name = FileName::parse("S_CASE.1.def").map_err(|_| "no file name")?;
    let definition = Definition::parse(&name, text(case, "def")?, &ParseOptions::default());
    let definition = definition.map_err(|problems| format!("{problems:?}"))?;
    let plan = definition.plan();
    let bytes = parse_hex(text(case, "bytes")?).ok_or("no bytes")?;
    let notes = plan.check(&bytes, HeaderForm::Plain);
    if let Some(wanted) = error_of(expect) {
        let Err(error) = notes else {
            return Err(format!("read, though {wanted} was wanted"));
        };
        let fault = Fault::of(&error).ok_or_else(|| error.to_string())?;
        check(fault.name() == wanted, format!("wanted {wanted}, found {fault}"))?;
        let mut reader = Reader::traced("message", &bytes, Tree::new());
        let traced = plan.decode(&mut reader, HeaderForm::Plain);
        let title = definition.title().to_owned();
        let traced = traced.map_err(|error| error.about(title));
        return check(traced == Err(error), "the traced decoder fails differently");
    }
    let notes = notes.map_err(shown)?;
    match expect.get("diagnostic").and_then(Json::as_str) {
        None => check(notes.is_empty(), format!("{notes:?}"))?,
        Some(wanted) => {
            let found = notes
                .list()
                .iter()
                .map(|note| note.kind)
                .any(|kind: NoteKind| kind.name() == wanted);
            check(found, format!("wanted {wanted}, found {notes:?}"))?;
        }
    }
    let opcode = u16::from_le_bytes([bytes[2], bytes[3]]);
    let message = Message { plan, opcode, form: HeaderForm::Plain };
    message.decode(&bytes, expect.get("decoded").ok_or("no decoded")?)
}
