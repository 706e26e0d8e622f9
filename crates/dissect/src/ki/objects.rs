//! Game objects inside messages.

use std::sync::{Arc, LazyLock};

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Diagnostic, Error, Reader, Result, TreeBuilder};
use worldwire_ki::message::Values;
use worldwire_ki::object::hints::{FieldHints, Hints};
use worldwire_ki::object::{
    ENVELOPE_STORED, FLAG_NAMES, Header, Object, ObjectCodec, ObjectOptions, ZLIB,
};
use worldwire_ki::schema::classes::Classes;
use worldwire_ki::schema::{Message, Protocols};
use worldwire_ki::types::FieldValue;

use crate::knowledge::Definitions;

/// The classes of game objects, and the message fields that hold them.
#[derive(Clone, Debug)]
pub struct KiObjects {
    classes: Option<Arc<Classes>>,
    hints: Hints,
    fields: FieldHints,
}

impl Default for KiObjects {
    fn default() -> Self {
        Self::new(&Protocols::new())
    }
}

impl KiObjects {
    pub(crate) fn new(protocols: &Protocols) -> Self {
        let hints = Hints::built_in();
        Self { classes: None, fields: hints.fields(protocols), hints }
    }

    /// The classes, if a type list was given.
    #[must_use]
    pub fn classes(&self) -> Option<&Arc<Classes>> {
        self.classes.as_ref()
    }

    /// What is known about fields that hold objects.
    #[must_use]
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// The fields of a message that are expected to hold objects.
    pub fn fields<'f>(&'f self, message: &'f Message) -> impl Iterator<Item = &'f str> {
        self.fields.of(message)
    }

    /// Warnings once everything is loaded: hints that name unknown messages, fields or classes.
    #[must_use]
    pub fn warnings(&self, protocols: &Protocols) -> Vec<Diagnostic> {
        let mut diagnostics = self.hints.unknown_fields(protocols);
        if let Some(classes) = &self.classes {
            diagnostics.extend(self.hints.unknown_classes(classes));
        }
        diagnostics
    }

    /// Sets the classes of type lists.
    pub fn set_classes(&mut self, classes: Arc<Classes>) {
        self.classes = Some(classes);
    }

    pub(crate) fn add_hints(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        self.hints.add(name, text).err().unwrap_or_default()
    }

    /// Matches the hints with the fields of these definitions.
    pub(crate) fn resolve(&mut self, protocols: &Protocols) {
        self.fields = self.hints.fields(protocols);
    }

    /// The codec for the object in a field that is expected to hold one. The object can be null.
    fn known(&self, (service, order): (u8, u8), field: &str) -> Option<ObjectCodec<'_>> {
        let options = self.fields.get(service, order, field)?;
        let options = ObjectOptions { null_root: true, ..options.clone() };
        Some(ObjectCodec::new(self.classes.as_ref()?, options))
    }
}

impl<'n> Opener<'n> for KiObjects {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.known(message(site), site.field).is_some()
    }

    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        let Some(codec) = self.known(message(site), site.field) else { return Ok(()) };
        let start = reader.place();
        let bytes = reader.take(reader.remaining())?.to_vec();
        reader.layer("object", start, bytes, |reader| {
            codec.decode(reader, &mut ())?;
            reader.end()
        })
    }
}

impl Closer for KiObjects {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        if json.get("object").is_none() {
            return Ok(None);
        }
        let Some(codec) = self.known(message(site), site.field) else {
            let error = Error::invalid("cannot be encoded without a type list that describes it");
            return Err(error.hint("supply one with --data, or keep only \"bytes\" here"));
        };
        let mut parts = FieldsOf::new(json)?;
        let plain = |json| json::text(json, |text| text.as_bytes().to_vec());
        let before = parts.take_optional("bytes").map(plain).transpose();
        let before = before.map_err(|error| error.inside("bytes"))?;
        let (object, header) = object_from_json(parts, &codec)?;
        match before {
            Some(bytes) if is_unchanged(&bytes, &object, header, &codec) => Ok(Some(bytes)),
            _ => codec.encode(&object, header).map(Some),
        }
    }
}

