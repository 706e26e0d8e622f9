//! `worldwire ki op decode`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use worldwire_core::Limits;
use worldwire_core::json::Style;
use worldwire_ki::object::{MAGIC, ObjectOptions};

use super::batch::{Batch, Converted, Counts, tell};
use super::encoder::Encoder;
use super::inputs::{self, Input};
use super::show::Show;
use super::stream::Choices;
use crate::cli::{Common, KiObjectForm, KiOpDecode, Target};
use crate::command::ki::find::is_xml;
use crate::command::ki::lang;
use crate::command::ki::loader::Loader;
use crate::command::ki::wad::taken;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, Output, complain, write_all};
use crate::types;

/// The maximum number of files decoded at the same time; their results are kept in order.
const BATCH: usize = 64;
/// Inputs decoded at the same time have at most this many bytes in total, unless there is only one.
const BATCH_BYTES: u64 = 64 << 20;
/// Larger objects are written while they are read.
const LARGE: usize = 4 << 20;

pub(super) fn run(arguments: &KiOpDecode, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    if !arguments.lang.is_empty() && arguments.to != KiObjectForm::Text {
        let message = "--lang needs --to text; for JSON, use ki lang explain";
        return Err(Failure::Run(message.to_owned()));
    }
    let locale = lang::load(&arguments.lang, common)?;
    let choices = Choices::new(&arguments.stream)?;
    choices.check(&classes, common);
    let show = Show {
        classes: &classes,
        choices: &choices,
        form: arguments.to,
        ranges: arguments.bytes,
        // The lookup of string codes needs text without colours.
        colour: arguments.lang.is_empty() && common.colour(Some(&arguments.target)),
        quiet: common.quiet,
        limits: Limits { values_per_byte: arguments.values_per_byte, ..Limits::DEFAULT },
        style: Style { safe: arguments.json_safe },
        seals: false,
        locale: &locale,
    };
    let work = Work { arguments, show };
    inputs::with(&arguments.inputs, &Limits::DEFAULT, |inputs| {
        if let [only] = inputs
            && !only.is_found
        {
            return work.one(only);
        }
        let start = Instant::now();
        let folder = arguments.target.output.as_deref();
        let counts = match folder.filter(|_| !arguments.target.is_stdout()) {
            Some(folder) => work.as_files(inputs, folder, common)?,
            None => work.as_lines(inputs)?,
        };
        counts.conclude("decoded", start, common.quiet)
    })
}

struct Work<'w> {
    arguments: &'w KiOpDecode,
    show: Show<'w>,
}

