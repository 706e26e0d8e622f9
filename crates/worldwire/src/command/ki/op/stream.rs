//! The format of a stream, from the command line or stored beside objects in JSON and XML.

use std::path::PathBuf;
use std::sync::Arc;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use worldwire_core::value::push_hex;
use worldwire_ki::object::hints::Hints;
use worldwire_ki::object::{Header, MAGIC, ObjectOptions, STATEFUL, ZLIB};
use worldwire_ki::schema::classes::Classes;

use crate::cli::{Common, KiStream, KiStreamForm};
use crate::input;
use crate::output::Failure;
use crate::report;

/// An integer that a double cannot represent. Programs that parse numbers as doubles change it.
const CANARY: u64 = (1 << 53) + 1;
/// Delimiters of the comment that records the stream format of an object in XML.
const MARK: (&str, &str) = ("<!-- worldwire ", " -->");

/// The stream format, stored beside an object in JSON and in a comment before it in XML, so that
/// encoding returns the same bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Stream {
    /// Whether the stream follows `BINd`.
    bind: bool,
    /// Whether the stream is deep. The default is the form used in files.
    deep: Option<bool>,
    /// Whether the stream begins with its flags.
    stateful: bool,
    flags: u32,
    mask: u32,
    envelope: bool,
    core: bool,
    skip_deprecated: bool,
    lenient: bool,
    /// Whether the object is compressed and whether its envelope is.
    compressed: bool,
    packed: bool,
    /// [`CANARY`], stored beside integers that a double cannot represent: if it is intact, so are
    /// they.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<Number>,
    /// A hash of the bytes that the object was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// A hash of the written text, stream format and name of the object: an unchanged object need
    /// not be encoded again.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl Default for Stream {
    fn default() -> Self {
        let options = ObjectOptions::default();
        let header = Header { flags: options.flags, is_compressed: true, is_packed: true };
        Self { deep: None, ..Self::new(&options, header) }
    }
}

impl Stream {
    /// The format given by options and a header.
    pub(super) fn new(options: &ObjectOptions, header: Header) -> Self {
        Self {
            bind: options.magic,
            deep: Some(options.deep),
            stateful: options.is_stateful(),
            flags: header.flags,
            mask: options.mask,
            envelope: options.envelope,
            core: options.core.is_some(),
            skip_deprecated: options.skip_deprecated,
            lenient: options.lenient,
            compressed: header.is_compressed,
            packed: header.is_packed,
            exact: None,
            source: None,
            digest: None,
        }
    }

    /// Records that the text contains integers that a double cannot represent.
    pub(super) fn watch(&mut self) {
        self.exact = Some(CANARY.into());
    }

    /// Whether large integers survived editing; `None` if that was not recorded.
    pub(super) fn is_exact(&self) -> Result<Option<()>, String> {
        match &self.exact {
            None => Ok(None),
            Some(number) if number.as_u64() == Some(CANARY) => Ok(Some(())),
            Some(number) => Err(format!(
                "stream.exact: wanted {CANARY}, found {number}: another program rounded it \
                 to a double, so other integers may also be wrong; decode with --json-safe"
            )),
        }
    }

    /// Records hashes of the object's text and name, and of the bytes it was read from.
    pub(super) fn seal(&mut self, text: &[u8], name: &str, source: &[u8]) {
        self.source = Some(hash(&[source]));
        self.digest = Some(self.digest_of(text, name));
    }

    /// The hash of the bytes that the object was read from, if its text was recorded.
    pub(super) fn source(&self) -> Option<&str> {
        self.source.as_deref().filter(|_| self.digest.is_some())
    }

    /// Whether this is the recorded text of the object with this name.
    pub(super) fn is_of(&self, text: &[u8], name: &str) -> bool {
        self.digest.as_ref().is_some_and(|digest| *digest == self.digest_of(text, name))
    }

    fn digest_of(&self, text: &[u8], name: &str) -> String {
        let deep = Some(self.deep.unwrap_or(self.bind));
        let stream = Self { digest: None, exact: None, deep, ..self.clone() }.to_json();
        hash(&[text, stream.as_bytes(), name.as_bytes()])
    }

