//! Where results go, and how a command ends.

mod whole;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::cli::{Color, Common, Target};
pub(crate) use whole::{WholeFile, clean_up_when_interrupted};

/// How a command ends when it does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input had problems; they were reported.
    Input,
    /// Nobody reads the output any more.
    Pipe,
    /// The command could not run, and this is why.
    Run(String),
}

impl Failure {
    /// An error of the file system.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Run(format!("{}: {}", path.display(), reason(error)))
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

/// Says on standard error what is wrong with an input.
pub(crate) fn complain(subject: &str, problem: &str) {
    anstream::eprintln!("worldwire: {subject}: {problem}");
}

impl Common {
    /// Whether results on standard output are coloured.
    pub(crate) fn colour(&self, target: Option<&Target>) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                target.is_none_or(|target| target.output.is_none())
                    && io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// A result on its way to standard output, or to a file that appears under its name only when it
/// is complete.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout(BufWriter<io::Stdout>),
    File { writer: BufWriter<WholeFile>, target: PathBuf, force: bool },
}

impl Output {
    /// Opens the target of a result.
    pub(crate) fn open(target: &Target) -> Result<Self, Failure> {
        let Some(path) = &target.output else {
            return Ok(Self::Stdout(BufWriter::with_capacity(1 << 16, io::stdout())));
        };
        if path.is_dir() {
            return Err(Failure::Run(format!("{}: is a folder", path.display())));
        }
        if path.exists() && !target.force {
            let message = format!("{}: exists already; --force overwrites it", path.display());
            return Err(Failure::Run(message));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = WholeFile::create_in(folder).map_err(|error| Failure::io(path, &error))?;
        Ok(Self::File {
            writer: BufWriter::with_capacity(1 << 16, file),
            target: path.clone(),
            force: target.force,
        })
    }

    /// Writes a part of the result.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(writer) => writer.write_all(bytes).map_err(|error| pipe(&error)),
            Self::File { writer, target, .. } => {
                writer.write_all(bytes).map_err(|error| Failure::io(target, &error))
            }
        }
    }

    /// Hands on what was written so far, for readers that wait for it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Self::Stdout(writer) => writer.flush().map_err(|error| pipe(&error)),
            Self::File { .. } => Ok(()),
        }
    }

    /// The result is complete.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        let Self::File { writer, target, force } = self else {
            return Ok(());
        };
        let file = writer.into_inner().map_err(|error| Failure::io(&target, error.error()))?;
        let kept = file.sync().and_then(|()| file.keep(&target, force));
        kept.map_err(|error| Failure::io(&target, &error))
    }
}

/// For what writes piece by piece.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(writer) => writer.write(bytes),
            Self::File { writer, .. } => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(writer) => writer.flush(),
            Self::File { writer, .. } => writer.flush(),
        }
    }
}

/// Writes a whole result.
pub(crate) fn write_all(target: &Target, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(target)?;
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
pub(crate) struct SeekableOutput(Output);

impl SeekableOutput {
    /// Opens the target, which must be a file.
    pub(crate) fn open(target: &Target) -> Result<Self, Failure> {
        if target.output.is_none() {
            return Err(Failure::Run("wanted a file to write to: -o FILE".to_owned()));
        }
        Output::open(target).map(Self)
    }

    /// Does something with the file.
    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<R>,
    ) -> Result<R, Failure> {
        match &mut self.0 {
            Output::File { writer, target, .. } => {
                act(writer).map_err(|error| Failure::io(target, &error))
            }
            Output::Stdout(_) => Err(Failure::Run("standard output has no places".to_owned())),
        }
    }

    /// The result is complete.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.0.finish()
    }
}