impl Work<'_> {
    /// Decodes a single input; its result goes to the target that the user chose.
    fn one(&self, input: &Input<'_>) -> Result<(), Failure> {
        let mut loader = Loader::alone();
        let bytes = input.open(&mut loader)?;
        let subject = input.subject();
        let (bytes, options) = match self.stored(input, bytes) {
            Ok(stored) => stored,
            Err(fault) => {
                tell(input, &[fault]);
                return Err(Failure::Input);
            }
        };
        let target = self.arguments.target.of_file(|| self.show.name(&input.name))?;
        let there = target.output.as_deref().filter(|_| !target.is_stdout());
        if self.arguments.skip_existing && there.is_some_and(|path| path.is_file()) {
            if !self.show.quiet {
                complain(&subject, "skipped: already there");
            }
            return Ok(());
        }
        if self.arguments.to == KiObjectForm::Json && bytes.len() > LARGE {
            // Standard output cannot be undone, so nothing is written there for an object with an
            // error.
            if target.is_stdout() {
                self.show.check(&bytes, options.clone()).map_err(|message| {
                    complain(&subject, &message);
                    Failure::Input
                })?;
            }
            let mut sink = Sink { output: Output::open(&target)?, failure: None };
            let shown = self.show.json(&bytes, options, None, &subject, &mut sink);
            return match (sink.failure, shown) {
                (Some(failure), _) => Err(failure),
                (None, Ok(())) => sink.output.finish(),
                (None, Err(message)) => {
                    complain(&subject, &message);
                    Err(Failure::Input)
                }
            };
        }
        let (text, clean) = match self.show.form_of(&bytes, options, None, &subject) {
            Ok(done) => done,
            Err(lines) => {
                tell(input, &lines);
                return Err(Failure::Input);
            }
        };
        write_all(&target, &text)?;
        if clean { Ok(()) } else { Err(Failure::Input) }
    }

    /// Decodes several inputs to standard output, in order.
    fn as_lines(&self, inputs: &[Input<'_>]) -> Result<Counts, Failure> {
        if self.arguments.to == KiObjectForm::Xml {
            let message = "to write several files as XML, use --output with a directory".to_owned();
            return Err(Failure::Run(message));
        }
        let pool = work::pool(self.arguments.threads)?;
        let mut counts = Counts::default();
        let mut stdout = Output::open(&Target { output: None, force: false })?;
        let memory = Memory::new();
        let need = || Loader::new(&memory, Loader::OBJECT);
        let mut rest = inputs;
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch(rest));
            rest = behind;
            let results: Vec<_> = pool.install(|| {
                let decode = |loader: &mut Loader<'_>, input| self.several(input, loader, true);
                batch.par_iter().map_init(need, decode).collect()
            });
            for (input, converted) in batch.iter().zip(results) {
                if let Some(bytes) = counts.add(input, converted) {
                    stdout.write(&bytes)?;
                }
            }
        }
        stdout.finish()?;
        Ok(counts)
    }

    /// Decodes several inputs, each to a separate file.
    fn as_files(
        &self,
        inputs: &[Input<'_>],
        folder: &Path,
        common: &Common,
    ) -> Result<Counts, Failure> {
        let KiOpDecode { target, skip_existing, threads, .. } = self.arguments;
        let is_wanted = |input: &Input<'_>| {
            let mut loader = Loader::alone();
            let read = input.read_if(&mut loader, |head| !self.passes(input, head));
            !matches!(read, Ok(None))
        };
        let batch = Batch {
            folder,
            force: target.force,
            skip_existing: *skip_existing,
            taken: taken(inputs.iter().filter_map(Input::entry_name)),
            threads: *threads,
        };
        let name = |name: &Path| self.show.name(name);
        let convert =
            |input: &Input<'_>, loader: &mut Loader<'_>| self.several(input, loader, false);
        batch.run(inputs, common, name, is_wanted, convert).map(|(counts, _)| counts)
    }

    /// Decodes one of several inputs.
    fn several(&self, input: &Input<'_>, loader: &mut Loader<'_>, is_line: bool) -> Converted {
        let bytes = match input.read_if(loader, |head| !self.passes(input, head)) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Converted::Passed,
            Err(fault) => return Converted::Failed(vec![fault]),
        };
        let subject = input.subject();
        let (bytes, options) = match self.stored(input, bytes) {
            Ok(stored) => stored,
            Err(fault) => return Converted::Failed(vec![fault]),
        };
        match self.show.form_of(&bytes, options, is_line.then_some(&*subject), &subject) {
            Ok((text, is_whole)) => Converted::Done(text, is_whole),
            Err(lines) => Converted::Failed(lines),
        }
    }

    /// The stream of an input and its format. Objects in XML are encoded first if the user named
    /// the file; those that were found stay text, so that a directory can be encoded back to the
    /// same files.
    fn stored<'b>(
        &self,
        input: &Input<'_>,
        bytes: Cow<'b, [u8]>,
    ) -> Result<(Cow<'b, [u8]>, ObjectOptions), String> {
        if input.is_found || !is_xml(&bytes) {
            let options = self.show.choices.of(&bytes);
            return Ok((bytes, options));
        }
        let encoder = Encoder::new(Some(self.show.classes), self.show.choices, false, true);
        let (bytes, options) = encoder.of_xml(&input.subject(), &bytes)?;
        Ok((Cow::Owned(bytes), options))
    }

    /// Whether a file that was found is skipped because it is not an object. Streams without a
    /// magic number could be anything, so if options specify a stream format, no file is skipped.
    fn passes(&self, input: &Input<'_>, bytes: &[u8]) -> bool {
        input.is_found && !bytes.starts_with(MAGIC) && self.show.choices.is_file()
    }
}

/// The number of inputs to decode at the same time.
fn batch(inputs: &[Input<'_>]) -> usize {
    let mut bytes = 0;
    let fits = inputs.iter().take(BATCH).take_while(|input| {
        bytes += input.size();
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

/// Writes large results. Its errors are not the fault of the object.
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
