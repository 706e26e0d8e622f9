//! The colours of differences.

/// Marks text as added, removed or changed, on a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    colour: bool,
}

impl Style {
    pub(super) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    pub(super) fn added(self, text: &str) -> String {
        self.paint("\x1b[32m", text)
    }

    pub(super) fn removed(self, text: &str) -> String {
        self.paint("\x1b[31m", text)
    }

    pub(super) fn changed(self, text: &str) -> String {
        self.paint("\x1b[33m", text)
    }

    /// A changed value.
    pub(super) fn change(self, old: &str, new: &str) -> String {
        format!("{} -> {}", self.removed(old), self.added(new))
    }

    pub(super) fn heading(self, text: &str) -> String {
        self.paint("\x1b[1m", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("{code}{text}\x1b[0m") } else { text.to_owned() }
    }
}
