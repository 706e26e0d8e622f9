//! The canonical text of a definition.

use super::parse::{Statement, is_space, parse};
use super::problem::Problem;

/// Formats a definition: `- ` for each level, one space between type and name, two before a
/// comment, LF line ends, no byte-order marks, at most one empty line in a row. Comments are kept
/// verbatim. Formatting is idempotent.
///
/// ```
/// use worldwire_tera::schema::format::canonical;
/// let text = "array  members\r\n-int32 id# who\r\n";
/// assert_eq!(canonical("S_A.1.def", text).unwrap(), "array members\n- int32 id  # who\n");
/// ```
///
/// # Errors
/// All problems in its lines, if any is an error: text that cannot be read is not formatted.
pub fn canonical(name: &str, text: &str) -> Result<String, Vec<Problem>> {
    let (statements, problems) = parse(name, text);
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    let mut statements = statements.iter();
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for line in text.split('\n') {
        let (code, comment) = match line.split_once('#') {
            Some((code, comment)) => (code, Some(comment.trim_end_matches(is_space))),
            None => (line, None),
        };
        // Every line with code is one statement: none was rejected.
        let blank = code.trim_matches(is_space).is_empty();
        let statement = if blank { None } else { statements.next() };
        if blank && comment.is_none() {
            gap = !out.is_empty();
            continue;
        }
        if core::mem::take(&mut gap) {
            out.push('\n');
        }
        if let Some(statement) = statement {
            write_statement(statement, &mut out);
        }
        if let Some(comment) = comment {
            out.push_str(if statement.is_some() { "  #" } else { "#" });
            out.push_str(comment);
        }
        out.push('\n');
    }
    Ok(out)
}

fn write_statement(statement: &Statement, out: &mut String) {
    match statement {
        Statement::Include { file, .. } => {
            out.push_str("@include ");
            out.push_str(file);
        }
        Statement::Line(line) => {
            for _ in 0..line.depth {
                out.push_str("- ");
            }
            out.push_str(&line.kind.to_string());
            if line.interleaved {
                out.push_str("[interleaved]");
            }
            out.push(' ');
            out.push_str(&line.name);
            if let Some(init) = &line.init {
                out.push('=');
                out.push_str(init);
            }
            if let Some(range) = line.range {
                out.push_str(&format!(" {range}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_one_form() {
        let text = "\u{feff}\u{feff}# head\n\n\n@include  S_A.1.def\r\n\n--  int32\t x=5   ^0-86.20 # c \
                    \narray< vec3 >[ interleaved ]  y\n\n";
        let once = canonical("t", text).unwrap();
        insta::assert_snapshot!(once, @r"
        # head

        @include S_A.1.def

        - - int32 x=5 ^0-86.20  # c
        array<vec3>[interleaved] y
        ");
        assert_eq!(canonical("t", &once).unwrap(), once);
        assert_eq!(canonical("t", "").unwrap(), "");
        assert_eq!(canonical("t", "uint x").unwrap_err().len(), 1);
    }
}
