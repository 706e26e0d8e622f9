//! `worldwire ki op decode`.

use std::path::Path;

use rayon::prelude::*;
use worldwire_ki::object::MAGIC;

use super::inputs::{Input, expand};
use super::show::{Fault, Show};
use super::stream::Choices;
use crate::cli::{Common, KiObjectForm, KiOpDecode, Target};
use crate::command::work;
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
    let show = Show {
        classes: &classes,
        choices: &choices,
        form: arguments.to,
        ranges: arguments.bytes,
        colour: common.colour(Some(&arguments.target)),
        quiet: common.quiet,
    };
    let work = Work { arguments, show };
    if let [only] = &inputs[..]
        && !only.is_found
    {
        return work.one(&only.path);
    }
    let pool = work::pool(arguments.threads)?;
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
    show: Show<'w>,
}

impl Work<'_> {
    /// The only input: its result goes where the user says.
    fn one(&self, path: &Path) -> Result<(), Failure> {
        let bytes = input::read(path)?;
        let subject = path.display().to_string();
        let target = &self.arguments.target;
        if self.arguments.to == KiObjectForm::Json && bytes.len() > LARGE {
            let mut output = Output::open(target)?;
            return match self.show.json(&bytes, None, &subject, &mut output) {
                Ok(()) => output.finish(),
                Err(Fault::Output(message)) => Err(Failure::Run(message)),
                Err(Fault::Object(message)) => {
                    complain(&subject, &message);
                    Err(Failure::Input)
                }
            };
        }
        let (text, clean) = match self.show.form(&bytes, None, &subject) {
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
        Ok(match self.show.form(&bytes, name, &subject) {
            Ok((text, true)) => Outcome::Done(text),
            Ok((_, false)) => Outcome::Failed(vec!["cannot be read; see --to text".to_owned()]),
            Err(lines) => Outcome::Failed(lines),
        })
    }

    fn keep(&self, folder: &Path, name: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.show.name(&folder.join(name));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| Failure::io(parent, &error))?;
        }
        let force = self.arguments.target.force;
        write_all(&Target { output: Some(path), force }, bytes)
    }
}
