//! Objects as JSON, XML and text.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use worldwire_core::json::{Style, string};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Error, ErrorKind, Limits, Reader, Tree};
use worldwire_ki::file::lang::Locale;
use worldwire_ki::object::{Decoded, JsonWriter, Object, ObjectCodec, ObjectOptions, xml};
use worldwire_ki::schema::classes::Classes;

use super::stream::{Choices, Stream};
use crate::cli::KiObjectForm;
use crate::command::ki::lang;
use crate::output::complain;

/// Output options for objects.
pub(in crate::command::ki) struct Show<'s> {
    pub(in crate::command::ki) classes: &'s Classes,
    pub(in crate::command::ki) choices: &'s Choices<'s>,
    pub(in crate::command::ki) form: KiObjectForm,
    /// Whether to show the position of every value in text output.
    pub(in crate::command::ki) ranges: bool,
    pub(in crate::command::ki) colour: bool,
    /// Whether to suppress remarks.
    pub(in crate::command::ki) quiet: bool,
    pub(in crate::command::ki) limits: Limits,
    /// How numbers are written in JSON.
    pub(in crate::command::ki) style: Style,
    /// Whether to record a hash of the text, so that changes can be detected later. The output is
    /// then named after the file.
    pub(in crate::command::ki) seals: bool,
    /// The texts of codes. Text output shows them below the codes.
    pub(in crate::command::ki) locale: &'s Locale,
}

impl Show<'_> {
    /// The name of the result for a file with this name, such as `pet.xml.json`. XML keeps the name
    /// of the binary object.
    pub(in crate::command::ki) fn name(&self, name: &Path) -> PathBuf {
        let end = match self.form {
            KiObjectForm::Json => ".json",
            KiObjectForm::Xml if name.extension().is_some_and(|end| end == "xml") => "",
            KiObjectForm::Xml => ".xml",
            KiObjectForm::Text => ".txt",
        };
        let mut name: OsString = name.into();
        name.push(end);
        name.into()
    }

    /// The text of an object and whether the object was decoded completely, or the error.
    pub(in crate::command::ki) fn form(
        &self,
        bytes: &[u8],
        name: Option<&str>,
        subject: &str,
    ) -> Result<(Vec<u8>, bool), Vec<String>> {
        self.form_of(bytes, self.choices.of(bytes), name, subject)
    }

    /// Like [`Self::form`], for a stream in a known format.
    pub(super) fn form_of(
        &self,
        bytes: &[u8],
        options: ObjectOptions,
        name: Option<&str>,
        subject: &str,
    ) -> Result<(Vec<u8>, bool), Vec<String>> {
        match self.form {
            KiObjectForm::Json => {
                let mut out = Vec::new();
                let shown = self.json(bytes, options, name, subject, &mut out);
                shown.map(|()| (out, true)).map_err(|message| vec![message])
            }
            KiObjectForm::Xml => {
                let mut object = Object::within(&self.limits);
                let codec = ObjectCodec::new(self.classes, options);
                let decoded = codec.decode_all_within(bytes, &self.limits, &mut object);
                let text = decoded.and_then(|decoded| {
                    self.notes(&decoded, subject);
                    let text = xml::to_xml(self.classes, &[object])?;
                    let mut stream = Stream::new(codec.options(), decoded.header);
                    if self.seals {
                        stream.seal(text.as_bytes(), subject, bytes);
                    }
                    Ok(stream.to_mark() + &text)
                });
                text.map(|text| (text.into_bytes(), true))
                    .map_err(|error| vec![explained(error).to_string()])
            }
            KiObjectForm::Text => {
                let codec = ObjectCodec::new(self.classes, options);
                let mut reader = Reader::traced_within("input", bytes, Tree::new(), &self.limits);
                let outcome = codec.decode(&mut reader, &mut ()).and_then(|decoded| {
                    self.notes(&decoded, subject);
                    reader.end()
                });
                let tree = reader.conclude(outcome.map_err(|error| explained(error.closed()))).0;
                let mut out = String::new();
                if let Some(name) = name {
                    out.push_str(name);
                    out.push('\n');
                }
                let style = TextStyle {
                    ranges: self.ranges,
                    colour: self.colour,
                    longest: 0,
                    indent: if name.is_some() { 2 } else { 0 },
                };
                write_tree(&tree, style, &mut out);
                if !self.locale.is_empty() {
                    out = lang::explained(&out, self.locale);
                }
                Ok((out.into_bytes(), tree.error().is_none()))
            }
        }
    }

    /// Writes `{"file": ..., "object": ..., "stream": ...}` while the object is read.
    pub(super) fn json(
        &self,
        bytes: &[u8],
        options: ObjectOptions,
        name: Option<&str>,
        subject: &str,
        out: &mut impl std::io::Write,
    ) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("output: {error}");
        let codec = ObjectCodec::new(self.classes, options);
        let mut head = String::from("{");
        if let Some(name) = name {
            head.push_str("\"file\":");
            string(name, &mut head);
            head.push(',');
        }
        head.push_str("\"object\":");
        out.write_all(head.as_bytes()).map_err(failed)?;
        let mut text = Vec::new();
        let (decoded, is_wide) = if self.seals {
            let outcome = self.object(&codec, bytes, &mut text)?;
            out.write_all(&text).map_err(failed)?;
            outcome
        } else {
            self.object(&codec, bytes, out)?
        };
        self.notes(&decoded, subject);
        let mut stream = Stream::new(codec.options(), decoded.header);
        if is_wide {
            stream.watch();
        }
        if self.seals {
            stream.seal(&text, subject, bytes);
        }
        writeln!(out, ",\"stream\":{}}}", stream.to_json()).map_err(failed)
    }

    /// Whether an object can be read completely.
    pub(super) fn check(&self, bytes: &[u8], options: ObjectOptions) -> Result<(), String> {
        let codec = ObjectCodec::new(self.classes, options);
        let decoded = codec.decode_all_within(bytes, &self.limits, &mut ());
        decoded.map(drop).map_err(|error| explained(error).to_string())
    }

    /// Writes the bare object while it is read; returns whether it contains integers that a double
    /// cannot represent.
    fn object(
        &self,
        codec: &ObjectCodec<'_>,
        bytes: &[u8],
        out: &mut impl std::io::Write,
    ) -> Result<(Decoded, bool), String> {
        let mut writer = JsonWriter::new(out, self.style);
        let decoded = codec.decode_all_within(bytes, &self.limits, &mut writer);
        let is_wide = writer.has_wide_numbers();
        let finished = writer.finish();
        let decoded = decoded.map_err(|error| explained(error).to_string())?;
        finished.map_err(|error| error.to_string())?;
        Ok((decoded, is_wide))
    }

    /// Remarks about irregularities.
    fn notes(&self, decoded: &Decoded, subject: &str) {
        if !self.quiet {
            for note in &decoded.notes {
                complain(subject, &note.to_string());
            }
        }
    }
}

/// An error with a hint.
fn explained(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Limit { name: "object values", .. } => {
            error.hint("--values-per-byte allows more")
        }
        _ => error,
    }
}
