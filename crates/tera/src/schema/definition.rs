//! One definition: a text, the files it includes, and the plan they compile to.

use std::sync::Arc;

use worldwire_core::{Diagnostic, Source};

use super::compile::{Compiled, compile, depends_on_patch};
use super::dialect::{self, Dialect, Marks, Refusal};
use super::parse::{Line, Statement, parse};
use super::plan::Plan;
use super::problem::{Problem, ProblemKind};
use super::version::{FileName, Patch, Platform};

/// Maximum number of files that one file may include, directly or indirectly.
const MAX_INCLUDES: usize = 5;
/// Maximum number of lines in one definition, including those of included files.
const MAX_LINES: usize = 65_536;

/// Options for reading definitions.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// The dialect; detected from the files if `None`.
    pub dialect: Option<Dialect>,
    /// Skips lines that cannot be read, as the first parsers do, and reads a string without an
    /// offset line in place. The resulting layout may be wrong.
    pub lenient: bool,
    /// The version of the game, for fields that exist only in some patches; the latest if `None`.
    pub patch: Option<Patch>,
    /// The platform, whose files replace those for all platforms.
    pub platform: Platform,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { dialect: None, lenient: false, patch: None, platform: Platform::Pc }
    }
}

/// A compiled definition. Cloning is cheap: all builds with the same layout share it.
#[derive(Clone, Debug)]
pub struct Definition {
    file: FileName,
    dialect: Dialect,
    lines: Arc<[Line]>,
    plan: Arc<Plan>,
    since: Option<u16>,
}

impl Definition {
    /// Reads a single text. It cannot include files; use a [`Set`](super::Set) for that.
    pub fn parse(
        file: &FileName,
        text: &str,
        options: &ParseOptions,
    ) -> Result<Self, Vec<Problem>> {
        let title = file.to_string();
        let file_text = FileText::read(&title, text);
        let dialect = options.dialect.unwrap_or_else(|| file_text.marks.of_file());
        let built = build(file, &file_text, dialect, options, &|_| None);
        built.definition.ok_or(built.problems)
    }

    /// The message's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// The layout's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.file.version
    }

    /// The file it was read from.
    #[must_use]
    pub fn file(&self) -> &FileName {
        &self.file
    }

    /// Name and version, as usually written: `S_LOGIN.14`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.plan.title
    }

    /// The dialect it was read in.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Its lines, with included files expanded.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The plan that reads and writes its messages.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The first patch it applies to, if a comment says `majorPatchVersion >= N`. This is a
    /// community convention, not part of the language.
    #[must_use]
    pub fn since(&self) -> Option<u16> {
        self.since
    }

    /// Whether the layout may differ at another patch.
    pub(super) fn depends_on_patch(&self) -> bool {
        depends_on_patch(&self.lines, self.dialect, &self.plan)
    }
}

/// A parsed text, before it is compiled.
#[derive(Clone, Debug)]
pub(super) struct FileText {
    pub(super) text: Arc<str>,
    statements: Vec<Statement>,
    problems: Vec<Problem>,
    pub(super) marks: Marks,
    since: Option<u16>,
    /// Whether array elements are written in pairs, which the language cannot express.
    pub(super) pairs: bool,
}

impl FileText {
    pub(super) fn read(name: &str, text: &str) -> Self {
        let (statements, problems) = parse(name, text);
        let marks = Marks::of(&statements);
        Self { text: text.into(), marks, since: since(text), pairs: false, statements, problems }
    }

    pub(super) fn includes(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter_map(|statement| match statement {
            Statement::Include { file, .. } => Some(&**file),
            Statement::Line(_) => None,
        })
    }
}

/// The patch in a comment `majorPatchVersion >= 86`.
fn since(text: &str) -> Option<u16> {
    const PHRASE: &str = "ajorPatchVersion";
    text.lines().filter_map(|line| line.split_once('#')).find_map(|(_, comment)| {
        let (before, after) = comment.split_once(PHRASE)?;
        let number = after.trim_start().strip_prefix(">=")?.trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        before.ends_with(['m', 'M']).then(|| number.get(..end)?.parse().ok())?
    })
}

/// The result of compiling a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    pub(super) definition: Option<Definition>,
    pub(super) problems: Vec<Problem>,
    /// The files it includes, directly or indirectly.
    pub(super) includes: Vec<Box<str>>,
    /// Number of lines and fields. Counted even for a file with errors, as it takes as long to
    /// compile.
    pub(super) size: usize,
    /// Whether it was left out because the set is too large.
    pub(super) no_room: bool,
}

impl Built {
    /// The result for a file that would exceed the set's limit on lines and fields.
    pub(super) fn without_room(file: &str, max: usize) -> Self {
        let message = format!("the definitions together have more than {max} lines and fields");
        let diagnostic = Source::new(file, "").error(0..0, message);
        let problems = vec![Problem { kind: ProblemKind::TooLarge, diagnostic }];
        Self { problems, no_room: true, ..Self::default() }
    }
}

/// The lines of a file with included files expanded, and where each line comes from.
struct Lines<'f> {
    lines: Vec<Line>,
    /// The file itself, then what it includes.
    origins: Vec<Origin<'f>>,
    problems: Vec<Problem>,
}

