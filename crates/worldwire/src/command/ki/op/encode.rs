//! `worldwire ki op encode`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use worldwire_core::value::push_hex;
use worldwire_ki::object::{Header, Object, ObjectCodec, xml};
use worldwire_ki::schema::classes::Classes;

use super::inputs::{Input, expand, fault, keep, targets};
use super::stream::{Choices, Stream};
use crate::cli::{Common, KiOpEncode};
use crate::command::work;
use crate::output::{Failure, complain, say, write_all};
use crate::{input, report, types};

/// Files that are encoded at the same time.
const BATCH: usize = 64;

/// What `ki op decode` writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'j> {
    #[serde(default, rename = "file")]
    _file: Option<IgnoredAny>,
    #[serde(borrow)]
    object: &'j RawValue,
    stream: Stream,
}

/// Whether a text that is not read as what `ki op decode` writes was meant as that: an object alone
/// names its class.
fn is_wrapped(text: &str) -> bool {
    let keys: HashMap<String, IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
    !keys.contains_key("$class") && (keys.contains_key("object") || keys.contains_key("stream"))
}

pub(super) fn run(arguments: &KiOpEncode, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    let choices = Choices::new(&arguments.stream)?;
    choices.check(&classes, common);
    let inputs = expand(&arguments.inputs)?;
    let work = Work {
        classes: &classes,
        choices: &choices,
        complete: arguments.complete,
        is_lossy: AtomicBool::new(false),
    };
    if let [Input { path, is_found: false, .. }] = &inputs[..] {
        let bytes = work.encode(path)?.ok_or(Failure::Input)?;
        if arguments.hex {
            let mut digits = String::new();
            push_hex(&mut digits, &bytes);
            digits.push('\n');
            write_all(&arguments.target, digits.as_bytes())?;
        } else {
            write_all(&arguments.target, &bytes)?;
        }
        return work.end();
    }
    let folder = arguments.target.output.as_deref();
    let Some(folder) = folder.filter(|_| !arguments.target.is_stdout()) else {
        return Err(Failure::Run("several files need --output with a directory".to_owned()));
    };
    // decode called it `pet.xml.json`.
    let targets = targets(&inputs, folder, |name| match name.extension() {
        Some(end) if end == "json" => name.with_extension(""),
        _ => name.to_owned(),
    })?;
    let pool = work::pool(arguments.threads)?;
    let (mut done, mut failed) = (0_u64, 0_u64);
    for (batch, targets) in inputs.chunks(BATCH).zip(targets.chunks(BATCH)) {
        let results: Vec<_> =
            pool.install(|| batch.par_iter().map(|input| work.encode(&input.path)).collect());
        for ((input, target), result) in batch.iter().zip(targets).zip(results) {
            let bytes = match result {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    failed += 1;
                    continue;
                }
                Err(failure) => {
                    failed += 1;
                    complain(&input.path.display().to_string(), &fault(&input.path, failure)?);
                    continue;
                }
            };
            done += 1;
            keep(target, arguments.target.force, &bytes)?;
        }
    }
    if !common.quiet {
        say(format_args!("{done} encoded, {failed} failed"));
    }
    if failed == 0 { work.end() } else { Err(Failure::Input) }
}

struct Work<'w> {
    classes: &'w Classes,
    choices: &'w Choices<'w>,
    /// What an object lacks is put in.
    complete: bool,
    /// Something of an input was left out, which was reported.
    is_lossy: AtomicBool,
}

impl Work<'_> {
    fn end(&self) -> Result<(), Failure> {
        if self.is_lossy.load(Ordering::Relaxed) { Err(Failure::Input) } else { Ok(()) }
    }

    /// The bytes of one input; `None` when it has faults, which are reported.
    fn encode(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let text = input::read(path)?;
        let subject = path.display().to_string();
        let trimmed = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii_start();
        let encoded =
            if trimmed.starts_with(b"<") { self.xml(&subject, &text) } else { self.json(trimmed) };
        match encoded {
            Ok(bytes) => Ok(Some(bytes)),
            Err(message) => {
                if !message.is_empty() {
                    complain(&subject, &message);
                }
                Ok(None)
            }
        }
    }

    fn json(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let text = str::from_utf8(text).map_err(|error| error.to_string())?;
        // An object alone is written as the command line says: as a file, unless it says more.
        let (object, options, header) = match serde_json::from_str::<Wrapped<'_>>(text) {
            Ok(Wrapped { object, stream, .. }) => {
                let (options, header) = stream.open(self.choices);
                (object.get(), options, Some(header))
            }
            Err(error) if is_wrapped(text) => return Err(error.to_string()),
            Err(_) => (text, self.choices.options(self.choices.is_file()), None),
        };
        let object = Object::parse_json(self.classes, object).map_err(|error| error.to_string())?;
        let codec = ObjectCodec::new(self.classes, options);
        let header = header.unwrap_or_else(|| codec.header());
        self.write(&codec, object, header)
    }

    fn write(
        &self,
        codec: &ObjectCodec<'_>,
        object: Object,
        header: Header,
    ) -> Result<Vec<u8>, String> {
        let whole = if self.complete { codec.complete(&object) } else { Ok(object) };
        let bytes = whole.and_then(|object| codec.encode(&object, header));
        bytes.map_err(|error| error.to_string())
    }

    fn xml(&self, subject: &str, text: &[u8]) -> Result<Vec<u8>, String> {
        let loaded = xml::load(self.classes, subject, text);
        report::diagnostics(&loaded.diagnostics);
        self.is_lossy.fetch_or(!loaded.diagnostics.is_empty(), Ordering::Relaxed);
        let mut objects = loaded.objects.ok_or_else(String::new)?;
        let count = objects.len();
        let Some(object) = objects.pop().filter(|_| count == 1) else {
            return Err(format!("wanted one object, found {count}"));
        };
        let codec = ObjectCodec::new(self.classes, self.choices.options(self.choices.is_file()));
        self.write(&codec, object, codec.header())
    }
}