    pub(super) fn to_json(&self) -> String {
        // All map keys are strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The comment before an object in XML: everything that differs from the default.
    pub(super) fn to_mark(&self) -> String {
        let usual = serde_json::to_value(Self { deep: Some(self.bind), ..Self::default() });
        let mut said = serde_json::to_value(self).unwrap_or_default();
        if let (Ok(usual), Some(said)) = (usual, said.as_object_mut()) {
            said.retain(|key, value| usual.get(key) != Some(value));
        }
        format!("{}{said}{}\n", MARK.0, MARK.1)
    }

    /// The contents of the comment before the XML, and the XML after it. `None` if there is no such
    /// comment.
    pub(super) fn of_mark(text: &str) -> Option<(Result<Self, String>, &str)> {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
        let (json, rest) = rest.strip_prefix(MARK.0)?.split_once(MARK.1)?;
        let stream = serde_json::from_str(json).map_err(|error| error.to_string());
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        Some((stream, rest))
    }

    /// Applies overrides from the command line.
    pub(super) fn changed_by(mut self, choices: &Choices<'_>) -> Self {
        let KiStream {
            deep, shallow, flags, mask, envelope, core, skip_deprecated, lenient, ..
        } = choices.arguments;
        if let Some(form) = choices.form {
            // A file is deep, whatever the stream was; a stream without `BINd` stays deep.
            self.deep = Some(form == KiStreamForm::Bind || self.deep.unwrap_or(self.bind));
            self.bind = form == KiStreamForm::Bind;
        }
        if *deep || *shallow {
            self.deep = Some(*deep);
        }
        if let Some(flags) = *flags {
            // Add compression if the flags require it. Write flags before a bare stream only if the
            // flags themselves require that.
            let adds = |bit| flags & bit != 0 && self.flags & bit == 0;
            self.compressed |= adds(ZLIB);
            if !self.bind {
                self.stateful = flags & STATEFUL != 0;
            }
            self.flags = flags;
        }
        self.mask = mask.unwrap_or(self.mask);
        self.envelope |= *envelope;
        self.core |= *core;
        self.skip_deprecated |= *skip_deprecated;
        self.lenient |= *lenient;
        self
    }

    /// The options and the header to write with.
    pub(super) fn open(&self, choices: &Choices<'_>) -> (ObjectOptions, Header) {
        let options = ObjectOptions {
            flags: if self.stateful { self.flags | STATEFUL } else { self.flags },
            mask: self.mask,
            deep: self.deep.unwrap_or(self.bind),
            envelope: self.envelope,
            magic: self.bind,
            core: self.core.then(|| Arc::clone(choices.hints.core())),
            skip_deprecated: self.skip_deprecated,
            // A recorded mask must not drop any properties; one from the command line selects
            // properties.
            masked: choices.arguments.mask.is_some(),
            lenient: self.lenient,
            null_root: true,
            ..ObjectOptions::default()
        };
        let header =
            Header { flags: self.flags, is_compressed: self.compressed, is_packed: self.packed };
        (options, header)
    }
}

/// A hash of parts, in hexadecimal.
pub(in crate::command::ki) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    let mut digits = String::new();
    push_hex(&mut digits, &hash.finalize());
    digits
}

/// The built-in pairs and those from files.
pub(super) fn hints(files: &[PathBuf]) -> Result<Hints, Failure> {
    let mut hints = Hints::built_in();
    for file in files {
        let text = input::read_text(file)?;
        if let Err(errors) = hints.add(&file.display().to_string(), &text) {
            report::diagnostics(&errors);
            return Err(Failure::Input);
        }
    }
    Ok(hints)
}

/// Reports pairs whose classes are in no type list.
pub(super) fn tell_unknown(hints: &Hints, classes: &Classes, common: &Common) {
    if !common.quiet {
        report::diagnostics(&hints.unknown_classes(classes));
    }
}

/// Options about streams from the command line.
pub(in crate::command::ki) struct Choices<'c> {
    arguments: &'c KiStream,
    /// Whether objects are written as files, if specified.
    form: Option<KiStreamForm>,
    pub(super) hints: Hints,
}

impl<'c> Choices<'c> {
    pub(in crate::command::ki) fn new(arguments: &'c KiStream) -> Result<Self, Failure> {
        Self::writing(arguments, None)
    }

    /// The options, with the form in which objects are written.
    pub(in crate::command::ki) fn writing(
        arguments: &'c KiStream,
        form: Option<KiStreamForm>,
    ) -> Result<Self, Failure> {
        Ok(Self { arguments, form, hints: hints(&arguments.hints)? })
    }

    /// Whether any option specifies how objects are written.
    pub(super) fn say_something(&self) -> bool {
        let KiStream { skip_deprecated, lenient, .. } = self.arguments;
        self.form.is_some() || !self.is_file() || *skip_deprecated || *lenient
    }

    /// The format for objects that do not record their own.
    pub(super) fn of_text(&self) -> ObjectOptions {
        self.options(match self.form {
            Some(form) => form == KiStreamForm::Bind,
            None => self.is_file(),
        })
    }

    /// Whether objects lose `BINd` through options that are also valid for files.
    pub(super) fn drop_bind(&self) -> bool {
        let KiStream { shallow, envelope, core, .. } = self.arguments;
        self.form.is_none() && !self.is_file() && !(*shallow || *envelope || *core)
    }

    /// Reports which hints are useless because of the type list.
    pub(in crate::command::ki) fn check(&self, classes: &Classes, common: &Common) {
        tell_unknown(&self.hints, classes, common);
    }

    /// The format in which to read these bytes.
    pub(super) fn of(&self, bytes: &[u8]) -> ObjectOptions {
        self.options(bytes.starts_with(MAGIC))
    }

    /// Whether objects are written as files: always, unless an option is invalid for files.
    pub(in crate::command::ki) fn is_file(&self) -> bool {
        let KiStream { deep, shallow, flags, mask, envelope, core, .. } = self.arguments;
        !(*deep || *shallow || *envelope || *core || flags.is_some() || mask.is_some())
    }

    /// The format in which to read or write an object, as a file or as a bare stream.
    pub(super) fn options(&self, is_file: bool) -> ObjectOptions {
        let KiStream {
            deep, shallow, flags, mask, envelope, core, skip_deprecated, lenient, ..
        } = self.arguments;
        let base = if is_file { ObjectOptions::file() } else { ObjectOptions::default() };
        ObjectOptions {
            deep: (base.deep || *deep) && !*shallow,
            flags: flags.unwrap_or(base.flags),
            mask: mask.unwrap_or(base.mask),
            envelope: *envelope,
            core: core.then(|| Arc::clone(self.hints.core())),
            skip_deprecated: *skip_deprecated,
            masked: mask.is_some(),
            lenient: *lenient,
            null_root: true,
            ..base
        }
    }
}
