//! `worldwire proxy --show`: prints messages as they pass.

use std::io::Write as _;
use std::sync::{Arc, mpsc};
use std::thread;

use worldwire_core::text::TextStyle;
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Definitions, Format, TextForm};
use worldwire_proxy::{Effects, Handler, Next, Passing};

use crate::cli::Common;
use crate::command::dissect::read_filter;
use crate::output::{Failure, terminal_width};

/// Prints the messages of all conversations.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    filter: Option<Arc<Filter>>,
    format: Format,
    lines: mpsc::SyncSender<String>,
}

/// The maximum number of lines waiting for a slow terminal. Further lines are dropped, so that the
/// game continues.
const MAX_LINES: usize = 4_096;

impl Shown {
    /// Starts the thread that prints. An empty filter shows all messages.
    pub(super) fn new(
        text: &str,
        definitions: &Definitions,
        common: &Common,
    ) -> Result<Self, Failure> {
        let filter = match text {
            "" => None,
            text => Some(Arc::new(read_filter(text, definitions, common)?)),
        };
        let (lines, arriving) = mpsc::sync_channel::<String>(MAX_LINES);
        thread::spawn(move || {
            let mut output = std::io::stdout().lock();
            // If nobody reads the output any more, the proxy still relays.
            while let Ok(line) = arriving.recv() {
                if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                    break;
                }
            }
        });
        let style = TextStyle::default();
        let form = TextForm::Info { width: terminal_width() };
        let format = Format::Text { form, style, time: true };
        Ok(Self { filter, format, lines })
    }

    /// The handler of one conversation.
    pub(super) fn handler(&self) -> Box<dyn Handler> {
        Box::new(self.clone())
    }
}

impl Handler for Shown {
    fn message(&mut self, passing: &Passing<'_>, _: &mut Effects) -> Next {
        let Passing { item, name, .. } = passing;
        let tree = passing.tree();
        if let Some(filter) = &self.filter
            && !filter.matches(&Subject::of(item, name, tree))
        {
            return Next::Done;
        }
        let mut line = String::new();
        self.format.write(item, name, tree, &mut line);
        let _ = self.lines.try_send(line);
        Next::Done
    }
}
