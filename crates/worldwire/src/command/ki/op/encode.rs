//! `worldwire ki op encode`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::de::IgnoredAny;
use worldwire_core::Limits;
use worldwire_core::value::push_hex;

use super::batch::{Batch, Converted};
use super::encoder::{Encoder, Found};
use super::inputs::{self, Input};
use super::stream::Choices;
use crate::cli::{Common, KiOpEncode};
use crate::command::ki::loader::Loader;
use crate::output::{Failure, complain, print, printable, write_all};
use crate::types;

pub(super) fn run(arguments: &KiOpEncode, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    let choices = Choices::writing(&arguments.stream, arguments.form)?;
    choices.check(&classes, common);
    let encoder = Encoder::new(Some(&classes), &choices, arguments.complete, arguments.all);
    inputs::with(&arguments.inputs, &Limits::DEFAULT, |inputs| {
        if let [only] = inputs
            && !only.is_found
        {
            return one(&encoder, &choices, only, arguments, common);
        }
        let folder = arguments.target.output.as_deref();
        let Some(folder) = folder.filter(|_| !arguments.target.is_stdout()) else {
            return Err(Failure::Run(
                "to write several files, use --output with a directory".to_owned(),
            ));
        };
        several(&encoder, inputs, folder, arguments, common)
    })
}

/// The original name of a file that `decode` called `pet.xml.json`.
pub(in crate::command::ki) fn encoded_name(name: &Path) -> PathBuf {
    match name.extension() {
        Some(end) if end == "json" => name.with_extension(""),
        _ => name.to_owned(),
    }
}

/// The name of an object in the form used in archives.
fn name_of(input: &Input<'_>) -> String {
    let name = encoded_name(&input.name);
    let parts = name.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

/// Encodes a single input; its result goes to the target that the user chose.
fn one(
    encoder: &Encoder<'_>,
    choices: &Choices<'_>,
    input: &Input<'_>,
    arguments: &KiOpEncode,
    common: &Common,
) -> Result<(), Failure> {
    let mut loader = Loader::alone();
    let (text, subject) = (input.open(&mut loader)?, input.subject());
    let encoded = encoder.named(&subject, &text).map_err(|message| {
        if is_of_several(&text) {
            let way = "`ki op decode -o FOLDER` writes files that `ki op encode FOLDER` reads";
            complain(&subject, &format!("contains several lines of JSON, not one object; {way}"));
        } else if !message.is_empty() {
            complain(&subject, &message);
        }
        Failure::Input
    })?;
    if choices.drop_bind() && !encoded.starts_with(worldwire_ki::object::MAGIC) {
        common.note(&subject, "written without BINd; --form bind writes a BINd file");
    }
    let target = arguments.target.of_file(|| encoded_name(&input.name))?;
    if !arguments.hex {
        return write_all(&target, &encoded);
    }
    let mut digits = String::new();
    push_hex(&mut digits, &encoded);
    digits.push('\n');
    write_all(&target, digits.as_bytes())
}

/// Whether a text is `decode` output for several objects: one line of JSON each.
fn is_of_several(text: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    let is_line = |value: Option<_>| matches!(value, Some(Ok(_)));
    text.starts_with(b"{") && is_line(values.next()) && is_line(values.next())
}

fn several(
    encoder: &Encoder<'_>,
    inputs: &[Input<'_>],
    folder: &Path,
    arguments: &KiOpEncode,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    let encode = |input: &Input<'_>, loader: &mut Loader<'_>| {
        let Some(text) = input.read(loader)? else { return Ok(Found::Other) };
        match input.is_found {
            true => encoder.found(&input.subject(), &name_of(input), &text),
            false => encoder.named(&input.subject(), &text).map(Found::Object),
        }
    };
    let is_wanted =
        |input: &Input<'_>| !matches!(encode(input, &mut Loader::alone()), Ok(Found::Other));
    let convert = |input: &Input<'_>, loader: &mut Loader<'_>| match encode(input, loader) {
        Ok(Found::Other) => Converted::Passed,
        Ok(Found::Unchanged(_)) => Converted::Unchanged,
        Ok(Found::Object(bytes)) => Converted::Done(bytes, true),
        Err(message) => Converted::Failed(vec![message]),
    };
    let batch = Batch {
        folder,
        force: arguments.target.force,
        skip_existing: false,
        taken: HashSet::new(),
        threads: arguments.threads,
    };
    let (counts, written) = batch.run(inputs, common, encoded_name, is_wanted, convert)?;
    // If some objects are unchanged, list those that changed.
    if counts.unchanged > 0 {
        let line = |path: &PathBuf| format!("~ {}\n", printable(&path.to_string_lossy()));
        print(&written.iter().map(line).collect::<String>())?;
    }
    counts.conclude("encoded", start, common.quiet)
}
