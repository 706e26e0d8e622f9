//! The page of `worldwire capture --inspect`.

use std::iter::once;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use worldwire_capture::CaptureError;
use worldwire_inspect::{InspectError, Inspector, Settings};
use worldwire_net::{Signal, Stop};

use super::{capture, inspect, system};
use crate::cli::{Common, LiveCapture, Tcpdump};
use crate::definitions;
use crate::output::{Failure, Scratch, say};

/// How often the page looks for the beginning of the capture.
const PATIENCE: Duration = Duration::from_millis(50);

/// The page that shows the packets captured so far.
#[derive(Debug)]
pub(super) struct CapturePage {
    stop: Stop,
    thread: JoinHandle<Result<(), Failure>>,
    /// Contains the file that the page reads, unless `--write` names one.
    _scratch: Option<Scratch>,
}

impl CapturePage {
    /// Opens the page if it is requested, as soon as the capture has begun. The page reads the file to
    /// which the returned arguments write all packets.
    pub(super) fn open(
        arguments: &LiveCapture,
        mut tcpdump: Tcpdump,
        common: &Common,
    ) -> Result<(Option<Self>, Tcpdump), Failure> {
        let Some(listen) = arguments.inspect else { return Ok((None, tcpdump)) };
        let mut scratch = None;
        let file = match &tcpdump.write {
            Some(file) => file.clone(),
            None => {
                let folder = Scratch::create()?;
                let file = folder.path().join("capture.pcapng");
                scratch = Some(folder);
                file
            }
        };
        tcpdump.write = Some(file.clone());
        let page = Self::start(listen, &file, arguments, scratch, common)?;
        Ok((Some(page), tcpdump))
    }

    fn start(
        listen: SocketAddr,
        file: &Path,
        arguments: &LiveCapture,
        scratch: Option<Scratch>,
        common: &Common,
    ) -> Result<Self, Failure> {
        let data = &arguments.knowledge.data;
        let copied = definitions::options(data) + &definitions::pins(data);
        let definitions = definitions::load(data, common)?;
        let options = capture::options(once(file), &arguments.knowledge, definitions, common)?;
        let settings = Settings { listen, follow: true, options: copied, ..Settings::default() };
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
        Ok(Self { stop, thread, _scratch: scratch })
    }

    pub(super) fn close(self) -> Result<(), Failure> {
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
