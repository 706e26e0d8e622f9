//! `worldwire ki op decode`.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use worldwire_core::json::{Style, string};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Limits, Reader, Tree};
use worldwire_ki::object::{Codec, Decoded, JsonWriter, MAGIC, Object, xml};
use worldwire_ki::schema::classes::Classes;

use super::inputs::{Input, expand};
use super::stream::{Choices, Stream};
use crate::cli::{Common, KiObjectForm, KiOpDecode, Target};
use crate::output::{Failure, Output, complain, write_all};
use crate::{input, types};

/// Files that are decoded at the same time; their results wait for each other.
const BATCH: usize = 64;
/// Larger objects are written while they are read.
const LARGE: usize = 4 << 20;

pub(super) fn run(arguments: &KiOpDecode, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    let choices = Choices::new(&arguments.stream)?;
    let inputs = expand(&arguments.inputs)?;
    let work = Work { arguments, common, classes: &classes, choices: &choices };
    if let [only] = &inputs[..]
        && !only.is_found
    {
        return work.one(&only.path);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads).build();
    let pool = pool.map_err(|error| Failure::Run(error.to_string()))?;
    let mut counts = Counts::default();
    let folder = arguments.target.output.as_deref();
    if folder.is_none() && arguments.to == KiObjectForm::Xml {
        let message = "wanted --output with a folder for the XML of several files".to_owned();
        return Err(Failure::Run(message));
    }
    let mut stdout = Output::open(&Target { output: None, force: false })?;
    for batch in inputs.chunks(BATCH) {
        let results: Vec<_> =
            pool.install(|| batch.par_iter().map(|input| work.several(input)).collect());
        for (input, result) in batch.iter().zip(results) {
            match result? {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed(lines) => {
                    counts.failed += 1;
                    for line in lines {
                        complain(&input.path.display().to_string(), &line);
                    }
                }
                Outcome::Done(bytes) => {
                    counts.decoded += 1;
                    match folder {
                        None => stdout.write(&bytes)?,
                        Some(folder) => work.keep(folder, &input.name, &bytes)?,
                    }
                }
            }
        }
    }
    stdout.finish()?;
    if !common.quiet {
        let Counts { decoded, passed, failed } = counts;
        anstream::eprintln!("{decoded} decoded, {passed} passed over, {failed} failed");
    }
    if counts.failed == 0 { Ok(()) } else { Err(Failure::Input) }
}

#[derive(Default)]
struct Counts {
    decoded: u64,
    passed: u64,
    failed: u64,
}

enum Outcome {
    /// It is no object.
    Passed,
    Failed(Vec<String>),
    Done(Vec<u8>),
}

struct Work<'w> {
    arguments: &'w KiOpDecode,
    common: &'w Common,
    classes: &'w Classes,
    choices: &'w Choices<'w>,
}

