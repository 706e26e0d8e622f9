//! Errors and warnings about text files: definitions, maps, key files.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::io::IsTerminal;

use worldwire_core::{Diagnostic, Severity};

use crate::output::{printable, say};

/// The maximum number of diagnostics shown; the rest are counted.
const MAX_SHOWN: usize = 100;

/// Shows diagnostics on standard error, each with the line that it concerns: as frames on a
/// terminal, or as one line each for programs that read the output.
pub(crate) fn diagnostics<'d>(all: impl IntoIterator<Item = &'d Diagnostic>) {
    let frames = std::io::stderr().is_terminal();
    let mut all = all.into_iter();
    for diagnostic in all.by_ref().take(MAX_SHOWN) {
        if frames {
            say(frame(diagnostic));
        } else {
            say(printable(&diagnostic.to_string()));
        }
    }
    let rest = all.count();
    if rest > 0 {
        say(format_args!("worldwire: {rest} more not shown"));
    }
}

/// One diagnostic with its line and a mark under the position.
fn frame(diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let snippet = Snippet::source(diagnostic.line_text())
        .line_start(diagnostic.line())
        .path(diagnostic.file())
        .annotation(AnnotationKind::Primary.span(diagnostic.span_in_line()));
    let mut group = level.primary_title(diagnostic.message()).element(snippet);
    if let Some(help) = diagnostic.help_text() {
        group = group.element(Level::HELP.message(help));
    }
    Renderer::styled().render(&[group])
}

#[cfg(test)]
mod tests {
    use worldwire_core::Source;

    #[test]
    fn a_frame_shows_the_line() {
        let source = Source::new("Game.xml", "<A>\n  <Force TPYE='FLT'/>\n</A>\n");
        let odd = source.warning(13..17, "attribute TPYE is read as TYPE").help("write TYPE");
        let plain = anstream::adapter::strip_str(&super::frame(&odd)).to_string();
        assert!(plain.contains("Game.xml:2:10"), "{plain}");
        assert!(plain.contains("2 |   <Force TPYE='FLT'/>"), "{plain}");
        assert!(plain.contains("^^^^"), "{plain}");
        assert!(plain.contains("write TYPE"), "{plain}");
    }
}
