//! `worldwire ki op decode`.

use std::io::{self, Write};
use std::path::Path;

use rayon::prelude::*;
use worldwire_core::Limits;
use worldwire_ki::object::MAGIC;

use super::inputs::{Input, expand, fault, keep, targets};
use super::show::Show;
use super::stream::Choices;
use crate::cli::{Common, KiObjectForm, KiOpDecode, Target};
use crate::command::work;
use crate::output::{Failure, Output, complain, say, write_all};
use crate::{input, types};

/// Files that are decoded at the same time; their results wait for each other.
const BATCH: usize = 64;
/// Larger objects are written while they are read.
const LARGE: usize = 4 << 20;

pub(super) fn run(arguments: &KiOpDecode, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    let choices = Choices::new(&arguments.stream)?;
    choices.check(&classes, common);
    let inputs = expand(&arguments.inputs)?;
    let show = Show {
        classes: &classes,
        choices: &choices,
        form: arguments.to,
        ranges: arguments.bytes,
        colour: common.colour(Some(&arguments.target)),
        quiet: common.quiet,
        limits: Limits { values_per_byte: arguments.values_per_byte, ..Limits::DEFAULT },
    };
    let work = Work { arguments, show };
    if let [only] = &inputs[..]
        && !only.is_found
    {
        return work.one(&only.path);
    }
    let pool = work::pool(arguments.threads)?;
    let mut counts = Counts::default();
    let Target { output, force } = &arguments.target;
    let folder = output.as_deref().filter(|_| !arguments.target.is_stdout());
    if folder.is_none() && arguments.to == KiObjectForm::Xml {
        let message = "XML of several files needs --output with a directory".to_owned();
        return Err(Failure::Run(message));
    }
    let targets = match folder {
        Some(folder) => targets(&inputs, folder, |name| work.show.name(name))?,
        None => Vec::new(),
    };
    let mut targets = targets.iter();
    let mut stdout = Output::open(&Target { output: None, force: false })?;
    for batch in inputs.chunks(BATCH) {
        let results: Vec<_> =
            pool.install(|| batch.par_iter().map(|input| work.several(input)).collect());
        for (input, result) in batch.iter().zip(results) {
            let target = targets.next();
            let outcome = match result {
                Ok(outcome) => outcome,
                Err(failure) => Outcome::Failed(vec![fault(&input.path, failure)?]),
            };
            let (bytes, count) = match outcome {
                Outcome::Passed => {
                    counts.passed += 1;
                    continue;
                }
                Outcome::Failed(lines) => {
                    counts.failed += 1;
                    let subject = input.path.display().to_string();
                    lines.iter().for_each(|line| complain(&subject, line));
                    continue;
                }
                Outcome::Partly(bytes) => (bytes, &mut counts.failed),
                Outcome::Done(bytes) => (bytes, &mut counts.decoded),
            };
            *count += 1;
            match target {
                None => stdout.write(&bytes)?,
                Some(target) => keep(target, *force, &bytes)?,
            }
        }
    }
    stdout.finish()?;
    if !common.quiet {
        let Counts { decoded, passed, failed } = counts;
        say(format_args!("{decoded} decoded, {passed} skipped, {failed} failed"));
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
    /// What could be read, with what is wrong at its end.
    Partly(Vec<u8>),
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
            let mut sink = Sink { output: Output::open(target)?, failure: None };
            let shown = self.show.json(&bytes, None, &subject, &mut sink);
            return match (sink.failure, shown) {
                (Some(failure), _) => Err(failure),
                (None, Ok(())) => sink.output.finish(),
                (None, Err(message)) => {
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
        // Other streams have no mark, so whoever says how they are read means all of them.
        if input.is_found && !bytes.starts_with(MAGIC) && self.show.choices.is_file() {
            return Ok(Outcome::Passed);
        }
        let subject = input.path.display().to_string();
        let name = self.arguments.target.output.is_none().then_some(&*subject);
        Ok(match self.show.form(&bytes, name, &subject) {
            Ok((text, true)) => Outcome::Done(text),
            Ok((text, false)) => Outcome::Partly(text),
            Err(lines) => Outcome::Failed(lines),
        })
    }
}

/// Where large results go. What goes wrong with it is no fault of the object.
struct Sink {
    output: Output,
    failure: Option<Failure>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes).map(|()| bytes.len()).map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("the output cannot be written")
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
