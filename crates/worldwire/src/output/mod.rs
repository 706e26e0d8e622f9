//! Where results go, and how a command ends.

mod folder;
mod place;
mod signals;
mod stages;
mod talk;
mod whole;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::cli::{Color, Common, Target};
pub(crate) use folder::{LastFolder, NewFolder};
pub(crate) use place::{FilePlace, Place};
pub(crate) use signals::{Interruption, clean_up_when_interrupted};
pub(crate) use stages::{Stages, Taken};
pub(crate) use talk::{complain, counted, indented, printable, say, shown, spent};
pub(crate) use whole::{WholeFile, unfinished};

/// How a command ends when it does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input had problems; they were reported.
    Input,
    /// Nobody reads the output any more.
    Pipe,
    /// The command could not run, and this is why.
    Run(String),
    /// Interrupted by a signal before the end of the input, which was reported; with the exit code.
    Interrupted(i32),
}

impl Failure {
    /// An error of the file system.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Run(format!("{}: {}", shown(path), reason(error)))
    }
}

/// An error of the operating system without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}

/// The message for an output file that already exists.
pub(crate) fn occupied(path: &Path) -> String {
    format!("{}: already exists; use --force to overwrite it", shown(path))
}

/// The directory that a path is in.
fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new("."))
}

impl Common {
    /// Whether results on standard output are coloured.
    pub(crate) fn colour(&self, target: Option<&Target>) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                target.is_none_or(Target::is_stdout)
                    && io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

impl Target {
    /// The target of a single result: a directory, or a path that ends with `/`, is where a file
    /// of this name goes, and is made if missing.
    pub(crate) fn of_file(&self, name: impl FnOnce() -> PathBuf) -> Result<Self, Failure> {
        let Some(folder) = self.folder() else {
            return Ok(Self { output: self.output.clone(), force: self.force });
        };
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
        let name = name();
        let name = name.file_name().unwrap_or(name.as_os_str());
        Ok(Self { output: Some(folder.join(name)), force: self.force })
    }

    /// The directory that `-o` names, which may be missing when it ends with `/`.
    pub(crate) fn folder(&self) -> Option<&Path> {
        let ends = |path: &Path| path.to_string_lossy().ends_with(std::path::is_separator);
        self.output.as_deref().filter(|path| ends(path) || path.is_dir())
    }

    /// Refuses a file that is named as one of another kind. A name without an ending may be any.
    pub(crate) fn ends_in(&self, what: &str, endings: &[&str]) -> Result<(), Failure> {
        let Some((output, end)) =
            self.output.as_deref().and_then(|path| Some((path, path.extension()?)))
        else {
            return Ok(());
        };
        if endings.iter().any(|wanted| end.eq_ignore_ascii_case(wanted)) {
            return Ok(());
        }
        let endings: Vec<String> = endings.iter().map(|end| format!(".{end}")).collect();
        let (endings, end) = (endings.join(" or "), printable(&end.to_string_lossy()));
        let output = shown(output);
        Err(Failure::Run(format!("-o {output}: writes {what}: use {endings}, not .{end}")))
    }

    /// Whether the result goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

/// A result on its way to standard output, into a device, or to a file that appears under its name
/// only when it is complete.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout(BufWriter<io::Stdout>),
    Through { writer: BufWriter<File>, target: PathBuf },
    File(NewFile),
}

/// How much is written at a time.
const BUFFER: usize = 1 << 16;

impl Output {
    /// Opens the target of a result.
    pub(crate) fn open(target: &Target) -> Result<Self, Failure> {
        match Place::of(target)? {
            Place::Stdout => Ok(Self::Stdout(BufWriter::with_capacity(BUFFER, io::stdout()))),
            Place::Through(path) => {
                let writer = BufWriter::with_capacity(BUFFER, place::open_through(&path)?);
                Ok(Self::Through { writer, target: path })
            }
            Place::File(place) => NewFile::create(place).map(Self::File),
        }
    }

    /// Writes a part of the result.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Write::write_all(self, bytes).map_err(|error| self.failed(&error))
    }

    /// Hands on what was written so far, for readers that wait for it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            // Nobody reads it before it has its name.
            Self::File(_) => Ok(()),
            _ => Write::flush(self).map_err(|error| self.failed(&error)),
        }
    }

    /// The result is complete.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        match self {
            Self::File(file) => file.finish(),
            Self::Stdout(_) | Self::Through { .. } => Ok(()),
        }
    }

    fn failed(&self, error: &io::Error) -> Failure {
        match self {
            Self::Stdout(_) => pipe(error),
            Self::Through { .. } if error.kind() == io::ErrorKind::BrokenPipe => Failure::Pipe,
            Self::Through { target, .. } | Self::File(NewFile { target, .. }) => {
                Failure::io(target, error)
            }
        }
    }
}

/// For what writes piece by piece.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(writer) => writer.write(bytes),
            Self::Through { writer, .. } => writer.write(bytes),
            Self::File(NewFile { writer, .. }) => writer.write(bytes),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout(writer) => writer.write_all(bytes),
            Self::Through { writer, .. } => writer.write_all(bytes),
            Self::File(NewFile { writer, .. }) => writer.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(writer) => writer.flush(),
            Self::Through { writer, .. } => writer.flush(),
            Self::File(NewFile { writer, .. }) => writer.flush(),
        }
    }
}

/// A file that appears under its name when it is complete.
#[derive(Debug)]
pub(crate) struct NewFile {
    writer: BufWriter<WholeFile>,
    target: PathBuf,
    force: bool,
}

impl NewFile {
    fn create(place: FilePlace) -> Result<Self, Failure> {
        let FilePlace { path: target, force } = place;
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = WholeFile::create_in(folder).map_err(|error| Failure::io(&target, &error))?;
        Ok(Self { writer: BufWriter::with_capacity(BUFFER, file), target, force })
    }

    fn finish(self) -> Result<(), Failure> {
        let Self { writer, target, force } = self;
        let file = writer.into_inner().map_err(|error| Failure::io(&target, error.error()))?;
        let kept = file.sync().and_then(|()| file.keep(&target, force));
        kept.map_err(|error| Failure::io(&target, &error))
    }
}

/// Writes a whole result.
pub(crate) fn write_all(target: &Target, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(target)?;
    output.write(bytes)?;
    output.finish()
}

/// Writes a result with secrets in it: a new file is its owner's alone.
pub(crate) fn write_secret(target: &Target, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(target)?;
    if let Output::File(NewFile { writer, target, .. }) = &output {
        writer.get_ref().hide().map_err(|error| Failure::io(target, &error))?;
    }
    output.write(bytes)?;
    output.finish()
}

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| pipe(&error))
}

fn pipe(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::Run(format!("standard output: {}", reason(error))),
    }
}

/// A result that is not written from front to back: always a file, as [`Output`] makes them.
#[derive(Debug)]
pub(crate) struct SeekableOutput(NewFile);

impl SeekableOutput {
    /// Begins the file of a place.
    pub(crate) fn open(place: FilePlace) -> Result<Self, Failure> {
        NewFile::create(place).map(Self)
    }

    /// Does something with the file.
    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<R>,
    ) -> Result<R, Failure> {
        let NewFile { writer, target, .. } = &mut self.0;
        act(writer).map_err(|error| Failure::io(target, &error))
    }

    /// The result is complete.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.0.finish()
    }
}