impl Work<'_> {
    /// The only input: its result goes where the user says.
    fn one(&self, path: &Path) -> Result<(), Failure> {
        let bytes = input::read(path)?;
        let subject = path.display().to_string();
        let target = &self.arguments.target;
        if self.arguments.to == KiObjectForm::Json && bytes.len() > LARGE {
            let mut output = Output::open(target)?;
            self.json(&bytes, None, &subject, &mut output)?;
            return output.finish();
        }
        let (text, clean) = match self.form(&bytes, None, &subject) {
            Ok(done) => done,
            Err(lines) => {
                lines.iter().for_each(|line| complain(&subject, line));
                return Err(Failure::Input);
            }
        };
        write_all(target, &text)?;
        if clean { Ok(()) } else { Err(Failure::Input) }
    }

    /// One of several inputs.
    fn several(&self, input: &Input) -> Result<Outcome, Failure> {
        let bytes = input::read(&input.path)?;
        if input.is_found && !bytes.starts_with(MAGIC) {
            return Ok(Outcome::Passed);
        }
        let subject = input.path.display().to_string();
        let name = self.arguments.target.output.is_none().then_some(&*subject);
        Ok(match self.form(&bytes, name, &subject) {
            Ok((text, true)) => Outcome::Done(text),
            Ok((_, false)) => Outcome::Failed(vec!["cannot be read; see --to text".to_owned()]),
            Err(lines) => Outcome::Failed(lines),
        })
    }

    fn keep(&self, folder: &Path, name: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut path = folder.join(name).into_os_string();
        path.push(match self.arguments.to {
            KiObjectForm::Json => ".json",
            KiObjectForm::Xml => ".xml",
            KiObjectForm::Text => ".txt",
        });
        let path = PathBuf::from(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| Failure::io(parent, &error))?;
        }
        let force = self.arguments.target.force;
        write_all(&Target { output: Some(path), force }, bytes)
    }

    /// The text of an object, and whether all of it could be read; or what is wrong.
    fn form(
        &self,
        bytes: &[u8],
        name: Option<&str>,
        subject: &str,
    ) -> Result<(Vec<u8>, bool), Vec<String>> {
        match self.arguments.to {
            KiObjectForm::Json => {
                let mut out = Vec::new();
                match self.json(bytes, name, subject, &mut out) {
                    Ok(()) => Ok((out, true)),
                    Err(Failure::Run(message)) => Err(vec![message]),
                    Err(_) => Err(Vec::new()),
                }
            }
            KiObjectForm::Xml => {
                let mut object = Object::new();
                let codec = Codec::new(self.classes, self.choices.of(bytes));
                let decoded = codec.decode_all(bytes, &mut object);
                let text = decoded.and_then(|decoded| {
                    self.notes(&decoded, subject);
                    xml::to_xml(self.classes, &[object])
                });
                text.map(|text| (text.into_bytes(), true)).map_err(|error| vec![error.to_string()])
            }
            KiObjectForm::Text => {
                let codec = Codec::new(self.classes, self.choices.of(bytes));
                let limits = Limits::DEFAULT;
                let mut reader = Reader::traced_within("input", bytes, Tree::new(), &limits);
                let outcome = codec.decode(&mut reader, &mut ()).and_then(|decoded| {
                    self.notes(&decoded, subject);
                    reader.end()
                });
                let tree = reader.conclude(outcome.map_err(worldwire_core::Error::closed)).0;
                let mut out = String::new();
                if let Some(name) = name {
                    out.push_str(name);
                    out.push('\n');
                }
                let style = TextStyle {
                    ranges: self.arguments.bytes,
                    colour: self.common.colour(Some(&self.arguments.target)),
                    longest: 0,
                    indent: if name.is_some() { 2 } else { 0 },
                };
                write_tree(&tree, style, &mut out);
                Ok((out.into_bytes(), tree.error().is_none()))
            }
        }
    }

    /// `{"file": ..., "object": ..., "stream": ...}`, written while it is read.
    fn json(
        &self,
        bytes: &[u8],
        name: Option<&str>,
        subject: &str,
        out: &mut impl std::io::Write,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::Run(format!("output: {error}"));
        let options = self.choices.of(bytes);
        let codec = Codec::new(self.classes, options);
        let mut head = String::from("{");
        if let Some(name) = name {
            head.push_str("\"file\":");
            string(name, &mut head);
            head.push(',');
        }
        head.push_str("\"object\":");
        out.write_all(head.as_bytes()).map_err(failed)?;
        let mut writer = JsonWriter::new(&mut *out, Style::default());
        let decoded = codec.decode_all(bytes, &mut writer);
        writer.finish().map_err(|error| Failure::Run(error.to_string()))?;
        let decoded = decoded.map_err(|error| Failure::Run(error.to_string()))?;
        self.notes(&decoded, subject);
        let stream = serde_json::to_string(&Stream::new(codec.options(), decoded.header));
        let stream = stream.map_err(|error| Failure::Run(error.to_string()))?;
        writeln!(out, ",\"stream\":{stream}}}").map_err(failed)
    }

    /// What was odd.
    fn notes(&self, decoded: &Decoded, subject: &str) {
        if !self.common.quiet {
            for note in &decoded.notes {
                complain(subject, &format!("at bit {}: {}", note.bit, note.text));
            }
        }
    }
}
