//! `worldwire ki op encode`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::de::IgnoredAny;
use worldwire_core::Limits;
use worldwire_core::value::push_hex;

use super::encoder::{Encoder, Found};
use super::inputs::{self, Input, targets, unsafe_name};
use super::stream::Choices;
use crate::cli::{Common, KiOpEncode};
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{
    Failure, LastFolder, NewFolder, complain, counted, print, printable, say, spent, write_all,
};
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
            return Err(Failure::Run("several files need --output with a directory".to_owned()));
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

/// The name of an object, as in archives.
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

enum Outcome {
    Passed,
    Unchanged,
    Failed,
    /// This many bytes were written.
    Written(usize),
    Over(Failure),
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
    let targets = targets(inputs, folder, encoded_name, is_wanted)?;
    let items: Vec<(&Input<'_>, inputs::Target)> = inputs.iter().zip(targets).collect();
    let folder = NewFolder::new(folder, arguments.target.force);
    let is_over = AtomicBool::new(false);
    let bar = work::progress(items.len(), common);
    let memory = Memory::new();
    let need = || (Loader::new(&memory, Loader::OBJECT), LastFolder::default());
    let act = |(loader, last): &mut (Loader<'_>, LastFolder),
               (input, target): &(&Input<'_>, inputs::Target)| {
        let fail = |message: &str| {
            if !message.is_empty() {
                complain(&input.subject(), message);
            }
            Outcome::Failed
        };
        let target = match target {
            Ok(Some(target)) if !is_over.load(Ordering::Relaxed) => target,
            Ok(_) => return Outcome::Passed,
            Err(fault) => return fail(fault),
        };
        bar.inc(1);
        let bytes = match encode(input, loader) {
            Ok(Found::Other) => return Outcome::Passed,
            Ok(Found::Unchanged(_)) => return Outcome::Unchanged,
            Ok(Found::Object(bytes)) => bytes,
            Err(message) => return fail(&message),
        };
        if let Some(fault) = unsafe_name(input) {
            return fail(&fault);
        }
        match folder.store(last, target, &bytes) {
            Ok(()) => Outcome::Written(bytes.len()),
            Err(failure) => {
                is_over.store(true, Ordering::Relaxed);
                Outcome::Over(failure)
            }
        }
    };
    let pool = work::pool(arguments.threads)?;
    let outcomes = work::share(&pool, &items, |(input, _)| input.size(), need, act);
    bar.finish_and_clear();
    folder.finish()?;
    let (mut done, mut failed, mut passed, mut unchanged, mut bytes) = (0_u64, 0_u64, 0, 0, 0);
    let mut written = String::new();
    for ((_, target), outcome) in items.iter().zip(outcomes) {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Unchanged => unchanged += 1,
            Outcome::Failed => failed += 1,
            Outcome::Written(size) => {
                done += 1;
                bytes += size;
                let name = target.as_ref().ok().and_then(Option::as_deref);
                let name = name.unwrap_or_else(|| Path::new(""));
                let _ = writeln!(written, "~ {}", printable(&name.to_string_lossy()));
            }
            Outcome::Over(failure) => return Err(failure),
        }
    }
    // If some objects are unchanged, list those that changed.
    if unchanged > 0 {
        print(&written)?;
    }
    if !common.quiet {
        let unchanged = match unchanged {
            0 => String::new(),
            count => format!("{count} unchanged, "),
        };
        let size = counted(bytes, "byte");
        let time = spent(start);
        say(format_args!(
            "{done} encoded, {unchanged}{passed} skipped, {failed} failed; {size} in {time}"
        ));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Input) }
}
