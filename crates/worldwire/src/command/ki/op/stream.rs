//! How a stream is read and written, on the command line and beside objects in JSON.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use worldwire_ki::object::hints::Hints;
use worldwire_ki::object::{Header, MAGIC, ObjectOptions, STATEFUL};
use worldwire_ki::schema::classes::Classes;

use crate::cli::{Common, KiStream};
use crate::input;
use crate::output::Failure;
use crate::report;

/// What stands beside an object in JSON, so that the same bytes come back.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Stream {
    /// `BINd` in front.
    bind: bool,
    /// As files are, unless it is said.
    deep: Option<bool>,
    /// The flags stand in front.
    stateful: bool,
    flags: u32,
    mask: u32,
    envelope: bool,
    core: bool,
    skip_deprecated: bool,
    lenient: bool,
    /// Whether the object is compressed, and whether its envelope is.
    compressed: bool,
    packed: bool,
}

impl Default for Stream {
    fn default() -> Self {
        let ObjectOptions { flags, mask, .. } = ObjectOptions::default();
        let (bind, deep, stateful, envelope, core) = (false, None, false, false, false);
        let (skip_deprecated, lenient, compressed, packed) = (false, false, true, true);
        Self {
            bind,
            deep,
            stateful,
            flags,
            mask,
            envelope,
            core,
            skip_deprecated,
            lenient,
            compressed,
            packed,
        }
    }
}

impl Stream {
    /// What options and a header say.
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
        }
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
            lenient: self.lenient,
            null_root: true,
            ..ObjectOptions::default()
        };
        let header =
            Header { flags: self.flags, is_compressed: self.compressed, is_packed: self.packed };
        (options, header)
    }
}

/// What is known of itself, and what files say.
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

/// What the command line says about streams.
pub(in crate::command::ki) struct Choices<'c> {
    arguments: &'c KiStream,
    pub(super) hints: Hints,
}

impl<'c> Choices<'c> {
    pub(in crate::command::ki) fn new(arguments: &'c KiStream) -> Result<Self, Failure> {
        Ok(Self { arguments, hints: hints(&arguments.hints)? })
    }

    /// Reports which hints the type list makes useless.
    pub(super) fn check(&self, classes: &Classes, common: &Common) {
        tell_unknown(&self.hints, classes, common);
    }

    /// How these bytes are to be read.
    pub(super) fn of(&self, bytes: &[u8]) -> ObjectOptions {
        self.options(bytes.starts_with(MAGIC))
    }

    /// Whether objects are written as files: unless something is said that files do not have.
    pub(super) fn is_file(&self) -> bool {
        let KiStream { deep, shallow, flags, mask, envelope, core, .. } = self.arguments;
        !(*deep || *shallow || *envelope || *core || flags.is_some() || mask.is_some())
    }

    /// How an object is to be read or written, that is a file or is none.
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
            lenient: *lenient,
            null_root: true,
            ..base
        }
    }
}
