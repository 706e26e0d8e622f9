//! `worldwire inspect`.

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::iter::once;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use worldwire_capture::CaptureWriter;
use worldwire_dissect::Options;
use worldwire_inspect::{InspectError, Inspector, KiArchive, Settings};
use worldwire_net::Stop;

use super::ki::inside::is_archive_file;
use super::{capture, system};
use crate::cli::{Common, Inspect};
use crate::definitions;
use crate::input::{map, title};
use crate::output::{Failure, Interruption, Scratch, complain, print, reason, say, shown};

pub(crate) fn run(arguments: &Inspect, common: &Common) -> Result<(), Failure> {
    if arguments.file == Path::new("-") {
        let problem = "-: the page reads the capture repeatedly; save it to a file first";
        return Err(Failure::Run(problem.to_owned()));
    }
    let loaded = definitions::load(&arguments.knowledge.data, common)?;
    let data = &arguments.knowledge.data;
    let mut settings = Settings {
        listen: arguments.listen,
        follow: arguments.is_growing,
        options: definitions::options(data) + &definitions::pins(data),
        ..Settings::default()
    };
    let (_scratch, file, options) = if is_archive_file(&arguments.file) {
        settings.archive = Some(archive(arguments)?);
        let (scratch, empty) = empty_capture("archive")?;
        (Some(scratch), empty, Options { definitions: loaded, ..Options::default() })
    } else {
        if arguments.edit {
            let problem = "--edit is for KI archives; this is not one";
            return Err(Failure::Run(format!("{}: {problem}", shown(&arguments.file))));
        }
        let own = once(&*arguments.file);
        let options = capture::options(own, &arguments.knowledge, loaded, common)?;
        (None, arguments.file.clone(), options)
    };
    system::runtime()?.block_on(async {
        let inspector = Inspector::open(&file, options, settings).await;
        let inspector = inspector.map_err(|error| failed(&error))?;
        let stop = Stop::new();
        let signal = stop.signal();
        let interruption = Interruption::ask_first(move || stop.stop());
        let url = inspector.url();
        print(&format!("{url}\n"))?;
        if !common.quiet {
            if !arguments.listen.ip().is_loopback() {
                say("worldwire: the page is not encrypted: anyone on the network can read it");
            }
            say("worldwire: Ctrl-C stops the server");
        }
        if arguments.open && io::stdout().is_terminal() {
            open(&url, common);
        }
        let served = inspector.serve(signal).await;
        drop(interruption);
        served.map_err(|error| failed(&error))
    })
}

/// Opens the archive that the user named.
fn archive(arguments: &Inspect) -> Result<Arc<KiArchive>, Failure> {
    let path = &arguments.file;
    if arguments.is_growing {
        let problem = format!("{}: --growing is for captures; this is an archive", shown(path));
        return Err(Failure::Run(problem));
    }
    let bytes = map::open(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let archive = KiArchive::open(&name, bytes).map_err(|error| {
        complain(&title(path), &error.to_string());
        Failure::Input
    })?;
    if !arguments.edit {
        return Ok(Arc::new(archive));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or_else(|| Path::new(".")));
    let folder = folder.map_err(|error| Failure::io(path, &error))?;
    Ok(Arc::new(archive.with_copies_in(folder)))
}

/// A capture without packets, for pages that show something else. It is removed with its directory.
pub(super) fn empty_capture(name: &str) -> Result<(Scratch, PathBuf), Failure> {
    let scratch = Scratch::create()?;
    let path = scratch.path().join(format!("{name}.pcapng"));
    let file = File::create(&path).map_err(|error| Failure::io(&path, &error))?;
    let written = CaptureWriter::new(file, &[]).and_then(|mut writer| writer.flush());
    written.map_err(|error| Failure::Run(error.to_string()))?;
    Ok((scratch, path))
}

pub(super) fn failed(error: &InspectError) -> Failure {
    match error {
        InspectError::File { path, source } => {
            Failure::Run(format!("{}: {}", shown(path), reason(source)))
        }
        InspectError::Listen { address, source } => {
            Failure::Run(format!("--listen {address}: {}", reason(source)))
        }
        InspectError::NoCapture { path, source } => {
            complain(&path.display().to_string(), &source.to_string());
            Failure::Input
        }
        other => Failure::Run(other.to_string()),
    }
}

/// Opens the default browser.
fn open(url: &str, common: &Common) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut browser = Command::new(program);
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = browser.spawn() {
        common.note(program, &format!("{}; open the address yourself", reason(&error)));
    }
}
