//! Where results go and how a command ends.

mod capture_file;
mod folder;
mod format;
mod place;
mod ring;
#[cfg(feature = "network")]
mod scratch;
mod signals;
mod stages;
mod talk;
mod whole;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::cli::{Color, Common, Target};
pub(crate) use capture_file::CaptureFile;
pub(crate) use folder::{LastFolder, NewFolder};
pub(crate) use format::{CaptureFormat, OutputFormat};
pub(crate) use place::{FilePlace, Place};
pub(crate) use ring::{PacketsTarget, RingLimits, SavedPackets};
#[cfg(feature = "network")]
pub(crate) use scratch::Scratch;
pub(crate) use signals::{Interruption, clean_up_when_interrupted};
pub(crate) use stages::{Stages, Taken};
#[cfg(feature = "network")]
pub(crate) use talk::recent_log;
pub(crate) use talk::{
    Log, complain, counted, printable, say, shown, spent, terminal_width, without_error_numbers,
};
pub(crate) use whole::{WholeFile, unfinished};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input had problems, which have been reported.
    Input,
    /// The reader of the output is gone.
    Pipe,
    /// The command could not run, for this reason.
    Run(String),
    /// Interrupted by a signal before the end of the input, which has been reported. Contains the
    /// exit code.
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
    let plain = without_error_numbers(&text);
    if plain == text { text } else { plain.to_lowercase() }
}

/// The message for an output file that already exists.
pub(crate) fn occupied(path: &Path) -> String {
    format!("{}: already exists; use --force to overwrite it", shown(path))
}

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
    /// The target of a single result. If `-o` names a directory, or a path that ends with `/`, the
    /// result becomes a file with this name in it; the directory is created if missing.
    pub(crate) fn of_file(&self, name: impl FnOnce() -> PathBuf) -> Result<Self, Failure> {
        let Some(folder) = self.folder() else {
            return Ok(Self { output: self.output.clone(), force: self.force });
        };
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
        let name = name();
        let name = name.file_name().unwrap_or(name.as_os_str());
        Ok(Self { output: Some(folder.join(name)), force: self.force })
    }

    /// The directory named by `-o`, which may be missing if the path ends with `/`.
    pub(crate) fn folder(&self) -> Option<&Path> {
        let ends = |path: &Path| path.to_string_lossy().ends_with(std::path::is_separator);
        self.output.as_deref().filter(|path| ends(path) || path.is_dir())
    }

    /// Refuses a file name with the extension of another kind of file. A name without an extension
    /// is accepted.
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
        Err(Failure::Run(format!("{output}: {what} needs the extension {endings}, not .{end}")))
    }

    /// Refuses to overwrite the input.
    pub(crate) fn spares<'p>(
        &self,
        mut inputs: impl Iterator<Item = &'p Path>,
    ) -> Result<(), Failure> {
        let file = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
        match self.output.as_deref().and_then(|output| Some((output, file(output)?))) {
            Some((output, own)) if inputs.any(|input| file(input).as_ref() == Some(&own)) => {
                let output = output.display();
                Err(Failure::Run(format!(
                    "{output}: this is the input itself; choose another output file"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a file name that promises packets.
    pub(crate) fn is_no_capture(&self, what: &str) -> Result<(), Failure> {
        match self.output.as_deref() {
            Some(path) if matches!(OutputFormat::of(path), Ok(OutputFormat::Capture(_))) => {
                let path = shown(path);
                let problem = format!("-o {path}: this command writes {what}, not packets");
                Err(Failure::Run(format!("{problem}; use another extension")))
            }
            _ => Ok(()),
        }
    }

    /// Whether the result goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

/// A result that is written to standard output, to a device, or to a file that is given its name
/// only when it is complete.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout(BufWriter<io::Stdout>),
    Through { writer: BufWriter<File>, target: PathBuf },
    File(NewFile),
}

/// The number of bytes written at a time.
const BUFFER: usize = 1 << 16;

impl Output {
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

    /// Like [`open`](Self::open), for a result that continues until the user interrupts it: a file
    /// is written in place, unbuffered, so it grows visibly and is preserved, however the program
    /// ends.
    pub(crate) fn open_growing(target: &Target) -> Result<Self, Failure> {
        let place = match Place::of(target)? {
            Place::File(place) => place,
            Place::Stdout | Place::Through(_) => return Self::open(target),
        };
        let FilePlace { path, force } = place;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(force).create_new(!force);
        let file = options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Run(occupied(&path)),
            _ => Failure::io(&path, &error),
        })?;
        Ok(Self::Through { writer: BufWriter::with_capacity(0, file), target: path })
    }

    /// Restricts a new file to its owner, because the result holds secrets.
    pub(crate) fn hide(&self) -> Result<(), Failure> {
        match self {
            Self::File(NewFile { writer, target, .. }) => {
                writer.get_ref().hide().map_err(|error| Failure::io(target, &error))
            }
            Self::Stdout(_) | Self::Through { .. } => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Write::write_all(self, bytes).map_err(|error| self.failed(&error))
    }

    /// Flushes the output, for readers that are waiting for it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            // Nobody can read the file before it is given its name.
            Self::File(_) => Ok(()),
            _ => Write::flush(self).map_err(|error| self.failed(&error)),
        }
    }

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

/// Calls a method of the writer, without dynamic dispatch.
macro_rules! forward {
    ($output:ident.$method:ident($($argument:ident)?)) => {
        match $output {
            Self::Stdout(writer) => writer.$method($($argument)?),
            Self::Through { writer, .. } => writer.$method($($argument)?),
            Self::File(NewFile { writer, .. }) => writer.$method($($argument)?),
        }
    };
}

/// An output for code that writes in small pieces.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        forward!(self.write(bytes))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        forward!(self.write_all(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        forward!(self.flush())
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

pub(crate) fn write_all(target: &Target, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(target)?;
    output.write(bytes)?;
    output.finish()
}

/// Writes a result that contains secrets. If this creates a file, only the owner can read it.
pub(crate) fn write_secret(target: &Target, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(target)?;
    output.hide()?;
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

/// A result that is not written sequentially: always a file, created as by [`Output`].
#[derive(Debug)]
pub(crate) struct SeekableOutput(NewFile);

impl SeekableOutput {
    /// Starts the file for a target.
    pub(crate) fn open(place: FilePlace) -> Result<Self, Failure> {
        NewFile::create(place).map(Self)
    }

    /// Runs an action on the file.
    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<R>,
    ) -> Result<R, Failure> {
        let NewFile { writer, target, .. } = &mut self.0;
        act(writer).map_err(|error| Failure::io(target, &error))
    }

    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.0.finish()
    }
}
