//! The frame of the report: head, style, sections and tables.

use std::fmt::Write as _;

use crate::output::printable;

const STYLE: &str = include_str!("page.css");

/// The HTML under construction.
pub(super) struct Page {
    out: String,
}

impl Page {
    pub(super) fn new(files: &[String]) -> Self {
        let title = escaped(&files.join(", "));
        // The page must not load or run anything, whatever a captured name contains.
        let policy = "default-src 'none'; style-src 'unsafe-inline'";
        let out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Report: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header><p class=\"brand\">worldwire</p><h1>{title}</h1></header>\n<main>\n"
        );
        Self { out }
    }

    /// Figures, each with a label and an explanation.
    pub(super) fn facts(&mut self, facts: &[(&str, String, String)]) {
        self.out.push_str("<dl class=\"facts\">\n");
        for (label, value, note) in facts {
            let (value, note) = (escaped(value), escaped(note));
            let _ = writeln!(
                self.out,
                "<div><dt>{label}</dt><dd class=\"value\">{value}</dd><dd class=\"note\">{note}</dd></div>"
            );
        }
        self.out.push_str("</dl>\n");
    }

    /// Begins a section. The note is HTML.
    pub(super) fn section(&mut self, id: &str, title: &str, note: &str) {
        let _ =
            writeln!(self.out, "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>");
        if !note.is_empty() {
            let _ = writeln!(self.out, "<p class=\"note\">{note}</p>");
        }
    }

    pub(super) fn end_section(&mut self) {
        self.out.push_str("</section>\n");
    }

    /// Begins a table whose first `texts` columns are aligned left.
    pub(super) fn table(&mut self, label: &str, heads: &[&str], texts: usize) {
        let _ = write!(
            self.out,
            "<div class=\"scroll\" role=\"region\" aria-label=\"{label}, table\" tabindex=\"0\">\n\
             <table>\n<thead><tr>"
        );
        for (index, head) in heads.iter().enumerate() {
            let class = if index < texts { "" } else { " class=\"number\"" };
            let _ = match head.is_empty() {
                true => write!(self.out, "<td class=\"bar\"></td>"),
                false => write!(self.out, "<th scope=\"col\"{class}>{head}</th>"),
            };
        }
        self.out.push_str("</tr></thead>\n<tbody>\n");
    }

    /// A row of cells, which are HTML.
    pub(super) fn row(&mut self, cells: &[String]) {
        self.out.push_str("<tr>");
        cells.iter().for_each(|cell| self.out.push_str(cell));
        self.out.push_str("</tr>\n");
    }

    pub(super) fn end_table(&mut self) {
        self.out.push_str("</tbody>\n</table>\n</div>\n");
    }

    /// Where plots are written.
    pub(super) fn out(&mut self) -> &mut String {
        &mut self.out
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</main>\n</body>\n</html>\n");
        self.out
    }
}

/// The maximum length of a captured text, in characters, so that the page's size is bounded.
const MAX_TEXT: usize = 400;

/// Text for HTML, also in attributes. Control characters and characters that change the direction
/// of text are shown as escapes. Long texts are truncated.
pub(super) fn escaped(text: &str) -> String {
    let (text, ellipsis) = match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => (text.get(..end).unwrap_or_default(), "…"),
        None => (text, ""),
    };
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars().chain(ellipsis.chars()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_texts_stay_texts() {
        let text = escaped("</td><script>alert('1')</script>\u{202e}\"&\n");
        assert!(!text.contains(['<', '>', '"', '\'', '\u{202e}', '\n']), "{text}");
        assert_eq!(escaped(&"a<".repeat(50_000)).len(), 200 * 5 + "…".len());
        let page = Page::new(&["<img src=x>".to_owned()]).finish();
        assert!(!page.contains("<img") && page.contains("&lt;img src=x&gt;"), "{page}");
    }
}
