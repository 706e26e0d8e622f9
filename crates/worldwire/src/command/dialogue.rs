//! The messages of one conversation, as `worldwire follow` shows them.

use worldwire_core::text::TextStyle;
use worldwire_dissect::{Format, Item, NoteKind, TextForm};

use super::selection::Shown;
use super::time::Times;
use crate::cli::TimeForm;
use crate::output::Failure;

/// How to show a conversation.
#[derive(Debug)]
pub(super) struct Dialogue {
    format: Format,
    is_colored: bool,
    time: TimeForm,
    times: Times,
}

/// The indentation of the server's lines.
const INDENT: &str = "    ";
const RED: &str = "\x1b[31m";
const BLUE: &str = "\x1b[34m";
const RESET: &str = "\x1b[0m";

impl Dialogue {
    /// Creates a dialogue that shows all fields or, in lines of at most `width` columns, each
    /// message's most informative values.
    ///
    /// # Errors
    /// If the local time zone is unknown and needed.
    pub(super) fn new(
        is_full: bool,
        is_colored: bool,
        time: TimeForm,
        width: Option<usize>,
    ) -> Result<Self, Failure> {
        // The line is preceded by the time and the indentation instead of the conversation's
        // number.
        let width = width.map(|width| width.saturating_sub(INDENT.len() + 4));
        let form = if is_full { TextForm::Fields } else { TextForm::Info { width } };
        let style = TextStyle { colour: false, ..TextStyle::default() };
        let format = Format::Text { form, style, time: false };
        Ok(Self { format, is_colored, time, times: Times::of(time)? })
    }

    /// Whether an item is the heading of the conversation. Headings have no time.
    pub(super) fn is_heading(item: &Item<'_>) -> bool {
        item.note().is_some_and(|note| note.kind == NoteKind::Opened)
    }

    /// Appends a message or note. The time since the previous line is written later.
    pub(super) fn write(&self, shown: &Shown<'_, '_>, out: &mut String) {
        use worldwire_core::Side::Server;

        let item = shown.item;
        let mut text = String::new();
        self.format.write(item, shown.name, shown.tree, &mut text);
        if Self::is_heading(item) {
            let ends = item.note().map_or("", |note| &note.text);
            out.push_str(&format!("{}  {ends}\n", item.family));
            return;
        }
        // The first line begins with the number of the conversation and the side.
        let digits = item.stamp.stream.checked_ilog10().unwrap_or(0) as usize + 1;
        let head = "  #".len() + digits.max(3) + 1;
        let indent = if item.from == Server { INDENT } else { "" };
        let (on, off) = match (self.is_colored, item.from) {
            (false, _) => ("", ""),
            (true, Server) => (BLUE, RESET),
            (true, _) => (RED, RESET),
        };
        let since = item.stamp.since;
        for (index, line) in text.lines().enumerate() {
            match index {
                0 => {
                    let line = line.get(head..).unwrap_or(line);
                    if self.time == TimeForm::Relative {
                        let (seconds, micros) = (since.as_secs(), since.subsec_micros());
                        out.push_str(&format!("{seconds:5}.{micros:06}"));
                    }
                    self.times.write(item.stamp.time, out);
                    out.push_str(&format!("  {indent}{on}{line}{off}\n"));
                }
                _ => out.push_str(&format!("    {indent}{on}{line}{off}\n")),
            }
        }
    }
}