/// KI's definitions of game objects.
pub(crate) fn objects(definitions: &Definitions) -> &KiObjects {
    static NONE: LazyLock<KiObjects> = LazyLock::new(KiObjects::default);
    definitions.get_ref::<KiObjects>().unwrap_or_else(|| &NONE)
}

/// Service and order of the message that contains a field.
pub(super) fn message(site: Site<'_>) -> (u8, u8) {
    let [order, service, ..] = site.message.number.to_le_bytes();
    (service, order)
}

/// Whether these bytes encode this object. If so, they are kept bit for bit, because JSON lacks
/// their order and padding.
fn is_unchanged(bytes: &[u8], object: &Object, header: Header, codec: &ObjectCodec<'_>) -> bool {
    let mut read = Object::new();
    let decoded = codec.decode_all(bytes, &mut read);
    if !decoded.is_ok_and(|decoded| decoded.header == header) {
        return false;
    }
    // In JSON every property occurs once, in any order.
    let json = read.to_json(codec.classes()).ok().and_then(|text| json::parse(&text).ok());
    json.is_some_and(|json| Object::from_json(codec.classes(), &json).as_ref() == Ok(object))
}

/// Reads an object and its headers from JSON in the form that a traced decode shows.
pub(super) fn object_from_json(
    mut parts: FieldsOf<'_>,
    codec: &ObjectCodec<'_>,
) -> Result<(Object, Header)> {
    let mut header = codec.header();
    header.is_compressed = false;
    header.is_packed = codec.options().envelope;
    if header.is_packed && parts.has("envelope") {
        header.is_packed = parts.value::<u32>("envelope")? & ENVELOPE_STORED == 0;
    }
    if codec.options().is_stateful()
        && let Some(flags) = parts.take_optional("flags")
    {
        let flags = json::flags(flags, &FLAG_NAMES).map_err(|error| error.inside("flags"))?;
        header.flags = u32::try_from(flags)
            .map_err(|_| Error::value("flags of 32 bits", flags.to_string()).inside("flags"))?;
    }
    if header.flags & ZLIB != 0 && parts.has("compressed") {
        header.is_compressed = parts.value::<u8>("compressed")? != 0;
    }
    if header.is_compressed {
        parts.take_optional("size");
    }
    let object = Object::from_json(codec.classes(), parts.take("object")?)
        .map_err(|error| error.inside("object"))?;
    parts.end()?;
    Ok((object, header))
}

/// A remark about a message in which a field is expected to hold an object but cannot be read as
/// one.
pub(crate) fn unreadable(
    (service, order): (u8, u8),
    payload: &[u8],
    protocols: &Protocols,
    objects: &KiObjects,
) -> Option<String> {
    objects.classes.as_ref()?;
    let message = protocols.message(service, order)?;
    let hinted = |(index, field): (usize, &worldwire_ki::schema::FieldDef)| {
        objects.known((service, order), &field.name).map(|known| (index, known))
    };
    let mut hinted = message.fields().iter().enumerate().filter_map(hinted).peekable();
    hinted.peek()?;
    let mut values = Values::new();
    let mut reader = Reader::new(payload);
    message.decode(&mut reader, &mut values).ok()?;
    hinted.find_map(|(index, codec)| {
        let Some(FieldValue::Str(text)) = values.fields().get(index) else { return None };
        let bytes = text.as_bytes();
        let outcome = if bytes.is_empty() { None } else { codec.decode_all(bytes, &mut ()).err() };
        let (field, error) = (&message.fields().get(index)?.name, outcome?);
        let name = protocols.name(message);
        let what = "is shown as bytes because it cannot be decoded with this type list and hint";
        Some(format!("{name}.{field} {what}: {error}"))
    })
}