/// A file that lines come from.
struct Origin<'f> {
    name: Box<str>,
    file: &'f FileText,
    /// Created on the first problem: finding the line starts takes a pass over the text, so it is
    /// done only once.
    source: Option<Source<'f>>,
}

impl<'f> Origin<'f> {
    fn source(&mut self) -> &Source<'f> {
        self.source.get_or_insert_with(|| Source::new(&self.name, &self.file.text))
    }
}

impl<'f> Lines<'f> {
    fn problem(&mut self, line: &Line, error: bool, refusal: Refusal) {
        let Some(origin) = self.origins.get_mut(usize::from(line.origin)) else { return };
        let source = origin.source();
        let span = line.span.clone();
        let mut diagnostic: Diagnostic = if error {
            source.error(span, refusal.message)
        } else {
            source.warning(span, refusal.message)
        };
        if let Some(help) = refusal.help {
            diagnostic = diagnostic.help(help);
        }
        self.problems.push(Problem { kind: refusal.kind, diagnostic });
    }

    fn add(
        &mut self,
        name: &str,
        file: &'f FileText,
        parents: &mut Vec<Box<str>>,
        find: &dyn Fn(&str) -> Option<&'f FileText>,
    ) {
        let own = self.origins.len();
        let origin = u16::try_from(own).unwrap_or(u16::MAX);
        self.origins.push(Origin { name: name.into(), file, source: None });
        self.problems.extend(file.problems.iter().cloned());
        parents.push(name.into());
        for statement in &file.statements {
            match statement {
                Statement::Line(line) => {
                    if self.lines.len() >= MAX_LINES {
                        let message = format!("more than {MAX_LINES} lines");
                        let kind = ProblemKind::TooLarge;
                        let line = Line { origin, ..line.clone() };
                        self.problem(&line, true, Refusal { kind, message, help: None });
                        break;
                    }
                    self.lines.push(Line { origin, ..line.clone() });
                }
                Statement::Include { file: wanted, span } => {
                    let found = find(wanted);
                    let message = if parents.contains(wanted) {
                        format!("{wanted} includes itself")
                    } else if self.origins.len() > MAX_INCLUDES {
                        format!("more than {MAX_INCLUDES} files are included")
                    } else if let Some(found) = found {
                        self.add(wanted, found, parents, find);
                        continue;
                    } else {
                        format!("no file {wanted} in the directory")
                    };
                    let diagnostic = self.origins[own].source().error(span.clone(), message);
                    self.problems.push(Problem { kind: ProblemKind::BadInclude, diagnostic });
                }
            }
        }
        parents.pop();
    }

    /// Drops and reports lines that are not allowed where they are.
    fn check(&mut self, dialect: Dialect) {
        let lines = core::mem::take(&mut self.lines);
        let mut kept: Vec<Line> = Vec::with_capacity(lines.len());
        for line in lines {
            // A line for a count or offset neither holds fields nor ends a field that does.
            let outcome = dialect::check(&line, dialect)
                .and_then(|()| dialect::check_depth(&line, kept.last(), dialect));
            match outcome {
                Ok(()) => kept.push(line),
                Err(refusal) => self.problem(&line, true, refusal),
            }
        }
        self.lines = kept;
    }
}

/// Compiles a text; `find` looks up included files.
pub(super) fn build<'f>(
    file: &FileName,
    text: &'f FileText,
    dialect: Dialect,
    options: &ParseOptions,
    find: &dyn Fn(&str) -> Option<&'f FileText>,
) -> Built {
    let name = file.to_string();
    let mut lines = Lines { lines: Vec::new(), origins: Vec::new(), problems: Vec::new() };
    lines.add(&name, text, &mut Vec::new(), find);
    lines.check(dialect);
    let broken = lines.problems.iter().any(Problem::is_error) && !options.lenient;
    let patch = options.patch.unwrap_or(Patch::LATEST);
    let Compiled { plan, issues, fields } =
        compile(&lines.lines, dialect, patch, (options.lenient, text.pairs));
    let size = lines.lines.len() + fields;
    // Follow-up errors about the missing lines would only distract.
    for issue in issues.into_iter().filter(|_| !broken) {
        if let Some(line) = lines.lines.get(issue.line).cloned() {
            let help = issue.help.map(str::to_owned);
            let refusal = Refusal { kind: issue.kind, message: issue.message, help };
            lines.problem(&line, issue.error, refusal);
        }
    }
    let includes = lines.origins.iter().skip(1).map(|origin| origin.name.clone()).collect();
    let definition = plan.filter(|_| !broken).map(|plan| Definition {
        file: file.clone(),
        dialect,
        lines: lines.lines.into(),
        plan: Arc::new(Plan { title: format!("{}.{}", file.name, file.version).into(), ..plan }),
        since: text.since,
    });
    Built { definition, problems: lines.problems, includes, size, no_room: false }
}

#[cfg(test)]
impl Definition {
    /// The definition `S_A.1` with this text.
    pub(crate) fn of_text(text: &str) -> Self {
        let file = FileName::parse("S_A.1.def").unwrap();
        Self::parse(&file, text, &ParseOptions::default()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_is_read_from_a_comment() {
        assert_eq!(since("# majorPatchVersion >= 86 && majorPatchVersion < 110\n"), Some(86));
        assert_eq!(since("int32 a # MajorPatchVersion>=9\n"), Some(9));
        assert_eq!(since("# majorPatchVersion < 85\nint32 a"), None);
    }
}
