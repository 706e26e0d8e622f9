//! `worldwire conformance`.

mod peer;
mod vectors;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use worldwire_core::Side;
use worldwire_core::json::{Json, parse};

use crate::cli::{Common, ConformanceArguments};
use crate::input;
use crate::output::{Failure, counted, print, printable, say, shown};
use peer::Peer;
use vectors::{Question, Wanted, agrees, question};

pub(crate) fn run(arguments: &ConformanceArguments, common: &Common) -> Result<(), Failure> {
    let files = vector_files(&arguments.vectors, common)?;
    let timeout = Duration::from_secs(arguments.timeout);
    let mut test = Test {
        peer: Peer::start(&arguments.program, timeout)?,
        arguments,
        next: 0,
        counts: [0; 4],
    };
    let asked: Result<(), Failure> = files.iter().try_for_each(|file| test.file(file));
    asked?;
    let [passed, failed, skipped, unasked] = test.counts;
    if !common.quiet {
        let mut text = format!(
            "{}: {passed} passed, {failed} failed",
            counted(passed + failed + skipped, "vector")
        );
        if skipped > 0 {
            let _ = write!(text, ", {skipped} skipped by the program");
        }
        say(text);
        if unasked > 0 {
            say(format_args!(
                "{} left out: decoding and encoding alone cannot test them",
                counted(unasked, "vector")
            ));
        }
    }
    if passed + failed + skipped == 0 {
        return Err(Failure::Run(
            "the files contain no vectors for decoders; specify other files with --vectors"
                .to_owned(),
        ));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// The JSON files at these paths, in order.
fn vector_files(paths: &[PathBuf], common: &Common) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let found = input::files(path, &|subject, text| common.note(subject, text))?;
        let is_json = |file: &PathBuf| file.extension().is_some_and(|it| it == "json");
        let mut found: Vec<PathBuf> = found.into_iter().filter(is_json).collect();
        if found.is_empty() {
            return Err(Failure::Run(format!("{}: contains no .json files", shown(path))));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// The result of a vector.
#[derive(Debug)]
enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Test<'t> {
    peer: Peer,
    arguments: &'t ConformanceArguments,
    next: u64,
    /// The number of vectors that passed, failed, were skipped, and were not asked about.
    counts: [u64; 4],
}

impl Test<'_> {
    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        let text = input::read_text(path)?;
        let json =
            parse(&text).map_err(|error| Failure::Run(format!("{}: {error}", shown(path))))?;
        let part = |path: Option<&Path>| {
            path.and_then(Path::file_stem).map(|it| it.to_string_lossy().into_owned())
        };
        let name = format!(
            "{}/{}",
            part(path.parent()).unwrap_or_default(),
            part(Some(path)).unwrap_or_default()
        );
        for (list, value) in json.as_object().into_iter().flatten() {
            let cases = value.as_array().or_else(|| value.get("cases")?.as_array());
            for (index, case) in cases.into_iter().flatten().enumerate() {
                if !case.is_object() {
                    continue;
                }
                match question(&name, list, case) {
                    Some(question) => {
                        let title = format!("{name} {list}[{index}]");
                        self.vector(&title, &question)?;
                    }
                    None => self.counts[3] += 1,
                }
            }
        }
        Ok(())
    }

    fn vector(&mut self, title: &str, question: &Question<'_>) -> Result<(), Failure> {
        let verdict = self.ask(title, question).map_err(|why| {
            Failure::Run(format!("{}: {title}: {why}", self.arguments.program[0]))
        })?;
        let (index, word, why) = match &verdict {
            Verdict::Passed => (0, "passed", None),
            Verdict::Failed(why) => (1, "failed", Some(why)),
            Verdict::Skipped(why) => (2, "skipped", Some(why)),
        };
        self.counts[index] += 1;
        if self.arguments.json {
            let mut line = json!({ "vector": title, "format": question.format, "result": word });
            if let Some(why) = why {
                line["why"] = json!(why);
            }
            return print(&format!("{line}\n"));
        }
        match why {
            Some(why) if index == 1 || self.arguments.all => {
                print(&format!("{word:<7} {title}: {}\n", printable(why)))
            }
            None if self.arguments.all => print(&format!("{word:<7} {title}\n")),
            _ => Ok(()),
        }
    }

    /// Asks the program to decode and, if it answers correctly, to encode its own answer.
    fn ask(&mut self, title: &str, question: &Question<'_>) -> Result<Verdict, String> {
        let Question { format, from, hex, wanted } = question;
        let from = from.map(Side::name);
        let id = self.id();
        let line = json!({
            "id": id, "vector": title, "do": "decode", "format": format, "from": from, "hex": hex,
        });
        let answer = self.peer.ask(id, &line.to_string())?;
        if let Some(why) = text(&answer, "skip") {
            return Ok(Verdict::Skipped(why));
        }
        let error = text(&answer, "error");
        let (name, fields, encodes) = match (wanted, error) {
            (Wanted::Error, Some(_)) => return Ok(Verdict::Passed),
            (Wanted::Error, None) => {
                let why = "decoded bytes that must be refused".to_owned();
                return Ok(Verdict::Failed(why));
            }
            (Wanted::Message { may_fail: true, .. }, Some(_)) => return Ok(Verdict::Passed),
            (Wanted::Message { .. }, Some(error)) => {
                return Ok(Verdict::Failed(format!("not decoded: {error}")));
            }
            (Wanted::Message { name, fields, encodes, .. }, None) => (name, fields, encodes),
        };
        let Some(message) = answer.get("message") else {
            return Err("its response has no \"message\", \"error\" or \"skip\"".to_owned());
        };
        let found = message.get("name").and_then(Json::as_str);
        if let (Some(wanted), Some(found)) = (name, found)
            && *wanted != found
        {
            return Ok(Verdict::Failed(format!("wanted {wanted}, found {found}")));
        }
        if let Some(wanted) = fields
            && let Err(why) = agrees(message.get("fields").unwrap_or(message), wanted, "")
        {
            return Ok(Verdict::Failed(why));
        }
        if !encodes {
            return Ok(Verdict::Passed);
        }
        let id = self.id();
        let line = json!({
            "id": id, "vector": title, "do": "encode", "format": format, "from": from,
            "message": message,
        });
        let answer = self.peer.ask(id, &line.to_string())?;
        if text(&answer, "skip").is_some() {
            return Ok(Verdict::Passed);
        }
        Ok(match (text(&answer, "hex"), text(&answer, "error")) {
            (Some(found), _) if found.eq_ignore_ascii_case(hex) => Verdict::Passed,
            (Some(found), _) => Verdict::Failed(format!("encoded to {found}, wanted {hex}")),
            (None, Some(error)) => Verdict::Failed(format!("not encoded: {error}")),
            (None, None) => {
                return Err("its response has no \"hex\", \"error\" or \"skip\"".to_owned());
            }
        })
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn text(answer: &Json, key: &str) -> Option<String> {
    answer.get(key).and_then(Json::as_str).map(str::to_owned)
}
