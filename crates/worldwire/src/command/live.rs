//! `worldwire capture`.

use std::iter::once;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use worldwire_capture::CaptureError;
use worldwire_inspect::{InspectError, Inspector, Settings};
use worldwire_net::{Signal, Stop};

use super::{capture, dissect, inspect, system};
use crate::cli::{Capture, Common, Dissect, LiveCapture, Target};
use crate::definitions;
use crate::output::{Failure, reason, say};

/// How often the page looks for the beginning of the capture.
const PATIENCE: Duration = Duration::from_millis(50);

/// Captures packets and dissects them.
pub(crate) fn run(arguments: &LiveCapture, common: &Common) -> Result<(), Failure> {
    let LiveCapture { tcpdump, knowledge, view, output, force, inspect } = arguments;
    let mut tcpdump = tcpdump.clone();
    let mut scratch = None;
    if inspect.is_some() && tcpdump.write.is_none() {
        let folder = tempfile::Builder::new().prefix("worldwire-").tempdir();
        let folder = folder.map_err(|error| {
            Failure::Run(format!("a temporary directory for --inspect: {}", reason(&error)))
        })?;
        tcpdump.write = Some(folder.path().join("capture.pcapng"));
        scratch = Some(folder);
    }
    let page = match (inspect, &tcpdump.write) {
        (Some(at), Some(file)) => Some(Page::open(*at, file, arguments, common)?),
        _ => None,
    };
    let capture = Capture {
        file: PathBuf::from(&tcpdump.interface),
        more: Vec::new(),
        knowledge: knowledge.clone(),
        is_growing: false,
        tcpdump: Some(tcpdump),
    };
    let (view, target) = (view.clone(), Target { output: output.clone(), force: *force });
    let arguments = Dissect { capture, view, secrets: false, threads: 0, target };
    let captured = dissect::run(&arguments, common);
    let shown = page.map_or(Ok(()), Page::close);
    drop(scratch);
    captured.and(shown)
}

/// The page on the packets captured so far.
struct Page {
    stop: Stop,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Page {
    /// Opens the page as soon as the capture has begun.
    fn open(
        listen: SocketAddr,
        file: &Path,
        arguments: &LiveCapture,
        common: &Common,
    ) -> Result<Self, Failure> {
        let definitions = definitions::load(&arguments.knowledge.data, common)?;
        let options = capture::options(once(file), &arguments.knowledge, definitions)?;
        let settings = Settings { listen, follow: true, ..Settings::default() };
        let (file, stop, runtime) = (file.to_owned(), Stop::new(), system::runtime()?);
        let mut signal = stop.signal();
        let serve = async move {
            let inspector = loop {
                match Inspector::open(&file, options.clone(), settings.clone()).await {
                    Ok(inspector) => break inspector,
                    Err(error) if !is_early(&error) => return Err(inspect::failed(&error)),
                    Err(_) => tokio::time::sleep(PATIENCE).await,
                }
                if has_stopped(&mut signal).await {
                    return Ok(());
                }
            };
            say(format_args!("worldwire: the page is {}", inspector.url()));
            inspector.serve(signal).await.map_err(|error| inspect::failed(&error))
        };
        let thread = thread::spawn(move || runtime.block_on(serve));
        Ok(Self { stop, thread })
    }

    fn close(self) -> Result<(), Failure> {
        self.stop.stop();
        self.thread.join().unwrap_or(Ok(()))
    }
}

/// Whether the capture has not begun yet.
fn is_early(error: &InspectError) -> bool {
    match error {
        InspectError::File { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        InspectError::NoCapture { source, .. } => {
            matches!(source, CaptureError::Empty | CaptureError::Truncated { .. })
        }
        _ => false,
    }
}

async fn has_stopped(signal: &mut Signal) -> bool {
    tokio::time::timeout(Duration::ZERO, signal.stopping()).await.is_ok()
}
